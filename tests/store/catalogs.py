"""What a database's catalog says, in a form that can be compared: columns, keys, indexes with their predicates."""

import sqlite3
from pathlib import Path
from typing import Any, Final

import psycopg

from store.schema import VERSION_TABLE

_COLUMNS: Final = """
SELECT c.relname, a.attname, a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
  pg_get_expr(d.adbin, d.adrelid), l.collname
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'S') AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY 1, 3
"""
_CONSTRAINTS: Final = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2
"""
_INDEXES: Final = "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2"
_STORAGE: Final = """
SELECT relname, reloptions FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND reloptions IS NOT NULL ORDER BY 1
"""


def sqlite_catalog(path: Path) -> dict[str, Any]:
    """Everything SQLite knows of each table."""
    connection = sqlite3.connect(path)
    try:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        catalog: dict[str, Any] = {}
        for table in sorted(set(tables) - {VERSION_TABLE}):
            indexes = connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? ORDER BY name", (table,)
            ).fetchall()
            catalog[table] = {
                "columns": connection.execute(f"PRAGMA table_xinfo({table})").fetchall(),
                "indexes": {
                    name: (sql, connection.execute(f"PRAGMA index_xinfo('{name}')").fetchall()) for name, sql in indexes
                },
                "uniqueness": sorted(row[1:] for row in connection.execute(f"PRAGMA index_list({table})")),
            }
        return catalog
    finally:
        connection.close()


def postgres_catalog(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Everything PostgreSQL knows of each table of the public schema."""
    with psycopg.connect(url) as connection:
        found = {
            "columns": connection.execute(_COLUMNS).fetchall(),
            "constraints": connection.execute(_CONSTRAINTS).fetchall(),
            "indexes": connection.execute(_INDEXES).fetchall(),
            "storage": connection.execute(_STORAGE).fetchall(),
        }
    return {kind: [row for row in rows if row[0] != VERSION_TABLE] for kind, rows in found.items()}
