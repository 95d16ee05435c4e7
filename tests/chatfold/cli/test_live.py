"""What is shown of a stream: previews once, what was committed for certain, and what became void said to be."""

import io

import pytest

from chatfold.cli.live import TextPrinter
from chatfold.cli.output import Channel
from chatfold.stream import EventItem, PartItem, PreviewReset, StreamItem
from events.content import Content
from events.envelope import Envelope, Recorded
from events.ids import CommandId
from events.messages import Message
from events.parts import Part, TextPart, ToolCallPart
from events.records import Actor, ErrorInfo
from events.vocabulary import Event, InterruptionFinished, RetryScheduled, StepCommitted, TurnFailed
from generation.parts import LiveCall, LiveReasoning, LiveText


def part(text: str, block: int = 0) -> PartItem:
    return PartItem(cursor="", part=LiveText(block=block, text=text))


def event(what: Event) -> EventItem:
    envelope = Envelope(
        version=1,
        type=what.type,
        schema=1,
        recorded_at=1,
        actor=Actor(kind="worker"),
        source="running",
        dest="running",
        command=CommandId("c"),
        index=0,
    )
    return EventItem(cursor="", recorded=Recorded(envelope=envelope, event=what))


def answer(*parts: Part | str, interrupted: bool = False) -> Message:
    made = tuple(TextPart(text=Content(each)) if isinstance(each, str) else each for each in parts)
    return Message(role="assistant", parts=made, interrupted=interrupted)


def committed(*parts: Part | str) -> EventItem:
    return event(StepCommitted(attempt=1, added=(answer(*parts),)))


def call() -> ToolCallPart:
    return ToolCallPart(name="look", arguments=Content("{}"), provider_call_id="1", runner="local")


RETRY = event(
    RetryScheduled(
        attempt=1,
        delay_us=1_500_000,
        not_before=2,
        error=ErrorInfo(kind="overloaded", message=Content("Busy."), detail=Content("too many of us")),
    )
)
AWAY = event(
    TurnFailed(error=ErrorInfo(kind="timeout", message=Content("Away."), detail=Content("no route to it\x07")))
)
RESET = PreviewReset(cursor="")


@pytest.mark.parametrize(
    ("items", "data", "talk"),
    [
        ([part("Hel"), part("lo"), committed("Hello")], "Hello\n", ""),
        ([committed("Hello")], "Hello\n", ""),
        ([part("Hel"), committed("Hello")], "Hello\n", ""),
        ([part("Help"), committed("Hello")], "Help\nHello\n", "[what the model said since is void]\n"),
        ([part("One."), part("Two.", 1), committed("One.", "Two.")], "One.\nTwo.\n", ""),
        (
            [part("Hel"), RESET, RETRY],
            "Hel\n",
            "[what the model said since is void]\n[overloaded: Busy. (too many of us) Again in 1.5 s]\n",
        ),
        (
            [part("Hel"), RESET, part("Hello"), committed("Hello")],
            "Hel\nHello\n",
            "[what the model said since is void]\n",
        ),
        ([part("a\x1b[2J"), committed("a\x1b[2J")], "a\\x1b[2J\n", ""),
        ([part("line\n"), committed("line\n", call())], "line\n", "[calls look({})]\n"),
        (
            [PartItem(cursor="", part=LiveCall(block=0, name="look", arguments="{}")), committed(call())],
            "",
            "[calls look({})]\n",
        ),
        (
            [PartItem(cursor="", part=LiveReasoning(block=0, text="Hm.")), part("So", 1), committed("So")],
            "So\n",
            "Hm.\n",
        ),
        (
            [part("Hel"), event(InterruptionFinished(added=(answer("Hel", interrupted=True),)))],
            "Hel\n",
            "[interrupted here; what was said is kept]\n",
        ),
        ([AWAY], "", "[failed, timeout: Away. (no route to it\\x07)]\n"),
        ([event(InterruptionFinished())], "", "[interrupted]\n"),
    ],
)
def test_what_is_shown(items: list[StreamItem], data: str, talk: str) -> None:
    out, err = io.StringIO(), io.StringIO()
    printer = TextPrinter(Channel(out), Channel(err))
    for item in items:
        printer.show(item)
    printer.pause()
    assert (out.getvalue(), err.getvalue()) == (data, talk)
