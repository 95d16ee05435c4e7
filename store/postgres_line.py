"""One connection that appends go over, statement after statement, without the driver's cursors.

Owns sending prepared statements with values that are in binary already, and waiting for their outcome on the event
loop. A cursor looks at each value, and registers its wish to read anew for each statement: that costs more than all
else that an append costs here. How the connection is made, and what errors mean, is in ``store.postgres_pool``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format

Row: TypeAlias = Sequence[bytes | None]
Prepared: TypeAlias = tuple[bytes, tuple[str, ...]]

_PLACEHOLDER: Final = re.compile(r"%\((\w+)\)[sb]")


@cache
def numbered(statement: str) -> Prepared:
    """Return a statement with numbers for names, as the server takes it, and the names in the order of the numbers."""
    names: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return f"${names.setdefault(found[1], len(names) + 1)}"

    text = _PLACEHOLDER.sub(number, statement).replace("%%", "%")
    return text.encode(), tuple(names)


class Line:
    """A connection at rest, taken over from the driver until it is let go.

    Args:
        connection: It commits each statement by itself. Nobody else may use it meanwhile.
    """

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self.connection = connection
        self._pgconn = connection.pgconn
        self._loop = asyncio.get_running_loop()
        self._socket = self._pgconn.socket
        self._names: dict[str, bytes] = {}
        self._results: list[Any] = []
        self._waiter: asyncio.Future[list[Any]] | None = None
        self._open = True
        self._loop.add_reader(self._socket, self._readable)

    def is_alive(self) -> bool:
        """Return whether the server has not ended the connection, as far as this side was told; no round trip."""
        if self._open:
            try:
                for _ in range(2):  # the first reads the server's farewell, the second the end
                    self._pgconn.consume_input()
            except psycopg.OperationalError:
                self.let_go()
        return self._open

    def let_go(self) -> None:
        """Give the connection back to the driver; a statement under way is lost with its outcome."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)

    async def run(self, statement: str, values: Sequence[bytes | None]) -> list[Row]:
        """Run a statement whose placeholders are named; ``values`` stand in the order of :func:`numbered`.

        Returns:
            Its rows, each value in binary.

        Raises:
            psycopg.Error: The server refused, or the connection was lost: then :meth:`is_alive` says so.
        """
        name = self._names.get(statement)
        if name is None:
            name = b"chatfold_%d" % len(self._names)
            text, _ = numbered(statement)
            await self._ask(lambda: self._pgconn.send_prepare(name, text))
            self._names[statement] = name
        formats = [Format.BINARY] * len(values)
        results = await self._ask(
            lambda: self._pgconn.send_query_prepared(name, values, formats, result_format=Format.BINARY)
        )
        return _rows(results[-1])

    async def _ask(self, send: Callable[[], None]) -> list[Any]:
        self._results = []
        self._waiter = waiter = self._loop.create_future()
        try:
            send()
            self._flush()
            results: list[Any] = await waiter
        except BaseException as error:
            # Whatever it was that ended the wait, no later answer may be taken for that of another statement.
            if not isinstance(error, psycopg.Error) or not self._is_idle():
                self._end()
            raise
        finally:
            self._waiter = None
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                refusal = error_from_result(result)
                if refusal.diag.severity_nonlocalized != "ERROR":  # the server's farewell; the end follows
                    self._end()
                raise refusal
        return results

    def _end(self) -> None:
        self.let_go()
        self._pgconn.finish()

    def _is_idle(self) -> bool:
        return self._open and self._pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE

    def _flush(self) -> None:
        if self._pgconn.flush():
            self._loop.add_writer(self._socket, self._writable)

    def _writable(self) -> None:
        try:
            if not self._pgconn.flush():
                self._loop.remove_writer(self._socket)
        except psycopg.Error as error:
            self._lost(error)

    def _readable(self) -> None:
        try:
            self._pgconn.consume_input()
            while self._waiter is not None and not self._pgconn.is_busy():
                result = self._pgconn.get_result()
                if result is None:
                    if not self._waiter.done():
                        self._waiter.set_result(self._results)
                    return
                self._results.append(result)
        except psycopg.Error as error:
            self._lost(error)

    def _lost(self, error: psycopg.Error) -> None:
        self.let_go()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)


def _rows(result: Any) -> list[Row]:
    width = range(result.nfields)
    get = result.get_value
    return [[get(row, column) for column in width] for row in range(result.ntuples)]
