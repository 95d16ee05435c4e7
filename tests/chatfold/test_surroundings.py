"""What is kept beside a log is verified too: places in the feed, uses of large contents, the mark of foreign chats."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import psycopg
import pytest

from chatfold import Agent, Engine, load_log
from chatfold.logcheck import Finding
from chatfold.repair import repair_chat
from chatfold.verification import verify_all, verify_chat
from events.ids import ChatId
from store import open_store
from store.sqlite import SqliteStore
from tests.chatfold.test_tampered import change

AGENT: Final = Agent(name="a", model="scripted")
LARGE: Final = "Hi there. " * 20_000
SHARED: Final = "Good bye. " * 20_000


async def fill(url: str) -> None:
    async with Engine(url, [AGENT]) as engine:
        for chat in ("a", "talk"):
            await engine.create_chat("a", SHARED, chat_id=chat)
            await engine.settled(chat)
        await engine.send_message("talk", LARGE)
        await engine.settled("talk")
    async with Engine(url, worker=False) as engine:
        await engine.import_log(load_log(await engine.export_log("talk")), as_id="there")


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    path = tmp_path / "chats.db"
    await fill(f"sqlite:///{path}")
    return path


async def found(url: str) -> dict[str, Sequence[Finding]]:
    async with open_store(url) as store:
        return {each.chat: each.findings async for each in verify_all(store) if each.findings}


def rows(database: Path) -> list[tuple[str, str]]:
    connection = sqlite3.connect(database)
    kept = connection.execute("SELECT chat, digest FROM blob_uses ORDER BY 1, 2").fetchall()
    connection.close()
    return kept


PLACES: Final = {
    "tx = 'x'": "column tx holds str, not int",
    "position = 'x'": "column position holds str, not int",
    "position = 1.5": "column position holds float, not int",
    "position = 0": "which is not behind the event before it",
    "position = (SELECT position FROM chat_events WHERE chat = 'talk' AND version = 2)": "which is not behind",
    "tx = 1": "which is not behind the event before it",
    "tx = tx + 1": "and the command that it belongs to in",
}


@pytest.mark.parametrize("assignment", PLACES)
async def test_an_event_out_of_its_place_in_the_feed(database: Path, assignment: str) -> None:
    change(database, f"UPDATE chat_events SET {assignment} WHERE chat = 'talk' AND version = 3 AND command_index > 0")
    problems = await found(f"sqlite:///{database}")
    assert list(problems) == ["talk"]
    assert {each.check for each in problems["talk"]} == {"feed"}
    assert (problems["talk"][0].version, PLACES[assignment] in problems["talk"][0].problem) == (3, True)
    async with open_store(f"sqlite:///{database}") as store:
        assert [each.check for each in (await repair_chat(store, "talk")).left][:1] == ["feed"]


USES: Final = {
    "one is missing": ("DELETE FROM blob_uses WHERE chat = 'talk' AND digest = (SELECT max(digest) FROM blobs)", 1),
    "all are missing": ("DELETE FROM blob_uses WHERE chat = 'talk'", 4),
    "one too many": ("INSERT INTO blob_uses (chat, digest) VALUES ('talk', 'f00')", 1),
    "one is another": (
        "UPDATE blob_uses SET digest = 'f00' WHERE chat = 'talk' AND digest = (SELECT max(digest) FROM blobs)",
        2,
    ),
}


@pytest.mark.parametrize("name", USES)
async def test_uses_that_do_not_fit_the_log(database: Path, name: str) -> None:
    statement, count = USES[name]
    before = rows(database)
    change(database, statement)
    assert rows(database) != before
    problems = await found(f"sqlite:///{database}")
    assert [(chat, {each.check for each in of}, len(of)) for chat, of in problems.items()] == [("talk", {"use"}, count)]
    async with open_store(f"sqlite:///{database}") as store:
        done = await repair_chat(store, "talk")
        assert (done.uses, done.header, done.left, done.changed) == (count, (), (), True)
        assert not (await verify_chat(store, "talk")).findings
        assert not (await repair_chat(store, "talk")).changed
    assert rows(database) == before


async def test_what_was_repaired_before_the_chat_went_on_is_told(database: Path) -> None:
    url = f"sqlite:///{database}"

    class Meanwhile(SqliteStore):
        asked = 0

        async def rebuild_uses(self, chat: ChatId, version: int, digests: Sequence[str]) -> bool:
            self.asked += 1
            if self.asked == 1:
                async with Engine(url, worker=False) as engine:
                    await engine.archive(chat)
            return await super().rebuild_uses(chat, version, digests)

    change(database, "DELETE FROM blob_uses WHERE chat = 'talk'")
    change(database, "UPDATE chats SET owner = x'00' WHERE chat = 'talk'")
    async with Meanwhile(url) as store:
        done = await repair_chat(store, "talk")
        assert store.asked == 2
        assert "owner" in done.header
        assert done.unreadable == "column owner holds bytes, not str"
        assert not (await verify_chat(store, "talk")).findings


async def test_a_use_of_what_is_not_here_is_not_asked_for(database: Path) -> None:
    """An import may lack large contents: that they are missing is a finding of its own."""
    change(database, "DELETE FROM blob_uses WHERE digest = (SELECT max(digest) FROM blobs)")
    change(database, "DELETE FROM blobs WHERE digest = (SELECT max(digest) FROM blobs)")
    problems = await found(f"sqlite:///{database}")
    assert {each.check for of in problems.values() for each in of} == {"blob"}


async def test_a_chat_that_went_on_here_is_not_foreign(database: Path) -> None:
    assert await found(f"sqlite:///{database}") == {}
    change(database, "UPDATE chats SET is_foreign = 1 WHERE chat = 'talk'")
    problems = await found(f"sqlite:///{database}")
    assert [(chat, [each.check for each in of]) for chat, of in problems.items()] == [("talk", ["header"])]
    assert "marked as foreign, and went on here at version " in problems["talk"][0].problem
    async with open_store(f"sqlite:///{database}") as store:
        done = await repair_chat(store, "talk")
        assert (done.header, done.foreign) == (("foreign",), False)
        assert not (await verify_chat(store, "talk")).findings
        there = await repair_chat(store, "there")
        assert (there.changed, there.foreign) == (False, True)


async def test_the_same_in_postgresql(postgres_database: Callable[[], str]) -> None:
    url = postgres_database()
    await fill(url)
    assert await found(url) == {}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DELETE FROM blob_uses WHERE chat = 'talk'")
        connection.execute("INSERT INTO blob_uses (chat, digest) VALUES ('talk', 'f00')")
        connection.execute("UPDATE chats SET is_foreign = true WHERE chat = 'talk'")
        connection.execute("UPDATE chat_events SET tx = '1' WHERE chat = 'a' AND version = 2")
    problems = await found(url)
    assert {chat: {each.check for each in of} for chat, of in problems.items()} == {
        "a": {"feed"},
        "talk": {"header", "use"},
    }
    async with open_store(url) as store:
        done = await repair_chat(store, "talk")
        assert (done.uses, done.header) == (5, ("foreign",))
    assert list(await found(url)) == ["a"]


async def test_a_store_in_memory_tells_of_them_too() -> None:
    async with Engine("memory://", [AGENT]) as engine:
        await engine.create_chat("a", LARGE, chat_id="talk")
        await engine.settled("talk")
        chat = (await engine.store.list_ids())[0]
        used = await engine.store.read_uses(chat)
        version = (await engine.state("talk")).control.version
        assert not await engine.store.rebuild_uses(chat, version - 1, [])
        assert await engine.store.rebuild_uses(chat, version, ["f00"])
        findings = (await verify_chat(engine.store, "talk")).findings
        assert [each.check for each in findings] == ["use"] * len(used)
        assert (await repair_chat(engine.store, "talk")).uses == len(used) > 0
        assert await engine.store.read_uses(chat) == used
