"""Moving chats: a stored chat to the lines of a log file, and a log file into a store.

Lines hold the bytes that were stored, so an export verifies as the chat does. What a line looks like is said by
``events.logfile``; whose a chat is (foreign, adopted) by the store's header.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from chatfold.checks import checked_new_chat
from chatfold.version import RELEASE
from events.codec import decode, decode_each
from events.contentlist import content_blobs
from events.digest import verify_chain
from events.envelope import Recorded, StoredEvent
from events.errors import InvalidValue, LogFileError
from events.given import checked_kind
from events.ids import ChatId
from events.levels import level_of_all
from events.logfile import LogFile, birth, header_of, naming_lines, read_log, write_log
from events.reducer import fold
from store.contract import NewEvent, Store
from store.errors import ChatExists
from store.heading import header_of as row_of
from store.loading import PAGE, must_be_there
from store.schema import level_of_new_chat


class LoadedLog(Struct, frozen=True, kw_only=True):
    """A stored log. ``flags`` are the chat's behaviour flags; ``blobs`` is empty unless they were asked for."""

    chat: ChatId
    events: tuple[StoredEvent, ...]
    blobs: Mapping[str, bytes]
    flags: tuple[int, ...]

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of its log file, each with its line break."""
        header = header_of(self.chat, self.events, release=RELEASE, flags=self.flags, blobs=self.blobs)
        yield from write_log(header, self.events, self.blobs)


class ImportedChat(Struct, frozen=True, kw_only=True):
    """A chat that was imported. ``missing_blobs``: contents (digests) that are neither in the file nor in the store."""

    chat: ChatId
    version: int
    missing_blobs: tuple[str, ...]


def load_log(source: str | Path | bytes | Iterable[bytes | str]) -> LogFile:
    """Read a log file and check that it is as it was written.

    Args:
        source: The path of a log file, its bytes, or its lines.

    Raises:
        OSError: The file cannot be read.
        LogFileError: It is not a log file; says the line.
        DigestMismatch: Its digests do not hold: it was changed after it was written.
        InvalidValue: It is neither a path nor bytes nor lines.
    """
    given: object = source
    if not isinstance(given, str | Path | Iterable):
        raise InvalidValue("$.source", f"must be a log file's path, bytes or lines, not {type(given).__name__}")
    if isinstance(source, str | Path):
        log = read_log(Path(source).read_bytes().splitlines(), str(source))
    else:
        log = read_log(source.splitlines() if isinstance(source, bytes) else source, "log")
    verify_chain(log.events, log.blobs)
    return log


def decode_log(log: LogFile) -> tuple[Recorded, ...]:
    """Return the events of a log file, as replay, audit and people read them.

    Raises:
        UnknownEventType: An event is of a type that this release does not know.
        NewerSchema: An event was written by a newer release.
        MalformedEvent: An event is damaged.
        InvalidValue: It is no log file as ``load_log`` gives it.
    """
    checked_kind(log, LogFile, "$.log", "what load_log(path) gives")
    return tuple(decode(stored, blobs=log.blobs) for stored in log.events)


async def stored_log(store: Store, chat: str, *, blobs: bool = False) -> LoadedLog:
    """Return the log of a stored chat, as it is at one moment.

    Args:
        store: Where it is kept.
        chat: Which chat.
        blobs: Whether to read the large contents that lie outside of the events too.

    Raises:
        ChatNotFound: There is no such chat.
        StoreUnavailable: The store cannot be read.
    """
    loaded = must_be_there(await store.load_header(ChatId(chat)), "export", chat)
    events: list[StoredEvent] = []
    while len(events) < loaded.header.version:
        page = await store.read_events(ChatId(chat), after=len(events), upto=loaded.header.version, limit=PAGE)
        if not page:
            break
        events.extend(page)
    return LoadedLog(
        chat=ChatId(chat),
        events=tuple(events),
        blobs=await store.get_blobs(referred_blobs(events)) if blobs else {},
        flags=first.flags if (first := birth(events)) is not None else (),
    )


def referred_blobs(events: Sequence[StoredEvent]) -> list[str]:
    """Return the digests (hex) of all blobs that events refer to, sorted."""
    return sorted({digest for stored in events for digest in content_blobs(stored.content)})


async def import_file(store: Store, log: LogFile, *, name: str = "log", as_id: str | None = None) -> ImportedChat:
    """Write a log file into a store as a foreign chat: nobody runs it, no deadline fires, until it is adopted.

    Args:
        store: Where to.
        log: What ``read_log`` gave.
        name: The file's name, for errors.
        as_id: The id it shall have here; None for the one it had.

    Raises:
        ChatExists: A chat of that id is, or was, in the store.
        LogFileError: The log is empty, or an event cannot be read.
        DigestMismatch: It is not as it was written.
        InvalidValue: The id cannot be a chat's: give another one.
        StoreUnavailable: Nothing was written.
    """
    if not log.events:
        raise LogFileError(name, 1, "the log has no events, so there is no chat to import")
    chat = checked_new_chat(log.header.chat, "$.log.chat") if as_id is None else checked_new_chat(as_id, "$.as_id")
    digest = verify_chain(log.events, log.blobs)
    recorded = tuple(naming_lines(decode_each(log.events, blobs=log.blobs), name))
    state = fold(recorded)
    title = state.need_transcript("import").title
    readable = title.text if title is not None and title.available else None
    level = level_of_new_chat(store.write_level, level_of_all(recorded))
    header = row_of(state, digest, chat=chat, title=readable, foreign=True, reader_level=level)
    packed = {key: value for key, value in log.blobs.items() if hashlib.sha256(value).hexdigest() == key}
    referred = referred_blobs(log.events)
    here = await store.get_blobs([key for key in referred if key not in packed])
    # Those that are here already go along: from now on this chat uses them too.
    if not await store.import_chat(header, [NewEvent(stored=stored) for stored in log.events], {**here, **packed}):
        raise ChatExists(chat)
    missing = tuple(key for key in referred if key not in packed and key not in here)
    return ImportedChat(chat=chat, version=header.version, missing_blobs=missing)
