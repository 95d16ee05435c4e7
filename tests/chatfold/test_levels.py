"""Release levels: what is written to a chat is what releases of its level can read, wherever the chat comes from."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from chatfold import (
    NOT_KNOWN,
    Agent,
    DirectoryContext,
    Engine,
    ToolFile,
    ToolOutput,
    TransitionNotAllowed,
    client_tool,
    result,
    tool,
)
from chatfold.hooks import HookAnswer, PythonHook
from chatfold.repair import repair_chat
from chatfold.testing import ModelRequest, ScriptedProvider, Turn, UseTool, turn
from chatfold.verification import verify_chat
from events.ids import ChatId
from events.levels import FIRST, GENERATION, RECONCILE, SINCE, level_of_all
from events.parts import ToolResultPart
from generation.prompt_types import PromptResult
from store import Store, open_store
from store.migrate import migrate
from store.schema import READER_LEVEL, level_of_new_chat
from tests.generation.test_context_directory import put, skill


@tool(reconcile=lambda _context, _arguments: NOT_KNOWN)
async def pay() -> str:
    """Pay."""
    return "paid"


def model(request: ModelRequest) -> Turn:
    return turn("Done.") if request.messages[-1].role == "tool" else turn(UseTool("pay", {}))


def engine_on(store: Store) -> Engine:
    return Engine(
        store, [Agent(name="a", model="scripted", tools=[pay])], providers={"scripted": ScriptedProvider(model)}
    )


async def level(store: Store, chat: str) -> int:
    loaded = await store.load_header(ChatId(chat))
    assert loaded is not None
    return loaded.header.reader_level


async def needed(engine: Engine, chat: str) -> int:
    return level_of_all(await engine.events(chat))


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return open_store("memory://")
    if request.param == "sqlite":
        return open_store(f"sqlite:///{tmp_path}/chats.db")
    return open_store(request.getfixturevalue("postgres_database")())


def set_level(store: Store, level: int) -> None:
    """Have a process that opened its database while it was at ``level``."""
    store.write_level = level  # type: ignore[misc]


async def test_a_chat_has_what_its_level_can_read(store: Store) -> None:
    async with engine_on(store) as engine:
        assert store.write_level == READER_LEVEL, "a database that is set up now has no older readers"
        set_level(store, FIRST)
        await engine.create_chat("a", "Hi", chat_id="old")
        await engine.settled("old")
        set_level(store, RECONCILE)
        await engine.create_chat("a", "Hi", chat_id="new")
        await engine.settled("new")
        await engine.send_message("old", "Once more")
        await engine.settled("old")
        assert (await level(store, "old"), await needed(engine, "old")) == (FIRST, FIRST)
        assert (await level(store, "new"), await needed(engine, "new")) == (RECONCILE, RECONCILE)
        held = (await engine.state("old")).control.policy, (await engine.state("new")).control.policy
        assert held[0] != held[1]


async def test_a_chat_that_older_releases_may_run_takes_no_marks_and_lists_no_skills(
    store: Store, tmp_path: Path
) -> None:
    files = {"AGENTS.md": "One.", "skills/deploy/SKILL.md": skill("deploy"), "skills/none/SKILL.md": "none"}
    context = DirectoryContext(put(tmp_path / "w", dict(files)))
    agent = Agent(name="b", model="scripted", context=context)
    providers = {"scripted": ScriptedProvider(["Yes."] * 3)}
    async with Engine(store, [agent], providers=providers) as engine:
        set_level(store, RECONCILE)
        chat = (await engine.create_chat("b", "Hi")).chat
        await engine.settled(chat)
        assert [found.path for found in (await engine.context(chat)).resources] == ["AGENTS.md"]
        put(tmp_path / "w", {"AGENTS.md": "Two."})
        assert not (await engine.context(chat, look=True)).dirty
        with pytest.raises(TransitionNotAllowed, match="older release"):
            await engine.refresh_context(chat)
        await engine.send_message(chat, "Again")
        await engine.settled(chat)
        assert (await level(store, chat), await needed(engine, chat)) == (RECONCILE, FIRST)


async def test_a_chat_that_older_releases_may_run_is_not_let_go_on_by_hooks(store: Store) -> None:
    """It could not keep that they did: each answer would be followed by another."""
    hook = PythonHook(lambda call: HookAnswer(context=f"At {call.event}."), ["stop"])
    model = ScriptedProvider(["One.", "Two.", "Three."])
    agent = Agent(name="c", model="scripted")
    async with Engine(store, [agent], providers={"scripted": model}, hooks=[hook]) as engine:
        set_level(store, RECONCILE)
        await engine.create_chat("c", "Hi", chat_id="old")
        assert (await engine.settled("old")).control.status == "waiting"
        assert (len(model.requests), await needed(engine, "old")) == (1, FIRST)
        set_level(store, GENERATION)
        await engine.create_chat("c", "Hi", chat_id="new")
        assert (await engine.settled("new")).control.status == "waiting"
        assert len(model.requests) == 3, "there the turn goes on once"


async def test_results_say_in_words_what_older_releases_cannot_keep(store: Store) -> None:
    @tool
    def shoot() -> ToolOutput:
        """Take a picture."""
        files = [ToolFile(b"\x89PNG\r\n\x1a\n", "image/png"), ToolFile(b"a note", "text/plain")]
        return ToolOutput("", media=files, attachments=files)

    pick = client_tool("pick", "Pick.", {"type": "object", "properties": {}})
    call = turn(UseTool("shoot", {}), UseTool("pick", {}))
    hook = PythonHook(lambda _: HookAnswer(context="It was night."), ["post_tool_use"])
    model = ScriptedProvider([call, "Fine."])
    agent = Agent(name="d", model="scripted", tools=[shoot, pick])
    async with Engine(store, [agent], providers={"scripted": model}, hooks=[hook]) as engine:
        set_level(store, RECONCILE)
        chat = (await engine.create_chat("d", "Hi")).chat
        action = (await engine.settled(chat)).control.action
        assert action is not None
        given = result(action.client_calls[0], "Here.", media=[ToolFile(b"%PDF-1.7", "application/pdf")])
        await engine.submit_tool_results(chat, action.id, [given])
        await engine.settled(chat)
        shot, picked = [part.text for part in model.requests[1].messages[-1].parts if isinstance(part, PromptResult)]
        assert "a note" in shot
        assert "image/png" in shot
        assert "It was night." in shot
        assert "Attachments" in shot
        assert picked.startswith("Here.\n\n[A file of type application/pdf")
        assert await needed(engine, chat) == FIRST


async def test_copies_have_the_level_of_what_they_hold(store: Store) -> None:
    """Also in a process that opened its database before the level was raised."""
    async with engine_on(store) as engine:
        await engine.create_chat("a", "Hi", chat_id="new")
        await engine.settled("new")
        log = await engine.export_log("new")
        set_level(store, FIRST)
        await engine.fork("new", chat_id="fork")
        await engine.settled("fork")
        await engine.import_log(log, as_id="import")
        assert (await level(store, "fork"), await needed(engine, "fork")) == (GENERATION, GENERATION)
        assert (await level(store, "import"), await needed(engine, "import")) == (GENERATION, GENERATION)


async def test_a_header_below_its_log_is_found_and_repaired(store: Store) -> None:
    async with engine_on(store) as engine:
        await engine.create_chat("a", "Hi", chat_id="new")
        await engine.settled("new")
        loaded = await store.load_header(ChatId("new"))
        assert loaded is not None
        assert await store.rebuild_header(replace(loaded.header, reader_level=FIRST))
        verdict = await verify_chat(store, "new")
        assert [finding.problem for finding in verdict.findings] == [
            f"the header says that releases of level {FIRST} can read the log, it needs {GENERATION}"
        ]
        assert (await repair_chat(store, "new")).header == ("reader_level",)
        assert (await verify_chat(store, "new")).findings == ()
        assert await level(store, "new") == GENERATION


async def test_a_database_of_an_older_release_keeps_its_level(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    migrate(url, to="0001")
    migrate(url)
    async with open_store(url) as store:
        assert store.write_level == FIRST
        assert await store.raise_write_level(READER_LEVEL) == READER_LEVEL
    async with open_store(url) as store:
        assert store.write_level == READER_LEVEL


def test_the_level_of_a_new_chat() -> None:
    assert level_of_new_chat(FIRST, FIRST) == FIRST
    assert level_of_new_chat(READER_LEVEL + 1, FIRST) == READER_LEVEL
    assert level_of_new_chat(FIRST, RECONCILE) == RECONCILE


def test_this_release_reads_all_that_its_table_names() -> None:
    assert max(SINCE.values()) == READER_LEVEL


@tool
def show() -> ToolOutput:
    """Show."""
    return ToolOutput("shown", media=[ToolFile(b"\x89PNG\r\n\x1a\n", "image/png")])


async def test_what_the_level_of_a_chat_cannot_read_is_not_written(store: Store) -> None:
    """What may be left out is; what nothing would be left of is refused."""

    def shows(request: ModelRequest) -> Turn:
        return turn("Done.") if request.messages[-1].role == "tool" else turn(UseTool("show", {}))

    agents = [Agent(name="a", model="scripted", tools=[show])]
    async with Engine(store, agents, providers={"scripted": ScriptedProvider(shows)}) as engine:
        set_level(store, RECONCILE)
        await engine.create_chat("a", "Hi", chat_id="old")
        await engine.settled("old")
        assert await needed(engine, "old") <= await level(store, "old") == RECONCILE
        with pytest.raises(TransitionNotAllowed, match="older releases may run this chat"):
            await engine.set_active_tools("old", ["show"])
        set_level(store, READER_LEVEL)
        await engine.create_chat("a", "Hi", chat_id="new")
        await engine.set_active_tools("new", ["show"])
        await engine.settled("new")
        media = {
            chat: [
                part.media
                for message in (await engine.settled(chat)).messages
                for part in message.message.parts
                if isinstance(part, ToolResultPart)
            ]
            for chat in ("old", "new")
        }
        assert [len(files) for files in media["old"]] == [0]
        assert [len(files) for files in media["new"]] == [1]
