"""Chats that the store says are held here and that nobody here runs: each is let go, or run where it must end.

Such a chat is left by a command whose caller went away between its append and the runner, or by a runner that died.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from chatstate.errors import Refusal
from events.ids import ChatId
from generation.acquiring import in_parallel
from generation.faults import ChatFaults
from generation.flushing import with_leftovers
from generation.plans import Hold, LeftBy, let_go
from generation.roster import Roster
from generation.runtime import Runtime
from store.append import PlanRun
from store.loading import LoadedChat
from store.log import get_logger

_log = get_logger(__name__)


class Strays:
    """Finds strays and sees to them.

    Args:
        runtime: The shared parts.
        roster: What the worker has in hand.
        faults: Chats that are to be left alone.
        hold_at: The worker's hold at an epoch.
        adopt: Runs a chat that this worker holds.
        guarded: Does work for one chat, so that its failure is that chat's alone.
        released: Called when a chat was let go, which wants a worker again.
    """

    def __init__(
        self,
        runtime: Runtime,
        roster: Roster,
        faults: ChatFaults,
        *,
        hold_at: Callable[[int], Hold],
        adopt: Callable[[LoadedChat], None],
        guarded: Callable[[ChatId, Awaitable[None]], Awaitable[None]],
        released: Callable[[], None],
    ) -> None:
        self._runtime = runtime
        self._roster = roster
        self._faults = faults
        self._hold_at = hold_at
        self._adopt = adopt
        self._guarded = guarded
        self._released = released
        self.suspects: dict[ChatId, None] = {}
        """Chats to look at soon: no set, which would be gone through in another order in each process."""

    async def find(self) -> None:
        """See to all chats that the store says are held here.

        Raises:
            StoreError: The store is away.
        """
        held = await self._runtime.journal.store.held_by(self._runtime.worker)
        strays = [chat for chat in held if self._roster.is_stray(chat) and not self._faults.holds_back(chat)]
        await self._see_to(strays)

    async def look_at_suspects(self) -> None:
        """See to the suspects.

        Raises:
            StoreError: The store is away; the suspects stay.
        """
        while self.suspects:
            await self._see_to(tuple(self.suspects))

    async def _see_to(self, chats: tuple[ChatId, ...] | list[ChatId]) -> None:
        async def check(chat: ChatId) -> None:
            await self._guarded(chat, self._check(chat))
            self.suspects.pop(chat, None)

        await in_parallel(chats, check)

    async def _check(self, chat: ChatId) -> None:
        """Go on with a chat that is held here and not run: what was under way is gone, so a new attempt starts."""
        if not self._roster.is_stray(chat):
            return
        died = self._faults.died(chat)
        try:
            outcome = await with_leftovers(
                lambda: self._runtime.journal.store.read_partials(chat),
                lambda left: self._runtime.journal.execute(
                    chat,
                    lambda run: self._let_go(chat, run, left.of, died=died),
                    self._runtime.identity(),
                    now=self._runtime.now,
                ),
                self._runtime.leftovers(chat),
            )
        except Refusal as refusal:
            _log.debug("stray_moved_on", chat=chat, code=refusal.code)
            return
        control = outcome.chat.state.control
        held = self._hold_at(control.epoch).holds(control) and self._roster.is_stray(chat)
        if held and (outcome.recorded or control.interrupting):
            self._adopt(outcome.chat)
        if died and outcome.recorded:
            self._faults.counted(chat, control.takeovers)
        if control.status == "error":
            self._faults.forgive(chat)
        if outcome.recorded:
            _log.warning("held_chat_without_runner", chat=chat, worker=self._runtime.worker, runner_died=died)
            self._released()

    def _let_go(self, chat: ChatId, run: PlanRun, leftovers: LeftBy, *, died: bool) -> None:
        control = run.state.control
        hold = self._hold_at(control.epoch)
        # Asked here and not before: a command may have taken the chat meanwhile.
        if hold.holds(control) and self._roster.is_stray(chat):
            let_go(run, hold, leftovers, died=died)
