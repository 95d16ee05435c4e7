"""How a call ends that does not end by itself: timeouts, cancellation, abandonment, and results that come too late."""

import asyncio
import threading

import pytest
from anyio import CapacityLimiter
from msgspec.structs import replace

from generation.tools.contract import Tool, ToolContext
from generation.tools.execute import RunningCall, run_call
from generation.tools.invoke import _abandoned_work
from generation.tools.output import Answer
from tests.generation.tools.support import call, env, until

TINY = 0.01


class Stubborn:
    """A sync function that runs until its gate opens, whatever anybody says."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.left = threading.Event()

    def __call__(self) -> str:
        self.entered.set()
        self.gate.wait(30)
        self.left.set()
        return "at last"


async def test_timeout_of_an_async_function_cancels_it() -> None:
    seen: list[str] = []

    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return "never"

    made = Tool.from_function(slow, timeout=TINY)
    result = await run_call(call("slow"), env(made))
    assert result is not None
    assert result.answer.is_error
    assert "Timed out after 0.01 s. It was cancelled" in str(result.answer.output)
    assert seen == ["cancelled"]


async def test_timeout_of_a_sync_function_tells_it_and_goes_on() -> None:
    left = threading.Event()

    def polite(context: ToolContext) -> str:
        context.wait_cancelled(30)
        left.set()
        context.check_cancelled()
        return "never"

    result = await run_call(call("polite"), env(Tool.from_function(polite, timeout=TINY)))
    assert result is not None
    assert "It may still be running" in str(result.answer.output)
    assert await asyncio.to_thread(left.wait, 30)


async def test_a_sync_function_that_ignores_its_timeout_is_left_behind_and_its_result_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stubborn = Stubborn()
    result = await run_call(call("stubborn"), env(Tool.from_function(stubborn, name="stubborn", timeout=TINY)))
    assert result is not None
    assert result.answer.is_error
    assert not stubborn.left.is_set()
    stubborn.gate.set()
    await until(lambda: "tool_result_dropped" in caplog.messages)
    assert stubborn.left.is_set()


async def test_an_async_function_that_ignores_its_timeout_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    gate = asyncio.Event()

    async def deaf() -> str:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    result = await run_call(call("deaf"), env(Tool.from_function(deaf, timeout=TINY), cleanup=TINY))
    assert result is not None
    assert "It may still be running" in str(result.answer.output)
    gate.set()
    await until(lambda: not _abandoned_work)
    assert caplog.messages == ["tool_timed_out", "tool_call_abandoned", "tool_result_dropped"]


async def test_cancel_reaches_an_async_function() -> None:
    entered = asyncio.Event()

    async def slow() -> None:
        entered.set()
        await asyncio.Event().wait()

    running = RunningCall(call("slow"), env(Tool.from_function(slow)))
    await entered.wait()
    running.cancel()
    assert await running.wait() is None
    assert running.done


async def test_what_an_async_function_answers_to_its_cancellation_counts() -> None:
    entered = asyncio.Event()

    async def tidy() -> str:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "half done"
        return "never"

    running = RunningCall(call("tidy"), env(Tool.from_function(tidy)))
    await entered.wait()
    running.cancel()
    result = await running.wait()
    assert result is not None
    assert result.answer == Answer("half done")


async def test_cancel_before_the_call_began_runs_nothing() -> None:
    ran: list[int] = []

    def note() -> None:
        ran.append(1)

    async def note_async() -> None:
        ran.append(2)

    for function in (note, note_async):
        made = Tool.from_function(function)
        running = RunningCall(call(made.name), env(made))
        running.cancel()
        assert await running.wait() is None
    assert ran == []


async def test_a_sync_function_may_finish_within_the_grace() -> None:
    def polite(context: ToolContext) -> str:
        return "told" if context.wait_cancelled(30) and context.cancelled else "never told"

    running = RunningCall(call("polite"), env(Tool.from_function(polite)))
    await asyncio.sleep(0)
    await until(lambda: running._work is not None and running._work._in_thread)
    running.cancel()
    result = await running.wait(30)
    # Cancelled between its start and its thread's it gives nothing; else it is told, and its answer counts.
    assert result is None or result.answer == Answer("told")


async def test_a_sync_function_that_ends_itself_gives_no_result() -> None:
    entered = threading.Event()

    def polite(context: ToolContext) -> str:
        entered.set()
        context.wait_cancelled(30)
        context.check_cancelled()
        return "never"

    running = RunningCall(call("polite"), env(Tool.from_function(polite)))
    await until(entered.is_set)
    running.cancel()
    assert await running.wait(30) is None


async def test_after_the_grace_a_sync_function_is_abandoned_and_its_result_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stubborn = Stubborn()
    running = RunningCall(call("stubborn"), env(Tool.from_function(stubborn, name="stubborn")))
    await until(stubborn.entered.is_set)
    running.cancel()
    assert await running.wait(TINY) is None
    assert await running.wait() is None
    stubborn.gate.set()
    await until(lambda: "tool_result_dropped" in caplog.messages)
    assert running.result() is None
    assert stubborn.left.is_set()
    await until(lambda: not _abandoned_work)


async def test_a_thread_that_gives_a_coroutine_too_late_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    entered, gate = threading.Event(), threading.Event()

    async def inner() -> str:
        return "inner"

    def late() -> object:
        entered.set()
        gate.wait(30)
        return inner()

    running = RunningCall(call("late"), env(Tool.from_function(late)))
    await until(entered.is_set)
    running.abandon()
    gate.set()
    await until(lambda: "tool_result_dropped" in caplog.messages)


@pytest.mark.parametrize("times", [1, 2])
async def test_cancelling_the_caller_of_run_call_reaches_the_function(times: int) -> None:
    entered, ended = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    caller = asyncio.ensure_future(run_call(call("slow"), env(Tool.from_function(slow))))
    await entered.wait()
    for _ in range(times):
        caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await ended.wait()
    await until(lambda: not _abandoned_work)


async def test_a_timeout_that_is_not_reached_changes_nothing() -> None:
    def quick() -> str:
        return "done"

    result = await run_call(call("quick"), env(Tool.from_function(quick, timeout=60)))
    assert result is not None
    assert result.answer == Answer("done")


async def test_waiting_for_a_thread_does_not_count_as_running() -> None:
    stubborn = Stubborn()
    first = Tool.from_function(stubborn, name="first")

    def quick() -> str:
        return "done"

    environment = replace(env(first, Tool.from_function(quick, timeout=0.2)), limiter=CapacityLimiter(1))
    one = RunningCall(call("first"), environment)
    await until(stubborn.entered.is_set)
    clock = asyncio.get_running_loop().time
    begin = clock()
    two = RunningCall(call("quick"), environment)
    await until(lambda: clock() - begin > 0.3)
    assert (one.begun, two.begun, two.done) == (True, False, False)
    stubborn.gate.set()
    results = [await one.wait(), await two.wait()]
    assert [result.answer.output for result in results if result is not None] == ["at last", "done"]


async def test_a_call_that_waits_for_a_thread_can_be_cancelled() -> None:
    stubborn = Stubborn()
    tools = [Tool.from_function(stubborn, name=name) for name in ("first", "second")]
    environment = replace(env(*tools), limiter=CapacityLimiter(1))
    one = RunningCall(call("first"), environment)
    await until(stubborn.entered.is_set)
    two = RunningCall(call("second"), environment)
    await until(lambda: two._work is not None and two._work._in_thread)
    two.cancel()
    stubborn.gate.set()
    assert await one.wait() is not None
    assert await two.wait() is None
    assert not two.begun


async def test_when_no_thread_can_be_had_the_call_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_thread(*args: object, **kwargs: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("anyio.to_thread.run_sync", no_thread)
    result = await run_call(call("quick"), env(Tool.from_function(Stubborn(), name="quick")))
    assert result is not None
    assert result.answer == Answer("RuntimeError: can't start new thread", is_error=True)


async def test_a_result_that_is_just_there_is_not_abandoned() -> None:
    async def quick() -> str:
        return "done"

    running = RunningCall(call("quick"), env(Tool.from_function(quick, timeout=60.0)))
    while running._work is None or not running._work.through:  # noqa: ASYNC110 - it is the very turn of the loop that matters
        await asyncio.sleep(0)
    assert not running.done
    result = await running.wait(0)
    assert result is not None
    assert result.answer == Answer("done")
