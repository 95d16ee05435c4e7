"""Logs that an engine wrote, to be looked at: several rules in each, and what becomes of them when they are changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from chatfold.engine import Engine
from events.codec import decode
from events.envelope import Recorded
from events.ids import ChatId
from events.logfile import LogFile, header_of, read_log, write_log
from events.records import Decision
from generation.agents import Agent, Limits
from generation.providers.script import UseTool, turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import Tool, client_tool
from tests.events.logs import Draft, Log


def look_up(order: str) -> str:
    """Look an order up."""
    return f"order {order} is on its way"


def hang_up() -> str:
    """End the call."""
    return "done"


@cache
def helped() -> LogFile:
    """A chat in which a tool runs, a client is asked, a tool ends the turn, and one turn has too many steps."""
    tools = [
        Tool.from_function(look_up, crash="rerun"),
        Tool.from_function(hang_up, stop_after=True),
        client_tool("where", "Ask where the user is.", {"type": "object", "properties": {}}),
    ]
    asks = turn("Hm.", UseTool("look_up", {"order": "A-1"}))
    model = ScriptedProvider(
        [asks, "It is on its way.", turn(UseTool("where")), "I see.", turn(UseTool("hang_up")), asks, asks, asks]
    )
    agent = Agent(name="support", model="scripted", tools=tools, limits=Limits(max_steps=3))

    async def talk() -> bytes:
        async with Engine("memory://", [agent], providers={"scripted": model}) as engine:
            await engine.create_chat("support", "Where is A-1?", owner="ada", chat_id="help-1")
            await engine.settled("help-1")
            await engine.send_message("help-1", "And where am I?")
            state = await engine.settled("help-1")
            action = state.control.action
            assert action is not None
            await engine.submit_tool_results("help-1", action.id, {str(action.items[0].call): "at home"})
            await engine.settled("help-1")
            for said in ("Bye", "Again, for ever"):
                await engine.send_message("help-1", said)
                await engine.settled("help-1")
            return await engine.export_log("help-1")

    return read_log(asyncio.run(talk()).splitlines(), "help-1")


def events_of(log: LogFile) -> list[Recorded]:
    """The decoded events."""
    return [decode(stored, blobs=log.blobs) for stored in log.events]


def decision_of(recorded: Recorded) -> Decision | None:
    """The decision that an event carries out."""
    found: Decision | None = getattr(recorded.event, "decision", None)
    return found


def decided(events: Iterable[Recorded], rule: str) -> Recorded:
    """The first event whose decision has this rule."""
    return next(each for each in events if (found := decision_of(each)) is not None and found.rule == rule)


def changed(events: Sequence[Recorded], version: int, **fields: Any) -> list[Recorded]:
    """The events, of which the one at a version has other fields."""
    return [replace(each, event=replace(each.event, **fields)) if each.version == version else each for each in events]


def redecided(events: Sequence[Recorded], version: int, change: Callable[[Decision], Decision]) -> list[Recorded]:
    """The events, of which the decision at a version is another one."""
    decision = decision_of(events[version - 1])
    assert decision is not None
    return changed(events, version, decision=change(decision))


def written(file: Path, events: Iterable[Recorded], chat: str = "help-1") -> str:
    """Write events as a log that is as it was written: with digests of their own; return the file's name."""
    log = Log()
    for each in events:
        at = each.envelope
        draft = Draft(actor=at.actor, source=at.source, dest=at.dest, command=at.command, index=at.index)
        log.add(each.event, draft)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(write_log(header_of(ChatId(chat), log.events, release="0.1.0"), log.events)))
    return str(file)
