"""The ports of the agent's modules: what they require of its database and, for due times, of its timers.

Each module has its own part; beyond that they share only messages. Instants are microseconds, and all methods of stores raise
StoreError.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from tocsin.model.hooks import Hooks
from tocsin.model.job import RowFilter
from tocsin.model.retry import RetryPolicy
from tocsin.model.secrets import SigningSecrets
from tocsin.ports.agent_calls import CallFailure, CallFailurePlace, Tenants
from tocsin.ports.bus import Envelope
from tocsin.service_calls.messages import CallKey, CallStatus, ErrorMeta, RequestSpec, ResponseMeta

T = TypeVar("T")


# ---------------------------------------------------------------------- damage


class DamagedRow(NamedTuple):
    """A row of this table that can't be decoded, and why. `execution_id` is empty in a table of calls."""

    table: str
    tenant_id: str
    service_call_id: str
    execution_id: str = ""
    error: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Tenant, call and execution."""
        return self.tenant_id, self.service_call_id, self.execution_id


class Readable(NamedTuple, Generic[T]):
    """What was read, without the rows that can't be decoded: one of these must not hide the others."""

    rows: list[T]
    damaged: Sequence[DamagedRow] = ()


# ---------------------------------------------------------------------- orchestration: service calls

#: Calls that wait for an instant: they may be deleted, and become Running at that instant.
WAITING = frozenset({CallStatus.SCHEDULED, CallStatus.RETRYING})


class CallOutcome(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """How a call ended or, while it is Retrying, how its last attempt ended: `response_meta` if the service answered,
    `error_meta` if the attempt failed."""

    response_meta: ResponseMeta | None = None
    error_meta: ErrorMeta | None = None


class ServiceCall(msgspec.Struct, frozen=True, gc=False):
    """The state of one call. Instants are in microseconds.

    `execution_id` is the execution that was ordered last, `executions` is how many were ordered, `started_at` is when
    the last one began. `attempts` counts the executions that ended, without those that were repeated after an
    interruption. `first_attempt_at` is when the first execution began. `next_attempt_at` is the due time of the last
    planned retry, also after it has passed. `watch_at` is when the watchdog checks the call, None once it has finished.
    `traceparent` is that of the submission, for the traces of its executions.
    `failure` is what the call has in common with others that failed (`tocsin.model.failure`), until it is retried or its
    failure is dismissed. `flow_key` names the flow whose limits apply to its attempts. `tags` are the tags of the submission;
    they are not loaded with the call.
    """

    tenant_id: str
    service_call_id: str
    name: str
    status: CallStatus
    submitted_at: int
    due_at: int
    request_spec: RequestSpec
    correlation_id: str
    fingerprint: str
    watch_at: int | None
    idempotency_key: str | None = None
    started_at: int | None = None
    finished_at: int | None = None
    outcome: CallOutcome | None = None
    execution_id: str | None = None
    executions: int = 0
    retry_policy: RetryPolicy | None = None
    attempts: int = 0
    first_attempt_at: int | None = None
    next_attempt_at: int | None = None
    traceparent: str | None = None
    hooks: Hooks | None = None
    failure: str | None = None
    flow_key: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def awaited_at(self) -> int:
        """When the next attempt is due, or was due if it is in progress."""
        return self.due_at if self.next_attempt_at is None else self.next_attempt_at

    @property
    def key(self) -> CallKey:
        """Tenant and id."""
        return CallKey(self.tenant_id, self.service_call_id)


class Change(NamedTuple):
    """One call before and after its change."""

    before: ServiceCall
    after: ServiceCall


class Transaction(Protocol):
    """One transaction over service calls, their tags and the outbox. With some databases it runs in a thread of the
    database: between the calls, decide, and await nothing else."""

    async def load(self, keys: Collection[CallKey]) -> dict[CallKey, ServiceCall]:
        """The calls that exist, locked until the end of the transaction where the database locks rows."""

    async def find_by_idempotency_key(self, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], ServiceCall]:
        """The calls that exist, by tenant and idempotency key."""

    async def insert(self, calls: Sequence[ServiceCall]) -> set[CallKey]:
        """Adds calls with their tags. Returns the keys of those that were added; the others exist already, by id or by
        idempotency key."""

    async def change(self, changes: Sequence[Change]) -> set[CallKey]:
        """Writes each `after`, unless the stored status or execution id differs from `before`. Returns the keys of the
        calls that were written."""

    async def delete_waiting(self, keys: Collection[CallKey]) -> set[CallKey]:
        """Deletes calls that are Scheduled or Retrying, with everything that refers to them. Returns their keys."""

    async def tags(self, keys: Collection[CallKey]) -> dict[CallKey, tuple[str, ...]]:
        """The tags of each call, sorted."""

    async def add_tags(self, tags: Sequence[tuple[CallKey, str]]) -> None:
        """Adds tags to calls that exist. A tag that exists already stays as it is."""

    async def remove_tags(self, tags: Sequence[tuple[CallKey, str]]) -> None:
        """Removes tags. A tag that does not exist is ignored."""

    async def to_watch(self, now_us: int, limit: int) -> Readable[ServiceCall]:
        """At most `limit` unfinished calls whose `watch_at` has passed, the earliest first, locked."""

    async def postpone(self, keys: Collection[CallKey], watch_at_us: int) -> None:
        """Sets `watch_at` of unfinished calls, and reads nothing else of them."""

    async def purge(self, now_us: int, kept_us: int, limit: int) -> int:
        """Deletes calls that finished longer than `kept_us` ago, by this clock and by the database's, with everything that
        refers to them: one that is wrong takes nothing from the others. Returns how many."""

    async def append(self, envelopes: Sequence[Envelope]) -> None:
        """Appends messages to the outbox, in this order."""


class ServiceCallStore(Protocol):
    """Transactions over the tables of orchestration."""

    async def transact(self, work: Callable[[Transaction], Coroutine[Any, Any, T]]) -> T:
        """Returns the result of `work` once its transaction is durable. An exception of `work` rolls the transaction
        back and is raised. `work` may be called again from the start after a conflict with another transaction, so it
        must have no other effects. Raises StoreUnavailable, DefiniteFailure or OutcomeUnknown."""


# ---------------------------------------------------------------------- timer: schedules


class TimerEntry(NamedTuple):
    """One schedule. `reached_at` None: it is waiting (state Scheduled); otherwise its state is Reached. Instants in
    microseconds."""

    tenant_id: str
    service_call_id: str
    correlation_id: str
    due_at: int
    registered_at: int
    reached_at: int | None = None

    @property
    def key(self) -> CallKey:
        """Tenant and service call."""
        return CallKey(self.tenant_id, self.service_call_id)


class TimerStore(Protocol):
    """The table `timer_schedules`. Every query except those over `due_at` alone starts with the tenant. All methods
    raise StoreError."""

    async def schedule_timers(self, entries: Sequence[TimerEntry]) -> None:
        """Adds schedules. An existing one, Scheduled or Reached, is replaced by a later one and becomes Scheduled; an
        entry that is not later is a repetition and changes nothing. Entries whose call no longer exists are ignored
        without affecting the others."""

    async def delete_timers(self, keys: Collection[CallKey]) -> None:
        """Deletes schedules. A schedule that does not exist is ignored."""

    async def due_tenants(self, from_us: int, now_us: int, limit: int) -> list[str]:
        """Tenants with waiting schedules whose `due_at` is from `from_us` to `now_us`, both inclusive, ordered by their
        earliest."""

    async def find_due(self, tenant_ids: Collection[str], from_us: int, now_us: int, limit: int) -> list[TimerEntry]:
        """The waiting schedules of these tenants whose `due_at` is from `from_us` to `now_us`, both inclusive, in order
        of `due_at`."""

    async def mark_fired(self, fired: Collection[tuple[CallKey, int]], reached_at_us: int) -> int:
        """Marks schedules with these calls and `due_at` as Reached. Returns how many changed. A schedule that is
        Reached, was deleted or waits for a later instant stays as it is."""

    async def next_due_at(self, after_us: int) -> int | None:
        """The earliest waiting `due_at` later than `after_us`, of any tenant."""


#: Called with schedules that are due. They are published when it returns; if it raises, they are passed to it again.
OnDue = Callable[[Sequence[TimerEntry]], Awaitable[None]]


class Timers(Protocol):
    """Keeps schedules and reports when they are due, at least once and never early: by polling a table or by a timer
    engine."""

    async def start(self, on_due: OnDue) -> None:
        """Starts reporting, including schedules that fell due before."""

    async def schedule(self, entries: Sequence[TimerEntry]) -> None:
        """Adds schedules or moves them to a later instant, with the rules of TimerStore.schedule_timers. Durable when
        it returns."""

    async def cancel(self, keys: Collection[CallKey]) -> None:
        """Removes schedules. A schedule that does not exist is ignored."""

    async def close(self) -> None:
        """Stops reporting. Idempotent."""


# ---------------------------------------------------------------------- execution: the log, and what signs requests


class ExecutionStart(NamedTuple):
    """The start of a row of `http_execution_log`: headers redacted, the body cut to a snippet, with the correlation id
    of its call."""

    tenant_id: str
    service_call_id: str
    execution_id: str
    correlation_id: str
    started_at: int
    request_url: str
    request_method: str
    request_headers: dict[str, str]
    request_body: str | None

    @property
    def key(self) -> CallKey:
        """Tenant and service call."""
        return CallKey(self.tenant_id, self.service_call_id)


class UnfinishedExecution(NamedTuple):
    """A row of `http_execution_log` without an end: what its interruption states, the first fields of its start."""

    tenant_id: str
    service_call_id: str
    execution_id: str
    correlation_id: str
    started_at: int


class ExecutionEnd(NamedTuple):
    """The end of a row of `http_execution_log`. All response fields are None without a response, `error_message` is
    None without an error."""

    tenant_id: str
    service_call_id: str
    execution_id: str
    finished_at: int
    response_status: int | None
    response_headers: dict[str, str] | None
    response_body: str | None
    error_message: str | None


class LoggedExecution(NamedTuple):
    """A row of the log. `end` is None if the execution has not finished."""

    start: ExecutionStart
    end: ExecutionEnd | None


class ExecutionLog(Protocol):
    """The table `http_execution_log`, with the outbox in the same transaction. All methods raise StoreError."""

    async def begin(
        self, starts: Sequence[tuple[ExecutionStart, Envelope]], suspended: Collection[tuple[str, str, str]] = ()
    ) -> set[str]:
        """Adds rows, and the event of each to the outbox. Returns the execution ids that were added. An execution that
        is logged already, or is not the one that was ordered last of its call, is left out with its event, without
        affecting the others.
        Deletes the orders of `suspended` executions, given by tenant, call and execution, in the same transaction."""

    async def finish(self, ends: Sequence[tuple[ExecutionEnd, Envelope]]) -> set[str]:
        """Completes rows that are unfinished, and adds the event of each to the outbox. Returns the ids of those that
        were completed."""

    async def unfinished(self, limit: int) -> Readable[UnfinishedExecution]:
        """At most `limit` rows without an end, of all tenants, in no particular order."""

    async def find(self, keys: Collection[tuple[str, str, str]]) -> dict[str, LoggedExecution]:
        """The existing rows by tenant, call and execution, as a dict by execution id."""

    async def report(self, events: Sequence[Envelope]) -> None:
        """Adds events about rows to the outbox. The rows do not change."""


class SuspendedOrder(NamedTuple):
    """An order that waits: its message, by tenant, call and execution. `place` is what it waits for: its flow, its credential
    and its destination, or these and its flow, with spaces between them; or its destination alone, behind a space.
    `suspended_at` in microseconds."""

    tenant_id: str
    service_call_id: str
    execution_id: str
    place: str
    suspended_at: int
    envelope: Envelope


class SuspendedOrders(Protocol):
    """The table `suspended_executions`. `ExecutionLog.begin` deletes its rows. All methods raise StoreError."""

    async def suspend(self, orders: Sequence[SuspendedOrder]) -> set[str]:
        """Adds orders. Returns the execution ids that were added. An order that is there already, whose execution is
        logged, or is not the one that was ordered last of its call, is left out without affecting the others."""

    async def unreported(self, before_us: int, limit: int) -> Readable[SuspendedOrder]:
        """At most `limit` orders that were suspended before this instant and not reported, the earliest first."""

    async def report(
        self, orders: Sequence[tuple[SuspendedOrder, Envelope]], at_us: int, damaged: Collection[DamagedRow] = ()
    ) -> None:
        """Marks orders as reported, and adds the event of each to the outbox in the same transaction. One that is no longer
        there, or is marked already, is left out with its event. Damaged ones are marked without any."""

    async def first(self, place: str, limit: int) -> Readable[SuspendedOrder]:
        """At most `limit` orders of a place, in the order of their execution ids."""

    async def places(self, after: str, limit: int) -> list[tuple[str, int]]:
        """At most `limit` places where orders wait, behind `after` and in order, each with the number of its orders.
        It reads the index of these orders."""


class TenantSecrets(Protocol):
    """The secrets that sign the service calls of tenants."""

    async def change(self, tenant_id: str, change: Callable[[SigningSecrets], SigningSecrets]) -> SigningSecrets:
        """Stores the result of `change` for the tenant's secrets. Returns it once it is durable and every execution
        that begins uses it. An error of `change` is raised, and nothing is stored. Raises StoreError."""

    async def find(self, tenant_ids: Collection[str]) -> dict[str, SigningSecrets]:
        """The current secrets of those tenants that have any. Raises StoreError."""


# ---------------------------------------------------------------------- encrypted secrets


class SealedColumn(StrEnum):
    """Where the agent stores encrypted secrets that it may still need: a table and a column."""

    SIGNING = "tenant_secrets.secrets"
    REQUEST = "service_calls.request_spec"
    HOOKS = "service_calls.hooks"
    ORDER = "suspended_executions.envelope"


class SealedText(NamedTuple):
    """A stored text with encrypted secrets, and the key of its row, which begins with the tenant."""

    place: SealedColumn
    key: Sequence[str]
    text: str


class SealedPage(NamedTuple):
    """The texts found among some rows, and the key of the last of these; None: there are no rows behind."""

    texts: Sequence[SealedText]
    after: Sequence[str] | None


class SealedTexts(Protocol):
    """The texts with encrypted secrets, as they are stored. All methods raise StoreError."""

    async def page(self, place: SealedColumn, key_id: str, after: Sequence[str] | None, limit: int) -> SealedPage:
        """The texts that mention this key among the first `limit` rows behind `after`, in the order of their keys. No more
        rows are looked at, however few have such a text."""

    async def replace(self, text: SealedText, fresh: str) -> bool:
        """Stores `fresh` instead, unless the text has changed since; whether it did."""

    async def unpublished(self, key_id: str, after: int, limit: int) -> tuple[int, int | None]:
        """How many orders of the outbox mention this key, among the first `limit` unpublished messages with greater numbers;
        and the number of the last of these, None: there are no more."""


# ---------------------------------------------------------------------- outbox


class OutboxRow(NamedTuple):
    """A message that was committed together with the state change it reports. Numbers grow in the order of appending
    and, for one aggregate, also in the order of commits."""

    number: int
    envelope: Envelope


class OutboxStore(Protocol):
    """The table `outbox`. The async methods raise StoreError."""

    def on_appended(self, notify: Callable[[Sequence[OutboxRow]], None]) -> None:
        """Registers a callback: `notify` is called on the event loop after each commit that appended rows, with those
        rows in order. It only saves time: `unpublished` returns the same rows."""

    def on_unknown(self, notify: Callable[[Sequence[OutboxRow]], None]) -> None:
        """Registers a callback: `notify` is called on the event loop with the rows of each commit whose outcome is
        unknown. The rows are in the table, may still appear there for a moment, or never will. It is called before the
        `on_appended` callback of any later commit."""

    async def unpublished(self, after: int, limit: int) -> list[OutboxRow]:
        """Rows with greater numbers that are neither published nor suspended, in order."""

    async def mark_published(self, numbers: Collection[int], at_us: int) -> None:
        """Marks rows as published. Rows that are marked already or no longer exist are ignored."""

    async def note_failure(self, number: int, attempts: int, error: str) -> None:
        """Records how often publishing the row failed, and the last error."""

    async def suspend(self, number: int, error: str, at_us: int, then: Envelope | None = None) -> None:
        """Suspends a row that can never be published: it stays in the table for inspection and is not read again. `then` is
        appended in the same transaction, unless the row is suspended already."""

    async def purge(self, now_us: int, kept_us: int, limit: int) -> int:
        """Deletes rows that were published longer than `kept_us` ago, by this clock and by the database's, and those that
        were suspended as long ago, once the messages that were published meanwhile are gone. Returns how many."""


# ---------------------------------------------------------------------- API: what is shown. Writes are commands on the bus


class CallRecord(NamedTuple):
    """A service call as it is shown. Instants in microseconds. `outcome` is the stored JSON, None until there is one.
    `next_attempt_at` is set while the call is Retrying."""

    tenant_id: str
    service_call_id: str
    name: str
    status: str
    submitted_at: int
    due_at: int
    started_at: int | None
    finished_at: int | None
    request_spec: RequestSpec
    outcome: dict[str, Any] | None
    correlation_id: str
    tags: tuple[str, ...]
    retry_policy: RetryPolicy | None = None
    attempts: int = 0
    next_attempt_at: int | None = None
    hooks: Hooks | None = None
    flow_key: str | None = None


def is_deleted(wanted: RowFilter, call: ServiceCall | CallRecord, tags: Collection[str]) -> bool:
    """Whether a job with this filter deletes the call, which has these tags."""
    due_at = call.due_at if call.next_attempt_at is None else call.next_attempt_at
    return call.status in WAITING and wanted.matches_call(
        call.service_call_id, call.name, call.status, tags, call.request_spec.url, call.submitted_at, due_at
    )


class ExecutionRecord(NamedTuple):
    """A row of the execution log."""

    execution_id: str
    started_at: int
    finished_at: int | None
    request_url: str
    request_method: str
    request_headers: dict[str, str]
    request_body: str | None
    response_status: int | None
    response_headers: dict[str, str] | None
    response_body: str | None
    error_message: str | None


class TraceEntry(NamedTuple):
    """One step that a request led to. `kind` is `message` (a row of the outbox) or the name of a table."""

    at: int
    kind: str
    name: str
    id: str
    causation_id: str | None
    detail: dict[str, Any]


class SearchResult(NamedTuple):
    """The result of a search. `reached` is the last call that was read if the search stopped at its limit of calls;
    None if it read all calls or found enough."""

    calls: list[CallRecord]
    reached: PagePosition | None


class PagePosition(NamedTuple):
    """Where a page ended: the position of its last call."""

    submitted_at: int
    service_call_id: str


@dataclass(frozen=True, slots=True)
class CallFilter:
    """Selects calls. `tenants`: those of one tenant, of several, or of all (None). `submitted_from` is inclusive,
    `submitted_to` exclusive; `before` continues after a previous page. Empty sets match any call; a call must have all of
    several tags. `correlation_id` is matched exactly, `name` as a substring, with letters A to Z in either case; empty
    matches any. `service_call_id` is for searches over several tenants."""

    tenants: Tenants
    statuses: frozenset[str] = field(default_factory=frozenset)
    tags: tuple[str, ...] = ()
    submitted_from: int | None = None
    submitted_to: int | None = None
    before: PagePosition | None = None
    limit: int = 50
    correlation_id: str = ""
    name: str = ""
    service_call_id: str = ""


class CallQueries(Protocol):
    """Reads of calls, each with an index. All methods raise StoreError."""

    async def find(self, key: CallKey) -> CallRecord | None:
        """One call, or None."""

    async def find_many(self, keys: Sequence[CallKey]) -> list[CallRecord]:
        """The calls that exist, in any order."""

    async def page(self, wanted: CallFilter) -> list[CallRecord]:
        """At most `limit` calls of one tenant by submission, the newest first. Ignores the filter's name."""

    async def search(self, wanted: CallFilter) -> SearchResult:
        """At most `limit` calls by submission, the newest first, among a bounded number of calls: for filters by name, and
        over several tenants, for which there is no index."""

    async def of_request(self, correlation_id: str, tenants: tuple[str, ...] | None, limit: int) -> list[CallRecord]:
        """At most `limit` calls with this correlation id, of several tenants, or of all (None), in any order."""

    async def counts(self, tenants: Tenants, most: int) -> Mapping[str, tuple[int, bool]]:
        """How many calls have each status, and whether there may be more: of one tenant up to `most` for each status; of
        several, among a bounded number of the newest calls."""

    async def causes(
        self, tenants: Tenants, since_us: int, before: CallFailurePlace | None, limit: int
    ) -> list[tuple[CallFailurePlace, str]]:
        """Place and `failure` of at most `limit` failures, newest first, behind a place: those since an instant of one
        tenant, or of all. Of several tenants it is a part of those of all."""

    async def failures(self, places: Sequence[CallFailurePlace]) -> list[CallFailure]:
        """The failures at these places that are left, newest first, with their tags."""

    async def attempted_urls(self, most: int) -> list[str] | None:
        """The logged URLs of all unfinished calls of which an attempt has failed, of one that is being retried as well; None:
        there are more than `most` of these, or more unfinished calls than a search reads. A call of which no attempt was
        logged is left out."""

    async def executions(self, key: CallKey) -> list[ExecutionRecord]:
        """The call's executions, in order."""

    async def trace(self, key: CallKey) -> list[TraceEntry]:
        """Everything with this call's correlation id, of its tenant only: rows and messages in order of time, each
        after its cause."""
