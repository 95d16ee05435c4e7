"""From what a tool gave, or how it failed, to a value that can be stored and shown to the model. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

import msgspec
from msgspec import Struct
from pydantic_core import SchemaSerializer, core_schema, to_jsonable_python

from events.content import Content, Json, size_of
from events.cutting import fit
from events.errors import InvalidValue
from events.ids import CallKey
from events.parts import FilePart, ToolResultPart
from events.reasons import Reason
from events.values import distinct_key, encode_json, repair_value
from generation.errors import ClassifiedError
from generation.foreign import text_of, words_of
from generation.repair import whole_text
from generation.tools.contract import ToolOutput
from generation.tools.files import ToolFile, files_of

_ANY: Final = SchemaSerializer(core_schema.any_schema())
"""Makes plain data of anything, and leaves bytes in it as they are."""

_BYTES: Final = (bytes, bytearray, memoryview)
_LEAVES: Final = frozenset({str, int, float, bool, type(None)})

_REASON_BUDGET: Final = 1000
"""Bytes that say why a result cannot be recorded."""


class Answer(Struct, frozen=True):
    """A storable answer. ``repaired`` are the JSON paths in ``output`` that could not be kept as they were.

    ``media`` and ``attachments`` as in ``ToolOutput``.
    """

    output: Json
    is_error: bool = False
    repaired: tuple[str, ...] = ()
    media: tuple[FilePart, ...] = ()
    attachments: tuple[FilePart, ...] = ()


class CallResult(Struct, frozen=True, kw_only=True):
    """The result of one call. Times are microseconds UTC; absent where nothing ran.

    ``reason``: why there is no result of the tool's own; ``answer`` says it in words. ``rewritten``: the JSON text of
    the arguments that were in force, where they are not the model's own. ``context``: what hooks tell the model beside
    it. ``fault``: why the turn must end with it.
    """

    key: CallKey
    name: str
    answer: Answer
    started_at: int | None = None
    ended_at: int | None = None
    reason: Reason | None = None
    rewritten: str | None = None
    context: str | None = None
    fault: ClassifiedError | None = None

    def part(self) -> ToolResultPart:
        """Return the result as events carry it."""
        return ToolResultPart(
            call=self.key,
            is_error=self.answer.is_error,
            output=Content(self.answer.output) if self.reason is None else None,
            reason=self.reason,
            started_at=self.started_at,
            ended_at=self.ended_at,
            repaired=self.answer.repaired,
            media=self.answer.media,
            attachments=self.answer.attachments,
            rewritten=Content(self.rewritten) if self.rewritten is not None else None,
            context=Content(self.context) if self.context is not None else None,
        )


def unrecordable(result: ToolResultPart, why: str) -> ToolResultPart:
    """Return the error to record in the place of a result that cannot be recorded, and that says so.

    Args:
        result: The result.
        why: What the append said.
    """
    text = error_answer(f"The tool ran, but its result cannot be recorded: {why}", _REASON_BUDGET)
    output = Content(text.output)
    return msgspec.structs.replace(
        result, is_error=True, output=output, repaired=(), media=(), attachments=(), context=None
    )


def answer_of(value: Any, budget: int) -> Answer:
    """Return what a tool gave as an answer.

    A text stays a text, and bytes become one; models, dataclasses, structs and other things with a JSON form become
    JSON. Bytes that are no UTF-8 are repaired, wherever they stand. Keys become texts, and where two of a mapping
    become equal the later one is told apart by a number (``{1: 2, "1": 3}``: ``"1"`` and ``"1 (2)"``). A value over the
    budget becomes text with its middle left out. What has no JSON form becomes an error.

    Args:
        value: What the function returned.
        budget: Bytes that the output may take.
    """
    is_error = False
    media: list[object] = []
    attachments: list[object] = []
    while isinstance(value, ToolOutput):
        media, attachments = [*_listed(value.media), *media], [*_listed(value.attachments), *attachments]
        value, is_error = value.output, is_error or value.is_error
    if isinstance(value, ToolFile):
        value, media = "", [value, *media]
    if isinstance(value, Iterator | AsyncIterator):
        return error_answer(f"The tool ran, but gave a {type(value).__name__}, which has no JSON form.", budget)
    try:
        output, repaired = _text(value) if isinstance(value, _BYTES) else repair_value(_plain(value))
    except (ValueError, TypeError, RecursionError, InvalidValue) as error:
        why = f"The tool ran, but what it gave has no JSON form: {type(value).__name__}: {text_of(error)}"
        return error_answer(why, budget)
    output = fit(output, budget)
    if not media and not attachments:
        return Answer(output, is_error, repaired)
    files = files_of(media, attachments, budget - size_of(output))
    if files.notes:
        said = output if isinstance(output, str) else encode_json(output).decode()
        room = size_of(output) + files.room
        output = fit("\n".join(filter(None, (said, *(f"[{note}]" for note in files.notes)))), room)
    return Answer(output, is_error, repaired, files.media, files.attachments)


def _listed(files: object) -> list[object]:
    """Return the files that were given, one or several."""
    return list(files) if isinstance(files, Iterable) and not isinstance(files, str | bytes) else [files]


def _text(value: bytes | bytearray | memoryview) -> tuple[Json, tuple[str, ...]]:
    """Return bytes as text, and what was repaired. A file may be long, and finding faults one by one takes long."""
    given = bytes(value)
    try:
        return given.decode(), ()
    except UnicodeDecodeError:
        return given.decode(errors="replace"), ("$",)


def _plain(value: Any) -> Any:
    if isinstance(value, str) and type(value) is str:
        return value
    try:
        plain = to_jsonable_python(value, fallback=_fallback)
    except UnicodeError:
        # Bytes that are no text become surrogates here, which the repair then replaces and lists like any others.
        pass
    else:
        if not _merges(_ANY.to_python(value)):
            return plain
    return to_jsonable_python(_decoded(_ANY.to_python(value)), fallback=_fallback)


def _merges(value: Any) -> bool:
    """Whether keys of some mapping within plain data are equal as texts, so that one would take the other's place."""
    if type(value) in _LEAVES:  # most of what tools give, and matching it against the ABCs below is slow
        return False
    match value:
        case Mapping():
            if any(type(key) is not str for key in value) and len(set(map(_key, value))) < len(value):
                return True
            return any(map(_merges, value.values()))
        case list() | tuple() | AbstractSet() | deque():
            return any(map(_merges, value))
        case _:
            return False


def _decoded(value: Any) -> Any:
    """Return plain data with all bytes in it as text, those that are no UTF-8 as lone surrogates.

    Keys become texts. Of those that become equal the later ones are made distinct, so that nothing is lost.
    """
    match value:
        case _ if isinstance(value, _BYTES):
            return bytes(value).decode("utf-8", "surrogateescape")
        case Mapping():
            named: dict[str, Any] = {}
            for key, item in value.items():
                named[distinct_key(_key(key), named)] = _decoded(item)
            return named
        case list() | tuple() | AbstractSet() | deque():
            return [_decoded(item) for item in value]
        case _:
            return value


def _key(key: Any) -> str:
    """Return the text that a key becomes."""
    if isinstance(key, bytes):
        return key.decode("utf-8", "replace")
    if type(key) is str:
        return whole_text(key)[0]
    return whole_text(next(iter(to_jsonable_python({key: None}))))[0]


def error_answer(text: str, budget: int) -> Answer:
    """Return words for the model as an error, repaired and cut to ``budget`` bytes."""
    output, repaired = repair_value(text)
    return Answer(fit(output, budget), is_error=True, repaired=repaired)


def exception_answer(error: BaseException, budget: int) -> Answer:
    """Return what the model is told of an exception: its type and text, no traceback."""
    return error_answer(words_of(error), budget)


def _fallback(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _decoded(msgspec.to_builtins(value))
    if isinstance(value, memoryview):
        return bytes(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
