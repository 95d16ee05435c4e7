"""A compaction is taken back as long as the model's context can hold what it compressed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from chatfold.engine import Engine
from chatfold.testing import ModelRequest, Turn, turn
from chatstate.errors import NothingToClear, NothingToCompact, TransitionNotAllowed
from events.messages import Usage
from generation.agents import Agent
from generation.models import ModelConfig
from generation.providers.scripted import ScriptedProvider
from store.contract import Store
from store.memory import MemoryStore

CHAT = "chat"


def answer(request: ModelRequest) -> Turn:
    if request.tool_choice_none:
        return turn("They met.")
    return turn("Said.", usage=Usage(input=500, output=20))


@asynccontextmanager
async def engine_on(store: Store, limit: int | None, *, provider: ScriptedProvider) -> AsyncIterator[Engine]:
    model = ModelConfig(provider="scripted", name="m", context_limit=limit, compaction_threshold=100)
    async with Engine(store, [Agent(name="a", model=model)], providers={"scripted": provider}) as engine:
        yield engine


async def compacted(engine: Engine, *later: str) -> None:
    """Make a chat whose first answer and its prompt took 520 tokens, compact it, and go on."""
    await engine.create_chat("a", "Hi", chat_id=CHAT)
    await engine.settled(CHAT)
    await engine.compact(CHAT)
    await engine.settled(CHAT)
    for text in later:
        await engine.send_message(CHAT, text)
        await engine.settled(CHAT)


# What was said after it ("Said." takes two tokens, with what is asked), the limit, whether it can be taken back.
ROWS: dict[str, tuple[tuple[str, ...], int | None, bool]] = {
    "it fits": ((), 521, True),
    "it would fill the context": ((), 520, False),
    "it is over": ((), 400, False),
    "with what came since it fits": (("x" * 295,), 621, True),
    "with what came since it is over": (("x" * 295,), 620, False),
    "the limit is not known": (("x" * 9_000,), None, True),
}


@pytest.mark.parametrize("name", ROWS)
async def test_it_is_taken_back_while_the_context_limit_allows(name: str) -> None:
    later, limit, fits = ROWS[name]
    provider = ScriptedProvider(answer)
    async with engine_on(MemoryStore(), limit, provider=provider) as engine:
        await compacted(engine, *later)
        before = await engine.state(CHAT)
        if not fits:
            with pytest.raises(TransitionNotAllowed, match=f"context holds {limit}") as refused:
                await engine.uncompact(CHAT)
            assert f"about {520 + 100 * len(later)} tokens" in refused.value.reason
            assert (await engine.state(CHAT)).control.version == before.control.version
            return
        await engine.uncompact(CHAT)
        after = await engine.state(CHAT)
        assert after.control.indexes.boundary is None
        await engine.send_message(CHAT, "And?")
        await engine.settled(CHAT)
        prompt = str(provider.requests[-1].messages)
        assert "'Hi'" in prompt
        assert "They met." not in prompt


async def test_a_model_with_a_larger_context_lets_it_be_taken_back() -> None:
    store = MemoryStore()
    provider = ScriptedProvider(answer)
    async with engine_on(store, 520, provider=provider) as engine:
        await compacted(engine)
        with pytest.raises(TransitionNotAllowed):
            await engine.uncompact(CHAT)
        await engine.set_model(CHAT, "scripted/large")  # of which nothing is configured
        await engine.uncompact(CHAT, command_id="back")
        assert (await engine.uncompact(CHAT, command_id="back")).version == (await engine.state(CHAT)).control.version


async def test_an_engine_without_the_agent_goes_by_the_recorded_policy() -> None:
    store = MemoryStore()
    async with engine_on(store, 520, provider=ScriptedProvider(answer)) as engine:
        await compacted(engine)
        async with Engine(store, [], worker=False) as other:
            with pytest.raises(TransitionNotAllowed, match="context holds 520"):
                await other.uncompact(CHAT)


async def test_what_is_no_compaction_is_not_taken_back() -> None:
    async with engine_on(MemoryStore(), 10_000, provider=ScriptedProvider(answer)) as engine:
        await engine.create_chat("a", "Hi", chat_id=CHAT)
        await engine.settled(CHAT)
        with pytest.raises(TransitionNotAllowed, match="not a compaction"):
            await engine.uncompact(CHAT)
        await engine.clear(CHAT)
        with pytest.raises(TransitionNotAllowed, match="not a compaction"):
            await engine.uncompact(CHAT)
        with pytest.raises(NothingToCompact):
            await engine.compact(CHAT)


@pytest.mark.parametrize("way", ["send", "uncompact"])
async def test_a_summary_is_cleared_with_what_follows_it_or_taken_back(way: str) -> None:
    """A clear right after a compaction is refused, and what the refusal says to do leads to one."""
    provider = ScriptedProvider(answer)
    async with engine_on(MemoryStore(), None, provider=provider) as engine:
        await compacted(engine)
        with pytest.raises(NothingToClear, match=r"a compaction, .*: send a message first, or uncompact$"):
            await engine.clear(CHAT)
        if way == "send":
            await engine.send_message(CHAT, "More")
            await engine.settled(CHAT)
            assert "They met." in str(provider.requests[-1].messages), "the summary was read still"
        else:
            await engine.uncompact(CHAT)
        await engine.clear(CHAT)
        with pytest.raises(NothingToClear, match=r"follows the newest boundary$"):
            await engine.clear(CHAT)
        await engine.send_message(CHAT, "Anew")
        await engine.settled(CHAT)
        assert "They met." not in str(provider.requests[-1].messages)
