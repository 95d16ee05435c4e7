"""chatfold: a chat engine whose chats are state machines over an event log.

Owns the list of names that users import, and nothing else: every name lives elsewhere and is imported when it is first
used, so that `import chatfold` stays cheap and loads no SDK and no layer. To publish a name, add it in three places of
this file (a test compares them): the imports for type checkers, the table, and `__all__`.
"""

from typing import TYPE_CHECKING, Final

from chatfold._lazy import lazy_namespace

if TYPE_CHECKING:
    from chatfold._layers import LayerImportError
    from chatfold.engine import Engine
    from chatfold.inputs import result
    from chatfold.receipts import QueueEntry, Receipt
    from chatfold.settings import Settings
    from chatfold.stream import EventItem, PartItem, PreviewReset
    from chatfold.transfer import decode_log, load_log
    from chatstate.audit import audit
    from chatstate.errors import (
        ActionStale,
        ChatNotFound,
        IdempotencyConflict,
        QueueFull,
        Refusal,
        ToolResultsInvalid,
        TransitionNotAllowed,
    )
    from events.content import Content
    from events.digest import verify_chain
    from events.envelope import Recorded
    from events.errors import ContentUnavailable, DigestMismatch, InvalidValue, LogFileError
    from events.logfile import LogFile
    from events.messages import Message
    from events.parts import FilePart, TextPart
    from events.records import ApprovalAnswer, Budget, BudgetAnswer
    from events.replay import ReplayStep, replay, state_at
    from events.state import ChatState
    from generation.agents import Agent, Limits
    from generation.context import Context, ContextFile, ContextSource, StaticContext
    from generation.errors import GenerationError
    from generation.models import ModelConfig, Prices
    from generation.tools.contract import Tool, ToolContext, ToolOutput, client_tool, tool
    from store import open_store
    from store.contract import ChatQuery, Store
    from store.errors import StoreError

__version__ = "0.1.0"

__all__ = [
    # Running chats
    "Engine",
    "Settings",
    "QueueEntry",
    "Receipt",
    "result",
    # Agents and tools
    "Agent",
    "Limits",
    "Budget",
    "ModelConfig",
    "Prices",
    "Tool",
    "ToolContext",
    "ToolOutput",
    "client_tool",
    "tool",
    "Context",
    "ContextFile",
    "ContextSource",
    "StaticContext",
    # Following a chat
    "EventItem",
    "PartItem",
    "PreviewReset",
    # What a chat holds
    "ChatState",
    "Content",
    "FilePart",
    "Message",
    "TextPart",
    "ApprovalAnswer",
    "BudgetAnswer",
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
    # Stores
    "ChatQuery",
    "Store",
    "open_store",
    # Errors
    "ActionStale",
    "ChatNotFound",
    "ContentUnavailable",
    "DigestMismatch",
    "GenerationError",
    "IdempotencyConflict",
    "InvalidValue",
    "LayerImportError",
    "LogFileError",
    "QueueFull",
    "Refusal",
    "StoreError",
    "ToolResultsInvalid",
    "TransitionNotAllowed",
    # The distribution
    "__version__",
]

_HOMES: Final = {
    "Engine": "chatfold.engine",
    "Settings": "chatfold.settings",
    "QueueEntry": "chatfold.receipts",
    "Receipt": "chatfold.receipts",
    "result": "chatfold.inputs",
    "Agent": "generation.agents",
    "Limits": "generation.agents",
    "Budget": "events.records",
    "ModelConfig": "generation.models",
    "Prices": "generation.models",
    "Tool": "generation.tools.contract",
    "ToolContext": "generation.tools.contract",
    "ToolOutput": "generation.tools.contract",
    "client_tool": "generation.tools.contract",
    "tool": "generation.tools.contract",
    "Context": "generation.context",
    "ContextFile": "generation.context",
    "ContextSource": "generation.context",
    "StaticContext": "generation.context",
    "EventItem": "chatfold.stream",
    "PartItem": "chatfold.stream",
    "PreviewReset": "chatfold.stream",
    "ChatState": "events.state",
    "Content": "events.content",
    "FilePart": "events.parts",
    "Message": "events.messages",
    "TextPart": "events.parts",
    "ApprovalAnswer": "events.records",
    "BudgetAnswer": "events.records",
    "LogFile": "events.logfile",
    "Recorded": "events.envelope",
    "ReplayStep": "events.replay",
    "audit": "chatstate.audit",
    "decode_log": "chatfold.transfer",
    "load_log": "chatfold.transfer",
    "replay": "events.replay",
    "state_at": "events.replay",
    "verify_chain": "events.digest",
    "ChatQuery": "store.contract",
    "Store": "store.contract",
    "open_store": "store",
    "ActionStale": "chatstate.errors",
    "ChatNotFound": "chatstate.errors",
    "GenerationError": "generation.errors",
    "IdempotencyConflict": "chatstate.errors",
    "InvalidValue": "events.errors",
    "ContentUnavailable": "events.errors",
    "DigestMismatch": "events.errors",
    "LogFileError": "events.errors",
    "LayerImportError": "chatfold._layers",
    "QueueFull": "chatstate.errors",
    "Refusal": "chatstate.errors",
    "StoreError": "store.errors",
    "ToolResultsInvalid": "chatstate.errors",
    "TransitionNotAllowed": "chatstate.errors",
}

if not TYPE_CHECKING:  # type checkers would take every misspelt name for one that __getattr__ finds
    __getattr__, __dir__ = lazy_namespace(__name__, _HOMES)
