"""chatfold: a chat engine whose chats are state machines over an event log.

Owns the list of names that users import, and nothing else: every name lives elsewhere and is imported when it is first
used, so that `import chatfold` stays cheap and loads no SDK and no layer. To publish a name, add it in three places of
this file (a test compares them): the imports for type checkers, the table, and `__all__`.
"""

from typing import TYPE_CHECKING, Final

from chatfold._lazy import lazy_namespace

if TYPE_CHECKING:
    from chatfold._layers import LayerImportError
    from chatfold.collector import tune_collector
    from chatfold.contexts import ChatContext, ContextResource
    from chatfold.costs import FamilyLedger
    from chatfold.engine import Engine
    from chatfold.inputs import result
    from chatfold.providers import builtin_provider
    from chatfold.receipts import (
        QueueEntry,
        Receipt,
    )
    from chatfold.settings import Settings
    from chatfold.stream import (
        EventItem,
        PartItem,
        PreviewReset,
        StreamItem,
    )
    from chatfold.transfer import (
        ImportedChat,
        decode_log,
        load_log,
    )
    from chatstate.audit import audit
    from chatstate.errors import (
        ActionStale,
        ChatForeign,
        ChatNotFound,
        ContentTooLarge,
        IdempotencyConflict,
        InvalidState,
        MessageNotFound,
        NotAUserMessage,
        NothingOwed,
        NothingToClear,
        NothingToCompact,
        QueuedNotFound,
        QueueFull,
        Refusal,
        StaleFence,
        ToolResultsInvalid,
        TransitionNotAllowed,
    )
    from events.content import Content
    from events.digest import verify_chain
    from events.envelope import Recorded
    from events.errors import (
        ContentUnavailable,
        DigestMismatch,
        EventsError,
        InvalidValue,
        LogFileError,
        MalformedEvent,
        NewerSchema,
        TooLarge,
        TranscriptMissing,
        UnknownEventType,
    )
    from events.ids import CallKey
    from events.ledger import Ledger
    from events.logfile import LogFile
    from events.messages import Message
    from events.parts import (
        ContextFilePart,
        ContextProblemPart,
        FilePart,
        FileReferencePart,
        HookContextPart,
        Part,
        ReasoningPart,
        SkillPart,
        SourcePart,
        TextPart,
        ToolCallPart,
        ToolResultPart,
    )
    from events.records import (
        NO_LIMIT,
        ApprovalAnswer,
        Budget,
        BudgetAnswer,
    )
    from events.replay import (
        ReplayStep,
        replay,
        state_at,
    )
    from events.state import ChatState
    from events.vocabulary import (
        ChatForked,
        StepCommitted,
    )
    from generation.agents import (
        Agent,
        Limits,
    )
    from generation.context import (
        Context,
        ContextFile,
        ContextProblem,
        ContextSkill,
        ContextSource,
        StaticContext,
    )
    from generation.context_directory import DirectoryContext
    from generation.errors import (
        AgentDeclarationError,
        ClassifiedError,
        CursorInvalid,
        GenerationError,
        InvalidBaseUrl,
        ProviderError,
        ToolDeclarationError,
        UnknownAgent,
        UnknownModel,
    )
    from generation.models import (
        ModelConfig,
        Prices,
    )
    from generation.parts import (
        LiveCall,
        LiveCallDelta,
        LiveFile,
        LivePart,
        LiveReasoning,
        LiveResult,
        LiveSource,
        LiveSummary,
        LiveText,
    )
    from generation.providers.contract import Provider
    from generation.providers.native import WebSearch
    from generation.tools.contract import (
        Tool,
        ToolContext,
        ToolOutput,
        client_tool,
        tool,
    )
    from generation.tools.files import ToolFile
    from generation.tools.reconcile import NOT_HAPPENED, NOT_KNOWN, Happened
    from store import open_store
    from store.contract import (
        Header,
        Store,
    )
    from store.errors import (
        ChatExists,
        FeedEventUnreadable,
        FeedMoved,
        InvalidStoreUrl,
        MalformedRow,
        OutcomeUnknown,
        SchemaOutdated,
        SchemaTooNew,
        StoreError,
        StoreUnavailable,
        Unstorable,
    )
    from store.query import ChatQuery

__version__ = "0.1.0"

__all__ = [
    # Running chats
    "Engine",
    "Settings",
    "tune_collector",
    "QueueEntry",
    "Receipt",
    "result",
    "ChatContext",
    "ContextResource",
    "Ledger",
    "FamilyLedger",
    # Agents and tools
    "Agent",
    "Limits",
    "Budget",
    "ModelConfig",
    "Prices",
    "WebSearch",
    "Tool",
    "ToolContext",
    "ToolFile",
    "ToolOutput",
    "client_tool",
    "tool",
    "Happened",
    "NOT_HAPPENED",
    "NOT_KNOWN",
    "Context",
    "ContextFile",
    "ContextProblem",
    "ContextSkill",
    "ContextSource",
    "DirectoryContext",
    "StaticContext",
    # Following a chat
    "EventItem",
    "PartItem",
    "PreviewReset",
    "StreamItem",
    "LiveText",
    "LiveReasoning",
    "LiveCallDelta",
    "LiveCall",
    "LiveResult",
    "LiveFile",
    "LiveSource",
    "LiveSummary",
    "LivePart",
    # What a chat holds
    "ChatState",
    "Content",
    "FilePart",
    "Message",
    "TextPart",
    "ApprovalAnswer",
    "CallKey",
    "BudgetAnswer",
    "NO_LIMIT",
    "Part",
    "ReasoningPart",
    "ToolCallPart",
    "ToolResultPart",
    "FileReferencePart",
    "SourcePart",
    "ContextFilePart",
    "SkillPart",
    "ContextProblemPart",
    "HookContextPart",
    # Your own provider
    "Provider",
    "builtin_provider",
    "ClassifiedError",
    "ProviderError",
    # Reading logs
    "LogFile",
    "Recorded",
    "ReplayStep",
    "audit",
    "decode_log",
    "load_log",
    "replay",
    "state_at",
    "verify_chain",
    "ChatForked",
    "StepCommitted",
    "ImportedChat",
    # Stores
    "ChatQuery",
    "Store",
    "open_store",
    "Header",
    # Errors
    "ActionStale",
    "AgentDeclarationError",
    "ChatExists",
    "ChatForeign",
    "ChatNotFound",
    "ContentTooLarge",
    "ContentUnavailable",
    "CursorInvalid",
    "DigestMismatch",
    "EventsError",
    "FeedEventUnreadable",
    "FeedMoved",
    "GenerationError",
    "IdempotencyConflict",
    "InvalidBaseUrl",
    "InvalidState",
    "InvalidStoreUrl",
    "InvalidValue",
    "LayerImportError",
    "LogFileError",
    "MalformedEvent",
    "MalformedRow",
    "MessageNotFound",
    "NewerSchema",
    "NotAUserMessage",
    "NothingOwed",
    "NothingToClear",
    "NothingToCompact",
    "OutcomeUnknown",
    "QueueFull",
    "QueuedNotFound",
    "Refusal",
    "SchemaOutdated",
    "SchemaTooNew",
    "StaleFence",
    "StoreError",
    "StoreUnavailable",
    "TooLarge",
    "ToolDeclarationError",
    "ToolResultsInvalid",
    "TranscriptMissing",
    "TransitionNotAllowed",
    "UnknownAgent",
    "UnknownEventType",
    "UnknownModel",
    "Unstorable",
    # The distribution
    "__version__",
]

_HOMES: Final = {
    "Engine": "chatfold.engine",
    "Settings": "chatfold.settings",
    "tune_collector": "chatfold.collector",
    "QueueEntry": "chatfold.receipts",
    "Receipt": "chatfold.receipts",
    "result": "chatfold.inputs",
    "ChatContext": "chatfold.contexts",
    "ContextResource": "chatfold.contexts",
    "Ledger": "events.ledger",
    "FamilyLedger": "chatfold.costs",
    "Agent": "generation.agents",
    "Limits": "generation.agents",
    "Budget": "events.records",
    "ModelConfig": "generation.models",
    "Prices": "generation.models",
    "WebSearch": "generation.providers.native",
    "Tool": "generation.tools.contract",
    "ToolContext": "generation.tools.contract",
    "ToolFile": "generation.tools.files",
    "ToolOutput": "generation.tools.contract",
    "client_tool": "generation.tools.contract",
    "tool": "generation.tools.contract",
    "Happened": "generation.tools.reconcile",
    "NOT_HAPPENED": "generation.tools.reconcile",
    "NOT_KNOWN": "generation.tools.reconcile",
    "Context": "generation.context",
    "ContextFile": "generation.context",
    "ContextProblem": "generation.context",
    "ContextSkill": "generation.context",
    "ContextSource": "generation.context",
    "DirectoryContext": "generation.context_directory",
    "StaticContext": "generation.context",
    "EventItem": "chatfold.stream",
    "PartItem": "chatfold.stream",
    "PreviewReset": "chatfold.stream",
    "StreamItem": "chatfold.stream",
    "LiveText": "generation.parts",
    "LiveReasoning": "generation.parts",
    "LiveCallDelta": "generation.parts",
    "LiveCall": "generation.parts",
    "LiveResult": "generation.parts",
    "LiveFile": "generation.parts",
    "LiveSource": "generation.parts",
    "LiveSummary": "generation.parts",
    "LivePart": "generation.parts",
    "ChatState": "events.state",
    "Content": "events.content",
    "FilePart": "events.parts",
    "Message": "events.messages",
    "TextPart": "events.parts",
    "ApprovalAnswer": "events.records",
    "CallKey": "events.ids",
    "BudgetAnswer": "events.records",
    "NO_LIMIT": "events.records",
    "Part": "events.parts",
    "ReasoningPart": "events.parts",
    "ToolCallPart": "events.parts",
    "ToolResultPart": "events.parts",
    "FileReferencePart": "events.parts",
    "SourcePart": "events.parts",
    "ContextFilePart": "events.parts",
    "SkillPart": "events.parts",
    "ContextProblemPart": "events.parts",
    "HookContextPart": "events.parts",
    "Provider": "generation.providers.contract",
    "builtin_provider": "chatfold.providers",
    "ClassifiedError": "generation.errors",
    "ProviderError": "generation.errors",
    "LogFile": "events.logfile",
    "Recorded": "events.envelope",
    "ReplayStep": "events.replay",
    "audit": "chatstate.audit",
    "decode_log": "chatfold.transfer",
    "load_log": "chatfold.transfer",
    "replay": "events.replay",
    "state_at": "events.replay",
    "verify_chain": "events.digest",
    "ChatForked": "events.vocabulary",
    "StepCommitted": "events.vocabulary",
    "ImportedChat": "chatfold.transfer",
    "ChatQuery": "store.query",
    "Store": "store.contract",
    "open_store": "store",
    "Header": "store.contract",
    "ActionStale": "chatstate.errors",
    "AgentDeclarationError": "generation.errors",
    "ChatExists": "store.errors",
    "FeedEventUnreadable": "store.errors",
    "FeedMoved": "store.errors",
    "ChatForeign": "chatstate.errors",
    "ChatNotFound": "chatstate.errors",
    "ContentTooLarge": "chatstate.errors",
    "ContentUnavailable": "events.errors",
    "CursorInvalid": "generation.errors",
    "DigestMismatch": "events.errors",
    "EventsError": "events.errors",
    "GenerationError": "generation.errors",
    "IdempotencyConflict": "chatstate.errors",
    "InvalidBaseUrl": "generation.errors",
    "InvalidState": "chatstate.errors",
    "InvalidStoreUrl": "store.errors",
    "InvalidValue": "events.errors",
    "LayerImportError": "chatfold._layers",
    "LogFileError": "events.errors",
    "MalformedEvent": "events.errors",
    "MalformedRow": "store.errors",
    "MessageNotFound": "chatstate.errors",
    "NewerSchema": "events.errors",
    "NotAUserMessage": "chatstate.errors",
    "NothingOwed": "chatstate.errors",
    "NothingToClear": "chatstate.errors",
    "NothingToCompact": "chatstate.errors",
    "OutcomeUnknown": "store.errors",
    "QueueFull": "chatstate.errors",
    "QueuedNotFound": "chatstate.errors",
    "Refusal": "chatstate.errors",
    "SchemaOutdated": "store.errors",
    "SchemaTooNew": "store.errors",
    "StaleFence": "chatstate.errors",
    "StoreError": "store.errors",
    "StoreUnavailable": "store.errors",
    "TooLarge": "events.errors",
    "ToolDeclarationError": "generation.errors",
    "ToolResultsInvalid": "chatstate.errors",
    "TranscriptMissing": "events.errors",
    "TransitionNotAllowed": "chatstate.errors",
    "UnknownAgent": "generation.errors",
    "UnknownEventType": "events.errors",
    "UnknownModel": "generation.errors",
    "Unstorable": "store.errors",
}

if not TYPE_CHECKING:  # type checkers would take every misspelt name for one that __getattr__ finds
    __getattr__, __dir__ = lazy_namespace(__name__, _HOMES)
