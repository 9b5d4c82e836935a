"""Run by Alembic, in the transaction of the connection that `schema.migrate` passes."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
