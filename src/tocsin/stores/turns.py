"""What stores without SQL have in common: a client while they are open, and one write of a shard at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from tocsin.model.errors import DefiniteFailure, OutcomeUnknown, StoreUnavailable
from tocsin.ports.store import Applied

C = TypeVar("C")
T = TypeVar("T")


class Turns:
    """Runs writes of one shard one after another (rule 2), those of different shards at once."""

    def __init__(self) -> None:
        self._locks: dict[int, asyncio.Lock] = {}
        self._running: set[asyncio.Task[Any]] = set()

    def take(self, shard_id: int, work: Callable[[], Awaitable[T]]) -> asyncio.Future[T]:
        """The result of the work. It continues if the caller is cancelled, and the next write waits until its outcome is
        known."""

        async def run() -> T:
            async with self._locks.setdefault(shard_id, asyncio.Lock()):
                return await work()

        task = asyncio.get_running_loop().create_task(run())
        self._running.add(task)
        task.add_done_callback(self._ended)
        return asyncio.shield(task)

    async def ended(self) -> None:
        """Returns when no work is in progress."""
        while self._running:
            await asyncio.wait(self._running)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            # Retrieved, so that asyncio does not log it if the caller was cancelled.
            task.exception()


def outcome_of(results: Sequence[Applied | BaseException]) -> list[Applied]:
    """The results of all parts. A failure is definite only if no part was written."""
    failures = [result for result in results if isinstance(result, BaseException)]
    if not failures:
        return [result for result in results if isinstance(result, Applied)]
    for failure in failures:
        if not isinstance(failure, DefiniteFailure):
            raise failure
    if Applied.DURABLE in results:
        raise OutcomeUnknown(f"other shards' parts were written: {failures[0]}") from failures[0]
    raise next((failure for failure in failures if isinstance(failure, StoreUnavailable)), failures[0])


class ClientStore(Generic[C]):
    """A store that speaks to its database through a client while it is open. `place` names the store in errors."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._client: C | None = None

    @property
    def _open(self) -> C:
        if self._client is None:
            raise StoreUnavailable(f"{self._place} is not open")
        return self._client
