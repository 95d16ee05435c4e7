"""A chat is named and its turns are labelled over the real wires: small requests, beside the conversation."""

from __future__ import annotations

from typing import Any

from chatfold.naming import Titles
from chatfold.testing.servers import Answer, Fail, Reply, ToolCall
from events.vocabulary import SideCallRecorded, TurnLabelChanged
from tests.e2e.checks import check
from tests.e2e.kit import Place, Scene, event_types, stage, texts
from tests.e2e.tools import add

_OUTPUT_LIMITS = ("max_tokens", "max_output_tokens", "max_completion_tokens")


def limit_of(body: Any) -> list[int]:
    return [body[name] for name in _OUTPUT_LIMITS if name in body]


async def labelled(scene: Scene, chat: str, turns: int) -> None:
    watcher = scene.watchers[chat]
    await watcher.until(lambda items: event_types(items).count(TurnLabelChanged.type) == turns)


async def test_a_chat_gets_a_title_and_labels(place: Place) -> None:
    script = [
        Answer([ToolCall("add", {"a": 20, "b": 22})]),
        Answer("It is 42."),
        Answer('"The sum of two numbers"'),
        Answer("Added two numbers."),
        Answer("Still 42."),
        Answer("Confirmed the sum"),
    ]
    async with stage(place, script, tools=[add], titles=Titles(cheap=())) as scene:
        chat = await scene.start("Add 20 and 22")
        await labelled(scene, chat, 1)
        await scene.engine.send_message(chat, "Sure?")
        await labelled(scene, chat, 2)
        state = await scene.settled(chat)
        transcript = state.need_transcript("a test")
        assert transcript.title is not None
        assert transcript.turn_label is not None
        assert (transcript.title.text, transcript.turn_label.text) == ("The sum of two numbers", "Confirmed the sum")
        assert texts(state) == ["It is 42.", "Still 42."]
        _, _, title, label, turn, _ = scene.server.requests
        assert (limit_of(title.body), limit_of(label.body)) == ([256], [64])
        assert title.user_texts == ("The user's first message:\nAdd 20 and 22",)
        assert "tools" not in title.body
        # The conversation itself knows nothing of them.
        assert turn.user_texts == ("Add 20 and 22", "Sure?")
        ledger = await scene.engine.costs(chat)
        assert (ledger.calls, ledger.usage) == (6, state.control.usage)
        await check(scene, chat)


async def test_a_service_that_is_busy_is_asked_again_for_a_title_and_one_that_refuses_is_not(place: Place) -> None:
    script: list[Reply] = [Answer("Hello."), Fail(503), Answer("A greeting"), Fail(401)]
    async with stage(place, script, titles=Titles(cheap=())) as scene:
        chat = await scene.start("Hello")
        await labelled(scene, chat, 1)
        transcript = (await scene.settled(chat)).need_transcript("a test")
        assert transcript.title is not None
        assert transcript.turn_label is not None
        assert (transcript.title.text, transcript.turn_label.text) == ("A greeting", "Finished latest turn")
        log = await scene.engine.events(chat)
        assert [each.event.kind for each in log if isinstance(each.event, SideCallRecorded)] == ["title"]
        assert len(scene.server.requests) == 4
