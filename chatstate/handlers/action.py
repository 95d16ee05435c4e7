"""Handlers of what the client owes: require action, submit results, expiry."""

from __future__ import annotations

from collections import Counter
from typing import NoReturn, TypeAlias, TypeVar

from msgspec.structs import replace

from chatstate import commands as c
from chatstate.cancellations import REJECTED
from chatstate.errors import ActionStale, ToolResultsInvalid
from chatstate.handlers.context import Context
from events import vocabulary as v
from events.content import Content
from events.cutting import fit
from events.ids import CallKey
from events.messages import Message
from events.parts import OnExpiry, ToolResultPart
from events.records import ActionItem, ActionKind, Budget, BudgetAnswer, OpenAction
from events.spending import spent, standing, with_raised

_T = TypeVar("_T")
_Item: TypeAlias = tuple[ActionKind, CallKey | None]


def require_action(ctx: Context, command: c.RequireAction) -> v.ActionRequired:
    """Open all actions of the moment under one id and one deadline, the earliest that any of them has.

    The turn ends when it passes if one of them says so.
    """
    ctx.check_fence(command.fence)
    ctx.check_none_running()
    if any(call.recorded or call.may_run for call in ctx.control.indexes.open_calls):
        ctx.not_allowed("calls that run here are open, or their results are not committed")
    calls = ctx.control.indexes.open_calls
    items = [ActionItem(kind="client_call" if call.runner == "client" else "approval", call=call.key) for call in calls]
    # What each of them says of itself; the command speaks for those that say nothing.
    timeouts = [_or(call.action_timeout_us, command.timeout_us) for call in calls]
    endings = [_or(call.action_on_expiry, command.on_expiry) for call in calls]
    if command.budget is not None:
        items.append(ActionItem(kind="budget", spending=command.budget))
        timeouts.append(command.timeout_us)
        endings.append("end_turn")
    if not items:
        ctx.not_allowed("the client owes nothing")
    return v.ActionRequired(
        decision=command.decision,
        deadline=ctx.now + min(timeouts),
        on_expiry="end_turn" if "end_turn" in endings else "go_on",
        items=tuple(items),
        result_budget=command.result_budget,
    )


def submit_results(ctx: Context, command: c.SubmitResults) -> v.ResultsSubmitted:
    """Take the client's answers, which must match the open actions exactly. A long result is cut as the action says."""
    action = _open_action(ctx, command.action)
    given = [r.call for r in command.results] + [a.call for a in command.approvals]
    if not given and command.budget is None:
        _invalid(ctx, "none_given")
    doubled = tuple(call for call, times in Counter(given).items() if times > 1)
    if doubled:
        _invalid(ctx, "duplicate", doubled)
    broken = [(r.call, r.problem) for r in command.results if r.problem is not None]
    broken += [(each.call, each.why) for each in command.broken]
    if broken:
        _invalid(ctx, "invalid_json", *zip(*broken, strict=True))
    owed: set[_Item] = {(item.kind, item.call) for item in action.items}
    answered: set[_Item] = {("client_call", r.call) for r in command.results}
    answered |= {("approval", a.call) for a in command.approvals}
    if command.budget is not None:
        answered.add(("budget", None))
    if owed - answered:
        _invalid(ctx, "missing", _names(owed - answered))
    if answered - owed:
        _invalid(ctx, "unexpected", _names(answered - owed))
    if command.unfit:
        _invalid(ctx, "invalid_arguments", *zip(*((each.call, each.why) for each in command.unfit), strict=True))
    if command.budget is not None:
        _check_goes_on(ctx, action, command.budget)
    return v.ResultsSubmitted(
        action=command.action,
        added=_result_messages(ctx, command, action.result_budget),
        approvals=command.approvals,
        budget=_raised(ctx, command.budget),
    )


def _check_goes_on(ctx: Context, action: OpenAction, answer: BudgetAnswer) -> None:
    """Refuse to go on where the same limits would ask again at once."""
    if answer.end_turn:
        return
    raised = answer.raised or Budget()
    if action.spending is None:  # of a chat of an older level: which limits are reached is not recorded
        if raised == Budget():
            _invalid(ctx, "limits_reached")
        return
    seen = with_raised(action.spending, raised, spent(ctx.control))
    if seen.reached:
        _invalid(ctx, "limits_reached", seen.reached, tuple(standing(seen, name) for name in seen.reached))


def _raised(ctx: Context, answer: BudgetAnswer | None) -> BudgetAnswer | None:
    """Return the answer to a budget question with the limits that earlier answers raised and this one leaves alone."""
    if answer is None or answer.raised is None:
        return answer
    return replace(answer, raised=answer.raised.over(ctx.control.budget))


def expire_action(ctx: Context, command: c.ExpireAction) -> v.ActionExpired:
    """Answer the open actions as timed out; the model goes on."""
    _check_expiry(ctx, command.action, "go_on")
    return v.ActionExpired(action=command.action, answers=ctx.answers())


def expire_action_end_turn(ctx: Context, command: c.ExpireActionEndTurn) -> v.ActionExpiredTurnEnded:
    """Answer the open actions as timed out and end the turn."""
    _check_expiry(ctx, command.action, "end_turn")
    return v.ActionExpiredTurnEnded(action=command.action, answers=ctx.answers(), promoted=ctx.head)


def _or(own: _T | None, others: _T) -> _T:
    return others if own is None else own


def _open_action(ctx: Context, identity: int) -> OpenAction:
    action = ctx.control.action
    if action is None or action.id != identity:
        ctx.refuse(ActionStale, f"action {identity} is not open; open now: {action.id if action else 'none'}")
    return action


def _check_expiry(ctx: Context, identity: int, on_expiry: OnExpiry) -> None:
    action = _open_action(ctx, identity)
    if action.on_expiry != on_expiry:
        ctx.not_allowed(f"the action says {action.on_expiry} on expiry")
    if ctx.now < action.deadline:
        ctx.not_allowed("the deadline has not passed")


def _cut(output: Content, budget: int | None) -> Content:
    if budget is None or output.size <= budget or not output.available:
        return output
    return Content(fit(output.value, budget))


def _result_messages(ctx: Context, command: c.SubmitResults, budget: int | None) -> tuple[Message, ...]:
    by_call = {
        r.call: ToolResultPart(
            call=r.call,
            is_error=r.is_error,
            output=_cut(r.output, budget),
            ended_at=ctx.now,
            media=r.media,
            attachments=r.attachments,
        )
        for r in command.results
    }
    for approval in command.approvals:
        if not approval.approved:
            by_call[approval.call] = ToolResultPart(call=approval.call, is_error=True, output=REJECTED)
    order = [call.key for call in ctx.control.indexes.open_calls if call.key in by_call]
    return tuple(Message(role="tool", parts=(by_call[key],)) for key in order)


def _names(items: set[_Item]) -> tuple[str, ...]:
    return tuple(sorted(call or kind for kind, call in items))


def _invalid(ctx: Context, kind: str, ids: tuple[str, ...] = (), why: tuple[str, ...] = ()) -> NoReturn:
    raise ToolResultsInvalid(ctx.trigger, ctx.x, kind, ids, why)
