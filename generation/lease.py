"""The lease of a worker: taken under a new id, renewed while its row is fresh and the loop turns, and never revived.

Lost is what this process takes for lost, by the store's answer or by its own clock: whichever says so first, and though
the store may have renewed the row meanwhile. An id is never used again after its runners were told to stop.

A row that says it lives longer than its lease lasts was written before the database's clock was put back, and its
worker may be gone: who does not renew it within its lease is dead, whatever the row says.

Owns the heartbeat, the id that changes with each lease, and who else is alive. What becomes of chats when the lease is
lost is the worker's matter: it is told at once.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Final

from events.ids import WorkerId
from generation.runtime import Runtime
from generation.watchdog import LoopWatch
from store.contract import Heartbeat
from store.errors import StoreError
from store.failpoints import reach
from store.log import get_logger
from store.notes import LivingWorker

_log = get_logger(__name__)

BEATS: Final = 3
"""Heartbeats in the time of a lease."""

_STEP: Final = 1.0
"""Seconds by which clocks may differ from one heartbeat to the next without having been put back."""


class Lease:
    """Keeps the worker's heartbeat row.

    Args:
        runtime: The shared parts; ``worker`` and ``lease_until`` are kept here.
        clock_offset: Told the database's time (microseconds UTC) with each heartbeat.
        lost: Called at once when the lease is lost.
    """

    def __init__(self, runtime: Runtime, clock_offset: Callable[[int], None], lost: Callable[[], None]) -> None:
        self._runtime = runtime
        self._set_clock = clock_offset
        self._on_lost = lost
        self.watch = LoopWatch(runtime.settings.lease / 2) if runtime.settings.watch_loop else None
        self._lost = True
        self._alive: tuple[WorkerId, ...] = ()
        self._ahead: dict[WorkerId, tuple[int, float]] = {}
        self._offset = -math.inf
        self.put_back_from: int | None = None
        """What the database's clock would say had it not been put back since the heartbeat before, if it was."""
        self.kin: tuple[WorkerId, ...] = ()
        """Living workers that run chats of the same agents, this one among them."""

    async def take(self) -> None:
        """Take a lease under a new id.

        Raises:
            StoreError: It could not be written.
        """
        self._runtime.worker = WorkerId(self._runtime.new_id())
        await self._renew(start=True)
        reach("lease.new")

    def start(self) -> None:
        """Watch that the running event loop turns, until ``stop``."""
        if self.watch is not None:
            self.watch.start()

    def stop(self) -> None:
        """Watch no longer."""
        if self.watch is not None:
            self.watch.stop()

    async def keep(self, beaten: Callable[[], Awaitable[None]]) -> None:
        """Renew the lease, and take a new one where it was lost; for ever.

        Args:
            beaten: Called after each heartbeat that the store answered.
        """
        while True:
            await asyncio.sleep(self._runtime.settings.lease / BEATS)
            try:
                if await self.beat():
                    await beaten()
            except StoreError as error:
                _log.warning("heartbeat_failed", worker=self._runtime.worker, error=str(error))
            except Exception:  # noqa: BLE001 - without its beat the worker loses all chats
                _log.exception("heartbeat_failed", worker=self._runtime.worker)
            self.check()

    async def beat(self) -> bool:
        """Renew the lease once, or come back under a new id; returns whether a lease is in force.

        A process whose loop was blocked does not ask: what it says of itself is of before. It asks with the next beat,
        if its loop turns by then.
        """
        if self.watch is not None and not self.watch.turning:
            _log.warning("heartbeat_withheld", worker=self._runtime.worker)
            return False
        if self._lost or not await self._renew():
            self.lose()
            await self.take()
        return True

    async def guard(self) -> None:
        """See that the lease ends when it has run out by this process's clock, also while the store does not answer."""
        lease = self._runtime.settings.lease
        while True:
            left = self._runtime.lease_until - self._runtime.boot()
            await asyncio.sleep(min(max(left, lease / 20), lease / BEATS))
            self.check()

    def check(self) -> None:
        """Lose the lease if it has run out."""
        if not self._runtime.lease_fresh():
            self.lose()

    def lose(self) -> None:
        """Have all work stop at once, if it was not told so before: others may take the chats now."""
        if self._lost:
            return
        self._lost = True
        self._runtime.lease_until = -math.inf
        self._on_lost()

    async def give_back(self) -> None:
        """End the lease now, so that nobody waits for its end.

        Raises:
            StoreError: It could not be given back; it ages out by itself.
        """
        reach("stop.lease")
        await self._runtime.journal.store.forget_worker(self._runtime.worker)

    async def _renew(self, *, start: bool = False) -> bool:
        """Ask for the lease; returns whether it is in force: also this process must not have given it up meanwhile."""
        runtime, lease = self._runtime, self._runtime.settings.lease
        asked = runtime.boot()
        reach("heartbeat.asked")
        beat = await runtime.journal.store.heartbeat(
            runtime.worker, round(lease * 1e6), start=start, note=runtime.note() if start else None
        )
        reach("heartbeat.answered")
        self._set_clock(beat.now)
        if not start:
            # It may have ended by this process's clock while the answer was on its way. Then the runners were told, and
            # what they left under this id is nobody's: the row that was renewed is left to age out.
            self.check()
        if not beat.renewed or (self._lost and not start):
            return False
        runtime.lease_until = asked + lease
        self._lost = False
        await self._meet(beat, asked)
        return True

    async def _meet(self, beat: Heartbeat, asked: float) -> None:
        """Note who is alive; what workers say of themselves is read when a new one is among them.

        It is also read when the database's clock was put back, and while a row is ahead of it.
        """
        put_back = beat.now / 1e6 - asked < self._offset - _STEP
        self.put_back_from = round((asked + self._offset) * 1e6) if put_back else None
        self._offset = beat.now / 1e6 - asked
        if beat.peers == self._alive and not put_back and not self._ahead:
            return
        living = [each for each in await self._runtime.journal.store.list_workers() if each.worker in beat.peers]
        agents = set(self._runtime.agents)
        kin = {each.worker for each in living if not agents.isdisjoint(each.note.agents)}
        self._alive, self.kin = beat.peers, tuple(sorted(kin | {self._runtime.worker}))
        await self._look_at_rows_ahead(living, beat.now, asked)

    async def _look_at_rows_ahead(self, living: list[LivingWorker], now: int, asked: float) -> None:
        """End the leases whose rows are ahead of the database's clock and were not renewed in the time of a lease."""
        before, self._ahead = self._ahead, {}
        for each in living:
            if not each.note.lease or each.expires_at <= now + each.note.lease + _STEP * 1e6:
                continue
            until, seen = before.get(each.worker, (None, asked))
            if until != each.expires_at:
                seen = asked
            elif asked - seen > each.note.lease / 1e6:
                _log.warning("lease_ended_ahead_of_clock", worker=each.worker, ahead=(each.expires_at - now) / 1e6)
                await self._runtime.journal.store.forget_worker(each.worker)
                continue
            self._ahead[each.worker] = each.expires_at, seen
