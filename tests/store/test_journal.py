"""Plans against a store: conflicts run them again, refusals write nothing, repeats are found, little is read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from chatfold.testing.stores import CountingStore, LosingStore
from chatstate import commands as c
from chatstate.errors import (
    ChatForeign,
    ChatNotFound,
    ContentTooLarge,
    IdempotencyConflict,
    MessageNotFound,
    QueueFull,
    Refusal,
    TransitionNotAllowed,
)
from events.content import Content
from events.digest import verify_chain
from events.ids import ChatId, CommandId, WorkerId, message_id
from events.parts import TextPart
from events.records import Actor
from events.values import Limits
from store.append import CommandIdentity, Journal, Plan, PlanRun
from store.contract import Header, NewEvent
from store.errors import OutcomeUnknown, StoreError
from store.loading import load_chat, read_recorded
from store.memory import MemoryStore
from store.schema import READER_LEVEL
from tests.chatstate import build as b

CHAT = ChatId("chat")
USER = Actor(kind="user", id="ann")


@pytest.fixture
async def store() -> AsyncIterator[CountingStore]:
    async with CountingStore(LosingStore(MemoryStore())) as opened:
        yield opened


def journal_on(store: CountingStore, limits: Limits | None = None) -> Journal:
    return Journal(store, lambda: bytes(16), limits) if limits is not None else Journal(store, lambda: bytes(16))


def identity(command: str, fingerprint: bytes | None = b"print") -> CommandIdentity:
    return CommandIdentity(command=CommandId(command), actor=USER, fingerprint=fingerprint)


def doing(*commands: c.AnyCommand) -> Plan:
    def plan(run: PlanRun) -> None:
        for command in commands:
            run.do(command)

    return plan


@pytest.mark.odd_reruns("a chat is taken by hand, and nothing is begun")
async def test_commands_of_a_plan_are_one_append_under_one_command(store: CountingStore) -> None:
    worker = Actor(kind="worker", id="w1")

    def plan(run: PlanRun) -> None:
        run.do(b.create())
        run.do(b.acquire(), worker)

    outcome = await journal_on(store).execute(CHAT, plan, identity("c1"))
    assert store.count("append") == 1
    envelopes = [recorded.envelope for recorded in await read_recorded(store, CHAT)]
    assert [(e.version, e.command, e.index, e.actor) for e in envelopes] == [(1, "c1", 0, USER), (2, "c1", 1, worker)]
    assert outcome.chat.header == replace(await _header(store), control=b"")
    assert outcome.chat.holder_alive


async def test_a_plan_without_commands_writes_nothing(store: CountingStore) -> None:
    journal = journal_on(store)
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    store.forget()
    outcome = await journal.execute(CHAT, doing(), identity("c2"))
    assert (outcome.recorded, store.count("append")) == ((), 0)
    with pytest.raises(ChatNotFound):
        await journal.execute(ChatId("none"), doing(), identity("c3"))


async def test_a_refusal_halfway_writes_nothing(store: CountingStore) -> None:
    journal = journal_on(store)
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    with pytest.raises(TransitionNotAllowed):
        await journal.execute(CHAT, doing(b.send(), c.Resume()), identity("c2"))
    assert len(await read_recorded(store, CHAT)) == 1
    # A plan may go on without what was refused.

    def plan(run: PlanRun) -> None:
        try:
            run.do(c.Resume())
        except Refusal:
            run.do(b.send())

    outcome = await journal.execute(CHAT, plan, identity("c2"))
    assert [recorded.event.type for recorded in outcome.recorded] == ["message_sent"]


async def test_a_plan_on_a_stale_base_runs_again_on_the_news_alone(store: CountingStore) -> None:
    journal = journal_on(store)
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    base = await load_chat(store, CHAT, transcript=True)
    assert base is not None
    other = journal_on(store)
    await other.execute(CHAT, doing(b.send("One")), identity("c2"))
    await other.execute(CHAT, doing(b.send("Two")), identity("c3"))
    met: list[int] = []

    def plan(run: PlanRun) -> None:
        met.append(run.state.control.version)
        run.do(c.Interrupt())

    store.forget()
    outcome = await journal.execute(CHAT, plan, identity("c4"), transcript=True, base=base)
    assert met == [1, 3]
    assert outcome.recorded[0].version == 4
    counts = {name: store.count(name) for name in ("append", "load_header", "read_events", "find_command")}
    assert counts == {"append": 2, "load_header": 1, "read_events": 1, "find_command": 0}
    full = await load_chat(store, CHAT, transcript=True)
    assert full is not None
    assert full.state.control == outcome.chat.state.control


async def test_what_runs_again_may_be_refused_then(store: CountingStore) -> None:
    journal = journal_on(store)
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    base = await load_chat(store, CHAT, transcript=False)
    await journal.execute(CHAT, doing(b.send()), identity("c2"))
    limited = c.SendMessage(message=b.queued(), queue_limit=1)
    with pytest.raises(QueueFull):
        await journal.execute(CHAT, doing(limited), identity("c3"), base=base)
    assert len(await read_recorded(store, CHAT)) == 2


async def test_control_alone_costs_one_read_and_one_append(store: CountingStore) -> None:
    journal = journal_on(store)
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    store.forget()
    await journal.execute(CHAT, doing(b.send()), identity("c2"))
    assert dict(store.counts()) == {"load_header": 1, "append": 1}


async def test_a_repeat_is_found_and_other_content_is_refused(store: CountingStore) -> None:
    journal = journal_on(store)
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    first = await journal.execute(CHAT, doing(b.send(), b.send("More")), identity("c2"))
    again = await journal.execute(CHAT, doing(b.send(), b.send("More")), identity("c2"))
    assert (again.repeated, again.recorded) == (True, first.recorded)
    for fingerprint in (b"other", None):
        with pytest.raises(IdempotencyConflict) as refused:
            await journal.execute(CHAT, doing(b.send()), identity("c2", fingerprint))
        assert refused.value.state == "P1"
    # Where the plan would be refused now, a repeat still is one.
    assert (await journal.execute(CHAT, doing(b.create()), identity("c1"))).repeated
    assert len(await read_recorded(store, CHAT)) == 3


@pytest.mark.parametrize("lost", [["append"], ["append", "find_command"], ["append", "find_command", "load_header"]])
async def test_lost_replies(store: CountingStore, lost: list[str]) -> None:
    journal = journal_on(store)
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    inner = store.inner
    assert isinstance(inner, LosingStore)
    for name in lost:
        inner.lose(name)  # type: ignore[arg-type]
    for _ in range(len(lost)):
        try:
            outcome = await journal.execute(CHAT, doing(b.send()), identity("c2"))
        except StoreError:
            continue
        break
    else:
        outcome = await journal.execute(CHAT, doing(b.send()), identity("c2"))
    assert [recorded.version for recorded in outcome.recorded] == [2]
    assert len(await read_recorded(store, CHAT)) == 2


async def test_a_repeat_whose_reply_is_lost_too_is_not_taken_for_what_the_log_has(store: CountingStore) -> None:
    salts = count()
    journal = Journal(store, lambda: next(salts).to_bytes(16, "big"))
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    base = await load_chat(store, CHAT, transcript=True)
    inner = store.inner
    assert isinstance(inner, LosingStore)
    inner.lose("append")
    inner.lose("find_command")
    with pytest.raises(OutcomeUnknown):
        await journal.execute(CHAT, doing(b.send()), identity("c2"), base=base, transcript=True)
    # It stands in the log. The second try is told so, and that reply is lost as well.
    inner.lose("append")
    outcome = await journal.execute(CHAT, doing(b.send()), identity("c2"), base=base, transcript=True)
    assert outcome.repeated
    await journal.execute(CHAT, doing(b.send()), identity("c3"), base=outcome.chat, transcript=True)
    log = await store.read_events(CHAT)
    assert [event.envelope.version for event in log] == [1, 2, 3]
    verify_chain(log)


async def test_what_is_too_large_is_a_refusal(store: CountingStore) -> None:
    journal = journal_on(store, Limits(event_bytes=2000))
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    labels = c.SetLabels(labels={f"label {n}": "x" * 50 for n in range(100)})
    with pytest.raises(ContentTooLarge) as refused:
        await journal.execute(CHAT, doing(labels), identity("c2"))
    assert refused.value.trigger == "set_labels"
    assert refused.value.state == "P0"
    assert len(await read_recorded(store, CHAT)) == 1


async def test_what_is_too_large_names_the_state_that_it_met(store: CountingStore) -> None:
    journal = journal_on(store, Limits(message_bytes=2000))
    with pytest.raises(ContentTooLarge) as refused:
        await journal.execute(CHAT, doing(b.create(b.user("x" * 3000))), identity("c1"))
    assert refused.value.state == "N"
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    with pytest.raises(ContentTooLarge) as refused:
        await journal.execute(CHAT, doing(b.send(), b.send("x" * 3000)), identity("c2"))
    assert refused.value.state == "P1"


async def test_time_is_the_databases_unless_given_and_never_goes_back(store: CountingStore) -> None:
    journal = journal_on(store)
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    created = (await read_recorded(store, CHAT))[0].envelope.recorded_at
    assert created <= await store.now()
    later = await journal.execute(CHAT, doing(b.send()), identity("c2"), now=lambda: created + 5)
    assert later.recorded[0].envelope.recorded_at == created + 5
    earlier = await journal.execute(CHAT, doing(b.send()), identity("c3"), now=lambda: 7)
    assert earlier.recorded[0].envelope.recorded_at == created + 5


@pytest.mark.odd_reruns("a user takes a chat by hand")
async def test_a_plan_is_told_whether_the_lease_is_dead(store: CountingStore) -> None:
    journal, told = journal_on(store), []

    def plan(run: PlanRun) -> None:
        told.append(run.lease_dead)

    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    await journal.execute(CHAT, plan, identity("p1"))
    await store.heartbeat(WorkerId("w1"), 60_000_000, start=True)
    await journal.execute(CHAT, doing(b.acquire("w1")), identity("c2"))
    await journal.execute(CHAT, plan, identity("p2"))
    await store.forget_worker(WorkerId("w1"))
    await journal.execute(CHAT, plan, identity("p3"))
    assert told == [False, False, True]


async def test_a_title_is_kept_up_in_the_header(store: CountingStore) -> None:
    journal = journal_on(store)
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    for command, title in [("One", "One"), (None, None), ("Two", "Two")]:
        content = Content(command) if command is not None else None
        await journal.execute(CHAT, doing(c.SetTitle(title=content)), identity(f"t {command}"))
        assert (await _header(store)).title == title
    await journal.execute(CHAT, doing(b.send()), identity("c2"))
    assert (await _header(store)).title == "Two"


async def test_an_erasure_drops_content_in_the_same_append(store: CountingStore) -> None:
    journal = journal_on(store)
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    erase = c.Erase(targets=(message_id(1, 1),))
    await journal.execute(CHAT, doing(erase), identity("c2"), transcript=True)
    loaded = await load_chat(store, CHAT, transcript=True)
    assert loaded is not None
    parts = [part for item in loaded.state.need_transcript("test").messages for part in item.message.parts]
    assert [part.text.available for part in parts if isinstance(part, TextPart)] == [True, False]


async def test_an_erasure_reaches_what_left_history_and_refuses_what_never_was(store: CountingStore) -> None:
    journal = journal_on(store)
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    await journal.execute(
        CHAT, doing(c.EditMessage(target=message_id(1, 1), message=b.user("Else"))), identity("c2"), transcript=True
    )
    for wrong in (message_id(1, 7), message_id(2, 1), message_id(0, 0)):
        with pytest.raises(MessageNotFound):
            await journal.execute(CHAT, doing(c.Erase(targets=(wrong,))), identity(f"no {wrong}"), transcript=True)
    assert len(await read_recorded(store, CHAT)) == 2
    await journal.execute(CHAT, doing(c.Erase(targets=(message_id(1, 1),))), identity("c3"), transcript=True)
    created, edited, _ = await read_recorded(store, CHAT)
    texts = [part.text for each in (created, edited) for m in each.event.added for part in m.parts]  # type: ignore[union-attr]
    assert [text.available for text in texts] == [True, False, True]


async def test_a_foreign_chat_is_adopted_once(store: CountingStore) -> None:
    journal = journal_on(store)
    with pytest.raises(ChatNotFound):
        await journal.execute(CHAT, doing(c.Adopt()), identity("a0"))
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    with pytest.raises(TransitionNotAllowed):
        await journal.execute(CHAT, doing(c.Adopt()), identity("a1"))
    await _make_foreign(store)
    for command in (b.send(), b.acquire(), c.Interrupt(), c.SetPinned(pinned=True)):
        with pytest.raises(ChatForeign):
            await journal.execute(ChatId("far"), doing(command), identity("x"))
    outcome = await journal.execute(ChatId("far"), doing(c.Adopt(), b.send()), identity("a2"))
    assert not outcome.chat.header.foreign
    assert outcome.chat.state.control.epoch == 1


async def test_a_chat_of_a_newer_release_keeps_its_level_and_is_not_acquired(store: CountingStore) -> None:
    journal = journal_on(store)
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    await _copy(store, "newer", reader_level=READER_LEVEL + 1)
    outcome = await journal.execute(ChatId("newer"), doing(c.SetPinned(pinned=True)), identity("p1"))
    assert outcome.chat.header.reader_level == READER_LEVEL + 1
    with pytest.raises(TransitionNotAllowed, match="newer release"):
        await journal.execute(ChatId("newer"), doing(b.acquire()), identity("a1"))
    kept = await store.load_header(ChatId("newer"))
    assert kept is not None
    assert (kept.header.reader_level, kept.header.version) == (READER_LEVEL + 1, 2)


async def test_what_this_release_cannot_fold_whole_is_not_written_back(store: CountingStore) -> None:
    journal = journal_on(store)
    await journal.execute(CHAT, doing(b.create()), identity("c1"))
    control = (await _header(store)).control
    await _copy(store, "newer", reader_level=READER_LEVEL + 1, control=control[:-1] + b',"of_tomorrow":1}')
    with pytest.raises(TransitionNotAllowed, match="newer release"):
        await journal.execute(ChatId("newer"), doing(c.SetPinned(pinned=True)), identity("p1"))


async def _header(store: CountingStore) -> Header:
    loaded = await store.load_header(CHAT)
    assert loaded is not None
    return loaded.header


async def _make_foreign(store: CountingStore) -> None:
    await _copy(store, "far", foreign=True)


async def _copy(store: CountingStore, chat: str, **changes: Any) -> None:
    header = replace(await _header(store), chat=ChatId(chat), **changes)
    events = [NewEvent(stored=stored) for stored in await store.read_events(CHAT)]
    assert await store.import_chat(header, events, {})
