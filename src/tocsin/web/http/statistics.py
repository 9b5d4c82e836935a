"""Statistics as clients ask for and see them: their structs, and how they are made."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.instants import format_instant
from tocsin.statistics.limits import StatisticsLimits
from tocsin.statistics.outages import Outage as KnownOutage
from tocsin.statistics.reading import Result
from tocsin.statistics.slots import Counts, Failures, split_place
from tocsin.web.http import constraints as limits
from tocsin.web.http.instants import optional_instant, read_instant
from tocsin.web.http.wire import Instant, RequestStruct, ResponseStruct, about

#: Stands for all namespaces that the key has access to.
ALL = "*"


class StatisticsResolution(StrEnum):
    """The length of a slot."""

    MINUTE = "minute"
    TEN_MINUTES = "tenMinutes"


class GetStatistics(RequestStruct):
    """Which slots to return."""

    namespace: Annotated[
        str | UnsetType,
        about("A namespace, or `*` for all that the key has access to. Default `*`.", "default"),
        limits.NAME_OR_EVERY,
    ] = UNSET
    from_: (
        Annotated[
            Instant,
            about(
                "The first slot is the one with this instant. Default: one hour before `to`, with tenMinutes one day."
            ),
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="from")
    to: Annotated[Instant, about("Only slots that begin before this instant. Default: now.")] | UnsetType = UNSET
    resolution: Annotated[
        StatisticsResolution | UnsetType,
        about("`minute` reaches back 24 hours, `tenMinutes` 30 days. Default `minute`.", StatisticsResolution.MINUTE),
    ] = UNSET


class StatisticsSlot(ResponseStruct):
    """What happened in a slot of time. Attempts are counted by their outcome, as `completed`, `rescheduled`, `retried`,
    `failed` or `superseded` (the timer was changed meanwhile)."""

    at: Annotated[Instant, about("The start of the slot.")]
    created: Annotated[int, about("Timers created or replaced.")]
    updated: Annotated[int, about("Timers updated.")]
    canceled: Annotated[int, about("Timers deleted while they were pending.")]
    attempts: Annotated[int, about("Attempts that ended.")]
    completed: Annotated[int, about("Attempts after which the timer was completed.")]
    rescheduled: Annotated[int, about("Attempts whose receiver moved the timer.")]
    retried: Annotated[int, about("Attempts that failed and were followed by another.")]
    failed: Annotated[int, about("Attempts after which the timer had failed.")]
    superseded: Annotated[int, about("Attempts whose result no longer counted.")]
    expired: Annotated[int, about("Timers that ended because their `expireAfter` had passed.")]
    late: Annotated[int, about("Attempts that began more than a second after their instant.")]
    lag_p50_ms: Annotated[float | None, about("Median of the lag, in ms; null without attempts.")]
    lag_p99_ms: Annotated[
        float | None, about("99th percentile of the lag, in ms; too high by at most a half. Null without attempts.")
    ]
    lag_max_ms: Annotated[float | None, about("The greatest lag, in ms; null without attempts.")]


class FailingDestination(ResponseStruct):
    """Failed attempts of one namespace at one path of a host."""

    namespace: str
    destination: Annotated[str, about("Scheme, host and port.", "https://shop.example:443")]
    path: Annotated[str, about("The path of the URL, without its query. Empty: several, counted together.", "/hooks")]
    failures: Annotated[int, about("Attempts that failed.")]
    exhausted: Annotated[int, about("Attempts after which the timer had failed, because it is not retried.")]
    last_error: Annotated[str, about("The latest error.", "HTTP_503")]
    last_at: Annotated[Instant, about("The start of the latest slot with a failure, to ten seconds.")]


class Outage(ResponseStruct):
    """An interval in which a node fired nothing. `late`, `lateMaxMs` and `createsRefused` are null for a key that is limited
    to namespaces or tenants, and while the interval lasts."""

    node: str
    from_: Annotated[Instant, about("When it began.")] = msgspec.field(name="from")
    reason: Annotated[
        str,
        about(
            "lease (the store did not answer in time), clock_skew, clock_jump, unwritten_results.",
            "lease",
        ),
    ]
    to: Annotated[Instant, about("When it ended; absent while it lasts.")] | UnsetType = UNSET
    late: Annotated[
        int | None, about("Attempts that were due before its end and began more than a second late because of it.")
    ] = None
    late_max_ms: Annotated[float | None, about("How late they were at most, in ms.")] = None
    creates_refused: Annotated[
        int | None,
        about(
            "Creates of timers and schedules that got an error of the server meanwhile: requests, and single timers of a "
            "batch."
        ),
    ] = None
    counting: Annotated[bool, about("Whether more late attempts may be counted.")] = False


class Statistics(ResponseStruct):
    """Slots in which something happened, the earliest first, and over all of them the failing destinations, those with the
    most failures first, and the outages, the latest first."""

    from_: Annotated[
        Instant, about("The start of the first slot; later than asked for if that is not kept any more.")
    ] = msgspec.field(name="from")
    to: Annotated[Instant, about("The end of the range.")]
    resolution: StatisticsResolution
    slots: list[StatisticsSlot]
    failing: list[FailingDestination]
    outages: list[Outage]


class Range(NamedTuple):
    """The wanted slots: from_us ≤ begin < to_us, each `width_us` long."""

    from_us: int
    to_us: int
    width_us: int
    resolution: StatisticsResolution


#: What a request gets that names no beginning.
_MINUTES_DEFAULT_US, _TEN_MINUTES_DEFAULT_US = 3_600_000_000, 86_400_000_000


def statistics_range(sent: GetStatistics, now_us: int, known: StatisticsLimits) -> Range:
    """The wanted slots. Raises InvalidInput."""
    errors: list[FieldError] = []
    from_us, to_us = read_instant("from", sent.from_, errors), read_instant("to", sent.to, errors)
    if errors:
        raise InvalidInput(*errors)
    minute = sent.resolution is not StatisticsResolution.TEN_MINUTES
    width_us, kept_us, default_us = (
        (known.minute_us, known.minutes_kept_us, _MINUTES_DEFAULT_US)
        if minute
        else (known.ten_minutes_us, known.kept_us, _TEN_MINUTES_DEFAULT_US)
    )
    to_us = now_us if to_us is None else min(to_us, now_us)
    earliest_us = (now_us - kept_us) // width_us * width_us
    from_us = max(to_us - default_us if from_us is None else from_us, earliest_us)
    resolution = StatisticsResolution.MINUTE if minute else StatisticsResolution.TEN_MINUTES
    return Range(from_us // width_us * width_us, to_us, width_us, resolution)


def statistics_answer(
    wanted: Range, found: Result, outages: Iterable[KnownOutage], places_max: int, *, limited: bool
) -> Statistics:
    """The response. `limited`: the key sees only some namespaces."""
    most = sorted(found.failing.items(), key=lambda item: -item[1].failures)[:places_max]
    return Statistics(
        from_=format_instant(wanted.from_us),
        to=format_instant(wanted.to_us),
        resolution=wanted.resolution,
        slots=[_slot(at, counts) for at, counts in found.counts.items()],
        failing=[_failing(place, failures) for place, failures in most],
        outages=[_outage(each, limited=limited) for each in outages],
    )


def _slot(at: int, counts: Counts) -> StatisticsSlot:
    lag = counts.lag
    return StatisticsSlot(
        at=format_instant(at),
        created=counts.created,
        updated=counts.updated,
        canceled=counts.canceled,
        attempts=counts.fires,
        completed=counts.done,
        rescheduled=counts.rescheduled,
        retried=counts.retried,
        failed=counts.failed,
        superseded=counts.superseded,
        expired=counts.expired,
        late=counts.late,
        lag_p50_ms=lag.percentile_ms(0.5),
        lag_p99_ms=lag.percentile_ms(0.99),
        lag_max_ms=lag.max_ms if lag.counts else None,
    )


def _failing(place: str, failures: Failures) -> FailingDestination:
    return FailingDestination(
        *split_place(place),
        failures=failures.failures,
        exhausted=failures.exhausted,
        last_error=failures.last_error,
        last_at=format_instant(failures.last_at),
    )


def _outage(outage: KnownOutage, *, limited: bool) -> Outage:
    answer = Outage(
        node=outage.node,
        from_=format_instant(outage.from_us),
        reason=outage.reason,
        to=optional_instant(outage.to_us),
        counting=outage.counting,
    )
    if outage.to_us is not None and not limited:
        answer.late, answer.late_max_ms = outage.late, outage.late_max_us / 1_000
        answer.creates_refused = outage.creates_refused
    return answer
