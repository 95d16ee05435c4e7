"""Commands: one typed input per transition.

A command carries what cannot be known from the state: texts, limits, database facts (is the holder's lease dead?),
fences. Times are microseconds, UTC where they are points in time. The structs stand by who gives them in
``chatstate.commands_users``, ``chatstate.commands_keeping`` and ``chatstate.commands_workers``; they are imported from
here.
"""

from __future__ import annotations

from typing import TypeAlias

from chatstate.commands_base import (
    Command,
    Fence,
)
from chatstate.commands_keeping import (
    Adopt,
    Archive,
    Erase,
    ForkChat,
    ImportMessages,
    MarkContext,
    RecordSideCall,
    SetActiveTools,
    SetAgent,
    SetLabels,
    SetModel,
    SetPinned,
    SetRetention,
    SetTitle,
    SetTurnLabel,
    Unarchive,
    Uncompact,
)
from chatstate.commands_users import (
    QUEUE_LIMIT,
    Clear,
    Compact,
    CreateChat,
    DeleteQueued,
    EditMessage,
    EditQueued,
    Interrupt,
    PromoteQueued,
    ReorderQueue,
    Resume,
    SendInterrupting,
    SendMessage,
    SubmitResults,
    SubmittedResult,
    Unfit,
)
from chatstate.commands_workers import (
    Acquire,
    CommitCompaction,
    CommitStep,
    ExpireAction,
    ExpireActionEndTurn,
    FailTurn,
    FinishInterruption,
    FinishTurn,
    PersistContext,
    Reconcile,
    RecordPolicy,
    RecordToolResult,
    Release,
    RequireAction,
    ScheduleRetry,
    StartAttempt,
)

__all__ = [
    "QUEUE_LIMIT",
    "AnyCommand",
    "Acquire",
    "Adopt",
    "Archive",
    "Clear",
    "Command",
    "CommitCompaction",
    "CommitStep",
    "Compact",
    "CreateChat",
    "DeleteQueued",
    "EditMessage",
    "EditQueued",
    "Erase",
    "ExpireAction",
    "ExpireActionEndTurn",
    "FailTurn",
    "Fence",
    "FinishInterruption",
    "FinishTurn",
    "ForkChat",
    "ImportMessages",
    "Interrupt",
    "MarkContext",
    "RecordSideCall",
    "SetTurnLabel",
    "PersistContext",
    "PromoteQueued",
    "Reconcile",
    "RecordPolicy",
    "RecordToolResult",
    "Release",
    "ReorderQueue",
    "RequireAction",
    "Resume",
    "ScheduleRetry",
    "SendInterrupting",
    "SendMessage",
    "SetActiveTools",
    "SetAgent",
    "SetLabels",
    "SetModel",
    "SetPinned",
    "SetRetention",
    "SetTitle",
    "StartAttempt",
    "SubmitResults",
    "SubmittedResult",
    "Unfit",
    "Unarchive",
    "Uncompact",
]

AnyCommand: TypeAlias = (
    CreateChat
    | SendMessage
    | SendInterrupting
    | EditMessage
    | EditQueued
    | ReorderQueue
    | DeleteQueued
    | PromoteQueued
    | Interrupt
    | SubmitResults
    | Resume
    | Compact
    | Clear
    | Archive
    | Unarchive
    | ForkChat
    | ImportMessages
    | SetTitle
    | SetLabels
    | SetModel
    | SetAgent
    | SetActiveTools
    | SetPinned
    | SetRetention
    | MarkContext
    | RecordSideCall
    | SetTurnLabel
    | Erase
    | Adopt
    | Uncompact
    | Acquire
    | Release
    | RecordPolicy
    | StartAttempt
    | RecordToolResult
    | CommitStep
    | CommitCompaction
    | PersistContext
    | ScheduleRetry
    | RequireAction
    | FinishTurn
    | FailTurn
    | FinishInterruption
    | ExpireAction
    | ExpireActionEndTurn
    | Reconcile
)
