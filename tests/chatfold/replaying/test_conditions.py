"""Conditions: what each name reads, how they are joined, and what is said of one that cannot be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chatfold.replaying.bisect import first_where
from chatfold.replaying.conditions import NAMES, ConditionError, parse_condition
from events.replay import replay
from tests.chatfold.replaying.pair import recorded
from tests.meta.source import ROOT


def first(text: str, order: str = "A-1") -> int | None:
    found = first_where(recorded(order), parse_condition(text))
    return None if found is None else found.recorded.version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("version == 3", 3),
        ("event == chat_created", 1),
        ("trigger == record_policy", 3),
        ("actor == worker", 2),
        ("rule == D11", 4),
        ("action != none", 4),
        ("error != none", None),
        ("tool == look_up", 5),
        ("tool == none", 1),
        ("tool != none", 5),
        ("text contains 'Where is'", 1),
        ('text == "Let me see."', 5),
        ("text contains nonsense", None),
        ("status == running", 2),
        ("state == A0", 16),
        ("agent == support", 1),
        ("model == none", 1),
        ("holder != none", 2),
        ("messages >= 3", 8),
        ("open_calls > 0", 5),
        ("turns == 1", 1),
        ("attempt > 1", None),
        ("owed", 1),
        ("not owed", 21),
        ("owed == no", 21),
        ("interrupting or archived", None),
        ("steps == 1 and open_calls == 0", 8),
        ("status == error or status == running and not actor == worker or version == 4", 4),
        ("(status == error or status == running) and version > 5", 6),
    ],
)
def test_the_first_version_where_it_holds(text: str, version: int | None) -> None:
    assert first(text) == version


@pytest.mark.parametrize("name", NAMES)
def test_each_name_can_be_read_at_every_version(name: str) -> None:
    for step in replay(recorded("gone")):
        value = NAMES[name].read(step)
        expected = {"number": int, "yes or no": bool, "text": str | None, "texts": list}[NAMES[name].kind]
        assert isinstance(value, expected)


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("", 0, "expected a name"),
        ("colour == red", 0, "there is no 'colour'; there are version, event"),
        ("status", 6, "expected one of == != contains after status"),
        ("status ==", 9, "expected a value"),
        ("status < error", 7, "status is a text; it is compared by == != contains"),
        ("tokens contains 3", 7, "tokens is a number"),
        ("tokens > many", 9, "'many' is no whole number"),
        ("owed == maybe", 8, "'maybe' is no yes or no"),
        ("(owed", 5, "expected )"),
        ("owed owed", 5, "expected and, or, or the end"),
        ("status == 'err", 10, 'nothing begins with "\'"'),
        ('"status" == error', 0, "there is no 'status'"),
    ],
)
def test_what_is_said_of_one_that_cannot_be_read(text: str, place: int, why: str) -> None:
    with pytest.raises(ConditionError, match=re.escape(why)) as caught:
        parse_condition(text)
    assert caught.value.place == place


def test_the_page_has_the_table_of_names() -> None:
    page = Path(ROOT, "docs", "comparing.md").read_text(encoding="utf-8")
    for name, entry in NAMES.items():
        assert f"| `{name}` | {entry.kind} | {entry.meaning} |" in page
