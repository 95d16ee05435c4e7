"""The short forms of a row's words: each has its word, none is a word, and rows with whole words read the same."""

from typing import get_args

import pytest

from events.envelope import SourceStatus, Status, StoredEvent
from events.records import ActorKind
from events.vocabulary import EVENT_TYPES
from store import shortening
from store.contract import NewEvent
from store.rows import EVENT_COLUMNS, event_of, event_row
from tests.store.making import CHAT, events

WORDS = {
    "TYPE": frozenset(EVENT_TYPES),
    "KIND": frozenset(get_args(ActorKind)),
    "STATUS": frozenset(get_args(Status)) | {word for part in get_args(SourceStatus) for word in get_args(part)},
}


@pytest.mark.parametrize("kind", sorted(WORDS))
def test_a_short_form_stands_for_one_word_and_is_none(kind: str) -> None:
    short, long = getattr(shortening, f"SHORT_{kind}"), getattr(shortening, f"LONG_{kind}")
    assert {long[form]: form for form in long} == short
    assert len(set(short.values())) == len(short)
    assert short.keys() <= WORDS[kind]
    assert not long.keys() & WORDS[kind]


def test_rows_of_short_and_of_whole_words_are_the_same_event() -> None:
    (new,) = events(1, "start")
    row = list(event_row(new)[: len(EVENT_COLUMNS)])
    assert event_of(CHAT, row) == new.stored
    assert whole(row, new) != row
    assert event_of(CHAT, whole(row, new)) == new.stored


def whole(row: list[object], new: NewEvent) -> list[object]:
    stored: StoredEvent = new.stored
    envelope = stored.envelope
    words = {"type": envelope.type, "actor_kind": envelope.actor.kind, "source": envelope.source, "dest": envelope.dest}
    return [words.get(column, value) for column, value in zip(EVENT_COLUMNS, row, strict=True)]
