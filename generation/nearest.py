"""Which of some known words was meant by one that is none of them. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(text: str, words: Iterable[str]) -> str | None:
    """Return the word that is closest to a text; None where none is close."""
    return next(iter(difflib.get_close_matches(text, list(words), n=1)), None)


def meant(text: str, words: Iterable[str]) -> str:
    """Return which of some words was meant, to be said behind what is wrong; nothing where none is close."""
    word = nearest(text, words)
    return "" if word is None else f"; did you mean {word}?"
