"""What building segments reads, writes and holds up, and when it does nothing."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator

import pytest

from chatfold.testing.stores import CountingStore
from events.content import Content, Json
from events.ids import ChatId
from events.messages import Message
from events.parts import TextPart, ToolResultPart
from events.reducer import fold
from store import building
from store.building import SegmentBuilder, build_segments
from store.contract import Segment
from store.errors import StoreUnavailable
from store.loading import TAIL, LoadedChat, load_chat, read_recorded
from store.memory import MemoryStore
from store.segments import make_segment, open_segment
from tests.chatstate import build as b
from tests.chatstate.chat import Chat, trace
from tests.store.long_chats import long_chat, put, turn
from tests.store.small_segments import small_segments

CHAT = ChatId("long")


class Watched(CountingStore):
    """Counts, and fails or holds up on request."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.fails = False
        self.held: asyncio.Event | None = None

    async def write_segment(self, segment: Segment, replaces: object = ()) -> bool:
        if self.fails:
            raise StoreUnavailable("the disk is full")
        if self.held is not None:
            await self.held.wait()
        return await super().write_segment(segment, replaces)  # type: ignore[arg-type]


@pytest.fixture
async def store() -> AsyncIterator[Watched]:
    async with Watched() as opened:
        yield opened


def said(size: int = 100) -> str:
    return "word " * (size // 5)


async def loaded(store: CountingStore, chat: ChatId = CHAT) -> LoadedChat:
    found = await load_chat(store, chat, transcript=True)
    assert found is not None
    return found


async def test_a_young_chat_costs_a_builder_nothing_and_a_load_one_read_of_its_log(store: Watched) -> None:
    chat = long_chat(80, said)
    assert len(chat.log) < TAIL
    await put(store, chat, CHAT)
    store.calls.clear()
    builder = SegmentBuilder(store)
    builder.offer(await loaded(store))
    await builder.idle()
    assert await build_segments(store, CHAT) == 0
    assert [call.name for call in store.calls] == ["load_header", "read_events", "load_header"]


async def test_a_long_chat_is_loaded_by_three_reads(store: Watched) -> None:
    await put(store, long_chat(400, said), CHAT)
    assert await build_segments(store, CHAT) == 1
    store.calls.clear()
    await loaded(store)
    assert [call.name for call in store.calls] == ["load_header", "read_segments", "read_events"]


async def test_a_builder_asks_for_the_segments_of_a_chat_once(store: Watched) -> None:
    await put(store, long_chat(400, said), CHAT)
    builder, chat = SegmentBuilder(store), await loaded(store)
    store.calls.clear()
    for _ in range(3):
        builder.offer(chat)
        await builder.idle()
    assert [call.name for call in store.calls] == ["read_segments", "write_segment"]
    another = SegmentBuilder(store)  # of another process
    for _ in range(3):
        another.offer(chat)
        await another.idle()
    assert [call.name for call in store.calls][2:] == ["read_segments"]


async def test_a_segment_is_cut_where_enough_came_together(store: Watched) -> None:
    await put(store, long_chat(2000, lambda: said(1000)), CHAT)
    assert await build_segments(store, CHAT) == 5
    kept = await store.read_segments(CHAT)
    assert [each.first_version for each in kept[1:]] == [each.last_version + 1 for each in kept[:-1]]
    assert max(len(open_segment(each).messages) for each in kept) < 1_000_000


async def test_a_state_at_hand_that_is_too_large_is_built_of_its_log(store: Watched) -> None:
    await put(store, long_chat(1200, lambda: said(2000)), CHAT)
    builder = SegmentBuilder(store)
    builder.offer(await loaded(store))
    await builder.idle()
    assert len(await store.read_segments(CHAT)) > 3


async def test_large_contents_stay_in_their_blobs(store: Watched) -> None:
    with small_segments():
        chat = Chat()
        chat.do(b.create(b.user(said(100_000)), b.user(said(20_000))))
        turn(chat, lambda: said(50_000))
        chat.do(b.send())
        turn(chat, said)
        await put(store, chat, CHAT)
        assert await build_segments(store, CHAT) > 1
        kept = await store.read_segments(CHAT)
        assert sum(len(open_segment(each).messages) for each in kept) < 30_000
        store.calls.clear()
        assert trace((await loaded(store)).state) == trace(chat.state)
        assert [call.name for call in store.calls][1:] == ["read_segments", "read_events", "get_blobs"]


async def test_a_blob_that_is_gone_is_gone_for_both_ways(store: Watched, caplog: pytest.LogCaptureFixture) -> None:
    with small_segments():
        chat = Chat()
        chat.do(b.create(b.user(said(100_000))))
        turn(chat, said)
        await put(store, chat, CHAT)
        await build_segments(store, CHAT)
        assert isinstance(store.inner, MemoryStore)
        store.inner._blobs.clear()
        assert trace((await loaded(store)).state) == trace(fold(await read_recorded(store, CHAT)))
        await store.drop_segments(CHAT)
        builder = SegmentBuilder(store)
        with caplog.at_level(logging.WARNING):
            caplog.clear()
            builder.offer(await loaded(store))
            await builder.idle()
        assert await store.read_segments(CHAT) == []  # nothing is built of what is not at hand
        assert caplog.records == []


async def test_values_of_every_kind_come_back_as_they_were(store: Watched) -> None:
    values: list[Json] = [
        None,
        True,
        1,
        1.0,
        -0.0,
        "",
        '\x00\n"é😀',
        [1, [2, {"a": None}]],
        {"0": 2**63 - 1, "": []},
        [0, "x", 3],
    ]
    parts = tuple(TextPart(text=Content(value)) for value in values)
    with small_segments(tail=1):
        chat = Chat()
        chat.do(b.create(Message(role="user", parts=parts), Message(role="user", parts=(TextPart(text=Content("x")),))))
        await put(store, chat, CHAT)
        await build_segments(store, CHAT)
        state = (await loaded(store)).state
    assert trace(state) == trace(chat.state)
    (first, _) = state.messages
    assert [repr(part.text.value) for part in first.message.parts if isinstance(part, TextPart)] == [
        repr(value) for value in values
    ]


async def test_the_rest_of_a_state_comes_back_too(store: Watched) -> None:
    chat = Chat()
    chat.do(b.create())
    chat.do(b.acquire())
    chat.do(b.record_policy(chat))
    chat.do(b.start(chat))
    chat.do(b.commit(chat, b.answer("rerun", "report")))
    chat.do(b.start_tools(chat))
    chat.do(b.result(chat, chat.calls[0].key))
    chat.do(b.send("And then?", "m2"))
    with small_segments():
        await put(store, chat, CHAT)
        await build_segments(store, CHAT)
        ((last),) = [each.last_version for each in await store.read_segments(CHAT)]
        assert last == chat.control.version
        state = (await loaded(store)).state
    assert trace(state) == trace(chat.state)
    transcript = state.need_transcript("a test")
    (kept,) = transcript.results.values()
    assert isinstance(kept, ToolResultPart)
    assert len(transcript.queued) == len(transcript.policies) == 1


async def test_packing_does_not_hold_the_loop(store: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    make = make_segment

    def watched(*args: object) -> object:
        threads.append(threading.current_thread())
        return make(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(building, "make_segment", watched)
    await put(store, long_chat(400, said), CHAT)
    builder = SegmentBuilder(store)
    builder.offer(await loaded(store))
    await builder.idle()
    await store.drop_segments(CHAT)
    await build_segments(store, CHAT)
    assert len(threads) == 2
    assert threading.main_thread() not in threads


async def test_a_failure_is_logged_and_not_tried_again_at_once(
    store: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    await put(store, long_chat(400, said), CHAT)
    builder, store.fails = SegmentBuilder(store), True
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            builder.offer(await loaded(store))
            await builder.idle()
    assert [record.message for record in caplog.records] == ["segments_not_built"]


async def test_one_chat_is_built_at_a_time_and_few_wait(store: Watched) -> None:
    chat = long_chat(400, said)
    builder, store.held = SegmentBuilder(store), asyncio.Event()
    for place in range(50):
        identity = ChatId(f"chat-{place}")
        await put(store, chat, identity)
        builder.offer(await loaded(store, identity))
    store.held.set()
    await builder.idle()
    assert 30 < store.count("write_segment") < 40
    store.held.clear()
    builder.offer(await loaded(store, ChatId("chat-49")))
    await builder.stop()
    assert store.count("write_segment") < 40
