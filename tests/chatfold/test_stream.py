"""The stream of one chat: parts before the event that commits them, a reset only for parts that were not committed.

Each of the model's turns waits until the stream has told of its start: one that ends before anybody looks is told by
its events alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import aclosing

import pytest

from chatfold import Agent, CursorInvalid, Engine, EventItem, PartItem, PreviewReset, Receipt, Settings
from chatfold.testing import Cut, Say, ScriptedProvider, UseTool, Wait, turn
from events.vocabulary import AttemptStarted
from generation.cursor import Cursor
from generation.parts import KEEP_CLOSED, LiveText, PartBuffer
from generation.tools.contract import tool


@tool
def look(what: str) -> str:
    """Look at something."""
    return f"{what} looks good"


async def told(engine: Engine, receipt: Receipt, starts: Sequence[asyncio.Event] = ()) -> list[str]:
    """Return what the stream tells from the command on until the chat waits: text, event types, resets.

    ``starts`` are set one after the other, at each start of a model call that it tells.
    """
    seen: list[str] = []
    left = iter(starts)
    async with aclosing(engine.stream(receipt.chat, receipt.cursor)) as items:
        async for item in items:
            match item:
                case PartItem(part=LiveText(text=text)):
                    seen.append(text)
                case PreviewReset():
                    seen.append("<reset>")
                case EventItem(recorded=recorded):
                    seen.append(recorded.event.type)
                    if isinstance(recorded.event, AttemptStarted) and recorded.event.kind == "generate":
                        next(left, asyncio.Event()).set()
                    if recorded.envelope.dest == "waiting":
                        break
                case _:
                    pass
    return seen


@pytest.mark.parametrize("kept", [KEEP_CLOSED, 0.0])
async def test_parts_come_whole_and_before_the_event_that_commits_them(kept: float) -> None:
    """Also where an attempt's parts are dropped as soon as the next one starts, before its end was told."""
    pieces = [f"piece {number:3}." for number in range(100)]
    starts = [asyncio.Event(), asyncio.Event()]
    model = ScriptedProvider(
        [
            turn(Wait(starts[0]), Say("".join(pieces), chunk=10), UseTool("look", {"what": "it"})),
            turn(Wait(starts[1]), "Yes."),
        ]
    )
    async with Engine(
        "memory://", [Agent(name="a", model="scripted", tools=[look])], providers={"scripted": model}
    ) as e:
        e.runtime.parts = PartBuffer(time.monotonic, keep_closed=kept)
        seen = await told(e, await e.create_chat("a", "Look."), starts)
    assert seen == [
        *("chat_created", "acquired", "policy_recorded", "attempt_started"),
        *pieces,
        *("step_committed", "attempt_started", "tool_result_recorded", "step_committed", "attempt_started"),
        "Yes.",
        *("step_committed", "turn_finished"),
    ]


async def test_parts_of_an_attempt_that_failed_are_taken_back() -> None:
    starts = [asyncio.Event(), asyncio.Event()]
    model = ScriptedProvider([turn(Wait(starts[0]), "Half", Cut()), turn(Wait(starts[1]), "Whole.")])
    settings = Settings(model_retry_unit=0.001)
    async with Engine(
        "memory://", [Agent(name="a", model="scripted")], providers={"scripted": model}, settings=settings
    ) as e:
        seen = await told(e, await e.create_chat("a", "Go."), starts)
    assert seen[4:] == [
        *("Half", "<reset>", "retry_scheduled", "acquired", "attempt_started"),
        *("Whole.", "step_committed", "turn_finished"),
    ]


async def test_the_cursor_of_a_receipt_stands_just_before_its_command() -> None:
    async with Engine("memory://", [Agent(name="a", model="scripted")]) as e:
        await told(e, await e.create_chat("a", "Go.", chat_id="c"))
        first = await e.send_message("c", "More.", command_id="once")
        seen = await told(e, first)
        assert seen[0] == "message_sent"
        again = await e.send_message("c", "More.", command_id="once")
        assert (again.repeated, again.cursor) == (True, first.cursor)


@pytest.mark.parametrize("ahead", [1, 1000])
async def test_a_cursor_that_is_ahead_of_its_chat_is_refused(ahead: int) -> None:
    async with Engine("memory://", [Agent(name="a", model="scripted")]) as engine:
        receipt = await engine.create_chat("a", "Hello.")
        version = (await engine.settled(receipt.chat)).control.version
        cursor = Cursor(version=version + ahead).encode()
        why = f"it is behind version {version + ahead}, and chat {receipt.chat} has {version} events"
        with pytest.raises(CursorInvalid, match=why):
            await anext(engine.stream(receipt.chat, cursor))
