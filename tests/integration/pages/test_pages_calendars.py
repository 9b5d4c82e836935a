"""The pages of calendars, and what pages of schedules show of them."""

from __future__ import annotations

from tests.integration.pages.conftest import Node

FIELDS = {
    "namespace": "default",
    "name": "holidays",
    "timeZone": "Europe/Berlin",
    "weekday.SUN": "yes",
    "dates": "2027-01-01 2027-05-01\n2027-12-24 to 2027-12-26\n",
}


async def test_a_form_creates_a_calendar_changes_and_deletes_it(node: Node) -> None:
    browser = node.browser()
    assert "No calendars" in (await browser.get("/calendars")).text
    assert 'name="weekday.SUN"' in (await browser.get("/calendars/new")).text
    answer = await browser.post("/calendars/new", FIELDS)
    assert (answer.status_code, answer.headers["location"]) == (303, "/calendars?namespace=default")
    for path in ("/calendars", "/calendars?namespace=default"):
        shown = (await browser.get(path)).text
        for words in ("holidays", "Europe/Berlin", "SUN", "2027-12-26"):
            assert words in shown
    again = await browser.post("/calendars/new", FIELDS)
    assert (again.status_code, "edit that one" in again.text) == (409, True)
    page = "/calendars/edit?namespace=default&name=holidays"
    edited, version = (await browser.get(page)).text, await browser.version(page)
    assert "2027-12-24 to 2027-12-26" in edited
    bad = await browser.post("/calendars/edit", FIELDS | version | {"dates": "tomorrow"})
    assert (bad.status_code, "is no date" in bad.text, "tomorrow" in bad.text) == (400, True, True)
    empty = await browser.post("/calendars/edit", {"namespace": "default", "name": "holidays", **version})
    assert (empty.status_code, "are missing" in empty.text) == (400, True)
    schedule = {"namespace": "default", "id": "s", "callbackUrl": "http://127.0.0.1:1/", "cron": "0 9 * * *"}
    created = await browser.client.post("/api/v1/schedules/create", json={**schedule, "skip": ["holidays"]})
    assert created.status_code == 200
    name = {"namespace": "default", "name": "holidays"}
    refused = await browser.post("/calendars/delete", name)
    assert (refused.status_code, "the schedule s" in refused.text) == (409, True)
    await browser.client.post("/api/v1/schedules/delete", json={"namespace": "default", "scheduleId": "s"})
    assert (await browser.post("/calendars/delete", name)).status_code == 303
    assert "No calendars" in (await browser.get("/calendars")).text


async def test_pages_of_a_schedule_show_its_calendars_and_skip_instants(node: Node) -> None:
    browser = node.browser()
    # Whatever day it is, the next five have some that are skipped.
    days = {f"weekday.{day}": "yes" for day in ("MON", "WED", "SAT")}
    await browser.post("/calendars/new", FIELDS | {"dates": ""} | days)
    form = {
        "namespace": "default", "id": "s", "url": "http://127.0.0.1:1/", "cron": "0 9 * * *", "zone": "UTC",
        "timeout": "10", "catch_up": "latest", "skip": "holidays", "rule_before": "0 9 * * *|UTC", "on_skipped": "none",
    }  # fmt: skip
    checked = await browser.post("/schedules/new", form | {"preview": "yes"})
    assert "(holidays)" in checked.text
    made = await browser.post("/schedules/new", form)
    assert made.status_code == 303, made.text
    shown = (await browser.get("/schedules/default/s")).text
    assert "Not on" in shown
    assert "(holidays)" in shown
    schedule = (
        await browser.client.post("/api/v1/schedules/get", json={"namespace": "default", "scheduleId": "s"})
    ).json()
    assert schedule["skip"] == ["holidays"]
    name = {"namespace": "default", "id": "s", "instant": schedule["nextInstants"][0]}
    assert (await browser.post("/schedules/skip", name)).status_code == 303
    assert "Fire all the same" in (await browser.get("/schedules/default/s")).text
    assert (await browser.post("/schedules/unskip", name)).status_code == 303
    assert "Fire all the same" not in (await browser.get("/schedules/default/s")).text
    edited = (await browser.get("/schedules/edit?namespace=default&id=s")).text
    assert 'value="holidays"' in edited
