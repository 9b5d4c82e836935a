"""Adds the leader of a database that several nodes share."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from tocsin.stores.service_calls.columns import only_row, optional, required
from tocsin.stores.service_calls.types import Instant, KeyText, Number

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "agent_leader",
        *only_row("agent_leader"),
        *required(Number, "term"),
        *required(sa.Text, "node"),
        *required(KeyText, "incarnation"),
        *optional(Instant, "since"),
        sqlite_strict=True,
    )
    op.create_table("agent_heartbeat", *only_row("agent_heartbeat"), *required(Number, "beats"), sqlite_strict=True)
    op.execute("INSERT INTO agent_leader (id, term, node, incarnation) VALUES (1, 0, '', '')")
    op.execute("INSERT INTO agent_heartbeat (id, beats) VALUES (1, 0)")
