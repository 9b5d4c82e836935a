"""Service calls in the browser: submit, watch, star, find, tag, delete, duplicate."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from tests.e2e.browser import Window, window
from tests.e2e.conftest import serving
from tests.e2e.tenant import Tenant, in_seconds
from tests.support.calls import Inbox
from tests.support.command import command
from tests.support.http import Receiver
from tests.support.server import ServerProcess
from tocsin.service_calls.limits import AgentLimits

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")

NOWHERE = "http://127.0.0.1:9/hook"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    """One for all tests here: each has a tenant of its own."""
    async with serving(tmp_path_factory.mktemp("calls")) as running:
        yield running


async def test_first_call_is_submitted_and_its_response_is_shown(shown: Window, inbox: tuple[Inbox, str]) -> None:
    calls, url = inbox
    calls.default = (200, b'{"charged":true,"order":17}')
    page = shown.page
    await shown.go("/")
    await page.get_by_role("link", name="Calls").first.click()
    # No question about tenants, which need no setup.
    await expect(page.get_by_role("heading", name="No calls yet")).to_be_visible()
    await page.locator(".blank").get_by_role("link", name="New call").click()
    await shown.arrived("New call")
    await page.get_by_label("URL", exact=True).fill(url)
    await shown.unfold("Headers", "Name", "Tags")
    await page.get_by_label("Header name").fill("X-Shop")
    await page.get_by_label("Header value").fill("eu")
    await page.get_by_role("button", name="Add header").click()
    await page.get_by_label("Header name").nth(1).fill("X-Gone")
    await page.get_by_role("button", name="Remove header").nth(1).click()
    await shown.payload('{"order":17}')
    await page.locator("input[name='name']").fill("Charge order 17")
    await page.get_by_role("textbox", name="Tags").fill("orders, eu")
    equivalent = page.locator("#equivalent")
    await expect(equivalent).to_contain_text('"order": 17')
    await expect(equivalent).to_contain_text("tocsin calls submit 'Charge order 17'")
    await expect(equivalent).not_to_contain_text("X-Gone")
    async with shown.stopped_clock():
        await page.get_by_role("button", name="Submit call").click()
        await expect(page.get_by_text("Call submitted. It is stored and survives crashes.")).to_be_visible()
    await expect(page.locator(".lead .state")).to_have_text("succeeded")
    response = page.locator("#response")
    await expect(response.locator(".status-code")).to_have_text("200")
    await expect(response).to_contain_text('"charged": true')
    await expect(response).to_contain_text("content-length")
    await expect(response).to_contain_text(re.compile(r"in \d"))
    await shown.picture("call-journey-answered")
    (call,) = await calls.count(1)
    assert (call.body, call.headers["x-shop"]) == ({"order": 17}, "eu")
    # The new tenant is remembered.
    await shown.go("/calls")
    await page.locator("#tenant").select_option(index=1)
    await expect(page).to_have_url(UUID)
    await expect(page.locator("#results tbody tr")).to_have_count(1)
    await expect(page.locator("#results tbody tr .state")).to_have_text("succeeded")


async def test_scheduled_call_counts_down(shown: Window, tenant: Tenant) -> None:
    page = shown.page
    async with shown.stopped_clock():
        await shown.go(tenant.page(await tenant.submit("later", NOWHERE, dueAt=in_seconds(3_600))))
        await expect(page.locator(".lead .state")).to_have_text("scheduled")
        await expect(page.locator("#response")).to_contain_text("The request is sent in")
        await shown.picture("call-journey-counting")
        # The page counts from the moment at which it was rendered, which may have been some seconds later.
        await page.clock.run_for(3_550_000)
        big = page.locator(".lead .big")
        await expect(big).to_have_text(re.compile(r"Due in \d+ s"))
        before = await big.inner_text()
        await page.clock.run_for(1_000)
        assert seconds(await big.inner_text()) == seconds(before) - 1
        # Once it is due, the page shows that until the server reports the outcome.
        await page.clock.run_for(60_000)
        await expect(page.locator(".lead .state")).to_have_text("due")


def seconds(text: str) -> int:
    """The seconds of a countdown."""
    return int(re.findall(r"\d+", text)[-1])


async def test_scheduled_call_is_sent_and_its_page_updates_live(shown: Window, tenant: Tenant) -> None:
    page = shown.page
    await shown.go(f"/calls/new?tenant={tenant.id}")
    async with Receiver(Inbox()) as receiver:
        receiver.responding.clear()
        await page.get_by_label("URL", exact=True).fill(receiver.url)
        await page.get_by_label("Time from now").fill("1s")
        await expect(page.locator("#equivalent")).to_contain_text('"dueAt"')
        await expect(page.locator("#equivalent")).to_contain_text("--in 1s")
        await page.get_by_role("button", name="Submit call").click()
        await expect(page.locator(".lead .state")).to_have_text("running")
        receiver.responding.set()
        await expect(page.locator(".lead .state")).to_have_text("succeeded")
    await expect(page.locator("#response .status-code")).to_have_text("200")
    await expect(page.locator(".line")).to_contain_text("after its due time")
    await expect(page.locator("#trace")).to_contain_text("ExecutionSucceeded")
    await expect(page.locator("#link-state")).to_be_hidden()


async def test_star_whose_answer_is_lost_may_have_been_stored(shown: Window, tenant: Tenant) -> None:
    page = shown.page
    call = await tenant.submit("starred", NOWHERE, dueAt=in_seconds(3_600))
    await shown.go(tenant.page(call))

    async def swallow(route: Route) -> None:
        await route.fetch(max_redirects=0)
        await route.abort()

    await page.route("**/calls/star", swallow)
    star = page.locator("button.star").first
    await star.click()
    await expect(page.locator("#toasts")).to_contain_text("It may have been changed: reload the page to see.")
    await page.reload()
    await expect(star).to_have_attribute("aria-pressed", "true")


async def test_date_is_in_the_users_time_zone(shown: Window, tenant: Tenant) -> None:
    page = shown.page
    await shown.go(f"/calls/new?tenant={tenant.id}")
    await page.get_by_label("URL", exact=True).fill(NOWHERE)
    await page.get_by_label("Date and time").fill("2040-07-01T12:00:00")
    await page.get_by_role("button", name="Submit call").click()
    await expect(page.locator(".lead time")).to_have_attribute("datetime", "2040-07-01T10:00:00Z")
    await expect(page.locator("h1")).to_have_text("POST 127.0.0.1:9/hook")


async def test_call_list_updates_in_place(shown: Window, tenant: Tenant) -> None:
    page = shown.page
    later = await tenant.submit("later", NOWHERE, dueAt=in_seconds(3_600))
    async with Receiver(Inbox()) as receiver:
        receiver.responding.clear()
        sent = await tenant.submit("sent", receiver.url)
        await shown.go(tenant.list)
        row, other = (page.locator(f"#results tr[data-id='{each}']") for each in (sent, later))
        await expect(row.locator(".state")).to_have_text("running")
        before = await other.bounding_box()
        receiver.responding.set()
        await expect(row.locator(".state")).to_have_text("succeeded")
    await expect(row.locator(".c-run")).to_contain_text(re.compile(r"lag .*, took "))
    await expect(row.locator(".c-what")).to_contain_text("200")
    assert await other.bounding_box() == before
    await tenant.submit("one more", NOWHERE, dueAt=in_seconds(3_600))
    await expect(page.locator("#fresh")).to_have_text("1 new")
    await expect(page.locator("#results tbody tr")).to_have_count(2)
    await page.locator("#fresh").click()
    await expect(page.locator("#results tbody tr")).to_have_count(3)
    # Rows added later are updated too.
    assert await tenant.delete(later) == 204
    await expect(other).to_have_attribute("data-left", "")


async def test_starred_call_is_listed_among_favourites(shown: Window, tenant: Tenant) -> None:
    page = shown.page
    ids = [await tenant.submit(f"call {number}", NOWHERE, dueAt=in_seconds(3_600)) for number in range(3)]
    await shown.go(tenant.list)
    star = page.get_by_role("button", name="Favourite: call 1")
    # The star changes in place and at once.
    async with page.expect_response("**/calls/star"):
        await star.click()
    button = page.locator(f"button.star[value$='{ids[1]}']")
    await expect(button).to_have_attribute("aria-pressed", "true")
    assert (await tenant.get(ids[1]))["tags"] == ["star"]
    await shown.picture("calls-starred")
    await page.get_by_label("Favourites").check()
    await expect(page.locator("#results tbody tr")).to_have_count(1)
    await expect(page).to_have_url(re.compile("starred=yes"))
    await page.reload()
    await expect(page.locator("#results tbody tr a.named")).to_have_text("call 1")
    await page.locator("a.named").click()
    await expect(page.locator(f"button.star[value$='{ids[1]}']")).to_have_attribute("aria-pressed", "true")
    async with page.expect_response("**/calls/star"):
        await page.locator(f"button.star[value$='{ids[1]}']").click()
    await expect(page.locator(f"button.star[value$='{ids[1]}']")).to_have_attribute("aria-pressed", "false")
    assert (await tenant.get(ids[1]))["tags"] == []
    await shown.go(f"{tenant.list}&starred=yes")
    await expect(page.get_by_role("heading", name="No favourites yet")).to_be_visible()


async def test_call_filters_are_in_the_url(shown: Window, inbox: tuple[Inbox, str], tenant: Tenant) -> None:
    calls, url = inbox
    page = shown.page
    calls.answers = [(503, b"busy")]
    failed = await tenant.submit("sad", url, tags=["eu"])
    await tenant.ended(failed)
    done = await tenant.submit("glad", url, tags=["eu", "vip"])
    await tenant.ended(done)
    await tenant.submit("later", NOWHERE, dueAt=in_seconds(3_600), tags=["vip"])
    await shown.go(tenant.list)
    rows = page.locator("#results tbody tr")
    await expect(rows).to_have_count(3)
    await page.get_by_role("link", name="Failed").click()
    await expect(rows).to_have_count(1)
    await expect(rows.locator(".c-what")).to_contain_text("503")
    await expect(rows.locator(".c-what")).to_contain_text("busy")
    await page.get_by_role("link", name="All", exact=True).click()
    search = page.locator("#q")
    await search.click()
    await page.keyboard.type("tag:eu tag:vip ")
    await expect(rows).to_have_count(1)
    await expect(rows.locator("a.named")).to_have_text("glad")
    await expect(page).to_have_url(re.compile("tag=eu&tag=vip"))
    await page.reload()
    await expect(rows).to_have_count(1)
    for tag in ("eu", "vip"):
        await page.get_by_label(f"Remove tag {tag}").click()
    await expect(rows).to_have_count(3)
    await page.locator("#due").select_option("last-1h")
    await expect(rows).to_have_count(3)
    await page.locator("#due").select_option("custom")
    await page.get_by_label("To (Europe/Berlin)").fill("2020-01-01T00:00:00")
    await expect(page.get_by_role("heading", name="No matching calls")).to_be_visible()
    await page.go_back()
    await expect(rows).to_have_count(3)
    await page.wait_for_load_state()
    await search.fill(done)
    await expect(page.locator("tbody.exact tr a.named")).to_have_text("glad")
    await search.fill("GLA")
    await expect(rows.locator("a.named")).to_have_text("glad")
    await expect(page).to_have_url(re.compile("q=GLA"))
    await search.fill("nonsense")
    await expect(page.get_by_role("heading", name="No call has this name")).to_be_visible()


async def test_selected_calls_are_deleted_or_retried(shown: Window, inbox: tuple[Inbox, str], tenant: Tenant) -> None:
    calls, url = inbox
    calls.answers = [(503, b"busy"), (503, b"busy")]
    page = shown.page
    secret = {"Authorization": "Bearer of-the-shop"}
    for name in ("first", "second"):
        await tenant.ended(await tenant.submit(name, url, headers=secret, body={"n": name}))
    later = [await tenant.submit(f"later {number}", NOWHERE, dueAt=in_seconds(3_600)) for number in range(3)]
    await shown.go(tenant.list)
    rows, dialog = page.locator("#results tbody tr[data-id]"), page.locator("#dialog")
    await expect(rows).to_have_count(5)
    await page.get_by_label("Select all rows shown").check()
    await expect(page.locator("#picked-count")).to_have_text("5 calls selected, 2 finished")
    await page.get_by_label("Select later 0").uncheck()
    await page.get_by_role("button", name="Delete selected…").click()
    await expect(dialog.get_by_role("heading")).to_have_text("Delete 2 calls?")
    await expect(dialog).to_contain_text("2 of the selected calls have already started.")
    await shown.picture("calls-bulk")
    await dialog.get_by_role("button", name="Delete 2 calls").click()
    await expect(dialog.get_by_role("heading")).to_have_text("2 of 2 deleted")
    await dialog.get_by_role("button", name="Close").click()
    assert (await tenant.get(later[0]))["status"] == "Scheduled"
    await page.get_by_label("Select first").check()
    await page.get_by_label("Select second").check()
    await page.get_by_role("button", name="Retry…").click()
    await dialog.get_by_role("button", name="Retry 2 calls").click()
    await expect(dialog.get_by_role("heading")).to_have_text("2 of 2 retried")
    # As they were sent first, with their secrets, under the same ids.
    again = (await calls.count(4))[2:]
    assert sorted(call.body["n"] for call in again) == ["first", "second"]
    assert {call.headers["authorization"] for call in again} == {"Bearer of-the-shop"}


async def test_all_waiting_calls_that_match_are_deleted_by_a_job_that_asks_first(shown: Window, tenant: Tenant) -> None:
    page = shown.page
    for number in range(5):
        tags = ["eu"] if number < 3 else ["us"]
        await tenant.submit(f"later {number}", NOWHERE, dueAt=in_seconds(3_600), tags=tags)
    # Keeps further rows from loading.
    await page.route("**/ui/more/**", lambda route: route.abort())
    await shown.go(f"{tenant.list}&view=scheduled&tag=eu&rows=2")
    await page.get_by_label("Select all rows shown").check()
    await shown.picture("calls-delete-matching")
    await page.get_by_role("button", name="Delete all that match…").click()
    await shown.arrived(f"Delete waiting calls of tenant {tenant.id}")
    job = page.locator("#job")
    await expect(job).to_contain_text("3 calls match as of")
    await shown.picture("calls-job-asks")
    await job.get_by_role("button", name="Delete 3 calls").click()
    await expect(page.locator("#job .state").first).to_have_text("completed")
    await expect(job).to_contain_text("Changed3")
    await shown.picture("calls-job-done")
    await shown.go(f"{tenant.list}&view=scheduled")
    await expect(page.locator("#results tr[data-id] a.named")).to_have_text(["later 4", "later 3"])


async def test_all_failed_calls_that_match_are_retried_by_a_job_that_asks_first(
    shown: Window, inbox: tuple[Inbox, str], tenant: Tenant
) -> None:
    calls, url = inbox
    calls.default = (503, b"busy")
    page = shown.page
    for number in range(4):
        await tenant.ended(await tenant.submit(f"sad {number}", url, tags=["eu"] if number else []))
    await page.route("**/ui/more/**", lambda route: route.abort())
    listed = f"{tenant.list}&view=failed&rows=2"
    # Failures have no names by which a job could find them.
    await shown.go(f"{listed}&q=sad")
    await page.get_by_label("Select all rows shown").check()
    button = page.get_by_role("button", name="Retry all that match…")
    await expect(button).to_be_disabled()
    await expect(button).to_have_attribute("title", re.compile("Remove the search text"))
    await shown.picture("calls-retry-disabled")
    calls.default = (200, b"")
    await shown.go(f"{listed}&tag=eu")
    await page.get_by_label("Select all rows shown").check()
    await button.click()
    await shown.arrived(f"Replay failures of tenant {tenant.id}")
    job = page.locator("#job")
    await expect(job).to_contain_text("3 failures match as of")
    await job.get_by_role("button", name="Replay 3 failures").click()
    await expect(page.locator("#job .state").first).to_have_text("completed")
    await expect(job).to_contain_text("Changed3")
    await calls.count(7)
    await shown.go(f"{tenant.list}&view=failed")
    await expect(page.locator("#results tr[data-id] a.named")).to_have_text("sad 0")


async def test_calls_of_all_tenants_are_listed_with_their_labels(
    shown: Window, tenant: Tenant, server: ServerProcess
) -> None:
    page, other = shown.page, Tenant(server)
    one = await tenant.submit("mine", NOWHERE, dueAt=in_seconds(3_600))
    await other.submit("theirs", NOWHERE, dueAt=in_seconds(3_600))
    await shown.go("/calls/tenants")
    await page.get_by_label(f"Label of {tenant.id}").fill("The shop")
    await page.locator("tr", has_text=tenant.id).get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Label saved.")).to_be_visible()
    await shown.go("/calls?view=scheduled")
    row = page.locator(f"#results tr[data-id='{one}']")
    await expect(row.locator(".c-ns")).to_have_text("The shop")
    await expect(page.locator("#results tr[data-id]", has_text="theirs")).to_be_visible()
    # A change at another tenant reaches the open list.
    assert await tenant.delete(one) == 204
    await expect(row).to_have_attribute("data-left", "")
    await page.locator("#tenant").select_option("The shop")
    await expect(page.get_by_role("heading", name="No scheduled calls")).to_be_visible()


async def test_refused_star_is_reverted(shown: Window, tenant: Tenant) -> None:
    page = shown.page
    tags = [f"t{number}" for number in range(AgentLimits().tags_max)]
    one = await tenant.submit("full", NOWHERE, dueAt=in_seconds(3_600), tags=tags)
    await shown.go(tenant.list)
    star = page.locator("button.star")
    await star.click()
    await expect(page.locator(".toast")).to_contain_text("tags")
    await expect(star).to_have_attribute("aria-pressed", "false")
    assert "star" not in (await tenant.get(one))["tags"]
    await page.route("**/calls/star", lambda route: route.abort())
    await star.click()
    await expect(page.locator(".toast").last).to_contain_text("It may have been changed")
    await expect(star).to_have_attribute("aria-pressed", "false")


async def test_failed_call_shows_its_error(shown: Window, inbox: tuple[Inbox, str], tenant: Tenant) -> None:
    calls, url = inbox
    calls.default = (503, b"<b>busy</b>")
    failed = await tenant.submit("sad", url)
    unreachable = await tenant.submit("nobody there", NOWHERE)
    page = shown.page
    await shown.go(tenant.page(failed))
    await expect(page.locator(".lead .state")).to_have_text("failed")
    await expect(page.locator(".error-line").first).to_contain_text("HTTP 503")
    await expect(page.locator("#response .status-code")).to_have_text("503")
    await expect(page.locator("#response code")).to_have_text("<b>busy</b>")
    await expect(page.locator(".line li").last).to_contain_text("Failed")
    await shown.go(tenant.page(unreachable))
    await expect(page.locator("#response")).to_contain_text("No response")
    await expect(page.locator(".error-line").first).to_contain_text("CONNECTION")


async def test_call_is_tagged_untagged_and_deleted(shown: Window, tenant: Tenant) -> None:
    page = shown.page
    one = await tenant.submit("one", NOWHERE, dueAt=in_seconds(3_600))
    await shown.go(tenant.page(one))
    await page.get_by_label("New tag").fill("a/b ?&")
    await page.get_by_role("button", name="Add tag").click()
    await expect(page.get_by_text("Tag added.")).to_be_visible()
    assert (await tenant.get(one))["tags"] == ["a/b ?&"]
    await page.get_by_label("New tag").fill("x" * 65)
    await page.get_by_role("button", name="Add tag").click()
    await expect(page.get_by_role("alert")).to_contain_text("64")
    await expect(page.get_by_label("New tag")).to_have_value("x" * 65)
    await page.get_by_role("button", name="Remove tag a/b ?&").click()
    await expect(page.get_by_text("Tag removed.")).to_be_visible()
    assert (await tenant.get(one))["tags"] == []
    await page.get_by_text("Delete…").click()
    await page.get_by_role("button", name="Delete call").click()
    await expect(page.get_by_text("Call deleted.")).to_be_visible()
    await expect(page.get_by_role("heading", name="No calls yet")).to_be_visible()


async def test_late_deletion_of_a_call_is_refused(shown: Window, inbox: tuple[Inbox, str], tenant: Tenant) -> None:
    _, url = inbox
    page = shown.page
    async with no_updates(shown):
        delete = page.get_by_text("Delete…")
        for delay_s in (1, 2, 4, 8, 16):
            one = await tenant.submit("one", url, dueAt=in_seconds(delay_s))
            await shown.go(tenant.page(one))
            # Unless the machine halted meanwhile, the call is not sent yet.
            if await delete.is_visible():
                break
        await delete.click()
        await tenant.ended(one)
        await page.get_by_role("button", name="Delete call").click()
        await expect(page.get_by_role("alert")).to_contain_text("is Succeeded already")
    await expect(page.locator(".lead .state")).to_have_text("succeeded")


@asynccontextmanager
async def no_updates(shown: Window) -> AsyncIterator[None]:
    """Blocks the page's live updates."""

    async def hold(route: Route) -> None:
        is_update = route.request.resource_type == "fetch" and route.request.method == "GET"
        await (route.abort() if is_update else route.continue_())

    await shown.page.route("**/calls/**", hold)
    yield
    await shown.page.unroute_all()


async def test_duplicated_call_requires_its_secrets_again(
    shown: Window, inbox: tuple[Inbox, str], tenant: Tenant
) -> None:
    calls, url = inbox
    page = shown.page
    secret = "s3cret-of-the-shop"
    headers = {"Authorization": f"Bearer {secret}", "X-Shop": "eu"}
    one = await tenant.submit("charge", f"{url}?token={secret}&n=1", headers=headers, body={"n": 1}, tags=["eu"])
    await tenant.ended(one)
    await shown.go(tenant.page(one))
    await expect(page.locator("main")).to_contain_text("[redacted]")
    assert secret not in await page.content()
    await page.get_by_role("link", name="Duplicate…").click()
    await expect(page.locator("h1")).to_have_text("New call")
    assert secret not in await page.content()
    await expect(page.get_by_label("Header name").nth(1)).to_have_value("X-Shop")
    await page.get_by_role("button", name="Submit call").click()
    await expect(page.locator("#wrong-url")).to_contain_text("enter the secret again")
    await expect(page.locator("#wrong-headers")).to_contain_text("Needs the value of Authorization")
    await page.get_by_role("textbox", name="URL").fill(url)
    await page.get_by_label("Header value").first.fill("Bearer other")
    await page.get_by_role("button", name="Submit call").click()
    await expect(page.locator(".lead .state")).to_have_text("succeeded")
    found = await calls.count(2)
    assert (found[1].headers["authorization"], found[1].headers["x-shop"], found[1].body) == (
        "Bearer other",
        "eu",
        {"n": 1},
    )


async def test_invalid_form_is_shown_again_with_its_errors(shown: Window) -> None:
    page = shown.page
    await shown.go("/calls/new")
    await page.get_by_label("URL", exact=True).fill("http://user:pass@x.example/")
    await page.get_by_label("Method").select_option("GET")
    await shown.payload("[1]")
    tenant = page.locator("input[name='tenant']")
    await shown.unfold("Tenant")
    before = await tenant.input_value()
    await page.get_by_role("button", name="New tenant").click()
    await expect(tenant).not_to_have_value(before)
    assert UUID.fullmatch(await tenant.input_value())
    await tenant.fill("my shop")
    await page.get_by_role("button", name="Submit call").click()
    await expect(page.locator("#wrong-url")).to_contain_text("credentials")
    await expect(page.locator("#wrong-body")).to_contain_text("Can't be sent with GET")
    await expect(page.locator("#wrong-tenantId")).to_contain_text("UUID of version 7")
    await expect(page.get_by_label("Method")).to_have_value("GET")
    await shown.picture("call-form-wrong")


async def test_a_click_that_leaves_an_invalid_field_hits_what_it_aimed_at(shown: Window) -> None:
    page, asked = shown.page, list[str]()
    await shown.go("/calls/new")
    async with page.expect_response("**/ui/calls/equivalent"):
        await page.get_by_label("URL", exact=True).fill("http://user:pass@x.example/")
    line = page.locator("details.option", has_text="Payload")
    place = await line.locator("summary").bounding_box()
    assert place is not None
    await page.mouse.move(place["x"] + 20, place["y"] + 10)
    page.on("request", lambda request: asked.append(request.url))
    # The field's error appears above the line, and moves it.
    await page.mouse.down()
    await shown.painted()
    assert asked == []
    await page.mouse.up()
    await expect(line).to_have_attribute("open", "")
    await expect(page.locator("#wrong-url")).to_contain_text("credentials")


async def test_equivalent_command_submits_the_same_call(
    shown: Window, server: ServerProcess, inbox: tuple[Inbox, str], tenant: Tenant
) -> None:
    calls, url = inbox
    page = shown.page
    await shown.go(f"/calls/new?tenant={tenant.id}")
    await page.get_by_label("URL", exact=True).fill(url)
    await shown.unfold("Name", "Headers")
    await page.locator("input[name='name']").fill("-it's $HOME")
    await page.get_by_label("Header name").fill("X-Note")
    await page.get_by_label("Header value").fill("a 'quoted' $(reboot)")
    await shown.payload('{"a": "it\'s"}')
    text = page.get_by_label("tocsin command", exact=True)
    await expect(text).to_contain_text("X-Note")
    await expect(text).to_contain_text("--body")
    words = shlex.split((await text.inner_text()).replace("\\\n", " "))
    code, _, err = await command(*words[1:])
    assert code == 0, err
    (call,) = await calls.wait(lambda found: len(found) == 1)
    assert (call.headers["x-note"], call.body) == ("a 'quoted' $(reboot)", {"a": "it's"})


async def test_pages_work_without_scripts(browser: Browser, server: ServerProcess, tenant: Tenant) -> None:
    async with window(browser, server.url, scripts=False) as plain:
        page = plain.page
        await plain.go(f"/calls/new?tenant={tenant.id}")
        await page.get_by_role("textbox", name="URL").fill(NOWHERE)
        await page.get_by_label("Time from now").fill("1h")
        await page.get_by_label("In", exact=True).check()
        await plain.unfold("Payload", "Name")
        await page.locator("textarea").fill('{"a": 1}')
        await page.locator("input[name='name']").fill("plain")
        await page.get_by_role("button", name="Submit call").click()
        await expect(page.locator("h1")).to_have_text("plain")
        await page.get_by_role("link", name="Show the trace").click()
        await expect(page.locator(".trace")).to_contain_text("ScheduleTimer")
        await plain.go(tenant.list)
        await page.get_by_role("button", name="Favourite: plain").click()
        await expect(page.get_by_role("button", name="Favourite: plain")).to_have_attribute("aria-pressed", "true")
        await page.get_by_label("Favourites").check()
        await page.get_by_role("button", name="Search").click()
        await expect(page.locator("#results tbody tr")).to_have_count(1)
