"""The pure parts of a rerun: what is given and what must come, what is compared, what stands in for erasures."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chatfold.replaying.logs import Log
from chatfold.rerunning.answers import classified, finish_of, judged, parts_of, told_of
from chatfold.rerunning.compare import NOT_COMPARED, differences
from chatfold.rerunning.filling import filled, lacking
from chatfold.rerunning.inverse import INVERSES, command_of
from chatfold.rerunning.script import Script
from events import vocabulary as v
from events.content import Absent, Content
from events.envelope import Recorded
from events.ids import MessageId, call_key
from events.messages import Message, Step, Usage
from events.parts import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from events.records import ErrorInfo
from events.replay import replay
from generation.assemble import Assembler
from generation.error_texts import given_up

MADE = {
    v.Acquired,
    v.Released,
    v.PolicyRecorded,
    v.AttemptStarted,
    v.ToolResultRecorded,
    v.StepCommitted,
    v.CompactionCommitted,
    v.ContextPersisted,
    v.RetryScheduled,
    v.ActionRequired,
    v.TurnFinished,
    v.TurnFailed,
    v.InterruptionFinished,
    v.Reconciled,
}
"""What the engine makes by itself, but for the last, which it never gets to."""


def test_each_type_of_event_is_given_or_comes() -> None:
    assert INVERSES.keys() & MADE == set()
    assert INVERSES.keys() | MADE == set(v.EVENT_TYPES.values())


def test_a_command_has_the_trigger_of_its_event(log: Log) -> None:
    for step in replay(log.recorded()):
        command = command_of(step.recorded.event, step.before)
        assert (command is None) is (type(step.recorded.event) in MADE)
        assert command is None or command.trigger == step.recorded.event.trigger


def test_events_of_one_append_are_a_group(log: Log) -> None:
    script = Script(log.recorded())
    assert [(group.driver, [each.event.type for each in group.events]) for group in script.groups] == [
        ("outside", ["chat_created", "acquired", "policy_recorded", "attempt_started"]),
        ("holder", ["step_committed", "attempt_started"]),
        ("holder", ["tool_result_recorded", "step_committed", "attempt_started"]),
        ("holder", ["step_committed", "turn_finished"]),
        ("outside", ["message_sent", "acquired", "attempt_started"]),
        ("holder", ["step_committed", "turn_finished"]),
    ]


def test_the_fate_of_an_attempt_is_known_when_it_starts(log: Log) -> None:
    script = Script(log.recorded())
    fate = script.fate(4)
    assert fate is not None
    assert (fate.kind, fate.own, fate.begun, fate.ends) == ("generate", True, True, True)
    assert fate.message is not None
    assert fate.message.text == "Let me see."
    tools = script.fate(6)
    assert tools is not None
    assert [part.output for part in tools.results.values()] == [Content("order A-17 is on its way")]
    assert script.fate(5) is None


def step(**more: Any) -> Step:
    return Step(provider="scripted", model="m", **more)


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: bool(text.strip()))
metadata = st.none() | st.just(Content({"signature": "abc"}))
parts = st.lists(
    st.builds(TextPart, text=texts.map(Content), metadata=metadata)
    | st.builds(ReasoningPart, text=texts.map(Content), metadata=metadata, redacted=st.booleans())
    | st.builds(
        ToolCallPart,
        name=st.sampled_from(["look_up", "other"]),
        arguments=st.just(Content('{"a": 1}')),
        provider_call_id=st.uuids().map(str),
        runner=st.just("local"),
    ),
    min_size=1,
    max_size=4,
)


@given(parts, st.booleans())
def test_an_answer_is_put_together_again(given: list[Any], whole: bool) -> None:
    message = Message(role="assistant", parts=tuple(given), interrupted=not whole)
    known = step(finish_reason="stop", usage=Usage(input=3, output=4), response_id="r") if whole else step()
    assembler = Assembler({})
    for part in (*parts_of(message), *([finish_of(known)] if whole else told_of(known))):
        assembler.add(part)
    assert assembler.parts(MessageId("1.0"), interrupted=not whole) == message.parts
    came = assembler.step("scripted", "m")
    assert came == known if whole else came.usage == Usage()


def test_a_call_of_the_provider_has_its_result() -> None:
    call = ToolCallPart(name="search", arguments=Content("{}"), provider_call_id="s1", runner="provider")
    result = ToolResultPart(call=call_key(MessageId("5.0"), 0), output=Content([1]), provider_executed=True)
    assembler = Assembler({})
    for part in parts_of(Message(role="assistant", parts=(call, result))):
        assembler.add(part)
    assert assembler.parts(MessageId("5.0")) == (call, result)


@pytest.mark.parametrize(
    ("known", "usage", "unmetered"),
    [
        (step(usage=Usage(input=7), unmetered=True), Usage(input=7), True),
        (step(), Usage(), False),
        (step(unmetered=True), Usage(), True),
        (step(unmetered=True, finish_reason="stop"), Usage(), True),
    ],
)
def test_what_a_cut_stream_took_is_told_as_it_was(known: Step, usage: Usage, unmetered: bool) -> None:
    assembler = Assembler({})
    for part in told_of(known):
        assembler.add(part)
    came = assembler.step("scripted", "m")
    assert (came.usage, came.unmetered, came.finish_reason) == (usage, unmetered, known.finish_reason)
    assert assembler.parts(MessageId("1.0"), interrupted=True) == ()


def test_an_error_is_classified_as_it_was() -> None:
    error = ErrorInfo(
        kind="overloaded", message=Content("Too many."), retryable=True, status_code=529, retry_after_us=3
    )
    once = classified(error)
    assert (once.kind, once.message, once.status_code, once.retry_after_us) == ("overloaded", "Too many.", 529, 3)
    final = replace(error, message=Content(given_up("Too many.", 26)))
    assert classified(final, final=True) == once
    assert not judged(error)
    assert judged(replace(error, detail=Content("finish reason: unknown")))


def changed(log: Log, version: int, **fields: Any) -> tuple[Recorded, Recorded]:
    one = log.recorded()[version - 1]
    return one, Recorded(one.envelope, replace(one.event, **fields))


def test_what_differs_is_named_by_its_path(log: Log) -> None:
    one, other = changed(log, 5, attempt=9)
    assert [str(each) for each in differences(one, other, declared=False)] == ["$.attempt: 1 -> 9"]
    assert differences(one, one, declared=False) == ()
    later = Recorded(replace(one.envelope, recorded_at=one.envelope.recorded_at + 1, index=3), one.event)
    assert [each.path for each in differences(one, later, declared=False)] == [
        "$.envelope.recorded_at",
        "$.envelope.index",
    ]
    assert [each.path for each in differences(one, later, declared=False, split=True)] == ["$.envelope.recorded_at"]


def test_times_of_models_are_not_compared(log: Log) -> None:
    event = log.recorded()[4].event
    assert isinstance(event, v.StepCommitted)
    message = event.added[0]
    assert message.step is not None
    later = replace(message, step=replace(message.step, started_at=1, first_part_at=2, ended_at=3))
    assert differences(*changed(log, 5, added=(later,)), declared=True) == ()
    costs = replace(message, step=replace(message.step, cost_micros=4))
    assert [each.path for each in differences(*changed(log, 5, added=(costs,)), declared=True)] == [
        "$.added[0].step.cost_micros"
    ]


def test_each_path_that_is_not_compared_has_a_reason() -> None:
    assert all(path.startswith("$.") and reason for path, reason in NOT_COMPARED.items())


def erased(recorded: Recorded, size: int | None = None) -> Recorded:
    event = recorded.event
    assert isinstance(event, v.ChatCreated)
    (part,) = event.added[0].parts
    assert isinstance(part, TextPart)
    gone = Content(Absent.ERASED, part.text.size if size is None else size)
    return Recorded(recorded.envelope, replace(event, added=(replace(event.added[0], parts=(TextPart(text=gone),)),)))


def test_an_erased_content_is_filled_with_as_much(log: Log) -> None:
    first = log.recorded()[0]
    gone = erased(first)
    there = filled(gone)
    assert filled(first) is first
    assert lacking([gone]) == (1, 0)
    assert lacking([there]) == (0, 0)
    assert differences(gone, there, declared=False) == ()
    assert [each.path for each in differences(erased(first, 5), there, declared=False)] == ["$.added[0].parts[0].text"]


@pytest.mark.parametrize("size", [0, 1, 2, 17])
def test_erased_arguments_are_an_object_again(size: int) -> None:
    call = ToolCallPart(name="t", arguments=Content(Absent.ERASED, size), provider_call_id="c", runner="local")
    message = Message(role="assistant", parts=(call,))
    (part,) = _filled(message).parts
    assert isinstance(part, ToolCallPart)
    assert part.arguments.size == size
    assert part.arguments.text.startswith("{}") is (size >= 2)


def _filled(message: Message) -> Message:
    from chatfold.rerunning.filling import _filled

    return _filled(message)
