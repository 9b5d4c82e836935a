"""A session with MySQL or MariaDB over asyncmy: packets of several statements, transactions, and what is in doubt."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from asyncmy import errors

from tocsin.model.errors import StoreError
from tocsin.stores.mysql_errors import is_refused_commit, is_undone, is_unusable

T = TypeVar("T")

#: What may end a transaction halfway and leave its session to others.
_FAILURES = (errors.MySQLError, StoreError, UnicodeError)
_SNAPSHOT = (b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", b"START TRANSACTION WITH CONSISTENT SNAPSHOT")


class RawResult(Protocol):
    """The answer to one statement, as the driver keeps it."""

    rows: Sequence[tuple[Any, ...]] | None
    affected_rows: int
    has_next: bool


class RawConnection(Protocol):
    """The part of asyncmy's connection that is used. Its cursors ask the server for warnings, one round trip more for each
    statement that has some, and MySQL warns of what MariaDB can't do otherwise."""

    _result: RawResult
    #: Whether the server's end was seen to be closed.
    _stream_broken: bool

    async def query(self, sql: bytes) -> int:
        """Sends a packet and reads the first result."""

    async def next_result(self) -> int:
        """Reads the next result of the packet."""

    def thread_id(self) -> int:
        """The server's number of the session."""

    def get_server_info(self) -> str:
        """The version, as the server greets with it."""

    def close(self) -> None:
        """Closes the socket."""

    async def ensure_closed(self) -> None:
        """Takes leave of the server and closes the socket."""


class Result(NamedTuple):
    """What one statement answered: the rows it read, or how many it matched and changed.

    A statement that writes counts the rows that it found, also those that are as they were; an INSERT … ON DUPLICATE KEY
    UPDATE counts an update twice.
    """

    rows: Sequence[tuple[Any, ...]]
    affected: int


@dataclass(frozen=True, slots=True)
class Server:
    """What a session learned of its server: `version` as the server says it, and the octets that a packet may have."""

    version: str
    packet_bytes_max: int


class Connection:
    """A session. One packet at a time; every method may raise what `mysql_errors` translates."""

    def __init__(self, raw: RawConnection, idle_s_max: float) -> None:
        self._raw = raw
        self._idle_s_max = idle_s_max
        self._clock = asyncio.get_running_loop().time
        self._used_at = self._clock()
        self.server = Server(raw.get_server_info(), 0)
        #: Whether a COMMIT was sent whose answer isn't known.
        self.in_doubt = False

    @property
    def thread_id(self) -> int:
        """The server's number of this session."""
        return int(self._raw.thread_id())

    async def run(self, *statements: bytes) -> list[Result]:
        """Sends the statements in one packet. The first that fails is the last that was executed."""
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
        """The rows of one statement."""
        return (await self.run(statement))[0].rows

    async def commit(self) -> None:
        """Ends the transaction; durable when it returns. Whatever else happens leaves it in doubt, but for an answer that
        says that it was undone."""
        self.in_doubt = True
        try:
            await self.run(b"COMMIT")
        except errors.MySQLError as error:
            self.in_doubt = not is_refused_commit(error)
            raise
        self.in_doubt = False

    async def transaction(self, work: Callable[[], Awaitable[T]], undone_retries_max: int) -> T:
        """What `work` returns, committed. `work` begins with BEGIN; it is called again, up to `undone_retries_max` times,
        when the server undid the transaction in favour of another."""
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
        """What `work` returns, all that it reads being of one moment."""
        try:
            await self.run(*_SNAPSHOT)
            result = await work()
            await self.run(b"COMMIT")
        except _FAILURES as error:
            await self._roll_back(error)
            raise
        return result

    async def _roll_back(self, error: BaseException) -> None:
        # Some errors undo only their statement.
        if not self.in_doubt and not is_unusable(error):
            await self.run(b"ROLLBACK")

    def is_closed(self) -> bool:
        """Whether the session is over, as far as is known here, or may not be used again: it is in doubt, or was idle for so
        long that the server may be ending it right now."""
        idle_s = self._clock() - self._used_at
        return self.in_doubt or bool(self._raw._stream_broken) or idle_s > self._idle_s_max

    def terminate(self) -> None:
        """Ends it at once, whatever is under way."""
        self._raw.close()

    async def close(self, *, timeout: float) -> None:
        """Ends it in order, within seconds."""
        async with asyncio.timeout(timeout):
            await self._raw.ensure_closed()
