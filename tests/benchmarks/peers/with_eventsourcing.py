"""eventsourcing: an aggregate whose events are saved one by one, kept in memory (its fastest form)."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import psycopg.conninfo
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event

from tests.benchmarks.work import Texts

_THREADS: Final = 16


class Chat(Aggregate):
    """A chat as a list of messages."""

    @event("Started")
    def __init__(self) -> None:
        self.messages: list[dict[str, str]] = []

    @event("MessageAdded")
    def add(self, kind: str, content: str) -> None:
        """Add a message."""
        self.messages.append({"kind": kind, "content": content})


class _Eventsourcing:
    name = "eventsourcing, kept in memory"

    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings
        self._texts = Texts()

    async def open(self) -> None:
        self._application: Application[UUID] = Application(env=self._settings)
        self._threads = ThreadPoolExecutor(_THREADS)

    async def close(self) -> None:
        self._threads.shutdown()
        self._application.close()

    async def new_chat(self) -> Chat:
        chat = Chat()
        self._application.save(chat)
        return chat

    async def turn(self, chat: Chat) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, self._turn, chat)

    def _turn(self, chat: Chat) -> None:
        for kind in ("user", "call", "result", "text"):
            chat.add(kind, self._texts())
            self._application.save(chat)


def on_postgres(url: str) -> Any:
    """Return it on PostgreSQL."""
    given = psycopg.conninfo.conninfo_to_dict(url)
    settings = {
        "PERSISTENCE_MODULE": "eventsourcing.postgres",
        "POSTGRES_DBNAME": str(given["dbname"]),
        "POSTGRES_HOST": str(given["host"]),
        "POSTGRES_PORT": str(given.get("port") or 5432),
        "POSTGRES_USER": str(given["user"]),
        "POSTGRES_PASSWORD": str(given.get("password") or "none"),
        "POSTGRES_POOL_SIZE": str(_THREADS),
    }
    return _Eventsourcing(settings)


def on_sqlite(folder: Path) -> Any:
    """Return it on SQLite."""
    return _Eventsourcing(
        {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(folder / "eventsourcing.db")}
    )


ON_POSTGRES: Final = (on_postgres,)
ON_SQLITE: Final = (on_sqlite,)
