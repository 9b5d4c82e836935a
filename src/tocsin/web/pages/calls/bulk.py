"""Deletes any number of waiting calls, or retries failed ones, from an open page; all that match by a job."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import (
    FieldError,
    InvalidInput,
    ServiceCallNotFailed,
    ServiceCallNotFound,
    ServiceCallNotScheduled,
    TocsinError,
)
from tocsin.model.job import JobAction, JobKind
from tocsin.service_calls.messages import CallStatus
from tocsin.service_calls.ports import CallRecord
from tocsin.web.http import jobs as wire
from tocsin.web.http.jobs import JobRequests
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.bulk import Target, sent_ids, step
from tocsin.web.pages.calls.listing import CallFilters, CallList
from tocsin.web.pages.calls.presentation import key_of, path, waits
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.jobs import job_path
from tocsin.web.pages.site import CallPart, Site, route

_job_reader = JsonReader(wire.CreateJob)


class CallBulk(CallPart):
    """The dialogs, and the steps that their script requests."""

    def __init__(self, site: Site, lists: CallList) -> None:
        super().__init__(site)
        self._lists = lists
        self._jobs = JobRequests(site.jobs, site.rules, site.audit)

    @route("GET", "/ui/calls/delete")
    async def delete_dialog(self, context: RequestContext) -> Response:
        """The dialog that the script fills in."""
        return await self._dialog(context, "delete")

    @route("GET", "/ui/calls/retry")
    async def retry_dialog(self, context: RequestContext) -> Response:
        """The dialog that the script fills in."""
        return await self._dialog(context, "retry")

    async def _dialog(self, context: RequestContext, kind: str) -> Response:
        filters = await self._lists.filters(context)
        return self._pages.page(
            "bulk.html", context, noun="call", filters=filters, every=False, kind=kind, limits=self._limits
        )

    @route("POST", "/ui/calls/delete/selected")
    async def delete_selected(self, context: RequestContext) -> Response:
        """Counts or deletes the waiting calls among `ids`, a JSON array of tenants and ids."""
        found, other = await self._selected(context, waits)
        return await self._step(context, found, other, self._deleting(context))

    @route("POST", "/calls/delete/matching")
    async def delete_matching(self, context: RequestContext) -> Response:
        """Begins a dry run of the job that deletes all waiting calls that match the filters in the query; its page asks."""
        filters = await self._lists.filters(context)
        return await self._begin(context, filters, JobKind.CALLS, JobAction.DELETE, filters.deletes(context.now_us))

    @route("POST", "/calls/retry/matching")
    async def retry_matching(self, context: RequestContext) -> Response:
        """Begins a dry run of the job that retries all failures that match the filters in the query; its page asks first."""
        filters = await self._lists.filters(context)
        return await self._begin(context, filters, JobKind.FAILURES, JobAction.REPLAY, filters.retries)

    async def _begin(
        self,
        context: RequestContext,
        filters: CallFilters,
        of: JobKind,
        action: JobAction,
        wanted: dict[str, Any] | None,
    ) -> Response:
        if wanted is None:
            raise InvalidInput(
                FieldError("", "a job cannot select just the calls of this list; change its tab or its filters")
            )
        body = {"tenant": filters.scope, "of": of, "action": action, "dryRun": True, "all": True, "filter": wanted}
        sent = _job_reader.read(msgspec.json.encode(body))
        job = await self._jobs.create(sent, context.principal.key, context.actor, context.now_us)
        return RedirectResponse(job_path(job), 303)

    @route("POST", "/ui/calls/retry/selected")
    async def retry_selected(self, context: RequestContext) -> Response:
        """Counts or retries the failed calls among `ids`, a JSON array of tenants and ids."""
        found, other = await self._selected(context, lambda call: call.status == CallStatus.FAILED)

        async def retry(key: str) -> None:
            tenant, _, call_id = key.partition("/")
            await context.calls.retry(tenant, call_id, context.correlation_id)

        return await self._step(context, found, other, retry)

    async def _selected(
        self, context: RequestContext, applies: Callable[[CallRecord], bool]
    ) -> tuple[list[CallRecord], int]:
        """The calls among the form's ids that the action applies to, and how many it does not apply to. Raises InvalidInput,
        and Forbidden for a tenant whose calls the principal may not change."""
        keys = sent_ids(context, self._limits.cancel_timers_max, "call")
        by_tenant: dict[str, list[str]] = {}
        for key in keys:
            tenant, _, call_id = key.partition("/")
            by_tenant.setdefault(tenant, []).append(call_id)
        for tenant in by_tenant:
            context.permit_tenant(Role.WRITE, tenant)
        read = [context.calls.get_many(tenant, ids) for tenant, ids in by_tenant.items()]
        calls = {key_of(call): call for some in await asyncio.gather(*read) for call in some.values()}
        found = [calls[key] for key in keys if key in calls and applies(calls[key])]
        return found, len(keys) - len(found)

    def _deleting(self, context: RequestContext) -> Callable[[str], Awaitable[object]]:
        async def delete(key: str) -> None:
            tenant, _, call_id = key.partition("/")
            await context.calls.delete(tenant, call_id, context.correlation_id)

        return delete

    async def _step(
        self,
        context: RequestContext,
        calls: list[CallRecord],
        other: int,
        change: Callable[[str], Awaitable[object]],
    ) -> Response:
        targets = [
            Target(key_of(call), call.name, path(call.tenant_id, call.service_call_id), call.request_spec.url)
            for call in calls
        ]
        return await step(context, targets, other, change, _reason)


def _reason(error: TocsinError) -> str:
    """Why a bulk action failed on a call, as a phrase that follows its name."""
    if isinstance(error, ServiceCallNotScheduled):
        return "has already started"
    if isinstance(error, ServiceCallNotFailed):
        return "is under way again"
    if isinstance(error, ServiceCallNotFound):
        return "no longer exists"
    return str(error)
