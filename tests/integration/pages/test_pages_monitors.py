"""The pages of monitors: the form, the URL that is shown once, the list with its panel, and the history."""

from __future__ import annotations

import re

import httpx

from tests.integration.pages.conftest import Node, Start

FIELDS = {
    "namespace": "default",
    "id": "nightly-backup",
    "rule": "every day at 3 in Berlin",
    "zone": "UTC",
    "grace": "30m",
    "on_late": "http://127.0.0.1:1/late?token=of-the-url",
    "description": "Backs up <b>all</b>",
    "tags": "backup, eu",
}
NAME = {"namespace": "default", "id": "nightly-backup"}


async def test_a_form_creates_a_monitor_shows_its_url_once_and_the_job_reports(node: Node) -> None:
    browser = node.browser()
    assert "No monitors" in (await browser.get("/monitors")).text
    assert 'name="rule"' in (await browser.get("/monitors/new")).text
    created = await browser.post("/monitors/new", FIELDS)
    assert (created.status_code, created.headers["cache-control"]) == (200, "no-store")
    found = re.search(r'id="ping-url">([^<]+)<', created.text)
    assert found is not None
    url = found[1]
    listed = (await browser.get("/monitors")).text
    for words in ("nightly-backup", "Every day at 03:00, Europe/Berlin", "no ping yet", "Backs up &lt;b&gt;"):
        assert words in listed, words
    page = await browser.get("/monitors/default/nightly-backup")
    assert "Waits for its first ping" in page.text
    assert "No period has ended yet" in page.text
    for shown in (listed, page.text):
        assert url.rpartition("/")[2] not in shown
    async with httpx.AsyncClient() as job:
        for end, body in (("/start", ""), ("/3", "disk <i>full</i>"), ("/start", ""), ("/0", "")):
            assert (await job.post(f"{url}{end}", content=body)).text == "OK\n"
    page = await browser.get("/monitors/default/nightly-backup")
    for words in ("on time", "exit code 3", "disk &lt;i&gt;full", "The last ping came"):
        assert words in page.text, words
    again = await browser.post("/monitors/new", FIELDS)
    assert (again.status_code, "edit that one" in again.text) == (409, True)
    rotated = await browser.post("/monitors/rotate", NAME)
    assert "New ping URL" in rotated.text
    async with httpx.AsyncClient() as job:
        assert (await job.post(url)).status_code == 404


async def test_behind_a_proxy_with_tls_urls_that_are_shown_begin_with_https(start: Start) -> None:
    node = await start(ui_origins=["https://tocsin.example"], insecure=True)
    browser = node.browser()
    host = {"host": "tocsin.example"}
    put = await browser.client.post("/api/v1/monitors/put", json={**NAME, "every": "1h"}, headers=host)
    assert put.json()["pingUrl"].startswith("https://tocsin.example/ping/")
    await browser.create("t", callbackUrl="https://hook.example/")
    form = await browser.get("/timers/new?namespace=default&like=t", headers=host)
    assert "https://tocsin.example/api/v1/timers/create" in form.text
    own = await browser.client.post("/api/v1/monitors/rotate", json=NAME)
    assert own.json()["pingUrl"].startswith("http://127.0.0.1:")


async def test_an_edit_keeps_what_the_form_does_not_show_and_the_latest_version_wins(node: Node) -> None:
    browser = node.browser()
    hook = {"url": FIELDS["on_late"], "headers": {"x-key": "of-the-header"}}
    put = {**NAME, "cron": "0 3 * * *", "onLate": hook, "managedBy": "shop"}
    assert (await browser.client.post("/api/v1/monitors/put", json=put)).status_code == 200
    edited = (await browser.get("/monitors/edit?namespace=default&id=nightly-backup")).text
    version = re.search(r'name="version" value="(\d+)"', edited)
    shown_url = re.search(r'name="on_late"[^>]*value="([^"]*)"|value="([^"]*)"[^>]*name="on_late"', edited)
    assert version is not None
    assert shown_url is not None
    assert "of-the" not in edited
    form = {**FIELDS, "rule": "15m", "on_late": shown_url[1] or shown_url[2], "version": version[1]}
    saved = await browser.post("/monitors/edit", form)
    assert (saved.status_code, saved.headers["location"]) == (303, "/monitors/default/nightly-backup")
    stored = (await browser.client.post("/api/v1/monitors/get", json=NAME)).json()["monitor"]
    assert (stored["every"], stored["grace"], stored["managedBy"]) == ("15m", "30m", "shop")
    assert (stored["onLate"]["headers"], stored["tags"]) == ({"x-key": "[redacted]"}, ["backup", "eu"])
    late = await browser.post("/monitors/edit", form | {"grace": "1m"})
    assert (late.status_code, "The monitor was changed or deleted" in late.text) == (409, True)
    for wrong, words in (
        ({"rule": "now and then"}, 'name="rule"'),
        ({"rule": ""}, "is missing"),
        ({"grace": "soon"}, "grace"),
    ):
        bad = await browser.post("/monitors/edit", form | {"version": "2"} | wrong)
        assert (bad.status_code, words in bad.text) == (400, True), wrong


async def test_the_list_has_tabs_and_a_panel_and_monitors_are_paused_and_deleted(node: Node) -> None:
    browser = node.browser()
    for name in ("a", "b"):
        await browser.client.post("/api/v1/monitors/put", json={"namespace": "default", "id": name, "every": "1h"})
    await browser.client.post("/api/v1/monitors/ping", json={"namespace": "default", "id": "b", "event": "fail"})
    everything = (await browser.get("/monitors")).text
    # What failed comes first, and is counted in the rail.
    assert everything.index("/monitors/default/b") < everything.index("/monitors/default/a")
    assert (await browser.get("/ui/monitors")).text == "1"
    failed = (await browser.get("/monitors?state=failed")).text
    assert ("/monitors/default/b" in failed, "/monitors/default/a" in failed) == (True, False)
    beside = (await browser.get("/monitors?peek=default/b")).text
    assert 'id="peeked"' in beside
    assert "tocsin exec" in beside
    assert 'id="peeked"' not in (await browser.get("/monitors?peek=default/gone")).text
    name = {"namespace": "default", "id": "a"}
    assert (await browser.post("/monitors/pause", name)).status_code == 303
    assert "It expects nothing until" in (await browser.get("/monitors/default/a")).text
    assert "/monitors/default/a" in (await browser.get("/monitors?state=paused")).text
    assert (await browser.post("/monitors/resume", name)).status_code == 303
    assert (await browser.post("/monitors/delete", name)).status_code == 303
    assert "/monitors/default/a" not in (await browser.get("/monitors")).text
    assert (await browser.get("/monitors/default/a")).status_code == 404


async def test_a_monitor_of_a_schedule_is_made_without_a_url_and_links_to_it(node: Node) -> None:
    browser = node.browser()
    form = {"namespace": "default", "id": "of-report", "rule": "", "zone": "UTC", "schedule": "report", "grace": "10m"}
    refused = await browser.post("/monitors/new", form)
    assert (refused.status_code, "names no schedule of the namespace" in refused.text) == (400, True)
    schedule = {"namespace": "default", "id": "report", "cron": "0 3 * * *", "callbackUrl": "http://127.0.0.1:1/"}
    assert (await browser.client.post("/api/v1/schedules/create", json=schedule)).status_code == 200
    both = await browser.post("/monitors/new", form | {"rule": "15m"})
    assert (both.status_code, "leave one of them empty" in both.text) == (400, True)
    created = await browser.post("/monitors/new", form)
    assert (created.status_code, created.headers["location"]) == (303, "/monitors/default/of-report")
    page = (await browser.get("/monitors/default/of-report")).text
    assert 'href="/schedules/default/report"' in page
    assert "Waits for the next occurrence" in page
    for words in ("Ping it when the job ends", "Replace ping URL"):
        assert words not in page, words
    listed = (await browser.get("/monitors?peek=default/of-report")).text
    assert "as schedule report fires" in listed
    assert "tocsin exec" not in listed
    edited = (await browser.get("/monitors/edit?namespace=default&id=of-report")).text
    assert re.search(r'name="schedule"[^>]*value="report"|value="report"[^>]*name="schedule"', edited)
