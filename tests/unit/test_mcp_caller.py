"""What the audit trail gets of changes that the API refuses, or whose outcome it does not know."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from tests.support.cases import each

from tocsin.model.audit import AuditAction, Detail
from tocsin.ports.audit import Actor, NoAudit
from tocsin.web.api.mcp.caller import ApiRefused, Caller
from tocsin.web.api.request import AsgiRequest
from tocsin.web.http.errors import Response
from tocsin.web.http.hosts import Proxies


class Trail(NoAudit):
    """Keeps what is written."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, str, Mapping[str, Detail] | None]] = []

    async def write(
        self, action: AuditAction, actor: Actor, subject: str = "", details: Mapping[str, Detail] | None = None
    ) -> None:
        """Adds an entry."""
        self.entries.append((action, subject, details))


@each("status, entries", [(400, 0), (409, 0), (503, 1), (500, 1)])
async def test_a_change_that_may_have_been_made_is_recorded_with_its_error(status, entries):
    async def ask(*_: object) -> Response:
        return Response(status, [], json.dumps({"error": "CODE", "detail": "a sentence"}).encode())

    trail = Trail()
    request = AsgiRequest({}, "c", ("127.0.0.1", 1), Proxies(), parameters={}, path="/mcp")
    caller = Caller(request, ask, trail)
    with pytest.raises(ApiRefused, match="a sentence"):
        await caller.change("/timers/delete", {}, AuditAction.TIMERS_CANCELED, "default", timers=["t"])
    assert trail.entries == [("timers_canceled", "default", {"timers": ["t"], "error": "CODE"})] * entries
