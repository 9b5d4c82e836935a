"""`/failures`: what failed and nobody has dealt with, grouped by cause; and the page of a group of timers."""

from __future__ import annotations

from typing import Any

from starlette.responses import RedirectResponse, Response

from tocsin.model.access import EVERY, Role
from tocsin.model.errors import Conflict, InvalidInput, NotFound, StoreError, TocsinError
from tocsin.model.failure_groups import (
    CALLS_GROUPED_BY,
    GROUPED_BY,
    CountedFailures,
    FailedKind,
    FailureGroups,
    GroupKey,
)
from tocsin.ports.store import FailureRow
from tocsin.service_calls.api.failures import CallFailureFilter, CallFailures
from tocsin.timers.failures import FailureFilter, failure_id, is_of_schedule, kind_of, namespace_of
from tocsin.timers.job_rows import replay_of
from tocsin.web.http.access import listed_in, listed_tenants
from tocsin.web.http.errors import Forbidden
from tocsin.web.http.failures import FailureRequests
from tocsin.web.http.jobs import JobRequests
from tocsin.web.pages.context import Fields, Handler, RequestContext
from tocsin.web.pages.counts import COUNTED_MAX, BoundedCount, Numbers, badge
from tocsin.web.pages.failures import shown
from tocsin.web.pages.failures.shown import Found, Member
from tocsin.web.pages.jobs import job_path
from tocsin.web.pages.overview.band import spark
from tocsin.web.pages.presentation import failures_path, timer_path, with_query
from tocsin.web.pages.schedules.presentation import schedule_path
from tocsin.web.pages.site import Part, Site, route

_NONE: FailureGroups[Any] = FailureGroups([], 0, 0, False)


class FailurePages(Part):
    """The list of groups, of timers and of service calls, and the count in the rail; the page of a group of timers, its
    export, replay and dismissal. On a node without the service agent, the node that runs it answers for the list; if there is
    none, service calls are left out."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._failures = site.service.failures
        self._requests = FailureRequests(site.service.failures, site.audit)
        self._jobs = JobRequests(site.jobs, site.rules, site.audit)

    def _handler(self, handler: Handler, *, relayed: bool = True) -> Handler:
        if handler == self.show:
            return self._site.gate(handler, otherwise=self.show_without_calls)
        return self._site.gate(handler, otherwise=self.count_without_calls) if handler == self.count else handler

    @route("GET", "/failures")
    async def show(self, context: RequestContext) -> Response:
        """The groups, those with most failures first."""
        return await self._show(context, context.calls.failures)

    async def show_without_calls(self, context: RequestContext) -> Response:
        """Likewise of timers alone."""
        return await self._show(context, None)

    async def _show(self, context: RequestContext, calls: CallFailures | None) -> Response:
        of_timers, of_calls = self._filters(context)
        timers, found, unread = _NONE, _NONE, False
        if of_timers is not None:
            timers = await self._failures.groups(of_timers, GROUPED_BY, shown.GROUPS)
        if of_calls is not None and calls is not None:
            try:
                found = await calls.groups(of_calls, CALLS_GROUPED_BY, shown.GROUPS)
            except StoreError:
                # The agent's database is not the timers': these are shown without it.
                unread = True
        groups: list[CountedFailures[Any]] = [*timers.groups, *found.groups]
        groups.sort(key=lambda group: (group.count, group.instants[0]), reverse=True)
        labels = await self._site.labels.all() if found.groups else {}
        return self._pages.page(
            "failures/list.html",
            context,
            title="Failures",
            total=timers.total + found.total,
            further=timers.further + found.further,
            at_least=timers.at_least or found.at_least,
            unread=unread,
            rows=[
                (group, failures_path(group.key), *shown.titles(group.key), spark(group.series(context.now_us)))
                for group in groups
            ],
            labels=labels,
            dismissed=context.query.get("dismissed"),
        )

    @route("GET", "/ui/failures")
    async def count(self, context: RequestContext) -> Response:
        """The number in the rail, as of a few seconds ago."""
        return await self._count(context, context.calls.failures)

    async def count_without_calls(self, context: RequestContext) -> Response:
        """Likewise of timers alone."""
        return await self._count(context, None)

    async def _count(self, context: RequestContext, calls: CallFailures | None) -> Response:
        of_timers, of_calls = self._filters(context)

        async def read() -> Numbers:
            number, more = (0, False) if of_timers is None else await self._failures.count(of_timers, COUNTED_MAX)
            if of_calls is not None and calls is not None:
                of_them, more_of_them = await calls.count(of_calls, COUNTED_MAX)
                number, more = number + of_them, more or more_of_them
            return {"failures": BoundedCount(number, more)}

        numbers = await self._site.counts.of(("failures", of_timers, of_calls, calls is None), read)
        return badge(numbers.get("failures"))

    @route("GET", "/failures/group")
    async def group(self, context: RequestContext) -> Response:
        """A sample of a group, and its failures, newest first."""
        return await self._group_page(context, self._group(context, context.query, Role.READ))

    async def _group_page(self, context: RequestContext, key: GroupKey, problem: TocsinError | None = None) -> Response:
        wanted = FailureFilter(key.namespace, None, key)
        # One group of all that the key names.
        found = await self._failures.groups(wanted, shown.fields_of(key), 1)
        rows, cursor = await self._failures.members(wanted, shown.MEMBERS, context.query.get("cursor") or None)
        group = found.groups[0] if found.groups else None
        page = Found(group, found.at_least, [_member(row) for row in rows], cursor)
        return shown.group_page(self._pages, context, key, page, problem)

    @route("GET", "/failures/export.csv")
    async def export(self, context: RequestContext) -> Response:
        """The newest failures of a group as a file."""
        key = self._group(context, context.query, Role.READ)
        rows, _ = await self._failures.members(FailureFilter(key.namespace, None, key), shown.EXPORTED_MAX, None)
        return shown.export([_member(row) for row in rows], "namespace")

    @route("POST", "/failures/dismiss")
    async def dismiss(self, context: RequestContext) -> Response:
        """Dismisses a group, after a confirmation."""
        key = self._group(context, context.form, Role.WRITE)
        assert key.namespace is not None
        if context.form.get("confirmed") != "yes":
            return shown.dismissal(self._pages, context, key)
        wanted = FailureFilter(key.namespace, None, key)
        return shown.dismissed(await self._requests.dismiss(key.namespace, wanted, context.actor))

    @route("POST", "/failures/replay")
    async def replay(self, context: RequestContext) -> Response:
        """Replays the newest failure of a group, whose page then shows what becomes of it; or all of them by a job."""
        key = self._group(context, context.form, Role.WRITE)
        if context.form.get("one") == "yes":
            rows, _ = await self._failures.members(FailureFilter(key.namespace, None, key), 1, None)
            return await self._replay_one(context, key, rows[0]) if rows else RedirectResponse(failures_path(key), 303)
        try:
            sent = shown.replay_request(key, context.form)
            job = await self._jobs.create(sent, context.principal.key, context.actor, context.now_us)
        except (InvalidInput, Conflict) as error:
            return await self._group_page(context, key, error)
        return RedirectResponse(job_path(job), 303)

    async def _replay_one(self, context: RequestContext, key: GroupKey, row: FailureRow) -> Response:
        try:
            op = await replay_of(self._service, row)
            await self._service.write(self._service.namespaces.shard_of(op.namespace, row.uuid), op)
        except (Conflict, NotFound) as error:
            return await self._group_page(context, key, error)
        group = "schedules" if is_of_schedule(row) else "timers"
        context.changed(f"{group}/replay", op.namespace, row.timer_id)
        if kind_of(row) is FailedKind.NOTIFICATION:
            return RedirectResponse(failures_path(key), 303)
        return RedirectResponse(with_query(_path_of(row), {"notice": "replayed"}), 303)

    def _filters(self, context: RequestContext) -> tuple[FailureFilter | None, CallFailureFilter | None]:
        """The failures that the page shows: of the namespace or the tenant to which its address narrows it, or of all that
        the principal may read. Raises Forbidden if that is nothing."""
        principal, tenant = context.principal, context.query.get("tenant").lower().removeprefix(EVERY)
        if tenant:
            context.permit_tenant(Role.READ, tenant)
            return None, CallFailureFilter(tenant)
        if context.scope:
            context.permit(Role.READ, context.scope)
            return FailureFilter(context.scope), None
        of_timers, of_calls = principal.may_somewhere(Role.READ), principal.may_call_somewhere(Role.READ)
        if not (of_timers or of_calls):
            raise Forbidden("Your API key has no access to any namespace or tenant.")
        return (
            FailureFilter(listed_in(principal.key, EVERY)) if of_timers else None,
            CallFailureFilter(listed_tenants(principal.key, EVERY)) if of_calls else None,
        )

    def _group(self, context: RequestContext, fields: Fields, role: Role) -> GroupKey:
        """The group that the fields name. Raises Forbidden unless the principal has the role on its namespace."""
        namespace = fields.exact("namespace")
        context.permit(role, namespace)
        return shown.group_of(fields)._replace(namespace=namespace)


def _member(row: FailureRow) -> Member:
    scope, handle = namespace_of(row), failure_id(row)
    return Member(row.timer_id, _path_of(row), kind_of(row), scope, row.execute_at, row.failed_at, handle)


def _path_of(row: FailureRow) -> str:
    """The page of what failed; of a notification, the page of what it is about."""
    path = schedule_path if is_of_schedule(row) else timer_path
    return path(namespace_of(row), row.timer_id)
