"""Recording a chat: its log is read, redacted, checked, and written where it may be kept; or nothing is.

The edge of this package: reads logs and writes files. What it tells of a log has none of its content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from chatfold.files import write_new
from chatfold.redacting.check import RedactionCheck, check_redacted
from chatfold.redacting.errors import RedactionError
from chatfold.redacting.picking import Picking
from chatfold.redacting.rewrite import Redacted, redact
from chatfold.redacting.rules import RedactionRules
from chatfold.replaying.logs import SUFFIX, Log, LogSource, SourceNotFound, problem_of
from chatfold.version import RELEASE
from chatstate.errors import ChatNotFound
from events.errors import EventsError
from events.ids import ChatId
from events.logfile import header_of, write_log
from store.errors import StoreError

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]|\A\.")
_LONGEST_NAME: Final = 120
_EXPECTED: Final = (SourceNotFound, OSError, EventsError, ChatNotFound, StoreError, RedactionError)


class Order(Struct, frozen=True, kw_only=True):
    """What is to be recorded, and how.

    Attributes:
        rules: What stays in clear.
        key: What replacements follow from.
        folder: Where the files go; it exists.
        picking: Which logs.
    """

    rules: RedactionRules
    key: bytes
    folder: str
    picking: Picking = Picking()

    def __repr__(self) -> str:
        """Leave out the key, and the rules, which may name what must not be named."""
        return f"Order({self.folder!r})"


class Recording(Struct, frozen=True, kw_only=True):
    """What became of a log.

    Attributes:
        source: What it was named by.
        picked: Whether it is one of those asked for.
        file: The file that was written, or was there with the very same bytes; None where none was.
        chat: The chat's id there.
        events: Number of events.
        checked: What the check came to; None where it did not come to it.
        failed: Why there is no file, where there should be one.
    """

    source: str
    picked: bool = True
    file: str | None = None
    chat: str | None = None
    events: int = 0
    checked: RedactionCheck | None = None
    failed: str | None = None


def record_log(source: LogSource, order: Order) -> Recording:
    """Record a log, if it is one of those asked for. A log that does not pass the check is not written.

    Args:
        source: Where it is.
        order: What to do.

    Returns:
        What became of it. What is wrong with the log or its place is told there and not raised.

    Raises:
        KeyTooShort: The key is.
    """
    try:
        return _record(source, order)
    except _EXPECTED as error:
        return Recording(source=source.name, failed=problem_of(source.name, error))


def _record(source: LogSource, order: Order) -> Recording:
    log = source.read()
    if (fault := log.fault()) is not None:
        return Recording(source=source.name, failed=f"it {fault}")
    if not log.events:
        return Recording(source=source.name, failed="it has no events")
    if order.picking.asks and not order.picking.takes(list(log.bare())):
        return Recording(source=source.name, picked=False)
    redacted = redact(log.chat, log.events, log.blobs, order.rules, order.key)
    checked = check_redacted(log, redacted, order.rules)
    file, failed = None, f"its redacted form is not sound: {checked.problems[0]}" if checked.problems else None
    if failed is None:
        path = Path(order.folder) / file_name_of(redacted.chat)
        failed = _write(path, list(_lines(log, redacted)))
        file = str(path) if failed is None else None
    return Recording(
        source=source.name,
        file=file,
        chat=redacted.chat,
        events=len(log.events),
        checked=checked,
        failed=failed,
    )


def file_name_of(chat: str) -> str:
    """Return the name of the file of a chat."""
    return _UNSAFE.sub("_", chat)[:_LONGEST_NAME] + SUFFIX


def _lines(log: Log, redacted: Redacted) -> Iterator[bytes]:
    header = header_of(
        ChatId(redacted.chat), redacted.events, release=RELEASE, blobs=redacted.blobs, redacted=redacted.mark
    )
    return write_log(header, redacted.events, redacted.blobs)


def _write(path: Path, lines: list[bytes]) -> str | None:
    """Write a file; return why not, where another log is there already: what is kept is not replaced unasked."""
    try:
        write_new(path, lines)
    except FileExistsError:
        same = path.read_bytes() == b"".join(lines)
        return None if same else f"{path} is there already, and is another log: take it away, or name another folder"
    return None
