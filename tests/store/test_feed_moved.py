"""A PostgreSQL database that was restored from a dump: its events bear the transactions of another server."""

import psycopg
import pytest

from events.ids import ChatId
from store.contract import FEED_START, FeedPosition
from store.errors import FeedMoved
from store.migrate import migrate
from store.postgres import PostgresStore
from tests.store.contract_feed import places, whole
from tests.store.making import appending

OTHER_SERVER = "UPDATE chat_events SET tx = (tx::text::bigint + 1000000000)::text::xid8"


async def test_a_restored_feed_is_told_and_numbered_anew(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store:
        for start, commands in ((0, "aab"), (3, "cdd")):
            for name in ("x", "y"):
                await store.append(appending(start, *commands, chat=ChatId(name)))
        kept = (await whole(store))[-1].position
        with psycopg.connect(migrated_database, autocommit=True) as connection:
            connection.execute(OTHER_SERVER)
        await store.append(appending(6, *"ef", chat=ChatId("x")))
        for after in (FEED_START, kept, FeedPosition(kept.tx + 1_000_000_000, kept.position)):
            with pytest.raises(FeedMoved, match="migrate"):
                await whole(store, after)
        migrate(migrated_database)
        order = [(name, version) for first in (1, 4) for name in "xy" for version in range(first, first + 3)]
        assert places(await whole(store, limit=1)) == [*order, ("x", 7), ("x", 8)]
        end = await store.feed_end()
        with pytest.raises(FeedMoved, match="ahead"):
            await store.read_feed(after=FeedPosition(kept.tx + 1_000_000_000, kept.position), limit=1)
        migrate(migrated_database)
        await store.append(appending(6, "e", chat=ChatId("y")))
        assert places(await whole(store, end)) == [("y", 7)]
