"""What a store keeps beside chats for people who look why one does not move: workers' leases, and refused commands."""

from __future__ import annotations

from msgspec import Struct

from events.ids import ChatId, WorkerId


class WorkerNote(Struct, frozen=True, kw_only=True):
    """What a worker says of itself when it takes its lease, for people who look why a chat does not move.

    ``agents``: whose chats it runs. ``capacity``: how many at once. ``process``: host and process id. ``lease``: how
    long its lease lasts without being renewed, microseconds; 0 where a release says nothing of it. ``tools``: the names
    of the tools of each agent; without an entry where a release says nothing of them.
    """

    agents: tuple[str, ...] = ()
    capacity: int = 0
    release: str = ""
    reader_level: int = 1
    process: str = ""
    lease: int = 0
    tools: dict[str, tuple[str, ...]] = {}


class LivingWorker(Struct, frozen=True, kw_only=True):
    """A lease: whose, until when (database time, microseconds UTC), and what its worker says of itself."""

    worker: WorkerId
    expires_at: int
    note: WorkerNote


class RefusalNote(Struct, frozen=True, kw_only=True):
    """The last command on a chat that was refused: when, what, in which state, and why. Facts alone, no content."""

    chat: ChatId
    at: int
    trigger: str
    code: str
    state: str
    reason: str
    actor: str
