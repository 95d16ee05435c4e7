"""Events and their stored bytes: every event comes back as it was, and what cannot be stored is refused."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings

from events.codec import decode
from events.content import Absent, Content
from events.contentlist import content_blobs, erase_items
from events.digest import GENESIS, chain, verify_chain
from events.encoding import encode
from events.envelope import Recorded, StoredEvent
from events.errors import (
    ContentUnavailable,
    InvalidValue,
    MalformedEvent,
    NewerSchema,
    TooLarge,
    UnknownEventType,
)
from events.ids import CommandId
from events.messages import Message, Step, Usage
from events.parts import TextPart, ToolCallPart
from events.paths import contents
from events.records import Actor, ModelPolicy, Policy
from events.values import Limits
from events.vocabulary import (
    AttemptStarted,
    ChatArchived,
    ChatUnarchived,
    Event,
    LabelsChanged,
    MessageSent,
    PolicyRecorded,
    RetentionChanged,
    TitleChanged,
)
from tests.events.logs import Draft, Log, log_of, text
from tests.events.strategies import DRAFTS, EVENTS

PROPERTY = settings(derandomize=True, max_examples=300, deadline=None)
SMALL_BLOBS = Limits(blob_bytes=8)


@PROPERTY
@given(EVENTS, DRAFTS)
def test_an_event_comes_back_as_it_was_and_gives_the_same_bytes_again(event: Event, draft: Draft) -> None:
    stored = Log().add(event, draft)
    recorded = decode(stored)
    assert recorded.event == event
    assert recorded.envelope == stored.envelope
    assert Log().add(recorded.event, draft) == stored


@PROPERTY
@given(EVENTS)
def test_values_in_blobs_come_back_too(event: Event) -> None:
    log = Log(limits=SMALL_BLOBS)
    stored = log.add(event)
    assert decode(stored, blobs=log.blobs).event == event
    assert set(content_blobs(stored.content)) == set(log.blobs)
    assert stored.digest == Log().add(event).digest, "where a value lies is no part of the digest"


@PROPERTY
@given(EVENTS)
def test_facts_alone_keep_everything_but_the_values(event: Event) -> None:
    stored = Log().add(event)
    bare = decode(stored, content=False).event
    assert [(path, content.size) for path, content in contents(bare)] == [
        (path, content.size) for path, content in contents(event)
    ]
    assert not any(content.available for _, content in contents(bare))
    erased = decode(msgspec.structs.replace(stored, content=erase_items(stored.content))).event
    assert all(content.erased for _, content in contents(erased))


def test_facts_hold_no_tag_and_no_content() -> None:
    stored = log_of([MessageSent(added=(text("so private"),))]).events[0]
    assert stored.facts == b'{"added":[{"role":"user","parts":[{"kind":"text","text":[0,10]}]}]}'
    assert b"private" in stored.content


def test_an_event_without_content_has_empty_content() -> None:
    assert log_of([ChatArchived()]).events[0].content == b""


def test_equal_events_give_equal_bytes_however_their_values_were_made() -> None:
    def call(policy: str) -> MessageSent:
        part = ToolCallPart(
            name="n", arguments=Content("{}"), provider_call_id="", runner="local", crash=cast("Any", policy)
        )
        return MessageSent(added=(Message(role="assistant", parts=(part,)),))

    assert log_of([call("report")]).events == log_of([call("reports"[:-1])]).events


def test_size_limits_of_event_and_message() -> None:
    limits = Limits(event_bytes=2_000, message_bytes=5_000, blob_bytes=500)
    many = tuple(TextPart(text=Content("x" * 100)) for _ in range(16))
    with pytest.raises(TooLarge, match="message_sent") as caught:
        log_of([MessageSent(added=(Message(role="user", parts=many),))], limits)
    assert caught.value.size > caught.value.limit == 2_000
    two = MessageSent(added=(text("x" * 3_000), text("y" * 3_000)))
    assert len(log_of([two], limits).blobs) == 2
    with pytest.raises(TooLarge, match=r"\$\.added\[1\]"):
        log_of([MessageSent(added=(text("x"), text("y" * 6_000)))], limits)
    with pytest.raises(TooLarge, match="title_changed"):
        log_of([TitleChanged(title=Content("y" * 6_000))], limits)


def test_texts_over_the_limit_go_to_blobs_by_their_digest() -> None:
    log = log_of([MessageSent(added=(text("x" * 40_000), text("y"), text("x" * 40_000)))])
    value = b'"' + b"x" * 40_000 + b'"'
    assert log.blobs == {hashlib.sha256(value).hexdigest(): value}
    assert content_blobs(log.events[0].content) == tuple(log.blobs)
    assert len(log.events[0].content) < 1_000
    missing = decode(log.events[0]).event
    assert isinstance(missing, MessageSent)
    part = missing.added[0].parts[0]
    assert isinstance(part, TextPart)
    with pytest.raises(ContentUnavailable, match="not loaded"):
        _ = part.text.value


def test_the_largest_values_go_to_blobs_as_long_as_the_event_is_over_its_limit() -> None:
    limits = Limits(event_bytes=2_000, message_bytes=5_000, blob_bytes=1_000)
    sizes = (300, 500, 10, 400, 500, 400)
    event = MessageSent(added=tuple(text(chr(97 + place) * size) for place, size in enumerate(sizes)))
    log = log_of([event], limits)
    assert sorted(log.blobs.values()) == [b'"' + b"b" * 500 + b'"', b'"' + b"e" * 500 + b'"']
    assert log_of([event], limits).events == log.events
    stored = log.events[0]
    assert len(stored.facts) + len(stored.content) <= limits.event_bytes
    assert decode(stored, blobs=log.blobs).event == event
    verify_chain(log.events, log.blobs)
    assert log_of([MessageSent(added=(text("x" * 1_000 + "y"),))], limits).blobs


def test_an_event_that_fits_keeps_its_values() -> None:
    event = MessageSent(added=tuple(text("x" * 30_000) for _ in range(34)))
    assert log_of([event]).blobs == {}


def test_a_message_of_many_parts_may_have_16_mib() -> None:
    parts = tuple(TextPart(text=Content(f"{place:5}" + "x" * 16_000)) for place in range(1_000))
    log = log_of([MessageSent(added=(Message(role="user", parts=parts),))])
    assert decode(log.events[0], blobs=log.blobs).event == MessageSent(added=(Message(role="user", parts=parts),))


@pytest.mark.parametrize(
    ("event", "path"),
    [
        (
            MessageSent(added=(Message(role="user", parts=(TextPart(text=Content("\ud800", 3)),)),)),
            "$.added[0].parts[0].text",
        ),
        (TitleChanged(title=Content({"a": [1, float("nan")]}, 1)), "$.title.a[1]"),
        (TitleChanged(title=Content(2**70, 1)), "$.title"),
        (TitleChanged(title=Content(cast("Any", {1: "x"}), 1)), "$.title"),
        (LabelsChanged(labels={"ok": "\udfff"}), "$.labels.ok"),
        (LabelsChanged(labels={"no \ud800": "x"}), r"$.labels['no \ud800']"),
        (RetentionChanged(retention_us=2**64), "$.retention_us"),
    ],
)
def test_what_cannot_be_stored_exactly_is_refused_with_its_path(event: Event, path: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        log_of([event])
    assert caught.value.path == path


def test_a_surrogate_in_the_envelope_is_refused() -> None:
    with pytest.raises(InvalidValue, match="command"):
        Log().add(ChatArchived(), Draft(command=CommandId("\ud800")))
    with pytest.raises(InvalidValue, match=r"actor\.id"):
        Log().add(ChatArchived(), Draft(actor=Actor(kind="user", id="\ud800")))


@pytest.mark.parametrize(
    "event",
    [
        RetentionChanged(retention_us=cast("Any", "1")),
        RetentionChanged(retention_us=cast("Any", 1.5)),
        LabelsChanged(labels=cast("Any", {1: "x"})),
        MessageSent(added=cast("Any", [text("a list is no tuple")])),
        MessageSent(added=(Message(role=cast("Any", "robot"), parts=()),)),
        TitleChanged(title=cast("Any", object())),
        AttemptStarted(attempt=1, kind="tools", decision=cast("Any", None)),
    ],
)
def test_an_event_with_wrong_types_is_refused_before_it_is_stored(event: Event) -> None:
    with pytest.raises((MalformedEvent, InvalidValue)):
        log_of([event])


def test_a_content_that_is_not_at_hand_cannot_be_stored_but_an_erased_one_can() -> None:
    with pytest.raises(ContentUnavailable, match=r"\$\.title"):
        log_of([TitleChanged(title=Content(Absent.NOT_LOADED, 5))])
    event = TitleChanged(title=Content(Absent.ERASED, 5))
    assert decode(log_of([event]).events[0]).event == event


def test_unknown_type_and_newer_schema_are_named() -> None:
    stored = log_of([ChatArchived()]).events[0]

    def altered(**changes: Any) -> StoredEvent:
        return msgspec.structs.replace(stored, envelope=msgspec.structs.replace(stored.envelope, **changes))

    with pytest.raises(UnknownEventType, match="'chat_sung' at version 1"):
        decode(altered(type="chat_sung"))
    with pytest.raises(NewerSchema, match="schema 2, this release reads up to 1"):
        decode(altered(schema=2))


@pytest.mark.parametrize(
    ("facts", "content"),
    [
        (b"", b""),
        (b"[]", b""),
        (b"{", b""),
        (b'{"title":[0,5]}', b""),
        (b'{"title":[-1,5]}', b'[{"h":"00"}]'),
        (b'{"title":[0]}', b'[{"h":"00"}]'),
        (b'{"title":"x"}', b'[{"h":"00"}]'),
        (b'{"title":[0,true]}', b'[{"h":"00"}]'),
        (b'{"title":[0,5],"x":1}', b'[{"h":"00"}]'),
        (b'{"title":[0,5]}', b"{}"),
        (b'{"title":[0,5]}', b"[{}]"),
        (b'{"title":[0,5]}', b'[{"s":"00","v":"\xff"}]'),
        (b'{"title":[0,5]}', b'[{"s":"00","v":"\\ud800"}]'),
        (b"[" * 100_000, b""),
        (b'{"title":[0,5]}', b"[" * 100_000),
    ],
)
def test_bytes_that_are_no_event_are_malformed(facts: bytes, content: bytes) -> None:
    stored = log_of([TitleChanged(title=Content("x"))]).events[0]
    with pytest.raises(MalformedEvent, match="version 1"):
        decode(msgspec.structs.replace(stored, facts=facts, content=content))


def test_a_short_salt_is_refused() -> None:
    recorded = decode(log_of([ChatArchived()]).events[0])
    with pytest.raises(ValueError, match="salt"):
        encode(recorded, salt=b"short", previous_digest=GENESIS)


def test_an_envelope_of_another_event_is_refused() -> None:
    recorded = decode(log_of([ChatArchived()]).events[0])
    wrong = Recorded(recorded.envelope, ChatUnarchived())
    with pytest.raises(MalformedEvent, match="chat_archived"):
        encode(wrong, salt=bytes(16), previous_digest=GENESIS)


def test_a_policy_with_every_default_written_out_reads_back_equal() -> None:
    policy = Policy(agent="a", revision="1", model=ModelPolicy(provider="p", name="m"), max_steps=int("1200"))
    usage = Step(provider="p", model="m", usage=Usage())
    log = log_of([PolicyRecorded(digest="d", policy=policy)])
    assert decode(log.events[0]).event == PolicyRecorded(digest="d", policy=policy)
    assert usage.usage == Usage()


def test_threads_do_not_disturb_each_other() -> None:
    logs = [log_of([MessageSent(added=tuple(text(f"{n} {i}") for i in range(20)))]) for n in range(4)]
    expected = [decode(log.events[0]).event for log in logs]
    failures: list[int] = []

    def run(at: int) -> None:
        for _ in range(300):
            event = decode(logs[at].events[0]).event
            if event != expected[at] or log_of([event]).events != logs[at].events:
                failures.append(at)

    _in_threads(run, 4)
    assert failures == []


def _in_threads(run: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=run, args=(at,)) for at in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_the_digest_is_that_of_the_chain() -> None:
    first, second = log_of([ChatArchived(), TitleChanged(title=Content("x"))]).events
    assert first.digest == chain(GENESIS, first.envelope, first.facts, first.content)
    assert second.digest == chain(first.digest, second.envelope, second.facts, second.content)
