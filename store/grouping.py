"""Appends of many chats that wait for one commit: what goes together in a batch, and who is to blame where one fails.

Pure but for the tasks that it runs: what a batch is written with comes from the back end. While a batch is under way
appends gather, and go together in the next. One that fails as a whole is halved until the culprit stands alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, TypeAlias

from events.ids import ChatId
from store.contract import Append, AppendResult
from store.errors import OutcomeUnknown, StoreError, StoreUnavailable
from store.shield import Reply

MOST: Final = 200
"""Appends in a batch."""

FEW: Final = 32
"""Appends that go together though nothing is left behind: fewer in a batch would cost more than they gain."""

MOST_BYTES: Final = 1_000_000
"""Bytes of payload in a batch, about."""


class Waiting(Reply[AppendResult]):
    """An append that waits, and its outcome."""

    __slots__ = ("append", "size")

    def __init__(self, append: Append, size: int, future: asyncio.Future[AppendResult]) -> None:
        super().__init__(future)
        self.append = append
        self.size = size


WriteBatch: TypeAlias = Callable[[Sequence[Append]], Awaitable[Sequence[AppendResult | None]]]
"""Writes appends of different chats in one transaction, and returns an outcome for each.

None stands for an append that was passed over: somebody else is writing to its chat, or it must be looked at again by
itself. It raises OutcomeUnknown where it is not known whether the transaction was committed, Spoiled where one of the
appends is to blame that nothing was written, and another StoreError where none is.
"""


class Spoiled(Exception):
    """Nothing of a batch was written, because one of its appends cannot be.

    Attributes:
        error: What is wrong with it.
    """

    def __init__(self, error: StoreError) -> None:
        super().__init__(str(error))
        self.error = error


def next_batch(waiting: deque[Waiting]) -> list[Waiting]:
    """Take the next batch from the front of what waits: different chats, not too many, not too large.

    Of many no more than half go: while the database writes the one half, the process decides about the chats of the
    other, so that neither waits for the other to end.

    A second append of a chat stays where it is, and so does what is behind it of the same chat.
    """
    batch: list[Waiting] = []
    later: list[Waiting] = []
    chats: set[ChatId] = set()
    size = 0
    most = min(MOST, max(FEW, len(waiting) // 2))
    while waiting and len(batch) < most and (size < MOST_BYTES or not batch):
        entry = waiting.popleft()
        if entry.append.chat in chats:
            later.append(entry)
            continue
        chats.add(entry.append.chat)
        batch.append(entry)
        size += entry.size
    waiting.extendleft(reversed(later))
    return batch


class Group:
    """Gathers appends and writes them batch by batch.

    Args:
        write: Writes a batch.
        alone: Writes one append by itself: where it is the only one, or was passed over.
        spawn: Runs a task that closing waits for.
    """

    def __init__(
        self,
        write: WriteBatch,
        alone: Callable[[Append], Awaitable[AppendResult]],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._write = write
        self._alone = alone
        self._spawn = spawn
        self._waiting: deque[Waiting] = deque()
        self._writing = self._ending = False
        self._idle: asyncio.Future[None] | None = None

    def add(self, append: Append, size: int) -> Waiting:
        """Have an append written; returns what to wait for. One that comes alone is written at once."""
        waiting = Waiting(append, size, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if not self._writing:
            self._writing = True
            self._spawn(self._run())
        else:
            self._wake()
        return waiting

    def end(self) -> None:
        """End the task that writes once nothing waits; what is added after that has another one begin."""
        self._ending = True
        self._wake()

    def _wake(self) -> None:
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    async def _run(self) -> None:
        """Write what waits, and wait for more: a task for each batch would cost a lone chat more than this."""
        batch: Sequence[Waiting] = ()
        try:
            while self._waiting or not self._ending:
                if self._waiting:
                    batch = next_batch(self._waiting)
                    await self._write_batch(batch)
                    batch = ()
                else:
                    self._idle = asyncio.get_running_loop().create_future()
                    await self._idle
        finally:
            self._writing = self._ending = False
            # Nothing is left but where the task was cancelled. Who waits does so also when cancelled, and must be told.
            for entry in batch:
                entry.fail(OutcomeUnknown("the batch was cancelled"))
            while self._waiting:
                self._waiting.popleft().fail(
                    StoreUnavailable("the task that writes was cancelled; nothing was written")
                )

    async def _write_batch(self, batch: Sequence[Waiting]) -> None:
        try:
            results = await self._write([entry.append for entry in batch])
        except Spoiled as spoiled:
            if len(batch) == 1:
                batch[0].fail(spoiled.error)
                return
            middle = len(batch) // 2
            for half in (batch[:middle], batch[middle:]):
                await self._write_batch(half)
            return
        except StoreError as error:
            for entry in batch:
                own = type(error)(str(error))  # one each: whoever raises it adds to its traceback
                own.__cause__ = error
                entry.fail(own)
            return
        except Exception as error:  # noqa: BLE001 - those of the batch are told, and the next ones are written
            for entry in batch:
                unknown = OutcomeUnknown(f"the batch ended by {type(error).__name__}: {error}")
                unknown.__cause__ = error
                entry.fail(unknown)
            return
        for entry, result in zip(batch, results, strict=True):
            if result is None:
                # Behind the lock of somebody else: not the others' matter.
                self._spawn(self._write_alone(entry))
            else:
                entry.give(result)

    async def _write_alone(self, entry: Waiting) -> None:
        try:
            result = await self._alone(entry.append)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this append's
            entry.fail(error)
        except BaseException:
            entry.fail(OutcomeUnknown("the append ended before its outcome was known"))
            raise
        else:
            entry.give(result)
