"""Programs that write rows of an inbox in their own transactions, with the SDK's outbox, and what the table then has."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
from tocsin_client.outbox import outbox
from tocsin_client.outbox.__main__ import connector

from tests.support.command import command
from tests.support.mysql import MysqlServer
from tests.support.postgresql import PostgresServer

KINDS = ("postgresql", "mysql")


@dataclass
class Program:
    """A program with a database at `url`."""

    url: str

    @contextlib.contextmanager
    def connected(self) -> Iterator[Any]:
        """A connection of the database's own driver."""
        with contextlib.closing(connector(self.url)()) as connection:
            yield connection

    def transaction(self, work: Callable[[Any, Any], None], *, commit: bool = True) -> None:
        """Runs `work` with the SDK's outbox and a cursor in a transaction, and ends that."""
        with self.connected() as connection:
            work(outbox(connection), connection.cursor())
            (connection.commit if commit else connection.rollback)()

    def write(self, namespace: str, url: str, *ids: str, commit: bool = True, **timer: Any) -> None:
        """Writes timers, due at once unless `timer` has an instant."""
        timing = {} if "execute_at" in timer else {"delay": "0s"}

        def work(rows: Any, _: Any) -> None:
            for timer_id in ids:
                rows.create(namespace, timer_id, url, **(timing | timer))

        self.transaction(work, commit=commit)

    def execute(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement, committed."""
        with self.connected() as connection:
            cursor = connection.cursor()
            cursor.execute(sql, values)
            rows = list(cursor.fetchall()) if cursor.description else []
            connection.commit()
        return rows

    def left(self) -> list[str]:
        """The timers whose rows are in the table."""
        return [timer_id for (timer_id,) in self.execute("SELECT timer_id FROM tocsin_outbox ORDER BY id")]

    async def cli(self, *arguments: str) -> str:
        """What `tocsin inbox …` prints; fails unless it succeeds."""
        code, out, err = await command("inbox", *arguments, "--inbox-url", self.url)
        assert code == 0, err
        return out

    def settings(self, *namespaces: str, poll: str = "100ms") -> dict[str, str]:
        """The environment of a server that drains the table."""
        return {
            "TOCSIN_INBOX_URL": self.url,
            "TOCSIN_INBOX_NAMESPACES": ",".join(namespaces),
            "TOCSIN_INBOX_POLL_INTERVAL": poll,
        }


async def new_program(request: pytest.FixtureRequest, kind: str, *, own: bool = False) -> tuple[Program, Any]:
    """A program with an empty database of its own, on a shared server or one that the test may stop, which is the second."""
    if kind == "postgresql":
        postgresql: PostgresServer = request.getfixturevalue("postgresql" if own else "shared_postgresql")
        return Program(await postgresql.create_database()), postgresql
    mysql: MysqlServer = request.getfixturevalue("mysql" if own else "shared_mysql")
    url = mysql.new_url()
    name = urlsplit(url).path[1:]
    await asyncio.to_thread(Program(mysql.url("mysql")).execute, f"CREATE DATABASE {name}")
    return Program(url), mysql
