"""The caller of a tool: makes requests to the API as itself, and answers for what it changes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from tocsin.model.access import Role
from tocsin.model.audit import AuditAction, AuditSource, Detail
from tocsin.model.errors import TocsinError
from tocsin.ports.audit import AuditLog
from tocsin.web.api.request import ApiRequest
from tocsin.web.http.errors import Response

#: Where the scope of a message has its caller. No client sets it.
CALLER = "tocsin.caller"
#: Makes a request of the API: a path below /api/v1 and a JSON body, in the name of another request.
Ask = Callable[[ApiRequest, str, bytes], Awaitable[Response]]


class ApiRefused(TocsinError):
    """The API refused a request of a tool. `problem` is its response."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail", "")))
        self.status = status
        self.problem = problem


class Caller:
    """`request` is the one that called the tool."""

    def __init__(self, request: ApiRequest, ask: Ask, audit: AuditLog) -> None:
        self.request = request
        self._ask = ask
        self._audit = audit

    @property
    def name(self) -> str:
        """What tokens are bound to: the id of the key; empty without one."""
        return "" if self.request.key is None else self.request.key.key_id

    def permit_writing(self, namespace: str) -> None:
        """Raises Forbidden unless the caller may change the namespace."""
        self.request.permit(Role.WRITE, namespace)

    async def ask(self, path: str, body: object) -> Any:
        """The decoded response, None if it is empty. Raises ApiRefused."""
        response = await self._ask(self.request, path, msgspec.json.encode(body))
        found = json.loads(response.body) if response.body else None
        if response.status >= 400:
            raise ApiRefused(response.status, found or {})
        return found

    async def find(self, path: str, body: object) -> Any:
        """The same, with None for what does not exist."""
        try:
            return await self.ask(path, body)
        except ApiRefused as refused:
            if refused.status == 404:
                return None
            raise

    async def change(self, path: str, body: object, action: AuditAction, namespace: str, **details: Detail) -> Any:
        """The same for a change. If the server fails, the change may have been made: the audit trail gets an entry with the
        error. Of a change that succeeds, the caller writes the entry (`wrote`)."""
        try:
            return await self.ask(path, body)
        except ApiRefused as refused:
            if refused.status >= 500:
                await self.wrote(action, namespace, **details, error=str(refused.problem.get("error")))
            raise

    async def wrote(self, action: AuditAction, namespace: str, **details: Detail) -> None:
        """Adds a change to the audit trail."""
        await self._audit.write(action, replace(self.request.actor, source=AuditSource.MCP), namespace, details)
