"""The feed in PostgreSQL: in the order of transactions, and only as far as none is missing.

Transactions commit in another order than they begin, so an event may appear before others that were there first. The
feed goes by the transaction's number and stops below the oldest that is still under way: behind that line nothing can
appear any more. Who leaves a writing transaction open anywhere on the server holds the feed back meanwhile.

Another server counts its transactions from elsewhere. Where a database was restored there from a dump, its events have
numbers that this server may reach in years: until they are numbered anew, the feed says so.

The index of the feed has one entry for each command, at its first event; the other events stand behind it under the
primary key.
"""

from typing import Final

from store.postgres_texts import read_as_is
from store.rows import EVENT_COLUMNS

_EVENT: Final = ", ".join(read_as_is(f"e.{column}") for column in EVENT_COLUMNS)
_NUMBER: Final = "::text::bigint"

READ_FEED: Final = f"""
WITH heads AS (
  SELECT chat, version, tx, position FROM chat_events
  WHERE command_index = 0 AND tx < pg_snapshot_xmin(pg_current_snapshot())
  AND (tx, position) >= (%(tx)s::text::xid8, coalesce((
    SELECT max(position) FROM chat_events
    WHERE command_index = 0 AND tx = %(tx)s::text::xid8 AND position <= %(position)s
  ), %(position)s))
  ORDER BY tx, position LIMIT %(limit)s + 1
)
SELECT e.tx{_NUMBER}, e.position, e.chat, {_EVENT}
FROM heads h CROSS JOIN LATERAL (
  SELECT * FROM chat_events a WHERE a.chat = h.chat AND a.version >= h.version AND a.version < coalesce((
    SELECT n.version FROM chat_events n
    WHERE n.chat = h.chat AND n.version > h.version AND n.command_index = 0 ORDER BY n.version LIMIT 1
  ), {2**62})
) e
WHERE (e.tx, e.position) > (%(tx)s::text::xid8, %(position)s)
ORDER BY e.tx, e.position
"""
"""The events of the next commands, and the rest of the one that the position lies in, of which nothing may be left."""

PLACES: Final = f"""
SELECT version, tx{_NUMBER}, position, command_index FROM chat_events
WHERE chat = %(chat)s AND version > %(after)s ORDER BY version LIMIT %(limit)s
"""

LINE: Final = (
    f"SELECT pg_snapshot_xmin(pg_current_snapshot()){_NUMBER}, pg_snapshot_xmax(pg_current_snapshot()){_NUMBER}"
)
"""The oldest transaction under way, and the first one that has not begun."""

NEWEST: Final = f"""
SELECT pg_snapshot_xmax(pg_current_snapshot()){_NUMBER}, coalesce((
  SELECT tx{_NUMBER} FROM chat_events WHERE command_index = 0 ORDER BY chat_events.tx DESC, position DESC LIMIT 1
), 0)
"""
"""The first transaction that has not begun, and the one that the feed's last event names."""

NUMBER_ANEW: Final = """
UPDATE chat_events e SET tx = pg_current_xact_id(), position = o.place
FROM (
  SELECT chat, version, row_number() OVER (
    ORDER BY tx < pg_snapshot_xmax(pg_current_snapshot()), tx, position
  ) AS place FROM chat_events
) o
WHERE o.chat = e.chat AND o.version = e.version
"""
"""Gives all events places in one transaction of this server: first those that came with the dump."""
