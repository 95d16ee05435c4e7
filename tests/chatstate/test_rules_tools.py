"""Rules of calls and of what the client owes: submissions, approvals, expiry, cancellations, takeovers of tools."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chatstate import commands as c
from chatstate.cancellations import REASONS
from chatstate.classify import X
from chatstate.errors import ActionStale, ToolResultsInvalid, TransitionNotAllowed
from chatstate.table import TRIGGERS
from events.content import Content
from events.ids import call_key, message_id
from events.messages import Message
from events.parts import ToolResultPart
from events.reasons import REASON_TEXTS, Reason
from events.records import NO_LIMIT, ActionItem, ApprovalAnswer, Budget, BudgetAnswer, Spending, Spent
from tests.chatstate import build as b
from tests.chatstate.chat import SECOND, Chat
from tests.chatstate.reach import called, generating, reach, require_end_turn, running_tools


def owing(*sorts: str) -> Chat:
    return reach(X.A0, work=called(*sorts))


def given(*calls: str, output: str = "done") -> tuple[c.SubmittedResult, ...]:
    return tuple(c.SubmittedResult(call=call, output=Content(output)) for call in calls)  # type: ignore[arg-type]


def refused(chat: Chat, command: c.AnyCommand) -> tuple[str, tuple[str, ...]]:
    with pytest.raises(ToolResultsInvalid) as caught:
        chat.do(command)
    return caught.value.kind, caught.value.ids


def test_submit_carries_the_action_id_which_is_the_version_of_the_event_that_opened_it() -> None:
    chat = owing("client")
    action = chat.control.action
    assert action is not None
    assert action.id == chat.control.version
    with pytest.raises(ActionStale):
        chat.do(c.SubmitResults(action=action.id - 1, results=given(chat.calls[0].key)))


def test_submit_checks_in_order_none_given_duplicate_invalid_json_missing_unexpected() -> None:
    chat = owing("client", "client")
    first, second = (call.key for call in chat.calls)
    action, stray = chat.control.version, b.a_call()

    def submit(*results: c.SubmittedResult) -> c.SubmitResults:
        return c.SubmitResults(action=action, results=results)

    broken = c.SubmittedResult(call=first, output=Content(""), problem="not JSON")
    assert refused(chat, submit()) == ("none_given", ())
    assert refused(chat, submit(broken, broken, *given(stray))) == ("duplicate", (first,))
    assert refused(chat, submit(broken, *given(stray))) == ("invalid_json", (first,))
    assert refused(chat, submit(*given(first, stray))) == ("missing", (second,))
    assert refused(chat, submit(*given(first, second, stray))) == ("unexpected", (stray,))
    chat.do(submit(*given(second, first)))


def test_a_result_for_an_approval_does_not_answer_it() -> None:
    chat = owing("approval")
    command = c.SubmitResults(action=chat.control.version, results=given(chat.calls[0].key))
    assert refused(chat, command) == ("missing", (chat.calls[0].key,))


def test_a_budget_question_is_answered_by_a_budget_answer_alone() -> None:
    chat = reach(X.R0)
    chat.do(b.require(chat, budget=True))
    action = chat.control.version
    assert refused(chat, c.SubmitResults(action=action)) == ("none_given", ())
    approval = ApprovalAnswer(call=b.a_call(), approved=True)
    assert refused(chat, c.SubmitResults(action=action, approvals=(approval,)))[0] == "missing"
    raised = Budget(tokens=10)
    chat.do(c.SubmitResults(action=action, budget=BudgetAnswer(end_turn=False, raised=raised)))
    assert (chat.control.budget, chat.control.budget_ended) == (raised, False)


def test_a_budget_question_that_is_answered_with_the_end_ends_the_turn_alone() -> None:
    chat = reach(X.R0)
    chat.do(b.require(chat, budget=True))
    chat.do(c.SubmitResults(action=chat.control.version, budget=BudgetAnswer(end_turn=True)))
    assert chat.control.budget_ended
    chat.do(b.acquire())
    chat.do(b.finish(chat, "budget"))
    assert not chat.control.budget_ended


def test_results_enter_history_in_call_order() -> None:
    chat = owing("client", "client")
    first, second = (call.key for call in chat.calls)
    chat.do(c.SubmitResults(action=chat.control.version, results=(*given(second), *given(first))))
    results = [part.call for m in chat.messages for part in m.parts if isinstance(part, ToolResultPart)]
    assert results == [first, second]


def test_an_approved_call_may_run_with_the_arguments_that_the_client_gave() -> None:
    chat = owing("approval")
    key, replaced = chat.calls[0].key, Content('{"a": 1}')
    approval = ApprovalAnswer(call=key, approved=True, arguments=replaced)
    chat.do(c.SubmitResults(action=chat.control.version, approvals=(approval,)))
    assert chat.calls[0].may_run
    assert chat.state.need_transcript("a test").arguments == {key: replaced}


def test_a_call_that_was_not_approved_is_answered() -> None:
    chat = owing("approval")
    chat.do(b.submit(chat, approve=False))
    assert chat.calls == ()
    assert "did not approve" in chat.texts()[-1]


def test_one_require_action_opens_all_actions_of_that_moment() -> None:
    chat = owing("client", "approval")
    action = chat.control.action
    assert action is not None
    assert [item.kind for item in action.items] == ["client_call", "approval"]


def test_a_budget_question_says_end_turn() -> None:
    chat = reach(X.R0)
    chat.do(b.require(chat, "go_on", budget=True))
    assert chat.control.action is not None
    assert chat.control.action.on_expiry == "end_turn"


def test_the_deadline_is_the_events_time_and_the_timeout() -> None:
    chat = owing("client")
    assert chat.control.action is not None
    assert chat.control.action.deadline == chat.control.recorded_at + b.TIMEOUT


def test_nothing_is_asked_of_the_client_while_calls_that_run_here_are_open() -> None:
    chat = reach(X.R0, work=called("client", "report"))
    with pytest.raises(TransitionNotAllowed):
        chat.do(b.require(chat))
    chat.do(b.start_tools(chat))
    chat.do(b.result(chat, chat.calls[1].key))
    with pytest.raises(TransitionNotAllowed):
        chat.do(b.require(chat))
    chat.do(b.commit(chat))
    chat.do(b.require(chat))


def test_require_action_without_anything_owed_is_refused() -> None:
    chat = reach(X.R0)
    with pytest.raises(TransitionNotAllowed, match="owes nothing"):
        chat.do(b.require(chat))


def test_an_action_expires_when_its_deadline_has_passed_not_before() -> None:
    chat = owing("client")
    action = chat.control.action
    assert action is not None
    with pytest.raises(TransitionNotAllowed, match="has not passed"):
        chat.do(c.ExpireAction(action=action.id), now=action.deadline - 1)
    chat.do(c.ExpireAction(action=action.id), now=action.deadline)
    assert chat.texts()[-1] == "tool: action_timed_out"


def test_until_an_expiry_is_in_the_log_results_are_accepted() -> None:
    chat = owing("client")
    assert chat.control.action is not None
    chat.do(b.submit(chat), now=chat.control.action.deadline + SECOND)


def test_results_after_an_expiry_are_stale_or_not_allowed() -> None:
    chat = owing("client")
    late, now = b.submit(chat), chat.now + b.TIMEOUT + SECOND
    chat.do(c.ExpireAction(action=chat.control.version), now=now)
    with pytest.raises(TransitionNotAllowed):
        chat.do(late)
    chat.do(b.acquire())
    called("client")(chat)
    chat.do(b.require(chat))
    with pytest.raises(ActionStale):
        chat.do(late)


def test_an_expiry_does_what_the_action_says() -> None:
    later = b.TIMEOUT + SECOND
    go_on, end_turn = owing("client"), reach(X.A0, end=require_end_turn)
    with pytest.raises(TransitionNotAllowed):
        go_on.do(c.ExpireActionEndTurn(action=go_on.control.version), now=go_on.now + later)
    with pytest.raises(TransitionNotAllowed):
        end_turn.do(c.ExpireAction(action=end_turn.control.version), now=end_turn.now + later)
    with pytest.raises(ActionStale):
        go_on.do(c.ExpireAction(action=1), now=go_on.now + later)


def test_an_open_client_call_before_require_action_is_a_call_not_an_action() -> None:
    for chat in (reach(X.R0, work=called("client")), reach(X.E0, work=called("client"))):
        assert chat.control.action is None
        assert len(chat.calls) == 1


def reasons(chat: Chat) -> list[str]:
    return [text.removeprefix("tool: ") for text in chat.texts() if text.startswith("tool: ")]


def test_an_interrupt_keeps_finished_results_and_tells_what_still_ran_from_what_never_started() -> None:
    chat = reach(X.R0, work=called("report", "rerun", "report", "client"))
    finished, running, *_ = (call.key for call in chat.calls)
    chat.do(b.start(chat, "tools", finished, running))
    chat.do(b.result(chat, finished, "kept"))
    chat.do(c.Interrupt())
    chat.do(b.finish_interruption(chat))
    assert reasons(chat) == ["kept", Reason.INTERRUPTED_UNKNOWN, Reason.NOT_STARTED, Reason.INTERRUPT]


def test_a_tool_that_finishes_after_the_interrupt_has_its_result_kept() -> None:
    chat = reach(X.R0, work=running_tools("report"))
    chat.do(c.Interrupt())
    chat.do(b.result(chat, chat.calls[0].key, "late"))
    chat.do(b.finish_interruption(chat))
    assert reasons(chat) == ["late"]


def test_calls_of_the_whole_step_that_an_interrupt_overtook_are_answered() -> None:
    chat = reach(X.I0, work=generating)
    chat.do(b.finish_interruption(chat, b.answer("report", "client", "provider")))
    assert reasons(chat) == [Reason.NOT_STARTED, Reason.INTERRUPT]


def test_a_takeover_declares_unsafe_running_calls_lost_and_starts_safe_ones_anew() -> None:
    chat = reach(X.R0, work=running_tools("report", "rerun", "report"))
    lost, safe, finished = (call.key for call in chat.calls)
    chat.do(b.result(chat, finished, "kept"))
    chat.do(b.acquire("w2", dead=True))
    assert {call.key: (call.recorded, call.started) for call in chat.calls} == {
        lost: (True, True),
        safe: (False, False),
        finished: (True, True),
    }
    chat.do(b.start(chat, "tools", safe))
    chat.do(b.result(chat, safe, "again"))
    chat.do(b.commit(chat))
    assert reasons(chat) == [Reason.WORKER_LOST, "again", "kept"]


def test_a_takeover_with_all_results_recorded_commits_them_by_a_new_attempt() -> None:
    chat = reach(X.R0, work=running_tools("report"))
    chat.do(b.result(chat, chat.calls[0].key, "kept"))
    chat.do(b.acquire("w2", dead=True))
    chat.do(b.start(chat, "tools"))
    chat.do(b.commit(chat))
    assert reasons(chat) == ["kept"]


def test_a_release_does_the_same_with_what_runs_after_the_grace() -> None:
    chat = reach(X.R0, work=running_tools("report", "rerun"))
    chat.do(b.release(chat))
    assert [(call.recorded, call.started) for call in chat.calls] == [(True, True), (False, False)]


def test_a_failed_turn_keeps_calls_open_and_never_repeats_an_unsafe_one_that_ran() -> None:
    chat = reach(X.R0, work=running_tools("report", "rerun"))
    chat.do(b.fail(chat))
    assert [(call.recorded, call.runs) for call in chat.calls] == [(True, False), (False, False)]
    chat.do(c.Resume())
    assert [call.recorded for call in chat.calls] == [True, False]


@pytest.mark.parametrize("sorts", [("exclusive", "client"), ("exclusive client", "approval"), ("report", "exclusive")])
def test_a_call_of_a_batch_that_is_refused_as_one_did_not_run(sorts: tuple[str, ...]) -> None:
    """Neither is it lost with its worker, nor is its outcome unknown."""
    chat = reach(X.R0, work=called(*sorts))
    chat.do(b.start(chat, "tools", *(call.key for call in chat.calls)))
    chat.do(b.acquire("w2", dead=True))
    assert [(call.recorded, call.started) for call in chat.calls] == [(False, False), (False, False)]
    chat.do(b.start(chat, "tools", *(call.key for call in chat.calls)))
    chat.do(c.Interrupt(lease_dead=True))
    assert {*reasons(chat)} <= {Reason.NOT_STARTED, Reason.INTERRUPT}


@pytest.mark.parametrize("sorts", [("report", "client"), ("report", "approval")])
def test_only_what_is_refused_as_one_draws_calls_of_the_client_into_a_batch(sorts: tuple[str, ...]) -> None:
    chat = reach(X.R0, work=called(*sorts))
    with pytest.raises(TransitionNotAllowed, match="are not open, have a result, or wait for approval"):
        chat.do(b.start(chat, "tools", *(call.key for call in chat.calls)))


def test_a_batch_is_committed_in_call_order_when_none_of_it_runs() -> None:
    chat = reach(X.R0, work=running_tools("report", "rerun"))
    first, second = (call.key for call in chat.calls)
    chat.do(b.result(chat, second, "two"))
    with pytest.raises(TransitionNotAllowed, match="still running"):
        chat.do(b.commit(chat))
    chat.do(b.result(chat, first, "one"))
    chat.do(b.commit(chat))
    assert reasons(chat) == ["one", "two"]


def test_recording_a_result_changes_no_history() -> None:
    chat = reach(X.R0, work=running_tools("report"))
    before = chat.control
    chat.do(b.result(chat, chat.calls[0].key))
    assert (chat.control.history_version, chat.control.running) == (before.history_version, before.running)


def test_a_result_is_recorded_once_and_only_of_a_call_that_runs() -> None:
    chat = reach(X.R0, work=called("report", "client"))
    chat.do(b.start_tools(chat))
    report, client = (call.key for call in chat.calls)
    chat.do(b.result(chat, report))
    for call in (report, client, b.a_call()):
        with pytest.raises(TransitionNotAllowed, match="is not running"):
            chat.do(b.result(chat, call))


def test_a_call_that_waits_for_approval_cannot_be_started() -> None:
    chat = reach(X.R0, work=called("approval"))
    with pytest.raises(TransitionNotAllowed):
        chat.do(b.start(chat, "tools", chat.calls[0].key))


def test_nothing_but_tools_starts_while_calls_are_open() -> None:
    chat = reach(X.R0, work=called("report"))
    for kind in ("generate", "compact", "context"):
        with pytest.raises(TransitionNotAllowed, match="are open"):
            chat.do(c.StartAttempt(fence=chat.fence(), kind=kind, decision=b.DECISION))


def test_provider_executed_calls_are_never_answered_by_us() -> None:
    chat = reach(X.R0, work=called("provider"))
    assert chat.calls == ()
    chat.do(c.Interrupt())
    chat.do(b.finish_interruption(chat))
    assert reasons(chat) == []


def test_a_providers_result_points_at_its_call_whatever_id_the_answer_gets() -> None:
    guess = call_key(message_id(0, 0), 0)
    result = ToolResultPart(call=guess, output=Content("found"), provider_executed=True)
    message = Message(role="assistant", parts=(b.CALLS["provider"], result))
    chat = reach(X.R0, work=generating)
    chat.do(b.commit(chat, message))
    item = chat.state.need_transcript("a test").messages[-1]
    assert item.message.parts[1] == ToolResultPart(
        call=call_key(item.id, 0), output=Content("found"), provider_executed=True
    )


def test_each_reason_of_the_table_is_one_of_the_closed_list_and_of_a_trigger_of_the_machine() -> None:
    assert set(REASONS.values()) <= set(Reason)
    assert {trigger for trigger, _ in REASONS} <= set(TRIGGERS)
    elsewhere = {Reason.INTERRUPTED_UNKNOWN, Reason.NOT_STARTED, Reason.WORKER_LOST}
    assert set(REASONS.values()) | elsewhere == set(Reason) == set(REASON_TEXTS)


SYNTHETIC: dict[str, tuple[X, c.AnyCommand, Reason]] = {
    "send in error": (X.E0, b.send(), Reason.NEW_MESSAGE),
    "send with interrupt in error": (X.E0, b.send_interrupting(), Reason.NEW_MESSAGE),
    "promotion in error": (X.E1, c.PromoteQueued(target=message_id(5, 0)), Reason.PROMOTION),
    "compact": (X.E0, c.Compact(), Reason.COMPACT),
    "clear": (X.E0, c.Clear(), Reason.CLEAR),
    "interrupt": (X.A0, c.Interrupt(), Reason.INTERRUPT),
    "send with interrupt": (X.A0, b.send_interrupting(), Reason.INTERRUPT),
    "promotion": (X.A1, c.PromoteQueued(target=message_id(5, 0)), Reason.PROMOTION),
}


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_synthetic_result_says_why(name: str) -> None:
    x, command, reason = SYNTHETIC[name]
    chat = reach(x, work=called("client"))
    chat.do(command)
    assert reasons(chat)[:1] == [reason]


def states(chat: Chat) -> list[tuple[bool, bool, bool]]:
    """Of each open call: recorded, started, possibly done."""
    return [(call.recorded, call.started, call.possibly_done) for call in chat.calls]


@pytest.mark.parametrize("how", ["takeover", "release", "fault", "failure"])
def test_a_call_whose_tool_can_be_asked_stays_open_when_its_holder_goes(how: str) -> None:
    chat = reach(X.R0, work=running_tools("asked", "report", "rerun"))
    lose: dict[str, c.AnyCommand] = {
        "takeover": b.acquire("w2", dead=True),
        "release": b.release(chat),
        "fault": c.Release(fence=chat.fence(), reason="fault"),
        "failure": b.fail(chat),
    }
    chat.do(lose[how])
    assert states(chat) == [(False, False, True), (True, True, False), (False, False, True)]
    if how == "failure":
        chat.do(c.Resume())
    if how != "takeover":
        chat.do(b.acquire("w3"))
    asked, _, safe = (call.key for call in chat.calls)
    chat.do(b.start(chat, "tools", asked, safe))
    assert states(chat)[0] == (False, True, True), "who runs it knows that it is to be asked first"
    chat.do(b.acquire("w4", dead=True))
    assert states(chat)[0] == (False, False, True), "and so does the next"


def test_a_call_that_was_never_started_is_not_possibly_done() -> None:
    chat = reach(X.R0, work=called("asked"))
    chat.do(b.acquire("w2", dead=True))
    assert states(chat) == [(False, False, False)]


@pytest.mark.parametrize("tool", ["asked", "rerun"])
def test_what_is_possibly_done_is_answered_as_unknown_whatever_ends_the_turn(tool: str) -> None:
    for command in (c.Interrupt(), b.send_interrupting()):
        chat = reach(X.R0, work=running_tools(tool))
        chat.do(b.release(chat))
        chat.do(command)
        assert reasons(chat) == [Reason.INTERRUPTED_UNKNOWN]
    chat = reach(X.R0, work=running_tools(tool))
    chat.do(b.fail(chat))
    chat.do(b.send())
    assert reasons(chat) == [Reason.INTERRUPTED_UNKNOWN]
    chat = reach(X.I0, work=running_tools(tool))
    chat.do(b.acquire("w2", dead=True))
    chat.do(b.finish_interruption(chat))
    assert reasons(chat) == [Reason.INTERRUPTED_UNKNOWN]


def test_a_runner_that_died_is_counted_by_the_log_like_a_takeover() -> None:
    chat = reach(X.R0, work=generating)
    for times in (1, 2):
        chat.do(c.Release(fence=chat.fence(), reason="fault"))
        assert chat.control.takeovers == times
        chat.do(b.acquire())
    chat.do(b.start(chat))
    chat.do(b.commit(chat, b.answer()))
    assert chat.control.takeovers == 0


def asked_about_turns() -> Chat:
    chat = reach(X.R0)
    about = Spending(spent=Spent(), allowed=Budget(turns=0), reached=("turns",))
    chat.do(replace(b.require(chat), budget=about))
    return chat


@pytest.mark.parametrize("raised", [None, Budget(), Budget(tokens=10), Budget(turns=0)], ids=str)
def test_to_go_on_with_the_limits_that_are_reached_is_refused(raised: Budget | None) -> None:
    chat = asked_about_turns()
    answer = c.SubmitResults(action=chat.control.version, budget=BudgetAnswer(end_turn=False, raised=raised))
    assert refused(chat, answer) == ("limits_reached", ("turns",))
    with pytest.raises(ToolResultsInvalid, match=r"asked again at once.*: turns: 0 spent, 0 allowed$"):
        chat.do(answer)


@pytest.mark.parametrize("raised", [Budget(turns=1), Budget(turns=NO_LIMIT)], ids=str)
def test_to_go_on_with_raised_limits_is_taken(raised: Budget) -> None:
    chat = asked_about_turns()
    chat.do(c.SubmitResults(action=chat.control.version, budget=BudgetAnswer(end_turn=False, raised=raised)))
    assert chat.control.budget == raised


def test_where_the_question_does_not_say_what_it_is_about_something_is_raised() -> None:
    """In a chat of an older level."""
    chat = reach(X.R0)
    chat.do(b.require(chat, budget=True))
    action = chat.control.action
    assert action is not None
    chat.control.action = replace(action, items=(ActionItem(kind="budget"),))
    for raised in (None, Budget()):
        answer = BudgetAnswer(end_turn=False, raised=raised)
        assert refused(chat, c.SubmitResults(action=action.id, budget=answer)) == ("limits_reached", ())
    chat.do(c.SubmitResults(action=action.id, budget=BudgetAnswer(end_turn=False, raised=Budget(tokens=1))))


def test_arguments_that_a_tool_does_not_take_are_told_after_all_else() -> None:
    chat = owing("approval")
    key = chat.calls[0].key
    approval = ApprovalAnswer(call=key, approved=True, arguments=Content('{"a": 1}'))
    unfit = (c.Unfit(call=key, why="$.a: no"),)
    command = c.SubmitResults(action=chat.control.version, approvals=(approval,), unfit=unfit)
    assert refused(chat, replace(command, broken=unfit)) == ("invalid_json", (key,))
    assert refused(chat, replace(command, results=given(b.a_call())))[0] == "unexpected"
    assert refused(chat, command) == ("invalid_arguments", (key,))
    with pytest.raises(ToolResultsInvalid, match=r"arguments that its tool does not take: .*: \$\.a: no$"):
        chat.do(command)
    assert chat.control.action is not None
