"""The ledgers: what tools did and what models said, written down outside of the database by themselves.

One file for each of the two, one line for each thing, in the order in which they happened: lines are appended by a
single write each, so neither a kill nor several processes at once can mix them. What they are compared with is in
``checks``.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final, Literal, Self, TypeVar

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


class Said(Struct, frozen=True, kw_only=True):
    """A line: more text of an answer, written down just before the engine was given the last of it.

    Attributes:
        chat: Whose answer it is; ``history_version`` and ``attempt`` name the attempt.
        process: The worker process.
        at: Seconds since 1970, as the database's machine counts them too.
    """

    chat: str
    history_version: int
    attempt: int
    process: int
    at: float
    text: str


T = TypeVar("T")

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Entry)
_SAID: Final = msgspec.json.Decoder(Said)


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

    def write(self, entry: Entry | Said) -> None:
        """Append a line."""
        os.write(self._file, _ENCODER.encode(entry) + b"\n")


def now() -> float:
    """Return the ledger's time."""
    return time.monotonic()


def read_ledger(path: Path) -> list[Entry]:
    """Return all lines of the tools' ledger, in the order in which they were written."""
    return _read(path, _DECODER)


def read_said(path: Path) -> list[Said]:
    """Return all lines of the models' ledger, in the order in which they were written."""
    return _read(path, _SAID)


def _read(path: Path, decoder: msgspec.json.Decoder[T]) -> list[T]:
    return [decoder.decode(line) for line in path.read_bytes().splitlines()] if path.exists() else []
