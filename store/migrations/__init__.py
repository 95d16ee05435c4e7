"""Alembic's scripts: one numbered revision after another, each for both databases. Run by ``store.migrate``."""
