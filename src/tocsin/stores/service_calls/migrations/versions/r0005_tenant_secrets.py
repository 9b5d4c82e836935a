"""Adds the secrets that sign the service calls of a tenant."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

KEY = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "tenant_secrets",
        sa.Column("tenant_id", KEY, nullable=False),
        sa.Column("secrets", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name="pk_tenant_secrets"),
        sqlite_strict=True,
    )


def downgrade() -> None:
    raise NotImplementedError("the schema goes forward only; restore a backup to go back")
