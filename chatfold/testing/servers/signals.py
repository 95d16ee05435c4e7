"""Signals and gates: how a test and a server, in different threads, wait for each other.

Owns the two primitives; what happens at a gate is the business of `playing`. Each waiter gets a future of its own, so
that a signal can be awaited from any event loop, blocked on from any thread, and given up without harm to others.
"""

import asyncio
import threading
from concurrent.futures import Future

from chatfold.testing.servers.fields import checked

__all__ = ["DEFAULT_WAIT", "Gate", "Signal"]

DEFAULT_WAIT = 10.0
"""Seconds that a test waits for a signal before it fails."""


class Signal:
    """Something that happens once; safe to set and to wait for from any thread and any event loop."""

    def __init__(self, name: str) -> None:
        """Make a signal that has not happened yet.

        Args:
            name: What is waited for, as a timeout's message names it.

        Raises:
            TypeError: That is no text.
        """
        self.name = checked(name, str, "name")
        self._lock = threading.Lock()
        self._happened = False
        self._waiters: list[Future[None]] = []

    @property
    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._happened

    def set(self) -> None:
        """Let it happen; all who wait go on. Setting it again changes nothing."""
        with self._lock:
            self._happened = True
            waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter.set_running_or_notify_cancel():
                waiter.set_result(None)

    async def wait(self, within: float | None = DEFAULT_WAIT) -> None:
        """Wait in an event loop.

        Args:
            within: Seconds to wait at most; None waits for ever.

        Raises:
            TimeoutError: It did not happen in time.
        """
        waiter = asyncio.wrap_future(self._subscribe())
        try:
            async with asyncio.timeout(within):
                await waiter
        except TimeoutError:
            raise TimeoutError(self._late(within)) from None

    def block(self, within: float | None = DEFAULT_WAIT) -> None:
        """Wait in a thread that runs no event loop.

        Args:
            within: Seconds to wait at most; None waits for ever.

        Raises:
            TimeoutError: It did not happen in time.
        """
        waiter = self._subscribe()
        try:
            waiter.result(within)
        except TimeoutError:
            waiter.cancel()
            raise TimeoutError(self._late(within)) from None

    def _subscribe(self) -> Future[None]:
        waiter: Future[None] = Future()
        with self._lock:
            if not self._happened:
                self._waiters.append(waiter)
                return waiter
        waiter.set_result(None)
        return waiter

    def _late(self, within: float | None) -> str:
        return f"{self.name}: did not happen within {within} s"


class Gate:
    """A point in an answer where the server waits until the test lets it go on.

    The test learns that the server stands at the gate (`reached`), does what must happen exactly then, and calls
    `release`. A gate opens once; an answer needs a gate of its own.
    """

    def __init__(self, name: str = "gate") -> None:
        """Make a closed gate.

        Args:
            name: The gate's name in the message of a timeout.

        Raises:
            TypeError: That is no text.
        """
        checked(name, str, "name")
        self._arrival = Signal(f"{name}: the server's arrival")
        self._release = Signal(f"{name}: the release")

    @property
    def is_reached(self) -> bool:
        """Whether the server has come to the gate."""
        return self._arrival.is_set

    async def reached(self, within: float = DEFAULT_WAIT) -> None:
        """Wait until the server stands at the gate.

        Args:
            within: Seconds to wait at most.

        Raises:
            TimeoutError: The server did not come in time.
        """
        await self._arrival.wait(within)

    def block_until_reached(self, within: float = DEFAULT_WAIT) -> None:
        """Do as `reached`, for a thread without an event loop."""
        self._arrival.block(within)

    def release(self) -> None:
        """Let the server go on, now or whenever it comes."""
        self._release.set()

    async def pass_through(self) -> None:
        """For the server: tell the test of the arrival and wait for the release, for ever if need be."""
        self._arrival.set()
        await self._release.wait(within=None)
