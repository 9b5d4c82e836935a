"""Adds the leader of a database that several nodes share."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

KEY = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
INSTANT = sa.Text().with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "agent_leader",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("term", NUMBER, nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("incarnation", KEY, nullable=False),
        sa.Column("since", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_agent_leader"),
        sa.CheckConstraint("id = 1", name="ck_agent_leader_only_one"),
        sqlite_strict=True,
    )
    op.create_table(
        "agent_heartbeat",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("beats", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_agent_heartbeat"),
        sa.CheckConstraint("id = 1", name="ck_agent_heartbeat_only_one"),
        sqlite_strict=True,
    )
    op.execute("INSERT INTO agent_leader (id, term, node, incarnation) VALUES (1, 0, '', '')")
    op.execute("INSERT INTO agent_heartbeat (id, beats) VALUES (1, 0)")


def downgrade() -> None:
    raise NotImplementedError("the schema goes forward only; restore a backup to go back")
