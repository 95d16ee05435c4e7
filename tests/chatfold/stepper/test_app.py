"""The debugger in a terminal that is none: keys lead where they say, and panes show it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widgets import Static, TabbedContent

from chatfold.engine import Engine
from chatfold.stepper import following, views
from chatfold.stepper.app import StepApp
from chatfold.stepper.following import StoredChat
from chatfold.stepper.longlog import EventLines, LongLog, NotReadYet
from chatfold.stepper.model import Stepper
from chatfold.stepper.panes import Timeline
from chatstate.errors import ChatNotFound
from generation.agents import Agent
from generation.providers.scripted import ScriptedProvider
from store import open_store
from tests.chatfold.stepper.kit import of_a_newer_release, opened, talk

SIZES = [(120, 40), (80, 24)]


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    path = tmp_path / "help-1.jsonl"
    path.write_bytes(await talk(2))
    return path


def said(app: StepApp, what: str) -> str:
    return str(app.query_one(f"#{what}", Static).render())


async def pressed(pilot: Pilot[None], app: StepApp, keys: Sequence[str]) -> int:
    """Press keys, wait until nothing is under way, and return where the debugger stands."""
    await pilot.press(*keys)
    await app.workers.wait_for_complete()
    await pilot.pause()
    return app.stepper.version


@pytest.mark.parametrize("size", SIZES)
async def test_keys_move(file: Path, size: tuple[int, int]) -> None:
    app = StepApp(Stepper(opened(file)), str(file))
    async with app.run_test(size=size) as pilot:
        await app.workers.wait_for_complete()
        moves = [
            ("up", 24), ("down", 25), ("home", 0), ("right", 1), ("d", 4), ("d", 6), ("D", 4), ("o", 5), ("e", 25),
            ("O", 18), ("end", 25), ("pageup", max(0, 25 - app.query_one(Timeline).size.height + 1)),
        ]  # fmt: skip
        for key, version in moves:
            assert (key, await pressed(pilot, app, [key])) == (key, version)
        assert await pressed(pilot, app, ["home", "g", *"12", "enter"]) == 12
        assert "12  message_sent" in said(app, "changed-text")
        assert "pending, by send" in said(app, "machine")


async def test_questions(file: Path) -> None:
    app = StepApp(Stepper(opened(file), 0), str(file))
    async with app.run_test(size=(120, 40)) as pilot:
        assert await pressed(pilot, app, ["t", *"send", "enter"]) == 12
        assert await pressed(pilot, app, ["n"]) == 22
        assert await pressed(pilot, app, ["N"]) == 12
        assert await pressed(pilot, app, ["home", "slash", *"order 1", "enter"]) == 12
        assert await pressed(pilot, app, ["home", "b", *"rule==D6", "enter"]) == 0
        assert await pressed(pilot, app, ["c"]) == 11
        assert await pressed(pilot, app, ["c", "c"]) == 21
        assert "nothing after version 21 where rule==D6" in said(app, "status")
        assert await pressed(pilot, app, ["t", *"sned", "enter"]) == 21
        assert "did you mean send?" in said(app, "status")
        assert app.query_one("#asking").has_class("-open")
        assert await pressed(pilot, app, ["escape", "up"]) == 20


async def test_panes_and_marks(file: Path) -> None:
    app = StepApp(Stepper(opened(file), 11), str(file))
    async with app.run_test(size=(80, 24)) as pilot:
        await pressed(pilot, app, ["4"])
        assert app.query_one(TabbedContent).active == "prompt"
        assert "Found 0." in said(app, "prompt-text")
        await pressed(pilot, app, ["2"])
        assert "may come next" in said(app, "state-text")
        await pressed(pilot, app, ["3"])
        assert "turn_finished" in said(app, "event-text")
        await pressed(pilot, app, ["1", "m", "end"])
        assert "from version 11 (marked) to 25" in said(app, "changed-text")
        await pressed(pilot, app, ["y"])
        assert "def test_help_1_at_version_25" in app.clipboard


async def test_a_click_leads_to_a_line(file: Path) -> None:
    app = StepApp(Stepper(opened(file), 0), str(file))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.click(Timeline, offset=(5, 7))
        await pressed(pilot, app, [])
        assert app.stepper.version == 7


async def test_an_altered_log_is_shown_and_said_to_be() -> None:
    altered = (await talk(2)).replace(b"Found 1.", b"Found 9.")
    lines = EventLines(altered, "altered")
    app = StepApp(Stepper(LongLog(name="altered", chat="help-1", events=lines, blobs={})), "altered")
    async with app.run_test(size=(120, 40)) as pilot:
        await pressed(pilot, app, [])
        assert "version 20" in said(app, "status")


async def test_an_event_of_a_newer_release_is_said_in_each_pane() -> None:
    lines = EventLines(of_a_newer_release(await talk(2), 6), "newer")
    app = StepApp(Stepper(LongLog(name="newer", chat="help-1", events=lines, blobs={})), "newer")
    async with app.run_test(size=(120, 40)) as pilot:
        for key, pane in zip("1234", ("changed", "state", "event", "prompt"), strict=True):
            await pressed(pilot, app, ["home", *["right"] * 6, key])
            assert "unknown event type 'teleported'" in said(app, f"{pane}-text")
        await pressed(pilot, app, ["y", "e", "o", "d", "end", "left", "home", "right", "1"])
        assert "chat_created" in said(app, "changed-text")
        assert "teleported" in said(app, "status")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, sqlite_url: str) -> str:
    """A database of each kind."""
    if request.param == "sqlite":
        return sqlite_url
    made: Callable[[], str] = request.getfixturevalue("postgres_database")
    return made()


async def test_a_live_chat_is_followed(url: str) -> None:
    agent = Agent(name="support", model="scripted")
    async with Engine(url, [agent], providers={"scripted": ScriptedProvider(["One.", "Two."])}) as engine:
        chat = (await engine.create_chat("support", "Hello")).chat
        await engine.settled(chat)
        async with open_store(url) as store:
            stored = await StoredChat.opened(store, chat)
            app = StepApp(Stepper(stored.log), f"{chat}.jsonl", stored, follow=True)
            async with app.run_test(size=(80, 24)) as pilot:
                await pressed(pilot, app, [])
                known = app.stepper.last
                await engine.send_message(chat, "And now?")
                await engine.settled(chat)
                await app.action_follow()
                await pressed(pilot, app, [])
                assert app.stepper.version == app.stepper.last > known
                assert "turn_finished" in said(app, "changed-text")
                assert "live" in said(app, "status")
                await pressed(pilot, app, ["4"])
                assert "Two." in said(app, "prompt-text")


async def imported(url: str) -> str:
    async with Engine(url, []) as engine:
        return (await engine.import_log(await talk(2))).chat


async def test_the_first_screen_of_a_stored_chat_does_not_wait_for_all_of_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "PAGE", 8)
    gate, rest = asyncio.Event(), StoredChat.rest

    async def gated(self: StoredChat) -> AsyncIterator[int]:
        await gate.wait()
        async for read_to in rest(self):
            yield read_to

    monkeypatch.setattr(StoredChat, "rest", gated)
    chat = await imported(url)
    async with open_store(url) as store:
        stored = await StoredChat.opened(store, chat)
        app = StepApp(Stepper(stored.log), f"{chat}.jsonl", stored)
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            shown = [strip.text for strip in app.query_one(Timeline).render_lines(Region(0, 0, 40, 22))]
            assert any("turn_failed" in line for line in shown)
            assert any(" ... " in line for line in shown)
            assert "reading: 0 of 25 events" in said(app, "changed-text")
            await pilot.press("e")
            await pilot.pause()
            gate.set()
            await pressed(pilot, app, [])
            assert "turn_failed" in said(app, "changed-text")
            assert stored.log.fault() is None


async def test_a_stored_chat_is_read_around_a_version_and_then_from_its_start(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "PAGE", 8)
    chat = await imported(sqlite_url)
    async with open_store(sqlite_url) as store:
        stored = await StoredChat.opened(store, chat, near=12)
        events = stored.log.events
        assert (len(events), stored.log.read_to, events[11].envelope.version) == (25, 0, 12)
        with pytest.raises(NotReadYet, match="version 3 is not read yet"):
            events[2]
        assert [read async for read in stored.rest()] == [16, 24, 25]
        assert [each.envelope.version for each in events[:]] == list(range(1, 26))
        with pytest.raises(ChatNotFound, match="there is no chat nobody"):
            await StoredChat.opened(store, "nobody")


async def test_a_chat_that_is_deleted_meanwhile_is_said_to_be(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PAGE", 8)
    chat = await imported(sqlite_url)
    async with open_store(sqlite_url) as store:
        stored = await StoredChat.opened(store, chat)
        assert await store.delete(stored.chat, 25)
        app = StepApp(Stepper(stored.log), f"{chat}.jsonl", stored)
        async with app.run_test(size=(80, 24)) as pilot:
            await pressed(pilot, app, [])
            assert f"there is no chat {chat}" in said(app, "status")


@pytest.mark.parametrize("width", [80, 140])
async def test_each_key_of_the_last_line_is_in_view_and_all_are_told(file: Path, width: int) -> None:
    app = StepApp(Stepper(opened(file)), str(file))
    async with app.run_test(size=(width, 24)) as pilot:
        await pressed(pilot, app, [])
        while not (keys := list(app.query("FooterKey").results())):  # the footer is filled after the first screen
            await pilot.pause()
        assert len(keys) == 10
        assert all(key.region.right <= width for key in keys), [key.region for key in keys]
        told = str(views.keys())
        bound = [binding.key_display or binding.key for binding in StepApp.BINDINGS if isinstance(binding, Binding)]
        assert [key for key in bound if key not in told.lower() and key not in told] == []
        await pressed(pilot, app, ["question_mark"])
        assert app.query_one("#keys").has_class("-open")
        await pressed(pilot, app, ["escape"])
        assert not app.query_one("#keys").has_class("-open")
