"""The table of namespaces, the pages with their settings, and the list that the API and the command line show."""

from __future__ import annotations

import asyncio
import re

import pytest

from tests.integration.pages.conftest import Browser, Node
from tests.support.damage import damage
from tocsin.cli.app import run
from tocsin.timers.service import TimerService
from tocsin.web.pages.admin.tables import ROWS


async def create(browser: Browser, name: str, **settings: object) -> None:
    answer = await browser.client.post("/api/v1/namespaces/create", json={"name": name, **settings})
    assert answer.status_code == 200, answer.text


def names(page: str) -> list[str]:
    return re.findall(r'<th scope="row" class="mono break"><a href="[^"]+">([^<]+)</a>', page)


async def test_a_damaged_namespace_is_shown_as_damaged(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    service = node.server.service
    assert service is not None
    await damage(service.namespaces._context.store, await service.namespaces.create("hurt"))
    browser = node.browser()
    assert (await browser.get("/namespaces")).text.count("<span>damaged</span>") == 1
    shown = (await browser.get("/namespaces/hurt")).text
    # Without settings, and without the instants of the placeholder.
    assert "record can’t be read: " in shown and "1970" not in shown and "/namespaces/change" not in shown
    default, hurt = (await browser.client.post("/api/v1/namespaces/list")).json()["namespaces"]
    assert "damaged" not in default and (hurt["name"], bool(hurt["damaged"])) == ("hurt", True)
    code = await asyncio.to_thread(run, ["namespaces", "list", "--server", node.server.url])
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(" hurt ")]
    assert (code, row.split()[:2]) == (0, ["hurt", hurt["damaged"].split()[0]]), row


async def test_each_number_of_the_table_is_a_link_to_the_list_that_it_counts(node: Node) -> None:
    browser = node.browser()
    for name, delay in (("soon", "5m"), ("later", "2h")):
        await browser.create(name, delay=delay)
    await browser.create("past", delay="0s", callbackUrl="http://127.0.0.1:9/", retryPolicy={"maxAttempts": 1})
    while (await browser.get("/timers?view=failed")).text.count("<tr role") < 2:  # noqa: ASYNC110 -- no signal for it
        await asyncio.sleep(0.02)
    table = (await browser.get("/namespaces")).text
    numbers = re.findall(r'<td class="num"[^>]*><a href="([^"]+)"[^>]*>([^<]+)</a>', table)
    assert [number for _, number in numbers] == ["2", "1", "1"]
    lists = [(await browser.get(link.replace("&amp;", "&"))).text for link, _ in numbers]
    assert [re.findall(r'data-id="(\w+)"', page) for page in lists] == [["soon", "later"], ["soon"], ["past"]]


async def test_many_namespaces_are_shown_in_parts_and_searched(node: Node) -> None:
    browser = node.browser()
    for number in range(ROWS + 3):
        await create(browser, f"Team-{number:03}")
    page = (await browser.get("/namespaces")).text
    assert names(page) == [f"Team-{number:03}" for number in range(ROWS)]
    following = re.search(r'rel="next" href="([^"]+)"', page)
    assert following is not None
    page = (await browser.get(following[1].replace("&amp;", "&"))).text
    assert names(page) == [*(f"Team-{number:03}" for number in range(ROWS, ROWS + 3)), "default"]
    assert 'rel="next"' not in page
    assert names((await browser.get("/namespaces?q=team-04")).text) == [f"Team-04{digit}" for digit in range(10)]


@pytest.mark.parametrize("name", ["new", ".", "..", "create", "a:b"])
async def test_every_name_has_a_page(node: Node, name: str) -> None:
    browser = node.browser()
    created = await browser.post("/namespaces/new", {"name": name, "history": "failures"})
    assert created.status_code == 303
    page = (await browser.get(created.headers["location"])).text
    assert f'<h1 class="id">{name}</h1>' in page and "Namespace created." in page
    link = re.search(
        r'class="mono break"><a href="([^"]+)">' + re.escape(name) + "</a>", (await browser.get("/namespaces")).text
    )
    assert link is not None and f'<h1 class="id">{name}</h1>' in (await browser.get(link[1])).text


async def test_errors_are_shown_beside_their_fields_and_keep_the_input(node: Node) -> None:
    browser = node.browser()
    fields = {"name": "no spaces", "numShards": "x", "history": "all", "retention": "soon", "answers": "strict"}
    answer = await browser.post("/namespaces/new", fields)
    assert answer.status_code == 400
    wrong = dict(re.findall(r'<span class="wrong" id="wrong-(\w+)">([^<]+)', answer.text))
    assert wrong.keys() == {"numShards"} or wrong.keys() == {"name", "retention"}, wrong
    assert 'value="no spaces"' in answer.text and '<option value="strict" selected>' in answer.text
    taken = await browser.post("/namespaces/new", {"name": "default", "history": "all"})
    assert (taken.status_code, _wrong(taken.text, "name")) == (409, True)
    policy = {"retry": "custom", "attempts": "many", "initial_interval": "1s", "multiplier": "2", "max_interval": "1h"}
    answer = await browser.post("/namespaces/change", {"name": "default", "retention": "7d", **policy})
    assert answer.status_code == 400 and 'id="wrong-maxAttempts">Is not a number' in answer.text
    assert 'value="7d"' in answer.text and 'value="many"' in answer.text
    assert (await browser.post("/namespaces/change", {"name": "default", **policy, "attempts": "3"})).status_code == 303
    (default,) = (await browser.client.post("/api/v1/namespaces/list")).json()["namespaces"]
    assert default["retryPolicy"]["maxAttempts"] == 3 and default["retention"] == "3d"
    assert (await browser.post("/namespaces/change", {"name": "default", "retry": "default"})).status_code == 303
    (default,) = (await browser.client.post("/api/v1/namespaces/list")).json()["namespaces"]
    assert default["retryPolicy"]["maxAttempts"] == 10
    assert (await browser.get("/namespaces/nobody")).status_code == 404


async def test_hooks_are_set_kept_and_removed_by_their_urls(node: Node) -> None:
    browser = node.browser()
    secret = {"url": "http://127.0.0.1:9/alerts", "headers": {"x-key": "of-the-hook"}}
    await create(browser, "billing", onFailure=secret, onSuccess={"url": "http://127.0.0.1:9/done"})
    page = (await browser.get("/namespaces/billing")).text
    assert 'name="onFailure"' in page and "of-the-hook" not in page
    fields = {"name": "billing", "onFailure": secret["url"], "onSuccess": "", "onPaused": "http://127.0.0.1:9/paused"}
    assert (await browser.post("/namespaces/change", fields)).status_code == 303
    listed = (await browser.client.post("/api/v1/namespaces/list")).json()["namespaces"]
    (billing,) = [each for each in listed if each["name"] == "billing"]
    assert {name: value for name, value in billing.items() if name.startswith("on")} == {
        "onFailure": {"url": secret["url"], "headers": {"x-key": "[redacted]"}},
        "onPaused": {"url": "http://127.0.0.1:9/paused"},
    }
    refused = await browser.post("/namespaces/change", {**fields, "onMissed": "nowhere"})
    assert refused.status_code == 400 and _wrong(refused.text, "onMissed") and 'value="nowhere"' in refused.text


async def test_a_namespace_is_deleted_once_its_name_was_entered(node: Node) -> None:
    browser = node.browser()
    await create(browser, "leaving")
    await browser.create("t", namespace="leaving")
    schedule = {"namespace": "leaving", "id": "s", "callbackUrl": "http://127.0.0.1:9/", "every": "24h"}
    assert (await browser.client.post("/api/v1/schedules/create", json=schedule)).status_code == 200
    page = (await browser.get("/namespaces/leaving")).text
    assert "of which 1 is pending, schedules, of which 1 is live" in page
    for fields, status, why in (
        ({"typed": "leavin", "pending": "yes"}, 400, "wrong-typed"),
        ({"typed": "leaving"}, 409, "wrong-cancelPending"),
    ):
        refused = await browser.post("/namespaces/delete", {"name": "leaving", **fields})
        assert refused.status_code == status
        assert re.search(rf'id="{why}"[^>]*>[^<]+<', refused.text), fields
        assert "<details" in refused.text and 'id="delete" open' in refused.text
    begun = await browser.post("/namespaces/delete", {"name": "leaving", "typed": "leaving", "pending": "yes"})
    assert begun.status_code == 303
    job = begun.headers["location"]
    assert "Delete namespace leaving" in (await browser.get(job)).text
    assert "Delete namespace leaving" in (await browser.get("/jobs")).text
    while "<span>completed</span>" not in (await browser.get(job)).text:  # noqa: ASYNC110 -- no signal for it
        await asyncio.sleep(0.05)
    assert (await browser.get("/namespaces/leaving")).status_code == 404
    assert "leaving" not in names((await browser.get("/namespaces")).text)
    audit = (await browser.get("/audit?subject=leaving")).text
    assert "Deleted namespace" in audit


async def test_the_pages_of_a_namespace_show_that_it_is_being_deleted(node: Node) -> None:
    browser = node.browser()
    await create(browser, "going")
    await browser.create("t", namespace="going")
    schedule = {"namespace": "going", "id": "s", "callbackUrl": "http://127.0.0.1:9/", "every": "24h"}
    assert (await browser.client.post("/api/v1/schedules/create", json=schedule)).status_code == 200
    # Paused, so that it stays as it is.
    wanted = {"name": "going", "cancelPending": True, "ratePerSecond": 1}
    job = (await browser.client.post("/api/v1/namespaces/delete", json=wanted)).json()["job"]
    paused = await browser.client.post("/api/v1/jobs/pause", json={"jobId": job["id"]})
    assert paused.status_code == 200
    settings = (await browser.get("/namespaces/going")).text
    assert "being deleted" in settings and f"/jobs/{job['id']}" in settings
    assert "/namespaces/change" not in settings and 'id="delete"' not in settings
    assert "<span>being deleted</span>" in (await browser.get("/namespaces")).text
    for path in ("/timers?namespace=going", "/schedules?namespace=going"):
        assert "The namespace going is being deleted" in (await browser.get(path)).text, path


async def test_what_is_always_there_has_no_form_to_delete_it(node: Node) -> None:
    browser = node.browser()
    assert 'id="delete"' not in (await browser.get("/namespaces/default")).text
    refused = await browser.post("/namespaces/delete", {"name": "default", "typed": "default"})
    assert refused.status_code == 400 and "is always there" in refused.text


async def test_limits_are_set_shown_and_removed(node: Node) -> None:
    browser = node.browser()
    await create(browser, "shop")

    async def stored() -> object:
        return (await browser.client.post("/api/v1/namespaces/get", json={"name": "shop"})).json().get("limits")

    sent = {f"limits.{name}": "" for name in ("rate.count", "rate.per", "burst", "parallelism")}
    assert (await browser.post("/namespaces/change", {"name": "shop", **sent})).status_code == 303
    assert await stored() is None
    sent |= {"limits.rate.count": "500", "limits.rate.per": "1m", "limits.burst": "20", "limits.parallelism": "9"}
    assert (await browser.post("/namespaces/change", {"name": "shop", **sent})).status_code == 303
    limits = {"rate": {"count": 500, "per": "1m"}, "burst": 20, "parallelism": 9}
    assert await stored() == limits
    page = (await browser.get("/namespaces/shop")).text
    assert 'name="limits.rate.count" value="500"' in page and 'name="limits.parallelism" value="9"' in page
    for field, text in (("limits.rate.per", "soon"), ("limits.burst", "many"), ("limits.parallelism", "0")):
        refused = await browser.post("/namespaces/change", {"name": "shop", **sent, field: text})
        assert refused.status_code == 400 and _wrong(refused.text, field)
        assert f'value="{text}"' in refused.text and 'value="500"' in refused.text
    assert await stored() == limits
    none = sent | {"limits.rate.count": "", "limits.burst": "", "limits.parallelism": ""}
    assert (await browser.post("/namespaces/change", {"name": "shop", **none})).status_code == 303
    assert await stored() is None


async def test_quotas_are_set_shown_with_their_use_and_removed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = node.browser()
    await create(browser, "shop")
    assert 'id="quota-use"' not in (await browser.get("/namespaces/shop")).text
    sent = {"quotas.pending": "200", "quotas.createsPerSecond": "50", "quotas.payloadBytes": ""}
    assert (await browser.post("/namespaces/change", {"name": "shop", **sent})).status_code == 303
    await browser.create("t", namespace="shop")
    while "1 of 200, counted" not in (page := (await browser.get("/namespaces/shop")).text):  # noqa: ASYNC110 -- no signal
        await asyncio.sleep(0.02)
    assert 'name="quotas.pending" value="200"' in page and "of 50, in the last seconds" in page
    assert "Not all nodes have answered" not in page
    with monkeypatch.context() as silent:
        silent.setattr(TimerService, "other_nodes", lambda _: {b"another": "another"})
        page = (await browser.get("/namespaces/shop")).text
    assert "at least 1 of 200, counted" in page and "Not all nodes have answered" in page
    refused = await browser.post("/namespaces/change", {"name": "shop", **sent, "quotas.payloadBytes": "much"})
    assert refused.status_code == 400 and _wrong(refused.text, "quotas.payloadBytes")
    assert 'value="much"' in refused.text and 'value="200"' in refused.text
    assert (
        await browser.post("/namespaces/change", {"name": "shop", **sent, "quotas.pending": "0"})
    ).status_code == 400
    none = dict.fromkeys(sent, "")
    assert (await browser.post("/namespaces/change", {"name": "shop", **none})).status_code == 303
    stored = (await browser.client.post("/api/v1/namespaces/get", json={"name": "shop"})).json()
    assert "quotas" not in stored


def _wrong(page: str, field: str) -> bool:
    """Whether the form shows an error at the field."""
    return re.search(f'id="wrong-{re.escape(field)}">[^<]', page) is not None


async def test_a_sink_that_the_server_does_not_permit_is_refused_at_its_field(node: Node) -> None:
    browser = node.browser()
    assert 'name="eventSink" value=""' in (await browser.get("/namespaces/default")).text
    answer = await browser.post("/namespaces/change", {"name": "default", "eventSink": "nats://events"})
    assert answer.status_code == 400
    assert "the server has no nats_url" in answer.text and 'name="eventSink" value="nats://events"' in answer.text
    unchanged = await browser.post("/namespaces/change", {"name": "default", "eventSink": ""})
    assert unchanged.status_code == 303
