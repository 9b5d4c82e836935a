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
from tocsin.web.pages.presentation import State
from tocsin.web.pages.schedules.forms import ScheduleForm, command
from tocsin.web.pages.schedules.presentation import state_of, version, zoned

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
        timer, b"u" * 16, 0, definition, ScheduleStatus.ACTIVE, NOW, None, [NOW + 1], NOW + 1, NOW + 1, None, {}, {}, 0, 0
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
    every = form(rule="every", every="1 H", zone="Europe/Berlin", anchor="2027-01-01T00:00:00")
    assert every.timing() == {"every": "1h", "anchor": "2026-12-31T23:00:00Z"}


def test_form_reports_all_fields_that_it_cannot_convert() -> None:
    with pytest.raises(InvalidInput) as refused:
        form(rule="every", every="1h", zone="Nowhere", occurrences="many", failures="few", payload="{").body()
    assert [error.path for error in refused.value.errors] == [
        "timeZone", "maxOccurrences", "pauseAfterFailures", "payload",
    ]  # fmt: skip


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
    kept.rule, kept.every = "every", "1h"
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
