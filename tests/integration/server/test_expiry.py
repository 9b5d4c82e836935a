"""Timers whose time is over, on a real server."""

from __future__ import annotations

import httpx

from tests.support.calls import Api
from tests.support.scripted import Reply, ScriptedReceiver
from tests.support.server import ServerProcess

PAST = {"executeAt": "2026-01-01T00:00:00Z", "expireAfter": "1h"}


async def test_late_timers_expire_when_their_namespace_is_resumed_and_moved_ones_do_not(server: ServerProcess) -> None:
    api = Api(server, namespace="late")
    await api("namespaces/create", name="late", history="failures")
    await api("namespaces/update", name="late", paused=True)
    async with ScriptedReceiver({}) as receiver:
        for name in ("expires", "moved", "unlimited"):
            assert (await api.create(name, receiver.url(name), **PAST))["expireAfter"] == "1h"
        _, timer = await api("timers/update", namespace="late", timerId="moved", executeAt="2099-01-01T00:00:00Z")
        assert timer["expireAfter"] == "1h"
        _, timer = await api("timers/update", namespace="late", timerId="unlimited", expireAfter=None)
        assert "expireAfter" not in timer
        assert (await api.get("expires"))["status"] == "pending"
        await api("namespaces/update", name="late", paused=False)
        await receiver.count("unlimited", 1)
        timer = await api.settled("expires", "expired")
        assert (timer["attempts"], timer["attemptLog"]) == (0, [])
        assert timer["lastError"].startswith("EXPIRED: no attempt may begin after 2026-01-01T01:00:00Z")
        assert "nextAttemptAt" not in timer
        _, page = await api("timers/list", namespace="late", status=["expired", "failed"])
        assert [each["id"] for each in page["timers"]] == ["expires"]
        status, problem = await api("timers/update", namespace="late", timerId="expires", delay="1h")
        assert (status, problem["error"]) == (409, "TIMER_NOT_PENDING")
        assert (await api.get("moved"))["status"] == "pending"
        assert not receiver.calls["expires"]
        async with httpx.AsyncClient(base_url=server.url) as client:
            metrics = (await client.get("/metrics")).text
        assert 'tocsin_timers_expired_total{namespace="late",status="expired"} 1.0' in metrics


async def test_timer_fails_at_once_if_its_retry_would_begin_too_late(server: ServerProcess) -> None:
    api = Api(server)
    async with ScriptedReceiver({"t": [Reply(503)]}) as receiver:
        policy = {"initialInterval": "20m", "maxInterval": "20m"}
        timer = await api.create("t", receiver.url("t"), expireAfter="10m", retryPolicy=policy)
        timer = await api.settled("t", "failed")
        assert (timer["attempts"], timer["attemptLog"][0]["error"]) == (1, "HTTP_503")
        assert timer["lastError"].startswith("HTTP_503; EXPIRED: no attempt may begin after ")
