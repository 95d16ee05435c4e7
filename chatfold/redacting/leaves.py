"""What of a content is still in the one that stands for it: at the same place, or as a piece of a text anywhere.

For the check of a redacted log, which knows nothing of how it was made: what is told here is what may never stay.
Pure.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Container, Iterator
from typing import Final

import msgspec

from chatfold.redacting.content import sign_of
from chatfold.redacting.words import is_json
from events.content import Json

LONG: Final = 10
"""Characters from which on a text is looked for everywhere: shorter ones may come out again for another by chance."""
_MIXED: Final = 6
"""The same of a run of letters and digits: what is made up has runs of either alone."""
_TELLING: Final = 4
"""Digits from which on a number may not stay: of fewer there may be no other one left."""
_SIZE: Final = 3
"""Digits of an exponent that say how large a number is."""
_CHUNK: Final = 8
"""Bytes of a file that are not the same by chance."""

LEAF: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][0-9.eE+-]*')
"""A text or a number, wherever it stands in JSON."""
_RUN: Final = re.compile(rf"[^\W_]{{{_MIXED},}}")
_COLON: Final = re.compile(r"\s*:")
_EXPONENT: Final = re.compile(r"[eE][+-]?0*")


def stays(was: Json, now: Json, keep: Container[str]) -> bool:
    """Whether a text or a number of a value is still where it was.

    Args:
        was: The value.
        now: What stands for it, of the same form.
        keep: Names of fields that may stay.
    """
    if isinstance(was, str) and isinstance(now, str) and not is_json(was):
        return was == now and _tells(was)
    one, other = (each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in (was, now))
    pairs = zip(LEAF.finditer(one), LEAF.finditer(other), strict=False)
    return any(
        _text_stays(old, new, keep) if old[0].startswith('"') else _number_stays(old[0], new[0]) for old, new in pairs
    )


def file_stays(was: Json, now: Json) -> bool:
    """Whether bytes of a file, in base64, are still where they were; what begins every file of its type may be."""
    if not (isinstance(was, str) and isinstance(now, str)):
        return stays(was, now, ())
    try:
        one, other = base64.b64decode(was, validate=True), base64.b64decode(now, validate=True)
    except (binascii.Error, ValueError):
        return was == now and _tells(was)
    begin = len(sign_of(one))
    if one[begin:] == other[begin:]:
        return len(one) - begin >= _TELLING
    return any(one[at : at + _CHUNK] == other[at : at + _CHUNK] for at in range(begin, len(one) - _CHUNK + 1, _CHUNK))


def pieces(text: str) -> Iterator[str]:
    """Yield a text and what in it may be known by itself, a key or a number, as far as they are not there by chance."""
    if len(text) >= LONG:
        yield text
    for run in _RUN.findall(text):
        if len(run) >= LONG or not (run.isalpha() or run.isdecimal()):
            yield run


def _tells(text: str) -> bool:
    return bool(text.strip()) and len(text.encode()) > 1


def _text_stays(old: re.Match[str], new: re.Match[str], keep: Container[str]) -> bool:
    if old[0] != new[0] or len(old[0]) <= len('"x"'):
        return False
    said: str = msgspec.json.decode(old[0])
    is_field = _COLON.match(old.string, old.end()) is not None
    return bool(said.strip()) and not (is_field and said in keep)


def _number_stays(old: str, new: str) -> bool:
    """Whether the digits of a number or of its exponent are what they were, each by itself."""
    pairs = zip(_EXPONENT.split(old), _EXPONENT.split(new), (_TELLING, _SIZE + 1), strict=False)
    return any(one == other and len(one.replace(".", "").strip("-0")) >= most for one, other, most in pairs)
