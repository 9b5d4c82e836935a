"""Fixtures of the agent's database, for all files here."""

from __future__ import annotations

from tests.support.agent_database import database, database_url

__all__ = ["database", "database_url"]
