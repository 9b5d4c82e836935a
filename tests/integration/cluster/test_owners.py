"""What clients need that send each write to the owner of its shard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from tests.support.cluster import node, running, shared_by, until
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.model.ids import namespace_hash, shard_of, timer_uuid

TIMERS = 16


def _with_api_url(server: ServerProcess, url: str) -> ServerProcess:
    server.env["TOCSIN_ADVERTISE_API"] = url
    return server


def _timer(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "namespace": "default", "id": f"t{number}", "executeAt": "2040-01-01T00:00:00Z",
        "callbackUrl": "http://127.0.0.1:9/", **fields,
    }  # fmt: skip


async def test_writes_sent_to_the_owners_are_not_forwarded_and_others_are_marked_so(
    tmp_path: Path, postgresql_url: str
) -> None:
    urls = {name: f"http://{name}.internal:8080/timers" for name in ("one", "two")}
    servers = [
        _with_api_url(node(tmp_path, name, postgresql_url, steady=True), f"{url}/") for name, url in urls.items()
    ]
    view: dict[str, Any] = {}

    async def agree() -> bool:
        """Whether both nodes have read the present owners."""
        nonlocal view
        views = [await client.get(f"{server.url}/api/v1/cluster?view=owners") for server in servers]
        view = views[0].json()
        announced = [entry["apiUrl"] for entry in view["nodes"]] == list(urls.values())
        return announced and set(view["owners"]) == {0, 1} and views[0].headers["etag"] == views[1].headers["etag"]

    async with running(*servers), httpx.AsyncClient(timeout=PATIENCE_S) as client:
        await shared_by(servers, {"one", "two"})
        await until(agree)
        namespaces = (await client.post(f"{servers[0].url}/api/v1/namespaces/list", json={})).json()["namespaces"]
        (shards,) = (each["numShards"] for each in namespaces if each["name"] == "default")
        owners = {}
        for number in range(TIMERS):
            uuid = timer_uuid("default", f"t{number}")
            shard = shard_of(namespace_hash("default"), uuid, shards, view["totalShards"])
            owners[number] = view["owners"][shard]
        assert set(owners.values()) == {0, 1}
        for number, owner in owners.items():
            for at, forwarded in ((owner, None), (1 - owner, "1")):
                url = f"{servers[at].url}/api/v1/timers"
                name = {"namespace": "default", "timerId": f"t{number}"}
                headers = {"idempotency-key": f"k{number}-{at}", "tocsin-first-try": "1"}
                made = await client.post(f"{url}/create", json=_timer(number), headers=headers)
                assert (made.status_code, made.headers.get("tocsin-forwarded")) == (200, forwarded), made.text
                changed = await client.post(f"{url}/update", json={**name, "payload": at})
                assert changed.headers.get("tocsin-forwarded") == forwarded
                gone = await client.post(f"{url}/delete", json=name)
                assert (gone.status_code, gone.headers.get("tocsin-forwarded")) == (204, forwarded)
                del headers["tocsin-first-try"]
                repeated = await client.post(f"{url}/create", json=_timer(number), headers=headers)
                assert (repeated.json()["status"], repeated.headers["idempotency-replayed"]) == ("canceled", "true")
        mine = [_timer(number) for number, owner in owners.items() if owner == 0]
        for server, forwarded in zip(servers, (None, "1"), strict=True):
            batch = await client.post(f"{server.url}/api/v1/timers/batch/create", json={"timers": mine})
            assert batch.headers.get("tocsin-forwarded") == forwarded
