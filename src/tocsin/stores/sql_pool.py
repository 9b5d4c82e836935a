"""Pools of connections to a database server, how long one waits for what, and the turns of writing lanes."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from tocsin.model.errors import StoreError, StoreUnavailable
from tocsin.ports.store import Applied, ShardBatch

T = TypeVar("T")


class Activity(Enum):
    """What was under way. A broken connection leaves only a write in doubt."""

    CONNECTING = "connecting"
    READING = "reading"
    WRITING = "writing"


class Session(Protocol):
    """What a pool asks of a connection."""

    def is_closed(self) -> bool:
        """Whether the session is over, as far as is known here."""

    def terminate(self) -> None:
        """Ends it at once, whatever is under way."""

    async def close(self, *, timeout: float) -> None:
        """Ends it in order, within seconds."""


C = TypeVar("C", bound=Session)


class PoolSettings(Protocol):
    """The settings that pools of every kind of server have."""

    @property
    def safe_url(self) -> str:
        """The server and database for people: without user and password."""

    @property
    def connect_timeout_s(self) -> float:
        """How long making or ending a connection may take."""

    @property
    def statement_timeout_s(self) -> float:
        """After how long the server ends a statement."""

    @property
    def answer_grace_s(self) -> float:
        """How much longer its answer is waited for."""

    @property
    def acquire_timeout_s(self) -> float:
        """How long one waits for a connection of a pool to get free."""


S = TypeVar("S", bound=PoolSettings)


class Pool(ABC, Generic[S, C]):
    """Up to `size` connections, made when they are needed and again after they broke.

    Callers come to their turn in order. What a caller began goes on to its end if the caller is cancelled meanwhile, so
    that a connection is never left in the middle of something. A subclass says how a connection is made and what its
    errors mean.
    """

    #: The errors that `translate_error` is for; anything else is a fault of the program.
    translated: ClassVar[tuple[type[BaseException], ...]]

    def __init__(self, settings: S, size: int) -> None:
        self._settings = settings
        self._size = size
        self._free = asyncio.Semaphore(size)
        self._idle: list[C] = []
        self._running: set[asyncio.Task[Any]] = set()
        self._closed = False

    @abstractmethod
    async def connect(self) -> C:
        """A session with its parameters in force. Raises StoreUnavailable, ConfigError."""

    @abstractmethod
    def translate_error(self, error: BaseException, activity: Activity, connection: C) -> StoreError:
        """The store error that a driver's error amounts to."""

    @abstractmethod
    def is_unusable(self, error: BaseException) -> bool:
        """Whether the connection that met the error has to be given up."""

    async def run(self, activity: Activity, work: Callable[[C], Awaitable[T]], *, bounded: bool = True) -> T:
        """What `work` returns, with a connection of its own for as long.

        Raises StoreUnavailable when no connection gets free in time or can be made, and the store error that a driver's
        error amounts to; OutcomeUnknown only when `activity` is writing. `bounded` False waits for the answer for ever.
        """
        await self._acquire()
        task = asyncio.get_running_loop().create_task(self._work(activity, work, bounded))
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    async def run_in_task(self, activity: Activity, work: Callable[[C], Awaitable[T]]) -> T:
        """The same, for a caller that is a task of its own which nobody cancels: one task less for each commit."""
        await self._acquire()
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            return await self._work(activity, work, bounded=True)
        finally:
            self._running.discard(task)
            self._free.release()

    async def _acquire(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"{self._settings.safe_url} is not open")
        if not self._free.locked():
            # No wait, hence no timer.
            await self._free.acquire()
            return
        try:
            async with asyncio.timeout(self._settings.acquire_timeout_s):
                await self._free.acquire()
        except TimeoutError:
            raise StoreUnavailable(
                f"{self._settings.safe_url}: all {self._size} connections of the pool were busy for "
                f"{self._settings.acquire_timeout_s:g} s"
            ) from None

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        self._free.release()
        if not task.cancelled():
            # Taken, so that a caller who went away leaves no complaint of an error that nobody saw.
            task.exception()

    async def _work(self, activity: Activity, work: Callable[[C], Awaitable[T]], bounded: bool) -> T:
        connection = await self._connection()
        patience_s = self._settings.statement_timeout_s + self._settings.answer_grace_s if bounded else None
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
            # The last one that was used, so that the fewest are kept busy.
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
            connection.terminate()
        return await self.connect()

    async def close(self) -> None:
        """Waits for what was begun, then ends the sessions."""
        self._closed = True
        while self._running:
            await asyncio.wait(self._running)
        idle, self._idle = self._idle, []
        for connection in idle:
            try:
                await connection.close(timeout=self._settings.connect_timeout_s)
            except self.translated:
                # It was to end, and it has.
                connection.terminate()


P = TypeVar("P", bound=Pool[Any, Any])


class WriterLane(Generic[P]):
    """A writing connection, and whose turn it is."""

    def __init__(self, pool: P) -> None:
        self.pool = pool
        self.turn = asyncio.Lock()


class Commits:
    """Batches under way: each has the turn of its lanes until its outcome is known, whatever becomes of its caller."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[list[Applied]]] = set()

    async def run(
        self,
        lanes: Sequence[WriterLane[P]],
        batches: Sequence[ShardBatch],
        commit: Callable[[P], Awaitable[list[Applied]]],
    ) -> list[Applied]:
        """What `commit` returns, with a pool that has a connection for it; batches of one shard follow one another.

        `lanes` must not be empty. Each has its own share of the shards, by number.
        """
        numbers = {batch.shard_id % len(lanes) for batch in batches}
        # With as many writers as the engine has lanes, one of them is all that it takes.
        taken = [lane for number, lane in enumerate(lanes) if number in numbers]
        await _take_turn(taken)
        task = asyncio.get_running_loop().create_task(_in_turn(taken, commit))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A caller who is cancelled leaves it running: the turn lasts until the outcome is known.
        return await asyncio.shield(task)


async def _in_turn(lanes: Sequence[WriterLane[P]], commit: Callable[[P], Awaitable[list[Applied]]]) -> list[Applied]:
    try:
        return await commit(lanes[0].pool)
    finally:
        for lane in lanes:
            lane.turn.release()


async def _take_turn(lanes: Sequence[WriterLane[P]]) -> None:
    """Returns when every earlier batch in these lanes is over. In order, so that nobody waits in a circle."""
    taken: list[WriterLane[P]] = []
    try:
        for lane in lanes:
            await lane.turn.acquire()
            taken.append(lane)
    except BaseException:
        for lane in taken:
            lane.turn.release()
        raise
