"""`/inbox`: the dead rows of the inbox, their replay and deletion, and their number in the rail."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.ports.inbox import NodeInbox
from tocsin.web.http.errors import InboxUnavailable
from tocsin.web.http.inbox import ChangeInbox, DeadRowPage, InboxRequests, ListInbox
from tocsin.web.http.instants import parse_instant
from tocsin.web.pages.context import Fields, RequestContext
from tocsin.web.pages.counts import BoundedCount, Counts, Numbers
from tocsin.web.pages.pages import INBOX_PATH
from tocsin.web.pages.presentation import with_query
from tocsin.web.pages.site import Part, Site, route

_ROWS = 100


class InboxPage(Part):
    """The table, and what changes its rows."""

    def __init__(self, site: Site, inbox: NodeInbox, counts: Counts[object]) -> None:
        super().__init__(site)
        self._requests = InboxRequests(inbox, site.rules, site.audit)
        self._place, self._counts = inbox.table.place, counts

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
        numbers = await self._counts.of("inbox", self._read_count)
        known = numbers.get("dead")
        return Response(known.short if known is not None and known.number else "", media_type="text/html")

    async def _read_count(self) -> Numbers:
        return {"dead": BoundedCount((await self._requests.backlog()).dead)}

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
                id=form.exact("id"),
                namespace=form.exact("namespace"),
            )
        done = await self._requests.delete(sent, context.actor)
        return _done(form, {"deleted": str(done.deleted)})


def _sent(form: Fields) -> ChangeInbox:
    """The request for a form: a row's id, or a namespace, or neither for all."""
    row_id, namespace = form.exact("id"), form.exact("namespace")
    if row_id:
        return ChangeInbox(ids=[row_id])
    return ChangeInbox(namespace=namespace) if namespace else ChangeInbox(all=True)


def _done(form: Fields, notice: Mapping[str, str]) -> Response:
    namespace = form.exact("namespace")
    return RedirectResponse(with_query(INBOX_PATH, {**({"namespace": namespace} if namespace else {}), **notice}), 303)
