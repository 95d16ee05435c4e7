"""Hints between processes over PostgreSQL's LISTEN and NOTIFY.

Owns one connection that listens and one that tells. Best effort: while either is down hints are late or lost, and both
come back by themselves. Telling never holds up an append: it happens after the commit, and what waits is coalesced.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
import psycopg
from psycopg import sql

from events.ids import ChatId
from store.contract import Hint
from store.errors import StoreError
from store.log import get_logger
from store.notify import Bus, newer
from store.postgres_pool import Connection, connect
from store.urls import PostgresUrl

_MOST_BYTES: Final = 7900
"""PostgreSQL takes payloads below 8000 bytes."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
"""Seconds between attempts to connect again, doubled each time."""

_GATHERING: Final = 0.02
"""Seconds that hints are gathered where none calls for a worker: each message costs the server a transaction, and this
process the work of a statement, which a lone chat's steps would pay each time."""

_FAREWELL: Final = 2.0
"""Seconds that closing waits for hints to go out."""

_log = get_logger("chatfold.store")


def channel_of(schema: str) -> str:
    """Return the channel of the tables in ``schema``; two installations in one database do not hear each other."""
    return f"chatfold_{hashlib.sha256(schema.encode()).hexdigest()[:16]}"


def payloads(hints: Iterable[Hint]) -> Iterator[str]:
    """Pack hints into as few payloads as their size allows."""
    packed, size = list[bytes](), 2
    for hint in hints:
        item = msgspec.json.encode((hint.chat, hint.version, hint.due))
        if len(item) + 2 > _MOST_BYTES:
            continue  # the receivers' polling finds it
        if size + len(item) + 1 > _MOST_BYTES:
            yield f"[{b','.join(packed).decode()}]"
            packed, size = [], 2
        packed.append(item)
        size += len(item) + 1
    if packed:
        yield f"[{b','.join(packed).decode()}]"


def hints_of(payload: str) -> list[Hint]:
    """Unpack a payload; one that is not ours holds no hints."""
    try:
        found = msgspec.json.decode(payload, type=list[tuple[str, int, bool]])
    except msgspec.DecodeError:
        _log.warning("hints_not_understood", size=len(payload))
        return []
    return [Hint(ChatId(chat), version, due) for chat, version, due in found]


class Hints:
    """Tells other processes of commits, and listens for theirs.

    Args:
        settings: Where to connect.
        channel: See :func:`channel_of`.
        bus: Where hints of other processes are published.
    """

    def __init__(self, settings: PostgresUrl, channel: str, bus: Bus) -> None:
        self._settings = settings
        self._channel = channel
        self._bus = bus
        self._outbox: dict[ChatId, Hint] = {}
        self._posted = asyncio.Event()
        self._urgent = False
        self._closing = False
        self._listening = asyncio.Event()
        self._teller: asyncio.Task[None] | None = None
        self._teller_pid = 0
        self._listener: asyncio.Task[None] | None = None

    def tell(self, hints: Iterable[Hint]) -> None:
        """Have hints sent soon; does not wait."""
        for hint in hints:
            self._outbox[hint.chat] = newer(self._outbox.get(hint.chat), hint)
            self._urgent = self._urgent or hint.due
        self._posted.set()
        if self._teller is None:
            self._teller = asyncio.create_task(self._tell(), name="chatfold-notify")

    async def listen(self, patience: float) -> None:
        """Listen from now on; waits at most ``patience`` seconds for the server to confirm."""
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen(), name="chatfold-listen")
        try:
            await asyncio.wait_for(self._listening.wait(), patience)
        except TimeoutError:
            _log.warning("hints_not_heard", waited=patience)

    async def close(self) -> None:
        """Send what waits, within a short time, and end."""
        self._closing = True
        self._posted.set()
        if self._teller is not None:
            await asyncio.wait([self._teller], timeout=_FAREWELL)
        tasks = [task for task in (self._teller, self._listener) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _tell(self) -> None:
        connection: Connection | None = None
        pause = _FIRST_PAUSE
        try:
            while self._outbox or not self._closing:
                await self._posted.wait()
                if not self._closing and not self._urgent:
                    await asyncio.sleep(_GATHERING)
                self._posted.clear()
                self._urgent = False
                taken, self._outbox = self._outbox, {}
                try:
                    if connection is None:
                        connection = await connect(self._settings)
                        # A hint needs no place on the disk, nor to wait for one.
                        await connection.execute("SET synchronous_commit = off")
                        self._teller_pid = connection.info.backend_pid
                    await self._send(connection, taken)
                    pause = _FIRST_PAUSE
                except (psycopg.Error, StoreError) as error:
                    _log.warning("hints_not_sent", error=str(error), again_in=pause)
                    if connection is not None:
                        await connection.close()
                        connection = None
                    for hint in taken.values():
                        self._outbox[hint.chat] = newer(self._outbox.get(hint.chat), hint)
                    self._posted.set()
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
        finally:
            if connection is not None:
                await connection.close()

    async def _send(self, connection: Connection, hints: dict[ChatId, Hint]) -> None:
        for payload in payloads(hints.values()):
            await connection.execute("SELECT pg_notify(%s, %s)", (self._channel, payload))

    async def _listen(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                async with await connect(self._settings) as connection:
                    await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
                    self._listening.set()
                    pause = _FIRST_PAUSE
                    async for notify in connection.notifies():
                        if notify.pid != self._teller_pid:  # our own were published at the commit
                            self._bus.publish(hints_of(notify.payload))
            except (psycopg.Error, StoreError) as error:
                _log.warning("hints_not_heard", error=str(error), again_in=pause)
            self._listening.clear()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
