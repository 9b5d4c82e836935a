"""The operations on jobs."""

from __future__ import annotations

from functools import partial

from msgspec import UNSET, UnsetType

from tocsin.model.access import EVERY, Role
from tocsin.model.errors import InvalidInput
from tocsin.model.job import Job
from tocsin.model.validation import InputRules
from tocsin.ports.audit import AuditLog
from tocsin.timers.jobs import Jobs
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest
from tocsin.web.http import jobs as wire
from tocsin.web.http.access import require_namespace, require_tenant
from tocsin.web.http.constraints import bad_fields, refuse_bad_fields
from tocsin.web.http.repeated import refuse_key
from tocsin.web.http.tenants import scope_errors

_visible = partial(Operation, reach=Reach.VISIBLE)


class JobHandlers:
    """Handles create, get, list, pause, resume, cancel and setRate."""

    def __init__(self, jobs: Jobs, rules: InputRules, audit: AuditLog) -> None:
        self._requests = wire.JobRequests(jobs, rules, audit)
        self._rules = rules

    @Operation("createJob", "/api/v1/jobs/create", Role.WRITE, Reach.NAMESPACE_OR_TENANT, status=202)
    async def create(self, request: ApiRequest, sent: wire.CreateJob) -> wire.JobAnswer:
        """The server changes all rows that match, one by one and at the rate asked; the job is durable when the response
        arrives. Rows that are created later stay as they are, those that change meanwhile are changed if they still match,
        and shift leaves timers alone that were changed or called since. One job at a time changes the timers, or the
        schedules, of a namespace. The namespace `*` is all namespaces, and needs an admin key without limits. With a tenant
        instead, failed service calls are retried; `*` is all tenants."""
        refuse_key(request.headers)
        return _answer(await self._requests.create(sent, request.key, request.actor, request.now_us))

    @_visible("getJob", "/api/v1/jobs/get", Role.READ)
    async def get(self, request: ApiRequest, sent: wire.JobName) -> wire.JobAnswer:
        """Listed for 30 days after its end. After the loss of a node, what its last second has changed may not be counted."""
        return _answer(await self._requests.get(self._id(sent), request.key))

    @_visible("listJobs", "/api/v1/jobs/list", Role.READ, body_optional=True)
    async def list(self, request: ApiRequest, sent: wire.ListJobs) -> wire.JobList:
        """Lists the jobs of the namespaces and tenants that the key has access to."""
        errors, named = bad_fields(sent, self._rules), UNSET not in (sent.namespace, sent.tenant)
        if errors := errors + (scope_errors(sent.namespace, sent.tenant) if named else []):
            raise InvalidInput(*errors)
        namespace = "" if isinstance(sent.namespace, UnsetType) else sent.namespace
        tenant = "" if isinstance(sent.tenant, UnsetType) else sent.tenant.lower()
        if namespace not in ("", EVERY):
            require_namespace(request.key, Role.READ, namespace)
        if tenant not in ("", EVERY):
            require_tenant(request.key, Role.READ, tenant)
        return wire.JobList([*map(wire.job_view, await self._requests.visible(namespace, tenant, request.key))])

    @_visible("pauseJob", "/api/v1/jobs/pause", Role.WRITE)
    async def pause(self, request: ApiRequest, sent: wire.JobName) -> wire.JobAnswer:
        """What is being changed at this moment is completed."""
        return _answer(await self._requests.pause(self._id(sent), request.key, request.actor))

    @_visible("resumeJob", "/api/v1/jobs/resume", Role.WRITE)
    async def resume(self, request: ApiRequest, sent: wire.JobName) -> wire.JobAnswer:
        """It goes on where it was paused."""
        return _answer(await self._requests.resume(self._id(sent), request.key, request.actor))

    @_visible("cancelJob", "/api/v1/jobs/cancel", Role.WRITE)
    async def cancel(self, request: ApiRequest, sent: wire.JobName) -> wire.JobAnswer:
        """Ends the job. What it has changed stays changed."""
        return _answer(await self._requests.cancel(self._id(sent), request.key, request.actor))

    @_visible("setJobRate", "/api/v1/jobs/setRate", Role.WRITE)
    async def set_rate(self, request: ApiRequest, sent: wire.SetJobRate) -> wire.JobAnswer:
        """In force within a second or two."""
        return _answer(await self._requests.set_rate(sent, request.key, request.actor))

    def _id(self, sent: wire.JobName) -> str:
        refuse_bad_fields(sent, self._rules)
        return sent.job_id


def _answer(job: Job) -> wire.JobAnswer:
    return wire.JobAnswer(wire.job_view(job))
