"""The pure parts of a rerun: what is given and what must come, what is compared, what stands in for erasures."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from chatfold import ModelConfig
from chatfold.replaying.logs import Log, LogSource
from chatfold.rerunning.answers import classified, finish_of, judged, parts_of, told_of
from chatfold.rerunning.compare import NOT_COMPARED, differences
from chatfold.rerunning.declarations import (
    Declarations,
    read_declarations,
    sections_known,
    write_declarations,
)
from chatfold.rerunning.filling import filled, lacking
from chatfold.rerunning.inverse import INVERSES, command_of
from chatfold.rerunning.kept import KeptFileError
from chatfold.rerunning.script import Script
from chatfold.testing.conversations.agents import AGENTS as CONVERSING
from chatstate.decide import decide
from events import vocabulary as v
from events.content import Absent, Content
from events.envelope import Recorded
from events.ids import MessageId, call_key
from events.messages import Message, Step, Usage
from events.parts import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from events.paths import contents
from events.records import ErrorInfo
from events.replay import replay
from generation.assemble import Assembler
from generation.error_texts import given_up
from generation.policy import policy_of
from tests.corpus.kit import assistant
from tests.corpus.make import FOLDER

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


REPAIRED: Final = (
    TextPart(text=Content("half \ufffd\ufffd"), repaired=("$.text",)),
    ReasoningPart(text=Content("hm"), metadata=Content({"a": ["\ufffd"], "b": 1}), repaired=("$.metadata.a[0]",)),
    ToolCallPart(
        name="look_up",
        arguments=Content('{"a": "\ufffd"}'),
        provider_call_id="c",
        runner="local",
        repaired=("$.arguments.a",),
    ),
    TextPart(text=Content("as it came: \ufffd")),
)


def test_what_was_repaired_is_broken_again_so_that_it_is_repaired_again() -> None:
    assembler = Assembler({})
    for part in parts_of(Message(role="assistant", parts=REPAIRED)):
        assembler.add(part)
    made = assembler.parts(MessageId("1.0"))
    assert [bool(part.repaired) for part in made] == [True, True, True, False]  # type: ignore[union-attr]  # all have it
    assert [[content for _, content in contents(part)] for part in made] == [
        [content for _, content in contents(part)] for part in REPAIRED
    ]


@pytest.mark.parametrize(
    ("log", "trigger", "left_out"),
    [
        ("effort_kept", "set_model", {"effort": UNSET}),
        ("authors", "edit", {"message.author": None}),
        ("budget_raised_twice", "submit_results", {"budget.raised.tokens": None}),
    ],
)
def test_a_command_says_no_more_than_it_must(log: str, trigger: str, left_out: dict[str, object]) -> None:
    """What the engine fills in must come out again by itself."""
    events = LogSource("file", str(FOLDER / f"{log}.jsonl")).read().recorded()
    step = [each for each in replay(events) if each.recorded.event.trigger == trigger][-1]
    command = command_of(step.recorded.event, step.before)
    for path, value in left_out.items():
        assert attrgetter(path)(command) == value
    assert decide(step.before, command, step.recorded.envelope.recorded_at).event == step.recorded.event  # type: ignore[arg-type]


def test_the_arguments_that_a_call_is_run_with_are_known() -> None:
    script = Script(LogSource("file", str(FOLDER / "approval.jsonl")).read().recorded())
    assert script.arguments == {
        "5.0.0": '{"path":"/a"}',
        "5.0.1": '{"path": "/other"}',
        "5.0.2": '{"path":"/c"}',
    }


def test_declarations_come_back_as_they_were_written(tmp_path: Path) -> None:
    kept = Declarations()
    agents = [*CONVERSING, assistant(system=["One.", "Two."])]
    for each in agents:
        kept.take(each)
    file = tmp_path / "declarations.json"
    assert read_declarations(file) == Declarations()
    write_declarations(file, kept)
    first = file.read_bytes()
    assert read_declarations(file) == kept
    write_declarations(file, read_declarations(file))
    assert file.read_bytes() == first
    (last,) = (policy_of(each) for each in agents[-1:])
    found = kept.of("assistant", [last])
    assert found is not None
    assert found.system == ("One.", "Two.")
    assert kept.of("assistant", [last, replace(last, revision="another")]) is None
    assert kept.of("nobody", [last]) is None


@pytest.mark.parametrize("text", ["nothing", '{"chatfold_declarations": 1, "agents": {"r": {"tools": 1}}}'])
def test_what_is_no_file_of_declarations_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "declarations.json"
    file.write_text(text)
    with pytest.raises(KeptFileError, match=r"declarations\.json"):
        read_declarations(file)


@pytest.mark.parametrize(
    ("system", "options", "kept", "sections"),
    [
        ("You help.", {}, True, {"system", "tools", "options"}),
        ("You help.", {}, False, {"options"}),
        ("", {}, False, {"system", "options"}),
        ("You help.", {"store": True}, True, {"system", "tools"}),
    ],
)
def test_which_sections_follow_from_what_is_at_hand(
    system: str, options: dict[str, Any], kept: bool, sections: set[str]
) -> None:
    agent = assistant(system=system, model=ModelConfig(provider="openai", name="m", options=options))
    declarations = Declarations()
    if kept:
        declarations.take(agent)
    policy = policy_of(agent, retry_unit=1.0)
    assert sections_known({"p": policy}, declarations) == {"p": sections}
    assert sections_known({"p": replace(policy, retry_unit_us=None)}, declarations) == {"p": sections - {"options"}}
