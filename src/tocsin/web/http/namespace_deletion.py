"""The request to delete a namespace: its struct, and what it does, from the API and the pages."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from tocsin.model.audit import AuditAction, Detail
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.job import RATE_DEFAULT, Job, JobAction, JobKind, JobState, RowFilter
from tocsin.model.namespace import DEFAULT_NAMESPACE, RESERVED_PREFIX
from tocsin.model.validation import InputRules
from tocsin.ports.audit import Actor, AuditLog
from tocsin.timers.jobs import Jobs
from tocsin.timers.namespace_deletion import begin
from tocsin.timers.service import TimerService
from tocsin.web.http import constraints as limits
from tocsin.web.http.constraints import bad_fields
from tocsin.web.http.declared_wire import ExpectedVersion
from tocsin.web.http.jobs import Rate, job_id, request_hash
from tocsin.web.http.optional import or_default, or_none, present
from tocsin.web.http.repeated import bad_key
from tocsin.web.http.wire import NamespaceName, RequestStruct, about


class DeleteNamespace(RequestStruct):
    """A namespace to delete."""

    name: NamespaceName
    cancel_pending: Annotated[
        bool | UnsetType, about("Delete it although timers or schedules are pending in it. Default false.")
    ] = UNSET
    rate_per_second: Rate | UnsetType = UNSET
    expected_version: ExpectedVersion | UnsetType = UNSET
    idempotency_key: Annotated[
        str | UnsetType,
        about("Makes the request safe to repeat: the same key answers the same job.", "orders-moved"),
        limits.IDEMPOTENCY_KEY,
    ] = UNSET


class DeletionRequests:
    """Begins the deletion of namespaces."""

    def __init__(self, service: TimerService, jobs: Jobs, rules: InputRules, audit: AuditLog) -> None:
        self._service, self._jobs, self._rules, self._audit = service, jobs, rules, audit

    async def delete(self, sent: DeleteNamespace, actor: Actor, now_us: int) -> Job:
        """The job that deletes the namespace; that of an earlier request if one goes on. Raises InvalidInput with all bad
        fields, and the errors of `begin`."""
        errors = [*bad_fields(sent, self._rules), *bad_key(sent.idempotency_key)]
        if sent.name == DEFAULT_NAMESPACE:
            errors.append(FieldError("name", "is always there and can't be deleted; cancel its timers instead"))
        elif sent.name.startswith(RESERVED_PREFIX):
            reason = (
                f"begins with {RESERVED_PREFIX!r}, which is reserved for the server; such a namespace can't be deleted"
            )
            errors.append(FieldError("name", reason))
        if errors:
            raise InvalidInput(*errors)
        wanted = _job(sent, actor, now_us)
        expected = or_none(sent.expected_version)
        job = await begin(self._service, self._jobs, wanted, expected)
        if (job.id, job.created_at) == (wanted.id, now_us):
            await self._audit.write(AuditAction.JOB_CREATED, actor, job.id, _details(sent))
        return job


def _job(sent: DeleteNamespace, actor: Actor, now_us: int) -> Job:
    key = None if sent.idempotency_key is UNSET else f"delete {sent.name} {sent.idempotency_key}"
    return Job(
        job_id(key),
        sent.name,
        JobKind.NAMESPACE,
        JobAction.DELETE,
        RowFilter(now_us),
        now_us,
        now_us,
        JobState.STARTING,
        request=request_hash(sent),
        created_by=actor.key_id,
        address=actor.address,
        source=actor.source.value,
        rate_per_second=or_default(sent.rate_per_second, RATE_DEFAULT),
        cancel_pending=sent.cancel_pending is True,
    )


def _details(sent: DeleteNamespace) -> dict[str, Detail]:
    given: dict[str, Detail | UnsetType] = {
        "namespace": sent.name,
        "action": JobAction.DELETE.value,
        "of": JobKind.NAMESPACE.value,
        "cancelPending": sent.cancel_pending,
        "ratePerSecond": sent.rate_per_second,
    }
    return present(given)
