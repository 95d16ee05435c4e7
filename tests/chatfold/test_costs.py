"""What chats cost: the ledger against an independent count from the exported log, families, and what is not known."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from chatfold import Agent, ChatNotFound, Engine, ModelConfig, Prices, Settings, tool
from chatfold.testing import Fail, ModelRequest, ScriptedProvider, Turn, UseTool, turn
from events.codec import decode
from events.errors import InvalidValue
from events.ledger import ledger_of
from events.messages import Usage
from events.reducer import fold
from events.vocabulary import EVENT_TYPES
from generation.errors import ClassifiedError
from tests.golden.logs_v0_1 import LOGS

PRICES = Prices(
    input=Decimal("2.999999"), output=Decimal("14.7"), cache_read=Decimal("0.3"), cache_write=Decimal("3.75")
)
_OF = {name: f"price_{name}" for name in ("input", "output", "cache_read", "cache_write")}


@tool
async def look() -> str:
    """Look."""
    return "seen"


def spoken(seed: int) -> ScriptedProvider:
    """A model whose calls cost anything, and fail or are cut now and then."""
    rng = random.Random(seed)

    def answer(request: ModelRequest) -> Turn:
        usage = Usage(
            input=rng.randint(0, 3000),
            output=rng.randint(0, 900),
            cache_read=rng.randint(0, 90_000),
            cache_write=rng.choice((0, 7)),
        )
        if rng.random() < 0.15:
            return turn("Half", Fail(ClassifiedError(kind="overloaded", message="busy", retryable=True)), usage=usage)
        if request.messages[-1].role == "user" and rng.random() < 0.5 and not request.tool_choice_none:
            return turn(UseTool("look", {}), usage=usage)
        return turn("Done.", usage=usage)

    return ScriptedProvider(answer)


def engine_of(provider: ScriptedProvider, *, prices: Prices | None = PRICES, url: str = "memory://") -> Engine:
    model = ModelConfig(provider="scripted", name="m", prices=prices)
    agent = Agent(name="a", model=model, tools=[look])
    return Engine(url, [agent], providers={"scripted": provider}, settings=Settings(model_retry_unit=0.001))


def counted_anew(log: bytes) -> tuple[int, int, int]:
    """Return calls, those of them that failed, and cost, counted from the lines of an exported log and nothing else."""
    calls = failed = cost = 0
    model: dict[str, Any] = {}
    for line in log.splitlines()[1:]:
        event = json.loads(line)
        facts = event["facts"]
        if event["type"] == "policy_recorded":
            model = facts["policy"]["model"]
        steps = [message["step"] for message in facts.get("added", ()) if "step" in message]
        steps += [facts[name]["step"] for name in ("report", "cut") if "step" in facts.get(name, {})]
        for step in steps:
            used = step.get("usage", {})
            spent = sum(Fraction(used.get(tokens, 0)) * model[price] / 1_000_000 for tokens, price in _OF.items())
            calls, cost = calls + 1, cost + ceil(spent)
        if event["type"] in {"retry_scheduled", "turn_failed"}:
            failed += "step" in facts.get("report", {})
    return calls, failed, cost


@pytest.mark.parametrize("seed", range(6))
async def test_costs_are_what_the_exported_log_says_to_the_micro_unit(seed: int) -> None:
    async with engine_of(spoken(seed)) as engine:
        chat = (await engine.create_chat("a", "Hello")).chat
        for number in range(8):
            await engine.settled(chat)
            if number == 3:
                await engine.compact(chat)
                await engine.settled(chat)
            await engine.send_message(chat, f"And {number}?")
        await engine.settled(chat)
        ledger = await engine.costs(chat)
        state = await engine.state(chat)
        exported = await engine.export_log(chat)
    calls, failed, cost = counted_anew(exported)
    assert (ledger.calls, ledger.cost_micros) == (calls, cost)
    assert (ledger.usage, ledger.cost_micros) == (state.control.usage, state.control.cost_micros)
    # All calls have a price; of those that were cut the service did not tell all.
    assert ledger.unpriced == ledger.unmetered == failed


@pytest.mark.parametrize("name", LOGS)
def test_the_ledger_counts_what_the_fold_counts(name: str) -> None:
    log = [decode(stored, content=False) for stored in LOGS[name].stored]
    ledger, control = ledger_of(log), fold(log).control
    assert (ledger.usage, ledger.cost_micros) == (control.usage, control.cost_micros)


async def test_what_has_no_price_is_told_from_what_is_free() -> None:
    provider = ScriptedProvider([turn("Hi.", usage=Usage(input=7))] * 2)
    free = Prices(input=0, output=0)
    async with engine_of(provider, prices=free) as engine:
        chat = (await engine.create_chat("a", "Hello")).chat
        await engine.settled(chat)
        ledger = await engine.costs(chat)
        assert (ledger.calls, ledger.cost_micros, ledger.unpriced) == (1, 0, 0)
    async with engine_of(provider, prices=None) as engine:
        chat = (await engine.create_chat("a", "Hello")).chat
        await engine.settled(chat)
        ledger = await engine.costs(chat)
        assert (ledger.calls, ledger.cost_micros, ledger.unpriced) == (1, 0, 1)


async def family(engine: Engine) -> Sequence[str]:
    """A root with two below it, one of which has one below it, a fork of the root, and a stranger."""
    await engine.create_chat("a", "Hello", chat_id="root")
    await engine.create_chat("a", "Hello", chat_id="left", parent="root")
    await engine.create_chat("a", "Hello", chat_id="right", parent="root")
    await engine.create_chat("a", "Hello", chat_id="leaf", parent="left")
    await engine.create_chat("a", "Hello", chat_id="stranger")
    for chat in ("root", "left", "right", "leaf", "stranger"):
        await engine.settled(chat)
    await engine.fork("root", chat_id="fork")
    await engine.settled("fork")
    return "root", "left", "right", "leaf"


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_a_family_costs_what_its_chats_cost(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/chats.db"}.get(kind)
    if url is None:
        url = request.getfixturevalue("postgres_database")()
    provider = ScriptedProvider(lambda _: turn("Hi.", usage=Usage(input=1_000_000)))
    async with engine_of(provider, prices=Prices(input=3), url=url) as engine:
        members = await family(engine)
        for asked in members:
            told = await engine.family_costs(asked)
            assert (told.root, set(told.chats)) == ("root", set(members))
            assert (told.total.calls, told.total.cost_micros) == (4, 12_000_000)
            assert told.chats[asked].cost_micros == 3_000_000
        alone = await engine.family_costs("fork")
        assert (set(alone.chats), alone.total.calls) == ({"fork"}, 0)
        await engine.delete("root")
        assert set((await engine.family_costs("leaf")).chats) == {"left", "leaf"}
        with pytest.raises(ChatNotFound):
            await engine.costs("root")


def test_every_event_that_tells_of_model_calls_is_counted() -> None:
    telling = {"report", "cut"}
    assert {name for cls in EVENT_TYPES.values() for name in cls.__struct_fields__ if name in telling} == telling


async def test_a_parent_must_be_there() -> None:
    async with engine_of(spoken(1)) as engine:
        with pytest.raises(InvalidValue) as caught:
            await engine.create_chat("a", "Hello", parent="nope")
    assert (caught.value.path, "there is no chat nope" in str(caught.value)) == ("$.parent", True)
