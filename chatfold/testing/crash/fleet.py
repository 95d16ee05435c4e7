"""The driver's side of the worker processes: starting, signalling and replacing them, and counting how they ended."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

import msgspec

from chatfold.testing.crash.config import CrashConfig
from chatfold.testing.crash.schedule import Life, life
from chatfold.testing.crash.template import News, Order
from chatfold.testing.crash.worker import NOT_STARTED, Place

_NEWS: Final = msgspec.json.Decoder(News)
_CHANCE: Final = 1.5
"""Seconds for which the schedule spares a process that is armed: else few would come to where they are to die."""

_ENDING: Final = 30.0
"""Seconds in which workers that were killed, or the template, must be gone."""


class _Slot:
    """A place for one worker process after the other."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.lives = 0
        self.life: Life | None = None
        self.process: int | None = None
        self.sent: set[int] = set()
        self.hold: float | None = None
        self.since = 0.0

    def may_be_killed(self) -> bool:
        """Whether a process is here, and had its time to come to the point at which it is to die."""
        armed = self.life is not None and self.life.failpoints
        return self.may_be_disturbed() and (not armed or time.monotonic() - self.since > _CHANCE)

    def may_be_disturbed(self) -> bool:
        """Whether a process is here, and is not spared."""
        spared = self.life.spared if self.life is not None else 0.0
        return self.process is not None and time.monotonic() - self.since >= spared


class Fleet:
    """The worker processes of a crash test. Use it as an async context manager.

    Args:
        config: The test.
        place: Where they work.

    Attributes:
        ended: How processes ended, by what ended them.
        frozen: Processes that were stopped at some time.
        faults: What no process may do, and did: it ended by itself.
    """

    def __init__(self, config: CrashConfig, place: Place) -> None:
        self._config = config
        self._place = place
        self._slots = [_Slot(number) for number in range(config.workers)]
        self._replacing = True
        self._pending: set[asyncio.Task[None]] = set()
        self._news = asyncio.Condition()
        self._template: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self.ended: Counter[str] = Counter()
        self.frozen: set[int] = set()
        self.faults: list[str] = []

    async def __aenter__(self) -> Self:
        self._template = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "chatfold.testing.crash.template",
            msgspec.json.encode(self._place).decode(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # What can be imported here can be imported there; Ctrl-C is this process's matter.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
            start_new_session=True,
        )
        self._reading = asyncio.create_task(self._read())
        for slot in self._slots:
            self._begin(slot, life(self._config, slot.number, 0))
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._replacing = False
        template, reading = self._template, self._reading
        if template is None or reading is None:
            return
        if template.stdin is not None:
            template.stdin.close()
        try:
            async with asyncio.timeout(_ENDING):
                await template.wait()
        except TimeoutError:
            template.kill()
        reading.cancel()
        await asyncio.wait([reading])

    @property
    def kills(self) -> int:
        """Processes that were killed, by the driver or at a failpoint."""
        return sum(count for how, count in self.ended.items() if how.startswith("killed"))

    @property
    def slots(self) -> int:
        """How many workers there are at once."""
        return len(self._slots)

    def send(self, slot: int, number: signal.Signals, *, hold: float | None = None) -> None:
        """Send a signal to the worker of a slot, if there is one; a stopped one goes on after ``hold`` seconds."""
        place = self._slots[slot]
        place.sent.add(number)
        if hold is not None:
            place.hold = hold
        self._order(Order(slot=slot, signal=number))

    def kill(self, slot: int) -> bool:
        """Kill the worker of a slot, or of the next one whose worker is not spared; returns whether there is one."""
        for place in (*self._slots[slot:], *self._slots[:slot]):
            if place.may_be_killed():
                self.send(place.number, signal.SIGKILL)
                return True
        return False

    def disturb(self, slot: int, number: signal.Signals, *, hold: float | None = None) -> None:
        """Send a signal as ``send`` does, unless the worker of the slot is spared."""
        if self._slots[slot].may_be_disturbed():
            self.send(slot, number, hold=hold)

    async def until(self, condition: Callable[[], bool], patience: float) -> bool:
        """Wait until processes came and went so that a condition holds; returns whether it did in time."""
        try:
            async with asyncio.timeout(patience), self._news:
                await self._news.wait_for(condition)
        except TimeoutError:
            return False
        return True

    async def started(self) -> None:
        """Wait until the template is there and has begun.

        Raises:
            RuntimeError: It does not begin.
        """
        if not await self.until(lambda: any(slot.process for slot in self._slots), _ENDING):
            raise RuntimeError("the template does not begin")

    async def end_all(self) -> None:
        """Kill all workers and replace none.

        Raises:
            RuntimeError: One does not end.
        """
        self._replacing = False
        for task in self._pending:
            task.cancel()
        for slot in self._slots:
            slot.sent.add(signal.SIGKILL)
            self._order(Order(slot=slot.number, signal=signal.SIGKILL))
        before = self.ended.copy()
        if not await self.until(lambda: all(slot.process is None for slot in self._slots), _ENDING):
            raise RuntimeError("a worker that was killed does not end")
        self.ended = before  # these do not count: nothing was left for them to harm

    async def start_healthy(self) -> None:
        """Start one worker to which nothing happens."""
        slot = self._slots[0]
        self._begin(slot, Life(slot=0, number=slot.lives, capacity=self._config.chats, hurried=True))

    async def end_healthy(self, patience: float) -> bool:
        """Have it end as a service does; returns whether it did in time."""
        self.send(0, signal.SIGTERM)
        return await self.until(lambda: self._slots[0].process is None, patience)

    def _begin(self, slot: _Slot, born: Life) -> None:
        slot.life, slot.lives, slot.sent, slot.hold = born, born.number + 1, set(), None
        self._order(Order(slot=slot.number, life=born))

    def _order(self, order: Order) -> None:
        if self._template is not None and self._template.stdin is not None:
            self._template.stdin.write(msgspec.json.encode(order) + b"\n")

    async def _read(self) -> None:
        if self._template is None or self._template.stdout is None:
            return
        while line := await self._template.stdout.readline():
            news = _NEWS.decode(line)
            async with self._news:
                self._take(self._slots[news.slot], news)
                self._news.notify_all()
        if self._replacing:
            self.faults.append("the template ended by itself")

    def _take(self, slot: _Slot, news: News) -> None:
        match news.what:
            case "started":
                slot.process, slot.since = news.process, time.monotonic()
                self._drain_later(slot, news.process)
            case "stopped":
                self._let_go_on(slot, news.process)
            case "ended":
                slot.process = None
                self._count(slot, news)
                if self._replacing:
                    self._replace(slot)

    def _let_go_on(self, slot: _Slot, process: int) -> None:
        self.frozen.add(process)
        hold = slot.hold if slot.hold is not None else slot.life.hold if slot.life is not None else 0.0
        slot.hold = None

        def go_on() -> None:
            if slot.process == process:
                self._order(Order(slot=slot.number, signal=signal.SIGCONT))

        asyncio.get_running_loop().call_later(hold, go_on)

    def _drain_later(self, slot: _Slot, process: int) -> None:
        def drain() -> None:
            if slot.process == process and self._replacing:
                self.send(slot.number, signal.SIGTERM)

        if slot.life is not None and slot.life.drained is not None:
            asyncio.get_running_loop().call_later(slot.life.drained, drain)

    def _count(self, slot: _Slot, news: News) -> None:
        if news.status == -signal.SIGKILL:
            point = slot.life.failpoints.partition("=")[0] if slot.life is not None else ""
            at_point = point and signal.SIGKILL not in slot.sent
            self.ended[f"killed at {point}" if at_point else "killed"] += 1
        elif news.status == NOT_STARTED:
            self.ended["not started, the database was away"] += 1
        elif signal.SIGTERM in slot.sent and news.status in {0, -signal.SIGTERM}:
            self.ended["drained"] += 1
        else:
            self.ended["by itself"] += 1
            self.faults.append(f"worker process {news.process} ended by itself with status {news.status}")

    def _replace(self, slot: _Slot) -> None:
        born = life(self._config, slot.number, slot.lives)

        async def later() -> None:
            await asyncio.sleep(born.pause)
            self._begin(slot, born)

        task = asyncio.create_task(later())
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)
