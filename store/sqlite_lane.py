"""The threads of a SQLite store, each with one connection: how work gets there and outcomes come back.

Owns the crossing between the event loop and a thread. Work that is handed over in one turn of the loop crosses
together, and so do the outcomes that are there when the loop looks: a wake-up for many calls, not for each. One thread
reads, call by call; one writes, and puts all that has arrived into one transaction.
"""

import asyncio
import math
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from store.contract import Append, AppendResult, Hint
from store.errors import OutcomeUnknown, StoreError, StoreUnavailable, Unstorable
from store.failpoints import reach
from store.notify import Bus
from store.shield import Reply, outcome
from store.sqlite_batch import APPENDED, Batch
from store.sqlite_lock import PATIENCE, TELL_AGAIN, is_locked, said_of, tell_locked
from store.sqlite_writes import transaction

T = TypeVar("T")
P = ParamSpec("P")

_TOGETHER: Final = 256
"""Writes in one transaction at most, so that the first of many does not wait for all of them."""

_NOT_THE_WORK: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH,
    }
)  # fmt: skip
"""What SQLite says of the file or the machine: trying the writes one by one would end alike for each."""


def _nothing(connection: sqlite3.Connection) -> Any:
    """Do nothing: the work of an append is the batch's."""


class Job(Reply[T]):
    """A piece of work on its way to the thread and back.

    Args:
        future: Whoever waits for the outcome.
        do: The work, where it is no append.
        append: The append.
        writes: Whether it belongs into a transaction with others.
        after: What follows the commit; may change the result.
        hint: What to tell once it is committed.
    """

    __slots__ = ("after", "append", "do", "error", "hint", "result", "writes")

    def __init__(
        self,
        future: asyncio.Future[T],
        do: Callable[[sqlite3.Connection], T] = _nothing,
        *,
        append: Append | None = None,
        writes: bool = True,
        after: Callable[[sqlite3.Connection, T], T] | None = None,
        hint: Hint | None = None,
    ) -> None:
        super().__init__(future)
        self.do = do
        self.append = append
        self.writes = writes
        self.after = after
        self.hint = hint
        self.result: T
        self.error: BaseException | None = None

    def settle(self) -> None:
        """Give the outcome to whoever waits; called on the loop of the future."""
        if self.future.cancelled():
            self.done = True  # nobody waits any more, and it may not have been done at all
        elif self.error is None:
            self.give(self.result)
        else:
            self.fail(self.error)


class Lane(ABC):
    """One thread with one connection; work is done in the order it was given.

    Args:
        name: What its thread is called.
        path: The file.
        probe: A statement that another process's lock holds up whenever it holds up this lane's work.
        connect: Opens the connection.
        bus: Where hints go.
    """

    def __init__(
        self, name: str, path: Path, probe: str, connect: Callable[[], sqlite3.Connection], bus: Bus | None = None
    ) -> None:
        self._path = path
        self._probe = probe
        self._connect = connect
        self._bus = bus or Bus()
        self._connection: sqlite3.Connection | None = None
        self._loop = asyncio.get_running_loop()
        self._fresh = list[Job[Any]]()
        self._queue = SimpleQueue[Sequence[Job[Any]] | None]()
        self._finished = deque[Job[Any]]()
        self._waking = False
        self._undone = 0
        self._moved = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self._told = -math.inf
        self._seen: float | None = None
        self._ended: asyncio.Future[None] | None = None
        self._setting_up = False
        # A daemon: a store that nobody closed must not keep the process from ending.
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    async def run(self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Have work done by the thread, by itself. A caller that is cancelled does not wait for it."""
        loop = asyncio.get_running_loop()
        job = Job[T](loop.create_future(), lambda connection: work(connection, *args, **kwargs), writes=False)
        self.submit(job, loop)
        return await job.future

    def submit(self, job: Job[Any], loop: asyncio.AbstractEventLoop) -> None:
        """Hand a job over, together with all others of this turn of the loop."""
        if loop is not self._loop:
            self._queue.put([job])
            return
        self._undone += 1
        self._fresh.append(job)
        if len(self._fresh) == 1:
            loop.call_soon(self._hand_over)
        if self._watch is None:
            self._moved = time.monotonic()
            self._watch = loop.call_later(PATIENCE, self._look_for_lock)

    def _hand_over(self) -> None:
        if self._fresh:
            fresh, self._fresh = self._fresh, []
            self._queue.put(fresh)

    async def close(self) -> None:
        """Wait for the work under way, close the connection and end the thread."""
        self._hand_over()
        self._ended = ended = asyncio.get_running_loop().create_future()
        self._queue.put(None)
        await outcome(ended)
        self._thread.join()
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _main(self) -> None:
        """Work until told to end; what was handed over before is done first."""
        waiting = deque[Job[Any]]()
        while self._take(waiting):
            while waiting:
                self._gather(waiting)
                self._work(waiting)
        if self._connection is not None:
            self._connection.close()
        if self._ended is not None:
            self._ended.get_loop().call_soon_threadsafe(self._ended.set_result, None)

    def _take(self, waiting: deque[Job[Any]]) -> bool:
        """Wait for jobs; False where none come any more. No name here holds on to those that were done meanwhile."""
        given = self._queue.get()
        waiting.extend(given or ())
        return given is not None

    def _gather(self, waiting: deque[Job[Any]]) -> None:
        """Add what has arrived meanwhile."""
        with suppress(Empty):
            while len(waiting) < _TOGETHER:
                given = self._queue.get_nowait()
                if given is None:
                    self._queue.put(None)  # for the loop that waits for it
                    return
                waiting.extend(given)

    @abstractmethod
    def _work(self, waiting: deque[Job[Any]]) -> None:
        """Take one or more jobs and finish them."""

    def _answer(self, job: Job[Any]) -> None:
        """Do a piece of work by itself, unless nobody waits for it any more."""
        if not job.future.cancelled():
            try:
                job.result = job.do(self._connected())
            except BaseException as error:  # noqa: BLE001 - the caller's
                self._fail([job], error)
        self._finish([job])

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _fail(self, jobs: Iterable[Job[Any]], error: BaseException) -> None:
        """Give jobs an error of the store; each its own, since a traceback grows with every raise."""
        for job in jobs:
            job.error = translated(self._path, error)

    def _finish(self, jobs: Sequence[Job[Any]]) -> None:
        """Send outcomes back, and hints out. Called in the thread."""
        for job in jobs:
            if (loop := job.future.get_loop()) is self._loop:
                self._finished.append(job)
                continue
            # From here: the other loop may have been stopped.
            self._publish([job])
            with suppress(RuntimeError):  # a loop that is closed takes nothing, and nobody waits there
                loop.call_soon_threadsafe(job.settle)
        if self._finished and not self._waking:
            self._waking = True
            try:
                self._loop.call_soon_threadsafe(self._receive)
            except RuntimeError:  # closed
                self._publish(jobs)

    def _receive(self) -> None:
        """Take what has come back: hints first, so that whoever wrote finds them out."""
        self._waking = False
        jobs = list[Job[Any]]()
        while self._finished:
            jobs.append(self._finished.popleft())
        self._undone -= len(jobs)
        self._moved = time.monotonic()
        self._publish(jobs)
        for job in jobs:
            job.settle()

    def _publish(self, jobs: Iterable[Job[Any]]) -> None:
        hints = [job.hint for job in jobs if job.hint is not None]
        if hints:
            self._bus.publish(hints)

    def _look_for_lock(self) -> None:
        """Tell, once for a while, where work waits for a lock that another connection holds: seen twice in a row."""
        self._watch = None
        if not self._undone:
            return
        self._watch = self._loop.call_later(PATIENCE, self._look_for_lock)
        now = time.monotonic()
        if now - self._moved < PATIENCE or now - self._told < TELL_AGAIN or not self._is_held_up():
            self._seen = None
        elif self._seen != self._moved:
            # It may have been our own, given up or come to us while we looked, by a loop that had stood still.
            self._seen = self._moved
        else:
            self._told = now
            tell_locked(self._path)

    def _is_held_up(self) -> bool:
        return not self._has_lock() and is_locked(self._path, self._probe) and not self._has_lock()

    def set_up(self) -> None:
        """Note that a new file gets its tables: the lock that may be seen now is ours."""
        self._setting_up = True

    def _has_lock(self) -> bool:
        if self._connection is None:
            return self._setting_up
        return self._connection.in_transaction


class ReadLane(Lane):
    """The lane of a connection that reads: one call after the other, each answered at once.

    Args:
        path: The file.
        connect: Opens the connection.
    """

    def __init__(self, path: Path, connect: Callable[[], sqlite3.Connection]) -> None:
        super().__init__("chatfold-read", path, "SELECT count(*) FROM sqlite_master", connect)

    def _work(self, waiting: deque[Job[Any]]) -> None:
        self._answer(waiting.popleft())


class WriteLane(Lane):
    """The lane of the connection that writes: what has arrived is one transaction, with one commit.

    A write that raises is taken out: the transaction is undone, and done again in halves until the culprit stands
    alone.

    Args:
        path: The file.
        connect: Opens the connection.
        bus: Where hints go.
        hint_of: Makes the hint that follows an append.
        check: Raises where the file may not be written to any more.
    """

    def __init__(
        self,
        path: Path,
        connect: Callable[[], sqlite3.Connection],
        bus: Bus,
        *,
        hint_of: Callable[[Append], Hint],
        check: Callable[[], None],
    ) -> None:
        self._hint_of = hint_of
        self._check = check
        super().__init__("chatfold-write", path, "BEGIN IMMEDIATE", connect, bus)

    async def append(self, append: Append) -> AppendResult:
        """Write an append, together with all that arrives meanwhile."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[AppendResult] = loop.create_future()
        job = Job(future, append=append)  # not Job[AppendResult]: a subscript costs more than the object
        self.submit(job, loop)
        return await job.outcome()

    async def write(
        self,
        work: Callable[[sqlite3.Connection], T],
        after: Callable[[sqlite3.Connection, T], T] | None = None,
        hint: Hint | None = None,
    ) -> T:
        """Have something else written, in its turn. Work may be undone and done again before it is committed.

        ``after`` is called after the commit and may change the result; ``hint`` goes out if the result is true.
        """
        loop = asyncio.get_running_loop()
        job = Job[T](loop.create_future(), work, after=after, hint=hint)
        self.submit(job, loop)
        return await job.outcome()

    def _work(self, waiting: deque[Job[Any]]) -> None:
        batch = list[Job[Any]]()
        while waiting and len(batch) < _TOGETHER and waiting[0].writes:
            batch.append(waiting.popleft())
        if batch:
            self._commit(batch)
            self._finish(batch)
        else:
            self._answer(waiting.popleft())

    def _commit(self, batch: Sequence[Job[Any]]) -> None:
        try:
            self._connected()
            self._check()
            try:
                self._transact(batch, careful=False)
            except sqlite3.IntegrityError:
                # A command that is there already, most likely: looked for beforehand this time.
                self._transact(batch, careful=True)
        except BaseException as error:  # noqa: BLE001 - the callers'
            if len(batch) > 1 and _is_of_one(error):
                half = len(batch) // 2
                self._commit(batch[:half])
                self._commit(batch[half:])
            else:
                self._fail(batch, error)
            return
        for job in batch:
            self._conclude(job)

    def _transact(self, jobs: Sequence[Job[Any]], *, careful: bool) -> None:
        connection = self._connected()
        with transaction(connection):
            batch = Batch(connection, careful=careful)
            for appends, run in groupby(jobs, key=_is_append):
                if appends:
                    _add(batch, list(run))
                    continue
                batch.flush()
                for job in run:
                    job.result = job.do(connection)
            batch.flush()
            if any(map(_is_append, jobs)):
                reach("append.written")

    def _conclude(self, job: Job[Any]) -> None:
        """Do what follows the commit."""
        try:
            if job.append is not None:
                job.hint = self._hint_of(job.append) if job.result is APPENDED else None
                if job.result is APPENDED:
                    reach("append.committed")
                return
            if not job.result:
                job.hint = None
            if job.after is not None:
                job.result = job.after(self._connected(), job.result)
        except BaseException as error:  # noqa: BLE001 - the caller's
            self._fail([job], error)


def _is_append(job: Job[Any]) -> bool:
    return job.append is not None


def _add(batch: Batch, jobs: Sequence[Job[Any]]) -> None:
    """Judge appends that nothing else comes between."""
    batch.look_at([job.append.chat for job in jobs if job.append is not None])
    for job in jobs:
        if job.append is not None:
            job.result = batch.add(job.append)


def translated(path: Path, error: BaseException) -> BaseException:
    """Return the store's error for one of the driver's, which names the file; others as they are."""
    made: StoreError
    if isinstance(error, UnicodeEncodeError | OverflowError | sqlite3.DataError):
        made = Unstorable(str(error))
    elif isinstance(error, sqlite3.Error):
        made = StoreUnavailable(said_of(path, error))
    elif isinstance(error, StoreUnavailable | OutcomeUnknown):
        made = type(error)(*error.args)
    else:
        return error
    made.__cause__ = error
    return made


def _is_of_one(error: BaseException) -> bool:
    """Whether one of many writes may be what failed, and not the file."""
    if isinstance(error, sqlite3.Error):
        code: int | None = getattr(error, "sqlite_errorcode", None)
        return code is None or code & 0xFF not in _NOT_THE_WORK
    return not isinstance(error, StoreUnavailable | OutcomeUnknown)
