"""The event vocabulary: one frozen struct per transition, in one table, and their closed union.

Event type and trigger correspond one to one. An event lists its effects plainly (``Effects``), so that most of the
reducer is one function for all. The state after it stands in the envelope (``dest``): an event says what happened, the
machine said where it leads. The structs stand by who causes them in ``events.vocabulary_users``,
``events.vocabulary_keeping`` and ``events.vocabulary_workers``; they are imported from here.

The tag of a type and its fields are stored for ever: a changed meaning is a new schema number and an upcasting step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from events.effects import Effects, EventBase
from events.parts import ToolResultPart
from events.records import Decision
from events.vocabulary_keeping import (
    ActiveToolsChanged,
    AgentChanged,
    ChatAdopted,
    ChatArchived,
    ChatForked,
    ChatUnarchived,
    CompactionUndone,
    ContentErased,
    ContextMarked,
    LabelsChanged,
    MessagesImported,
    ModelChanged,
    PinnedChanged,
    RetentionChanged,
    SideCallRecorded,
    TitleChanged,
    TurnLabelChanged,
)
from events.vocabulary_users import (
    ChatCreated,
    CompactionRequested,
    ContextCleared,
    MessageEdited,
    MessageSent,
    MessageSentInterrupting,
    QueuedMessageDeleted,
    QueuedMessageEdited,
    QueuedMessagePromoted,
    QueueReordered,
    ResultsSubmitted,
    TurnInterrupted,
    TurnResumed,
)
from events.vocabulary_workers import (
    Acquired,
    ActionExpired,
    ActionExpiredTurnEnded,
    ActionRequired,
    AttemptStarted,
    CompactionCommitted,
    ContextPersisted,
    InterruptionFinished,
    PolicyRecorded,
    Reconciled,
    Released,
    RetryScheduled,
    StepCommitted,
    ToolResultRecorded,
    TurnFailed,
    TurnFinished,
)

__all__ = [
    "ENDS_TURN",
    "EVENT_TYPES",
    "Event",
    "Acquired",
    "ActionExpired",
    "ActionExpiredTurnEnded",
    "ActionRequired",
    "ActiveToolsChanged",
    "AgentChanged",
    "AttemptStarted",
    "ChatAdopted",
    "ChatArchived",
    "ChatCreated",
    "ChatForked",
    "ChatUnarchived",
    "CompactionCommitted",
    "CompactionRequested",
    "CompactionUndone",
    "ContentErased",
    "ContextCleared",
    "ContextMarked",
    "SideCallRecorded",
    "TurnLabelChanged",
    "ContextPersisted",
    "InterruptionFinished",
    "LabelsChanged",
    "MessageEdited",
    "MessageSent",
    "MessageSentInterrupting",
    "MessagesImported",
    "ModelChanged",
    "PinnedChanged",
    "PolicyRecorded",
    "QueueReordered",
    "QueuedMessageDeleted",
    "QueuedMessageEdited",
    "QueuedMessagePromoted",
    "Reconciled",
    "Released",
    "ResultsSubmitted",
    "RetentionChanged",
    "RetryScheduled",
    "StepCommitted",
    "TitleChanged",
    "ToolResultRecorded",
    "TurnFailed",
    "TurnFinished",
    "TurnInterrupted",
    "TurnResumed",
]

Event: TypeAlias = (
    ChatCreated
    | MessageSent
    | MessageSentInterrupting
    | MessageEdited
    | QueuedMessageEdited
    | QueueReordered
    | QueuedMessageDeleted
    | QueuedMessagePromoted
    | TurnInterrupted
    | ResultsSubmitted
    | TurnResumed
    | CompactionRequested
    | ContextCleared
    | ChatArchived
    | ChatUnarchived
    | ChatForked
    | MessagesImported
    | TitleChanged
    | LabelsChanged
    | ModelChanged
    | AgentChanged
    | ActiveToolsChanged
    | PinnedChanged
    | RetentionChanged
    | ContextMarked
    | SideCallRecorded
    | TurnLabelChanged
    | ContentErased
    | ChatAdopted
    | CompactionUndone
    | Acquired
    | Released
    | PolicyRecorded
    | AttemptStarted
    | ToolResultRecorded
    | StepCommitted
    | CompactionCommitted
    | ContextPersisted
    | RetryScheduled
    | ActionRequired
    | TurnFinished
    | TurnFailed
    | InterruptionFinished
    | ActionExpired
    | ActionExpiredTurnEnded
    | Reconciled
)

EVENT_TYPES: Final[dict[str, type[Event]]] = {cls.type: cls for cls in Event.__args__}
"""Stored tag -> class, in the order of the union."""


ENDS_TURN: Final = (
    MessageSentInterrupting,
    MessageEdited,
    QueuedMessagePromoted,
    TurnInterrupted,
    ContextCleared,
    TurnFinished,
    TurnFailed,
    InterruptionFinished,
    ActionExpiredTurnEnded,
    Reconciled,
)
"""Events that end a turn (the interrupting ones only where they do not leave that to the holder)."""


def results_of(event: EventBase) -> Iterator[ToolResultPart]:
    """Yield the results of calls that an event brings."""
    if isinstance(event, ToolResultRecorded):
        yield event.result
    messages = event.added if isinstance(event, Effects) else ()
    yield from (part for message in messages for part in message.parts if isinstance(part, ToolResultPart))


def decision_of(event: Event) -> Decision | None:
    """Return the decision that an event carries out; None where it carries none."""
    return getattr(event, "decision", None)
