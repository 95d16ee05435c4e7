"""The table event x answer, for functions and over HTTP; and that hooks fail closed."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from events.content import Json
from generation.errors import AgentDeclarationError, HookFailed
from generation.hooks.contract import HOOK_EVENTS, MOST, HookAnswer, HookCall, HookEvent
from generation.hooks.dispatch import Hook, Hooks, PythonHook, Verdict
from generation.hooks.http import HttpHook
from tests.generation.hooks.service import hook_service

OBJECT: Json = {"path": "/tmp"}
ANSWERS: dict[str, dict[str, Json]] = {
    "observe": {},
    "context": {"context": "It is Tuesday."},
    "deny": {"deny": "Not here."},
    "input text": {"input": "Hello."},
    "input object": {"input": OBJECT},
    "context and input": {"context": "It is Tuesday.", "input": "Hello."},
    "deny and context": {"deny": "Not here.", "context": "It is Tuesday."},
    "blank context": {"context": " "},
    "blank denial": {"deny": ""},
    "context that is no text": {"context": 3},
    "input that is a list": {"input": ["Hello."]},
}
ALLOWED: dict[HookEvent, set[str]] = {
    "session_start": {"observe", "context"},
    "user_prompt_submit": {"observe", "context", "deny", "input text", "context and input"},
    "pre_tool_use": {"observe", "context", "deny", "input object"},
    "post_tool_use": {"observe", "context"},
    "pre_compact": {"observe", "context"},
    "post_compact": {"observe", "context"},
    "stop": {"observe", "context"},
}
CELLS = [(event, answer) for event in HOOK_EVENTS for answer in ANSWERS]


def test_the_seven_events_are_those_of_the_table() -> None:
    assert tuple(ALLOWED) == HOOK_EVENTS


def answering(answer: HookAnswer | None, *events: HookEvent) -> PythonHook:
    return PythonHook(lambda _: answer, events)


async def said(hook: Hook, event: HookEvent) -> Verdict:
    return await Hooks([hook]).ask(event, "c1", "1.0", {"text": "Hi."})


def expected(answer: str) -> Verdict:
    fields: dict[str, Any] = ANSWERS[answer]
    contexts = (fields["context"],) if "context" in fields else ()
    return Verdict(contexts, deny=fields.get("deny"), input=fields.get("input"))


@pytest.mark.parametrize(("event", "answer"), CELLS)
async def test_an_answer_of_a_function_is_allowed_as_the_table_says(event: HookEvent, answer: str) -> None:
    fields: dict[str, Any] = ANSWERS[answer]
    hook = answering(HookAnswer(**fields), event)
    if answer in ALLOWED[event]:
        assert await said(hook, event) == expected(answer)
    else:
        with pytest.raises(HookFailed):
            await said(hook, event)


async def test_an_answer_over_http_is_allowed_as_the_table_says() -> None:
    with hook_service(lambda call: (200, json.dumps(ANSWERS[call["facts"]["wanted"]]).encode())) as service:
        hooks = Hooks([HttpHook(service.url, HOOK_EVENTS)])
        for event, answer in CELLS:
            asked = hooks.ask(event, "c1", "1.0", {"wanted": answer})
            if answer in ALLOWED[event]:
                assert await asked == expected(answer), (event, answer)
            else:
                with pytest.raises(HookFailed):
                    await asked
    assert len(service.calls) == len(CELLS)


async def test_a_service_is_told_what_it_is_about() -> None:
    with hook_service(lambda _: (204, b"")) as service:
        hook = HttpHook(service.url, ["stop"], headers={"authorization": "Bearer x"})
        assert await said(hook, "stop") == Verdict()
    assert service.calls == [{"id": "c1:stop:1.0", "event": "stop", "chat": "c1", "facts": {"text": "Hi."}}]
    assert service.headers[0]["authorization"] == "Bearer x"


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (200, b"", "no JSON"),
        (200, b"{", "no JSON"),
        (200, b"\xff", "no JSON"),
        (200, b"[]", "no object"),
        (200, b'{"context": null}', "null"),
        (200, b'{"permission": "allow"}', "permission"),
        (200, b'{"context": "a", "context": "b"}', "no JSON"),
        (200, b'"' + b"x" * MOST + b'"', "more than"),
        (201, b"{}", "201"),
        (302, b"", "302"),
        (404, b"{}", "404"),
        (500, b"{}", "500"),
    ],
)
async def test_whatever_else_a_service_answers_fails(status: int, body: bytes, why: str) -> None:
    with hook_service(lambda _: (status, body)) as service:
        with pytest.raises(HookFailed, match=why):
            await said(HttpHook(service.url, ["stop"]), "stop")
        assert len(service.calls) == 1  # and is not asked again


async def test_a_service_that_is_not_there_fails() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(HookFailed, match="ConnectError"):
        await said(HttpHook(f"http://127.0.0.1:{port}/", ["stop"]), "stop")


async def _raise(_: HookCall) -> HookAnswer:
    raise LookupError("no such rule")


async def _cancel(_: HookCall) -> HookAnswer:
    raise asyncio.CancelledError


async def _hang(_: HookCall) -> HookAnswer:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize(
    ("function", "why"),
    [(_raise, "LookupError"), (_cancel, "cancellation"), (_hang, "within 0.01"), (lambda _: {"deny": "no"}, "a dict")],
)
async def test_a_function_that_does_not_answer_fails(
    function: Callable[[HookCall], Awaitable[HookAnswer]], why: str
) -> None:
    with pytest.raises(HookFailed, match=why):
        await said(PythonHook(function, HOOK_EVENTS, timeout=0.01 if function is _hang else 10.0), "pre_tool_use")


async def test_hooks_are_asked_in_order_and_each_sees_the_input_as_it_stands() -> None:
    seen: list[Json] = []

    def hook(answer: HookAnswer) -> PythonHook:
        def function(call: HookCall) -> HookAnswer:
            seen.append(call.facts["text"])
            return answer

        return PythonHook(function, ["user_prompt_submit"])

    answers = (HookAnswer(input="B", context="one"), HookAnswer(context="two"), HookAnswer(input="C"))
    hooks = Hooks(map(hook, answers))
    verdict = await hooks.ask("user_prompt_submit", "c1", "x", {"text": "A"}, input_as="text")
    assert (seen, verdict.input, verdict.context) == (["A", "B", "B"], "C", "one\n\ntwo")


async def test_a_denial_ends_it() -> None:
    hooks = Hooks([answering(HookAnswer(deny="no"), "pre_tool_use"), PythonHook(_raise, ["pre_tool_use"])])
    assert (await hooks.ask("pre_tool_use", "c1", "x", {})).deny == "no"


async def test_new_work_takes_only_its_part_of_the_slots() -> None:
    under_way: list[str] = []
    go, three = asyncio.Event(), asyncio.Event()

    async def wait(call: HookCall) -> None:
        under_way.append(call.event)
        if len(under_way) == 3:
            three.set()
        await go.wait()

    hooks = Hooks([PythonHook(wait, ["user_prompt_submit", "pre_tool_use"])], slots=3, admission=2)
    new: HookEvent = "user_prompt_submit"
    events: list[HookEvent] = [new, new, new, new, "pre_tool_use", "pre_tool_use"]
    asked = [asyncio.ensure_future(hooks.ask(event, "c1", str(at), {})) for at, event in enumerate(events)]
    await three.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    assert sorted(under_way) == ["pre_tool_use", "user_prompt_submit", "user_prompt_submit"]
    go.set()
    await asyncio.gather(*asked)
    assert sorted(under_way) == sorted(events)


@pytest.mark.parametrize("url", ["ftp://x/", "hook", "http:///x", "http://x/\0"])
def test_an_url_is_checked(url: str) -> None:
    with pytest.raises(AgentDeclarationError, match="url"):
        HttpHook(url, ["stop"])


@pytest.mark.parametrize("events", [[], ["stopped"]])
def test_events_are_checked(events: list[HookEvent]) -> None:
    with pytest.raises(AgentDeclarationError, match="event"):
        PythonHook(lambda _: None, events)


MAKERS: dict[str, Callable[[Any], Hook]] = {
    "function": lambda seconds: PythonHook(lambda _: None, ["stop"], timeout=seconds),
    "service": lambda seconds: HttpHook("http://x", ["stop"], timeout=seconds),
}


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf"), "5", None, True])
@pytest.mark.parametrize("kind", MAKERS)
def test_the_time_of_a_hook_is_checked(kind: str, seconds: Any) -> None:
    with pytest.raises(AgentDeclarationError, match="timeout must be positive seconds"):
        MAKERS[kind](seconds)


@pytest.mark.parametrize(("slots", "admission"), [(1, 1), (2, 0), (2, 2)])
def test_a_slot_is_left_to_work_under_way(slots: int, admission: int) -> None:
    with pytest.raises(AgentDeclarationError, match="admission"):
        Hooks(slots=slots, admission=admission)


def test_what_is_no_hook_is_refused() -> None:
    nothing: Any = "hook"
    with pytest.raises(AgentDeclarationError, match="no hook"):
        Hooks([nothing])


@pytest.mark.parametrize("event", HOOK_EVENTS)
async def test_an_answer_that_no_event_could_hold_fails(event: HookEvent) -> None:
    with pytest.raises(HookFailed, match="more than"):
        await said(answering(HookAnswer(context="x" * (MOST + 1)), event), event)


@pytest.mark.parametrize("event", HOOK_EVENTS)
async def test_contexts_of_many_hooks_that_no_event_could_hold_fail(event: HookEvent) -> None:
    half = answering(HookAnswer(context="x" * (MOST // 2)), event)
    assert len((await Hooks([half, half]).ask(event, "c1", "1.0", {})).contexts) == 2
    with pytest.raises(HookFailed, match="with those before it"):
        await Hooks([half, half, answering(HookAnswer(context="x"), event)]).ask(event, "c1", "1.0", {})


async def test_what_a_hook_does_to_its_facts_changes_nothing() -> None:
    """Else arguments that it changed where they stand, and gave back, would be the same as those it was asked about."""

    def change(call: HookCall) -> HookAnswer:
        given: Any = call.facts["input"]
        given["path"] = "/safe"
        return HookAnswer(input=given)

    seen: list[Json] = []

    def watch(call: HookCall) -> None:
        seen.append(call.facts["input"])
        call.facts["input"]["path"] = "/watched"  # type: ignore[index, call-overload]

    facts: dict[str, Json] = {"input": {"path": "/tmp"}}
    hooks = Hooks([PythonHook(watch, ["pre_tool_use"]), PythonHook(change, ["pre_tool_use"])])
    verdict = await hooks.ask("pre_tool_use", "c1", "1.0", facts, input_as="input")
    assert (facts, seen[0], verdict.input) == ({"input": {"path": "/tmp"}}, {"path": "/watched"}, {"path": "/safe"})
