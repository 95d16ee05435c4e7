"""What Anthropic ran itself goes back only as it takes it: seven violations, and that their repair always ends well."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from events.codec import decode
from events.content import Content, Json
from events.ids import CallKey
from events.messages import Message
from events.parts import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from events.reducer import fold
from events.vocabulary import MessageSent, StepCommitted
from generation.prompt import build_prompt
from generation.prompt_types import (
    ModelRequest,
    PromptCall,
    PromptMessage,
    PromptPart,
    PromptReasoning,
    PromptResult,
    PromptText,
)
from generation.providers.anthropic_guard import Guard
from generation.providers.anthropic_wire import NAME, body
from generation.providers.metadata import tag
from tests.events.logs import log_of, text

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


INPUTS: list[Json] = [{"query": "q"}, "q", None]
IDS = st.sampled_from(["srv_1", "srv_2", "srv_3", ""])
CALLS = st.builds(call, IDS, input=st.sampled_from(INPUTS), name=st.sampled_from(["web_search", "code_execution"]))
RESULTS = st.builds(
    result,
    IDS,
    content=st.sampled_from([FOUND, None, [], [{"url": "u"}], {"error_code": "e"}, {"error_code": 1}]),
    type=st.sampled_from(["web_search_tool_result", "code_execution_tool_result"]),
)
FOREIGN = st.builds(lambda part: replace(part, metadata=None), CALLS | RESULTS)
THOUGHT = PromptReasoning(text="t", metadata=tag(NAME, MODEL, {"signature": "s"}))
PARTS = st.one_of(CALLS, RESULTS, FOREIGN, st.sampled_from([A, B, THOUGHT]))
MESSAGES = st.builds(said, role=st.sampled_from(["assistant"] * 5 + ["user", "tool"])).flatmap(
    lambda message: st.lists(PARTS, max_size=9).map(lambda parts: replace(message, parts=tuple(parts)))
)


@given(st.lists(MESSAGES, max_size=4))
def test_whatever_a_log_holds_is_safe_once_it_is_repaired(messages: list[PromptMessage]) -> None:
    guard = Guard(NAME, MODEL)
    for message in messages:
        before = guard.copy()
        made = guard.take(message)
        assert before.violations(made) == []
        assert before.take(made) is made
        changed = [place for place, (old, new) in enumerate(zip(message.parts, made.parts)) if old is not new]  # noqa: B905 - it may be shorter
        first = min([*changed, len(made.parts)])
        if made is not message:
            assert not any(isinstance(part, PromptReasoning) for part in made.parts[first:])
        words = [part for part in message.parts if part in (A, B)]
        assert [part for part in made.parts if part in (A, B)] == words


@pytest.mark.parametrize("whose", ["another tool's", "nobody's"])
def test_what_a_log_holds_of_another_tool_is_told_as_text(whose: str) -> None:
    """Through all that stands before the guard: the stored events of an answer whose code the service ran."""
    ran = ToolCallPart(
        name="code_execution",
        arguments=Content('{"code":"1+1"}'),
        provider_call_id="srv_1",
        runner="provider",
        metadata=Content(tag(NAME, MODEL, {"type": "server_tool_use", "id": "srv_1", "name": "code_execution"})),
    )
    gave = ToolResultPart(
        call=CallKey("2.0.1"),
        output=Content([{"stdout": "2"}]),
        provider_executed=True,
        metadata=Content(tag(NAME, MODEL, {"type": "code_execution_tool_result", "tool_use_id": "srv_1"})),
    )
    if whose == "nobody's":
        ran, gave = replace(ran, metadata=None), replace(gave, metadata=None)
    signed = ReasoningPart(text=Content("Hm."), metadata=Content(tag(NAME, MODEL, {"signature": "s"})))
    answer = Message(role="assistant", parts=(signed, ran, gave, signed, TextPart(text=Content("Two."))), step=None)
    log = log_of(
        [
            MessageSent(added=(text("Add"),)),
            StepCommitted(attempt=1, added=(answer,)),
            MessageSent(added=(text("Go on"),)),
        ]
    )
    state = fold([decode(stored) for stored in log.events])
    messages = body(ModelRequest(model=MODEL, system=(), messages=build_prompt(state).messages))["messages"]
    kinds = [[block["type"] for block in message["content"]] for message in messages]
    assert kinds == [["text"], ["thinking", "text", "text"], ["text"]]
    assert messages[1]["content"][1]["text"].startswith('[code_execution was run with {"code":"1+1"}. Its result:]')
