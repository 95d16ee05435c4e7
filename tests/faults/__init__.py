"""Databases that fail under a running engine: lost connections, a restart, a full disk, a database that only reads."""
