"""What PostgreSQL is told of all that stands beside the log: partials, segments, blobs, workers, refusals, repair."""

from collections.abc import Sequence
from typing import Any, Final

from store.contract import PartialChunk, Segment
from store.notes import RefusalNote
from store.postgres_texts import CLOCK, NOW, value_of
from store.rows import WRITTEN_HEADER_COLUMNS, note_bytes
from store.rules import ERASES

_WRITTEN_HEADER: Final = ", ".join(WRITTEN_HEADER_COLUMNS)
_HEADER_VALUES: Final = ", ".join(value_of(column) for column in WRITTEN_HEADER_COLUMNS)

RENEW: Final = f"""
WITH old AS (SELECT expires_at FROM workers WHERE worker = %(worker)s),
renewed AS (
  UPDATE workers SET expires_at = {CLOCK} + %(lease)s WHERE worker = %(worker)s AND expires_at > {CLOCK} RETURNING 1
)
SELECT {CLOCK}, (SELECT count(*) FROM renewed), (SELECT expires_at FROM old),
  ARRAY (SELECT worker FROM workers WHERE expires_at > {CLOCK})
"""
START: Final = f"""
WITH cleared AS (DELETE FROM workers WHERE expires_at < {NOW} - {7 * 24 * 3600 * 10**6} AND worker <> %(worker)s),
old AS (SELECT expires_at FROM workers WHERE worker = %(worker)s),
started AS (
  INSERT INTO workers (worker, expires_at, note) VALUES (%(worker)s, {CLOCK} + %(lease)s, %(note)b)
  ON CONFLICT (worker) DO UPDATE SET expires_at = excluded.expires_at WHERE workers.expires_at > {CLOCK} RETURNING 1
)
SELECT {CLOCK}, (SELECT count(*) FROM started), (SELECT expires_at FROM old),
  ARRAY (SELECT worker FROM workers WHERE expires_at > {CLOCK})
"""
EXPIRE: Final = f"UPDATE workers SET expires_at = least(expires_at, {CLOCK}) WHERE worker = %(worker)s"
WORKERS: Final = "SELECT worker, expires_at, note FROM workers ORDER BY worker"

# With the lock the header is looked at again, so a chunk never lands behind the end of its attempt.
WRITE_PARTIALS: Final = """
WITH kept AS MATERIALIZED (
  SELECT g.chat, g.history_version, g.attempt, g.n, g.data
  FROM unnest(%(chats)b::text[], %(epochs)b::bigint[], %(histories)b::bigint[], %(attempts)b::bigint[],
    %(numbers)b::bigint[], %(data)b::bytea[]) AS g (chat, epoch, history_version, attempt, n, data)
  JOIN chats c ON c.chat = g.chat AND c.epoch = g.epoch AND c.history_version = g.history_version
    AND c.attempt = g.attempt
  FOR SHARE OF c SKIP LOCKED
), written AS (
  INSERT INTO chat_partials (chat, history_version, attempt, n, data) SELECT * FROM kept ON CONFLICT DO NOTHING
)
SELECT DISTINCT chat FROM kept
"""
READ_PARTIALS: Final = """
SELECT p.chat, c.epoch, p.history_version, p.attempt, p.n, p.data
FROM chat_partials p JOIN chats c ON c.chat = p.chat WHERE p.chat = %(chat)s
ORDER BY p.history_version, p.attempt, p.n
"""

_SEGMENT: Final = "chat, first_version, last_version, start, count, schema_number, digest"
READ_SEGMENTS: Final = (
    f"SELECT {_SEGMENT}, data FROM segments WHERE chat = %(chat)s ORDER BY last_version, first_version"
)
LIST_SEGMENTS: Final = READ_SEGMENTS.replace(", data ", ", ''::bytea ", 1)
LOCK_FOR_SEGMENT: Final = (
    "SELECT 1 FROM chats WHERE chat = %(chat)s AND version >= %(last_version)s FOR SHARE SKIP LOCKED"
)
# A statement of its own, so that it sees what was committed before the lock was there.
WRITE_SEGMENT: Final = f"""
WITH sound AS (
  SELECT 1 WHERE NOT EXISTS (
    SELECT FROM chat_events WHERE chat = %(chat)s AND version > %(last_version)s AND type = '{ERASES}'
  )
), gone AS (
  DELETE FROM segments s
  USING sound, unnest(%(old_firsts)b::bigint[], %(old_lasts)b::bigint[]) AS old (first_version, last_version)
  WHERE s.chat = %(chat)s AND s.first_version = old.first_version AND s.last_version = old.last_version
), written AS (
  INSERT INTO segments ({_SEGMENT}, data)
  SELECT %(chat)s, %(first_version)s, %(last_version)s, %(start)s, %(count)s, %(schema)s, %(digest)b, %(data)b
  FROM sound ON CONFLICT DO NOTHING
)
SELECT count(*) FROM sound
"""
DROP_SEGMENTS: Final = "DELETE FROM segments WHERE chat = %(chat)s"

LOCK_HEADER: Final = "SELECT 1 FROM chats WHERE chat = %(chat)s FOR UPDATE"
LAST_VERSION: Final = "SELECT version FROM chat_events WHERE chat = %(chat)s ORDER BY version DESC LIMIT 1"
_GIVEN_HEADER: Final = ", ".join(f"excluded.{column}" for column in WRITTEN_HEADER_COLUMNS)
REBUILD_HEADER: Final = f"""
INSERT INTO chats ({_WRITTEN_HEADER}) VALUES ({_HEADER_VALUES})
ON CONFLICT (chat) DO UPDATE SET ({_WRITTEN_HEADER}) = ROW ({_GIVEN_HEADER})
"""

READ_USES: Final = "SELECT digest FROM blob_uses WHERE chat = %(chat)s"
# Locked first, in the order of LOCK_BLOBS: who is about to delete one of them waits, and finds it used.
REBUILD_USES: Final = """
WITH kept AS (SELECT digest FROM blobs WHERE digest = ANY(%(digests)b::text[]) ORDER BY digest FOR SHARE),
gone AS (DELETE FROM blob_uses WHERE chat = %(chat)s AND digest <> ALL(%(digests)b::text[]))
INSERT INTO blob_uses (chat, digest) SELECT %(chat)s::text, digest FROM kept ON CONFLICT DO NOTHING
"""
DROP_USES: Final = "DELETE FROM blob_uses WHERE chat = %(chat)s AND digest = ANY(%(digests)b::text[])"
# Locked first and looked at by a second statement: who uses one of them meanwhile is seen by that one.
LOCK_BLOBS: Final = "SELECT digest FROM blobs WHERE digest = ANY(%(digests)b::text[]) ORDER BY digest FOR UPDATE"
DROP_BLOBS: Final = """
DELETE FROM blobs b WHERE digest = ANY(%(digests)b::text[])
AND NOT EXISTS (SELECT FROM blob_uses u WHERE u.digest = b.digest)
"""
UNUSED_BLOBS: Final = """
SELECT digest FROM blobs b WHERE NOT EXISTS (SELECT FROM blob_uses u WHERE u.digest = b.digest)
ORDER BY digest LIMIT 1000
"""

NOTE_REFUSALS: Final = """
INSERT INTO refusals (chat, at, data)
SELECT g.* FROM unnest(%(chats)b::text[], %(times)b::bigint[], %(data)b::bytea[]) AS g (chat, at, data)
JOIN chats c ON c.chat = g.chat
ON CONFLICT (chat) DO UPDATE SET at = excluded.at, data = excluded.data WHERE refusals.at <= excluded.at
"""
LAST_REFUSAL: Final = "SELECT data FROM refusals WHERE chat = %(chat)s"


def partial_values(chunks: Sequence[PartialChunk]) -> dict[str, Any]:
    """Return the parameters of ``WRITE_PARTIALS``."""
    return {
        "chats": [each.chat for each in chunks],
        "epochs": [each.epoch for each in chunks],
        "histories": [each.history_version for each in chunks],
        "attempts": [each.attempt for each in chunks],
        "numbers": [each.n for each in chunks],
        "data": [each.data for each in chunks],
    }


def segment_values(segment: Segment, replaces: Sequence[Segment]) -> dict[str, Any]:
    """Return the parameters of ``WRITE_SEGMENT``, which are those of ``LOCK_FOR_SEGMENT`` too."""
    return {
        "chat": segment.chat,
        "first_version": segment.first_version,
        "last_version": segment.last_version,
        "start": segment.start,
        "count": segment.count,
        "schema": segment.schema,
        "digest": segment.digest,
        "data": segment.data,
        "old_firsts": [old.first_version for old in replaces],
        "old_lasts": [old.last_version for old in replaces],
    }


def refusal_values(notes: Sequence[RefusalNote]) -> dict[str, Any]:
    """Return the parameters of ``NOTE_REFUSALS``: the newest note of each chat."""
    newest = {note.chat: note for note in sorted(notes, key=lambda note: note.at)}
    return {
        "chats": list(newest),
        "times": [note.at for note in newest.values()],
        "data": [note_bytes(note) for note in newest.values()],
    }
