"""The debugger in a terminal that is none: keys lead where they say, and panes show it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static, TabbedContent

from chatfold.engine import Engine
from chatfold.stepper.app import StepApp
from chatfold.stepper.following import Following
from chatfold.stepper.longlog import EventLines, LongLog
from chatfold.stepper.model import Stepper
from chatfold.stepper.panes import Timeline
from chatfold.transfer import stored_log
from generation.agents import Agent
from generation.providers.scripted import ScriptedProvider
from store import open_store
from tests.chatfold.stepper.kit import opened, talk

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
        assert app.query_one("#ask", Input).has_class("-open")
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


async def test_a_live_chat_is_followed(sqlite_url: str) -> None:
    agent = Agent(name="support", model="scripted")
    async with Engine(sqlite_url, [agent], providers={"scripted": ScriptedProvider(["One.", "Two."])}) as engine:
        chat = (await engine.create_chat("support", "Hello")).chat
        await engine.settled(chat)
        async with open_store(sqlite_url) as store:
            loaded = await stored_log(store, chat)
            log = LongLog(name=chat, chat=chat, events=list(loaded.events), blobs={})
            app = StepApp(Stepper(log), f"{chat}.jsonl", Following(store, log))
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


def test_only_what_grows_can_be_followed() -> None:
    log = LongLog(name="x", chat="x", events=(), blobs={})
    with pytest.raises(TypeError, match="does not grow"):
        Following(None, log)  # type: ignore[arg-type]
