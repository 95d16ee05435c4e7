"""Texts that must not come up in what is made up, not even by chance: those that the rules never want to see."""

from __future__ import annotations

import re
from collections.abc import Iterable


def avoided(texts: Iterable[str] = ()) -> re.Pattern[str]:
    """Return what finds one of some texts, in capitals or not; of none, what finds nothing."""
    return re.compile("|".join(map(re.escape, texts)) or "(?!)", re.IGNORECASE)
