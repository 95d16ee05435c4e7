"""The contents of a log beside those of its redacted form: as long, as blank, of the same form, equal where equal.

And what of the original is still there: no text of some length, and none that the rules forbid. Pure.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any, Final, final

import msgspec

from chatfold.redacting.content import sign_of
from chatfold.redacting.rules import RedactionRules
from chatfold.redacting.words import is_json
from events.content import Content, Json, size_of
from events.paths import contents
from events.vocabulary import Event

LONG: Final = 10
"""Characters from which on a text is looked for: shorter ones may come out again for another by chance."""

_LONGEST_SIGN: Final = 16
"""Characters of base64 that the longest sign of a file takes."""


@final
class ContentPairs:
    """Compares contents, event by event.

    Args:
        rules: Which fields stay, and what must not be there.

    Attributes:
        count: Contents that were compared.
        unchanged: Those of them that are what they were.
    """

    def __init__(self, rules: RedactionRules) -> None:
        self.count = self.unchanged = 0
        self._rules: Final = rules
        self._forbidden: Final = [(text, text.casefold()) for text in rules.never]
        self._found: Final[list[str]] = []
        self._new: Final[dict[bytes, bytes]] = {}
        self._old: Final[dict[bytes, bytes]] = {}
        self._texts: Final[set[str]] = set()
        self._left: Final[set[str]] = set()

    def never(self, text: str) -> None:
        """Look for what must not be in a text of the redacted log."""
        folded = text.casefold() if self._forbidden else ""
        for place, (_, forbidden) in enumerate(self._forbidden):
            # What is told of it goes to a log: its place among the rules says which it is.
            if forbidden in folded and (said := f"text {place + 1} of the rules' never is in it") not in self._found:
                self._found.append(said)

    def compare(self, version: int, before: Event, after: Event) -> None:
        """Compare the contents of an event."""
        for (path, old), (_, new) in zip(contents(before), contents(after), strict=True):
            self.count += 1
            for what in self._differs(old, new):
                self._found.append(f"version {version}: {path} {what}")

    def problems(self, kept: frozenset[str]) -> list[str]:
        """Return what is wrong; ``kept`` are the names in facts that stay."""
        allowed = kept | frozenset(self._rules.keep_keys)
        left = sorted(len(text) for text in self._texts & self._left - allowed)
        said = (
            [f"{len(left)} texts of the original are still in it, the longest of {left[-1]} characters"] if left else []
        )
        return self._found + said

    def _differs(self, old: Content, new: Content) -> Iterator[str]:
        if not (old.available and new.available):
            if (old.held, old.size) != (new.held, new.size):
                yield "is not absent as it was"
            return
        was, now = old.value, new.value
        self._texts.update(text for text in _texts(was) if len(text) >= LONG and not _is_sign(text))
        for text in _texts(now):
            self.never(text)
            if len(text) >= LONG:
                self._left.add(text)
        if old.size != new.size or size_of(was) != size_of(now):
            yield "has another size"
        if _form(was) != _form(now):
            yield "has another form"
        one, other = msgspec.json.encode(was), msgspec.json.encode(now)
        self.unchanged += one == other
        if self._new.setdefault(one, other) != other or self._old.setdefault(other, one) != one:
            yield "is equal to others where it was not, or was and is no more"


def _form(value: Json) -> Any:
    """Return what must stay of a value: all but its texts and numbers, and whether a text is blank, or JSON."""
    match value:
        case str():
            if not value.strip():
                return value
            return ("json", _form(msgspec.json.decode(value))) if is_json(value) else "text"
        case dict():
            return [_form(each) for each in value.values()]
        case list():
            return tuple(map(_form, value))
        case bool() | None:
            return value
        case _:
            return type(value), bool(value), value < 0


def _is_sign(text: str) -> bool:
    """Whether a text is the sign of a type of files and nothing else: that stays."""
    try:
        data = base64.b64decode(text, validate=True) if len(text) <= _LONGEST_SIGN else b""
    except (binascii.Error, ValueError):
        return False
    return bool(data) and sign_of(data) == data


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a value, names of fields and those in texts that are JSON included."""
    match value:
        case str():
            yield value
            if value[:1] in ("{", "[", '"') and is_json(value):
                yield from _texts(msgspec.json.decode(value))
        case dict():
            for name, each in value.items():
                yield name
                yield from _texts(each)
        case list():
            for each in value:
                yield from _texts(each)
        case _:
            pass
