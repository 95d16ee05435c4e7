"""What an application's functions raise stays theirs: an exit ends no process, and no chat is left without an end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from chatfold import Agent, Engine, Settings
from chatfold.hooks import PythonHook
from chatfold.testing import ScriptedProvider, UseTool, turn
from events.ids import ChatId
from events.state import ChatState
from generation.context import Context
from generation.errors import HookFailed
from generation.foreign import ForeignExit, contained, words_of
from generation.hooks.contract import HOOK_EVENTS, HookEvent
from generation.observing import Observer
from generation.prompt_types import ModelRequest
from generation.tools.contract import Tool
from tests.e2e.kit import PATIENCE, outputs


class Odd(Exception):
    """Its text cannot be read."""

    def __str__(self) -> str:
        raise SystemExit(4)


class Own(BaseException):
    """No Exception."""


RAISED: list[tuple[BaseException, str]] = [
    (SystemExit(3), "SystemExit: 3"),
    (KeyboardInterrupt(), "KeyboardInterrupt"),
    (Own("mine"), "Own: mine"),
    (GeneratorExit(), "GeneratorExit"),
    (BaseExceptionGroup("all", [Own()]), "BaseExceptionGroup: all (1 sub-exception)"),
    (Odd(), "Odd: (its text cannot be read: SystemExit)"),
    (ValueError("no"), "ValueError: no"),
]
raised = pytest.mark.parametrize(("error", "said"), RAISED, ids=[type(error).__name__ for error, _ in RAISED])
sorts = pytest.mark.parametrize("sort", ["sync", "async"])


@raised
async def test_what_comes_out_is_an_exception(error: BaseException, said: str) -> None:
    with pytest.raises(Exception) as found, contained():  # noqa: PT011 - of any kind, and no BaseException
        raise error
    assert words_of(found.value) == said
    if not isinstance(error, Exception):
        assert isinstance(found.value, ForeignExit)
        assert found.value.error is error


async def test_a_cancellation_and_the_end_of_a_coroutine_that_waits_pass_through() -> None:
    async def wait() -> None:
        with contained():
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    left = wait()

    async def begin() -> None:
        left.send(None)

    await asyncio.create_task(begin())
    left.close()  # by another task than that which waits; would raise what comes out


def raising(error: BaseException, sort: str) -> Callable[..., Any]:
    def function(*_args: object) -> None:
        raise error

    async def function_async(*_args: object) -> None:
        raise error

    return function if sort == "sync" else function_async


@sorts
@raised
@pytest.mark.parametrize("event", HOOK_EVENTS)
async def test_whatever_a_hook_raises_is_a_hook_that_failed(
    event: HookEvent, error: BaseException, said: str, sort: str
) -> None:
    def put() -> str:
        return "done"

    model = ScriptedProvider([turn(UseTool("put", {})), "Done.", "A summary."])
    hooks = [PythonHook(raising(error, sort), [event])]
    agent = Agent(name="helper", model="scripted", tools=[Tool.from_function(put)])
    async with Engine("memory://", [agent], providers={"scripted": model}, hooks=hooks) as engine:
        if event in {"session_start", "user_prompt_submit"}:
            with pytest.raises(HookFailed) as failed:
                await engine.create_chat("helper", "Put")
            assert failed.value.why == said
            return
        chat = (await engine.create_chat("helper", "Put")).chat
        state = await settled(engine, chat)
        if event in {"pre_compact", "post_compact"}:
            await engine.compact(chat)
            state = await settled(engine, chat)
    last = state.control.last_error
    assert last is not None
    assert (state.control.status, last.kind) == ("error", "hook_dispatch_failed")
    assert last.detail is not None
    assert last.detail.text.endswith(f"at {event}: {said}")


@sorts
@raised
async def test_whatever_a_tool_raises_is_its_result(error: BaseException, said: str, sort: str) -> None:
    tool = Tool(name="put", description="", schema={"type": "object"}, function=raising(error, sort))
    assert outputs(await turn_of([turn(UseTool("put", {})), "Done."], tools=[tool])) == [said]


@raised
async def test_whatever_a_check_of_arguments_raises_refuses_the_call(error: BaseException, said: str) -> None:
    def put(x: int) -> int:
        return x

    def check(value: int) -> int:
        raise error

    put.__annotations__["x"] = Annotated[int, AfterValidator(check)]
    (output,) = outputs(await turn_of([turn(UseTool("put", {"x": 1})), "Done."], tools=[Tool.from_function(put)]))
    assert str(output).startswith("The arguments are not valid, so the tool was not run: ")
    assert said.rpartition(": ")[2] in str(output)


class Source:
    """A context source that fails, once."""

    name = "failing"
    revision = "1"

    def __init__(self, error: BaseException) -> None:
        self.errors = [error]

    async def collect(self, chat: ChatId) -> Context:
        if self.errors:
            raise self.errors.pop()
        return Context()


@raised
async def test_whatever_a_context_source_raises_has_it_asked_again(error: BaseException, said: str) -> None:
    source = Source(error)
    state = await turn_of(["Done."], context=source)
    assert (state.control.status, source.errors) == ("waiting", [])


class Watching(Observer):
    """Fails whatever it is told."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.told = 0

    def call_begun(self, *_args: object, **_kwargs: object) -> None:
        self.told += 1
        raise self.error

    async def close(self) -> None:
        self.told += 1
        raise self.error


@raised
async def test_whatever_an_observer_raises_fails_no_chat(error: BaseException, said: str) -> None:
    watching = Watching(error)
    state = await turn_of(["Done."], observers=[watching])
    assert (state.control.status, state.control.last_error, watching.told) == ("waiting", None, 2)


class Failing:
    """A provider that fails as it is asked, or within its answer."""

    name = "failing"

    def __init__(self, error: BaseException, *, within: bool) -> None:
        self.error = error
        self.within = within

    def stream(self, request: ModelRequest) -> AsyncGenerator[Any, None]:
        if not self.within:
            raise self.error
        return self._stream()

    async def _stream(self) -> AsyncGenerator[Any, None]:
        for error in [self.error]:
            raise error
        yield None

    async def close(self) -> None:
        """Close nothing."""


@raised
@pytest.mark.parametrize("within", [False, True])
async def test_whatever_a_provider_raises_ends_the_turn(error: BaseException, said: str, within: bool) -> None:
    state = await turn_of([], providers={"scripted": Failing(error, within=within)})
    last = state.control.last_error
    assert last is not None
    assert last.detail is not None
    assert (state.control.status, last.kind, last.detail.text) == ("error", "generic", said.partition(":")[0])


async def settled(engine: Engine, chat: str) -> ChatState:
    return await asyncio.wait_for(engine.settled(chat), PATIENCE)


async def turn_of(
    script: list[Any], *, providers: dict[str, Any] | None = None, observers: list[Observer] | None = None, **agent: Any
) -> ChatState:
    """Return a chat after one turn."""
    asked = Agent(name="helper", model="scripted", **agent)
    given = providers or {"scripted": ScriptedProvider(script)}
    settings = Settings(model_retry_unit=0.001)
    async with Engine("memory://", [asked], providers=given, observers=observers or [], settings=settings) as engine:
        return await settled(engine, (await engine.create_chat("helper", "Hello")).chat)
