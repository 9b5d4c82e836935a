"""Connections to PostgreSQL: their settings, and pools of them."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

import asyncpg  # type: ignore[import-untyped]

from tocsin.model.errors import ConfigError, StoreError
from tocsin.stores.postgresql_driver import Connection
from tocsin.stores.postgresql_errors import TRANSLATED, is_unusable, translate_error
from tocsin.stores.sql_pool import Activity, Pool

_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")

#: Every statement is written for one plan by index. The table is a queue, often empty when statistics are taken, and
#: plans made for an empty table would outlive its being so.
_PLANNING = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """How a database is used; `PostgresStore` documents each."""

    url: str
    schema: str
    application_name: str
    connect_timeout_s: float
    statement_timeout_s: float
    answer_grace_s: float
    lock_timeout_s: float
    acquire_timeout_s: float

    def __post_init__(self) -> None:
        if not _SCHEMA_NAME.match(self.schema):
            raise ConfigError(
                f"the schema {self.schema!r} is no name; 1 to 63 of a-z 0-9 _, not beginning with a digit"
            )

    @property
    def safe_url(self) -> str:
        """The server and database for people: without user and password."""
        return "postgresql://" + re.sub(r"\A\w+://([^/?#]*@)?", "", self.url).split("?")[0]

    def server_settings(self) -> dict[str, str]:
        """The session's parameters. Durations are milliseconds."""
        return {
            "application_name": self.application_name,
            "search_path": f'"{self.schema}"',
            "statement_timeout": str(round(self.statement_timeout_s * 1e3)),
            "lock_timeout": str(round(self.lock_timeout_s * 1e3)),
            # A transaction of more than one statement is only ever the migration's.
            "idle_in_transaction_session_timeout": str(round(self.statement_timeout_s * 1e3)),
            # Sent data that nobody acknowledges ends the session, and with it what it holds locked.
            "tcp_user_timeout": str(round(self.statement_timeout_s * 1e3)),
            "default_transaction_isolation": "read committed",
            **_PLANNING,
        }


async def connect(settings: PostgresSettings) -> Connection:
    """A session on the primary, with its parameters in force. Raises StoreUnavailable, ConfigError."""
    connection: Connection
    try:
        connection = await asyncpg.connect(
            settings.url,
            timeout=settings.connect_timeout_s,
            server_settings=settings.server_settings(),
            # A standby would answer from the past.
            target_session_attrs="read-write",
            max_cached_statement_lifetime=0,
        )
    except asyncpg.ClientConfigurationError as error:
        raise ConfigError(f"store: {settings.safe_url}: {error}") from error
    except (*TRANSLATED, OSError, TimeoutError) as error:
        raise translate_error(error, settings.safe_url, Activity.CONNECTING) from error
    try:
        async with asyncio.timeout(settings.connect_timeout_s):
            await _prepare(connection)
    except (*TRANSLATED, OSError, TimeoutError) as error:
        connection.terminate()
        raise translate_error(error, settings.safe_url, Activity.CONNECTING) from error
    except BaseException:
        connection.terminate()
        raise
    return connection


async def _prepare(connection: Connection) -> None:
    # Sixteen bytes as they are; asyncpg would make an object of each.
    await connection.set_type_codec("uuid", schema="pg_catalog", encoder=bytes, decoder=bytes, format="binary")
    # Whatever the database's default: an acknowledged write is on disk.
    await connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
    )


class PostgresPool(Pool[PostgresSettings, Connection]):
    """Connections to PostgreSQL."""

    translated = (*TRANSLATED, OSError, TimeoutError)

    async def connect(self) -> Connection:
        """See the base."""
        return await connect(self._settings)

    def translate_error(self, error: BaseException, activity: Activity, connection: Connection) -> StoreError:
        """See the base."""
        return translate_error(error, self._settings.safe_url, activity)

    def is_unusable(self, error: BaseException) -> bool:
        """See the base."""
        return is_unusable(error)
