"""Rules of forks, metadata, erasing, adopting and archiving, and of what decide needs the transcript for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chatstate import commands as c
from chatstate.classify import X
from chatstate.decide import decide
from chatstate.errors import MessageNotFound, Refusal, StaleFence, TransitionNotAllowed
from chatstate.fork import plan_imports
from chatstate.invariants import violations
from events.content import Content
from events.errors import TranscriptMissing
from events.ids import MessageId, message_id
from events.messages import Message
from events.parts import TextPart, ToolResultPart
from events.records import Actor, ApprovalAnswer, AttemptReport
from events.reducer import evolve
from events.state import ChatState
from tests.chatstate import build as b
from tests.chatstate.chat import Chat, record, store
from tests.chatstate.reach import answered, called, compacted, compacting, forked, generating, reach, running_tools


def copy(origin: Chat, batch_bytes: int = 512 * 1024) -> Chat:
    """Fork a chat."""
    chat = Chat()
    chat.do(b.fork(owed=origin.control.owed))
    return chat.all(plan_imports(origin.state, batch_bytes=batch_bytes))


def test_a_fork_holds_the_surviving_messages_under_new_ids_and_keeps_the_old_as_origin() -> None:
    origin = reach(X.W, work=compacted)
    chat = copy(origin)
    old = list(origin.state.need_transcript("a test").messages)
    new = list(chat.state.need_transcript("a test").messages)
    assert [item.message.origin for item in new] == [item.id for item in old]
    assert [item.id for item in new] == [message_id(2, place) for place in range(len(old))]
    assert chat.texts() == origin.texts()


def test_a_fork_points_results_at_the_new_places_of_their_calls_in_whatever_batches_they_come() -> None:
    origin = reach(X.R0, work=running_tools("report", "rerun"))
    for call in origin.calls:
        origin.do(b.result(origin, call.key))
    origin.do(b.commit(origin))
    for batch_bytes in (1, 400, 10_000):
        chat = copy(origin, batch_bytes)
        assert violations(chat.state) == []
        assert chat.texts() == origin.texts()
    assert len(copy(origin, 1).log) == 1 + len(origin.messages)


def test_each_import_is_within_the_size_of_an_event_also_where_messages_are_many_or_grow_when_stored() -> None:
    origin = reach(X.P0)
    origin.all(b.send_interrupting("x") for _ in range(3_000))
    origin.all(b.send_interrupting("\x01" * 5_000) for _ in range(60))
    chat = copy(origin)
    assert len(chat.messages) == len(origin.messages)
    assert len(chat.log) > 3
    for recorded in chat.log:
        store(recorded)


def test_open_calls_are_answered_as_cancelled_by_the_fork_and_recorded_results_are_kept() -> None:
    origin = reach(X.R0, work=called("report", "rerun", "client"))
    origin.do(b.start(origin, "tools", *(call.key for call in origin.calls[:2])))
    origin.do(b.result(origin, origin.calls[0].key, "kept"))
    chat = copy(origin)
    assert chat.texts()[-3:] == ["tool: kept", "tool: fork", "tool: fork"]
    assert chat.calls == ()


def test_a_fork_carries_no_queue_holder_or_action() -> None:
    for origin in (reach(X.R1), reach(X.A1)):
        chat = copy(origin)
        control = chat.control
        assert (chat.x, control.queue, control.holder, control.action) == (X.W, (), None, None)
        assert control.turns == 0


def test_a_fork_runs_by_resume_with_its_rules() -> None:
    origin = reach(X.I0, work=generating)
    origin.do(b.finish_interruption(origin, b.answer(interrupted=True)))
    chat = copy(origin)
    chat.do(c.Resume())
    assert (chat.x, chat.messages[-1].visibility) == (X.P0, "model")


def test_messages_are_imported_only_within_the_forks_append() -> None:
    chat = forked()
    chat.do(c.ImportMessages(messages=(b.user(),)))
    chat.do(c.ImportMessages(messages=(b.answer(),)))
    chat.do(c.SetTitle(title=None))
    with pytest.raises(TransitionNotAllowed, match="within the append"):
        chat.do(c.ImportMessages(messages=(b.user(),)))


def test_a_fork_goes_nowhere_while_calls_among_its_messages_are_open() -> None:
    chat = forked()
    chat.do(c.ImportMessages(messages=(b.user(), b.answer("client"))))
    with pytest.raises(TransitionNotAllowed, match="last import"):
        chat.do(b.send())
    chat.do(c.ImportMessages(messages=()))
    chat.do(b.send())


def test_uncompact_in_a_fork_leaves_what_was_imported_with_the_boundary() -> None:
    origin = reach(X.W)
    before = origin.texts()
    origin.do(b.send("More"))
    origin.do(b.acquire())
    compacting(origin)
    origin.do(b.compaction(origin, manual=False))
    answered(origin)
    origin.do(b.finish(origin))
    chat = copy(origin)
    chat.do(c.Uncompact())
    assert chat.texts() == [*before, "user: More", "assistant: Sure."]


def test_a_mark_stays_until_a_context_is_collected_that_was_asked_for_after_it() -> None:
    chat = reach(X.R0)
    chat.do(b.record_policy(chat))
    chat.do(b.start(chat, "context"))
    chat.do(b.context(chat, "r1"))
    chat.do(c.MarkContext(mark="stale", revision="r2"))
    marks = [chat.control.context_stale_since]
    assert marks == [chat.log[-1].envelope.recorded_at]
    for mark in ("stale", "fresh"):
        chat.do(c.MarkContext(mark=mark))
        marks.append(chat.control.context_stale_since)
    assert marks == [marks[0], marks[0], None]
    chat.do(c.MarkContext(mark="stale", revision="r2"))
    chat.do(c.MarkContext(mark="refresh"))
    asked = [chat.control.context_refresh_at]
    assert asked == [chat.log[-1].envelope.recorded_at]

    chat.do(b.start(chat, "context"))
    chat.do(c.MarkContext(mark="refresh"))
    chat.do(b.context(chat, "r2"))
    assert chat.control.context_stale_since is None
    asked.append(chat.control.context_refresh_at)
    chat.do(b.start(chat, "context"))
    chat.do(b.context(chat, "r3"))
    asked.append(chat.control.context_refresh_at)
    # The second was asked for while the older context was collected: that one does not do.
    assert [each is None for each in asked] == [False, False, True]


def test_metadata_changes_no_status_history_or_queue() -> None:
    commands: list[c.AnyCommand] = [
        c.SetTitle(title=Content("A talk")),
        c.SetLabels(labels={"a": "b"}),
        c.SetModel(model="m2", effort="high"),
        c.SetAgent(agent="other"),
        c.SetActiveTools(tools=("look",)),
        c.SetPinned(pinned=True),
        c.SetRetention(retention_us=5),
        c.MarkContext(mark="refresh"),
        c.SetTurnLabel(label=Content("Fixed the build")),
        c.RecordSideCall(kind="title", report=AttemptReport(step=b.STEP)),
        c.Erase(targets=(message_id(1, 1),)),
    ]
    chat = reach(X.R1, work=generating)
    before = chat.control
    chat.all(commands)
    after = chat.control
    for name in ("status", "history_version", "queue_version", "queue", "running", "holder", "epoch", "indexes"):
        assert getattr(after, name) == getattr(before, name), name
    assert (after.model, after.effort, after.agent, after.pinned, after.retention_us) == (
        "m2",
        "high",
        "other",
        True,
        5,
    )
    assert (after.labels, chat.state.need_transcript("a test").title) == ({"a": "b"}, Content("A talk"))


def test_what_a_machine_does_beside_history_does_not_move_updated() -> None:
    chat = reach(X.R0)
    by_user = record(chat.state, decide(chat.state, c.SetTitle(title=Content("A talk")), chat.now + 5))
    by_machine = replace(by_user, envelope=replace(by_user.envelope, actor=Actor(kind="system")))
    assert evolve(chat.state, by_machine).control.updated_at == chat.control.updated_at
    assert evolve(chat.state, by_user).control.updated_at == chat.now + 5


def test_archive_and_unarchive_must_really_change() -> None:
    with pytest.raises(TransitionNotAllowed):
        reach(X.W).do(c.Unarchive())
    with pytest.raises(TransitionNotAllowed):
        reach(X.XW).do(c.Archive())


def test_an_archived_chat_keeps_error_queue_and_open_calls_for_when_it_is_taken_out() -> None:
    chat = reach(X.E1, work=called("report"))
    before = chat.control
    chat.do(c.Archive())
    chat.do(c.Unarchive())
    after = chat.control
    assert (after.last_error, after.queue, after.indexes) == (before.last_error, before.queue, before.indexes)


def test_erase_names_messages_of_this_chat_and_at_least_one() -> None:
    chat = reach(X.P1)
    targets: list[tuple[MessageId, ...]] = [(), (message_id(9, 0),), (message_id(1, 1), message_id(9, 0))]
    for wrong in targets:
        with pytest.raises(MessageNotFound):
            chat.do(c.Erase(targets=wrong))
    chat.do(c.Erase(targets=(message_id(1, 1), chat.control.queue[0].id)))


def test_erase_takes_what_was_asked_of_a_summary_that_has_not_come() -> None:
    chat = reach(X.W, work=answered)
    chat.do(c.Compact(hint=Content("Keep all names.")))
    chat.do(c.Erase(targets=(message_id(1, 1),)))
    hint = chat.state.need_transcript("a test").hint
    assert hint is not None
    assert hint.erased


def shown(message: Message) -> list[str]:
    parts = [part for part in message.parts if isinstance(part, TextPart)]
    return [part.text.text if part.text.available else "erased" for part in parts]


def test_erase_reaches_the_copies_that_compactions_inserted_again() -> None:
    for chat in (reach(X.R0), copy(reach(X.P0)).all([c.Resume(), b.acquire()])):
        for _ in range(2):
            compacting(chat)
            chat.do(b.compaction(chat, manual=False))
        (hello,) = (item.id for item in chat.state.need_transcript("a test").messages if item.message.opens_turn)
        chat.do(c.Erase(targets=(hello,)))
        summary, erased = ["They talked."], ["erased"]
        assert [shown(m) for m in chat.messages if m.role == "user"] == [erased, summary, erased, summary, erased]


def test_erase_in_a_fork_does_not_take_ids_of_the_origin_for_its_own() -> None:
    origin = reach(X.W)
    origin.do(b.send("The origin calls this one 6.0"))
    chat = copy(origin)
    for value in ("two", "three", "four"):
        chat.do(b.send(value))
        chat.do(c.Interrupt())
    assert any(item.id == "5.0" for item in chat.state.need_transcript("a test").messages)
    chat.do(c.Erase(targets=(message_id(5, 0),)))
    assert [shown(m) for m in chat.messages].count(["erased"]) == 1


def test_erase_takes_the_arguments_that_an_approval_replaced() -> None:
    chat = reach(X.A0, work=called("approval"))
    key = chat.calls[0].key
    approval = ApprovalAnswer(call=key, approved=True, arguments=Content("[1]"))
    chat.do(c.SubmitResults(action=chat.control.version, approvals=(approval,)))
    chat.do(c.Erase(targets=(chat.state.need_transcript("a test").messages[-1].id,)))
    assert chat.state.need_transcript("a test").arguments[key].erased


def test_adopt_raises_the_epoch_so_that_a_holder_in_the_log_counts_as_dead() -> None:
    chat = reach(X.R0)
    late, epoch = b.start(chat), chat.control.epoch
    chat.do(c.Adopt())
    assert (chat.x, chat.control.epoch) == (X.R0, epoch + 1)
    with pytest.raises(StaleFence):
        chat.do(late)
    chat.do(b.acquire("w2", dead=True))


def test_commands_that_need_the_transcript_say_so_where_control_alone_was_loaded() -> None:
    waiting = ChatState(control=reach(X.W, work=compacted).control, transcript=None)
    running = reach(X.R0, work=compacting)
    commands: list[c.AnyCommand] = [
        c.EditMessage(target=message_id(1, 1), message=b.user()),
        c.Erase(targets=(message_id(1, 1),)),
        c.Uncompact(),
    ]
    for command in commands:
        with pytest.raises(TranscriptMissing, match=command.trigger):
            decide(waiting, command, 0)
    with pytest.raises(TranscriptMissing, match="commit_compaction"):
        decide(ChatState(control=running.control, transcript=None), b.compaction(running), 0)


@pytest.mark.parametrize("x", [X.W, X.P0, X.R0, X.A0, X.E1])
def test_send_interrupt_resume_submit_and_archive_need_control_alone(x: X) -> None:
    chat = reach(x)
    alone = ChatState(control=chat.control, transcript=None)
    commands: list[c.AnyCommand] = [b.send(), c.Interrupt(), c.Resume(), b.submit(chat), c.Archive()]
    for command in commands:
        try:
            decided = decide(chat.state, command, chat.now)
        except Refusal as refusal:
            with pytest.raises(type(refusal)):
                decide(alone, command, chat.now)
        else:
            assert decide(alone, command, chat.now) == decided


def test_a_recorded_result_is_answered_by_its_own_body() -> None:
    chat = reach(X.R0, work=running_tools("report"))
    chat.do(b.result(chat, chat.calls[0].key, "forty-two"))
    chat.do(b.commit(chat))
    part = chat.messages[-1].parts[0]
    assert isinstance(part, ToolResultPart)
    assert part.output == Content("forty-two")
    assert chat.state.need_transcript("a test").results == {}
