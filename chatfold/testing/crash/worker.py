"""A worker process of a crash test: an engine with a worker, and a socket at which it takes commands of users.

It is forked from the template (``template``), ends at SIGTERM as a service does, and at once when the template is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from chatfold.engine import Engine
from chatfold.settings import Settings
from chatfold.testing.crash import story
from chatfold.testing.crash.calls import serve
from chatfold.testing.crash.ledger import Ledger
from chatfold.testing.crash.schedule import Life
from chatfold.testing.episodes import NotedParts
from chatfold.testing.stores import WrappedStore
from events.ids import ChatId
from store import open_store
from store.contract import Hint
from store.errors import StoreError
from store.failpoints import arm

NOT_STARTED: Final = 75
"""Exit status of a worker that could not reach its database when it began."""


class Place(Struct, frozen=True, kw_only=True):
    """What all workers of a crash test share. ``folder`` holds the ledger, the sockets and what workers log."""

    db: str
    folder: str
    seed: int
    lease: float
    capacity: int
    setup: str = ""

    def socket(self, slot: int) -> Path:
        """Return where the workers of a slot listen."""
        return Path(self.folder, f"{slot}.sock")

    @property
    def ledger(self) -> Path:
        """Where tools write what they did."""
        return Path(self.folder, "ledger.jsonl")

    @property
    def said(self) -> Path:
        """Where models write what they said."""
        return Path(self.folder, "said.jsonl")

    @property
    def log(self) -> Path:
        """Where workers log what is a warning or worse, and where their last words go."""
        return Path(self.folder, "workers.log")

    def settings(self, capacity: int | None) -> Settings:
        """Return the engine's settings; with another capacity than the one for all on request."""
        return Settings(
            lease=self.lease,
            poll=0.25,
            grace=0.25,
            model_retry_unit=0.02,
            capacity=self.capacity if capacity is None else capacity,
        )


class DeafStore(WrappedStore):
    """A store from which no hint ever comes."""

    @asynccontextmanager
    async def _silence(self) -> AsyncIterator[AsyncIterator[Hint]]:
        yield _nothing()

    def hints(self, chat: ChatId | None = None) -> contextlib.AbstractAsyncContextManager[AsyncIterator[Hint]]:
        """See :meth:`store.contract.Store.hints`."""
        return self._silence()


async def _nothing() -> AsyncIterator[Hint]:
    await asyncio.Event().wait()
    yield Hint.__new__(Hint)  # pragma: no cover - it is never reached, and makes this a generator


def run_worker(place: Place, life: Life, lifeline: int) -> int:
    """Run a worker until SIGTERM.

    Args:
        place: Where.
        life: How it is armed.
        lifeline: A pipe that ends when the template does.

    Returns:
        The exit status.
    """
    logging.basicConfig(
        level=logging.WARNING,
        stream=sys.stderr,
        format=f"%(asctime)s {life.slot}.{life.number} {os.getpid()} %(levelname)s %(name)s %(message)s",
    )
    if place.setup:
        module, _, function = place.setup.partition(":")
        getattr(importlib.import_module(module), function)()
    arm(life.failpoints)
    try:
        asyncio.run(_work(place, life, lifeline))
    except StoreError:
        logging.getLogger(__name__).warning("not started", exc_info=True)
        return NOT_STARTED
    return 0


async def _work(place: Place, life: Life, lifeline: int) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_reader(lifeline, os._exit, 1)
    chance = random.Random(f"{place.seed} worker {life.slot} {life.number}")  # noqa: S311 - it is to be repeated
    store = DeafStore(open_store(place.db)) if life.deaf else open_store(place.db)
    with Ledger(place.ledger) as ledger, Ledger(place.said) as said:
        engine = Engine(
            store,
            [story.agent(ledger, chance)],
            providers={story.PROVIDER: story.Storyteller(chance, said, hurried=life.hurried)},
            settings=place.settings(life.capacity),
        )
        engine.runtime.parts = NotedParts(time.monotonic)
        async with engine:
            server = await serve(engine, place.socket(life.slot))
            await stop.wait()
            server.close()
