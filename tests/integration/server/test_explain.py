"""`timers/explain`, on a real server."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.calls import Api
from tests.support.patience import PATIENCE_S
from tests.support.scripted import Reply, ScriptedReceiver
from tests.support.server import ServerProcess

RETRIES = {"initialInterval": "1h", "maxInterval": "1h"}


async def explained(api: Api, name: str, state: str) -> dict[str, Any]:
    """The timer's explanation, once it has this state."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            status, found = await api("timers/explain", namespace=api.namespace, timerId=name)
            assert status == 200, found
            assert (found["shard"], found["owner"]) == ((await api.get(name))["shardId"], found["owner"] or "")
            if found["state"] == state:
                return dict(found)
            await asyncio.sleep(0.02)


async def test_timer_is_explained_on_its_way(server: ServerProcess) -> None:
    api, answer = Api(server, namespace="e"), asyncio.Event()
    await api("namespaces/create", name="e")
    async with ScriptedReceiver({"t": [Reply(503, until=answer)]}) as receiver:
        at = "2099-01-01T00:00:00Z"
        await api.create("t", receiver.url("t"), executeAt=at, retryPolicy=RETRIES, callbackTimeoutSeconds=60)
        found = await explained(api, "t", "scheduled")
        assert (found["waitsFor"], found["next"]) == ("instant", at)
        assert found["sentence"] == f"The timer is in the store; {found['owner']} fires it at {at}."
        await api("namespaces/update", name="e", paused=True)
        await api("timers/update", namespace="e", timerId="t", executeAt="2026-01-01T00:00:00Z")
        found = await explained(api, "t", "paused")
        assert (found["waitsFor"], "next" in found) == ("namespace", False)
        assert "it has been due since 2026-01-01T00:00:00Z." in found["sentence"]
        await api("namespaces/update", name="e", paused=False)
        await receiver.count("t", 1)
        found = await explained(api, "t", "firing")
        assert found["waitsFor"] == "response"
        assert found["sentence"].startswith(f"Attempt 1 is in flight on {found['owner']}; without a response")
        answer.set()
        found = await explained(api, "t", "retrying")
        assert found["next"] == (await api.get("t"))["nextAttemptAt"]
        assert found["sentence"] == f"Attempt 1 failed (HTTP_503). The next one begins at {found['next']}."
        await api("timers/delete", namespace="e", timerId="t")
        found = await explained(api, "t", "finished")
        assert found["sentence"].startswith("The timer has finished: canceled at ")
        assert "waitsFor" not in found
    assert (await api("timers/explain", namespace="e", timerId="none"))[1]["error"] == "TIMER_NOT_FOUND"


async def test_no_instant_is_promised_to_a_timer_whose_destination_or_flow_is_paused(server: ServerProcess) -> None:
    api, at, url = Api(server, namespace="p"), "2099-01-01T00:00:00Z", "http://127.0.0.1:1/hook"
    await api("namespaces/create", name="p")
    await api("flows/put", namespace="p", match="vendor", perKey={"parallelism": 1})
    await api.create("t", url, executeAt=at, flowKey="vendor")
    status, paused = await api("destinations/pause", destination=url)
    assert status == 200, paused
    begins = f"is paused, is resumed, and not before {at}."
    found = await explained(api, "t", "scheduled")
    assert (found["waitsFor"], found["next"]) == ("destination", at)
    assert found["sentence"].endswith(f"fires it when its destination http://127.0.0.1:1, which {begins}")
    await api("flows/pause", namespace="p", match="vendor")
    found = await explained(api, "t", "scheduled")
    assert (found["waitsFor"], found["next"]) == ("flow", at)
    assert found["sentence"].endswith(f"fires it when its flow vendor, which {begins}")
    await api("flows/resume", namespace="p", match="vendor")
    await api("destinations/resume", destination=url)
    assert (await explained(api, "t", "scheduled"))["waitsFor"] == "instant"


async def test_lists_explain_the_timers_that_are_due(server: ServerProcess) -> None:
    api, answer = Api(server), asyncio.Event()
    flags = {"status": "pending", "namespace": "*", "explain": True}
    async with ScriptedReceiver({"t": [Reply(200, until=answer)]}) as receiver:
        await api("namespaces/create", name="paused")
        await api("namespaces/update", name="paused", paused=True)
        await api.create("firing", receiver.url("t"))
        await api.create("held", receiver.url("t"), namespace="paused")
        await api.create("later", receiver.url("t"), delay="1h")
        await receiver.count("t", 1)
        status, page = await api("timers/list", **flags)
        assert status == 200
        assert [timer["id"] for timer in page["timers"]] == ["firing", "held", "later"]
        firing, held = (timer["explanation"] for timer in page["timers"][:2])
        assert "explanation" not in page["timers"][2]
        found = await explained(api, "firing", "firing")
        assert (firing, firing["attempt"], firing["waitsFor"]) == (found, 1, "response")
        assert page["timers"][0]["executeAt"] <= firing["since"] < firing["next"]
        assert (held["state"], held["waitsFor"]) == ("paused", "namespace")
        assert held["since"] == page["timers"][1]["executeAt"]
        _, page = await api("timers/list", namespace="*")
        assert all("explanation" not in timer for timer in page["timers"])
        answer.set()
        await api.settled("firing", "completed")
