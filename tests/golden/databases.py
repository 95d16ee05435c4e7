"""Databases as released versions left them: rows in ``v*/database/rows.jsonl``, one a line, under their revision.

They were written by the release itself, on SQLite, by a process that was killed while a chat ran: chats of many kinds
and states, a blob, an erased message, a deleted chat, a queue, a holder that is dead. Never edit one.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from store.migrate import migrate
from store.urls import parse_sqlite

RELEASED: Final = {"v0.1": "0001"}
"""Folders of releases, and the revision that each one's rows have."""

_FOLDER: Final = Path(__file__).parent


def rows_of(release: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows that a release left, each with its table."""
    with (_FOLDER / release / "database" / "rows.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield row["table"], {name: _value(value) for name, value in row["row"].items()}


def _value(value: Any) -> Any:
    return base64.b64decode(value["b"]) if isinstance(value, dict) else value


def make_database(url: str, release: str) -> None:
    """Make an empty database what the release left."""
    migrate(url, to=RELEASED[release])
    if url.startswith("sqlite"):
        _fill_sqlite(parse_sqlite(url).path, release)
    else:
        _fill_postgres(url, release)


def _fill_sqlite(path: Path, release: str) -> None:
    with sqlite3.connect(path) as connection:
        for table, row in rows_of(release):
            places = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", tuple(row.values()))
    connection.close()


def _fill_postgres(url: str, release: str) -> None:
    with psycopg.connect(url) as connection:
        kinds: dict[str, str] = dict(
            connection.execute(
                "SELECT table_name || '.' || column_name, udt_name FROM information_schema.columns"
            ).fetchall()
        )
        for table, row in rows_of(release):
            statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
                sql.Identifier(table),
                sql.SQL(", ").join(map(sql.Identifier, row)),
                sql.SQL(", ").join(_place(kinds[f"{table}.{name}"]) for name in row),
            )
            connection.execute(statement, list(row.values()))
        connection.execute(
            "SELECT setval(pg_get_serial_sequence('chat_events', 'position'), (SELECT max(position) FROM chat_events))"
        )


def _place(kind: str) -> sql.Composed:
    # Numbers that stand for what SQLite has no type for are cast by way of their text.
    form = "{}::text::{}" if kind in ("bool", "xid8") else "{}::{}"
    return sql.SQL(form).format(sql.Placeholder(), sql.Identifier(kind))
