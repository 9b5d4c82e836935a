"""Connection pools of database servers, their options, and the order of commits in writer lanes."""

from __future__ import annotations

import asyncio
import re
import ssl
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from tocsin.model.errors import StoreError, StoreUnavailable
from tocsin.model.setting import setting
from tocsin.tasks import end_tasks

T = TypeVar("T")


class Activity(Enum):
    """What a connection is used for. If it breaks, only the outcome of a write is unknown."""

    CONNECTING = "connecting"
    READING = "reading"
    WRITING = "writing"


class Session(Protocol):
    """What a pool needs of a connection."""

    def is_closed(self) -> bool:
        """Whether the session is known to have ended."""

    def terminate(self) -> None:
        """Ends the session at once, even in the middle of a statement."""

    async def close(self, *, timeout: float) -> None:
        """Ends the session in order, within `timeout` seconds."""


C = TypeVar("C", bound=Session)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How a node uses a database server.

    `loaders` connections serve the engine (loads, claims, records), `readers` connections lists and administration, so that
    a long list never delays a claim. Heartbeats have one more. The server ends a statement after `statement_timeout_s`,
    which is a definite failure. If its answer takes `answer_grace_s` longer, the connection is closed.
    """

    loaders: int = setting(
        3,
        "Connections for loads, claims, and records such as namespaces. With higher values more shards load at once.",
        name="load_connections",
    )
    readers: int = setting(
        2,
        "Connections for lists. Higher values serve more lists at once.",
        name="read_connections",
    )
    connect_timeout_s: float = setting(
        5.0,
        "How long connecting to the server may take. Lower values report an unreachable server sooner; if too low, a "
        "slow network prevents connections.",
    )
    acquire_timeout_s: float = setting(
        10.0,
        "How long a query waits for a free connection before it fails as if the server were unreachable. Higher "
        "values bridge longer bursts; clients wait longer.",
    )
    statement_timeout_s: float = setting(
        20.0,
        "How long a statement may run before the server cancels it; keep it below `store_timeout`. PostgreSQL does "
        "not limit the commit itself, and MySQL, unlike MariaDB, cancels only statements that read; a node waits 5 s "
        "longer for any answer. Lower values end stuck statements sooner; if too low, slow statements fail.",
    )
    lock_timeout_s: float = setting(
        10.0,
        "How long a statement waits for rows that another transaction has locked. MySQL and MariaDB count whole "
        "seconds. With lower values a statement fails sooner behind a stuck transaction.",
    )

    #: Connections that commit, each for its own share of the shards: one for each of the engine's lanes.
    writers: int = 1
    answer_grace_s: float = 5.0
    #: Bytes of the records on one page of `load` or `list`.
    read_bytes_max: int = 16 << 20
    application_name: str = "tocsin"


@dataclass(frozen=True, slots=True)
class DatabaseServer:
    """A database on a server, and how it is used. `setting` is the one that has the URL, for errors."""

    scheme: ClassVar[str]

    url: str
    options: ServerOptions
    setting: str = field(default="store", kw_only=True)

    @property
    def safe_url(self) -> str:
        """The database's URL without user and password, for messages."""
        return f"{self.scheme}://" + re.sub(r"\A\w+://([^/?#]*@)?", "", self.url).split("?")[0]


S = TypeVar("S", bound=DatabaseServer)


def lets_retry(error: BaseException) -> bool:
    """Whether a socket's error, at connecting, may be gone later: not one of a certificate or a right."""
    return isinstance(error, OSError) and not isinstance(error, ssl.SSLError | PermissionError)


class Pool(ABC, Generic[S, C]):
    """Up to `size` connections, opened when needed, and again after they broke.

    Callers are served in order. Work that has begun continues to its end if its caller is cancelled, so that a connection is
    never left in the middle of a transaction. A subclass opens connections and translates their errors.
    """

    #: The errors that `translate_error` takes; any other is a defect of the program.
    translated: ClassVar[tuple[type[BaseException], ...]]

    def __init__(self, server: S, size: int) -> None:
        self._server = server
        #: How many connections there may be.
        self.size = size
        self._free = asyncio.Semaphore(size)
        self._idle: list[C] = []
        self._running: set[asyncio.Task[Any]] = set()
        self._closed = False

    @property
    def used(self) -> int:
        """How many connections work now."""
        return min(len(self._running), self.size)

    @abstractmethod
    async def connect(self) -> C:
        """Opens a session with its parameters set. Raises StoreUnavailable, ConfigError; StoreUnreachable if
        that may succeed later."""

    @abstractmethod
    def translate_error(self, error: BaseException, activity: Activity, connection: C) -> StoreError:
        """The store error for a driver's error."""

    @abstractmethod
    def is_unusable(self, error: BaseException) -> bool:
        """Whether the connection must be discarded after this error."""

    async def run(
        self,
        activity: Activity,
        work: Callable[[C], Awaitable[T]],
        *,
        bounded: bool = True,
        turns: Sequence[asyncio.Lock] = (),
    ) -> T:
        """Runs `work` with a separate connection and returns its result. Holds the locks `turns` from before it begins
        until its outcome is known, even if the caller is cancelled.

        Raises StoreUnavailable if no connection is free in time or can be opened, and otherwise the store error for a
        driver's error; OutcomeUnknown only if `activity` is writing. Without `bounded` it waits for the answer without a time
        limit."""
        held: list[asyncio.Lock] = []
        try:
            for turn in turns:
                await turn.acquire()
                held.append(turn)
            await self._acquire()
        except BaseException:
            _release(held)
            raise
        task = asyncio.get_running_loop().create_task(self._work(activity, work, bounded))
        self._running.add(task)
        task.add_done_callback(lambda task: self._ended(task, held))
        return await asyncio.shield(task)

    async def _acquire(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"{self._server.safe_url} is not open")
        if not self._free.locked():
            # No wait, so no timer is needed.
            await self._free.acquire()
            return
        try:
            async with asyncio.timeout(self._server.options.acquire_timeout_s):
                await self._free.acquire()
        except TimeoutError:
            raise StoreUnavailable(
                f"{self._server.safe_url}: all {self.size} connections of the pool were busy for "
                f"{self._server.options.acquire_timeout_s:g} s"
            ) from None

    def _ended(self, task: asyncio.Task[Any], held: Sequence[asyncio.Lock]) -> None:
        self._running.discard(task)
        self._free.release()
        _release(held)
        if not task.cancelled():
            # Retrieved, so that no error of a cancelled caller is logged as never retrieved.
            task.exception()

    async def _work(self, activity: Activity, work: Callable[[C], Awaitable[T]], bounded: bool) -> T:
        connection = await self._connection()
        patience_s = self._server.options.statement_timeout_s + self._server.options.answer_grace_s if bounded else None
        try:
            async with asyncio.timeout(patience_s):
                result = await work(connection)
        except self.translated as error:
            store_error = self.translate_error(error, activity, connection)
            if self.is_unusable(error) or connection.is_closed():
                connection.terminate()
            else:
                self._idle.append(connection)
            raise store_error from error
        except StoreError:
            self._idle.append(connection)
            raise
        except BaseException:
            connection.terminate()
            raise
        self._idle.append(connection)
        return result

    async def _connection(self) -> C:
        while self._idle:
            # The most recently used one, so that as few as possible stay in use.
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
            connection.terminate()
        return await self.connect()

    def discard_idle(self) -> None:
        """Ends the idle sessions at once: what broke one session may have broken them all."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.terminate()

    async def abort(self) -> None:
        """Ends the sessions at once, also those that work: whether a write took effect is unknown then."""
        self._closed = True
        await end_tasks(*self._running)
        self.discard_idle()

    async def close(self) -> None:
        """Waits for the work under way, then closes the sessions."""
        self._closed = True
        while self._running:
            await asyncio.wait(self._running)
        idle, self._idle = self._idle, []
        for connection in idle:
            try:
                await connection.close(timeout=self._server.options.connect_timeout_s)
            except self.translated:
                # The session has ended, if not in order.
                connection.terminate()


def _release(locks: Sequence[asyncio.Lock]) -> None:
    for lock in locks:
        lock.release()


class WriterLanes(Generic[S, C]):
    """Pools of one writing connection each, and the locks of their present commits. Each lane has a share of the shards, by
    number, so that batches of one shard follow one another."""

    def __init__(self, pools: Sequence[Pool[S, C]]) -> None:
        self.pools = pools
        self._turns = [asyncio.Lock() for _ in pools]

    async def commit(self, shard_ids: Iterable[int], work: Callable[[C], Awaitable[T]]) -> T:
        """Runs the transaction `work`, which writes to these shards."""
        # With as many writers as the engine has lanes, this is a single lane. In a fixed order, to avoid deadlocks.
        taken = sorted({shard_id % len(self.pools) for shard_id in shard_ids})
        turns = [self._turns[lane] for lane in taken]
        return await self.pools[taken[0]].run(Activity.WRITING, work, turns=turns)
