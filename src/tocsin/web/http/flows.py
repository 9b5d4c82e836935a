"""The HTTP requests and responses about flows: their structs, their conversion, and what they do, with their entries in the
audit trail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from tocsin.model import flow as model
from tocsin.model.audit import AuditAction, Detail
from tocsin.model.batch import CallbackBatch as BatchRule
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.flow import FLOW_COUNT_MAX, FLOW_KEY_CHARS_MAX, FLOW_MATCH, RATE_PER_US_MAX, RATE_PER_US_MIN
from tocsin.model.instants import format_duration, format_instant, parse_duration
from tocsin.model.opaque import to_opaque
from tocsin.model.validation import InputRules
from tocsin.ports.audit import Actor, AuditLog
from tocsin.timers.flows import Flows, FlowView
from tocsin.web.http import constraints as limits
from tocsin.web.http.callback_batches import (
    CALLBACK_BATCH,
    CallbackBatch,
    CallbackBatchAnswer,
    batch_answer,
    batch_detail,
    read_batch,
)
from tocsin.web.http.constraints import bad_fields, below, refuse_bad_fields
from tocsin.web.http.declared_wire import ExpectedVersion, ManagedBy, Version, name_after
from tocsin.web.http.instants import optional_instant, read, read_instant
from tocsin.web.http.optional import or_absent, or_default, or_none, present
from tocsin.web.http.wire import Cursor, Instant, NamespaceName, RequestStruct, ResponseStruct, about, page_of

_COUNT = limits.between(1, FLOW_COUNT_MAX)
_MATCH = limits.Constraint(
    {"minLength": 1, "maxLength": FLOW_KEY_CHARS_MAX, "pattern": r"^[\u0021-\u007e]+$"},
    (),
    lambda _, match: (
        None
        if FLOW_MATCH.match(match)
        else f"is no key or prefix of flows; use 1 to {FLOW_KEY_CHARS_MAX} visible ASCII characters without spaces"
    ),
)
FlowMatch = Annotated[
    str,
    about("The flow key that the rule is for, or a prefix of keys, which ends with a colon.", "customer:"),
    _MATCH,
]
RateCount = Annotated[int, about("How many attempts may begin in that time.", 100), _COUNT]
RatePer = Annotated[
    str,
    about(f"The time: {format_duration(RATE_PER_US_MIN)} to {format_duration(RATE_PER_US_MAX)}.", "1m"),
    limits.DURATION,
]
Burst = Annotated[
    int,
    about(
        "How many attempts may begin at once if none did for a while. Requires a rate; default 1: they are evenly spaced.",
        1,
    ),
    _COUNT,
]
Parallelism = Annotated[int, about("How many attempts may be in flight at once.", 2), _COUNT]
Ordered = Annotated[
    bool,
    about(
        "Whether the timers of each key begin one at a time, in the order of their instants, each when the one before has "
        "ended, retries included. Only in `perKey`, without another parallelism than 1, and in a namespace with `numShards` "
        "1. Default false.",
        True,
    ),
]
PER_KEY = about("The limits of each flow key by itself.")
TOTAL = about("The limits of all flow keys of the rule together.")


class FlowRate(RequestStruct):
    """So many attempts within a time, evenly spread."""

    count: RateCount
    per: RatePer


class FlowLimits(RequestStruct):
    """Limits of attempts; send a rate, a parallelism, or both. In any time at most `burst` attempts begin, and those of the
    rate."""

    rate: FlowRate | UnsetType = UNSET
    burst: Burst | UnsetType = UNSET
    parallelism: Parallelism | UnsetType = UNSET
    ordered: Ordered | UnsetType = UNSET


class FlowRateAnswer(ResponseStruct):
    """So many attempts within a time, evenly spread."""

    count: RateCount
    per: RatePer


class FlowLimitsAnswer(ResponseStruct):
    """Limits of attempts. What is absent is not limited."""

    rate: FlowRateAnswer | UnsetType = UNSET
    burst: Annotated[int | UnsetType, about("How many attempts may begin at once; absent without a rate.", 1)] = UNSET
    parallelism: Parallelism | UnsetType = UNSET
    ordered: Annotated[
        bool | UnsetType,
        about(
            "True where the timers of each key begin one at a time, in the order of their instants; else absent.", True
        ),
    ] = UNSET


class FlowName(RequestStruct):
    """Names a rule."""

    namespace: NamespaceName
    match: FlowMatch


class FlowFields(RequestStruct, kw_only=True):
    """What a rule limits."""

    per_key: Annotated[FlowLimits | UnsetType, PER_KEY] = UNSET
    total: Annotated[FlowLimits | UnsetType, TOTAL] = UNSET
    close_on_retry_after: Annotated[
        bool | UnsetType,
        about(
            "Whether an answer 429 or 503 with Retry-After lets nothing more of its flow key begin until then. Default "
            "false."
        ),
    ] = UNSET
    callback_batch: Annotated[CallbackBatch | UnsetType, CALLBACK_BATCH] = UNSET


class PutFlow(FlowFields, kw_only=True):
    """A rule with all its limits; send at least one of `perKey`, `total`, `callbackBatch` and a true `closeOnRetryAfter`.
    Without `managedBy` the rule keeps it; null removes it."""

    namespace: NamespaceName
    match: FlowMatch
    managed_by: ManagedBy | UnsetType | None = UNSET
    expected_version: ExpectedVersion | UnsetType = UNSET


class DeleteFlow(FlowName):
    """A rule to delete."""

    expected_version: ExpectedVersion | UnsetType = UNSET


class PauseFlow(FlowName):
    """A rule to pause."""

    until: Annotated[Instant, about("When it goes on; without it, when it is resumed.")] | UnsetType = UNSET


class ListFlows(RequestStruct):
    """The namespace whose rules are wanted."""

    namespace: NamespaceName
    limit: Annotated[int | UnsetType, page_of("rules"), limits.ROWS] = UNSET
    cursor: Cursor | UnsetType = UNSET


class Flow(ResponseStruct, kw_only=True):
    """A rule, and what is under way of its flow keys."""

    namespace: NamespaceName
    match: FlowMatch
    per_key: Annotated[FlowLimitsAnswer | UnsetType, PER_KEY] = UNSET
    total: Annotated[FlowLimitsAnswer | UnsetType, TOTAL] = UNSET
    close_on_retry_after: Annotated[
        bool, about("Whether an answer 429 or 503 with Retry-After lets nothing more of its flow key begin until then.")
    ]
    callback_batch: Annotated[CallbackBatchAnswer | UnsetType, CALLBACK_BATCH] = UNSET
    paused: Annotated[bool, about("Whether nothing of it begins.")]
    paused_until: Annotated[
        str | UnsetType, about("When it goes on; absent unless it is paused until an instant.", "2027-01-31T12:00:00Z")
    ] = UNSET
    version: Version
    created_at: Instant
    updated_at: Instant
    in_flight: Annotated[int, Meta(description="Attempts that are in flight.", ge=0)]
    waiting: Annotated[
        int,
        Meta(
            description="Due timers that wait in memory, and service calls; further timers may wait in the store.",
            ge=0,
        ),
    ]
    complete: Annotated[
        bool, about("Whether all nodes have answered; otherwise more may be in flight and wait than is shown.")
    ]
    managed_by: ManagedBy | UnsetType = UNSET


class FlowPage(ResponseStruct):
    """A page of rules, by match. A page without `nextCursor` is the last."""

    flows: list[Flow]
    next_cursor: Cursor | UnsetType = UNSET


def read_limits(
    sent: FlowLimits | UnsetType | None, path: str, rules: InputRules, errors: list[FieldError]
) -> model.FlowLimits | UnsetType | None:
    """The limits in a request's field; UNSET and None are returned unchanged."""
    if sent is UNSET or sent is None:
        return sent
    bad = bad_fields(sent, rules)
    rate: model.Rate | None = None
    if sent.rate is not UNSET:
        of_rate = bad_fields(sent.rate, rules)
        unreadable = len(of_rate)
        per_us = read(parse_duration, "per", sent.rate.per, of_rate)
        if len(of_rate) == unreadable and not RATE_PER_US_MIN <= per_us <= RATE_PER_US_MAX:
            shortest, longest = format_duration(RATE_PER_US_MIN), format_duration(RATE_PER_US_MAX)
            of_rate.append(FieldError("per", f"is out of range; give {shortest} to {longest}"))
        bad += below("rate", of_rate)
        rate = model.Rate(sent.rate.count, per_us)
    elif sent.burst is not UNSET:
        bad.append(FieldError("burst", "requires a rate; send rate, or leave it out"))
    parallelism = or_none(sent.parallelism)
    ordered = sent.ordered is True
    if ordered and path != "perKey":
        bad.append(FieldError("ordered", "only orders the timers of each key; send it in perKey of a flow"))
    elif ordered and parallelism not in (None, 1):
        bad.append(
            FieldError("ordered", f"allows one attempt at a time; leave out parallelism {parallelism}, or send 1")
        )
    if sent.rate is UNSET and sent.burst is UNSET and parallelism is None and not ordered:
        errors.append(FieldError(path, "limits nothing; send rate or parallelism"))
    errors += below(path, bad)
    return model.FlowLimits(rate, or_default(sent.burst, 1), 1 if ordered else parallelism, ordered)


def rule_in(
    sent: FlowFields, rules: InputRules
) -> tuple[model.FlowLimits | None, model.FlowLimits | None, bool, BatchRule | None]:
    """The limits of each key and of all keys, whether Retry-After closes a key, and the batch. Raises InvalidInput with all
    bad fields."""
    errors = bad_fields(sent, rules)
    per_key = read_limits(sent.per_key, "perKey", rules, errors) or None
    total = read_limits(sent.total, "total", rules, errors) or None
    closes, batch = sent.close_on_retry_after is True, read_batch(sent.callback_batch, rules, errors) or None
    if not (per_key or total or closes or batch or errors):
        reason = "the rule limits nothing; send perKey, total, closeOnRetryAfter or callbackBatch"
        errors.append(FieldError("", reason))
    if errors:
        raise InvalidInput(*errors)
    return per_key, total, closes, batch


def limits_answer(found: model.FlowLimits | None) -> FlowLimitsAnswer | UnsetType:
    """Limits as clients see them."""
    if found is None:
        return UNSET
    rate = found.rate
    return FlowLimitsAnswer(
        UNSET if rate is None else FlowRateAnswer(rate.count, format_duration(rate.per_us)),
        UNSET if rate is None else found.burst,
        or_absent(found.parallelism),
        found.ordered or UNSET,
    )


def limits_detail(sent: FlowLimits | UnsetType | None) -> str | UnsetType:
    """The limits of a request in an entry of the audit trail."""
    if sent is UNSET or sent is None:
        return UNSET if sent is UNSET else "removed"
    parts = (
        "" if sent.rate is UNSET else f"rate {sent.rate.count}/{sent.rate.per}",
        "" if sent.burst is UNSET else f"burst {sent.burst}",
        "" if sent.parallelism is UNSET else f"parallelism {sent.parallelism}",
        "ordered" if sent.ordered is True else "",
    )
    return ", ".join(filter(None, parts))


def flow_answer(view: FlowView, now_us: int) -> Flow:
    """A rule as clients see it."""
    flow = view.flow
    paused = flow.closed_until(now_us) is not None
    return Flow(
        namespace=flow.namespace,
        match=flow.match,
        per_key=limits_answer(flow.per_key),
        total=limits_answer(flow.total),
        close_on_retry_after=flow.close_on_retry_after,
        callback_batch=batch_answer(flow.callback_batch),
        paused=paused,
        paused_until=optional_instant(flow.paused_until if paused else None),
        version=flow.version,
        created_at=format_instant(flow.created_at),
        updated_at=format_instant(flow.updated_at),
        in_flight=view.counts.in_flight,
        waiting=view.counts.waiting,
        complete=view.complete,
        managed_by=flow.managed_by or UNSET,
    )


class FlowRequests:
    """Every method raises InvalidInput with all bad fields of the request, and the errors of `Flows`."""

    def __init__(self, flows: Flows, rules: InputRules, audit: AuditLog) -> None:
        self._flows, self._rules, self._audit = flows, rules, audit

    async def put(self, sent: PutFlow, actor: Actor) -> FlowView:
        """Creates a rule or replaces its limits."""
        per_key, total, closes, batch = rule_in(sent, self._rules)
        wanted = model.Flow(sent.namespace, sent.match, 0, 0, per_key, total, closes, callback_batch=batch)
        view = await self._flows.put(wanted, sent.managed_by, or_none(sent.expected_version))
        if view.unchanged:
            return view
        details = {
            "perKey": limits_detail(sent.per_key),
            "total": limits_detail(sent.total),
            "closeOnRetryAfter": closes or UNSET,
            "callbackBatch": batch_detail(sent.callback_batch),
            "managedBy": "removed" if sent.managed_by is None else sent.managed_by,
        }
        await self._record(AuditAction.FLOW_CHANGED, actor, sent, details)
        return view

    async def get(self, sent: FlowName) -> FlowView:
        """The rule."""
        return await self._flows.get(*self._name(sent))

    async def list(self, sent: ListFlows, now_us: int) -> FlowPage:
        """A page of the namespace's rules."""
        errors = bad_fields(sent, self._rules)
        after = name_after(sent.cursor, "rule", errors)
        if errors:
            raise InvalidInput(*errors)
        limit = or_default(sent.limit, limits.ROWS_DEFAULT)
        views, more = await self._flows.list(sent.namespace, after, limit)
        answers = [flow_answer(view, now_us) for view in views]
        return FlowPage(answers, to_opaque(views[-1].flow.match.encode()) if more else UNSET)

    async def delete(self, sent: DeleteFlow, actor: Actor) -> None:
        """Removes the rule."""
        expected = or_none(sent.expected_version)
        await self._flows.delete(*self._name(sent), expected)
        await self._record(AuditAction.FLOW_DELETED, actor, sent, {})

    async def pause(self, sent: PauseFlow, actor: Actor, now_us: int) -> FlowView:
        """Lets nothing of the rule begin."""
        errors = bad_fields(sent, self._rules)
        until_us = read_instant("until", sent.until, errors)
        if until_us is not None and until_us <= now_us and not errors:
            errors.append(FieldError("until", "is not in the future; leave it out to pause until the flow is resumed"))
        if errors:
            raise InvalidInput(*errors)
        view = await self._flows.pause(sent.namespace, sent.match, until_us)
        await self._record(AuditAction.FLOW_CHANGED, actor, sent, {"paused": True, "until": sent.until})
        return view

    async def resume(self, sent: FlowName, actor: Actor) -> FlowView:
        """Ends a pause."""
        view = await self._flows.resume(*self._name(sent))
        await self._record(AuditAction.FLOW_CHANGED, actor, sent, {"paused": False})
        return view

    def _name(self, sent: FlowName) -> tuple[str, str]:
        refuse_bad_fields(sent, self._rules)
        return sent.namespace, sent.match

    async def _record(
        self, action: AuditAction, actor: Actor, sent: FlowName | PutFlow, details: Mapping[str, Detail | UnsetType]
    ) -> None:
        await self._audit.write(action, actor, sent.namespace, {"match": sent.match, **present(details)})
