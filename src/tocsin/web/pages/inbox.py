"""`/inbox`: the dead rows of the inbox, their replay and deletion, and their number in the rail."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec import UNSET
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.ports.inbox import NodeInbox
from tocsin.tasks import Refreshed
from tocsin.web.http.errors import InboxUnavailable
from tocsin.web.http.inbox import ChangeInbox, DeadRowPage, InboxRequests, ListInbox
from tocsin.web.http.instants import parse_instant
from tocsin.web.pages.context import Fields, RequestContext
from tocsin.web.pages.pages import INBOX_PATH
from tocsin.web.pages.presentation import count, with_query
from tocsin.web.pages.site import Part, Site, route

_ROWS = 100
#: The minimum time between two counts, however many look at it.
_INTERVAL_S = 5.0
#: How long the number in the rail is waited for; no page waits with it.
_WAIT_S = 3.0


class _DeadRows(Refreshed):
    """How many rows are dead; None while the database does not answer."""

    def __init__(self, requests: InboxRequests) -> None:
        super().__init__(_INTERVAL_S)
        self._requests = requests
        self._number: int | None = None

    async def number(self) -> int | None:
        """As of a few seconds ago."""
        try:
            async with asyncio.timeout(_WAIT_S):
                await self.refresh()
        except TimeoutError:
            return None
        return self._number

    async def _read(self) -> None:
        try:
            self._number = (await self._requests.backlog()).dead
        except InboxUnavailable:
            self._number = None


class InboxPage(Part):
    """The table, and what changes its rows."""

    def __init__(self, site: Site, inbox: NodeInbox) -> None:
        super().__init__(site)
        self._requests = InboxRequests(inbox, site.rules, site.audit)
        self._place, self._dead = inbox.table.place, _DeadRows(self._requests)

    async def close(self) -> None:
        """Stops counting."""
        await self._dead.close()

    @route("GET", INBOX_PATH)
    async def table(self, context: RequestContext) -> Response:
        """The dead rows, of all namespaces or of the scope, the oldest first. Without the database, the page states why."""
        context.permit(Role.ADMIN)
        sent = ListInbox(context.scope or UNSET, _ROWS, context.query.exact("cursor") or UNSET)
        found, problem = DeadRowPage([]), ""
        try:
            found = await self._requests.list(sent)
        except InboxUnavailable as error:
            problem = str(error)
        following = {"namespace": context.scope, "cursor": found.next_cursor or ""}
        return self._pages.page(
            "inbox/list.html",
            context,
            title="Inbox",
            place=self._place,
            found=found.rows,
            following=with_query(INBOX_PATH, following) if found.next_cursor else "",
            instant_of=parse_instant,
            problem=problem,
            replayed=context.query.get("replayed"),
            deleted=context.query.get("deleted"),
        )

    @route("GET", "/ui/inbox")
    async def count(self, context: RequestContext) -> Response:
        """The number of dead rows in the rail, as of a few seconds ago: nothing while the database does not answer."""
        context.permit(Role.ADMIN)
        number = await self._dead.number()
        return Response(count(number) if number else "", media_type="text/html")

    @route("POST", "/inbox/replay")
    async def replay(self, context: RequestContext) -> Response:
        """Has a row tried again, those of a namespace, or all."""
        context.permit(Role.ADMIN)
        done = await self._requests.replay(_sent(context.form), context.actor)
        return _done(context.form, {"replayed": str(done.replayed)})

    @route("POST", "/inbox/delete")
    async def delete(self, context: RequestContext) -> Response:
        """Deletes a row, those of a namespace, or all, after a confirmation."""
        context.permit(Role.ADMIN)
        form = context.form
        sent = _sent(form)
        if form.get("confirmed") != "yes":
            return self._pages.page(
                "inbox/delete.html",
                context,
                title="Delete dead rows",
                place=self._place,
                id=form.exact("id") if "id" in form else None,
                namespace=form.exact("namespace"),
            )
        done = await self._requests.delete(sent, context.actor)
        return _done(form, {"deleted": str(done.deleted)})


def _sent(form: Fields) -> ChangeInbox:
    """The request for a form: a row's id, which may be empty, or a namespace, or all. Raises InvalidInput if it has none."""
    if "id" in form:
        return ChangeInbox(ids=[form.exact("id")])
    if namespace := form.exact("namespace"):
        return ChangeInbox(namespace=namespace)
    if form.exact("all") != "yes":
        raise InvalidInput(FieldError("id", "is missing; send the id of a row, a namespace, or all=yes"))
    return ChangeInbox(all=True)


def _done(form: Fields, notice: Mapping[str, str]) -> Response:
    namespace = form.exact("namespace")
    return RedirectResponse(with_query(INBOX_PATH, {**({"namespace": namespace} if namespace else {}), **notice}), 303)
