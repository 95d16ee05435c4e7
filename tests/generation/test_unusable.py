"""A policy that cannot be used fails the turn by rule D0, and says which of its causes it is."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from events.control import Control
from events.records import ModelPolicy, Policy
from events.state import ChatState
from generation.decide import decide_generation_action
from generation.decision import Fail

POLICY = Policy(agent="a", revision="1", model=ModelPolicy(provider="p", name="m"))
STATE = ChatState(control=Control(chat="c", version=3, status="running"), transcript=None)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (
            replace(POLICY, model=None),
            "Neither the chat nor its agent names a model. Give the agent one, or choose one for the chat.",
        ),
        (
            replace(POLICY, max_steps=0),
            "The agent's step limit (max_steps) is below 1, so nothing may be answered. Correct the agent's limits.",
        ),
    ],
    ids=["model", "steps"],
)
def test_it_says_what_is_wrong(policy: Policy, said: str) -> None:
    decided = decide_generation_action(STATE, policy)
    assert isinstance(decided, Fail)
    assert (decided.record.rule, decided.kind, decided.message) == ("D0", "config", said)
