"""Partial answers: how what came of a model's stream is kept as chunks, and what is made of them after a crash. Pure.

A chunk holds the stream's parts since the one before it, as the provider gave them: recovery replays them through the
assembler that a live interruption asks, so that there is one rule for what of an answer is kept. Plain JSON, because
text may end in half a surrogate pair. When chunks are written, and who reads them, is ``generation.flushing``'s matter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct, defstruct
from msgspec.structs import asdict, fields, replace

from events.ids import MessageId
from events.messages import Message, Step
from events.records import AttemptReport, ModelPolicy, RequestDigests, ToolPolicy
from generation.assemble import Assembler
from generation.errors import ProviderError
from generation.outcome import is_withheld
from generation.policy import priced
from generation.providers.contract import (
    CallDelta,
    CallEnd,
    Finish,
    ProviderResult,
    ReasoningDelta,
    ReasoningEnd,
    SourceFound,
    StreamPart,
    TextDelta,
    TextEnd,
    UsageSoFar,
)
from store.contract import PartialChunk

FORMAT: Final = 1
"""The form of chunks that this release writes and reads; those of another are left alone."""

MOST_BYTES: Final = 8 << 20
"""Bytes of chunks of which an answer is made: half of what a message may have, since whatever is kept must fit."""

_Given: TypeAlias = StreamPart | UsageSoFar

_TAGS: Final[dict[str, type[_Given]]] = {
    "t": TextDelta,
    "T": TextEnd,
    "r": ReasoningDelta,
    "R": ReasoningEnd,
    "c": CallDelta,
    "C": CallEnd,
    "p": ProviderResult,
    "s": SourceFound,
    "u": UsageSoFar,
    "f": Finish,
}
_TAG_OF: Final = {cls: tag for tag, cls in _TAGS.items()}

_FREE: Final = ("metadata", "output")
"""Fields of parts that hold any JSON."""


def _form(cls: type[_Given]) -> type[Struct]:
    """Return a part's form in a chunk: what came later may lack in one that an older worker left."""
    # The type of any JSON names itself, which msgspec does not follow.
    typed = [(field, Any if field.name in _FREE else field.type) for field in fields(cls)]
    return defstruct(
        cls.__name__,
        [(field.name, of) if field.required else (field.name, of, field.default) for field, of in typed],
        kw_only=True,
    )


_FORMS: Final = {tag: _form(cls) for tag, cls in _TAGS.items()}


class Timed(NamedTuple):
    """A part of a stream, and when it came: microseconds UTC."""

    at: int
    part: _Given


class CallStart(Struct, frozen=True, kw_only=True):
    """What is known of a model call when it starts."""

    model: ModelPolicy
    digests: RequestDigests
    started_at: int


class Leftover(Struct, frozen=True, kw_only=True):
    """What the chunks of an attempt give.

    Attributes:
        message: What had come of the answer, marked interrupted; None where nothing of it is worth keeping.
        report: What the attempt cost as far as it is known, for an event that keeps no message.
        problem: Why chunks were left out, in words without content; None where all were read.
    """

    message: Message | None = None
    report: AttemptReport | None = None
    problem: str | None = None

    @property
    def beside(self) -> AttemptReport | None:
        """The report that stands beside the message: its step tells the cost already."""
        if self.message is None or self.report is None:
            return self.report
        return AttemptReport(request=self.report.request)


def cut_answer(assembler: Assembler, step: Step) -> Message | None:
    """Return what an answer that was cut leaves, marked interrupted; None where there is nothing to keep.

    What a provider withheld in the end is not kept.
    """
    if assembler.finish is not None and is_withheld(assembler.finish):
        return None
    # Whoever commits the message points the provider's results at the calls in it.
    parts = assembler.parts(MessageId("0.0"), interrupted=True, ended_at=step.ended_at)
    return Message(role="assistant", parts=parts, step=step, interrupted=True) if parts else None


def encode_chunk(parts: Sequence[Timed], tools: Mapping[str, ToolPolicy], start: CallStart | None = None) -> bytes:
    """Return a chunk's data.

    Args:
        parts: The parts since the chunk before, at least one; deltas that follow one another are joined.
        tools: Declared tools by name: of those that ``parts`` call the declaration goes with them.
        start: What is known of the call; in the attempt's first chunk.

    Raises:
        ValueError, TypeError, RecursionError: A part holds what is no JSON.
    """
    joined = tuple(_joined(parts))
    named = {part.name for _, part in joined if isinstance(part, CallDelta | CallEnd)}
    chunk: dict[str, Any] = {
        "v": FORMAT,
        "at": parts[-1].at,
        "parts": [[_TAG_OF[type(part)], at, msgspec.to_builtins(part)] for at, part in joined],
    }
    if called := [msgspec.to_builtins(tools[name]) for name in sorted(named) if name in tools]:
        chunk["tools"] = called
    if start is not None:
        chunk["start"] = msgspec.to_builtins(start)
    try:
        return json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a surrogate pair, whose other half is still to come
        return json.dumps(chunk, separators=(",", ":")).encode()


def _joined(parts: Iterable[Timed]) -> Iterator[Timed]:
    """Join deltas of one block that follow one another: the assembler makes the same of them."""
    last: Timed | None = None
    texts: list[str] = []
    for each in parts:
        part = each.part
        if last is not None and _continues(last.part, part):
            texts.append(part.text)  # type: ignore[union-attr]  # _continues has seen that it is a delta
            continue
        if last is not None:
            yield _whole(last, texts)
        last, texts = each, [part.text] if isinstance(part, TextDelta | ReasoningDelta | CallDelta) else []
    if last is not None:
        yield _whole(last, texts)


def _continues(last: _Given, part: _Given) -> bool:
    if isinstance(part, CallDelta):
        return isinstance(last, CallDelta) and last.block == part.block and not part.name and not part.id
    if isinstance(part, TextDelta | ReasoningDelta):
        return type(last) is type(part) and last.block == part.block
    return False


def _whole(timed: Timed, texts: Sequence[str]) -> Timed:
    part = timed.part
    if len(texts) < 2 or not isinstance(part, TextDelta | ReasoningDelta | CallDelta):
        return timed
    return Timed(timed.at, replace(part, text="".join(texts)))


class _Chunk(Struct, frozen=True):
    v: int
    at: int
    parts: list[tuple[str, int, dict[str, Any]]]
    tools: list[ToolPolicy] = []
    start: CallStart | None = None


def _part(tag: str, given: dict[str, Any]) -> _Given:
    return _TAGS[tag](**asdict(msgspec.convert(given, _FORMS[tag])))


class _Damaged(Exception):
    """A chunk that cannot be read."""


def recover(chunks: Iterable[PartialChunk], history_version: int, attempt: int) -> Leftover:
    """Return what the chunks of one attempt give; those of others, and what follows a gap, are left out.

    Args:
        chunks: What a store keeps of the chat, in order.
        history_version: The history that the attempt was made on.
        attempt: Its number.
    """
    replay = _Replay()
    size, problem = 0, None
    for n, chunk in enumerate(c for c in chunks if (c.history_version, c.attempt) == (history_version, attempt)):
        size += len(chunk.data)
        if chunk.n != n:
            problem = f"chunk {n} is missing"
        elif size > MOST_BYTES:
            problem = f"chunk {n} and what follows is over {MOST_BYTES} bytes"
        else:
            try:
                replay.take(chunk.data, first=n == 0)
                continue
            except _Damaged as error:
                problem = f"chunk {n} is damaged: {error}"
        break
    return replay.leftover(problem)


class _Replay:
    """A stream that is played again, chunk by chunk."""

    def __init__(self) -> None:
        self._tools: dict[str, ToolPolicy] = {}
        self._assembler = Assembler(self._tools)
        self._start: CallStart | None = None
        self._last_at: int | None = None

    def take(self, data: bytes, *, first: bool) -> None:
        """Play a chunk; of a damaged one, what precedes the damage.

        Raises:
            _Damaged: It cannot be read, or makes no sense.
        """
        try:
            chunk = msgspec.convert(json.loads(data), _Chunk)
            if chunk.v != FORMAT:
                raise _Damaged(f"form {chunk.v} is not known")
            parts = [Timed(at, _part(tag, given)) for tag, at, given in chunk.parts]
        except (ValueError, KeyError, RecursionError) as error:
            # The text of the error might hold content.
            raise _Damaged(type(error).__name__) from None
        if first and chunk.start is None:
            raise _Damaged("the call's start is missing")
        self._start = self._start or chunk.start
        self._tools.update((tool.name, tool) for tool in chunk.tools)
        for at, part in parts:
            try:
                self._assembler.add(part, at)
            except ProviderError as error:
                raise _Damaged(type(error).__name__) from None
            self._last_at = at
        self._last_at = chunk.at

    def leftover(self, problem: str | None) -> Leftover:
        """Return what there is."""
        start = self._start
        if start is None:
            return Leftover(problem=problem)
        step = self._assembler.step(
            start.model.provider, start.model.name, started_at=start.started_at, ended_at=self._last_at
        )
        step = priced(step, start.model)
        return Leftover(
            message=cut_answer(self._assembler, step),
            report=AttemptReport(step=step, request=start.digests),
            problem=problem,
        )
