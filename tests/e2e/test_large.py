"""Much content in one event, and what models should not give: nothing of it costs an answer or a chat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from chatfold import Agent, Content, Engine, TextPart, tool
from chatfold.settings import Settings
from chatfold.verification import verify_all
from events.messages import Usage
from generation.prompt_types import ModelRequest
from generation.providers.script import Say, Script, Turn, UseTool, Wait, turn
from generation.providers.scripted import ScriptedProvider
from tests.e2e.kit import outputs, results, texts

PIECE = 30_000
"""Characters of a text that is under the size of a blob."""

SETTINGS = Settings(poll=0.05)


@tool
def ok() -> str:
    """Say ok."""
    return "ok"


@tool
async def soon(n: int) -> int:
    """Return the number."""
    return n


@asynccontextmanager
async def engine_of(script: Script) -> AsyncIterator[Engine]:
    agent = Agent(name="a", model="scripted", tools=[ok, soon])
    providers = {"scripted": ScriptedProvider(script)}
    async with Engine("memory://", [agent], providers=providers, settings=SETTINGS) as engine:
        yield engine
        found = [finding for verdict in [v async for v in verify_all(engine.store)] for finding in verdict.findings]
        assert found == []


def pieces(count: int) -> list[TextPart]:
    return [TextPart(text=Content(f"{place:4}" + "x" * PIECE)) for place in range(count)]


async def test_messages_and_answers_of_many_middling_parts_are_kept_and_forked() -> None:
    answer = turn(*[step for at in range(40) for step in (Say(f"{at:3}" + "y" * PIECE, chunk=PIECE), UseTool("ok"))])
    async with engine_of([answer, "done"]) as engine:
        chat = (await engine.create_chat("a", pieces(40))).chat
        state = await engine.settled(chat)
        assert state.control.status == "waiting"
        assert [len(text) for text in texts(state, "user")] == [40 * (PIECE + 4)]
        assert [len(text) for text in texts(state)] == [40 * (PIECE + 3), len("done")]
        fork = await engine.fork(chat)
        assert texts(await engine.state(fork.chat)) == texts(state)


async def test_a_compaction_keeps_many_unanswered_messages() -> None:
    never = asyncio.Event()
    answers: list[Turn | str] = ["hello"]

    def script(_: ModelRequest) -> Turn | str:
        return answers[-1]

    async with engine_of(script) as engine:
        chat = (await engine.create_chat("a", "x")).chat
        await engine.settled(chat)
        answers.append(turn(Wait(never)))
        for _ in range(40):
            await engine.send_message(chat, "m" * PIECE)
            await engine.interrupt(chat)
            await engine.settled(chat)
        answers.append("a summary")
        await engine.compact(chat)
        state = await engine.settled(chat)
        assert state.control.status == "waiting", state.control.last_error
        messages = state.need_transcript("count").messages
        assert sum(m.message.origin is not None for m in messages) == 40


@pytest.mark.parametrize("name", ["functions.ok", "bad name", "", "n" * 65, "o\ud800k"])
async def test_a_name_that_the_model_made_up_is_told_back_and_the_chat_goes_on(name: str) -> None:
    async with engine_of([turn(UseTool(name, id="i\ud800")), "sorry", "fine"]) as engine:
        chat = (await engine.create_chat("a", "x")).chat
        state = await engine.settled(chat)
        assert texts(state) == ["sorry"]
        (result,) = results(state)
        assert result.is_error
        assert result.output is not None
        assert (name.replace("\ud800", "\ufffd") or "no name") in result.output.text
        await engine.send_message(chat, "go on")
        assert texts(await engine.settled(chat)) == ["sorry", "fine"]


async def test_a_step_may_have_thousands_of_calls() -> None:
    async with engine_of([turn(*[UseTool("soon", {"n": n}, chunk=100) for n in range(1_000)]), "done"]) as engine:
        chat = (await engine.create_chat("a", "x")).chat
        state = await engine.settled(chat)
        assert texts(state) == ["done"]
        assert outputs(state) == list(range(1_000))


@pytest.mark.parametrize("usage", [Usage(input=2**70, output=-5), Usage(output=2**63)])
async def test_usage_that_makes_no_sense_costs_no_answer(usage: Usage) -> None:
    async with engine_of([turn("one", usage=usage), turn("two", usage=usage)]) as engine:
        chat = (await engine.create_chat("a", "x")).chat
        await engine.settled(chat)
        await engine.send_message(chat, "go on")
        state = await engine.settled(chat)
        assert texts(state) == ["one", "two"]
        assert min(state.control.usage.input, state.control.usage.output) >= 0
