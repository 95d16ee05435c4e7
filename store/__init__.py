"""Where it is kept: append with fences, leases, hints, migrations. I/O.

Open a store by its URL; a back end and its driver are imported when a URL asks for them.
"""

from store.contract import Store
from store.errors import InvalidStoreUrl, MissingExtra
from store.urls import redacted

__chatfold_layer__ = "store"  # read by chatfold._layers: tells this package from others of its name

__all__ = ["InvalidStoreUrl", "MissingExtra", "Store", "open_store", "redacted"]


def open_store(url: str) -> Store:
    """Return the store at ``url``, to be opened as an async context manager.

    Args:
        url: ``sqlite:///chats.db`` (three slashes: relative, four: absolute), ``postgresql://USER@HOST/DATABASE`` or
            ``memory://``. See :mod:`store.urls` for the settings that may follow a question mark.

    Raises:
        InvalidStoreUrl: The URL has none of these forms, or is no text.
        MissingExtra: The PostgreSQL driver is not installed.
    """
    given: object = url
    if not isinstance(given, str):
        raise InvalidStoreUrl(f"{given!r:.80}", f"a store's URL is a text, not {type(given).__name__}")
    scheme = url.partition("://")[0]
    if scheme == "sqlite":
        from store.sqlite import SqliteStore

        return SqliteStore(url)
    if scheme in {"postgresql", "postgres"}:
        try:
            from store.postgres import PostgresStore
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in {"psycopg", "psycopg_pool"}:
                raise
            raise MissingExtra("PostgreSQL", "postgres") from error
        return PostgresStore(url)
    if url == "memory://":
        from store.memory import MemoryStore

        return MemoryStore()
    raise InvalidStoreUrl(redacted(url), "no store of this kind")
