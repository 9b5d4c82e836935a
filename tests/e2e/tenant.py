"""A tenant of the service agent: a test client of the API."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tests.support.http import Client
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.model.ids import Uuid7Source
from tocsin.model.instants import format_instant

new_id = Uuid7Source(lambda: time.time_ns() // 1_000)


def in_seconds(seconds: float) -> str:
    """An instant in the future."""
    return format_instant(time.time_ns() // 1_000 + round(seconds * 1e6))


class Tenant:
    """The calls of a tenant on one server."""

    def __init__(self, server: ServerProcess) -> None:
        self.id = new_id()
        self.list = f"/calls?tenant={self.id}"
        self._api = f"/api/v1/tenants/{self.id}/service-calls"
        self._client = Client(server.address)

    def page(self, service_call_id: str) -> str:
        """The path of a call's page."""
        return f"/calls/{self.id}/{service_call_id}"

    async def submit(
        self,
        name: str,
        url: str,
        *,
        method: str = "POST",
        headers: dict[str, str] | None = None,
        body: Any = None,
        **fields: Any,
    ) -> str:
        """Submits a call. Returns its id."""
        spec = {
            "method": method,
            "url": url,
            **({"headers": headers} if headers else {}),
            **({} if body is None else {"body": body}),
        }
        status, answer = await self._client.post(self._api, {"name": name, "requestSpec": spec, **fields})
        assert status == 202, answer
        return str(answer["serviceCallId"])

    async def get(self, service_call_id: str) -> Any:
        """The call in the format of the API."""
        status, call = await self._client.get(f"{self._api}/{service_call_id}")
        assert status == 200, call
        return call

    async def ended(self, service_call_id: str, timeout_s: float = PATIENCE_S) -> Any:
        """Waits until the call has ended. Polls, because the API sends no notification."""
        async with asyncio.timeout(timeout_s):
            while (call := await self.get(service_call_id))["status"] not in ("Succeeded", "Failed"):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return call

    async def delete(self, service_call_id: str) -> int:
        """Deletes a call. Returns the HTTP status."""
        return await self._client.delete(f"{self._api}/{service_call_id}")
