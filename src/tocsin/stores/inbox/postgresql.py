"""The inbox's table in PostgreSQL, where a trigger announces commits by NOTIFY."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tocsin.model.errors import StoreError
from tocsin.ports.inbox import DueRow
from tocsin.sql.pool import Activity, ServerOptions
from tocsin.stores.inbox.table import Rows, SqlInboxTable, Statement, missing_table
from tocsin.stores.postgresql.connection import PLANNING, PostgresPool, PostgresServer, refuse_missing_files
from tocsin.stores.postgresql.dialect import numbered
from tocsin.stores.postgresql.driver import Connection, affected

#: The name of the channel, of the function and of the trigger.
_NOTIFY = "tocsin_inbox"
_MISSING_TABLE = "42P01"
#: Two processes that create the same table or function at once: one of them finds it there.
_CREATED_MEANWHILE = frozenset({"23505", "42P07", "42723", "42710", "XX000"})


@dataclass(frozen=True, slots=True)
class _Server(PostgresServer):
    """The table is in the schema that the server's `search_path` selects, as for the programs that write it."""

    def server_settings(self) -> dict[str, str]:
        """The session's parameters."""
        # The table is a queue, whose statistics are those of a moment when it was full, or empty.
        return {**self.limits(), **PLANNING}


class _Pool(PostgresPool):
    """Its session listens for commits."""

    def __init__(self, server: PostgresServer, table: str) -> None:
        super().__init__(server, 1)
        self._table = table
        self.notified = asyncio.Event()

    async def connect(self) -> Connection:
        """Opens a session that listens."""
        connection = await super().connect()
        try:
            await connection.add_listener(_NOTIFY, self._notify)
        except self.translated as error:
            connection.terminate()
            raise self.translate_error(error, Activity.CONNECTING, connection) from error
        # What was committed before it listened was announced to nobody.
        self.notified.set()
        return connection

    def _notify(self, *_: object) -> None:
        self.notified.set()

    def translate_error(self, error: BaseException, activity: Activity, connection: Connection) -> StoreError:
        """The store error for a driver's error."""
        if getattr(error, "sqlstate", None) == _MISSING_TABLE:
            return missing_table(self._server, self._table)
        return super().translate_error(error, activity, connection)


class PostgresInboxTable(SqlInboxTable):
    """The table in PostgreSQL. Raises ConfigError for a URL that names a missing file."""

    def __init__(self, url: str, name: str, options: ServerOptions) -> None:
        refuse_missing_files("inbox.url", url)
        server = _Server(url, replace(options, application_name="tocsin inbox"), setting="inbox.url")
        self._pool = _Pool(server, name)
        super().__init__(name, self._pool, server.safe_url)

    async def wait(self, timeout_s: float) -> None:
        """Returns when a commit was announced."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._pool.notified.wait()

    async def create(self, *, notify: bool) -> bool:
        """Creates the table, and the trigger."""
        statements = [self.definition(), *(self._trigger() if notify else self._no_trigger())]

        async def run(connection: Connection) -> None:
            async with connection.transaction():
                for statement in statements:
                    await connection.execute(statement)

        try:
            await self._pool.run(Activity.READING, run)
        except StoreError as error:
            if getattr(error.__cause__, "sqlstate", None) not in _CREATED_MEANWHILE:
                raise
            await self._pool.run(Activity.READING, run)
        return notify

    def _trigger(self) -> list[str]:
        """The function is beside the table, and may be of several tables' triggers. Without arguments for the channel, all of
        a transaction's inserts are one message."""
        return [
            f"CREATE OR REPLACE FUNCTION {self._function()}() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$BEGIN PERFORM pg_notify('{_NOTIFY}', ''); RETURN NULL; END$$",
            f"DROP TRIGGER IF EXISTS {_NOTIFY} ON {self._name}",
            f"CREATE TRIGGER {_NOTIFY} AFTER INSERT ON {self._name} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {self._function()}()",
        ]

    def _no_trigger(self) -> list[str]:
        return [f"DROP TRIGGER IF EXISTS {_NOTIFY} ON {self._name}"]

    def _function(self) -> str:
        schema, dot, _ = self._name.rpartition(".")
        return f"{schema}{dot}{_NOTIFY}_notify"

    async def due(self, now_us: int, rows_max: int) -> list[DueRow]:
        """The oldest rows that are due. What is committed from now on sets the event again."""
        self._pool.notified.clear()
        return await super().due(now_us, rows_max)

    async def _read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        rows: Rows = await self._pool.run(Activity.READING, lambda connection: connection.fetch(numbered(sql), *values))
        return rows

    async def _write(self, statements: Sequence[Statement]) -> list[int]:
        async def run(connection: Connection) -> list[int]:
            async with connection.transaction():
                return [affected(await connection.execute(numbered(sql), *values)) for sql, values in statements]

        return await self._pool.run(Activity.WRITING, run)

    def _among(self, ids: Sequence[str]) -> Statement:
        # A list, so that there is one statement to prepare for any number.
        return "id = ANY (?)", (list(ids),)

    def _update(self) -> str:
        return f"UPDATE {self._name}"

    def _delete(self) -> str:
        return f"DELETE FROM {self._name}"
