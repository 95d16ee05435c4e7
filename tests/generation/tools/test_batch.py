"""The calls of one step: in parallel, each result at once, exclusive ones alone, an end that leaves nothing behind."""

import asyncio
import threading

import pytest
from anyio import CapacityLimiter
from msgspec import structs

from generation.errors import ToolDeclarationError
from generation.tools.batch import run_batch
from generation.tools.contract import Tool, ToolContext, tool
from generation.tools.invoke import _abandoned_work
from generation.tools.output import CallResult
from generation.tools.policy import ToolCall, exclusive_refusals
from generation.tools.registry import ToolSet
from tests.generation.tools.support import call, env, until


class Gates:
    """Async functions ``a``, ``b`` and ``c`` that each end when their gate opens."""

    def __init__(self) -> None:
        self.gates = {name: asyncio.Event() for name in "abc"}
        self.entered: list[str] = []
        self.cancelled: list[str] = []

    async def _wait(self, name: str) -> str:
        self.entered.append(name)
        try:
            await self.gates[name].wait()
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise
        return name.upper()

    async def a(self) -> str:
        return await self._wait("a")

    async def b(self) -> str:
        return await self._wait("b")

    async def c(self) -> str:
        return await self._wait("c")

    def tools(self) -> list[Tool]:
        return [Tool.from_function(function) for function in (self.a, self.b, self.c)]


def calls(names: str, exclusive: str = "") -> list[ToolCall]:
    return [call(name, key=f"5.0.{index}", exclusive=name in exclusive) for index, name in enumerate(names)]


def outputs(results: tuple[CallResult, ...] | list[CallResult]) -> list[object]:
    return [result.answer.output for result in results]


async def test_each_result_comes_as_its_call_ends() -> None:
    gates = Gates()
    order = []
    gates.gates["b"].set()
    async with run_batch(calls("abc"), env(*gates.tools())) as batch:
        async for result in batch:
            order.append(result.answer.output)
            if result.name == "b":
                assert gates.entered == ["a", "b", "c"]  # all run together
                assert batch.unfinished == ("5.0.0", "5.0.2")
                gates.gates["c"].set()
            if result.name == "c":
                gates.gates["a"].set()
    assert order == ["B", "C", "A"]


async def test_one_failing_call_leaves_the_others_alone() -> None:
    async def fails() -> None:
        raise ValueError("broken")

    gates = Gates()
    gates.gates["a"].set()
    tools = [*gates.tools(), Tool.from_function(fails)]
    async with run_batch([*calls("a"), call("fails", key="5.0.8"), call("nothing", key="5.0.9")], env(*tools)) as batch:
        results = {result.name: result.answer async for result in batch}
    assert results["a"].output == "A"
    assert results["fails"].output == "ValueError: broken"
    assert results["nothing"].is_error


async def test_two_calls_of_one_tool() -> None:
    barrier = threading.Barrier(2, timeout=30)

    def meet(word: str) -> str:
        barrier.wait()
        return word

    both = [call("meet", f'{{"word": "{word}"}}', key=f"5.0.{word}") for word in "12"]
    async with run_batch(both, env(Tool.from_function(meet))) as batch:
        assert sorted([str(result.answer.output) async for result in batch]) == ["1", "2"]


async def test_no_calls() -> None:
    async with run_batch([], env()) as batch:
        assert [result async for result in batch] == []


async def test_exclusive_beside_others_runs_nothing() -> None:
    gates = Gates()
    async with run_batch(calls("abc", exclusive="b"), env(*gates.tools())) as batch:
        results = [result async for result in batch]
    assert gates.entered == []
    assert [result.key for result in results] == ["5.0.0", "5.0.1", "5.0.2"]
    assert all(result.answer.is_error for result in results)


async def test_refusals_not_taken_come_from_stop() -> None:
    async with run_batch(calls("ab", exclusive="a"), env()) as batch:
        first = await anext(aiter(batch))
        rest = await batch.stop(0)
    assert [first.key, *(result.key for result in rest)] == ["5.0.0", "5.0.1"]


@pytest.mark.parametrize(
    ("names", "exclusive", "refused"),
    [
        ("", "", 0),
        ("a", "", 0),
        ("a", "a", 0),
        ("abc", "", 0),
        ("ab", "a", 2),
        ("abc", "ac", 3),
        ("aa", "a", 2),
    ],
)
def test_exclusive_table(names: str, exclusive: str, refused: int) -> None:
    refusals = exclusive_refusals(calls(names, exclusive))
    assert len(refusals) == refused
    for refusal in refusals:
        text = str(refusal.answer.output)
        if refusal.name in exclusive:
            assert f"{refusal.name} must be called alone" in text
        else:
            assert "skipped because" in text
            assert all(name in text for name in exclusive)
        assert refusal.answer.is_error
        assert refusal.started_at is None


async def test_stop_keeps_what_ended_and_cancels_the_rest() -> None:
    gates = Gates()
    gates.gates["a"].set()
    async with run_batch(calls("abc"), env(*gates.tools())) as batch:
        await until(lambda: len(gates.entered) == 3)
        await asyncio.sleep(0)
        results = await batch.stop(30)
    assert outputs(results) == ["A"]
    assert gates.cancelled == ["b", "c"]
    assert batch.unfinished == ()


async def test_stop_may_let_calls_end_by_themselves() -> None:
    gates = Gates()
    async with run_batch(calls("ab"), env(*gates.tools())) as batch:
        stopping = asyncio.ensure_future(batch.stop(30, cancel=False))
        await until(lambda: len(gates.entered) == 2)
        gates.gates["b"].set()
        gates.gates["a"].set()
        results = await stopping
    assert sorted(map(str, outputs(results))) == ["A", "B"]
    assert gates.cancelled == []


async def test_stop_abandons_after_the_grace() -> None:
    entered, gate = threading.Event(), threading.Event()

    def stubborn() -> str:
        entered.set()
        gate.wait(30)
        return "late"

    async with run_batch([call("stubborn")], env(Tool.from_function(stubborn))) as batch:
        await until(entered.is_set)
        assert await batch.stop(0.01) == ()
    gate.set()
    await until(lambda: not _abandoned_work)


async def test_cancelling_the_reader_cancels_no_call_until_the_block_is_left() -> None:
    gates = Gates()
    seen: list[object] = []

    async def read() -> None:
        async with run_batch(calls("ab"), env(*gates.tools())) as batch:
            try:
                async for _ in batch:
                    pass
            except asyncio.CancelledError:
                seen.append(tuple(gates.cancelled))
                gates.gates["a"].set()
                seen.extend(outputs(await batch.stop(0.2, cancel=False)))
                raise

    reader = asyncio.ensure_future(read())
    await until(lambda: len(gates.entered) == 2)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert seen == [(), "A"]
    await until(lambda: not _abandoned_work)
    assert gates.cancelled == ["b"]


def test_tool_set() -> None:
    first, second = Gates().tools()[:2]
    assert [made.name for made in ToolSet([second, first])] == ["a", "b"]
    assert [made.name for made in ToolSet([second, first], active=["b"])] == ["b"]
    assert len(ToolSet([second, first], active=["b"])) == 1
    with pytest.raises(ToolDeclarationError, match="two tools"):
        ToolSet([first, first])


async def test_stop_tells_what_never_began() -> None:
    """A function that waits for its only thread is not entered any more; the one that has it was."""
    entered, leave = threading.Event(), threading.Event()

    @tool
    def hold() -> str:
        """Hold the thread."""
        entered.set()
        leave.wait(10)
        return "held"

    one = structs.replace(env(hold), limiter=CapacityLimiter(1))
    async with run_batch([call("hold", key="5.0.1"), call("hold", key="5.0.2")], one) as batch:
        await until(entered.is_set)
        stopping = asyncio.create_task(batch.stop(10, cancel=False))
        await asyncio.sleep(0)
        leave.set()
        (result,) = await stopping
        assert (result.key, result.answer.output) == ("5.0.1", "held")
        assert batch.unstarted == ("5.0.2",)


async def test_who_is_told_and_gives_up_has_no_result() -> None:
    """Neither is it a failure, nor something within the tool."""
    begun = threading.Event()

    @tool
    def gives_up(context: ToolContext) -> str:
        """Give up when told."""
        begun.set()
        context.wait_cancelled()
        context.check_cancelled()
        return "went on"

    @tool
    async def gives_up_too(context: ToolContext) -> str:
        """Give up when told."""
        while not context.cancelled:  # noqa: ASYNC110 -- a context has no event of the loop
            await asyncio.sleep(0.001)
        context.check_cancelled()
        return "went on"

    made = [call("gives_up", key="5.0.0"), call("gives_up_too", key="5.0.1")]
    async with run_batch(made, env(gives_up, gives_up_too)) as batch:
        await until(begun.is_set)
        assert await batch.stop(600, cancel=False) == ()
        assert batch.unstarted == ()


async def test_an_error_of_who_was_told_is_its_result() -> None:
    @tool
    async def fails(context: ToolContext) -> str:
        """Fail when told."""
        while not context.cancelled:  # noqa: ASYNC110 -- a context has no event of the loop
            await asyncio.sleep(0.001)
        raise RuntimeError("half done")

    async with run_batch([call("fails")], env(fails)) as batch:
        await asyncio.sleep(0)
        (result,) = await batch.stop(600, cancel=False)
        assert (result.answer.is_error, "half done" in str(result.answer.output)) == (True, True)
