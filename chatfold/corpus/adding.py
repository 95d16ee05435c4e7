"""Adding a log to a corpus: the log, its fold expectations, and a note."""

from __future__ import annotations

from pathlib import Path

from chatfold.corpus.expected import expectations
from chatfold.corpus.gate import FOLD, NOTE
from chatfold.testing.asserts import read_events


class LogThere(Exception):
    """A corpus has a log of that name already: what is in it stays as it is."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        """Say which, and what to do."""
        return f"there is a log {self.name} already, and logs of a corpus stay as they are: give another name"


def add_log(log: bytes, folder: Path, name: str, note: str) -> Path:
    """Write a log into a corpus, with what today's code folds it to.

    Args:
        log: The log as a file.
        folder: The corpus.
        name: The log's name there.
        note: What wrote it, and what its failure would mean.

    Returns:
        The log's file.

    Raises:
        LogThere: There is one of that name.
        LogFileError: It is no log file.
        EventsError: An event cannot be read, or the log was altered.
        OSError: It cannot be written.
    """
    file = folder / f"{name}.jsonl"
    if file.exists():
        raise LogThere(name)
    lines = b"".join(line + b"\n" for line in expectations(read_events(log)))
    # The log comes last: one that is there is whole.
    (folder / f"{name}{FOLD}").write_bytes(lines)
    (folder / f"{name}{NOTE}").write_text(f"# {name}\n\n{note}\n", encoding="utf-8")
    file.write_bytes(log)
    return file
