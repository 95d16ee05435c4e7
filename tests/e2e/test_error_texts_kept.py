"""What a failure says is recorded, whatever it says: no answer is asked for again because of the text of an error."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

import pytest

from chatfold import Agent, ChatState, Engine, tool
from chatfold.hooks import Hook, HookAnswer, HookCall, HookEvent, PythonHook
from chatfold.settings import Settings
from chatfold.testing import ClassifiedError, Fail, ScriptedProvider, UseTool, turn

SETTINGS: Final = Settings(model_retry_unit=0.001)
FILE: Final = os.fsdecode(b"/srv/\xff.txt")
"""The name of a file that is no UTF-8: it holds half a surrogate pair."""


@tool
def one() -> str:
    """Say one."""
    return "one"


async def _ended(model: ScriptedProvider, hooks: Sequence[Hook] = (), *, compact: bool = False) -> ChatState:
    agent = Agent(name="a", model="scripted", tools=[one])
    async with Engine("memory://", [agent], providers={"scripted": model}, settings=SETTINGS, hooks=hooks) as engine:
        chat = (await engine.create_chat("a", "hi")).chat
        state = await engine.settled(chat)
        if compact:
            await engine.compact(chat)
            state = await engine.settled(chat)
        return state


@pytest.mark.parametrize(
    ("event", "calls"),
    [("pre_tool_use", 1), ("post_tool_use", 1), ("stop", 2), ("pre_compact", 2), ("post_compact", 3)],
)
async def test_a_hook_that_fails_with_any_text_fails_the_turn_at_once(event: HookEvent, calls: int) -> None:
    def fail(_call: HookCall) -> HookAnswer | None:
        raise ValueError(f"no policy for {FILE}, db_password: hunter2, {'x' * 100_000}")

    model = ScriptedProvider([turn(UseTool("one", {})), *["said"] * 6])
    state = await _ended(model, [PythonHook(fail, [event])], compact=event.endswith("compact"))
    error = state.control.last_error
    assert error is not None
    assert error.detail is not None
    assert (state.control.status, error.kind) == ("error", "hook_dispatch_failed")
    assert "no policy for /srv/\ufffd.txt" in error.detail.text
    assert "hunter2" not in error.detail.text
    assert len(error.detail.text) == 500
    assert len(model.requests) == calls


@pytest.mark.parametrize(
    ("error", "kind", "calls"),
    [
        (ClassifiedError(kind="auth", message=f"no {FILE}", detail=f"no {FILE}"), "auth", 1),
        (ClassifiedError(kind="auth", message="m" * 5_000_000, detail="d" * 5_000_000), "auth", 1),
        (ClassifiedError(kind="auth", message="no", provider=FILE), "generic", 1),
        (ClassifiedError(kind="auth", message="no", status_code=2**70), "generic", 1),
        (ClassifiedError(kind="overloaded", message=f"no {FILE}", retryable=True), None, 2),
    ],
    ids=["surrogate", "long", "provider", "status", "retried"],
)
async def test_an_error_of_any_provider_is_recorded(
    error: ClassifiedError, kind: str | None, calls: int, caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedProvider([turn(Fail(error)), "said"])
    state = await _ended(model)
    last = state.control.last_error
    assert (last.kind if last is not None else None, len(model.requests)) == (kind, calls)
    if last is not None:
        assert len(last.message.text) <= 1_000
    # Whoever reads the log finds the place that gave what cannot be stored.
    traces = [record.exc_info for record in caplog.records if record.getMessage() == "outcome_not_storable"]
    assert len(traces) == (kind == "generic")
    assert all(trace is not None and trace[2] is not None for trace in traces)
