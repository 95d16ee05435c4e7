"""One simulated world: processes over one database, users, faults; then everything heals, and all must come to rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from random import Random
from typing import Any, Final

from chatfold.engine import Engine
from chatfold.receipts import Receipt
from chatfold.testing.cuts import OWED
from chatfold.testing.simulation.agents import Mood, SimulatedModel
from chatfold.testing.simulation.checks import check_chat, check_commands, check_texts
from chatfold.testing.simulation.followers import Follower
from chatfold.testing.simulation.ledger import Ledger, LedgerStore
from chatfold.testing.simulation.machine import EPOCH_US
from chatfold.testing.simulation.network import Network
from chatfold.testing.simulation.process import Process
from chatfold.testing.simulation.profile import GRACE, LEASE, POLL, Profile
from chatfold.testing.simulation.users import Town, act, break_off, create
from chatfold.virtual.loop import Host, SimulatedLoop
from events.envelope import AT_REST
from events.ids import ChatId

REST: Final = 60.0
"""Virtual seconds within which every chat has come to rest once all faults are over."""

STOPPING: Final = 10.0
"""Virtual seconds within which a healthy process has stopped: its grace, and what calls take."""

_SOON: Final = POLL + 0.5
"""Virtual seconds within which a pending chat is acquired although every hint was lost."""

_LOOK: Final = 0.25
_STRUCK: Final = 0.1
_IMPATIENT: Final = 0.5


class World:
    """What happens in one run.

    Args:
        loop: Virtual time.
        profile: Its size and its faults.
        random: Where the randomness of its parts comes from.
        mood: How models and tools behave.
        tell: Takes lines of the trace.
    """

    def __init__(
        self, loop: SimulatedLoop, profile: Profile, random: Random, mood: Mood, tell: Callable[[str], None]
    ) -> None:
        self.loop = loop
        self.profile = profile
        self.mood = mood
        self.tell = tell
        self.ledger = Ledger(loop.fail)
        self.network = Network(loop, profile, Random(random.random()), tell)
        self.database = LedgerStore(self.ledger, self.network, lambda: EPOCH_US + round(loop.time() * 1e6))
        self.processes: list[Process] = []
        self._model = SimulatedModel(mood)
        self._random = Random(random.random())
        self._made = 0
        self._started: list[asyncio.Future[None]] = []
        self._strikes: list[Callable[[Process], Coroutine[Any, Any, None]]] = [
            *[self._kill] * profile.struck_dead,
            *[self._pause] * profile.struck_still,
        ]
        self.network.strike = self._strike
        self.town = Town(
            random=Random(random.random()),
            ledger=self.ledger,
            database=self.database,
            processes=self.processes,
            tell=tell,
            fail=loop.fail,
        )
        followed = (None, ChatId("chat0"))[: profile.followers]
        self._followers = [Follower(self.town, self.database, chat) for chat in followed]

    async def live(self) -> None:
        """Go through all of it; what is wrong is told to the loop."""
        async with self.database:
            for _ in range(self.profile.workers):
                self._spawn(worker=True)
            for _ in range(self.profile.clients):
                self._spawn(worker=False)
            for number in range(self.profile.chats):
                await create(self.town, number)
            following = [asyncio.ensure_future(follower.follow()) for follower in self._followers]
            share = max(1, self.profile.commands // self.profile.users)
            users = [self._use(share) for _ in range(self.profile.users)]
            await self._all(*users, *self._faults())
            await self._heal()
            await self._settle()
            await self._probe()
            # Workers write beside the turns too, after every chat has come to rest: the last event is there now.
            await self._stop([process for process in self.processes if process.worker])
            for follower, task in zip(self._followers, following, strict=True):
                await follower.catch_up(task)
            await self._stop(self.processes)
            await self._check()

    def _spawn(self, *, worker: bool) -> Process:
        self._made += 1
        process = Process(
            f"{'w' if worker else 'u'}{self._made}",
            self.loop,
            self.database,
            self.network,
            providers={self._model.name: self._model},
            worker=worker,
            capacity=self.profile.capacity,
        )
        if self.profile.skews and not self.mood.calm:
            process.ahead = self._random.randint(-5_000_000, 5_000_000)
        self.processes.append(process)
        self.tell(f"{process.name} starts")
        self._started.append(process.start())
        return process

    async def _all(self, *parts: Awaitable[None]) -> None:
        await asyncio.gather(*parts)

    async def _use(self, commands: int) -> None:
        pause = self.profile.seconds / max(1, commands)
        for _ in range(commands):
            await asyncio.sleep(self._random.expovariate(1 / pause))
            await act(self.town)

    def _faults(self) -> list[Awaitable[None]]:
        kinds: tuple[tuple[int, Callable[[], Awaitable[None]]], ...] = (
            (self.profile.kills, self._kill),
            (self.profile.late, self._kill_late),
            (self.profile.pauses, self._pause),
            (self.profile.stops, self._stop_one),
            (self.profile.outages, self._outage),
            (self.profile.skews, self._skew),
            (self.profile.deaf, self._deafen),
        )
        return [
            self._at(self._random.random() * self.profile.seconds, fault)
            for times, fault in kinds
            for _ in range(times)
        ]

    async def _at(self, when: float, fault: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(when)
        await fault()

    def _strike(self, host: Host) -> None:
        """Strike a process between the effect of a write and its reply, as often as this world does."""
        if not isinstance(host, Process) or not host.running or host.dead or host.stopped:
            return
        if self._strikes and self._random.random() < _STRUCK:
            self._started.append(asyncio.ensure_future(self._strikes.pop()(host)))

    def _pick(self) -> Process | None:
        living = [process for process in self.processes if process.running and not process.dead]
        return self._random.choice(living) if living else None

    async def _kill(self, struck: Process | None = None) -> None:
        process = struck or self._pick()
        if process is None:
            return
        self.tell(f"{process.name} is killed")
        process.kill()
        self.processes.remove(process)
        await self._lose_patience(process)
        await asyncio.sleep(self._random.random() * 2.0)
        self._spawn(worker=process.worker)

    async def _kill_late(self) -> None:
        """Kill a process that has been giving an answer for a while, if one does in time."""
        until = self.loop.time() + self.profile.seconds
        while self.loop.time() < until:
            now = self.loop.time()
            old = [each.host for each in self.mood.spoken if not each.host.dead and each.is_old(now, 1.5 * OWED)]
            if old and isinstance(old[0], Process) and old[0].running:
                await self._kill(old[0])
                return
            await asyncio.sleep(_LOOK)

    async def _lose_patience(self, killed: Process) -> None:
        """Have a user interrupt an answer that was coming from a process that was killed, now and then."""
        if self._random.random() > _IMPATIENT:
            return
        held = {header.chat for header in self.database.headers() if header.holder == killed.engine.runtime.worker}
        stopped = [each.episode.chat for each in self.mood.spoken if each.episode is not None and each.host is killed]
        chats = [chat for chat in dict.fromkeys(stopped) if chat in held]
        if chats:
            await asyncio.sleep(self._random.random() * LEASE)
            await break_off(self.town, self._random.choice(chats))

    async def _pause(self, struck: Process | None = None) -> None:
        process = struck or self._pick()
        if process is None or process.stopped:
            return
        seconds = self._random.choice((0.2, 1.2 * LEASE, 2.0 * LEASE)) * (0.5 + self._random.random())
        self.tell(f"{process.name} stands still for {seconds:.3f} s")
        process.stopped = True
        process.troubles.append(self.loop.time())
        await asyncio.sleep(seconds)
        if process.stopped:
            self.tell(f"{process.name} goes on")
            self.loop.resume(process)

    async def _stop_one(self) -> None:
        if (process := self._pick()) is None:
            return
        self.tell(f"{process.name} is asked to end")
        leaving = process.leave()
        await asyncio.wait([leaving], timeout=4 * LEASE)
        if not leaving.done():
            self.tell(f"{process.name} took too long to end")
        elif not leaving.cancelled():
            leaving.exception()
        process.kill()
        if process in self.processes:
            self.processes.remove(process)
            self._spawn(worker=process.worker)

    async def _outage(self) -> None:
        seconds = self._random.choice((0.5, 1.5 * LEASE)) * self._random.random()
        self.tell(f"the database is away for {seconds:.3f} s")
        self.network.away_until = max(self.network.away_until, self.loop.time() + seconds)

    async def _skew(self) -> None:
        if (process := self._pick()) is not None:
            process.ahead += self._random.randint(-4_000_000, 4_000_000)
            self.tell(f"{process.name} is {process.ahead / 1e6:+.3f} s ahead")

    async def _deafen(self) -> None:
        if (process := self._pick()) is not None:
            self.tell(f"{process.name} loses its hints")
            self.network.deafen(process)

    async def _heal(self) -> None:
        """End all faults, and see that a worker is there."""
        self.tell("all faults end")
        self.network.calm = self.mood.calm = True
        self.network.away_until = 0.0
        for process in self.processes:
            if process.stopped:
                self.loop.resume(process)
        self._spawn(worker=True)

    async def _settle(self) -> None:
        """Wait until every chat has come to rest: in W, E, or put away; actions expire."""
        until = self.loop.time() + REST
        while restless := [header for header in self.database.headers() if header.status not in AT_REST]:
            if self.loop.time() > until:
                shown = ", ".join(f"{header.chat} is {header.status} at {header.version}" for header in restless)
                self.loop.fail(f"stuck for {REST:.0f} s: {shown}")
            await asyncio.sleep(_LOOK)

    async def _probe(self) -> None:
        """Send one more message while every hint is lost: it is found by the poll."""
        self.network.hints_lost = 1.0
        client = self._spawn(worker=False)
        while not client.running:
            await asyncio.sleep(_LOOK)
        self.processes[:-1] = [process for process in self.processes[:-1] if process.worker]
        open_to = [header.chat for header in self.database.headers() if not header.archived and not header.queued]
        for chat in open_to[:1]:
            sent = self.loop.time()
            await client.call(partial(_ask, chat))
            while (header := self.database.header(chat)) is not None and header.status == "pending":
                if self.loop.time() > sent + _SOON:
                    self.loop.fail(f"{chat}: nobody acquired it within {_SOON} s after its hint was lost")
                await asyncio.sleep(_LOOK)
        await self._settle()

    async def _stop(self, processes: Sequence[Process]) -> None:
        ending = [process.leave() for process in processes if process.running]
        if not ending:
            return
        _, slow = await asyncio.wait(ending, timeout=STOPPING + GRACE)
        if slow:
            self.loop.fail(f"{len(slow)} processes did not stop within {STOPPING + GRACE} s")
        for left in ending:
            if left.done() and not left.cancelled() and (error := left.exception()) is not None:
                self.loop.fail(f"stopping raised {type(error).__name__}: {error}")

    async def _check(self) -> None:
        texts: list[str] = []
        found: list[str] = []
        for chat in self.ledger.logs:
            if chat not in self.ledger.deleted:
                problems, said = await check_chat(self.database, self.ledger, chat, self.mood.spoken)
                found += problems
                texts += said
        for chat, log in self.ledger.logs.items():
            self.tell(f"{chat} has {len(log)} events, the last one's digest is {log[-1].digest.hex()}")
        found += check_commands(self.ledger)
        found += check_texts(texts, [spoken.text for spoken in self.mood.spoken])
        found += [problem for follower in self._followers for problem in follower.problems()]
        found += self.mood.complaints
        if found:
            self.loop.fail("; ".join(found[:5]))


async def _ask(chat: ChatId, engine: Engine) -> Receipt:
    return await engine.send_message(chat, "are you there")
