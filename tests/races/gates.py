"""A store whose calls can be held, lost or refused one by one, so that a test says in which order things happen.

Owns the gates. It opens and closes no store: several processes of a test share one that the fixture opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Self, TypeAlias, TypeVar

from chatfold.testing.stores import CallName, WrappedStore
from events.envelope import StoredEvent
from events.ids import ChatId, CommandId, WorkerId
from store.contract import (
    Append,
    Appended,
    AppendResult,
    CommandRecord,
    DueChat,
    Heartbeat,
    Hint,
    LoadedHeader,
    PartialChunk,
    Store,
)
from store.errors import OutcomeUnknown, StoreUnavailable
from store.notes import WorkerNote

T = TypeVar("T")
PATIENCE = 20
"""Seconds after which a test that waits for something has failed."""

When: TypeAlias = Callable[[Append], bool]


class Gate:
    """One call that is held: before it takes effect, or (``after``) before its reply is given."""

    def __init__(self, name: CallName, when: When | None, *, after: bool) -> None:
        self.name = name
        self.after = after
        self._when = when
        self._reached = asyncio.Event()
        self._open = asyncio.Event()

    def wants(self, name: CallName, append: Append | None) -> bool:
        return name == self.name and (self._when is None or (append is not None and self._when(append)))

    async def arrived(self) -> None:
        """Wait until the call stands at the gate."""
        await asyncio.wait_for(self._reached.wait(), PATIENCE)

    def open(self) -> None:
        """Let the call go on."""
        self._open.set()

    async def hold(self) -> None:
        self._reached.set()
        await self._open.wait()


class Lost:
    """What is to be lost: the reply of a call that took effect, or the call itself."""

    def __init__(self, name: CallName, when: When | None, error: type[Exception], *, effect: bool, times: int) -> None:
        self.name, self.when, self.error, self.effect, self.times = name, when, error, effect, times
        self.happened = 0

    def wants(self, name: CallName, append: Append | None) -> bool:
        if self.happened >= self.times or name != self.name:
            return False
        return self.when is None or (append is not None and self.when(append))


class GatedStore(WrappedStore):
    """Passes calls on to a store that others opened, through gates.

    Attributes:
        written: Appends that took effect through this store, in order.
        tried: All appends that were asked for.
        deaf: Hints do not reach those who subscribe here.
    """

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.written: list[Append] = []
        self.tried: list[Append] = []
        self.deaf = False
        self._gates: list[Gate] = []
        self._losses: list[Lost] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Leave the store inside open: it is not this one's."""

    def hold(self, name: CallName = "append", when: When | None = None, *, after: bool = False) -> Gate:
        """Hold the next call of a method (an append for which ``when`` is true)."""
        gate = Gate(name, when, after=after)
        self._gates.append(gate)
        return gate

    def lose(
        self,
        name: CallName = "append",
        when: When | None = None,
        *,
        effect: bool = True,
        error: type[Exception] = OutcomeUnknown,
        times: int = 1,
    ) -> Lost:
        """Lose the next call of a method: its reply, or with ``effect`` false the call itself."""
        lost = Lost(name, when, error, effect=effect, times=times)
        self._losses.append(lost)
        return lost

    def away(self, name: CallName, times: int = 1_000_000) -> Lost:
        """Let a method fail as a store does that cannot be reached."""
        return self.lose(name, effect=False, error=StoreUnavailable, times=times)

    async def append(self, append: Append) -> AppendResult:
        self.tried.append(append)
        return await self._through("append", lambda: self._append(append), append)

    async def _append(self, append: Append) -> AppendResult:
        result = await self.inner.append(append)
        if isinstance(result, Appended):
            self.written.append(append)
        return result

    async def load_header(self, chat: ChatId) -> LoadedHeader | None:
        return await self._through("load_header", lambda: self.inner.load_header(chat))

    async def read_events(
        self, chat: ChatId, *, after: int = 0, upto: int | None = None, limit: int | None = None, content: bool = True
    ) -> Sequence[StoredEvent]:
        return await self._through(
            "read_events",
            lambda: self.inner.read_events(chat, after=after, upto=upto, limit=limit, content=content),
        )

    async def find_command(self, chat: ChatId, command: CommandId) -> CommandRecord | None:
        return await self._through("find_command", lambda: self.inner.find_command(chat, command))

    async def find_due(
        self, *, agents: Sequence[str], reader_level: int, limit: int, exclude: Sequence[ChatId] = ()
    ) -> Sequence[DueChat]:
        return await self._through(
            "find_due",
            lambda: self.inner.find_due(agents=agents, reader_level=reader_level, limit=limit, exclude=exclude),
        )

    async def held_by(self, worker: WorkerId) -> Sequence[ChatId]:
        return await self._through("held_by", lambda: self.inner.held_by(worker))

    async def heartbeat(
        self, worker: WorkerId, lease_us: int, *, start: bool = False, note: WorkerNote | None = None
    ) -> Heartbeat:
        return await self._through("heartbeat", lambda: self.inner.heartbeat(worker, lease_us, start=start, note=note))

    async def write_partials(self, chunks: Sequence[PartialChunk]) -> frozenset[ChatId]:
        return await self._through("write_partials", lambda: self.inner.write_partials(chunks))

    async def read_partials(self, chat: ChatId) -> Sequence[PartialChunk]:
        return await self._through("read_partials", lambda: self.inner.read_partials(chat))

    def hints(self, chat: ChatId | None = None) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        return _silence() if self.deaf else self.inner.hints(chat)

    async def _through(self, name: CallName, call: Callable[[], Awaitable[T]], append: Append | None = None) -> T:
        gate = next((each for each in self._gates if each.wants(name, append)), None)
        if gate is not None:
            self._gates.remove(gate)
        if gate is not None and not gate.after:
            await gate.hold()
        lost = next((each for each in self._losses if each.wants(name, append)), None)
        if lost is not None:
            lost.happened += 1
            if not lost.effect:
                raise lost.error(f"{name} is lost on purpose")
        result = await call()
        if gate is not None and gate.after:
            await gate.hold()
        if lost is not None:
            raise lost.error(f"the reply of {name} is lost on purpose")
        return result


@asynccontextmanager
async def _silence() -> AsyncIterator[AsyncIterator[Hint]]:
    yield _nothing()


async def _nothing() -> AsyncIterator[Hint]:
    await asyncio.Event().wait()
    yield Hint(ChatId(""), 0, due=False)  # pragma: no cover - it waits for ever


def types(append: Append) -> tuple[str, ...]:
    """Types of an append's events."""
    return tuple(new.stored.envelope.type for new in append.events)


def having(*wanted: str) -> When:
    """Tell an append that has events of all these types."""
    return lambda append: set(wanted) <= set(types(append))


def by_worker(append: Append) -> bool:
    """Tell an append that a worker makes of its own accord."""
    return append.events[0].stored.envelope.actor.kind == "worker"
