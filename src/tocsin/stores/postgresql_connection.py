"""Connections to PostgreSQL: their settings, pools of them, and how long one waits for what."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped]

from tocsin.model.errors import ConfigError, StoreError, StoreUnavailable
from tocsin.stores.postgresql_driver import Connection
from tocsin.stores.postgresql_errors import TRANSLATED, Doing, is_unusable, meaning_of

T = TypeVar("T")

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
    def place(self) -> str:
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
        raise ConfigError(f"store: {settings.place}: {error}") from error
    except (*TRANSLATED, OSError, TimeoutError) as error:
        raise meaning_of(error, settings.place, Doing.CONNECTING) from error
    try:
        async with asyncio.timeout(settings.connect_timeout_s):
            await _prepare(connection)
    except (*TRANSLATED, OSError, TimeoutError) as error:
        connection.terminate()
        raise meaning_of(error, settings.place, Doing.CONNECTING) from error
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


class Pool:
    """Up to `size` connections, made when they are needed and again after they broke.

    Callers come to their turn in order. What a caller began goes on to its end if the caller is cancelled meanwhile, so
    that a connection is never left in the middle of something.
    """

    def __init__(self, settings: PostgresSettings, size: int) -> None:
        self._settings = settings
        self._size = size
        self._free = asyncio.Semaphore(size)
        self._idle: list[Connection] = []
        self._running: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def run(self, doing: Doing, work: Callable[[Connection], Awaitable[T]], *, bounded: bool = True) -> T:
        """What `work` returns, with a connection of its own for as long.

        Raises StoreUnavailable when no connection gets free in time or can be made, and the store error that a driver's
        error amounts to; OutcomeUnknown only when `doing` is writing. `bounded` False waits for the answer for ever.
        """
        await self._acquire()
        task = asyncio.get_running_loop().create_task(self._work(doing, work, bounded))
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    async def _acquire(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"{self._settings.place} is not open")
        if not self._free.locked():
            # No wait, hence no timer.
            await self._free.acquire()
            return
        try:
            async with asyncio.timeout(self._settings.acquire_timeout_s):
                await self._free.acquire()
        except TimeoutError:
            raise StoreUnavailable(
                f"{self._settings.place}: all {self._size} connections of the pool were busy for "
                f"{self._settings.acquire_timeout_s:g} s"
            ) from None

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        self._free.release()
        if not task.cancelled():
            # Taken, so that a caller who went away leaves no complaint of an error that nobody saw.
            task.exception()

    async def _work(self, doing: Doing, work: Callable[[Connection], Awaitable[T]], bounded: bool) -> T:
        connection = await self._connection()
        patience_s = self._settings.statement_timeout_s + self._settings.answer_grace_s if bounded else None
        try:
            async with asyncio.timeout(patience_s):
                result = await work(connection)
        except (*TRANSLATED, OSError, TimeoutError) as error:
            if is_unusable(error) or connection.is_closed():
                connection.terminate()
            else:
                self._idle.append(connection)
            raise meaning_of(error, self._settings.place, doing) from error
        except StoreError:
            self._idle.append(connection)
            raise
        except BaseException:
            connection.terminate()
            raise
        self._idle.append(connection)
        return result

    async def _connection(self) -> Connection:
        while self._idle:
            # The last one that was used, so that the fewest are kept busy.
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return await connect(self._settings)

    async def close(self) -> None:
        """Waits for what was begun, then ends the sessions."""
        self._closed = True
        while self._running:
            await asyncio.wait(self._running)
        idle, self._idle = self._idle, []
        for connection in idle:
            try:
                await connection.close(timeout=self._settings.connect_timeout_s)
            except (*TRANSLATED, OSError, TimeoutError):
                # It was to end, and it has.
                connection.terminate()
