"""How appends that wait are put into batches, and who is told what where one fails. No database: outcomes are given."""

import asyncio
from collections import deque
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from events.ids import ChatId
from store.contract import Append, Appended, AppendResult, Conflict
from store.errors import OutcomeUnknown, StoreUnavailable, Unstorable
from store.grouping import FEW, MOST, MOST_BYTES, Group, Spoiled, Waiting, next_batch
from tests.store.making import appending


def append(chat: str, version: int = 1) -> Append:
    return appending(version, chat=ChatId(chat))


def waiting(*entries: tuple[str, int]) -> deque[Waiting]:
    loop = asyncio.get_running_loop()
    return deque(Waiting(append(chat), size, loop.create_future()) for chat, size in entries)


def chats(entries: Sequence[Waiting]) -> list[str]:
    return [entry.append.chat for entry in entries]


async def test_a_batch_has_each_chat_once_and_keeps_the_order() -> None:
    line = waiting(("a", 1), ("b", 1), ("a", 2), ("c", 1), ("a", 3), ("b", 2))
    assert chats(next_batch(line)) == ["a", "b", "c"]
    assert [(entry.append.chat, entry.size) for entry in line] == [("a", 2), ("a", 3), ("b", 2)]
    assert chats(next_batch(line)) == ["a", "b"]
    assert chats(next_batch(line)) == ["a"]
    assert next_batch(line) == []


async def test_a_batch_is_neither_too_long_nor_too_large() -> None:
    line = waiting(*((f"{n}", 1) for n in range(3 * MOST)))
    assert len(next_batch(line)) == MOST
    line = waiting(("a", MOST_BYTES), ("b", 1), ("c", MOST_BYTES + 1), ("d", 1))
    assert [chats(next_batch(line)) for _ in range(3)] == [["a"], ["b", "c"], ["d"]]


async def test_of_many_one_half_waits_while_the_other_is_written() -> None:
    line = waiting(*((f"{n}", 1) for n in range(3 * FEW)))
    assert [len(next_batch(line)) for _ in range(4)] == [3 * FEW // 2, FEW, FEW // 2, 0]


class Written:
    """A writer of batches that does what it is told to each chat, and remembers what came together."""

    def __init__(self, **fates: Exception | AppendResult | None) -> None:
        self.fates = fates
        self.batches: list[list[str]] = []
        self.alone: list[str] = []
        self.gate = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()
        self.group = Group(self.write, self.write_alone, self.spawn)

    async def write(self, batch: Sequence[Append]) -> Sequence[AppendResult | None]:
        self.batches.append([each.chat for each in batch])
        await self.gate.wait()
        fates = [self.fates.get(each.chat, Appended()) for each in batch]
        for fate in fates:
            if isinstance(fate, Exception):
                raise fate
        return [fate for fate in fates if not isinstance(fate, Exception)]

    async def write_alone(self, append: Append) -> AppendResult:
        self.alone.append(append.chat)
        if append.chat == "poor":
            raise StoreUnavailable("alone too")
        return Conflict(7)

    def spawn(self, call: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(call)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def results(self, *names: str) -> list[Any]:
        replies = [self.group.add(append(name), 1) for name in names]
        await asyncio.sleep(0)
        self.gate.set()
        return await asyncio.gather(*(reply.outcome() for reply in replies), return_exceptions=True)


async def test_what_comes_while_a_batch_is_under_way_goes_together_in_the_next() -> None:
    written = Written()
    first = written.group.add(append("first"), 1)
    await asyncio.sleep(0)
    rest = [written.group.add(append(name), 1) for name in "abc"]
    written.gate.set()
    assert await first.outcome() == Appended()
    assert await asyncio.gather(*(reply.outcome() for reply in rest)) == [Appended()] * 3
    assert written.batches == [["first"], ["a", "b", "c"]]
    assert await written.results("later") == [Appended()]


async def test_the_culprit_alone_is_told() -> None:
    written = Written(bad=Spoiled(Unstorable("no")), worse=Spoiled(StoreUnavailable("never")))
    *good, bad, worse = await written.results("a", "b", "c", "bad", "worse")
    assert good == [Appended()] * 3
    assert isinstance(bad, Unstorable)
    assert isinstance(worse, StoreUnavailable)
    assert ["bad"] in written.batches
    assert len(written.batches) < 10


@pytest.mark.parametrize("error", [OutcomeUnknown("lost"), StoreUnavailable("away")])
async def test_what_is_nobodys_fault_is_told_to_all_at_once(error: Exception) -> None:
    written = Written(b=error)
    results = await written.results("a", "b", "c")
    assert [type(each) for each in results] == [type(error)] * 3
    assert len({id(each) for each in results}) == 3, "an error carries the traceback of whoever raises it"
    assert len(written.batches) == 1


async def test_who_was_passed_over_goes_alone() -> None:
    written = Written(locked=None, poor=None)
    ok, locked, poor = await written.results("a", "locked", "poor")
    assert ok == Appended()
    assert locked == Conflict(7)
    assert isinstance(poor, StoreUnavailable)
    assert written.alone == ["locked", "poor"]


async def test_a_caller_that_went_away_holds_up_nobody() -> None:
    written = Written(bad=Spoiled(Unstorable("no")), locked=None)
    gone = [written.group.add(append(name), 1) for name in ("a", "bad", "locked")]
    for reply in gone:
        reply.future.cancel()
    assert await written.results("b") == [Appended()]
    assert written.alone == ["locked"]


async def test_an_error_that_nobody_expected_is_told_with_its_cause_and_ends_no_more_than_its_batch() -> None:
    written = Written(b=ValueError("what is this"))
    results = await written.results("a", "b")
    assert [type(each) for each in results] == [OutcomeUnknown] * 2
    assert [repr(each.__cause__) for each in results] == ["ValueError('what is this')"] * 2
    assert await written.results("c") == [Appended()]


@pytest.mark.parametrize("halved", [False, True])
async def test_where_the_task_that_writes_is_cancelled_nobody_waits_for_ever(halved: bool) -> None:
    written = Written(**{"b": Spoiled(Unstorable("no"))} if halved else {})
    under_way = [written.group.add(append(name), 1) for name in "abcd"]
    await asyncio.sleep(0)
    if halved:
        written.gate.set()
        written.gate = asyncio.Event()
        await asyncio.sleep(0)
        assert written.batches == [["a", "b", "c", "d"], ["a", "b"]]
    behind = [written.group.add(append(name), 1) for name in "ae"]
    (task,) = written.tasks
    task.cancel()
    late = written.group.add(append("f"), 1)
    told = await asyncio.gather(*(each.outcome() for each in (*under_way, *behind, late)), return_exceptions=True)
    assert [type(each) for each in told] == [OutcomeUnknown] * 4 + [StoreUnavailable] * 3
    written.gate.set()
    assert await written.results("again") == [Appended()]


async def test_where_the_task_that_writes_is_cancelled_at_rest_who_comes_then_does_not_wait_for_ever() -> None:
    written = Written()
    assert await written.results("a") == [Appended()]
    (task,) = written.tasks
    task.cancel()
    late = written.group.add(append("b"), 1)
    with pytest.raises(StoreUnavailable):
        await late.outcome()
    assert await written.results("c") == [Appended()]


async def test_the_task_that_writes_ends_once_nothing_waits_and_another_begins_where_more_comes() -> None:
    written = Written()
    last = written.group.add(append("last"), 1)
    written.group.end()
    written.gate.set()
    assert await last.outcome() == Appended()
    await asyncio.wait(written.tasks)
    assert await written.results("again") == [Appended()]
    assert await written.results("and", "again") == [Appended()] * 2
    assert len(written.tasks) == 1
    written.group.end()
    await asyncio.wait(written.tasks)
