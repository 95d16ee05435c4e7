"""The scripted provider: what a script says is what streams, with gates, failures and cuts at any place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from events.errors import InvalidValue
from events.ids import MessageId
from events.messages import Usage
from events.parts import ReasoningPart, TextPart, ToolCallPart
from generation.assemble import Assembler
from generation.errors import ClassifiedError, ProviderError
from generation.prompt_types import ModelRequest
from generation.providers.contract import CallEnd, Finish, Provider, ReasoningEnd, TextDelta, UsageSoFar
from generation.providers.script import Cut, Fail, Say, Think, Turn, UseTool, Wait, turn
from generation.providers.scripted import ScriptedProvider, ScriptExhausted
from tests.generation.providers.kit import TOOLS, AnyPart, Conversation, collect, request

pytestmark = pytest.mark.anyio


async def test_a_turn_of_everything() -> None:
    provider: Provider = ScriptedProvider(
        [turn(Think("Hm.", metadata={"s": 1}), "I look.", UseTool("get_weather", {"city": "Paris"}), UseTool("other"))]
    )
    assembler = Assembler(TOOLS)
    for part in await collect(provider, request("hi")):
        assembler.add(part)
    thought, said, first, second = assembler.parts(MessageId("1.0"))
    assert isinstance(thought, ReasoningPart)
    assert isinstance(said, TextPart)
    assert isinstance(first, ToolCallPart)
    assert isinstance(second, ToolCallPart)
    assert (first.crash, first.arguments.text) == ("rerun", '{"city":"Paris"}')
    assert (second.crash, second.provider_call_id) == ("report", "call_2")
    assert assembler.finish is not None
    assert assembler.finish.reason == "tool_calls"


async def test_the_same_request_gets_the_same_answer() -> None:
    one, two = ScriptedProvider(), ScriptedProvider()
    assert await collect(one, request("hi", "there")) == await collect(two, request("hi", "there"))


async def test_turns_are_used_up_in_order() -> None:
    provider = ScriptedProvider(["one", turn("two")])
    said = [
        "".join(part.text for part in await collect(provider, request("hi")) if isinstance(part, TextDelta))
        for _ in range(2)
    ]
    assert said == ["one", "two"]
    with pytest.raises(ScriptExhausted, match="2 turns, and none"):
        await collect(provider, request("hi"))
    one = ScriptedProvider(["one"])
    await collect(one, request("hi"))
    with pytest.raises(ScriptExhausted, match="The script has 1 turn, and none"):
        await collect(one, request("hi"))


async def test_a_function_that_raises_fails_the_call() -> None:
    def script(asked: ModelRequest) -> str:
        raise KeyError(asked.model)

    with pytest.raises(ProviderError) as caught:
        await collect(ScriptedProvider(script), request("hi"))
    assert (caught.value.error.kind, caught.value.error.retryable) == ("generic", False)
    assert isinstance(caught.value.__cause__, KeyError)


async def test_a_function_sees_the_request() -> None:
    def script(asked: ModelRequest) -> str:
        return f"{len(asked.messages)} messages"

    parts = await collect(ScriptedProvider(script), request("a", "b"))
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == "2 messages"


async def test_call_ids_go_on_from_those_of_the_conversation() -> None:
    provider = ScriptedProvider([turn(UseTool("t")), turn(UseTool("t"), UseTool("t")), turn(UseTool("t", id="mine"))])
    chat = Conversation(provider)
    ids = []
    for _ in range(3):
        chat.say("hi")
        ids += [part.provider_call_id for part in await chat.answer() if isinstance(part, ToolCallPart)]
        chat.run_tools()
    assert ids == ["call_1", "call_2", "call_3", "mine"]


async def test_it_fails_where_the_script_says() -> None:
    error = ClassifiedError(kind="rate_limit", message="Slow down.", retryable=True, retry_after_us=5)
    provider = ScriptedProvider([turn("Hel", Fail(error))])
    seen: list[AnyPart] = []

    async def read() -> None:
        async for part in provider.stream(request("hi")):
            seen.append(part)

    with pytest.raises(ProviderError) as caught:
        await read()
    assert caught.value.error == error
    assert [type(part).__name__ for part in seen] == ["UsageSoFar", "TextDelta", "TextEnd"]


async def test_a_cut_stream_has_no_finish() -> None:
    with pytest.raises(ProviderError) as caught:
        await collect(ScriptedProvider([turn("Hel", Cut())]), request("hi"))
    assert (caught.value.error.kind, caught.value.error.retryable) == ("timeout", True)


async def test_it_waits_at_a_gate_until_the_test_lets_it_go_on() -> None:
    reached, gate = asyncio.Event(), asyncio.Event()
    provider = ScriptedProvider([turn("before", Wait(gate, reached.set), "after")])
    task = asyncio.create_task(collect(provider, request("hi")))
    await reached.wait()
    assert not task.done()
    gate.set()
    parts = await task
    assert isinstance(parts[-1], Finish)


async def test_a_gate_can_be_cancelled() -> None:
    reached = asyncio.Event()
    task = asyncio.create_task(collect(ScriptedProvider([turn(Wait(asyncio.Event(), reached.set))]), request("hi")))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("delay", [0.0, 0.25])
async def test_delays_are_those_of_the_injected_sleep(delay: float) -> None:
    waited: list[float] = []

    def sleep(seconds: float) -> Awaitable[None]:
        waited.append(seconds)
        return asyncio.sleep(0)

    chosen: Callable[[float], Awaitable[None]] = sleep
    parts = await collect(ScriptedProvider([turn(Say("abcdef", chunk=2))], delay=delay, sleep=chosen), request("hi"))
    assert [part.text for part in parts if isinstance(part, TextDelta)] == ["ab", "cd", "ef"]
    assert waited == [delay] * 4


async def test_usage_is_the_scripts_or_counted() -> None:
    provider = ScriptedProvider([turn("x", usage=Usage(input=9, output=8, cache_read=7)), turn("x")])
    first, second = await collect(provider, request("hi")), await collect(provider, request("hi" * 400))
    assert first[0] == UsageSoFar(usage=Usage(input=9), response_id="scripted_1")
    assert isinstance(first[-1], Finish)
    assert first[-1].usage == Usage(input=9, output=8, cache_read=7)
    assert isinstance(second[-1], Finish)
    assert second[-1].usage is not None
    assert second[-1].usage.input > 200
    assert second[-1].usage.output == 1


async def test_a_refusal() -> None:
    provider = ScriptedProvider([Turn(steps=(), finish="refusal", explanation="Not that.")])
    last = (await collect(provider, request("hi")))[-1]
    assert isinstance(last, Finish)
    assert (last.reason, last.explanation) == ("refusal", "Not that.")


async def test_broken_arguments_and_metadata_pass_as_they_are() -> None:
    provider = ScriptedProvider([turn(Think("", metadata={"s": 1}, redacted=True), UseTool("t", '{"a"'))])
    parts = await collect(provider, request("hi"))
    ends = [part for part in parts if isinstance(part, ReasoningEnd | CallEnd)]
    assert isinstance(ends[0], ReasoningEnd)
    assert ends[0].metadata == {"provider": "scripted", "model": "model-one", "data": {"s": 1}}
    assert isinstance(ends[1], CallEnd)
    assert ends[1].arguments == '{"a"'


async def test_it_remembers_what_it_was_asked() -> None:
    provider = ScriptedProvider(["x"])
    await collect(provider, request("hi"))
    await provider.close()
    assert provider.requests == [request("hi")]


@pytest.mark.parametrize("step", [["Hi."], None, Say, 5])
def test_what_is_no_step_is_refused(step: Any) -> None:
    with pytest.raises(InvalidValue, match=r"\$\.steps\[1\]: must be a step or a text, not"):
        turn("Hi.", step)


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (Fail, {"error": "down"}, r"\$\.error: Fail takes a ClassifiedError here, not 'down'"),
        (Say, {"text": 3}, r"\$\.text: Say takes a text here, not 3"),
        (Say, {"text": "Hi.", "chunk": 0}, r"\$\.chunk: Say takes characters, at least 1, here, not 0"),
        (UseTool, {"name": print}, r"\$\.name: UseTool takes a tool's name here"),
        (UseTool, {"name": "x", "arguments": [1]}, r"\$\.arguments: UseTool takes a dict or a text here, not \[1\]"),
        (Wait, {"until": 2.0}, r"\$\.until: Wait takes something with wait\(\) here, not 2.0"),
        (ClassifiedError, {"kind": "rate", "message": "x"}, r"\$\.kind: must be one of generic, .*, not 'rate'"),
    ],
    ids=["error", "text", "chunk", "tool", "arguments", "wait", "kind"],
)
def test_a_step_of_wrong_values_is_refused(kind: Any, given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        kind(**given)


async def _later(_: ModelRequest) -> str:
    return "Hi."


@pytest.mark.parametrize(
    ("script", "what"), [(lambda _: None, "NoneType"), (lambda _: ["Hi."], "list"), (_later, "coroutine")]
)
async def test_a_function_that_gives_no_turn_says_so(script: Any, what: str) -> None:
    with pytest.raises(ProviderError, match=f"must give a turn or a text, not {what}"):
        await collect(ScriptedProvider(script), request("hi"))
