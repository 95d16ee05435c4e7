"""What columns hold, and the error where one holds something else: SQLite lets every type into every column.

Owns the check of rows that were read. Which columns there are, and what they become, is said where they are read.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from store.errors import MalformedRow

Types: TypeAlias = frozenset[type]

TEXT: Final[Types] = frozenset({str})
NUMBER: Final[Types] = frozenset({int})
BYTES: Final[Types] = frozenset({bytes})
FLAG: Final[Types] = frozenset({bool, int})
MAYBE_TEXT: Final[Types] = frozenset({str, type(None)})
MAYBE_NUMBER: Final[Types] = frozenset({int, type(None)})
MAYBE_BYTES: Final[Types] = frozenset({bytes, type(None)})

HEADERS: Final = "chats"
EVENTS: Final = "chat_events"


def check_row(
    table: str,
    columns: Sequence[str],
    types: Sequence[Types],
    row: Sequence[Any],
    *,
    chat: object = None,
    version: object = None,
) -> None:
    """Check that the first values of ``row`` are of the types that their columns hold.

    Args:
        table: Whose row it is.
        columns: Names of columns, one for each of ``types``; ``row`` may hold more.
        types: What they hold.
        row: What was read.
        chat: The chat whose row it is; None where it is nobody's.
        version: The event's version, where the row belongs to one.

    Raises:
        MalformedRow: One is of another type; names the table, the column and the chat.
    """
    for column, wanted, value in zip(columns, types, row, strict=False):
        if type(value) not in wanted:
            raise MalformedRow(
                None if chat is None else str(chat),
                version if type(version) is int else None,
                f"column {column} holds {type(value).__name__}, not {' or '.join(sorted(t.__name__ for t in wanted))}",
                table=table,
                column=column,
            )
