"""What a node accepts at `/mcp` at once."""

from __future__ import annotations

import asyncio

import pytest

from tocsin.model.errors import Overloaded
from tocsin.ports.audit import NoAudit
from tocsin.web.api.mcp.handlers import McpHandlers
from tocsin.web.api.request import AsgiRequest
from tocsin.web.http.errors import Response
from tocsin.web.http.hosts import Proxies

HEADERS = {b"host": b"localhost"}


def request() -> AsgiRequest:
    return AsgiRequest(HEADERS, "c", ("127.0.0.1", 1), Proxies(), parameters={}, path="/mcp")


async def test_requests_beyond_the_limit_are_refused_until_one_is_answered():
    ended = asyncio.Event()

    async def answer(*_: object) -> Response:
        await ended.wait()
        return Response(200, [], b"{}")

    handlers = McpHandlers(answer, NoAudit(), calls_max=2)
    served = [asyncio.ensure_future(handlers.call(request())) for _ in range(2)]
    await asyncio.wait(served, timeout=0)
    with pytest.raises(Overloaded, match=r"2 requests to /mcp are being served \(mcp.calls_max\); try again later"):
        await handlers.call(request())
    ended.set()
    await asyncio.gather(*served)
    assert (await handlers.call(request())).status == 200
