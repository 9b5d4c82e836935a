"""The page Now: the verdict, what needs attention, and the charts that the server draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.support.cases import each

from tocsin.http_client.target import parse_url
from tocsin.model.errors import Unavailable
from tocsin.model.failure import joined_failure
from tocsin.model.flow import Flow, FlowLimits, FlowRules
from tocsin.model.namespace import HistoryMode
from tocsin.statistics.outages import Outage
from tocsin.statistics.slots import (
    OTHER_DESTINATIONS,
    OTHER_NAMESPACES,
    CallCounts,
    Counts,
    Failures,
    Slot,
    failing_place,
)
from tocsin.web.pages.counts import BoundedCount
from tocsin.web.pages.overview import band, looks
from tocsin.web.pages.overview.alarms import Alarm
from tocsin.web.pages.overview.concerns import Concerns
from tocsin.web.pages.overview.content import Verdict, calm, verdict
from tocsin.web.pages.overview.incidents import Failing, Incident, Reader, ended, incidents
from tocsin.web.pages.overview.nodes import Pause, Present
from tocsin.web.pages.overview.open_failures import OpenTimerFailures, needing_attention
from tocsin.web.pages.overview.paused import (
    Paused,
    PausedDestination,
    PausedFlow,
    PausedNamespace,
    PausedSchedule,
    PausedSchedules,
)
from tocsin.web.pages.presentation import at_most

SECOND, MINUTE = 1_000_000, 60_000_000
DATABASE = "PostgreSQL at db:5432"
NOW = 100 * 60 * MINUTE + 30 * SECOND


def present(*silent: str, overdue_s: float = 0.0, pauses: Sequence[Pause] = (), nodes: int = 1) -> Present:
    return Present(nodes + len(silent), list(silent), overdue_s, 7, 0, False, list(pauses))


def judged(minute: Counts | None = None, hour: Counts | None = None, **values: Any) -> Verdict:
    minute = Counts() if minute is None else minute
    concerns, others = apart(values)
    usual = {"calls": CallCounts(), "present": present(), "due": BoundedCount(7), "failing": 0, "others": []}
    return verdict(concerns, minute=minute, hour=hour or minute, database=DATABASE, **{**usual, **others})


def apart(values: dict[str, Any]) -> tuple[Concerns, dict[str, Any]]:
    """What may need attention, and everything else."""
    names = {each.name for each in fields(Concerns)}
    concerns = Concerns(**{name: value for name, value in values.items() if name in names})
    return concerns, {name: value for name, value in values.items() if name not in names}


def fired(count: int = 3, lag_us: int = 2_000, **counts: int) -> Counts:
    found = Counts(done=count, **counts)
    found.lag.count(lag_us)
    return found


def test_verdict_of_a_quiet_and_of_a_busy_service() -> None:
    assert judged() == Verdict(
        "Quiet: nothing fired in the last minute.",
        "7 timers are due in the next 60 minutes, none is overdue. Nothing fired in the last 60 minutes.",
        "calm",
    )
    assert judged(fired()) == Verdict(
        "Everything fires on time.",
        "3 attempts in the last 60 minutes, each within 2.0\u00a0ms of its due time.",
        "calm",
    )

    # Of more timers than are counted it is not known that the scope has none.
    text = judged(due=BoundedCount(0, more=True)).text
    assert text.startswith("Nothing is overdue. ")
    assert judged(due=BoundedCount(0)).text.startswith(
        "Apart from schedules, no timer is due in the next 60 minutes, none is overdue."
    )


@each(
    "values, title, tone",
    [
        ({"failing": 1}, "Timers fire on time. One destination failed in the last 3 minutes.", "busy"),
        (
            {"failing": 2, "namespaces": [PausedNamespace("billing", BoundedCount(1))]},
            "Timers fire on time. 2 destinations failed in the last 3 minutes, and the namespace billing is paused.",
            "busy",
        ),
        (
            {"present": present("b"), "calls": CallCounts(succeeded=1, failed=2)},
            "3 attempts in the last minute, none of them late. 2 service calls failed in the last minute, and the node b "
            "does not respond.",
            "busy",
        ),
        (
            {"destinations": [PausedDestination("https://carrier.example:443", 3)]},
            "Timers fire on time. The destination carrier.example:443 is paused.",
            "busy",
        ),
        # The windows of shards without an owner are nobody's, so nothing is known of what is overdue there.
        (
            {"present": present()._replace(unowned=3)},
            "3 attempts in the last minute, none of them late. 3 shards have no owner.",
            "busy",
        ),
        ({"present": present(overdue_s=5.0)}, "Timers are late: the oldest due one has waited 5 s.", "alarm"),
        ({"others": ["the store is full"]}, "Degraded: the store is full.", "alarm"),
    ],
)
def test_verdict_names_what_is_wrong(values: dict[str, Any], title: str, tone: str) -> None:
    found = judged(fired(), **values)
    assert (found.title, found.tone) == (title, tone)


def test_late_is_late() -> None:
    late = fired(290, 50 * SECOND, late=3)
    found = judged(late)
    assert found.title == "3 of 290 attempts in the last minute began late, by up to 50 s."
    assert found.tone == "busy"
    # Afterwards it stays in the words for an hour.
    after = judged(fired(), late)
    assert after.title == "Timers fire on time again."
    assert after.text == "290 attempts in the last 60 minutes, 3 of them late, by up to 50 s."


def test_shards_without_an_owner_have_a_row() -> None:
    assert rows(unowned=1) == [
        ("late", "A shard has no owner", "1", "Runbook", "/docs/runbooks/TocsinShardsWithoutOwner")
    ]
    assert rows(unowned=3)[0][1:3] == ("Shards have no owner", "3")


def test_lateness_of_the_whole_service_is_not_stated_of_a_scope() -> None:
    overdue = present(overdue_s=5.0)
    assert judged(present=overdue, scoped=True).title.startswith("Timers are late, here or in another namespace: ")
    # Where it is withheld, nothing is claimed of what is overdue.
    withheld = overdue._replace(overdue_s=None)
    assert judged(fired(), present=withheld).title == "3 attempts in the last minute, none of them late."
    for due in (BoundedCount(7), BoundedCount(0), BoundedCount(0, more=True)):
        assert "overdue" not in (found := judged(present=withheld, due=due)).title + found.text
    assert judged(present=withheld, failing=1).title.startswith("Nothing fired in the last minute. One destination")


def test_a_pause_names_the_database_and_what_it_means() -> None:
    lease = Pause("a", "lease", NOW - 42 * SECOND)
    assert judged(present=present(pauses=[lease])) == Verdict(
        "PostgreSQL at db:5432 does not answer, or too slowly. Nothing fires.",
        "What comes due waits and fires afterwards; nothing is lost. Creates and changes fail until the database answers.",
        "alarm",
    )
    skewed = judged(present=present(pauses=[Pause("b", "clock_skew", None)], nodes=2), others=["x"])
    assert skewed.title == "The node's clock differs from the store's: b fires nothing."
    assert skewed.text.endswith("waits until other nodes take over; nothing is lost. Also: x.")


def test_an_outage_of_several_nodes_has_one_row_with_their_sums() -> None:
    one = Outage("a", "lease", 10 * SECOND, 67 * SECOND, "", 200, 50 * SECOND, 17)
    two = Outage("b", "lease", 8 * SECOND, 69 * SECOND, "", 14, 59_400_000, 0, counting=True)
    before = Outage("a", "lease", SECOND, 2 * SECOND, "", 1, 2 * SECOND)
    found, first = ended([Outage("c", "lease", 70 * SECOND), one, two, before])
    assert (found.from_us, found.to_us, found.late, found.creates_refused) == (8 * SECOND, 69 * SECOND, 214, 17)
    assert (one.late, first) == (200, before)
    (row, _) = shown(outages=[one, two, before])
    assert row.words == (
        "b, a fired nothing for 1 min 1 s. None fired early, none was lost. 17 creates were refused. It ended"
    )
    assert (row.number, row.unit) == ("214", "late by at most 1 min, so far")
    assert ended([Outage("c", "lease", 70 * SECOND)]) == []


def test_a_brief_outage_that_delayed_nothing_needs_no_attention() -> None:
    brief = Outage("a", "lease", NOW - SECOND, NOW - SECOND // 10)
    assert shown(outages=[brief]) == []
    for change in ({"late": 1}, {"creates_refused": 1}, {"from_us": NOW - 2 * SECOND}):
        (row,) = shown(outages=[msgspec.structs.replace(brief, **change)])
        assert row.title == "PostgreSQL at db:5432 did not answer, or too slowly"


def test_an_end_is_never_in_the_future() -> None:
    (row,) = shown(outages=[Outage("a", "lease", NOW - 9 * SECOND, NOW + 2 * SECOND)])
    assert (row.at, row.ahead) == (NOW, False)


def test_minutes_in_which_timers_fired_late_have_a_row_unless_an_outage_explains_them() -> None:
    begins = NOW - NOW % MINUTE - 2 * MINUTE
    slots = [
        Slot(begins, {"billing": fired(140, 62 * SECOND, late=100)}),
        Slot(begins + MINUTE, {"billing": fired(late=38)}),
    ]
    late, more = "Their nodes or destinations were busy, or a node was killed.", " None fired early, none was lost."
    (row,) = shown(slots=slots)
    assert (row.title, row.number, row.unit) == ("Timers fired late", "138", "late by at most 1 min 2 s")
    assert (row.words, row.during) == (f"{late}{more}", (begins, begins + 2 * MINUTE))
    assert row.link.startswith("/timers?view=all&from=1970-01-05T03%3A58")
    # Before a node that has just started none ran, of which no other trace is left.
    (row,) = shown(slots=slots, started_us=begins - SECOND)
    assert row.words == f"No node that runs now ran before: what had come due waited.{more}"
    (row,) = shown(slots=slots, started_us=begins - 20 * MINUTE)
    assert row.words.startswith(late)
    # Of other namespaces nothing is stated.
    assert shown(slots=slots, wanted=lambda name: name == "other") == []
    outage = Outage("a", "lease", begins - 30 * SECOND, begins + 30 * SECOND, "", 100, 62 * SECOND)
    assert [each.number for each in shown(slots=slots, outages=[outage])] == ["38", "100"]
    outage.late = 38
    outage.to_us = begins + MINUTE + 10 * SECOND
    assert [each.number for each in shown(slots=slots[1:], outages=[outage])] == ["38"]
    outage.late = 138
    assert [each.number for each in shown(slots=slots, outages=[outage])] == ["138"]
    # Minutes apart have rows of their own, the latest first.
    slots.append(Slot(begins + 2 * MINUTE, {"billing": fired()}))
    slots.append(Slot(begins + 3 * MINUTE, {"billing": fired(late=1)}))
    assert [each.number for each in shown(slots=slots)] == ["1", "138"]


@each(
    "duration_us, words",
    [
        (400, "1 ms"), (999_500, "1000 ms"), (SECOND, "1 s"), (59_400_000, "1 min"), (94_300_000, "1 min 35 s"),
        (12 * MINUTE + SECOND, "13 min"), (119 * MINUTE + SECOND, "2 h"), (26 * 60 * MINUTE + 1, "1 d 3 h"),
    ],
)  # fmt: skip
def test_a_bound_is_rounded_up(duration_us: int, words: str) -> None:
    assert at_most(duration_us) == words


def shown(**values: Any) -> list[Incident]:
    concerns, others = apart(values)
    usual: dict[str, Any] = {
        "pauses": [],
        "outages": [],
        "slots": [],
        "started_us": None,
        "reports": None,
        "unowned": 0,
    }
    failing = Failing(others.pop("failing", {}), others.pop("left", lambda _: None))
    calls = Failing(others.pop("calls_failing", {}), others.pop("calls_left", lambda _: None))
    reader = Reader(
        others.pop("wanted", lambda _: True), others.pop("may_admin", True), others.pop("may_write", lambda _: True)
    )
    return incidents(
        concerns,
        **{**usual, **others},
        failing=failing,
        calls=calls,
        reader=reader,
        database=DATABASE,
        docs="/docs/",
        now_us=NOW,
        link=band.query_of(""),
    )


def rows(**values: Any) -> list[tuple[str, str, str, str, str]]:
    return [(each.tone, each.title, each.number, each.action, each.link) for each in shown(**values)]


def test_each_row_leads_to_what_it_counts() -> None:
    place = failing_place("billing", "http://psp:80", "/charge")
    failures = Failures(5, 3, "HTTP_500: out of order", NOW - SECOND)
    slot = Slot(NOW - NOW % MINUTE, failing={place: failures})
    assert rows(slots=[slot], failing={place: failures}) == [
        ("failed", "HTTP 500 · /charge", "3", "Show",
         "/failures/group?namespace=billing&destination=http%3A%2F%2Fpsp%2Fcharge&error=HTTP+500"),
    ]  # fmt: skip
    # Failures of namespaces that are not in the scope are not shown.
    assert rows(failing={place: failures}, wanted=lambda name: name == "other") == []
    calls = {failing_place("", "https://pay.example"): Failures(2, 1, "HTTP_STATUS: 409", NOW)}
    assert rows(calls_failing=calls) == [
        ("failed", "HTTP STATUS · service calls to pay.example", "1", "Show", "/failures")
    ]
    # An attempt that will be made again has not failed.
    only_retried = Failures(5, 0, "TIMEOUT", NOW)
    assert rows(failing={place: only_retried})[0][2:4] == ("5", "Show")
    assert "view=pending&error=TIMEOUT" in rows(failing={place: only_retried})[0][4]
    # What was summed up because there are many names has no list of its own.
    rest = {failing_place(OTHER_NAMESPACES, OTHER_DESTINATIONS): failures}
    assert rows(failing=rest)[0][4] == "/timers?view=failed"


PLACE = failing_place("billing", "http://psp:80", "/charge")


def never(_place: str, _failures: Failures) -> bool:
    """No place has recovered."""
    return False


class Listed:
    """A service that lists failures, read by a clock that is set."""

    def __init__(self) -> None:
        self.now, self.urls, self.error, self.history = NOW, ["http://psp/charge"], False, HistoryMode.ALL
        self.namespaces = self.failures = self.destinations = self

    def now_us(self) -> int:
        return self.now

    async def all(self) -> list[Any]:
        return [SimpleNamespace(name="billing", history=self.history)]

    async def members(self, *_: Any) -> tuple[list[Any], None]:
        if self.error:
            raise Unavailable("away")
        return [
            SimpleNamespace(namespace="billing", failure=joined_failure(url, "HTTP_500")) for url in self.urls
        ], None

    def name_of(self, url: str) -> str:
        return parse_url(url).origin.destination


def read_of(listed: Listed) -> OpenTimerFailures:
    return OpenTimerFailures(listed, listed)  # type: ignore[arg-type]


async def test_failures_that_were_dealt_with_need_no_attention() -> None:
    listed = Listed()
    left, failing = read_of(listed), {PLACE: Failures(5, 3, "HTTP_500", NOW - 5 * MINUTE)}
    slots = [Slot(NOW - 5 * MINUTE, failing=failing), Slot(NOW)]
    # Before the store was read, it is not known.
    assert left.left(slots)(PLACE) is None and left.number(lambda _: True) is None
    await left._read()
    assert (left.left(slots)(PLACE), left.number(lambda _: True)) == (1, 1)
    assert rows(failing=failing, left=left.left(slots))[0][2] == "1"
    assert left.number(lambda name: name != "billing") == 0
    listed.urls = []
    await left._read()
    # What is retried still needs attention.
    assert needing_attention(failing, left.left(slots), never) == {PLACE: Failures(2, 0, "HTTP_500", NOW - 5 * MINUTE)}
    ended = {PLACE: Failures(3, 3, "HTTP_500", NOW - 5 * MINUTE)}
    assert needing_attention(ended, left.left(slots), never) == {}
    # Where failures are not listed, none is ever dealt with.
    listed.history = HistoryMode.NONE
    await left._read()
    assert needing_attention(ended, left.left(slots), never) == ended


async def test_failures_later_than_the_list_were_not_dealt_with() -> None:
    listed = Listed()
    listed.urls = []
    left, failing = read_of(listed), {PLACE: Failures(1, 1, "HTTP_500", NOW)}
    begins_us = NOW - NOW % MINUTE
    slots = [Slot(begins_us, failing=failing)]
    await left._read()
    assert needing_attention(failing, left.left(slots), never) == failing
    # It is listed once it is committed.
    listed.now = begins_us + MINUTE + SECOND
    await left._read()
    assert needing_attention(failing, left.left(slots), never) == failing
    listed.now = begins_us + MINUTE + 20 * SECOND
    await left._read()
    assert needing_attention(failing, left.left(slots), never) == {}
    listed.error = True
    await left._read()
    assert needing_attention(failing, left.left(slots), never) == failing


async def test_only_failures_of_a_place_with_a_name_of_its_own_are_dealt_with() -> None:
    listed = Listed()
    listed.urls = ["https://b\u00fccher.example/a", "http://[2001:DB8:0::1]/a", "HTTPS://Psp.example:443"]
    left = read_of(listed)
    await left._read()
    for url, path in zip(listed.urls, ["/a", "/a", "/"], strict=True):
        assert left.left([])(failing_place("billing", listed.name_of(url), path)) == 1
    for namespace, destination, path in [
        (OTHER_NAMESPACES, "http://psp:80", "/charge"),
        ("billing", OTHER_DESTINATIONS, ""),
        ("billing", "nats://orders", "/"),
        ("billing", "invalid:", "/"),
        ("billing", "http://psp:80", "/" + 199 * "a"),
    ]:
        assert left.left([])(failing_place(namespace, destination, path)) is None


def test_only_what_is_known_is_stated_where_nothing_needs_attention() -> None:
    known: dict[str, Any] = {
        "failed": False, "retried": False, "left": 0, "schedules": True, "monitors": True, "paused": True, "outages": True,
        "brief": False, "whole": True,
    }  # fmt: skip
    assert calm(**known) == (
        "Nothing needs attention: nothing failed in the last hour, no schedule has paused itself, no monitor is late or has "
        "failed, no namespace, destination or flow is paused, and no outage was seen."
    )
    assert "outage" not in calm(**{**known, "outages": False})
    assert calm(**{**known, "brief": True}).endswith(", and no outage delayed a timer.")
    unread = {**known, "schedules": False, "monitors": False, "paused": False, "whole": False}
    retried = calm(**{**unread, "retried": True})
    assert retried == "Nothing needs attention: nothing exhausted its attempts in the last hour."
    assert calm(**unread) == "Nothing needs attention: nothing failed in the last hour."
    assert calm(**{**unread, "failed": True}) == "Nothing needs attention: no failure of the last hour is left."
    # Of failures that have no row, such as expired timers, nothing is denied.
    assert calm(**{**unread, "failed": True, "left": 2}) == "Nothing needs attention."
    assert calm(**{**unread, "failed": True, "left": None}) == "Nothing needs attention."
    assert calm(**{**unread, "left": 2}) == "Nothing needs attention."
    assert calm(**{**unread, "unread": True}).startswith("As far as is known, nothing needs attention: nothing failed")


def test_paused_destinations_have_rows_of_their_own() -> None:
    paused = [PausedDestination("https://carrier.example:443", 3)]
    assert rows(destinations=paused) == [
        ("paused", "carrier.example:443 is paused", "3", "Resume", "/destinations"),
    ]  # fmt: skip
    assert rows(destinations=paused, may_admin=False)[0][3] == "Show"


def test_paused_flows_have_rows_of_their_own() -> None:
    paused = [PausedFlow("billing", "vendor", None), PausedFlow("billing", "customer:", NOW + MINUTE)]
    assert judged(flows=paused[:1]).title == "Nothing is overdue. The flow vendor is paused."
    assert judged(flows=paused).title == "Nothing is overdue. 2 flows are paused."
    assert rows(flows=paused) == [
        ("paused", "The flow vendor is paused", "", "Resume", "/flows?namespace=billing"),
        ("paused", "The flow customer: is paused", "", "Resume", "/flows?namespace=billing"),
    ]
    assert rows(flows=paused, may_admin=False)[0][3] == "Show"


async def test_whether_something_is_paused_is_unknown_until_the_store_was_read() -> None:
    class Service:
        def __init__(self) -> None:
            self.namespaces = self.destinations = self.flow_rules = self
            self.away = True

        async def all(self) -> list[Any]:
            return [SimpleNamespace(name="billing", paused=False)]

        def known(self, _namespace: str) -> FlowRules:
            limits = FlowLimits(parallelism=1)
            return FlowRules(
                Flow("billing", match, 0, 0, total=limits, paused=paused, paused_until=until)
                for match, paused, until in (("open", False, None), ("shut", True, None), ("over", True, NOW))
            )

        # Of this node alone, as others may be silent.
        async def paused(self) -> list[Any]:
            if self.away:
                raise Unavailable("away")
            return [SimpleNamespace(total=SimpleNamespace(name="https://carrier.example:443", waiting=3))]

    service = Service()
    paused = Paused(service, Listed())  # type: ignore[arg-type]
    await paused._read()
    assert not paused.known
    service.away = False
    await paused._read()
    assert (paused.known, paused.destinations) == (True, [PausedDestination("https://carrier.example:443", 3)])
    assert paused.flows == [PausedFlow("billing", "shut", None)]


def test_pauses_come_first_and_outages_that_are_over_last() -> None:
    lease = Pause("a", "lease", NOW - 42 * SECOND)
    over = Outage("a", "lease", NOW - 90 * SECOND, NOW - 60 * SECOND, "", 2, 20 * SECOND)
    paused = PausedNamespace("billing", BoundedCount(500, more=True))
    found = rows(pauses=[lease], outages=[Outage("a", "lease", NOW - 42 * SECOND), over], namespaces=[paused])
    assert [(tone, number, action) for tone, _, number, action, _ in found] == [
        ("failed", "42 s", "Runbook"), ("paused", "500+", "Resume"), ("late", "2", "Show"),
    ]  # fmt: skip
    assert found[0][1] == "PostgreSQL at db:5432 does not answer, or too slowly"
    assert found[2][1] == "PostgreSQL at db:5432 did not answer, or too slowly"
    assert rows(namespaces=[paused], may_admin=False)[0][3] == "Show"


def test_schedules_that_paused_themselves_have_rows_of_their_own() -> None:
    each = PausedSchedule("billing", "report", 3, NOW - 60 * SECOND, at_once=True)
    assert judged(schedules=[each]).title == "Nothing is overdue. A schedule has paused itself."
    assert rows(schedules=[each]) == [
        ("paused", "report has paused itself", "3", "Resume", "/schedules/billing/report")
    ]
    assert rows(schedules=[each], may_write=lambda name: name == "other")[0][3] == "Show"
    many = [each._replace(schedule_id=f"s-{i}", ended_at=i) for i in range(7)]
    found = rows(schedules=many)
    assert found[0][1] == "s-6 has paused itself"
    assert found[-1][2:] == ("2", "Show", "/schedules?view=paused")


def test_monitors_that_are_late_or_failed_have_rows_of_their_own() -> None:
    late = Alarm("billing", "backup", late=True, since=NOW - 60 * SECOND)
    failed = Alarm("billing", "close of day", late=False, since=NOW - 30 * SECOND)
    assert judged(alarms=[late]).title == "Nothing is overdue. The monitor backup is late."
    assert judged(alarms=[failed]).title == "Nothing is overdue. The monitor close of day has failed."
    assert judged(fired(), alarms=[late, failed]).title == "Timers fire on time. 2 monitors are late or have failed."
    assert rows(alarms=[late, failed]) == [
        ("failed", "The monitor close of day has failed", "", "Show", "/monitors/billing/close%20of%20day"),
        ("late", "The monitor backup is late", "", "Show", "/monitors/billing/backup"),
    ]
    many = rows(alarms=[late._replace(monitor_id=f"m-{number}") for number in range(7)])
    assert len(many) == 6 and many[-1][2:] == ("2", "Show", "/monitors")
    assert rows(alarms=[late] * 7, more_alarms=True)[-1][2] == "2+"
    schedule = PausedSchedule("billing", "report", 3, NOW - 60 * SECOND, at_once=True)
    title = judged(alarms=[late] * 1_000, more_alarms=True, schedules=[schedule], more_schedules=True).title
    assert title == (
        "Nothing is overdue. 1 or more schedules have paused themselves, and 1,000 or more monitors are late or have"
        " failed."
    )


def test_bars_stack_outcomes_without_overlap_and_lead_to_their_minute() -> None:
    counts = Counts(done=6, retried=2, failed=1, late=3)
    counts.lag.count(2 * SECOND)
    drawn = band.band([Slot(NOW - NOW % MINUTE, {"a": counts, "b": fired(50)})], lambda name: name == "a", [], NOW,
                      band.query_of("a"))  # fmt: skip
    (bar,) = drawn.bars
    assert bar.words == "3 on time, 3 late, 2 retried, 1 failed"
    assert drawn.most == 10
    assert sum(part.height for part in bar.parts) == pytest.approx(9 / 10 * band.FIRES_PX, abs=0.5)
    edges = [part.y + part.height for part in bar.parts]
    assert edges == pytest.approx([band.FIRES_PX, *(part.y for part in bar.parts[:-1])], abs=0.2)
    assert bar.parts[-1].link.startswith("/timers?namespace=a&view=failed&from=")
    assert bar.x + bar.width < 100
    # A lonely minute is drawn, too, and the piece is marked as late.
    assert [piece.late for piece in drawn.lag] == [True]


def test_outages_are_shaded_where_they_were() -> None:
    def shades(from_us: int, to_us: int | None) -> list[tuple[float, float]]:
        drawn = band.band([], None, [Outage("a", "lease", from_us, to_us)], NOW, band.query_of(""))
        return [(shade.x, shade.width) for shade in drawn.shades]

    first = NOW - NOW % MINUTE - 59 * MINUTE
    assert shades(first + 30 * MINUTE, first + 36 * MINUTE) == [(50.0, 10.0)]
    assert shades(first - 6 * MINUTE, first + 6 * MINUTE) == [(0.0, 10.0)]
    assert shades(first - 6 * MINUTE, first - MINUTE) == []
    ((x, width),) = shades(NOW - 10, None)
    assert x < 100 and width > 0


def test_the_next_hour_states_how_far_it_was_counted() -> None:
    drawn = band.ahead([NOW, NOW + SECOND, NOW + 59 * MINUTE], NOW + 59 * MINUTE, NOW, band.query_of(""))
    assert [bar.words for bar in drawn.bars] == ["2 due", "1 due"]
    assert (drawn.due, drawn.until_us) == (3, NOW + 59 * MINUTE)


@each("most, end", [(0, 4), (4, 4), (5, 6), (9, 10), (11, 20), (399, 400), (401, 600), (1_000, 1_000)])
def test_axes_end_at_round_numbers(most: int, end: int) -> None:
    assert band.nice(most) == end


async def test_schedules_that_paused_themselves_are_found_in_several_looks() -> None:
    each = PausedSchedule("billing", "a", 3, NOW, at_once=True)
    parts = {None: ([each, None], "1"), "1": ([each._replace(schedule_id="b")], None), "again": ([], None)}

    class Parts:
        async def list_answers(self, wanted: Any, _answer: Any) -> Any:
            return parts[wanted.cursor]

    paused = PausedSchedules(Parts())  # type: ignore[arg-type]
    await paused._read()
    assert ([each.schedule_id for each in paused.all], paused.complete) == (["a"], False)
    await paused._read()
    assert (sorted(each.schedule_id for each in paused.all), paused.complete) == (["a", "b"], True)
    # A resumed one is gone once the next look at it has ended.
    parts[None] = ([None], "again")
    await paused._read()
    assert len(paused.all) == 2
    await paused._read()
    assert paused.all == []


async def test_what_is_found_beyond_what_is_kept_is_not_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "KEPT_MAX", 2)
    each = PausedSchedule("a", "a", 3, NOW, at_once=True)
    found = [each._replace(schedule_id=name) for name in "abc"]
    parts = {None: (found[:2], "1"), "1": (found[2:], "2"), "2": ([], None)}

    class Parts:
        async def list_answers(self, wanted: Any, _answer: Any) -> Any:
            return parts[wanted.cursor]

    paused = PausedSchedules(Parts())  # type: ignore[arg-type]
    states = []
    for _ in range(4):
        await paused._read()
        states.append((len(paused.all), paused.complete, paused.more))
    assert states == [(2, False, False), (2, False, True), (2, False, True), (2, False, True)]
    # Once fewer are wanted, that is known again after one way through all rows.
    parts["1"] = ([], None)
    await paused._read()
    assert (paused.complete, paused.more) == (True, False)
