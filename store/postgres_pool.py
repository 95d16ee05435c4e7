"""Connections to PostgreSQL: how they are made, lent and found dead, how values cross, what errors mean.

Owns the pool and the translation of the driver's errors. What is said over a connection is in ``store.postgres_sql``.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final, Literal, Self, TypeAlias
from urllib.parse import quote

import psycopg
import psycopg.adapt
import psycopg.conninfo
from psycopg.abc import Buffer
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper, TextBinaryLoader, TextLoader
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from store.errors import StoreError, StoreUnavailable, Unstorable
from store.postgres_line import Line
from store.rows import escaped, unescaped
from store.urls import PostgresUrl

Connection: TypeAlias = psycopg.AsyncConnection[tuple[Any, ...]]

PATIENCE: Final = 10.0
"""Seconds that a call waits for a connection before it says that the database is unavailable."""

_GLIMPSE_MS: Final = 20
"""Milliseconds that the line waits for a lock: all other appends wait with it."""

_PARAMETERS: Final = {
    "connect_timeout": "10",
    # A peer that vanished without a word is noticed in about a minute, not in two hours.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
    "application_name": "chatfold",
}


class _TextDumper(StrBinaryDumper):
    """Text without NUL, which PostgreSQL's text cannot hold."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(escaped(obj))


class _TextLoader(TextLoader):
    def load(self, data: Buffer) -> str:
        return unescaped(str(super().load(data)))


class _TextBinaryLoader(TextBinaryLoader):
    def load(self, data: Buffer) -> str:
        return unescaped(str(super().load(data)))


def _adapters() -> psycopg.adapt.AdaptersMap:
    adapters = psycopg.adapt.AdaptersMap(psycopg.adapters)
    adapters.register_dumper(str, _TextDumper)
    # All integers alike: else every size of number would make another prepared statement.
    adapters.register_dumper(int, Int8BinaryDumper)
    for name in ("text", "varchar"):
        adapters.register_loader(name, _TextLoader)
        adapters.register_loader(name, _TextBinaryLoader)
    return adapters


_ADAPTERS: Final = _adapters()


def _arguments(settings: PostgresUrl) -> dict[str, Any]:
    given = psycopg.conninfo.conninfo_to_dict(settings.conninfo)
    return {name: value for name, value in _PARAMETERS.items() if name not in given}


async def connect(settings: PostgresUrl) -> Connection:
    """Make a connection outside of the pool.

    Raises:
        StoreUnavailable: The server cannot be reached, or refuses.
    """
    try:
        return await psycopg.AsyncConnection.connect(
            settings.conninfo, autocommit=True, context=_ADAPTERS, **_arguments(settings)
        )
    except (psycopg.Error, OSError, UnicodeEncodeError, OverflowError) as error:
        raise StoreUnavailable(f"no connection to {settings.url}: {_without_password(settings, error)}") from error


def _without_password(settings: PostgresUrl, error: Exception) -> str:
    """Return what libpq or the server says, should either ever repeat what it was told."""
    said = str(error) or type(error).__name__
    with suppress(psycopg.Error):
        password = psycopg.conninfo.conninfo_to_dict(settings.conninfo).get("password")
        for secret in (str(password), quote(str(password), safe="")) if password else ():
            said = said.replace(secret, "***")
    return said


class _Attempts:
    """How the last attempt to connect ended: a pool that gives up waiting does not say.

    Attributes:
        failed: Why it failed; None where it did not, or none was made yet.
    """

    def __init__(self) -> None:
        self.failed: Exception | None = None

    def connections(self) -> type[Connection]:
        """Return a class of connections whose attempts are noted here."""
        attempts = self

        class Noted(psycopg.AsyncConnection[tuple[Any, ...]]):
            @classmethod
            async def connect(cls, conninfo: str = "", **given: Any) -> Self:
                try:
                    made = await super().connect(conninfo, **given)
                except (psycopg.Error, OSError) as error:
                    attempts.failed = error
                    raise
                attempts.failed = None
                return made

        return Noted


@contextmanager
def translated() -> Iterator[None]:
    """Turn the driver's errors into the store's."""
    try:
        yield
    except (psycopg.Error, OSError, UnicodeEncodeError, OverflowError) as error:
        raise translation(error) from error


_EVERYBODYS: Final = ("08", "25", "53", "57", "58")
"""Classes of errors that no single append is to blame for: connection, read only, resources, operator, system."""

LOCKED: Final = frozenset({"55P03", "40P01", "40001"})
"""Errors of who met somebody else's lock."""


def concerns_all(error: psycopg.Error) -> bool:
    """Whether an error says nothing of what was to be written, but of the server."""
    return error.sqlstate is None or error.sqlstate[:2] in _EVERYBODYS


def translation(error: Exception) -> StoreError:
    """Return what an error of the driver is to the store's callers, where nothing was written."""
    if isinstance(error, psycopg.DataError | UnicodeEncodeError | OverflowError):
        return Unstorable(str(error))
    return StoreUnavailable(str(error) or type(error).__name__)


_Connections: TypeAlias = AsyncConnectionPool[Connection]
Purpose: TypeAlias = Literal["calls", "heartbeats"]


class Pool:
    """Connections that are lent for one call each, and two apart from them.

    One is the line that appends go over. One, made when it is first wanted, is for heartbeats: a worker with many chats
    must not lose its lease because a heartbeat waits behind their reads.
    """

    def __init__(self, settings: PostgresUrl) -> None:
        self._settings = settings
        self._attempts = _Attempts()
        kind = self._attempts.connections()
        self._pools: dict[Purpose, _Connections] = {
            "calls": _pool(settings, kind, "chatfold", settings.pool_size, configure),
            "heartbeats": _pool(settings, kind, "chatfold-heartbeat", 1, configure, least=0),
        }
        self._writers = _pool(settings, kind, "chatfold-writer", 1, _configure_writer)
        self._line: Line | None = None

    async def open(self) -> None:
        """Begin to make connections."""
        for pool in (*self._pools.values(), self._writers):
            await pool.open()

    async def close(self) -> None:
        """Close all connections."""
        await self._hang_up()
        for pool in (self._writers, *self._pools.values()):
            await pool.close()

    @asynccontextmanager
    async def lent(self, purpose: Purpose = "calls") -> AsyncIterator[Connection]:
        """Lend a connection that was alive a moment ago.

        Raises:
            StoreUnavailable: There is none.
        """
        pool = self._pools[purpose]
        connection = await self._taken_from(pool)
        try:
            yield connection
        finally:
            await pool.putconn(connection)

    async def line(self) -> Line:
        """Return the line that appends go over, made anew where it was lost. For one caller at a time.

        Raises:
            StoreUnavailable: The server cannot be reached.
        """
        if self._line is not None:
            if self._line.is_alive():
                return self._line
            await self._hang_up()
        self._line = Line(await self._taken_from(self._writers))
        return self._line

    async def _taken_from(self, pool: _Connections) -> Connection:
        try:
            return await _living(pool)
        except PoolTimeout as error:
            failed = self._attempts.failed
            why = f"{pool.max_size} in use" if failed is None else _without_password(self._settings, failed)
            place = f"no connection to {self._settings.url} in {pool.timeout:g} s"
            raise StoreUnavailable(f"{place}: {why}") from (failed or error)
        except (PoolClosed, psycopg.Error) as error:
            raise translation(error) from error

    async def _hang_up(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.let_go()
            await self._writers.putconn(line.connection)


def _pool(
    settings: PostgresUrl,
    kind: type[Connection],
    name: str,
    size: int,
    configure: Callable[[Connection], Awaitable[None]],
    least: int = 1,
) -> _Connections:
    return AsyncConnectionPool(
        settings.conninfo,
        connection_class=kind,
        kwargs={"autocommit": True, "context": _ADAPTERS, "prepare_threshold": 1, **_arguments(settings)},
        min_size=least,
        max_size=size,
        open=False,
        timeout=PATIENCE,
        # The pool waits twice as long after each attempt that failed, until it begins anew: after a long outage nobody
        # is to wait for minutes although the server is there again.
        reconnect_timeout=PATIENCE,
        name=name,
        configure=configure,
    )


async def configure(connection: Connection) -> None:
    """Set a new connection up."""
    # Nobody waits for a lock for ever. And libpq's buffer grows only when it must: a long result would wake its reader
    # once for each 16 kB.
    #
    # Always by index, reads too: a plan is made once for a connection, perhaps while its table is small, and stays
    # until the table is analysed. Measured with plans made at 30 chats and used at 200,000: without this a load takes
    # 29 ms for 0.1, a list of an owner's chats 39 for 0.3, a look for due chats 118 for 0.1, an append 26 for 0.2.
    # What reads most of a table is hardly slower for it: with fresh plans, a list whose filter nothing passes takes
    # 58 ms for 44, one of 20,000 chats 340 for 450.
    settings = {"lock_timeout": f"{PATIENCE:g}s", "enable_seqscan": "off", "enable_mergejoin": "off", "jit": "off"}
    changes = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings.items())
    await connection.execute(f"SELECT {changes}, repeat('x', 65536)".encode())


async def _configure_writer(connection: Connection) -> None:
    await configure(connection)
    # Who finds a header locked is written apart, where it can wait.
    await connection.execute(f"SET lock_timeout = {_GLIMPSE_MS}".encode())
    # Its statements find chats one by one, however many there are.
    await connection.execute("SET enable_hashjoin = off")


async def _living(pool: _Connections) -> Connection:
    for _ in range(pool.max_size):
        connection = await pool.getconn()
        if _is_alive(connection):
            return connection
        await pool.putconn(connection)  # the pool drops it and makes another
    return await pool.getconn()


def _is_alive(connection: Connection) -> bool:
    """Return whether the server has not ended an idle connection, as far as this side was told; costs no round trip.

    Without this look, every append on a connection that died while it lay idle would end in "outcome unknown".
    """
    try:
        for _ in range(2):  # the first reads the server's farewell, the second the end
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return False
    return not connection.closed
