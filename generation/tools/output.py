"""From what a tool gave, or how it failed, to a value that can be stored and shown to the model. Pure."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct
from pydantic_core import to_jsonable_python

from events.content import Content, Json
from events.errors import InvalidValue
from events.ids import CallKey
from events.parts import ToolResultPart
from events.reasons import Reason
from events.values import encode_json, repair_value
from generation.budget import truncate
from generation.tools.contract import ToolOutput

_REASON_BUDGET: Final = 1000
"""Bytes that say why a result cannot be recorded."""


class Answer(Struct, frozen=True):
    """A storable answer. ``repaired`` are the JSON paths in ``output`` that could not be kept as they were."""

    output: Json
    is_error: bool = False
    repaired: tuple[str, ...] = ()


class CallResult(Struct, frozen=True, kw_only=True):
    """The result of one call. Times are microseconds UTC; absent where nothing ran.

    ``reason``: why there is no result of the tool's own; ``answer`` says it in words.
    """

    key: CallKey
    name: str
    answer: Answer
    started_at: int | None = None
    ended_at: int | None = None
    reason: Reason | None = None

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
        )


def unrecordable(result: ToolResultPart, why: str) -> ToolResultPart:
    """Return the error to record in the place of a result that cannot be recorded, and that says so.

    Args:
        result: The result.
        why: What the append said.
    """
    text = error_answer(f"The tool ran, but its result cannot be recorded: {why}", _REASON_BUDGET)
    return msgspec.structs.replace(result, is_error=True, output=Content(text.output), repaired=())


def answer_of(value: Any, budget: int) -> Answer:
    """Return what a tool gave as an answer.

    A text stays a text; models, dataclasses, structs and other things with a JSON form become JSON. A value over the
    budget becomes text with its middle left out. What has no JSON form becomes an error.

    Args:
        value: What the function returned.
        budget: Bytes that the output may take.
    """
    is_error = False
    while isinstance(value, ToolOutput):
        value, is_error = value.output, is_error or value.is_error
    if isinstance(value, Iterator | AsyncIterator):
        return error_answer(f"The tool ran, but gave a {type(value).__name__}, which has no JSON form.", budget)
    try:
        output, repaired = repair_value(to_jsonable_python(value, fallback=_fallback))
    except (ValueError, TypeError, RecursionError, InvalidValue) as error:
        why = f"The tool ran, but what it gave has no JSON form: {type(value).__name__}: {_text_of(error)}"
        return error_answer(why, budget)
    return Answer(_fit(output, budget), is_error, repaired)


def error_answer(text: str, budget: int) -> Answer:
    """Return words for the model as an error, repaired and cut to ``budget`` bytes."""
    output, repaired = repair_value(text)
    return Answer(_fit(output, budget), is_error=True, repaired=repaired)


def exception_answer(error: BaseException, budget: int) -> Answer:
    """Return what the model is told of an exception: its type and text, no traceback."""
    text = _text_of(error)
    return error_answer(f"{type(error).__name__}: {text}" if text else type(error).__name__, budget)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001 - an exception whose text fails must not cost the result
        return f"(its text cannot be read: {type(broken).__name__})"


def _fallback(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _fit(output: Json, budget: int) -> Json:
    text = output if isinstance(output, str) else encode_json(output).decode()
    return output if len(text) * 4 <= budget or len(text.encode()) <= budget else truncate(text, budget)
