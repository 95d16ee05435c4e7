"""What today's agents declare, in the place of what a log recorded: the policy that a rerun decides under. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from events.control import Control
from events.levels import readable_at
from events.records import Policy
from generation.agents import Agent
from generation.errors import UnknownModel
from generation.policy import policy_of


def policy_today(agents: Mapping[str, Agent], control: Control, recorded: Policy, level: int) -> Policy:
    """Return the policy to decide under: that of the chat's agent where it is given, else the recorded one.

    What its context source has, and how long a worker waits before it tries again, was no matter of the declaration:
    that stays as it was recorded.

    Args:
        agents: Today's agents by name.
        control: The chat's.
        recorded: The policy that was held then.
        level: The chat's release level.
    """
    agent = agents.get(control.agent)
    if agent is None:
        return recorded
    try:
        today = policy_of(agent, model=control.model, effort=control.effort, active_tools=control.active_tools)
    except UnknownModel:
        today = Policy(agent=agent.name, revision=agent.revision, model=None)
    return readable_at(
        replace(
            today,
            context_source=recorded.context_source,
            context_revision=recorded.context_revision,
            retry_unit_us=recorded.retry_unit_us,
        ),
        level,
    )
