"""PostgreSQL databases that hold the tables already, copied from one that was migrated once."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from store.migrate import migrate
from tests.postgres import PostgresServer


@pytest.fixture(scope="session")
def _template(postgres_server: PostgresServer) -> Iterator[str]:
    """The name of a migrated database that nobody is connected to."""
    with postgres_server.database() as url:
        migrate(url)
        yield url.partition("?")[0].rpartition("/")[2]


@pytest.fixture
def migrated_database(postgres_url: str, _template: str) -> Iterator[str]:
    """The URL of a fresh PostgreSQL database with empty tables."""
    name = f"m_{uuid.uuid4().hex}"
    before, _, query = postgres_url.partition("?")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(_template))
        )
        try:
            yield f"{before.rpartition('/')[0]}/{name}?{query}"
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
