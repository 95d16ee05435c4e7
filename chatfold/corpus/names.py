"""What a log of a corpus may be called: the name of files that stand in its folder and nowhere else. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from chatfold.corpus.gate import FOLD, NOTE
from chatfold.replaying.logs import SUFFIX, LogSource
from events.given import checked_kind

_OURS: Final = (SUFFIX, FOLD, NOTE)


class UnfitName(ValueError):
    """A log of a corpus cannot be called so; the text says why, and what a name is.

    Attributes:
        name: The name.
    """

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
        self.name = name
        self.why = why

    def __str__(self) -> str:
        """Say both."""
        return f"a log of a corpus cannot be called {self.name!r:.100}: {self.why}"


def checked_name(name: str) -> str:
    """Return a name that files of a corpus may have.

    Raises:
        UnfitName: It is none.
        InvalidValue: It is no text.
    """
    why = _unfit(checked_kind(name, str, "$.name", "a text"))
    if why is not None:
        raise UnfitName(name, why)
    return name


def _unfit(name: str) -> str | None:
    if not name.strip():
        return "it is empty"
    if "/" in name or "\\" in name:
        return "it is the name of a file in the corpus, and no path"
    if name.startswith("."):
        return "files that begin with a dot are hidden"
    if not name.isprintable():
        return "it has characters that cannot be printed"
    ending = next((suffix for suffix in _OURS if name.endswith(suffix)), None)
    return None if ending is None else f"{ending} is added to it; leave that away"


def name_of(source: LogSource) -> str | None:
    """Return what a log is called where nobody says: as its file without the ending, or as its chat; None of stdin."""
    if source.place == "stdin":
        return None
    return source.where if source.place == "chat" else Path(source.where).stem
