"""When streamed text is handed to the store: by a clock that tests put forward, over a real store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import pytest

from chatfold.testing.stores import WrappedStore
from events.content import Json
from events.ids import ChatId
from events.messages import Message
from events.records import ModelPolicy, RequestDigests
from generation.flushing import BATCH, HASTE, LARGE, PAUSE, PERIOD, SETTLED, Flusher, PartialSource
from generation.partials import CallStart, recover
from generation.parts import EpisodeKey
from generation.providers.contract import TextDelta, TextEnd
from store.contract import PartialChunk
from store.errors import StoreUnavailable
from store.memory import MemoryStore
from tests.store.contract_partials import running

START = CallStart(
    model=ModelPolicy(provider="p", name="m"),
    digests=RequestDigests(system="", tools="", messages="", options=""),
    started_at=0,
)


class Clock:
    """Seconds, and what is to be done at some of them."""

    def __init__(self) -> None:
        self.now = 100.0
        self._due: dict[Alarm, float] = {}

    def __call__(self) -> float:
        return self.now

    def later(self, seconds: float, then: Callable[[], object]) -> Alarm:
        alarm = Alarm(self._due, then)
        self._due[alarm] = self.now + seconds
        return alarm

    async def advance(self, seconds: float) -> None:
        """Let time pass, and whoever waited for it do its work."""
        end = self.now + seconds
        await idle()
        while (nearest := min(self._due.values(), default=end + 1)) <= end:
            self.now = max(nearest, self.now)
            for alarm in [alarm for alarm, at in self._due.items() if at <= self.now]:
                del self._due[alarm]
                alarm.then()
            await idle()
        self.now = end
        await idle()


class Alarm:
    """One thing to be done."""

    def __init__(self, due: dict[Alarm, float], then: Callable[[], object]) -> None:
        self._all = due
        self.then = then

    def cancel(self) -> None:
        self._all.pop(self, None)


async def idle() -> None:
    """Let everything that can go on do so: nothing here waits for anything but the clock and the tests."""
    for _ in range(20):
        await asyncio.sleep(0)


class Watched(WrappedStore):
    """Notes the calls that write partials; may hold them, refuse them, or pass a chat over."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.calls: list[list[tuple[str, int]]] = []
        self.away = False
        self.passed_over: set[ChatId] = set()
        self.go = asyncio.Event()
        self.go.set()

    async def write_partials(self, chunks: Sequence[PartialChunk]) -> frozenset[ChatId]:
        self.calls.append([(chunk.chat, chunk.n) for chunk in chunks])
        await self.go.wait()
        if self.away:
            raise StoreUnavailable("the store is away")
        return await super().write_partials([chunk for chunk in chunks if chunk.chat not in self.passed_over])


class Scene:
    """A flusher that runs, its clock and its store."""

    def __init__(self, store: Watched) -> None:
        self.store = store
        self.clock = Clock()
        self.flusher = Flusher(store, self.clock, self.clock.later)

    async def open(self, chat: str = "chat", attempt: int = 1) -> PartialSource:
        identity = ChatId(chat)
        loaded = await self.store.load_header(identity)
        version = loaded.header.version if loaded is not None else 0
        await self.store.append(running(version, identity, attempt=attempt))
        return self.flusher.open(EpisodeKey(identity, 1, attempt), 1, START, {})

    async def kept(self, chat: str = "chat", attempt: int = 1) -> str:
        """The text that a crash would leave now."""
        message: Message | None = recover(await self.store.read_partials(ChatId(chat)), 1, attempt).message
        return message.text if message is not None else ""


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with Watched() as store:
        made = Scene(store)
        async with flushing(made.flusher):
            yield made


@asynccontextmanager
async def flushing(flusher: Flusher) -> AsyncIterator[None]:
    task = asyncio.create_task(flusher.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def say(source: PartialSource, text: str) -> None:
    source.add(TextDelta(block=0, text=text), 1)


async def test_text_is_kept_after_the_period_and_nothing_is_written_without_any(scene: Scene) -> None:
    source = await scene.open()
    await scene.clock.advance(10)
    say(source, "Hello")
    await scene.clock.advance(PERIOD - 0.01)
    assert (scene.store.calls, source.flushed) == ([], False)
    await scene.clock.advance(0.01)
    assert await scene.kept() == "Hello"
    assert source.flushed
    await scene.clock.advance(10)
    say(source, " again")
    await scene.clock.advance(PERIOD)
    assert await scene.kept() == "Hello again"
    assert scene.store.calls == [[("chat", 0)], [("chat", 1)]]


async def test_a_steady_stream_is_never_more_than_two_seconds_ahead_of_what_is_kept(scene: Scene) -> None:
    source = await scene.open()
    for second in range(30):
        say(source, f"{second} ")
        await scene.clock.advance(0.4)
        known = (await scene.kept()).split()
        assert second - len(known) < 2 / 0.4
    assert len(scene.store.calls) <= 30 * 0.4 / PERIOD


async def test_one_call_takes_all_answers_along_but_those_that_have_just_begun(scene: Scene) -> None:
    first, second, third = [await scene.open(chat) for chat in ("a", "b", "c")]
    say(first, "one")
    await scene.clock.advance(PERIOD - SETTLED)
    say(second, "two")
    await scene.clock.advance(SETTLED / 2)
    say(third, "three")
    await scene.clock.advance(SETTLED / 2)
    assert [sorted(call) for call in scene.store.calls] == [[("a", 0), ("b", 0)]]
    assert not third.flushed
    await third.close()
    await scene.clock.advance(10)
    assert len(scene.store.calls) == 1


async def test_much_text_does_not_wait_for_the_period(scene: Scene) -> None:
    assert HASTE < PERIOD
    source = await scene.open()
    for number in range(2):
        for _ in range(2):
            say(source, "x" * LARGE)
        await scene.clock.advance(HASTE / 2)
        assert len(scene.store.calls) == number
        await scene.clock.advance(HASTE / 2)
        assert len(await scene.kept()) == 2 * LARGE * (number + 1)


async def test_much_text_keeps_calls_at_their_distance(scene: Scene) -> None:
    first, second = await scene.open("first"), await scene.open("second")
    for _ in range(2):
        say(first, "x" * LARGE)
    await scene.clock.advance(PAUSE / 2)
    for _ in range(2):
        say(second, "y" * LARGE)
    await scene.clock.advance(HASTE - PAUSE / 2)
    assert len(scene.store.calls) == 1
    say(first, "x")
    for _ in range(2):
        say(second, "y" * LARGE)
    await scene.clock.advance(PAUSE / 2)
    assert len(scene.store.calls) == 1
    await scene.clock.advance(HASTE)
    assert len(scene.store.calls) == 2


async def test_much_text_that_comes_at_once_and_ends_is_never_written(scene: Scene) -> None:
    source = await scene.open()
    for _ in range(10):
        say(source, "x" * LARGE)
    await scene.clock.advance(HASTE * 0.9)
    await source.close()
    await scene.clock.advance(PERIOD * 2)
    assert scene.store.calls == []
    assert not source.flushed


async def test_a_call_of_the_store_has_its_bounds(scene: Scene) -> None:
    for place in range(8):
        source = await scene.open(f"chat {place}")
        for _ in range(2):
            say(source, "x" * (BATCH // 4))
    await scene.clock.advance(PERIOD)
    assert [len(call) for call in scene.store.calls] == [2, 2, 2, 2]
    assert {len(await scene.kept(f"chat {place}")) for place in range(8)} == {BATCH // 2}


async def test_what_a_store_that_is_away_did_not_take_is_given_again(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    source = await scene.open()
    scene.store.away = True
    with caplog.at_level(logging.WARNING):
        for word in ["a", "secret", "that", "is", "kept"]:
            say(source, word)
            await scene.clock.advance(PERIOD)
    assert 3 <= len(scene.store.calls) <= 6
    assert "secret" not in caplog.text
    assert {record.getMessage() for record in caplog.records} == {"partials_not_written"}
    assert await scene.kept() == ""
    scene.store.away = False
    await scene.clock.advance(PERIOD)
    assert await scene.kept() == "asecretthatiskept"


async def test_a_chat_that_was_written_to_at_that_moment_gets_its_chunks_soon_after(scene: Scene) -> None:
    source, other = await scene.open("a"), await scene.open("b")
    scene.store.passed_over = {ChatId("a")}
    say(source, "one")
    say(other, "other")
    await scene.clock.advance(PERIOD)
    assert (await scene.kept("a"), await scene.kept("b")) == ("", "other")
    scene.store.passed_over = set()
    say(source, " two")
    await scene.clock.advance(PAUSE)
    assert await scene.kept("a") == "one two"


async def test_an_answer_that_ends_waits_for_the_write_under_way_and_gives_nothing_after(scene: Scene) -> None:
    source = await scene.open()
    scene.store.go.clear()
    say(source, "one")
    await scene.clock.advance(PERIOD)
    say(source, " two")
    closing = asyncio.create_task(source.close())
    await idle()
    assert not closing.done()
    assert source.flushed
    scene.store.go.set()
    await closing
    await scene.clock.advance(10)
    assert await scene.kept() == "one"
    assert scene.store.calls == [[("chat", 0)]]


async def test_what_is_no_json_ends_the_flushing_of_its_answer_alone(scene: Scene) -> None:
    broken, other = await scene.open("a"), await scene.open("b")
    say(broken, "one")
    await scene.clock.advance(PERIOD)
    deep: list[Json] = []
    for _ in range(100_000):
        deep = [deep]
    broken.add(TextEnd(block=0, metadata=deep), 1)
    say(other, "fine")
    await scene.clock.advance(PERIOD)
    say(broken, "three")
    await scene.clock.advance(PERIOD)
    assert (await scene.kept("a"), await scene.kept("b")) == ("one", "fine")


async def test_an_error_that_nobody_thought_of_does_not_end_the_flusher(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    source = await scene.open()

    async def fail(_chunks: Sequence[PartialChunk]) -> frozenset[ChatId]:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(scene.store, "write_partials", fail)
        say(source, "one")
        await scene.clock.advance(PERIOD)
    assert [record.getMessage() for record in caplog.records] == ["partials_not_written"]
    await scene.clock.advance(PERIOD)
    assert await scene.kept() == "one"


def test_it_runs_again_on_another_loop() -> None:
    flusher = Flusher(MemoryStore())

    async def once() -> None:
        running = asyncio.create_task(flusher.run())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not running.done()
        running.cancel()
        await asyncio.wait({running})

    for _ in range(2):
        asyncio.run(once())
