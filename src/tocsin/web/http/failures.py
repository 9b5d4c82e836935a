"""Failures, of a namespace or of a tenant, as clients ask for and see them: their structs, and how they are made."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, TypeVar

from msgspec import UNSET, UnsetType

from tocsin.model.access import ApiKey, Role
from tocsin.model.audit import AuditAction, Detail
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.failure import DESTINATION_CHARS_MAX, ERROR_CHARS_MAX, split_failure
from tocsin.model.failure_groups import (
    ANY_GROUP,
    CALLS_GROUPED_BY,
    GROUPED_BY,
    CountedFailures,
    FailedKind,
    FailureGroups,
    GroupKey,
    Sample,
)
from tocsin.model.instants import format_instant
from tocsin.model.redaction import redact_url
from tocsin.model.validation import InputRules
from tocsin.ports.agent_calls import CallFailure
from tocsin.ports.audit import Actor, AuditLog
from tocsin.ports.store import FailureRow
from tocsin.service_calls.api.failures import CallFailureFilter, CallFailures
from tocsin.service_calls.api.failures import failure_id as call_failure_id
from tocsin.timers.failures import FailureFilter, Failures, Found, failure_id, kind_of, namespace_of
from tocsin.web.http import constraints as limits
from tocsin.web.http.access import listed_in
from tocsin.web.http.constraints import bad_fields
from tocsin.web.http.convert import attempt_answer
from tocsin.web.http.instants import read_instant
from tocsin.web.http.optional import or_absent, or_default, or_none
from tocsin.web.http.tenants import ListedTenant, TenantId, permitted_tenants, scope_errors
from tocsin.web.http.wire import (
    Attempt,
    Cursor,
    Instant,
    ListedNamespace,
    NamespaceName,
    RequestStruct,
    ResponseStruct,
    about,
    page_of,
)

T = TypeVar("T")

#: Groups of one answer: each of them is sampled, which takes a read.
GROUPS_DEFAULT, GROUPS_MAX = 50, 200
#: Failures of one request to dismiss them by their ids.
DISMISSED_MAX = 1_000
#: A handle has 55 characters and the timer's id.
_HANDLE_CHARS_MAX = 2_000
OfNamespace = Annotated[str, about("The namespace; absent of service calls.", "default")]
OfTenant = Annotated[str, about("The tenant; of service calls only.")]
_DESTINATION, _ERROR = limits.text(DESTINATION_CHARS_MAX), limits.text(ERROR_CHARS_MAX)


class FailureGroupedBy(StrEnum):
    """What the failures of a group have in common."""

    NAMESPACE = "namespace"
    TENANT = "tenant"
    DESTINATION = "destination"
    ERROR = "error"
    KIND = "kind"


Since = Annotated[Instant, about("Only failures since this instant.")]
Kind = Annotated[FailedKind, about("What failed.")]
Destination = Annotated[
    str,
    about("The URL that was called, without credentials and query.", "https://shop.example/hooks/reminder"),
    _DESTINATION,
]
Error = Annotated[str, about("The stable code of the last error, without details.", "HTTP 500"), _ERROR]


class ListFailures(RequestStruct):
    """Which failures to group, and how."""

    namespace: ListedNamespace | UnsetType = UNSET
    tenant: ListedTenant | UnsetType = UNSET
    since: Since | UnsetType = UNSET
    group_by: Annotated[
        list[FailureGroupedBy] | UnsetType,
        about("What the failures of a group have in common. Default: all of these."),
        limits.Constraint({"minItems": 1}),
    ] = UNSET
    limit: Annotated[int | UnsetType, about("Maximum number of groups. Default 50."), limits.between(1, GROUPS_MAX)] = (
        UNSET
    )


class ListFailureMembers(RequestStruct):
    """Which failures to list: those of a group, or all."""

    namespace: ListedNamespace | UnsetType = UNSET
    tenant: ListedTenant | UnsetType = UNSET
    destination: Destination | UnsetType = UNSET
    error: Error | UnsetType = UNSET
    kind: Kind | UnsetType = UNSET
    since: Since | UnsetType = UNSET
    limit: Annotated[int | UnsetType, page_of("failures"), limits.ROWS] = UNSET
    cursor: Cursor | UnsetType = UNSET


class DismissFailures(RequestStruct):
    """Which failures to remove from the list: by their ids, or those of a group."""

    namespace: NamespaceName | UnsetType = UNSET
    tenant: TenantId | UnsetType = UNSET
    ids: Annotated[
        list[str] | UnsetType,
        about("The failureId of each, up to 1,000."),
        limits.unique(DISMISSED_MAX, limits.text_schema(_HANDLE_CHARS_MAX)),
    ] = UNSET
    destination: Destination | UnsetType = UNSET
    error: Error | UnsetType = UNSET
    kind: Kind | UnsetType = UNSET
    all: Annotated[bool | UnsetType, about("With `true` and no other field: all failures of it.")] = UNSET


class Failure(ResponseStruct, rename="camel", omit_defaults=True, kw_only=True):
    """A failed end that nobody has dealt with. Its details are in the history of the timer or schedule, or in the
    execution log of the service call."""

    failure_id: Annotated[str, about("Names the failure in requests. Opaque.")]
    namespace: OfNamespace | UnsetType = UNSET
    tenant: OfTenant | UnsetType = UNSET
    kind: Kind
    id: Annotated[str, about("The id of the timer, schedule or service call.", "order-17-reminder")]
    name: Annotated[str | UnsetType, about("The display name of the service call.")] = UNSET
    execute_at: Annotated[str, about("The instant of the run that failed.", "2027-01-31T12:00:00Z")]
    failed_at: Annotated[str, about("When it failed.", "2027-01-31T12:00:05Z")]
    destination: Destination
    error: Error


class FailureSample(ResponseStruct, rename="camel", omit_defaults=True):
    """The newest failure of a group: its request and its last attempt, as far as they are kept."""

    method: Annotated[str | UnsetType, about("The request's method.", "POST")] = UNSET
    url: Annotated[str | UnsetType, about("The request's URL, without its secrets.")] = UNSET
    attempt: Annotated[Attempt | UnsetType, about("The last attempt.")] = UNSET


class FailureGroup(ResponseStruct, rename="camel", omit_defaults=True):
    """Failures with something in common. Fields in which they differ are absent."""

    count: Annotated[int, about("How many failures were counted.")]
    first_at: Annotated[str, about("When the first one failed.", "2027-01-31T12:00:05Z")]
    last_at: Annotated[str, about("When the last one failed.", "2027-01-31T13:00:05Z")]
    series: Annotated[
        list[int], about("How many failed in each of 24 equal parts of the time from the first one to now.")
    ]
    newest: Annotated[list[Failure], about("The newest ones, at most 10.")]
    namespace: OfNamespace | UnsetType = UNSET
    tenant: OfTenant | UnsetType = UNSET
    destination: Destination | UnsetType = UNSET
    error: Error | UnsetType = UNSET
    kind: Kind | UnsetType = UNSET
    sample: Annotated[FailureSample | UnsetType, about("The newest failure in detail.")] = UNSET


class FailureList(ResponseStruct, rename="camel"):
    """Groups of failures, those with most failures first."""

    groups: Annotated[list[FailureGroup], about("The groups.")]
    further_groups: Annotated[int, about("How many groups beyond the limit there are.")]
    count: Annotated[int, about("How many failures there are in all groups.")]
    at_least: Annotated[bool, about("Whether there are older failures that were not counted: at most 50,000 are.")]


class FailurePage(ResponseStruct, rename="camel", omit_defaults=True):
    """A page of failures, newest first."""

    failures: Annotated[list[Failure], about("The failures.")]
    next_cursor: Annotated[str | UnsetType, about("The cursor of the next page; absent on the last page.")] = UNSET


class DismissedFailures(ResponseStruct, rename="camel"):
    """What was dismissed."""

    dismissed: Annotated[int, about("How many failures. Ids that were not listed any more count, too.")]
    more: Annotated[
        bool,
        about(
            "Whether there may be more of the group: at most 50,000 are read, and of service calls 5,000 dismissed. Repeat "
            "the request."
        ),
    ]


class FailureRequests:
    """What requests that change failures do, whether they come from the API or from the pages, with their entries in the
    audit trail."""

    def __init__(self, failures: Failures, audit: AuditLog) -> None:
        self._failures = failures
        self._audit = audit

    async def dismiss(self, namespace: str, wanted: FailureFilter | list[str], actor: Actor) -> DismissedFailures:
        """Dismisses failures of a namespace: those of the filter, or these."""
        if isinstance(wanted, FailureFilter):
            number, more = await self._failures.dismiss(wanted)
            return await self._dismissed(namespace, actor, number, more, wanted.group)
        return await self._dismissed(namespace, actor, await self._failures.dismiss_ids(namespace, wanted))

    async def dismiss_calls(
        self,
        failures: CallFailures,
        tenant: str,
        wanted: CallFailureFilter | list[str],
        actor: Actor,
        correlation_id: str,
    ) -> DismissedFailures:
        """The same of service calls of a tenant."""
        if isinstance(wanted, CallFailureFilter):
            number, more = await failures.dismiss(wanted, correlation_id)
            return await self._dismissed(tenant, actor, number, more, wanted.group)
        return await self._dismissed(tenant, actor, await failures.dismiss_ids(tenant, wanted, correlation_id))

    async def _dismissed(
        self, subject: str, actor: Actor, number: int, more: bool = False, group: GroupKey = ANY_GROUP
    ) -> DismissedFailures:
        of: dict[str, Detail] = {"destination": group.destination, "error": group.error, "kind": group.kind}
        details = {name: value for name, value in of.items() if value is not None}
        await self._audit.write(AuditAction.FAILURES_DISMISSED, actor, subject, {"count": number, **details})
        return DismissedFailures(number, more)


#: Which failures a request is about.
Filter = FailureFilter | CallFailureFilter


def list_request(sent: ListFailures, rules: InputRules, key: ApiKey | None) -> tuple[Filter, list[str], int]:
    """The filter, the fields to group by and the limit of a request. Raises InvalidInput, Forbidden."""
    errors = bad_fields(sent, rules) + scope_errors(sent.namespace, sent.tenant)
    since = read_instant("since", sent.since, errors)
    known = CALLS_GROUPED_BY if sent.namespace is UNSET else GROUPED_BY
    by = list(known) if sent.group_by is UNSET else [each.value for each in sent.group_by]
    if not by:
        errors.append(FieldError("groupBy", "is empty; name one field or more, or leave it out"))
    elif not set(by) <= set(known):
        errors.append(FieldError("groupBy", f"has a field that these failures lack; they have: {', '.join(known)}"))
    if errors:
        raise InvalidInput(*errors)
    return _filter(sent, key, Role.READ, since, ANY_GROUP), by, or_default(sent.limit, GROUPS_DEFAULT)


def members_request(
    sent: ListFailureMembers, rules: InputRules, key: ApiKey | None, limit: int
) -> tuple[Filter, int, str | None]:
    """The filter, the limit and the cursor of a request. Raises InvalidInput, Forbidden."""
    errors = bad_fields(sent, rules) + scope_errors(sent.namespace, sent.tenant) + kind_errors(sent.tenant, sent.kind)
    since = read_instant("since", sent.since, errors)
    if errors:
        raise InvalidInput(*errors)
    wanted = _filter(sent, key, Role.READ, since, _group(sent))
    return wanted, or_default(sent.limit, limit), or_none(sent.cursor)


def dismiss_request(sent: DismissFailures, rules: InputRules, key: ApiKey | None) -> Filter | list[str]:
    """The filter of a request, or the ids. Raises InvalidInput, Forbidden."""
    errors = bad_fields(sent, rules) + scope_errors(sent.namespace, sent.tenant) + kind_errors(sent.tenant, sent.kind)
    group = _group(sent)
    has_group, has_ids, takes_all = any(group), sent.ids is not UNSET, sent.all is True
    if has_group + has_ids + takes_all != 1:
        errors.append(
            FieldError(
                "ids", "conflicts with the other fields, or all are missing; send ids, or fields of a group, or all"
            )
        )
    if not isinstance(sent.ids, UnsetType) and len(sent.ids) > DISMISSED_MAX:
        errors.append(FieldError("ids", f"has {len(sent.ids)} items; send at most {DISMISSED_MAX}"))
    if errors:
        raise InvalidInput(*errors)
    wanted = _filter(sent, key, Role.WRITE, None, group)
    return wanted if isinstance(sent.ids, UnsetType) else sent.ids


def kind_errors(tenant: str | UnsetType, kind: FailedKind | UnsetType) -> list[FieldError]:
    """What is wrong about a kind: service calls have a tenant, all others a namespace."""
    if kind is UNSET or (kind is FailedKind.CALL) == (tenant is not UNSET):
        return []
    reason = (
        "is of a tenant; give tenant instead of namespace" if tenant is UNSET else "is call, of a tenant; leave it out"
    )
    return [FieldError("kind", reason)]


def _filter(
    sent: ListFailures | ListFailureMembers | DismissFailures,
    key: ApiKey | None,
    role: Role,
    since: int | None,
    group: GroupKey,
) -> Filter:
    if not isinstance(sent.tenant, UnsetType):
        return CallFailureFilter(permitted_tenants(key, role, sent.tenant), since, group)
    assert not isinstance(sent.namespace, UnsetType)
    return FailureFilter(listed_in(key, sent.namespace), since, group)


def _group(sent: ListFailureMembers | DismissFailures) -> GroupKey:
    wanted = (or_none(each) for each in (sent.destination, sent.error, sent.kind))
    return GroupKey(None, *wanted)  # type: ignore[arg-type]


def failure_answer(row: FailureRow | CallFailure) -> Failure:
    """The failure as clients see it."""
    destination, error = split_failure(row.failure)
    seen = {"failed_at": format_instant(row.failed_at), "destination": destination, "error": error}
    if isinstance(row, FailureRow):
        return Failure(
            failure_id=failure_id(row),
            namespace=namespace_of(row),
            kind=kind_of(row),
            id=row.timer_id,
            execute_at=format_instant(row.execute_at),
            **seen,
        )
    return Failure(
        failure_id=call_failure_id(row),
        tenant=row.tenant_id,
        kind=FailedKind.CALL,
        id=row.service_call_id,
        name=row.name,
        execute_at=format_instant(row.due_at),
        **seen,
    )


def groups_answer(found: FailureGroups[Found] | FailureGroups[CallFailure], now_us: int) -> FailureList:
    """The groups as clients see them."""
    return FailureList(
        [_group_answer(group, now_us) for group in found.groups], found.further, found.total, found.at_least
    )


def _group_answer(group: CountedFailures[Found] | CountedFailures[CallFailure], now_us: int) -> FailureGroup:
    key = group.key
    return FailureGroup(
        count=group.count,
        first_at=format_instant(min(group.instants)),
        last_at=format_instant(max(group.instants)),
        series=group.series(now_us),
        newest=[failure_answer(each if isinstance(each, CallFailure) else each[1]) for each in group.newest],
        namespace=or_absent(key.namespace),
        tenant=or_absent(key.tenant),
        destination=or_absent(key.destination),
        error=or_absent(key.error),
        kind=or_absent(key.kind),
        sample=UNSET if group.sample is None else _sample_answer(group.sample),
    )


def _sample_answer(sample: Sample) -> FailureSample:
    return FailureSample(
        or_absent(sample.method),
        or_absent(None if sample.url is None else redact_url(sample.url)),
        or_absent(None if sample.attempt is None else attempt_answer(sample.attempt)),
    )


def page_answer(page: tuple[Sequence[FailureRow | CallFailure], str | None]) -> FailurePage:
    """The page as clients see it."""
    rows, cursor = page
    return FailurePage([failure_answer(row) for row in rows], or_absent(cursor))
