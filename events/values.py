"""Values: what can be stored exactly, and what becomes of the rest.

What a caller gives and cannot be stored exactly is refused with its JSON path (``check_value``); what a model or a
tool gives is repaired (``repair_text``, ``repair_value``), because an answer must not be lost to its encoding. Both
run before anything is encoded: the encoder would write NaN as null and integer keys as strings without a word. Sizes
of events and messages are checked by ``events.encoding``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Container
from itertools import count
from typing import Any, Final, final

import msgspec
from msgspec import Struct

from events.content import Json
from events.errors import InvalidValue
from events.paths import child, item

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**64 - 1
"""Integers from ``INT_MIN`` to ``INT_MAX`` fit into 64 bits, signed or unsigned."""

LARGEST: Final = INT_MAX // 2
"""What nothing of ours counts beyond."""
_REPLACEMENT: Final = "\ufffd"


class Limits(Struct, frozen=True, kw_only=True):
    """Sizes that are enforced when an event is encoded.

    Attributes:
        event_bytes: Bytes of an event as stored: its facts and its content, without what went to blobs.
        message_bytes: Bytes of the encoded content values of one message, blobs included.
        blob_bytes: A content value whose encoding is longer than this goes to a blob. Where that leaves an event over
            ``event_bytes``, its largest values go there too.
        depth: Levels of nested arrays and objects in a value.
    """

    event_bytes: int = 1 << 20
    message_bytes: int = 16 << 20
    blob_bytes: int = 32_000
    depth: int = 128


DEFAULT_LIMITS: Final = Limits()


def checked_whole(value: object, path: str, *, least: int = 0) -> int:
    """Return a whole number.

    Raises:
        InvalidValue: It is none, less than ``least``, or so large that nothing of ours counts so far.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidValue(path, f"must be a whole number, not {type(value).__name__}")
    if value < least:
        raise InvalidValue(path, f"must be at least {least}, not {value}")
    if value > LARGEST:
        raise InvalidValue(path, "is too large")
    return value


@final
class _Duplicate:
    """Marks the value of a key that stood twice in an object of ``parse_json_strict``."""


def check_value(value: object, path: str = "$", limits: Limits = DEFAULT_LIMITS) -> None:
    """Refuse what cannot be stored exactly as JSON.

    Args:
        value: What a caller gave; plain JSON data if it is right.
        path: JSON path of the value, for the error.
        limits: The depth allowed.

    Raises:
        InvalidValue: A lone surrogate, NaN or an infinity, an integer beyond 64 bits, a key that is no text, too many
            levels, or a type that JSON does not have. The error's path names the place.
    """
    _check(value, path, limits.depth)


def _check(value: object, path: str, depth: int) -> None:
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int):
        if not INT_MIN <= value <= INT_MAX:
            raise InvalidValue(path, "the integer does not fit into 64 bits")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidValue(path, f"{value} is no JSON number")
    elif isinstance(value, dict | list | tuple):
        if depth <= 0:
            raise InvalidValue(path, "nested too deep")
        _check_members(value, path, depth - 1)
    elif isinstance(value, _Duplicate):
        raise InvalidValue(path, "the key stands twice in its object")
    else:
        raise InvalidValue(path, f"{type(value).__name__} is no JSON type")


def _check_members(value: dict[Any, Any] | list[Any] | tuple[Any, ...], path: str, depth: int) -> None:
    if not isinstance(value, dict):
        for index, member in enumerate(value):
            _check(member, item(path, index), depth)
        return
    for key, member in value.items():
        if not isinstance(key, str):
            raise InvalidValue(path, f"the key {key!r} is {type(key).__name__}, not text")
        place = child(path, key)
        _check_text(key, place)
        _check(member, place, depth)


def _check_text(text: str, path: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(path, f"lone surrogate at character {error.start}") from None


def repair_text(text: str) -> tuple[str, bool]:
    """Make a model's or a tool's text storable.

    Two halves of a surrogate pair are joined (streamed deltas may have split them), a lone half becomes U+FFFD, all
    else (NUL, too) stays.

    Returns:
        The text, and whether it differs from what was given.
    """
    if text.isascii():
        return text, False
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), True
    return text, False


@final
class DeltaJoiner:
    """Repairs a text that comes in deltas: half a surrogate pair at the end of one waits for the other in the next."""

    def __init__(self) -> None:
        self._half = ""
        self.repaired = False
        """Whether anything was changed but for joining halves that two deltas had split."""

    def push(self, delta: str) -> str:
        """Take a delta and return the text that is whole by now."""
        if not self._half and delta.isascii():
            return delta
        text, self._half = self._half + delta, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        whole, _ = repair_text(text)
        if whole.count(_REPLACEMENT) != text.count(_REPLACEMENT):
            self.repaired = True
        return whole

    def finish(self) -> str:
        """Return what is left: U+FFFD for a half whose other half never came."""
        if not self._half:
            return ""
        self._half, self.repaired = "", True
        return _REPLACEMENT


def repair_value(value: object, limits: Limits = DEFAULT_LIMITS) -> tuple[Json, tuple[str, ...]]:
    """Make a model's or a tool's value storable.

    Texts are repaired as ``repair_text`` does, NaN and infinities become null, integers beyond 64 bits their decimal
    text, keys that are no text their ``str``, and what lies deeper than the limit its JSON text.

    Returns:
        The value, and the JSON paths of what was changed. Where two keys of an object become equal the later one is
        made distinct (``distinct_key``), and its path is listed.

    Raises:
        InvalidValue: A type that JSON does not have.
    """
    paths: list[str] = []
    return _repair(value, "$", limits.depth, paths), tuple(paths)


def _repair(value: object, path: str, depth: int, paths: list[str]) -> Json:
    if isinstance(value, str):
        text, changed = repair_text(value)
        if changed:
            paths.append(path)
        return text
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        if INT_MIN <= value <= INT_MAX:
            return value
        paths.append(path)
        return format_integer(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        paths.append(path)
        return None
    if not isinstance(value, dict | list | tuple):
        raise InvalidValue(path, f"{type(value).__name__} is no JSON type")
    if depth <= 0:
        paths.append(path)
        return _as_text(value, path)
    if isinstance(value, dict):
        return _repair_object(value, path, depth - 1, paths)
    return [_repair(member, item(path, index), depth - 1, paths) for index, member in enumerate(value)]


def _repair_object(value: dict[Any, Any], path: str, depth: int, paths: list[str]) -> dict[str, Json]:
    repaired: dict[str, Json] = {}
    for key, member in value.items():
        whole, changed = repair_text(key if isinstance(key, str) else str(key))
        text = distinct_key(whole, repaired)
        place = child(path, text)
        if changed or text is not whole or not isinstance(key, str):
            paths.append(place)
        repaired[text] = _repair(member, place, depth, paths)
    return repaired


def distinct_key(key: str, taken: Container[str]) -> str:
    """Return a key that is not taken yet, so that no member of an object is lost: itself, or with a number after it.

    Args:
        key: The key, as text.
        taken: The keys that the object has so far.
    """
    if key not in taken:
        return key
    return next(name for number in count(2) if (name := f"{key} ({number})") not in taken)


def _as_text(value: object, path: str) -> str:
    """Return the JSON text of what lies too deep; ASCII escapes keep lone surrogates visible."""
    try:
        return json.dumps(value, skipkeys=False)
    except (TypeError, ValueError) as error:
        raise InvalidValue(path, str(error)) from None
    except RecursionError:
        raise InvalidValue(path, "nested too deep to be written as text") from None


def format_integer(value: int) -> str:
    """Return an integer as text: decimal, or hexadecimal where it is over Python's limit on decimal digits."""
    try:
        return str(value)
    except ValueError:
        return hex(value)


def parse_json_strict(text: str, limits: Limits = DEFAULT_LIMITS) -> Json:
    """Parse JSON that a model wrote (tool arguments), and report what an easy-going parser would hide.

    Raises:
        InvalidValue: Not JSON; a key that stands twice; NaN or an infinity (also a number too large for one); an
            integer beyond 64 bits; a lone surrogate; too deep. The error's path names the place.
    """
    try:
        value = _STRICT.decode(text)
    except json.JSONDecodeError as error:
        raise InvalidValue("$", f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise InvalidValue("$", "nested too deep") from None
    check_value(value, "$", limits)
    parsed: Json = value
    return parsed


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                members[key] = _Duplicate()
            seen.add(key)
    return members


def _integer(digits: str) -> int:
    # Longer ones are beyond 64 bits anyway, and Python refuses to parse some of them.
    return int(digits) if len(digits) <= 20 else 2**64


# Made once: json.loads makes one for each text that it is given hooks for.
_STRICT: Final = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=_integer)


def encode_json(value: Json) -> bytes:
    """Return the JSON bytes of a checked or repaired value, as contents are stored."""
    return msgspec.json.encode(value)
