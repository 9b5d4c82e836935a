"""Schedules on the pages: their instants are understood before they are stored; they are watched, paused, backfilled."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.async_api import Browser, expect

from tests.e2e.browser import Window, window
from tests.support.calls import Api, Call, Inbox
from tests.support.server import ServerProcess
from tocsin.model.instants import US_PER_SECOND, format_instant, parse_instant

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")

URL = "http://127.0.0.1:9/hook"
ASKED = "A schedule with this id already exists"


async def field(shown: Window, name: str, text: str) -> None:
    await shown.page.locator(f"input[name='{name}']").fill(text)


async def stored(api: Api, schedule_id: str) -> Any:
    status, schedule = await api("schedules/get", namespace="default", scheduleId=schedule_id)
    assert status == 200, schedule
    return schedule


def backfilled(calls: list[Call]) -> set[str]:
    """The names of the backfilled occurrences that were called."""
    names = {call.headers["webhook-id"].rpartition("_")[2] for call in calls}
    return {name for name in names if name.startswith("b")}


async def test_schedule_is_created_watched_paused_and_backfilled(
    shown: Window, api: Api, inbox: tuple[Inbox, str]
) -> None:
    page, (calls, url) = shown.page, inbox
    await shown.go("/schedules")
    await expect(page.get_by_role("heading", name="No schedules")).to_be_visible()
    await page.locator(".blank").get_by_role("link", name="New schedule").click()
    await shown.arrived("New schedule")
    # The next instants in the schedule's zone and in UTC.
    preview, sentence = page.locator("#preview"), page.locator("input[name='sentence']")
    await field(shown, "cron", "30 2 * * *")
    await field(shown, "zone", "Tokyo")
    await shown.unfold("Start and end")
    await field(shown, "start", "2040-07-01T00:00:00")
    await expect(sentence).to_have_value("every day at 02:30 in Tokyo")
    first = preview.locator("li").first
    await expect(first).to_contain_text("Sun 1 Jul 2040")
    await expect(first).to_contain_text("02:30Sat 17:30 UTC")
    await shown.picture("schedule-preview")
    await field(shown, "cron", "0 0 31 2 *")
    await expect(page.locator("#wrong-cron")).to_contain_text("Never matches a date")
    await expect(preview).to_contain_text("once the rule is valid")
    await field(shown, "start", "")
    await field(shown, "cron", "1s")
    await expect(sentence).to_have_value("every second of elapsed time")
    await field(shown, "url", url)
    await shown.unfold("Id")
    await field(shown, "id", "beat")
    await expect(page.locator("#equivalent")).to_contain_text("tocsin schedules create beat")
    await expect(page.locator("#equivalent")).to_contain_text("--every 1s")
    await page.get_by_role("button", name="Create schedule").click()
    await expect(page.locator("h1")).to_contain_text("beat")
    beats = await calls.count(2)
    completed = page.locator(".occurrences tr", has_text="completed")
    await expect(completed.nth(1)).to_be_visible()
    # A pause acts at once, explains its effect, and can be undone.
    await page.get_by_role("button", name="Pause").click()
    undo = page.locator("#toasts").get_by_role("button", name="Undo")
    await expect(page.locator("#toasts")).to_contain_text("a backfill fires them later")
    await undo.click()
    await expect(page.locator("#toasts")).to_contain_text("Schedule resumed.")
    assert (await stored(api, "beat")).get("pausedReason") is None
    await undo.click()
    await expect(page.locator("#toasts")).to_contain_text("Schedule paused.")
    await expect(page.locator(".lead .state")).to_have_text("paused")
    assert (await stored(api, "beat"))["pausedReason"] == "request"
    # A backfill is counted before it is made.
    since = parse_instant(beats[0].body["executeAt"]) // US_PER_SECOND * US_PER_SECOND
    await page.locator("summary", has_text="Backfill").click()
    for label, at in (("From", since), ("To", since + 2 * US_PER_SECOND)):
        await page.locator(".menu[open]").get_by_label(label).fill(format_instant(at)[:19])
    await page.get_by_role("button", name="Count instants").click()
    await shown.arrived("Fire 2 instants once more?")
    await page.get_by_role("button", name="Fire 2 instants").click()
    await expect(page.locator("[data-action-notice]")).to_contain_text("Backfill started.")
    await expect(page.locator(".lead")).to_contain_text("Backfills start when the schedule is resumed")
    await page.get_by_role("button", name="Resume").click()
    await calls.wait(lambda received: len(backfilled(received)) == 2)
    await expect(page.locator(".occurrences tr", has_text="backfilled").nth(1)).to_be_visible()
    await page.locator("summary", has_text="Delete").click()
    await page.get_by_role("button", name="Delete schedule").click()
    await expect(page.locator("[data-action-notice]")).to_contain_text("Schedule deleted.")
    await expect(page.locator(".lead .state")).to_have_text("ended")


def weekdays_at_nine(after: datetime, count: int) -> list[str]:
    """The next weekdays at nine in Berlin, by the standard library's calendar and time zones."""
    berlin = ZoneInfo("Europe/Berlin")
    today = after.astimezone(berlin).date()
    nines = (datetime.combine(today + timedelta(day), time(9), berlin) for day in range(2 * count))
    coming = [nine for nine in nines if nine.weekday() < 5 and nine > after]
    return [format_instant(round(nine.timestamp()) * US_PER_SECOND) for nine in coming[:count]]


async def test_sentence_becomes_a_schedule_with_its_seven_instants(shown: Window, api: Api) -> None:
    page = shown.page
    opened_at = datetime.now(UTC)
    await shown.go("/schedules/new")
    sentence, seven = page.locator("input[name='sentence']"), page.locator(".seven li:not(.clock-change)")
    # It begins in the reader's zone, without an error.
    await expect(sentence).to_have_value("every weekday at 09:00 in Berlin")
    await expect(page.locator(".wrong:not(:empty)")).to_have_count(0)
    await expect(page.locator("#outcome")).to_have_text("Enter the URL to send to.")
    # What is not understood is explained beside the field, with what is, and nothing is stored.
    await sentence.fill("every weekday at nine")
    await expect(page.locator("#wrong-sentence")).to_contain_text(
        "understood up to “every weekday”, but not “at nine”; write it"
    )
    await expect(sentence).to_have_attribute("aria-invalid", "true")
    await sentence.fill("every weekday at 9 in New York")
    await expect(page.locator("input[name='cron']")).to_have_value("0 9 * * MON-FRI")
    await expect(page.locator("input[name='zone']")).to_have_value("America/New_York")
    await page.get_by_role("button", name="Daily").click()
    await expect(sentence).to_have_value("every day at 09:00 in New York")
    await sentence.fill("every weekday at 9 in Berlin")
    await expect(page.locator("input[name='zone']")).to_have_value("Europe/Berlin")
    await expect(page.get_by_role("button", name="Weekdays")).to_have_attribute("aria-pressed", "true")
    await expect(seven).to_have_count(7)
    asked = {"cron": "0 9 * * MON-FRI", "timeZone": "Europe/Berlin", "count": 7}
    status, answer = await api("schedules/preview", **asked)
    assert status == 200
    shown_at = await seven.locator(".relative-time").evaluate_all(
        "each => each.map(one => Number(one.dataset.relative))"
    )
    assert [format_instant(1_000 * at) for at in shown_at] == answer["instants"]
    # At nine they are others than a moment before.
    assert answer["instants"] in [weekdays_at_nine(at, 7) for at in (opened_at, datetime.now(UTC))]
    await expect(seven.first).to_contain_text("09:00")
    await page.locator("input[name='url']").fill(f"{URL}/daily?key=1")
    await expect(page.locator("#outcome")).to_contain_text(
        "Sends POST /hook/daily every weekday at 09:00 in Berlin, first "
    )
    await shown.picture("schedule-sentence")
    assert await shown.faults() == []
    schedule_id = await page.locator("input[name='id']").input_value()
    await page.get_by_role("button", name="Create schedule").click()
    await shown.arrived(schedule_id)
    made = await stored(api, schedule_id)
    assert (made["cron"], made["timeZone"]) == ("0 9 * * MON-FRI", "Europe/Berlin")
    assert made["nextInstants"] == answer["instants"][:3]
    # Others at the same time suggest a jitter.
    await shown.go("/schedules/new")
    nudge = page.locator(".nudge")
    await expect(nudge).to_contain_text("1 other schedule in default also starts at 09:00.")
    await nudge.get_by_role("button").click()
    await expect(page.locator("#now-jitter")).to_have_text("Up to 2 min later")
    await expect(nudge).to_have_count(0)
    await expect(page.locator("input[name='jitter']")).to_have_value("2m")


async def test_page_of_a_node_that_does_not_own_the_schedule_shows_what_was_due(
    shown: Window, api: Api, inbox: tuple[Inbox, str]
) -> None:
    """Such a node has no events. They are cut off here."""
    await shown.page.route("**/ui/live/**", lambda route: route.abort())
    _, url = inbox
    status, answer = await api("schedules/create", namespace="default", id="afar", every="1s", callbackUrl=url)
    assert status == 200, answer
    cells = shown.page.locator("#results tr[data-id='afar'] .strip a")
    await shown.go("/schedules?q=afar")
    await expect(cells.nth(2)).to_be_attached()
    await expect(cells.first.locator("title")).to_contain_text(" UTC, completed in ")
    await shown.go("/schedules/default/afar")
    newest = shown.page.locator(".occurrences tr", has_text="completed").first.get_by_role("link")
    await expect(newest).not_to_have_attribute("href", str(await newest.get_attribute("href")))
    status, answer = await api("schedules/delete", namespace="default", scheduleId="afar")
    assert status == 204, answer
    assert shown.complaints == []


async def test_tabs_list_schedules_by_status(shown: Window, api: Api) -> None:
    page = shown.page
    for name in ("kept", "stopped"):
        sent = {"namespace": "default", "id": f"tab-{name}", "cron": "@yearly", "callbackUrl": URL}
        assert (await api("schedules/create", **sent))[0] == 200
    rows = page.locator("#results tr[data-id]")
    await shown.go("/schedules?view=active&q=tab-")
    await expect(rows).to_have_count(2)
    assert (await api("schedules/pause", namespace="default", scheduleId="tab-stopped"))[0] == 200
    # The row stays where it is until the list is reloaded.
    await expect(page.locator("#fresh")).to_have_text("1 no longer active")
    await expect(rows).to_have_count(2)
    await page.locator("#fresh").click()
    await expect(rows).to_have_count(1)
    await page.locator("#tabs a", has_text="Paused").click()
    await expect(rows).to_contain_text(["tab-stopped"])
    await rows.get_by_role("link", name="tab-stopped").click()
    await shown.arrived("tab-stopped")
    await page.get_by_role("link", name="Duplicate…").click()
    await shown.arrived("New schedule")
    await expect(page.locator("input[name='id']")).to_have_value(re.compile(r"^tab-stopped-[0-9a-f]{8}$"))
    copy = await page.locator("input[name='id']").input_value()
    await page.get_by_role("button", name="Create schedule").click()
    await shown.arrived(copy)
    assert (await stored(api, copy))["cron"] == "@yearly"


async def test_form_of_a_schedule_works_without_scripts(browser: Browser, server: ServerProcess, api: Api) -> None:
    async with window(browser, server.url, scripts=False) as plain:
        page = plain.page

        async def send(button: str) -> None:
            """Waits for the page that follows: the old one has the same texts."""
            async with page.expect_navigation():
                await page.get_by_role("button", name=button).click()

        await plain.go("/schedules/new")
        await field(plain, "zone", "Nowhere/Land")
        await send("Check")
        await expect(page.locator("#preview")).to_contain_text("once the rule is valid")
        await expect(page.locator("#wrong-timeZone")).to_be_visible()
        await expect(page.locator("#wrong-callbackUrl")).to_be_empty()
        await send("Create schedule")
        await expect(page.locator("#wrong-timeZone")).to_contain_text("not an IANA time zone")
        await expect(page.locator("#wrong-callbackUrl")).to_be_visible()
        await field(plain, "sentence", "every weekday at 9 in Berlin")
        await send("Check")
        await expect(page.locator("input[name='cron']")).to_have_value("0 9 * * MON-FRI")
        await send("Daily")
        await expect(page.locator("input[name='sentence']")).to_have_value("every day at 09:00 in Berlin")
        await field(plain, "sentence", "every weekday at 9")
        await field(plain, "url", URL)
        await plain.unfold("Id")
        await field(plain, "id", "standup")
        await send("Create schedule")
        await expect(page.locator("h1")).to_have_text("standup")
        # Another definition asks before it takes the place of this one; the same does not.
        for cron in ("0 9 * * MON-FRI", "0 10 * * MON-FRI"):
            await plain.go("/schedules/new")
            await plain.unfold("Id")
            for name, text in {"cron": cron, "zone": "Europe/Berlin", "url": URL, "id": "standup"}.items():
                await field(plain, name, text)
            await send("Create schedule")
            asks = page.get_by_role("heading", name=ASKED)
            await (expect(asks).to_have_count(0) if cron.startswith("0 9") else expect(asks).to_be_visible())
        await expect(page.locator("#asks")).to_contain_text("every weekday at 10:00 in Berlin")
        assert (await stored(api, "standup"))["cron"] == "0 9 * * MON-FRI"
        await send("Replace schedule")
        await expect(page.locator("[data-action-notice]")).to_contain_text("Schedule replaced.")
        assert (await stored(api, "standup"))["cron"] == "0 10 * * MON-FRI"
        # An edit changes what differs; dates are those of the schedule's zone.
        async with page.expect_navigation():
            await page.get_by_role("link", name="Edit").click()
        await plain.unfold("Start and end", "After failures")
        await field(plain, "start", "2040-07-01T00:00:00")
        await field(plain, "failures", "3")
        await send("Save changes")
        await expect(page.locator("[data-action-notice]")).to_contain_text("Schedule updated.")
        changed = await stored(api, "standup")
        assert (changed["startAt"], changed["pauseAfterFailures"]) == ("2040-06-30T22:00:00Z", 3)
        assert plain.complaints == []
