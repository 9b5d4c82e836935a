"""The page of a group of service calls that failed."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import Conflict, InvalidInput, NotFound, TocsinError
from tocsin.model.failure_groups import FailedKind, GroupKey
from tocsin.ports.agent_calls import CallFailure
from tocsin.service_calls.api.failures import CallFailureFilter, failure_id
from tocsin.web.http.failures import DismissedFailures, FailureRequests
from tocsin.web.http.jobs import JobRequests
from tocsin.web.pages.calls.presentation import path as call_path
from tocsin.web.pages.context import Fields, RequestContext
from tocsin.web.pages.failures import shown
from tocsin.web.pages.failures.shown import Found, Member
from tocsin.web.pages.jobs import job_path
from tocsin.web.pages.presentation import failures_path
from tocsin.web.pages.site import CallPart, Site, route

#: Requests of one dismissal, each of which takes a part of a large group.
_DISMISSALS_MAX = 10


class CallFailurePages(CallPart):
    """The page of a group, its export, replay and dismissal."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._requests = FailureRequests(site.service.failures, site.audit)
        self._jobs = JobRequests(site.jobs, site.rules, site.audit)

    @route("GET", "/failures/calls/group")
    async def group(self, context: RequestContext) -> Response:
        """A sample of a group, and its failures, newest first."""
        return await self._group_page(context, self._group(context, context.query, Role.READ))

    async def _group_page(self, context: RequestContext, key: GroupKey, problem: TocsinError | None = None) -> Response:
        calls, wanted = context.calls.failures, _filter(key)
        found = await calls.groups(wanted, shown.fields_of(key), 1)
        failures, cursor = await calls.members(wanted, shown.MEMBERS, context.query.get("cursor") or None)
        group = found.groups[0] if found.groups else None
        page = Found(group, found.at_least, [_member(each) for each in failures], cursor)
        return shown.group_page(self._pages, context, key, page, problem)

    @route("GET", "/failures/calls/export.csv")
    async def export(self, context: RequestContext) -> Response:
        """The newest failures of a group as a file."""
        key = self._group(context, context.query, Role.READ)
        failures, _ = await context.calls.failures.members(_filter(key), shown.EXPORTED_MAX, None)
        return shown.export([_member(each) for each in failures], "tenant")

    @route("POST", "/failures/calls/dismiss")
    async def dismiss(self, context: RequestContext) -> Response:
        """Dismisses a group, after a confirmation."""
        key = self._group(context, context.form, Role.WRITE)
        assert key.tenant is not None
        if context.form.get("confirmed") != "yes":
            return shown.dismissal(self._pages, context, key)
        done = DismissedFailures(0, True)
        for _ in range(_DISMISSALS_MAX):
            part = await self._requests.dismiss_calls(
                context.calls.failures, key.tenant, _filter(key), context.actor, context.correlation_id
            )
            done = DismissedFailures(done.dismissed + part.dismissed, part.more)
            if not part.more:
                break
        return shown.dismissed(done)

    @route("POST", "/failures/calls/replay")
    async def replay(self, context: RequestContext) -> Response:
        """Retries the newest call of a group, whose page then shows what becomes of it; or all of them by a job."""
        key, calls = self._group(context, context.form, Role.WRITE), context.calls.failures
        try:
            if context.form.get("one") != "yes":
                sent = shown.replay_request(key, context.form)
                job = await self._jobs.create(sent, context.principal.key, context.actor, context.now_us)
                return RedirectResponse(job_path(job), 303)
            newest, _ = await calls.members(_filter(key), 1, None)
            for one in newest:
                await calls.retry_failure(one, context.correlation_id)
                context.changed("calls/retry", one.tenant_id, one.service_call_id)
                return RedirectResponse(call_path(one.tenant_id, one.service_call_id), 303)
        except (InvalidInput, Conflict, NotFound) as error:
            return await self._group_page(context, key, error)
        return RedirectResponse(failures_path(key), 303)

    def _group(self, context: RequestContext, fields: Fields, role: Role) -> GroupKey:
        """The group that the fields name. Raises Forbidden unless the principal has the role for its tenant."""
        tenant = fields.exact("tenant").lower()
        context.permit_tenant(role, tenant)
        return shown.group_of(fields)._replace(tenant=tenant, kind=FailedKind.CALL)


def _filter(key: GroupKey) -> CallFailureFilter:
    return CallFailureFilter(key.tenant, None, key)


def _member(failure: CallFailure) -> Member:
    return Member(
        failure.service_call_id,
        call_path(failure.tenant_id, failure.service_call_id),
        FailedKind.CALL,
        failure.tenant_id,
        failure.due_at,
        failure.failed_at,
        failure_id(failure),
        failure.name,
    )
