"""An answer that is cut, after each of its chunks and frames, in each way: one answer, stored once, none doubled."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest

from chatfold.stream import EventItem, PartItem, PreviewReset, StreamItem
from chatfold.testing.servers import Answer, Cut, Gate, Part, Reasoning, RecordedRequest, Reply, Text, ToolCall
from events.ids import ChatId
from events.state import ChatState
from events.vocabulary import RetryScheduled, StepCommitted
from generation.parts import LiveCallDelta, LiveReasoning, LiveText
from generation.tools.contract import tool
from tests.e2e.checks import check, stored_log
from tests.e2e.kit import PATIENCE, Place, Scene, outputs, reasoning, stage, texts

SIZE = 6
THOUGHT, SAID, ARGUMENTS = "A sum it is.", "I shall add them.", '{"a": 20, "b": 22}'
WHOLE: Sequence[Part] = (Reasoning(THOUGHT), Text(SAID), ToolCall("add_up", ARGUMENTS))
CHUNKS = [text[at : at + SIZE] for text in (THOUGHT, SAID, ARGUMENTS) for at in range(0, len(text), SIZE)]
LAST = "It is forty-two."
CUTS: tuple[Cut, ...] = ("close", "reset", "end")
FRAMES = 40
"""More than any of the protocols makes of the answer."""


@tool
def add_up(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Service:
    """What the service answers: first what is cut, then the whole answer, and the last one to the call's result."""

    def __init__(self, answers: Mapping[str, Sequence[Answer]]) -> None:
        self._answers = {text: list(given) for text, given in answers.items()}

    def __call__(self, request: RecordedRequest) -> Reply:
        if request.tool_results:
            return Answer(LAST)
        return self._answers[request.user_texts[-1]].pop(0)


@pytest.fixture(params=CUTS)
def cut(request: pytest.FixtureRequest) -> Cut:
    """How the connection breaks off."""
    how: Cut = request.param
    return how


def _shown(items: Sequence[StreamItem]) -> str:
    """Return the text of the parts that a client shows, having dropped what it was told to drop."""
    text = ""
    for item in items:
        if isinstance(item, PreviewReset):
            text = ""
        elif isinstance(item, PartItem) and isinstance(item.part, LiveText | LiveReasoning | LiveCallDelta):
            text += item.part.text
    return text


async def _said_once(scene: Scene, chat: str, state: ChatState) -> None:
    """The chat ends with the whole answer, the result of its one call, and the last answer, each stored once."""
    assert texts(state) == [SAID, LAST]
    assert "".join(part.text.text for part in reasoning(state)) == THOUGHT
    assert outputs(state) == [42]
    assert list(await scene.store.read_partials(ChatId(chat))) == []
    log = await stored_log(scene.store, chat)
    assert b"".join(event.content for event in log).count(SAID.encode()) == 1
    steps = [each.event for each in await scene.engine.events(chat) if isinstance(each.event, StepCommitted)]
    assert len(steps) == 3  # the answer, the result, the last answer


async def _retries(scene: Scene, chat: str) -> int:
    return sum(isinstance(each.event, RetryScheduled) for each in await scene.engine.events(chat))


def _is_shown(text: str, retries: int, items: Sequence[StreamItem]) -> bool:
    """Whether a client shows a text, and has heard of so many retries."""
    heard = sum(isinstance(one, EventItem) and isinstance(one.recorded.event, RetryScheduled) for one in items)
    return _shown(items) == text and heard == retries


def _event(items: Sequence[StreamItem], kind: str) -> int:
    """Return the place of the first event of a type."""
    return next(at for at, one in enumerate(items) if isinstance(one, EventItem) and one.recorded.event.type == kind)


@dataclass(frozen=True)
class _Case:
    """A cut after so many chunks; the server waits before it, and before it ends the answer that comes next."""

    count: int
    cut: Gate = field(default_factory=Gate)
    again: Gate = field(default_factory=Gate)

    @property
    def text(self) -> str:
        """What the user says."""
        return f"Chunk {self.count}."

    def answers(self, how: Cut) -> list[Answer]:
        """What the service answers."""
        first = Answer(WHOLE, chunk_size=SIZE, gate=self.cut, gate_after=self.count, cut_after=self.count, cut=how)
        return [first, Answer(WHOLE, chunk_size=SIZE, gate=self.again, gate_after=len(CHUNKS))]


async def test_after_each_chunk(place: Place, cut: Cut) -> None:
    """What clients had seen is taken back once, and what they see then is the answer."""
    cases = [_Case(count) for count in range(len(CHUNKS) + 1)]
    async with stage(place, Service({case.text: case.answers(cut) for case in cases}), tools=[add_up]) as scene:
        chats = await asyncio.gather(*(_cut_once_shown(scene, case) for case in cases))
        assert len(scene.server.requests) == 3 * len(cases)
        await check(scene, *chats)


async def _cut_once_shown(scene: Scene, case: _Case) -> str:
    """Let the connection break once the client has seen what came before, and see what it comes to."""
    chat = await scene.start(case.text)
    watcher = scene.watchers[chat]
    for gate, seen, retries in ((case.cut, CHUNKS[: case.count], 0), (case.again, CHUNKS, 1)):
        await gate.reached(PATIENCE)
        await watcher.until(partial(_is_shown, "".join(seen), retries))
        gate.release()
    state = await scene.settled(chat)
    await _said_once(scene, chat, state)
    assert await _retries(scene, chat) == 1
    await watcher.until_version(state.control.version)
    items = list(watcher.items)
    resets = [at for at, item in enumerate(items) if isinstance(item, PreviewReset)]
    failed = _event(items, "retry_scheduled")
    assert resets == ([failed - 1] if case.count else [])
    assert _shown(items[failed : _event(items, "step_committed")]) == "".join(CHUNKS)
    return chat


async def test_after_each_frame(place: Place, cut: Cut) -> None:
    """Around the chunks too, up to the frame that closes the stream: whole or again, but never half and never twice."""
    answers = {
        f"Frame {at}.": [Answer(WHOLE, chunk_size=SIZE, cut_after_frames=at, cut=cut), Answer(WHOLE)]
        for at in range(FRAMES)
    }
    async with stage(place, Service(answers), tools=[add_up]) as scene:
        chats = [(await scene.engine.create_chat(place.agent, text)).chat for text in answers]
        again = []
        for chat in chats:
            await _said_once(scene, chat, await scene.settled(chat))
            again.append(await _retries(scene, chat))
        # What a reset overtakes on its way is lost, so there is no saying which frame was the first to be enough.
        assert cut == "reset" or again == sorted(again, reverse=True)
        assert set(again) == {0, 1}
        assert len(scene.server.requests) == sum(again) + 2 * FRAMES
        await check(scene, *chats)
