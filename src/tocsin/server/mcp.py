"""MCP on a node: its tools, and the protocol that serves them."""

from __future__ import annotations

import secrets
from contextlib import AsyncExitStack

from tocsin.administration import shared_secret
from tocsin.ports.records import Records
from tocsin.settings import Settings
from tocsin.web.api.mcp.confirmation import Confirmations
from tocsin.web.api.mcp.handlers import McpHandlers, McpOff
from tocsin.web.api.mcp.tools import Tools
from tocsin.web.http.parts import WebParts

#: The name of the secret by which any node accepts the token of another's dry run.
_SECRET = "mcp"
_SECRET_BYTES = 32


async def open_mcp(ends: AsyncExitStack, settings: Settings, records: Records, web: WebParts) -> McpHandlers | McpOff:
    """The operation at `/mcp`. Its protocol runs until `ends`."""
    options = settings.mcp
    if not options.enabled:
        return McpOff()
    # An extra, and slow to import.
    from tocsin.web.api.mcp.transport import McpTransport

    secret = await shared_secret(records, _SECRET, secrets.token_hex(_SECRET_BYTES))
    transport = McpTransport(Tools(web.rules, Confirmations(secret, web.clock.now_us)), settings.api.request_bytes_max)
    ends.push_async_callback(transport.close)
    await transport.start()
    return McpHandlers(transport.serve, web.audit, calls_max=options.calls_max)
