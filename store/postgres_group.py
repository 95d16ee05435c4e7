"""The one statement that writes the appends of many chats, and how its parameters are packed.

Headers are locked in the order of ids, those that somebody else has locked are passed over; each append is written or
says why not. Batches are made by ``store.grouping``; appends that create, erase, or carry blobs take the plain path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from store.contract import Append, Appended, AppendResult, Conflict, DuplicateCommand
from store.postgres_arrays import Packed, bigints, booleans, byte_strings, texts
from store.postgres_texts import type_of
from store.rows import WRITTEN_EVENT_COLUMNS, WRITTEN_HEADER_COLUMNS, event_row, header_row

MOST_BYTES: Final = 256_000
"""Bytes of an append's payload up to which it goes with others."""

_PACK: Final[dict[str, Callable[[Iterable[Any]], Packed]]] = {
    "bigint": bigints,
    "text": texts,
    "bytea": byte_strings,
    "boolean": booleans,
}
_HEADER: Final = ", ".join(WRITTEN_HEADER_COLUMNS)
_EVENT: Final = ", ".join(WRITTEN_EVENT_COLUMNS)
_HEADER_NAMES: Final = tuple(f"header_{column}" for column in WRITTEN_HEADER_COLUMNS)
_EVENT_NAMES: Final = tuple(f"event_{column}" for column in WRITTEN_EVENT_COLUMNS)
_HEADER_PACKS: Final = tuple(_PACK[type_of(column)] for column in WRITTEN_HEADER_COLUMNS)
_EVENT_PACKS: Final = tuple(_PACK[type_of(column)] for column in WRITTEN_EVENT_COLUMNS)


def _arrays(names: Sequence[str], columns: Sequence[str]) -> str:
    return ", ".join(f"%({name})b::{type_of(column)}[]" for name, column in zip(names, columns, strict=True))


APPEND: Final = f"""
WITH given AS (
  SELECT * FROM unnest({_arrays(_HEADER_NAMES, WRITTEN_HEADER_COLUMNS)}, %(expected)b::bigint[], %(ends)b::boolean[])
  AS g ({_HEADER}, expected, ends)
), locked AS MATERIALIZED (
  SELECT c.chat, c.version FROM chats c WHERE c.chat = ANY(%(header_chat)b::text[])
  ORDER BY c.chat FOR NO KEY UPDATE SKIP LOCKED
), found AS MATERIALIZED (
  SELECT DISTINCT ON (e.chat) e.chat, e.version, e.fingerprint
  FROM unnest(%(command_chats)b::text[], %(commands)b::text[]) AS n (chat, command)
  JOIN chat_events e ON e.chat = n.chat AND e.command = n.command AND e.command_index = 0 ORDER BY e.chat, e.version
), changed AS (
  UPDATE chats c SET ({_HEADER}) = ROW ({", ".join(f"g.{column}" for column in WRITTEN_HEADER_COLUMNS)})
  FROM given g JOIN locked l ON l.chat = g.chat AND l.version = g.expected
  WHERE c.chat = g.chat AND NOT EXISTS (SELECT FROM found f WHERE f.chat = g.chat) RETURNING c.chat, g.ends
), inserted AS (
  INSERT INTO chat_events ({_EVENT}, chat, tx)
  SELECT {", ".join(f"e.{column}" for column in WRITTEN_EVENT_COLUMNS)}, e.chat, pg_current_xact_id()
  FROM unnest({_arrays(_EVENT_NAMES, WRITTEN_EVENT_COLUMNS)}, %(event_chats)b::text[]) WITH ORDINALITY
  AS e ({_EVENT}, chat, n) JOIN changed h ON h.chat = e.chat ORDER BY e.n
), ended AS (DELETE FROM chat_partials p USING changed h WHERE h.ends AND p.chat = h.chat)
SELECT g.chat, l.version, f.version, f.fingerprint, h.chat IS NOT NULL
FROM given g LEFT JOIN locked l ON l.chat = g.chat LEFT JOIN found f ON f.chat = g.chat
LEFT JOIN changed h ON h.chat = g.chat
"""


def size_of(append: Append) -> int:
    """Return about how many bytes an append's payload has."""
    return len(append.header.control) + sum(
        500 + len(new.stored.facts) + len(new.stored.content) for new in append.events
    )


def goes_with_others(append: Append, size: int) -> bool:
    """Whether an append may be written by :data:`APPEND`."""
    plain = not (append.blobs or append.erased or append.unused_blobs)
    return plain and append.expected_version > 0 and size <= MOST_BYTES


def values_of(batch: Sequence[Append]) -> dict[str, Packed]:
    """Return the parameters of :data:`APPEND`.

    Raises:
        UnicodeEncodeError: A text has a lone surrogate.
        OverflowError: A number is beyond 64 bits.
    """
    headers = zip(*[header_row(append.header) for append in batch], strict=True)
    values = {name: pack(column) for name, pack, column in zip(_HEADER_NAMES, _HEADER_PACKS, headers, strict=True)}
    events = zip(*[event_row(new) for append in batch for new in append.events], strict=True)
    values.update({name: pack(column) for name, pack, column in zip(_EVENT_NAMES, _EVENT_PACKS, events, strict=True)})
    starts = [
        (append.chat, new.stored.envelope.command)
        for append in batch
        for new in append.events
        if new.stored.envelope.index == 0
    ]
    values["expected"] = bigints([append.expected_version for append in batch])
    values["ends"] = booleans([append.drop_partials for append in batch])
    values["event_chats"] = texts([append.chat for append in batch for _ in append.events])
    values["command_chats"] = texts([chat for chat, _ in starts])
    values["commands"] = texts([command for _, command in starts])
    return values


def result_of(row: Sequence[Any]) -> AppendResult | None:
    """Read what :data:`APPEND` says of one append; None where its header was locked, or is not there."""
    _, version, duplicate, fingerprint, written = row
    if written:
        return Appended()
    if duplicate is not None:
        return DuplicateCommand(duplicate, fingerprint)
    return None if version is None else Conflict(version)
