"""From what callers give to what commands carry: messages, results, fingerprints.

Refuses what cannot be stored exactly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import msgspec

from chatstate.commands import SubmittedResult
from events.content import Content, Json
from events.errors import InvalidValue
from events.ids import CallKey, ChatId
from events.messages import Message, QueuedMessage, Role
from events.parts import PARTS, Part, TextPart
from events.values import check_value
from generation.models import EFFORTS, parse_model

_LONGEST: Final = 9e12
"""Seconds that fit into 64 bits as microseconds."""

MessageInput: TypeAlias = str | Sequence[Part] | Message
"""A text, content parts, or a whole message."""


def message_of(given: MessageInput, role: Role = "user", author: str | None = None) -> Message:
    """Return a message.

    Raises:
        InvalidValue: The text is blank or cannot be stored exactly; says the path.
    """
    if isinstance(given, Message):
        return given
    if isinstance(given, str):
        check_value(given, "$.message")
        if not given.strip():
            raise InvalidValue("$.message", "the text is blank")
        return Message(role=role, parts=(TextPart(text=Content(given)),), author=author)
    if not isinstance(given, Sequence):
        raise InvalidValue("$.message", f"a message is a text or parts, not {type(given).__name__}")
    return Message(role=role, parts=_checked_parts(given), author=author)


def _checked_parts(given: Sequence[object]) -> tuple[Part, ...]:
    if not given:
        raise InvalidValue("$.message", "there are no parts")
    for place, part in enumerate(given):
        if not isinstance(part, PARTS):
            raise InvalidValue(f"$.message[{place}]", f"a part is one of chatfold's parts, not {type(part).__name__}")
    return cast("tuple[Part, ...]", tuple(given))


def queued(given: MessageInput, model: str | None, effort: str | None, author: str | None) -> QueuedMessage:
    """Return a message with the model and effort of its turn."""
    return QueuedMessage(message=message_of(given, author=author), model=model, effort=effort)


def submitted(results: Mapping[str, Json] | Sequence[SubmittedResult]) -> tuple[SubmittedResult, ...]:
    """Return submitted results; of a mapping from call to output none is an error.

    What is not JSON that can be stored is marked, not refused here: the order of checks is the machine's.
    """
    if not isinstance(results, Mapping):
        return tuple(results)
    return tuple(_result(CallKey(call), output) for call, output in results.items())


def result(call: str, output: Json, *, is_error: bool = False) -> SubmittedResult:
    """Return the result of one client-run call."""
    return _result(CallKey(call), output, is_error=is_error)


def _result(call: CallKey, output: Any, *, is_error: bool = False) -> SubmittedResult:
    try:
        check_value(output, "$.output")
    except InvalidValue as error:
        return SubmittedResult(call=call, output=Content(""), is_error=is_error, problem=str(error))
    return SubmittedResult(call=call, output=Content(output), is_error=is_error)


def checked_model(reference: str | None) -> str | None:
    """Return a model reference in its whole form.

    Raises:
        UnknownModel: It has not the form ``provider/name``.
    """
    return parse_model(reference).reference if reference is not None else None


def checked_effort(effort: str | None) -> str | None:
    """Return a reasoning effort.

    Raises:
        InvalidValue: There is no such effort.
    """
    if effort is not None and effort not in EFFORTS:
        raise InvalidValue("$.effort", f"must be one of {', '.join(EFFORTS)}, not {effort!r}")
    return effort


def checked_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels.

    Raises:
        InvalidValue: A name or value is not a text, or cannot be stored exactly.
    """
    for name, value in labels.items():
        for text in (name, value):
            if not isinstance(text, str):
                raise InvalidValue(f"$.labels[{name!r}]", f"must be a text, not {type(text).__name__}")
    check_value(dict(labels), "$.labels")
    return dict(labels)


def checked_retention(seconds: float | None) -> int | None:
    """Return a time to keep a chat in microseconds.

    Raises:
        InvalidValue: It is negative, not a number, or endless.
    """
    if seconds is None:
        return None
    if not 0 <= seconds <= _LONGEST:
        raise InvalidValue("$.seconds", f"must be between 0 and {_LONGEST:g}, not {seconds}; None is without limit")
    return round(seconds * 1_000_000)


def fingerprint(*given: object) -> bytes:
    """Return what identifies the content of a command."""
    return hashlib.sha256(msgspec.json.encode(given, enc_hook=_plain, order="deterministic")).digest()


def derived_chat_id(owner: str, command_id: str) -> ChatId:
    """Return the chat id that a repeated create finds again."""
    return ChatId(hashlib.sha256(f"{owner}\0{command_id}".encode()).hexdigest()[:32])


def _plain(value: object) -> object:
    if isinstance(value, Content):
        return value.value
    raise TypeError(type(value).__name__)
