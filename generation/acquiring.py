"""Looks for chats that want a worker, and serves them: oldest first, owners in turn, each by one worker of many.

Hints wake it, and a poll stands behind them: a lost hint costs at most the poll interval. Of the workers that see a
chat the first in rank (``generation.ranking``) serves it at once, the others a moment later if it is still there.
How a chat is served is the worker's matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from events.ids import ChatId, WorkerId
from generation.faults import ChatFaults
from generation.lease import Lease
from generation.ranking import ahead, delay, rank, share
from generation.roster import Roster
from generation.runtime import Runtime
from store.contract import DueChat, Hint
from store.errors import StoreError
from store.log import get_logger
from store.schema import READER_LEVEL

_log = get_logger(__name__)

AT_ONCE: Final = 16
"""Chats that are served at the same time by one look."""

BEYOND: Final = 32
"""Chats that it looks at beyond its free slots: interruptions need none, and other owners may have waited longer."""

MOST_OWNERS: Final = 1000
"""Owners of whom it remembers when they were served."""


MOST_SEEN: Final = 200
"""Chats beside those that it may take now that a look passes by: it is not its turn to take them."""

T = TypeVar("T")


class Seen(NamedTuple):
    """A chat that was seen to want a worker: at which version (0: not known), and when this worker's turn comes."""

    version: int
    turn: float


class Acquirer:
    """Looks for due chats.

    Args:
        runtime: The shared parts.
        roster: What the worker has in hand.
        lease: Knows who else is alive.
        faults: Chats that are to be left alone.
        serve: Serves a due chat; deals with its failures itself.
    """

    def __init__(
        self,
        runtime: Runtime,
        roster: Roster,
        lease: Lease,
        faults: ChatFaults,
        serve: Callable[[DueChat], Awaitable[None]],
    ) -> None:
        self._runtime = runtime
        self._roster = roster
        self._lease = lease
        self._faults = faults
        self._serve = serve
        self._seen: dict[ChatId, Seen] = {}
        self._behind: dict[WorkerId, float] = {}
        self._served: dict[str, int] = {}
        self._turns = 0
        self.wake = asyncio.Event()
        self.overdue: Callable[[], list[DueChat]] = list
        """Gives chats that are due, though the store may not say so."""
        self.backlog = True
        """Whether chats may wait that no slot was free for."""

    def hint(self, hint: Hint) -> None:
        """Take note of a hint of a chat that is not run here."""
        known = self._seen.get(hint.chat)
        if known is not None and hint.version <= known.version:
            return
        if not hint.due:
            self._seen.pop(hint.chat, None)
        elif known is not None:
            self._seen[hint.chat] = Seen(hint.version, known.turn)  # it waits on, and keeps its turn
        elif self._roster.stopping is None:
            now = asyncio.get_running_loop().time()
            if self._see(hint.chat, hint.version, now).turn <= now:
                self.wake.set()

    def wake_in(self, seconds: float) -> None:
        """Look again after so many seconds."""
        asyncio.get_running_loop().call_later(max(seconds, 0.0) + 0.001, self.wake.set)

    async def run(self, before: Callable[[], Awaitable[None]]) -> None:
        """Look whenever woken, and now and then; for ever.

        Args:
            before: Called before each look.
        """
        poll = self._runtime.settings.poll
        while True:
            try:
                # Not all workers at the same time, though all were started by one deployment.
                async with asyncio.timeout(poll * (0.8 + 0.4 * share(self._runtime.worker))):
                    await self.wake.wait()
            except TimeoutError:
                pass
            self.wake.clear()
            try:
                await before()
                await self.look()
            except StoreError as error:
                _log.warning("acquire_pass_failed", worker=self._runtime.worker, error=str(error))
            except Exception:  # noqa: BLE001 - without this loop no chat is acquired any more
                _log.exception("acquire_pass_failed", worker=self._runtime.worker)

    async def look(self) -> None:
        """Look once for due chats, and serve those whose turn here has come.

        Raises:
            StoreError: The store could not be read.
        """
        if self._roster.stopping is not None or not self._runtime.lease_fresh():
            return
        free = self._roster.free()
        exclude = (*self._faults.held_back(), *self._roster.acquiring())
        limit = max(free, 0) + BEYOND + min(len(self._seen), MOST_SEEN)
        told = await self._runtime.journal.store.find_due(
            agents=tuple(self._runtime.agents),
            reader_level=READER_LEVEL,
            limit=limit,
            exclude=exclude,
        )
        found = {*exclude, *(each.chat for each in told)}
        due = [*told, *(each for each in self.overdue() if each.chat not in found)]
        fresh = [each for each in due if each.chat not in self._roster.runners]
        own = self._own_turn(fresh)
        chosen = self._choose(own, self._roster.free())
        self.backlog = len(chosen) < len(own)
        if len(told) >= limit and all(each.kind == "interruption" for each in told):
            self.wake.set()  # behind them others may wait, and none of these will be among what is found then
        await in_parallel(chosen, self._serve)

    def _choose(self, due: Sequence[DueChat], room: int) -> list[DueChat]:
        """Return the chats to serve: those that need no slot, and for each free slot one of who was served longest ago.

        What the store gives is in turn among owners, but each look begins anew: where slots come free one by one, an
        owner with a thousand old chats would have all of them.
        """
        chosen = [each for each in due if each.kind in ("interruption", "expired")]
        waiting: dict[str, list[DueChat]] = {}
        for each in reversed(due):
            if each.kind in ("pending", "takeover"):
                waiting.setdefault(each.owner, []).append(each)
        # The owner whose oldest chat comes first in the store's order, where none was served.
        owners = sorted(waiting, key=lambda owner: due.index(waiting[owner][-1]))
        for _ in range(min(room, sum(map(len, waiting.values())))):
            owner = min(owners, key=lambda owner: self._served.get(owner, 0))
            chosen.append(waiting[owner].pop())
            self._turns += 1
            self._served.pop(owner, None)
            self._served[owner] = self._turns
            if not waiting[owner]:
                owners.remove(owner)
        while len(self._served) > MOST_OWNERS:
            del self._served[next(iter(self._served))]
        return chosen

    def _own_turn(self, due: Sequence[DueChat]) -> list[DueChat]:
        """Return the chats that this worker is to serve now; for the others it comes back when its turn has come."""
        now = asyncio.get_running_loop().time()
        # Of many that all find at once, the first in rank needs a while for its share.
        crowded = 1 + len(due) // AT_ONCE
        seen = {each.chat: self._seen.get(each.chat) or self._see(each.chat, 0, now, crowded) for each in due}
        # What was not found wants nobody any more, or will be seen again.
        self._seen = {chat: each for chat, each in seen.items() if each.turn > now}
        own = [each for each in due if seen[each.chat].turn <= now]
        for each in own:
            self._blame_those_before(each.chat, seen[each.chat], now)
        return own

    def _see(self, chat: ChatId, version: int, now: float, crowded: int = 1) -> Seen:
        """Note that a chat wants a worker, and look again when the turn of this one comes, if it is not now."""
        behind = [worker for worker, until in self._behind.items() if until > now]
        wait = delay(rank(chat, self._runtime.worker, self._lease.kin, behind)) * crowded
        seen = self._seen[chat] = Seen(version, now + wait)
        if wait:
            asyncio.get_running_loop().call_later(wait + 0.001, self._wake_for, chat)
        return seen

    def _wake_for(self, chat: ChatId) -> None:
        """Look again unless the chat was taken meanwhile."""
        if chat in self._seen:
            self.wake.set()

    def _blame_those_before(self, chat: ChatId, seen: Seen, now: float) -> None:
        """Let workers that did not act in their turn (full, or gone) come last for a while: nobody waits for them."""
        first = rank(chat, self._runtime.worker, self._lease.kin)
        if first == 0 or now < seen.turn:
            return
        until = now + max(self._runtime.settings.poll, delay(first))
        for worker in ahead(chat, self._runtime.worker, self._lease.kin):
            self._behind[worker] = until


async def in_parallel(items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Do the work for each item, at most ``AT_ONCE`` at a time.

    Raises:
        Exception: What the work for some item raised, after all of it has ended.
    """
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(item: T) -> None:
        async with slots:
            await work(item)

    for result in await asyncio.gather(*(one(item) for item in items), return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
