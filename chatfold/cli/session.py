"""One chat in the hands of one user: the engine runs in a thread of its own, the user's side in the main thread.

So a user may ponder at a prompt while leases are renewed, and Ctrl-C reaches the one who waits. Owns following a turn
and what Ctrl-C means in it; what is shown is the printers' matter, what is asked at a prompt the commands'.
"""

from __future__ import annotations

import asyncio
import queue
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import FrameType
from typing import Final, ParamSpec, TypeVar

from anyio.from_thread import BlockingPortal

from chatfold.cli.ending import end_now
from chatfold.cli.guard import INTERRUPTED
from chatfold.engine import Engine
from chatfold.receipts import Receipt
from chatfold.stream import EventItem, StreamItem
from chatstate.errors import Refusal
from events.envelope import AT_REST
from events.state import ChatState
from generation.cursor import Cursor
from store.errors import StoreError

P = ParamSpec("P")
T = TypeVar("T")

SETTLED = frozenset({*AT_REST, "requires_action"})
"""Statuses in which no worker owes the chat anything."""

LETTING_GO: Final = 0.5
"""Seconds that a process in a hurry has for telling others that its chats are free."""


class Session:
    """An engine that runs beside the main thread, and the chat that is followed.

    Args:
        portal: To the engine's thread.
        engine: It, opened.
    """

    def __init__(self, portal: BlockingPortal, engine: Engine) -> None:
        self._portal = portal
        self.engine = engine
        self.chat = ""
        self.hurried = False
        self._items: queue.SimpleQueue[StreamItem | BaseException | None] = queue.SimpleQueue()

    def call(self, work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something in the engine's thread and wait for it."""

        async def done() -> T:
            return await work(*args, **kwargs)

        return self._portal.call(done)

    def open(self, chat: str, after: int) -> None:
        """Follow a chat from the event after version ``after`` on."""
        self.chat = chat
        self._portal.start_task_soon(self._pump, Cursor(version=after).encode())

    async def _pump(self, cursor: str) -> None:
        try:
            async for item in self.engine.stream(self.chat, cursor):
                self._items.put(item)
        except Exception as error:  # noqa: BLE001 -- it is raised again in the thread that waits
            self._items.put(error)

    def follow(self, version: int, interrupting: Callable[[], None] | None = None) -> Iterator[StreamItem]:
        """Yield what happens, until nothing more is owed after ``version``.

        Args:
            version: Where the turn was when it was asked for.
            interrupting: Called when Ctrl-C has asked for the turn's end (see ``interruptible``).
        """
        while True:
            item = self._items.get()
            if item is None:
                if interrupting is not None:
                    interrupting()
                continue
            if isinstance(item, BaseException):
                raise item
            yield item
            if isinstance(item, EventItem):
                envelope = item.recorded.envelope
                if envelope.version >= version and envelope.dest in SETTLED:
                    return

    def state(self) -> ChatState:
        """Return the chat's state, with its transcript."""
        return self.call(self.engine.state, self.chat)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """While this lasts, Ctrl-C interrupts the turn, and a second one leaves."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        asked = False

        def on_interrupt(_number: int, _frame: FrameType | None) -> None:
            nonlocal asked
            if asked:
                self.hurried = True
                raise KeyboardInterrupt
            asked = True
            # Nothing is written here: the signal may have come in the middle of a write.
            self._items.put(None)
            self._portal.start_task_soon(self._interrupt)

        before = signal.signal(signal.SIGINT, on_interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    async def _interrupt(self) -> Receipt | None:
        try:
            return await self.engine.interrupt(self.chat)
        except Refusal:
            return None  # the turn had ended by itself


async def let_go(engine: Engine) -> None:
    """Give up the worker's lease, so that its chats are free at once and not when it has run out.

    Only for a process that ends right after: what runs in it must not go on.
    """
    if engine.worker is not None:
        try:
            async with asyncio.timeout(LETTING_GO):
                await engine.store.forget_worker(engine.worker.worker)
        except (TimeoutError, StoreError):
            return  # others wait for the lease's end, then


@contextmanager
def running(engine: Engine) -> Iterator[Session]:
    """Run an engine in a thread of its own, and close it at the end.

    Where Ctrl-C was pressed twice, nothing is closed: the chats are let go of, and the process ends.

    Raises:
        StoreError: The store cannot be opened.
    """
    with _portal() as portal, portal.wrap_async_context_manager(engine):
        session = Session(portal, engine)
        try:
            yield session
        except KeyboardInterrupt:
            if session.hurried:
                portal.call(let_go, engine)
                end_now(INTERRUPTED)
            raise


@contextmanager
def _portal() -> Iterator[BlockingPortal]:
    """Run an event loop in a thread that the process does not wait for: a tool's thread may keep the loop from ending.

    That is why it is not anyio's own, which is waited for.
    """
    opened: Future[BlockingPortal] = Future()

    async def serve() -> None:
        async with BlockingPortal() as portal:
            opened.set_result(portal)
            await portal.sleep_until_stopped()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="chatfold-engine", daemon=True)
    thread.start()
    portal = opened.result()
    try:
        yield portal
    finally:
        portal.call(portal.stop, True)  # and cancel what is left
        thread.join(LETTING_GO)
