"""Scenarios of ends of attempts: whatever is under way, each way in which it can come to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from chatfold import Agent, Engine, Limits
from chatfold.testing import Fail, Turn, UseTool, Wait, turn
from events.ids import ChatId
from generation.context import Context, ContextFile
from tests.corpus.features import held
from tests.corpus.kit import BUSY, USAGE, Scenario, Scene, assistant, talk
from tests.corpus.lost import WAYS


class Library:
    """A context source that fails as often as it is told to, and then waits at the scene's gate or gives a file.

    Args:
        scene: Whose gate.
    """

    name = "library"
    revision = None

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.failures = 0
        self.waits = False

    async def collect(self, chat: ChatId) -> Context:
        """Return one file, or fail."""
        if self.failures:
            self.failures -= 1
            raise ConnectionError(chat)
        if self.waits:
            self._scene.holding.set()
            await self._scene.opened.wait()
        return Context(files=(ContextFile(path="BOOK.md", text="Read."),))


async def ended_collecting(scene: Scene) -> str:
    """A context's collection fails and is tried again, fails for good, is interrupted, edited away, and handed over."""
    source = Library(scene)
    agents = [assistant(context=source, limits=Limits(max_model_attempts=2))]
    engine = await scene.engine(["One.", "Two."], agents=agents)
    source.failures = 1
    chat = await talk(engine, "Hello.")
    await engine.refresh_context(chat)
    source.failures = 2
    await talk(engine, "Go on.", chat=chat)
    source.waits = True
    scene.shut()
    await engine.resume(chat)
    await scene.holds()
    await engine.interrupt(chat)
    await engine.settled(chat)
    scene.shut()
    sent = await engine.send_message(chat, "Well?")
    await scene.holds()
    scene.shut()
    await engine.edit_message(chat, sent.messages[-1], "Well!")
    await scene.holds()
    await engine.__aexit__(None, None, None)
    source.waits = False
    second = await scene.engine(["Three."], agents=agents)
    await second.settled(chat)
    return chat


async def ended_compacting(scene: Scene) -> str:
    """A summary fails and is tried again; another is interrupted by an edit; another is handed over."""
    engine = await scene.engine(
        ["One.", turn(Fail(BUSY)), turn("They talked.", usage=USAGE), "Two.", held(scene), "Three."]
    )
    chat = await talk(engine, "Hello.")
    await engine.compact(chat)
    await engine.settled(chat)
    sent = await engine.send_message(chat, "Go on.")
    await engine.settled(chat)
    await engine.compact(chat)
    await scene.holds()
    await engine.edit_message(chat, sent.messages[-1], "Go on!")
    await engine.settled(chat)
    await engine.compact(chat)
    await engine.settled(chat)
    return chat


async def handed_over_compacting(scene: Scene) -> str:
    """A worker ends while its model writes a summary, and another one writes it."""
    first = await scene.engine(["One.", held(scene)])
    chat = await talk(first, "Hello.")
    await first.compact(chat)
    await scene.holds()
    await first.__aexit__(None, None, None)
    second = await scene.engine([turn("They talked.", usage=USAGE)])
    await second.settled(chat)
    return chat


async def edited_running(scene: Scene) -> str:
    """The message is edited while tools run for it, of which one is done; and again while one waits for a person."""
    calls = turn(UseTool("add", {"a": 1, "b": 1}), UseTool("stubborn", {"seconds": 60}))
    asks = turn(UseTool("add", {"a": 1, "b": 1}), UseTool("delete", {"path": "/a"}))
    engine = await scene.engine([calls, asks, "I see."])
    chat = (await engine.create_chat("assistant", "Go.")).chat
    await asyncio.sleep(3)
    await engine.edit_message(chat, "1.0", "Go on.")
    state = await engine.settled(chat)
    await engine.edit_message(chat, state.messages[0].id, "Never mind.")
    await engine.settled(chat)
    return chat


async def _lose(
    scene: Scene,
    agents: Callable[[], list[Agent]],
    script: list[Turn],
    begin: Callable[[Engine, str], Awaitable[object]],
) -> str:
    """Lose a worker before each way of ending its turn; between two of them all comes to rest."""
    user = await scene.engine([], worker=False)
    chat = (await user.create_chat("assistant", "Hello.")).chat
    for way in WAYS:
        between = await scene.engine(["Fine."] * 4)
        await between.settled(chat)
        await between.__aexit__(None, None, None)
        scene.shut()
        await begin(user, chat)
        process = await scene.doomed(script, agents=agents())
        await scene.holds()
        for number in range(way.waiting):
            await user.send_message(chat, f"And {number}?")
        await scene.killed(process)
        await way.end(user, chat)
    last = await scene.engine(["Done."] * 9)
    await last.settled(chat)
    return chat


async def lost_compacting(scene: Scene) -> str:
    """Workers are killed while their model writes a summary, and the user ends each of the turns in another way."""

    async def begin(user: Engine, chat: str) -> None:
        await user.compact(chat)

    def holding() -> list[Agent]:
        return [assistant()]

    return await _lose(scene, holding, [Gate(scene).turn], begin)


async def lost_collecting(scene: Scene) -> str:
    """Workers are killed while they collect a context, and the user ends each of the turns in another way."""

    async def begin(user: Engine, chat: str) -> None:
        await user.send_message(chat, "Again.")

    def collecting() -> list[Agent]:
        source = Library(scene)
        source.waits = True
        return [assistant(context=source)]

    return await _lose(scene, collecting, [], begin)


async def taken_over_collecting(scene: Scene) -> str:
    """A worker is killed while it collects a context, and the next one collects it."""
    source = Library(scene)
    source.waits = True
    agents = [assistant(context=source)]
    user = await scene.engine([], agents=agents, worker=False)
    chat = (await user.create_chat("assistant", "Hello.")).chat
    process = await scene.doomed([], agents=agents)
    await scene.holds()
    await scene.killed(process)
    source.waits = False
    second = await scene.engine(["One."], agents=agents)
    await second.settled(chat)
    return chat


class Gate:
    """A turn that stops at the gate that the scene has when it is played.

    Args:
        scene: The scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    @property
    def turn(self) -> Turn:
        """The turn."""
        return turn(Wait(self, self._reached), "The end.", usage=USAGE)

    def _reached(self) -> None:
        self._scene.holding.set()

    async def wait(self) -> object:
        """Wait until the gate is opened."""
        return await self._scene.opened.wait()


ENDS: Final[dict[str, Scenario]] = {
    scenario.__name__: scenario
    for scenario in (
        ended_collecting, ended_compacting, handed_over_compacting, edited_running, lost_compacting, lost_collecting,
        taken_over_collecting,
    )
}  # fmt: skip
"""All of them by name."""
