"""`/calls`: the list of service calls with its filters, of one tenant or of all; and the tenants with their labels."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from starlette.responses import RedirectResponse, Response

from tocsin.model.access import EVERY, Role
from tocsin.model.audit import AuditAction
from tocsin.model.ids import is_uuid7
from tocsin.model.instants import parse_instant
from tocsin.model.validation import new_text_reason
from tocsin.service_calls.api.validation import PageRequest
from tocsin.service_calls.messages import CallStatus
from tocsin.service_calls.ports import WAITING, CallRecord
from tocsin.statistics.counting import ChangeCounter
from tocsin.web.http.access import listed_tenants
from tocsin.web.http.errors import Forbidden
from tocsin.web.pages.calls.presentation import STAR, key_of, list_path, version
from tocsin.web.pages.context import Fields, Handler, RequestContext
from tocsin.web.pages.counts import Numbers, of_calls
from tocsin.web.pages.filters import ListFilters
from tocsin.web.pages.lists import Listing, ListPart, TimeBudget
from tocsin.web.pages.presentation import with_query
from tocsin.web.pages.site import CallPart, route
from tocsin.web.pages.timers.listing import TimerFilters


@dataclass(frozen=True, slots=True)
class CallFilters(ListFilters):
    """The scope is a tenant or all of them, the time range one of submission times that ends now. The latest call is listed
    first."""

    path = "/calls"
    scope_name = "tenant"
    range_name = "submitted"
    #: Each tab lists the calls with this status; None: all.
    views: ClassVar = {
        "all": ("All", None),
        "scheduled": ("Scheduled", CallStatus.SCHEDULED),
        "running": ("Running", CallStatus.RUNNING),
        "retrying": ("Retrying", CallStatus.RETRYING),
        "succeeded": ("Succeeded", CallStatus.SUCCEEDED),
        "failed": ("Failed", CallStatus.FAILED),
    }
    ranges: ClassVar = {
        name: (title, after, None)
        for name, (title, after, _) in TimerFilters.ranges.items()
        if not name.startswith("next-")
    }

    @classmethod
    def _search(cls, query: Fields) -> tuple[str, dict[str, list[str]]]:
        text, words = super(CallFilters, cls)._search(query)
        return text.strip(), words

    @property
    def names_id(self) -> bool:
        """Whether the search text is a call's id; any other text is a part of a name."""
        return is_uuid7(self.search.lower())

    @property
    def retries(self) -> dict[str, Any] | None:
        """The filter of the job that retries all failed calls that are listed; None if no filter selects just these."""
        return None if self.view != "failed" or self.search or self.range else _given(tags=self._wanted_tags)

    def deletes(self, now_us: int) -> dict[str, Any] | None:
        """The filter of the job that deletes all waiting calls that are listed; None on tabs that may list others."""
        status = self.views[self.view][1]
        if status not in WAITING:
            return None
        after, before = self.bounds(now_us)
        by_id = self.names_id
        return _given(
            status=status,
            tags=self._wanted_tags,
            idPrefix=self.search.lower() if by_id else "",
            name="" if by_id else self.search,
            createdAfter=after,
            createdBefore="" if _is_after(before, now_us) else before,
        )

    @property
    def _wanted_tags(self) -> tuple[str, ...]:
        return (*self.tags, *((STAR,) if self.starred else ()))

    def request(self, now_us: int) -> PageRequest:
        """The equivalent API request, unchecked."""
        status = self.views[self.view][1]
        after, before = self.bounds(now_us)
        return PageRequest(
            statuses=() if status is None else (status,),
            tags=self._wanted_tags,
            name=self.search or None,
            submitted_from=after or None,
            submitted_to=before or None,
            limit=str(self.rows),
            cursor=self.cursor or None,
        )


def _is_after(text: str, now_us: int) -> bool:
    """Whether the text is an instant in the future; one that is none is for the API to refuse."""
    with suppress(ValueError):
        return bool(text) and parse_instant(text) > now_us
    return False


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


NOTICES = {"deleted": "Call deleted. It is not sent, and no record of it is kept."}
#: Tenants in which a call is looked up by its id: those that the browser remembers, that the key names or that have a label.
_LOOKED_UP_MAX = 100
#: The newest calls, whose tenants are listed with those that have a label.
_LATEST = 200


class CallRow(NamedTuple):
    """A call with its tenant's label; empty if it has none. It is known by its tenant and id."""

    call: CallRecord
    label: str

    @property
    def version(self) -> str:
        """The version of what it shows."""
        return f"{version(self.call)}.{zlib.crc32(self.label.encode(errors='surrogatepass')):x}"


class CallList(ListPart[CallFilters, CallRow], CallPart):
    """The list of a tenant's calls, or of those of all tenants that the principal may read."""

    kind = "calls"
    title = "Calls"
    rows_path = "/ui/calls/rows"
    live_path = "/ui/live/calls"
    filters_type = CallFilters
    no_choices: ClassVar = {"tenants": {}, "notice_text": ""}
    of_calls = True

    def _handler(self, handler: Handler, *, relayed: bool = True) -> Handler:
        in_outage = self.unread if handler == self.list else None
        return self._site.gate(handler, relayed=relayed, in_outage=in_outage)

    @staticmethod
    def version(row: CallRow) -> str:
        return row.version

    def change_counter(self, context: RequestContext, scope: str) -> ChangeCounter:
        may = context.principal.may_call
        return self._site.call_statistics.change_counter(
            scope, (lambda tenant: may(Role.READ, tenant)) if context.principal.is_limited else None
        )

    def belongs(self, row: CallRow, view: str) -> bool:
        _, status = self.filters_type.views.get(view, ("", None))
        return status is None or row.call.status == status

    async def filters(self, context: RequestContext) -> CallFilters:
        tenant = context.query.get("tenant").lower() or EVERY
        self.permit(context, tenant)
        return CallFilters.read(context.query, self._limits, tenant)

    def permit(self, context: RequestContext, scope: str) -> bool:
        if scope == EVERY:
            if not context.principal.may_call_somewhere(Role.READ):
                raise Forbidden("Your API key has no access to any tenant.")
            return context.principal.may_call_somewhere(Role.WRITE)
        context.permit_tenant(Role.READ, scope)
        return context.principal.may_call(Role.WRITE, scope)

    async def choices(self, context: RequestContext, filters: CallFilters) -> dict[str, Any]:
        known = await self._known(context)
        chosen = {} if filters.several or filters.scope in known else {filters.scope: ""}
        return {"tenants": chosen | known, "notice_text": NOTICES.get(context.query.get("notice"), "")}

    async def _known(self, context: RequestContext) -> dict[str, str]:
        """The tenants to choose from, each with its label: those that the browser remembers or the key names, and those with
        a label."""
        labels = await self._site.labels.all()
        known = dict.fromkeys(
            [*self._site.tenants.known(context), *sorted(labels, key=lambda each: labels[each].lower())]
        )
        return {each: labels.get(each, "") for each in known if context.principal.may_call(Role.READ, each)}

    async def get_many(self, context: RequestContext, scope: str, ids: Sequence[str]) -> Mapping[str, CallRow]:
        by_tenant: dict[str, list[str]] = {}
        for key in ids:
            tenant, _, call_id = key.partition("/")
            if context.principal.may_call(Role.READ, tenant):
                by_tenant.setdefault(tenant, []).append(call_id)
        read = [context.calls.get_many(tenant, some) for tenant, some in by_tenant.items()]
        rows = await self._rows_of([call for some in await asyncio.gather(*read) for call in some.values()])
        return {key_of(row.call): row for row in rows}

    async def _rows_of(self, calls: Sequence[CallRecord]) -> list[CallRow]:
        labels = await self._site.labels.all()
        return [CallRow(call, labels.get(call.tenant_id, "")) for call in calls]

    async def _named(self, context: RequestContext, filters: CallFilters) -> list[CallRecord]:
        """The call whose id is the search text, on any tab: a lookup instead of a search."""
        tenants = list(await self._known(context))[:_LOOKED_UP_MAX] if filters.several else [filters.scope]
        read = [context.calls.get_many(tenant, [filters.search]) for tenant in tenants]
        return [call for some in await asyncio.gather(*read) for call in some.values()]

    async def count(self, context: RequestContext, scope: str) -> Numbers:
        return await of_calls(context.calls, listed_tenants(context.principal.key, scope))

    async def find(self, context: RequestContext, filters: CallFilters) -> Listing[CallRow]:
        if filters.names_id:
            return Listing((), exact=await self._rows_of(await self._named(context, filters)))
        tenants = listed_tenants(context.principal.key, filters.scope)
        request, budget = filters.request(context.now_us), TimeBudget(self._limits.list_search_timeout_s)
        found: list[CallRecord] = []
        while True:
            page = await context.calls.list(tenants, request._replace(limit=str(filters.rows - len(found))))
            found += page.calls
            if page.cursor is None or len(found) >= filters.rows:
                return Listing(await self._rows_of(found), page.cursor)
            if budget.spent:
                return Listing(
                    await self._rows_of(found), page.cursor, page.reached.submitted_at if page.reached else None
                )
            request = request._replace(cursor=page.cursor)

    async def find_ids(self, context: RequestContext, filters: CallFilters) -> tuple[Sequence[str], bool]:
        found = await self.find(context, filters)
        return [key_of(row.call) for row in found.all], found.cursor is not None

    async def list(self, context: RequestContext) -> Response:
        """The page. The browser remembers its tenant."""
        tenant = context.query.get("tenant").lower()
        response = await super().list(context)
        if response.status_code == 200 and tenant:
            self._site.tenants.remember(context, tenant, response)
        return response

    @route("GET", "/calls/tenants")
    async def tenants(self, context: RequestContext) -> Response:
        """The tenants, with their labels."""
        return await self._tenants(context)

    async def _tenants(
        self, context: RequestContext, *, problem: str = "", sent: tuple[str, str] = ("", "")
    ) -> Response:
        """The page; `problem` is why the label `sent` for a tenant was refused."""
        may_write = context.principal.may_call_somewhere(Role.WRITE)
        latest = await context.calls.list(listed_tenants(context.principal.key, EVERY), PageRequest(limit=str(_LATEST)))
        tenants = await self._known(context)
        labeled = context.query.get("of")
        return self._pages.page(
            "calls/tenants.html",
            context,
            400 if problem else 200,
            title="Tenants",
            tenants=tenants | {call.tenant_id: "" for call in latest.calls if call.tenant_id not in tenants},
            may_write=may_write,
            may_make=may_write and not context.principal.is_limited,
            problem=problem,
            sent=sent,
            chars_max=self._limits.tenant_label_chars_max,
            notice_text="Label saved." if context.query.get("notice") == "labeled" else "",
            undo=("/calls/tenants/label", {"tenant": labeled, "label": context.query.exact("was")})
            if may_write and labeled
            else None,
        )

    @route("POST", "/calls/tenants")
    async def new_tenant(self, context: RequestContext) -> Response:
        """Creates a tenant, which takes no more than an unused id."""
        tenant = context.calls.new_id()
        context.permit_tenant(Role.WRITE, tenant)
        response = RedirectResponse(list_path(tenant), 303)
        self._site.tenants.remember(context, tenant, response)
        return response

    @route("POST", "/calls/tenants/label")
    async def label(self, context: RequestContext) -> Response:
        """Gives a tenant a label, for everybody; an empty one removes it."""
        tenant, text = context.form.get("tenant").lower(), context.form.get("label")
        context.permit_tenant(Role.WRITE, tenant)
        labels, most = await self._site.labels.all(), self._limits.tenant_labels_max
        if not is_uuid7(tenant):
            problem = "The tenant’s id must be a UUID of version 7, such as 01890a5d-ac96-774b-bcce-b302099a8057."
        elif reason := new_text_reason(text, self._limits.tenant_label_chars_max) if text else None:
            problem = f"The label {reason}."
        elif text and tenant not in labels and len(labels) >= most:
            problem = f"{most} tenants have a label, which is the maximum. Remove another one first."
        else:
            await self._site.labels.put(tenant, text)
            await self._site.audit.write(AuditAction.TENANT_LABELED, context.actor, tenant, {"label": text})
            response = RedirectResponse(
                with_query("/calls/tenants", {"notice": "labeled", "of": tenant, "was": labels.get(tenant, "")}), 303
            )
            self._site.tenants.remember(context, tenant, response)
            return response
        return await self._tenants(context, problem=problem, sent=(tenant, text))
