"""Several requests to a database at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import TypeVar

A = TypeVar("A")
T = TypeVar("T")


async def in_parallel(ask: Callable[[A], Awaitable[T]], arguments: Iterable[A], *limits: asyncio.Semaphore) -> list[T]:
    """The results of the requests, in the order of their arguments. Each request holds all the limits while it is made; a
    single one needs none. The first failure cancels the others."""

    async def within_limits(argument: A) -> T:
        async with AsyncExitStack() as stack:
            for limit in limits:
                await stack.enter_async_context(limit)
            return await ask(argument)

    arguments = list(arguments)
    if len(arguments) == 1:
        return [await ask(arguments[0])]
    tasks = [asyncio.ensure_future(within_limits(argument)) for argument in arguments]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
