"""The gate before a worker's appends, and what their plans may do at most: the order of a log is kept by it.

A worker is faster here than it was: what it would append waits until the log comes to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from chatstate.commands import AnyCommand
from events.envelope import Recorded
from events.ids import ChatId
from events.records import Actor
from store.append import CommandIdentity, Journal, Outcome, Plan, PlanRun
from store.contract import Store
from store.warm import WarmChats

MOST_MORE: Final = 50
"""Events that an append may have beyond those of the log, before it is taken for endless."""


class Endless(Exception):
    """A plan goes on and on, or a worker does.

    Attributes:
        recorded: The events that the append has made so far; none of them is written.
    """

    def __init__(self, recorded: tuple[Recorded, ...], said: str | None = None) -> None:
        super().__init__(said or f"more than {len(recorded)} events in one append")
        self.recorded = recorded


class Gate:
    """Closed but while its worker's events are next."""

    def __init__(self) -> None:
        self._open = False
        self._held = False
        self._moved = asyncio.Event()

    def open(self) -> None:
        """Let appends through, one after the other."""
        self._open = True
        self._moved.set()

    def close(self) -> None:
        """Let none through any more."""
        self._open = False

    def hold(self) -> None:
        """Keep back whoever has appended, until ``let_go``: what it began it must not begin yet."""
        self._held = True

    def let_go(self) -> None:
        """Let it go on."""
        self._held = False
        self._moved.set()

    async def enter(self) -> None:
        """Wait until the gate is open."""
        await self._until(lambda: self._open)

    async def leave(self) -> None:
        """Wait while it is kept back."""
        await self._until(lambda: not self._held)

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._moved.clear()
            await self._moved.wait()


def salt() -> bytes:
    """Return the salt of contents: what is made here is thrown away."""
    return bytes(16)


class GatedJournal(Journal):
    """The journal of one worker.

    Args:
        store: Where the chat is kept.
        warm: The chat as it is known, so that it is not read again with each turn.
        told: Called with what each append did.
        check: Called with each command of a plan; what it raises is the append's.
        events: How many events an append may have.
    """

    def __init__(
        self,
        store: Store,
        warm: WarmChats,
        told: Callable[[Outcome], None],
        check: Callable[[AnyCommand], None],
        events: int,
    ) -> None:
        super().__init__(store, salt, warm=warm, told=told)
        self.gate: Final = Gate()
        self._check: Final = check
        self._most: Final = events + MOST_MORE
        self._made = 0

    async def execute(self, chat: ChatId, plan: Plan, identity: CommandIdentity, **options: Any) -> Outcome:
        """See :meth:`store.append.Journal.execute`.

        Raises:
            Endless: The append, or all of the worker's together, have more events than the whole log. A worker that
                goes on and on may never wait for anything, so that nothing else could end it.
        """
        await self.gate.enter()
        if self._made > self._most:
            raise Endless((), f"more than {self._most} events by one worker")
        outcome = await super().execute(chat, bounded(plan, self._most, self._check), identity, **options)
        self._made += max(1, len(outcome.recorded))
        await self.gate.leave()
        return outcome


def bounded(plan: Plan, most: int, check: Callable[[AnyCommand], None] = lambda _: None) -> Plan:
    """Return a plan that fails when it makes more than ``most`` events: wrong code may go on for ever.

    Args:
        plan: The plan.
        most: Events.
        check: Called with each of its commands.
    """

    def within(run: PlanRun) -> None:
        do = run.do

        def counted(command: AnyCommand, actor: Actor | None = None) -> Recorded:
            if len(run.recorded) >= most:
                raise Endless(tuple(run.recorded))
            check(command)
            return do(command, actor)

        run.do = counted  # type: ignore[method-assign]  # of this run alone
        plan(run)

    return within
