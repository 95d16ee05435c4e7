"""Warm chats: what a process knows need not be read again, is never believed against the log, and is bounded."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from chatfold.testing.stores import CountingStore
from chatstate import commands as c
from chatstate.errors import TransitionNotAllowed
from events.content import Content
from events.ids import ChatId, CommandId, message_id
from events.messages import Message, Step, Usage
from events.parts import TextPart
from events.records import Actor
from generation.prompt import Prompt
from store.append import CommandIdentity, Journal, Outcome, Plan, PlanRun
from store.memory import MemoryStore
from store.warm import WarmChats, size_of_message
from tests.chatstate import build as b

CHAT = ChatId("chat")


@pytest.fixture
async def store() -> AsyncIterator[CountingStore]:
    async with CountingStore(MemoryStore(clock=lambda: 7_000_000)) as opened:
        yield opened


def journal_on(store: CountingStore, limit: int = 1 << 20) -> Journal:
    return Journal(store, lambda: bytes(16), warm=WarmChats(limit))


def doing(*commands: c.AnyCommand) -> Plan:
    def plan(run: PlanRun) -> None:
        for command in commands:
            run.do(command)

    return plan


async def give(journal: Journal, command: str, *commands: c.AnyCommand, unread: bool = True) -> Outcome:
    identity = CommandIdentity(command=CommandId(command), actor=Actor(kind="user", id="ann"))
    estimate = (lambda: 9_000_000) if unread else None
    return await journal.execute(CHAT, doing(*commands), identity, estimate=estimate)


def counts(store: CountingStore) -> tuple[int, ...]:
    return store.count("load_header"), store.count("read_events"), store.count("append")


async def test_a_warm_chat_is_not_read_at_all(store: CountingStore) -> None:
    journal = journal_on(store)
    await give(journal, "c1", b.create())
    store.forget()
    outcome = await give(journal, "c2", b.send("Hi."))
    assert counts(store) == (0, 0, 1)
    assert outcome.recorded[0].envelope.recorded_at == 9_000_000
    store.forget()
    loaded = await journal.load(CHAT, transcript=True)
    assert counts(store) == (1, 0, 0)
    assert loaded is not None
    assert loaded.state == outcome.chat.state
    assert loaded.state.transcript is not None


async def test_what_others_appended_alone_is_read(store: CountingStore) -> None:
    mine, other = journal_on(store), journal_on(store)
    await give(mine, "c1", b.create())
    await give(other, "c2", b.send("One"))
    store.forget()
    loaded = await mine.load(CHAT, transcript=True)
    assert counts(store) == (1, 1, 0)
    cold = await journal_on(store, 0).load(CHAT, transcript=True)
    assert loaded is not None
    assert cold is not None
    assert loaded.state == cold.state


async def test_a_plan_on_what_was_not_read_runs_again_after_a_conflict(store: CountingStore) -> None:
    mine, other = journal_on(store), journal_on(store)
    await give(mine, "c1", b.create())
    await give(other, "c2", b.send("One"))
    outcome = await give(mine, "c3", b.send("Two"))
    assert outcome.recorded[0].version == 3
    assert len(outcome.chat.state.control.queue) == 2


async def test_a_refusal_is_told_of_what_was_read(store: CountingStore) -> None:
    mine, other = journal_on(store), journal_on(store)
    await give(mine, "c1", b.create(b.system("be kind")))
    await give(other, "c2", c.Archive())
    await give(mine, "c3", c.Unarchive())
    with pytest.raises(TransitionNotAllowed):
        await give(mine, "c4", c.Unarchive())


async def test_a_plan_that_does_nothing_has_seen_what_is_there(store: CountingStore) -> None:
    mine, other = journal_on(store), journal_on(store)
    await give(mine, "c1", b.create())
    await give(other, "c2", b.send("One"))
    assert (await give(mine, "c3")).chat.header.version == 2


@pytest.mark.odd_reruns("a user takes a chat by hand")
async def test_a_held_chat_is_read_since_its_holder_may_be_dead(store: CountingStore) -> None:
    journal = journal_on(store)
    await give(journal, "c1", b.create(), b.acquire())
    store.forget()
    await give(journal, "c2", b.send())
    assert counts(store) == (1, 0, 1)


async def test_a_deleted_chat_is_forgotten(store: CountingStore) -> None:
    journal = journal_on(store)
    await give(journal, "c1", b.create())
    assert await store.delete(CHAT, 1)
    assert await journal.load(CHAT, transcript=True) is None
    assert len(journal.warm) == 0
    assert journal.warm.size == 0


async def test_erased_content_is_not_kept_warm(store: CountingStore) -> None:
    mine, other = journal_on(store), journal_on(store)
    await give(mine, "c1", b.create(b.user("A secret.")))
    mine.warm.keep_beside(CHAT, "made of the secret")
    command = c.Erase(targets=(message_id(1, 0),))
    identity = CommandIdentity(command=CommandId("c2"), actor=Actor(kind="user"))
    await other.execute(CHAT, doing(command), identity, transcript=True)
    for journal in (mine, other):
        loaded = await journal.load(CHAT, transcript=True)
        assert loaded is not None
        part = loaded.state.messages[0].message.parts[0]
        assert isinstance(part, TextPart)
        assert part.text.erased
    assert mine.warm.beside(CHAT) is None


async def test_memory_is_bounded_and_the_oldest_goes_first() -> None:
    async with CountingStore(MemoryStore()) as store:
        limit = 10 * (size_of_message(message(1000)) + 4_000)
        journal = journal_on(store, limit)
        for number in range(50):
            identity = CommandIdentity(command=CommandId("c"), actor=Actor(kind="user"))
            chat = ChatId(f"chat-{number}")
            await journal.execute(chat, doing(b.create(message(1000))), identity)
            assert journal.warm.get(ChatId("chat-0")) is not None or number > 40
            assert journal.warm.size <= limit
        assert len(journal.warm) == 10


def message(characters: int) -> Message:
    return Message(role="user", parts=(TextPart(text=Content("x" * characters)),))


async def test_none_is_kept_where_nothing_may_be(store: CountingStore) -> None:
    journal = journal_on(store, 0)
    await give(journal, "c1", b.create())
    store.forget()
    await give(journal, "c2", b.send())
    assert counts(store) == (1, 0, 1)
    assert (len(journal.warm), journal.warm.size) == (0, 0)


async def test_the_estimate_is_near_what_is_allocated() -> None:
    async with MemoryStore() as store:
        writer = Journal(store, lambda: bytes(16), warm=WarmChats(0))
        chats = [ChatId(f"chat-{number}") for number in range(8)]
        for chat in chats:
            identity = CommandIdentity(command=CommandId("c"), actor=Actor(kind="user"))
            await writer.execute(chat, doing(b.create(*(talk(number) for number in range(200)))), identity)
        reader = Journal(store, lambda: bytes(16))
        gc.collect()
        tracemalloc.start()
        try:
            for chat in chats:
                loaded = await reader.load(chat, transcript=True)
                assert loaded is not None
                prompt = Prompt()
                prompt.build(loaded.state.messages)
                reader.warm.keep_beside(chat, prompt)
                del loaded, prompt
            gc.collect()
            allocated, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert len(reader.warm) == len(chats)
    assert allocated <= reader.warm.size <= 1.3 * allocated


def talk(number: int) -> Message:
    """Return a message of a long talk: users' and answers in turn, 500 characters each."""
    part = TextPart(text=Content(f"{number:04}" * 125))
    if number % 2:
        step = Step(
            provider="some", model="one", usage=Usage(input=1000, output=300), started_at=1 << 50, ended_at=1 << 50
        )
        return Message(role="assistant", parts=(part,), step=step)
    return Message(role="user", parts=(part,))


async def test_a_chat_that_is_held_stays_and_does_not_count(store: CountingStore) -> None:
    journal = journal_on(store, 1)
    journal.warm.hold(CHAT)
    journal.warm.hold(CHAT)
    await give(journal, "c1", b.create(message(1000)))
    assert (len(journal.warm), journal.warm.size) == (1, 0)
    journal.warm.let_go(CHAT)
    assert journal.warm.get(CHAT) is not None
    journal.warm.let_go(CHAT)
    assert (len(journal.warm), journal.warm.size) == (0, 0)


async def test_a_chat_that_is_held_again_is_counted_once(store: CountingStore) -> None:
    journal = journal_on(store)
    await give(journal, "c1", b.create(message(1000)))
    size = journal.warm.size
    journal.warm.keep_beside(CHAT, "beside")
    journal.warm.hold(CHAT)
    assert (journal.warm.size, journal.warm.beside(CHAT)) == (0, "beside")
    journal.warm.drop(CHAT)
    assert journal.warm.get(CHAT) is None
    await journal.load(CHAT, transcript=True)
    journal.warm.let_go(CHAT)
    assert (len(journal.warm), journal.warm.size) == (1, size)
