"""The reducer: total, pure, and the same for control alone wherever an event allows it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chatstate import commands as c
from chatstate.classify import X
from events import vocabulary as v
from events.control import Control, encode_control
from events.effects import Effects
from events.envelope import Envelope, Recorded, Status
from events.errors import TranscriptMissing
from events.ids import CommandId, WorkerId, message_id
from events.messages import Message, QueuedMessage
from events.parts import ToolResultPart
from events.records import Actor
from events.reducer import _SPECIAL, evolve, fold
from events.state import ChatState, initial_state
from tests.chatstate import build as b
from tests.chatstate.chat import Chat, trace
from tests.chatstate.reach import compacted, reach, running_tools


def recorded(event: v.Event, version: int, dest: Status = "waiting", kind: str = "user") -> Recorded:
    envelope = Envelope(
        version=version,
        type=event.type,
        schema=1,
        recorded_at=version,
        actor=Actor(kind=kind),  # type: ignore[arg-type]
        source="waiting",
        dest=dest,
        command=CommandId("c"),
        index=0,
    )
    return Recorded(envelope=envelope, event=event)


def test_every_event_does_something_special_or_plain_effects_alone() -> None:
    plain = {event for event in v.EVENT_TYPES.values() if issubclass(event, Effects) and event not in _SPECIAL}
    assert plain == {v.QueueReordered, v.QueuedMessageDeleted, v.ActionExpiredTurnEnded}
    assert set(_SPECIAL) | plain == set(v.EVENT_TYPES.values())


def test_it_judges_nothing_a_fold_of_an_unlawful_event_is_a_state() -> None:
    state = evolve(initial_state(), recorded(v.ChatArchived(), 1, "running"))
    assert (state.control.status, state.control.archived, state.control.version) == ("running", True, 1)


def test_effects_apply_in_the_order_that_they_state() -> None:
    chat = reach(X.R1, work=running_tools("report"))
    call, head = chat.calls[0].key, chat.control.queue[0].id
    event = v.MessageSent(
        added=(b.user("added"),),
        queued=(QueuedMessage(message=b.user("queued")),),
        promoted=(message_id(chat.control.version + 1, 1),),
        dequeued=(head,),
    )
    after = evolve(chat.state, recorded(event, chat.control.version + 1, "running"))
    messages = list(after.need_transcript("a test").messages)
    version = chat.control.version + 1
    assert [item.id for item in messages[-2:]] == [message_id(version, 0), message_id(version, 1)]
    assert after.control.queue == ()
    assert after.control.indexes.open_calls[0].key == call


@pytest.mark.parametrize("need", ["edit", "uncompact"])
def test_control_alone_does_not_fold_what_needs_the_transcript_one_by_one_or_many(need: str) -> None:
    chat = reach(X.W, work=compacted)
    alone = ChatState(control=chat.control, transcript=None)
    command = c.EditMessage(target=message_id(1, 1), message=b.user()) if need == "edit" else c.Uncompact()
    event = chat.do(command)
    before = encode_control(alone.control)
    with pytest.raises(TranscriptMissing, match=need):
        evolve(alone, event)
    with pytest.raises(TranscriptMissing, match=need):
        fold([event], alone)
    assert encode_control(alone.control) == before


def test_control_alone_has_no_transcript_after() -> None:
    chat = reach(X.P0)
    alone = ChatState(control=chat.control, transcript=None)
    after = evolve(alone, chat.do(b.send()))
    assert after.transcript is None
    assert after.control == chat.control


def test_leaving_a_status_drops_its_companions() -> None:
    chat = reach(X.A0)
    event = recorded(v.TitleChanged(), chat.control.version + 1, "error")
    control = evolve(chat.state, event).control
    assert control.action is None
    chat = reach(X.I0)
    control = evolve(chat.state, recorded(v.TitleChanged(), chat.control.version + 1)).control
    assert (control.holder, control.interrupting) == (None, False)


def test_history_and_queue_versions_are_those_of_the_last_event_that_changed_them() -> None:
    chat = reach(X.P0)
    assert (chat.control.history_version, chat.control.queue_version) == (1, 0)
    chat.do(b.send())
    assert (chat.control.history_version, chat.control.queue_version) == (1, 2)
    chat.do(c.SetTitle(title=None))
    assert (chat.control.version, chat.control.history_version, chat.control.queue_version) == (3, 1, 2)


def test_the_first_event_tells_who_and_what_the_chat_is() -> None:
    create = replace(b.create(), labels={"a": "b"}, model="m2", effort="low", flags=(1,), parent="family")
    chat = Chat()
    chat.do(create)
    control = chat.control
    assert (control.chat, control.owner, control.agent, control.release) == ("chat", "ann", "helper", "0.1.0")
    assert (control.labels, control.model, control.effort) == ({"a": "b"}, "m2", "low")
    assert (control.flags, control.parent, control.created_at) == ((1,), "family", chat.now)


def test_a_result_whose_body_is_not_at_hand_counts_by_what_control_knows_of_it() -> None:
    """Control alone: the body of a recorded result is in an earlier event, whether it is an error is in control."""
    for is_error in (False, True):
        chat = reach(X.R0, work=running_tools("stop"))
        chat.do(b.result(chat, chat.calls[0].key, is_error=is_error))
        alone = ChatState(control=chat.control, transcript=None)
        event = chat.do(b.commit(chat))
        assert evolve(alone, event).control.indexes.stop_after is not is_error


def test_old_states_are_untouched_by_what_follows_and_by_other_branches() -> None:
    chat = reach(X.W)
    before, kept = chat.state, trace(chat.state)
    one = evolve(before, recorded(v.MessageSent(added=(b.user("one"),)), 6, "pending"))
    two = evolve(before, recorded(v.MessageSent(added=(b.user("two"),)), 6, "pending"))
    assert trace(before) == kept
    assert [_last(one), _last(two)] == ["one", "two"]


def _last(state: ChatState) -> str:
    part = state.need_transcript("a test").messages[-1].message.parts[0]
    return getattr(part, "text").text  # type: ignore[no-any-return]  # noqa: B009 - a part of any kind


def test_results_recorded_for_a_call_leave_when_it_is_answered() -> None:
    chat = reach(X.R0, work=running_tools("report", "rerun"))
    for call in chat.calls:
        chat.do(b.result(chat, call.key))
    assert len(chat.state.need_transcript("a test").results) == 2
    chat.do(b.commit(chat))
    assert chat.state.need_transcript("a test").results == {}


def test_a_stray_result_in_a_log_changes_no_index() -> None:
    state = evolve(
        initial_state(),
        recorded(
            v.StepCommitted(attempt=1, added=(Message(role="tool", parts=(ToolResultPart(call=b.a_call()),)),)), 1
        ),
    )
    assert state.control.indexes.open_calls == ()


def test_the_holder_is_who_acquired() -> None:
    chat = reach(X.R0)
    assert chat.control.holder == WorkerId("w1")


def test_before_the_first_event_there_is_no_chat() -> None:
    assert not initial_state().control.exists
    assert not Control().exists
