"""What black-box tests send to the API, and the calls they wait for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.http import Client
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.model.instants import parse_instant


@dataclass
class Call:
    """A webhook call as it arrived; `arrived_at` in microseconds of this machine's clock."""

    body: dict[str, Any]
    headers: dict[str, str]
    arrived_at: int

    @property
    def lag_us(self) -> int:
        """How long after its instant it arrived; negative would be early."""
        return self.arrived_at - parse_instant(self.body["executeAt"])


@dataclass
class Inbox:
    """Collects calls; `answers` are given in order, then always `default`."""

    answers: list[tuple[int, bytes]] = field(default_factory=list)
    default: tuple[int, bytes] = (200, b"")
    calls: list[Call] = field(default_factory=list)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __call__(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        self.calls.append(Call(body, headers, time.time_ns() // 1_000))
        task = asyncio.get_running_loop().create_task(self._notify_changes())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return self.answers.pop(0) if self.answers else self.default

    async def _notify_changes(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def wait(self, condition: Callable[[list[Call]], bool], timeout_s: float = PATIENCE_S) -> list[Call]:
        """The calls, once the condition holds of them; TimeoutError."""
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(lambda: condition(self.calls))
        return self.calls

    async def count(self, number: int, timeout_s: float = PATIENCE_S) -> list[Call]:
        """The calls, once there are that many."""
        return await self.wait(lambda calls: len(calls) >= number, timeout_s)


class Api:
    """The timer API of one server. `namespace` is the one of requests for a timer that name none."""

    def __init__(
        self, server: ServerProcess, headers: dict[str, str] | None = None, namespace: str = "default"
    ) -> None:
        self.namespace = namespace
        self._client = Client(server.address, headers)

    async def __call__(self, path: str, **body: Any) -> tuple[int, Any]:
        """Status and body of `POST /api/v1/{path}`."""
        return await self._client.post(f"/api/v1/{path}", body)

    async def create(self, identifier: str, url: str, *, namespace: str | None = None, **body: Any) -> Any:
        """The created timer; due at once unless executeAt or delay is given."""
        if "executeAt" not in body:
            body.setdefault("delay", "0s")
        body |= {"namespace": namespace or self.namespace, "id": identifier, "callbackUrl": url}
        status, timer = await self("timers/create", **body)
        assert status == 200, timer
        return timer

    async def get(self, identifier: str, *, namespace: str | None = None) -> Any:
        """The timer."""
        status, timer = await self("timers/get", namespace=namespace or self.namespace, timerId=identifier)
        assert status == 200, timer
        return timer

    async def attempted(self, identifier: str, attempts: int, *, namespace: str | None = None) -> Any:
        """The timer, once so many attempts have ended."""
        async with asyncio.timeout(PATIENCE_S):
            while (timer := await self.get(identifier, namespace=namespace))["attempts"] < attempts:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return timer

    async def settled(
        self, identifier: str, status: str, *, namespace: str | None = None, timeout_s: float = PATIENCE_S
    ) -> Any:
        """The timer, once it has this status. The API has no notifications, so this polls."""
        async with asyncio.timeout(timeout_s):
            while (timer := await self.get(identifier, namespace=namespace))["status"] != status:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return timer
