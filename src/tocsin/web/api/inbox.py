"""The operations on dead rows of the inbox."""

from __future__ import annotations

from functools import partial

from tocsin.model.access import Role
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest
from tocsin.web.http import inbox as wire

_of_all = partial(Operation, role=Role.ADMIN, reach=Reach.SERVICE)


class InboxHandlers:
    """Handles list, replay and delete."""

    def __init__(self, requests: wire.InboxRequests) -> None:
        self._requests = requests

    @_of_all("listInboxRows", "/api/v1/inbox/list", body_optional=True)
    async def list(self, request: ApiRequest, sent: wire.ListInbox) -> wire.DeadRowPage:
        """The dead rows, which were refused for good and stay in the table. Only on a server with the setting `inbox.url`."""
        return await self._requests.list(sent)

    @_of_all("replayInboxRows", "/api/v1/inbox/replay")
    async def replay(self, request: ApiRequest, sent: wire.ChangeInbox) -> wire.ReplayedRows:
        """Has dead rows tried again, once their cause is mended. A delay still counts from when the row was written. Other
        rows are left alone. Safe to repeat."""
        return await self._requests.replay(sent, request.actor)

    @_of_all("deleteInboxRows", "/api/v1/inbox/delete")
    async def delete(self, request: ApiRequest, sent: wire.ChangeInbox) -> wire.DeletedRows:
        """Deletes dead rows from the database: their timers are never created. Rows that are not dead are left
        alone. Safe to repeat."""
        return await self._requests.delete(sent, request.actor)
