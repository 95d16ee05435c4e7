"""What is said of a hook that failed: to users what they can do and what then happens, to operators why, in the log."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from chatfold import Agent, Engine, ModelConfig, NothingOwed, Settings, tool
from chatfold.hooks import Hook, HookAnswer, HookCall, HookDenied, HookEvent, HookFailed, Hooks, HttpHook, PythonHook
from chatfold.testing import ScriptedProvider, UseTool, turn
from events.messages import Usage
from generation.providers.script import Script
from tests.generation.hooks.service import hook_service
from tests.generation.hooks.test_wire import serving

SETTINGS: Final = Settings(model_retry_unit=0.001)


@tool
def one() -> str:
    """Say one."""
    return "one"


FULL: Final[Script] = [turn("said", usage=Usage(input=900, output=10)), "said", "said", "said"]
"""Its first answer is one after which the next turn begins with a compaction."""
CALLS: Final[Script] = [turn(UseTool("one", {})), "said", "said", "said"]
CASES: Final[dict[tuple[HookEvent, str], tuple[str, str, list[str]]]] = {
    ("pre_tool_use", ""): (
        "so a call of a tool did not run. Resume to go on: the model reads that it did not run, and may call it again",
        "resume",
        ["step_committed", "turn_finished"],
    ),
    ("post_tool_use", ""): (
        "and the tool's result is kept. Resume to go on with it",
        "resume",
        ["step_committed", "turn_finished"],
    ),
    ("stop", ""): (
        "and the answer is kept. Resume to end the turn with it, or send a message",
        "resume",
        ["turn_finished"],
    ),
    ("pre_compact", ""): (
        "so nothing was summarised. Resume to try again",
        "resume",
        ["compaction_committed", "step_committed", "turn_finished"],
    ),
    ("post_compact", ""): (
        "and the summary is kept as it was. Resume to go on with it",
        "resume",
        ["step_committed", "turn_finished"],
    ),
    ("pre_compact", "asked for"): (
        "so nothing was summarised. Compact again, or send a message to go on without a summary",
        "compact",
        ["compaction_committed", "turn_finished"],
    ),
    ("post_compact", "asked for"): (
        "and the summary is kept as it was. Send a message to go on with it",
        "send",
        ["step_committed", "turn_finished"],
    ),
}
"""By event, and whether a compaction was asked for: the message, what it advises, and what that comes to."""


async def _failed(engine: Engine, event: HookEvent, how: str) -> str:
    """Bring a chat to where the hook fails."""
    chat = (await engine.create_chat("a", "hi")).chat
    await engine.settled(chat)
    if how:
        await engine.compact(chat)
    elif event.endswith("compact"):
        await engine.send_message(chat, "more")
    assert (await engine.settled(chat)).control.status == "error"
    return chat


@pytest.mark.parametrize(("event", "how"), CASES)
async def test_what_the_message_advises_is_what_happens(event: HookEvent, how: str) -> None:
    message, advised, done = CASES[event, how]
    asked = 0

    def fail(_: HookCall) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise ConnectionError("down")

    compacts = event.endswith("compact") and not how
    model = ScriptedProvider(FULL if compacts else CALLS)
    config = ModelConfig(provider="scripted", name="m", context_limit=1000 if compacts else None)
    agent, hooks = Agent(name="a", model=config, tools=[one]), [PythonHook(fail, [event])]
    async with Engine("memory://", [agent], providers={"scripted": model}, settings=SETTINGS, hooks=hooks) as engine:
        chat = await _failed(engine, event, how)
        error = (await engine.state(chat)).control.last_error
        assert error is not None
        assert error.message.text == f"A hook at {event} could not be asked, {message}; or have its operator look."
        found = await engine.diagnose(chat)
        assert "state.control.last_error.detail" in found.advice
        assert ("Resume" in found.advice) is (advised == "resume")
        before = len(await engine.events(chat))
        if advised != "resume":
            with pytest.raises(NothingOwed):
                await engine.resume(chat)
        commands: dict[str, Callable[[], Any]] = {
            "resume": lambda: engine.resume(chat),
            "compact": lambda: engine.compact(chat),
            "send": lambda: engine.send_message(chat, "go on"),
        }
        await commands[advised]()
        assert (await engine.settled(chat)).control.status == "waiting"
        came = [each.event.type for each in (await engine.events(chat))[before:]]
    assert [kind for kind in came if kind.endswith(("committed", "finished"))] == done
    again = event == "pre_compact"
    assert asked == 1 + again, "no other hook is asked again"


def _raises(_: HookCall) -> HookAnswer | None:
    raise ValueError(f"no policy at https://x.test/a, db_password: hunter2, {'x' * 100_000}")


BOTH: Final = json.dumps({"deny": "no", "context": "and"}).encode()
SERVICES: Final[Sequence[tuple[Callable[[dict[str, Any]], tuple[int, bytes]], str]]] = [
    (lambda _: (500, b"{}"), "it answered with status 500"),
    (lambda _: (200, b"{"), "its answer is no JSON"),
    (lambda _: (200, BOTH), "an answer that denies may say nothing else"),
]


async def _logged(hook: Hook, caplog: pytest.LogCaptureFixture) -> tuple[HookFailed, Any]:
    """Have a hook fail; return what was raised, and the one line of the log."""
    caplog.set_level(logging.INFO)
    with pytest.raises(HookFailed) as failed:
        await Hooks([hook]).ask("pre_tool_use", "c1", "5.0.0", {})
    (record,) = [each for each in caplog.records if each.getMessage() == "hook_failed"]
    assert record.levelno == logging.WARNING
    line: Any = vars(record)
    assert (line["at"], line["chat"], line["id"]) == ("pre_tool_use", "c1", "c1:pre_tool_use:5.0.0")
    assert (line["hook"], line["kind"]) == (failed.value.hook, "hook_dispatch_failed")
    return failed.value, line


async def test_the_log_says_why_a_function_failed_without_its_secrets(caplog: pytest.LogCaptureFixture) -> None:
    error, line = await _logged(PythonHook(_raises, ["pre_tool_use"]), caplog)
    assert line["hook"] == "_raises"
    for text in (line["reason"], str(error), error.why):
        assert "no policy at [address]" in text
        assert "hunter2" not in text
        assert len(text) <= 500


@pytest.mark.parametrize(("respond", "why"), SERVICES, ids=["status", "body", "answer"])
async def test_the_log_says_why_a_service_failed(
    respond: Callable[[dict[str, Any]], tuple[int, bytes]], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    with hook_service(respond) as service:
        _, line = await _logged(HttpHook(service.url, ["pre_tool_use"]), caplog)
        assert line["hook"] == service.url.removeprefix("http://").partition("/")[0]
    assert why in line["reason"]


async def test_the_log_says_that_a_service_took_too_long(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(b"", then="silence") as url:
        _, line = await _logged(HttpHook(url, ["pre_tool_use"], timeout=0.05), caplog)
    assert "0.05 seconds" in line["reason"] or "Timeout" in line["reason"]


async def test_what_commands_raise_of_hooks_has_no_secrets_and_its_length(caplog: pytest.LogCaptureFixture) -> None:
    def deny(_: HookCall) -> HookAnswer:
        return HookAnswer(deny=f"See https://wiki.test/rules. db_password: hunter2, {'x' * 100_000}")

    for function, wanted in ((deny, HookDenied), (_raises, HookFailed)):
        hooks = [PythonHook(function, ["user_prompt_submit"])]
        async with Engine("memory://", [Agent(name="a", model="scripted")], worker=False, hooks=hooks) as engine:
            with pytest.raises(wanted) as raised:
                await engine.create_chat("a", "hi")
        assert "hunter2" not in str(raised.value)
        assert len(str(raised.value)) <= 1_100
        if isinstance(raised.value, HookDenied):
            assert raised.value.reason.startswith("See https://wiki.test/rules. ")
            assert len(raised.value.reason) == 1_000
    assert [each.getMessage() for each in caplog.records].count("hook_failed") == 1, "a denial is no failure"
