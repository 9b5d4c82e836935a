"""`tocsin mcp`: the tools of a server for a program that speaks the Model Context Protocol over standard input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tocsin.cli.options import ServerOptions

if TYPE_CHECKING:
    from tocsin.cli.client import Client


def mcp(*, server: ServerOptions) -> None:
    """Serve the tools of a server at `/mcp` to a program that starts this command, over standard input and output. They have
    the rights of the API key. The server's setting `mcp.enabled` must be on."""
    from tocsin.server.extras import require_extra

    require_extra("mcp", "tocsin mcp")
    import asyncio

    from mcp_types.version import LATEST_HANDSHAKE_VERSION

    with server.client(headers={"mcp-protocol-version": LATEST_HANDSHAKE_VERSION}) as client:
        # Without an answer, the command ends with a message, before the program expects one of the protocol.
        _ask(client, "ping", {})
        asyncio.run(_serve(client))


async def _serve(client: Client) -> None:
    """Passes each request on, until standard input ends. The server at `/mcp` keeps no sessions, so this keeps none."""
    import asyncio

    import mcp_types as types
    from mcp import MCPError
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    from tocsin import __version__
    from tocsin.cli.command import Failure
    from tocsin.web.api.mcp.tools import INSTRUCTIONS

    async def ask(method: str, params: Any) -> Any:
        try:
            sent = {} if params is None else params.model_dump(mode="json", by_alias=True, exclude_none=True)
            answer = await asyncio.to_thread(_ask, client, method, sent)
        except Failure as failure:
            raise MCPError(types.INTERNAL_ERROR, str(failure)) from failure
        if (error := answer.get("error")) is not None:
            raise MCPError(error["code"], error["message"])
        return answer["result"]

    async def list_tools(_: Any, sent: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate(await ask("tools/list", sent))

    async def call_tool(_: Any, sent: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult.model_validate(await ask("tools/call", sent))

    bridge = Server(
        "tocsin",
        version=__version__,
        title="Tocsin",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    async with stdio_server() as (reading, writing):
        await bridge.run(reading, writing, bridge.create_initialization_options())


def _ask(client: Client, method: str, params: Any) -> Any:
    """The response of the protocol. Raises ServerRefused, Unreachable."""
    return client.call("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
