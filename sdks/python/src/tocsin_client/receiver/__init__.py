"""Receives callbacks: verifies them, gives your handler a `Firing`, and sends its answer.

    from tocsin_client.receiver import Receiver, done, reschedule_at

    receiver = Receiver(lambda: os.environ["TOCSIN_SECRET"].split())
    app = receiver.asgi(remind)      # Starlette, FastAPI; or receiver.django(remind), receiver.flask(remind)

`Dedup`, and `AsyncDedup` in asynchronous programs, do the work of a firing once, however often its callback arrives, in a
transaction of yours: by DB-API, `Django`, `SqlAlchemy`, `AsyncSqlAlchemy`, `Asyncpg`, or an object of your own.
"""

from __future__ import annotations

from tocsin_client.receiver._answers import Answer, done, fail, reschedule_at, retry
from tocsin_client.receiver._batch import Batch
from tocsin_client.receiver._databases import (
    AsyncDatabase,
    AsyncExecute,
    Asyncpg,
    AsyncSqlAlchemy,
    Database,
    DbApi,
    Django,
    Execute,
    Executed,
    SqlAlchemy,
)
from tocsin_client.receiver._dedup import AsyncDedup, Dedup
from tocsin_client.receiver._firing import Firing
from tocsin_client.receiver._receiver import AsyncHandler, Handler, Receiver, Response
from tocsin_client.receiver._signatures import sign_body

__all__ = [
    "Answer",
    "AsyncDatabase",
    "AsyncDedup",
    "AsyncExecute",
    "AsyncHandler",
    "AsyncSqlAlchemy",
    "Asyncpg",
    "Batch",
    "Database",
    "DbApi",
    "Dedup",
    "Django",
    "Execute",
    "Executed",
    "Firing",
    "Handler",
    "Receiver",
    "Response",
    "SqlAlchemy",
    "done",
    "fail",
    "reschedule_at",
    "retry",
    "sign_body",
]
