"""What a chat has spent and may spend: its sums, against the limits of its agent and those that were raised. Pure."""

from __future__ import annotations

from typing import Final, get_args

from msgspec.structs import replace

from events.control import Control
from events.records import NO_LIMIT, Budget, LimitName, Policy, Spending, Spent

_LIMITS: Final[tuple[LimitName, ...]] = get_args(LimitName)


def spending(control: Control, policy: Policy | None) -> Spending:
    """Return what a chat has spent and may spend.

    Args:
        control: The chat's control.
        policy: The policy in force; None where none is recorded yet, and only raised limits are known.
    """
    agents = policy.budget if policy is not None else None
    budget = control.budget.over(agents) if control.budget is not None else agents or Budget()
    model = policy.model if policy is not None else None
    return _measured(spent(control), _allowed(budget), priced=model is None or model.has_price)


def spent(control: Control) -> Spent:
    """Return what a chat has spent. A turn that is owed is not over: a budget of n turns lets n begin."""
    usage = control.usage
    return Spent(
        tokens=usage.input + usage.output + usage.cache_read + usage.cache_write,
        cost_micros=control.cost_micros,
        turns=max(0, control.turns - control.owed),
    )


def with_raised(seen: Spending, raised: Budget, now: Spent) -> Spending:
    """Return what a budget question is about once its answer raises limits.

    Args:
        seen: What it was about when it was asked.
        raised: The limits that are raised; the others stay.
        now: What the chat has spent by now.
    """
    return _measured(now, _allowed(raised.over(seen.allowed)), priced=not seen.unpriced)


def standing(seen: Spending, name: LimitName) -> str:
    """Return in words how a limit that is reached stands."""
    if seen.unpriced and name == "cost_micros":
        return "the model has no price, so no number says when it is spent"
    return f"{getattr(seen.spent, name)} spent, {getattr(seen.allowed, name)} allowed"


def _allowed(budget: Budget) -> Budget:
    """Return limits without those that were lifted."""
    lifted = {name: None for name in _LIMITS if getattr(budget, name) == NO_LIMIT}
    return replace(budget, **lifted) if lifted else budget


def _measured(amounts: Spent, allowed: Budget, *, priced: bool) -> Spending:
    limits: dict[LimitName, int | None] = {name: getattr(allowed, name) for name in _LIMITS}
    reached = tuple(name for name, limit in limits.items() if limit is not None and getattr(amounts, name) >= limit)
    unpriced = not priced and allowed.cost_micros is not None
    if unpriced and "cost_micros" not in reached:
        reached = (*reached, "cost_micros")
    return Spending(spent=amounts, allowed=allowed, reached=reached, unpriced=unpriced)
