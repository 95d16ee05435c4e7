"""Reasoning efforts: what a model is configured with, what a chat chose, and what the model is asked with."""

from __future__ import annotations

from typing import Any

import pytest

from generation.agents import Agent
from generation.efforts import EFFORTS, effective_effort, rank
from generation.errors import AgentDeclarationError
from generation.models import ModelConfig
from generation.policy import policy_of
from generation.providers.openai_efforts import effort_of


def config(**efforts: Any) -> ModelConfig:
    return ModelConfig(provider="openai", name="m", **efforts)


def test_the_scale() -> None:
    assert EFFORTS == ("none", "minimal", "low", "medium", "high", "xhigh", "max")
    assert [rank(effort) for effort in EFFORTS] == list(range(7))


@pytest.mark.parametrize(
    ("efforts", "why"),
    [
        ({"effort": "huge", "max_effort": "max"}, "effort must be one of none, minimal"),
        ({"effort": "low", "max_effort": "huge"}, "max_effort must be one of none, minimal"),
        ({"effort": "low"}, "come together: give max_effort"),
        ({"max_effort": "low"}, "come together: give effort"),
        ({"effort": "none"}, "come together: give max_effort"),
        ({"effort": "high", "max_effort": "medium"}, "effort high is more than max_effort medium"),
    ],
)
def test_a_configuration_has_both_and_the_default_is_not_above_the_most(efforts: dict[str, str], why: str) -> None:
    with pytest.raises(AgentDeclarationError, match=rf"model openai/m: .*{why}"):
        config(**efforts)


@pytest.mark.parametrize(("effort", "most"), [(a, b) for a in EFFORTS for b in EFFORTS if rank(a) <= rank(b)])
def test_what_a_configuration_may_say(effort: str, most: str) -> None:
    assert config(effort=effort, max_effort=most).policy().effort == effort


@pytest.mark.parametrize(
    ("chosen", "default", "most", "asked"),
    [
        (None, "medium", "high", "medium"),
        ("low", "medium", "high", "low"),
        ("none", "medium", "high", "none"),
        ("high", "medium", "high", "high"),
        ("xhigh", "medium", "high", "high"),
        ("max", "none", "none", "none"),
        ("unheard-of", "medium", "high", "medium"),
        ("max", None, None, None),
        (None, None, None, None),
    ],
)
def test_the_effort_that_a_model_is_asked_with(
    chosen: str | None, default: str | None, most: str | None, asked: str | None
) -> None:
    assert effective_effort(chosen, default, most) == asked
    made = Agent(name="a", model=config(effort=default, max_effort=most))
    policy = policy_of(made, effort=chosen).model
    assert policy is not None
    assert (policy.effort, policy.effort_max) == (asked, most)


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        # one word for each effort of the scale, from none to max
        ("gpt-6-astra", "low low low medium high xhigh max"),
        ("gpt-6.2-astra", "low low low medium high xhigh max"),
        ("gpt-6.2-astra-law", "low low low medium high xhigh max"),
        ("gpt-6-sol", "none minimal low medium high xhigh max"),
        ("gpt-5", "minimal minimal low medium high high high"),
        ("gpt-5-2025-08-07", "minimal minimal low medium high high high"),
        ("gpt-5-mini", "minimal minimal low medium high high high"),
        ("ft:gpt-5-nano:me", "minimal minimal low medium high high high"),
        ("gpt-5-pro", "high high high high high high high"),
        ("gpt-5-codex", "low low low medium high high high"),
        ("gpt-5.1", "none low low medium high high high"),
        ("gpt-5.1-codex-max", "low low low medium high xhigh xhigh"),
        ("gpt-5.2-2025-12-11", "none low low medium high xhigh xhigh"),
        ("gpt-5.2-pro", "none minimal low medium high xhigh max"),
        ("o3", "low low low medium high high high"),
        ("o4-mini-2025-04-16", "low low low medium high high high"),
        ("gpt-50", "none minimal low medium high xhigh max"),
        ("my-gpt-5", "none minimal low medium high xhigh max"),
    ],
)
def test_efforts_by_model(model: str, sent: str) -> None:
    assert [effort_of(model, effort) for effort in EFFORTS] == sent.split()
