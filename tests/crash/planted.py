"""Bugs that a crash test must find: each function plants one in the worker process that calls it."""

import asyncio
import itertools

from chatstate.handlers import worker
from generation.flushing import Flusher
from store.append import CommandIdentity, Journal
from store.contract import Append, Appended, AppendResult


def acknowledge_without_writing() -> None:
    """Of the commands of users every third is said to be written and is not, from the first one on."""
    honest, seen = Journal._append, itertools.count()

    async def lying(self: Journal, append: Append, identity: CommandIdentity) -> AppendResult:
        if identity.actor.kind == "user" and next(seen) % 3 == 0:
            return Appended()
        return await honest(self, append, identity)

    Journal._append = lying  # type: ignore[method-assign]


def run_lost_calls_again() -> None:
    """A takeover forgets which calls may have run: those that must not run twice do."""
    worker._lost = lambda calls: ()


def keep_no_partials() -> None:
    """What models stream is kept by nobody before it is committed."""

    async def run(self: Flusher) -> None:
        await asyncio.Event().wait()

    Flusher.run = run  # type: ignore[method-assign]
