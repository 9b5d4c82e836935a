"""The protocol, by its SDK: streamable HTTP without sessions, where each request is answered by itself and in JSON."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from tocsin import __version__
from tocsin.web.api.mcp.answers import Json, text_of
from tocsin.web.api.mcp.caller import CALLER, Caller
from tocsin.web.api.mcp.refusals import refusal
from tocsin.web.api.mcp.schema import input_schema
from tocsin.web.api.mcp.tools import INSTRUCTIONS, TOOLS, Tools
from tocsin.web.http.errors import Response
from tocsin.web.http.in_process import Message, serve


def protocol_tools() -> list[types.Tool]:
    """The tools as the protocol lists them."""
    return [
        types.Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=input_schema(tool.arguments),
            annotations=types.ToolAnnotations(
                title=tool.title,
                read_only_hint=not tool.writes,
                destructive_hint=tool.destroys,
                idempotent_hint=not tool.writes,
                open_world_hint=False,
            ),
        )
        for tool in TOOLS
    ]


class McpTransport:
    """Serves the tools from `start` to `close`. `request_bytes_max` is what the API accepts of a body."""

    def __init__(self, tools: Tools, request_bytes_max: int) -> None:
        self._tools = tools
        listed = types.ListToolsResult(tools=protocol_tools())

        async def list_tools(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
            return listed

        server = Server(
            "tocsin",
            version=__version__,
            title="Tocsin",
            instructions=INSTRUCTIONS,
            on_list_tools=list_tools,
            on_call_tool=self._call,
        )
        self._sessions = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=request_bytes_max
        )
        self._ending = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when requests can be served."""
        started = asyncio.Event()
        # A task of its own: what the SDK enters in a task has to be left in the same.
        self._running = asyncio.create_task(self._run(started))
        await started.wait()

    async def close(self) -> None:
        """Ends what is being served."""
        self._ending.set()
        if self._running is not None:
            await self._running

    async def _run(self, started: asyncio.Event) -> None:
        async with self._sessions.run():
            started.set()
            await self._ending.wait()

    async def serve(self, scope: Message, body: bytes) -> Response:
        """The response to a message. The scope has the caller."""
        return await serve(self._sessions.handle_request, scope, body)

    async def _call(self, context: Any, sent: types.CallToolRequestParams) -> types.CallToolResult:
        caller: Caller = context.request.scope[CALLER]
        try:
            answer = await self._tools.run(caller, sent.name, sent.arguments or {})
        except Exception as error:  # noqa: BLE001 -- the boundary: the client gets every error, and unknown ones are logged
            return _result(refusal(error, caller.request.correlation_id), failed=True)
        if answer is None:
            names = ", ".join(tool.name for tool in TOOLS)
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {sent.name!r}; tools are: {names}")
        return _result(answer, failed=False)


def _result(answer: Json, *, failed: bool) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text_of(answer))], is_error=failed)
