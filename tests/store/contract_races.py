"""The contract's promises on hints, and on what happens at once."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from events.ids import ChatId, CommandId
from store.contract import Append, Appended, AppendResult, Conflict, DuplicateCommand, Hint, Store
from tests.store.contract_workers import until
from tests.store.making import CHAT, appending, events, header


async def hint_at(hints: AsyncIterator[Hint], chat: ChatId, version: int) -> Hint:
    """Wait for the hint of a chat's version; hints may be doubled, so older ones are passed over."""
    with anyio.fail_after(10):
        while True:
            hint = await anext(hints)
            if hint.chat == chat and hint.version >= version:
                return hint


async def silent(hints: AsyncIterator[Hint], store: Store, chats: set[str]) -> bool:
    """Return whether no hint of ``chats`` comes before that of a marker appended now."""
    marker = ChatId("marker")
    await store.append(appending(0, chat=marker))
    with anyio.fail_after(10):
        while (hint := await anext(hints)).chat != marker:
            if hint.chat in chats:
                return False
    return True


class HintContract:
    async def test_a_hint_follows_the_commit(self, store: Store) -> None:
        async with store.hints() as hints:
            await store.append(appending(0))
            assert await hint_at(hints, CHAT, 1) == Hint(CHAT, 1, due=False)
            loaded = await store.load_header(CHAT)
            assert loaded is not None
            assert loaded.header.version == 1

    @pytest.mark.parametrize(
        ("changes", "due"),
        [
            ({"status": "pending"}, True),
            ({"status": "pending", "due_at": 1}, True),
            ({"status": "pending", "due_at": 2**62}, False),
            ({"status": "pending", "foreign": True}, False),
            ({"status": "error"}, False),
        ],
    )
    async def test_a_hint_says_whether_a_worker_is_wanted(
        self, store: Store, other: Store, changes: dict[str, Any], due: bool
    ) -> None:
        async with store.hints() as hints, other.hints() as elsewhere:
            await store.append(appending(0, **changes))
            assert await hint_at(hints, CHAT, 1) == Hint(CHAT, 1, due)
            assert await hint_at(elsewhere, CHAT, 1) == Hint(CHAT, 1, due)

    async def test_hints_of_one_chat_come_alone(self, store: Store, other: Store) -> None:
        async with store.hints(CHAT) as hints, other.hints(CHAT) as elsewhere:
            await store.append(appending(0, chat=ChatId("another")))
            await store.append(appending(0))
            for each in (hints, elsewhere):
                with anyio.fail_after(10):
                    assert await anext(each) == Hint(CHAT, 1, due=False)

    async def test_hints_reach_other_stores_of_the_database(self, store: Store, other: Store) -> None:
        async with other.hints() as hints:
            for version in range(3):
                await store.append(appending(version))
                assert (await hint_at(hints, CHAT, version + 1)).version == version + 1
            await other.append(appending(3))
            assert (await hint_at(hints, CHAT, 4)).version == 4

    async def test_a_refused_append_announces_nothing(self, store: Store, other: Store) -> None:
        await store.append(appending(0, "new"))
        async with store.hints() as hints, other.hints() as elsewhere:
            assert await store.append(appending(5)) == Conflict(1)
            assert await store.append(appending(1, "new")) == DuplicateCommand(1, b"print")
            assert await store.append(appending(5, chat=ChatId("none"))) == Conflict(0)
            assert not await store.import_chat(header(1), events(1, "x"), {})
            assert await silent(hints, store, {CHAT, "none"})
            assert (await hint_at(elsewhere, ChatId("marker"), 1)).version == 1

    async def test_an_import_is_announced(self, store: Store) -> None:
        async with store.hints() as hints:
            await store.import_chat(header(2, foreign=True), events(1, "a", "b"), {})
            assert await hint_at(hints, CHAT, 2) == Hint(CHAT, 2, due=False)

    async def test_a_slow_subscriber_holds_up_nobody_and_misses_nothing(self, store: Store) -> None:
        async with store.hints() as slow:
            for version in range(50):
                await store.append(appending(version))
            await store.append(appending(0, chat=ChatId("other")))
            assert await hint_at(slow, CHAT, 50) == Hint(CHAT, 50, due=False)
            assert (await hint_at(slow, ChatId("other"), 1)).version == 1

    async def test_a_subscription_ends_with_its_context(self, store: Store) -> None:
        async with store.hints() as hints:
            pass
        await store.append(appending(0))
        with anyio.fail_after(10):
            assert [hint async for hint in hints] == []


class RaceContract:
    async def test_exactly_one_append_wins_each_version(self, store: Store, other: Store) -> None:
        stores = [store, other]

        async def writer(number: int) -> list[int]:
            won: list[int] = []
            version = 0
            while version < 10:
                append = appending(version, f"{number} at {version}", title=str(number))
                result = await stores[number % 2].append(append)
                if isinstance(result, Appended):
                    won.append(version + 1)
                    version += 1
                else:
                    assert isinstance(result, Conflict)
                    assert result.version > version
                    version = result.version
            return won

        won = await asyncio.gather(*(writer(number) for number in range(8)))
        assert sorted(version for versions in won for version in versions) == list(range(1, 11))
        log = await store.read_events(CHAT)
        winners = {version: number for number, versions in enumerate(won) for version in versions}
        assert [event.envelope.command for event in log] == [f"{winners[v]} at {v - 1}" for v in range(1, 11)]

    @pytest.mark.parametrize("expected", [0, 1])
    async def test_one_command_at_once_is_written_once(self, store: Store, other: Store, expected: int) -> None:
        if expected:
            await store.append(appending(0))
        appends = [(store if n % 2 else other).append(appending(expected, "same")) for n in range(12)]
        results = await asyncio.gather(*appends)
        assert results.count(Appended()) == 1
        assert results.count(DuplicateCommand(expected + 1, b"print")) == 11

    async def test_chats_do_not_disturb_each_other(self, store: Store) -> None:
        async def chat(number: int) -> None:
            for version in range(5):
                blobs = {f"d{n}": b"%d" % n for n in range(number, number + 3)}
                assert await store.append(appending(version, chat=ChatId(str(number)), blobs=blobs)) == Appended()

        await asyncio.gather(*(chat(number) for number in range(20)))
        assert len(await store.get_blobs([f"d{n}" for n in range(22)])) == 22

    async def test_a_delete_and_an_append_at_once(self, store: Store, other: Store) -> None:
        for n in range(10):
            chat = ChatId(f"chat {n}")
            await store.append(appending(0, chat=chat))
            deleted, result = await asyncio.gather(store.delete(chat, 1), other.append(appending(1, chat=chat)))
            assert (deleted, result) in {(True, Conflict(0)), (False, Appended())}
            assert len(await store.read_events(chat)) == (0 if deleted else 2)
            assert (await store.tombstone(chat) is not None) == deleted

    async def test_a_cancelled_append_waits_for_its_outcome(self, store: Store) -> None:
        ended: list[AppendResult | None] = []

        async def caller(append: Append) -> None:
            try:
                ended.append(await store.append(append))
            except asyncio.CancelledError:
                # Here the outcome stands: the log holds all or nothing, and never changes afterwards.
                ended.append(None)
                raise

        for n in range(20):
            chat = ChatId(f"chat {n}")
            task = asyncio.create_task(caller(appending(0, "a", "b", chat=chat)))
            for _ in range(n // 2):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            log = await store.read_events(chat)
            assert len(log) in {0, 2}
            if n >= 2:
                assert len(log) == 2, "it was handed over, so it took effect before the caller went on"
                assert await store.find_command(chat, CommandId("b")) is not None

    async def test_a_scope_that_is_cancelled_waits_too(self, store: Store) -> None:
        results: list[AppendResult] = []

        async def append() -> None:
            results.append(await store.append(appending(0, "a", "b")))

        async with anyio.create_task_group() as group:
            group.start_soon(append)
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        written = len(await store.read_events(CHAT))
        assert written == 2
        assert results in ([], [Appended()])

    async def test_cancelled_reads_leave_the_store_usable(self, store: Store) -> None:
        async def read() -> None:
            await store.load_header(CHAT)

        await store.append(appending(0))
        for n in range(30):
            task = asyncio.create_task(read())
            for _ in range(n % 5):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])

        async def usable() -> bool:
            return await store.load_header(CHAT) is not None

        await until(usable)
        assert await store.append(appending(1)) == Appended()
