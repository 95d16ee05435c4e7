"""Conversations over several turns: what is sent back is what the services take.

The servers refuse what the services refuse (open calls, foreign or altered reasoning, repeated ids, a trailing answer),
so a test that ends without a refusal says that history was handed back rightly.
"""

from __future__ import annotations

import pytest

from chatfold.testing.servers import Answer, Part, Reasoning, Reply, Text, ToolCall
from events.content import Content
from events.messages import Message
from events.parts import FilePart, TextPart, ToolCallPart
from tests.generation.providers.kit import MODEL, NAMES, Conversation, serving

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("name", NAMES)]

THOUGHT = Reasoning("Let me think.  \n Twice.")
CALLS: list[Part] = [ToolCall("get_weather", {"city": "Paris"}), ToolCall("get_weather", {"city": "Rome"})]


async def test_reasoning_and_parallel_tools_over_three_turns(name: str) -> None:
    replies: list[Reply] = []
    for _ in range(3):
        replies += [Answer([THOUGHT, Text("I look."), *CALLS]), Answer([THOUGHT, Text("It is sunny.")])]
    async with serving(name, replies, repeat_call_ids=True) as (server, provider):
        chat = Conversation(provider, effort="high")
        for question in ("Weather?", "And now?", "Still?"):
            chat.say(question)
            await chat.answer()
            chat.run_tools()
            await chat.answer()
    assert server.refused == []
    results = server.requests[-1].tool_results
    assert len(results) == 6
    assert len({call for call, _ in results}) == 6


async def test_ids_of_earlier_calls_stay_as_turns_are_added(name: str) -> None:
    replies = [Answer(CALLS), Answer("Sunny."), Answer(CALLS), Answer("Sunny still.")]
    async with serving(name, replies, repeat_call_ids=True) as (server, provider):
        chat = Conversation(provider)
        for question in ("Weather?", "And now?"):
            chat.say(question)
            await chat.answer()
            chat.run_tools()
            await chat.answer()
    assert server.refused == []
    first, last = server.requests[1].tool_results, server.requests[3].tool_results
    assert last[: len(first)] == first


@pytest.mark.parametrize("stop_after", range(1, 12))
async def test_an_answer_cut_anywhere_can_be_gone_on_from(name: str, stop_after: int) -> None:
    whole = Answer([Reasoning("Hm. Ah."), Text("I look."), *CALLS], chunk_size=4)
    async with serving(name, [whole, Answer("Here I am.")]) as (server, provider):
        chat = Conversation(provider, effort="high")
        chat.say("Weather?")
        parts = await chat.answer(stop_after=stop_after)
        if any(isinstance(part, ToolCallPart) for part in parts):
            chat.run_tools("Not run.")
        chat.add(Message(role="user", parts=(TextPart(text=Content("Go on.")),), visibility="model"))
        await chat.answer()
    assert server.refused == []


async def test_an_interrupted_answer_without_more_words_can_be_gone_on_from(name: str) -> None:
    async with serving(name, [Answer("Hello, whoever you are.", chunk_size=4), Answer("Yes?")]) as (server, provider):
        chat = Conversation(provider)
        chat.say("hi")
        await chat.answer(stop_after=3)
        await chat.answer()
    assert server.refused == []


async def test_open_calls_are_answered_in_the_prompt(name: str) -> None:
    async with serving(name, [Answer(CALLS), Answer("I see.")]) as (server, provider):
        chat = Conversation(provider)
        chat.say("Weather?")
        await chat.answer()
        chat.say("Never mind.")
        await chat.answer()
    assert server.refused == []
    assert len(server.requests[1].tool_results) == 2


async def test_broken_arguments_can_be_sent_back(name: str) -> None:
    async with serving(name, [Answer([ToolCall("get_weather", '{"city": "Par')]), Answer("I see.")]) as (
        server,
        provider,
    ):
        chat = Conversation(provider)
        chat.say("Weather?")
        await chat.answer()
        chat.run_tools("The arguments are no JSON.")
        await chat.answer()
    assert server.refused == []


async def test_reasoning_of_another_model_is_left_out(name: str) -> None:
    replies = [Answer([THOUGHT, Text("I look."), *CALLS]), Answer("Sunny.")]
    async with serving(name, replies) as (server, provider):
        chat = Conversation(provider, effort="high")
        chat.say("Weather?")
        await chat.answer()
        chat.run_tools()
        chat.model = "model-two"
        await chat.answer()
    assert server.refused == []
    assert b"Let me think" not in server.requests[1].raw


async def test_reasoning_of_another_provider_is_left_out(name: str) -> None:
    other = NAMES[(NAMES.index(name) + 1) % len(NAMES)]
    async with (
        serving(other, [Answer([THOUGHT, Text("I look."), *CALLS])]) as (_, stranger),
        serving(name, [Answer("Sunny."), Answer("Bye.")]) as (server, provider),
    ):
        chat = Conversation(stranger, effort="high")
        chat.say("Weather?")
        await chat.answer()
        chat.run_tools()
        chat.provider = provider
        await chat.answer()
        chat.say("Thanks.")
        await chat.answer()
    assert server.refused == []
    assert b"Let me think" not in server.requests[0].raw


async def test_reasoning_comes_back_unchanged(name: str) -> None:
    async with serving(name, [Answer([THOUGHT, Text("Yes.")]), Answer("No.")]) as (server, provider):
        chat = Conversation(provider, effort="high")
        chat.say("Well?")
        await chat.answer()
        chat.say("Really?")
        await chat.answer()
    assert server.refused == []
    # Chat Completions has no place for it.
    assert (rb"Let me think.  \n Twice." in server.requests[1].raw) == (name != "openai-chat")


async def test_redacted_and_signed_empty_reasoning_come_back(name: str) -> None:
    hidden: list[Part] = [Reasoning("", redacted=True), Reasoning(""), Text("Yes.")]
    async with serving(name, [Answer(hidden), Answer("No.")]) as (server, provider):
        chat = Conversation(provider, effort="high")
        chat.say("Well?")
        parts = await chat.answer()
        chat.say("Really?")
        await chat.answer()
    assert server.refused == []
    assert len(parts) == (1 if name == "openai-chat" else 3)


async def test_files_are_sent_as_the_service_takes_them(name: str) -> None:
    files = (
        TextPart(text=Content("Look:")),
        FilePart(media_type="image/png", data=Content("iVBORw0KGgo=")),
        FilePart(media_type="application/pdf", data=Content("JVBERi0="), name=Content("a.pdf")),
        FilePart(media_type="text/csv", data=Content("YSxiCjEsMg=="), name=Content("t.csv")),
        FilePart(media_type="audio/ogg", data=Content("T2dnUw==")),
    )
    async with serving(name, [Answer("Nice.")]) as (server, provider):
        chat = Conversation(provider)
        chat.add(Message(role="user", parts=files))
        await chat.answer()
    assert server.refused == []
    raw = server.requests[0].raw.decode()
    assert "iVBORw0KGgo=" in raw
    assert "JVBERi0=" in raw
    assert "a,b" in raw
    assert "T2dnUw==" not in raw


async def test_an_error_result_is_marked(name: str) -> None:
    async with serving(name, [Answer(CALLS[:1]), Answer("I see.")]) as (server, provider):
        chat = Conversation(provider)
        chat.say("Weather?")
        await chat.answer()
        chat.say("Stop.")
        await chat.answer()
    raw = server.requests[1].raw
    assert (b'"is_error":true' in raw or b'\\"error\\"' in raw) is True
    assert server.refused == []


async def test_the_model_asked_for_is_kept(name: str) -> None:
    async with serving(name, [Answer("x", model="another-name")]) as (_, provider):
        chat = Conversation(provider)
        chat.say("hi")
        await chat.answer()
    step = chat.items[-1].message.step
    assert step is not None
    assert (step.provider, step.model) == (name, MODEL)
