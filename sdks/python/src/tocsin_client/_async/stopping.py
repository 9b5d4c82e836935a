"""What runs in a task until it is to end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any


class AsyncStop:
    """Has a drain end after its round."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Ends it."""
        self._event.set()

    def is_set(self) -> bool:
        """Whether it is to end."""
        return self._event.is_set()

    async def wait(self, seconds: float) -> None:
        """Waits that long, or until it is to end."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)


class AsyncBackground:
    """Runs in a task, which `stop` ends after its round, as does the end of a `with` statement."""

    def __init__(self, run: Callable[[AsyncStop], Coroutine[Any, Any, None]]) -> None:
        self._stop = AsyncStop()
        self._task = asyncio.get_running_loop().create_task(run(self._stop))

    async def stop(self) -> None:
        """Returns when it has ended."""
        self._stop.set()
        await self._task

    async def __aenter__(self) -> AsyncBackground:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
