"""The worker of one process: acquires chats that want one, runs them, keeps its lease, lets go of all when it stops.

Hints wake it, and a poll stands behind them: a lost hint costs at most the poll interval. A lease that was lost is
never revived: all runners stop at once, and the worker comes back under a new id.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from chatstate import commands as c
from chatstate.errors import Refusal
from events.ids import ChatId, WorkerId
from events.records import ReleaseReason
from generation.faults import ChatFaults
from generation.plans import Hold, let_go, take
from generation.runner import ChatRunner
from generation.runtime import Runtime
from store.append import PlanRun
from store.building import SegmentBuilder
from store.contract import DueChat, Hint
from store.errors import OutcomeUnknown, StoreError, StoreUnavailable
from store.failpoints import reach
from store.loading import LoadedChat
from store.log import get_logger
from store.schema import READER_LEVEL

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
        self._set_clock = clock_offset
        self._runners: dict[ChatId, ChatRunner] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loops: list[asyncio.Task[None]] = []
        self._wake = asyncio.Event()
        self._stopping: ReleaseReason | None = None
        self._ended = asyncio.Event()
        self._backlog = True
        self._claims: dict[ChatId, set[Claim]] = {}
        self._taken: set[ChatId] = set()
        self._faults = ChatFaults(runtime.boot)
        self._idle = asyncio.Event()
        self._suspects: set[ChatId] = set()
        self._due: set[ChatId] = set()
        self._missed: dict[ChatId, int] = {}
        self._segments = SegmentBuilder(runtime.journal.store)

    @property
    def worker(self) -> WorkerId:
        """The id of the lease in force."""
        return self._runtime.worker

    @property
    def running(self) -> tuple[ChatId, ...]:
        """Chats that it runs now."""
        return tuple(self._runners)

    async def start(self) -> None:
        """Take a lease, look once for due chats, and go on looking.

        Raises:
            StoreUnavailable: The lease could not be written, or the store not be read.
        """
        self._stopping = None
        self._ended.clear()
        try:
            await self._new_lease()
            listening: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            for loop in (self._listen(listening), self._beat()):
                self._loops.append(self._spawn(loop))
            await listening
            # Before anybody sends a message here: whether older chats wait decides if a message may acquire its own.
            await self._acquire_pass()
            self._loops.append(self._spawn(self._acquire_loop()))
        except BaseException:
            self._stopping = "shutdown"
            await self._end()
            raise

    async def stop(self, reason: ReleaseReason = "shutdown") -> None:
        """Stop to acquire, let go of all chats (running tools get their grace), and give the lease back.

        Commands may go on; they take no chat any more. A second call waits for the first. Where the call is cancelled,
        the worker ends at once, and its chats are taken over by others.
        """
        if self._stopping is not None:
            await self._ended.wait()
            return
        self._stopping = reason
        reach("stop.begun")
        try:
            for runner in self._runners.values():
                runner.stop(reason)
            while self._taken or self._tasks.difference(self._loops):
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
            for runner in self._runners.values():
                runner.lose()
            await self._segments.stop()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(tuple(self._tasks), timeout=_ENDING)
            reach("stop.lease")
            await self._runtime.journal.store.forget_worker(self.worker)
        except StoreError as error:
            # The lease ages out by itself.
            _log.warning("lease_not_given_back", worker=self.worker, error=str(error))
        finally:
            self._loops.clear()
            self._runners.clear()
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
                self._taken.discard(chat)
                self._idle.set()
            if not claims:
                del self._claims[chat]
                self._missed.pop(chat, None)
            self._wake_if_due(chat)

    def may_take(self, chat: ChatId) -> bool:
        """Return whether a command may acquire ``chat`` now.

        The worker is not stopping, does not run the chat, has a free slot, and no older pending chat waits for one.
        """
        if self._stopping is not None or not self._runtime.lease_fresh():
            return False
        if self._backlog or self._wake.is_set() or chat in self._runners or self._faults.holds_back(chat):
            return False
        return chat in self._taken or self._free() > 0

    def take(self, claim: Claim, run: PlanRun) -> None:
        """Acquire within a plan that made a chat pending; ``adopt`` the chat when the plan was written."""
        claim.taken = True
        self._taken.add(claim.chat)
        take(run, self.worker, self._runtime.release, self._hold_at)

    def adopt(self, loaded: LoadedChat) -> None:
        """Run a chat that this worker holds already; does nothing for one that it does not hold or runs.

        ``loaded`` must be the chat as this worker's own append has just left it: of an older state an effect could be
        done that was done already.
        """
        chat = loaded.header.chat
        if loaded.state.control.holder == self.worker and chat not in self._runners:
            runner = self._run(chat, loaded)
            if self._missed.get(chat, 0) > loaded.header.version:
                # It was changed between the append and now, when there was no runner to tell.
                runner.hint()

    def suspect(self, chat: ChatId) -> None:
        """Look soon whether the worker holds ``chat`` without running it."""
        self._suspects.add(chat)
        self._wake.set()

    def notice(self, loaded: LoadedChat) -> None:
        """Take note of a chat that a command of this process has just changed: no hint need come round for it."""
        chat, status = loaded.header.chat, loaded.state.control.status
        runner = self._runners.get(chat)
        if runner is not None:
            runner.hint()
            if status == "pending":
                self._due.add(chat)
        elif status == "pending":
            self._wake_for(loaded)

    def _hold_at(self, epoch: int) -> Hold:
        runtime = self._runtime
        return Hold(
            worker=runtime.worker,
            actor=runtime.actor,
            epoch=epoch,
            policy_for=runtime.policy_for,
            stop=lambda: self._stopping,
        )

    def _free(self) -> int:
        return self._runtime.settings.capacity - len(self._taken.union(self._runners))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _new_lease(self) -> None:
        self._runtime.worker = WorkerId(self._runtime.new_id())
        await self._renew(start=True)
        reach("lease.new")

    async def _renew(self, *, start: bool = False) -> bool:
        """Ask for the lease; whether it is in force is also known here, in case that the store cannot be asked."""
        runtime, lease = self._runtime, self._runtime.settings.lease
        asked = runtime.boot()
        reach("heartbeat.asked")
        beat = await runtime.journal.store.heartbeat(
            self.worker, round(lease * 1e6), start=start, note=runtime.note() if start else None
        )
        reach("heartbeat.answered")
        self._set_clock(beat.now)
        if beat.renewed:
            runtime.lease_until = asked + lease
        return beat.renewed

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._runtime.settings.lease / 3)
            try:
                if not await self._renew():
                    self._lose_all()
                    await self._new_lease()
                    self._wake.set()
                await self._reconcile()
            except StoreError as error:
                _log.warning("heartbeat_failed", worker=self.worker, error=str(error))
                self._lose_if_stale()
            except Exception:  # noqa: BLE001 - without its beat the worker loses all chats
                _log.exception("heartbeat_failed", worker=self.worker)
                self._lose_if_stale()
            self._runtime.parts.collect()

    def _lose_if_stale(self) -> None:
        if not self._runtime.lease_fresh():
            self._lose_all()

    def _lose_all(self) -> None:
        """Stop all runners at once: others may take their chats now."""
        _log.error("lease_lost", worker=self.worker, chats=len(self._runners))
        self._runtime.lease_until = -math.inf
        for runner in self._runners.values():
            runner.lose()
        self._runners.clear()

    async def _reconcile(self) -> None:
        """Run chats that the store says are held here without a runner, and have runners look at theirs."""
        for chat in await self._runtime.journal.store.held_by(self.worker):
            if not self._faults.holds_back(chat):
                await self._see_to(chat, self._check(chat))
        for runner in self._runners.values():
            runner.hint()
            self._segments.offer(runner.state)

    def _is_stray(self, chat: ChatId) -> bool:
        """Whether nobody here sees to ``chat``: neither a runner nor a command that is about to make one."""
        return chat not in self._runners and chat not in self._taken and self._stopping is None

    async def _check(self, chat: ChatId) -> None:
        """Go on with a chat that is held here and not run: what was under way is gone, so a new attempt starts."""
        if not self._is_stray(chat):
            return
        try:
            outcome = await self._runtime.journal.execute(
                chat, lambda run: self._let_go_stray(chat, run), self._runtime.identity(), now=self._runtime.now
            )
        except Refusal as refusal:
            _log.debug("stray_moved_on", chat=chat, code=refusal.code)
            return
        control = outcome.chat.state.control
        if control.interrupting and self._is_stray(chat):
            self.adopt(outcome.chat)
        if control.status == "error":
            self._faults.forgive(chat)
        if outcome.recorded:
            _log.warning("held_chat_without_runner", chat=chat, worker=self.worker)
            self._wake.set()

    def _let_go_stray(self, chat: ChatId, run: PlanRun) -> None:
        control = run.state.control
        hold = self._hold_at(control.epoch)
        # Asked here and not before: a command may have taken the chat meanwhile.
        if hold.holds(control) and self._is_stray(chat):
            let_go(run, hold, self._faults.deaths(chat, control.history_version))

    async def _see_to(self, chat: ChatId, work: Awaitable[None]) -> None:
        """Do work for one chat: unless the store is away, its failure is that chat's alone."""
        try:
            await work
        except (StoreUnavailable, OutcomeUnknown):
            raise
        except Exception:  # noqa: BLE001 - whatever it is, the other chats go on
            self._blame(chat, "chat_failed")

    def _blame(self, chat: ChatId, what: str, history_version: int | None = None) -> None:
        """Log the exception under way as one chat's fault, and leave that chat alone for a while."""
        delay = self._faults.note(chat, history_version)
        _log.exception(what, chat=chat, worker=self.worker, left_alone_for=delay)
        asyncio.get_running_loop().call_later(delay + 0.001, self._wake.set)

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
        runner = self._runners.get(hint.chat)
        if runner is None:
            if hint.due:
                self._wake.set()
            if hint.chat in self._claims:
                self._missed[hint.chat] = max(hint.version, self._missed.get(hint.chat, 0))
            return
        if hint.due:
            self._due.add(hint.chat)
        known = runner.state
        if known is None or hint.version > known.state.control.version:
            runner.hint(hint.version)

    async def _acquire_loop(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._runtime.settings.poll):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            try:
                await self._acquire_pass()
            except StoreError as error:
                _log.warning("acquire_pass_failed", worker=self.worker, error=str(error))
            except Exception:  # noqa: BLE001 - without this loop no chat is acquired any more
                _log.exception("acquire_pass_failed", worker=self.worker)

    async def _acquire_pass(self) -> None:
        if self._stopping is not None or not self._runtime.lease_fresh():
            return
        while self._suspects:
            chat = self._suspects.pop()
            await self._see_to(chat, self._check(chat))
        limit = max(self._free(), 1)
        due = await self._runtime.journal.store.find_due(
            agents=tuple(self._runtime.agents),
            reader_level=READER_LEVEL,
            limit=limit,
            exclude=self._faults.held_back(),
        )
        fresh = [each for each in due if each.chat not in self._runners]
        self._backlog = len(fresh) >= limit
        for each in fresh:
            await self._see_to(each.chat, self._serve(each))

    async def _serve(self, due: DueChat) -> None:
        if self._stopping is not None or due.chat in self._runners:
            return
        if due.kind == "expired":
            await self._expire(due.chat)
        elif due.chat in self._taken:
            # A command is taking it. If that comes to nothing, this comes back.
            self._due.add(due.chat)
        elif self._free() > 0 or due.kind == "interruption":
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
            await self._runtime.journal.execute(chat, plan, self._runtime.identity())
        except Refusal as refusal:
            _log.debug("expiry_refused", chat=chat, code=refusal.code)

    def _run(self, chat: ChatId, loaded: LoadedChat | None) -> ChatRunner:
        runner = ChatRunner(self._runtime, chat, loaded)
        if self._stopping is not None:
            runner.stop(self._stopping)
        self._runners[chat] = runner
        _ = self._spawn(self._run_one(chat, runner))
        return runner

    async def _run_one(self, chat: ChatId, runner: ChatRunner) -> None:
        loaded = None
        try:
            loaded = await runner.run()
        except (StoreUnavailable, OutcomeUnknown) as error:
            # Only a runner that lost its lease gives up here: whoever holds the chat now sees to it.
            _log.warning("runner_gave_up", chat=chat, worker=self.worker, error=str(error))
        except Exception:  # noqa: BLE001 - whatever it is, it is this chat's alone
            known = runner.state
            self._blame(chat, "runner_failed", known.state.control.history_version if known is not None else None)
            if known is not None:
                self._suspects.add(chat)
            self._wake.set()  # another chat may have its slot
        finally:
            if self._runners.get(chat) is runner:
                del self._runners[chat]
        self._segments.offer(loaded)
        if loaded is not None:
            self._faults.forgive(chat)
            self._wake_for(loaded)
        self._wake_if_due(chat)

    def _wake_if_due(self, chat: ChatId) -> None:
        """Look again where ``chat`` was said to want a worker while it had one, or a command was at it."""
        if chat in self._due and self._runners.get(chat) is None:
            self._due.discard(chat)
            self._wake.set()

    def _wake_for(self, loaded: LoadedChat) -> None:
        """Look again when the chat's retry or deadline is due, and now if a chat waits for the slot."""
        due = loaded.header.due_at
        if due is not None:
            delay = max(0.0, (due - self._runtime.now()) / 1e6)
            asyncio.get_running_loop().call_later(delay + 0.001, self._wake.set)
        if self._backlog or loaded.state.control.status == "pending":
            self._wake.set()
