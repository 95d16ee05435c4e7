"""Finding chats that want a worker in PostgreSQL, fair between owners, at a cost that does not grow with the database.

Owns the statements. The oldest due chats of each kind are looked at and put in turn (``store.due``); where more are due
than that, each owner's oldest is looked for too. Rows that another process is writing to are passed over.
"""

from typing import Final

from store.postgres_texts import NOW

_WANTED: Final = """ready_at IS NOT NULL AND reader_level <= %(level)s AND agent = ANY(%(agents)b::text[])
AND chat <> ALL(%(exclude)b::text[])"""
_PASSED_OVER: Final = "FOR NO KEY UPDATE SKIP LOCKED"

# The holders are walked by the index, one step for each, however many chats they hold.
FIND_DUE: Final = f"""
WITH RECURSIVE holders (holder) AS (
  SELECT min(holder) FROM chats WHERE holder IS NOT NULL AND ready_at IS NOT NULL
  UNION ALL
  SELECT (
    SELECT c.holder FROM chats c WHERE c.holder > h.holder AND c.holder IS NOT NULL AND c.ready_at IS NOT NULL
    ORDER BY c.holder LIMIT 1
  ) FROM holders h WHERE h.holder IS NOT NULL
), dead AS (
  SELECT holder FROM holders h WHERE holder IS NOT NULL
  AND NOT EXISTS (SELECT FROM workers w WHERE w.worker = h.holder AND w.expires_at > {NOW})
), lost AS (
  SELECT NOT interrupting AS later, ready_at, chat,
    CASE WHEN interrupting THEN 'interruption' ELSE 'takeover' END AS kind, owner FROM chats
  WHERE holder IN (SELECT holder FROM dead) AND status = 'running' AND {_WANTED}
  ORDER BY later, ready_at, chat LIMIT %(window)s {_PASSED_OVER}
), pending AS (
  SELECT true AS later, ready_at, chat, 'pending' AS kind, owner FROM chats
  WHERE status = 'pending' AND (due_at IS NULL OR ready_at <= {NOW}) AND {_WANTED}
  ORDER BY ready_at, chat LIMIT %(window)s {_PASSED_OVER}
), expired AS (
  SELECT true AS later, ready_at, chat, 'expired' AS kind, owner FROM chats
  WHERE status = 'requires_action' AND ready_at <= {NOW} AND {_WANTED}
  ORDER BY ready_at, chat LIMIT %(window)s {_PASSED_OVER}
)
SELECT * FROM lost UNION ALL SELECT * FROM pending UNION ALL SELECT * FROM expired
"""

FIRSTS: Final = f"""
WITH RECURSIVE owners (owner, n) AS (
  (SELECT owner, 1 FROM chats WHERE status = 'pending' AND ready_at IS NOT NULL ORDER BY owner LIMIT 1)
  UNION ALL
  SELECT (
    SELECT c.owner FROM chats c WHERE c.status = 'pending' AND c.ready_at IS NOT NULL AND c.owner > o.owner
    ORDER BY c.owner LIMIT 1
  ), n + 1 FROM owners o WHERE o.owner IS NOT NULL AND n < %(owners)s
)
SELECT true, f.ready_at, f.chat, 'pending', f.owner FROM owners o CROSS JOIN LATERAL (
  SELECT ready_at, chat, owner FROM chats
  WHERE status = 'pending' AND owner = o.owner AND (due_at IS NULL OR ready_at <= {NOW}) AND {_WANTED}
  ORDER BY ready_at, chat LIMIT 1
) f
"""
"""Each owner's oldest pending chat."""
