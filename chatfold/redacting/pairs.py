"""The contents of a log beside those of its redacted form: as long, as blank, of the same form, equal where equal.

And what of the original is still there: no text of some length, and none that the rules forbid. Pure.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Final, final

import msgspec

from chatfold.redacting.avoiding import folded
from chatfold.redacting.content import sign_of
from chatfold.redacting.leaves import LEAF, file_stays, pieces, stays
from chatfold.redacting.rules import RedactionRules
from chatfold.redacting.words import is_json
from events.content import Content, Json, size_of
from events.counting import counted
from events.paths import contents
from events.vocabulary import Event

_FILE: Final = ".data"
"""How the path of a file's bytes ends, and of no other content."""
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
        self._forbidden: Final = [folded(text) for text in rules.never]
        self._found: Final[list[str]] = []
        self._told: Final[set[tuple[int, str]]] = set()
        self._new: Final[dict[bytes, bytes]] = {}
        self._old: Final[dict[bytes, bytes]] = {}
        self._texts: Final[set[str]] = set()
        self._left: Final[set[str]] = set()

    def never(self, text: str, what: str, version: int, advice: str = "") -> None:
        """Look for what must not be in a text of the redacted log; of each of it, the first place of a kind is told.

        Args:
            text: The text.
            what: What kind of place it stands in.
            version: At which version.
            advice: What to do, to be said behind it.
        """
        looked_at = folded(text) if self._forbidden else ""
        for place, forbidden in enumerate(self._forbidden):
            if forbidden in looked_at and (place, what) not in self._told:
                self._told.add((place, what))
                # What is told of it goes to a log: its place among the rules says which it is.
                found = f"text {place + 1} of the rules' never is in {what}, first at version {version}"
                self._found.append(found + advice)

    def compare(self, version: int, before: Event, after: Event) -> None:
        """Compare the contents of an event."""
        for (path, old), (_, new) in zip(contents(before), contents(after), strict=True):
            self.count += 1
            if new.available and not path.endswith(_FILE):  # what a file has of letters is no text
                self._look(new.value, path, version)
            for what in self._differs(old, new, is_file=path.endswith(_FILE)):
                self._found.append(f"version {version}: {path} {what}")

    def _look(self, value: Json, path: str, version: int) -> None:
        if self._forbidden:
            for text in _texts(value):
                self.never(text, f"a content ({path})", version)

    def problems(self, kept: frozenset[str]) -> list[str]:
        """Return what is wrong; ``kept`` are the names in facts that stay."""
        names = kept | frozenset(self._rules.keep_keys)
        allowed = names | {piece for name in names for piece in pieces(name)}
        sizes = sorted(len(text) for text in self._texts & self._left - allowed)
        if not sizes:
            return list(self._found)
        texts = counted(len(sizes), "text of the original is", "texts of the original are")
        return [*self._found, f"{texts} still in it, the longest of {counted(sizes[-1], 'character')}"]

    def _differs(self, old: Content, new: Content, *, is_file: bool) -> Iterator[str]:
        if not (old.available and new.available):
            if (old.held, old.size) != (new.held, new.size):
                yield "is not absent as it was"
            return
        was, now = old.value, new.value
        self._texts.update(piece for text in _texts(was) if not _is_sign(text) for piece in pieces(text))
        self._left.update(piece for text in _texts(now) for piece in pieces(text))
        if old.size != new.size or size_of(was) != size_of(now):
            yield "has another size"
        if _form(was) != _form(now):
            yield "has another form"
        elif file_stays(was, now) if is_file else stays(was, now, self._rules.keep_keys):
            yield "has something of the original's still at its place"
        one, other = (sha256(msgspec.json.encode(value)).digest() for value in (was, now))
        self.unchanged += one == other
        if self._new.setdefault(one, other) != other or self._old.setdefault(other, one) != one:
            yield "is equal to others where it was not, or was and is no more"


def _form(value: Json) -> str:
    """Return what must stay of a value: of a text whether it is blank, or JSON; of JSON all but texts and numbers."""
    if not isinstance(value, str):
        return _skeleton(msgspec.json.encode(value).decode())
    if not value.strip():
        return value
    return f"json {_skeleton(value)}" if is_json(value) else "text"


def _skeleton(text: str) -> str:
    return LEAF.sub(_marked, text)


def _marked(leaf: re.Match[str]) -> str:
    """Return what stands for a text or a number in JSON: a blank text is itself, of a number sign and kind stay."""
    token = leaf[0]
    if token.startswith('"'):
        return token if not msgspec.json.decode(token).strip() else '"text"'
    kind = "float" if set(token) & set(".eE") else "int"
    return f"{kind} {token}" if not set(token) & set("123456789") else f"{kind}{token[:1] == '-'}"


def _is_sign(text: str) -> bool:
    """Whether a text is the sign of a type of files and nothing else: that stays."""
    try:
        data = base64.b64decode(text, validate=True) if len(text) <= _LONGEST_SIGN else b""
    except (binascii.Error, ValueError):
        return False
    return bool(data) and sign_of(data) == data


def _texts(value: Json) -> Iterator[str]:
    """Yield all texts and numbers in a value, names of fields included; of a text that is JSON, those within it."""
    ahead = [value]
    while ahead:
        each = ahead.pop()
        if isinstance(each, dict):
            ahead += [*each, *each.values()]
        elif isinstance(each, list):
            ahead += each
        elif isinstance(each, str) and is_json(each):
            ahead.append(msgspec.json.decode(each))
        elif isinstance(each, str):
            yield each
        elif not isinstance(each, bool) and each is not None:
            yield str(each)
