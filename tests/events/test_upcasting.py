"""Upcasting by deploying: schema 1 writes a log, later releases rename a field, then split one, and read that log."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from events.codec import decode
from events.content import Content
from events.digest import verify_chain
from events.effects import EventBase
from events.errors import MalformedEvent, NewerSchema, UnknownEventType
from events.ids import ChatId
from events.logfile import header_of, read_log, write_log
from events.upcasting import REGISTRY, Facts, Registry
from events.vocabulary import EVENT_TYPES
from tests.events.logs import Log


class NotedV1(EventBase, frozen=True, kw_only=True):
    """As the first release wrote it."""

    type = "noted"
    trigger = "note"
    who: str
    text: Content


class NotedV2(EventBase, frozen=True, kw_only=True):
    """Schema 2: ``who`` was renamed."""

    type = "noted"
    trigger = "note"
    schema = 2
    author: str
    text: Content


class NotedV3(EventBase, frozen=True, kw_only=True):
    """Schema 3: ``author`` was split, and contents are counted."""

    type = "noted"
    trigger = "note"
    schema = 3
    author_name: str
    author_team: str
    text: Content
    contents: int = 0


def rename_who(facts: Facts, contents: int) -> Facts:
    facts["author"] = facts.pop("who")
    return facts


def split_author(facts: Facts, contents: int) -> Facts:
    name, _, team = facts.pop("author").partition("@")
    return {**facts, "author_name": name, "author_team": team, "contents": contents}


RELEASE_1 = Registry([NotedV1])
RELEASE_2 = Registry([NotedV2], {"noted": [rename_who]})
RELEASE_3 = Registry([NotedV3], {"noted": [rename_who, split_author]})


def old_log() -> Log:
    log = Log(registry=RELEASE_1)
    log.add(NotedV1(who="ann@ops", text=Content("the first note")))
    log.add(NotedV1(who="bob@dev", text=Content({"second": ["note"]})))
    return log


def read(log: Log, registry: Registry, **how: Any) -> list[Any]:
    return [decode(stored, registry=registry, **how).event for stored in log.events]


def test_the_next_release_reads_the_old_log_with_the_field_renamed() -> None:
    assert read(old_log(), RELEASE_2) == [
        NotedV2(author="ann@ops", text=Content("the first note")),
        NotedV2(author="bob@dev", text=Content({"second": ["note"]})),
    ]


def test_the_release_after_it_takes_both_steps() -> None:
    assert read(old_log(), RELEASE_3) == [
        NotedV3(author_name="ann", author_team="ops", text=Content("the first note"), contents=1),
        NotedV3(author_name="bob", author_team="dev", text=Content({"second": ["note"]}), contents=1),
    ]
    bare = read(old_log(), RELEASE_3, content=False)
    assert [(event.author_name, event.text.available) for event in bare] == [("ann", False), ("bob", False)]


def test_a_log_written_by_three_releases_reads_under_the_last() -> None:
    log = old_log()
    log.registry = RELEASE_2
    log.add(NotedV2(author="cid@dev", text=Content("third")))
    log.registry = RELEASE_3
    log.add(NotedV3(author_name="dan", author_team="ops", text=Content("fourth")))
    assert [event.author_name for event in read(log, RELEASE_3)] == ["ann", "bob", "cid", "dan"]
    assert [stored.envelope.schema for stored in log.events] == [1, 1, 2, 3]
    verify_chain(log.events)
    with pytest.raises(NewerSchema, match="'noted' at version 3 has schema 2, this release reads up to 1"):
        read(log, RELEASE_1)
    with pytest.raises(NewerSchema, match="version 4 has schema 3, this release reads up to 2"):
        read(log, RELEASE_2)


def test_digests_and_export_go_by_the_bytes_that_were_written() -> None:
    log = old_log()
    header = header_of(ChatId("chat-1"), log.events, release="1")
    exported = b"".join(write_log(header, log.events))
    for registry in (RELEASE_2, RELEASE_3):
        read(log, registry)
        assert verify_chain(log.events) == log.events[-1].digest
        assert b"".join(write_log(header, log.events)) == exported
    assert read_log(exported.splitlines(keepends=True), "old.jsonl").events == tuple(log.events)


def test_facts_that_no_step_can_mend_are_malformed() -> None:
    stored = old_log().events[0]
    broken = msgspec.structs.replace(stored, facts=b'{"text":[0,1]}')
    with pytest.raises(MalformedEvent, match="version 1"):
        decode(broken, registry=RELEASE_2)
    zero = msgspec.structs.replace(stored, envelope=msgspec.structs.replace(stored.envelope, schema=0))
    with pytest.raises(MalformedEvent, match="schema"):
        decode(zero, registry=RELEASE_2)


def test_an_unknown_type_is_never_skipped() -> None:
    with pytest.raises(UnknownEventType, match="'noted' at version 1"):
        decode(old_log().events[0])


def test_a_registry_refuses_steps_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="schema 2 and has 0 upcast steps"):
        Registry([NotedV2])
    with pytest.raises(ValueError, match="schema 1 and has 1 upcast steps"):
        Registry([NotedV1], {"noted": [rename_who]})
    with pytest.raises(ValueError, match="unknown event types: sung"):
        Registry([NotedV1], {"sung": [rename_who]})
    with pytest.raises(ValueError, match="two classes"):
        Registry([NotedV1, NotedV2], {"noted": [rename_who]})


def test_the_registry_of_this_release_knows_all_its_types() -> None:
    assert dict(REGISTRY.types) == EVENT_TYPES
