"""Large contents lie beside the log and are shared: each goes with the last chat that has it, and not before."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import pytest

from chatfold.engine import Engine
from chatfold.transfer import referred_blobs
from events.ids import ChatId
from events.parts import TextPart

LARGE: Final = "word " * 20_000


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    """An engine without a worker on each kind of store."""
    if request.param == "postgres":
        make: Callable[[], str] = request.getfixturevalue("postgres_database")
        url = make()
    else:
        url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/chats.db"
    async with Engine(url, worker=False) as opened:
        yield opened


async def blobs_of(engine: Engine, chat: str) -> list[str]:
    return referred_blobs(await engine.store.read_events(ChatId(chat)))


async def kept(engine: Engine, blobs: list[str]) -> list[str]:
    return list(await engine.store.get_blobs(blobs))


async def test_erased_with_the_last_chat_that_has_it(engine: Engine) -> None:
    for chat in ("one", "two"):
        await engine.create_chat("helper", LARGE, chat_id=chat)
    blobs = await blobs_of(engine, "one")
    assert len(blobs) == 1
    await engine.erase("one", ["1.0"])
    assert await kept(engine, blobs) == blobs, "the other chat has it still"
    await engine.erase("two", ["1.0"])
    assert await kept(engine, blobs) == []
    assert await engine.store.collect_blobs() == 0


async def test_kept_while_another_message_of_the_chat_has_it(engine: Engine) -> None:
    await engine.create_chat("helper", LARGE, chat_id="one")
    await engine.send_message("one", LARGE)
    blobs = await blobs_of(engine, "one")
    await engine.erase("one", ["1.0"])
    assert await kept(engine, blobs) == blobs
    (waiting,) = await engine.queue("one")
    part = waiting.message.parts[0]
    assert isinstance(part, TextPart)
    assert part.text.text == LARGE
    await engine.erase("one", ["1.0", "2.0"])
    assert await kept(engine, blobs) == []


async def test_an_imported_chat_has_what_was_here_already(engine: Engine) -> None:
    await engine.create_chat("helper", LARGE, chat_id="one")
    await engine.interrupt("one")
    blobs = await blobs_of(engine, "one")
    imported = await engine.import_log(await engine.export_log("one", blobs=False), as_id="two")
    assert imported.missing_blobs == ()
    await engine.delete("one")
    state = await engine.state("two")
    part = state.messages[0].message.parts[0]
    assert isinstance(part, TextPart)
    assert part.text.text == LARGE
    await engine.delete("two")
    assert await kept(engine, blobs) == []
