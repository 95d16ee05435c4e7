"""The ledger: what tools did, written down outside of the database by the tools themselves.

One file, one line for each thing, in the order in which they happened: lines are appended by a single write each, so
neither a kill nor several processes at once can mix them. What they are compared with is in ``checks``.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final, Literal, Self

import msgspec
from msgspec import Struct


class Entry(Struct, frozen=True, kw_only=True):
    """A line: a tool ``began``, or it ``ended``; between the two it had its effect.

    Attributes:
        key: The call's idempotency key, as the tool was given it; ``chat``, ``epoch`` and ``attempt`` likewise.
        run: Names this run of the function; the tool returns it, so that results can be traced to runs.
        process: The worker process.
        at: Seconds of the clock that all processes of the machine share.
    """

    what: Literal["began", "ended"]
    tool: str
    key: str
    chat: str
    epoch: int
    attempt: int
    run: str
    process: int
    at: float


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Entry)


class Ledger:
    """The writing end.

    Args:
        path: The file; it is made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self._file)

    def write(self, entry: Entry) -> None:
        """Append a line."""
        os.write(self._file, _ENCODER.encode(entry) + b"\n")


def now() -> float:
    """Return the ledger's time."""
    return time.monotonic()


def read_ledger(path: Path) -> list[Entry]:
    """Return all lines of a ledger, in the order in which they were written."""
    return [_DECODER.decode(line) for line in path.read_bytes().splitlines()] if path.exists() else []
