"""Deletes selected calls that wait, or retries failed ones; all that match by a job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import EVERY, Role
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
from tocsin.web.pages.bulk import Action, Target, ask_or_change, selected
from tocsin.web.pages.calls.listing import CallFilters, CallList
from tocsin.web.pages.calls.presentation import path, waits
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.jobs import job_path
from tocsin.web.pages.site import CallPart, Site, route

_job_reader = JsonReader(wire.CreateJob)


_DELETE = Action(
    "/calls/delete-many",
    "call",
    "Delete",
    "deleted",
    ("It is not sent, and no record of it is kept.", "They are not sent, and no record of them is kept."),
    ("has already started", "have already started"),
    "None of the selected calls waits, so there is nothing to delete.",
    "None of them is sent.",
    takes=True,
)
_RETRY = Action(
    "/calls/retry-many",
    "call",
    "Retry",
    "retried",
    (
        "It is sent again at once, under the same webhook-id.",
        "They are sent again at once, under the same webhook-ids.",
    ),
    ("has not failed", "have not failed"),
    "None of the selected calls has failed, so there is nothing to retry.",
    "They are running until they succeed or fail.",
)


class CallBulk(CallPart):
    """Each asks first, and then changes the calls, or begins a job that does."""

    def __init__(self, site: Site, lists: CallList) -> None:
        super().__init__(site)
        self._lists = lists
        self._jobs = JobRequests(site.jobs, site.rules, site.audit)

    @route("POST", _DELETE.path)
    async def delete_many(self, context: RequestContext) -> Response:
        """Deletes those of the selected calls that wait."""
        return await self._change(context, _DELETE, "calls/delete", waits, context.calls.delete)

    @route("POST", _RETRY.path)
    async def retry_many(self, context: RequestContext) -> Response:
        """Retries those of the selected calls that have failed."""
        failed = CallStatus.FAILED
        return await self._change(
            context, _RETRY, "calls/retry", lambda call: call.status == failed, context.calls.retry
        )

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

    async def _change(
        self,
        context: RequestContext,
        action: Action,
        operation: str,
        applies: Callable[[CallRecord], bool],
        change: Callable[[str, str, str], Awaitable[object]],
    ) -> Response:
        """Raises InvalidInput, and Forbidden for a tenant whose calls the principal may not change."""

        async def change_one(key: str) -> None:
            tenant, _, call_id = key.partition("/")
            await change(tenant, call_id, context.correlation_id)
            context.changed(operation, tenant, call_id)

        keys = selected(context, action, self._limits.selected_max)
        for tenant in {key.partition("/")[0] for key in keys}:
            context.permit_tenant(Role.WRITE, tenant)
        rows = await self._lists.get_many(context, EVERY, keys)
        targets = [
            Target(key, row.call.name, path(row.call.tenant_id, row.call.service_call_id), row.call.request_spec.url)
            for key in keys
            if (row := rows.get(key)) and applies(row.call)
        ]
        other = len(keys) - len(targets)
        return await ask_or_change(self._pages, context, action, targets, other, change_one, _reason)


def _reason(error: TocsinError) -> str:
    """Why the action failed on a call, as a phrase that follows its name."""
    if isinstance(error, ServiceCallNotScheduled):
        return "has already started"
    if isinstance(error, ServiceCallNotFailed):
        return "is under way again"
    if isinstance(error, ServiceCallNotFound):
        return "no longer exists"
    return str(error)
