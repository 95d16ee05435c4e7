"""Logs leave one engine and come into another: the same bytes, foreign until adopted, under another id too."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chatfold import Agent, Engine, decode_log, load_log
from chatfold.verification import verify_all
from chatstate.errors import ChatForeign, ChatNotFound
from events.errors import DigestMismatch, LogFileError
from events.ids import ChatId
from events.parts import TextPart
from events.replay import state_at
from store.errors import ChatExists
from store.memory import MemoryStore

AGENT = Agent(name="helper", model="scripted")


async def a_log(message: str = "Hello.") -> bytes:
    async with Engine("memory://", [AGENT]) as engine:
        chat = (await engine.create_chat("helper", message, chat_id="first", title="Talk")).chat
        await engine.settled(chat)
        return await engine.export_log(chat)


async def test_what_is_imported_is_what_was_exported() -> None:
    data = await a_log("long " * 20_000)
    log = load_log(data)
    assert log.header.blobs > 0
    async with Engine("memory://", [AGENT]) as engine:
        assert (await engine.import_log(data)).missing_blobs == ()
        (header,) = await engine.list_chats()
        assert (header.chat, header.title, header.foreign) == ("first", "Talk", True)
        assert await engine.export_log("first") == data
        assert await engine.state("first") == state_at(decode_log(log), log.header.events)
        with pytest.raises(ChatExists):
            await engine.import_log(log)
        with pytest.raises(ChatForeign):
            await engine.send_message("first", "More.")


async def test_a_log_imported_under_another_id_runs_under_it_once_adopted() -> None:
    data = await a_log()
    async with Engine("memory://", [AGENT]) as engine:
        await engine.import_log(data, as_id="second")
        assert (await engine.adopt("second")).chat == "second"
        receipt = await engine.send_message("second", "More.")
        assert receipt.chat == "second"
        state = await engine.settled("second")
        part = state.need_transcript("test").messages[-1].message.parts[0]
        assert isinstance(part, TextPart)
        assert "More." in part.text.text
        assert [header.chat for header in await engine.list_chats()] == ["second"]


async def test_what_was_imported_under_another_id_is_exported_as_the_log_it_is() -> None:
    data = await a_log()
    async with Engine("memory://", [AGENT]) as engine:
        await engine.import_log(data, as_id="second")
        assert await engine.export_log("second") == data


async def test_a_header_whose_control_cannot_be_read_is_a_finding_and_keeps_no_log_in() -> None:
    data = await a_log()
    async with Engine("memory://", [AGENT], worker=False) as engine:
        for chat in ("one", "two", "three"):
            await engine.import_log(data, as_id=chat)
        assert isinstance(engine.store, MemoryStore)
        kept = engine.store._chats[ChatId("two")]
        kept.header = replace(kept.header, control=b"damaged")
        found = {verdict.chat: [f.check for f in verdict.findings] async for verdict in verify_all(engine.store)}
        assert found == {"one": [], "two": ["header"], "three": []}
        assert await engine.export_log("two") == data


async def test_a_log_that_was_changed_is_refused() -> None:
    data = await a_log("Give me 5.")
    async with Engine("memory://") as engine:
        with pytest.raises(DigestMismatch, match="version 1"):
            await engine.import_log(data.replace(b"Give me 5.", b"Give me 6."))
        with pytest.raises(LogFileError, match="line 1"):
            await engine.import_log(b"no log")
        assert await engine.list_chats() == []


async def test_there_is_no_log_of_a_chat_that_does_not_exist() -> None:
    async with Engine("memory://") as engine:
        with pytest.raises(ChatNotFound):
            await engine.export_log("nowhere")
