"""Which tokens are fetched at once."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from tocsin.targets.fetches import ENDPOINT_FETCHES_MAX, FETCHES_MAX, NAMESPACE_FETCHES_MAX, Fetches


class Places:
    """Fetches that go on until they are ended, in the order in which they got their places."""

    def __init__(self) -> None:
        self.fetches = Fetches()
        self.running: list[tuple[str, str]] = []
        self._tasks: dict[tuple[str, str], list[asyncio.Task[None]]] = {}
        self._ends: dict[asyncio.Task[None], asyncio.Event] = {}

    def ask(self, namespace: str, endpoint: str) -> asyncio.Task[None]:
        end = asyncio.Event()
        task = asyncio.get_running_loop().create_task(self._run(namespace, endpoint, end))
        self._ends[task] = end
        return task

    async def _run(self, namespace: str, endpoint: str, end: asyncio.Event) -> None:
        async with self.fetches.place(namespace, endpoint):
            self.running.append((namespace, endpoint))
            try:
                await end.wait()
            finally:
                self.running.remove((namespace, endpoint))

    async def end(self, task: asyncio.Task[None]) -> None:
        """Ends a fetch; those that get its place have begun."""
        self._ends[task].set()
        await task
        await settle()

    async def __aenter__(self) -> Places:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._ends:
            task.cancel()
        await asyncio.gather(*self._ends, return_exceptions=True)


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_free_place_goes_to_the_namespace_that_has_the_fewest() -> None:
    async with Places() as places:
        tasks = [places.ask(f"n{i % 8}", f"e{i}") for i in range(FETCHES_MAX + 8)]
        await settle()
        assert len(places.running) == FETCHES_MAX == 8 * NAMESPACE_FETCHES_MAX
        places.ask("new", "e-new")
        await settle()
        assert len(places.running) == FETCHES_MAX
        await places.end(tasks[0])
        assert ("new", "e-new") in places.running


async def test_an_endpoint_gets_as_many_places_of_all_namespaces() -> None:
    async with Places() as places:
        for number in range(3):
            for _ in range(ENDPOINT_FETCHES_MAX):
                places.ask(f"n{number}", "hung")
        await settle()
        assert places.running == [("n0", "hung")] * ENDPOINT_FETCHES_MAX
        places.ask("n1", "well")
        await settle()
        assert places.running[-1] == ("n1", "well")


async def test_a_fetch_that_is_canceled_leaves_its_place() -> None:
    async with Places() as places:
        running = [places.ask("n", "e") for _ in range(ENDPOINT_FETCHES_MAX)]
        waiting = places.ask("n", "e")
        await settle()
        # The one gets a place at the moment at which it is canceled; the other waits no more.
        last = places.ask("n", "e")
        await settle()
        waiting.cancel()
        running[0].cancel()
        await settle()
        await settle()
        assert len(places.running) == ENDPOINT_FETCHES_MAX and not last.done()
        for task in (*running[1:], last):
            await places.end(task)
        async with AsyncExitStack() as stack:
            for _ in range(ENDPOINT_FETCHES_MAX):
                await asyncio.wait_for(stack.enter_async_context(places.fetches.place("n", "e")), 5)
