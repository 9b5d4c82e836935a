"""Calendars on a real server: how they are put and deleted, and which instants of schedules they exclude."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.integration.server.conftest import serving
from tests.integration.server.test_movable_clock import Log, advance
from tests.integration.server.test_movable_clock import serving as moving
from tests.integration.server.test_namespace_deletion import ended
from tests.support.calls import Api
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.model.instants import format_instant, parse_instant

URL = "http://127.0.0.1:1/"
HOLIDAYS = {"namespace": "default", "name": "holidays"}
STANDUP = {"namespace": "default", "scheduleId": "standup"}
DAY_US = 86_400_000_000


def day(instant: str, days: int) -> str:
    """The date so many days after an instant, in UTC."""
    return format_instant(parse_instant(instant) + days * DAY_US)[:10]


def wednesday_noon() -> str:
    """The noon of the next Wednesday after today, in UTC."""
    today = datetime.now(UTC).date()
    return f"{today + timedelta(days=(1 - today.weekday()) % 7 + 1)}T12:00:00Z"


async def until(api: Api, instant: str | None = None) -> None:
    """Returns when the schedule waits for that instant, or for any."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = (await api("schedules/get", **STANDUP))[1].get("occurrenceAt")
            if found is not None and instant in (None, found):
                return
            await asyncio.sleep(0.05)


async def standup(api: Api, hour: int = 9, **fields: Any) -> dict[str, Any]:
    status, made = await api(
        "schedules/create", namespace="default", id="standup", callbackUrl=URL, cron=f"0 {hour} * * *", **fields
    )
    assert status == 200, made
    return dict(made)


async def test_calendars_are_put_read_and_deleted_and_survive_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path, "--no-agent") as server:
        api = Api(server)
        sent = {
            "timeZone": "Europe/Berlin",
            "dates": ["2027-12-25", "2027-01-01", "2027-12-25"],
            "ranges": [{"first": "2027-12-27", "last": "2027-12-31"}],
            "weekdays": ["SUN", "SAT"],
        }
        status, put = await api("calendars/put", **HOLIDAYS, **sent)
        expected = {**HOLIDAYS, **sent, "dates": ["2027-01-01", "2027-12-25"], "weekdays": ["SAT", "SUN"], "version": 1}
        assert (status, put) == (200, {**expected, "createdAt": put["createdAt"], "updatedAt": put["createdAt"]})
        # Nothing differs, so nothing is written.
        assert (await api("calendars/put", **HOLIDAYS, **sent))[1] == put
        _, changed = await api("calendars/put", **HOLIDAYS, dates=["2027-01-01"])
        assert (changed["version"], changed["timeZone"], changed["ranges"]) == (2, "UTC", [])
        await server.stop()
        await server.start()
        assert (await api("calendars/get", **HOLIDAYS))[1] == changed
        for name in ("a", "z"):
            await api("calendars/put", namespace="default", name=name, weekdays=["MON"])
        _, page = await api("calendars/list", namespace="default", limit=2)
        assert [each["name"] for each in page["calendars"]] == ["a", "holidays"]
        assert page["calendars"][1]["firstDate"] == page["calendars"][1]["lastDate"] == "2027-01-01"
        _, last = await api("calendars/list", namespace="default", cursor=page["nextCursor"])
        assert ([each["name"] for each in last["calendars"]], "nextCursor" in last) == (["z"], False)
        assert (await api("calendars/delete", **HOLIDAYS))[0] == 204
        for path in ("get", "delete"):
            status, problem = await api(f"calendars/{path}", **HOLIDAYS)
            assert (status, problem["error"]) == (404, "CALENDAR_NOT_FOUND"), path
        wanted = ["calendar_changed", "calendar_deleted"]
        trail = (await api("audit/list", subject="default", action=wanted))[1]["entries"]
        assert trail[0]["details"] == {"calendar": "holidays"}
        assert trail[-1]["details"] == {
            "calendar": "holidays", "version": 1, "dates": 2, "ranges": 1, "weekdays": ["SAT", "SUN"],
        }  # fmt: skip


async def test_what_no_calendar_can_be_is_refused_by_field(server: ServerProcess) -> None:
    api = Api(server)
    days = [(date(2027, 1, 1) + timedelta(days=number)).isoformat() for number in range(10_001)]
    for fields, path in (
        ({}, ""),
        ({"dates": []}, ""),
        ({"dates": ["2027-02-29"]}, "dates[0]"),
        ({"dates": ["2027-01-01", "20270102"]}, "dates[1]"),
        ({"dates": ["1969-12-31"]}, "dates[0]"),
        ({"dates": days}, "dates"),
        ({"ranges": [{"first": "2027-01-02", "last": "2027-01-01"}]}, "ranges[0].last"),
        ({"weekdays": ["MONDAY"]}, "weekdays[0]"),
        ({"weekdays": ["MON"], "timeZone": "Mars/Base"}, "timeZone"),
        ({"weekdays": ["MON"], "name": "two words"}, "name"),
    ):
        status, problem = await api("calendars/put", **{**HOLIDAYS, **fields})
        assert (status, problem["errors"][0]["path"]) == (400, path), fields
    assert (await api("calendars/put", **HOLIDAYS, dates=days[:10_000]))[0] == 200


async def test_a_schedule_names_calendars_that_exist_and_keeps_them_from_being_deleted(server: ServerProcess) -> None:
    api = Api(server)
    create = {"namespace": "default", "id": "s", "callbackUrl": URL}
    for fields, path, words in (
        ({"cron": "0 9 * * *", "skip": ["holidays"]}, "skip", "create it first with calendars/put"),
        ({"cron": "0 9 * * *", "onSkipped": "next"}, "onSkipped", "requires a calendar"),
        ({"every": "1h", "skip": ["holidays"], "onSkipped": "next"}, "onSkipped", "only with cron"),
        ({"cron": "*/5 * * * *", "skip": ["holidays"], "onSkipped": "next"}, "onSkipped", "fixed times"),
        ({"cron": "0 9 * * *", "only": ["a", "a"]}, "only", "twice"),
    ):
        status, problem = await api("schedules/create", **create, **fields)
        found = problem["errors"][0]
        assert (status, found["path"]) == (400, path), problem
        assert words in found["reason"], problem
    await api("calendars/put", **HOLIDAYS, weekdays=["SUN"])
    assert (await standup(api, skip=["holidays"]))["skip"] == ["holidays"]
    status, problem = await api("calendars/delete", **HOLIDAYS)
    assert (status, problem["error"]) == (409, "CALENDAR_IN_USE")
    assert "the schedule standup" in problem["message"]
    status, problem = await api("schedules/update", **STANDUP, only=["none"])
    assert (status, problem["errors"][0]["path"]) == (400, "only")
    await api("schedules/update", **STANDUP, skip=[])
    assert (await api("calendars/delete", **HOLIDAYS))[0] == 204


async def test_a_changed_calendar_moves_the_next_instant_and_the_preview_shows_why(server: ServerProcess) -> None:
    api = Api(server)
    # None of them passes meanwhile.
    hour = (datetime.now(UTC).hour + 12) % 24
    first, second, third = (await standup(api, hour))["nextInstants"]
    await api("calendars/put", **HOLIDAYS, dates=[first[:10]])
    assert (await api("schedules/update", **STANDUP, skip=["holidays"]))[1]["occurrenceAt"] == second
    await api("calendars/put", **HOLIDAYS, dates=[first[:10], second[:10]])
    _, preview = await api("schedules/preview", **STANDUP, count=2)
    assert preview["instants"][0] == third
    assert preview["excluded"] == [
        {"instant": each, "reason": "skip", "calendar": "holidays"} for each in (first, second)
    ]
    # Planned again in the background.
    await until(api, third)
    _, skipped = await api("schedules/skip", **STANDUP, instant=third)
    assert skipped["skippedInstants"] == [third]
    assert skipped["occurrenceAt"] == day(third, 1) + third[10:]
    _, preview = await api("schedules/preview", **STANDUP, count=1)
    assert preview["excluded"][-1] == {"instant": third, "reason": "once"}
    assert (await api("schedules/unskip", **STANDUP, instant=third))[1]["occurrenceAt"] == third
    for bad in (first, "2020-01-01T00:00:00Z", third.replace(":00:00", ":00:01")):
        status, problem = await api("schedules/skip", **STANDUP, instant=bad)
        assert (status, problem["errors"][0]["path"]) == (400, "instant"), bad
    definition = {"namespace": "default", "cron": f"0 {hour} * * *", "only": ["holidays"], "count": 5}
    _, preview = await api("schedules/preview", **definition)
    assert preview["instants"] == [first, second]


async def test_three_weeks_fire_on_business_days_and_count_the_others(tmp_path: Path) -> None:
    async with moving(tmp_path / "dev") as server:
        api, log = Api(server), Log()
        # What is excluded is counted at the next instant that is not: the weeks begin and end in the middle of one.
        await advance(api, to=wednesday_noon())
        await api("calendars/put", namespace="default", name="weekends", weekdays=["SAT", "SUN"])
        async with Receiver(log) as receiver:
            await standup(api, skip=["weekends"])
            await api("schedules/update", **STANDUP, callbackUrl=receiver.url)
            monthly = {"cron": "30 9 * * SAT", "skip": ["weekends"], "onSkipped": "next", "callbackUrl": receiver.url}
            await api("schedules/create", namespace="default", id="saturdays", **monthly)
            await advance(api, by="21d")
        fired = [(each.body["timerId"], date.fromisoformat(each.body["executeAt"][:10])) for each in log.calls]
        assert {when.weekday() for name, when in fired if name == "standup"} == set(range(5))
        assert len([name for name, _ in fired if name == "standup"]) == 15
        assert [when.weekday() for name, when in fired if name == "saturdays"] == [0, 0, 0]
        _, shown = await api("schedules/get", **STANDUP)
        assert shown["missed"]["excluded"] == 6
        _, history = await api("schedules/history", **STANDUP, limit=100)
        assert (
            sum(each["count"] for run in history["occurrences"] for each in run["missed"])
            == shown["missed"]["excluded"]
        )


async def test_what_is_never_allowed_waits_until_its_calendar_is_changed(tmp_path: Path) -> None:
    async with moving(tmp_path / "dev") as server:
        api, log = Api(server), Log()
        await api("calendars/put", namespace="default", name="releases", dates=["2000-01-01"])
        async with Receiver(log) as receiver:
            made = await standup(api, only=["releases"])
            assert (made["status"], made["nextInstants"], "occurrenceAt" in made) == ("active", [], False)
            await api("schedules/update", **STANDUP, callbackUrl=receiver.url)
            await advance(api, by="3d")
            assert not log.calls
            release = day(made["createdAt"], 5)
            await api("calendars/put", namespace="default", name="releases", dates=[release])
            await until(api)
            await advance(api, by="4d")
        assert [each.body["executeAt"][:10] for each in log.calls] == [release]


async def test_calendars_are_deleted_with_their_namespace(server: ServerProcess) -> None:
    api = Api(server)
    await api("namespaces/create", name="shop")
    await api("calendars/put", namespace="shop", name="holidays", weekdays=["SUN"])
    status, answer = await api("namespaces/delete", name="shop")
    assert status == 202, answer
    await ended(api, answer["job"]["id"])
    await api("namespaces/create", name="shop")
    assert (await api("calendars/list", namespace="shop"))[1]["calendars"] == []
