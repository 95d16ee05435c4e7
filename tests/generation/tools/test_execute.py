"""One call from the model's text to its result: functions of every kind, and every way to fail."""

import asyncio
import contextvars
import functools
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from pydantic import BaseModel

from events.ids import CallKey, ChatId, WorkerId
from generation.tools.contract import Tool, ToolContext, ToolOutput, client_tool, tool
from generation.tools.execute import CallEnvironment, run_call
from generation.tools.output import Answer, CallResult
from tests.generation.tools.support import call, env

_variable = contextvars.ContextVar("_variable", default="unset")


class Sum(BaseModel):
    total: int


@tool
def add(a: int, b: int = 2) -> Sum:
    """Add."""
    return Sum(total=a + b)


@tool(name="add")
async def add_async(a: int, b: int = 2) -> Sum:
    """Add."""
    await asyncio.sleep(0)
    return Sum(total=a + b)


async def run(made: Tool, arguments: str = "{}", **options: Any) -> CallResult:
    result = await run_call(call(made.name, arguments), env(made, **options))
    assert result is not None
    return result


@pytest.mark.parametrize("made", [add, add_async])
async def test_runs_and_answers(made: Tool) -> None:
    result = await run(made, '{"a": 1}')
    assert result == CallResult(key=CallKey("5.0.1"), name="add", answer=Answer({"total": 3}), started_at=1, ended_at=2)


@pytest.mark.parametrize("made", [add, add_async])
async def test_invalid_arguments_run_nothing(made: Tool) -> None:
    result = await run(made, '{"a": "x"}')
    assert result.answer.is_error
    assert "$.a: Input should be a valid integer" in str(result.answer.output)


async def test_a_sync_function_runs_in_a_thread_with_the_callers_context_variables() -> None:
    seen: list[Any] = []

    def look() -> str:
        seen.append(threading.current_thread())
        return _variable.get()

    _variable.set("set")
    assert (await run(Tool.from_function(look))).answer == Answer("set")
    assert seen != [threading.main_thread()]


async def test_the_loop_goes_on_while_a_sync_function_runs() -> None:
    gate = threading.Event()

    def block() -> str:
        return "opened" if gate.wait(30) else "never opened"

    made = Tool.from_function(block)
    running = asyncio.ensure_future(run(made))
    for _ in range(5):
        await asyncio.sleep(0)
    gate.set()
    assert (await running).answer == Answer("opened")


async def test_context() -> None:
    def tell(context: ToolContext, word: str) -> str:
        context.check_cancelled()
        return f"{word} {context.call} {context.idempotency_key} {context.epoch} {context.worker} {context.attempt}"

    result = await run(Tool.from_function(tell), '{"word": "at"}')
    assert result.answer == Answer("at 5.0.1 chat/5.0.1 7 worker 3")


def _wrapped(function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


async def _double(a: int) -> int:
    await asyncio.sleep(0)
    return 2 * a


class Doubler:
    async def __call__(self, a: int) -> int:
        return 2 * a


@pytest.mark.parametrize(
    "function",
    [_double, _wrapped(_double), functools.partial(_double), functools.partial(_double, a=1), Doubler()],
    ids=["function", "wrapped", "partial", "bound", "object"],
)
async def test_every_kind_of_async_function(function: Callable[..., Any]) -> None:
    assert (await run(Tool.from_function(function, name="double"), '{"a": 4}')).answer == Answer(8)


def _raise(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such row"), "ValueError: no such row"),
        (TimeoutError(), "TimeoutError"),
        (StopIteration(3), "StopIteration: 3"),
        (SystemExit(2), "SystemExit: 2"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (BaseException("odd"), "BaseException: odd"),
        (ExceptionGroup("several", [KeyError("a")]), "ExceptionGroup: several (1 sub-exception)"),
    ],
)
async def test_exceptions_become_error_results(error: BaseException, text: str) -> None:
    def sync_fails() -> None:
        _raise(error)

    async def async_fails() -> None:
        await asyncio.sleep(0)
        _raise(error)

    assert (await run(Tool.from_function(sync_fails))).answer == Answer(text, is_error=True)
    if not isinstance(error, StopIteration):  # a coroutine turns it into a RuntimeError
        assert (await run(Tool.from_function(async_fails))).answer == Answer(text, is_error=True)


async def test_the_traceback_goes_to_the_log_at_debug_and_not_to_the_model(caplog: pytest.LogCaptureFixture) -> None:
    def fails() -> None:
        raise RuntimeError("out")

    caplog.set_level(logging.DEBUG, "generation")
    output = str((await run(Tool.from_function(fails))).answer.output)
    assert __file__ not in output
    assert "Traceback" not in output
    [record] = [record for record in caplog.records if record.getMessage() == "tool_failed"]
    assert record.levelno == logging.DEBUG
    assert record.exc_info is not None
    assert record.exc_info[0] is RuntimeError


async def test_a_tool_may_answer_with_an_error() -> None:
    def refuse() -> ToolOutput:
        return ToolOutput("closed on Mondays", is_error=True)

    assert (await run(Tool.from_function(refuse))).answer == Answer("closed on Mondays", is_error=True)


async def test_values_are_repaired_and_cut() -> None:
    def surrogate() -> str:
        return "\ud83d"

    def long() -> str:
        return "x" * 5000

    assert (await run(Tool.from_function(surrogate))).answer == Answer("\ufffd", repaired=("$",))
    assert len(str((await run(Tool.from_function(long), budget=700)).answer.output)) <= 700


async def test_values_without_a_json_form_are_errors() -> None:
    def odd() -> object:
        return object()

    async def odd_async() -> object:
        return object()

    for made in (Tool.from_function(odd), Tool.from_function(odd_async)):
        answer = (await run(made)).answer
        assert answer.is_error
        assert "no JSON form" in str(answer.output)


async def test_unknown_inactive_and_client_tools() -> None:
    client = client_tool("pick", "Pick.", {"type": "object"})
    environment = env(add, client, active=["pick"])
    texts = []
    for name in ("nothing", "add", "pick"):
        result = await run_call(call(name), environment)
        assert result is not None
        assert result.answer.is_error
        texts.append(str(result.answer.output))
    assert "not found: nothing" in texts[0]
    assert "not active in this turn: add" in texts[1]
    assert "run by the client" in texts[2]


async def test_a_call_that_cancels_itself_is_an_error() -> None:
    async def suicidal() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    async def raises() -> None:
        raise asyncio.CancelledError

    for function in (suicidal, raises):
        answer = (await run(Tool.from_function(function))).answer
        assert answer.is_error
        assert "cancelled by something within" in str(answer.output)


async def test_times_never_go_backwards() -> None:
    times = iter([10, 4])
    environment = CallEnvironment(
        chat=ChatId("c"), epoch=1, worker=WorkerId("w"), attempt=1, tools=env(add).tools, now=lambda: next(times)
    )
    result = await run_call(call("add", '{"a": 1}'), environment)
    assert result is not None
    assert (result.started_at, result.ended_at) == (10, 10)


async def test_a_function_with_a_given_schema() -> None:
    made = Tool(name="echo", description="", schema={"type": "object"}, function=lambda **given: given)
    assert (await run(made, '{"a": [1]}')).answer == Answer({"a": [1]})
