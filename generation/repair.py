"""What a model gave, made storable: tool arguments, and the numbers of its usage. Pure.

Texts and values in general are repaired in ``events.values``; this module adds what holds of arguments, which are
stored as JSON text, and of counts of tokens. Where the repaired values go is the business of ``generation.assemble``.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

import msgspec

from events.content import Json
from events.messages import Usage
from events.values import DEFAULT_LIMITS, DeltaJoiner, repair_value

MAX_SHORT: Final = 1000
"""Characters of a name or an id that are kept."""

MAX_REPAIRED: Final = 100
"""Most paths that are listed of one value's repairs: the list is a fact, and must not crowd the event."""

_ESCAPED: Final = re.compile(r"\\u[dD][89a-fA-F]")
_OBJECT: Final = msgspec.json.Decoder(dict[str, Any])


def whole_text(text: str) -> tuple[str, bool]:
    """Return ``text`` with surrogate pairs joined and lone ones replaced, and whether any was replaced."""
    if text.isascii():
        return text, False
    joiner = DeltaJoiner()
    return joiner.push(text) + joiner.finish(), joiner.repaired


def short_text(text: str) -> tuple[str, bool]:
    """Return a name or an id made storable and cut to ``MAX_SHORT`` characters, and whether that changed it.

    Names and ids are facts, which must not crowd an event. Wire formats allow far shorter ones.
    """
    if len(text) <= MAX_SHORT and text.isascii():
        return text, False
    whole, replaced = whole_text(text)
    return whole[:MAX_SHORT], replaced or len(whole) > MAX_SHORT


def repaired_value(value: Json, path: str) -> tuple[Json, tuple[str, ...]]:
    """Return a value made storable, and the JSON paths of what was changed.

    Paths are at most ``MAX_REPAIRED``; the value's own stands for one that is very long and, as the last, for the rest.

    Args:
        value: What a model gave.
        path: The JSON path of the value.
    """
    storable, paths = repair_value(value)
    if not paths:
        return storable, ()
    return storable, tuple(path + inner[1:] for inner in _bounded(paths))


def _bounded(paths: tuple[str, ...]) -> tuple[str, ...]:
    shown = dict.fromkeys(inner if len(inner) <= MAX_SHORT else "$" for inner in paths)
    if len(shown) <= MAX_REPAIRED:
        return tuple(shown)
    return (*[inner for inner in shown if inner != "$"][: MAX_REPAIRED - 1], "$")


MAX_TOKENS: Final = 2**40
"""Most tokens of a category that one model call may count: no answer is lost to what its provider reports, and the sum
over a chat's calls stays within 64 bits."""


def token_count(told: object) -> int | None:
    """Return a count of tokens as its service told it, from 0 to ``MAX_TOKENS``; None where it told no number.

    Some servers tell counts as floats or as texts. A fraction of a token counts as a whole one.
    """
    if isinstance(told, str):
        try:
            told = float(told)
        except ValueError:
            return None
    if isinstance(told, bool) or not isinstance(told, int | float):
        return None
    if isinstance(told, float) and not math.isfinite(told):
        return None
    return min(max(math.ceil(told), 0), MAX_TOKENS)


def storable_usage(usage: Usage) -> Usage:
    """Return usage whose counts are whole numbers, and neither negative nor over ``MAX_TOKENS``."""
    counts = usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning
    if all(type(count) is int and 0 <= count <= MAX_TOKENS for count in counts):
        return usage
    return Usage(**{name: token_count(getattr(usage, name)) or 0 for name in usage.__struct_fields__})


def parse_object(text: str) -> dict[str, Json] | None:
    """Parse ``text`` as a JSON object; None where it is none, is malformed, or is nested too deeply.

    Lone surrogates in escapes are repaired rather than refused. NaN and infinities are not JSON.
    """
    try:
        value: dict[str, Json] = _OBJECT.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        value_or_none = _parse_escaped(text)
        if value_or_none is None:
            return None
        value = value_or_none
    return None if _too_deep(value, DEFAULT_LIMITS.depth) else value


def _parse_escaped(text: str) -> dict[str, Json] | None:
    """Parse an object whose strings hold escaped lone surrogates, which the strict decoder refuses."""
    if not _ESCAPED.search(text):
        return None
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or _too_deep(value, DEFAULT_LIMITS.depth):
        return None
    storable = repair_value(value)[0]
    return storable if isinstance(storable, dict) else None


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _too_deep(value: Json, left: int) -> bool:
    if not isinstance(value, list | dict):
        return False
    if left == 0:
        return True
    items = value.values() if isinstance(value, dict) else value
    return any(_too_deep(item, left - 1) for item in items)


def repaired_arguments(text: str, path: str) -> tuple[str, tuple[str, ...]]:
    """Repair the JSON text of a call's arguments. What is not JSON stays as it is but for lone surrogates.

    Args:
        text: The arguments as the model gave them.
        path: The JSON path of the arguments, for the list of repairs.

    Returns:
        The repaired text and the paths of what was replaced.
    """
    whole, replaced = whole_text(text)
    paths = (path,) if replaced else ()
    if not _ESCAPED.search(whole):
        return whole, paths
    try:
        value = json.loads(whole)
    except (ValueError, RecursionError):
        return whole, paths
    if _too_deep(value, DEFAULT_LIMITS.depth):
        return whole, paths
    repaired, inner = repaired_value(value, path)
    if not inner:
        return whole, paths
    return json.dumps(repaired, ensure_ascii=False, separators=(",", ":")), (*paths, *inner)
