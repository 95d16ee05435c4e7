"""Loading through segments gives what the log folds to, whatever the chat went through."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatfold.verification import verify_chat
from chatstate import commands as c
from events.control import encode_control
from events.reducer import fold
from store import loading, open_store
from store.building import SegmentBuilder, build_segments
from store.contract import Store
from store.loading import LoadedChat, load_chat, read_recorded
from store.memory import MemoryStore
from tests.chatstate import build as b
from tests.chatstate.chat import Chat, trace
from tests.store.lives import CHAT, Life, forked, living
from tests.store.small_segments import small_segments

pytestmark = pytest.mark.odd_decisions("steps are begun by hand, under a policy that nobody recorded")

CHOICES = st.lists(st.integers(0, 10_000), min_size=10, max_size=60)


async def assert_same(store: Store, chat: LoadedChat) -> bool:
    """Compare what is loaded with what the log folds to; return whether segments were used."""
    stored = await store.load_header(chat.header.chat)
    assert stored is not None
    header = stored.header
    assert header.digest == chat.header.digest
    folded = fold(await read_recorded(store, header.chat))
    loaded = await load_chat(store, header.chat, transcript=True)
    assert loaded is not None
    assert trace(loaded.state) == trace(folded)
    assert encode_control(loaded.state.control) == header.control == encode_control(folded.control)
    kept = await store.read_segments(header.chat)
    used = await loading._from_segments(store, header)
    assert (used is not None) is (bool(kept) and header.version >= loading.TAIL), "segments were not taken"
    return used is not None


async def build(store: Store, chat: LoadedChat, way: int) -> None:
    """Build segments as a worker does, or as repair does, or not."""
    if way == 0:
        builder = SegmentBuilder(store)
        builder.offer(chat)
        await builder.idle()
    elif way == 1:
        await build_segments(store, chat.header.chat)


async def live_and_compare(choices: list[int], store: Store) -> int:
    used = 0
    async with store:
        chat: LoadedChat | None = None
        async for choice, life in living(store, choices):
            chat = life.chat
            assert chat is not None
            await build(store, chat, choice % 5)
            used += await assert_same(store, chat)
        assert chat is not None
        assert (await verify_chat(store, CHAT)).findings == ()
        fork = (await forked(store, chat)).chat
        assert fork is not None
        await build(store, fork, 1)
        await assert_same(store, fork)
    return used


@settings(max_examples=60)
@given(CHOICES)
def test_a_chat_loaded_through_segments_is_what_its_log_folds_to(choices: list[int]) -> None:
    with small_segments():
        asyncio.run(live_and_compare(choices, MemoryStore()))


@pytest.mark.parametrize("backend", ["memory", "sqlite", "postgres"])
async def test_lives_use_segments_in_every_store(backend: str, request: pytest.FixtureRequest) -> None:
    fixtures = {"sqlite": "migrated_sqlite", "postgres": "migrated_database"}
    url = request.getfixturevalue(fixtures[backend]) if backend in fixtures else "memory://"
    with small_segments():
        assert await live_and_compare([n * 7919 % 10_007 for n in range(120)], open_store(url)) > 40


async def answered(life: Life, text: str) -> None:
    """Have the user say something, and the model answer it."""
    await life.do(b.send(text))
    await life.do(b.acquire())
    await life.do(b.start(view(life)))
    await life.do(b.commit(view(life), b.answer()))
    await life.do(b.finish(view(life)))


def view(life: Life) -> Chat:
    """The life as the builders of commands take it."""
    assert life.chat is not None
    return Chat(life.chat.state)


async def begun(store: Store) -> Life:
    life = Life(store)
    await life.do(b.create(b.system()))
    for text in ("One.", "Two.", "Three."):
        await answered(life, text)
    return life


async def ends(store: Store) -> list[tuple[int, int]]:
    """Return where each segment ends: version and number of messages."""
    return [(each.last_version, each.start + each.count) for each in await store.read_segments(CHAT)]


async def test_after_an_edit_the_chain_goes_on_from_what_is_still_there() -> None:
    with small_segments():
        async with MemoryStore() as store:
            life = Life(store)
            await life.do(b.create(b.system()))
            for text in ("One.", "Two.", "Three."):
                await answered(life, text)
                await build_segments(store, CHAT)
            assert [end for _, end in await ends(store)] == [3, 5, 7]
            assert life.chat is not None
            await life.do(c.EditMessage(target=life.chat.state.messages[3].id, message=b.user("Too.")))
            assert await assert_same(store, life.chat)  # by way of segments that were left behind
            await life.do(c.Interrupt())
            for text in ("Four.", "Five."):
                await answered(life, text)
            await build(store, life.chat, 0)
            assert [end for _, end in await ends(store)] == [3, len(life.chat.state.messages)]
            assert await assert_same(store, life.chat)


async def test_after_an_undone_compaction_too() -> None:
    with small_segments():
        async with MemoryStore() as store:
            life = await begun(store)
            await build_segments(store, CHAT)
            (whole,) = await ends(store)
            await life.do(c.Compact())
            await life.do(b.acquire())
            await life.do(b.start(view(life), "compact"))
            await life.do(b.compaction(view(life)))
            await life.do(b.finish(view(life), "compacted"))
            await build_segments(store, CHAT)
            assert len(await ends(store)) == 2
            await life.do(c.Uncompact())
            assert life.chat is not None
            assert await assert_same(store, life.chat)
            await answered(life, "Four.")
            await build_segments(store, CHAT)
            assert await ends(store) == [whole, (life.chat.header.version, whole[1] + 2)]
            assert await assert_same(store, life.chat)


async def test_what_was_erased_is_in_no_segment_and_stays_erased() -> None:
    with small_segments():
        async with MemoryStore() as store:
            life = await begun(store)
            await build_segments(store, CHAT)
            before = life.chat
            assert before is not None
            await life.do(c.Erase(targets=(before.state.messages[1].id,)))
            assert await ends(store) == []
            await build(store, before, 0)  # a worker that has not heard of it
            assert await ends(store) == []
            await answered(life, "Four.")
            await build_segments(store, CHAT)
            assert life.chat is not None
            assert await assert_same(store, life.chat)
            loaded = await load_chat(store, CHAT, transcript=True)
            assert loaded is not None
            (part,) = loaded.state.messages[1].message.parts
            assert part == life.chat.state.messages[1].message.parts[0]
