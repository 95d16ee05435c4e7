"""Logs whose events are sound and odd: the debugger and the pictures show each version of them, or say why not."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import msgspec
import pytest
from msgspec.structs import replace
from rich.text import Text

from chatfold.pictures.gantt import timeline_svg
from chatfold.pictures.machine import machine_svg, way_of
from chatfold.pictures.report import report_html
from chatfold.pictures.spans import spans
from chatfold.stepper import views
from chatfold.stepper.app import StepApp
from chatfold.stepper.as_test import as_test
from chatfold.stepper.longlog import EventLines, LongLog
from chatfold.stepper.model import Stepper
from chatfold.stepper.panes import Timeline
from chatfold.stepper.prompt_view import prompt
from events.codec import decode_each
from events.envelope import StoredEvent
from events.errors import EventsError
from tests.chatfold.cli.kit import Cli
from tests.chatfold.stepper.kit import changed, of_a_newer_release, talk

STEERING: Final = "a\x00\x1b[2J\x07\r\n\x85\x9b31m\u202eb"
WIDE: Final = "\u65e5\u672c\u8a9e\U0001d54f\U0001f3f3\ufe0f\u200d\U0001f308" * 200
LONG: Final = "x" * 10_000_000
WIDTH: Final = 34
LOOKING: Final = ("show", "replay", "replay --at 5", "why", "doctor", "verify", "rerun", "diff --at 1 --to 5", "report")


def saying(text: str) -> Callable[[StoredEvent], StoredEvent]:
    """Have each content that is a text be this one."""

    def change(event: StoredEvent) -> StoredEvent:
        if not event.content:
            return event
        items = [{**each, "v": text} if "v" in each else each for each in msgspec.json.decode(event.content)]
        return replace(event, content=msgspec.json.encode(items))

    return change


def around(**fields: Callable[[int], Any]) -> Callable[[StoredEvent], StoredEvent]:
    """Have the envelope say something else, by its version."""

    def change(event: StoredEvent) -> StoredEvent:
        envelope = event.envelope
        return replace(event, envelope=replace(envelope, **{k: of(envelope.version) for k, of in fields.items()}))

    return change


def facts(value: object) -> Callable[[StoredEvent], StoredEvent]:
    """Have the facts of version 6 be of another shape."""
    return lambda event: replace(event, facts=msgspec.json.encode(value)) if event.envelope.version == 6 else event


def steering_words(event: StoredEvent) -> StoredEvent:
    """Have decisions say more than rules and actions do."""
    said = msgspec.json.decode(event.facts)
    if "decision" in said:
        words = {key: value + STEERING for key, value in said["decision"].items() if key in ("rule", "action")}
        said["decision"] = {**said["decision"], **words, "passed": [STEERING]}
    return replace(event, facts=msgspec.json.encode(said))


SHAPES: Final[tuple[object, ...]] = ({}, [], None, 7, {"step": 2**70}, {"result": []}, {"result": {"call": STEERING}})
SHOWN: Final[Mapping[str, Callable[[StoredEvent], StoredEvent]]] = {
    "empty texts": saying(""),
    "steering texts": saying(STEERING),
    "wide texts": saying(WIDE),
    "long texts": lambda event: saying(LONG)(event) if event.envelope.version == 22 else event,
    "steering words": steering_words,
    "late": around(recorded_at=lambda version: 2**62 + version),
    "beyond any calendar": around(recorded_at=lambda _: 10**30),
    "early": around(recorded_at=lambda version: -(2**62) - version),
    "to and fro": around(recorded_at=lambda version: (-1) ** version * 2**62),
    "back": around(recorded_at=lambda version: 10**15 - version * 10**9),
    "another status": around(source=lambda _: "none", dest=lambda _: "error"),
    "strange commands": around(command=lambda _: STEERING),
}
UNREADABLE: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    **{f"facts {value}": partial(changed, change=facts(value)) for value in SHAPES},
    "a type of steering letters": lambda data: of_a_newer_release(data, 6, STEERING),
}


@pytest.fixture(scope="module")
def data() -> bytes:
    return asyncio.run(talk(2))


def log_of(data: bytes) -> LongLog:
    return LongLog(name="odd", chat="help-1", events=EventLines(data, "odd"), blobs={})


def panes(stepper: Stepper) -> Iterator[Text]:
    """Yield what is shown where it stands; in the place of what cannot be shown, why."""
    shown: list[Callable[[], Text]] = [
        lambda: views.machine(stepper.state.control, stepper.event),
        lambda: views.changed(stepper),
        lambda: views.state(stepper.state),
        lambda: views.event(stepper.event),
        lambda: prompt(stepper.prompt(stepper.version), stepper.declared()),
        lambda: views.status_line(stepper, None, following=False),
    ]
    for each in shown:
        try:
            yield each()
        except EventsError as error:
            yield views.failed(error)


def steering(text: str) -> list[str]:
    return [each for each in text if unicodedata.category(each) == "Cc" and each not in "\n\t"]


@pytest.mark.parametrize("name", SHOWN)
def test_each_version_of_an_odd_log_is_shown(data: bytes, name: str) -> None:
    stepper = Stepper(log_of(changed(data, SHOWN[name])))
    for version in range(26):
        stepper.go(version)
        assert steering("".join(text.plain for text in panes(stepper))) == []
        if version:
            row = views.row(stepper.points.recorded(version), WIDTH)
            assert (row.cell_len <= WIDTH, steering(row.plain), "\n" in row.plain) == (True, [], False)
            moment = stepper.moment()
            assert moment is not None
            compile(as_test(moment, "odd", "odd.jsonl"), "copied", "exec")


@pytest.mark.parametrize("name", SHOWN)
def test_each_picture_of_an_odd_log_is_drawn(data: bytes, name: str) -> None:
    events = list(decode_each(log_of(changed(data, SHOWN[name])).events))
    for drawn in (
        machine_svg("status", way_of(events, "status"), times=True),
        machine_svg("execution", way_of(events, "execution"), times=True),
        timeline_svg(list(spans(events))),
    ):
        ET.fromstring(drawn)  # noqa: S314 -- a picture of ours
    assert steering(report_html(events).replace("\r\n", "\n")) == []


@pytest.mark.parametrize("name", UNREADABLE)
def test_where_an_event_cannot_be_read_each_pane_says_so_on_one_line(data: bytes, name: str) -> None:
    stepper = Stepper(log_of(UNREADABLE[name](data)), 0)
    for version in range(26):
        stepper.go(version)
        said = [text.plain for text in panes(stepper)]
        assert steering("".join(said)) == []
        # The prompt needs the whole log; the event and the line at the bottom are of their version alone.
        unread = ["version 6" in each and "\n" not in each for each in said]
        assert unread == [version >= 6, version >= 6, version >= 6, version == 6, True, False]


@pytest.mark.parametrize("name", ["steering words", "a type of steering letters"])
async def test_an_odd_log_is_walked_through_on_a_screen(data: bytes, name: str) -> None:
    odd = UNREADABLE[name](data) if name in UNREADABLE else changed(data, SHOWN[name])
    app = StepApp(Stepper(log_of(odd), 0), "odd.jsonl")
    async with app.run_test(size=(80, 24)) as pilot:
        await app.workers.wait_for_complete()
        for version in (6, 25):
            app.stepper.go(version)
            await pilot.press(*"1234")
            await app.workers.wait_for_complete()
        timeline = app.query_one(Timeline)
        timeline.scroll_home(animate=False)
        lines = [timeline.render_line(y).text for y in range(timeline.size.height)]
        assert [line for line in lines if steering(line) or "\n" in line] == []
        assert app.stepper.version == 25


@pytest.mark.parametrize("name", ["steering texts", "steering words", "a type of steering letters"])
def test_no_command_lets_a_log_steer_the_terminal(data: bytes, name: str, tmp_path: Path) -> None:
    odd = tmp_path / "odd.jsonl"
    odd.write_bytes(UNREADABLE[name](data) if name in UNREADABLE else changed(data, SHOWN[name]))
    for command in LOOKING:
        word, *rest = command.split()
        ended = Cli(tmp_path / "none.db").run(word, str(odd), *rest)
        assert "should not have happened" not in ended.err
        assert steering((ended.out + ended.err).replace("\r\n", "\n")) == [], word
