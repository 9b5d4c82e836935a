"""A session with MySQL or MariaDB over asyncmy: packets of several statements, transactions, unknown outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from asyncmy import errors

from tocsin.model.errors import StoreError
from tocsin.stores.mysql.errors import READ_ONLY, is_refused_commit, is_undone, is_unusable

T = TypeVar("T")

#: Errors that may end a transaction halfway and leave its session usable.
_FAILURES = (errors.MySQLError, StoreError, UnicodeError)
_IS_READ_ONLY = b"SELECT @@global.read_only"
_SNAPSHOT = (b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", b"START TRANSACTION WITH CONSISTENT SNAPSHOT")


class RawResult(Protocol):
    """The answer to one statement, as the driver keeps it."""

    rows: Sequence[tuple[Any, ...]] | None
    affected_rows: int
    has_next: bool


class RawConnection(Protocol):
    """The part of asyncmy's connection that is used. Its cursors are not: they read the server's warnings in a further round
    trip, and MySQL warns of syntax that MariaDB requires."""

    _result: RawResult
    #: Whether the server is known to have closed the connection.
    _stream_broken: bool

    async def query(self, sql: bytes) -> int:
        """Sends a packet and reads the first result."""

    async def next_result(self) -> int:
        """Reads the next result of the packet."""

    def thread_id(self) -> int:
        """The server's number of the session."""

    def get_server_info(self) -> str:
        """The version in the server's greeting."""

    def close(self) -> None:
        """Closes the socket."""

    async def ensure_closed(self) -> None:
        """Ends the session at the server and closes the socket."""


class Result(NamedTuple):
    """The result of one statement: the rows it read, or how many rows it matched.

    A statement that writes counts all rows it matched, unchanged ones included; an INSERT … ON DUPLICATE KEY UPDATE counts an
    updated row twice.
    """

    rows: Sequence[tuple[Any, ...]]
    affected: int


@dataclass(frozen=True, slots=True)
class Server:
    """What a session knows of its server: its `version` text, and the greatest size of a packet in bytes."""

    version: str
    packet_bytes_max: int


class Connection:
    """A session, which sends one packet at a time. Every method may raise what `mysql_errors` translates."""

    def __init__(self, raw: RawConnection, idle_s_max: float) -> None:
        self._raw = raw
        self._idle_s_max = idle_s_max
        self._clock = asyncio.get_running_loop().time
        self._used_at = self._clock()
        self.server = Server(raw.get_server_info(), 0)
        #: Whether a COMMIT was sent and its outcome is unknown.
        self.in_doubt = False

    @property
    def thread_id(self) -> int:
        """The server's number of this session."""
        return int(self._raw.thread_id())

    async def run(self, *statements: bytes) -> list[Result]:
        """Sends the statements in one packet. Those after the first that fails are not executed."""
        raw = self._raw
        results = []
        await raw.query(b"; ".join(statements))
        self._used_at = self._clock()
        while True:
            result = raw._result
            results.append(Result(result.rows or (), result.affected_rows))
            if not result.has_next:
                return results
            await raw.next_result()

    async def rows(self, statement: bytes) -> Sequence[tuple[Any, ...]]:
        """The rows of one statement. Fails if the server accepts no writes: a session outlives a switchover, and its server's
        rows may be out of date by now. Asked behind the statement, in the same packet."""
        found, read_only = await self.run(statement, _IS_READ_ONLY)
        if read_only.rows[0][0]:
            raise errors.OperationalError(READ_ONLY, "the server became read-only")
        return found.rows

    async def commit(self) -> None:
        """Commits the transaction; it is durable when this returns. If it fails, the outcome is unknown (`in_doubt`), unless
        the server's answer is that it was rolled back."""
        self.in_doubt = True
        try:
            await self.run(b"COMMIT")
        except errors.MySQLError as error:
            self.in_doubt = not is_refused_commit(error)
            raise
        self.in_doubt = False

    async def transaction(self, work: Callable[[], Awaitable[T]], undone_retries_max: int) -> T:
        """Runs `work`, which begins with BEGIN, and commits; returns its result. `work` is repeated up to
        `undone_retries_max` times if the server rolled the transaction back in favour of another."""
        while True:
            try:
                result = await work()
                await self.commit()
                return result
            except _FAILURES as error:
                await self._roll_back(error)
                if not is_undone(error) or undone_retries_max == 0:
                    raise
                undone_retries_max -= 1

    async def snapshot(self, work: Callable[[], Awaitable[T]]) -> T:
        """Runs `work`, whose reads all see one snapshot, and returns its result."""
        try:
            await self.run(*_SNAPSHOT)
            result = await work()
            await self.run(b"COMMIT")
        except _FAILURES as error:
            await self._roll_back(error)
            raise
        return result

    async def _roll_back(self, error: BaseException) -> None:
        # Some errors roll back only their statement.
        if not self.in_doubt and not is_unusable(error):
            await self.run(b"ROLLBACK")

    def is_closed(self) -> bool:
        """Whether the session is known to have ended, or must not be used again: its outcome is unknown, or it was idle for
        so long that the server may be ending it."""
        idle_s = self._clock() - self._used_at
        return self.in_doubt or bool(self._raw._stream_broken) or idle_s > self._idle_s_max

    def terminate(self) -> None:
        """Ends the session at once, even in the middle of a statement."""
        self._raw.close()

    async def close(self, *, timeout: float) -> None:
        """Ends the session in order, within `timeout` seconds."""
        async with asyncio.timeout(timeout):
            await self._raw.ensure_closed()
