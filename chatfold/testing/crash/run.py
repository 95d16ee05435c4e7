"""``run_crash_test``: users talk, workers die, everything comes to rest, and is looked at."""

from __future__ import annotations

import asyncio
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from chatfold.engine import Engine
from chatfold.settings import Settings
from chatfold.testing.crash.checks import late_runs
from chatfold.testing.crash.config import CrashConfig, InvalidCrashConfig
from chatfold.testing.crash.fleet import Fleet
from chatfold.testing.crash.ledger import read_ledger, read_said
from chatfold.testing.crash.report import Report, Violation, error_lines
from chatfold.testing.crash.schedule import Fault, faults
from chatfold.testing.crash.users import Book, User
from chatfold.testing.crash.verify import violations
from chatfold.testing.crash.worker import Place
from events.ids import ChatId
from store.errors import StoreError
from store.migrate import migrate
from store.query import ChatQuery
from store.urls import parse_postgres

Progress = Callable[[str, int, int], None]
"""Told what is going on, how much of it is done, and of how much."""

_TERMINATE: Final = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT %s
"""
_LOOK: Final = 0.1
"""Seconds after which it is looked again whether all chats are at rest."""
_LULL: Final = 0.5
"""Seconds for which the schedule waits at most for the workers to have done something since the last fault."""
_RING: Final = 0.3
"""Seconds after which it is looked again which chats ask their users something."""
_UNSETTLED: Final = ("pending", "running", "requires_action")


def run_crash_test(config: CrashConfig, progress: Progress | None = None) -> Report:
    """Run a crash test; it takes about ``kills / rate`` seconds and then as long as it takes to look at every chat.

    Args:
        config: What to do.
        progress: Told how far it is.

    Returns:
        What happened, and what must not have happened. It does not raise for violations.

    Raises:
        InvalidCrashConfig: The database has chats already.
        StoreUnavailable: It cannot be reached.
    """
    migrate(config.db)
    with tempfile.TemporaryDirectory(prefix="chatfold-crash-") as folder:
        place = Place(
            db=config.db,
            folder=folder,
            seed=config.seed,
            lease=config.lease,
            setup=config.setup,
            capacity=config.capacity,
        )
        return asyncio.run(_Run(config, place, progress or _silent).run())


def _silent(what: str, done: int, of: int) -> None:
    """Tell nobody."""


class _Run:
    """One crash test."""

    def __init__(self, config: CrashConfig, place: Place, progress: Progress) -> None:
        self._config = config
        self._place = place
        self._progress = progress
        self._book = Book()
        self._found: list[Violation] = []
        self._users: dict[str, User] = {}
        self._ledger_size = 0

    async def run(self) -> Report:
        config, over = self._config, asyncio.Event()
        async with Engine(config.db, worker=False, settings=Settings(lease=config.lease, poll=0.25)) as engine:
            if await engine.store.list_ids(limit=1):
                raise InvalidCrashConfig("db", "there are chats in this database; give an empty one")
            fleet = Fleet(config, self._place)
            async with fleet:
                await fleet.started()
                begun = time.monotonic()
                users = [User(number, config, self._place, engine, self._book) for number in range(config.chats)]
                self._users = {user.chat: user for user in users}
                talking = [asyncio.create_task(user.live(over)) for user in users]
                ringing = asyncio.create_task(self._ring(engine))
                await self._disturb(fleet, talking)
                ringing.cancel()
                over.set()
                for user in users:
                    user.ring()
                disturbed = time.monotonic()
                await fleet.end_all()
                await fleet.start_healthy()
                await self._rest(engine, fleet, talking)
                rested = time.monotonic()
            found = await self._check(engine, fleet)
        return Report(
            config=config,
            seconds=(disturbed - begun, rested - disturbed, time.monotonic() - rested),
            counts=self._counts(fleet),
            violations=tuple(found),
            logged=tuple(self._logged()),
        )

    async def _ring(self, engine: Engine) -> None:
        """Tell users whose chats ask them something."""
        while True:
            await asyncio.sleep(_RING)
            with suppress(StoreError):
                for header in await engine.list_chats(ChatQuery(statuses=("requires_action",), limit=1000)):
                    self._users[header.chat].ring()

    async def _disturb(self, fleet: Fleet, talking: list[asyncio.Task[None]]) -> None:
        """Do one fault after the other until enough workers were killed."""
        for fault in faults(self._config):
            if fleet.kills >= self._config.kills or fleet.faults:
                return
            await fleet.until(lambda: fleet.kills >= self._config.kills, fault.after)
            await self._progress_made(fleet)
            self._progress("workers killed", min(fleet.kills, self._config.kills), self._config.kills)
            for task in talking:
                if task.done():
                    task.result()  # a user whose life ended now met a fault of this kit
            await self._do(fault, fleet)

    async def _progress_made(self, fleet: Fleet) -> None:
        """Wait for a while until tools have run again: on a slow machine workers would be killed at nothing else."""
        path = self._place.ledger
        until = time.monotonic() + _LULL
        while time.monotonic() < until and fleet.kills < self._config.kills:
            size = path.stat().st_size if path.exists() else 0
            if size > self._ledger_size:
                self._ledger_size = size
                return
            await asyncio.sleep(_LULL / 10)

    async def _do(self, fault: Fault, fleet: Fleet) -> None:
        self._book.counts[f"faults: {fault.kind}"] += 1
        match fault.kind:
            case "kill":
                fleet.kill(fault.slot)
            case "stop":
                fleet.disturb(fault.slot, signal.SIGSTOP, hold=fault.hold)
            case "drain":
                fleet.disturb(fault.slot, signal.SIGTERM)
            case "terminate one":
                await self._terminate(1)
            case "terminate all":
                await self._terminate(10_000)

    async def _terminate(self, most: int) -> None:
        import psycopg  # an extra: who tests on SQLite need not have it

        with suppress(psycopg.OperationalError):
            connection = await psycopg.AsyncConnection.connect(
                parse_postgres(self._config.db).conninfo, autocommit=True, application_name="chatfold-crash"
            )
            async with connection:
                cursor = await connection.execute(_TERMINATE, (most,))
                self._book.counts["connections terminated"] += len(await cursor.fetchall())

    async def _rest(self, engine: Engine, fleet: Fleet, talking: list[asyncio.Task[None]]) -> None:
        """Wait until every user has an answer and no chat is under way, then end the last worker as a service does."""
        patience = self._config.patience
        until = time.monotonic() + patience
        _, silent = await asyncio.wait(talking, timeout=patience)
        for task in silent:
            task.cancel()
        if silent:
            self._find("answered", f"{len(silent)} users got no answer to a command within {patience:g} s")
        for task in talking:
            if not task.cancelled() and task not in silent:
                task.result()
        while (ahead := await _unsettled(engine)) and time.monotonic() < until:
            self._progress("chats at rest", self._config.chats - len(ahead), self._config.chats)
            await asyncio.sleep(_LOOK)
        for chat in ahead:
            why = await engine.diagnose(chat)
            self._find("at rest", f"it did not come to rest within {patience:g} s: {why}", chat)
        if not await fleet.end_healthy(patience):
            self._find("drained", f"the last worker did not end within {patience:g} s of SIGTERM")

    async def _check(self, engine: Engine, fleet: Fleet) -> list[Violation]:
        for problem in fleet.faults:
            self._find("processes", problem)
        ledger = read_ledger(self._place.ledger)
        self._book.counts["runs of tools begun"] = sum(entry.what == "began" for entry in ledger)
        self._book.counts["runs of tools that a fence would refuse"] = late_runs(ledger)
        said = read_said(self._place.said)
        async for violation in violations(engine, self._book, ledger, frozenset(fleet.frozen), said):
            self._found.append(violation)
        return self._found

    def _counts(self, fleet: Fleet) -> dict[str, int]:
        return {
            **self._book.counts,
            **{f"processes {how}": count for how, count in fleet.ended.items()},
            "processes stopped for a while": len(fleet.frozen),
        }

    def _find(self, check: str, problem: str, chat: str = "") -> None:
        self._found.append(Violation(check=check, chat=chat, problem=problem))

    def _logged(self) -> list[str]:
        return error_lines(self._place.log.read_text(errors="replace")) if self._place.log.exists() else []


async def _unsettled(engine: Engine) -> list[ChatId]:
    """Return chats that something is still to come of."""
    try:
        found = await engine.list_chats(ChatQuery(statuses=_UNSETTLED, limit=100_000))
    except StoreError:
        return [ChatId("unknown")]
    return [header.chat for header in found]
