"""Blocks of a stream while they grow: what ``generation.assemble`` keeps between two parts. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Iterable

from events.content import Json
from events.values import DeltaJoiner
from generation.providers.contract import (
    CallDelta,
    CallEnd,
    ProviderResult,
    ReasoningDelta,
    ReasoningEnd,
    StreamPart,
    TextDelta,
    TextEnd,
)
from generation.repair import repaired_arguments, short_text


class Block:
    """A block of an answer."""

    def flush(self, number: int) -> Iterable[StreamPart]:
        """End the block's text where its stream did not; return what may be shown of that."""
        return ()


class _Grown(Block):
    def __init__(self) -> None:
        self._joiner = DeltaJoiner()
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        """The text so far, without surrogates."""
        return "".join(self._pieces)

    @property
    def repaired(self) -> bool:
        """Whether a lone surrogate was replaced."""
        return self._joiner.repaired

    def _push(self, text: str) -> str:
        return self._keep(self._joiner.push(text))

    def _rest(self) -> str:
        return self._keep(self._joiner.finish())

    def _keep(self, piece: str) -> str:
        if piece:
            self._pieces.append(piece)
        return piece


class TextBlock(_Grown):
    """A text block. ``metadata`` is what its provider wants back."""

    def __init__(self) -> None:
        super().__init__()
        self.metadata: Json = None

    def take(self, part: TextDelta | TextEnd) -> tuple[StreamPart, ...]:
        """Take the block's next part and return what may be shown of it."""
        if isinstance(part, TextDelta):
            piece = self._push(part.text)
            return (TextDelta(block=part.block, text=piece),) if piece else ()
        if part.metadata is not None:
            self.metadata = part.metadata
        return (*self.flush(part.block), part)

    def flush(self, number: int) -> tuple[StreamPart, ...]:
        """End the text."""
        piece = self._rest()
        return (TextDelta(block=number, text=piece),) if piece else ()


class ReasoningBlock(_Grown):
    """A reasoning block with its times in microseconds UTC."""

    def __init__(self) -> None:
        super().__init__()
        self.metadata: Json = None
        self.redacted = False
        self.started_at: int | None = None
        self.ended_at: int | None = None

    def take(self, part: ReasoningDelta | ReasoningEnd, at: int | None) -> tuple[StreamPart, ...]:
        """Take the block's next part, which came at ``at``, and return what may be shown of it."""
        if self.started_at is None:
            self.started_at = at
        if isinstance(part, ReasoningDelta):
            piece = self._push(part.text)
            return (ReasoningDelta(block=part.block, text=piece),) if piece else ()
        self.ended_at = at
        self.redacted |= part.redacted
        if part.metadata is not None:  # an empty one must not take a signature away
            self.metadata = part.metadata
        return (*self.flush(part.block), part)

    def flush(self, number: int) -> tuple[StreamPart, ...]:
        """End the text."""
        piece = self._rest()
        return (ReasoningDelta(block=number, text=piece),) if piece else ()


class CallBlock(_Grown):
    """A tool call. ``whole`` says that its provider gave all of it; ``ended_at`` when (microseconds UTC)."""

    def __init__(self) -> None:
        super().__init__()
        self.id = ""
        self.name = ""
        self._replaced: set[str] = set()
        self.metadata: Json = None
        self.provider_executed = False
        self.whole = False
        self.ended_at: int | None = None
        self._given: tuple[str, tuple[str, ...]] = ("", ())

    @property
    def arguments(self) -> str:
        """The argument text so far: the whole call's beats what its deltas gave."""
        return self.clean_arguments()[0]

    def clean_arguments(self) -> tuple[str, tuple[str, ...]]:
        """Return the argument text, repaired, and the paths of what was replaced."""
        if self.whole:
            return self._given
        text, repaired = repaired_arguments(self.text, "$.arguments")
        return text, (("$.arguments",) if self.repaired else ()) + repaired

    def take(self, part: CallDelta | CallEnd, at: int | None) -> tuple[StreamPart, ...]:
        """Take the block's next part, which came at ``at``, and return what may be shown of it."""
        given_id, given_name = self._whole("provider_call_id", part.id), self._whole("name", part.name)
        self.id, self.name = given_id or self.id, given_name or self.name
        if isinstance(part, CallDelta):
            piece = self._push(part.text)
            shown = CallDelta(block=part.block, text=piece, name=given_name, id=given_id)
            return (shown,) if piece or given_name else ()
        self.whole = True
        self.ended_at = at
        self._given = repaired_arguments(part.arguments, "$.arguments")
        self.metadata = part.metadata
        self.provider_executed = part.provider_executed
        shown_end = CallEnd(
            block=part.block,
            id=given_id,
            name=given_name,
            arguments=self._given[0],
            metadata=part.metadata,
            provider_executed=part.provider_executed,
        )
        return (*self.flush(part.block), shown_end)

    @property
    def replaced(self) -> tuple[str, ...]:
        """The JSON paths of the id and the name, where they are not kept as they came."""
        if not self._replaced:
            return ()
        return tuple(f"$.{field}" for field in ("name", "provider_call_id") if field in self._replaced)

    def _whole(self, field: str, text: str) -> str:
        whole, replaced = short_text(text)
        if replaced:
            self._replaced.add(field)
        elif text and self._replaced:
            self._replaced.discard(field)
        return whole

    def flush(self, number: int) -> tuple[StreamPart, ...]:
        """End the argument text."""
        piece = self._rest()
        return (CallDelta(block=number, text=piece),) if piece else ()


class ResultBlock(Block):
    """The result of a call that the provider executed, as far as it can be stored."""

    def __init__(self, part: ProviderResult, repaired: tuple[str, ...], at: int | None) -> None:
        self.call_id = part.call_id
        self.output = part.output
        self.is_error = part.is_error
        self.metadata = part.metadata
        self.repaired = repaired
        self.at = at


class SourceBlock(Block):
    """A source that is cited."""

    def __init__(self, source_id: str, url: str, title: str | None) -> None:
        self.source_id = source_id
        self.url = url
        self.title = title
