"""Events of a chat as a thing that is kept: archive, fork, title, labels, settings, erasure, adoption, uncompact."""

from __future__ import annotations

from msgspec import field

from events.content import Content
from events.effects import Effects, EventBase
from events.ids import MessageId
from events.records import AttemptReport, ContextMarking, Origin, SideCallKind


class ChatArchived(EventBase, frozen=True, kw_only=True):
    """The chat was put away."""

    type = "chat_archived"
    trigger = "archive"


class ChatUnarchived(EventBase, frozen=True, kw_only=True):
    """The chat was taken out again."""

    type = "chat_unarchived"
    trigger = "unarchive"


class ChatForked(EventBase, frozen=True, kw_only=True):
    """A chat begins as a copy of another's history. ``owed`` says whether the copied history owes a turn."""

    type = "chat_forked"
    trigger = "fork"
    chat: str
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


class MessagesImported(Effects, frozen=True, kw_only=True):
    """Messages of a fork's origin, with their calls renamed to this chat's."""

    type = "messages_imported"
    trigger = "import_messages"


class TitleChanged(EventBase, frozen=True, kw_only=True):
    """The title changed."""

    type = "title_changed"
    trigger = "set_title"
    title: Content | None = None


class LabelsChanged(EventBase, frozen=True, kw_only=True):
    """The labels are now these."""

    type = "labels_changed"
    trigger = "set_labels"
    labels: dict[str, str] = field(default_factory=dict)


class ModelChanged(EventBase, frozen=True, kw_only=True):
    """The model and effort from the next request on, also within a turn; absent means the agent's own."""

    type = "model_changed"
    trigger = "set_model"
    model: str | None = None
    effort: str | None = None


class AgentChanged(EventBase, frozen=True, kw_only=True):
    """Another agent has the chat from the next step on, also within a turn."""

    type = "agent_changed"
    trigger = "set_agent"
    agent: str


class ActiveToolsChanged(EventBase, frozen=True, kw_only=True):
    """The tools that the model may call from now on; absent means the agent's own choice, an empty list all."""

    type = "active_tools_changed"
    trigger = "set_active_tools"
    tools: tuple[str, ...] | None = None


class PinnedChanged(EventBase, frozen=True, kw_only=True):
    """The chat was pinned or unpinned."""

    type = "pinned_changed"
    trigger = "set_pinned"
    pinned: bool


class RetentionChanged(EventBase, frozen=True, kw_only=True):
    """How long the chat is kept after its last change, in microseconds; absent means without limit."""

    type = "retention_changed"
    trigger = "set_retention"
    retention_us: int | None = None


class ContextMarked(EventBase, frozen=True, kw_only=True):
    """What is known of the recorded context: its source has another by now, has the same again, or is to be asked anew.

    ``revision``: the source's, where it was asked.
    """

    type = "context_marked"
    trigger = "mark_context"
    mark: ContextMarking
    revision: str | None = None


class TurnLabelChanged(EventBase, frozen=True, kw_only=True):
    """What the latest turn came to, in a few words, is now this."""

    type = "turn_label_changed"
    trigger = "set_turn_label"
    label: Content | None = None


class SideCallRecorded(EventBase, frozen=True, kw_only=True):
    """What a model call beside the turns took and cost, whether or not anything usable came of it."""

    type = "side_call_recorded"
    trigger = "record_side_call"
    kind: SideCallKind
    report: AttemptReport


class ContentErased(EventBase, frozen=True, kw_only=True):
    """The content of these messages was erased from the log."""

    type = "content_erased"
    trigger = "erase"
    messages: tuple[MessageId, ...]


class ChatAdopted(EventBase, frozen=True, kw_only=True):
    """A foreign chat was taken over here; a holder in its log counts as dead."""

    type = "chat_adopted"
    trigger = "adopt"
    epoch: int


class CompactionUndone(EventBase, frozen=True, kw_only=True):
    """The newest compaction boundary was taken back; what it compressed counts again."""

    type = "compaction_undone"
    trigger = "uncompact"
    boundary: MessageId
