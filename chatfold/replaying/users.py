"""What somebody did who is no decision: users, clients, and who writes beside the turns. Pure.

Owns the words of the events that carry no decision out and come of none. They name what was done, with tools, ids and
numbers, and never a text: a message, a title or an argument is content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from events import vocabulary as v
from events.counting import counted
from events.envelope import Envelope
from events.ids import CallKey
from events.records import NO_LIMIT, ActionItem, Actor, ActorKind, Budget
from generation.rule_words import BUDGETS, amount

Called: TypeAlias = Callable[[CallKey], str]
"""Gives a call with its tool's name."""


def said_of_writer(actor: Actor, event: v.Event, called: Called) -> str:
    """Return what somebody did, in a clause: ``the user ada sent a message``."""
    who, beside = _WRITERS[actor.kind]
    name = f" {actor.id}" if actor.kind == "user" and actor.id is not None else ""
    return f"{who}{name} {_DID[type(event)](event, called)}{beside}"


def asked_for(items: Iterable[ActionItem], called: Called) -> str:
    """Return what a client is asked for: ``the result of pick_file (5.0.0), approval of pay (5.0.1)``."""
    return ", ".join(f"{_ASKED[item.kind]} {called(item.call)}" if item.call else _ASKED[item.kind] for item in items)


def seconds_allowed(asked: v.ActionRequired, envelope: Envelope) -> float:
    """Return the seconds that a client has to answer what it is asked."""
    return (asked.deadline - envelope.recorded_at) / 1_000_000


def denied_calls(event: v.Event) -> frozenset[CallKey]:
    """Return the calls that a client did not approve with an event; the model is told, and no tool failed."""
    approvals = event.approvals if isinstance(event, v.ResultsSubmitted) else ()
    return frozenset(each.call for each in approvals if not each.approved)


_ASKED: Final = MappingProxyType(
    {
        "client_call": "the result of",
        "approval": "approval of",
        "budget": "whether the budget may be raised",
    }
)

_WRITERS: Final[Mapping[ActorKind, tuple[str, str]]] = MappingProxyType(
    {
        "user": ("the user", ""),
        "worker": ("a worker", ", beside the turns"),
        "system": ("the service", ", by itself"),
    }
)


def _created(event: v.ChatCreated, _: Called) -> str:
    return f"began the chat with agent {event.agent}" + (" and sent a message" if event.added or event.queued else "")


def _sent(event: v.MessageSent, _: Called) -> str:
    return "sent a message" + (", which was queued" if event.queued else "") + _with_model(event)


def _with_model(event: v.MessageSent | v.MessageSentInterrupting) -> str:
    said = _model(event)
    return f", with {said} from now on" if said else ""


def _model(event: v.MessageSent | v.MessageSentInterrupting | v.ModelChanged) -> str:
    chosen = {"model": event.model, "effort": event.effort}
    return " and ".join(f"{name} {value}" for name, value in chosen.items() if value is not None)


def _submitted(event: v.ResultsSubmitted, called: Called) -> str:
    return ", ".join(_answers(event, called)) or "answered nothing"


def _answers(event: v.ResultsSubmitted, called: Called) -> Iterator[str]:
    for each in event.approvals:
        other = " with other arguments" if each.approved and each.arguments is not None else ""
        yield f"{'approved' if each.approved else 'did not approve'} {called(each.call)}{other}"
    denied = denied_calls(event)
    for part in v.results_of(event):
        if part.call not in denied:
            yield f"gave {'an error as ' if part.is_error else ''}the result of {called(part.call)}"
    if event.budget is not None:
        raised = event.budget.raised
        yield "let the turn end, whose budget is spent" if event.budget.end_turn else _raised(raised or Budget())


def _raised(raised: Budget) -> str:
    """Say how far a budget was raised; limits that stayed may be among those that are given."""
    limits = {name: limit for name in BUDGETS if (limit := getattr(raised, name)) is not None}
    said = [
        f"no limit of {BUDGETS[name].removeprefix('of ')}"
        if limit == NO_LIMIT
        else f"{amount(name, limit)} {BUDGETS[name]}"
        for name, limit in limits.items()
    ]
    return f"raised the budget to {', '.join(said)}" if said else "let the turn go on with the budget as it is"


def _set(what: str) -> Callable[[Any, Called], str]:
    """Say of what is set by a field of that name whether it was set, or taken away."""
    return lambda event, _: f"{'took away' if getattr(event, what) is None else 'set'} the {what}"


def _retention(event: v.RetentionChanged, _: Called) -> str:
    if event.retention_us is None:
        return "let the chat be kept without limit"
    return f"let the chat be kept for {event.retention_us / 1_000_000:,.0f} s after its last change"


def _tools(event: v.ActiveToolsChanged, _: Called) -> str:
    if event.tools is None:
        return "left the active tools to the agent"
    return f"set the active tools: {', '.join(event.tools) or 'all'}"


def _words(text: str) -> Callable[[Any, Called], str]:
    return lambda _event, _called: text


_DID: Final[Mapping[type, Callable[[Any, Called], str]]] = MappingProxyType(
    {
        v.ChatCreated: _created,
        v.MessageSent: _sent,
        v.MessageSentInterrupting: lambda event, _: f"sent a message that ends the turn{_with_model(event)}",
        v.MessageEdited: _words("edited a message, and what came after it left history"),
        v.QueuedMessageEdited: lambda event, _: f"edited the queued message {event.id}",
        v.QueueReordered: _words("gave the queue another order"),
        v.QueuedMessageDeleted: lambda event, _: f"deleted the queued message {', '.join(event.dequeued)}",
        v.QueuedMessagePromoted: _words("had a queued message taken up at once, which ends the turn"),
        v.TurnInterrupted: _words("interrupted the turn"),
        v.ResultsSubmitted: _submitted,
        v.TurnResumed: _words("resumed the turn"),
        v.CompactionRequested: _words("asked for a compaction"),
        v.ContextCleared: _words("cleared the context"),
        v.ChatArchived: _words("archived the chat"),
        v.ChatUnarchived: _words("took the chat out of the archive"),
        v.ChatForked: lambda event, _: f"forked chat {event.origin.chat} at version {event.origin.version}",
        v.MessagesImported: lambda event, _: f"copied {counted(len(event.added), 'message')} of the fork's origin",
        v.TitleChanged: _set("title"),
        v.LabelsChanged: lambda event, _: f"set {counted(len(event.labels), 'label')}",
        v.ModelChanged: lambda event, _: f"chose {_model(event) or 'the model of the agent'} from now on",
        v.AgentChanged: lambda event, _: f"gave the chat to agent {event.agent}",
        v.ActiveToolsChanged: _tools,
        v.PinnedChanged: lambda event, _: f"{'pinned' if event.pinned else 'unpinned'} the chat",
        v.RetentionChanged: _retention,
        v.ContextMarked: lambda event, _: f"marked the context as {event.mark}",
        v.SideCallRecorded: lambda event, _: f"recorded what a model call for the {event.kind} took",
        v.TurnLabelChanged: lambda event, _: f"{'took away' if event.label is None else 'set'} the turn's label",
        v.ContentErased: lambda event, _: f"erased the content of {counted(len(event.messages), 'message')}",
        v.ChatAdopted: _words("adopted the chat"),
        v.CompactionUndone: _words("took the newest compaction back"),
    }
)
"""What was done, by the type of the event: the rest of a clause that begins with who did it."""
