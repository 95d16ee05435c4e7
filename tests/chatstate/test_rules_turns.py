"""Rules of turns that the matrix cannot show: interrupt, resume, what is owed, retries, takeovers, failing."""

from __future__ import annotations

import pytest

from chatstate import commands as c
from chatstate.classify import X
from chatstate.errors import NothingOwed, Refusal, StaleFence, TransitionNotAllowed
from chatstate.handlers.worker import TAKEOVER_LIMIT
from events.messages import Usage
from events.parts import ToolResultPart
from events.records import AttemptReport, FinishCause
from tests.chatstate import build as b
from tests.chatstate.chat import SECOND, Chat
from tests.chatstate.reach import answered, called, compacting, generating, give_up, reach, running_tools


def interrupted() -> Chat:
    """A chat that waits after an interruption that kept a partial answer."""
    chat = reach(X.I0, work=generating)
    chat.do(b.finish_interruption(chat, b.answer(interrupted=True)))
    return chat


def test_to_interrupt_is_to_end_the_turn_now() -> None:
    for x in (X.P0, X.A0):
        chat = reach(x)
        chat.do(c.Interrupt())
        assert (chat.x, chat.calls, chat.control.action) == (X.W, (), None)


def test_interrupt_with_a_queue_lets_its_head_into_history_and_a_new_turn_is_owed() -> None:
    chat = reach(X.A1, 2)
    chat.do(c.Interrupt())
    assert chat.texts()[-2:] == ["tool: interrupt", "user: Queued 0"]
    assert chat.control.owed


def test_where_the_lease_is_dead_the_turn_ends_inline_with_the_partial_found_and_the_epoch_raised() -> None:
    for x in (X.R0, X.I0):
        for command in (
            c.Interrupt(lease_dead=True, partial=b.answer(said="So far")),
            b.send_interrupting("Stop.", dead=True, partial=b.answer(said="So far")),
        ):
            chat = reach(x, work=generating)
            epoch = chat.control.epoch
            chat.do(command)
            assert "assistant: So far" in chat.texts()
            assert [m.interrupted for m in chat.messages if m.role == "assistant"] == [True]
            assert (chat.control.epoch, chat.control.holder) == (epoch + 1, None)


def test_a_partial_is_kept_only_of_a_holder_that_is_dead() -> None:
    for x in (X.P0, X.A0):
        chat = reach(x)
        told = chat.texts()
        chat.do(
            c.Interrupt(lease_dead=True, partial=b.answer(said="Of another turn"), report=AttemptReport(step=b.STEP))
        )
        assert "assistant: Of another turn" not in chat.texts()
        assert chat.texts()[: len(told)] == told
        assert chat.control.usage == (Usage() if x is X.P0 else b.STEP.usage)


def test_a_worker_of_a_turn_that_ended_inline_is_fenced_off() -> None:
    chat = reach(X.R0, work=generating)
    late = b.commit(chat, b.answer())
    chat.do(c.Interrupt(lease_dead=True))
    chat.do(c.Resume())
    chat.do(b.acquire("w2"))
    chat.do(b.start(chat))
    with pytest.raises(StaleFence):
        chat.do(late)


def test_an_interrupt_in_i_is_refused_while_the_lease_lives() -> None:
    with pytest.raises(TransitionNotAllowed, match="live worker"):
        reach(X.I0).do(c.Interrupt())


def test_a_holder_in_i_cannot_release_it_finishes() -> None:
    chat = reach(X.I0)
    with pytest.raises(TransitionNotAllowed):
        chat.do(b.release(chat))


CAUSES: dict[FinishCause, bool] = {
    "complete": False,
    "stop_after_tool": False,
    "max_steps": True,
    "compacted": True,
    "budget": True,
}


@pytest.mark.parametrize("cause", CAUSES)
def test_owed_is_cleared_by_finish_complete_and_stop_after_tool_and_kept_by_the_others(cause: FinishCause) -> None:
    chat = reach(X.R0)
    chat.do(b.finish(chat, cause))
    assert chat.control.owed is CAUSES[cause]
    if CAUSES[cause]:
        chat.do(c.Resume())
    else:
        with pytest.raises(NothingOwed):
            chat.do(c.Resume())


def test_owed_is_kept_by_interrupt_and_fail() -> None:
    for chat in (reach(X.E0), interrupted()):
        assert chat.control.owed
        chat.do(c.Resume())


def test_owed_is_not_set_by_compact_nor_by_what_a_compacting_worker_does() -> None:
    chat = reach(X.W)
    chat.do(c.Compact())
    for _ in range(2):
        chat.do(b.acquire())
        chat.do(b.release(chat))
    chat.do(b.acquire())
    compacting(chat)
    chat.do(b.retry(chat))
    chat.do(b.acquire(), now=chat.now + 60 * SECOND)
    compacting(chat)
    chat.do(b.compaction(chat))
    chat.do(b.finish(chat, "compacted"))
    assert not chat.control.owed
    with pytest.raises(NothingOwed):
        chat.do(c.Resume())


def test_owed_is_set_by_an_expiry_that_goes_on_even_in_a_turn_that_compact_opened() -> None:
    chat = reach(X.W)
    chat.do(c.Compact())
    chat.do(b.acquire())
    called("client")(chat)
    chat.do(b.require(chat))
    chat.do(c.ExpireAction(action=chat.control.version), now=chat.now + b.TIMEOUT + SECOND)
    assert chat.control.owed


def test_clear_clears_what_is_owed() -> None:
    chat = interrupted()
    chat.do(c.Clear())
    assert not chat.control.owed


def test_resume_resets_retry_budget_takeovers_and_steps_never_the_attempt() -> None:
    chat = reach(X.R0, work=answered)
    chat.do(b.acquire("w2", dead=True))
    generating(chat)
    chat.do(b.fail(chat))
    before = chat.control
    assert (before.model_attempts, before.takeovers, before.indexes.steps, before.attempt) == (1, 1, 1, 1)
    chat.do(c.Resume())
    after = chat.control
    assert (after.model_attempts, after.takeovers, after.indexes.steps, after.attempt) == (0, 0, 0, 1)
    assert not after.indexes.stop_after


def test_resume_after_an_interrupted_message_asks_the_model_to_go_on_in_the_same_event() -> None:
    chat = interrupted()
    chat.do(c.Resume())
    last = chat.messages[-1]
    assert (last.role, last.visibility, last.opens_turn) == ("user", "model", False)
    assert chat.control.turns == 1


def test_resume_adds_nothing_where_the_history_does_not_end_with_an_interrupted_answer() -> None:
    kept_a_call = reach(X.I0, work=generating)
    kept_a_call.do(b.finish_interruption(kept_a_call, b.answer("report", interrupted=True)))
    for chat in (kept_a_call, reach(X.E0), reach(X.W, work=called("provider"), end=give_up)):
        length = len(chat.messages)
        chat.do(c.Resume())
        assert len(chat.messages) == length


def test_leaving_error_answers_open_calls_except_by_resume_which_goes_on_with_them() -> None:
    commands: list[c.AnyCommand] = [b.send(), b.send_interrupting(), c.Compact(), c.Clear()]
    for command in commands:
        chat = reach(X.E0, work=called("report"))
        chat.do(command)
        assert chat.calls == ()
    chat = reach(X.E0, work=called("report"))
    chat.do(c.Resume())
    assert [call.name for call in chat.calls] == ["report"]


def test_a_chat_between_retries_is_pending_holds_no_worker_and_is_not_acquired_before_its_time() -> None:
    chat = reach(X.R0, work=generating)
    due = chat.do(b.retry(chat)).envelope.recorded_at + 5_000_000
    control = chat.control
    assert (chat.x, control.holder, control.not_before) == (X.P0, None, due)
    with pytest.raises(TransitionNotAllowed, match="time has not come"):
        chat.do(b.acquire(), now=due - 1)
    chat.do(b.acquire(), now=due)
    assert chat.control.not_before is None


def test_a_retry_names_attempt_delay_when_and_error() -> None:
    chat = reach(X.R0, work=generating)
    chat.do(b.retry(chat))
    retry = chat.control.retry
    assert retry is not None
    assert (retry.attempt, retry.delay_us, retry.at, retry.error) == (1, 5_000_000, chat.now + 5_000_000, b.ERROR)


def between_retries() -> Chat:
    chat = reach(X.R0, work=generating)
    chat.do(b.retry(chat))
    return chat


def test_a_retry_is_cleared_by_the_next_start_an_interrupt_and_any_history_change() -> None:
    started = between_retries()
    started.do(b.acquire(), now=started.now + 60 * SECOND)
    assert started.control.retry is not None
    generating(started)
    edited, ended, sent = between_retries(), between_retries(), between_retries()
    edited.do(c.EditMessage(target=edited.state.need_transcript("t").messages[1].id, message=b.user("Hi")))
    ended.do(c.Interrupt())
    sent.do(b.send_interrupting())
    for chat in (started, edited, ended, sent):
        assert (chat.control.retry, chat.control.not_before) == (None, None)


def test_a_retry_survives_what_changes_no_history() -> None:
    chat = between_retries()
    chat.do(b.send())
    chat.do(c.SetTitle(title=None))
    assert chat.control.retry is not None
    assert chat.control.not_before is not None


def test_the_retry_budget_counts_generate_and_compact_starts_only() -> None:
    chat = reach(X.R0)
    for kind in ("generate", "compact", "context"):
        chat.do(c.StartAttempt(fence=chat.fence(), kind=kind, decision=b.DECISION))
    assert (chat.control.attempt, chat.control.model_attempts) == (3, 2)


def test_a_takeover_raises_the_epoch_and_is_counted_until_history_changes() -> None:
    chat = reach(X.R0)
    for times in range(1, TAKEOVER_LIMIT + 1):
        epoch = chat.control.epoch
        chat.do(b.acquire(f"w{times + 1}", dead=True))
        assert (chat.control.epoch, chat.control.takeovers) == (epoch + 1, times)
    answered(chat)
    assert chat.control.takeovers == 0


def test_a_release_is_no_takeover() -> None:
    chat = reach(X.R0)
    chat.do(b.release(chat))
    chat.do(b.acquire("w2"))
    assert chat.control.takeovers == 0


def test_acquire_from_a_live_holder_is_refused() -> None:
    for x in (X.R0, X.I0):
        with pytest.raises(TransitionNotAllowed, match="live worker"):
            reach(x).do(b.acquire("w2"))


def test_what_ends_an_attempt_carries_the_usage_known() -> None:
    def reported(chat: Chat) -> list[c.AnyCommand]:
        report, fence = AttemptReport(step=b.STEP), chat.fence()
        return [
            c.ScheduleRetry(fence=fence, delay_us=1, error=b.ERROR, report=report),
            c.FailTurn(fence=fence, error=b.ERROR, report=report),
            c.Release(fence=fence, reason="shutdown", report=report),
            c.FinishTurn(fence=fence, cause="max_steps", decision=b.DECISION, report=report),
            c.Interrupt(lease_dead=True, report=report),
        ]

    for place in range(5):
        chat = reach(X.R0, work=generating)
        chat.do(reported(chat)[place])
        assert (chat.control.usage, chat.control.cost_micros) == (b.STEP.usage, b.STEP.cost_micros)


def test_a_step_counts_its_usage_once() -> None:
    chat = reach(X.I0, work=generating)
    chat.do(b.finish_interruption(chat, b.answer()))
    assert chat.control.usage == b.STEP.usage


def test_every_outcome_must_fit_the_attempt_under_way() -> None:
    works = {"generate": generating, "compact": compacting, "tools": running_tools("report")}
    for kind, work in works.items():
        chat = reach(X.R0, work=work)
        outcomes: dict[str, c.AnyCommand] = {
            "generate": b.commit(chat, b.answer()),
            "compact": b.compaction(chat),
            "context": b.context(chat),
        }
        for fits, command in outcomes.items():
            if fits != kind:
                with pytest.raises(Refusal):
                    chat.do(command)


def test_an_outcome_without_an_attempt_is_refused() -> None:
    chat = reach(X.R0)
    commands: list[c.AnyCommand] = [b.commit(chat, b.answer()), b.compaction(chat), b.context(chat), b.retry(chat)]
    for command in commands:
        with pytest.raises(StaleFence):
            chat.do(command)
    chat.do(b.finish(chat, "max_steps"))


def test_finish_with_an_attempt_under_way_must_name_it() -> None:
    chat = reach(X.R0, work=generating)
    fence = c.Fence(epoch=chat.control.epoch, history_version=chat.control.history_version)
    with pytest.raises(StaleFence):
        chat.do(c.FinishTurn(fence=fence, cause="complete", decision=b.DECISION))


def test_times_never_go_back_within_a_chat() -> None:
    chat = reach(X.P0)
    before = chat.control.recorded_at
    assert chat.do(b.send(), now=before - SECOND).envelope.recorded_at == before


def test_a_finish_with_a_queue_leaves_the_chat_to_its_holder() -> None:
    chat = reach(X.R1, 2)
    holder = chat.control.holder
    chat.do(b.finish(chat))
    assert (chat.x, chat.control.holder, chat.control.owed) == (X.R1, holder, True)
    assert chat.control.turns == 2


def test_a_failed_turn_keeps_what_had_come_of_its_answer_as_an_interruption_does() -> None:
    chat = reach(X.R0, work=generating)
    chat.do(b.fail(chat, b.answer("report", "client", "provider")))
    answer, *results = chat.messages[-3:]
    assert answer.interrupted
    assert [part.reason for message in results for part in message.parts if isinstance(part, ToolResultPart)] == [
        "not_started",
        "interrupt",
    ]
    assert chat.control.indexes.open_calls == ()
    assert chat.control.owed
    assert chat.control.last_error is not None


def test_resume_after_a_failed_turn_that_kept_its_answer_asks_the_model_to_go_on() -> None:
    chat = reach(X.R0, work=generating)
    chat.do(b.fail(chat, b.answer()))
    chat.do(c.Resume())
    assert (chat.messages[-1].role, chat.messages[-1].visibility) == ("user", "model")


def test_a_turn_that_fails_at_something_else_has_no_answer_to_keep() -> None:
    for work in (compacting, running_tools("report")):
        chat = reach(X.R0, work=work)
        with pytest.raises(TransitionNotAllowed):
            chat.do(b.fail(chat, b.answer()))
