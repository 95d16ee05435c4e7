"""The bus of one process: newest hints, slow subscribers, subscribers on other loops and in other threads."""

import asyncio
import threading

import anyio
import pytest

from events.ids import ChatId
from store.contract import Hint
from store.notify import Bus, newer

CHAT = ChatId("chat")


@pytest.mark.parametrize(
    ("known", "hint", "kept"),
    [
        (None, Hint(CHAT, 1, due=False), Hint(CHAT, 1, due=False)),
        (Hint(CHAT, 1, due=True), Hint(CHAT, 2, due=False), Hint(CHAT, 2, due=False)),
        (Hint(CHAT, 2, due=False), Hint(CHAT, 1, due=True), Hint(CHAT, 2, due=False)),
        (Hint(CHAT, 2, due=False), Hint(CHAT, 2, due=True), Hint(CHAT, 2, due=True)),
        (Hint(CHAT, 2, due=True), Hint(CHAT, 2, due=False), Hint(CHAT, 2, due=True)),
    ],
)
def test_the_newer_of_two_hints_is_kept(known: Hint | None, hint: Hint, kept: Hint) -> None:
    assert newer(known, hint) == kept


async def test_what_waits_is_bounded_by_the_number_of_chats() -> None:
    bus = Bus()
    async with bus.subscribe() as slow:
        for version in range(1, 10_001):
            bus.publish([Hint(ChatId(str(version % 3)), version, due=False)])
        assert len(slow._waiting) == 3
        found = [await anext(slow) for _ in range(3)]
    assert sorted(hint.version for hint in found) == [9998, 9999, 10_000]


async def test_chats_are_told_in_the_order_in_which_they_changed_first() -> None:
    bus = Bus()
    async with bus.subscribe() as hints:
        for name in ("b", "a", "b", "c"):
            bus.publish([Hint(ChatId(name), 1, due=False)])
        assert [(await anext(hints)).chat for _ in range(3)] == ["b", "a", "c"]


async def test_hints_from_another_thread_wake_the_subscriber() -> None:
    bus = Bus()
    async with bus.subscribe() as hints:
        waiting = asyncio.create_task(anext(hints))
        await asyncio.sleep(0)
        thread = threading.Thread(target=bus.publish, args=([Hint(CHAT, 1, due=True)],))
        thread.start()
        with anyio.fail_after(10):
            assert await waiting == Hint(CHAT, 1, due=True)
        thread.join()


async def test_a_subscriber_whose_loop_is_gone_harms_nobody() -> None:
    bus = Bus()
    abandoned = []

    async def subscribe() -> None:
        subscription = bus.subscribe()
        await subscription.__aenter__()
        abandoned.append(subscription)

    loop = asyncio.new_event_loop()
    await asyncio.to_thread(loop.run_until_complete, subscribe())
    loop.close()
    async with bus.subscribe() as hints:
        bus.publish([Hint(CHAT, 1, due=False)])
        assert await anext(hints) == Hint(CHAT, 1, due=False)


async def test_a_closed_subscription_gives_what_waits_and_ends() -> None:
    bus = Bus()
    async with bus.subscribe() as hints:
        bus.publish([Hint(CHAT, 1, due=False)])
    bus.publish([Hint(CHAT, 2, due=False)])
    assert [hint async for hint in hints] == [Hint(CHAT, 1, due=False)]
