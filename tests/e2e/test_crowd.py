"""Several chats at once, two workers on one store, lost replies, and users who do whatever comes to their minds."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

from chatfold.engine import Engine
from chatfold.testing.servers import Answer, Fail, RecordedRequest, Reply, Text, ToolCall
from chatfold.testing.stores import LosingStore
from chatstate.errors import Refusal
from events.records import ApprovalAnswer
from generation.agents import Limits
from store import open_store
from tests.e2e.checks import check
from tests.e2e.kit import PATIENCE, SETTINGS, Place, Scene, stage
from tests.e2e.tools import ASK, Door, add

CHATS = 4
DEEDS = 12


class Whim:
    """A model that answers as it likes, the same way in each run of a seed and order of requests."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, request: RecordedRequest) -> Reply:
        """Answer a request."""
        number = request.index
        calls = (
            ToolCall("add", {"a": number, "b": 1}),
            ToolCall("door", {"to": "a"}),
            ToolCall("ask_client", {"question": "?"}),
        )
        answers: Sequence[Reply] = (
            Answer(f"Answer number {number}, in some pieces."),
            Answer(f"Answer number {number}, slowly.", delay=0.02),
            Answer([Text("Two tools."), calls[0], calls[1]]),
            Answer([calls[0], calls[2]]),
            Answer([calls[0]]),
            Fail(500),
            Answer("An answer that is cut somewhere.", cut_after=1),
        )
        if "tool_choice" in request.body and not request.user_texts:
            return Answer("A summary.")
        return self._random.choice(answers)


class User:
    """Does things to one chat; refusals are part of life."""

    def __init__(self, scene: Scene, engines: Sequence[Engine], chat: str, seed: int) -> None:
        self._scene = scene
        self._engines = engines
        self._chat = chat
        self._random = random.Random(seed)

    async def live(self) -> None:
        """Do some things, then wait until the chat has come to rest."""
        deeds: Sequence[Callable[[Engine], Awaitable[object]]] = (
            lambda engine: engine.send_message(self._chat, "More"),
            lambda engine: engine.send_message(self._chat, "Now", busy="interrupt"),
            lambda engine: engine.interrupt(self._chat),
            lambda engine: engine.resume(self._chat),
            self._edit,
            self._submit,
            lambda engine: engine.set_title(self._chat, "A title"),
            lambda engine: engine.clear(self._chat),
            self._lose_a_reply,
        )
        for _ in range(DEEDS):
            try:
                await self._random.choice(deeds)(self._random.choice(self._engines))
            except Refusal:
                continue
            for _ in range(self._random.randrange(30)):
                await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE):
            while (await self._scene.engine.settled(self._chat)).control.status == "requires_action":
                await self._submit(self._scene.engine)

    async def _lose_a_reply(self, engine: Engine) -> None:
        """The next append of the process takes effect, and nobody there is told."""
        assert isinstance(engine.store, LosingStore)
        engine.store.lose("append")

    async def _edit(self, engine: Engine) -> None:
        messages = (await engine.state(self._chat)).need_transcript("test").messages
        mine = [item.id for item in messages if item.message.opens_turn and item.message.boundary is None]
        if mine:
            await engine.edit_message(self._chat, self._random.choice(mine), "Edited")

    async def _submit(self, engine: Engine) -> None:
        action = (await self._scene.control(self._chat)).action
        if action is None:
            return
        results = {item.call: "yes" for item in action.items if item.kind == "client_call" and item.call is not None}
        approvals = [
            ApprovalAnswer(call=item.call, approved=self._random.random() < 0.5)
            for item in action.items
            if item.kind == "approval" and item.call is not None
        ]
        try:
            await engine.submit_tool_results(self._chat, action.id, results, approvals=approvals)
        except Refusal:
            return


async def converse(place: Place, seed: int) -> None:
    """Run a crowd, and check every chat."""
    door = Door("door")
    door.opened.set()
    tools = [add, ASK, door.tool(needs_approval=seed % 2 == 0, crash="rerun")]
    store = LosingStore(open_store(place.url))
    async with stage(place, Whim(seed), tools=tools, limits=Limits(max_steps=5), store=store) as scene:
        providers = {place.provider: scene.engine.runtime.provider(place.provider)}
        agents = scene.engine.runtime.agents.values()
        async with Engine(LosingStore(open_store(place.url)), agents, providers=providers, settings=SETTINGS) as other:
            chats = [await scene.start(f"Hello {number}") for number in range(CHATS)]
            engines = (scene.engine, other)
            async with asyncio.TaskGroup() as users:
                for number, chat in enumerate(chats):
                    users.create_task(User(scene, engines, chat, seed * 100 + number).live())
            await check(scene, *chats)


async def test_crowd(place: Place) -> None:
    await converse(place, seed=1)
