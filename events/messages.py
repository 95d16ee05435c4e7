"""Messages, and what is known of the model step that made one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from events.content import Content
from events.ids import MessageId
from events.parts import Part, TextPart
from events.sharing import share_name

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Visibility: TypeAlias = Literal["both", "user", "model"]
"""Who reads a message. Prompts read ``model`` and ``both``; clients read ``user`` and ``both``."""

BoundaryKind: TypeAlias = Literal["chat_summarized", "chat_cleared"]
FinishReason: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter", "refusal", "unknown"]


class _Record(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """Base of the plain records of this module."""


class Usage(_Record, frozen=True, kw_only=True):
    """Tokens of one model call in four categories that do not overlap; ``reasoning`` is a share of ``output``."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    @property
    def context(self) -> int:
        """Tokens that the prompt took: input with both cache categories, or all there are where none is known."""
        return self.input + self.cache_read + self.cache_write or self.output

    def __add__(self, other: Usage) -> Usage:
        """Add category by category."""
        return self.plus((other,))

    def plus(self, others: Iterable[Usage]) -> Usage:
        """Return the sum with all of ``others``, category by category."""
        given, made, read, written, reasoned = (
            self.input,
            self.output,
            self.cache_read,
            self.cache_write,
            self.reasoning,
        )
        for other in others:
            given += other.input
            made += other.output
            read += other.cache_read
            written += other.cache_write
            reasoned += other.reasoning
        if (given, made, read, written, reasoned) == (0, 0, 0, 0, 0):
            return self
        return Usage(input=given, output=made, cache_read=read, cache_write=written, reasoning=reasoned)


class KeptResponse(_Record, frozen=True, kw_only=True):
    """That a service keeps a response, so that a later request may go on from it, and what that needs to be right.

    ``before``: the digest of the prompt's messages that it answered. ``options``: that of the model's options.
    """

    before: str
    options: str


class Step(_Record, frozen=True, kw_only=True):
    """What is known of the model call behind an assistant message or an ended attempt.

    Times are microseconds UTC. ``cost_micros`` is the cost in micro-units of currency under the policy in force, None
    where unpriced. ``unmetered`` says that an answer ended without a word of its usage, or was cut before all of it was
    told: what ``usage`` has is too little. ``context_tokens`` is what the newest prompt took, where the answer took
    several requests, whose usage is summed up. ``kept``: the service keeps this response. ``continued``: the kept
    response that the request went on from, in place of the history up to it.
    """

    provider: str
    model: str
    finish_reason: FinishReason = "unknown"
    usage: Usage = Usage()
    response_id: str | None = None
    metadata: Content | None = None
    started_at: int | None = None
    first_part_at: int | None = None
    ended_at: int | None = None
    cost_micros: int | None = None
    unmetered: bool = False
    context_tokens: int | None = None
    kept: KeptResponse | None = None
    continued: str | None = None

    @property
    def context(self) -> int:
        """Tokens that the prompt took, the newest of them where there were several."""
        return self.usage.context if self.context_tokens is None else self.context_tokens


def share_names(step: Step) -> None:
    """Let a step that was just read use the texts that other steps have where it names its provider and its model."""
    force_setattr(step, "provider", share_name(step.provider))
    force_setattr(step, "model", share_name(step.model))


class ContextMark(_Record, frozen=True, kw_only=True):
    """Marks a system message as the context of a context source at a revision; the newest such message counts."""

    source: str
    revision: str


class Message(_Record, frozen=True, kw_only=True):
    """One message as an event carries it; its id follows from the event's version and its place there.

    ``interrupted`` marks an answer that an interruption cut short: it is not finished. ``boundary`` marks the three
    messages of a compaction or clear boundary. ``origin`` is the id that a copied message (fork, re-insertion) had
    where it came from.
    """

    role: Role
    parts: tuple[Part, ...]
    visibility: Visibility = "both"
    interrupted: bool = False
    step: Step | None = None
    boundary: BoundaryKind | None = None
    context: ContextMark | None = None
    origin: MessageId | None = None
    author: str | None = None

    @property
    def text(self) -> str:
        """What its text parts say, one after the other; the empty text where it has none.

        Raises:
            ContentUnavailable: A text was not loaded, or it was erased.
        """
        return "".join(part.text.text for part in self.parts if isinstance(part, TextPart))

    @property
    def opens_turn(self) -> bool:
        """Whether this message starts a turn: a user message that is not for the model alone."""
        return self.role == "user" and self.visibility != "model"


class QueuedMessage(_Record, frozen=True, kw_only=True):
    """A message that waits in the queue, with the model and effort that its turn shall have."""

    message: Message
    model: str | None = None
    effort: str | None = None
