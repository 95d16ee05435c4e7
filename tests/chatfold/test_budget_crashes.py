"""Budget questions whose worker is killed around them, that two processes answer, and that a fork leaves behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from chatfold import NO_LIMIT, Budget, BudgetAnswer, Engine
from chatstate.errors import ActionStale, TransitionNotAllowed
from events import vocabulary as v
from events.state import ChatState
from tests.chatfold.budget_process import SPENT, engine
from tests.meta.source import ROOT

PATIENCE = 60.0


def raising(tokens: int) -> BudgetAnswer:
    return BudgetAnswer(end_turn=False, raised=Budget(tokens=tokens))


def answers(state: ChatState) -> int:
    return sum(item.message.role == "assistant" for item in state.messages)


async def asks(engine: Engine, chat: str) -> int:
    async with asyncio.timeout(PATIENCE):
        action = (await engine.settled(chat)).control.action
    assert action is not None
    assert action.asks_budget
    return action.id


@asynccontextmanager
async def workers(url: str, failpoints: str) -> AsyncIterator[asyncio.Task[int]]:
    """Run a worker that a failpoint kills, and another one once it is dead; the task gives how the first one ended."""

    async def run(**environment: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.chatfold.budget_process",
            url,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=asyncio.subprocess.PIPE,
        )

    started = [await run(CHATFOLD_FAILPOINTS=failpoints)]

    async def replace() -> int:
        ended = await started[0].wait()
        started.append(await run())
        return ended

    task = asyncio.create_task(replace())
    try:
        yield task
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()
        await task


@pytest.mark.parametrize(
    "failpoint",
    [
        "outcome.asked=kill",
        "outcome.recorded=kill",
        "acquire.done=kill@2",
        *(f"{point}=kill@{nth}" for point in ("append.handed", "append.committed") for nth in (2, 3, 4)),
        "append.answered=kill@3",
        "effect.starting=kill@2",
    ],
)
async def test_a_question_is_asked_once_and_its_answer_counts_once_whenever_the_worker_dies(
    failpoint: str, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    async with engine(url, worker=False) as user, workers(url, failpoint) as first:
        chat = (await user.create_chat("a", "One")).chat
        async with asyncio.timeout(PATIENCE):
            state = await user.settled(chat)
        for number, tokens in enumerate((2 * SPENT, 3 * SPENT), 1):
            await user.send_message(chat, "More")
            action = await asks(user, chat)
            assert (await user.state(chat)).control.usage.input == number * SPENT
            for _ in range(2):
                await user.submit_tool_results(chat, action, budget=raising(tokens), command_id=f"k{number}")
            async with asyncio.timeout(PATIENCE):
                state = await user.settled(chat)
            assert answers(state) == number + 1
        assert await asyncio.wait_for(first, PATIENCE) == -signal.SIGKILL
        events = [recorded.event for recorded in await user.events(chat)]
        assert sum(isinstance(event, v.ActionRequired) for event in events) == 2
        assert sum(isinstance(event, v.ResultsSubmitted) for event in events) == 2
        ledger = await user.costs(chat)
        # A call whose answer was lost with its worker was told nothing of, and is in no budget.
        assert (ledger.usage.input, ledger.cost_micros) == (3 * SPENT, 3 * SPENT)
        assert (state.control.usage.input, state.control.cost_micros) == (3 * SPENT, 3 * SPENT)


async def test_of_two_processes_that_answer_one_is_told_that_it_came_late(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    async with engine(url) as one, engine(url, worker=False) as other:
        chat = (await one.create_chat("a", "One")).chat
        await one.settled(chat)
        await one.send_message(chat, "Two")
        action = await asks(other, chat)
        given = await asyncio.gather(
            one.submit_tool_results(chat, action, budget=raising(2 * SPENT)),
            other.submit_tool_results(chat, action, budget=BudgetAnswer(end_turn=True)),
            return_exceptions=True,
        )
        (refused,) = [each for each in given if isinstance(each, BaseException)]
        assert isinstance(refused, ActionStale | TransitionNotAllowed)
        state = await one.settled(chat)
        assert answers(state) == (2 if refused is given[1] else 1)
        assert sum(isinstance(each.event, v.ResultsSubmitted) for each in await one.events(chat)) == 1


async def test_a_fork_has_neither_the_question_nor_what_was_spent(tmp_path: Path) -> None:
    async with engine(f"sqlite:///{tmp_path}/chats.db") as only:
        chat = (await only.create_chat("a", "One", chat_id="root")).chat
        await only.settled(chat)
        await only.send_message(chat, "Two")
        action = await asks(only, chat)
        fork = (await only.fork(chat, chat_id="fork", resume=True)).chat
        state = await only.settled(fork)
        assert (state.control.status, answers(state), state.control.usage.input) == ("waiting", 2, SPENT)
        with pytest.raises(TransitionNotAllowed):
            await only.submit_tool_results(fork, action, budget=raising(NO_LIMIT))
        await only.send_message(fork, "Three")
        own = await asks(only, fork)
        assert (await only.state(chat)).control.action is not None, "the origin still asks"
        await only.submit_tool_results(fork, own, budget=raising(NO_LIMIT))
        await only.settled(fork)
        assert await asks(only, chat) == action
        part = (await only.create_chat("a", "Part", chat_id="part", parent=fork)).chat
        await only.settled(part)
        family, origin = await only.family_costs(part), await only.family_costs(chat)
        assert (family.root, sorted(family.chats), family.total.usage.input) == (fork, ["fork", "part"], 3 * SPENT)
        assert (origin.root, sorted(origin.chats), origin.total.usage.input) == (chat, ["root"], SPENT)
