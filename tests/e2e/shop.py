"""The data of a small shop, for pictures of the pages: a bit of everything that they can show."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from typing import Any

from tests.e2e.tenant import Tenant, in_seconds
from tests.support.calls import Api

#: How long timers fire before the first picture, so that the charts have data.
BUSY_S = 60
FIRES_PER_SECOND = 12
CALLS_PER_SECOND = 4

_reservations = itertools.count()
_deliveries = itertools.count()
_callbacks: Counter[str] = Counter()


def answer(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
    """The shop's responses to callbacks, mostly successes."""
    if "timerId" not in body:
        return _service(body)
    timer_id, attempt = body["timerId"], body["attempt"]
    _callbacks[timer_id] += 1
    if timer_id.startswith(("invoice-", "order-")) and _callbacks[timer_id] < 3:
        return 503, b"busy"
    if timer_id.startswith("charge-"):
        return 402, b'{"error":"the card has expired"}'
    if timer_id == "stock-feed" and next(_deliveries) % 5 == 3:
        return 504, b"no answer from the warehouse"
    return (500, b"") if timer_id.endswith("7") and attempt == 1 else (200, b"")


def _service(body: dict[str, Any]) -> tuple[int, bytes]:
    """The responses of the shop's services to calls."""
    if "items" in body and next(_reservations) % 5 == 4:
        return 409, b'{"error":"sold out","sku":"bell-3"}'
    if "order" in body:
        return 200, b'{"charge":"ch_81","order":17,"status":"paid","receipt":"https://pay.example/r/ch_81"}'
    return 200, b'{"accepted":true}'


async def _send(api: Api, path: str, **body: Any) -> Any:
    """The API's response to a request that succeeds."""
    status, sent = await api(path, **body)
    assert status in (200, 202), (path, sent)
    return sent


async def fail(api: Api, url: str) -> None:
    """The failures of the tutorial: six timers that a receiver with a fault has refused."""
    policy = {"maxAttempts": 2, "initialInterval": "100ms"}
    for number in range(1, 7):
        await api.create(f"order-{number}", f"{url}/orders", retryPolicy=policy)
    for number in range(1, 7):
        await api.settled(f"order-{number}", "failed")


async def recover(api: Api) -> None:
    """Replays these failures, which now succeed."""
    await _send(
        api, "jobs/create", namespace="default", action="replay", of="failures", filter={"error": "HTTP 503"},
        ratePerSecond=20,
    )  # fmt: skip
    for number in range(1, 7):
        await api.settled(f"order-{number}", "completed")


async def stock(api: Api, url: str) -> None:
    """Creates timers of several kinds, and enough that fire before the first picture."""
    policy = {"maxAttempts": 5, "initialInterval": "1s"}
    kinds = (
        ("order-{}-reminder", ["orders", "eu"], {"order": 17, "amount": "19.90", "currency": "EUR"}),
        ("basket-{}-abandoned", ["baskets"], {"basket": "b-81", "items": [{"sku": "bell-3", "count": 2}]}),
        ("trial-{}-ends", ["accounts", "mail"], {"account": "a-17"}),
    )
    timers: list[dict[str, Any]] = [
        {
            "id": kinds[number % 3][0].format(1_000 + 7 * number), "callbackUrl": f"{url}/hook",
            "delay": f"{150 + number * number * 11}s", "tags": kinds[number % 3][1], "payload": kinds[number % 3][2],
            "retryPolicy": policy,
        }
        for number in range(40)
    ]  # fmt: skip
    timers += [
        {
            "id": f"mail-{number:05d}", "callbackUrl": f"{url}/hook",
            "delay": f"{number * 1_000 // FIRES_PER_SECOND}ms", "tags": ["mail"], "retryPolicy": policy,
        }
        for number in range((BUSY_S + 60) * FIRES_PER_SECOND)
    ]  # fmt: skip
    # What the flow's rule lets through one by one, what fails without a retry, and what a job changes.
    for count, name, path, more in (
        (90, "report-{}", "reports", {"delay": "0s", "flowKey": "vendor"}),
        (5, "charge-{}", "psp/charge", {"delay": "0s", "retryPolicy": {"maxAttempts": 1}}),
        (400, "newsletter-{}", "mails", {"delay": "3d", "tags": ["newsletter"]}),
        (3, "parcel-{}", "parcels", {"delay": "0s", "callbackUrl": "https://carrier.example/parcels"}),
    ):
        timers += [
            {"id": name.format(4_000 + number), "callbackUrl": f"{url}/{path}", **more} for number in range(count)
        ]
    await _send(api, "destinations/pause", destination="https://carrier.example")
    await _send(api, "flows/put", namespace="default", match="vendor", total={"rate": {"count": 60, "per": "1m"}})
    await _send(
        api, "flows/put", namespace="default", match="customer:", perKey={"parallelism": 1}, total={"parallelism": 20}
    )
    for start in range(0, len(timers), 1_000):
        part = [{"namespace": "default", **timer} for timer in timers[start : start + 1_000]]
        await _send(api, "timers/batch/create", timers=part)
    await api.create(
        "invoice-4711-due", f"{url}/hook", payload={"invoice": 4711, "due": "2027-01-31"}, tags=["billing"],
        retryPolicy=policy,
    )  # fmt: skip
    await _send(api, "namespaces/create", name="billing", history="failures", retention="7d")
    await _repeat(api, url)


async def _repeat(api: Api, url: str) -> None:
    """Creates what repeats: calendars, schedules and monitors."""
    berlin = {"namespace": "default", "timeZone": "Europe/Berlin"}
    days = {"dates": ["2099-01-01", "2099-05-01"], "ranges": [{"first": "2099-12-25", "last": "2099-12-26"}]}
    await _send(api, "calendars/put", **berlin, name="holidays-de", description="Public holidays", **days)
    await _send(api, "calendars/put", **berlin, name="weekends", weekdays=["SAT", "SUN"])
    for name, rule in (
        ("nightly-report", {"cron": "30 2 * * *", "timeZone": "Europe/Berlin", "tags": ["reports"]}),
        ("price-sync", {"every": "2s", "description": "Takes over the suppliers' prices"}),
        ("stock-feed", {"every": "5s", "retryPolicy": {"maxAttempts": 1}}),
        ("invoices", {"cron": "0 9 * * *", "timeZone": "Europe/Berlin", "skip": ["weekends", "holidays-de"]}),
        ("month-end", {"cron": "0 18 1 * *", "timeZone": "Europe/Berlin", "tags": ["billing"]}),
    ):
        await _send(api, "schedules/create", namespace="default", id=name, callbackUrl=f"{url}/jobs/{name}", **rule)
    for name, rule in (
        ("nightly-backup", {"cron": "0 3 * * *", "timeZone": "Europe/Berlin", "grace": "30m"}),
        ("ledger-close", {"cron": "0 18 * * *", "timeZone": "Europe/Berlin"}),
        ("warehouse-import", {"every": "5s"}),
        ("scale-reader", {"every": "10s", "grace": "5s", "description": "The scale at the packing table"}),
    ):
        await _send(api, "monitors/put", namespace="default", id=name, **rule)
    for name, event, code, output in (
        ("nightly-backup", "success", 0, "12 databases, 81 GB"),
        ("ledger-close", "fail", 3, "the disk is full"),
        ("scale-reader", "success", 0, ""),
    ):
        await _send(api, "monitors/ping", namespace="default", id=name, event="start")
        await _send(api, "monitors/ping", namespace="default", id=name, event=event, exitCode=code, body=output)


async def branch(api: Api, url: str) -> None:
    """Creates what else pages of all namespaces can show: timers, schedules and credentials of other namespaces."""
    for name, more in (("fulfilment", {}), ("logistics-integration-europe-west", {"retention": "90d"})):
        await _send(api, "namespaces/create", name=name, **more)
    ship = {"namespace": "fulfilment", "callbackUrl": f"{url}/wms/sync"}
    timers: list[dict[str, Any]] = [
        {**ship, "id": f"wms-sync-{88_000 + number}", "delay": f"{number * 40}s", "tags": ["eu", "stock"]}
        for number in range(120)
    ]
    timers += [
        {
            **ship,
            "id": f"tenant-9f31c0d2-6b1e-4a57-9f0e-7d3c1f2a{number:04d}:subscription-renewal-reminder",
            "delay": "5h",
        }
        for number in range(3)
    ]
    timers += [
        {"namespace": "billing", "id": f"charge-{5_000 + number}-retry", "callbackUrl": f"{url}/psp/{path}", "delay": "0s",
         "tags": ["psp"], "payload": {"charge": number, "amount": 4_990}, "retryPolicy": {"maxAttempts": 1}}
        for number, path in enumerate(["charge"] * 14 + ["capture"] * 5)
    ]  # fmt: skip
    await _send(api, "timers/batch/create", timers=timers)
    for namespace, name, path, rule in (
        (
            "billing",
            "bank-statement",
            "psp/charge",
            {"every": "3s", "pauseAfterFailures": 5, "retryPolicy": {"maxAttempts": 1}},
        ),
        ("billing", "dunning", "jobs/dunning", {"cron": "0 9 * * MON-FRI", "timeZone": "America/New_York"}),
        ("fulfilment", "carrier-manifest", "v1/manifest", {"cron": "0 21 * * MON-FRI", "timeZone": "Europe/Berlin"}),
        ("fulfilment", "stock-sync", "wms/sync", {"cron": "*/2 * * * *"}),
        ("fulfilment", "session-sweep", "sessions/sweep", {"cron": "0 * * * *"}),
    ):
        await _send(api, "schedules/create", namespace=namespace, id=name, callbackUrl=f"{url}/{path}", **rule)
    await _send(
        api, "credentials/put", namespace="billing", name="psp", type="bearer", token="tk-of-the-shop",
        hosts=["psp.example.net"], description="The payment provider",
    )  # fmt: skip
    await _send(
        api, "credentials/put", namespace="fulfilment", name="warehouse", type="basic", username="tocsin", password="pw",
        hosts=["wms.example.net", "wms-standby.example.net"],
    )  # fmt: skip
    await _send(api, "namespaces/update", name="logistics-integration-europe-west", paused=True)


async def order_elsewhere(tenant: Tenant, url: str) -> str:
    """Submits calls of another tenant. Returns the id of one that fails."""
    for number in range(12):
        await tenant.submit(
            f"Payout of seller {number}", f"{url}/mails", body={"seller": number}, dueAt=in_seconds(600 * number)
        )
    failed = await tenant.submit("Ask the warehouse", "http://127.0.0.1:9/stock", method="GET", tags=["stock"])
    await tenant.ended(failed)
    return failed


async def work(api: Api) -> None:
    """Lets timers fire, while a job reports to its monitor."""
    for _ in range(BUSY_S // 5):
        await _send(api, "monitors/ping", namespace="default", id="warehouse-import", event="start")
        await asyncio.sleep(1)
        await _send(api, "monitors/ping", namespace="default", id="warehouse-import", event="success", exitCode=0)
        await asyncio.sleep(4)


async def change_many(api: Api) -> str:
    """Begins a job that goes on while pictures are taken. Returns its id."""
    created = await _send(
        api, "jobs/create", namespace="default", action="shift", of="timers", filter={"tags": ["newsletter"]},
        shiftBy="2h", ratePerSecond=2,
    )  # fmt: skip
    return str(created["job"]["id"])


async def order(tenant: Tenant, url: str) -> str:
    """Submits the shop's service calls. Returns the id of the one on the pictures."""
    services = (
        ("Charge order {}", "charges", ["orders", "eu"], {"order": 17, "amount": "19.90", "currency": "EUR"}),
        ("Reserve items of order {}", "stock", ["stock"], {"items": [{"sku": "bell-3", "count": 2}]}),
        ("Mail the receipt of order {}", "mails", ["mail"], {"template": "receipt", "locale": "de"}),
    )
    for number in range((BUSY_S + 60) * CALLS_PER_SECOND):
        name, path, tags, body = services[number % 3]
        due_at = in_seconds(number / CALLS_PER_SECOND)
        await tenant.submit(name.format(4_000 + number), f"{url}/{path}", body=body, tags=tags, dueAt=due_at)
    await tenant.submit("Ask the bank", "http://127.0.0.1:9/limits", method="GET", tags=["bank"])
    for hours in (2, 26):
        await tenant.submit(
            "Remind of invoice 4711", f"{url}/mails", body={"invoice": 4711}, tags=["billing"],
            dueAt=in_seconds(3_600 * hours),
        )  # fmt: skip
    name, path, tags, body = services[0]
    headers = {"Authorization": "Bearer tk-of-the-shop", "X-Shop": "eu"}
    call = await tenant.submit(
        name.format(4711), f"{url}/{path}", headers=headers, body=body, tags=[*tags, "star"], dueAt=in_seconds(5)
    )
    await tenant.ended(call)
    return call
