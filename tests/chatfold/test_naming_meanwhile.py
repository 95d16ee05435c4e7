"""What happens to a chat while a model is asked to name it: what is not said any more gives no title."""

from __future__ import annotations

import asyncio

import pytest

from chatfold.naming import Titles
from chatfold.testing import Wait, turn
from events.vocabulary import TitleChanged
from tests.chatfold.test_naming import Models, side_calls, texts, until


@pytest.mark.parametrize("kind", ["title", "label"])
async def test_what_is_erased_while_a_model_is_asked_of_it_comes_back_in_no_title_and_no_label(kind: str) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()
    held = [turn(Wait(go_on, reached=asked.set), "The secret")]
    models = Models(titles=held) if kind == "title" else Models(labels=held)
    async with models.engine(Titles(auto=kind == "title", labels=kind == "label")) as engine:
        worker = engine.worker
        assert worker is not None
        created = await engine.create_chat("helper", "My secret is 42")
        await asked.wait()
        await engine.erase(created.chat, created.messages)
        (work,) = worker._aside._tasks.values()
        go_on.set()
        await work
        assert texts(await engine.state(created.chat)) == (None, None)
        assert [call.kind for call in await side_calls(engine, created.chat)] == [kind]


async def test_a_chat_whose_first_message_is_edited_meanwhile_is_named_by_what_it_says_now() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()
    models = Models(titles=[turn(Wait(go_on, reached=asked.set), "Of the first"), "Of the second"])
    async with models.engine(Titles(labels=False)) as engine:
        created = await engine.create_chat("helper", "One")
        await asked.wait()
        await engine.edit_message(created.chat, created.messages[0], "Two")
        await engine.settled(created.chat)
        go_on.set()
        await until(engine, created.chat, lambda recorded: isinstance(recorded.event, TitleChanged))
        assert texts(await engine.state(created.chat)) == ("Of the second", None)
