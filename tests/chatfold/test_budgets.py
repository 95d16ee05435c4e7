"""Budgets, end to end: what is spent is asked about, the answer counts, and all of it survives a restart."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import pytest

from chatfold import (
    NO_LIMIT,
    Agent,
    Budget,
    BudgetAnswer,
    Engine,
    Limits,
    ModelConfig,
    Prices,
    Settings,
    ToolResultsInvalid,
)
from chatfold.stream import EventItem
from chatfold.testing import ScriptedProvider, turn
from events.errors import InvalidValue
from events.messages import Usage
from events.parts import OnExpiry
from events.records import Spending, Spent
from events.state import ChatState
from events.vocabulary import ActionExpiredTurnEnded, ActionRequired, TurnFinished

CHAT = "spender"
PRICES = Prices(input=1)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/chats.db"
    made: str = request.getfixturevalue("postgres_database")()
    return made


def engine_on(
    url: str,
    budget: Budget,
    *,
    prices: Prices | None = PRICES,
    timeout: float = 300,
    on_expiry: OnExpiry = "go_on",
) -> Engine:
    """Each answer takes 100 tokens, which cost 100 micro-units."""
    provider = ScriptedProvider(lambda _: turn("Done.", usage=Usage(input=100)))
    limits = Limits(budget=budget, action_timeout=timeout, on_expiry=on_expiry)
    agent = Agent(name="a", model=ModelConfig(provider="scripted", name="m", prices=prices), limits=limits)
    return Engine(url, [agent], providers={"scripted": provider}, settings=Settings(poll=0.05))


async def asks(engine: Engine) -> int:
    """Return the id of the budget question that the chat waits with."""
    action = (await engine.settled(CHAT)).control.action
    assert action is not None
    assert action.asks_budget
    return action.id


def answers(state: ChatState) -> int:
    return sum(item.message.role == "assistant" for item in state.messages)


@pytest.mark.parametrize(
    ("budget", "raised"),
    [
        (Budget(tokens=100), Budget(tokens=200)),
        (Budget(cost_micros=100), Budget(cost_micros=200)),
        (Budget(turns=1), Budget(turns=2)),
    ],
    ids=["tokens", "cost", "turns"],
)
async def test_a_spent_budget_pauses_the_chat_over_a_restart_until_it_is_raised(
    url: str, budget: Budget, raised: Budget
) -> None:
    async with engine_on(url, budget) as engine:
        await engine.create_chat("a", "One", chat_id=CHAT)
        assert (await engine.settled(CHAT)).control.status == "waiting"
        await engine.send_message(CHAT, "Two")
        action = await asks(engine)
    async with engine_on(url, budget) as engine:
        assert await asks(engine) == action
        await engine.submit_tool_results(CHAT, action, budget=BudgetAnswer(end_turn=False, raised=raised))
        assert answers(await engine.settled(CHAT)) == 2
    async with engine_on(url, budget) as engine:
        await engine.send_message(CHAT, "Three")
        assert await asks(engine) > action


async def test_a_turn_may_be_ended_and_asked_for_again(url: str) -> None:
    async with engine_on(url, Budget(turns=1)) as engine:
        await engine.create_chat("a", "One", chat_id=CHAT)
        await engine.settled(CHAT)
        await engine.send_message(CHAT, "Two")
        await engine.submit_tool_results(CHAT, await asks(engine), budget=BudgetAnswer(end_turn=True))
        state = await engine.settled(CHAT)
        assert (state.control.status, answers(state)) == ("waiting", 1)
        (*_, last) = await engine.events(CHAT)
        assert isinstance(last.event, TurnFinished)
        assert last.event.cause == "budget"
        await engine.resume(CHAT)
        raised = BudgetAnswer(end_turn=False, raised=Budget(turns=NO_LIMIT))
        await engine.submit_tool_results(CHAT, await asks(engine), budget=raised)
        assert answers(await engine.settled(CHAT)) == 2


async def test_raising_one_limit_leaves_the_others(url: str) -> None:
    async with engine_on(url, Budget(turns=1, tokens=200, cost_micros=300)) as engine:
        await engine.create_chat("a", "One", chat_id=CHAT)
        await engine.settled(CHAT)
        for text, raised in (("Two", Budget(turns=NO_LIMIT)), ("Three", Budget(tokens=10_000))):
            await engine.send_message(CHAT, text)
            answer = BudgetAnswer(end_turn=False, raised=raised)
            await engine.submit_tool_results(CHAT, await asks(engine), budget=answer)
            await engine.settled(CHAT)
        await engine.send_message(CHAT, "Four")
        await asks(engine)
        state = await engine.state(CHAT)
        assert state.control.budget == Budget(turns=NO_LIMIT, tokens=10_000)
        (*_, asked) = await engine.events(CHAT)
        assert getattr(asked.event, "decision", None) is not None
        assert asked.event.decision.facts == {"cost_micros": 300, "limit": 300}  # type: ignore[union-attr]


async def test_nobody_answers(url: str) -> None:
    """Whatever the chat's actions say: a question about money that nobody answers ends the turn."""
    async with engine_on(url, Budget(turns=1), timeout=0.1, on_expiry="go_on") as engine:
        await engine.create_chat("a", "One", chat_id=CHAT)
        await engine.settled(CHAT)
        await engine.send_message(CHAT, "Two")
        await asks(engine)
        async with aclosing(engine.stream(CHAT)) as stream:
            async for item in stream:
                if isinstance(item, EventItem) and item.recorded.event.type.startswith("action_expired"):
                    break
        state = await engine.settled(CHAT)
        assert (state.control.status, answers(state), state.control.owed) == ("waiting", 1, True)
        assert any(isinstance(each.event, ActionExpiredTurnEnded) for each in await engine.events(CHAT))


async def test_a_budget_of_cost_asks_where_the_model_has_no_price(url: str) -> None:
    async with engine_on(url, Budget(cost_micros=1_000_000), prices=None) as engine:
        await engine.create_chat("a", "One", chat_id=CHAT)
        action = await asks(engine)
        answer = BudgetAnswer(end_turn=False, raised=Budget(cost_micros=NO_LIMIT))
        await engine.submit_tool_results(CHAT, action, budget=answer)
        assert answers(await engine.settled(CHAT)) == 1


async def test_an_answer_is_one_of_both(url: str) -> None:
    async with engine_on(url, Budget(turns=1)) as engine:
        await engine.create_chat("a", "One", chat_id=CHAT)
        await engine.settled(CHAT)
        await engine.send_message(CHAT, "Two")
        action = await asks(engine)
        with pytest.raises(InvalidValue) as caught:
            await engine.submit_tool_results(CHAT, action, budget=BudgetAnswer(end_turn=True, raised=Budget(turns=9)))
        assert caught.value.path == "$.budget"
        assert await asks(engine) == action


async def test_the_question_says_what_is_spent_and_what_is_allowed(url: str) -> None:
    budget = Budget(turns=1, tokens=1000)
    async with engine_on(url, budget) as engine:
        await engine.create_chat("a", "One", chat_id=CHAT)
        state = await engine.settled(CHAT)
        spent = Spent(tokens=100, cost_micros=100, turns=1)
        assert state.spending == Spending(spent=spent, allowed=budget, reached=("turns",))
        sent = await engine.send_message(CHAT, "Two")
        action = (await engine.settled(CHAT)).control.action
        assert action is not None
        assert action.spending == state.spending
        async with aclosing(engine.stream(CHAT, sent.cursor)) as stream:
            async for item in stream:
                if isinstance(item, EventItem) and isinstance(event := item.recorded.event, ActionRequired):
                    assert [each.spending for each in event.items] == [state.spending]
                    break
        raised = BudgetAnswer(end_turn=False, raised=Budget(turns=NO_LIMIT))
        await engine.submit_tool_results(CHAT, action.id, budget=raised)
        after = await engine.settled(CHAT)
        assert after.control.budget == Budget(turns=NO_LIMIT)
        assert after.spending.allowed == Budget(tokens=1000)
        assert after.spending.spent == Spent(tokens=200, cost_micros=200, turns=2)


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (None, "turns: 1 spent, 1 allowed"),
        (Budget(), "turns: 1 spent, 1 allowed"),
        (Budget(turns=1), "turns: 1 spent, 1 allowed"),
        (Budget(tokens=50), "tokens: 100 spent, 50 allowed; turns: 1 spent, 1 allowed"),
        (Budget(turns=2, tokens=50), "tokens: 100 spent, 50 allowed"),
    ],
    ids=str,
)
async def test_going_on_without_raising_what_is_reached_is_refused(url: str, raised: Budget | None, said: str) -> None:
    async with engine_on(url, Budget(turns=1)) as engine:
        await engine.create_chat("a", "One", chat_id=CHAT)
        await engine.settled(CHAT)
        await engine.send_message(CHAT, "Two")
        action = await asks(engine)
        with pytest.raises(ToolResultsInvalid) as caught:
            await engine.submit_tool_results(CHAT, action, budget=BudgetAnswer(end_turn=False, raised=raised))
        assert caught.value.kind == "limits_reached"
        assert caught.value.reason.endswith(f": {said}")
        assert await asks(engine) == action


async def test_no_number_goes_on_where_nobody_knows_the_cost(url: str) -> None:
    async with engine_on(url, Budget(cost_micros=1_000_000), prices=None) as engine:
        await engine.create_chat("a", "One", chat_id=CHAT)
        action = (await engine.settled(CHAT)).control.action
        assert action is not None
        assert action.spending == Spending(
            spent=Spent(), allowed=Budget(cost_micros=1_000_000), reached=("cost_micros",), unpriced=True
        )
        more = BudgetAnswer(end_turn=False, raised=Budget(cost_micros=9_000_000))
        with pytest.raises(ToolResultsInvalid, match=r"cost_micros: the model has no price"):
            await engine.submit_tool_results(CHAT, action.id, budget=more)
        assert await asks(engine) == action.id
