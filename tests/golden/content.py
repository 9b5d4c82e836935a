"""What golden data contain, one of each kind, and the requests whose answers show that all of it can be read."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx

from tests.support.calls import Api
from tests.support.http import Client, Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess

#: The admin key of every golden store.
ADMIN_KEY = "golden-data-are-public-and-so-is-this-key"
HEADERS = {"authorization": f"Bearer {ADMIN_KEY}"}
TENANT = "01890a5d-ac96-774b-bcce-b302099a8057"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#: Nothing that is kept for a time may have ended before the data are read, and nothing that waits may be due.
LATER, LONG = "2100-01-01T00:00:00Z", "3650d"
#: Nobody answers here.
NOWHERE = "http://127.0.0.1:9/hook"
BODY = {"order": 17, "text": "Ärger 🔔"}
_SIGNING_KEYS = "/.well-known/jwks.json"
#: Waits in a namespace that is paused, and is due.
DUE = {"namespace": "held", "timerId": "due"}
KEPT_LONG = {
    "TOCSIN_FAILURE_RETENTION": LONG,
    "TOCSIN_AUDIT_RETENTION": LONG,
    "TOCSIN_AGENT_RETENTION": LONG,
    "TOCSIN_UI_SESSION_LIFETIME_MAX": LONG,
    "TOCSIN_UI_SESSION_IDLE_TIMEOUT": LONG,
}
#: The sink of events is away, so that they stay.
_SINK = {"TOCSIN_NATS_URL": "nats://127.0.0.1:9", "TOCSIN_NATS_TARGETS": "golden=golden"}


def environment(folder: Path) -> dict[str, str]:
    """The settings under which golden data are made and read, in the working folder. It gets the file with the admin key."""
    key = folder / "admin.key"
    key.write_text(ADMIN_KEY + "\n")
    key.chmod(0o600)
    return {
        # The audit trail has its path, which must not be that of a machine.
        "TOCSIN_ADMIN_KEY_FILE": key.name,
        "TOCSIN_NODE_NAME": "golden",
        "TOCSIN_EGRESS_ALLOW_PRIVATE": "true",
        "TOCSIN_SHARDS": "4",
        "TOCSIN_PUBLIC_URL": "https://timers.example",
        **KEPT_LONG,
        **_SINK,
    }


async def fill(server: ServerProcess, *, agent: bool) -> None:
    """Makes one of everything, by requests. Returns when all of it is in the store."""
    api, client = Api(server, HEADERS, "golden"), Client(server.address, HEADERS)

    def answer(body: dict[str, Any], _: dict[str, str]) -> tuple[int, bytes]:
        name = body.get("timerId")
        if name == "rescheduled":
            return 200, json.dumps({"nextExecuteAt": LATER}).encode()
        return (
            (500, b"out of order") if name in ("failed", "retrying", "failing", "dismissed") else (200, b'{"ok": true}')
        )

    async with Receiver(answer) as receiver:
        await _namespaces(api)
        await _rules(api, client)
        await _timers(api, receiver.url)
        await _schedules(api, receiver.url)
        await _monitors(api)
        if agent:
            await _service_calls(api, client, receiver.url)
        await _administration(api, server, agent=agent)


async def _ok(api: Api, path: str, **body: Any) -> Any:
    status, answer = await api(path, **body)
    assert 200 <= status < 300, (path, answer)
    return answer


async def _namespaces(api: Api) -> None:
    await _ok(
        api, "namespaces/create", name="golden", history="all", retention=LONG, secret=SECRET, managedBy="golden.yaml",
        retryPolicy={"maxAttempts": 1}, quotas={"pending": 1000, "payloadBytes": 10_000}, eventSink="nats://golden.events",
        limits={"rate": {"count": 1000, "per": "1s"}}, onFailure={"url": NOWHERE, "headers": {"x-api-key": "of-the-hook"}},
    )  # fmt: skip
    await _ok(api, "namespaces/rotateSecret", name="golden", grace="24h")
    await _ok(api, "namespaces/create", name="held", history="all", retention=LONG, secret=SECRET)


async def _rules(api: Api, client: Client) -> None:
    name = {"namespace": "golden"}
    await _ok(
        api, "calendars/put", **name, name="holidays", timeZone="Europe/Berlin", dates=["2100-01-01"], weekdays=["SUN"]
    )
    limits = {"rate": {"count": 100, "per": "1m"}, "burst": 10, "parallelism": 2}
    await _ok(api, "flows/put", **name, match="customer:", perKey=limits)
    await _ok(api, "flows/put", **name, match="closed", total={"parallelism": 1})
    await _ok(api, "flows/pause", **name, match="closed", until=LATER)
    await _ok(api, "credentials/put", **name, name="basic", type="basic", username="tocsin", password="pass word")
    await _ok(api, "credentials/put", **name, name="signed", type="jwt", audience="golden", hosts=["127.0.0.1"])

    async def signing_keys() -> Any:
        return (await client.get(_SIGNING_KEYS))[1]

    await _until(signing_keys, lambda found: found["keys"])
    await _ok(api, "credentials/put", namespace="held", name="bearer", type="bearer", token="a-token-of-the-receiver")
    await _ok(api, "destinations/pause", destination="http://paused.example")


async def _timers(api: Api, url: str) -> None:
    secret_headers = {"Authorization": "Bearer of-the-timer", "x-plain": "seen"}
    await api.create(
        "pending", url, executeAt=LATER, payload=BODY, headers=secret_headers, tags=["a", "b"], method="PUT",
        description="In a hundred years", retryPolicy={"maxAttempts": 7, "initialInterval": "3s"}, expireAfter="1h",
        callbackTimeoutSeconds=7, flowKey="customer:17", credential="basic", onSuccess={"url": NOWHERE},
        onRecovery={"url": NOWHERE}, idempotencyKey="once",
    )  # fmt: skip
    await api.create("raw", url, executeAt=LATER, body={"base64": "AAEC/w==", "contentType": "application/x-raw"})
    await api.create("completed", url, payload=BODY, tags=["a"])
    await api.create("rescheduled", url)
    await api.create("failed", url)
    await api.create("dismissed", url)
    await api.create("replayed", url)
    await api.create("expired", url, executeAt="2020-01-01T00:00:00Z", expireAfter="1s")
    await api.create("canceled", url, executeAt=LATER)
    slow = {"maxAttempts": 3, "initialInterval": "366d", "maxInterval": "366d", "maxAttemptsDuration": None}
    await api.create("retrying", url, namespace="held", retryPolicy=slow)
    await _ok(api, "timers/delete", namespace="golden", timerId="canceled")
    for identifier in ("completed", "replayed"):
        await api.settled(identifier, "completed")
    await _ok(api, "timers/replay", namespace="golden", ids=["replayed"])
    for identifier in ("failed", "dismissed"):
        await api.settled(identifier, "failed")
    await api.settled("expired", "expired")
    await api.attempted("retrying", 1, namespace="held")
    await _ok(api, "namespaces/update", name="held", paused=True)
    await _until(lambda: api.get("rescheduled"), lambda timer: timer["executeAt"].startswith("2100"))
    await api.create(
        "due", NOWHERE, namespace="held", payload=BODY, headers=secret_headers, credential="bearer", tags=["a"]
    )
    for number in range(2):
        await api.create(
            "collected",
            NOWHERE,
            namespace="held",
            delay="1h",
            maxDelay="2h",
            payload=number,
            onConflict="debounce",
            collect=10,
        )


async def _schedules(api: Api, url: str) -> None:
    yearly = {
        "namespace": "golden",
        "cron": "0 9 1 1 *",
        "timeZone": "Europe/Berlin",
        "startAt": "2099-12-01T00:00:00Z",
    }
    await _ok(
        api, "schedules/create", **yearly, id="yearly", callbackUrl=url, payload=BODY, skip=["holidays"], onSkipped="next",
        catchUp="latest", jitter="10s", description="Once a year", headers={"x-api-key": "of-the-schedule"},
        onMissed={"url": NOWHERE},
    )  # fmt: skip
    await _ok(api, "schedules/create", **yearly, id="failing", callbackUrl=url, pauseAfterFailures=5)
    await _ok(
        api,
        "schedules/create",
        namespace="golden",
        id="paused",
        every="1h",
        startAt=LATER,
        callbackUrl=url,
        paused=True,
    )
    for identifier, status in (("yearly", "completed"), ("failing", "failed")):
        name = {"namespace": "golden", "scheduleId": identifier}
        await _ok(api, "schedules/trigger", **name)

        async def history(name: dict[str, str] = name) -> Any:
            return await _ok(api, "schedules/history", **name)

        await _until(history, lambda found, status=status: status in [each["status"] for each in found["occurrences"]])


async def _monitors(api: Api) -> None:
    await _ok(
        api,
        "monitors/put",
        namespace="golden",
        id="backup",
        every="365d",
        grace="30d",
        onLate={"url": NOWHERE},
        tags=["a"],
    )
    await _ok(api, "monitors/ping", namespace="golden", id="backup", event="start")
    await _ok(api, "monitors/ping", namespace="golden", id="backup", event="fail", exitCode=3)
    await _ok(api, "monitors/put", namespace="golden", id="watching", schedule="yearly", grace="1h")
    await _ok(api, "monitors/pause", namespace="golden", id="backup")


async def _administration(api: Api, server: ServerProcess, *, agent: bool) -> None:
    await _ok(
        api, "keys/create", role="write", name="limited", namespaces=["golden"], expiresAt=LATER,
        operations=["timers/create"], sources=["127.0.0.0/8"],
    )  # fmt: skip
    failed = await _ok(api, "failures/members", namespace="golden", error="HTTP 500", kind="timer")
    (dismissed,) = [each["failureId"] for each in failed["failures"] if each["id"] == "dismissed"]
    await _ok(api, "failures/dismiss", namespace="golden", ids=[dismissed])
    job = await _ok(api, "jobs/create", namespace="golden", of="timers", action="cancel", filter={"tags": ["nobody"]})

    async def state() -> Any:
        return await _ok(api, "jobs/get", jobId=job["job"]["id"])

    await _until(state, lambda found: found["job"]["state"] == "completed")
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S) as browser:
        await _submit(browser, "/login", {"key": ADMIN_KEY, "to": "/timers"})
        if agent:
            await _submit(browser, "/calls/tenants/label", {"tenant": TENANT, "label": "Golden"})

    async def keys() -> Any:
        return await _ok(api, "keys/list")

    await _until(keys, lambda found: any("lastUsedAt" in each for each in found["keys"]))


async def _submit(browser: httpx.AsyncClient, path: str, fields: dict[str, str]) -> None:
    """Sends a form as a browser does."""
    html = {"accept": "text/html"}
    page = (await browser.get("/login" if path == "/login" else "/timers", headers=html)).text
    token = re.search(r'name="csrf" value="([^"]+)"', page)
    assert token is not None, page
    sent = await browser.post(
        path, data={"csrf": token[1], **fields}, headers=html | {"origin": str(browser.base_url).rstrip("/")}
    )
    assert sent.status_code == 303, sent.text


async def _service_calls(api: Api, client: Client, url: str) -> None:
    base = f"/api/v1/tenants/{TENANT}/service-calls"

    async def submit(name: str, **more: Any) -> str:
        spec = {"method": "POST", "url": url, "headers": {"x-api-key": "of-the-call"}, "body": {"timerId": name}}
        status, answer = await client.post(base, {"name": name, "requestSpec": spec, "tags": ["golden"], **more})
        assert status == 202, answer
        return str(answer["serviceCallId"])

    await submit("scheduled", dueAt=LATER, idempotencyKey="once", onFailure={"url": NOWHERE})
    for name, ended in (("succeeded", "Succeeded"), ("failed", "Failed")):
        path = f"{base}/{await submit(name)}"

        async def call(path: str = path) -> Any:
            return (await client.get(path))[1]

        await _until(call, lambda found, ended=ended: found.get("status") == ended)
    await _ok(api, "tenants/rotateSecret", tenantId=TENANT, grace="24h")


async def _until(read: Callable[[], Awaitable[Any]], condition: Callable[[Any], bool]) -> None:
    """Returns when the condition holds of what is read. The API has no notifications, so this polls. AssertionError with what
    was read last."""
    found = None
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not condition(found := await read()):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(found) from None


#: Requests that read what `fill` has made, and the same of the agent's API.
READS: tuple[tuple[str, dict[str, Any]], ...] = (
    *(
        ("timers/get", {"namespace": "golden", "timerId": each})
        for each in ("pending", "raw", "completed", "rescheduled", "failed", "replayed", "expired", "canceled")
    ),
    *(("timers/get", {"namespace": "held", "timerId": each}) for each in ("due", "collected", "retrying")),
    *(("timers/history", {"namespace": "golden", "timerId": each}) for each in ("rescheduled", "replayed", "failed")),
    ("timers/list", {"namespace": "golden", "tags": ["a"]}),
    *(("schedules/get", {"namespace": "golden", "scheduleId": each}) for each in ("yearly", "failing", "paused")),
    *(("schedules/history", {"namespace": "golden", "scheduleId": each}) for each in ("yearly", "failing")),
    ("schedules/list", {"namespace": "golden"}),
    *(("monitors/get", {"namespace": "golden", "id": each}) for each in ("backup", "watching")),
    ("monitors/history", {"namespace": "golden", "id": "backup"}),
    ("namespaces/list", {}),
    ("calendars/list", {"namespace": "golden"}),
    ("flows/list", {"namespace": "golden"}),
    ("credentials/list", {"namespace": "golden"}),
    ("credentials/list", {"namespace": "held"}),
    ("failures/list", {"namespace": "golden", "since": "2020-01-01T00:00:00Z", "groupBy": ["error"]}),
    ("failures/members", {"namespace": "golden", "error": "HTTP 500"}),
    ("keys/list", {}),
    ("audit/list", {"action": ["namespace_created", "key_created"]}),
)


async def reads(server: ServerProcess, *, agent: bool) -> dict[str, Any]:
    """The answers to all requests that read, by the request."""
    api, client = Api(server, HEADERS), Client(server.address, HEADERS)
    answers = {f"{path} {json.dumps(body)}": await _ok(api, path, **body) for path, body in READS}
    destinations = (await _ok(api, "destinations/list", limit=20))["destinations"]
    answers["paused"] = [each["destination"] for each in destinations if each["paused"]]
    # They are replaced after 30 days, and former ones stay for a while.
    answers["signing keys"] = {each["kid"]: each for each in (await client.get(_SIGNING_KEYS))[1]["keys"]}
    paths = []
    if agent:
        base = f"/api/v1/tenants/{TENANT}/service-calls"
        found = (await client.get(base))[1]["serviceCalls"]
        paths += [base, *(f"{base}/{each['serviceCallId']}" for each in found)]
    for path in paths:
        status, answer = await client.get(path)
        assert status == 200, (path, answer)
        answers[path] = answer
    return answers
