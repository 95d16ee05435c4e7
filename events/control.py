"""Control: the part of a chat's state that transitions and decisions read.

A few hundred bytes whatever the length of the chat. It is kept in the store's header row and equals the fold of the
log. A ``Control`` is mutable so that a fold is cheap; outside the reducer it is treated as a value and never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from events.content import Absent, Content
from events.envelope import Status
from events.errors import MalformedEvent
from events.ids import CallKey, MessageId, WorkerId
from events.messages import BoundaryKind, Role, Usage
from events.parts import CrashPolicy, OnExpiry, Runner
from events.records import AttemptKind, Budget, ErrorInfo, OpenAction, RetryState

CompactionPhase: TypeAlias = Literal["none", "requested", "committed"]
"""Where a manual compaction stands in the current turn."""


class OpenCall(Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """A call of the last assistant message without a result in history, with the facts frozen at its commit.

    ``action_timeout_us`` and ``action_on_expiry`` are those of the call. ``approved`` is the client's answer where the
    call needs approval. ``started`` says that an attempt started it;
    ``recorded`` that its result is recorded and waits for the batch's commit; ``result_error`` whether that result is
    an error. ``possibly_done``: a holder that is gone had started it, and its tool can be asked (``reconcile``), which
    comes before it is run again, or which does no harm when it is run again (``crash="rerun"``).
    """

    key: CallKey
    name: str
    runner: Runner
    crash: CrashPolicy = "report"
    exclusive: bool = False
    stop_after: bool = False
    needs_approval: bool = False
    reconcile: bool = False
    approved: bool = False
    started: bool = False
    recorded: bool = False
    result_error: bool = False
    possibly_done: bool = False
    action_timeout_us: int | None = None
    action_on_expiry: OnExpiry | None = None

    @property
    def may_run(self) -> bool:
        """Whether a worker may run it now: a local call that waits for no approval."""
        return self.runner == "local" and (self.approved or not self.needs_approval)

    @property
    def runs(self) -> bool:
        """Whether it may be running: started, and no result recorded."""
        return self.started and not self.recorded

    @property
    def may_have_happened(self) -> bool:
        """Whether nobody knows what it did: it may be running here, or ran with a holder that is gone."""
        return (self.started or self.possibly_done) and not self.recorded and self.runner == "local"

    @property
    def lost_with_worker(self) -> bool:
        """Whether its outcome is unknown for good if its holder goes now."""
        return self.runs and self.runner == "local" and self.crash == "report" and not self.reconcile

    @property
    def runs_again(self) -> bool:
        """Whether it is run once more if its holder goes now, without asking whether it happened."""
        return self.runs and self.runner == "local" and self.crash == "rerun"


class MayBeAlone(Protocol):
    """A call that says whether it must be the only one of its step."""

    @property
    def exclusive(self) -> bool:
        """Whether it must."""
        ...


def refused_as_one(calls: Sequence[MayBeAlone]) -> bool:
    """Whether calls of one step are refused together: they are several, and one of them must be alone.

    Whoever runs them: the worker, the client, or the worker once the client approves. None of them runs.
    """
    return len(calls) > 1 and any(call.exclusive for call in calls)


def names_of_calls(calls: Iterable[OpenCall]) -> dict[CallKey, str]:
    """Return the tools of calls, by the calls' keys."""
    return {call.key: call.name for call in calls}


def lost_calls(calls: Sequence[OpenCall]) -> tuple[OpenCall, ...]:
    """Return the calls whose outcome is unknown for good if their holder goes now."""
    return () if refused_as_one(calls) else tuple(call for call in calls if call.lost_with_worker)


def repeated_calls(calls: Sequence[OpenCall]) -> tuple[OpenCall, ...]:
    """Return the calls that are run once more if their holder goes now, without asking whether they happened."""
    return () if refused_as_one(calls) else tuple(call for call in calls if call.runs_again)


class Indexes(Struct, omit_defaults=True, kw_only=True, gc=False):
    """What decisions need of history, kept up message by message (``events.indexes``).

    Attributes:
        messages: Messages in history.
        turn_start: The user message that opened the current turn.
        steps: Assistant messages of the current turn since its last resume.
        stop_after: Whether the current turn, since its last resume, holds a non-error result of a stop-after tool.
        last_role: Role of the newest message that counts (not compressed, not removed, not user-only, not system).
        last_interrupted: Whether that message is an answer cut by an interruption.
        open_calls: Calls of the last assistant message without a result.
        boundary: First message of the newest compaction or clear boundary.
        boundary_kind: Which of the two it is.
        visible_after: Messages that prompts read, system messages aside, after the newest boundary.
        assistants_after: Uncompressed assistant messages after the newest boundary.
        context_tokens: Prompt tokens that the newest assistant message after the boundary reported; 0 where none did.
        first_context_tokens: The same of the first assistant message after the boundary.
        context_source: Name of the context source whose context is in history.
        context_revision: Its revision.
        nudged: Whether a hook has let the current turn go on, which it may once.
        more_step: Whether it did so since the last resume: these steps may be one more than the most.
    """

    messages: int = 0
    turn_start: MessageId | None = None
    steps: int = 0
    stop_after: bool = False
    last_role: Role | None = None
    last_interrupted: bool = False
    open_calls: tuple[OpenCall, ...] = ()
    boundary: MessageId | None = None
    boundary_kind: BoundaryKind | None = None
    visible_after: int = 0
    assistants_after: int = 0
    context_tokens: int = 0
    first_context_tokens: int = 0
    context_source: str | None = None
    context_revision: str | None = None
    nudged: bool = False
    more_step: bool = False


class QueueItem(Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """A queued message by id, with the model and effort of its turn."""

    id: MessageId
    model: str | None = None
    effort: str | None = None


class RunningAttempt(Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """The attempt whose outcome is not committed yet."""

    attempt: int
    kind: AttemptKind
    started_at: int


class Control(Struct, omit_defaults=True, kw_only=True, gc=False):
    """The facts of a chat's state.

    Attributes:
        version: Number of events. ``history_version``, ``queue_version``: the last event that changed history, or the
        queue. status: One of the five statuses, with its companions ``interrupting``, ``archived``, ``holder``,
        ``epoch``. not_before: A pending chat is not acquired before this time (microseconds UTC).
        owed: Whether history owes a turn, so that resume has something to run.
        compaction: Where a manual compaction stands in the current turn.
        attempt: Starts on the current history. ``model_attempts``: generate and compact starts that the retry budget
        counts. takeovers: Times that its holder or its runner died on the current history.
        running: The attempt under way.
        usage: Tokens of the chat's life. ``turns``: turns opened. ``cost_micros``: cost in micro-units under the
        recorded prices. budget: The budget raised by the user's answer, over the policy's. ``budget_ended``: a budget
        question was answered with the end. policy: Digest of the recorded policy.
        context_stale_since: Since when it is known that the context source has another context than history.
        context_refresh_at: When it was last asked to collect the context anew (both microseconds UTC).
        lost_response: The response that a request went on from last whose service has it no more.
        imported_to: Version of the last import of a fork's messages; 0 in a chat that is no fork.
        active_tools: Names of the tools that the model may call, all where it is empty; None for the agent's choice.
        importing: Whether a fork's messages may still be imported: nothing but fork and import is in the log.
        updated_at: Last change that a person made or that changed history; ``recorded_at``: last event (both
        microseconds UTC).
    """

    chat: str = ""
    owner: str = ""
    agent: str = ""
    model: str | None = None
    effort: str | None = None
    parent: str | None = None
    labels: dict[str, str] = {}
    pinned: bool = False
    retention_us: int | None = None
    release: str = ""
    flags: tuple[int, ...] = ()
    version: int = 0
    history_version: int = 0
    queue_version: int = 0
    created_at: int = 0
    recorded_at: int = 0
    updated_at: int = 0
    status: Status = "waiting"
    interrupting: bool = False
    archived: bool = False
    holder: WorkerId | None = None
    epoch: int = 0
    not_before: int | None = None
    owed: bool = False
    queue: tuple[QueueItem, ...] = ()
    compaction: CompactionPhase = "none"
    attempt: int = 0
    model_attempts: int = 0
    takeovers: int = 0
    running: RunningAttempt | None = None
    retry: RetryState | None = None
    action: OpenAction | None = None
    last_error: ErrorInfo | None = None
    usage: Usage = Usage()
    cost_micros: int = 0
    turns: int = 0
    budget: Budget | None = None
    budget_ended: bool = False
    policy: str = ""
    context_stale_since: int | None = None
    context_refresh_at: int | None = None
    lost_response: str | None = None
    importing: bool = False
    imported_to: int = 0
    active_tools: tuple[str, ...] | None = None
    indexes: Indexes = field(default_factory=Indexes)

    def clone(self) -> Control:
        """Return a copy that the reducer may change; frozen members are shared."""
        return replace(self, indexes=replace(self.indexes))

    @property
    def exists(self) -> bool:
        """Whether the chat was created."""
        return self.version > 0


def encode_control(control: Control) -> bytes:
    """Return control as a header keeps it: facts alone (a content is its size), the same bytes for the same fold."""
    return encode_facts(control)


def encode_facts(part: object) -> bytes:
    """Return a part of control in the same way."""
    return msgspec.json.encode(part, enc_hook=_size_alone)


def decode_control(data: bytes) -> Control:
    """Return the control that ``encode_control`` wrote; its contents are not loaded.

    Raises:
        MalformedEvent: The bytes are not a control.
    """
    try:
        return _DECODER.decode(data)
    except msgspec.MsgspecError as error:
        raise MalformedEvent("control", str(error)) from error


def retention_of(data: bytes) -> int | None:
    """Return how long a chat is kept after its last change, of its encoded control; None: without limit.

    Nothing else of it is decoded: it is asked of many chats at once.

    Raises:
        MalformedEvent: The bytes are not a control.
    """
    if _RETENTION_NAME not in data:  # fields that have their default are not there
        return None
    try:
        return _RETENTION.decode(data).retention_us
    except msgspec.MsgspecError as error:
        raise MalformedEvent("control", str(error)) from error


class _Retention(Struct):
    retention_us: int | None = None


_RETENTION: Final = msgspec.json.Decoder(_Retention)
_RETENTION_NAME: Final = b'"retention_us":'


def _size_alone(value: object) -> int:
    if isinstance(value, Content):
        return value.size
    raise TypeError(type(value).__name__)


def _not_loaded(_: type, size: int) -> Content:
    return Content(Absent.NOT_LOADED, size)


_DECODER: Final = msgspec.json.Decoder(Control, dec_hook=_not_loaded)
