"""The part of asyncpg's connection that the store uses, with types, which asyncpg doesn't bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol


class ServerVersion(Protocol):
    """The server's version."""

    @property
    def major(self) -> int:
        """The first number."""


class Connection(Protocol):
    """A session. One statement at a time; every method may raise what `postgresql_errors` translates."""

    async def fetch(self, query: str, *args: Any) -> list[Sequence[Any]]:
        """All rows."""

    async def fetchval(self, query: str, *args: Any) -> Any:
        """The first value of the first row, or None."""

    async def execute(self, query: str, *args: Any) -> str:
        """Runs a statement, or without arguments several."""

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """BEGIN and COMMIT, or ROLLBACK for an exception."""

    async def set_type_codec(
        self,
        typename: str,
        *,
        schema: str,
        encoder: Callable[[Any], Any],
        decoder: Callable[[Any], Any],
        format: str,
    ) -> None:
        """How values of a type are written and read."""

    def get_server_version(self) -> ServerVersion:
        """As the server said at the beginning."""

    def is_closed(self) -> bool:
        """Whether the session is over, as far as is known here."""

    def terminate(self) -> None:
        """Ends it at once, whatever is under way."""

    async def close(self, *, timeout: float) -> None:
        """Ends it in order, within seconds."""
