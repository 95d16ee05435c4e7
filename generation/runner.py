"""The runner of one chat: holds it, does one effect after the other, and appends each outcome with the next start.

It keeps the chat's state and applies the events it appended; it reads the log again only where another command came
between. Which chats to run is the worker's matter; what comes next is decided by the rules.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from msgspec.structs import replace
from structlog.stdlib import BoundLogger

from chatstate.errors import ChatNotFound, ContentTooLarge, Refusal
from events.control import Control, decode_control
from events.errors import EventsError
from events.ids import ChatId
from events.records import ReleaseReason
from generation.actions.assistant import generate
from generation.actions.attempt import Attempt
from generation.actions.compaction import compact
from generation.actions.context import collect_context
from generation.actions.hooked import after_effect
from generation.actions.tools import not_begun, run_tools
from generation.cancellation import CancelScope, Cause, WorkCancelled
from generation.errors import ClassifiedError
from generation.flushing import with_leftovers
from generation.foreign import original
from generation.observing import Effect
from generation.outcomes import Failed, ResultsCame, Stopped, ToolsEnded
from generation.parts import EpisodeKey
from generation.plans import Hold, Outcome, Task, acquire, note, settle
from generation.prompt import Prompt
from generation.runtime import Runtime
from generation.tools.output import unrecordable
from store.append import Plan
from store.contract import Header
from store.errors import OutcomeUnknown, StoreError, StoreUnavailable, Unstorable
from store.failpoints import reach
from store.loading import LoadedChat, load_state
from store.log import get_logger

_log = get_logger(__name__)
_told = logging.getLogger(__name__)
"""What ``_log`` writes to, asked first: each event of each chat has a line."""
_T = TypeVar("_T")
_EFFECTS: Final[dict[str, Callable[[Attempt], Awaitable[Outcome]]]] = {
    "generate": generate,
    "compact": compact,
    "context": collect_context,
}
_NOT_STORABLE: Final = (ContentTooLarge, EventsError, Unstorable, ValueError, TypeError, OverflowError)
"""What an append raises for what was to be recorded. The last three are of an encoder or a driver that was given what
no check had seen (half a surrogate pair, an integer beyond 64 bits): the turn must not be made again and again for it.
"""
_UNWINDING: Final = 1.0
"""Seconds beyond the grace that an effect gets to end after it was cancelled; then it is left behind."""


class ChatRunner:
    """Runs one chat until it is let go.

    Args:
        runtime: The worker's shared parts.
        chat: Which chat.
        loaded: The chat as this worker has just acquired it; None to acquire it first.
    """

    __slots__ = (
        "_hinted",
        "_hold",
        "_loaded",
        "_looked_at",
        "_lost",
        "_prompt",
        "_release",
        "_runtime",
        "_scope",
        "_task",
        "_told",
        "_watching",
        "chat",
    )

    def __init__(self, runtime: Runtime, chat: ChatId, loaded: LoadedChat | None = None) -> None:
        self.chat = chat
        self._runtime = runtime
        self._loaded = loaded
        self._hold = self._hold_at(loaded.state.control.epoch if loaded is not None else 0)
        self._scope: CancelScope[Outcome] | None = None
        self._hinted = False
        self._told = self._looked_at = 0
        self._watching: asyncio.Task[None] | None = None
        self._task: Task | None = None
        self._release: ReleaseReason | None = None
        self._lost = False
        self._prompt = Prompt()

    @property
    def _log(self) -> BoundLogger:
        return _log.bind(chat=self.chat, worker=self._runtime.worker)

    @property
    def state(self) -> LoadedChat | None:
        """The chat as the runner knows it."""
        return self._loaded

    def hint(self, version: int | None = None) -> None:
        """Say that the chat may have changed: the runner looks, unless it knows the ``version`` told of by then."""
        self._hinted = self._hinted or version is None
        self._told = max(self._told, version or 0)
        self._watch_if_hinted()

    def stop(self, reason: ReleaseReason) -> None:
        """Let the chat go as soon as what runs has ended or had its grace."""
        self._release = reason
        if self._scope is not None:
            self._scope.cancel(Cause.SHUTDOWN)

    def lose(self) -> None:
        """Stop at once and write nothing: the lease is lost."""
        self._lost = True
        if self._scope is not None:
            self._scope.cancel(Cause.LEASE_LOST)

    async def run(self) -> LoadedChat | None:
        """Run the chat; returns it as it was let go, or None where another worker has it."""
        observed = self._runtime.observed
        wanted_at = self._runtime.now() if observed else 0
        if self._loaded is None and not await self._acquire():
            return None
        await self._load_transcript()
        self._find_prompt()
        if self._loaded is not None:
            self._runtime.began(self.chat, self._loaded.state.control)
            if observed:
                self._runtime.observer.held(self._loaded, wanted_at=wanted_at, at=self._runtime.now())
        try:
            return await self._go_on()
        finally:
            if observed:
                self._runtime.observer.let_go(self.chat, lost=self._lost, at=self._runtime.now())

    async def _go_on(self) -> LoadedChat | None:
        """Do one effect after the other while the chat is this runner's."""
        while (loaded := self._running()) is not None:
            task, outcome = await self._act(loaded)
            if self._lost:
                break
            reach("outcome.asked")
            asked_at = self._runtime.now() if self._runtime.observed else 0
            await self._settle(task, outcome)
            reach("outcome.recorded")
            if self._runtime.observed and outcome is not None:
                self._runtime.observer.committed(self.chat, began_at=asked_at, at=self._runtime.now())
        reach("release.done")
        return None if self._lost else self._loaded

    def _running(self) -> LoadedChat | None:
        """Return the chat while it is this runner's to run."""
        loaded = self._loaded
        if self._lost or loaded is None or not self._hold.holds(loaded.state.control):
            return None
        return loaded

    async def _acquire(self) -> bool:
        reach("acquire.asked")
        worker, release, store = self._runtime.worker, self._runtime.release, self._runtime.journal.store
        try:
            self._loaded = await with_leftovers(
                lambda: self._patiently(lambda: store.read_partials(self.chat)),
                lambda left: self._append(acquire(worker, release, self._hold_at, left.of), transcript=True),
                self._runtime.leftovers(self.chat),
            )
        except Refusal as refusal:
            # Another worker was faster, or the chat moved on: nothing is owed here.
            self._log.debug("acquire_refused", code=refusal.code, reason=refusal.reason)
            return False
        reach("acquire.done")
        self._hold = self._hold_at(self._loaded.state.control.epoch)
        self._log.info("chat_acquired", version=self._loaded.state.control.version, epoch=self._hold.epoch)
        return True

    async def _load_transcript(self) -> None:
        loaded = self._loaded
        if loaded is None or loaded.state.transcript is not None:
            return
        state = await self._patiently(lambda: load_state(self._runtime.journal.store, loaded.header))
        if not self._lost:
            self._loaded = loaded.with_transcript(state)

    def _find_prompt(self) -> None:
        """Go on with the prompt that an earlier turn left with the warm chat, or leave this one there."""
        warm = self._runtime.journal.warm
        kept = warm.beside(self.chat)
        if isinstance(kept, Prompt):
            self._prompt = kept
        else:
            warm.keep_beside(self.chat, self._prompt)

    def _hold_at(self, epoch: int) -> Hold:
        runtime = self._runtime
        return Hold(
            worker=runtime.worker,
            actor=runtime.actor,
            epoch=epoch,
            policy_for=runtime.policy_for,
            stop=self._stopping,
            lost=self._is_lost,
            ready=self._ready,
        )

    def _stopping(self) -> ReleaseReason | None:
        return self._release

    def _is_lost(self) -> bool:
        return self._lost

    def _ready(self, control: Control) -> bool:
        return self._runtime.ready(self.chat, control)

    async def _act(self, loaded: LoadedChat) -> tuple[Task | None, Outcome | None]:
        """Do the effect under way; no outcome where it was overtaken or there is none."""
        control = loaded.state.control
        if not self._runtime.lease_fresh():
            self._log.error("lease_not_renewed", version=control.version)
            self.lose()
        if self._lost or control.running is None or control.interrupting:
            return None, None
        task = Task(history_version=control.history_version, attempt=control.running.attempt)
        scope: CancelScope[Outcome] = CancelScope(patience=self._runtime.settings.grace + _UNWINDING)
        self._scope = scope
        if self._release is not None:
            scope.cancel(Cause.SHUTDOWN)
        attempt = self._attempt(loaded, scope)
        reach("effect.starting")
        self._runtime.parts.create(attempt.episode)
        self._task = task
        self._watch_if_hinted()
        try:
            return task, await scope.run(self._effect(attempt, task))
        except WorkCancelled as cancelled:
            self._log.debug("effect_cancelled", cause=cancelled.cause.name)
            if cancelled.cause not in (Cause.USER_INTERRUPT, Cause.SHUTDOWN):
                return task, None
            return task, Stopped() if scope.begun else not_begun(attempt)
        finally:
            self._scope = None
            if self._runtime.observed:
                self._runtime.observer.effect_ended(attempt.effect, at=self._runtime.now())
            self._runtime.parts.close(attempt.episode)
            if (watching := self._watching) is not None:
                self._watching = None
                watching.cancel()
                with contextlib.suppress(asyncio.CancelledError, StoreError):
                    await watching

    def _attempt(self, loaded: LoadedChat, scope: CancelScope[Outcome]) -> Attempt:
        control = loaded.state.control
        running = control.running
        policy = loaded.state.need_transcript("run").policies.get(control.policy)
        if running is None or policy is None:
            raise RuntimeError(f"chat {self.chat} has no attempt or no policy at version {control.version}")
        manual = running.kind == "compact" and control.compaction == "requested"
        agent, observed = self._runtime.agents[control.agent], self._runtime.observed
        return Attempt(
            runtime=self._runtime,
            chat=self.chat,
            agent=agent,
            policy=policy,
            state=loaded.state,
            running=running,
            scope=scope,
            prompt=self._prompt,
            episode=EpisodeKey(self.chat, control.history_version, running.attempt),
            effect=Effect(
                chat=self.chat,
                owner=loaded.header.owner,
                agent=control.agent,
                turn=None if manual else control.indexes.turn_start,
                history_version=control.history_version,
                attempt=running.attempt,
                epoch=control.epoch,
                kind=running.kind,
                policy=policy,
                began_at=self._runtime.now() if observed else 0,
                inactive=self._runtime.declared(agent, policy, control.policy).inactive if observed else (),
                version=control.version,
            ),
        )

    async def _effect(self, attempt: Attempt, task: Task) -> Outcome:
        self._runtime.observer.effect_begun(attempt.effect)
        try:
            if attempt.running.kind == "tools":
                return await run_tools(attempt, lambda outcome: self._note_from(attempt, task, outcome))
            outcome = await _EFFECTS[attempt.running.kind](attempt)
            return await after_effect(attempt, outcome) if attempt.runtime.hooks else outcome
        except (StoreError, Refusal):
            raise
        except Exception as error:  # noqa: BLE001 - an application's part may raise anything
            # A fault of ours or of an application's part must not strand the chat: the turn fails and says so.
            self._log.exception("effect_failed", kind=attempt.running.kind)
            return _fault(error)

    def _watch_if_hinted(self) -> None:
        """Look at the chat where a hint came while an effect is under way: it tells of another's append."""
        if self._scope is not None and self._task is not None and self._watching is None and self._has_news():
            self._watching = asyncio.create_task(self._watch(self._scope, self._task), name=f"watch {self.chat}")

    def _has_news(self) -> bool:
        known = self._loaded.header.version if self._loaded is not None else 0
        return self._hinted or self._told > max(known, self._looked_at)

    async def _watch(self, scope: CancelScope[Outcome], task: Task) -> None:
        """Cancel the effect where the chat does not wait for it any more."""
        while self._has_news():
            told, self._hinted = self._told, False
            header = await self._patiently(lambda: self._runtime.journal.store.load_header(self.chat))
            self._looked_at = max(self._looked_at, told)
            try:
                cause = Cause.LEASE_LOST if header is None else self._cause(self._control(header.header), task)
            except EventsError as error:
                # What was written over the header is no reason to drop an answer: the next append writes it anew.
                self._log.error("header_not_readable", error=str(error))
                continue
            if cause is not None:
                self._lost = self._lost or cause is Cause.LEASE_LOST
                scope.cancel(cause)
        self._watching = None

    def _control(self, header: Header) -> Control:
        """Return a header's control; most hints tell of appends of this runner, whose control it has at hand."""
        loaded = self._loaded
        if loaded is not None and loaded.header.digest == header.digest:
            return loaded.state.control
        return decode_control(header.control)

    def _cause(self, control: Control, task: Task) -> Cause | None:
        if not self._hold.holds(control):
            return Cause.LEASE_LOST
        if not task.current(control):
            return Cause.HISTORY_CHANGED
        return Cause.USER_INTERRUPT if control.interrupting else None

    async def _note_from(self, attempt: Attempt, task: Task, outcome: ResultsCame) -> None:
        """Append a result of an effect that goes on, unless the runner has left that effect behind."""
        if self._scope is attempt.scope:
            reach("result.asked")
            await self._note(task, outcome)
            reach("result.recorded")

    async def _note(self, task: Task, outcome: ResultsCame) -> None:
        """Append results; one that cannot be stored is an error in its own place, not the end of the others."""
        try:
            self._take(await self._append(note(self._hold, task, outcome)))
        except _NOT_STORABLE as error:
            if len(outcome.results) > 1:
                for result in outcome.results:
                    await self._note(task, ResultsCame(results=(result,)))
                return
            (result,) = outcome.results
            self._log.warning("result_not_storable", call=result.call, exc_info=error)
            instead = ResultsCame(results=(unrecordable(result, str(error)),))
            self._take(await self._append(note(self._hold, task, instead)))

    async def _settle(self, task: Task | None, outcome: Outcome | None) -> None:
        """Append an outcome with what follows it."""
        try:
            self._take(await self._append(settle(self._hold, task, outcome)))
        except _NOT_STORABLE as error:
            # What came cannot be stored: that, and not the chat, has failed.
            self._log.warning("outcome_not_storable", exc_info=error)
            await self._settle_otherwise(task, outcome, error)
        except ChatNotFound as gone:
            # Others took it to its end while this one did not know, and its user deleted it.
            self._log.info("chat_gone", reason=gone.reason)
            self._lost = True
        except Refusal as refusal:
            self._log.error("outcome_refused", code=refusal.code, trigger=refusal.trigger, reason=refusal.reason)
            fault = _fault(refusal)
            self._take(await self._append(settle(self._hold, task, fault if outcome is not None else None)))

    async def _settle_otherwise(self, task: Task | None, outcome: Outcome | None, error: Exception) -> None:
        if task is not None and isinstance(outcome, ToolsEnded) and outcome.results:
            await self._note(task, ResultsCame(results=outcome.results))
            rest: Outcome = replace(outcome, results=())
        else:
            rest = _fault(error)
        self._take(await self._append(settle(self._hold, task, rest)))

    def _take(self, loaded: LoadedChat) -> None:
        """Go on from the chat as an append left it, unless more is known: one by work left behind may be told late."""
        known = self._loaded
        if known is None or known.header.version <= loaded.header.version:
            self._loaded = loaded

    def _now(self) -> int:
        return self._runtime.now_at(self.chat)

    async def _append(self, plan: Plan, *, transcript: bool = True) -> LoadedChat:
        identity = self._runtime.identity()
        outcome = await self._patiently(
            lambda: self._runtime.journal.execute(
                self.chat, plan, identity, transcript=transcript, base=self._loaded, now=self._now
            )
        )
        for recorded in outcome.recorded if _told.isEnabledFor(logging.INFO) else ():
            self._log.info(
                "event_appended",
                version=recorded.version,
                type=recorded.event.type,
                status=recorded.envelope.dest,
            )
        return outcome.chat

    async def _patiently(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Do work of the store again and again while the store is away; the lease ends it, if it lasts."""
        settings = self._runtime.settings
        delay = settings.retry_initial
        while True:
            try:
                return await work()
            except (StoreUnavailable, OutcomeUnknown) as error:
                if self._lost:
                    raise
                self._log.warning("store_away", error=str(error), retry_in=delay)
            await asyncio.sleep(delay)
            delay = min(delay * 2, settings.retry_cap)


def _fault(error: Exception) -> Failed:
    return Failed(
        error=ClassifiedError(
            kind="generic",
            message="The turn failed by an internal error.",
            detail=type(original(error)).__name__,
            retryable=False,
        ),
        max_attempts=1,
    )
