"""Repairing: what a store keeps beside a chat's log is made anew from the log, which is the truth.

Owns what is rewritten (header, segments, uses of large contents) and when that is refused: a log that is not as it was
written, or that does not fold, is nothing to make anything of. The log itself is never changed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from msgspec import Struct

from chatfold.logcheck import Finding
from chatfold.sweep import each_chat
from chatfold.verification import NO_HEADER, StoredCheck, check_stored, check_uses
from events.envelope import AT_REST
from events.errors import EventsError
from events.ids import ChatId
from store.building import build_segments
from store.contract import Header, LoadedHeader, Store
from store.errors import MalformedRow, StoreError, StoreUnavailable
from store.heading import header_of
from store.loading import must_be_there
from store.schema import level_of_new_chat

_TRIES: Final = 10
"""Times that a chat is looked at anew because it went on meanwhile."""


class LogDamaged(StoreError):
    """A log is not as it was written, or makes no sense: nothing can be made of it. Nothing was changed.

    Attributes:
        chat: The chat's id.
        version: The first event that something is wrong with; None where that is not known.
        problem: What is wrong.
    """

    def __init__(self, chat: str, version: int | None, problem: str) -> None:
        place = f"chat {chat!r}" if version is None else f"chat {chat!r}, version {version}"
        super().__init__(f"{place}: {problem}; import a copy of the log, and delete this one")
        self.chat = chat
        self.version = version
        self.problem = problem


class Repaired(Struct, frozen=True, kw_only=True):
    """What repairing a chat did.

    Attributes:
        chat: The chat's id.
        version: Its last version.
        header: Columns of the header that were wrong and are rewritten; all of them where it could not be read.
        unreadable: Why the header could not be read, if so. Whether the chat is foreign, and since when it is listed
            where it is, was lost with it: see :func:`repair_chat`.
        foreign: Whether the chat is foreign now.
        dropped: Segments that were dropped, and
        built: segments that were built.
        uses: Notes of which large contents it uses that were added or taken away.
        left: What is wrong still: steps that were not allowed, large contents that are missing.
    """

    chat: str
    version: int
    header: tuple[str, ...] = ()
    unreadable: str | None = None
    foreign: bool = False
    dropped: int = 0
    built: int = 0
    uses: int = 0
    left: tuple[Finding, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything was changed."""
        return bool(self.header or self.dropped or self.built or self.uses)


class RepairRefused(Struct, frozen=True):
    """A chat that could not be repaired, and why."""

    chat: str
    error: LogDamaged


async def repair_chat(store: Store, chat: str) -> Repaired:
    """Make anew from a chat's log what is not as the log says: header, segments, notes of the large contents in use.

    What the log does not tell is kept: whether the chat is foreign, its reader level, since when it is listed where it
    is. Where the header cannot be read, a chat at rest counts as this store's own; one that owes a turn, or had a
    worker, counts as foreign, so that nothing runs that runs elsewhere: adopt it if it does not.

    Raises:
        ChatNotFound: There is no such chat.
        LogDamaged: The log is not as it was written, or does not fold. Nothing was changed.
        StoreUnavailable: The store cannot be read or written, or the chat went on all the time.
    """
    identity = ChatId(chat)
    rebuilt: dict[str, None] = {}  # also by a try that the chat's going on ended later
    why: str | None = None
    for _ in range(_TRIES):
        log = StoredCheck(chat)
        await check_stored(log, store, identity, None)
        must_be_there(log if log.version or log.found else None, "repair", chat)
        loaded, unreadable = await _header(store, identity)
        before = loaded.header if loaded is not None else None
        header = _header_from(log, identity, before, store.write_level)
        misplaced = loaded is not None and loaded.misplaced
        if header != before or misplaced:
            if not await store.rebuild_header(header):
                continue  # it went on meanwhile
            rebuilt |= dict.fromkeys((*_differing(header, before), *(("ready_at",) if misplaced else ())))
            why = why or unreadable
        uses = await _uses(store, identity, log)
        if uses is None:
            continue
        dropped, built = await _segments(store, identity, log)
        return Repaired(
            chat=chat,
            version=log.version,
            header=tuple(rebuilt),
            unreadable=why,
            foreign=header.foreign,
            dropped=dropped,
            built=built,
            uses=uses,
            left=tuple(finding for finding in (*log.found, *log.missing) if finding.check not in ("segment", "use")),
        )
    raise StoreUnavailable(f"chat {chat!r} went on all the time; repair it when it is at rest")


def repair_all(store: Store, *, at_once: int = 4) -> AsyncIterator[Repaired | RepairRefused]:
    """Repair all chats of a store, in the order of ids; one that cannot be repaired keeps none from it.

    Raises:
        StoreUnavailable: The store cannot be read or written.
    """

    async def one(chat: ChatId) -> Repaired | RepairRefused:
        try:
            return await repair_chat(store, chat)
        except LogDamaged as error:
            return RepairRefused(chat, error)

    return each_chat(store, one, at_once=at_once)


async def _header(store: Store, chat: ChatId) -> tuple[LoadedHeader | None, str | None]:
    """Return the header as it is kept, or why it cannot be read."""
    try:
        loaded = await store.load_header(chat)
    except MalformedRow as error:
        return None, error.why
    return loaded, NO_HEADER if loaded is None else None


def _header_from(log: StoredCheck, chat: ChatId, before: Header | None, level: int) -> Header:
    """Return the header that a log asks for, with what only the one before it knows.

    ``level`` is the reader level that a new chat would have.
    """
    damage = [finding for finding in log.found if finding.check in ("form", "digest", "header")]
    if log.state is None:
        damage += [finding for finding in log.found if finding.check == "audit"][-1:]
    for finding in damage:
        raise LogDamaged(chat, finding.version, finding.problem)
    if log.state is None or not log.version:
        raise LogDamaged(chat, None, "the log has no events")
    control, title = log.state.control, log.state.need_transcript("repair").title
    text = title.text if title is not None and title.available else None
    if title is not None and not title.available and before is not None:
        text = before.title
    at_rest = control.status in AT_REST
    runs_on = before is not None and control.status == "running"
    return header_of(
        log.state,
        log.digest,
        chat=chat,
        title=text,
        foreign=_is_foreign(log, before, at_rest=at_rest),
        reader_level=max(before.reader_level, log.level) if before is not None else level_of_new_chat(level, log.level),
        listed_at=min(before.listed_at, control.updated_at) if before is not None and runs_on else None,
    )


def _is_foreign(log: StoredCheck, before: Header | None, *, at_rest: bool) -> bool:
    """Whether a chat is foreign: not if it went on here; else as its header said, and to be safe where that is lost."""
    if log.places.went_on is not None:
        return False
    return not at_rest if before is None else before.foreign


def _differing(header: Header, before: Header | None) -> tuple[str, ...]:
    columns = Header.__struct_fields__
    return tuple(each for each in columns if before is None or getattr(header, each) != getattr(before, each))


async def _uses(store: Store, chat: ChatId, log: StoredCheck) -> int | None:
    """Make the notes of which large contents a chat uses right; return how many were wrong, None if it went on."""
    await check_uses(log, store, chat)
    wrong = sum(finding.check == "use" for finding in log.found)
    if not wrong:
        return 0
    return wrong if await store.rebuild_uses(chat, log.version, sorted(log.referred)) else None


async def _segments(store: Store, chat: ChatId, log: StoredCheck) -> tuple[int, int]:
    """Drop the segments if one of them is wrong, and build those that lack; return how many of each."""
    dropped = 0
    if any(finding.check == "segment" for finding in log.found):
        dropped = await _count(store, chat)
        await store.drop_segments(chat)
    try:
        return dropped, await build_segments(store, chat)
    except EventsError:
        return dropped, 0  # a large content is missing, which is told


async def _count(store: Store, chat: ChatId) -> int:
    try:
        return len(await store.read_segments(chat, data=False))
    except MalformedRow:
        return 1
