"""The operations to which a key can be limited."""

from __future__ import annotations

from tocsin.web.api.mcp.handlers import McpHandlers
from tocsin.web.api.operation import declared_by
from tocsin.web.api.routes import FAMILIES

#: The names of all operations that need a key, on any server.
OPERATION_NAMES = frozenset(
    operation.scope
    for family in (*FAMILIES, McpHandlers)
    for operation in declared_by(family)
    if operation.role is not None
)
