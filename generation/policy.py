"""The policy: all that a decision depends on beside history, as it is recorded before the decision. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from events.messages import Step, Usage
from events.records import ModelPolicy, Policy, ToolPolicy
from generation.digest import digest_of

if TYPE_CHECKING:  # declarations are read here and never made: this module stays pure, they need not be
    from generation.agents import Agent
    from generation.tools.contract import Tool

_MICRO: Final = 1_000_000
_MAX_COST: Final = 2**50  # what a provider counts must not take the sum over a chat's calls out of 64 bits


def policy_of(
    agent: Agent,
    *,
    model: str | None = None,
    effort: str | None = None,
    active_tools: Sequence[str] | None = None,
    retry_unit: float | None = None,
) -> Policy:
    """Return the policy under which an agent's decisions for a chat are taken.

    Args:
        agent: The chat's agent.
        model: The chat's choice of model, ``provider/name``; None for the agent's.
        effort: The chat's choice of reasoning effort; None for the model configuration's. It counts as far as that
            configuration lets chats choose.
        active_tools: The chat's choice of tools (``Agent.offered``).
        retry_unit: The worker's setting: seconds that stand for one second of the table of waits; None to leave it out.

    Raises:
        UnknownModel: The choice has not the form ``provider/name``.
    """
    config = agent.find_model(model)
    limits = agent.limits
    fallback, compaction = limits.fallback_context_limit, agent.compaction
    return Policy(
        agent=agent.name,
        revision=agent.revision,
        model=None if config is None else config.policy(effort, fallback_limit=fallback),
        compaction_model=None if compaction is None else compaction.policy(fallback_limit=fallback),
        max_steps=limits.max_steps,
        max_model_attempts=limits.max_model_attempts,
        tools=tuple(tool_policy(tool) for tool in agent.offered(active_tools)),
        system=system_of(agent),
        context_source=None if agent.context is None else agent.context.name,
        context_revision=None if agent.context is None else agent.context.revision,
        action_timeout_us=microseconds(limits.action_timeout),
        action_on_expiry=limits.on_expiry,
        budget=limits.budget,
        retry_unit_us=None if retry_unit is None else microseconds(retry_unit),
    )


def system_of(agent: Agent) -> str:
    """Return the digest of an agent's system texts as it is recorded; empty where there are none."""
    return digest_of(agent.system_texts) if agent.system_texts else ""


def policy_digest(policy: Policy) -> str:
    """Return the digest of a policy, all its fields written out."""
    return digest_of(policy)


def tool_policy(tool: Tool) -> ToolPolicy:
    """Return a tool's declaration as it is recorded."""
    return ToolPolicy(
        name=tool.name,
        runner=tool.runner,
        crash=tool.crash,
        exclusive=tool.exclusive,
        stop_after=tool.stop_after,
        needs_approval=tool.needs_approval,
        reconcile=tool.reconcile is not None,
        timeout_us=None if tool.timeout is None else microseconds(tool.timeout),
        action_timeout_us=None if tool.action_timeout is None else microseconds(tool.action_timeout),
        action_on_expiry=tool.on_expiry,
        schema=tool.digest,
    )


def cost_micros(usage: Usage, model: ModelPolicy) -> int | None:
    """Return what a model call cost, in micro-units of currency, rounded up once.

    Reasoning tokens are a share of the output and not counted again; a category without a price costs nothing.

    Returns:
        None where the model has no price at all.
    """
    by_category = (
        (usage.input, model.price_input),
        (usage.output, model.price_output),
        (usage.cache_read, model.price_cache_read),
        (usage.cache_write, model.price_cache_write),
    )
    if not model.has_price:
        return None
    total = sum(tokens * price for tokens, price in by_category if price is not None)
    return min(-(-total // _MICRO), _MAX_COST)


def priced(step: Step, model: ModelPolicy) -> Step:
    """Return what is known of a model call with the cost of that; without one where the service told no usage.

    Of a call that was cut, what was told until then has a cost; it is unmetered all the same.
    """
    untold = step.unmetered and step.usage == Usage()
    return replace(step, cost_micros=None if untold else cost_micros(step.usage, model))


def microseconds(seconds: float) -> int:
    """Return seconds as integer microseconds, at least 1."""
    return max(1, round(seconds * _MICRO))
