"""Verifying: is a log as it was written, was all that it says allowed, is a chat's header the fold of its log?

Owns which checks there are and their order. The checks themselves are made by the chain of digests (``events``), the
audit (``chatstate``) and the derivation of the header (``store.append``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from chatfold.transfer import referred_blobs, stored_log
from chatstate.audit import audit
from chatstate.errors import ChatNotFound
from events.codec import decode
from events.digest import GENESIS, verify_chain
from events.envelope import Recorded, StoredEvent
from events.errors import DigestMismatch, EventsError
from events.ids import ChatId
from events.reducer import fold
from events.state import ChatState
from store.append import header_of
from store.contract import ChatQuery, Header, Store

Check: TypeAlias = Literal["form", "digest", "audit", "header", "blob"]


class Finding(Struct, frozen=True, kw_only=True):
    """Something that is wrong.

    Attributes:
        chat: The chat's id, or the name of the file.
        version: The event that is wrong, or made it so; None where it is the header.
        check: Which check found it: ``form`` (an event cannot be read), ``digest``, ``audit`` (a step that is not
            allowed, or a state that is not sound), ``header``, ``blob`` (a large content is missing).
        problem: What is wrong.
    """

    chat: str
    version: int | None
    check: Check
    problem: str


class Verdict(Struct, frozen=True, kw_only=True):
    """What is known of one log after all checks. ``digest`` is that of its last event."""

    chat: str
    version: int
    digest: bytes
    findings: tuple[Finding, ...]


def verify_log(name: str, events: Sequence[StoredEvent], blobs: Mapping[str, bytes]) -> Verdict:
    """Verify a log by itself: form, digests, invariants, audit.

    Args:
        name: What findings call it.
        events: All its events.
        blobs: Large contents at hand; those that are not are not missed.
    """
    found, _ = _check_log(name, events, blobs)
    return Verdict(chat=name, version=len(events), digest=_head(events), findings=tuple(found))


async def verify_chat(store: Store, chat: str) -> Verdict:
    """Verify a stored chat: its log, and that its header and its large contents are what the log says.

    Raises:
        ChatNotFound: There is no such chat.
        StoreUnavailable: The store cannot be read.
    """
    loaded = await store.load_header(ChatId(chat))
    if loaded is None:
        raise ChatNotFound("verify", "N", f"there is no chat {chat}")
    log = await stored_log(store, chat, blobs=True)
    header = loaded.header
    # It may have gone on in between: the header is compared with the log as it was then.
    events = log.events[: header.version]
    found, state = _check_log(chat, events, log.blobs)
    found += _check_header(chat, header, events, state)
    found += _check_blobs(chat, events, log.blobs)
    beyond = await store.read_events(ChatId(chat), after=header.version, limit=1, content=False)
    if beyond:
        again = await store.load_header(ChatId(chat))
        if again is not None and again.header.version == header.version:
            found.append(_header(chat, f"events follow version {header.version}, which the header says is the last"))
    return Verdict(chat=chat, version=header.version, digest=_head(events), findings=tuple(found))


async def verify_all(store: Store) -> AsyncIterator[Verdict]:
    """Verify all chats of a store, one after the other; chats that change meanwhile are not passed over.

    Raises:
        StoreUnavailable: The store cannot be read.
    """
    seen: set[ChatId] = set()
    since = 0
    while True:
        began, new = await store.now(), False
        async for header in _headers(store, since):
            if header.chat in seen:
                continue
            seen.add(header.chat)
            new = True
            try:
                yield await verify_chat(store, header.chat)
            except ChatNotFound:
                continue  # it was deleted since it was listed
        # A chat that changes moves to the front of the list, where this pass has been already.
        if not new:
            return
        since = began - _SKEW


async def _headers(store: Store, since: int) -> AsyncIterator[Header]:
    """Yield headers, newest change first, as long as they changed at ``since`` or later."""
    before: tuple[int, ChatId] | None = None
    while True:
        page = await store.list_chats(ChatQuery(before=before))
        for header in page:
            if header.updated_at < since:
                return
            yield header
        if not page:
            return
        before = (page[-1].updated_at, page[-1].chat)


def _check_log(
    name: str, events: Sequence[StoredEvent], blobs: Mapping[str, bytes]
) -> tuple[list[Finding], ChatState | None]:
    found: list[Finding] = []
    try:
        verify_chain(events, blobs)
    except DigestMismatch as error:
        found.append(Finding(chat=name, version=error.version, check="digest", problem=error.why))
    recorded: list[Recorded] = []
    for place, stored in enumerate(events, 1):
        try:
            recorded.append(decode(stored, blobs=blobs))
        except EventsError as error:
            found.append(Finding(chat=name, version=place, check="form", problem=str(error)))
            return found, None
    found += _audit(name, recorded)
    try:
        return found, fold(recorded)
    except (EventsError, LookupError) as error:
        # A log that was tampered with may name messages that it never had.
        found.append(Finding(chat=name, version=None, check="audit", problem=f"it does not fold: {_said(error)}"))
        return found, None


def _audit(name: str, recorded: Sequence[Recorded]) -> Iterator[Finding]:
    version = 0
    try:
        for finding in audit(recorded):
            version = finding.version
            yield Finding(chat=name, version=version, check="audit", problem=finding.problem)
    except (EventsError, LookupError) as error:
        where = version or None
        yield Finding(chat=name, version=where, check="audit", problem=f"the audit ended here: {_said(error)}")


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


_SKEW: Final = 60_000_000
"""Microseconds by which a process's estimate of database time may be behind."""

_NOT_DERIVED: Final = frozenset({"chat", "title", "foreign", "reader_level"})


def _check_header(
    chat: str, header: Header, events: Sequence[StoredEvent], state: ChatState | None
) -> Iterator[Finding]:
    if len(events) != header.version:
        yield _header(chat, f"the header is at version {header.version}, the log has {len(events)} events")
    if header.digest != _head(events):
        yield _header(chat, f"the header's digest {header.digest.hex()} is not that of the last event")
    if state is None:
        return
    title = state.need_transcript("verify").title
    readable = title is None or title.available
    text = title.text if title is not None and title.available else None
    derived = header_of(
        state,
        header.digest,
        chat=header.chat,
        title=text,
        foreign=header.foreign,
        reader_level=header.reader_level,
    )
    if readable and header.title != text:
        yield _header(chat, "the header's title is not the log's")
    for column in Header.__struct_fields__:
        kept, wanted = getattr(header, column), getattr(derived, column)
        if column not in _NOT_DERIVED and kept != wanted:
            shown = "" if column == "control" else f": {kept!r} instead of {wanted!r}"
            yield _header(chat, f"the header's {column} is not what the log folds to{shown}")


def _check_blobs(chat: str, events: Sequence[StoredEvent], blobs: Mapping[str, bytes]) -> Iterator[Finding]:
    missing = set(referred_blobs(events)) - set(blobs)
    for stored in events if missing else ():
        for digest in sorted(missing.intersection(referred_blobs([stored]))):
            version = stored.envelope.version
            yield Finding(chat=chat, version=version, check="blob", problem=f"content {digest} is not in the store")


def _header(chat: str, problem: str) -> Finding:
    return Finding(chat=chat, version=None, check="header", problem=problem)


def _head(events: Sequence[StoredEvent]) -> bytes:
    return events[-1].digest if events else GENESIS
