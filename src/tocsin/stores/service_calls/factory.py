"""The agent's database for a URL."""

from __future__ import annotations

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from tocsin.model.errors import ConfigError
from tocsin.stores.service_calls.database import AgentDatabase
from tocsin.stores.service_calls.postgresql import PostgresqlDatabase
from tocsin.stores.service_calls.postgresql_lock import Claimant
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.stores.service_calls.sqlite import SqliteDatabase


def agent_database(url: str, settings: SqlSettings | None = None, claimant: Claimant | None = None) -> AgentDatabase:
    """`sqlite:///relative/path`, `sqlite:////absolute/path`, `sqlite://` (in memory), or `postgresql://user@host/name`.
    Raises ConfigError for any other."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise ConfigError(f"agent_database is not a database URL: {error}") from error
    kind = parsed.get_backend_name()
    if kind == "sqlite":
        return SqliteDatabase(parsed, settings or SqlSettings())
    if kind == "postgresql":
        return PostgresqlDatabase(parsed, settings or SqlSettings(), claimant or Claimant())
    raise ConfigError(f"agent_database must be a sqlite or postgresql URL, not {kind}")
