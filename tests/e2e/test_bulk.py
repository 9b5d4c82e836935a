"""Many timers at once: those that are selected, by one request, or all that match, by a job."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.e2e.browser import Window
from tests.e2e.conftest import in_new_namespace, serving
from tests.support.calls import Api
from tests.support.server import ServerProcess

#: The browser's.
pytestmark = pytest.mark.asyncio(loop_scope="session")

URL = "http://127.0.0.1:9/hook"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    """A server that accepts seventy timers per request; each test has a namespace of its own."""
    async with serving(tmp_path_factory.mktemp("bulk"), TOCSIN_UI_SELECTED_MAX="70") as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def api(server: ServerProcess) -> Api:
    return await in_new_namespace(server)


async def create(api: Api, *ids: str) -> None:
    """Creates timers due from in an hour on, a second apart."""
    timers = [
        {"namespace": api.namespace, "id": name, "callbackUrl": URL, "delay": f"{3_600 + number}s"}
        for number, name in enumerate(ids)
    ]
    assert (await api("timers/batch/create", timers=timers))[0] == 200


async def pending(api: Api) -> list[str]:
    """The ids of the pending timers, by due time."""
    return [
        timer["id"] for timer in (await api("timers/list", namespace=api.namespace, status=["pending"]))[1]["timers"]
    ]


async def test_selected_timers_are_canceled(shown: Window, api: Api) -> None:
    page = shown.page
    await create(api, *(f"t{number:02d}" for number in range(70)), "kept")
    await shown.go(f"/timers?namespace={api.namespace}&rows=100")
    await page.get_by_label("Select all rows shown").check()
    await page.get_by_label("Select kept").uncheck()
    await api("timers/delete", namespace=api.namespace, timerId="t03")
    await page.get_by_role("button", name="Cancel selected…").click()
    dialog = page.locator("#dialog")
    await expect(dialog.get_by_role("heading")).to_have_text("Cancel 69 timers?")
    await expect(dialog).to_contain_text("1 of the selected timers was not pending when listed, or is no longer.")
    await expect(dialog).to_contain_text("and 61 more")
    await expect(dialog).to_contain_text("127.0.0.1:9 (69)")
    await shown.picture("bulk-counted")
    # A timer that is canceled between the question and the answer is not counted.
    await api("timers/delete", namespace=api.namespace, timerId="t50")
    await dialog.get_by_role("button", name="Cancel 69 timers").click()
    await expect(dialog.get_by_role("heading")).to_have_text("68 of 69 canceled")
    await shown.picture("bulk-done")
    # Behind the dialog, rows that don't belong there any more stay: somebody is at work in the list.
    await expect(page.locator("tr[data-id='t69'] .state")).to_have_text("canceled")
    await dialog.get_by_role("button", name="Close").click()
    assert await pending(api) == ["kept"]
    await expect(page.locator("#picked")).to_be_hidden()


async def test_all_matching_timers_are_canceled_by_a_job_that_counts_them_first(shown: Window, api: Api) -> None:
    page = shown.page
    await create(api, *(f"a{number:02d}" for number in range(65)), *(f"b{number}" for number in range(5)))
    # Keeps further rows from loading.
    await page.route("**/ui/more/**", lambda route: route.abort())
    await shown.go(f"/timers?namespace={api.namespace}&rows=25&q=a&due=next-24h")
    matching = page.get_by_role("link", name="Change all that match…")
    await page.get_by_label("Select a07").check()
    await expect(matching).to_be_hidden()
    await page.get_by_label("Select all rows shown").check()
    await matching.click()
    await expect(page.get_by_label("Id begins with")).to_have_value("a")
    await expect(page.get_by_label("Due from")).not_to_have_value("")
    await shown.picture("job-new")
    await page.get_by_role("button", name="Count them").click()
    confirm = page.get_by_role("button", name="Cancel 65 timers")
    await expect(confirm).to_be_visible()
    await shown.picture("job-counted")
    # Created after they were counted.
    await create(api, "a-late")
    await confirm.click()
    await expect(page.locator("#job dl")).to_contain_text("Changed65")
    await expect(page.locator("#job .state").first).to_have_text("completed")
    await shown.picture("job-done")
    assert sorted(await pending(api)) == ["a-late", "b0", "b1", "b2", "b3", "b4"]


async def test_more_than_one_request_accepts_are_refused_with_what_to_do(shown: Window, api: Api) -> None:
    page = shown.page
    await create(api, *(f"t{number:02d}" for number in range(71)))
    await shown.go(f"/timers?namespace={api.namespace}&rows=100")
    await page.get_by_label("Select all rows shown").check()
    await page.get_by_role("button", name="Cancel selected…").click()
    await expect(page.locator("#toasts")).to_contain_text(
        "71 timers are too many for one request; the maximum is 70. Select fewer, or all that match, which a job changes"
    )
    await expect(page.locator("#picked-count")).to_have_text("71 timers selected")


async def test_request_without_a_response_can_be_repeated(shown: Window, api: Api) -> None:
    page = shown.page
    await create(api, "a", "b")
    await shown.go(f"/timers?namespace={api.namespace}")
    await page.get_by_label("Select all rows shown").check()
    await page.get_by_role("button", name="Cancel selected…").click()
    dialog = page.locator("#dialog")
    await expect(dialog.get_by_role("heading")).to_have_text("Cancel 2 timers?")
    await page.route("**/timers/cancel-many", lambda route: route.abort())
    await dialog.get_by_role("button", name="Cancel 2 timers").click()
    await expect(dialog).to_contain_text("The server does not respond.")
    await page.unroute_all()
    await dialog.get_by_role("button", name="Cancel 2 timers").click()
    await expect(dialog.get_by_role("heading")).to_have_text("2 of 2 canceled")
    assert await pending(api) == []


async def test_a_jobs_dates_are_in_the_zone_that_the_page_shows(shown: Window, api: Api) -> None:
    page = shown.page
    await shown.go(f"/jobs/new?namespace={api.namespace}&from=2027-01-10T05:00:00Z")
    await expect(page.get_by_label("Due from (Europe/Berlin)")).to_have_value("2027-01-10T06:00")
    await page.get_by_label("Due from (Europe/Berlin)").fill("2027-01-10T10:00")
    await page.get_by_label("Due before (Europe/Berlin)").fill("2027-01-10T11:00")
    await page.locator("[data-act='zone']").dispatch_event("click")
    await expect(page.get_by_label("Due before (UTC)")).to_have_value("2027-01-10T10:00")
    await page.locator("[data-act='zone']").dispatch_event("click")
    await page.get_by_role("button", name="Count them").click()
    await page.wait_for_url("**/jobs/*")
    [job] = (await api("jobs/list", namespace=api.namespace))[1]["jobs"]
    asked = job["filter"]
    assert (asked["executeAfter"], asked["executeBefore"]) == ("2027-01-10T09:00:00Z", "2027-01-10T10:00:00Z")
