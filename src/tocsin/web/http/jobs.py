"""The HTTP requests and responses about jobs: structs, their conversion, and what requests do, from the API and the pages,
with their entries in the audit trail."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.model import job as model
from tocsin.model.access import EVERY, ApiKey, Role
from tocsin.model.audit import AuditAction, Detail
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.failure import DESTINATION_CHARS_MAX
from tocsin.model.failure_groups import FailedKind
from tocsin.model.instants import format_duration, format_instant, parse_duration
from tocsin.model.job import ACTIONS, RATE_DEFAULT, RATE_MAX, JobAction, JobKind, JobState, RowFilter, WaitingStatus
from tocsin.model.redaction import redact_url, withheld
from tocsin.model.validation import InputRules
from tocsin.ports.audit import Actor, AuditLog
from tocsin.timers.jobs import Jobs, no_job
from tocsin.web.http import constraints as limits
from tocsin.web.http.access import require_namespace, require_service, require_tenant
from tocsin.web.http.constraints import bad_fields, below, refuse_bad_fields
from tocsin.web.http.failures import kind_errors
from tocsin.web.http.instants import optional_instant, read, read_instant
from tocsin.web.http.optional import or_absent, or_default, or_none, present
from tocsin.web.http.repeated import bad_key
from tocsin.web.http.tenants import ListedTenant, scope_errors
from tocsin.web.http.wire import CallbackUrl, Instant, JobId, ListedNamespace, RequestStruct, ResponseStruct, about

Rate = Annotated[
    int,
    about(f"Rows a second that the job changes at most, in the whole cluster. Default {RATE_DEFAULT}.", RATE_DEFAULT),
    limits.between(1, RATE_MAX),
]
Action = Annotated[
    JobAction,
    about(
        "What is done with each row: cancel, shift and setUrl of timers; pause, resume, delete and setUrl of schedules; "
        "replay of failures; delete of service calls."
    ),
]
Tags = Annotated[
    list[str], about("A row must have all of these tags. Not of failures, but of service calls."), limits.TAGS
]
IdPrefix = Annotated[str, about("Prefix of the ids."), limits.ID_PREFIX]
Destination = Annotated[
    str,
    about("A part of the URL's host and path; case does not matter. Of failures: the destination of a group."),
    limits.text(DESTINATION_CHARS_MAX),
]
LastError = Annotated[
    str,
    about(
        "A part of the last error; case does not matter. Of failures: the error of a group. Of timers and failures only."
    ),
    limits.PART,
]
ExecuteAfter = Annotated[
    Instant, about("Only timers and service calls due at or after this instant, or failures of such runs.")
]
ExecuteBefore = Annotated[
    Instant, about("Only timers and service calls due before this instant, or failures of such runs.")
]
CreatedAfter = Annotated[
    Instant, about("Only rows created at or after this instant: failed then, or submitted if it is a service call.")
]
CreatedBefore = Annotated[
    Instant, about("Only rows created before this instant, or failed before it. Default: the job's creation.")
]
ShiftBy = Annotated[
    str,
    about("By how much shift moves the instants: a duration, with - to an earlier one.", "2h"),
    limits.Constraint({"pattern": r"^[+-]?([0-9]+(\.[0-9]+)?(us|ms|s|m|h|d))+$"}, ("execute_ahead_max",)),
]
MatchMax = Annotated[
    int,
    about("The job fails instead of changing more rows, for example than a dry run has counted.", 1200),
    limits.between(1, 2**53),
]
DryRun = Annotated[bool, about("Only counts the rows that match. Default false.")]


FailureKind = Annotated[FailedKind, about("Only failures of this kind. Of failures only.")]
CallName = Annotated[
    str, about("A part of the name, with letters A to Z in either case. Of service calls only."), limits.PART
]
CallWaitsFor = Annotated[WaitingStatus, about("Only calls that wait for this. Of service calls only.")]


class JobFilter(RequestStruct):
    """Which rows a job changes: pending timers, schedules that have not ended, failures that are listed, or service calls
    that wait for their due time or for a retry, that match all of it. It is checked again when each change becomes durable.
    Rows created after the job stay as they are."""

    tags: Tags | UnsetType = UNSET
    id_prefix: IdPrefix | UnsetType = UNSET
    destination: Destination | UnsetType = UNSET
    error: LastError | UnsetType = UNSET
    execute_after: ExecuteAfter | UnsetType = UNSET
    execute_before: ExecuteBefore | UnsetType = UNSET
    created_before: CreatedBefore | UnsetType = UNSET
    kind: FailureKind | UnsetType = UNSET
    created_after: CreatedAfter | UnsetType = UNSET
    name: CallName | UnsetType = UNSET
    status: CallWaitsFor | UnsetType = UNSET


class CreateJob(RequestStruct, kw_only=True):
    """A job to create: of a namespace or, to replay or delete service calls, of a tenant."""

    namespace: ListedNamespace | UnsetType = UNSET
    tenant: ListedTenant | UnsetType = UNSET
    action: Action
    of: Annotated[JobKind, about("What is changed: timers, schedules, failures, or calls that wait.")]
    filter: JobFilter | UnsetType = UNSET
    all: Annotated[bool | UnsetType, about("Must be true if the filter is empty: every row is changed.")] = UNSET
    shift_by: ShiftBy | UnsetType = UNSET
    url: CallbackUrl | UnsetType = UNSET
    rate_per_second: Rate | UnsetType = UNSET
    dry_run: DryRun | UnsetType = UNSET
    match_max: MatchMax | UnsetType = UNSET
    idempotency_key: Annotated[
        str | UnsetType,
        about("Makes the request safe to repeat: the same key answers the same job.", "hooks-moved-to-eu"),
        limits.IDEMPOTENCY_KEY,
    ] = UNSET


class JobName(RequestStruct):
    """Names a job."""

    job_id: JobId


class SetJobRate(RequestStruct):
    """Another rate of a job."""

    job_id: JobId
    rate_per_second: Rate


class ListJobs(RequestStruct):
    """Which jobs are listed."""

    namespace: Annotated[ListedNamespace | UnsetType, about("Only jobs of this namespace, and of all together.")] = (
        UNSET
    )
    tenant: Annotated[ListedTenant | UnsetType, about("Only jobs of this tenant, and of all tenants together.")] = UNSET


class JobFailure(ResponseStruct, omit_defaults=True, kw_only=True):
    """A row that could not be changed, and why. It has a namespace or a tenant."""

    namespace: str | UnsetType = UNSET
    tenant: str | UnsetType = UNSET
    id: str
    error: str


class JobFilterAnswer(ResponseStruct, omit_defaults=True):
    """The filter of a job, with all instants resolved."""

    created_before: Instant
    tags: Tags | UnsetType = UNSET
    id_prefix: IdPrefix | UnsetType = UNSET
    destination: Destination | UnsetType = UNSET
    error: LastError | UnsetType = UNSET
    execute_after: ExecuteAfter | UnsetType = UNSET
    execute_before: ExecuteBefore | UnsetType = UNSET
    kind: FailureKind | UnsetType = UNSET
    created_after: CreatedAfter | UnsetType = UNSET
    name: CallName | UnsetType = UNSET
    status: CallWaitsFor | UnsetType = UNSET


class Job(ResponseStruct, kw_only=True):
    """A job of a namespace or of a tenant, and how far it is."""

    id: JobId
    namespace: ListedNamespace | UnsetType = UNSET
    tenant: ListedTenant | UnsetType = UNSET
    action: Action
    of: Annotated[JobKind, about("What it changes. A namespace is deleted with all that is in it.")]
    filter: JobFilterAnswer
    state: Annotated[
        JobState, about("running and paused ones go on, or may; completed, canceled and failed ones have ended.")
    ]
    rate_per_second: Rate
    dry_run: DryRun
    matched: Annotated[int, about("Rows examined that match.")]
    changed: Annotated[int, about("Rows changed.")]
    skipped: Annotated[int, about("Rows that had ended or changed meanwhile, or were as wanted already.")]
    errors: Annotated[int, about("Rows that could not be changed.")]
    sample_errors: Annotated[list[JobFailure], about("The first ten of them.")]
    created_at: Instant
    updated_at: Instant
    shift_by: ShiftBy | UnsetType = UNSET
    url: CallbackUrl | UnsetType = UNSET
    match_max: MatchMax | UnsetType = UNSET
    examined_to: Annotated[Instant, about("Timers due before this instant have been examined.")] | UnsetType = UNSET
    cancel_pending: Annotated[
        bool | UnsetType, about("Whether the namespace is deleted although timers or schedules are pending in it.")
    ] = UNSET
    reason: Annotated[str | UnsetType, about("Why it failed.")] = UNSET
    created_by: Annotated[str | UnsetType, about("The id of the key that created it.")] = UNSET
    ended_at: Instant | UnsetType = UNSET


class JobAnswer(ResponseStruct):
    """A job."""

    job: Job


class JobList(ResponseStruct):
    """Jobs, newest first: those that have not ended, and the newest 200 of those that ended in the last 30 days."""

    jobs: list[Job]


def job_view(job: model.Job) -> Job:
    """The job as clients see it."""
    wanted, counts = job.filter, job.counts
    return Job(
        id=job.id,
        namespace=UNSET if job.tenant else job.namespace,
        tenant=job.tenant or UNSET,
        action=job.action,
        of=job.kind,
        filter=JobFilterAnswer(
            format_instant(wanted.created_before),
            list(wanted.tags) or UNSET,
            wanted.id_prefix or UNSET,
            wanted.destination or UNSET,
            wanted.error or UNSET,
            optional_instant(wanted.execute_after),
            optional_instant(wanted.execute_before),
            FailedKind(wanted.kind) if wanted.kind else UNSET,
            optional_instant(wanted.created_after),
            wanted.name or UNSET,
            WaitingStatus(wanted.status) if wanted.status else UNSET,
        ),
        state=job.state,
        rate_per_second=job.rate_per_second,
        dry_run=job.dry_run,
        matched=counts.matched,
        changed=counts.changed,
        skipped=counts.skipped,
        errors=counts.errors,
        sample_errors=[
            JobFailure(namespace=each.namespace or UNSET, tenant=each.tenant or UNSET, id=each.id, error=each.error)
            for each in job.samples
        ],
        created_at=format_instant(job.created_at),
        updated_at=format_instant(job.updated_at),
        shift_by=shift_text(job.shift_by_us) if job.shift_by_us else UNSET,
        url=redact_url(job.url) if job.url else UNSET,
        match_max=or_absent(job.match_max),
        examined_to=optional_instant(job.seen_to),
        cancel_pending=job.cancel_pending if job.kind is JobKind.NAMESPACE else UNSET,
        reason=job.reason or UNSET,
        created_by=or_absent(job.created_by),
        ended_at=optional_instant(job.ended_at),
    )


def shift_text(shift_us: int) -> str:
    """The duration with its sign, if it is negative."""
    return f"{'-' if shift_us < 0 else ''}{format_duration(abs(shift_us))}"


class JobRequests:
    """Every method raises InvalidInput with all bad fields of the request, Forbidden, and the errors of `Jobs`. A job that
    the key does not cover is not found."""

    def __init__(self, jobs: Jobs, rules: InputRules, audit: AuditLog) -> None:
        self._jobs, self._rules, self._audit = jobs, rules, audit

    async def create(self, sent: CreateJob, key: ApiKey | None, actor: Actor, now_us: int) -> model.Job:
        """Creates a job, or finds the one that an earlier request with its idempotency key has created."""
        if errors := scope_errors(sent.namespace, sent.tenant):
            raise InvalidInput(*errors)
        _permit(sent, key)
        wanted = self._new(sent, actor, now_us)
        job = await self._jobs.create(wanted)
        if job.created_at == wanted.created_at:
            await self._audit.write(AuditAction.JOB_CREATED, actor, job.id, _details(sent))
        return job

    async def get(self, job_id: str, key: ApiKey | None, role: Role = Role.READ) -> model.Job:
        """The job."""
        job = await self._jobs.get(job_id)
        if not may(key, role, job):
            if may(key, Role.READ, job):
                require_service(key, role)
            # As for one that does not exist: its id may follow from a guess of an idempotency key.
            raise no_job(job_id)
        return job

    def url_of(self, job: model.Job) -> str:
        """The job's URL, its secrets decrypted, for another job with it. Raises SealBroken."""
        return self._jobs.url_of(job)

    async def visible(self, namespace: str, tenant: str, key: ApiKey | None) -> list[model.Job]:
        """The jobs that the key covers, newest first: all of them, or those of a namespace or tenant, and of all
        together; `*` is each."""
        wanted = [job for job in await self._jobs.list() if may(key, Role.READ, job)]
        if not (namespace or tenant):
            return wanted
        return [
            job
            for job in wanted
            if (tenant and job.tenant and (tenant == job.tenant or EVERY in (tenant, job.tenant)))
            or (namespace and not job.tenant and (namespace == job.namespace or EVERY in (namespace, job.namespace)))
        ]

    async def pause(self, job_id: str, key: ApiKey | None, actor: Actor) -> model.Job:
        """Pauses the job."""
        return await self._changed(job_id, key, actor, self._jobs.pause, "paused")

    async def resume(self, job_id: str, key: ApiKey | None, actor: Actor) -> model.Job:
        """Resumes the job."""
        return await self._changed(job_id, key, actor, self._jobs.resume, "running")

    async def cancel(self, job_id: str, key: ApiKey | None, actor: Actor) -> model.Job:
        """Cancels the job."""
        return await self._changed(job_id, key, actor, self._jobs.cancel, "canceled")

    async def set_rate(self, sent: SetJobRate, key: ApiKey | None, actor: Actor) -> model.Job:
        """Changes the job's rate."""
        refuse_bad_fields(sent, self._rules)
        rate = sent.rate_per_second
        return await self._changed(
            sent.job_id, key, actor, lambda job_id: self._jobs.set_rate(job_id, rate), "", ratePerSecond=rate
        )

    async def _changed(
        self,
        job_id: str,
        key: ApiKey | None,
        actor: Actor,
        change: Callable[[str], Awaitable[model.Job]],
        state: str,
        **details: Detail,
    ) -> model.Job:
        await self.get(job_id, key, Role.WRITE)
        job = await change(job_id)
        counts: dict[str, Detail] = {"state": state, "changed": job.counts.changed} if state else {}
        await self._audit.write(AuditAction.JOB_CHANGED, actor, job.id, {**counts, **details})
        return job

    def _new(self, sent: CreateJob, actor: Actor, now_us: int) -> model.Job:
        errors = [*bad_fields(sent, self._rules), *bad_key(sent.idempotency_key)]
        row_filter = self._filter(sent, now_us, errors)
        if sent.of is JobKind.NAMESPACE:
            errors.append(
                FieldError("of", "is deleted with namespaces/delete; give timers, schedules, failures or calls")
            )
        elif sent.action not in ACTIONS[sent.of]:
            known = ", ".join(ACTIONS[sent.of])
            errors.append(FieldError("action", f"is none of {sent.of}; give one of: {known}"))
        if sent.tenant is not UNSET and sent.of not in (JobKind.FAILURES, JobKind.CALLS):
            errors.append(FieldError("of", "is of a namespace; with a tenant, give failures or calls"))
        if sent.tenant is UNSET and sent.of is JobKind.CALLS:
            errors.append(FieldError("namespace", "does not apply to service calls; give their tenant instead"))
        if row_filter.is_empty and sent.all is not True:
            reason = "is empty; give a filter, or all: true to change every row"
            errors.append(FieldError("filter", reason))
        shift_us = self._shift_us(sent, errors)
        if sent.url is UNSET if sent.action is JobAction.SET_URL else sent.action is not JobAction.REPLAY and sent.url:
            reason = "is missing" if sent.url is UNSET else "belongs to the actions setUrl and replay; leave it out"
            errors.append(FieldError("url", reason))
        elif sent.url is not UNSET and sent.tenant is not UNSET:
            errors.append(FieldError("url", "does not apply to service calls, which keep their request; leave it out"))
        elif sent.url is not UNSET and withheld(sent.url, None):
            errors.append(FieldError("url", "has [redacted] in it; give the whole URL"))
        if errors:
            raise InvalidInput(*errors)
        tenant = "" if isinstance(sent.tenant, UnsetType) else sent.tenant.lower()
        namespace = "" if isinstance(sent.namespace, UnsetType) else sent.namespace
        # No namespace has a slash.
        scope = f"tenant/{tenant}" if tenant else namespace
        key = None if sent.idempotency_key is UNSET else f"{scope} {sent.idempotency_key}"
        return model.Job(
            job_id(key),
            namespace,
            sent.of,
            sent.action,
            # Twice the same shift would be another one.
            msgspec.structs.replace(row_filter, updated_before=now_us) if shift_us else row_filter,
            now_us,
            now_us,
            JobState.STARTING,
            request=request_hash(sent),
            created_by=actor.key_id,
            address=actor.address,
            source=actor.source.value,
            rate_per_second=or_default(sent.rate_per_second, RATE_DEFAULT),
            shift_by_us=shift_us,
            url=or_default(sent.url, ""),
            dry_run=sent.dry_run is True,
            match_max=or_none(sent.match_max),
            tenant=tenant,
        )

    def _filter(self, sent: CreateJob, now_us: int, errors: list[FieldError]) -> RowFilter:
        wanted = JobFilter() if sent.filter is UNSET else sent.filter
        found = bad_fields(wanted, self._rules)
        if wanted.tags is not UNSET:
            found += self._rules.tags(wanted.tags, "tags")
        after = read_instant("executeAfter", wanted.execute_after, found)
        before = read_instant("executeBefore", wanted.execute_before, found)
        created = read_instant("createdBefore", wanted.created_before, found)
        created_after = read_instant("createdAfter", wanted.created_after, found)
        if created is not None and created > now_us:
            found.append(FieldError("createdBefore", "is in the future; leave it out, so that it is now"))
        if sent.of in (JobKind.SCHEDULES, JobKind.CALLS) and wanted.error is not UNSET:
            found.append(FieldError("error", f"does not apply to {sent.of}; leave it out"))
        if sent.of is JobKind.SCHEDULES:
            found += _refused({"executeAfter": after, "executeBefore": before}, "does not apply to schedules")
        if sent.of is not JobKind.CALLS:
            found += _refused({"name": wanted.name, "status": wanted.status}, "applies to service calls only")
        if sent.of is JobKind.FAILURES and sent.tenant is UNSET and wanted.tags is not UNSET:
            found.append(FieldError("tags", "does not apply to failures of a namespace; leave it out"))
        if sent.of is JobKind.FAILURES:
            found += kind_errors(sent.tenant, wanted.kind)
        if sent.of is not JobKind.FAILURES and wanted.kind is not UNSET:
            found.append(FieldError("kind", "applies to failures only; leave it out"))
        errors += below("filter", found)
        destination = or_default(wanted.destination, "")
        error = or_default(wanted.error, "")
        if sent.of is not JobKind.FAILURES:
            destination, error = destination.lower(), error.lower()
        return RowFilter(
            now_us if created is None else created,
            () if wanted.tags is UNSET else tuple(wanted.tags),
            or_default(wanted.id_prefix, ""),
            destination,
            error,
            after,
            before,
            kind="" if wanted.kind is UNSET else wanted.kind.value,
            created_after=created_after,
            name=or_default(wanted.name, ""),
            status="" if wanted.status is UNSET else wanted.status.value,
        )

    def _shift_us(self, sent: CreateJob, errors: list[FieldError]) -> int:
        """By how much instants are moved; 0 for other actions."""
        if sent.action is not JobAction.SHIFT:
            if sent.shift_by is not UNSET:
                errors.append(FieldError("shiftBy", "belongs to the action shift; leave it out"))
            return 0
        if sent.shift_by is UNSET:
            errors.append(FieldError("shiftBy", "is missing; give a duration such as 2h, or -2h"))
            return 0
        shift_us = read(parse_duration, "shiftBy", sent.shift_by.lstrip("+-"), errors)
        if not shift_us:
            errors.append(FieldError("shiftBy", "moves nothing; give a duration such as 2h, or -2h"))
        if reason := self._rules.delay(shift_us):
            errors.append(FieldError("shiftBy", reason))
        return -shift_us if sent.shift_by.startswith("-") else shift_us


def _refused(fields: dict[str, object], reason: str) -> list[FieldError]:
    return [FieldError(name, f"{reason}; leave it out") for name, value in fields.items() if value not in (None, UNSET)]


def job_id(key: str | None) -> str:
    """The id of a new job: for the same idempotency key, which names its scope, the same one."""
    return hashlib.sha256(os.urandom(16) if key is None else key.encode()).hexdigest()[:24]


def request_hash(sent: RequestStruct) -> str:
    """What a repeated request for a job is known by."""
    return hashlib.sha256(msgspec.json.encode(sent)).hexdigest()[:32]


def may(key: ApiKey | None, role: Role, job: model.Job) -> bool:
    """Whether the key covers the job: that of all namespaces together, and the deletion of one, are changed by keys of
    administrators only."""
    if key is None:
        return True
    if role is Role.WRITE and job.kind is JobKind.NAMESPACE:
        return key.allows(Role.ADMIN, None)
    if EVERY in (job.namespace, job.tenant):
        return key.allows(Role.ADMIN if role is Role.WRITE else role, None)
    return key.allows_tenant(role, job.tenant) if job.tenant else key.allows(role, job.namespace)


def _permit(sent: CreateJob, key: ApiKey | None) -> None:
    """Raises Forbidden unless the key may create the job."""
    if EVERY in (sent.namespace, sent.tenant):
        require_service(key, Role.ADMIN)
    elif not isinstance(sent.tenant, UnsetType):
        require_tenant(key, Role.WRITE, sent.tenant)
    elif not isinstance(sent.namespace, UnsetType):
        require_namespace(key, Role.WRITE, sent.namespace)


def _details(sent: CreateJob) -> dict[str, Detail]:
    given: dict[str, Detail | UnsetType] = {
        "namespace": sent.namespace,
        "tenant": sent.tenant,
        "action": sent.action.value,
        "of": sent.of.value,
        "filter": UNSET if sent.filter is UNSET else msgspec.json.encode(sent.filter).decode(),
        "all": sent.all,
        "shiftBy": sent.shift_by,
        "url": UNSET if sent.url is UNSET else redact_url(sent.url),
        "ratePerSecond": sent.rate_per_second,
        "dryRun": sent.dry_run,
        "matchMax": sent.match_max,
    }
    return present(given)
