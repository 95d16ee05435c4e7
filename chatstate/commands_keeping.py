"""Commands on a chat as a thing that is kept: archive, fork, title, labels, settings, erasure, adoption, uncompact."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from chatstate.commands_base import Command
from events.content import Content
from events.ids import ChatId, MessageId
from events.messages import Message
from events.records import AttemptReport, ContextMarking, Origin, SideCallKind


class Archive(Command, frozen=True, kw_only=True):
    """Put the chat away."""

    trigger = "archive"


class Unarchive(Command, frozen=True, kw_only=True):
    """Take the chat out again."""

    trigger = "unarchive"


class ForkChat(Command, frozen=True, kw_only=True):
    """Begin a chat as a copy; ``chatstate.fork`` plans the commands that follow it in the same append."""

    trigger = "fork"
    chat: ChatId
    owner: str
    agent: str
    release: str
    origin: Origin
    owed: bool
    flags: tuple[int, ...] = ()
    title: Content | None = None
    labels: dict[str, str] = field(default_factory=dict)
    model: str | None = None
    effort: str | None = None
    active_tools: tuple[str, ...] | None = None


class ImportMessages(Command, frozen=True, kw_only=True):
    """Copy messages of a fork's origin; only within the fork's append."""

    trigger = "import_messages"
    messages: tuple[Message, ...]


class SetTitle(Command, frozen=True, kw_only=True):
    """Change the title."""

    trigger = "set_title"
    title: Content | None


class SetLabels(Command, frozen=True, kw_only=True):
    """Replace the labels."""

    trigger = "set_labels"
    labels: dict[str, str]


class SetModel(Command, frozen=True, kw_only=True):
    """Choose model and effort for turns from now on; None means the agent's own, and what is unset stays as it is."""

    trigger = "set_model"
    model: str | UnsetType | None = UNSET
    effort: str | UnsetType | None = UNSET


class SetAgent(Command, frozen=True, kw_only=True):
    """Hand the chat to another agent."""

    trigger = "set_agent"
    agent: str


class SetActiveTools(Command, frozen=True, kw_only=True):
    """Choose the tools that the model may call; None means the agent's own choice, an empty list all."""

    trigger = "set_active_tools"
    tools: tuple[str, ...] | None


class SetPinned(Command, frozen=True, kw_only=True):
    """Pin or unpin."""

    trigger = "set_pinned"
    pinned: bool


class SetRetention(Command, frozen=True, kw_only=True):
    """Say how long the chat is kept after its last change (microseconds; None: without limit)."""

    trigger = "set_retention"
    retention_us: int | None


class MarkContext(Command, frozen=True, kw_only=True):
    """Say of the recorded context that it is stale or fresh, or ask that it be collected anew."""

    trigger = "mark_context"
    mark: ContextMarking
    revision: str | None = None


class SetTurnLabel(Command, frozen=True, kw_only=True):
    """Say what the latest turn came to."""

    trigger = "set_turn_label"
    label: Content | None


class RecordSideCall(Command, frozen=True, kw_only=True):
    """Record what a model call beside the turns took and cost."""

    trigger = "record_side_call"
    kind: SideCallKind
    report: AttemptReport


class Erase(Command, frozen=True, kw_only=True):
    """Erase the content of messages; the store drops it in the same append. Needs the transcript."""

    trigger = "erase"
    targets: tuple[MessageId, ...]


class Adopt(Command, frozen=True, kw_only=True):
    """Take over a foreign chat."""

    trigger = "adopt"


class Uncompact(Command, frozen=True, kw_only=True):
    """Take the newest compaction boundary back. Needs the transcript.

    ``limit_tokens`` is the context limit of the chat's model, None where it is not known, and ``estimated_tokens`` what
    the next prompt will take of it.
    """

    trigger = "uncompact"
    limit_tokens: int | None = None
    estimated_tokens: int = 0
