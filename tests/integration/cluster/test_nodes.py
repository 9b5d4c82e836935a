"""Nodes on one database: each serves every request."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.support.cluster import node, now_us, owners, running, shared_by, until, view
from tests.support.command import command
from tests.support.http import Client, Receiver
from tests.support.server import ServerProcess
from tocsin.model.instants import format_instant

FAR = "2040-01-01T00:00:00Z"
TIMERS = 24


def _timer(number: int, url: str, at: str = FAR) -> dict[str, object]:
    return {"namespace": "default", "id": f"t{number}", "executeAt": at, "callbackUrl": url}


async def test_either_node_accepts_every_write(tmp_path: Path, postgresql_url: str) -> None:
    one, two = (node(tmp_path, name, postgresql_url, steady=True) for name in ("one", "two"))
    async with running(one, two):
        await shared_by([one, two], {"one", "two"})
        clients = [Client(server.address) for server in (one, two)]
        for number in range(TIMERS):
            here, there = clients[number % 2], clients[1 - number % 2]
            status, made = await here.post("/api/v1/timers/create", _timer(number, "http://127.0.0.1:9/"))
            assert status == 200, made
            name = {"namespace": "default", "timerId": f"t{number}"}
            status, changed = await there.post("/api/v1/timers/update", {**name, "payload": {"n": number}})
            assert (status, changed.get("payload")) == (200, {"n": number})
            status, got = await here.post("/api/v1/timers/get", name)
            assert (status, got) == (200, changed)
            assert (await there.post("/api/v1/timers/delete", name))[0] == 204
            status, refused = await here.post("/api/v1/timers/delete", name)
            assert (status, refused["error"]) == (409, "TIMER_NOT_PENDING")
            status, refused = await here.post("/api/v1/timers/update", {**name, "timerId": "none", "payload": 1})
            assert (status, refused["error"]) == (404, "TIMER_NOT_FOUND")
        batch = {"timers": [_timer(number, "http://127.0.0.1:9/") for number in range(500)]}
        status, answer = await clients[0].post("/api/v1/timers/batch/create", batch)
        assert status == 200
        assert all("timer" in result for result in answer["results"])
        for client in clients:
            client.close()
        assert await one.stop() == 0
        assert await two.stop() == 0


async def test_a_namespace_created_at_one_node_is_known_at_once_by_the_other(
    tmp_path: Path, postgresql_url: str
) -> None:
    one, two = (node(tmp_path, name, postgresql_url, steady=True) for name in ("one", "two"))
    async with running(one, two):
        at_one, at_two = Client(one.address), Client(two.address)
        for number in range(5):
            name = f"space-{number}"
            assert (await at_one.post("/api/v1/namespaces/create", {"name": name}))[0] == 200
            status, made = await at_two.post(
                "/api/v1/timers/create", {**_timer(0, "http://127.0.0.1:9/"), "namespace": name}
            )
            assert status == 200, made
        status, refused = await at_two.post(
            "/api/v1/timers/create", {**_timer(0, "http://127.0.0.1:9/"), "namespace": "none"}
        )
        assert (status, refused["error"]) == (404, "NAMESPACE_NOT_FOUND")
        at_one.close()
        at_two.close()


async def test_timers_fire_from_any_node_and_each_node_reports_on_all(tmp_path: Path, postgresql_url: str) -> None:
    fired: list[str] = []

    def answer(body: dict[str, object], _: dict[str, str]) -> tuple[int, bytes]:
        fired.append(str(body["timerId"]))
        return 200, b""

    servers = [node(tmp_path, name, postgresql_url, steady=True) for name in ("one", "two", "three")]
    names = {"one", "two", "three"}
    async with Receiver(answer) as receiver, running(*servers):
        await shared_by(servers, names)
        clients = [Client(server.address) for server in servers]
        at = format_instant(now_us() + 1_500_000)
        for number in range(TIMERS):
            status, made = await clients[number % 3].post("/api/v1/timers/create", _timer(number, receiver.url, at))
            assert status == 200, made
        for client in clients:
            client.close()

        async def all_fired() -> bool:
            return len(fired) >= TIMERS

        await until(all_fired)
        assert sorted(fired) == sorted(f"t{number}" for number in range(TIMERS))

        async def report_on_all() -> bool:
            # The report of a node that is busy may be missing for a moment.
            views = [await view(server) for server in servers]
            nodes = [entry for seen in views for entry in seen["nodes"]]
            shards = [shard for seen in views for shard in seen["shards"]]
            assert all({entry["node"] for entry in seen["nodes"]} == names for seen in views)
            reported = all(entry.get("version") and entry.get("lagMs") is not None for entry in nodes)
            return reported and all("windowTimers" in shard for shard in shards)

        await until(report_on_all)


async def test_a_node_without_shards_serves_requests(tmp_path: Path, postgresql_url: str) -> None:
    """With one shard, one of two nodes has none."""
    one, two = (node(tmp_path, name, postgresql_url, "--shards", "1", steady=True) for name in ("one", "two"))
    async with running(one, two):
        client = Client((await _without_shards(one, two)).address)
        for number in range(TIMERS):
            assert (await client.post("/api/v1/timers/create", _timer(number, "http://127.0.0.1:9/")))[0] == 200
        client.close()


async def _without_shards(one: ServerProcess, two: ServerProcess) -> ServerProcess:
    """The one of two nodes that owns no shard, once the other owns one."""
    seen: dict[str | None, int] = {}

    async def settled() -> bool:
        nonlocal seen
        seen = dict(await owners(one))
        return None not in seen

    await until(settled)
    return two if "one" in seen else one


async def test_a_node_with_another_secret_claims_nothing_and_reports_why(tmp_path: Path, postgresql_url: str) -> None:
    """The others have a new secret and still accept the former one, which one of them proves itself with."""
    former, new, wrong = "the former secret", "the secret after it", "a third secret of nobody"
    one, two, third = (
        node(tmp_path, name, postgresql_url, secret=secret, steady=True)
        for name, secret in (("one", former), ("two", new), ("third", wrong))
    )
    two.env["TOCSIN_CLUSTER_SECRET_FORMER"] = former
    async with running(one, two, third):
        await shared_by([one, two], {"one", "two"})
        client = Client(third.address)

        async def reported() -> bool:
            # It has watched the others for long enough to take shards.
            reasons = str((await client.get("/readyz"))[1])
            return "cluster.secret differs" in reasons and "observes" not in reasons

        await until(reported)
        assert (await client.get("/readyz"))[0] == 503
        client.close()
        clients = [Client(server.address) for server in (one, two) for _ in range(20)]
        timers = (_timer(number, "http://127.0.0.1:9/") for number in range(40))
        answers = await asyncio.gather(
            *(client.post("/api/v1/timers/create", timer) for client, timer in zip(clients, timers, strict=True))
        )
        for client in clients:
            client.close()
        assert {status for status, _ in answers} == {200}
        await shared_by([one, two], {"one", "two"})
        code, output, warning = await command("cluster", "--server", two.url)
        assert code == 0
        assert "secret differs" in output
        assert "third has another cluster.secret" in warning
    assert "cluster secret differs" in third.log()
    # The nodes know it beforehand, so none knocks in vain.
    assert "peer refused" not in one.log() + two.log() + third.log()
