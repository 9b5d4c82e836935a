"""Adds the secrets that sign the service calls of a tenant."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from tocsin.stores.service_calls.columns import primary_key, required
from tocsin.stores.service_calls.types import KeyText

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "tenant_secrets",
        *required(KeyText, "tenant_id"),
        *required(sa.Text, "secrets"),
        primary_key("tenant_secrets", "tenant_id"),
        sqlite_strict=True,
    )
