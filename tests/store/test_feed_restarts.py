"""The feed while many write and commit in another order than they began, for consumers that are restarted at random.

The database itself delays commits: PostgreSQL by a trigger that sleeps when a transaction commits, SQLite, where one
writes at a time, while its transaction is open.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Final

import anyio
import psycopg
import pytest

from events.ids import ChatId
from store import open_store
from store.contract import FEED_START, FeedPosition, Store
from store.failpoints import armed
from store.migrate import migrate
from store.postgres import PostgresStore
from store.postgres_feed import READ_FEED
from tests.store.contract_workers import until
from tests.store.making import appending
from tests.store.test_postgres import blocked, watcher

SEED: Final = 4
WRITERS: Final = 8
CHATS: Final = 3
"""Chats of each writer."""
APPENDS: Final = 8
"""Appends to each chat."""
CONSUMERS: Final = 3
END: Final = ChatId("end")
"""The chat that is written to when all others are done: whoever has seen it has come to the end."""

GATED: Final = ChatId("gated")
"""A chat whose appends to PostgreSQL commit when advisory lock 1 is free."""

DELAYS: Final = f"""
CREATE FUNCTION delay() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
  IF NEW.chat = 'gated' THEN PERFORM pg_advisory_xact_lock(1);
  ELSE PERFORM pg_sleep((hashtext(NEW.chat || ' ' || NEW.version || ' {SEED}') & 63) / 1000.0); END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER delay AFTER INSERT ON chat_events DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.command_index = 0 AND NEW.chat <> 'end') EXECUTE FUNCTION delay();
"""
LINE: Final = "tx < pg_snapshot_xmin(pg_current_snapshot())"

Place = tuple[str, int]


@dataclass
class Notebook:
    """What a consumer made of the events, kept together with how far it came; it survives the consumer's end."""

    at: FeedPosition = FEED_START
    seen: list[Place] = field(default_factory=list)
    lives: int = 0

    @property
    def over(self) -> bool:
        """Whether the consumer has come to the end."""
        return bool(self.seen) and self.seen[-1][0] == END


@contextmanager
def delays_in_sqlite() -> Iterator[None]:
    """Let about every other transaction stay open for some milliseconds before it commits."""
    chance = random.Random(SEED)
    orders = (f"append.written=delay({chance.uniform(0.001, 0.01):.4f})@{number}" for number in range(1, 400, 2))
    with armed(";".join(orders)):
        yield


@pytest.fixture
def postgres(postgres_database: Callable[[], str]) -> str:
    """The URL of a database whose transactions take up to 63 ms to commit."""
    url = postgres_database()
    migrate(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(DELAYS)
    return url


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_each_consumer_sees_each_event_once_and_in_order(kind: str, request: pytest.FixtureRequest) -> None:
    url: str = request.getfixturevalue("migrated_sqlite" if kind == "sqlite" else "postgres")
    with delays_in_sqlite() if kind == "sqlite" else nullcontext():
        notebooks = await written_and_read(url)
    for notebook in notebooks:
        assert versions(notebook) == everything()
        assert len(notebook.seen) == len(set(notebook.seen))
        assert notebook.seen == notebooks[0].seen
        assert notebook.lives > 5


@pytest.mark.parametrize("waits", [True, False], ids=["the feed", "one that does not wait"])
async def test_what_commits_late_is_not_passed(postgres: str, monkeypatch: pytest.MonkeyPatch, *, waits: bool) -> None:
    """A feed that did not wait for what is under way would lose events."""
    assert LINE in READ_FEED
    if not waits:
        monkeypatch.setattr("store.postgres_beside.READ_FEED", READ_FEED.replace(LINE, "true"))
    async with PostgresStore(postgres) as store, PostgresStore(postgres) as other, watcher(postgres) as watch:
        await watch.execute("SELECT pg_advisory_lock(1)")
        late = asyncio.create_task(store.append(appending(0, chat=GATED)))
        await until(lambda: blocked(watch))
        await other.append(appending(0, chat=END))
        seen = list(await other.read_feed(after=FEED_START, limit=10))
        assert [event.chat for event in seen] == ([] if waits else [END])
        await watch.execute("SELECT pg_advisory_unlock(1)")
        await late
        await other.feed_end()
        seen += await other.read_feed(after=seen[-1].position if seen else FEED_START, limit=10)
    assert [event.chat for event in seen] == ([GATED, END] if waits else [END])


def everything() -> dict[str, list[int]]:
    """The versions of each chat."""
    chats = (f"{writer} {chat}" for writer in range(WRITERS) for chat in range(CHATS))
    return {**{chat: list(range(1, 2 * APPENDS + 1)) for chat in chats}, END: [1]}


def versions(notebook: Notebook) -> dict[str, list[int]]:
    """The versions of each chat in the order in which a consumer saw them."""
    found = defaultdict[str, list[int]](list)
    for chat, version in notebook.seen:
        found[chat].append(version)
    return dict(found)


async def written_and_read(url: str) -> list[Notebook]:
    """Write all while consumers come and go; return what each has noted."""
    notebooks = [Notebook() for _ in range(CONSUMERS)]
    with anyio.fail_after(60):
        async with AsyncExitStack() as stack:
            stores = [await stack.enter_async_context(open_store(url)) for _ in range(WRITERS)]
            consumers = [
                asyncio.create_task(consume(url, notebook, random.Random(f"{SEED} consumer {number}")))
                for number, notebook in enumerate(notebooks)
            ]
            await asyncio.gather(*(write(store, number) for number, store in enumerate(stores)))
            await stores[0].append(appending(0, chat=END))
            await asyncio.gather(*consumers)
    return notebooks


async def write(store: Store, number: int) -> None:
    """Be one writer: of some chats at once, each with commands of one, two and three events."""

    async def one(chat: int) -> None:
        chance = random.Random(f"{SEED} writer {number} {chat}")
        left, version = APPENDS, 0
        while left:
            count = 2 * APPENDS - version if left == 1 else chance.choice([1, 2, 3])
            count = max(1, min(count, 2 * APPENDS - version - (left - 1)))
            names = [f"{version}"] * count if chance.random() < 0.5 else [f"{version} {n}" for n in range(count)]
            await store.append(appending(version, *names, chat=ChatId(f"{number} {chat}")))
            left, version = left - 1, version + count

    await asyncio.gather(*(one(chat) for chat in range(CHATS)))


async def consume(url: str, notebook: Notebook, chance: random.Random) -> None:
    """Be one consumer after the other, each of which begins with what the one before it left in the notebook."""
    while not notebook.over:
        notebook.lives += 1
        async with open_store(url) as store, store.subscribe(after=notebook.at) as feed:
            pending: list[Place] = []
            for left in reversed(range(chance.randrange(1, 50))):
                event = await anext(feed)
                pending.append((event.chat, event.stored.envelope.version))
                if chance.random() < 0.3 or event.chat == END:
                    # Together, as in one transaction; what was taken since and is not noted is lost with the consumer.
                    notebook.seen += pending
                    notebook.at, pending = event.position, []
                if event.chat == END or not left:
                    break
