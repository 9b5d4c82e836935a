"""Rules of flows in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tocsin.model.errors import FlowNotFound
from tocsin.model.flow import Flow
from tocsin.ports.forward import FlowCounts
from tocsin.timers.flows import Flows, FlowView

_AT = 1_700_000_000_000_000


class FakeFlows(Flows):
    """What handlers call of `Flows`. `check` raises what a request about a namespace is refused with."""

    def __init__(self, check: Callable[[str], None]) -> None:
        self._check = check
        self._known_flows: dict[tuple[str, str], Flow] = {}

    def _get(self, namespace: str, match: str) -> Flow:
        self._check(namespace)
        if (namespace, match) not in self._known_flows:
            raise FlowNotFound(f"namespace {namespace!r} has no flow {match!r}")
        return self._known_flows[namespace, match]

    async def get(self, namespace: str, match: str) -> FlowView:
        return FlowView(self._get(namespace, match), FlowCounts(0, 0), True)

    async def put(self, wanted: Flow, managed_by: object = None, expected_version: int | None = None) -> FlowView:
        self._check(wanted.namespace)
        stored = msgspec.structs.replace(wanted, created_at=_AT, updated_at=_AT)
        self._known_flows[wanted.namespace, wanted.match] = stored
        return await self.get(wanted.namespace, wanted.match)

    async def pause(self, namespace: str, match: str, until_us: int | None = None) -> FlowView:
        return await self.get(namespace, match)

    async def resume(self, namespace: str, match: str) -> FlowView:
        return await self.get(namespace, match)

    async def delete(self, namespace: str, match: str, expected_version: int | None = None) -> None:
        self._get(namespace, match)
        del self._known_flows[namespace, match]

    async def list(self, namespace: str, after: str, limit: int) -> Any:
        self._check(namespace)
        names = sorted(each for each in self._known_flows if each[0] == namespace and each[1] > after)
        return [await self.get(*name) for name in names[:limit]], len(names) > limit
