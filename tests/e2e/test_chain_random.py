"""Random conversations at a service that keeps its responses: whatever it is sent, it has the whole conversation."""

from __future__ import annotations

import asyncio
import contextlib
import random
import uuid
from collections.abc import Sequence

import pytest

from chatfold.hooks import HOOK_EVENTS, Hook, HookAnswer, HookCall, PythonHook
from chatfold.testing.servers import Answer, Reasoning, Reply, Text, ToolCall
from chatfold.testing.servers.responses_server import OpenAIResponsesServer
from chatfold.testing.servers.script import Part
from chatstate.errors import Refusal
from events.content import Json
from events.ids import MessageId
from events.state import ChatState
from generation.hooks.contract import MAY
from generation.models import ModelConfig
from generation.prompt import Prompt
from generation.prompt_types import ModelRequest
from generation.providers.openai_wire import responses_input
from tests.e2e.checks import check
from tests.e2e.kit import MODEL, Place, Scene, stage
from tests.e2e.tools import add

TURNS = 14
WHAT = ("edit", "erase", "clear", "compact", "there and back", "interrupt", "fork", "forget", "cold", "model")
STORING: dict[str, Json] = {"store": True}


def replies(rng: random.Random) -> list[Reply]:
    """More answers than the conversation needs, some with calls, some of calls alone, some cut on the way."""
    made: list[Reply] = []
    for number in range(TURNS * 6):
        call = ToolCall("add", {"a": number, "b": rng.randrange(9)})
        said: list[Part] = [Text(f"Answer {number}.")]
        choices: list[list[Part]] = [said, said, said, said, [*said, call], [call]]
        parts = rng.choice(choices)
        made.append(Answer(parts, cut_after=1 if rng.random() < 0.1 else None))
    return made


def speaking(rng: random.Random) -> Hook:
    """A hook that adds a word, or changes what it may change, wherever it is asked."""

    async def ask(call: HookCall) -> HookAnswer | None:
        may = sorted(MAY[call.event] - {"deny"})
        if rng.random() < 0.6:
            return None
        if rng.choice(may) == "context":
            return HookAnswer(context=f"Of {call.event}, {rng.randrange(99)}.")
        if call.event == "pre_tool_use":
            return HookAnswer(input={"a": rng.randrange(99), "b": 0})
        return HookAnswer(input=f"{call.facts['text']} Please.")

    return PythonHook(ask, HOOK_EVENTS)


async def there_and_back(scene: Scene, chat: str) -> None:
    """Have a chat compacted, answer once more, and take the compaction back."""
    await scene.engine.compact(chat)
    await scene.settled(chat)
    await scene.engine.uncompact(chat)


async def interrupted(scene: Scene, chat: str, rng: random.Random) -> None:
    """Interrupt an answer somewhere; it may have ended by then."""
    await scene.engine.send_message(chat, "Begin, and stop.")
    for _ in range(rng.randrange(40)):
        await asyncio.sleep(0)
    with contextlib.suppress(Refusal):
        await scene.engine.interrupt(chat)


def spoken(items: list[dict[str, object]]) -> list[str]:
    """What a conversation holds of people and tools, in order: kinds and texts, without ids."""
    told = []
    for item in items:
        content = item.get("content", item.get("output", item.get("arguments")))
        texts = [each.get("text") for each in content] if isinstance(content, list) else [content]
        told.append(f"{item.get('role', item.get('type'))}: {texts}")
    return told


def the_whole(state: ChatState, answer: MessageId) -> list[str]:
    """What the service should have had when it gave an answer: the prompt of the history before it."""
    history = state.need_transcript("a test").messages
    place = history.find(answer)
    assert place is not None
    prompt = Prompt().build(history.before(place))
    return spoken(responses_input(ModelRequest(model=MODEL, system=(), messages=prompt.messages)))


class Watching:
    """Compares what the service had for each new answer with the whole conversation."""

    def __init__(self, scene: Scene) -> None:
        assert isinstance(scene.server, OpenAIResponsesServer)
        self.scene, self.server = scene, scene.server
        self.had: dict[str, list[str]] = {}
        self.seen: set[str] = set()
        self.chained = 0

    def compare(self, state: ChatState) -> None:
        for item in state.messages:
            step = item.message.step
            if step is None or step.provider != "openai" or item.message.interrupted:
                continue
            if step.response_id is None or step.response_id in self.seen:
                continue
            if item.message.origin is None:
                self.seen.add(step.response_id)
                self.chained += step.continued is not None
                assert self.had[step.response_id] == the_whole(state, item.id)


@pytest.mark.parametrize("seed", range(16))
async def test_the_service_has_the_whole_conversation(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    place = Place(provider="openai", url="memory://", agent=f"agent-{uuid.uuid4().hex}")
    models = [
        ModelConfig(provider="openai", name="model-two", options=STORING),
        ModelConfig(provider="openai", name="bare"),
    ]
    model = ModelConfig(provider="openai", name=MODEL, options=STORING)
    hooks = [speaking(rng)] if seed % 2 else []
    others: dict[str, Sequence[Reply]] = {
        "anthropic": [Answer([Reasoning("Hm."), Text(f"Elsewhere {n}.")]) for n in range(TURNS * 6)]
    }
    async with stage(place, replies(rng), model=model, models=models, tools=[add], hooks=hooks, others=others) as scene:
        watching, engine = Watching(scene), scene.engine
        completed = watching.server.completed

        def noted(request: object, plan: object) -> None:
            items = watching.server._inputs[request.index]  # type: ignore[attr-defined]
            plain = [item.model_dump(exclude_none=True) for item in items]
            watching.had[plan.body["id"]] = spoken(plain)  # type: ignore[attr-defined]
            completed(request, plan)  # type: ignore[arg-type]

        monkeypatch.setattr(watching.server, "completed", noted)
        chats = [(await engine.create_chat(place.agent, "Begin.")).chat]
        watching.compare(await scene.settled(chats[0]))
        for turn in range(TURNS):
            chat = rng.choice(chats)
            state = await engine.state(chat)
            users = [item.id for item in state.messages if item.message.opens_turn]
            what = rng.choice(["say"] * 6 + [*WHAT])
            try:
                match what:
                    case "edit":
                        await engine.edit_message(chat, rng.choice(users), f"Edited {turn}.")
                    case "erase":
                        await engine.erase(chat, [rng.choice([item.id for item in state.messages])])
                    case "clear":
                        await engine.clear(chat)
                    case "compact":
                        await engine.compact(chat)
                    case "there and back":
                        await there_and_back(scene, chat)
                    case "interrupt":
                        await interrupted(scene, chat, rng)
                    case "fork":
                        chats.append((await engine.fork(chat)).chat)
                    case "forget":
                        watching.server.issued.forget()
                    case "cold":
                        engine.runtime.journal.warm.drop(chat)
                    case "model":
                        named = rng.choice([None, "openai/model-two", "openai/bare", "anthropic/claude"])
                        await engine.set_model(chat, named)
                    case _:
                        await engine.send_message(chat, f"Say {turn}.")
            except Refusal:
                continue
            watching.compare(await scene.settled(chat))
        for text in ("Once more.", "And again."):
            await engine.send_message(chats[0], text, model=f"openai/{MODEL}")
            watching.compare(await scene.settled(chats[0]))
        assert watching.chained > 0
        watching.server.refused.clear()  # responses that were gone
        await check(scene, *chats)
