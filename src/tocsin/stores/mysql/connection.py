"""Connections to MySQL and MariaDB: their parameters, and pools of them."""

from __future__ import annotations

import asyncio
import math
import re
import ssl
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, cast
from urllib.parse import parse_qsl, unquote, urlsplit

import asyncmy.connection
from asyncmy.constants import CLIENT

from tocsin.model.errors import ConfigError, StoreError, StoreUnreachable
from tocsin.sql.pool import Activity, DatabaseServer, Pool
from tocsin.stores.mysql.driver import Connection, RawConnection, Server
from tocsin.stores.mysql.errors import TRANSLATED, is_demoted, is_unusable, refused_connection, translate_error
from tocsin.stores.options import MysqlOptions

_DATABASE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$-]{0,63}\Z")
_PORT = 3306
#: Parameters of the URL, with the names that the servers' own clients use.
_PARAMETERS = frozenset({"ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "socket"})
_SSL_MODES = ("DISABLED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")

#: Values that a column can't store are errors, and backslashes escape.
_SQL_MODE = b"'STRICT_TRANS_TABLES,STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'"
#: Subtracted from the server's packet size for the packet's header.
_PACKET_HEADER_BYTES = 1_024
#: A connection that was idle for this share of the server's idle time-out is not used again.
_IDLE_SHARE_MAX = 0.5
#: Part of the driver's message that the server's authentication method without TLS needs another package.
_NEEDS_PACKAGE = "package is required"
#: Part of MariaDB's version, which distinguishes it from MySQL and TiDB.
_IS_MARIADB = "MariaDB"


@dataclass(frozen=True, slots=True)
class MysqlServer(DatabaseServer):
    """After `statement_timeout_s` MySQL ends only statements that read. A write's outcome is unknown only if the answer to
    COMMIT took too long. `lock_timeout_s` is in whole seconds, as is `idle_transaction_timeout_s`, after which the server
    ends a transaction whose client has been idle; MySQL ends any idle session after it. With `durable`, a server is refused
    that acknowledges commits before they are on disk."""

    scheme: ClassVar[str] = "mysql"

    mysql: MysqlOptions

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if not _DATABASE_NAME.match(self.database):
            raise ConfigError(
                f"{self.setting}: {self.safe_url} has no valid database name; write "
                "mysql://user:password@host:port/database, where the name is 1 to 64 of A-Z a-z 0-9 _ $ -, "
                "beginning with a letter or _"
            )
        unknown = self._parameters.keys() - _PARAMETERS
        if unknown:
            raise ConfigError(
                f"{self.setting}: {self.safe_url}: unknown parameter {min(unknown)}; use {', '.join(sorted(_PARAMETERS))}"
            )
        if self._parameters.get("ssl-mode", "DISABLED").upper() not in _SSL_MODES:
            raise ConfigError(
                f"{self.setting}: {self.safe_url}: ssl-mode is unknown; use one of {', '.join(_SSL_MODES)}"
            )
        try:
            self.ssl_context()
            _ = parts.port
        except (OSError, ValueError) as error:
            raise ConfigError(f"{self.setting}: {self.safe_url}: {error}") from error

    @property
    def database(self) -> str:
        """The database's name."""
        return unquote(urlsplit(self.url).path.removeprefix("/"))

    @property
    def _parameters(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.url).query, keep_blank_values=True))

    def ssl_context(self) -> ssl.SSLContext | None:
        """The TLS context of connections; None without TLS. A CA without a mode means VERIFY_IDENTITY. Renewed files are read
        again."""
        parameters = self._parameters
        ca = parameters.get("ssl-ca")
        mode = parameters.get("ssl-mode", "VERIFY_IDENTITY" if ca else "DISABLED").upper()
        if mode == "DISABLED":
            return None
        cert, key = parameters.get("ssl-cert"), parameters.get("ssl-key")
        written = tuple(Path(file).stat().st_mtime_ns for file in (ca, cert, key) if file)
        return _ssl_context(mode, ca, cert, key, written)

    def arguments(self, *, database: bool) -> dict[str, Any]:
        """The driver's arguments."""
        parts = urlsplit(self.url)
        return {
            "host": parts.hostname or "localhost",
            "port": parts.port or _PORT,
            "unix_socket": self._parameters.get("socket"),
            "user": unquote(parts.username or "root"),
            # As bytes, because the driver would encode a text in its own way.
            "password": unquote(parts.password or "").encode(),
            "database": self.database if database else None,
            "ssl": self.ssl_context(),
        }

    def idle_s_max(self, version: str) -> int:
        """The seconds after which a server of this version ends an idle session."""
        if _IS_MARIADB in version:
            return max(2, math.ceil(self.options.statement_timeout_s + self.options.answer_grace_s))
        # MySQL has no separate time-out for sessions that are idle in a transaction.
        return self._idle_transaction_s_max

    @property
    def _idle_transaction_s_max(self) -> int:
        """The seconds after which a server ends a session that is idle in a transaction. Then the locks of a node that
        vanished or froze are released, for which the next owner waits."""
        return max(1, math.ceil(self.mysql.idle_transaction_timeout_s))

    def session_statements(self, version: str, *, bounded: bool) -> list[bytes]:
        """The statements that set a new session's parameters."""
        seconds = max(1, math.ceil(self.options.lock_timeout_s))
        values = [
            b"sql_mode = " + _SQL_MODE,
            b"autocommit = 1",
            b"time_zone = '+00:00'",
            b"innodb_lock_wait_timeout = %d" % seconds,
            b"wait_timeout = %d" % self.idle_s_max(version),
        ]
        if bounded:
            values.append(b"lock_wait_timeout = %d" % seconds)
            values += _statement_timeout(version, self.options.statement_timeout_s)
        if _IS_MARIADB in version:
            values.append(b"idle_transaction_timeout = %d" % self._idle_transaction_s_max)
            # Long IN lists stay ranges, instead of becoming joins with a temporary table.
            values.append(b"in_predicate_conversion_threshold = 0")
        if "TiDB" in version:
            values.append(b"tidb_txn_mode = 'pessimistic'")
        return [
            b"SET NAMES utf8mb4 COLLATE utf8mb4_bin",
            b"SET SESSION " + b", ".join(values),
            b"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        ]


@lru_cache(maxsize=8)
def _ssl_context(
    mode: str, ca: str | None, cert: str | None, key: str | None, written: tuple[int, ...]
) -> ssl.SSLContext:
    # Cached, because reading the system's authorities blocks for tens of milliseconds, and MySQL ends sessions often.
    context = ssl.create_default_context(cafile=ca)
    context.check_hostname = mode == "VERIFY_IDENTITY"
    context.verify_mode = ssl.CERT_NONE if mode == "REQUIRED" else ssl.CERT_REQUIRED
    if cert:
        context.load_cert_chain(cert, key)
    return context


def _statement_timeout(version: str, seconds: float) -> list[bytes]:
    if _IS_MARIADB in version:
        return [b"max_statement_time = %b" % f"{seconds:f}".encode()]
    # Milliseconds. MySQL ends only statements that read; writes are limited by lock time-outs and by the node itself.
    return [b"max_execution_time = %d" % max(1, round(seconds * 1e3))]


async def connect(server: MysqlServer, *, database: bool = True, bounded: bool = True) -> Connection:
    """Opens a session on a server that accepts writes, with its parameters set. Raises StoreUnavailable, ConfigError.

    Without `database` the session is in none; without `bounded` its statements have no time limit.
    """
    raw: RawConnection | None = None
    try:
        async with asyncio.timeout(server.options.connect_timeout_s):
            raw = cast(
                RawConnection,
                await asyncmy.connection.connect(
                    **server.arguments(database=database),
                    charset="utf8mb4",
                    autocommit=None,
                    program_name=server.options.application_name,
                    connect_timeout=server.options.connect_timeout_s,
                    # Count the rows that a statement matched, not only those that it changed.
                    client_flag=CLIENT.FOUND_ROWS,
                ),
            )
            connection = Connection(raw, server.idle_s_max(raw.get_server_info()) * _IDLE_SHARE_MAX)
            await _prepare(connection, server, bounded=bounded)
    except TRANSLATED as error:
        if raw is not None:
            raw.close()
        raise refused_connection(error, server.safe_url) from error
    except RuntimeError as error:
        if raw is not None:
            raw.close()
        if _NEEDS_PACKAGE not in str(error):
            # The connection broke before the driver had its socket.
            raise StoreUnreachable(f"{server.safe_url}: {error}") from error
        raise ConfigError(
            f"{server.setting}: {server.safe_url}: {error}; install it, or connect over TLS with ?ssl-mode=REQUIRED"
        ) from error
    except BaseException:
        if raw is not None:
            raw.close()
        raise
    return connection


async def _prepare(connection: Connection, server: MysqlServer, *, bounded: bool) -> None:
    await connection.run(*server.session_statements(connection.server.version, bounded=bounded))
    (found,) = await connection.run(
        b"SELECT @@version, @@global.read_only, @@max_allowed_packet, @@global.innodb_flush_log_at_trx_commit, "
        b"@@global.log_bin, @@global.sync_binlog"
    )
    version, read_only, packet_bytes, flushed, binlog, binlog_synced = found.rows[0]
    if read_only:
        raise StoreUnreachable(f"{server.safe_url} is read-only: a replica, or a primary with read_only set")
    if server.mysql.durable:
        _check_durable(server.safe_url, flushed, binlog_synced if binlog else 1)
    connection.server = Server(str(version), int(packet_bytes) - _PACKET_HEADER_BYTES)


def _check_durable(safe_url: str, flushed: int, binlog_synced: int) -> None:
    """Raises ConfigError if a crash of the server or its machine could lose acknowledged commits. With a binary log, the log
    decides what was committed."""
    for name, value in (("innodb_flush_log_at_trx_commit", flushed), ("sync_binlog", binlog_synced)):
        if value != 1:
            raise ConfigError(
                f"store: {safe_url} has {name} = {value}, so a crash of the server can lose acknowledged writes; set it "
                "to 1, or accept the loss with mysql.durable = false"
            )


class MysqlPool(Pool[MysqlServer, Connection]):
    """Connections to MySQL or MariaDB."""

    translated = TRANSLATED

    def __init__(self, server: MysqlServer, size: int, *, database: bool = True, bounded: bool = True) -> None:
        super().__init__(server, size)
        self._database = database
        self._bounded = bounded

    async def connect(self) -> Connection:
        """Opens a session with its parameters set."""
        return await connect(self._server, database=self._database, bounded=self._bounded)

    def translate_error(self, error: BaseException, activity: Activity, connection: Connection) -> StoreError:
        """The store error for a driver's error. Only the outcome of a COMMIT can be unknown."""
        if is_demoted(error):
            # The idle sessions are with the same server.
            self.discard_idle()
        return translate_error(error, self._server.safe_url, in_doubt=connection.in_doubt)

    def is_unusable(self, error: BaseException) -> bool:
        """Whether the connection must be discarded after this error."""
        return is_unusable(error)
