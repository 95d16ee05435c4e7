"""Texts that must not come up in what is made up, not even by chance: those that the rules never want to see."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable


def folded(text: str) -> str:
    """Return a text as it is where forms of letters do not count: capitals, full width, marks apart from their letter.

    Twice, since a letter in its plain form may have a small one that is written in parts (the Turkish dotted I).
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def avoided(texts: Iterable[str] = ()) -> re.Pattern[str]:
    """Return what finds one of some texts in a made-up one, which is ASCII, in capitals or not; of none, nothing."""
    return re.compile("|".join(re.escape(folded(text)) for text in texts) or "(?!)", re.IGNORECASE | re.ASCII)
