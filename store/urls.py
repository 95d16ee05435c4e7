"""Store URLs: their forms, the settings in their queries, and their display without passwords."""

import re
from pathlib import Path
from typing import Final, Literal
from urllib.parse import parse_qsl, urlencode

from msgspec import Struct

from store.errors import InvalidStoreUrl

_PASSWORD: Final = re.compile(r"(?<=://)([^/?#@:]*):[^/?#]*(?=@)")
_PASSWORD_PARAMETER: Final = re.compile(r"(?<=[?&]password=)[^&]*")


class SqliteUrl(Struct, frozen=True, kw_only=True):
    """``sqlite:///PATH?synchronous=full|normal&busy_timeout=SECONDS&poll=SECONDS``, taken apart.

    ``synchronous`` normal may lose the last commits when the machine (not the process) dies, and commits faster.
    ``busy_timeout`` is how long another process's write is waited for; ``poll`` how often its writes are looked for (at
    0.03 that took 0.6 % of a core, and half of them were heard of within 15 ms).
    """

    url: str
    path: Path
    synchronous: Literal["full", "normal"] = "full"
    busy_timeout: float = 10.0
    poll: float = 0.03


class PostgresUrl(Struct, frozen=True, kw_only=True):
    """``postgresql://USER@HOST/DATABASE?pool_size=N``, taken apart.

    All other parameters are libpq's and stay in ``conninfo``.
    """

    url: str
    conninfo: str
    pool_size: int = 10


def redacted(url: str) -> str:
    """Return ``url`` with its password replaced by stars, for messages and logs."""
    return _PASSWORD_PARAMETER.sub("***", _PASSWORD.sub(r"\1:***", url))


def parse_sqlite(url: str) -> SqliteUrl:
    """Take a SQLite URL apart.

    Raises:
        InvalidStoreUrl: No path, a path in memory, or an unknown or ill-formed setting.
    """
    before, _, query = url.partition("?")
    rest = before.removeprefix("sqlite://")
    if not rest.startswith("/") or rest == "/":
        raise InvalidStoreUrl(url, "a file is missing")
    if rest == "/:memory:":
        raise InvalidStoreUrl(url, "SQLite is used with files; chats in memory are memory://")
    synchronous: Literal["full", "normal"] = "full"
    seconds = {"busy_timeout": 10.0, "poll": 0.03}
    for key, value in _parameters(query):
        if key == "synchronous" and value.lower() in {"full", "normal"}:
            synchronous = "normal" if value.lower() == "normal" else "full"
        elif key in seconds:
            seconds[key] = _positive(url, key, value)
        else:
            raise InvalidStoreUrl(url, f"{key}={value} is no setting of SQLite")
    return SqliteUrl(url=url, path=Path(rest[1:]), synchronous=synchronous, **seconds)


def parse_postgres(url: str) -> PostgresUrl:
    """Take a PostgreSQL URL apart.

    Raises:
        InvalidStoreUrl: ``pool_size`` is not a whole number from 1.
    """
    before, _, query = url.partition("?")
    pool_size, kept = 10, []
    for key, value in _parameters(query):
        if key != "pool_size":
            kept.append((key, value))
            continue
        if not value.isascii() or not value.isdigit() or int(value) < 1:
            raise InvalidStoreUrl(redacted(url), f"pool_size={value} is not a whole number from 1")
        pool_size = int(value)
    conninfo = url if "pool_size=" not in query else before + ("?" + urlencode(kept) if kept else "")
    return PostgresUrl(url=redacted(url), conninfo=conninfo, pool_size=pool_size)


def _parameters(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, keep_blank_values=True)


def _positive(url: str, key: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6:
        raise InvalidStoreUrl(url, f"{key}={value} is not a number of seconds above 0")
    return number
