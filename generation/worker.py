"""The worker of one process: runs chats that want one, and lets go of all when it stops.

Owns the runners, and the claims of commands that take a chat with their own append. The lease that all of it hangs on
is ``generation.lease``'s, finding chats ``generation.acquiring``'s, and those that nobody here runs
``generation.strays``'s. A lease that was lost is never revived: all runners stop at once, and the worker comes back
under a new id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from chatstate import commands as c
from chatstate.errors import Refusal
from events.ids import ChatId, WorkerId
from events.records import ReleaseReason
from generation.acquiring import Acquirer
from generation.faults import ChatFaults
from generation.lease import BEATS, Lease
from generation.plans import Hold, take
from generation.roster import Roster
from generation.runner import ChatRunner
from generation.runtime import Runtime
from generation.side_jobs import SideJobs
from generation.staleness import StalenessWatch
from generation.strays import Strays
from generation.timers import Timers
from store.append import PlanRun
from store.building import SegmentBuilder
from store.contract import DueChat, Hint
from store.errors import OutcomeUnknown, StoreError, StoreUnavailable
from store.failpoints import reach
from store.loading import LoadedChat
from store.log import get_logger

_log = get_logger(__name__)

_ENDING: Final = 1.0
"""Seconds that tasks get to end when stopping is cut short."""


@dataclass(slots=True, eq=False)
class Claim:
    """A command under way at a chat; ``taken``: its plan acquires the chat."""

    chat: ChatId
    taken: bool = False


class Worker:
    """Runs the chats of the agents that it has.

    Args:
        runtime: The shared parts; ``runtime.worker`` is replaced at each start of a lease.
        clock_offset: Told the database's time (microseconds UTC) with each heartbeat.
    """

    def __init__(self, runtime: Runtime, clock_offset: Callable[[int], None]) -> None:
        self._runtime = runtime
        self._roster = Roster(runtime.settings.capacity)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loops: list[asyncio.Task[None]] = []
        self._ended = asyncio.Event()
        self._claims: dict[ChatId, set[Claim]] = {}
        self._idle = asyncio.Event()
        self._due: set[ChatId] = set()
        self._missed: dict[ChatId, int] = {}
        self._known_as = runtime.worker
        self._lease = Lease(runtime, clock_offset, self._lose_all)
        self._staleness = StalenessWatch(runtime)
        self._aside = SideJobs(runtime)
        self._faults = ChatFaults(runtime.boot, trial=runtime.settings.lease / BEATS)
        self._acquirer = Acquirer(runtime, self._roster, self._lease, self._faults, self._serve)
        self._faults.on_wait = self._acquirer.wake_in
        self._timers = Timers(runtime, self._acquirer.wake_in, runtime.settings.lease / BEATS)
        self._acquirer.overdue = self._timers.overdue
        self._strays = Strays(
            runtime,
            self._roster,
            self._faults,
            hold_at=self._hold_at,
            adopt=self.adopt,
            guarded=self._see_to,
            released=self._acquirer.wake.set,
        )
        runtime.ready = self._faults.may_acquire
        runtime.began = self._staleness.look
        self._segments = SegmentBuilder(runtime.journal.store)

    @property
    def worker(self) -> WorkerId:
        """The id of the lease in force."""
        return self._runtime.worker

    @property
    def running(self) -> tuple[ChatId, ...]:
        """Chats that it runs now."""
        return tuple(self._roster.runners)

    async def start(self) -> None:
        """Take a lease, look once for due chats, and go on looking.

        Raises:
            StoreUnavailable: The lease could not be written, or the store not be read.
        """
        self._roster.stopping = None
        self._ended.clear()
        try:
            await self._lease.take()
            self._lease.start()
            listening: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            kept = (self._lease.keep(self._beaten), self._lease.guard(), self._runtime.flusher.run())
            for loop in (self._listen(listening), *kept):
                self._loops.append(self._spawn(loop))
            await listening
            # Before anybody sends a message here: whether older chats wait decides if a message may acquire its own.
            await self._acquirer.look()
            self._loops.append(self._spawn(self._acquirer.run(self._strays.look_at_suspects)))
        except BaseException:
            self._roster.stopping = "shutdown"
            await self._end()
            raise

    async def stop(self, reason: ReleaseReason = "shutdown") -> None:
        """Stop to acquire, let go of all chats (running tools get their grace), and give the lease back.

        Commands may go on; they take no chat any more. A second call waits for the first. Where the call is cancelled,
        the worker ends at once, and its chats are taken over by others.
        """
        if self._roster.stopping is not None:
            await self._ended.wait()
            return
        self._roster.stopping = reason
        reach("stop.begun")
        try:
            for runner in self._roster.runners.values():
                runner.stop(reason)
            while self._roster.taken or self._tasks.difference(self._loops):
                # A command under way takes a chat with its append: that chat is let go too.
                if running := self._tasks.difference(self._loops):
                    await asyncio.wait(running)
                else:
                    self._idle.clear()
                    await self._idle.wait()
        finally:
            await self._end()

    async def _end(self) -> None:
        """End all that still runs, and give the lease back."""
        try:
            for runner in self._roster.runners.values():
                runner.lose()
            await self._segments.stop()
            await self._staleness.stop()
            await self._aside.stop()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(tuple(self._tasks), timeout=_ENDING)
            await self._lease.give_back()
        except StoreError as error:
            # The lease ages out by itself.
            _log.warning("lease_not_given_back", worker=self.worker, error=str(error))
        finally:
            self._lease.stop()
            self._loops.clear()
            self._roster.runners.clear()
            self._ended.set()

    @contextmanager
    def taking(self, chat: ChatId) -> Iterator[Claim]:
        """Say that a command is about to append to ``chat`` and may acquire it, so that nobody takes it for a stray."""
        claim = Claim(chat)
        claims = self._claims.setdefault(chat, set())
        claims.add(claim)
        try:
            yield claim
        finally:
            claims.discard(claim)
            if not any(other.taken for other in claims):
                self._roster.taken.discard(chat)
                self._idle.set()
            if not claims:
                del self._claims[chat]
                self._missed.pop(chat, None)
            self._wake_if_due(chat)

    def may_take(self, chat: ChatId) -> bool:
        """Return whether a command may acquire ``chat`` now.

        The worker is not stopping, does not run the chat, has a free slot, and no older pending chat waits for one.
        """
        if self._roster.stopping is not None or not self._runtime.lease_fresh():
            return False
        if (
            self._acquirer.backlog
            or self._acquirer.wake.is_set()
            or chat in self._roster.runners
            or self._faults.holds_back(chat)
        ):
            return False
        return chat in self._roster.taken or self._roster.free() > 0

    def take(self, claim: Claim, run: PlanRun) -> None:
        """Acquire within a plan that made a chat pending; ``adopt`` the chat when the plan was written."""
        claim.taken = True
        self._roster.taken.add(claim.chat)
        take(run, self.worker, self._runtime.release, self._hold_at)

    def adopt(self, loaded: LoadedChat) -> None:
        """Run a chat that this worker holds already; does nothing for one that it does not hold or runs.

        Nor under a lease that has ended: what it held is left to age out, whether it was told so already or not.

        ``loaded`` must be the chat as the append that acquired it here has just left it, or one whose interruption is
        to be finished or just was: an effect that was started by any other append may be under way, or done already.
        """
        chat = loaded.header.chat
        holds = loaded.state.control.holder == self.worker and self._runtime.lease_fresh()
        if holds and chat not in self._roster.runners:
            runner = self._run(chat, loaded)
            if self._missed.get(chat, 0) > loaded.header.version:
                # It was changed between the append and now, when there was no runner to tell.
                runner.hint()

    def suspect(self, chat: ChatId) -> None:
        """Look soon whether the worker holds ``chat`` without running it."""
        self._strays.suspects[chat] = None
        self._acquirer.wake.set()

    def notice(self, loaded: LoadedChat) -> None:
        """Take note of a chat that a command of this process has just changed: no hint need come round for it."""
        chat, status = loaded.header.chat, loaded.state.control.status
        runner = self._roster.runners.get(chat)
        if runner is not None:
            runner.hint(loaded.header.version)
            if status == "pending":
                self._due.add(chat)
            return
        if chat in self._claims:
            self._miss(chat, loaded.header.version)
        if status == "pending":
            self._wake_for(loaded)
        elif loaded.state.control.holder == self.worker:
            self.suspect(chat)

    def _miss(self, chat: ChatId, version: int) -> None:
        """Take note of a change for the runner that a command under way may be about to make."""
        self._missed[chat] = max(version, self._missed.get(chat, 0))

    def _hold_at(self, epoch: int) -> Hold:
        runtime = self._runtime
        return Hold(
            worker=runtime.worker,
            actor=runtime.actor,
            epoch=epoch,
            policy_for=runtime.policy_for,
            stop=lambda: self._roster.stopping,
        )

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _beaten(self) -> None:
        """See after each heartbeat that this worker runs what the store says it holds, and nothing else."""
        self._runtime.parts.collect()
        await self._strays.find()
        await self._timers.look(self._lease.put_back_from)
        for runner in self._roster.runners.values():
            runner.hint()
            self._segments.offer(runner.state)
        if self.worker != self._known_as:
            self._known_as = self.worker
            self._acquirer.wake.set()

    def _lose_all(self) -> None:
        """Stop all runners at once: others may take their chats now."""
        runners = self._roster.runners
        _log.error("lease_lost", worker=self.worker, chats=len(runners))
        for runner in runners.values():
            runner.lose()
        runners.clear()

    async def _see_to(self, chat: ChatId, work: Awaitable[None]) -> None:
        """Do work for one chat: unless the store is away, its failure is that chat's alone."""
        try:
            await work
        except (StoreUnavailable, OutcomeUnknown):
            raise
        except Exception:  # noqa: BLE001 - whatever it is, the other chats go on
            self._blame(chat, "chat_failed")

    def _blame(self, chat: ChatId, what: str, *, died: bool = False) -> None:
        """Log the exception under way as one chat's fault, and leave that chat alone for a while."""
        delay = self._faults.note(chat, died=died)
        _log.exception(what, chat=chat, worker=self.worker, left_alone_for=delay)

    async def _listen(self, listening: asyncio.Future[None]) -> None:
        while True:
            try:
                async with self._runtime.journal.store.hints() as hints:
                    if not listening.done():
                        listening.set_result(None)
                    async for hint in hints:
                        self._take_hint(hint)
            except Exception as error:  # noqa: BLE001 - polls stand behind hints
                if not listening.done():
                    listening.set_exception(error)
                    return
                _log.exception("hints_lost", worker=self.worker)
            await asyncio.sleep(self._runtime.settings.poll)

    def _take_hint(self, hint: Hint) -> None:
        runner = self._roster.runners.get(hint.chat)
        if runner is None:
            self._acquirer.hint(hint)
            if hint.chat in self._claims:
                self._miss(hint.chat, hint.version)
            return
        if hint.due:
            self._due.add(hint.chat)
        known = runner.state
        if known is None or hint.version > known.state.control.version:
            runner.hint(hint.version)

    async def _serve(self, due: DueChat) -> None:
        await self._see_to(due.chat, self._serve_one(due))

    async def _serve_one(self, due: DueChat) -> None:
        if self._roster.stopping is not None or due.chat in self._roster.runners or not self._runtime.lease_fresh():
            return  # a new lease looks again
        if due.kind == "expired":
            await self._expire(due.chat)
        elif due.chat in self._roster.taken:
            # A command is taking it. If that comes to nothing, this comes back.
            self._due.add(due.chat)
        elif self._roster.free() > 0 or due.kind == "interruption":
            self._run(due.chat, None)

    async def _expire(self, chat: ChatId) -> None:
        def plan(run: PlanRun) -> None:
            action = run.state.control.action
            if action is None:
                return
            command = c.ExpireAction if action.on_expiry == "go_on" else c.ExpireActionEndTurn
            run.do(command(action=action.id))

        reach("expiry.asked")
        try:
            await self._runtime.journal.execute(chat, plan, self._runtime.identity(), now=self._clock_of(chat))
        except Refusal as refusal:
            _log.debug("expiry_refused", chat=chat, code=refusal.code)

    def _clock_of(self, chat: ChatId) -> Callable[[], int] | None:
        """Return the clock for a chat whose time has come though the database's does not say so; None: that one."""
        return partial(self._runtime.now_at, chat) if chat in self._runtime.put_back else None

    def _run(self, chat: ChatId, loaded: LoadedChat | None) -> ChatRunner:
        runner = ChatRunner(self._runtime, chat, loaded)
        if self._roster.stopping is not None:
            runner.stop(self._roster.stopping)
        self._roster.runners[chat] = runner
        _ = self._spawn(self._run_one(chat, runner))
        return runner

    async def _run_one(self, chat: ChatId, runner: ChatRunner) -> None:
        loaded = None
        warm = self._runtime.journal.warm
        warm.hold(chat)
        try:
            loaded = await runner.run()
        except (StoreUnavailable, OutcomeUnknown) as error:
            # Only a runner that lost its lease gives up here: whoever holds the chat now sees to it.
            _log.warning("runner_gave_up", chat=chat, worker=self.worker, error=str(error))
        except Exception:  # noqa: BLE001 - whatever it is, it is this chat's alone
            held = runner.state is not None
            self._blame(chat, "runner_failed", died=held)
            if held:
                self._strays.suspects[chat] = None
            self._acquirer.wake.set()  # another chat may have its slot
        finally:
            warm.let_go(chat)
            if self._roster.runners.get(chat) is runner:
                del self._roster.runners[chat]
        self._segments.offer(loaded)
        if loaded is not None:
            self._faults.forgive(chat)
            self._wake_for(loaded)
            if self._roster.stopping is None:
                self._aside.begin(chat, loaded)
        self._wake_if_due(chat)

    def _wake_if_due(self, chat: ChatId) -> None:
        """Look again where ``chat`` was said to want a worker while it had one, or a command was at it."""
        if chat in self._due and self._roster.runners.get(chat) is None:
            self._due.discard(chat)
            self._acquirer.wake.set()

    def _wake_for(self, loaded: LoadedChat) -> None:
        """Look again when the chat's retry or deadline is due, and now if a chat waits for the slot."""
        self._timers.note(loaded)
        due = loaded.header.due_at
        if due is not None:
            self._acquirer.wake_in((due - self._runtime.now()) / 1e6)
        if self._acquirer.backlog or loaded.state.control.status == "pending":
            self._acquirer.wake.set()
