"""The two statements that the line writes appends with: one for the appends of many chats, and one for a lone one.

Owns their texts, how their values are packed and what their answers mean. Batches are made by ``store.grouping``;
appends that create, erase, carry blobs or are large take another connection (``store.postgres``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from store.contract import Append, Appended, AppendResult, Conflict, DuplicateCommand
from store.postgres_arrays import bigint, bigints, boolean, booleans, byte_string, byte_strings, number_of, text, texts
from store.postgres_line import Row, numbered
from store.postgres_sql import MOST_SINGLY, plain_statement
from store.postgres_texts import command_found, type_of
from store.rows import WRITTEN_EVENT_COLUMNS, WRITTEN_HEADER_COLUMNS, event_row, header_row
from store.rules import new_commands

MOST_BYTES: Final = 256_000
"""Bytes of an append's payload up to which it goes over the line."""

Outcome: TypeAlias = AppendResult | None
"""None where an append was passed over, or must be looked at again: its snapshot did not show what stopped it."""

_PACK: Final[dict[str, Callable[[Iterable[Any]], bytes]]] = {
    "bigint": bigints,
    "text": texts,
    "bytea": byte_strings,
    "boolean": booleans,
}
_SEND: Final[dict[str, Callable[[Any], bytes | None]]] = {
    "bigint": bigint,
    "text": text,
    "bytea": byte_string,
    "boolean": boolean,
}
_HEADER: Final = ", ".join(WRITTEN_HEADER_COLUMNS)
_EVENT: Final = ", ".join(WRITTEN_EVENT_COLUMNS)
_HEADER_PACKS: Final = tuple(_PACK[type_of(column)] for column in WRITTEN_HEADER_COLUMNS)
_EVENT_PACKS: Final = tuple(_PACK[type_of(column)] for column in WRITTEN_EVENT_COLUMNS)


def _arrays(prefix: str, columns: Sequence[str]) -> str:
    return ", ".join(f"%({prefix}_{column})b::{type_of(column)}[]" for column in columns)


# Values come in the order of their names: headers, what is said of each append, events, commands. What joins them is
# the append's place in the batch, and lists of places are looked through: joins would go through all pairs of rows.
APPEND: Final = f"""
WITH given AS MATERIALIZED (
  SELECT * FROM unnest({_arrays("header", WRITTEN_HEADER_COLUMNS)}, %(expected)b::bigint[], %(ends)b::boolean[])
  WITH ORDINALITY AS g ({_HEADER}, expected, ends, place)
), locked AS MATERIALIZED (
  SELECT g.*, c.version AS stands FROM given g JOIN chats c ON c.chat = g.chat
  ORDER BY g.place FOR NO KEY UPDATE OF c SKIP LOCKED
), found AS MATERIALIZED (
  SELECT n.place, e.version, e.fingerprint
  FROM unnest(%(command_places)b::bigint[], %(command_chats)b::text[], %(commands)b::text[]) AS n (place, chat, command)
  CROSS JOIN LATERAL ({command_found("n.chat", "n.command")}) e
), changed AS (
  UPDATE chats c SET ({_HEADER}) = ROW ({", ".join(f"l.{column}" for column in WRITTEN_HEADER_COLUMNS)})
  FROM locked l WHERE c.chat = l.chat AND l.stands = l.expected AND l.place <> ALL (ARRAY (SELECT place FROM found))
  RETURNING l.place, l.ends, c.chat
), inserted AS (
  INSERT INTO chat_events ({_EVENT}, chat, tx)
  SELECT {", ".join(f"e.{column}" for column in WRITTEN_EVENT_COLUMNS)}, e.chat, pg_current_xact_id()
  FROM unnest({_arrays("event", WRITTEN_EVENT_COLUMNS)}, %(event_chats)b::text[], %(event_places)b::bigint[])
  WITH ORDINALITY AS e ({_EVENT}, chat, place, n)
  WHERE e.place = ANY (ARRAY (SELECT place FROM changed)) ORDER BY e.n
), ended AS (DELETE FROM chat_partials WHERE chat = ANY (ARRAY (SELECT chat FROM changed WHERE ends)))
SELECT g.place, (SELECT l.stands FROM locked l WHERE l.place = g.place), c.version, f.version, f.fingerprint
FROM given g LEFT JOIN chats c ON c.chat = g.chat
LEFT JOIN LATERAL (SELECT * FROM found WHERE place = g.place ORDER BY version LIMIT 1) f ON true
WHERE g.place <> ALL (ARRAY (SELECT place FROM changed))
"""
"""Writes appends of different chats, sorted by chat; says of those alone that it did not write what it found."""


def size_of(append: Append) -> int:
    """Return about how many bytes an append's payload has."""
    return len(append.header.control) + sum(
        500 + len(new.stored.facts) + len(new.stored.content) for new in append.events
    )


def goes_over_the_line(append: Append, size: int) -> bool:
    """Whether an append may be written by the statements of this module."""
    plain = not (append.blobs or append.erased or append.unused_blobs)
    return plain and append.expected_version > 0 and size <= MOST_BYTES


def batch_values(batch: Sequence[Append]) -> list[bytes]:
    """Return the values of :data:`APPEND`.

    Raises:
        UnicodeEncodeError: A text has a lone surrogate.
        OverflowError: A number is beyond 64 bits.
    """
    rows = zip(*[header_row(append.header) for append in batch], strict=True)
    values = [pack(column) for pack, column in zip(_HEADER_PACKS, rows, strict=True)]
    values.append(bigints([append.expected_version for append in batch]))
    values.append(booleans([append.drop_partials for append in batch]))
    placed = [(place, append.chat, new) for place, append in enumerate(batch, 1) for new in append.events]
    starts = [each for each in placed if each[2].stored.envelope.index == 0]
    values.append(bigints([place for place, _, _ in starts]))
    values.append(texts([chat for _, chat, _ in starts]))
    values.append(texts([new.stored.envelope.command for _, _, new in starts]))
    rows = zip(*[event_row(new) for _, _, new in placed], strict=True)
    values += [pack(column) for pack, column in zip(_EVENT_PACKS, rows, strict=True)]
    values.append(texts([chat for _, chat, _ in placed]))
    values.append(bigints([place for place, _, _ in placed]))
    return values


def batch_outcomes(count: int, rows: Iterable[Row]) -> list[Outcome]:
    """Read what :data:`APPEND` says of ``count`` appends."""
    outcomes: list[Outcome] = [Appended()] * count
    for place, stands, seen, duplicate, fingerprint in rows:
        outcome: Outcome = None
        if duplicate is not None:
            outcome = DuplicateCommand(number_of(duplicate) or 0, fingerprint)
        elif stands is not None and stands == seen:
            outcome = Conflict(number_of(stands) or 0)
        outcomes[(number_of(place) or 0) - 1] = outcome
    return outcomes


def goes_singly(append: Append) -> bool:
    """Whether a lone append is written by :func:`lone_statement`."""
    return len(append.events) <= MOST_SINGLY and len(new_commands(append.events)) == 1


def lone_statement(append: Append) -> tuple[str, list[bytes | None]]:
    """Return the statement that writes an append that comes alone, with its values.

    Raises:
        UnicodeEncodeError: A text has a lone surrogate.
        OverflowError: A number is beyond 64 bits.
    """
    given = [*header_row(append.header), append.expected_version, *new_commands(append.events)]
    for new in append.events:
        given += event_row(new)
    statement, order = _lone(len(append.events), ends=append.drop_partials)
    return statement, [send(given[place]) for place, send in order]


def lone_outcome(append: Append, row: Row) -> Outcome:
    """Read what the statement of a lone append says."""
    written, duplicate, fingerprint, version, _ = row
    if number_of(written):
        return Appended()
    if duplicate is not None:
        return DuplicateCommand(number_of(duplicate) or 0, fingerprint)
    found = number_of(version)
    # Another one may have come between the look for the command and this one: whoever conflicts looks again.
    return None if found is None or found == append.expected_version else Conflict(found)


@cache
def _lone(count: int, *, ends: bool) -> tuple[str, list[tuple[int, Callable[[Any], bytes | None]]]]:
    statement = plain_statement(count, ends=ends)
    names = [*WRITTEN_HEADER_COLUMNS, "expected", "command"]
    types = [*map(type_of, WRITTEN_HEADER_COLUMNS), "bigint", "text"]
    for n in range(count):
        names += [f"event{n}_{column}" for column in WRITTEN_EVENT_COLUMNS]
        types += map(type_of, WRITTEN_EVENT_COLUMNS)
    return statement, [(names.index(name), _SEND[types[names.index(name)]]) for name in numbered(statement)[1]]
