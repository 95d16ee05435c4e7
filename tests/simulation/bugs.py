"""Bugs planted in the engine's own code, one at a time: each takes away one thing that the engine relies on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from chatfold.testing.simulation import process
from chatstate.commands import AnyCommand, Fence
from chatstate.errors import TransitionNotAllowed
from events.control import Control
from events.envelope import Recorded
from events.ids import MessageId, WorkerId
from events.parts import Part
from events.records import Actor
from generation.cancellation import Cause
from generation.flushing import Flusher, Leftovers
from generation.outcomes import Answered
from generation.partials import Leftover
from generation.plans import Hold, Task
from generation.runner import ChatRunner
from store.append import CommandIdentity, Journal, Outcome, Plan, PlanRun
from store.contract import Append, AppendResult, Heartbeat
from store.errors import OutcomeUnknown
from store.memory import MemoryStore
from store.notes import WorkerNote


def epoch_fence_removed() -> AbstractContextManager[Any]:
    """A worker takes any running chat for its own."""
    return patch.object(Hold, "holds", lambda self, control: control.status == "running" and not self.lost())


def attempt_fence_removed() -> AbstractContextManager[Any]:
    """An outcome counts whatever attempt is under way, on whatever history."""
    return patch.object(Task, "current", lambda self, control: True)


def hint_taken_as_truth() -> AbstractContextManager[Any]:
    """A hint is taken for a change of history, whatever the header says."""
    real = ChatRunner._cause

    def cause(self: ChatRunner, control: Control, task: Task) -> Cause | None:
        return real(self, control, task) or Cause.HISTORY_CHANGED

    return patch.object(ChatRunner, "_cause", cause)


@contextmanager
def hints_taken_for_sure() -> Iterator[None]:
    """No poll stands behind hints."""
    real = process.make_settings

    def settings(capacity: int) -> Any:
        return real(capacity).model_copy(update={"poll": 80_000.0})

    with patch.object(process, "make_settings", settings):
        yield


@contextmanager
def partial_committed_twice() -> Iterator[None]:
    """What an interruption kept of an answer is committed once more with the next answer."""
    kept: dict[str, Answered] = {}
    keep, record = Answered.keep, Answered.record

    def keeps(self: Answered, run: PlanRun, fence: Fence) -> None:
        kept[run.state.control.chat] = self
        keep(self, run, fence)

    def records(self: Answered, run: PlanRun, fence: Fence) -> None:
        partial = kept.get(run.state.control.chat)
        if partial is None:
            record(self, run, fence)
            return

        def both(identity: MessageId) -> tuple[Part, ...]:
            return partial.parts(identity) + self.parts(identity)

        record(replace(self, parts=both), run, fence)

    with patch.object(Answered, "keep", keeps), patch.object(Answered, "record", records):
        yield


def lost_lease_revived() -> AbstractContextManager[Any]:
    """A heartbeat renews a lease that has ended."""
    real = MemoryStore.heartbeat

    async def heartbeat(
        self: MemoryStore, worker: WorkerId, lease_us: int, *, start: bool = False, note: WorkerNote | None = None
    ) -> Heartbeat:
        if worker in self._leases:
            self._leases[worker] = self._clock() + lease_us
        return await real(self, worker, lease_us, start=start, note=note)

    return patch.object(MemoryStore, "heartbeat", heartbeat)


def lost_acquire_taken_for_refused() -> AbstractContextManager[Any]:
    """A worker whose acquire got no reply believes that it was refused."""
    real = Journal._append

    async def append(self: Journal, append: Append, identity: CommandIdentity) -> AppendResult:
        if append.events[0].stored.envelope.type != "acquired":
            return await real(self, append, identity)
        try:
            return await self.store.append(append)
        except OutcomeUnknown:
            raise TransitionNotAllowed("acquire", "P0", "no reply came") from None

    return patch.object(Journal, "_append", append)


def plan_not_run_again() -> AbstractContextManager[Any]:
    """After a conflict the commands of the first run are issued again: nothing is decided anew."""
    real = Journal.execute

    async def execute(self: Journal, chat: Any, plan: Plan, *args: Any, **options: Any) -> Outcome:
        issued: list[tuple[AnyCommand, Actor | None]] = []

        def once(run: PlanRun) -> None:
            if issued:
                for command, actor in issued:
                    run.do(command, actor)
                return
            do = run.do

            def keep(command: AnyCommand, actor: Actor | None = None) -> Recorded:
                issued.append((command, actor))
                return do(command, actor)

            run.do = keep  # type: ignore[method-assign]
            plan(run)

        return await real(self, chat, once, *args, **options)

    return patch.object(Journal, "execute", execute)


def streams_not_kept() -> AbstractContextManager[Any]:
    """What models stream is not handed to the store before it is committed."""

    async def run(self: Flusher) -> None:
        await asyncio.Event().wait()

    return patch.object(Flusher, "run", run)


def leftovers_not_read() -> AbstractContextManager[Any]:
    """What a dead holder's answer left is taken for nothing."""
    return patch.object(Leftovers, "of", lambda self, control: Leftover())


BUGS: Final[Mapping[str, Callable[[], AbstractContextManager[Any]]]] = {
    bug.__name__: bug
    for bug in (
        epoch_fence_removed,
        attempt_fence_removed,
        hint_taken_as_truth,
        hints_taken_for_sure,
        partial_committed_twice,
        lost_lease_revived,
        lost_acquire_taken_for_refused,
        plan_not_run_again,
        streams_not_kept,
        leftovers_not_read,
    )
}
