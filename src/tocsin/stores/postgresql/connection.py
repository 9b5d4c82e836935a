"""Connections to PostgreSQL: their parameters, and pools of them."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qsl, urlsplit

import asyncpg  # type: ignore[import-untyped]

from tocsin.model.errors import ConfigError, StoreError
from tocsin.sql.pool import Activity, DatabaseServer, Pool
from tocsin.stores.postgresql.driver import Connection
from tocsin.stores.postgresql.errors import TRANSLATED, is_unusable, translate_error
from tocsin.stores.postgresql.hosts import Hosts

_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")

#: Parameters that name a file.
_FILES = frozenset({"sslrootcert", "sslcert", "sslkey", "sslcrl"})

#: Every statement is written for one plan that uses an index. The table is a queue, often empty when statistics are
#: collected, and plans made for an empty table would stay in use when it is full.
PLANNING = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}

#: All that wait for less than the disk of this server, and of the synchronous standbys. `remote_apply` waits for more.
_SYNCHRONOUS_COMMIT = """
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')
"""


@dataclass(frozen=True, slots=True)
class PostgresServer(DatabaseServer):
    """All tables are in `schema`. A write's outcome is unknown if its answer took too long."""

    scheme: ClassVar[str] = "postgresql"

    schema: str = "tocsin"
    #: Those of `url`. They remember which one is the primary.
    hosts: Hosts = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hosts", Hosts(self.url))
        if not _SCHEMA_NAME.match(self.schema):
            raise ConfigError(
                f"the schema name {self.schema!r} is not valid; use 1 to 63 of a-z 0-9 _, not beginning with a digit"
            )

    def limits(self) -> dict[str, str]:
        """The session's name and time-outs, in milliseconds."""
        statement_timeout = str(round(self.options.statement_timeout_s * 1e3))
        return {
            "application_name": self.options.application_name,
            "statement_timeout": statement_timeout,
            "lock_timeout": str(round(self.options.lock_timeout_s * 1e3)),
            # Batches are single statements; few transactions have more than one.
            "idle_in_transaction_session_timeout": statement_timeout,
            # A session whose data is not acknowledged ends, and releases its locks.
            "tcp_user_timeout": statement_timeout,
        }

    def server_settings(self) -> dict[str, str]:
        """The session's parameters."""
        schema = {"search_path": f'"{self.schema}"', "default_transaction_isolation": "read committed"}
        return {**self.limits(), **schema, **PLANNING}


def refuse_missing_files(setting: str, url: str) -> None:
    """Raises ConfigError if a parameter of the setting's URL names a file that does not exist: the driver's error would not
    differ from that of a server that is not there yet."""
    for name, value in parse_qsl(urlsplit(url).query):
        if name in _FILES and not Path(value).expanduser().is_file():
            raise ConfigError(f"{setting}: {name}: there is no file {value}; name one that this user can read")


async def connect(server: PostgresServer) -> Connection:
    """Opens a session on the primary, with its parameters set. Raises StoreUnavailable, ConfigError."""
    connection: Connection
    try:
        connection = await server.hosts.connect(
            server.options.connect_timeout_s,
            server_settings=server.server_settings(),
            max_cached_statement_lifetime=0,
        )
    except asyncpg.ClientConfigurationError as error:
        raise ConfigError(f"{server.setting}: {server.safe_url}: {error}") from error
    except (*TRANSLATED, OSError, TimeoutError) as error:
        raise translate_error(error, server.safe_url, Activity.CONNECTING) from error
    try:
        async with asyncio.timeout(server.options.connect_timeout_s):
            await _prepare(connection, server.server_settings())
    except (*TRANSLATED, OSError, TimeoutError) as error:
        connection.terminate()
        raise translate_error(error, server.safe_url, Activity.CONNECTING) from error
    except BaseException:
        connection.terminate()
        raise
    return connection


async def _prepare(connection: Connection, settings: dict[str, str]) -> None:
    # Again, because a pooler may have left them out of the session's start. And in the same round trip:
    # an acknowledged write is on disk, even if that is not the database's default.
    values = ", ".join(f"set_config({_quoted(name)}, {_quoted(value)}, false)" for name, value in settings.items())
    await connection.execute(f"SELECT {values}; {_SYNCHRONOUS_COMMIT}")
    # UUIDs as sixteen bytes, instants as microseconds; asyncpg would create an object for each.
    await connection.set_type_codec("uuid", schema="pg_catalog", encoder=bytes, decoder=bytes, format="binary")
    await connection.set_type_codec(
        "timestamptz", schema="pg_catalog", encoder=_since_2000, decoder=_since_1970, format="tuple"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


#: PostgreSQL counts from 2000 on.
_EPOCH_US = 946_684_800_000_000


def _since_2000(instant_us: int) -> tuple[int]:
    return (instant_us - _EPOCH_US,)


def _since_1970(counted: tuple[int]) -> int:
    return counted[0] + _EPOCH_US


class PostgresPool(Pool[PostgresServer, Connection]):
    """Connections to PostgreSQL."""

    translated = (*TRANSLATED, OSError, TimeoutError)

    async def connect(self) -> Connection:
        """Opens a session with its parameters set."""
        return await connect(self._server)

    def translate_error(self, error: BaseException, activity: Activity, connection: Connection) -> StoreError:
        """The store error for a driver's error."""
        return translate_error(error, self._server.safe_url, activity)

    def is_unusable(self, error: BaseException) -> bool:
        """Whether the connection must be discarded after this error."""
        return is_unusable(error)
