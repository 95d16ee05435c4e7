"""Content parts of messages: one frozen struct per kind and their closed union.

Fields of type ``Content`` are content; everything else is a fact that fold, decision and audit may read.
"""

from __future__ import annotations

import base64
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from events.content import Content
from events.errors import InvalidValue
from events.ids import CallKey
from events.reasons import Reason
from events.values import check_value

Runner: TypeAlias = Literal["local", "client", "provider"]
"""Who runs a tool call: a worker, the client, or the model's provider."""

CrashPolicy: TypeAlias = Literal["rerun", "report"]
"""What becomes of a call whose worker died: run again, or tell the model that the outcome is unknown."""

OnExpiry: TypeAlias = Literal["go_on", "end_turn"]
"""What follows when the client does not answer in time: the model goes on, or the turn ends."""


class _Part(
    Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="kind", kw_only=True, gc=False
):
    """Base of all parts."""

    @property
    def kind(self) -> str:
        """The part's kind, as in its JSON."""
        return str(self.__struct_config__.tag)


class TextPart(_Part, frozen=True, tag="text", kw_only=True):
    """Text. ``repaired`` lists the JSON paths whose characters could not be stored as they came."""

    text: Content
    metadata: Content | None = None
    repaired: tuple[str, ...] = ()


class ReasoningPart(_Part, frozen=True, tag="reasoning", kw_only=True):
    """Reasoning of a model. ``metadata`` is what its provider wants back (signature, encrypted content), unchanged."""

    text: Content
    metadata: Content | None = None
    redacted: bool = False
    started_at: int | None = None
    ended_at: int | None = None
    repaired: tuple[str, ...] = ()


class ToolCallPart(_Part, frozen=True, tag="tool_call", kw_only=True):
    """A tool call with the facts frozen at its commit: fold and decision never look at a later registry.

    ``arguments`` is the JSON text that the model gave. ``provider_call_id`` is an attribute: some providers repeat it
    in every turn. ``reconcile``: its tool can be asked whether a call happened whose worker died. ``action_timeout_us``
    and ``action_on_expiry``: how long the client has for what this call asks of it, and what follows when it does not
    answer; absent where the policy's hold. ``created_at``: when the whole call had come, in microseconds UTC.
    """

    name: str
    arguments: Content
    provider_call_id: str
    runner: Runner
    crash: CrashPolicy = "report"
    exclusive: bool = False
    stop_after: bool = False
    needs_approval: bool = False
    reconcile: bool = False
    action_timeout_us: int | None = None
    action_on_expiry: OnExpiry | None = None
    created_at: int | None = None
    metadata: Content | None = None
    repaired: tuple[str, ...] = ()


class ToolResultPart(_Part, frozen=True, tag="tool_result", kw_only=True):
    """The result of ``call``: what a tool gave (``output``: a text or JSON), or a ``reason`` why there is none.

    ``media`` are files that the model is shown with it, ``attachments`` files for people alone. ``rewritten`` is the
    JSON text of the arguments in force, where they are not the model's own: the call ran with them, or was refused for
    them. ``context`` is what hooks tell the model beside it.
    """

    call: CallKey
    is_error: bool = False
    output: Content | None = None
    reason: Reason | None = None
    provider_executed: bool = False
    metadata: Content | None = None
    started_at: int | None = None
    ended_at: int | None = None
    repaired: tuple[str, ...] = ()
    media: tuple[FilePart, ...] = ()
    attachments: tuple[FilePart, ...] = ()
    rewritten: Content | None = None
    context: Content | None = None

    @property
    def failed(self) -> bool:
        """Whether the call ended in an error of its own, which the model is told."""
        return self.is_error and self.reason is None


class FilePart(_Part, frozen=True, tag="file", kw_only=True):
    """A file: ``data`` is base64 text. ``FilePart.of`` makes one of bytes, and ``read`` gives them back."""

    media_type: str
    data: Content
    name: Content | None = None

    @classmethod
    def of(cls, data: bytes | bytearray | memoryview, media_type: str, name: str | None = None) -> FilePart:
        """Return a file with these bytes.

        Args:
            data: Its bytes.
            media_type: Such as ``image/png``.
            name: Its name, where it has one.

        Raises:
            InvalidValue: The data are no bytes, or the name cannot be stored exactly.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise InvalidValue("$.data", f"must be bytes, not {type(data).__name__}")
        if name is not None:
            check_value(name, "$.name")
        text = base64.b64encode(data).decode("ascii")
        return cls(media_type=media_type, data=Content(text), name=Content(name) if name is not None else None)

    def read(self) -> bytes:
        """Return the file's bytes.

        Raises:
            ContentUnavailable: They were not loaded, or they were erased.
            ValueError: What was stored is no base64.
        """
        return base64.b64decode(self.data.text, validate=True)


class FileReferencePart(_Part, frozen=True, tag="file_reference", kw_only=True):
    """Lines of a named file (1-based, inclusive), quoted by a user."""

    name: Content
    start_line: int
    end_line: int
    text: Content


class SourcePart(_Part, frozen=True, tag="source", kw_only=True):
    """A source that a model or its provider cites."""

    source_id: str
    url: Content
    title: Content | None = None
    metadata: Content | None = None


class ContextFilePart(_Part, frozen=True, tag="context_file", kw_only=True):
    """A file of the workspace's context."""

    path: Content
    text: Content
    truncated: bool = False
    os: str | None = None
    directory: Content | None = None


class SkillPart(_Part, frozen=True, tag="skill", kw_only=True):
    """A skill of the workspace, as the index that the model reads names it; its text is read when it is wanted.

    ``directory``: where its files are.
    """

    name: Content
    description: Content
    directory: Content


class HookContextPart(_Part, frozen=True, tag="hook_context", kw_only=True):
    """What a hook tells the model beside a user's message, and nobody else. ``event``: what it was asked at."""

    event: str
    text: Content


ContextFault: TypeAlias = Literal["oversize", "unreadable", "invalid", "excluded"]
"""Why something of a workspace is not in its context: too large, it cannot be read, it is not what it must be, or there
is too much before it."""


class ContextProblemPart(_Part, frozen=True, tag="context_problem", kw_only=True):
    """Something of the workspace that is not in its context, for people to see; models do not read it."""

    path: Content
    fault: ContextFault
    detail: Content


Part: TypeAlias = (
    TextPart
    | ReasoningPart
    | ToolCallPart
    | ToolResultPart
    | FilePart
    | FileReferencePart
    | SourcePart
    | ContextFilePart
    | SkillPart
    | ContextProblemPart
    | HookContextPart
)

PARTS: Final[tuple[type, ...]] = get_args(Part)
"""All kinds of parts."""
