"""From what users, clients and timers did, as a log has it, back to the commands that did it.

One function for each type of event, in one table. What a command decides by itself (what answers open calls, who is
promoted, deadlines) is not taken from the event: it must come out again. Nor is what a command leaves as it was, which
the engine fills in: an effort, an author, a limit that was raised before. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msgspec import UNSET
from msgspec.structs import replace

from chatstate import commands as c
from events import vocabulary as v
from events.effects import Interrupting
from events.ids import ChatId
from events.messages import Message, QueuedMessage
from events.parts import ToolResultPart
from events.records import Budget, BudgetAnswer
from events.state import ChatState

_ANY_QUEUE: Final = 1 << 20
"""A queue's limit that is none: it is a setting, and the log says that there was room."""

Inverse: TypeAlias = Callable[[Any, ChatState], c.AnyCommand]


def command_of(event: v.Event, state: ChatState) -> c.AnyCommand | None:
    """Return the command that an event records; None where the event is the engine's own doing.

    Args:
        event: The event, with its contents.
        state: The chat's before it, with its transcript.
    """
    inverse = INVERSES.get(type(event))
    return None if inverse is None else inverse(event, state)


def comes_from_outside(event: v.Event) -> bool:
    """Whether an event is given to the engine, and not made by it."""
    return type(event) in INVERSES


def _created(event: v.ChatCreated, _: ChatState) -> c.CreateChat:
    return c.CreateChat(
        chat=ChatId(event.chat),
        owner=event.owner,
        agent=event.agent,
        release=event.release,
        messages=event.added,
        flags=event.flags,
        title=event.title,
        labels=event.labels,
        model=event.model,
        effort=event.effort,
        parent=None if event.parent is None else ChatId(event.parent),
    )


def _forked(event: v.ChatForked, _: ChatState) -> c.ForkChat:
    return c.ForkChat(
        chat=ChatId(event.chat),
        owner=event.owner,
        agent=event.agent,
        release=event.release,
        origin=event.origin,
        owed=event.owed,
        flags=event.flags,
        title=event.title,
        labels=event.labels,
        model=event.model,
        effort=event.effort,
        active_tools=event.active_tools,
    )


def _message(event: v.MessageSent | v.MessageSentInterrupting) -> QueuedMessage:
    if event.queued:
        return event.queued[0]
    # What a dead holder's answer left stands before it.
    return QueuedMessage(message=event.added[-1], model=event.model, effort=event.effort)


def _sent(event: v.MessageSent, _: ChatState) -> c.SendMessage:
    return c.SendMessage(message=_message(event), queue_limit=_ANY_QUEUE)


def _interrupting(event: Interrupting) -> dict[str, Any]:
    """Return what is known of a holder that was dead when its turn was ended."""
    if event.epoch is None:
        return {}
    return {"lease_dead": True, "partial": answer_in(event.added), "report": event.report}


def answer_in(added: tuple[Message, ...]) -> Message | None:
    """Return the model's answer among messages; None where there is none."""
    return next((message for message in added if message.role == "assistant" and message.boundary is None), None)


def _sent_interrupting(event: v.MessageSentInterrupting, _: ChatState) -> c.SendInterrupting:
    return c.SendInterrupting(message=_message(event), queue_limit=_ANY_QUEUE, **_interrupting(event))


def _interrupted(event: v.TurnInterrupted, _: ChatState) -> c.Interrupt:
    return c.Interrupt(**_interrupting(event))


def _promoted(event: v.QueuedMessagePromoted, _: ChatState) -> c.PromoteQueued:
    order = event.queue_order or ()
    target = event.promoted[0] if event.promoted else order[0]
    return c.PromoteQueued(target=target, **_interrupting(event))


def _edited(event: v.MessageEdited, state: ChatState) -> c.EditMessage:
    if event.removed_from is None:
        raise ValueError("an edit that removed nothing")
    messages, message = state.messages, event.added[0]
    place = messages.find(event.removed_from)
    if place is not None and message.author == messages[place].message.author:
        message = replace(message, author=None)  # as an edit says it that leaves the author as it was
    return c.EditMessage(target=event.removed_from, message=message)


def _submitted(event: v.ResultsSubmitted, state: ChatState) -> c.SubmitResults:
    control = state.control
    owed = frozenset(control.action.client_calls) if control.action is not None else frozenset()
    parts = (part for message in event.added for part in message.parts)
    results = tuple(
        c.SubmittedResult(
            call=part.call,
            output=part.output,
            is_error=part.is_error,
            media=part.media,
            attachments=part.attachments,
        )
        for part in parts
        # The rest are of calls that were not approved, which the machine answers by itself.
        if isinstance(part, ToolResultPart) and part.call in owed and part.output is not None
    )
    budget = _raised_now(event.budget, control.budget)
    return c.SubmitResults(action=event.action, results=results, approvals=event.approvals, budget=budget)


def _raised_now(answer: BudgetAnswer | None, before: Budget | None) -> BudgetAnswer | None:
    """Return the answer to a budget question without the limits that earlier answers had raised."""
    if answer is None or answer.raised is None or before is None:
        return answer
    told = {name: getattr(answer.raised, name) for name in Budget.__struct_fields__}
    new = {name: limit for name, limit in told.items() if limit != getattr(before, name)}
    return replace(answer, raised=Budget(**new) if new else answer.raised)


def _model_set(event: v.ModelChanged, state: ChatState) -> c.SetModel:
    control = state.control
    return c.SetModel(
        model=event.model if event.model != control.model else UNSET,
        effort=event.effort if event.effort != control.effort else UNSET,
    )


INVERSES: Final[dict[type[v.Event], Inverse]] = {
    v.ChatCreated: _created,
    v.ChatForked: _forked,
    v.MessagesImported: lambda event, _: c.ImportMessages(messages=event.added),
    v.MessageSent: _sent,
    v.MessageSentInterrupting: _sent_interrupting,
    v.TurnInterrupted: _interrupted,
    v.QueuedMessagePromoted: _promoted,
    v.MessageEdited: _edited,
    v.QueuedMessageEdited: lambda event, _: c.EditQueued(target=event.id, message=event.message),
    v.QueueReordered: lambda event, _: c.ReorderQueue(order=event.queue_order or ()),
    v.QueuedMessageDeleted: lambda event, _: c.DeleteQueued(target=event.dequeued[0]),
    v.ResultsSubmitted: _submitted,
    v.TurnResumed: lambda _, __: c.Resume(),
    v.CompactionRequested: lambda event, _: c.Compact(hint=event.hint),
    v.ContextCleared: lambda _, __: c.Clear(),
    v.ActionExpired: lambda event, _: c.ExpireAction(action=event.action),
    v.ActionExpiredTurnEnded: lambda event, _: c.ExpireActionEndTurn(action=event.action),
    v.ChatArchived: lambda _, __: c.Archive(),
    v.ChatUnarchived: lambda _, __: c.Unarchive(),
    v.TitleChanged: lambda event, _: c.SetTitle(title=event.title),
    v.LabelsChanged: lambda event, _: c.SetLabels(labels=event.labels),
    v.ModelChanged: _model_set,
    v.AgentChanged: lambda event, _: c.SetAgent(agent=event.agent),
    v.ActiveToolsChanged: lambda event, _: c.SetActiveTools(tools=event.tools),
    v.PinnedChanged: lambda event, _: c.SetPinned(pinned=event.pinned),
    v.RetentionChanged: lambda event, _: c.SetRetention(retention_us=event.retention_us),
    v.ContextMarked: lambda event, _: c.MarkContext(mark=event.mark, revision=event.revision),
    v.TurnLabelChanged: lambda event, _: c.SetTurnLabel(label=event.label),
    v.SideCallRecorded: lambda event, _: c.RecordSideCall(kind=event.kind, report=event.report),
    v.ContentErased: lambda event, _: c.Erase(targets=event.messages),
    v.ChatAdopted: lambda _, __: c.Adopt(),
    v.CompactionUndone: lambda _, __: c.Uncompact(),
}
"""Type of event -> its command, given the event and the chat's state before it. All others are the engine's."""
