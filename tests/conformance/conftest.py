"""Fixtures of the agent's database, for all files here."""

from __future__ import annotations

from tests.support.agent_database import database, database_url
from tests.support.agent_schema import agent_schema_copied

__all__ = ["agent_schema_copied", "database", "database_url"]
