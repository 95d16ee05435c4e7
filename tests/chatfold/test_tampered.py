"""A database that somebody else changed: verifying says what is wrong, and one broken chat keeps no other from it.

SQLite lets every type into every column, so a statement that looks harmless (``replace`` on a BLOB) leaves a text.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

import pytest

from chatfold import Agent, Engine
from chatfold.logcheck import Verdict
from chatfold.transfer import stored_log
from chatfold.verification import verify_all, verify_chat
from events.errors import MalformedEvent
from store import open_store
from store.errors import MalformedRow

AGENT: Final = Agent(name="a", model="scripted")

EVENTS: Final = (
    "content = replace(content, 'Hi', 'Ho')",
    "content = 5",
    "content = NULL",
    "content = CAST(x'ff' AS TEXT)",
    "facts = CAST(facts AS TEXT)",
    "digest = hex(digest)",
    "recorded_at = 'x'",
    "recorded_at = 1.5",
    "type = x'00'",
    "type = 'nonsense'",
    "schema_number = 'x'",
    "schema_number = -1",
    "actor_kind = 5.5",
    "actor_id = x'00'",
    "source = x'01'",
    "dest = 'nowhere'",
    "command = x'02'",
    "command_index = 'x'",
    "facts = x'00'",
    "content = x'ff'",
    "content = x'5b5d'",
)
HEADERS: Final = (
    "updated_at = 'x'",
    "created_at = x'00'",
    "control = CAST(control AS TEXT)",
    "control = x'00'",
    "digest = hex(digest)",
    "labels = 'x'",
    "labels = x'00'",
    "labels = CAST(x'ff' AS TEXT)",
    "version = 'x'",
    "version = 99",
    "status = x'00'",
    "status = 'nowhere'",
    "title = x'00'",
    "owner = x'00'",
    "archived = 'yes'",
    "epoch = 'x'",
    "due_at = 'x'",
)


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    path = tmp_path / "chats.db"
    async with Engine(f"sqlite:///{path}", [AGENT]) as engine:
        for chat in ("a", "broken", "z"):
            await engine.create_chat("a", "Hi.", chat_id=chat, title="Talk")
            await engine.settled(chat)
    return path


def change(database: Path, statement: str) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        try:
            assert connection.execute(statement).rowcount > 0
        except sqlite3.IntegrityError as error:
            pytest.skip(f"the table itself refuses it: {error}")
    connection.close()


async def verdicts(database: Path) -> dict[str, Verdict]:
    async with open_store(f"sqlite:///{database}") as store:
        return {verdict.chat: verdict async for verdict in verify_all(store)}


@pytest.mark.parametrize("assignment", EVENTS)
@pytest.mark.parametrize("version", [1, 3])
async def test_a_broken_event_is_found_and_named(database: Path, assignment: str, version: int) -> None:
    change(database, f"UPDATE chat_events SET {assignment} WHERE chat = 'broken' AND version = {version}")
    found = await verdicts(database)
    assert [chat for chat, verdict in found.items() if not verdict.findings] == ["a", "z"]
    assert any(finding.version == version for finding in found["broken"].findings)


async def test_an_event_whose_version_is_no_number_is_not_taken_for_the_header(database: Path) -> None:
    change(database, "UPDATE chat_events SET version = 2.5 WHERE chat = 'broken' AND version = 3")
    found = (await verdicts(database))["broken"].findings
    assert "form" in {finding.check for finding in found if "column version holds float" in finding.problem}
    assert "header" not in {finding.check for finding in found if "column version" in finding.problem}


@pytest.mark.parametrize("assignment", HEADERS)
async def test_a_broken_header_is_found(database: Path, assignment: str) -> None:
    change(database, f"UPDATE chats SET {assignment} WHERE chat = 'broken'")
    found = await verdicts(database)
    assert [chat for chat, verdict in found.items() if not verdict.findings] == ["a", "z"]
    assert "header" in [finding.check for finding in found["broken"].findings]


async def test_a_chat_whose_id_is_no_text_is_told_and_keeps_no_other_from_it(database: Path) -> None:
    change(database, "UPDATE chats SET chat = CAST(chat AS BLOB) WHERE chat = 'broken'")
    found = await verdicts(database)
    assert [chat for chat, verdict in found.items() if not verdict.findings] == ["a", "z"]
    problems = [finding.problem for verdict in found.values() for finding in verdict.findings]
    assert "column chat holds bytes, not str" in problems
    assert "there are events and no header: nobody finds the chat" in problems


async def test_all_of_a_log_before_a_broken_event_is_checked(database: Path) -> None:
    change(database, "UPDATE chat_events SET content = 5 WHERE chat = 'broken' AND version = 4")
    change(database, "UPDATE chat_events SET facts = x'7b7d' WHERE chat = 'broken' AND version = 2")
    async with open_store(f"sqlite:///{database}") as store:
        verdict = await verify_chat(store, "broken")
    assert {(finding.version, finding.check) for finding in verdict.findings} >= {(2, "digest"), (4, "form")}


async def test_a_broken_large_content_is_found(database: Path) -> None:
    async with Engine(f"sqlite:///{database}", [AGENT]) as engine:
        await engine.create_chat("a", "Hi there. " * 20_000, chat_id="large")
        await engine.settled("large")
    change(database, "UPDATE blobs SET data = replace(data, 'Hi', 'Ho')")
    found = await verdicts(database)
    assert [finding.check for finding in found["large"].findings][:1] == ["digest"]
    assert found["a"].findings == ()


async def test_whoever_reads_it_is_told_the_chat_and_the_version(database: Path) -> None:
    change(database, "UPDATE chat_events SET content = 5 WHERE chat = 'broken' AND version = 3")
    said = "malformed event at chat 'broken', version 3: column content holds int, not bytes"
    async with Engine(f"sqlite:///{database}", worker=False) as engine:
        for read in (engine.state("broken"), engine.events("broken"), engine.export_log("broken")):
            with pytest.raises(MalformedRow, match=said) as caught:
                await read
            assert isinstance(caught.value, MalformedEvent)
            assert (caught.value.chat, caught.value.version) == ("broken", 3)
    async with open_store(f"sqlite:///{database}") as store:
        with pytest.raises(MalformedRow):
            await stored_log(store, "broken")


async def test_a_lease_that_is_none_is_dead(database: Path) -> None:
    change(database, "UPDATE chats SET holder = 'w' WHERE chat = 'broken'")
    with sqlite3.connect(database) as connection:
        connection.execute("INSERT INTO workers (worker, expires_at) VALUES ('w', 'x')")
    connection.close()
    async with open_store(f"sqlite:///{database}") as store:
        loaded = await store.load_header((await store.list_ids())[1])
    assert loaded is not None
    assert not loaded.holder_alive
