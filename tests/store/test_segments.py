"""Loading through segments gives what the log folds to, whatever the chat went through.

And nothing but time is lost where a segment is not what it should be.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.control import encode_control
from events.reducer import fold
from store import building, loading
from store.building import SegmentBuilder, build_segments
from store.contract import Store
from store.loading import LoadedChat, load_chat, read_recorded
from store.memory import MemoryStore
from tests.chatstate.chat import trace
from tests.store.lives import forked, living

CHOICES = st.lists(st.integers(0, 10_000), min_size=10, max_size=60)


@contextmanager
def small(tail: int = 3, cut: int = 2000) -> Iterator[None]:
    """Have segments built of a few events, and cut after a few messages."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (loading, building):
            patch.setattr(module, "TAIL", tail)
        patch.setattr(building, "_CUT", cut)
        yield


async def assert_same(store: Store, chat: LoadedChat) -> bool:
    """Compare what is loaded with what the log folds to; return whether segments were used."""
    header = chat.header
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
    if way == 0:
        builder = SegmentBuilder(store)
        builder.offer(chat)
        await builder.idle()
    elif way == 1:
        await build_segments(store, chat.header.chat)


async def live_and_compare(choices: list[int]) -> int:
    used = 0
    async with MemoryStore() as store:
        chat: LoadedChat | None = None
        async for choice, life in living(store, choices):
            chat = life.chat
            assert chat is not None
            await build(store, chat, choice % 5)
            used += await assert_same(store, chat)
        assert chat is not None
        fork = (await forked(store, chat)).chat
        assert fork is not None
        await build(store, fork, 1)
        await assert_same(store, fork)
    return used


@settings(max_examples=60)
@given(CHOICES)
def test_a_chat_loaded_through_segments_is_what_its_log_folds_to(choices: list[int]) -> None:
    with small():
        asyncio.run(live_and_compare(choices))


def test_lives_use_segments_and_leave_some_behind() -> None:
    with small():
        assert asyncio.run(live_and_compare([n * 7919 % 10_007 for n in range(120)])) > 40
