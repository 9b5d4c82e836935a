"""The agent's database in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import URL, Connection

from tocsin.agent.adapters.sql.settings import SqlSettings
from tocsin.model.errors import StoreUnavailable

T = TypeVar("T")


class PostgresqlDatabase:
    """Not there yet."""

    def __init__(self, url: URL, settings: SqlSettings) -> None:
        raise StoreUnavailable("PostgreSQL is not supported yet")

    async def open(self) -> None: ...

    async def write(self, work: Callable[[Connection], T], committed: Callable[[], None] | None = None) -> T:
        raise NotImplementedError

    async def read(self, work: Callable[[Connection], T]) -> T:
        raise NotImplementedError

    async def close(self) -> None: ...
