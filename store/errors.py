"""Errors of the ``store`` layer, under one base. The docstring says when one is raised."""

from __future__ import annotations

from events.errors import MalformedEvent
from store.contract import FeedPosition


class StoreError(Exception):
    """Base of all errors of this layer."""


class StoreUnavailable(StoreError):
    """The database could not be reached or refused the work; nothing was written."""


class OutcomeUnknown(StoreError):
    """A write was sent and its reply was lost: whether it took effect is not known until the log is read."""


class SchemaOutdated(StoreError):
    """The database's schema is not the one that this release needs."""

    def __init__(self, url: str, found: str | None, needed: str) -> None:
        super().__init__(f"{url} has schema {found or 'none'}, this release needs {needed}: run `chatfold migrate`")
        self.url = url
        self.found = found
        self.needed = needed


class SchemaTooNew(SchemaOutdated):
    """The database's schema was written by a newer release than this one."""

    def __init__(self, url: str, found: str, needed: str) -> None:
        super().__init__(url, found, needed)
        self.args = (
            f"{url} has schema {found}, which a newer release wrote; this one knows {needed}: upgrade chatfold",
        )


class MalformedAppend(StoreError, ValueError):
    """An append contradicts itself: versions with gaps, a header of another version, a command twice.

    Nothing was written.
    """


class Unstorable(StoreError, ValueError):
    """A value cannot be kept exactly: text with a lone surrogate, or an integer beyond 64 bits. Nothing was written."""


class MissingExtra(StoreError, ImportError):
    """A back end needs packages that an extra of chatfold brings."""

    def __init__(self, backend: str, extra: str) -> None:
        super().__init__(f"{backend} needs more packages: pip install 'chatfold[{extra}]'")
        self.backend = backend
        self.extra = extra


class InvalidStoreUrl(StoreError, ValueError):
    """A store URL is not one of the forms that ``open_store`` takes."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(
            f"{url!r}: {why}; use sqlite:///chats.db (three slashes: relative, four: absolute), "
            "postgresql://user@host/database or memory://"
        )
        self.url = url
        self.why = why


class MalformedRow(StoreError, MalformedEvent):
    """A row of the database is not as chatfold writes it: somebody else changed it.

    Attributes:
        chat: The chat whose row it is; None where it is no chat's, or not known.
        version: The event's version; None where it is the header's row, or not known.
        table: The table; None where it is not known.
        column: The column; None where it is not known, or the row is gone.
    """

    def __init__(
        self, chat: str | None, version: int | None, why: str, *, table: str | None = None, column: str | None = None
    ) -> None:
        MalformedEvent.__init__(self, _place(chat, version, table), why)
        self.chat = chat
        self.version = version
        self.table = table
        self.column = column


class FeedEventUnreadable(StoreError):
    """An event of the feed cannot be read: its row was damaged, or a newer release wrote it. What follows it can be.

    A feed that raised it has ended. Who begins again ``after`` its position (or cursor) goes on behind the event.

    Attributes:
        position: The event's place in the feed of a store, and
        cursor: the same as an engine's consumers keep it.
        chat: The chat whose event it is.
        why: What is wrong.
    """

    def __init__(self, position: FeedPosition, chat: str, why: str) -> None:
        super().__init__(f"the feed's event at {position.cursor}, of chat {chat!r}, cannot be read: {why}")
        self.position = position
        self.cursor = position.cursor
        self.chat = chat
        self.why = why


class ChatExists(StoreError):
    """A chat of this id exists already (or existed and was deleted)."""

    def __init__(self, chat: str) -> None:
        super().__init__(f"chat {chat!r} exists already, or did; use another id")
        self.chat = chat


class FeedMoved(StoreError):
    """The database is another than the one that a feed's positions were given by: it was restored from a copy."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"{why}: the database was restored from a copy; let each consumer begin anew, without a cursor"
        )


def _place(chat: str | None, version: int | None, table: str | None) -> str:
    """Say where a row stands: headers and events as people know them, other rows by their table."""
    unknown = "an event" if table == "chat_events" else "the header"
    event = unknown if version is None else f"version {version}"
    if table not in (None, "chats", "chat_events"):
        return f"table {table}" if chat is None else f"table {table}, chat {chat!r}"
    return f"table {table or 'not known'}" if chat is None else f"chat {chat!r}, {event}"
