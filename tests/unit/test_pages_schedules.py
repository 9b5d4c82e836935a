"""The form of a schedule, its equivalent commands, and the presentation of schedules."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tocsin.model.errors import InvalidInput
from tocsin.model.explanation import Explanation, TimerState, WaitsFor
from tocsin.model.instants import INSTANT_MAX, INSTANT_MIN, parse_instant
from tocsin.model.schedule import CatchUp, Definition, LastOccurrence, ScheduleStatus, Source
from tocsin.model.timer import Timer
from tocsin.timers.schedules import ScheduleView
from tocsin.web.pages.context import Fields
from tocsin.web.pages.presentation import State
from tocsin.web.pages.schedules.forms import ScheduleForm, command
from tocsin.web.pages.schedules.presentation import preview, state_of, version, zone_of, zoned

NOW = parse_instant("2026-11-22T12:00:00Z")
DEFINITION = Definition(
    cron="30 2 * * *",
    time_zone="Europe/Berlin",
    start_at=parse_instant("2027-03-28T00:30:00.000001Z"),
    occurrences_max=10,
    jitter_us=30_000_000,
    catch_up=CatchUp.ALL,
    pause_after_failures=3,
)


def form(**fields: Any) -> ScheduleForm:
    return ScheduleForm(**{"id": "s", "url": "http://127.0.0.1:9/", "cron": "0 9 * * *", **fields})


def view(definition: Definition, **fields: Any) -> ScheduleView:
    timer = Timer("default", "s", NOW, "http://127.0.0.1:9/", created_at=NOW, updated_at=NOW, payload=b"null")
    plain = ScheduleView(
        timer, b"u" * 16, 0, definition, ScheduleStatus.ACTIVE, NOW, 1, None, [NOW + 1], NOW + 1, NOW + 1, None, {}, {},
        0, 0, 0,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **fields)


def words_of(body: dict[str, Any]) -> list[str]:
    return shlex.split(command("http://127.0.0.1:8080", body).replace("\\\n", ""))


def test_form_converts_to_the_equivalent_api_request() -> None:
    assert form().body() == {
        "namespace": "default",
        "id": "s",
        "callbackUrl": "http://127.0.0.1:9/",
        "cron": "0 9 * * *",
    }
    cron = form(
        zone="America/New_York", start="2027-07-01T00:00", end="2027-11-07T01:30:00", anchor="2027-01-01T00:00:00"
    )
    # The second 01:30 of that day would be an hour later.
    assert cron.timing() == {
        "cron": "0 9 * * *",
        "timeZone": "America/New_York",
        "startAt": "2027-07-01T04:00:00Z",
        "endAt": "2027-11-07T05:30:00Z",
    }
    every = form(cron="1 H", zone="Europe/Berlin", anchor="2027-01-01T00:00:00")
    assert every.timing() == {"every": "1h", "anchor": "2026-12-31T23:00:00Z"}


def test_form_reports_all_fields_that_it_cannot_convert() -> None:
    with pytest.raises(InvalidInput) as refused:
        form(cron="1h", zone="Nowhere", occurrences="many", failures="few", payload="{").body()
    assert [error.path for error in refused.value.errors] == [
        "timeZone", "maxOccurrences", "pauseAfterFailures", "payload",
    ]  # fmt: skip


def sent(**fields: str) -> ScheduleForm:
    return ScheduleForm.read(Fields(list(fields.items())))


BEFORE = {
    "sentence": "every day at 02:30 UTC",
    "sentence_before": "every day at 02:30 UTC",
    "cron": "30 2 * * *",
    "zone": "UTC",
}
BEFORE |= {"rule_before": "30 2 * * *|UTC"}


def test_what_was_changed_of_a_rule_decides_on_the_rest() -> None:
    assert (same := sent(**BEFORE)).sentence == BEFORE["sentence"]
    assert (same.cron, same.zone) == ("30 2 * * *", "UTC")
    # The sentence stays as it was typed.
    typed = sent(**BEFORE | {"sentence": "every weekday at 9 in Berlin"})
    assert (typed.sentence, typed.cron, typed.zone) == (
        "every weekday at 9 in Berlin",
        "0 9 * * MON-FRI",
        "Europe/Berlin",
    )
    assert sent(**BEFORE | {"sentence": "every 7 minutes"}).cron == "7m"
    assert sent(**BEFORE | {"cron": "*/7 * * * *"}).sentence == "every 7 minutes from :00 to :56 of every hour UTC"
    assert sent(**BEFORE | {"cron": "90s"}).sentence == "every 90 seconds"
    zone = sent(**BEFORE | {"zone": "new york"})
    assert (zone.sentence, zone.zone) == ("every day at 02:30 in New York", "America/New_York")
    # A preset keeps the time of day.
    preset = sent(**BEFORE, preset="weekdays")
    assert (preset.sentence, preset.preset) == ("every weekday at 02:30 UTC", "weekdays")
    # A sentence that isn't understood is never stored as what the other fields mean.
    with pytest.raises(InvalidInput, match="fortnight"):
        sent(**BEFORE | {"sentence": "every fortnight"}).timing()
    assert sent(**BEFORE | {"cron": "0 0 31 2 *"}).sentence == ""


def test_preview_explains_changes_of_the_clocks() -> None:
    def notices(rule: Definition, zone: str, at: str) -> list[str]:
        now = parse_instant(at)
        return [row.notice for row in preview(rule, zone, now, now).instants if row.notice]

    autumn = preview(
        Definition("0 9 * * MON-FRI", "Europe/Berlin"), "Europe/Berlin", 0, parse_instant("2026-10-21T18:36:00Z")
    )
    assert [(row.date, row.time, row.utc) for row in autumn.instants] == [
        ("Thu 22 Oct", "09:00", "07:00 UTC"), ("Fri 23 Oct", "09:00", "07:00 UTC"), ("Mon 26 Oct", "09:00", "08:00 UTC"),
        ("Tue 27 Oct", "09:00", "08:00 UTC"), ("Wed 28 Oct", "09:00", "08:00 UTC"), ("Thu 29 Oct", "09:00", "08:00 UTC"),
        ("Fri 30 Oct", "09:00", "08:00 UTC"),
    ]  # fmt: skip
    assert [row.notice for row in autumn.instants if row.notice] == [
        "Clocks go back on Sun 25 Oct. It stays 09:00 in Berlin; in UTC it moves to 08:00."
    ]
    assert (autumn.first, autumn.ends) == ("tomorrow", False)
    assert notices(Definition("30 2 * * *", "Europe/Berlin"), "Europe/Berlin", "2027-03-26T12:00:00Z")[0] == (
        "Clocks go forward on Sun 28 Mar. 02:30 doesn’t exist on that day; it runs at 03:00."
    )
    assert notices(Definition(every_us=86_400_000_000), "Europe/Berlin", "2026-10-21T10:00:00Z") == [
        "Clocks go back on Sun 25 Oct. It stays 10:00 in UTC; it moves to 11:00 in Berlin."
    ]
    assert notices(Definition("0 9 * * *"), "UTC", "2026-10-21T10:00:00Z") == []


def test_edit_form_sends_only_changed_fields() -> None:
    stored = view(DEFINITION)
    kept = ScheduleForm.of(stored)
    assert kept.changes(stored) == {"namespace": "default", "scheduleId": "s"}
    kept.start, kept.jitter, kept.occurrences, kept.catch_up = "2027-04-01T00:00:00", "", "", "latest"
    assert kept.changes(stored) == {
        "namespace": "default",
        "scheduleId": "s",
        "startAt": "2027-03-31T22:00:00Z",
        "jitter": "0s",
        "maxOccurrences": None,
        "catchUp": "latest",
    }
    kept.cron = "1h"
    assert kept.changes(stored)["every"] == "1h"
    assert "timeZone" not in kept.changes(stored)


def test_commands_match_the_request() -> None:
    body = form(id="it's $HOME", zone="Europe/Berlin", window="1h", tags="a b").body()
    words = words_of(body)
    assert words[:5] == ["tocsin", "schedules", "create", "it's $HOME", "http://127.0.0.1:9/"]
    flags = dict(zip(words[5::2], words[6::2], strict=True))
    assert flags == {"--cron": "0 9 * * *", "--time-zone": "Europe/Berlin", "--catch-up-window": "1h", "--tag": "a b"}
    changed = {
        "namespace": "default",
        "scheduleId": "s",
        "endAt": None,
        "expireAfter": None,
        "jitter": "0s",
        "description": None,
        "flowKey": None,
    }
    words = words_of(changed)
    assert words == [
        "tocsin",
        "schedules",
        "update",
        "s",
        "--jitter",
        "0s",
        "--clear",
        "end",
        "--clear",
        "expire-after",
        "--description",
        "",
        "--flow-key",
        "",
    ]


def test_instants_are_shown_in_the_schedules_zone() -> None:
    around = [parse_instant("2027-03-28T00:59:59Z"), parse_instant("2027-03-28T01:00:00Z")]
    assert [each.local for each in zoned(around, "Europe/Berlin")] == [
        "Sun 2027-03-28 01:59:59 CET",
        "Sun 2027-03-28 03:00:00 CEST",
    ]
    # Calendars end there.
    assert zoned([INSTANT_MAX], "Pacific/Kiritimati")[0].local == "Fri 9999-12-31 23:59:59 UTC"
    first = view(msgspec.structs.replace(DEFINITION, time_zone="America/New_York", start_at=INSTANT_MIN))
    assert ScheduleForm.of(first).changes(first) == {"namespace": "default", "scheduleId": "s"}


def test_a_schedule_with_a_zone_that_is_unknown_here_is_shown_in_utc_and_edited_with_its_own() -> None:
    unknown = Definition(cron="0 9 * * *", time_zone="Etc/Nowhere")
    assert (zone_of(unknown), ScheduleForm.of(view(unknown)).zone) == ("UTC", "Etc/Nowhere")


def test_state_and_version_follow_the_occurrence_at_hand() -> None:
    def word(of: ScheduleView, now_us: int, *, paused: bool = False) -> str:
        return state_of(msgspec.structs.replace(of, namespace_paused=paused), now_us).word

    active = view(DEFINITION)
    assert word(active, NOW) == "active"
    assert word(active, NOW + 1) == "due"
    stopped = msgspec.structs.replace(active, status=ScheduleStatus.PAUSED, paused="request")
    assert word(stopped, NOW + 1) == word(active, NOW, paused=True) == word(active, NOW + 1, paused=True) == "paused"
    assert word(msgspec.structs.replace(active, status=ScheduleStatus.ENDED), NOW) == "ended"
    # An attempt that was in flight at the pause still ends.
    firing = Explanation(TimerState.FIRING, WaitsFor.RESPONSE, NOW + 9, 0, "n1", "", 1, NOW)
    fired = msgspec.structs.replace(active, explanation=firing)
    assert word(fired, NOW + 1, paused=True) == word(fired, NOW + 1) == "firing"
    waiting = msgspec.structs.replace(
        active, explanation=replace(firing, state=TimerState.WAITING, waits_for=WaitsFor.DESTINATION, attempt=None)
    )
    assert state_of(waiting, NOW + 1) == State("waiting", "waiting", "for its destination")
    ended = view(DEFINITION, last_occurrence=LastOccurrence(NOW, Source.REGULAR, "completed", NOW + 5, 1))
    halted = msgspec.structs.replace(active, namespace_paused=True)
    assert len({version(each) for each in (active, stopped, ended, fired, waiting, halted)}) == 6
