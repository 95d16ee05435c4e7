"""Verifying: is a log as it was written, was all that it says allowed, is a chat's header the fold of its log?

Owns which checks there are and their order. The checks themselves are made by the chain of digests (``events``), the
audit (``chatstate``) and the derivation of the header (``store.append``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from chatfold.transfer import referred_blobs
from chatstate.audit import audit
from chatstate.errors import ChatNotFound
from events.codec import decode
from events.digest import GENESIS, verify_chain
from events.envelope import Recorded, StoredEvent
from events.errors import DigestMismatch, EventsError, MalformedEvent
from events.ids import ChatId
from events.reducer import fold
from events.state import ChatState
from store.append import header_of
from store.contract import Header, Store
from store.errors import MalformedRow
from store.loading import PAGE

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
    try:
        loaded = await store.load_header(ChatId(chat))
    except MalformedRow as error:
        found, events, _, _ = await _check_stored(store, chat, None)
        return Verdict(chat=chat, version=len(events), digest=_head(events), findings=(_form(chat, error), *found))
    if loaded is None:
        raise ChatNotFound("verify", "N", f"there is no chat {chat}")
    header = loaded.header
    # It may have gone on in between: the header is compared with the log as it was then.
    found, events, blobs, state = await _check_stored(store, chat, header.version)
    found += _check_header(chat, header, events, state)
    found += _check_blobs(chat, events, blobs)
    beyond = await _check_end(store, chat, header)
    return Verdict(chat=chat, version=header.version, digest=_head(events), findings=(*found, *beyond))


async def verify_all(store: Store) -> AsyncIterator[Verdict]:
    """Verify all chats of a store, one after the other; what is wrong with one keeps none from being looked at.

    Raises:
        StoreUnavailable: The store cannot be read.
    """
    last: ChatId | None = None
    while page := await store.list_ids(after=last):
        for chat in page:
            try:
                yield await verify_chat(store, chat)
            except ChatNotFound:
                continue  # it was deleted since it was listed
        last = page[-1]


async def _check_stored(
    store: Store, chat: str, upto: int | None
) -> tuple[list[Finding], list[StoredEvent], Mapping[str, bytes], ChatState | None]:
    """Check the log of a stored chat as far as it can be read; return what was found, read, and folded."""
    events: list[StoredEvent] = []
    unreadable: list[Finding] = []
    size = PAGE
    while not unreadable:
        try:
            page = await store.read_events(ChatId(chat), after=len(events), upto=upto, limit=size)
        except MalformedRow as error:
            # What lies before the broken row is still looked at: read on one by one.
            unreadable, size = ([_form(chat, error)], 1) if size == 1 else ([], 1)
            continue
        if not page:
            break
        events.extend(page)
    blobs = await store.get_blobs(_referred(events))
    found, state = _check_log(chat, events, blobs)
    return [*found, *unreadable], events, blobs, None if unreadable else state


async def _check_end(store: Store, chat: str, header: Header) -> list[Finding]:
    """Look for events behind the header's version."""
    try:
        beyond = await store.read_events(ChatId(chat), after=header.version, limit=1, content=False)
        again = await store.load_header(ChatId(chat)) if beyond else None
    except MalformedRow as error:
        return [_form(chat, error)]
    if again is None or again.header.version != header.version:
        return []
    return [_header(chat, f"events follow version {header.version}, which the header says is the last")]


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
    except _UNSOUND as error:
        # A log that was tampered with may name messages that it never had.
        found.append(Finding(chat=name, version=None, check="audit", problem=f"it does not fold: {_said(error)}"))
        return found, None


def _audit(name: str, recorded: Sequence[Recorded]) -> Iterator[Finding]:
    version = 0
    try:
        for finding in audit(recorded):
            version = finding.version
            yield Finding(chat=name, version=version, check="audit", problem=finding.problem)
    except _UNSOUND as error:
        where = version or None
        yield Finding(chat=name, version=where, check="audit", problem=f"the audit ended here: {_said(error)}")


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


_UNSOUND: Final = (EventsError, LookupError, ValueError, TypeError, AttributeError)
"""What folding may raise where events are well formed one by one and make no sense together."""

_NOT_DERIVED: Final = frozenset({"chat", "title", "foreign", "listed_at", "reader_level"})


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
    missing = set(_referred(events)) - set(blobs)
    for stored in events if missing else ():
        for digest in sorted(missing.intersection(_referred([stored]))):
            version = stored.envelope.version
            yield Finding(chat=chat, version=version, check="blob", problem=f"content {digest} is not in the store")


def _referred(events: Sequence[StoredEvent]) -> list[str]:
    """Return the blobs that readable events refer to; which events cannot be read is told by other checks."""
    digests: set[str] = set()
    for stored in events:
        with suppress(MalformedEvent):
            digests.update(referred_blobs([stored]))
    return sorted(digests)


def _form(chat: str, error: MalformedRow) -> Finding:
    check: Check = "header" if error.version is None else "form"
    return Finding(chat=chat, version=error.version, check=check, problem=error.why)


def _header(chat: str, problem: str) -> Finding:
    return Finding(chat=chat, version=None, check="header", problem=problem)


def _head(events: Sequence[StoredEvent]) -> bytes:
    return events[-1].digest if events else GENESIS
