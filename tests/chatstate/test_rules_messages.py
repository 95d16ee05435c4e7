"""Rules of sending, editing and the queue that the matrix cannot show: one test per sentence of the specification."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chatstate import commands as c
from chatstate.classify import EXISTING, X
from chatstate.errors import (
    MessageNotFound,
    NotAUserMessage,
    QueuedNotFound,
    QueueFull,
    TransitionNotAllowed,
)
from chatstate.table import TABLE
from events.ids import message_id
from events.messages import Message, QueuedMessage
from tests.chatstate import build as b
from tests.chatstate.chat import Chat
from tests.chatstate.reach import answered, called, compacted, generating, reach, running_tools

ODD = {
    "of the assistant": b.answer(),
    "of the system": b.system(),
    "for the model alone": Message(role="user", visibility="model", parts=(b.text("Hi"),)),
    "for clients alone": Message(role="user", visibility="user", parts=(b.text("Hi"),)),
    "interrupted": Message(role="user", parts=(b.text("Hi"),), interrupted=True),
    "with a call": Message(role="user", parts=(b.CALLS["client"],)),
}


def queue(chat: Chat) -> list[str]:
    bodies = chat.state.need_transcript("a test").queued
    return [bodies[item.id].message.parts[0].text.text for item in chat.control.queue]  # type: ignore[union-attr]


@pytest.mark.parametrize("message", ODD.values(), ids=ODD)
def test_send_takes_a_plain_message_of_the_user_only(message: Message) -> None:
    sent = QueuedMessage(message=message)
    for x in (X.W, X.P0, X.R1):
        for command in (c.SendMessage(message=sent), c.SendInterrupting(message=sent)):
            with pytest.raises(TransitionNotAllowed):
                reach(x).do(command)
    with pytest.raises(TransitionNotAllowed):
        reach(X.W).do(c.EditMessage(target=message_id(1, 1), message=message))
    with pytest.raises(TransitionNotAllowed):
        reach(X.P1).do(c.EditQueued(target=message_id(2, 0), message=sent))


def test_the_queue_holds_20_messages_unless_the_command_says_otherwise() -> None:
    chat = reach(X.P0)
    for place in range(20):
        chat.do(b.send(str(place)))
    with pytest.raises(QueueFull) as caught:
        chat.do(b.send("21"))
    assert caught.value.limit == 20
    chat.do(c.SendMessage(message=b.queued(), queue_limit=21))
    assert len(chat.control.queue) == 21


@pytest.mark.parametrize("x", [X.P1, X.R1, X.I1, X.A1, X.E1])
def test_a_full_queue_refuses_both_ways_to_send_wherever_the_message_would_join_it(x: X) -> None:
    chat = reach(x, 2)
    with pytest.raises(QueueFull):
        chat.do(c.SendMessage(message=b.queued(), queue_limit=2))
    with pytest.raises(QueueFull):
        chat.do(c.SendInterrupting(message=b.queued(), queue_limit=2))


@pytest.mark.parametrize("x", [X.W, X.E0])
def test_a_message_that_enters_history_at_once_needs_no_room_in_the_queue(x: X) -> None:
    chat = reach(x)
    chat.do(c.SendMessage(message=b.queued("Now"), queue_limit=0))
    assert chat.texts()[-1] == "user: Now"


def test_the_order_of_the_queue_is_the_order_of_promotion() -> None:
    chat = reach(X.P0).all([b.send("one"), b.send("two"), b.send("three")])
    assert queue(chat) == ["one", "two", "three"]
    chat.do(c.Interrupt())
    chat.do(c.Interrupt())
    assert chat.texts()[-2:] == ["user: one", "user: two"]


def test_from_e1_the_message_joins_the_tail_the_old_head_is_promoted_the_error_cleared() -> None:
    for command in (b.send("new"), b.send_interrupting("new")):
        chat = reach(X.E1)
        chat.do(command)
        assert chat.texts()[-1] == "user: Queued 0"
        assert queue(chat) == ["new"]
        assert chat.control.last_error is None


@pytest.mark.parametrize("x", [X.P0, X.A0])
def test_send_interrupt_with_an_empty_queue_lets_the_message_itself_into_history(x: X) -> None:
    chat = reach(x)
    chat.do(b.send_interrupting("Stop."))
    assert chat.texts()[-1] == "user: Stop."
    assert chat.control.queue == ()


@pytest.mark.parametrize("x", [X.P1, X.A1])
def test_send_interrupt_with_a_queue_joins_the_tail_and_promotes_the_head(x: X) -> None:
    chat = reach(x)
    chat.do(b.send_interrupting("Stop."))
    assert chat.texts()[-1] == "user: Queued 0"
    assert queue(chat) == ["Stop."]


@pytest.mark.parametrize("x", [X.R0, X.R1])
def test_send_interrupt_while_a_live_worker_runs_joins_the_tail(x: X) -> None:
    chat = reach(x)
    before = chat.texts()
    chat.do(b.send_interrupting("Stop."))
    assert chat.texts() == before
    assert queue(chat)[-1] == "Stop."


def test_a_queued_message_keeps_its_id_when_it_is_promoted() -> None:
    chat = reach(X.P1)
    identity = chat.control.queue[0].id
    chat.do(c.Interrupt())
    assert chat.state.need_transcript("a test").messages[-1].id == identity


def test_model_and_effort_of_a_message_hold_from_when_it_enters_history() -> None:
    at_once = reach(X.W)
    at_once.do(b.send("now", model="m2"))
    later = reach(X.P0)
    later.do(b.send("later", model="m3"))
    assert (at_once.control.model, later.control.model) == ("m2", None)
    later.do(c.Interrupt())
    assert later.control.model == "m3"
    kept = reach(X.P0)
    kept.do(c.SetModel(model="m1"))
    kept.do(b.send_interrupting())
    assert kept.control.model == "m1"


def test_edit_needs_a_message_of_this_chat_that_is_in_history() -> None:
    chat = reach(X.W)
    with pytest.raises(MessageNotFound):
        chat.do(c.EditMessage(target=message_id(9, 0), message=b.user()))
    chat.do(c.EditMessage(target=message_id(1, 1), message=b.user("Other")))
    with pytest.raises(MessageNotFound, match=r"no message '1\.1'"):
        chat.do(c.EditMessage(target=message_id(1, 1), message=b.user("Again")))


def test_edit_of_what_is_no_users_message_that_clients_see_is_refused() -> None:
    chat = reach(X.W, work=compacted)
    items = chat.state.need_transcript("a test").messages
    for target in [item.id for item in items if not item.message.opens_turn]:
        with pytest.raises(NotAUserMessage):
            chat.do(c.EditMessage(target=target, message=b.user()))


def test_state_is_checked_before_ids() -> None:
    with pytest.raises(TransitionNotAllowed):
        reach(X.XW).do(c.EditMessage(target=message_id(9, 0), message=b.user()))
    with pytest.raises(TransitionNotAllowed):
        reach(X.W).do(c.DeleteQueued(target=message_id(9, 0)))


def test_edit_removes_the_target_and_all_after_it_and_lets_the_replacement_in() -> None:
    chat = reach(X.W)
    chat.do(b.send("more"))
    chat.do(c.EditMessage(target=message_id(1, 1), message=b.user("Hi")))
    assert chat.texts() == ["system: Be brief.", "user: Hi"]


def test_edit_clears_queue_error_and_deadline() -> None:
    for x in (X.P1, X.R1, X.I1, X.A1, X.E1):
        chat = reach(x)
        chat.do(c.EditMessage(target=message_id(1, 1), message=b.user("Hi")))
        control = chat.control
        assert (control.queue, control.last_error, control.action) == ((), None, None)
        assert chat.state.need_transcript("a test").queued == {}


def test_edit_makes_messages_count_again_that_a_removed_boundary_had_compressed() -> None:
    chat = reach(X.W)
    chat.do(b.send("more"))
    chat.do(b.acquire())
    answered(chat)
    chat.do(b.finish(chat))
    chat.do(c.Compact())
    chat.do(b.acquire())
    chat.do(b.start(chat, "compact"))
    chat.do(b.compaction(chat))
    chat.do(b.finish(chat, "compacted"))
    assert chat.control.indexes.assistants_after == 0
    chat.do(c.EditMessage(target=message_id(6, 0), message=b.user("less")))
    assert chat.control.indexes.boundary is None
    assert chat.control.indexes.assistants_after == 1


def test_edit_while_running_leaves_the_chat_to_its_holder_who_starts_over() -> None:
    for x in (X.R0, X.I1):
        chat = reach(x, work=running_tools("report"))
        holder, epoch = chat.control.holder, chat.control.epoch
        chat.do(c.EditMessage(target=message_id(1, 1), message=b.user("Hi")))
        control = chat.control
        assert (control.holder, control.epoch, control.interrupting) == (holder, epoch, False)
        assert (control.attempt, control.running, chat.calls) == (0, None, ())


def test_edit_drops_recorded_results_with_what_it_removes() -> None:
    chat = reach(X.R0, work=running_tools("report"))
    chat.do(b.result(chat, chat.calls[0].key))
    chat.do(c.EditMessage(target=message_id(1, 1), message=b.user("Hi")))
    assert chat.state.need_transcript("a test").results == {}


def test_promote_moves_the_target_to_the_head_then_as_an_interrupt() -> None:
    chat = reach(X.A1, 3)
    chat.do(c.PromoteQueued(target=chat.control.queue[2].id))
    assert chat.texts()[-2:] == ["tool: promotion", "user: Queued 2"]
    assert queue(chat) == ["Queued 0", "Queued 1"]


def test_promote_while_running_leaves_the_target_queued_at_the_head_until_the_interruption_is_finished() -> None:
    for x in (X.R1, X.I1):
        chat = reach(x, 2)
        chat.do(c.PromoteQueued(target=chat.control.queue[1].id))
        assert queue(chat) == ["Queued 1", "Queued 0"]
        chat.do(b.finish_interruption(chat))
        assert chat.texts()[-1] == "user: Queued 1"


def test_promoting_the_head_leaves_the_queue_as_it_is() -> None:
    chat = reach(X.R1, 2)
    version = chat.control.queue_version
    chat.do(c.PromoteQueued(target=chat.control.queue[0].id))
    assert chat.control.queue_version == version


@pytest.mark.parametrize("x", [x for x in EXISTING if "delete_queued" in TABLE[x]])
def test_queue_commands_name_messages_that_are_queued(x: X) -> None:
    chat = reach(x, 2)
    first, second = (item.id for item in chat.control.queue)
    unknown = message_id(9, 9)
    commands: list[c.AnyCommand] = [
        c.DeleteQueued(target=unknown),
        c.PromoteQueued(target=unknown),
        c.EditQueued(target=unknown, message=b.queued()),
        c.ReorderQueue(order=(first,)),
        c.ReorderQueue(order=(first, first)),
        c.ReorderQueue(order=(first, second, unknown)),
    ]
    for command in commands:
        with pytest.raises(QueuedNotFound):
            chat.do(command)


def test_edit_queued_and_reorder_are_legal_exactly_where_delete_queued_is() -> None:
    for cells in TABLE.values():
        assert ("edit_queued" in cells) == ("reorder_queue" in cells) == ("delete_queued" in cells)


def test_reordering_and_editing_the_queue_leave_history_and_the_turn_alone() -> None:
    chat = reach(X.R1, 2, generating)
    before = chat.control
    ids = [item.id for item in before.queue]
    chat.do(c.ReorderQueue(order=(ids[1], ids[0])))
    chat.do(c.EditQueued(target=ids[0], message=b.queued("better", model="m2")))
    assert queue(chat) == ["Queued 1", "better"]
    assert chat.control.queue[1].model == "m2"
    assert (chat.control.history_version, chat.control.running) == (before.history_version, before.running)
    assert chat.control.queue_version == chat.control.version


def test_a_message_is_refused_before_the_queue_is_looked_at() -> None:
    full = c.SendMessage(message=QueuedMessage(message=b.system()), queue_limit=0)
    with pytest.raises(TransitionNotAllowed):
        reach(X.P0).do(full)
    with pytest.raises(QueueFull):
        reach(X.P0).do(replace(full, message=b.queued()))


def test_a_user_message_never_enters_history_while_a_call_before_it_is_open() -> None:
    for x in (X.E0, X.A0, X.P0):
        chat = reach(X.R0, work=called("report", "client")) if x is X.P0 else reach(x, work=called("client"))
        if x is X.P0:
            chat.do(b.release(chat))
        chat.do(b.send_interrupting("Stop."))
        told = chat.texts()
        assert told[-1] == "user: Stop."
        assert told[-2].startswith("tool: ")
