"""The page Now: timers that are past their instants, and what they wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.cases import each
from tests.unit.test_pages_overview import NOW, SECOND, Listed, fired, judged, present, shown

from tocsin.http_client.target import parse_url
from tocsin.model.errors import Unavailable
from tocsin.model.explanation import Explanation, TimerState, WaitsFor
from tocsin.model.timer import Timer
from tocsin.ports.destinations import DestinationReport
from tocsin.timers.destinations import DestinationView
from tocsin.timers.listing import TimerView
from tocsin.web.http.destinations import destination_answer
from tocsin.web.pages.destinations import state_of
from tocsin.web.pages.overview import looks
from tocsin.web.pages.overview import waiting as module
from tocsin.web.pages.overview.alarms import Alarm
from tocsin.web.pages.overview.content import overdue_elsewhere_s
from tocsin.web.pages.overview.incidents import Incident, Reports
from tocsin.web.pages.overview.looks import Looked
from tocsin.web.pages.overview.paused import PausedDestination
from tocsin.web.pages.overview.waiting import HeldSchedule, Wait, Waiting

PSP, WMS = "http://psp:80", "https://wms:443"


MANY = "33 timers to psp:80 wait, the oldest for 36 s"


def wait(destination: str = PSP, number: int = 33, ago_s: int = 36, namespace: str = "billing") -> Wait:
    return Wait(namespace, WaitsFor.DESTINATION, destination, number, NOW - ago_s * SECOND)


def title(*waits: Wait, **values: Any) -> tuple[str, str]:
    found = judged(fired(), **{"waits": waits, "now_us": NOW, **values})
    return found.title, found.tone


@each(
    "waits, values, expected",
    [
        ([wait()], {}, (f"{MANY}; all others fire on time.", "busy")),
        ([wait(number=1)], {}, ("1 timer to psp:80 waits for 36 s; all others fire on time.", "busy")),
        (
            [wait(), wait(namespace="other"), wait(WMS, 1, 50)],
            {"failing": 1},
            (
                "67 timers to 2 destinations wait, the oldest for 50 s; all others fire on time. One destination failed in "
                "the last 3 minutes.",
                "busy",
            ),
        ),
        (
            [wait()],
            {"more_waits": True, "unread": True},
            (f"{MANY}.".replace("33", "33 or more"), "busy"),
        ),
        # Of what others do nothing is stated that is not known.
        ([wait()], {"minute": fired(9, 2 * SECOND, late=1)}, (f"{MANY}.", "busy")),
        ([wait()], {"present": present()._replace(overdue_s=None)}, (f"{MANY}.", "busy")),
        # A late node is another matter.
        ([wait()], {"present": present(overdue_s=5.0)}, ("Timers are late: the oldest due one has waited 5 s.", "alarm")),
        (
            [wait(), Wait("billing", WaitsFor.NODE, "", 1, NOW - 2 * SECOND)],
            {},
            ("Timers are late: the oldest due one has waited 2 s.", "alarm"),
        ),
        # So is a destination that an operator has paused.
        (
            [wait()],
            {"destinations": [PausedDestination(PSP, 3)]},
            ("Timers fire on time. The destination psp:80 is paused.", "busy"),
        ),
    ],
)  # fmt: skip
def test_verdict_distinguishes_a_destination_at_which_timers_wait_from_a_late_node(
    waits: Sequence[Wait], values: dict[str, Any], expected: tuple[str, str]
) -> None:
    minute = values.pop("minute", fired())
    found = judged(minute, **{"waits": waits, "now_us": NOW, **values})
    assert (found.title, found.tone) == expected


def test_what_nobody_fires_before_it_is_mended_is_named() -> None:
    held = Wait("billing", WaitsFor.EGRESS, "", 3, NOW - 60 * SECOND)
    assert title(held) == ("3 attempts in the last minute, none of them late. 3 timers are suspended.", "busy")
    assert title(held, more_waits=True)[0].endswith(" 3 or more timers are suspended.")


def test_suspended_schedules_are_named_and_have_rows() -> None:
    nightly = HeldSchedule("billing", "nightly", WaitsFor.CREDENTIAL, NOW - 60 * SECOND)
    found = judged(held=[nightly])
    assert (found.title, found.tone) == ("Nothing fired in the last minute. A schedule is suspended.", "busy")
    assert "overdue" not in found.text
    (row,) = shown(held=[nightly])
    assert (row.title, row.number, row.at) == ("Schedules are suspended: credentials", "1", NOW - 60 * SECOND)
    assert row.words.startswith("In billing. Their credentials can't be sent")
    assert row.link == "/schedules/billing/nightly"
    others = [nightly, nightly._replace(namespace="shop"), nightly._replace(waits_for=WaitsFor.SECRET)]
    assert judged(held=others, more_held=True).title.endswith(" 3 or more schedules are suspended.")
    assert [(each.number, each.link) for each in shown(held=others)] == [
        ("2", "/schedules"),
        ("1", "/schedules/billing/nightly"),
    ]


def test_monitors_that_nobody_watches_have_one_row() -> None:
    one = Alarm("billing", "backup", False, NOW - SECOND, unwatched=True)
    assert judged(fired(), unwatched=[one]).title == "Timers fire on time. 1 monitor is not watched."
    (row,) = shown(unwatched=[one])
    assert (row.title, row.number, row.link) == ("The monitor backup is not watched", "", "/monitors/billing/backup")
    (row,) = shown(unwatched=[one, one], more_alarms=True)
    assert (row.title, row.number, row.link, row.at) == ("Monitors are not watched", "2+", "/monitors", NOW - SECOND)


def test_nothing_is_claimed_of_timers_that_were_not_looked_at() -> None:
    unknown = "Not all that is due was looked at, so it is not known whether more waits."
    found = judged(fired(), unread=True)
    assert (found.title, found.tone) == ("3 attempts in the last minute, none of them late.", "busy")
    assert found.text.endswith(f" {unknown}")
    idle = judged(unread=True)
    assert (idle.title, idle.tone) == ("Nothing fired in the last minute.", "busy")
    assert idle.text == f"Nothing fired in the last 60 minutes. {unknown}"
    assert judged(fired(), waits=[wait()], unread=True, now_us=NOW).text.endswith(unknown)


def test_overdue_timers_of_a_destination_do_not_make_the_node_late() -> None:
    assert overdue_elsewhere_s(36.5, [wait()], NOW) == 0
    assert overdue_elsewhere_s(40.0, [wait()], NOW) == 40.0
    assert overdue_elsewhere_s(5.0, [wait()._replace(waits_for=WaitsFor.NODE)], NOW) == 5.0
    assert overdue_elsewhere_s(None, [wait()], NOW) is None


def rows(*waits: Wait, **values: Any) -> list[Incident]:
    return shown(waits=waits, **{"reports": Reports({}, NOW - SECOND), **values})


@each(
    "report, words, until",
    [
        (
            DestinationReport(PSP, 7, 8, 33),
            "7 of at most 8 requests are in flight to it. The first was due",
            None,
        ),
        (
            DestinationReport(PSP, 0, 8, 33, 9, 9, "open", 5 * SECOND, "HTTP 500", NOW),
            "Nearly all requests to it failed, the last one with HTTP 500. The first was due",
            NOW + 4 * SECOND,
        ),
        (
            DestinationReport(PSP, 1, 8, 33, 9, 9, "half_open"),
            "Nearly all requests to it failed. The first was due",
            None,
        ),
    ],
)
def test_a_destination_at_which_timers_wait_has_a_row_with_the_reason(
    report: DestinationReport, words: str, until: int | None
) -> None:
    (row,) = rows(wait(), reports=Reports({PSP: report}, NOW - SECOND))
    assert (row.title, row.words, row.number, row.link) == ("Timers to psp:80 wait", words, "33", "/destinations")
    assert (row.at, row.until) == (NOW - 36 * SECOND, until)


def test_rows_of_what_waits_are_bounded_and_lead_to_what_their_reader_may_see() -> None:
    (own,) = rows(wait(), reports=None)
    assert own.link == "/timers?view=waiting&destination=psp"
    many = rows(*(wait(f"http://h{i}:80", 9 - i) for i in range(7)))
    assert [each.number for each in many] == ["9", "8", "7", "6", "5", "2"]
    # A paused one has a row already.
    paused = rows(wait(), destinations=[PausedDestination(PSP, 3)])
    assert [each.title for each in paused] == ["psp:80 is paused"]
    assert (paused[0].number, paused[0].at) == ("33", NOW - 36 * SECOND)
    slots = [Wait(name, WaitsFor.NODE, "", 5, NOW - ago * SECOND) for name, ago in (("a", 3), ("b", 9))]
    (row,) = rows(*slots)
    assert (row.number, row.at, row.link) == ("10", NOW - 9 * SECOND, "/timers?view=waiting")
    assert row.words.startswith("In 2 namespaces. ")
    (row,) = rows(wait()._replace(waits_for=WaitsFor.NAMESPACE))
    assert (row.title, row.words) == (
        "Timers to psp:80 wait",
        "Their namespace has its share of the slots in use. The first was due",
    )


class Due:
    """A service with due timers that have been explained, read by a clock that stands."""

    def __init__(self, *views: TimerView) -> None:
        self.views, self.stored, self.away = list(views), {view.uuid: view for view in views}, False
        self.destinations = self
        self.paused_reason: str | None = None
        self.page = 1_000

    async def list(self, wanted: Any) -> Any:
        if self.away:
            raise Unavailable("away")
        if isinstance(wanted, int):
            return [Total()], 0, True
        first = int(wanted.cursor or 0)
        after = first + self.page
        views = [view for view in self.views[first:after] if (view.next_attempt_at or 0) < wanted.execute_before]
        return views, str(after) if after < len(self.views) else None

    async def explained(self, views: Any) -> Any:
        return views

    async def get_by_uuids(self, named: Any) -> Sequence[TimerView]:
        return [self.stored[uuid] for _, uuid in named if uuid in self.stored]

    def name_of(self, url: str) -> str:
        return parse_url(url).origin.destination


class Total:
    total = DestinationReport(PSP, 7, 8, 33, breaker="open", wait_us=SECOND)


def due(
    number: int, state: TimerState, waits_for: WaitsFor | None, ago_us: int = 36 * SECOND, since: int | None = None
) -> TimerView:
    at = NOW - ago_us
    timer = Timer("billing", f"t{number}", at, "http://psp/charge", 0, 0)
    return TimerView(
        timer, bytes([number]), 0, at, explanation=Explanation(state, waits_for, None, 0, "a", "", None, since)
    )


async def test_due_timers_are_counted_by_what_they_wait_for() -> None:
    service = Due(
        due(1, TimerState.WAITING, WaitsFor.DESTINATION),
        due(2, TimerState.WAITING, WaitsFor.DESTINATION, 40 * SECOND),
        due(3, TimerState.FIRING, WaitsFor.RESPONSE),
        due(4, TimerState.PAUSED, WaitsFor.NAMESPACE),
        due(5, TimerState.WAITING, WaitsFor.FLOW),
        due(6, TimerState.WAITING, WaitsFor.NODE),
        # That a moment late is normal.
        due(7, TimerState.WAITING, WaitsFor.DESTINATION, SECOND // 2),
        due(8, TimerState.UNKNOWN, None, since=NOW),
        due(9, TimerState.UNKNOWN, None),
    )
    waiting = Waiting(service, Listed())  # type: ignore[arg-type]
    await waiting._read()
    at_node = Wait("billing", WaitsFor.NODE, "", 1, NOW - 36 * SECOND)
    unowned = at_node._replace(waits_for=WaitsFor.OWNER)
    assert list(waiting.waits) == [wait(number=2, ago_s=40), at_node, unowned]
    assert (waiting.reports, waiting.probed_at_us) == ({PSP: Total.total}, NOW + SECOND)
    # What has been fired since it was listed only seems to wait for its node.
    del service.stored[bytes([6])]
    await waiting._read()
    assert list(waiting.waits) == [wait(number=2, ago_s=40), unowned]
    service.away = True
    await waiting._read()
    service.away, service.views, service.paused_reason = False, [], "lease"
    await waiting._read()
    assert list(waiting.waits) == [wait(number=2, ago_s=40), unowned]


async def test_looks_go_on_behind_timers_that_wait_as_meant_until_something_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow = [due(number, TimerState.WAITING, WaitsFor.FLOW) for number in range(5)]
    held = due(9, TimerState.SUSPENDED, WaitsFor.CREDENTIAL)
    service, listed = Due(*flow, held, *flow), Listed()
    service.page = 2
    waiting = Waiting(service, listed)  # type: ignore[arg-type]
    # Before something counted was seen, or the end, nothing is known.
    for _ in range(2):
        await waiting._read()
        assert (waiting.waits, waiting.more) == ((), True)
    await waiting._read()
    found = [Wait("billing", WaitsFor.CREDENTIAL, "", 1, NOW - 36 * SECOND)]
    assert (list(waiting.waits), waiting.more) == (found, True)
    # On the next way it stays known until that has ended.
    service.views = flow
    for _ in range(2):
        await waiting._read()
        assert list(waiting.waits) == found
    await waiting._read()
    assert (list(waiting.waits), waiting.more) == ([], False)
    # A way that is too long ends without a result, and so does one that nobody has gone on with.
    monkeypatch.setattr(module, "_LOOKS_MAX", 2)
    for _ in range(2):
        await waiting._read()
    assert (list(waiting.waits), waiting.more) == ([], True)
    monkeypatch.setattr(module, "_LOOKS_MAX", 3)
    for _ in range(3):
        await waiting._read()
    assert not waiting.more
    await waiting._read()
    listed.now += 61 * SECOND
    await waiting._read()
    assert (waiting.more, waiting._cursor) == (True, "2")


async def test_what_was_found_when_a_page_was_open_last_is_not_taken_for_the_present(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts: dict[str, tuple[list[Alarm], str | None]] = {"": ([Alarm("a", "a", True, NOW)], "1"), "1": ([], None)}

    class Parts(Looked[Alarm]):
        async def look(self, cursor: str | None) -> tuple[Sequence[Alarm], str | None]:
            return parts[cursor or ""]

    found = Parts()
    for _ in range(3):
        await found._read()
    assert (len(found.all), found.complete, found._cursor) == (1, True, "1")
    parts[""] = ([], "1")
    monkeypatch.setattr(looks, "STALE_S", -1.0)
    await found._read()
    assert (len(found.all), found.complete, found._cursor) == (0, False, "1")


async def test_a_timer_created_after_its_instant_waits_since_then() -> None:
    late = due(1, TimerState.WAITING, WaitsFor.DESTINATION, 3600 * SECOND)
    late.timer.updated_at = NOW - 5 * SECOND
    waiting = Waiting(Due(late), Listed())  # type: ignore[arg-type]
    await waiting._read()
    assert list(waiting.waits) == [wait(number=1, ago_s=5)]
    late.timer.updated_at = NOW
    await waiting._read()
    assert not waiting.waits


@each(
    "report, paused_at, word",
    [
        (DestinationReport(PSP, 7, 8, 0), None, "available"),
        (DestinationReport(PSP, 7, 8, 33), None, "timers wait"),
        (DestinationReport(PSP, 0, 8, 33, breaker="open"), None, "breaker open"),
        (DestinationReport(PSP, 0, 8, 33), NOW, "paused"),
    ],
)
def test_a_destination_for_which_timers_wait_is_not_called_available(
    report: DestinationReport, paused_at: int | None, word: str
) -> None:
    answer = destination_answer(DestinationView(paused_at, report, []), NOW, complete=True)
    assert state_of(answer).word == word
