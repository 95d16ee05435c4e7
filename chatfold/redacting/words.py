"""What stands in for a text: made-up words of exactly as many bytes.

A text is replaced by the same words wherever it stands in a log, and two different ones by different words. A blank
text stays, for it says nothing and may mean something; one without blanks gets none. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from itertools import count
from typing import Final, final

import msgspec

from chatfold.redacting.avoiding import avoided
from chatfold.redacting.errors import RedactionError
from chatfold.redacting.streams import Streams

_LETTERS: Final = b"abcdefghijklmnopqrstuvwxyz"
_SIGNS: Final = _LETTERS + _LETTERS.upper() + b"0123456789" + b"!#$%&()*+,-./:;<=>?@[]^_`{|}~'"
"""All printable characters that JSON writes as they are."""

_ONE_WORD: Final = bytes(_LETTERS[byte % 26] for byte in range(256))
_WORDS: Final = bytes(0x20 if byte >= 216 else _LETTERS[byte % 26] for byte in range(256))  # a blank in six or seven
_ANY: Final = bytes(_SIGNS[byte % len(_SIGNS)] for byte in range(256))
_EXTRA_BLANKS: Final = re.compile(rb"(?<= ) | \Z|\A ")

_SHORT: Final = 3
"""Bytes of a text for which words of letters may run out: more signs are taken then."""
_FIRST: Final = 32
"""Attempts with letters alone."""
_MOST: Final = 5_000
"""Attempts after which no text of a size is left; there are some thousand of two bytes."""
_MENDING: Final = "qzxjkv"
"""Letters that take the place of another, the first that helps: few texts begin with them."""
_SCALAR: Final = 5
"""Bytes of the longest word that is JSON by itself (``false``)."""


def is_json(text: str | bytes) -> bool:
    """Whether a text is JSON, from its first character to its last."""
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return False
    return True


@final
class Words:
    """Replacements of the texts of one log.

    Args:
        streams: Where they come from.
        taken: Texts that nothing is replaced by, since they stay where they are.
        avoid: Finds what must not be in a replacement.
    """

    __slots__ = ("_avoid", "_known", "_single", "_streams", "_taken", "_used")

    def __init__(self, streams: Streams, taken: Container[str] = (), avoid: re.Pattern[str] | None = None) -> None:
        self._streams: Final = streams
        self._avoid: Final = avoided() if avoid is None else avoid
        self._taken: Final = taken
        self._known: Final[dict[tuple[str, int], str]] = {}
        self._used: Final[set[str]] = set()
        self._single: Final[dict[bool, dict[str, str]]] = {}

    def replace(self, text: str, size: int | None = None) -> str:
        """Return the words that stand for a text from now on.

        Args:
            text: The text.
            size: Bytes that the words shall have where they stand within JSON, which may write a text longer than it
                is; None for those of the text.

        Raises:
            RedactionError: No text of that size is left.
        """
        if not text.strip():
            return text
        wanted = len(text.encode()) if size is None else size
        if wanted == 1:
            return self._one(text, within=size is not None)
        known = self._known.get((text, wanted))
        if known is None:
            known = self._known[text, wanted] = self._new(text, wanted)
            self._used.add(known)
        return known

    def _new(self, text: str, size: int) -> str:
        words = _WORDS if any(map(str.isspace, text)) else _ONE_WORD
        for attempt in count():
            if attempt == _MOST:
                raise RedactionError(None, f"there are no more texts of {size} bytes")
            table = _ANY if size <= _SHORT and attempt >= _FIRST else words
            made = self._streams.take("text", text, size, attempt).translate(table)
            candidate = self._mended(_EXTRA_BLANKS.sub(b"e", made).decode())
            if candidate in self._used or candidate == text or candidate in self._taken:
                continue
            if self._avoid.search(candidate):
                continue
            if size > _SCALAR or not is_json(candidate):
                return candidate
        raise AssertionError("the loop has no end")  # pragma: no cover

    def _mended(self, made: str) -> str:
        """Return made-up words with another letter where they have what must not be there: long ones always have."""
        for letter in _MENDING:
            if not self._avoid.search(made):
                break
            made = self._avoid.sub(lambda found, letter=letter: letter + found[0][1:], made)  # type: ignore[misc]  # bound
        return made

    def _one(self, text: str, *, within: bool) -> str:
        """Return another single character: where there are so few, each is another's, in an order that the key gives.

        Digits are JSON by themselves, so that they are no texts but within JSON.
        """
        swapped = self._single.get(within)
        if swapped is None:
            fits = _fits_within if within else _fits_alone
            swapped = self._single[within] = self._swapped(fits)
        return swapped.get(text, text)

    def _swapped(self, fits: Callable[[str], bool]) -> dict[str, str]:
        all_fitting = (char for char in map(chr, range(128)) if not char.isspace() and fits(char))
        singles = [char for char in all_fitting if char not in self._taken]
        shuffled = sorted(singles, key=lambda char: self._streams.take("character", char, 16))
        # Each is followed by the next in the shuffled order, so that none stays what it is.
        return dict(zip(shuffled, [*shuffled[1:], *shuffled[:1]], strict=True))


def _fits_alone(char: str) -> bool:
    return not char.isdigit()


def _fits_within(char: str) -> bool:
    return char >= " " and char not in '"\\'
