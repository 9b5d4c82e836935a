"""All pages, in light and dark themes, on phones and wide screens: accessible, and no wider than the window."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.e2e.browser import FIRED, Window, window
from tests.e2e.conftest import serving
from tests.e2e.tenant import Tenant, in_seconds
from tests.support.calls import Api, Inbox
from tests.support.cluster import view
from tests.support.command import command
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")

URL = "http://127.0.0.1:9/hook"
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


async def some_timers(api: Api, inbox: tuple[Inbox, str]) -> None:
    """A few timers in each state, and one with hostile text."""
    calls, url = inbox
    calls.default = (503, b"busy")
    await api.create("late-report", url, retryPolicy={"maxAttempts": 2, "initialInterval": "10ms"}, tags=["reports"])
    await api.settled("late-report", "failed")
    calls.default = (200, b"")
    await api.create("welcome-mail", url, tags=["mail", "eu"], payload={"to": "a@b.example"})
    await api.settled("welcome-mail", "completed")
    for number in range(12):
        await api.create(
            f"order-{1_000 + number}-reminder",
            "https://shop.example/hooks/reminder?source=tocsin",
            delay=f"{(number + 1) ** 3 * 60}s",
            tags=["orders", "eu"],
            payload={"order": 1_000 + number},
            retryPolicy={"maxAttempts": 5},
        )
    await api.create(
        HOSTILE, URL, delay="2h", tags=[HOSTILE[:60]], payload={HOSTILE: HOSTILE}, headers={"x-a": HOSTILE}
    )


async def some_schedules(api: Api, inbox: tuple[Inbox, str]) -> None:
    """A schedule that waits, one that paused by itself, and one with hostile text."""
    calls, url = inbox
    calls.default = (503, b"busy")
    failing = {"every": "1s", "retryPolicy": {"maxAttempts": 1}, "pauseAfterFailures": 1}
    schedules: dict[str, dict[str, Any]] = {
        "beat": {"callbackUrl": url, **failing},
        "nightly-report": {
            "callbackUrl": "https://shop.example/hooks/report?source=tocsin",
            "cron": "30 2 * * *",
            "timeZone": "Europe/Berlin",
            "tags": ["reports", "eu"],
        },
        HOSTILE: {"callbackUrl": URL, "cron": "0 0 29 2 *", "tags": [HOSTILE[:60]], "payload": {HOSTILE: HOSTILE}},
    }
    for name, fields in schedules.items():
        status, schedule = await api("schedules/create", namespace="default", id=name, **fields)
        assert status == 200, schedule
    async with asyncio.timeout(PATIENCE_S):
        while (await api("schedules/get", namespace="default", scheduleId="beat"))[1]["status"] != "paused":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    calls.default = (200, b"")


async def some_calls(tenant: Tenant, inbox: tuple[Inbox, str]) -> dict[str, str]:
    """A few calls in each state, and one with hostile text; returns their ids."""
    calls, url = inbox
    ids = {}
    calls.answers = [(200, b'{"charged": true, "order": 17}'), (503, f"<html>{HOSTILE}</html>".encode())]
    headers = {"Authorization": "Bearer s3cret", "X-Shop": "eu"}
    body = {"order": 17, "amount": "9.90"}
    ids["done"] = await tenant.submit("Charge order 17", url, headers=headers, body=body, tags=["orders", "star"])
    await tenant.ended(ids["done"])
    ids["failed"] = await tenant.submit("Ask for stock", url, tags=["stock"])
    await tenant.ended(ids["failed"])
    ids["unreachable"] = await tenant.submit("Unreachable service", URL, method="GET")
    await tenant.ended(ids["unreachable"])
    for number in range(6):
        await tenant.submit(
            f"Remind order {1_000 + number}",
            "https://shop.example/hooks/reminder?source=tocsin",
            dueAt=in_seconds((number + 1) ** 3 * 60),
            tags=["orders", "eu"],
        )
    ids["hostile"] = await tenant.submit(
        HOSTILE, URL, headers={"x-a": HOSTILE}, body={HOSTILE: HOSTILE}, tags=[HOSTILE[:60]], dueAt=in_seconds(7_200)
    )
    return ids


def call_pages(tenant: Tenant, ids: dict[str, str]) -> dict[str, str]:
    """Paths of the service agent's pages."""
    return {
        "calls": tenant.list,
        "calls-favourites": f"{tenant.list}&starred=yes",
        "calls-empty": f"{tenant.list}&tag=nothing",
        "calls-tenants": "/calls/tenants",
        **{f"call-{name}": tenant.page(service_call_id) for name, service_call_id in ids.items()},
        "call-trace": f"{tenant.page(ids['done'])}/trace",
        "call-new": f"/calls/new?tenant={tenant.id}&like={ids['done']}",
    }


PAGES = {
    "overview": "/",
    "timers": "/timers",
    "all": "/timers?view=all",
    "empty": "/timers?q=nothing",
    "detail": "/timers/default/late-report",
    "hostile": "/timers/default/%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E%3Cimg%20src%3Dx%20onerror%3Dalert(2)%3E",
    "new": "/timers/new?namespace=default&like=order-1000-reminder",
    "edit": "/timers/edit?namespace=default&id=order-1000-reminder",
    "schedules": "/schedules",
    "schedules-empty": "/schedules?q=nothing",
    "schedules-failing": "/schedules?view=failing",
    "schedules-day": "/schedules/day",
    "schedule": "/schedules/default/nightly-report",
    "schedule-paused": "/schedules/default/beat",
    "schedule-new": "/schedules/new?namespace=default",
    "schedule-edit": "/schedules/edit?namespace=default&id=nightly-report",
    "schedule-backfill": "/schedules/backfill?namespace=default&id=nightly-report"
    "&after=2026-10-20T00:00:00&before=2026-10-30T00:00:00",
    "failures": "/failures",
    "failures-none": "/failures/group?namespace=default&error=HTTP+500",
    "failures-of-calls-none": "/failures/calls/group?tenant=01890a5d-ac96-774b-bcce-b302099a8057&error=HTTP+500",
    "destinations": "/destinations",
    "flows": "/flows",
    "flow-new": "/flows/new",
    "jobs": "/jobs",
    "job-new": "/jobs/new",
    "job-new-schedules": "/jobs/new?of=schedules",
    "cluster": "/nodes",
    "store": "/store",
    "namespaces": "/namespaces",
    "namespace": "/namespaces/default",
    "namespace-new": "/namespaces/new",
    "keys": "/keys",
    "audit": "/audit",
    "settings": "/settings?q=store",
    "login": "/login",
    "missing": "/timers/default/never",
    "docs": "/docs",
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stocked(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[ServerProcess, dict[str, str]]]:
    """A server with timers and calls in all states, and the paths of its pages."""
    inbox = Inbox()
    async with serving(tmp_path_factory.mktemp("stocked")) as server, Receiver(inbox) as receiver:
        tenant = Tenant(server)
        await some_timers(Api(server), (inbox, receiver.url))
        await some_schedules(Api(server), (inbox, receiver.url))
        yield server, {**PAGES, **call_pages(tenant, await some_calls(tenant, (inbox, receiver.url)))}


#: How much of a page moved while it was drawn, and how much may: the sum of Chromium's layout shifts, and what moved.
_SHIFT = """new Promise((done) => {
  let sum = 0;
  const moved = [];
  const words = ({ node }) => node?.outerHTML?.slice(0, 120) ?? node?.textContent ?? "";
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) { sum += each.value; moved.push(...each.sources.map(words)); }
  }).observe({ type: "layout-shift", buffered: true });
  requestAnimationFrame(() => requestAnimationFrame(() => done([sum, moved])));
})"""
_SHIFT_MAX = 0.01


async def shifts(shown: Window) -> list[dict[str, Any]]:
    """What moved while the page was drawn, if it was too much."""
    by, moved = await shown.page.evaluate(_SHIFT)
    return [{"id": "shift", "by": by, "moved": moved}] if by > _SHIFT_MAX else []


@pytest.mark.timeout(800)
@pytest.mark.parametrize("looks", [("light", "dark", "wide"), ("phone",)], ids=["desktop", "phone"])
async def test_every_page_is_accessible_and_fits_the_window(
    browser: Browser, stocked: tuple[ServerProcess, dict[str, str]], looks: tuple[str, ...]
) -> None:
    server, pages = stocked
    faults: dict[str, list[dict[str, Any]]] = {}
    async with window(browser, server.url, looks[0]) as shown:
        for name, path in pages.items():
            await shown.look(looks[0])
            status = await shown.go(path)
            assert status == (404 if name == "missing" else 200), name
            if name == "docs":
                await expect(shown.page.locator("#createTimer pre")).to_be_visible()
                await expect(shown.page.get_by_role("link", name="Timers", exact=True)).to_be_visible()
            if moved := await shifts(shown):
                faults[name] = moved
            faults |= await shown.faults_by_look(name, looks)
        assert faults == {}, faults
        assert shown.complaints == []


async def test_nothing_moves_in_a_slow_browser(browser: Browser, stocked: tuple[ServerProcess, dict[str, str]]) -> None:
    server, pages = stocked
    async with window(browser, server.url, "phone") as shown:
        await shown.go("/settings")
        client = await shown.context.new_cdp_session(shown.page)
        await client.send("Emulation.setCPUThrottlingRate", {"rate": 6})
        # In the reader's own zone, one table loses a column; the other grows with each row while it is read.
        for name in ("schedule", "schedule-paused", "call-unreachable"):
            await shown.go(pages[name])
            assert await shifts(shown) == [], name


async def test_pages_are_small_and_load_the_editor_once_it_is_needed(shown: Window) -> None:
    loaded: list[str] = []
    shown.page.on("response", lambda answer: loaded.append(answer.url) if answer.url.endswith(".js") else None)

    async def bytes_sent() -> int:
        sizes = await shown.page.evaluate(
            "['navigation', 'resource'].flatMap((kind) => performance.getEntriesByType(kind)).map((e) => e.encodedBodySize)"
        )
        return int(sum(sizes))

    for path in ("/", "/timers", "/schedules", "/nodes", "/namespaces"):
        loaded.clear()
        await shown.go(path)
        if path in ("/", "/timers", "/schedules"):
            await expect(shown.page.locator("#link-state")).to_have_attribute("data-state", "live")
        else:
            await shown.page.wait_for_load_state("networkidle")
        assert 0 < await bytes_sent() < 90 * 1024, path
        assert not [url for url in loaded if re.search("editor", url)], path
    for path in ("/timers/new", "/schedules/new"):
        loaded.clear()
        await shown.go(path)
        await shown.page.wait_for_load_state("networkidle")
        assert 0 < await bytes_sent() < 100 * 1024, path
        assert not [url for url in loaded if "editor" in url]
    await shown.payload("{}")
    assert [url for url in loaded if "editor" in url]


async def test_keyboard_shortcuts(shown: Window, api: Api) -> None:
    page = shown.page
    for name in "abc":
        await api.create(name, URL, delay="1h")
    await shown.go("/timers")
    await shown.painted()
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("k")
    row = page.locator("#results tr.at")
    await expect(row.locator("a.id")).to_be_focused()
    identifier = await row.get_attribute("data-id")
    await page.keyboard.press("x")
    await expect(row.get_by_role("checkbox")).to_be_checked()
    await page.keyboard.press("?")
    await expect(page.get_by_role("heading", name="Keyboard shortcuts")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.locator("#results tr.at a.id").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_contain_text(identifier or "?")
    await page.wait_for_load_state()
    await shown.painted()
    await page.keyboard.press("n")
    await shown.arrived("New timer")
    await page.locator("h1").click()
    # The second key must follow soon.
    async with shown.stopped_clock():
        for key, heading in (("l", "No calls yet"), ("c", "Nodes")):
            await page.keyboard.press("g")
            await page.keyboard.press(key)
            await shown.arrived(heading)


async def test_theme_and_time_zone_are_remembered(shown: Window, api: Api) -> None:
    page = shown.page
    await api.create("t", URL, executeAt="2040-07-01T10:00:00Z")
    await shown.go("/timers/default/t")
    await expect(page.locator(".lead-row time")).to_have_text("2040-07-01 12:00:00")
    await expect(page.locator(".foot")).to_contain_text("Europe/Berlin")
    await page.get_by_role("button", name="Switch theme").click()
    await page.locator("[data-act='zone']").click()
    await expect(page.locator(".lead-row time")).to_have_text("2040-07-01 10:00:00")
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await expect(page.locator(".lead-row time")).to_have_text("2040-07-01 10:00:00")


async def test_lost_connection_is_shown_and_recovers(shown: Window, server: ServerProcess, api: Api) -> None:
    page = shown.page
    await api.create("t", URL, delay="1h")
    await shown.go("/timers")
    link = page.locator("#link-state")
    await expect(link).to_have_text("Live")
    port = server.port
    await server.kill()
    await expect(link).to_have_text(re.compile(r"^As of \d\d:\d\d:\d\d$"))
    await expect(page.locator("#main")).to_have_attribute("data-lost", "")
    await expect(page.locator("#outage")).to_contain_text(f"No answer from 127.0.0.1:{port} since ")
    await shown.picture("disconnected")
    again = ServerProcess(server.data_dir, "--port", str(port))
    await again.start()
    try:
        await expect(link).to_have_text("Live")
        await expect(page.locator("#main")).not_to_have_attribute("data-lost", "")
        await expect(page.locator("#outage")).to_be_empty()
        await expect(page.locator("tr[data-id='t'] .state")).to_have_text("pending")
        # The earlier start was killed, but is no gap: it was this node.
        for path in ("/", "/nodes"):
            await shown.go(path)
            await expect(page.locator("main")).not_to_contain_text(re.compile("has stopped|does not respond|dead"))
    finally:
        await again.stop()
        shown.complaints.clear()


async def test_timer_that_comes_due_without_a_server_does_not_seem_to_have_fired(
    browser: Browser, tmp_path: Path
) -> None:
    async with serving(tmp_path) as server, window(browser, server.url) as shown:
        await Api(server).create("t", URL, delay="1h")
        await shown.page.clock.install()
        await shown.go("/timers/default/t")
        await expect(shown.page.locator(".lead .big")).to_have_text(re.compile("^Fires in "))
        await server.kill()
        await shown.page.clock.fast_forward("01:00:05")
        await expect(shown.page.locator(".lead .big")).to_have_text(re.compile("^Due .* ago$"))
        await expect(shown.page.locator(".line li").last).to_have_text(re.compile("^\\s*Due"))
        shown.complaints.clear()


async def test_now_is_true_while_it_is_open_and_shows_since_when_nothing_is_known(
    browser: Browser, tmp_path: Path, inbox: tuple[Inbox, str]
) -> None:
    calls, url = inbox
    async with serving(tmp_path) as server, window(browser, server.url) as shown:
        api = Api(server)
        await api.create("before", url)
        await api.settled("before", "completed")
        await shown.go("/")
        body, sentence = shown.page.locator("#now"), shown.page.locator("#sentence")
        await expect(sentence).to_have_text(FIRED)
        await expect(body).to_contain_text(re.compile("Nothing needs attention|SQLite at "))
        # All of it follows, not only the sentence.
        calls.default = (503, b"busy")
        await api.create("after", url, retryPolicy={"maxAttempts": 1})
        await api.settled("after", "failed")
        await expect(sentence).to_contain_text("One destination failed in the last 3 minutes.")
        # On a busy machine the database may be slow, which is an incident, too.
        row = body.locator(".incident", has_text="HTTP 503")
        await expect(row).to_be_visible()
        await expect(body.locator(".stat[data-tone='failed']")).to_have_text("1 failed")
        # From there to what failed with this error, in one click.
        await row.get_by_role("link", name="Show").click()
        await expect(shown.page.locator("#main tbody th a")).to_have_text("after")
        await shown.go("/")
        await expect(sentence).not_to_have_attribute("data-as-of", re.compile("."))
        await server.kill()
        await expect(sentence).to_have_attribute("data-as-of", re.compile(r"As of \d\d:\d\d:\d\d\."))
        await expect(sentence).to_have_text(re.compile(rf"^No answer from 127.0.0.1:{server.port} since [\d:]{{8}}\.$"))
        await expect(shown.page.locator("#sentence-text")).to_have_text(re.compile("the verdict was: “.+”$"))
        await shown.picture("now-disconnected")
        shown.complaints.clear()


async def test_cluster_page_shows_owners_of_shards(shown: Window, server: ServerProcess, api: Api) -> None:
    page = shown.page
    await api.create("near", URL, delay="4m")
    await shown.go("/nodes")
    cluster = await view(server)
    (node,) = cluster["nodes"]
    await expect(page.get_by_role("region", name="Nodes")).to_contain_text(node["node"])
    await expect(page.get_by_role("region", name="Nodes").locator(".state")).to_have_text("alive")
    shards = page.locator(".map li")
    await expect(shards).to_have_count(len(cluster["shards"]))
    for shard in await shards.all():
        await expect(shard).to_contain_text(node["node"])
        await expect(shard).to_contain_text(re.compile(r"epoch \d+\s+\d+ in memory"))
    await expect(page.locator(".map")).to_contain_text("1 in memory")


async def test_namespace_is_created_paused_resumed_and_updated(shown: Window, api: Api) -> None:
    page = shown.page
    await shown.go("/namespaces")
    await page.get_by_role("link", name="New namespace").click()
    await shown.arrived("New namespace")
    await page.locator("#field-name").fill("no spaces here")
    await page.get_by_role("button", name="Create namespace").click()
    await expect(page.get_by_role("alert")).to_contain_text("is not a valid namespace name")
    await expect(page.locator("#field-name")).to_be_focused()
    await page.locator("#field-name").fill("billing")
    await page.get_by_label("Retention", exact=True).fill("7d")
    await page.get_by_role("button", name="Create namespace").click()
    await shown.arrived("billing")
    await expect(page.get_by_label("Retention", exact=True)).to_have_value("7d")
    await api.create("t", URL, namespace="billing", delay="30m")
    await page.get_by_role("button", name="Pause").click()
    await expect(page.locator("#toasts")).to_contain_text("Its timers fire when it is resumed.")
    await shown.picture("undo")
    await page.locator("#toasts").get_by_role("button", name="Undo").click()
    await expect(page.locator("main .state")).to_have_text("running")
    await page.get_by_role("button", name="Pause").click()
    state = page.locator("main .state")
    await expect(state).to_have_text("paused")
    await shown.go("/timers/billing/t")
    await expect(page.locator(".lead .state")).to_have_text("paused")
    await expect(page.locator(".lead")).to_contain_text("Waits for billing to be resumed")
    await page.get_by_role("button", name="Fire now").click()
    await expect(page.locator("[data-action-notice]")).to_have_text(re.compile("The namespace billing is paused"))
    await shown.picture("paused-timer")
    await shown.go("/")
    await expect(page.locator("#sentence")).to_have_text("Nothing is overdue. The namespace billing is paused.")
    await expect(page.locator(".incident")).to_contain_text("1 timer overdue")
    await expect(page.locator("#sentence")).to_have_attribute("data-tone", "busy")
    await shown.picture("paused-overview")
    await shown.go("/timers?namespace=billing")
    await expect(page.locator(".notice")).to_contain_text("is paused")
    await shown.go("/namespaces")
    row = page.get_by_role("row", name="billing")
    await expect(row.locator("td.num")).to_have_text(["1", "0", "0"])
    # Anywhere on the row, but on its numbers.
    await row.locator(".state").click(force=True)
    await shown.arrived("billing")
    await page.get_by_role("button", name="Resume").click()
    await expect(state).to_have_text("running")
    await page.get_by_label("Retention", exact=True).fill("1d")
    await page.get_by_label("A callback has succeeded after").select_option("strict")
    await page.get_by_label("A policy of its own").check()
    await page.get_by_label("Max attempts").fill("3")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("status").filter(has_text="Namespace updated.")).to_be_visible()
    await shown.go("/namespaces?q=bill")
    await expect(page.locator("tbody tr")).to_have_count(1)
    await expect(page.locator("tbody tr")).to_contain_text(re.compile(r"1\sd\s+none\s+up to 3 attempts"))
    await page.get_by_role("searchbox").fill("nobody")
    await expect(page.locator("#table")).to_contain_text("No namespace has “nobody” in its name")


async def test_signing_secret_is_rotated_and_shown_once(shown: Window, api: Api) -> None:
    page = shown.page
    await shown.go("/namespaces/default")
    signing = page.locator("#signing")
    await signing.get_by_role("button", name="Create secret").click()
    fresh = signing.get_by_role("status").locator("code")
    first = await fresh.inner_text()
    assert first.startswith("whsec_")
    await signing.get_by_role("button", name="Rotate secret now").click()
    await expect(fresh).not_to_have_text(first)
    await expect(signing).to_contain_text("the previous secret is valid until")
    await signing.get_by_label("although the previous secret is still valid").check()
    await signing.get_by_label("Grace period of the current secret").fill("0s")
    await signing.get_by_role("button", name="Rotate secret now").click()
    await expect(signing).not_to_contain_text("the previous secret is valid until")
    await shown.go("/namespaces/default")
    await expect(page.locator("main")).not_to_contain_text("whsec_")
    _, listed = await api("namespaces/list")
    assert listed["namespaces"][0]["signed"] is True


@pytest_asyncio.fixture(loop_scope="session")
async def guarded(tmp_path: Path) -> AsyncIterator[tuple[ServerProcess, str, str]]:
    """A server that requires API keys, an admin key and a read key."""
    server = ServerProcess(tmp_path / "guarded", "--host", "0.0.0.0")
    keys = []
    for role in ("admin", "read"):
        code, out, err = await command("keys", "create", "--role", role, "--data-dir", str(server.data_dir))
        assert code == 0, err
        keys.append(out.strip())
    await server.start()
    yield server, keys[0], keys[1]
    await server.stop()


async def test_sign_in_with_an_api_key(browser: Browser, guarded: tuple[ServerProcess, str, str]) -> None:
    server, admin, reader = guarded
    async with window(browser, server.url) as shown:
        page = shown.page
        await shown.go("/timers?view=failed")
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        await page.get_by_label("API key").fill("tk_wrong")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("alert")).to_contain_text("This API key is unknown")
        await shown.picture("login-wrong")
        await page.get_by_label("API key").fill(reader)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page).to_have_url(re.compile("view=failed"))
        await expect(page.get_by_role("link", name="New timer")).to_have_count(0)
        other = await shown.context.new_page()
        await other.goto(f"{server.url}/timers")
        await expect(other.locator("#link-state")).to_have_attribute("data-state", "live")
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        # The other page, which is still open, notices, and leads back to itself.
        await expect(other.locator("#link-state")).to_have_text("Signed out")
        again = other.locator("#outage").get_by_role("link", name="Sign in")
        await expect(again).to_have_attribute("href", "/login?to=%2Ftimers")
        await page.get_by_label("API key").fill(admin)
        await page.get_by_role("button", name="Sign in").click()
        # A server that requires keys refuses callbacks to itself, and offers no test timer.
        await shown.go("/")
        await expect(page.locator("main")).to_contain_text('egress.allow = ["127.0.0.1:9000"]')
        await expect(page.get_by_role("button", name="Fire a test timer")).to_have_count(0)
        await shown.go("/timers")
        await expect(page.get_by_role("link", name="New timer").first).to_be_visible()
        # Somebody comes back to the other page, which is that of the new sign-in then.
        await other.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        await expect(other.get_by_role("link", name="New timer").first).to_be_visible()
        await expect(other.locator("#link-state")).to_have_attribute("data-state", "live")
        await expect(page.get_by_role("button", name="Sign out")).to_have_attribute("title", re.compile("role admin"))
        cookies = await shown.context.cookies()
        # Besides that of the sign-in, one with the time zone, which a script sets.
        assert {(each["httpOnly"], each["sameSite"]) for each in cookies if "zone" not in each["name"]} == {
            (True, "Strict")
        }
        assert not any(admin in str(each) for each in cookies)
        await keys_are_created_and_revoked(shown)
        assert shown.complaints == []


async def test_revoked_own_key_leads_to_the_sign_in(browser: Browser, guarded: tuple[ServerProcess, str, str]) -> None:
    server, admin, _ = guarded
    async with window(browser, server.url) as shown:
        page = shown.page
        await shown.go("/login?to=/keys")
        await page.get_by_label("API key").fill(admin)
        await page.get_by_role("button", name="Sign in").click()
        await shown.arrived("Keys")
        row = page.get_by_role("row").filter(has_text="admin").first
        await row.get_by_role("link", name="Revoke…").click()
        await expect(page.get_by_text("yours included")).to_be_visible()
        await page.get_by_role("button", name="Revoke key").click()
        # Not that nothing was changed. Who signs in with another key learns that this one is revoked.
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        await expect(page).to_have_url(re.compile(re.escape("/login?to=%2Fkeys%3Fnotice%3Drevoked")))


async def test_form_outlives_a_new_sign_in(browser: Browser, guarded: tuple[ServerProcess, str, str]) -> None:
    server, admin, _ = guarded
    async with window(browser, server.url) as shown:
        page = shown.page

        async def sign_in(where: Page) -> None:
            await where.get_by_label("API key").fill(admin)
            await where.get_by_role("button", name="Sign in").click()

        await shown.go("/login?to=/namespaces/new")
        await sign_in(page)
        await page.get_by_label("Name", exact=True).fill("kept")
        other = await shown.context.new_page()
        await other.goto(f"{server.url}/settings")
        await other.get_by_role("button", name="Sign out").click()
        await expect(other.get_by_role("heading", name="Sign in")).to_be_visible()
        await page.get_by_role("button", name="Create namespace").click()
        await expect(page.locator("[data-notice]")).to_contain_text("Sign in in another tab, then try again here.")
        await sign_in(other)
        await expect(other.get_by_role("button", name="Sign out")).to_be_visible()
        await page.get_by_role("button", name="Create namespace").click()
        await expect(page).to_have_url(re.compile("/namespaces/kept"))


async def keys_are_created_and_revoked(shown: Window) -> None:
    """An admin creates a key, which is shown once, and revokes it."""
    page = shown.page
    await page.get_by_role("link", name="Keys").click()
    await shown.arrived("Keys")
    faults = await shown.faults_by_look("keys-signed-in", ("light", "dark", "phone"))
    await page.get_by_role("link", name="New key").click()
    await shown.arrived("New key")
    faults |= await shown.faults_by_look("key-new", ("light", "dark", "phone"))
    await shown.look("light")
    await page.locator("#field-name").fill("mail service")
    await page.get_by_label("Expires after").fill("7d")
    await page.get_by_role("button", name="Create key").click()
    await shown.arrived("Key created")
    assert (await shown.text("#secret")).startswith("tk_")
    await page.get_by_role("link", name="Back to keys").click()
    row = page.get_by_role("row", name="mail service")
    await expect(row.locator(".state")).to_have_text("expires soon")
    await row.get_by_role("link", name="Revoke…").click()
    await page.get_by_role("button", name="Revoke key").click()
    await expect(page.get_by_role("status").filter(has_text="Key revoked.")).to_be_visible()
    await expect(row).to_have_count(0)
    assert faults == {}
