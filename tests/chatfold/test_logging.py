"""What the engine logs: what a chat's events are, bound to chat, version, worker; never what was said."""

from __future__ import annotations

import logging

import pytest

from chatfold import Agent, Engine, Settings, tool
from generation.providers.script import Say, Think, UseTool, turn
from generation.providers.scripted import ScriptedProvider

SECRETS = ("swordfish", "marlin", "barracuda", "tarpon")


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    if word == "marlin":
        raise ValueError("barracuda")
    return "tarpon"


async def test_no_content_is_logged_at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    calls = [UseTool("look_up", {"word": "marlin"}), UseTool("look_up", {"word": "x"})]
    script = [turn(Think("swordfish"), *calls), turn(Say("swordfish"))]
    agent = Agent(name="helper", model="scripted/any", system="swordfish", tools=[look_up])
    settings = Settings(poll=0.05)
    providers = {"scripted": ScriptedProvider(script)}
    async with Engine("memory://", [agent], providers=providers, settings=settings) as engine:
        chat = (await engine.create_chat("helper", "swordfish", title="swordfish")).chat
        assert (await engine.settled(chat)).control.status == "waiting"
        worker = engine.runtime.worker
    records = [record for record in caplog.records if record.name.startswith(("generation", "store", "chatfold"))]
    appended = [record for record in records if record.getMessage() == "event_appended"]
    assert appended
    for record in appended:
        fields = record.__dict__
        assert fields["chat"] == chat
        assert fields["worker"] == worker
        assert fields["version"] > 0
    for record in records:
        shown = f"{record.getMessage()} {record.__dict__}"
        assert not [secret for secret in SECRETS if secret in shown]
