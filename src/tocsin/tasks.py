"""The end of background tasks."""

from __future__ import annotations

import asyncio
from typing import Any

#: Until a task that has not ended is cancelled again, in seconds: time for it to close what it uses.
_AGAIN_S = 1.0


async def end_tasks(*tasks: asyncio.Future[Any]) -> None:
    """Cancels the tasks, and returns when all of them have ended, by cancellation or otherwise.

    A cancellation can be lost: before Python 3.12, `asyncio.wait_for`, which some database drivers and the NATS client use,
    returns a result that arrives at the same moment instead. So a task that goes on is cancelled again after a second.
    """
    waiting = {task for task in tasks if not task.done()}
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=_AGAIN_S)
