"""Between simulated processes and their database: time passes, replies and hints are lost, the database is away.

Every call takes effect in one moment, at the database; before and after it is on its way. What was sent arrives also
where its sender died. What appends and leases must be like is the ledger's matter.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Self, cast

from chatfold.testing.simulation.profile import Profile
from chatfold.testing.stores import WrappedStore
from chatfold.virtual.loop import WORLD, Host, SimulatedLoop
from events.ids import ChatId
from store.contract import FEED_START, Append, FeedEvent, FeedPosition, Hint, PartialChunk, Store
from store.errors import OutcomeUnknown, StoreUnavailable
from store.feed import follow
from store.notify import Subscription
from store.shield import outcome

WRITES: Final = frozenset({"append", "import_chat", "delete"})
"""Calls that are never cancelled half-way: a cancelled caller waits for their outcome."""

_TOLD: Final = frozenset({*WRITES, "heartbeat", "forget_worker", "find_command"})
"""Calls that a trace tells of; the others change nothing."""

_UNANSWERED: Final = frozenset({*WRITES, "heartbeat"})
"""Calls after which it is not known whether they took effect, where the reply is lost."""


_PROMPT: Final = 0.2
"""Virtual seconds within which a call is over where nothing is wrong."""


@dataclass(slots=True, eq=False)
class _Listener:
    """Who listens, and to which chat (None: all)."""

    host: Host
    chat: ChatId | None
    subscription: Subscription


class Network:
    """The way to the database and back, and the hints that it sends.

    Args:
        loop: Virtual time.
        profile: How bad it is.
        random: Decides each call's fate.
        tell: Takes lines of the trace.

    Attributes:
        calm: Nothing is lost, late or away any more.
        hints_lost: The share of hints that is lost, also when it is calm.
        away_until: Virtual time at which the database can be reached again.
        strike: Is told who sent each write that took effect, before the reply is on its way.
    """

    def __init__(self, loop: SimulatedLoop, profile: Profile, random: Random, tell: Callable[[str], None]) -> None:
        self.loop = loop
        self.profile = profile
        self.calm = False
        self.hints_lost = profile.hints_lost
        self.away_until = 0.0
        self.tell = tell
        self.strike: Callable[[Host], None] = _spare
        self._random = random
        self._context = WORLD.context()
        self._listeners: list[_Listener] = []

    def delay(self) -> float:
        """Draw the seconds that something is on its way."""
        draw = self._random.random
        if self.calm:
            return draw() * 0.001
        if draw() < self.profile.slow_call:
            return draw() * 2.0
        return draw() * self.profile.latency

    def chance(self, share: float) -> bool:
        """Draw whether something bad happens."""
        return share > 0.0 and not self.calm and self._random.random() < share

    def later(self, delay: float, work: Callable[..., object], *args: object) -> None:
        """Have the world do something, whoever lives then."""
        self.loop.call_later(delay, work, *args, context=self._context)

    def publish(self, hints: Iterable[Hint]) -> None:
        """Send hints to all who listen, each on its own way: see :class:`store.notify.Bus`."""
        given = tuple(hints)
        for listener in self._listeners:
            wanted = tuple(hint for hint in given if listener.chat in {None, hint.chat})
            lost = self.hints_lost and self._random.random() < self.hints_lost
            if not wanted or lost or listener.host.dead:
                continue
            late = self._random.random() * 2.0 if self.chance(self.profile.hints_late) else 0.0
            self.later(self.delay() + late, listener.subscription.offer, wanted)
            if self.chance(self.profile.hints_twice):
                self.later(self.delay() + late + self._random.random(), listener.subscription.offer, wanted)

    def deafen(self, host: Host) -> None:
        """Close the connections that hints come by."""
        for listener in self._listeners:
            if listener.host is host:
                listener.subscription.close()

    @asynccontextmanager
    async def listen(self, host: Host, chat: ChatId | None = None) -> AsyncIterator[Subscription]:
        """Subscribe a host to the hints of one chat, or of all."""
        listener = _Listener(host, chat, Subscription())
        self._listeners.append(listener)
        try:
            yield listener.subscription
        finally:
            self._listeners.remove(listener)
            listener.subscription.close()

    @asynccontextmanager
    async def subscribe(self, chat: ChatId | None = None) -> AsyncIterator[Subscription]:
        """Subscribe the world: see :class:`store.notify.Bus`."""
        async with self.listen(WORLD, chat) as subscription:
            yield subscription


class _Wire:
    """One process's connection: each method of the store behind it becomes a call over the network."""

    def __init__(self, host: Host, database: Store, network: Network) -> None:
        self._host = host
        self._database = database
        self._network = network

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        method = getattr(self._database, name)

        def call(*args: Any, **options: Any) -> Coroutine[Any, Any, Any]:
            return self._call(name, lambda: method(*args, **options), args)

        setattr(self, name, call)
        return call

    async def _call(self, name: str, work: Callable[[], Coroutine[Any, Any, Any]], args: tuple[Any, ...]) -> Any:
        network = self._network
        reply: Any = network.loop.create_future()
        before, profile = network.delay(), network.profile
        about = _about(name, args) if name in _TOLD else None
        if network.loop.time() < network.away_until or network.chance(profile.unavailable):
            network.later(before, _fail, reply, StoreUnavailable("the database is away"))
        else:
            lost = network.chance(profile.lost_reply)
            if lost and network.chance(profile.lost_early):
                network.later(before / 2, _fail, reply, _lost(name))
            network.later(before, self._arrive, reply, name, work, lost, about)
        return await (outcome(reply) if name in WRITES else reply)

    def _arrive(
        self,
        reply: Any,
        name: str,
        work: Callable[[], Coroutine[Any, Any, Any]],
        lost: bool,  # noqa: FBT001
        about: str | None,
    ) -> None:
        network, value, error = self._network, None, None
        try:
            value = _at_once(work())
            if name in WRITES and not network.calm:
                network.strike(self._host)
        except Exception as raised:  # noqa: BLE001 - it is the caller's
            error = raised
        if about is not None:
            shown = error if error is not None else value
            network.tell(f"{self._host.name} {about} -> {_shown(shown)}{', reply lost' if lost else ''}")
        if lost:
            network.later(network.delay(), _fail, reply, _lost(name))
        elif error is not None:
            network.later(network.delay(), _fail, reply, error)
        else:
            network.later(network.delay(), _answer, reply, value)


class ProcessStore(WrappedStore):
    """The store of one simulated process.

    Args:
        host: The process.
        database: The store that all processes share; it is open.
        network: What lies between.
    """

    def __init__(self, host: Host, database: Store, network: Network) -> None:
        super().__init__(cast(Store, _Wire(host, database, network)))
        self._host = host
        self._database = database
        self._network = network

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Leave the database open: it is the world's."""

    async def write_partials(self, chunks: Sequence[PartialChunk]) -> frozenset[ChatId]:
        """See :meth:`store.contract.Store.write_partials`; the host is in trouble meanwhile, and since if it fails."""
        begun, troubles = self._network.loop.time(), self._host.troubles
        troubles.append(begun)
        kept = await super().write_partials(chunks)
        if self._network.loop.time() < begun + _PROMPT:
            troubles.remove(begun)
        return kept

    @property
    def write_level(self) -> int:
        """See :attr:`store.contract.Store.write_level`."""
        return self._database.write_level

    def subscribe(self, *, after: FeedPosition = FEED_START) -> AbstractAsyncContextManager[AsyncIterator[FeedEvent]]:
        """See :meth:`store.contract.Store.subscribe`."""
        return follow(self, after)

    def hints(self, chat: ChatId | None = None) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        """See :meth:`store.contract.Store.hints`; of one chat, or of all."""
        return self._network.listen(self._host, chat)


def _at_once(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never waits: every call of the memory store is one moment."""
    try:
        work.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("a call of the memory store waits")


def _spare(host: Host) -> None:
    """Do nothing to it."""


def _lost(name: str) -> Exception:
    if name in _UNANSWERED:
        return OutcomeUnknown(f"the reply of {name} was lost")
    return StoreUnavailable(f"the connection was lost during {name}")


def _fail(reply: Any, error: Exception) -> None:
    if not reply.done():
        reply.set_exception(error)


def _answer(reply: Any, value: object) -> None:
    if not reply.done():
        reply.set_result(value)


def _about(name: str, args: tuple[Any, ...]) -> str:
    given = args[0] if args else ""
    if isinstance(given, Append):
        types = "+".join(new.stored.envelope.type for new in given.events)
        return f"{name} {given.chat} {given.expected_version}: {types}"
    return f"{name} {getattr(given, 'chat', given)}"


def _shown(value: object) -> str:
    return f"{type(value).__name__}" if not isinstance(value, bool) else str(value)
