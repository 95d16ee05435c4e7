"""Alembic's environment: runs revisions on the connection that ``store.migrate`` hands over, within its transaction."""

from alembic import context

from store.schema import VERSION_TABLE
from store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
context.run_migrations()
