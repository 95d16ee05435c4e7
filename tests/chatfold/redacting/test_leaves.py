"""What of a content is still there is seen by the check, however little: forged logs that only look redacted."""

from __future__ import annotations

import base64
from typing import Final

import pytest

from chatfold.redacting.check import check_redacted
from chatfold.redacting.leaves import file_stays, pieces, stays
from chatfold.redacting.rules import KINDS, RedactionRules
from events.content import Content, Json
from events.messages import Message
from events.parts import FilePart, TextPart
from events.vocabulary import ChatCreated, MessageSent
from tests.events.logs import Log, log_of

NAMES: Final = RedactionRules(names=dict.fromkeys(KINDS, "keep"))
_PICTURE: Final = b"\x89PNG\r\n\x1a\n"


def said(value: Json, *, owner: str = "ada", agent: str = "support", data: bytes = b"") -> Log:
    text = TextPart(text=Content(value))
    file = FilePart(media_type="image/png", data=Content(base64.b64encode(data).decode()))
    return log_of(
        [
            ChatCreated(chat="chat-1", owner=owner, agent=agent, release="0.1.0"),
            MessageSent(added=(Message(role="user", parts=(text, file)),)),
        ]
    )


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("hunter2", "hunter2"),
        ("no", "no"),
        ("4711", "4711"),
        ({"pin": 4711}, {"xyz": 4711}),
        ({"pin": "4711"}, {"xyz": "4711"}),
        ('{"pass": "hunter2"}', '{"word": "hunter2"}'),
        ('{"hunter2": "one"}', '{"hunter2": "two"}'),
        ({"hunter2": [1, "one"]}, {"hunter2": [2, "two"]}),
        ("0e4111111111111111", "0e4111111111111111"),
        ('{"id": 3e-4111111111111111}', '{"xx": 8e-4111111111111111}'),
        (-1234.5, -1234.5),
    ],
)
def test_what_is_left_at_its_place_is_found(was: Json, now: Json) -> None:
    found = check_redacted(said(was), said(now), NAMES).problems
    assert any("has something of the original's still at its place" in each for each in found)
    assert stays(was, now, ())


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ({"path": "one"}, {"path": "two"}),
        ("", ""),
        (" \n", " \n"),
        ({"a": [0, 7, True, None, "", 999]}, {"b": [0, 7, True, None, "", 999]}),
        ("1e-300", "1e-300"),
        (1000000, 1000000),
    ],
)
def test_what_says_nothing_may_be_left(was: Json, now: Json) -> None:
    assert not stays(was, now, ("path",))


def test_a_field_may_stay_only_as_a_field() -> None:
    assert stays({"path": "path"}, {"path": "path"}, ("path",))
    assert stays(["path"], ["path"], ("path",))


def test_a_piece_of_a_text_that_is_left_elsewhere_is_found() -> None:
    was, now = said("the key is sk-abcdef12 now"), said("zzz zzz zz sk-abcdef12 zzz")
    assert "1 text of the original is still in it, the longest of 8 characters" in (
        check_redacted(was, now, NAMES).problems
    )
    assert list(pieces("a word, abcdef12; 12345678 and 4111111111111111")) == [
        "a word, abcdef12; 12345678 and 4111111111111111",
        "abcdef12",
        "4111111111111111",
    ]


def test_bytes_of_a_file_that_are_left_are_found() -> None:
    secret = b"the secret bytes"
    was, now = said("one", data=_PICTURE + b"x" * 16 + secret), said("two", data=_PICTURE + b"y" * 16 + secret)
    assert any("parts[1].data has something" in each for each in check_redacted(was, now, NAMES).problems)
    one, other = (base64.b64encode(_PICTURE + each).decode() for each in (b"", b"x"))
    assert not file_stays(one, one)
    assert not file_stays(other, other)  # of one byte there may be no other one left
    assert file_stays("no base64!", "no base64!")


@pytest.mark.parametrize(
    ("rules", "owner", "agent", "says"),
    [
        (RedactionRules(names={**NAMES.names, "users": "map"}), "ada", "support", "(users) is in clear"),
        (RedactionRules(names={**NAMES.names, "agents": "map"}), "ada", "support", "(agents) is in clear"),
        (
            RedactionRules(names=NAMES.names, rename={"agents": {"support": "helper"}}),
            "ada",
            "other",
            "(agents) has another than the rules give it, 'other'",
        ),
    ],
)
def test_a_name_in_clear_that_should_have_another_is_found(
    rules: RedactionRules, owner: str, agent: str, says: str
) -> None:
    made = said("two", owner=owner, agent=agent)
    assert any(says in each for each in check_redacted(said("one"), made, rules).problems)
    assert check_redacted(said("one"), said("two"), NAMES).problems == ()
