"""Causes of cancellation reach the work and whoever started it."""

import asyncio
import itertools
from collections.abc import Coroutine
from typing import Any

import pytest

from generation.cancellation import CancelScope, Cause, WorkCancelled


async def _forever() -> str:
    await asyncio.Event().wait()
    return "never"


async def _settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_value_comes_through() -> None:
    async def work() -> int:
        return 3

    scope = CancelScope[int]()
    assert await scope.run(work()) == 3
    assert scope.cause is None


async def test_a_value_comes_through_where_the_loop_begins_with_a_task_at_once() -> None:
    async def work() -> int:
        return 3

    def eager(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, int]) -> asyncio.Future[int]:
        done: asyncio.Future[int] = loop.create_future()
        with pytest.raises(StopIteration) as end:
            work.send(None)
        done.set_result(end.value.value)
        return done

    loop = asyncio.get_running_loop()
    running = loop.create_task(CancelScope[int]().run(work()))
    loop.set_task_factory(eager)  # type: ignore[arg-type]
    try:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert running.done()
    finally:
        loop.set_task_factory(None)
        running.cancel()
    assert await running == 3


@pytest.mark.parametrize("cause", Cause)
async def test_the_cause_reaches_both_sides(cause: Cause) -> None:
    scope = CancelScope[str]()
    seen: list[Cause | None] = []

    async def work() -> str:
        try:
            return await _forever()
        finally:
            seen.append(scope.cause)

    running = asyncio.ensure_future(scope.run(work()))
    await _settle()
    assert scope.cancel(cause)
    with pytest.raises(WorkCancelled) as cancelled:
        await running
    assert cancelled.value.cause is cause
    assert seen == [cause]


@pytest.mark.parametrize(("first", "second"), list(itertools.product(Cause, Cause)))
async def test_the_weightier_cause_stays(first: Cause, second: Cause) -> None:
    scope = CancelScope[str]()
    assert scope.cancel(first)
    assert scope.cancel(second) is (second > first)
    assert scope.cause is max(first, second)
    with pytest.raises(WorkCancelled) as cancelled:
        await scope.run(_forever())
    assert cancelled.value.cause is max(first, second)


async def test_what_was_finished_counts() -> None:
    scope = CancelScope[str]()

    async def work() -> str:
        try:
            return await _forever()
        except asyncio.CancelledError:
            return "partial"

    running = asyncio.ensure_future(scope.run(work()))
    await _settle()
    scope.cancel(Cause.USER_INTERRUPT)
    assert await running == "partial"
    assert scope.cancel(Cause.LEASE_LOST)


async def test_a_lost_lease_cuts_a_graceful_end_short_and_others_do_not() -> None:
    scope = CancelScope[str]()
    cuts: list[Cause | None] = []

    async def work() -> str:
        try:
            return await _forever()
        except asyncio.CancelledError:
            cuts.append(scope.cause)
            try:
                return await _forever()
            except asyncio.CancelledError:
                cuts.append(scope.cause)
                raise

    running = asyncio.ensure_future(scope.run(work()))
    await _settle()
    scope.cancel(Cause.SHUTDOWN)
    await _settle()
    scope.cancel(Cause.HISTORY_CHANGED)
    await _settle()
    assert cuts == [Cause.SHUTDOWN]
    scope.cancel(Cause.LEASE_LOST)
    with pytest.raises(WorkCancelled):
        await running
    assert cuts == [Cause.SHUTDOWN, Cause.LEASE_LOST]


async def test_an_error_comes_through_and_stands_behind_a_cancellation() -> None:
    async def fails() -> str:
        raise LookupError("gone")

    with pytest.raises(LookupError):
        await CancelScope[str]().run(fails())

    async def fails_late() -> str:
        try:
            return await _forever()
        except asyncio.CancelledError:
            raise LookupError("gone") from None

    scope = CancelScope[str]()
    running = asyncio.ensure_future(scope.run(fails_late()))
    await _settle()
    scope.cancel(Cause.USER_INTERRUPT)
    with pytest.raises(WorkCancelled) as cancelled:
        await running
    assert isinstance(cancelled.value.__cause__, LookupError)


async def test_work_that_cancels_itself_is_not_taken_for_the_callers_cancellation() -> None:
    async def suicidal() -> str:
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="from within"):
        await CancelScope[str]().run(suicidal())


async def test_the_callers_own_cancellation_ends_the_work_first() -> None:
    ended: list[str] = []

    async def work() -> str:
        try:
            return await _forever()
        finally:
            await asyncio.sleep(0)
            ended.append("work")

    scope = CancelScope[str]()
    caller = asyncio.ensure_future(scope.run(work()))
    await _settle()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended == ["work"]
    assert scope.cause is None


async def test_a_scope_runs_once() -> None:
    scope = CancelScope[str]()
    scope.cancel(Cause.SHUTDOWN)
    with pytest.raises(WorkCancelled):
        await scope.run(_forever())
    other = CancelScope[str]()
    running = asyncio.ensure_future(other.run(_forever()))
    await _settle()
    with pytest.raises(RuntimeError, match="once"):
        await other.run(_forever())
    other.cancel(Cause.SHUTDOWN)
    with pytest.raises(WorkCancelled):
        await running


@pytest.mark.parametrize("outer", [False, True], ids=["by the scope", "by the caller"])
async def test_work_that_does_not_end_is_left_behind(outer: bool, caplog: pytest.LogCaptureFixture) -> None:
    end, asked = asyncio.Event(), asyncio.Event()

    async def work() -> str:
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                asked.set()
        return "late"

    scope = CancelScope[str](patience=0.001)
    running = asyncio.ensure_future(scope.run(work()))
    await _settle()
    if outer:
        running.cancel()
    else:
        scope.cancel(Cause.USER_INTERRUPT)
    with pytest.raises(asyncio.CancelledError if outer else WorkCancelled):
        await running
    assert asked.is_set()
    end.set()
    await _settle()
    assert "late_outcome_dropped" in [record.getMessage() for record in caplog.records]


async def test_work_may_end_within_the_patience() -> None:
    scope = CancelScope[str](patience=60)

    async def work() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "in time"

    running = asyncio.ensure_future(scope.run(work()))
    await _settle()
    scope.cancel(Cause.SHUTDOWN)
    assert await running == "in time"
