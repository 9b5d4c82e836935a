"""Types of the part of asyncpg's connection that the store uses; asyncpg has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol


class ServerVersion(Protocol):
    """The server's version."""

    @property
    def major(self) -> int:
        """The major version."""


class Connection(Protocol):
    """A session, which runs one statement at a time. Every method may raise what `stores/postgresql/errors.py` translates."""

    async def fetch(self, query: str, *args: Any) -> list[Sequence[Any]]:
        """All rows of the statement."""

    async def fetchval(self, query: str, *args: Any) -> Any:
        """The first value of the first row; None without rows."""

    async def execute(self, query: str, *args: Any) -> str:
        """Runs a statement; without arguments also several."""

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """BEGIN, then COMMIT, or ROLLBACK after an exception."""

    async def set_type_codec(
        self,
        typename: str,
        *,
        schema: str,
        encoder: Callable[[Any], Any],
        decoder: Callable[[Any], Any],
        format: str,
    ) -> None:
        """Sets how values of a type are encoded and decoded."""

    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None:
        """LISTEN: calls back with each NOTIFY on the channel, until the session ends."""

    def get_server_version(self) -> ServerVersion:
        """The server's version, as reported at the start of the session."""

    def is_closed(self) -> bool:
        """Whether the session is known to have ended."""

    def terminate(self) -> None:
        """Ends the session at once, even in the middle of a statement."""

    async def close(self, *, timeout: float) -> None:
        """Ends the session in order, within `timeout` seconds."""


def affected(answer: str) -> int:
    """How many rows a statement found or changed: its answer is a command with their number, such as `INSERT 0 1`."""
    return int(answer.rpartition(" ")[2])
