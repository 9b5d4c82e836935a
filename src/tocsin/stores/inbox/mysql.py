"""The inbox's table in MySQL and MariaDB, which is polled."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tocsin.model.errors import StoreError
from tocsin.sql.pool import Activity, ServerOptions
from tocsin.stores.inbox.table import Rows, SqlInboxTable, Statement, missing_table
from tocsin.stores.mysql.connection import MysqlPool, MysqlServer
from tocsin.stores.mysql.driver import Connection
from tocsin.stores.mysql.errors import UNKNOWN_TABLE, code_of
from tocsin.stores.mysql.text import filled
from tocsin.stores.options import MysqlOptions

#: Transactions that the server rolled back in favour of another are repeated so often.
_UNDONE_RETRIES_MAX = 3


class _Pool(MysqlPool):
    def __init__(self, server: MysqlServer, table: str) -> None:
        super().__init__(server, 1)
        self._table = table

    def translate_error(self, error: BaseException, activity: Activity, connection: Connection) -> StoreError:
        """The store error for a driver's error."""
        if code_of(error) == UNKNOWN_TABLE:
            return missing_table(self._server, self._table)
        return super().translate_error(error, activity, connection)


class MysqlInboxTable(SqlInboxTable):
    """The table in MySQL or MariaDB. Raises ConfigError for a URL that is not valid."""

    # Timers whose ids differ only in case are two.
    request_type, definition_end = "MEDIUMTEXT", " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"

    def __init__(self, url: str, name: str, options: ServerOptions) -> None:
        # How durable its commits are is the choice of those whose database it is.
        mysql = MysqlOptions(durable=False)
        server = MysqlServer(url, replace(options, application_name="tocsin inbox"), mysql=mysql, setting="inbox.url")
        self._pool = _Pool(server, name)
        super().__init__(name, self._pool, server.safe_url)

    async def wait(self, timeout_s: float) -> None:
        """Nothing announces commits."""
        await asyncio.sleep(timeout_s)

    async def create(self, *, notify: bool) -> bool:
        """Creates the table; commits can't be announced."""
        await self._pool.run(Activity.READING, lambda connection: connection.run(self.definition().encode()))
        return False

    async def _read(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        rows: Rows = await self._pool.run(Activity.READING, lambda connection: connection.rows(filled(sql, values)))
        return rows

    async def _write(self, statements: Sequence[Statement]) -> list[int]:
        texts = [filled(sql, values) for sql, values in statements]

        async def run(connection: Connection) -> list[int]:
            async def work() -> list[int]:
                await connection.run(b"BEGIN")
                return [(await connection.run(text))[0].affected for text in texts]

            return await connection.transaction(work, _UNDONE_RETRIES_MAX)

        return await self._pool.run(Activity.WRITING, run)

    def _among(self, ids: Sequence[str]) -> Statement:
        return f"id IN ({', '.join('?' * len(ids))})", tuple(ids)

    # MySQL would read a small table as a whole, and wait for rows of the programs' transactions: the index is named.

    def _update(self) -> str:
        return f"UPDATE {self._name} FORCE INDEX (PRIMARY)"

    def _delete(self) -> str:
        return f"DELETE settled FROM {self._name} AS settled FORCE INDEX (PRIMARY)"
