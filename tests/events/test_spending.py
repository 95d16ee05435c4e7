"""What a chat has spent against what it may spend: limits of the agent and raised ones, and which are reached."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from events.codec import decode
from events.control import Control
from events.errors import InvalidValue, MalformedEvent
from events.messages import Usage
from events.records import NO_LIMIT, Budget, ModelPolicy, Policy, Spending, Spent
from events.spending import spending, spent, standing, with_raised
from events.vocabulary import PolicyRecorded
from tests.events.logs import log_of

PRICED = ModelPolicy(provider="p", name="m", price_output=5)
BARE = ModelPolicy(provider="p", name="m")
CONTROL = Control(usage=Usage(input=1, output=2, cache_read=3, cache_write=4, reasoning=2), cost_micros=70, turns=3)


def policy(budget: Budget | None, model: ModelPolicy | None = PRICED) -> Policy:
    return Policy(agent="a", revision="1", model=model, budget=budget)


def test_what_is_spent() -> None:
    assert spent(CONTROL) == Spent(tokens=10, cost_micros=70, turns=3)
    # One that is owed is not over.
    assert spent(Control(turns=3, owed=True)) == Spent(turns=2)
    assert spent(Control(owed=True)) == Spent()


@pytest.mark.parametrize(
    ("raised", "agents", "allowed", "reached"),
    [
        (None, None, Budget(), ()),
        (None, Budget(tokens=11, cost_micros=71, turns=4), Budget(tokens=11, cost_micros=71, turns=4), ()),
        (None, Budget(tokens=10), Budget(tokens=10), ("tokens",)),
        (None, Budget(tokens=1, cost_micros=1, turns=1), Budget(tokens=1, cost_micros=1, turns=1), "all"),
        (Budget(turns=9), Budget(turns=1, tokens=1), Budget(turns=9, tokens=1), ("tokens",)),
        (Budget(turns=NO_LIMIT), Budget(turns=1), Budget(), ()),
        (Budget(turns=3), None, Budget(turns=3), ("turns",)),
    ],
)
def test_the_limits_in_force(
    raised: Budget | None, agents: Budget | None, allowed: Budget, reached: tuple[str, ...] | str
) -> None:
    control = Control(usage=CONTROL.usage, cost_micros=70, turns=3, budget=raised)
    seen = spending(control, policy(agents))
    assert (seen.spent, seen.allowed) == (spent(CONTROL), allowed)
    assert seen.reached == (("tokens", "cost_micros", "turns") if reached == "all" else reached)


def test_a_chat_whose_policy_is_not_recorded_yet_knows_raised_limits_alone() -> None:
    assert spending(Control(), None) == Spending(spent=Spent(), allowed=Budget())
    assert spending(Control(turns=1, budget=Budget(turns=1)), None).reached == ("turns",)


@pytest.mark.parametrize(
    ("budget", "model", "unpriced", "reached"),
    [
        (Budget(cost_micros=1000), BARE, True, ("cost_micros",)),
        (Budget(cost_micros=70), BARE, True, ("cost_micros",)),
        (Budget(cost_micros=1000, turns=3), BARE, True, ("turns", "cost_micros")),
        (Budget(cost_micros=1000), PRICED, False, ()),
        (Budget(cost_micros=1000), None, False, ()),
        (Budget(turns=9), BARE, False, ()),
    ],
)
def test_a_limit_of_cost_without_a_price_is_reached(
    budget: Budget, model: ModelPolicy | None, unpriced: bool, reached: tuple[str, ...]
) -> None:
    seen = spending(CONTROL, policy(budget, model))
    assert (seen.unpriced, seen.reached) == (unpriced, reached)


def test_what_an_answer_leaves() -> None:
    asked = Spending(spent=Spent(tokens=5, turns=1), allowed=Budget(tokens=9, turns=1), reached=("turns",))
    now = Spent(tokens=5, turns=1)
    assert with_raised(asked, Budget(), now).reached == ("turns",)
    assert with_raised(asked, Budget(turns=1, tokens=100), now).reached == ("turns",)
    assert with_raised(asked, Budget(turns=2), now) == Spending(spent=now, allowed=Budget(tokens=9, turns=2))
    assert with_raised(asked, Budget(turns=NO_LIMIT), now).allowed == Budget(tokens=9)
    # What was spent meanwhile, beside the turns, counts.
    assert with_raised(asked, Budget(turns=2), Spent(tokens=9, turns=1)).reached == ("tokens",)
    unpriced = Spending(spent=now, allowed=Budget(cost_micros=5), reached=("cost_micros",), unpriced=True)
    assert with_raised(unpriced, Budget(cost_micros=10**9), now).reached == ("cost_micros",)
    assert with_raised(unpriced, Budget(cost_micros=NO_LIMIT), now).reached == ()
    assert standing(asked, "turns") == "1 spent, 1 allowed"
    assert standing(unpriced, "cost_micros") == "the model has no price, so no number says when it is spent"


@pytest.mark.parametrize("name", Budget.__struct_fields__)
@pytest.mark.parametrize(
    ("value", "why"),
    [
        (1.5, "must be a whole number, not float"),
        ("5", "must be a whole number, not str"),
        (True, "must be a whole number, not bool"),
        (-1, "must be at least 0, not -1"),
        (2**63, "is too large"),
    ],
)
def test_a_limit_that_is_none_is_refused_where_it_is_said(name: str, value: Any, why: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        Budget(**{name: value})
    assert (caught.value.path, caught.value.why) == (f"$.{name}", why)


def test_a_limit_that_is_none_makes_its_event_malformed() -> None:
    stored = log_of([PolicyRecorded(digest="d", policy=policy(Budget(tokens=7)))]).events[0]
    changed = replace(stored, facts=stored.facts.replace(b'"tokens":7', b'"tokens":-7'))
    assert changed != stored
    with pytest.raises(MalformedEvent, match=r"version 1: .*at least 0, not -7"):
        decode(changed)
