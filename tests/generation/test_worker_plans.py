"""What a worker appends: acquire, settle and note over states that real commands made, one plan run each."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest

from chatstate import commands as c
from chatstate.classify import X, classify
from chatstate.errors import TransitionNotAllowed
from events.content import Absent, Content
from events.envelope import Recorded
from events.ids import ChatId, CommandId, WorkerId, message_id
from events.messages import Message
from events.parts import TextPart, ToolResultPart
from events.records import Actor, AttemptReport, Policy, ReleaseReason, RequestDigests
from events.vocabulary import ActionRequired, AttemptStarted, InterruptionFinished, Released, StepCommitted, TurnFailed
from generation.errors import ClassifiedError
from generation.outcomes import Answered, ContextCollected, Failed, ResultsCame, Stopped, Summarised, ToolsEnded
from generation.plans import Held, Hold, Outcome, Task, acquire, note, settle
from generation.policy import policy_digest
from generation.summary import source_of
from store.append import CommandIdentity, PlanRun
from store.heading import header_of
from store.loading import LoadedChat
from store.schema import READER_LEVEL
from tests.chatstate import build as b
from tests.chatstate.chat import SECOND, Chat
from tests.chatstate.reach import compacting, generating, reach, running_tools

EXCLUSIVE = [
    ("exclusive", "report"),
    ("exclusive", "approval", "client"),
    ("exclusive client", "report"),
    ("client", "exclusive client"),
    ("client", "exclusive approval"),
    ("exclusive approval", "rerun"),
    ("exclusive client", "exclusive client"),
]
HELD = Held(policy=b.POLICY, digest=policy_digest(b.POLICY))
ACTOR = Actor(kind="worker", id="w1")
DIGESTS = RequestDigests(system="s", tools="t", messages="m", options="o")


def held(policy: Policy) -> Held:
    return Held(policy=policy, digest=policy_digest(policy))


def hold(epoch: int = 1, *, policy: Held | None = HELD, stop: ReleaseReason | None = None, lost: bool = False) -> Hold:
    return Hold(
        worker=WorkerId("w1"),
        actor=ACTOR,
        epoch=epoch,
        policy_for=lambda _control, _level: policy,
        stop=lambda: stop,
        lost=lambda: lost,
    )


def run_of(chat: Chat, *, alive: bool = True) -> PlanRun:
    header = header_of(chat.state, bytes(32), chat=ChatId("chat"), title=None, foreign=False, reader_level=READER_LEVEL)
    loaded = LoadedChat(state=chat.state, header=header, now=chat.now, holder_alive=alive)
    return PlanRun(loaded, chat.now + SECOND, CommandIdentity(command=CommandId("c"), actor=ACTOR))


def task_of(chat: Chat) -> Task:
    running = chat.control.running
    assert running is not None
    return Task(history_version=chat.control.history_version, attempt=running.attempt)


def under_policy(chat: Chat) -> Chat:
    """The policy in force is recorded, so that plans need not."""
    chat.do(b.record_policy(chat, HELD.digest))
    return chat


def working(work: Any, x: X = X.R0, queued: int = 1) -> Chat:
    """A chat whose holder recorded the policy and then did ``work``."""
    return reach(x, queued, lambda chat: work(under_policy(chat)))


def types(run: PlanRun) -> list[str]:
    return [recorded.event.type for recorded in run.recorded]


def last(run: PlanRun) -> Recorded:
    return run.recorded[-1]


def answered(*calls: str, interrupted: bool = False, empty: bool = False) -> Answered:
    parts = () if empty else b.answer(*calls).parts
    return Answered(parts=lambda _: parts, step=b.STEP, request=DIGESTS, interrupted=interrupted)


def failed(max_attempts: int = 5, *, retryable: bool = True) -> Failed:
    error = ClassifiedError(kind="overloaded", message="Busy.", retryable=retryable)
    return Failed(error=error, max_attempts=max_attempts, report=AttemptReport(step=b.STEP))


def came(chat: Chat, place: int = 0) -> ToolResultPart:
    return ToolResultPart(call=chat.calls[place].key, output=Content("42"))


def test_acquire_record_policy_and_the_first_start_are_one_plan() -> None:
    run = run_of(reach(X.P0))
    acquire(WorkerId("w1"), "0.1.0", hold)(run)
    assert types(run) == ["acquired", "policy_recorded", "attempt_started"]
    assert [recorded.envelope.index for recorded in run.recorded] == [0, 1, 2]
    assert run.state.control.holder == "w1"


def test_a_recorded_policy_is_recorded_once() -> None:
    chat = working(generating)
    chat.do(b.release(chat))
    run = run_of(chat)
    acquire(WorkerId("w1"), "0.1.0", hold)(run)
    assert types(run) == ["acquired", "attempt_started"]


def test_nothing_is_acquired_under_a_lease_that_is_lost() -> None:
    run = run_of(reach(X.P0))
    acquire(WorkerId("w1"), "0.1.0", lambda epoch: hold(epoch, lost=True))(run)
    assert types(run) == []


def test_an_agent_that_is_not_here_is_let_go() -> None:
    run = run_of(reach(X.P0))
    acquire(WorkerId("w1"), "0.1.0", lambda epoch: hold(epoch, policy=None))(run)
    assert types(run) == ["acquired", "released"]
    event = last(run).event
    assert isinstance(event, Released)
    assert event.reason == "agent_not_here"


def test_a_live_holders_chat_is_not_taken_and_a_dead_ones_is() -> None:
    chat = working(generating)
    with pytest.raises(TransitionNotAllowed):
        acquire(WorkerId("w1"), "0.1.0", hold)(run_of(chat))
    run = run_of(chat, alive=False)
    acquire(WorkerId("w1"), "0.1.0", hold)(run)
    assert types(run) == ["acquired", "attempt_started"]
    assert (run.state.control.epoch, run.state.control.takeovers) == (2, 1)


@pytest.mark.parametrize(("x", "then"), [(X.R0, "turn_failed"), (X.I0, "interruption_finished")])
def test_the_third_takeover(x: X, then: str) -> None:
    chat = working(generating, x)
    for _ in range(2):
        chat.do(b.acquire("w0", dead=True))
    run = run_of(chat, alive=False)
    acquire(WorkerId("w1"), "0.1.0", hold)(run)
    assert types(run) == ["acquired", then]
    event = last(run).event
    assert not isinstance(event, TurnFailed) or event.error.kind == "worker_lost"


def summarised(chat: Chat, *, erased: bool = False, error: ClassifiedError | None = None) -> Summarised:
    """Return a summary; ``erased``: not as much of what it was made of was erased as is now."""
    read = source_of(chat.state)
    return Summarised(
        source=msgspec.structs.replace(read, hint=Content(Absent.ERASED, 5)) if erased else read,
        manual=False,
        summary=Content("They met."),
        details=Content("{}"),
        context_tokens=9,
        report=AttemptReport(step=b.STEP),
        error=error,
    )


SETTLED: dict[str, tuple[Any, X, Any, list[str], X]] = {
    "an answer": (generating, X.R0, lambda _: answered(), ["step_committed", "turn_finished"], X.W),
    "an answer, with a queue": (
        generating,
        X.R1,
        lambda _: answered(),
        ["step_committed", "turn_finished", "attempt_started"],
        X.R0,
    ),
    "an answer with a call": (
        generating,
        X.R0,
        lambda _: answered("rerun"),
        ["step_committed", "attempt_started"],
        X.R0,
    ),
    "an answer with a client's call": (
        generating,
        X.R0,
        lambda _: answered("client"),
        ["step_committed", "action_required"],
        X.A0,
    ),
    "an empty answer": (generating, X.R0, lambda _: answered(empty=True), ["turn_finished"], X.W),
    "a failure": (generating, X.R0, lambda _: failed(), ["retry_scheduled"], X.P0),
    "a last failure": (generating, X.R0, lambda _: failed(1), ["turn_failed"], X.E0),
    "a failure for good": (generating, X.R1, lambda _: failed(retryable=False), ["turn_failed"], X.E1),
    "a batch": (
        running_tools("rerun"),
        X.R0,
        lambda chat: ToolsEnded(results=(came(chat),)),
        ["tool_result_recorded", "step_committed", "attempt_started"],
        X.R0,
    ),
    "a summary": (
        compacting,
        X.R0,
        summarised,
        ["compaction_committed", "attempt_started"],
        X.R0,
    ),
    "a summary of what is erased by now": (
        compacting,
        X.R0,
        partial(summarised, erased=True),
        ["attempt_started"],
        X.R0,
    ),
    "a summary of what is erased by now, and a hook that failed after it": (
        compacting,
        X.R0,
        partial(summarised, erased=True, error=ClassifiedError(kind="generic", message="No.")),
        ["turn_failed"],
        X.E0,
    ),
    "an interrupted answer": (
        generating,
        X.I0,
        lambda _: answered(interrupted=True),
        ["interruption_finished"],
        X.W,
    ),
    "an answer that an interrupt overtook": (
        generating,
        X.I1,
        lambda _: answered("report"),
        ["interruption_finished", "attempt_started"],
        X.R0,
    ),
    "a result that an interrupt overtook": (
        running_tools("report"),
        X.I0,
        lambda chat: ToolsEnded(results=(came(chat),)),
        ["tool_result_recorded", "interruption_finished"],
        X.W,
    ),
    "a failure that an interrupt overtook": (generating, X.I0, lambda _: failed(), ["interruption_finished"], X.W),
    "nothing, interrupted": (generating, X.I0, lambda _: Stopped(), ["interruption_finished"], X.W),
    "nothing": (generating, X.R0, lambda _: Stopped(), ["attempt_started"], X.R0),
}


@pytest.mark.parametrize("name", SETTLED)
def test_an_outcome_its_decision_and_the_next_start_are_one_plan(name: str) -> None:
    work, x, outcome, expected, after = SETTLED[name]
    chat = working(work, x)
    run = run_of(chat)
    settle(hold(), task_of(chat), outcome(chat))(run)
    assert types(run) == expected
    assert classify(run.state.control) is after
    assert all(recorded.envelope.actor == ACTOR for recorded in run.recorded)


def test_a_context_is_persisted_and_the_chat_goes_on() -> None:
    chat = working(lambda chat: chat.do(b.start(chat, "context")))
    run = run_of(chat)
    settle(hold(), task_of(chat), ContextCollected(message=b.context(chat).message))(run)
    assert types(run) == ["context_persisted", "attempt_started"]


@pytest.mark.parametrize("reason", ["shutdown", "drain"])
def test_a_worker_that_stops_releases_with_what_the_attempt_cost(reason: ReleaseReason) -> None:
    chat = working(generating)
    run = run_of(chat)
    report = AttemptReport(step=b.STEP)
    settle(hold(stop=reason), task_of(chat), Stopped(report=report))(run)
    event = last(run).event
    assert isinstance(event, Released)
    assert (event.reason, event.report) == (reason, report)


def test_a_worker_that_stops_finishes_an_interruption() -> None:
    chat = working(generating, X.I0)
    run = run_of(chat)
    came = Message(role="assistant", parts=(TextPart(text=Content("Half")),), step=b.STEP, interrupted=True)
    report = AttemptReport(step=b.STEP, request=DIGESTS)
    settle(hold(stop="shutdown"), task_of(chat), Stopped(report=report, message=came))(run)
    assert types(run) == ["interruption_finished"]
    event = last(run).event
    assert isinstance(event, InterruptionFinished)
    assert event.added == (came,)
    assert event.report == AttemptReport(request=report.request)


@pytest.mark.parametrize("outcome", [answered(), failed(), Stopped(), None], ids=["answer", "error", "none", "nothing"])
def test_a_stale_outcome_is_dropped_and_what_is_under_way_stays(outcome: Outcome | None) -> None:
    chat = working(generating)
    stale = task_of(chat)
    chat.do(c.EditMessage(target=message_id(1, 1), message=b.user("Hi")))
    generating(chat)
    run = run_of(chat)
    settle(hold(), stale, outcome)(run)
    assert run.recorded == []


def test_after_an_edit_the_holder_starts_over() -> None:
    chat = working(generating)
    stale = task_of(chat)
    chat.do(c.EditMessage(target=message_id(1, 1), message=b.user("Hi")))
    run = run_of(chat)
    settle(hold(), stale, answered())(run)
    assert types(run) == ["attempt_started"]


@pytest.mark.parametrize("given", [hold(epoch=2), hold(lost=True)], ids=["another epoch", "a lost lease"])
def test_who_does_not_hold_the_chat_writes_nothing(given: Hold) -> None:
    chat = working(running_tools("report"))
    for plan in (
        settle(given, task_of(chat), answered()),
        note(given, task_of(chat), ResultsCame(results=(came(chat),))),
    ):
        run = run_of(chat)
        plan(run)
        assert run.recorded == []


@pytest.mark.parametrize("x", [X.R0, X.I0])
def test_a_result_of_a_batch_that_goes_on_is_noted_alone(x: X) -> None:
    chat = working(running_tools("report", "rerun"), x)
    run = run_of(chat)
    note(hold(), task_of(chat), ResultsCame(results=(came(chat),)))(run)
    assert types(run) == ["tool_result_recorded"]
    assert classify(run.state.control) is x


def test_a_new_policy_is_recorded_before_the_decision_that_it_changes() -> None:
    chat = working(generating)
    strict = held(Policy(agent="helper", revision="2", model=None))
    run = run_of(chat)
    settle(hold(policy=strict), task_of(chat), answered("rerun"))(run)
    assert types(run) == ["step_committed", "policy_recorded", "turn_failed"]
    event = last(run).event
    assert isinstance(event, TurnFailed)
    assert event.decision is not None
    assert (event.decision.rule, event.decision.policy) == ("D0", strict.digest)


@pytest.mark.parametrize("sorts", EXCLUSIVE, ids=" ".join)
def test_an_exclusive_call_draws_all_others_into_the_batch(sorts: tuple[str, ...]) -> None:
    chat = working(generating)
    run = run_of(chat)
    settle(hold(), task_of(chat), answered(*sorts))(run)
    assert types(run) == ["step_committed", "attempt_started"]
    calls = run.state.control.indexes.open_calls
    assert [call.name for call in calls if call.started] == [call.name for call in calls]
    event = last(run).event
    assert isinstance(event, AttemptStarted)
    assert event.decision.facts["refused"] == len(sorts)


@pytest.mark.parametrize("sort", ["exclusive client", "exclusive approval"])
def test_a_client_is_asked_for_an_exclusive_call_that_is_alone(sort: str) -> None:
    chat = working(generating)
    run = run_of(chat)
    settle(hold(), task_of(chat), answered(sort))(run)
    assert types(run) == ["step_committed", "action_required"]


def test_a_partial_answer_is_kept_as_such_and_its_calls_are_closed() -> None:
    chat = working(generating, X.I0)
    run = run_of(chat)
    settle(hold(), task_of(chat), answered("report", interrupted=True))(run)
    event = last(run).event
    assert isinstance(event, InterruptionFinished)
    message = event.added[0]
    assert message.interrupted
    assert run.state.control.indexes.open_calls == ()


def test_an_action_has_the_policys_deadline() -> None:
    chat = working(generating)
    run = run_of(chat)
    settle(hold(), task_of(chat), answered("client"))(run)
    assert isinstance(run.recorded[0].event, StepCommitted)
    event = last(run).event
    assert isinstance(event, ActionRequired)
    assert event.deadline == last(run).envelope.recorded_at + b.POLICY.action_timeout_us
    assert event.on_expiry == b.POLICY.action_on_expiry
