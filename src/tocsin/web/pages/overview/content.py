"""The verdict of the page Now: whether timers fire on time, what is wrong now, and what was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tocsin.statistics.outages import Outage
from tocsin.statistics.slots import CallCounts, Counts
from tocsin.web.pages.counts import BoundedCount
from tocsin.web.pages.overview.incidents import was, why
from tocsin.web.pages.overview.nodes import Present
from tocsin.web.pages.overview.paused import PausedNamespace
from tocsin.web.pages.presentation import count, milliseconds, span

#: Timers overdue by more than this are reported; shorter delays are normal.
_OVERDUE_S = 1.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """One sentence, and what it is based on. `tone`: calm, busy or alarm."""

    title: str
    text: str
    tone: str


def verdict(
    *,
    minute: Counts,
    hour: Counts,
    calls: CallCounts,
    present: Present,
    due: BoundedCount,
    failing: int,
    paused: Sequence[PausedNamespace],
    others: Sequence[str],
    outages: Sequence[Outage],
    database: str,
) -> Verdict:
    """The verdict on the scope's last minute, hour and calls of the last minute. `due`: timers of the next
    hour; `failing`: places at which something failed in the last minutes; `others`: why this node is not ready, apart from
    a pause; `outages`: those of the last hour."""
    if present.pauses:
        return _paused(present, others, database)
    if others:
        return Verdict(f"Degraded: {'; '.join(others)}.", _past(hour, outages, database), "alarm")
    if present.overdue_s > _OVERDUE_S:
        behind = span(round(present.overdue_s * 1e6), 1)
        title = f"Timers are late: the oldest due one has waited {behind}."
        return Verdict(title, f"{_rate(minute)}. {_past(hour, outages, database)}".strip(), "alarm")
    troubles = _troubles(minute, failing, paused, present.silent, calls)
    if not minute.fires and not troubles:
        soon = f"{due.short} {'timer is' if due.short == '1' else 'timers are'} due in the next 60 minutes, none is overdue"
        if not due.number:
            soon = "Nothing is overdue" if due.more else "No timer is due in the next 60 minutes, none is overdue"
        return Verdict(
            "Quiet: nothing fired in the last minute.",
            f"{soon}. {_past(hour, outages, database)}".strip(),
            "calm",
        )
    again = " again" if hour.late and not minute.late else ""
    first = "Nothing is overdue" if not minute.fires else f"Timers fire on time{again}"
    if minute.late:
        first = (
            f"{count(minute.late)} of {_rate(minute)} came late, by up to {span(round(minute.lag.max_ms * 1_000), 1)}"
        )
    title = f"{first}. {troubles}" if troubles else f"{first}." if again or minute.late else "Everything fires on time."
    return Verdict(title, _past(hour, outages, database), "busy" if troubles or minute.late else "calm")


def _paused(present: Present, others: Sequence[str], database: str) -> Verdict:
    reasons = list(dict.fromkeys(why(pause.reason, database) for pause in present.pauses))
    if len(present.pauses) == present.nodes:
        title = f"{'; '.join(reasons)}. Nothing fires."
        meaning = "What comes due waits and fires afterwards; nothing is lost."
    else:
        names = ", ".join(pause.node for pause in present.pauses)
        title = f"{'; '.join(reasons)}: {names} fires nothing."
        meaning = "What comes due there waits until other nodes take over; nothing is lost."
    if any(pause.reason == "lease" for pause in present.pauses):
        meaning += " Creates and changes fail until the database answers."
    return Verdict(title, " ".join([meaning, *(f"Also: {each}." for each in others)]), "alarm")


def _troubles(
    minute: Counts, failing: int, paused: Sequence[PausedNamespace], silent: Sequence[str], calls: CallCounts
) -> str:
    """What is wrong although nothing is overdue, as a sentence; empty if nothing is."""
    found = []
    if failing:
        found.append("one destination keeps failing" if failing == 1 else f"{failing} destinations keep failing")
    elif minute.failed:
        found.append(f"{count(minute.failed)} failed in the last minute")
    if calls.failed:
        found.append(
            f"{count(calls.failed)} service {'call' if calls.failed == 1 else 'calls'} failed in the last minute"
        )
    if paused:
        found.append(
            f"the namespace {paused[0].name} is paused" if len(paused) == 1 else f"{len(paused)} namespaces are paused"
        )
    if silent:
        found.append(
            f"the node {silent[0]} does not respond" if len(silent) == 1 else f"{len(silent)} nodes do not respond"
        )
    if not found:
        return ""
    words = found[0] if len(found) == 1 else f"{', '.join(found[:-1])}, and {found[-1]}"
    return f"{words[:1].upper()}{words[1:]}."


def _rate(minute: Counts) -> str:
    return f"{count(minute.fires)} {'fire' if minute.fires == 1 else 'fires'} in the last minute"


def _past(hour: Counts, outages: Sequence[Outage], database: str) -> str:
    """What happened in the last hour."""
    ended = [each for each in outages if each.to_us is not None]
    sentences = [outage_sentence(each, database) for each in ended[:1]]
    if not hour.fires:
        return " ".join([*sentences, "Nothing fired in the last 60 minutes."])
    fired = f"{count(hour.fires)} {'timer' if hour.fires == 1 else 'timers'} fired in the last 60 minutes"
    if hour.late:
        sentences.append(
            f"{fired}, {count(hour.late)} of them late, by up to {span(round(hour.lag.max_ms * 1_000), 1)}."
        )
    else:
        slowest = milliseconds(hour.lag.max_ms * 1_000).replace(" ", "\u00a0")
        sentences.append(f"{fired}, every one within {slowest} of its due time.")
    return " ".join(sentences)


def outage_sentence(outage: Outage, database: str) -> str:
    """What an outage that has ended did to timers."""
    lasted = span((outage.to_us or outage.from_us) - outage.from_us, 1)
    late = (
        f"{count(outage.late)} fired late, by at most {span(outage.late_max_us, 1)}{' so far' if outage.counting else ''}"
        if outage.late
        else "none fired late"
    )
    refused = f"; {count(outage.creates_refused)} creates were refused" if outage.creates_refused else ""
    return f"{was(outage.reason, database)}, for {lasted}: {late}, none early, none lost{refused}."
