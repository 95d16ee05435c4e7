"""What a worker appends: the outcome of an effect, the next decision, and the start of the next effect, in one plan.

Pure.

A plan may meet a chat that other commands have changed meanwhile. Then the outcome counts only under the fence it was
made for (epoch, history version, attempt); an interruption keeps what it can of it; and what comes next is decided on
what is there now.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias, assert_never

from msgspec import Struct

from chatstate import commands as c
from chatstate.classify import ARCHIVED, classify
from chatstate.errors import TransitionNotAllowed
from chatstate.handlers.worker import TAKEOVER_LIMIT
from events.content import Content
from events.control import Control
from events.ids import WorkerId
from events.levels import NEWEST, known_at, readable_at
from events.records import Actor, ErrorInfo, Policy, ReleaseReason
from events.spending import spending
from events.vocabulary import ContextMarked, SideCallRecorded, TurnLabelChanged
from generation.budget import result_budget
from generation.decide import decide_generation_action
from generation.decision import (
    AskClient,
    CollectContext,
    Compact,
    Fail,
    Finish,
    Generate,
    GenerationDecision,
    RunTools,
)
from generation.due import decision_due
from generation.partials import Leftover
from store.append import Plan, PlanRun

LeftBy: TypeAlias = Callable[[Control], Leftover]
"""Says what the attempt under way left whose holder or runner is gone."""

_BESIDE: Final = (ContextMarked, SideCallRecorded, TurnLabelChanged)
"""Events that are written beside the turns alone."""

_NOTHING: Final = Leftover()


class Held(Struct, frozen=True, kw_only=True):
    """A recorded policy with its digest."""

    policy: Policy
    digest: str


class Outcome(Protocol):
    """What an effect came to."""

    def record(self, run: PlanRun, fence: c.Fence) -> None:
        """Record it in a running chat."""
        ...

    def keep(self, run: PlanRun, fence: c.Fence) -> None:
        """Finish the interruption with what is to be kept of it."""
        ...


class Hold(Struct, frozen=True, kw_only=True):
    """A worker's hold of a chat, and how it decides.

    ``actor`` is the worker as the actor of the events it appends. ``stop`` is asked in each plan: a reason to let the
    chat go instead of starting something new. ``lost`` is asked too: nothing is written any more under a lost lease.
    ``ready`` is asked before a chat is acquired: False leaves it alone for now.
    """

    worker: WorkerId
    actor: Actor
    epoch: int
    policy_for: Callable[[Control, int], Held | None]
    stop: Callable[[], ReleaseReason | None]
    lost: Callable[[], bool] = lambda: False
    ready: Callable[[Control], bool] = lambda _: True

    def holds(self, control: Control) -> bool:
        """Whether the chat is still this worker's under this epoch."""
        if self.lost():
            return False
        return control.status == "running" and control.holder == self.worker and control.epoch == self.epoch


class Task(Struct, frozen=True, kw_only=True):
    """The effect under way: the history and attempt that its outcome is fenced by."""

    history_version: int
    attempt: int

    def current(self, control: Control) -> bool:
        """Whether the chat still waits for this outcome."""
        running = control.running
        return running is not None and (control.history_version, running.attempt) == (
            self.history_version,
            self.attempt,
        )


def settle(hold: Hold, task: Task | None, outcome: Outcome | None) -> Plan:
    """Return the plan that records the outcome of an effect that has ended, decides, and starts what comes next."""

    def plan(run: PlanRun) -> None:
        if not hold.holds(run.state.control):
            return
        if task is not None and task.current(run.state.control):
            run.unflushed = not getattr(outcome, "flushed", True)
        if _record(run, task, outcome):
            advance(run, hold, ended=task)
        else:
            # What an attempt cost is told once: by its own outcome, or by the next event of this worker that can.
            advance(run, hold, ended=task, left=Leftover(report=getattr(outcome, "report", None)))

    return plan


def note(hold: Hold, task: Task, outcome: Outcome) -> Plan:
    """Return the plan that records something of an effect that goes on."""

    def plan(run: PlanRun) -> None:
        if hold.holds(run.state.control):
            _record(run, task, outcome)

    return plan


def _record(run: PlanRun, task: Task | None, outcome: Outcome | None) -> bool:
    """Record an outcome that the chat still waits for; returns whether that gave an event."""
    control, before = run.state.control, len(run.recorded)
    if task is None or outcome is None or not task.current(control):
        return False
    (outcome.keep if control.interrupting else outcome.record)(run, _fence(control))
    return len(run.recorded) > before


def advance(run: PlanRun, hold: Hold, *, ended: Task | None = None, left: Leftover = _NOTHING) -> None:
    """Finish an interruption, or decide and carry the decision out, until an effect is under way or the chat is let go.

    Args:
        run: The plan's run.
        hold: The worker's hold.
        ended: The attempt whose effect has ended; where nothing of it was recorded it does not count as under way.
        left: What that attempt cost, where nothing else of it was recorded (an edit cut it, the worker stops), or what
            the attempt of a holder that is gone left: the answer is kept where the turn ends at once.
    """
    while hold.holds(run.state.control):
        control = run.state.control
        if control.interrupting:
            finish = c.FinishInterruption(fence=_fence(control), message=left.message, report=left.beside)
            run.do(finish, hold.actor)
        elif not decision_due(control, ended=ended is not None and ended.current(control)):
            return
        else:
            fence = _fence(control)
            held = _may_start(run, hold, fence, left)
            if held is not None:
                decision = decide_generation_action(run.state, held.policy)
                if run.level < NEWEST:  # an event that an older release cannot read would keep it from the chat
                    decision = readable_at(decision, run.level)
                run.do(_command(control, decision, fence, held, left), hold.actor)
        ended, left = None, _NOTHING


def _may_start(run: PlanRun, hold: Hold, fence: c.Fence, left: Leftover) -> Held | None:
    """Let the chat go or fail it where it must not go on; else see that its policy is recorded, and return it."""
    control = run.state.control
    held = hold.policy_for(control, run.level)
    reason = hold.stop() if held is not None else "agent_not_here"
    if reason is not None or held is None:
        run.do(c.Release(fence=fence, reason=reason or "agent_not_here", report=left.report), hold.actor)
        return None
    if control.takeovers >= TAKEOVER_LIMIT:
        run.do(_lost(fence, left), hold.actor)
        return None
    if control.policy != held.digest:
        run.do(c.RecordPolicy(fence=fence, policy=held.policy, digest=held.digest), hold.actor)
    return held


def _command(
    control: Control, decision: GenerationDecision, fence: c.Fence, held: Held, left: Leftover
) -> c.AnyCommand:
    record, report = decision.record, left.report
    match decision:
        case RunTools(calls=calls):
            return c.StartAttempt(fence=fence, kind="tools", decision=record, calls=calls, cut=report)
        case Generate():
            return c.StartAttempt(fence=fence, kind="generate", decision=record, cut=report)
        case Compact():
            return c.StartAttempt(fence=fence, kind="compact", decision=record, cut=report)
        case CollectContext():
            return c.StartAttempt(fence=fence, kind="context", decision=record, cut=report)
        case AskClient(budget=budget):
            policy = held.policy
            return c.RequireAction(
                fence=fence,
                decision=record,
                timeout_us=policy.action_timeout_us,
                on_expiry=policy.action_on_expiry,
                budget=spending(control, policy) if budget else None,
                result_budget=result_budget(policy.model.context_limit if policy.model is not None else None),
            )
        case Finish(cause=cause):
            return c.FinishTurn(fence=fence, cause=cause, decision=record, report=report)
        case Fail(kind=kind, message=message):
            error = ErrorInfo(kind=kind, message=Content(message))
            return c.FailTurn(fence=fence, error=error, decision=record, message=left.message, report=left.beside)
        case _:
            assert_never(decision)


def acquire(worker: WorkerId, release: str, hold_at: Callable[[int], Hold], leftovers: LeftBy | None = None) -> Plan:
    """Return the plan that holds a chat, records the policy and starts the first effect, in one append.

    See :func:`take` for its arguments.
    """

    def plan(run: PlanRun) -> None:
        take(run, worker, release, hold_at, leftovers)

    return plan


def take(
    run: PlanRun, worker: WorkerId, release: str, hold_at: Callable[[int], Hold], leftovers: LeftBy | None = None
) -> None:
    """Acquire within a plan, and go on as ``advance`` does; nothing where the lease is lost.

    Args:
        run: The plan's run.
        worker: Who takes the chat.
        release: The worker's release.
        hold_at: The worker's hold at an epoch.
        leftovers: Asked what a dead holder's attempt left; None where the chat is known to have no holder.

    Raises:
        TransitionNotAllowed: It may not be acquired, by the machine or by this worker for now.
    """
    hold = hold_at(run.state.control.epoch + 1)
    if hold.lost():
        # The plan may run again long after it was made: a chat held under a lease that is lost helps nobody.
        return
    if not hold.ready(run.state.control):
        reason = "it was lost before and is left alone for a while"
        raise TransitionNotAllowed(c.Acquire.trigger, classify(run.state.control), reason)
    left = leftovers(run.state.control) if leftovers is not None and run.lease_dead else _NOTHING
    run.do(c.Acquire(worker=worker, release=release, lease_dead=run.lease_dead), hold.actor)
    advance(run, hold, left=left)


def let_go(run: PlanRun, hold: Hold, leftovers: LeftBy, *, died: bool) -> None:
    """Let go of a chat that is held and has no runner, but for one whose interruption was all that was to be done.

    Its interruption is finished here, with what its attempt left; where a queue goes on then and no runner died, it is
    held still, and is to be run.

    Args:
        run: The plan's run.
        hold: The worker's hold.
        leftovers: Asked what the attempt of the runner that died left.
        died: Whether its runner died: the death counts like a takeover, so that the third of them on one history fails
            the turn, whichever workers they happen to.
    """
    control = run.state.control
    if control.interrupting:
        left = leftovers(control)
        finish = c.FinishInterruption(fence=_fence(control), message=left.message, report=left.beside)
        run.do(finish, hold.actor)
        if not died:
            return
        died = run.state.control.history_version == control.history_version
        control = run.state.control
    if not hold.holds(control):
        return
    left = leftovers(control)
    if died and control.takeovers + 1 >= TAKEOVER_LIMIT:
        run.do(_lost(_fence(control), left), hold.actor)
    else:
        reason: ReleaseReason = "fault" if died else "capacity"
        run.do(c.Release(fence=c.Fence(epoch=control.epoch), reason=reason, report=left.report), hold.actor)


def _lost(fence: c.Fence, left: Leftover) -> c.FailTurn:
    return c.FailTurn(fence=fence, error=worker_lost(), message=left.message, report=left.beside)


def worker_lost() -> ErrorInfo:
    """Return the error of a turn that lost its worker too often."""
    text = "The worker was lost several times while it worked on this turn. Resume to try again."
    return ErrorInfo(kind="worker_lost", message=Content(text), retryable=False)


def _fence(control: Control) -> c.Fence:
    return c.Fence(
        epoch=control.epoch,
        history_version=control.history_version,
        attempt=control.running.attempt if control.running is not None else None,
    )


def may_write_beside(run: PlanRun) -> bool:
    """Whether a chat takes what is found out beside its turns: marks of its context, titles, labels, and their costs.

    It is this store's, not put away, and all that may run it know such events.
    """
    return takes_beside(run.state.control, foreign=run.foreign, level=run.level)


def takes_beside(control: Control, *, foreign: bool, level: int) -> bool:
    """Return what ``may_write_beside`` does, of a chat that is at hand."""
    return not foreign and all(known_at(level, event) for event in _BESIDE) and classify(control) not in ARCHIVED
