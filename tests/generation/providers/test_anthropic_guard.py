"""What Anthropic ran itself goes back only as it takes it: seven violations, their repair, and the last resort."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from events.content import Json
from generation.errors import ProviderError
from generation.prompt_types import (
    ModelRequest,
    PromptCall,
    PromptMessage,
    PromptPart,
    PromptReasoning,
    PromptResult,
    PromptText,
)
from generation.providers import anthropic_guard
from generation.providers.anthropic_guard import Guard
from generation.providers.anthropic_wire import NAME, body
from generation.providers.metadata import tag

MODEL = "claude-x"
FOUND: Json = [{"type": "web_search_result", "url": "https://e.com", "title": "E", "encrypted_content": "secret"}]


def call(id_: str = "srv_1", **changes: Json) -> PromptCall:
    block: dict[str, Json] = {
        "type": "server_tool_use",
        "id": id_,
        "name": "web_search",
        "input": {"query": "q"},
        **changes,
    }
    return PromptCall(
        id=f"n{id_}", name="web_search", arguments='{"query":"q"}', metadata=tag(NAME, MODEL, block),
        provider_executed=True,
    )  # fmt: skip


def result(id_: str = "srv_1", text: str = '[{"url":"https://e.com"}]', **changes: Json) -> PromptResult:
    block: dict[str, Json] = {"type": "web_search_tool_result", "tool_use_id": id_, "content": FOUND, **changes}
    return PromptResult(
        id=f"n{id_}", name="web_search", text=text, metadata=tag(NAME, MODEL, block), provider_executed=True
    )


def said(*parts: PromptPart, role: Any = "assistant") -> PromptMessage:
    return PromptMessage(role=role, parts=parts)


A, B = PromptText(text="a"), PromptText(text="b")
TOLD = '[web_search was run with {"query":"q"}. Its result:]\n[{"url":"https://e.com"}]'

CASES: dict[str, tuple[PromptMessage, list[tuple[int, str]], list[str]]] = {
    "whole": (said(A, call(), result(), B), [], ["a", "call", "result", "b"]),
    "an error as result": (
        said(call(), result(content={"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"})),
        [],
        ["call", "result"],
    ),
    "outside": (said(call(), role="user"), [(0, "outside_assistant")], []),
    "orphan call": (said(A, call()), [(1, "orphan_call")], ["a"]),
    "orphan result": (
        said(A, result()), [(1, "orphan_result")],
        ["a", '[web_search was run with {}. Its result:]\n[{"url":"https://e.com"}]'],
    ),
    "a second call of an id": (said(call(), result(), call(), A), [(2, "duplicate_id")], ["call", "result", "a"]),
    "a second result of an id": (
        said(call(), result(), result()), [(2, "duplicate_id")], ["call", "result", TOLD],
    ),
    "result before call": (
        said(result(), call(), A), [(0, "result_before_call"), (1, "orphan_call")], [TOLD, "a"],
    ),
    "a call without an id": (said(call(id_=""), A), [(0, "invalid_call")], ["a"]),
    "a call without a query": (
        said(call(input="q"), result()), [(0, "invalid_call"), (1, "orphan_result")], [TOLD],
    ),
    "a call of another tool": (
        said(call(name="code_execution"), result(), B), [(0, "invalid_call"), (1, "orphan_result")], [TOLD, "b"],
    ),
    "a result of another tool": (
        said(call(), result(type="code_execution_tool_result")),
        [(1, "invalid_result"), (0, "orphan_call")], [TOLD],
    ),
    "a result without what was found": (
        said(call(), result(content=None)), [(1, "invalid_result"), (0, "orphan_call")], [TOLD],
    ),
    "a result that nobody can read": (
        said(call(), result(content=[{"url": "https://e.com"}])),
        [(1, "invalid_result"), (0, "orphan_call")], [TOLD],
    ),
}  # fmt: skip


def short(message: PromptMessage) -> list[str]:
    names = {PromptCall: "call", PromptResult: "result", PromptReasoning: "reasoning"}
    return [part.text if isinstance(part, PromptText) else names[type(part)] for part in message.parts]


@pytest.mark.parametrize("case", CASES)
def test_each_violation_is_named_and_repaired(case: str) -> None:
    message, found, left = CASES[case]
    guard = Guard(NAME, MODEL)
    assert [(each.place, each.violation) for each in guard.violations(message)] == found
    made = guard.take(message)
    assert short(made) == left
    assert Guard(NAME, MODEL).take(made) == made
    if not found:
        assert made is message


def test_an_id_of_an_earlier_message_is_a_duplicate() -> None:
    guard = Guard(NAME, MODEL)
    guard.take(said(call(), result()))
    other = guard.copy()
    assert short(guard.take(said(call(), result(), A))) == [TOLD, "a"]
    assert short(other.take(said(call("srv_2"), result("srv_2")))) == ["call", "result"]
    assert short(guard.copy().take(said(call("srv_2"), result("srv_2")))) == ["call", "result"]


def test_thinking_before_a_repair_stays_and_thinking_behind_it_goes() -> None:
    thought = PromptReasoning(text="t", metadata=tag(NAME, MODEL, {"signature": "s"}))
    made = Guard(NAME, MODEL).take(said(thought, A, call(), thought, B))
    assert short(made) == ["reasoning", "a", "b"]


def test_a_message_that_is_emptied_is_not_sent() -> None:
    hi = said(A, role="user")
    request = ModelRequest(model=MODEL, system=(), messages=(hi, said(call(name="other")), said(B, role="user")))
    assert [message["role"] for message in body(request)["messages"]] == ["user"]


def test_what_is_not_the_services_is_not_looked_at() -> None:
    own = PromptCall(id="c", name="f", arguments="{}")
    message = said(own, own)
    assert Guard(NAME, MODEL).take(message) is message


def _nothing(guard: Guard, message: PromptMessage) -> PromptMessage:
    return message


@pytest.mark.parametrize("kept", range(4))
def test_the_steps_of_the_guard_are_tried_in_order(monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    """Where a step does not help the next one is tried."""
    steps: list[Callable[[Guard, PromptMessage], PromptMessage]] = [_nothing] * 4
    steps[kept] = anthropic_guard.STEPS[kept]
    monkeypatch.setattr(anthropic_guard, "STEPS", steps)
    broken = said(A, call(), result(content=None))
    if kept == 0:
        with pytest.raises(ProviderError):
            Guard(NAME, MODEL).take(broken)
    else:
        assert short(Guard(NAME, MODEL).take(broken)) == (["a"] if kept == 3 else ["a", TOLD])


def test_what_is_not_safe_even_so_fails_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anthropic_guard, "STEPS", [_nothing])
    with pytest.raises(ProviderError) as caught:
        Guard(NAME, MODEL).take(said(call(), result(content=None)))
    error = caught.value.error
    assert (error.kind, error.retryable, error.provider) == ("generic", False, NAME)
    assert error.detail == "match=executed_history_unsafe invalid_result orphan_call"
    assert "does not match on our side" in error.message
    assert "Begin a new chat" in error.message
