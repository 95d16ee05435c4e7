"""Text that a model gave, made storable: split surrogate pairs joined, lone ones and non-finite numbers replaced. Pure.

What a caller gives is refused where it cannot be stored exactly; what a model gives is repaired, so that its answer
is never lost to its encoding. Every repair is reported with its JSON path. Where the repaired values go is the
business of ``generation.assemble``.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

import msgspec

from events.content import Json

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
MAX_DEPTH: Final = 128
"""Deepest nesting of a JSON value that is kept."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_ESCAPED: Final = re.compile(r"\\u[dD][89a-fA-F]")
_OBJECT: Final = msgspec.json.Decoder(dict[str, Any])


def _join(match: re.Match[str]) -> str:
    pair = match.group()
    return chr(0x10000 + ((ord(pair[0]) - 0xD800) << 10) + (ord(pair[1]) - 0xDC00))


def clean_text(text: str) -> tuple[str, bool]:
    """Join surrogate pairs in ``text`` and replace lone ones by U+FFFD; say whether any was replaced."""
    if not _SURROGATE.search(text):
        return text, False
    return _SURROGATE.subn(REPLACEMENT, _PAIR.sub(_join, text))[0], bool(_SURROGATE.search(_PAIR.sub("", text)))


class SurrogateJoiner:
    """Joins surrogate pairs that a stream split over two deltas.

    ``repaired`` becomes True once a lone surrogate was replaced.
    """

    __slots__ = ("_pending", "repaired")

    def __init__(self) -> None:
        self._pending = ""
        self.repaired = False

    def push(self, text: str) -> str:
        """Take a delta and return the text that is whole by now; a high surrogate at the end waits for its low one."""
        text = self._pending + text
        self._pending = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._pending = text[:-1], text[-1]
        cleaned, repaired = clean_text(text)
        self.repaired |= repaired
        return cleaned

    def flush(self) -> str:
        """End the text: return U+FFFD where half a pair was left over, else nothing."""
        if not self._pending:
            return ""
        self._pending = ""
        self.repaired = True
        return REPLACEMENT


def clean_json(value: Json, path: str) -> tuple[Json, tuple[str, ...]]:
    """Repair a JSON value: texts as :func:`clean_text`; numbers that are not finite and too deep values become null.

    Args:
        value: The value.
        path: The JSON path of the value, for the list of repairs.

    Returns:
        The repaired value and the paths of what was replaced.
    """
    repaired: list[str] = []
    cleaned = _clean(value, path, repaired, 1)
    return cleaned, tuple(repaired)


def _clean(value: Json, path: str, repaired: list[str], depth: int) -> Json:
    if isinstance(value, str):
        text, changed = clean_text(value)
        if changed:
            repaired.append(path)
        return text
    endless = isinstance(value, float) and not math.isfinite(value)
    if endless or (isinstance(value, list | dict) and depth > MAX_DEPTH):
        repaired.append(path)
        return None
    if isinstance(value, list):
        return [_clean(item, f"{path}[{index}]", repaired, depth + 1) for index, item in enumerate(value)]
    if isinstance(value, dict):
        result: dict[str, Json] = {}
        for key, item in value.items():
            name, changed = clean_text(key)
            if changed:
                repaired.append(f"{path}.{name}")
            result[name] = _clean(item, f"{path}.{name}", repaired, depth + 1)
        return result
    return value


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
    return None if _too_deep(value, MAX_DEPTH) else value


def _parse_escaped(text: str) -> dict[str, Json] | None:
    """Parse an object whose strings hold escaped lone surrogates, which the strict decoder refuses."""
    if not _ESCAPED.search(text):
        return None
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    cleaned = clean_json(value, "$")[0]
    return cleaned if isinstance(cleaned, dict) else None


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _too_deep(value: Json, left: int) -> bool:
    if not isinstance(value, list | dict):
        return False
    if left == 0:
        return True
    items = value.values() if isinstance(value, dict) else value
    return any(_too_deep(item, left - 1) for item in items)


def clean_arguments(text: str, path: str) -> tuple[str, tuple[str, ...]]:
    """Repair the JSON text of a call's arguments. What is not JSON stays as it is but for lone surrogates.

    Args:
        text: The arguments as the model gave them.
        path: The JSON path of the arguments, for the list of repairs.

    Returns:
        The repaired text and the paths of what was replaced.
    """
    cleaned, changed = clean_text(text)
    paths = (path,) if changed else ()
    if not _ESCAPED.search(cleaned):
        return cleaned, paths
    try:
        value = json.loads(cleaned)
    except (ValueError, RecursionError):
        return cleaned, paths
    repaired, inner = clean_json(value, path)
    if not inner:
        return cleaned, paths
    return json.dumps(repaired, ensure_ascii=False, separators=(",", ":")), (*paths, *inner)
