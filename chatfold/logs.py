"""Logs that leave an engine and come into one: export, reading, import.

The file's form is ``events.logfile``'s, the foreign mark of what was imported the store's.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from chatstate.errors import ChatNotFound
from events.codec import decode
from events.contentlist import content_blobs
from events.digest import verify_chain
from events.envelope import Recorded, StoredEvent
from events.errors import LogFileError
from events.ids import ChatId
from events.logfile import LogFile, read_log, write_log
from events.logfile import header_of as log_header
from events.reducer import fold
from store.append import header_of
from store.contract import Header, NewEvent, Store
from store.errors import ChatExists
from store.loading import PAGE


def decode_log(log: LogFile) -> tuple[Recorded, ...]:
    """Return the events of a log, as replay, audit and people read them.

    Raises:
        UnknownEventType, NewerSchema, MalformedEvent: An event is not one that this release reads.
    """
    return tuple(decode(stored, blobs=log.blobs) for stored in log.events)


def load_log(source: str | Path | bytes | Iterable[bytes | str]) -> LogFile:
    """Read a log and check that it is as it was written.

    Args:
        source: The path of a log file, its bytes, or its lines.

    Raises:
        OSError: The file cannot be read.
        LogFileError: It is not a log file; says the line.
        DigestMismatch: Its digests do not hold: it was changed after it was written.
    """
    if isinstance(source, str | Path):
        log = read_log(Path(source).read_bytes().splitlines(), str(source))
    else:
        log = read_log(source.splitlines() if isinstance(source, bytes) else source, "log")
    verify_chain(log.events, log.blobs)
    return log


async def export_log(store: Store, chat: ChatId, release: str) -> bytes:
    """Return a chat's log as a log file, its large contents with it.

    Raises:
        ChatNotFound: There is no such chat.
    """
    events: list[StoredEvent] = []
    while page := await store.read_events(chat, after=len(events), limit=PAGE):
        events += page
    if not events:
        raise ChatNotFound("export", "N", f"there is no chat {chat}")
    wanted = {digest for event in events for digest in content_blobs(event.content)}
    blobs = await store.get_blobs(sorted(wanted)) if wanted else {}
    flags = fold([decode(events[0], content=False)]).control.flags
    header = log_header(chat, events, release=release, flags=flags, blobs=blobs)
    return b"".join(write_log(header, events, blobs))


async def import_log(store: Store, log: LogFile, chat: ChatId | None = None) -> Header:
    """Write a log as a new chat that is *foreign*: read, replayed and forked, but not run until it is adopted.

    Args:
        store: Where to.
        log: What ``load_log`` gave.
        chat: The id to use here; None for the log's own.

    Raises:
        ChatExists: A chat of this id exists or existed.
        LogFileError: The log has no event.
    """
    events = decode_log(log)
    if not events:
        raise LogFileError("log", 1, "there is no event to import")
    state = fold(events)
    title = state.need_transcript("import").title
    header = header_of(
        state,
        log.events[-1].digest,
        chat=chat if chat is not None else log.header.chat,
        title=title.text if title is not None and title.available else None,
        foreign=True,
    )
    new = [NewEvent(stored=stored) for stored in log.events]
    if not await store.import_chat(header, new, log.blobs):
        raise ChatExists(header.chat)
    return header
