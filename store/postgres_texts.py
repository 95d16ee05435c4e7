"""What PostgreSQL's statements are made of: types of columns, the database's clock, placeholders.

Leases and deadlines are judged by ``statement_timestamp()``: unlike ``now()`` it does not stand still in a transaction,
and unlike ``clock_timestamp()`` it lies before the statement's snapshot, so a lease whose renewal the snapshot cannot
see yet is never judged dead.
"""

from typing import Final

_BIGINTS: Final = {
    "queued", "version", "history_version", "queue_version", "epoch", "due_at", "created_at", "updated_at",
    "reader_level", "ready_at", "listed_at", "attempt", "schema_number", "recorded_at", "command_index",
}  # fmt: skip
_BYTES: Final = {"control", "digest", "facts", "content", "fingerprint"}
_BOOLEANS: Final = {"interrupting", "archived", "pinned", "is_foreign"}

NOW: Final = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"
CLOCK: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


def type_of(column: str) -> str:
    """Return the type of a column of headers or events."""
    if column in _BIGINTS:
        return "bigint"
    if column in _BYTES:
        return "bytea"
    return "boolean" if column in _BOOLEANS else "text"


def read_as_is(column: str) -> str:
    """Return a column of events, so that the driver reads its text by itself: without a look for escapes."""
    # The bytes are the same; the driver's loader for this type is its own, and not the one in ``postgres_pool``.
    return f"{column}::bpchar" if type_of(column.rpartition(".")[2]) == "text" else column


def value_of(column: str, name: str = "") -> str:
    """Return the placeholder of a column's value."""
    # Bytes go as they are; escaped as text they would be twice as long.
    return f"%({name or column}){'b' if column in _BYTES else 's'}::{type_of(column)}"


def command_found(chat: str, command: str) -> str:
    """Return the query of where a command stands in the log of a chat, by two expressions.

    A range of one and not equal, so that it has an order: while a table is new, the planner deems the indexes of events
    equally good, takes any of them, and with some of them would walk through a whole chat or through all chats.
    """
    return (
        f"SELECT version, nullif(fingerprint, '') AS fingerprint FROM chat_events WHERE chat = {chat} "
        f"AND command >= {command} AND command <= {command} AND command_index = 0 ORDER BY command LIMIT 1"
    )
