"""Ordered flows on a real server: where they are refused, what their timers and occurrences do, and what becomes of the order
when the server is killed, or its store is moved to more shards."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.integration.server.conftest import serving
from tests.integration.server.test_agent_flow import new_id
from tests.support.calls import Api
from tests.support.cluster import until
from tests.support.command import command
from tests.support.http import Client, Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess

RULE = {"namespace": "orders", "match": "order:"}
#: A retry about every second.
EACH_SECOND = {"maxAttempts": 100, "initialInterval": "1s", "maxInterval": "1s"}


class Steps(Receiver):
    """A receiver that refuses the timers in `refused`, and notes in which order timers are called."""

    def __init__(self) -> None:
        super().__init__(lambda body, headers: (200, b""))
        self.refused: set[str] = set()
        self.called: list[str] = []
        self._changed = asyncio.Condition()

    async def _respond(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, bytes]:
        body = json.loads(raw)
        self.called.append(body.get("timerId") or body["scheduleId"])
        async with self._changed:
            self._changed.notify_all()
        return (503 if self.called[-1] in self.refused else 200), b""

    async def until_called(self, timer: str, times: int = 1) -> None:
        """Returns when the timer has been called so often."""
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(lambda: self.called.count(timer) >= times)


async def ordered(api: Api) -> None:
    """Creates the namespace and its rule."""
    assert (await api("namespaces/create", name="orders", numShards=1))[0] == 200
    status, rule = await api("flows/put", **RULE, perKey={"ordered": True})
    assert (status, rule["perKey"]) == (200, {"parallelism": 1, "ordered": True}), rule


async def test_what_cannot_be_ordered_is_refused_by_name(server: ServerProcess) -> None:
    api = Api(server)
    assert (await api("namespaces/create", name="wide", numShards=2))[0] == 200
    # Also where the rule has another version than expected: to read it again would not help.
    for version in ({}, {"expectedVersion": 7}):
        wide = {"namespace": "wide", "match": "order:", **version}
        status, problem = await api("flows/put", **wide, perKey={"ordered": True})
        assert status == 400, problem
        (error,) = problem["errors"]
        assert error["path"] == "perKey.ordered"
        assert "numShards 2" in error["reason"]
        assert "create another one with numShards 1" in error["reason"]
    # What does not begin with true changes nothing.
    unordered = {"parallelism": 3, "ordered": False}
    assert (await api("flows/put", namespace="wide", match="a", perKey=unordered))[1]["perKey"] == {"parallelism": 3}
    await ordered(api)
    for body, path in (
        ({"perKey": {"ordered": True, "parallelism": 2}}, "perKey.ordered"),
        ({"total": {"ordered": True, "parallelism": 1}}, "total.ordered"),
        ({"perKey": {"ordered": False}}, "perKey"),
    ):
        status, problem = await api("flows/put", **RULE, **body)
        assert (status, [each["path"] for each in problem["errors"]]) == (400, [path]), problem
    status, problem = await api("namespaces/update", name="orders", limits={"ordered": True, "parallelism": 1})
    assert (status, problem["errors"][0]["path"]) == (400, "limits.ordered")


async def test_timers_and_occurrences_of_a_key_take_their_turns_and_a_retry_keeps_its_own(
    server: ServerProcess,
) -> None:
    api = Api(server)
    async with Steps() as receiver:
        await ordered(api)
        receiver.refused.add("first")
        common = {"callbackUrl": receiver.url, "flowKey": "order:17", "namespace": "orders"}
        beat = {"namespace": "orders", "id": "beat", "callbackUrl": receiver.url, "every": "1h", "flowKey": "order:17"}
        assert (await api("schedules/create", **beat))[0] == 200
        timers: list[dict[str, Any]] = [
            {**common, "id": name, "delay": delay, "retryPolicy": EACH_SECOND}
            for name, delay in (("third", "500ms"), ("first", "100ms"), ("second", "300ms"))
        ]
        timers.append({**common, "id": "other", "delay": "200ms", "flowKey": "order:18"})
        assert (await api("timers/batch/create", timers=timers))[0] == 200
        await receiver.until_called("first", 2)
        await receiver.until_called("other")
        assert (await api("schedules/trigger", namespace="orders", scheduleId="beat"))[0] == 200
        shown = {each["id"]: each for each in (await api("timers/list", namespace="orders"))[1]["timers"]}
        assert (shown["first"]["attempts"] >= 1, "suspended" in shown["first"]) == (True, False)
        assert set(receiver.called) == {"first", "other"}
        _, why = await api("timers/explain", namespace="orders", timerId="second")
        assert (why["state"], why["waitsFor"]) == ("waiting", "flow"), why
        receiver.refused.clear()
        await receiver.until_called("beat")
        calls = [name for name in dict.fromkeys(receiver.called) if name != "other"]
        assert calls == ["first", "second", "third", "beat"]


async def test_a_retry_keeps_its_turn_when_the_server_is_killed(tmp_path: Path) -> None:
    async with Steps() as receiver, serving(tmp_path, "--no-agent") as server:
        api = Api(server)
        await ordered(api)
        receiver.refused.add("first")
        later = {"maxAttempts": 5, "initialInterval": "6s", "maxInterval": "6s"}
        common = {"namespace": "orders", "callbackUrl": receiver.url, "flowKey": "order:17", "retryPolicy": later}
        await api("timers/batch/create", timers=[
            {**common, "id": "first", "delay": "100ms"}, {**common, "id": "second", "delay": "200ms"},
        ])  # fmt: skip
        await receiver.until_called("first")

        async def is_retried() -> bool:
            return bool((await api("timers/get", namespace="orders", timerId="first"))[1]["attempts"])

        await until(is_retried)
        await server.kill()
        # While nobody calls: the start may take longer than the retry waits.
        receiver.refused.clear()
        await server.start()
        await receiver.until_called("second")
        assert receiver.called == ["first", "first", "second"]


async def test_a_transfer_leaves_an_ordered_namespace_its_one_shard(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    async with serving(old, "--no-agent", "--shards", "1") as server:
        await ordered(Api(server))
        assert (await Api(server)("namespaces/create", name="plain"))[1]["numShards"] == 1
    moved = ("--from", f"sqlite:///{old}/data/tocsin.db", "--to", f"sqlite:///{new}/data/tocsin.db", "--shards", "4")
    code, out, err = await command("transfer", *moved, timeout_s=60.0)
    assert code == 0, out + err
    async with serving(new, "--no-agent") as server:
        api = Api(server)
        shards = {name: (await api("namespaces/get", name=name))[1]["numShards"] for name in ("orders", "plain")}
        assert shards == {"orders": 1, "plain": 4}
        assert (await api("flows/get", **RULE))[1]["perKey"]["ordered"] is True


async def test_service_calls_have_no_place_in_the_order(tmp_path: Path) -> None:
    async with serving(tmp_path, env={"TOCSIN_AGENT_FLOW_NAMESPACE": "orders"}) as server:
        await ordered(Api(server))
        client = Client(server.address)
        call = {"name": "A call", "requestSpec": {"method": "POST", "url": "http://127.0.0.1:9/"}}
        path = f"/api/v1/tenants/{new_id()}/service-calls"
        status, problem = await client.post(path, {**call, "flowKey": "order:17"})
        (error,) = problem["errors"]
        assert (status, error["path"]) == (400, "flowKey"), problem
        assert "ordered flow" in error["reason"]
        assert (await client.post(path, {**call, "flowKey": "other"}))[0] == 202
        client.close()
