"""Values for tests of stores: events with small byte strings, headers, appends."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from events.envelope import Envelope, Status, StoredEvent
from events.ids import ChatId, CommandId, WorkerId
from events.records import Actor
from store.contract import Append, Header, NewEvent

CHAT = ChatId("chat")
WORKER = WorkerId("worker")


def stored(version: int, command: str, index: int = 0, *, actor: str | None = None) -> StoredEvent:
    """An event whose every field tells its version."""
    return StoredEvent(
        envelope=Envelope(
            version=version,
            type="message_sent",
            schema=version % 3 + 1,
            recorded_at=1_000_000 + version,
            actor=Actor(kind="user", id=actor),
            source="none" if version == 1 else "waiting",
            dest="waiting",
            command=CommandId(command),
            index=index,
        ),
        facts=b"facts \x00\xff %d" % version,
        content=b"content \x00\xff %d" % version,
        digest=hashlib.sha256(b"%d" % version).digest(),
    )


def events(first: int, *commands: str, fingerprint: bytes | None = b"print") -> tuple[NewEvent, ...]:
    """Events from version ``first`` on, one for each name; equal neighbours are one command."""
    made: list[NewEvent] = []
    for version, command in enumerate(commands, first):
        last = made[-1].stored.envelope if made else None
        index = last.index + 1 if last is not None and last.command == command else 0
        made.append(NewEvent(stored=stored(version, command, index), fingerprint=None if index else fingerprint))
    return tuple(made)


def header(version: int = 1, chat: ChatId = CHAT, status: Status = "waiting", **changes: Any) -> Header:
    """A header at ``version``."""
    made = Header(
        chat=chat,
        owner="owner",
        agent="agent",
        status=status,
        interrupting=False,
        archived=False,
        queued=0,
        version=version,
        history_version=version,
        queue_version=0,
        epoch=0,
        holder=None,
        due_at=None,
        created_at=1_000_000,
        updated_at=1_000_000 + version,
        listed_at=1_000_000 + version,
        control=b"control \x00\xff",
        digest=hashlib.sha256(b"%d" % version).digest(),
    )
    changes.setdefault("listed_at", changes.get("updated_at", made.listed_at))
    return msgspec.structs.replace(made, **changes)


def appending(
    expected: int,
    *commands: str,
    chat: ChatId = CHAT,
    blobs: Mapping[str, bytes] | None = None,
    erased: Mapping[int, bytes] | None = None,
    **changes: Any,
) -> Append:
    """An append of one event for each command name (by default one, named after its version)."""
    made = events(expected + 1, *(commands or (f"command {expected + 1}",)))
    return Append(
        chat=chat,
        expected_version=expected,
        header=header(expected + len(made), chat, **changes),
        events=made,
        blobs=blobs or {},
        erased=erased or {},
    )


def of(*appends: Append) -> Sequence[StoredEvent]:
    """The events of appends, as they are read."""
    return [new.stored for append in appends for new in append.events]
