"""The verdict of the page Now: whether timers fire on time, what is wrong now, and what was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tocsin.model.explanation import WaitsFor
from tocsin.statistics.slots import LATE_US, CallCounts, Counts
from tocsin.web.pages.counts import BoundedCount
from tocsin.web.pages.outages import paused_words
from tocsin.web.pages.overview.concerns import Concerns
from tocsin.web.pages.overview.nodes import Present
from tocsin.web.pages.overview.paused import PausedDestination
from tocsin.web.pages.overview.waiting import HELD_FOR, LATE_FOR, Wait, summed
from tocsin.web.pages.presentation import at_most, count, host_of, milliseconds, span

#: What is stated where something may wait of which nothing is known.
_UNREAD = " Not all that is due was looked at, so it is not known whether more waits."


@dataclass(frozen=True, slots=True)
class Verdict:
    """One sentence, and what it is based on. `tone`: calm, busy or alarm."""

    title: str
    text: str
    tone: str


def verdict(
    concerns: Concerns,
    *,
    minute: Counts,
    hour: Counts,
    calls: CallCounts,
    present: Present,
    due: BoundedCount,
    failing: int,
    others: Sequence[str],
    database: str,
    scoped: bool = False,
    now_us: int = 0,
) -> Verdict:
    """The verdict on the scope's last minute, hour and calls of the last minute. `due`: timers of the next hour; `failing`:
    how many destinations failed in the last minutes; `others`: why this node is not ready, apart from a pause; `scoped`: the
    scope is one namespace, and what is overdue may be in another one."""
    if present.pauses:
        return _paused(present, others, database)
    if others:
        return Verdict(f"Degraded: {'; '.join(others)}.", _past(hour), "alarm")
    past, waits = _past(hour), concerns.waits
    kept = at_destinations(waits, concerns.destinations)
    late_since = min((each.since for each in waits if each.waits_for in LATE_FOR), default=None)
    held, unread = any(each.waits_for in HELD_FOR for each in waits) or concerns.held, concerns.unread
    known = present.overdue_s is not None and not (held or unread or present.unowned or present.silent)
    overdue_us = round((present.overdue_s or 0) * 1e6)
    if late_since is not None or overdue_us > LATE_US:
        where = ", here or in another namespace" if scoped and late_since is None else ""
        behind = max(overdue_us, 0 if late_since is None else now_us - late_since)
        title = f"Timers are late{where}: the oldest due one has waited {span(behind)}."
        return Verdict(title, f"{_rate(minute)}. {past}", "alarm")
    troubles = _troubles(concerns, minute, calls, failing, present)
    past += _UNREAD if unread else ""
    if kept:
        first = _kept(kept, minute, now_us, known=known, more=concerns.more_waits)
        return Verdict(f"{first}. {troubles}".strip(), past, "busy")
    if not minute.fires and not troubles and not unread:
        soon = _soon(due, known=known)
        return Verdict("Quiet: nothing fired in the last minute.", f"{soon}{past}", "calm")
    first = _timely(minute, hour, known=known, alone=not troubles)
    title = f"{first}. {troubles}".strip()
    return Verdict(title, past, "busy" if troubles or minute.late or unread else "calm")


def overdue_elsewhere_s(overdue_s: float | None, waits: Sequence[Wait], now_us: int) -> float | None:
    """How long the oldest due timer has waited, but 0 if that is one that waits for its destination. `waits` are all of all
    namespaces."""
    since = min((each.since for each in waits if each.waits_for is WaitsFor.DESTINATION), default=None)
    if overdue_s is None or since is None or overdue_s * 1e6 > now_us - since + LATE_US:
        return overdue_s
    return 0.0


def at_destinations(waits: Sequence[Wait], paused: Sequence[PausedDestination]) -> list[Wait]:
    """What waits for destinations that are not paused, summed by destination."""
    names = {each.name for each in paused}
    found = [each for each in waits if each.waits_for is WaitsFor.DESTINATION and each.destination not in names]
    return summed(found, lambda each: each.destination)


def _kept(kept: Sequence[Wait], minute: Counts, now_us: int, *, known: bool, more: bool) -> str:
    """That timers wait for these destinations, and what is known of all others. `more`: further ones may wait."""
    number = BoundedCount(sum(each.number for each in kept), more)
    where = host_of(kept[0].destination) if len(kept) == 1 else f"{len(kept)} destinations"
    wait = "waits" if str(number) == "1 timer" else "wait, the oldest"
    found = f"{number} to {where} {wait} for {span(now_us - min(each.since for each in kept))}"
    if not known or minute.late:
        return found
    return f"{found}; {'all others fire on time' if minute.fires else 'nothing else is overdue'}"


def _soon(due: BoundedCount, *, known: bool) -> str:
    """What is due within the hour, as a sentence; `known`: that nothing is overdue. Empty if neither is."""
    words = f"{due.short} {'timer is' if due.short == '1' else 'timers are'} due in the next 60 minutes"
    if not due.number:
        words = "" if due.more else "Apart from schedules, no timer is due in the next 60 minutes"
    if known:
        words = f"{words}, none is overdue" if words else "Nothing is overdue"
    return f"{words}. " if words else ""


def _timely(minute: Counts, hour: Counts, *, known: bool, alone: bool) -> str:
    """Whether what fires does so on time. `known`: nothing is overdue, otherwise that is unknown. `alone`: nothing else is
    wrong."""
    if minute.late:
        return f"{count(minute.late)} of {_rate(minute)} began late, by up to {at_most(minute.lag.max_ms * 1_000)}"
    if not minute.fires:
        return "Nothing is overdue" if known else "Nothing fired in the last minute"
    if not known:
        return f"{_rate(minute)}, none of them late"
    if hour.late:
        return "Timers fire on time again"
    return "Everything fires on time" if alone else "Timers fire on time"


def _paused(present: Present, others: Sequence[str], database: str) -> Verdict:
    title, meaning = paused_words(present.pauses, present.nodes, database)
    return Verdict(title, " ".join([meaning, *(f"Also: {each}." for each in others)]), "alarm")


def _troubles(concerns: Concerns, minute: Counts, calls: CallCounts, failing: int, present: Present) -> str:
    """What is wrong although nothing is overdue, as a sentence; empty if nothing is."""
    namespaces, destinations, flows = concerns.namespaces, concerns.destinations, concerns.flows
    schedules, alarms = BoundedCount(len(concerns.schedules), concerns.more_schedules), concerns.alarms
    silent, unowned = present.silent, present.unowned
    found = []
    if failing:
        found.append(f"{'one destination' if failing == 1 else f'{failing} destinations'} failed in the last 3 minutes")
    elif minute.failed:
        found.append(f"{count(minute.failed)} failed in the last minute")
    if calls.failed:
        found.append(
            f"{count(calls.failed)} service {'call' if calls.failed == 1 else 'calls'} failed in the last minute"
        )
    if namespaces:
        found.append(
            f"the namespace {namespaces[0].name} is paused"
            if len(namespaces) == 1
            else f"{len(namespaces)} namespaces are paused"
        )
    if destinations:
        found.append(
            f"the destination {host_of(destinations[0].name)} is paused"
            if len(destinations) == 1
            else f"{len(destinations)} destinations are paused"
        )
    if flows:
        found.append(f"the flow {flows[0].match} is paused" if len(flows) == 1 else f"{len(flows)} flows are paused")
    if schedules.number:
        alone = schedules == BoundedCount(1)
        found.append(
            "a schedule has paused itself" if alone else f"{_at_least(schedules)} schedules have paused themselves"
        )
    if len(alarms) == 1 and not concerns.more_alarms:
        found.append(f"the monitor {alarms[0].monitor_id} {'is late' if alarms[0].late else 'has failed'}")
    elif alarms:
        found.append(f"{_at_least(BoundedCount(len(alarms), concerns.more_alarms))} monitors are late or have failed")
    if unwatched := len(concerns.unwatched):
        number = BoundedCount(unwatched, concerns.more_alarms)
        found.append(f"{_at_least(number)} {'monitor is' if number == BoundedCount(1) else 'monitors are'} not watched")
    if held := sum(each.number for each in concerns.waits if each.waits_for in HELD_FOR):
        number = BoundedCount(held, concerns.more_waits)
        found.append(f"{_at_least(number)} {'timer is' if number == BoundedCount(1) else 'timers are'} suspended")
    suspended = BoundedCount(len(concerns.held), concerns.more_held)
    if suspended.number:
        alone = suspended == BoundedCount(1)
        found.append("a schedule is suspended" if alone else f"{_at_least(suspended)} schedules are suspended")
    if unowned:
        found.append("one shard has no owner" if unowned == 1 else f"{count(unowned)} shards have no owner")
    if silent:
        found.append(
            f"the node {silent[0]} does not respond" if len(silent) == 1 else f"{len(silent)} nodes do not respond"
        )
    if not found:
        return ""
    words = _listed(found)
    return f"{words[:1].upper()}{words[1:]}."


def _at_least(number: BoundedCount) -> str:
    return f"{count(number.number)}{' or more' if number.more else ''}"


def _listed(found: Sequence[str]) -> str:
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])}, and {found[-1]}"


def calm(
    *,
    failed: bool,
    retried: bool,
    left: int | None,
    schedules: bool,
    monitors: bool,
    paused: bool,
    outages: bool,
    brief: bool,
    whole: bool,
    unread: bool = False,
) -> str:
    """What is stated where nothing needs attention. `failed`, `retried`: whether something failed, or was tried again, in the
    last hour; `left`: how many failures are still listed, None if that is unknown; `schedules`, `paused`: whether it is known
    which are paused; `monitors`: whether it is known which are late or have failed; `outages`: whether it is known which
    there were; `brief`: whether there were some that delayed nothing; `whole`: whether the scope is the whole service;
    `unread`: whether timers or schedules may wait that were not looked at."""
    found = []
    if not failed and not left:
        found.append(
            "nothing exhausted its attempts in the last hour" if retried else "nothing failed in the last hour"
        )
    elif left == 0:
        found.append("no failure of the last hour is left")
    if schedules:
        found.append("no schedule has paused itself")
    if monitors:
        found.append("no monitor is late or has failed")
    if paused:
        found.append("no namespace, destination or flow is paused" if whole else "no namespace or flow is paused")
    if whole and outages:
        found.append("no outage delayed a timer" if brief else "no outage was seen")
    first = "As far as is known, nothing needs attention" if unread else "Nothing needs attention"
    return f"{first}: {_listed(found)}." if found else f"{first}."


def _rate(minute: Counts) -> str:
    return f"{count(minute.fires)} {'attempt' if minute.fires == 1 else 'attempts'} in the last minute"


def _past(hour: Counts) -> str:
    """What happened in the last hour."""
    if not hour.fires:
        return "Nothing fired in the last 60 minutes."
    made = f"{count(hour.fires)} {'attempt' if hour.fires == 1 else 'attempts'} in the last 60 minutes"
    if hour.late:
        return f"{made}, {count(hour.late)} of them late, by up to {at_most(hour.lag.max_ms * 1_000)}."
    if not hour.lag.counts:
        # Of what was fired by hand there is no lag.
        return f"{made}."
    slowest = milliseconds(hour.lag.max_ms * 1_000).replace(" ", "\u00a0")
    return f"{made}, {'' if hour.fires == 1 else 'each '}within {slowest} of its due time."
