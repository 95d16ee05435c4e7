"""Finding chats that want a worker in a SQLite file, fair between owners, at a cost that does not grow with the file.

Owns the window: the oldest due chats of each kind are looked at and put in turn. Only where more chats are due than
that, each owner's oldest is looked for too, so that a thousand chats of one owner do not hide another's only one.
"""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from store.columns import HEADERS
from store.contract import DueChat
from store.due import OWNERS, Candidate, in_turn, window
from store.sqlite_sql import LIVES, readable

# Rows whose names are no texts are passed by: verifying tells of them, and the others want their workers.
_WANTED: Final = """ready_at IS NOT NULL AND typeof(chat) = 'text' AND typeof(owner) = 'text' AND reader_level <= :level
AND agent IN (SELECT value FROM json_each(:agents)) AND chat NOT IN (SELECT value FROM json_each(:exclude))"""

LOST: Final = f"""
WITH RECURSIVE holders (holder) AS (
  SELECT min(holder) FROM chats WHERE holder IS NOT NULL AND ready_at IS NOT NULL
  UNION ALL
  SELECT (SELECT min(c.holder) FROM chats c WHERE c.holder > h.holder AND c.ready_at IS NOT NULL)
  FROM holders h WHERE h.holder IS NOT NULL
), dead AS (
  SELECT holder FROM holders h WHERE holder IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.worker = h.holder AND {LIVES})
)
SELECT NOT interrupting, CAST(ready_at AS INTEGER), chat,
  CASE WHEN interrupting THEN 'interruption' ELSE 'takeover' END, owner
FROM dead d CROSS JOIN chats c ON c.holder = d.holder WHERE +status = 'running' AND {_WANTED}
"""
"""Chats of dead holders: no more than their workers had room for."""

PENDING: Final = f"""
SELECT 1, CAST(ready_at AS INTEGER), chat, 'pending', owner FROM chats
WHERE status = 'pending' AND (due_at IS NULL OR ready_at <= :now) AND {_WANTED} ORDER BY ready_at, chat LIMIT :window
"""
EXPIRED: Final = f"""
SELECT 1, CAST(ready_at AS INTEGER), chat, 'expired', owner FROM chats
WHERE status = 'requires_action' AND ready_at <= :now AND {_WANTED} ORDER BY ready_at, chat LIMIT :window
"""
FIRSTS: Final = f"""
WITH RECURSIVE owners (owner, n) AS (
  SELECT min(owner), 1 FROM chats WHERE status = 'pending' AND ready_at IS NOT NULL
  UNION ALL
  SELECT (SELECT min(c.owner) FROM chats c WHERE c.status = 'pending' AND c.ready_at IS NOT NULL AND c.owner > o.owner),
  n + 1 FROM owners o WHERE o.owner IS NOT NULL AND n < :owners
)
SELECT 1, CAST(c.ready_at AS INTEGER), c.chat, 'pending', c.owner FROM owners o CROSS JOIN chats c ON c.chat = (
  SELECT chat FROM chats
  WHERE status = 'pending' AND owner = o.owner AND (due_at IS NULL OR ready_at <= :now) AND {_WANTED}
  ORDER BY ready_at, chat LIMIT 1
)
"""
"""Each owner's oldest pending chat."""


def find_due(
    connection: sqlite3.Connection, agents: Sequence[str], level: int, limit: int, now: int, exclude: Sequence[str]
) -> list[DueChat]:
    """Read the chats that want a worker, owners in turn."""
    if limit <= 0:
        return []
    most = window(limit)
    values: dict[str, Any] = {
        "agents": json.dumps(list(agents)),
        "exclude": json.dumps(list(exclude)),
        "level": level,
        "now": now,
        "window": most,
        "owners": OWNERS,
    }
    with readable(HEADERS):
        pending = connection.execute(PENDING, values).fetchall()
        found = [*connection.execute(LOST, values), *pending, *connection.execute(EXPIRED, values)]
        if len(pending) == most:
            found += connection.execute(FIRSTS, values)
    return in_turn((Candidate(*row) for row in found), limit)
