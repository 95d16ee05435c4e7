"""Scenarios of lost workers: one is killed while it answers, runs a tool or interrupts, and the user does not wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from chatfold import Engine
from chatfold.testing import Turn, UseTool, turn
from tests.corpus.features import held
from tests.corpus.kit import Scenario, Scene

_STUBBORN: Final = turn(UseTool("stubborn", {"seconds": 1000}))


class _Way(NamedTuple):
    """How a user ends the turn of a dead worker, and how many messages wait then."""

    waiting: int
    end: Callable[[Engine, str], Awaitable[object]]


async def _send(engine: Engine, chat: str) -> None:
    await engine.send_message(chat, "Now!", busy="interrupt")


async def _interrupt(engine: Engine, chat: str) -> None:
    await engine.interrupt(chat)


async def _promote(engine: Engine, chat: str) -> None:
    await engine.promote_queued(chat, (await engine.queue(chat))[-1].id)


WAYS: Final = (
    _Way(0, _send),
    _Way(0, _interrupt),
    _Way(1, _send),
    _Way(1, _promote),
    _Way(2, _promote),
    _Way(1, _interrupt),
    _Way(2, _interrupt),
)
"""The ways."""


async def _lose(scene: Scene, first: Callable[[], Turn], reached: Callable[[Engine, str], Awaitable[object]]) -> str:
    """Lose a worker before each way of ending its turn, and let a last one bring the chat to rest."""
    user = await scene.engine([], worker=False)
    chat = (await user.create_chat("assistant", "Hello.")).chat
    for way in WAYS:
        for entry in await user.queue(chat):
            await user.delete_queued(chat, entry.id)
        if (await user.state(chat)).control.status == "waiting":
            await user.send_message(chat, "Again.")
        scene.shut()
        process = await scene.doomed([first()])
        await reached(user, chat)
        for number in range(way.waiting):
            await user.send_message(chat, f"And {number}?")
        await scene.killed(process)
        await way.end(user, chat)
    last = await scene.engine(["Done."] * 3)
    await last.settled(chat)
    return chat


async def lost_answering(scene: Scene) -> str:
    """Workers are killed while they answer, and the user ends each of the turns in another way."""

    async def reached(user: Engine, chat: str) -> None:
        await scene.holds()
        await asyncio.sleep(3)  # what was said is kept by then, and outlives the worker

    return await _lose(scene, lambda: held(scene, "Half "), reached)


async def lost_interrupting(scene: Scene) -> str:
    """Workers are killed while they wait for a tool that was interrupted, and the user goes on in another way."""

    async def reached(user: Engine, chat: str) -> None:
        await asyncio.sleep(3)  # the tool runs by then
        await user.interrupt(chat)

    return await _lose(scene, lambda: _STUBBORN, reached)


LOST: Final[dict[str, Scenario]] = {scenario.__name__: scenario for scenario in (lost_answering, lost_interrupting)}
"""All of them by name."""
