"""Verifying: is a log as it was written, was all that it says allowed, is a chat's header the fold of its log?

Owns the checks of what a store keeps of a chat, and their order: its log (``logcheck``), its header, its segments, its
large contents.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from chatfold.logcheck import Finding, LogCheck, Verdict
from chatfold.surroundings import PlaceCheck, use_problems
from chatfold.sweep import each_chat
from chatfold.transfer import referred_blobs
from events.digest import GENESIS
from events.envelope import StoredEvent
from events.errors import ContentUnavailable, MalformedEvent
from events.ids import ChatId
from store.columns import EVENTS
from store.contract import Header, Segment, Store
from store.errors import MalformedRow
from store.heading import header_of
from store.loading import must_be_there
from store.segments import SCHEMA, UnfitSegment, compare, open_segment

NO_HEADER: Final = "there are events and no header: nobody finds the chat"

_PAGE: Final = 200
"""Events read at once."""

_AGAIN: Final = 5
"""Times that a chat is looked at again in which something was found while it went on."""


class StoredCheck(LogCheck):
    """The checks of the log of a stored chat: those of a log, and what the store keeps beside it.

    Attributes:
        missing: Large contents that are not in the store, as findings.
        referred: Digests of the large contents that its events refer to, as far as they can be read.
        places: Where its events stand in the feed.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.missing: list[Finding] = []
        self.referred: set[str] = set()
        self.places = PlaceCheck()

    def miss(self, stored: StoredEvent, blobs: Mapping[str, bytes]) -> None:
        """Note the large contents of an event that are not among ``blobs``."""
        for digest in _referred([stored]):
            self.referred.add(digest)
            if digest not in blobs:
                problem = f"content {digest} is not in the store"
                version = stored.envelope.version
                self.missing.append(Finding(chat=self.name, version=version, check="blob", problem=problem))

    def cannot_read(self, error: MalformedRow) -> None:
        """Note a row that cannot be read; where it is an event's, the log ends before it."""
        of_event = error.table == EVENTS
        if of_event:
            self.ends_here()
        self.add("form" if of_event else "header", error.version, error.why)


async def verify_chat(store: Store, chat: str) -> Verdict:
    """Verify a stored chat: its log, and that its header, its segments and its large contents are what the log says.

    The log is read a few events at a time. What is found while the chat goes on is looked for again: an erasure or a
    deletion in between takes away what was still to be read.

    Raises:
        ChatNotFound: There is no such chat.
        StoreUnavailable: The store cannot be read.
    """
    verdict = await _verify_once(store, chat)
    for _ in range(_AGAIN):
        if not verdict.findings or not await _went_on(store, verdict):
            break
        verdict = await _verify_once(store, chat)
    return verdict


async def _went_on(store: Store, verdict: Verdict) -> bool:
    """Tell whether a chat was changed or deleted since it was looked at."""
    try:
        loaded = await store.load_header(ChatId(verdict.chat))
    except MalformedRow:
        return False
    if loaded is not None:
        return loaded.header.version != verdict.version
    return not await store.read_events(ChatId(verdict.chat), limit=1, content=False)


async def _verify_once(store: Store, chat: str) -> Verdict:
    log = StoredCheck(chat)
    try:
        loaded = await store.load_header(ChatId(chat))
    except MalformedRow as error:
        log.cannot_read(error)
        await check_stored(log, store, ChatId(chat), None)
        return _verdict(chat, log)
    if loaded is None:
        must_be_there(await store.read_events(ChatId(chat), limit=1, content=False) or None, "verify", chat)
        if await store.load_header(ChatId(chat)) is not None:  # it was made in between
            return await _verify_once(store, chat)
        log.add("header", None, NO_HEADER)
        await check_stored(log, store, ChatId(chat), None)
        return _verdict(chat, log)
    header = loaded.header
    # It may have gone on in between: the header is compared with the log as it was then.
    await check_stored(log, store, ChatId(chat), header.version)
    if loaded.misplaced:
        log.add("header", None, "the header's ready_at, by which workers find the chat, is not what the others give")
    for problem in _header_problems(header, log):
        log.add("header", None, problem)
    if header.foreign and log.places.went_on is not None:
        log.add("header", None, f"the chat is marked as foreign, and went on here at version {log.places.went_on}")
    await check_uses(log, store, ChatId(chat))
    await _check_end(log, store, header)
    return msgspec.structs.replace(_verdict(chat, log), version=header.version)


def verify_all(store: Store, *, at_once: int = 4) -> AsyncIterator[Verdict]:
    """Verify all chats of a store; what is wrong with one keeps none from being looked at.

    Args:
        store: Where they are kept.
        at_once: Chats that are looked at together; verdicts come in the order of ids.

    Raises:
        StoreUnavailable: The store cannot be read.
    """
    return each_chat(store, lambda chat: verify_chat(store, chat), at_once=at_once)


async def check_stored(log: StoredCheck, store: Store, chat: ChatId, upto: int | None) -> None:
    """Check the log of a stored chat as far as it can be read, and its segments."""
    segments = await _segments(log, store, chat, upto)
    # Digests of the log that segments are compared with: where one begins.
    digests = {segment.first_version - 1: GENESIS for segment in segments}
    size = _PAGE
    while True:
        try:
            page = await store.read_events(chat, after=log.version, upto=upto, limit=size)
        except MalformedRow as error:
            if size == 1:
                log.cannot_read(error)
                log.state = None
                break
            size = 1  # what lies before the broken row is still looked at
            continue
        blobs = await store.get_blobs(_referred(page)) if page else {}
        if page:
            await _check_places(log, store, chat, page)
        for stored in page:
            log.take(stored, blobs)
            log.miss(stored, blobs)
            if log.version in digests:
                digests[log.version] = stored.digest
            while segments and segments[0].last_version == log.version:
                segment = segments.pop(0)
                await _check_segment(log, store, segment, digests[segment.first_version - 1])
        if len(page) < size:
            break
    log.end()


async def check_uses(log: StoredCheck, store: Store, chat: ChatId) -> None:
    """Check, once the log was, that a chat is said to use the large contents that it refers to, and no others."""
    if any(finding.check == "form" for finding in log.found):
        return  # what the rest of the log refers to is not known
    try:
        used = await store.read_uses(chat)
        kept = frozenset(await store.get_blobs(sorted(log.referred - used)))
    except MalformedRow as error:
        log.add("use", None, error.why)
        return
    for problem in use_problems(frozenset(log.referred), kept, used):
        log.add("use", None, problem)


async def _check_places(log: StoredCheck, store: Store, chat: ChatId, page: Sequence[StoredEvent]) -> None:
    try:
        places = await store.read_places(chat, after=page[0].envelope.version - 1, limit=len(page))
    except MalformedRow as error:
        if not any(finding.check == "feed" for finding in log.found):
            log.add("feed", error.version, error.why)
        return
    for version, problem in log.places.take(page, places):
        log.add("feed", version, problem)


async def _segments(log: StoredCheck, store: Store, chat: ChatId, upto: int | None) -> list[Segment]:
    """Return the segments that this release reads, by their last versions."""
    try:
        kept = await store.read_segments(chat)
    except MalformedRow as error:
        log.add("segment", None, error.why)
        return []
    last = 2**63 if upto is None else upto
    ours = [segment for segment in kept if segment.schema == SCHEMA and segment.last_version <= last]
    return sorted(ours, key=lambda segment: segment.last_version)


async def _check_segment(log: StoredCheck, store: Store, segment: Segment, previous: bytes) -> None:
    if log.state is None:
        return  # the log itself is wrong, and nothing is loaded by its segments
    try:
        named = open_segment(segment).blobs
        compare(segment, log.state, previous, log.digest, await store.get_blobs(named) if named else {})
    except UnfitSegment as error:
        log.add("segment", segment.last_version, f"a segment is not what the log says: {error}")
    except ContentUnavailable:
        pass  # a large content is missing, which is a finding of its own


async def _check_end(log: StoredCheck, store: Store, header: Header) -> None:
    """Look for events behind the header's version."""
    try:
        beyond = await store.read_events(header.chat, after=header.version, limit=1, content=False)
        again = await store.load_header(header.chat) if beyond else None
    except MalformedRow as error:
        log.cannot_read(error)
        return
    if again is not None and again.header.version == header.version:
        log.add("header", None, f"events follow version {header.version}, which the header says is the last")


def _verdict(chat: str, log: StoredCheck) -> Verdict:
    return Verdict(chat=chat, version=log.version, digest=log.digest, findings=(*log.found, *log.missing))


_NOT_DERIVED: Final = frozenset({"chat", "title", "foreign", "listed_at", "reader_level"})


def _header_problems(header: Header, log: StoredCheck) -> Iterator[str]:
    if log.version != header.version:
        yield f"the header is at version {header.version}, the log has {log.version} events"
    if header.digest != log.digest:
        yield f"the header's digest {header.digest.hex()} is not that of the last event"
    if log.state is None:
        return
    if header.reader_level < log.level:
        yield f"the header says that releases of level {header.reader_level} can read the log, it needs {log.level}"
    title = log.state.need_transcript("verify").title
    readable = title is None or title.available
    text = title.text if title is not None and title.available else None
    derived = header_of(
        log.state,
        header.digest,
        chat=header.chat,
        title=text,
        foreign=header.foreign,
        reader_level=header.reader_level,
    )
    if readable and header.title != text:
        yield "the header's title is not the log's"
    for column in Header.__struct_fields__:
        kept, wanted = getattr(header, column), getattr(derived, column)
        if column not in _NOT_DERIVED and kept != wanted:
            shown = "" if column == "control" else f": {kept!r} instead of {wanted!r}"
            yield f"the header's {column} is not what the log folds to{shown}"


def _referred(events: Sequence[StoredEvent]) -> list[str]:
    """Return the blobs that readable events refer to; which events cannot be read is told by other checks."""
    digests: set[str] = set()
    for stored in events:
        with suppress(MalformedEvent):
            digests.update(referred_blobs([stored]))
    return sorted(digests)
