"""Rules of history: boundaries, visibility, the current turn and its steps, compaction requests, creation."""

from __future__ import annotations

import pytest

from chatstate import commands as c
from chatstate.classify import X
from chatstate.errors import ChatNotFound, NothingToClear, NothingToCompact, TransitionNotAllowed
from events.content import Content
from events.messages import Message
from events.parts import TextPart, ToolResultPart
from tests.chatstate import build as b
from tests.chatstate.chat import SECOND, Chat
from tests.chatstate.reach import answered, called, compacted, compacting, generating, give_up, reach, running_tools


def model_only(value: str) -> Message:
    return Message(role="user", visibility="model", parts=(b.text(value),))


def test_a_chat_with_a_message_to_answer_is_pending_with_system_messages_alone_it_waits() -> None:
    pending, waiting = Chat(), Chat()
    pending.do(b.create(b.system(), b.user()))
    waiting.do(b.create(b.system()))
    assert (pending.x, pending.control.owed) == (X.P0, True)
    assert (waiting.x, waiting.control.owed) == (X.W, False)


def test_a_chat_does_not_begin_with_calls_results_or_boundaries() -> None:
    result = Message(role="tool", parts=(ToolResultPart(call=b.a_call()),))
    boundary = Message(role="user", visibility="model", parts=(b.text("Old."),), boundary="chat_summarized")
    for message in (b.answer("client"), result, boundary, Message(role="user", visibility="user", parts=())):
        with pytest.raises(TransitionNotAllowed):
            Chat().do(b.create(b.user(), message))


def test_everything_else_on_a_chat_that_does_not_exist_is_chat_not_found() -> None:
    with pytest.raises(ChatNotFound):
        Chat().do(c.Interrupt())


def test_compact_is_refused_when_no_uncompressed_answer_follows_the_newest_boundary() -> None:
    for chat in (reach(X.E0), reach(X.W, work=compacted)):
        with pytest.raises(NothingToCompact):
            chat.do(c.Compact())


def test_the_request_to_compact_survives_acquire_release_retry_and_queueing() -> None:
    chat = reach(X.W)
    chat.do(c.Compact(hint=Content("Keep the names.")))
    chat.do(b.send())
    chat.do(b.acquire())
    chat.do(b.release(chat))
    chat.do(b.acquire())
    compacting(chat)
    chat.do(b.retry(chat))
    chat.do(b.acquire(), now=chat.now + 60 * SECOND)
    assert chat.control.compaction == "requested"
    assert chat.state.need_transcript("a test").hint == Content("Keep the names.")


def requested() -> Chat:
    chat = reach(X.W)
    chat.do(c.Compact(hint=Content("Keep the names.")))
    chat.do(b.acquire())
    return chat


def test_the_compact_event_and_any_turn_end_clear_the_request_with_its_hint() -> None:
    served, finished, failed, ended = requested(), requested(), requested(), requested()
    compacting(served)
    served.do(b.compaction(served))
    assert served.control.compaction == "committed"
    finished.do(b.finish(finished))
    failed.do(b.fail(failed))
    ended.do(c.Interrupt())
    assert ended.control.compaction == "requested", "the holder ends the turn"
    ended.do(b.finish_interruption(ended))
    for chat in (served, finished, failed, ended):
        assert chat.control.compaction != "requested"
        assert chat.state.need_transcript("a test").hint is None


def test_a_new_turn_forgets_that_a_compaction_was_committed() -> None:
    chat = requested()
    chat.do(b.send())
    compacting(chat)
    chat.do(b.compaction(chat))
    chat.do(b.finish(chat, "compacted"))
    assert (chat.x, chat.control.compaction) == (X.R0, "none")


def test_a_compaction_boundary_is_summary_mark_result_then_the_trailing_unanswered_user_messages_for_the_model() -> (
    None
):
    chat = reach(X.W)
    chat.do(b.send("First"))
    chat.do(b.acquire())
    compacting(chat)
    chat.do(b.compaction(chat, manual=False))
    new = chat.messages[4:]
    assert [(m.role, m.visibility, m.boundary) for m in new] == [
        ("user", "model", "chat_summarized"),
        ("assistant", "user", "chat_summarized"),
        ("tool", "user", "chat_summarized"),
        ("user", "model", None),
    ]
    again = new[3]
    assert (again.parts, again.origin) == ((b.text("First"),), "6.0")


def test_answered_user_messages_are_not_inserted_again() -> None:
    chat = reach(X.R0, work=answered)
    compacting(chat)
    chat.do(b.compaction(chat, manual=False))
    assert chat.messages[-1].boundary is not None


def test_a_second_boundary_takes_the_messages_along_that_the_first_inserted_again() -> None:
    chat = reach(X.R0)
    for _ in range(2):
        compacting(chat)
        chat.do(b.compaction(chat, manual=False))
    assert chat.texts()[-1] == "user: Hello"
    assert chat.texts().count("user: Hello") == 3


def test_a_boundary_does_not_enter_history_while_calls_are_open() -> None:
    chat = reach(X.R0, work=called("client"))
    with pytest.raises(TransitionNotAllowed):
        compacting(chat)


def test_clear_writes_a_boundary_at_once_and_inserts_nothing_again() -> None:
    chat = reach(X.E0)
    chat.do(c.Clear())
    assert [m.boundary for m in chat.messages[-3:]] == ["chat_cleared"] * 3
    assert chat.control.indexes.visible_after == 0
    summary, _, result = (message.parts[0] for message in chat.messages[-3:])
    assert isinstance(summary, TextPart)
    assert summary.text == c.Clear().sentinel, "no model was asked"
    assert isinstance(result, ToolResultPart)
    assert result.output == Content({"source": "manual"})


def test_clear_is_refused_when_nothing_that_the_model_reads_follows_the_newest_boundary() -> None:
    chat = reach(X.W)
    chat.do(c.Clear())
    with pytest.raises(NothingToClear):
        chat.do(c.Clear())
    system_only = Chat()
    system_only.do(b.create(b.system()))
    with pytest.raises(NothingToClear):
        system_only.do(c.Clear())


def test_the_result_of_a_boundary_has_its_call_before_it() -> None:
    chat = reach(X.E0, work=called("report", "client"))
    chat.do(c.Clear())
    items = list(chat.state.need_transcript("a test").messages)
    mark, result = items[-2], items[-1].message.parts[0]
    assert isinstance(result, ToolResultPart)
    assert result.call == f"{mark.id}.0"


def test_the_current_turn_starts_after_the_newest_user_message_that_is_not_for_the_model_alone() -> None:
    chat = reach(X.W, end=give_up)
    assert chat.control.indexes.turn_start == "1.1"
    chat.do(c.Compact())
    assert chat.control.indexes.turn_start == "1.1"
    chat.do(b.acquire())
    compacting(chat)
    chat.do(b.compaction(chat))
    assert chat.control.indexes.turn_start == "1.1"
    chat.do(b.send())
    chat.do(b.finish(chat, "compacted"))
    assert chat.control.indexes.turn_start == "10.0"


def test_a_step_is_an_answer_of_the_current_turn_compressed_or_not_and_no_mark_of_a_boundary() -> None:
    chat = reach(X.R0, work=answered)
    compacting(chat)
    chat.do(b.compaction(chat, manual=False))
    assert chat.control.indexes.steps == 1
    answered(chat)
    assert chat.control.indexes.steps == 2


def test_messages_for_the_model_alone_do_not_start_a_turn_and_do_not_reset_steps() -> None:
    chat = reach(X.R0, work=answered)
    generating(chat)
    chat.do(c.Interrupt())
    chat.do(b.finish_interruption(chat, b.answer(interrupted=True)))
    turns, start = chat.control.turns, chat.control.indexes.turn_start
    chat.do(c.Resume())
    assert (chat.control.turns, chat.control.indexes.turn_start) == (turns, start)


def test_steps_and_stop_after_count_from_the_last_resume() -> None:
    chat = reach(X.R0, work=running_tools("stop"))
    chat.do(b.result(chat, chat.calls[0].key))
    chat.do(b.commit(chat))
    assert (chat.control.indexes.steps, chat.control.indexes.stop_after) == (1, True)
    chat.do(b.finish(chat, "max_steps"))
    chat.do(c.Resume())
    assert (chat.control.indexes.steps, chat.control.indexes.stop_after) == (0, False)
    chat.do(b.acquire())
    answered(chat)
    assert chat.control.indexes.steps == 1


def test_a_new_turn_begins_without_steps_and_without_a_stop() -> None:
    chat = reach(X.R1, work=running_tools("stop"))
    chat.do(b.result(chat, chat.calls[0].key))
    chat.do(b.commit(chat))
    chat.do(b.finish(chat, "stop_after_tool"))
    assert (chat.control.indexes.steps, chat.control.indexes.stop_after) == (0, False)


@pytest.mark.parametrize("failed", [False, True])
def test_stop_after_is_a_result_of_such_a_tool_that_is_no_error(*, failed: bool) -> None:
    chat = reach(X.R0, work=running_tools("stop"))
    chat.do(b.result(chat, chat.calls[0].key, is_error=failed))
    assert not chat.control.indexes.stop_after
    chat.do(b.commit(chat))
    assert chat.control.indexes.stop_after is not failed


def test_the_newest_message_that_counts_leaves_out_compressed_and_user_only_messages() -> None:
    chat = reach(X.R0, work=answered)
    again = reach(X.R0)
    roles = [chat.control.indexes.last_role]
    for other in (chat, again):
        compacting(other)
        other.do(b.compaction(other, manual=False))
        roles.append(other.control.indexes.last_role)
    assert roles == ["assistant", None, "user"]


def test_a_context_is_a_system_message_with_a_mark_and_is_no_message_that_counts() -> None:
    chat = reach(X.R0, work=answered)
    chat.do(b.start(chat, "context"))
    with pytest.raises(TransitionNotAllowed, match="context mark"):
        chat.do(c.PersistContext(fence=chat.fence(), message=b.system()))
    chat.do(b.context(chat, "r7"))
    indexes = chat.control.indexes
    assert (indexes.context_source, indexes.context_revision, indexes.last_role) == ("files", "r7", "assistant")


def test_usage_after_a_boundary_is_that_of_the_answers_that_follow_it() -> None:
    chat = reach(X.R0, work=compacted)
    assert (chat.control.indexes.context_tokens, chat.control.indexes.first_context_tokens) == (0, 0)
    answered(chat)
    assert (chat.control.indexes.context_tokens, chat.control.indexes.first_context_tokens) == (10, 10)


def test_uncompact_takes_the_newest_compaction_back_and_what_it_compressed_counts_again() -> None:
    chat = reach(X.W)
    before = chat.texts()
    chat.do(b.send("More"))
    chat.do(b.acquire())
    compacting(chat)
    chat.do(b.compaction(chat, manual=False))
    chat.do(b.finish(chat, "max_steps"))
    chat.do(c.Uncompact())
    assert chat.texts() == [*before, "user: More"]
    assert chat.control.indexes.assistants_after == 1
    assert chat.control.history_version == chat.control.version


def test_uncompact_undoes_no_clear() -> None:
    chat = reach(X.W, work=compacted)
    chat.do(b.send())
    chat.do(c.Interrupt())
    chat.do(c.Clear())
    with pytest.raises(TransitionNotAllowed, match="not a compaction"):
        chat.do(c.Uncompact())


def test_uncompact_leaves_the_steps_since_the_last_resume() -> None:
    chat = reach(X.W, work=compacted, end=give_up)
    chat.do(c.Resume())
    chat.do(c.Interrupt())
    chat.do(c.Uncompact())
    assert chat.control.indexes.steps == 0


def test_an_interrupted_answer_before_a_boundary_is_not_what_resume_goes_on_from() -> None:
    chat = reach(X.I0, work=generating)
    chat.do(b.finish_interruption(chat, b.answer(interrupted=True)))
    chat.do(c.Compact())
    chat.do(b.acquire())
    compacting(chat)
    chat.do(b.compaction(chat))
    chat.do(b.finish(chat, "compacted"))
    length = len(chat.messages)
    chat.do(c.Resume())
    assert len(chat.messages) == length


@pytest.mark.parametrize("message", [b.user(), model_only("Hi"), b.system()], ids=["user", "model", "system"])
def test_a_step_is_an_assistant_message(message: Message) -> None:
    running, stopping = reach(X.R0, work=generating), reach(X.I0, work=generating)
    with pytest.raises(TransitionNotAllowed, match="assistant"):
        running.do(b.commit(running, message))
    with pytest.raises(TransitionNotAllowed, match="assistant"):
        stopping.do(b.finish_interruption(stopping, message))
