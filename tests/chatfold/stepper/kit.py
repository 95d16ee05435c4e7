"""Logs to step through: one of a short chat that failed once, and long ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from chatfold.engine import Engine
from chatfold.replaying.logs import LogSource
from chatfold.stepper.longlog import LongLog, open_long
from events.digest import GENESIS, chain
from events.envelope import StoredEvent
from events.logfile import event_line, read_log
from generation.agents import Agent
from generation.providers.script import UseTool, turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import Tool


def look_up(order: str) -> str:
    """Look an order up."""
    return f"order {order} is on its way"


async def talk(turns: int) -> bytes:
    """Return the log of a chat with so many turns of ten events, each with a tool call, and at last a failed one."""
    said = [
        each for n in range(turns) for each in (turn("Hm.", UseTool("look_up", {"order": f"A-{n}"})), f"Found {n}.")
    ]
    agent = Agent(name="support", model="scripted", tools=[Tool.from_function(look_up, crash="rerun")])
    async with Engine("memory://", [agent], providers={"scripted": ScriptedProvider(said)}) as engine:
        await engine.create_chat("support", "Where is order 0?", chat_id="help-1")
        await engine.settled("help-1")
        for n in range(1, turns + 1):
            await engine.send_message("help-1", f"And where is order {n}?")
            await engine.settled("help-1")
        return await engine.export_log("help-1")


def written(folder: Path, turns: int = 2) -> Path:
    """Write such a log into a folder; two turns are versions 1 to 21, the failed one comes behind."""
    file = folder / "help-1.jsonl"
    file.write_bytes(asyncio.run(talk(turns)))
    return file


def changed(data: bytes, change: Callable[[StoredEvent], StoredEvent]) -> bytes:
    """Return a log with each of its events changed, and sound: with the digests that belong to it."""
    log = read_log(data.splitlines(), "log")
    digest, lines = GENESIS, list[bytes]()
    for event in map(change, log.events):
        digest = chain(digest, event.envelope, event.facts, event.content)
        lines.append(event_line(replace(event, digest=digest)))
    header = {**msgspec.json.decode(data.splitlines()[0]), "head": digest.hex()}
    return msgspec.json.encode(header) + b"\n" + b"\n".join(lines) + b"\n"


def of_a_newer_release(data: bytes, version: int, name: str = "teleported") -> bytes:
    """Return a log as a newer release may write it: sound, with an event at this version that nobody here knows."""
    return changed(
        data,
        lambda event: (
            replace(event, envelope=replace(event.envelope, type=name)) if event.envelope.version == version else event
        ),
    )


def opened(file: Path) -> LongLog:
    """Open a log as the debugger does."""
    return open_long(LogSource("file", str(file)))
