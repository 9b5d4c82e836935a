"""Creates timers in your own transaction: they are rows of your database, and become timers after the commit.

    from tocsin_client.outbox import DbApi, Drain, outbox

    with connection.transaction():
        connection.execute("INSERT INTO orders …")
        outbox(connection).create("orders", "order-17", "https://shop.example/hooks/remind", delay="24h")

    Drain(client, DbApi(connect)).run()      # in a process of its own, or `with drain.start():` in yours

`async_outbox` and `AsyncDrain` are the same, awaited. `python -m tocsin_client.outbox` drains as a command. PostgreSQL, MySQL
and SQLite.
"""

from __future__ import annotations

from tocsin_client._async.outbox import AsyncDrain, AsyncOutbox, async_outbox
from tocsin_client._core.outbox import Drained
from tocsin_client._sync.outbox import Drain, Outbox, outbox
from tocsin_client.receiver._databases import (
    AsyncDatabase,
    Asyncpg,
    AsyncSqlAlchemy,
    Database,
    DbApi,
    Django,
    SqlAlchemy,
)

__all__ = [
    "AsyncDatabase",
    "AsyncDrain",
    "AsyncOutbox",
    "AsyncSqlAlchemy",
    "Asyncpg",
    "Database",
    "DbApi",
    "Django",
    "Drain",
    "Drained",
    "Outbox",
    "SqlAlchemy",
    "async_outbox",
    "outbox",
]
