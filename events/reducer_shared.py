"""What the reducer's parts have in common: the form of their tables, a chat's birth, and what calls cost. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from events import vocabulary as v
from events.draft import Draft
from events.effects import EventBase
from events.envelope import Envelope
from events.messages import Message
from events.records import AttemptReport
from events.sharing import share_name

Specials: TypeAlias = dict[type[EventBase], Callable[[Draft, Any, Envelope], None]]
"""Event type -> what it does beside its plain effects."""


def born(draft: Draft, event: v.ChatCreated | v.ChatForked, envelope: Envelope) -> None:
    """Begin a chat, new or as a copy."""
    control = draft.control
    control.chat, control.owner, control.agent = event.chat, event.owner, share_name(event.agent)
    control.release, control.flags = share_name(event.release), event.flags
    control.labels = event.labels
    control.model, control.effort = event.model, event.effort
    control.created_at = envelope.recorded_at
    draft.title = event.title


def spend(draft: Draft, report: AttemptReport | None, added: tuple[Message, ...] = ()) -> None:
    """Count what model calls cost, by the messages they left or by the report of one that left none."""
    carriers: tuple[Message | AttemptReport, ...] = added if report is None else (*added, report)
    for carrier in carriers:
        step = carrier.step
        if step is not None:
            draft.usages.append(step.usage)
            if step.cost_micros:
                draft.control.cost_micros += step.cost_micros
