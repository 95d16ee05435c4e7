"""What all back ends decide alike about an append, without touching a database.

Owns the check that an append is well formed, and the values that a store derives from a header: when the chat becomes
due, and the hint that follows a commit. Where bytes are kept is left to the back ends.
"""

from collections.abc import Sequence
from typing import Final

from events.ids import CommandId
from store.contract import Append, Header, Hint, NewEvent, PartialChunk
from store.errors import MalformedAppend

ERASES: Final = "content_erased"
"""The type of the event that erases contents: what was made of an older log may hold them."""


def check_append(append: Append) -> list[CommandId]:
    """Check that an append does not contradict itself; return the commands that start in it, in order.

    Raises:
        MalformedAppend: Another chat's header, a gap in the versions, a command twice, or an erasure of what is not yet
            written.
    """
    commands = _check_log(append.header, append.events, append.expected_version)
    if append.header.chat != append.chat:
        raise MalformedAppend(f"the header is of chat {append.header.chat!r}, the append of {append.chat!r}")
    for version in append.erased:
        if not 1 <= version <= append.expected_version:
            raise MalformedAppend(
                f"version {version} is to be erased, but only 1..{append.expected_version} are written"
            )
    return commands


def check_import(header: Header, events: Sequence[NewEvent]) -> None:
    """Check that a whole log fits its header.

    Raises:
        MalformedAppend: A gap in the versions, a header of another version, or a command twice.
    """
    _check_log(header, events, 0)


def _check_log(header: Header, events: Sequence[NewEvent], before: int) -> list[CommandId]:
    if not events:
        raise MalformedAppend("an append has at least one event")
    version = before
    commands: list[CommandId] = []
    for new in events:
        version += 1
        envelope = new.stored.envelope
        if envelope.version != version:
            raise MalformedAppend(f"event {envelope.version} stands where version {version} belongs")
        if envelope.index == 0:
            commands.append(envelope.command)
    if header.version != version:
        raise MalformedAppend(f"the header is at version {header.version}, its last event at {version}")
    if len(commands) > 1 and len(set(commands)) != len(commands):
        raise MalformedAppend("a command id starts twice in one append")
    return commands


def new_commands(events: Sequence[NewEvent]) -> list[CommandId]:
    """Return the commands that start among ``events``, in order."""
    return [new.stored.envelope.command for new in events if new.stored.envelope.index == 0]


def ready_at(header: Header) -> int | None:
    """Return the time in microseconds UTC since when the chat wants a worker or will want one; None if it never will.

    A pending chat without ``due_at`` wants one since it was last changed. A running chat may want one when its holder
    dies; whether the holder did is judged when due chats are looked for. Foreign chats never want one.
    """
    if header.foreign:
        return None
    if header.status == "pending":
        return header.updated_at if header.due_at is None else header.due_at
    if header.status == "running":
        return header.listed_at
    return header.due_at if header.status == "requires_action" else None


def is_misplaced(header: Header, ready: int | None) -> bool:
    """Return whether a row's ``ready_at`` is not what its header asks for.

    Since when a running chat has run is told otherwise by release 0.1: of those it counts that something is said.
    """
    wanted = ready_at(header)
    if header.status == "running":
        return (ready is None) != (wanted is None)
    return ready != wanted


def is_settled(header: Header) -> bool:
    """Whether no worker owes the chat anything: it waits, failed, asks its client, or is not this store's to run."""
    return header.foreign or header.status not in ("pending", "running")


def hint_of(header: Header, now: int) -> Hint:
    """Return the hint that follows the commit of ``header``; ``now`` is about the time of the commit."""
    due = header.status == "pending" and not header.foreign and (header.due_at is None or header.due_at <= now)
    return Hint(header.chat, header.version, due)


def is_current(header: Header, chunk: PartialChunk) -> bool:
    """Whether the attempt that ``chunk`` is a piece of is under way."""
    shown = (header.epoch, header.history_version, header.attempt)
    return shown == (chunk.epoch, chunk.history_version, chunk.attempt)
