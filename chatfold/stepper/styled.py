"""Pieces of styled text that all panes share: styles, bounds, a heading."""

from __future__ import annotations

from typing import Final

from rich.text import Text

DIM: Final = "dim"
NAME: Final = "bold"
MOST_LINES: Final = 200
"""Lines of one list that are shown; how many more there are is said."""
TEXT_WIDTH: Final = 2000
"""Characters of one line that are shown."""


def head(text: Text, name: str) -> None:
    """Append a heading, behind an empty line where something stands before it."""
    text.append(f"\n{name}\n" if text.plain else f"{name}\n", "bold underline")
