"""What needs attention on the page Now: rows with one action each, the most urgent first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from tocsin.model.explanation import WaitsFor
from tocsin.model.failure import destination_of, short_error
from tocsin.model.failure_groups import GroupKey
from tocsin.model.instants import format_instant
from tocsin.ports.destinations import DestinationReport
from tocsin.statistics.counting import PATH_CHARS_MAX
from tocsin.statistics.outages import Outage
from tocsin.statistics.slots import OTHER_DESTINATIONS, OTHER_NAMESPACES, Failures, Slot, split_place
from tocsin.timers.engine.breaker import BreakerState
from tocsin.web.pages.counts import BoundedCount
from tocsin.web.pages.destinations import waiting_filters
from tocsin.web.pages.outages import RUNBOOK, was, why
from tocsin.web.pages.overview.alarms import Alarm
from tocsin.web.pages.overview.band import Link, Part, spark
from tocsin.web.pages.overview.concerns import Concerns
from tocsin.web.pages.overview.nodes import Pause
from tocsin.web.pages.overview.paused import PausedDestination, PausedFlow, PausedNamespace, PausedSchedule
from tocsin.web.pages.overview.waiting import HeldSchedule, Wait, summed
from tocsin.web.pages.presentation import at_most, count, failures_path, host_of, path_below, span
from tocsin.web.pages.schedules.presentation import schedule_path

_MINUTE_US = 60_000_000
#: Groups of failures that are shown; the list of failed timers has all.
_GROUPS_MAX = 8
#: Minutes of the small chart of a group.
_SPARK_MINUTES = 24
_CALLS_MAX, _NAMESPACES_MAX, _DESTINATIONS_MAX, _SCHEDULES_MAX, _MONITORS_MAX, _FLOWS_MAX = 3, 5, 5, 5, 5, 5
_OUTAGES_MAX, _LATE_MAX = 3, 3
_UNOWNED_RUNBOOK = "runbooks/TocsinShardsWithoutOwner"
#: An outage that delayed nothing and was shorter than this needs no attention.
_BRIEF_US = 1_000_000
#: The rows of what keeps timers other than a destination.
_KEPT_BY = {
    WaitsFor.NODE: ("Timers wait for their node", "It has no free slot for them, or has not loaded them yet."),
    WaitsFor.OWNER: ("Timers wait for a node that owns their shard", "The next owner fires them; nothing is lost."),
    WaitsFor.EGRESS: (
        "Timers are suspended: egress.allow",
        "Their URLs lead to addresses that this server does not call.",
    ),
    WaitsFor.CREDENTIAL: (
        "Timers are suspended: credentials",
        "Their credentials can't be sent to their destinations.",
    ),
    WaitsFor.SECRET: ("Timers are suspended: secrets", "The keys under which their secrets are encrypted are missing."),
    WaitsFor.CREATE: ("Timers are suspended: records", "Their stored records can't be read; create them again."),
}


@dataclass(frozen=True, slots=True)
class Incident:
    """A row: what, where, how many, and one action: a link, or the form of a path with these fields. `at` is an instant
    (microseconds) that the words end with, as a relative time, in the past unless it is `ahead`; that of failures is the
    begin of the slot that has them. `until`: that of a breaker's next probe; `during`: begin and end of the time that the
    words are about."""

    tone: str
    title: str
    words: str
    number: str = ""
    unit: str = ""
    action: str = ""
    link: str = ""
    form: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    at: int | None = None
    ahead: bool = False
    until: int | None = None
    during: tuple[int, int] | None = None
    chart: Sequence[Part] = field(default_factory=tuple)


class Failing(NamedTuple):
    """Failures by place, and how many of a place's are still listed, if that is known."""

    places: Mapping[str, Failures]
    left: Callable[[str], int | None]


class Reader(NamedTuple):
    """Who reads the page: the namespaces of the scope, and those of them in which the reader may change something."""

    wanted: Callable[[str], bool]
    may_admin: bool
    may_write: Callable[[str], bool]


class Reports(NamedTuple):
    """What was known of destinations at an instant (microseconds)."""

    by_name: Mapping[str, DestinationReport]
    read_at_us: int


def incidents(
    concerns: Concerns,
    *,
    pauses: Sequence[Pause],
    unowned: int,
    outages: Sequence[Outage],
    slots: Sequence[Slot],
    started_us: int | None,
    failing: Failing,
    calls: Failing,
    reports: Reports | None,
    reader: Reader,
    database: str,
    docs: str,
    link: Link,
    now_us: int,
) -> list[Incident]:
    """All rows. `failing`, `calls`: failures of timers and of service calls; `started_us`: since when the node that runs
    longest runs; `unowned`: shards that no node owns; `database` is the store's name and place; `reports`: None if they are
    not the reader's business."""
    waits, more = concerns.waits, concerns.more_waits
    rows = [_pause(each, database, docs, now_us) for each in pauses]
    if unowned:
        words = "Their timers wait, and their monitors are not watched, until a node owns them. Nothing is lost."
        number = "shard" if unowned == 1 else "shards"
        title = "A shard has no owner" if unowned == 1 else "Shards have no owner"
        rows.append(Incident("late", title, words, count(unowned), number, "Runbook", f"{docs}{_UNOWNED_RUNBOOK}"))
    rows += _waits(waits, link, more=more)
    rows += _held(concerns.held, link, more=concerns.more_held)
    kept = summed(_unpaused(waits, concerns.destinations), lambda each: (each.destination, each.waits_for))
    rows += [_kept(each, reports, link, more=more) for each in kept[:_DESTINATIONS_MAX]]
    if len(kept) > _DESTINATIONS_MAX:
        words, number = "Timers to other destinations wait", count(len(kept) - _DESTINATIONS_MAX)
        where = link({"view": "waiting"}) if reports is None else "/destinations"
        rows.append(Incident("late", words, "The list has them.", number, "more", "Show", where))
    rows += _groups(slots, failing, reader.wanted, now_us, link)
    rows += _calls(calls)
    rows += _monitors(concerns.alarms, concerns.more_alarms, link)
    rows += _unwatched(concerns.unwatched, concerns.more_alarms, link)
    rows += [_namespace(each, reader.may_admin, link) for each in concerns.namespaces[:_NAMESPACES_MAX]]
    rows += [_destination(each, reader.may_admin, waits) for each in concerns.destinations[:_DESTINATIONS_MAX]]
    rows += [_flow(each, reader.may_admin) for each in concerns.flows[:_FLOWS_MAX]]
    rows += _schedules(concerns.schedules, concerns.more_schedules, reader.may_write, link)
    over = ended(outages)
    rows += _late(slots, over, started_us, reader.wanted, now_us, link)
    return [*rows, *(_outage(each, database, now_us, link) for each in over[:_OUTAGES_MAX])]


def _pause(pause: Pause, database: str, docs: str, now_us: int) -> Incident:
    lasts = "" if pause.since_us is None else span(max(now_us - pause.since_us, 0))
    words = f"{pause.node} fires nothing. What comes due waits, and nothing is lost."
    if pause.reason == "lease":
        words += " Creates and changes fail until it answers."
    return Incident("failed", why(pause.reason, database), words, lasts, "so far", "Runbook", f"{docs}{RUNBOOK}")


def _waits(waits: Sequence[Wait], link: Link, *, more: bool) -> list[Incident]:
    """Rows of what keeps timers other than a destination."""
    rows = []
    for each in summed([each for each in waits if each.waits_for in _KEPT_BY], lambda each: each.waits_for):
        title, meaning = _KEPT_BY[each.waits_for]
        names = {wait.namespace for wait in waits if wait.waits_for is each.waits_for}
        of = {"namespace": each.namespace} if len(names) == 1 else {}
        where = each.namespace if len(names) == 1 else f"{len(names)} namespaces"
        rows.append(
            Incident(
                "late",
                title,
                f"In {where}. {meaning} The first was due",
                BoundedCount(each.number, more).short,
                "waiting",
                "Show",
                link({"view": "waiting", **of}),
                at=each.since,
            )
        )
    return rows


def _held(schedules: Sequence[HeldSchedule], link: Link, *, more: bool) -> list[Incident]:
    """Rows of what keeps schedules, like those of timers; the page of a single one has its reason."""
    rows = []
    for waits_for in dict.fromkeys(each.waits_for for each in schedules):
        held = [each for each in schedules if each.waits_for is waits_for]
        first, names = min(held, key=lambda each: each.since), {each.namespace for each in held}
        title, meaning = _KEPT_BY[waits_for]
        number = BoundedCount(len(held), more)
        everything = (
            link({"namespace": first.namespace} if len(names) == 1 else {})
            .replace("/timers", "/schedules", 1)
            .removesuffix("?")
        )
        rows.append(
            Incident(
                "late",
                title.replace("Timers", "Schedules"),
                f"In {first.namespace if len(names) == 1 else f'{len(names)} namespaces'}. {meaning} The first was due",
                number.short,
                "waiting",
                "Show",
                schedule_path(first.namespace, first.schedule_id) if number == BoundedCount(1) else everything,
                at=first.since,
            )
        )
    return rows


def _unpaused(waits: Sequence[Wait], paused: Sequence[PausedDestination]) -> list[Wait]:
    """What waits at destinations that are not paused."""
    names = {each.name for each in paused}
    return [each for each in waits if each.destination and each.destination not in names]


def _kept(wait: Wait, reports: Reports | None, link: Link, *, more: bool) -> Incident:
    """The row of a destination at which timers wait."""
    host, report = host_of(wait.destination), None if reports is None else reports.by_name.get(wait.destination)
    words, until = "It answers too slowly, or nearly all requests to it failed.", None
    if report is not None and report.breaker == BreakerState.CLOSED:
        words = f"{count(report.in_flight)} of at most {count(report.limit)} requests are in flight to it."
    elif report is not None:
        words = f"Nearly all requests to it failed{f', the last one with {report.last_error}' if report.last_error else ''}."
        if reports is not None and report.breaker == BreakerState.OPEN:
            until = reports.read_at_us + report.wait_us
    if wait.waits_for is WaitsFor.NAMESPACE:
        words = f"{'' if report is None else f'{words} '}Their namespace has its share of the slots in use."
    return Incident(
        "late",
        f"Timers to {host} wait",
        f"{words} The first was due",
        BoundedCount(wait.number, more).short,
        "waiting",
        "Show",
        link(waiting_filters(wait.destination)) if reports is None else "/destinations",
        at=wait.since,
        until=until,
    )


def _groups(
    slots: Sequence[Slot], failing: Failing, wanted: Callable[[str], bool], now_us: int, link: Link
) -> list[Incident]:
    """Failures by namespace, destination and path; the most first. A row's error is the last one there; its link leads to the
    group of failures with this error, or to the pending timers with it."""
    shown = [(place, failures) for place, failures in failing.places.items() if wanted(split_place(place)[0])]
    shown.sort(key=lambda each: (-each[1].exhausted, -each[1].failures))
    rows = []
    for place, failures in shown[:_GROUPS_MAX]:
        namespace, destination, path = split_place(place)
        destination = destination.partition("://")[2] or destination
        error, _, detail = failures.last_error.partition(":")
        of = {"view": "failed"} if failures.exhausted else {"view": "pending", "error": error}
        if namespace != OTHER_NAMESPACES:
            of["namespace"] = namespace
        if destination != OTHER_DESTINATIONS:
            of["destination"] = f"{destination}{path}"
        where = link(of)
        if failures.exhausted and "destination" in of and "namespace" in of and len(path) < PATH_CHARS_MAX:
            place_called = destination_of(f"{split_place(place)[1]}{path}")
            where = failures_path(GroupKey(namespace, place_called, short_error(failures.last_error), None))
        begins = now_us - now_us % _MINUTE_US
        by_minute = {slot.begins_us: slot.failing.get(place) for slot in slots}
        chart = [by_minute.get(begins - i * _MINUTE_US) for i in range(_SPARK_MINUTES)][::-1]
        number, unit = _number(failures, failing.left(place), "attempt")
        rows.append(
            Incident(
                "failed",
                f"{error.replace('_', ' ')} · {path or destination}",
                f"{namespace}, {destination}.{f' {detail.strip()}.' if detail.strip() else ''} The last one at most",
                count(number),
                unit,
                "Show",
                where,
                at=failures.last_at,
                chart=spark([each.failures if each else 0 for each in chart]),
            )
        )
    return rows


def _number(failures: Failures, left: int | None, attempt: str) -> tuple[int, str]:
    """How many failed, and what they are."""
    if not failures.exhausted:
        return failures.failures, f"{attempt}{'' if failures.failures == 1 else 's'} failed, retried"
    if left is not None and left < failures.exhausted:
        return left, f"left of {count(failures.exhausted)} failed this hour"
    return failures.exhausted, "failed this hour"


def _calls(calls: Failing) -> list[Incident]:
    """Failures of service calls by destination; the most first."""
    most = sorted(calls.places.items(), key=lambda each: (-each[1].exhausted, -each[1].failures))
    rows = []
    for place, failures in most[:_CALLS_MAX]:
        destination = split_place(place)[1]
        error, _, detail = failures.last_error.partition(":")
        number, unit = _number(failures, calls.left(place), "execution")
        rows.append(
            Incident(
                "failed",
                f"{error.replace('_', ' ')} · service calls to {destination.partition('://')[2] or destination}",
                f"{f'{detail.strip()}. ' if detail.strip() else ''}The last one at most",
                count(number),
                unit,
                "Show",
                "/failures" if failures.exhausted else "/calls?view=retrying",
                at=failures.last_at,
            )
        )
    return rows


def _monitors(alarms: Sequence[Alarm], uncounted: bool, link: Link) -> list[Incident]:
    """Monitors that are late or have failed, the latest first; one row leads to those that have none."""
    latest = sorted(alarms, key=lambda each: -each.since)
    rows = [
        Incident(
            "late" if each.late else "failed",
            f"The monitor {each.monitor_id} {'is late' if each.late else 'has failed'}",
            f"In {each.namespace}. {'It became late' if each.late else 'It failed'}",
            action="Show",
            link=path_below("/monitors", each.namespace, each.monitor_id),
            at=each.since,
        )
        for each in latest[:_MONITORS_MAX]
    ]
    if more := len(latest) - len(rows):
        number = BoundedCount(more, uncounted).short
        words = "Other monitors are late or have failed" if more > 1 else "Another monitor is late or has failed"
        everything = link({}).replace("/timers", "/monitors", 1).removesuffix("?")
        rows.append(Incident("late", words, "The list of monitors has them.", number, "more", "Show", everything))
    return rows


def _unwatched(alarms: Sequence[Alarm], uncounted: bool, link: Link) -> list[Incident]:
    """The row of monitors that no node looks at, with the first of them."""
    if not alarms:
        return []
    first, number = min(alarms, key=lambda each: each.since), BoundedCount(len(alarms), uncounted)
    alone = number == BoundedCount(1)
    everything = link({}).replace("/timers", "/monitors", 1).removesuffix("?")
    return [
        Incident(
            "late",
            f"The monitor {first.monitor_id} is not watched" if alone else "Monitors are not watched",
            "No node looks at them, so they may be late, and nobody is notified. The first should have been looked at",
            "" if alone else number.short,
            "" if alone else "monitors",
            "Show",
            path_below("/monitors", first.namespace, first.monitor_id) if alone else everything,
            at=first.since,
        )
    ]


def _namespace(paused: PausedNamespace, may_admin: bool, link: Link) -> Incident:
    return Incident(
        "paused",
        f"{paused.name} is paused",
        "Its timers fire when the namespace is resumed.",
        paused.waiting.short,
        "timer overdue" if paused.waiting.number == 1 else "timers overdue",
        "Resume" if may_admin else "Show",
        link({"namespace": paused.name}),
        form="/namespaces/change" if may_admin else "",
        fields={"name": paused.name, "paused": "no"},
    )


def _destination(paused: PausedDestination, may_admin: bool, waits: Sequence[Wait]) -> Incident:
    waiting = [each for each in waits if each.destination == paused.name]
    first = " The first was due" if waiting else ""
    return Incident(
        "paused",
        f"{host_of(paused.name)} is paused",
        f"Timers fire there when the destination is resumed.{first}",
        count(max(paused.waiting, sum(each.number for each in waiting))),
        "waiting",
        "Resume" if may_admin else "Show",
        "/destinations",
        form="/destinations/resume" if may_admin else "",
        fields={"destination": paused.name},
        at=min((each.since for each in waiting), default=None),
    )


def _flow(paused: PausedFlow, may_admin: bool) -> Incident:
    resumed = "Timers that it limits fire when it is resumed." if paused.until is None else "It is resumed"
    return Incident(
        "paused",
        f"The flow {paused.match} is paused",
        f"In {paused.namespace}. {resumed}",
        action="Resume" if may_admin else "Show",
        link=f"/flows?{urlencode({'namespace': paused.namespace})}",
        form="/flows/resume" if may_admin else "",
        fields={"namespace": paused.namespace, "match": paused.match},
        at=paused.until,
        ahead=True,
    )


def _schedules(
    paused: Sequence[PausedSchedule], uncounted: bool, may_write: Callable[[str], bool], link: Link
) -> list[Incident]:
    """Schedules that paused themselves, the latest first; one row leads to those that have none."""
    latest = sorted(paused, key=lambda each: -each.ended_at)
    rows = [
        Incident(
            "paused",
            f"{each.schedule_id} has paused itself",
            f"In {each.namespace}. It fires nothing until it is resumed. "
            f"{'It paused itself' if each.at_once else 'Its last occurrence ended'}",
            count(each.failures) if each.failures else "",
            "failure in a row" if each.failures == 1 else "failures in a row" if each.failures else "",
            "Resume" if may_write(each.namespace) else "Show",
            schedule_path(each.namespace, each.schedule_id),
            form="/schedules/resume" if may_write(each.namespace) else "",
            fields={"namespace": each.namespace, "id": each.schedule_id},
            at=each.ended_at,
        )
        for each in latest[:_SCHEDULES_MAX]
    ]
    if more := len(latest) - len(rows):
        number = BoundedCount(more, uncounted).short
        words = "Other schedules have paused themselves" if more > 1 else "Another schedule has paused itself"
        everything = link({"view": "paused"}).replace("/timers", "/schedules", 1)
        rows.append(Incident("paused", words, "They are among the paused ones.", number, "more", "Show", everything))
    return rows


def ended(outages: Sequence[Outage]) -> list[Outage]:
    """The outages that are over, without brief ones that delayed nothing; those of several nodes at the same time and for the
    same reason as one. `outages`: the latest first."""
    found: list[Outage] = []
    for each in outages:
        if each.to_us is None:
            continue
        last = found[-1] if found else None
        if last is None or last.to_us is None or each.reason != last.reason or each.to_us <= last.from_us:
            found.append(msgspec.structs.replace(each))
            continue
        last.node = f"{each.node}, {last.node}"
        last.from_us, last.to_us = min(last.from_us, each.from_us), max(last.to_us, each.to_us)
        last.late += each.late
        last.late_max_us = max(last.late_max_us, each.late_max_us)
        last.creates_refused += each.creates_refused
        last.counting = last.counting or each.counting
    return [each for each in found if each.late or each.creates_refused or _lasted_us(each) >= _BRIEF_US]


def _lasted_us(outage: Outage) -> int:
    return (outage.to_us or outage.from_us) - outage.from_us


def _outage(outage: Outage, database: str, now_us: int, link: Link) -> Incident:
    assert outage.to_us is not None
    refused = f" {count(outage.creates_refused)} creates were refused." if outage.creates_refused else ""
    return Incident(
        "late",
        was(outage.reason, database),
        f"{outage.node} fired nothing for {span(_lasted_us(outage))}. None fired early, none was lost.{refused} It ended",
        count(outage.late),
        f"{_late_by(outage.late, outage.late_max_us)}{', so far' if outage.counting else ''}",
        "Show",
        link({"view": "all", "from": format_instant(outage.from_us), "to": format_instant(outage.to_us)}),
        # Another node's clock may be ahead.
        at=min(outage.to_us, now_us),
    )


def _late_by(late: int, most_us: float) -> str:
    return f"late by at most {at_most(most_us)}" if late else "late"


@dataclass(slots=True)
class _LateMinutes:
    """Minutes in a row in each of which attempts began late, and how many did and by how much at most."""

    from_us: int
    to_us: int
    late: int = 0
    late_max_us: float = 0


def _late(
    slots: Sequence[Slot],
    outages: Sequence[Outage],
    started_us: int | None,
    wanted: Callable[[str], bool],
    now_us: int,
    link: Link,
) -> list[Incident]:
    """Rows of minutes in which more began late than outages explain, the latest first: while no node ran, nobody noted
    that."""
    runs: list[_LateMinutes] = []
    for slot in slots:
        counts = slot.counts(wanted)
        if not counts.late:
            continue
        if not runs or slot.begins_us > runs[-1].to_us:
            runs.append(_LateMinutes(slot.begins_us, slot.begins_us))
        run = runs[-1]
        run.to_us = slot.begins_us + _MINUTE_US
        run.late += counts.late
        run.late_max_us = max(run.late_max_us, counts.lag.max_ms * 1_000)
    rows = []
    for run in runs[::-1]:
        late = run.late - sum(
            each.late for each in outages if run.from_us - _MINUTE_US <= (each.to_us or 0) < run.to_us
        )
        if late <= 0:
            continue
        cause = "Their nodes or destinations were busy, or a node was killed."
        if started_us is not None and run.from_us - _MINUTE_US <= started_us < run.to_us:
            cause = "No node that runs now ran before: what had come due waited."
        rows.append(
            Incident(
                "late",
                "Timers fired late",
                f"{cause} None fired early, none was lost.",
                count(late),
                _late_by(late, run.late_max_us),
                "Show",
                link({"view": "all", "from": format_instant(run.from_us), "to": format_instant(run.to_us)}),
                during=(run.from_us, min(run.to_us, now_us)),
            )
        )
    return rows[:_LATE_MAX]
