"""What must hold at every append and of every lease, checked at the database itself in the moment it happens.

Owns a copy of all that was committed, so that nothing can be lost or changed unseen. What must hold of whole logs at
the end is ``checks``' matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from chatfold.testing.simulation.network import Network
from events.codec import decode
from events.digest import GENESIS
from events.envelope import StoredEvent
from events.ids import ChatId, CommandId, WorkerId
from events.vocabulary import Released
from store.contract import Append, Appended, AppendResult, Header, Heartbeat
from store.memory import MemoryStore
from store.notes import WorkerNote

_OF_NO_HOLDER: Final = frozenset(
    {
        "acquired",
        "action_expired",
        "action_expired_turn_ended",
        "side_call_recorded",
        "title_changed",
        "turn_label_changed",
    }
)
"""Events that a worker appends to chats which it does not hold."""


class Ledger:
    """What was committed, and what is known of commands.

    Attributes:
        logs: Every chat's events, deleted ones' too.
        deleted: Chats that were deleted.
        commands: Command ids by chat.
        acknowledged, refused: Commands whose users were told so.
        committed: When each event was, by chat and version, in database time.
        taken_by: How each worker came by a chat: a worker's own append, or one that began with a user's command.
    """

    def __init__(self, fail: Callable[[str], None]) -> None:
        self.fail = fail
        self.logs: dict[ChatId, list[StoredEvent]] = {}
        self.deleted: set[ChatId] = set()
        self.commands: dict[ChatId, set[CommandId]] = {}
        self.acknowledged: list[tuple[ChatId, str]] = []
        self.refused: list[tuple[ChatId, str]] = []
        self.committed: dict[tuple[str, int], int] = {}
        self.taken_by: dict[tuple[ChatId, WorkerId], str] = {}
        self._doubtful: set[str] = set()

    def appended(self, append: Append, before: Header | None, at: int, *, holder_alive: bool) -> None:
        """Check an append that has just been committed on ``before``, ``at`` that database time."""
        chat, header = append.chat, append.header
        log = self.logs.setdefault(chat, [])
        known = self.commands.setdefault(chat, set())
        digest = log[-1].digest if log else GENESIS
        if append.expected_version != len(log) or header.version != len(log) + len(append.events):
            self.fail(f"{chat}: an append at version {append.expected_version} follows {len(log)} events")
        if before is not None and before.digest != digest:
            self.fail(f"{chat}: the header at version {before.version} has another digest than its last event")
        for new in append.events:
            envelope = new.stored.envelope
            if envelope.index == 0 and envelope.command in known:
                self.fail(f"{chat}: command {envelope.command} is committed a second time at {envelope.version}")
            known.add(envelope.command)
            log.append(new.stored)
            self.committed[chat, envelope.version] = at
        self._held(append, before, holder_alive=holder_alive)

    def _held(self, append: Append, before: Header | None, *, holder_alive: bool) -> None:
        """Check that only the holder, under its own epoch, or whoever takes over from a dead one, has written."""
        chat, header, first = append.chat, append.header, append.events[0].stored.envelope
        epoch, holder = (before.epoch, before.holder) if before is not None else (0, None)
        types = [new.stored.envelope.type for new in append.events]
        if first.actor.kind == "worker" and first.type not in _OF_NO_HOLDER and first.actor.id != holder:
            self.fail(f"{chat}: {first.actor.id} appended {first.type} at {first.version}; the holder was {holder}")
        if header.epoch < epoch:
            self.fail(f"{chat}: the epoch fell from {epoch} to {header.epoch} at version {header.version}")
        if header.epoch != epoch and holder is not None and holder_alive:
            self.fail(f"{chat}: taken from {holder} at version {first.version}, whose lease was alive")
        if types[0] == "released" and holder is not None:
            self._found(append, holder)
        if header.holder is not None and "acquired" in types:
            self.taken_by[chat, header.holder] = first.actor.kind

    def doubt(self, worker: str) -> None:
        """Take note that a worker took its lease for lost: what it acquired, or is acquiring, it may find again."""
        self._doubtful.add(worker)

    def _found(self, append: Append, worker: WorkerId) -> None:
        """Check a chat that its holder lets go without ever having had a runner for it.

        Only a command of a user, whose caller was gone when the reply came, can have left it so.
        """
        event = decode(append.events[0].stored, content=False).event
        if not isinstance(event, Released) or event.reason != "capacity" or worker in self._doubtful:
            return
        if self.taken_by.get((append.chat, worker)) == "worker":
            self.fail(f"{append.chat}: its worker {worker} acquired it, did not know so, and let it lie")


class LedgerStore(MemoryStore):
    """The database of a simulation: a memory store that tells a ledger what it commits.

    Args:
        ledger: Is told.
        network: Takes hints to those who listen.
        clock: Database time in microseconds UTC.
    """

    def __init__(self, ledger: Ledger, network: Network, clock: Callable[[], int]) -> None:
        super().__init__(clock=clock)
        self._ledger = ledger
        self._bus = network  # type: ignore[assignment]

    async def append(self, append: Append) -> AppendResult:
        """See :meth:`store.contract.Store.append`."""
        before = self.header(append.chat)
        alive = before is not None and self._alive(before.holder, self._clock())
        result = await super().append(append)
        if isinstance(result, Appended):
            self._ledger.appended(append, before, self._clock(), holder_alive=alive)
        return result

    async def delete(self, chat: ChatId, expected_version: int) -> bool:
        """See :meth:`store.contract.Store.delete`."""
        gone = await super().delete(chat, expected_version)
        if gone:
            self._ledger.deleted.add(chat)
        return gone

    async def heartbeat(
        self, worker: WorkerId, lease_us: int, *, start: bool = False, note: WorkerNote | None = None
    ) -> Heartbeat:
        """See :meth:`store.contract.Store.heartbeat`."""
        until = self._leases.get(worker)
        beat = await super().heartbeat(worker, lease_us, start=start, note=note)
        if until is not None and until <= beat.now and self._alive(worker, beat.now):
            self._ledger.fail(f"the lease of {worker} was dead and is alive again")
        return beat

    def header(self, chat: ChatId) -> Header | None:
        """Return a chat's header as it is in this moment."""
        kept = self._chats.get(chat)
        return kept.header if kept is not None else None

    def headers(self) -> Sequence[Header]:
        """Return the headers of all chats, in the order of their creation."""
        return [kept.header for kept in self._chats.values()]
