"""A client of the MCP SDK, whose answers are decoded."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


class Tools:
    """The tools of a server."""

    def __init__(self, client: Client) -> None:
        self.client = client
        #: Calls so far.
        self.calls = 0

    async def __call__(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The answer of a tool that succeeds."""
        answer, failed = await self._call(name, arguments)
        assert not failed, answer
        return answer

    async def refused(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The answer of a tool that fails."""
        answer, failed = await self._call(name, arguments)
        assert failed, answer
        return answer

    async def _call(self, name: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        self.calls += 1
        result = await self.client.call_tool(name, arguments)
        (content,) = result.content
        return json.loads(content.text), result.is_error


@asynccontextmanager
async def over_http(url: str, key: str | None = None, *, mode: str = "auto", **headers: str) -> AsyncIterator[Tools]:
    """Talks to `/mcp` of a server. Mode `legacy` uses the protocol with a handshake."""
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    async with (
        create_mcp_http_client(headers=headers) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield Tools(client)


@asynccontextmanager
async def over_stdio(command: str, args: list[str], env: dict[str, str], *, mode: str = "auto") -> AsyncIterator[Tools]:
    """Starts a command and talks to it over its standard input and output."""
    async with Client(StdioServerParameters(command=command, args=args, env=env), mode=mode) as client:
        yield Tools(client)
