"""Which tokens a node fetches at once: places are shared among namespaces and token endpoints."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator

#: Requests for tokens at once on a node; of one namespace; to one token endpoint, by its origin.
FETCHES_MAX = 64
NAMESPACE_FETCHES_MAX = 8
ENDPOINT_FETCHES_MAX = 4


class Fetches:
    """The places for requests for tokens. An endpoint that doesn't answer, and a namespace with many of them, take only the
    places that are theirs. A place that becomes free goes to the namespace that has the fewest."""

    def __init__(self) -> None:
        self._count = 0
        self._namespaces, self._endpoints = Counter[str](), Counter[str]()
        # What waits, by namespace and endpoint, each of which goes to the end with its turn.
        self._waiting: dict[str, dict[str, dict[asyncio.Future[None], None]]] = {}

    @contextlib.asynccontextmanager
    async def place(self, namespace: str, endpoint: str) -> AsyncIterator[None]:
        """Waits for a place, and keeps it."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(namespace, {}).setdefault(endpoint, {})[turn] = None
        self._assign()
        try:
            await turn
            yield
        finally:
            if turn.done() and not turn.cancelled():
                self._leave(namespace, endpoint)
            else:
                self._drop(namespace, endpoint, turn)

    def _leave(self, namespace: str, endpoint: str) -> None:
        self._count -= 1
        for counts, name in ((self._namespaces, namespace), (self._endpoints, endpoint)):
            counts[name] -= 1
            if not counts[name]:
                del counts[name]
        self._assign()

    def _assign(self) -> None:
        while self._count < FETCHES_MAX:
            following = self._following()
            if following is None:
                return
            namespace, endpoint = following
            waiting = self._waiting[namespace]
            turn = next(iter(waiting[endpoint]))
            self._drop(namespace, endpoint, turn)
            if endpoint in waiting:
                waiting[endpoint] = waiting.pop(endpoint)
            if namespace in self._waiting:
                self._waiting[namespace] = self._waiting.pop(namespace)
            if turn.cancelled():
                continue
            self._count += 1
            self._namespaces[namespace] += 1
            self._endpoints[endpoint] += 1
            turn.set_result(None)

    def _following(self) -> tuple[str, str] | None:
        """The namespace whose turn it is, and the endpoint; None if nothing that waits may begin."""
        found, fewest = None, NAMESPACE_FETCHES_MAX
        for namespace, waiting in self._waiting.items():
            if self._namespaces[namespace] >= fewest:
                continue
            for endpoint in waiting:
                if self._endpoints[endpoint] < ENDPOINT_FETCHES_MAX:
                    found, fewest = (namespace, endpoint), self._namespaces[namespace]
                    break
        return found

    def _drop(self, namespace: str, endpoint: str, turn: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(namespace, {})
        if turn not in waiting.get(endpoint, {}):
            return
        del waiting[endpoint][turn]
        if not waiting[endpoint]:
            del waiting[endpoint]
        if not waiting:
            del self._waiting[namespace]
