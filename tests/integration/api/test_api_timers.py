"""The operations on timers and namespaces over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from api_server import Served
from tests.support.cases import each

from tocsin.model.condition import Condition
from tocsin.model.errors import StoreUnavailable
from tocsin.model.timer import Timer
from tocsin.telemetry.metrics import RequestMetrics
from tocsin.timers.service import TimerView

TIMER = {
    "namespace": "default",
    "id": "t1",
    "executeAt": "2027-01-31T13:00:00.5+01:00",
    "callbackUrl": "https://a.example/x",
}


def test_created_timer_is_returned_and_can_be_read(server: Served) -> None:
    sent = {
        **TIMER,
        "payload": {"a": [1, 2.50, None, "é"]},
        "method": "PUT",
        "headers": {"x-tenant": "7"},
        "retryPolicy": {"maxAttempts": 3, "maxAttemptsDuration": "24h", "initialInterval": "10m"},
        "callbackTimeoutSeconds": 2.5,
        "tags": ["b", "a"],
    }
    created = server.post("timers/create", sent)
    assert created.status_code == 200
    assert created.headers["content-type"] == "application/json"
    timer = created.json()
    assert timer == {
        **sent,
        "executeAt": "2027-01-31T12:00:00.500000Z",
        "nextAttemptAt": "2027-01-31T12:00:00.500000Z",
        "retryPolicy": {
            "maxAttempts": 3,
            "maxAttemptsDuration": "1d",
            "initialInterval": "10m",
            "backoffMultiplier": 3.0,
            "maxInterval": "4h",
        },
        "status": "pending",
        "attempts": 0,
        "attemptLog": [],
        "shardId": timer["shardId"],
        "timerUuid": timer["timerUuid"],
        "createdAt": timer["createdAt"],
        "updatedAt": timer["createdAt"],
    }
    assert server.post("timers/get", {"namespace": "default", "timerId": "t1"}).json() == timer


def test_delay_counts_from_receipt(server: Served) -> None:
    sent = {key: value for key, value in TIMER.items() if key != "executeAt"}
    assert server.post("timers/create", {**sent, "delay": "1h30m"}).status_code == 200
    (timer,) = server.service.timers.values()
    assert timer.execute_at - timer.created_at == 5_400_000_000


def test_payload_is_stored_byte_for_byte(server: Served) -> None:
    body = (
        b'{"namespace":"default","id":"p","delay":"1s","callbackUrl":"http://a.example",'
        b'"payload": {"n": 1.0e2,  "n": 7} }'
    )
    answer = server.client.post("/api/v1/timers/create", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200
    assert bytes(server.service.timers["default", "p"].payload) == b'{"n": 1.0e2,  "n": 7}'


@each(
    "header, kept",
    [
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", True),
        ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", False),
        ("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", False),
        ("anything", False),
    ],
)
def test_only_a_valid_traceparent_is_kept(server: Served, header: str, kept: bool) -> None:
    assert server.post("timers/create", TIMER, headers={"traceparent": header}).status_code == 200
    assert server.service.timers["default", "t1"].traceparent == (header if kept else None)


def test_update_changes_only_the_given_fields(server: Served) -> None:
    server.post("timers/create", {**TIMER, "tags": ["a"], "headers": {"x": "1"}, "retryPolicy": {}})
    name = {"namespace": "default", "timerId": "t1"}
    changed = server.post(
        "timers/update", {**name, "payload": None, "headers": None, "executeAt": "2028-01-01T00:00:00Z"}
    )
    assert changed.status_code == 200
    timer = changed.json()
    assert (timer["payload"], timer["headers"], timer["tags"]) == (None, {}, ["a"])
    assert timer["executeAt"] == timer["nextAttemptAt"] == "2028-01-01T00:00:00Z"
    assert timer["retryPolicy"] == {
        "maxAttempts": 10, "initialInterval": "5s", "backoffMultiplier": 3.0, "maxInterval": "4h"
    }  # fmt: skip
    assert "retryPolicy" not in server.post("timers/update", {**name, "retryPolicy": None, "tags": []}).json()


def test_delay_of_an_update_counts_from_its_receipt(server: Served) -> None:
    server.post("timers/create", {**TIMER, "tags": ["a"]})
    before = time.time_ns() // 1000
    assert server.post("timers/update", {"namespace": "default", "timerId": "t1", "delay": "1h30m"}).status_code == 200
    (timer,) = server.service.timers.values()
    assert before <= timer.execute_at - 5_400_000_000 <= time.time_ns() // 1000
    assert timer.tags == ("a",)


def test_every_request_accepts_id_or_timer_id(server: Served) -> None:
    unnamed = {name: value for name, value in TIMER.items() if name != "id"}
    for names in ({"id": "t1"}, {"timerId": "t1"}, {"id": "t1", "timerId": "t1"}):
        server.service.clear()
        assert server.post("timers/create", {**unnamed, **names}).json()["id"] == "t1"
        assert "timer" in server.post("timers/batch/create", {"timers": [{**unnamed, **names}]}).json()["results"][0]
        named = {"namespace": "default", **names}
        assert server.post("timers/get", named).json()["id"] == "t1"
        assert server.post("timers/update", {**named, "tags": ["b"]}).json()["tags"] == ["b"]
        assert server.post("timers/delete", named).status_code == 204


def test_update_of_nothing_is_refused(server: Served) -> None:
    server.post("timers/create", TIMER)
    answer = server.post("timers/update", {"namespace": "default", "timerId": "t1"})
    assert answer.status_code == 400
    assert "the request changes nothing" in answer.json()["detail"]


def test_deleted_timer_is_canceled_permanently(server: Served) -> None:
    server.post("timers/create", TIMER)
    name = {"namespace": "default", "timerId": "t1"}
    deleted = server.post("timers/delete", name)
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert server.post("timers/get", name).json()["status"] == "canceled"
    for call, body in (("delete", name), ("update", {**name, "tags": []})):
        refused = server.post(f"timers/{call}", body)
        assert (refused.status_code, refused.json()["error"]) == (409, "TIMER_NOT_PENDING")


def test_finished_timer_shows_its_attempts(server: Served) -> None:
    server.post("timers/create", TIMER)
    server.service.finish("default", "t1", 1_800_000_000_000_000)
    timer = server.post("timers/get", {"namespace": "default", "timerId": "t1"}).json()
    assert "nextAttemptAt" not in timer
    assert (timer["status"], timer["attempts"], timer["lastError"]) == ("failed", 2, "TIMEOUT")
    assert timer["executedAt"] == "2027-01-15T08:00:00Z"
    assert timer["attemptLog"] == [
        {"startedAt": "2027-01-15T08:00:00Z", "durationMs": 1.5, "status": 503, "error": "HTTP_503"},
        {"startedAt": "2027-01-15T08:00:00.000001Z", "durationMs": 2.0, "error": "TIMEOUT"},
    ]


def test_batch_results_are_in_order_and_items_fail_separately(server: Served) -> None:
    good = {"namespace": "default", "delay": "1s", "callbackUrl": "https://a.example/"}
    items = [
        {**good, "id": "b0"},
        {**good, "id": 7},
        "not an object",
        {**good, "id": "b3", "callbackUrl": "http://10.0.0.1/"},
        {**good, "id": "b4", "namespace": "nowhere"},
        {**good, "id": "b5", "payload": [1]},
    ]
    answer = server.post("timers/batch/create", {"timers": items})
    assert answer.status_code == 200
    results = answer.json()["results"]
    assert [result.get("timer", {}).get("id") for result in results] == ["b0", None, None, None, None, "b5"]
    assert [result["error"]["error"] for result in results[1:5]] == ["INVALID_INPUT"] * 3 + ["NAMESPACE_NOT_FOUND"]
    assert [result["error"]["status"] for result in results[1:5]] == [400, 400, 400, 404]
    paths = [[bad["path"] for bad in result["error"]["errors"]] for result in results[1:4]]
    assert paths == [["timers[1].id"], ["timers[2]"], ["timers[3].callbackUrl"]]
    assert sorted(timer_id for _, timer_id in server.service.timers) == ["b0", "b5"]


def test_creates_that_the_server_refuses_are_counted_also_one_by_one_in_batches(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = RequestMetrics()
    server = serve(requests=requests)
    create, good = server.service.create, {"namespace": "default", "delay": "1s", "callbackUrl": "https://a.example/"}

    async def sometimes(timer: Timer, condition: Condition | None = None) -> TimerView:
        if timer.id.startswith("away"):
            raise StoreUnavailable("no connection")
        return await create(timer, condition)

    monkeypatch.setattr(server.service, "create", sometimes)
    items = [{**good, "id": name} for name in ("b0", "away1", "b2", "away3")]
    # The last one is the client's error.
    results = server.post("timers/batch/create", {"timers": [*items, {**good, "id": 7}]}).json()["results"]
    statuses = [result["error"]["status"] if "error" in result else 200 for result in results]
    assert (statuses, requests.creates_refused()) == ([200, 503, 200, 503, 400], 2)
    # What the codec takes counts alike, and what succeeds does not.
    assert "error" in server.post("timers/batch/create", {"timers": items}).json()["results"][1]
    server.post("timers/batch/create", {"timers": [{**good, "id": "b9"}]})
    assert requests.creates_refused() == 4


def test_batch_is_limited_to_a_thousand_items(server: Served) -> None:
    good = {"namespace": "default", "delay": "1s", "callbackUrl": "https://a.example/"}
    items = [{**good, "id": f"b{number}"} for number in range(1_001)]
    answer = server.post("timers/batch/create", {"timers": items})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "timers")
    assert server.post("timers/batch/create", {"timers": [*items[:1_000], 3]}).status_code == 400
    assert server.service.timers == {}
    answer = server.post("timers/batch/create", {"timers": items[:1_000]})
    assert [result["timer"]["id"] for result in answer.json()["results"]] == [f"b{number}" for number in range(1_000)]
    assert server.post("timers/batch/create", {"timers": []}).json() == {"results": []}


def test_namespaces_are_created_listed_and_changed(server: Served) -> None:
    secret = "whsec_" + "A" * 32
    sent = {"name": "orders", "numShards": 2, "history": "failures", "retention": "36h", "secret": secret}
    created = server.post("namespaces/create", sent)
    assert created.status_code == 200
    assert secret not in created.text
    assert created.json() == {
        "name": "orders",
        "numShards": 2,
        "history": "failures",
        "retention": "1d12h",
        "paused": False,
        "signed": True,
        "answers": "standard",
        "retryPolicy": {"maxAttempts": 10, "initialInterval": "5s", "backoffMultiplier": 3.0, "maxInterval": "4h"},
        "createdAt": created.json()["createdAt"],
        "updatedAt": created.json()["updatedAt"],
        "version": 1,
    }
    assert (server.post("namespaces/create", sent).json()["error"]) == "NAMESPACE_EXISTS"
    changed = server.post("namespaces/update", {"name": "orders", "secret": None, "paused": True}).json()
    assert (changed["signed"], changed["paused"], changed["history"]) == (False, True, "failures")
    policy = {"maxAttempts": 2, "initialInterval": "1s", "backoffMultiplier": 3.0, "maxInterval": "4h"}
    sent = {"name": "orders", "answers": "strict", "retryPolicy": {"maxAttempts": 2, "initialInterval": "1s"}}
    changed = server.post("namespaces/update", sent).json()
    assert (changed["answers"], changed["retryPolicy"], changed["history"]) == ("strict", policy, "failures")
    changed = server.post("namespaces/update", {"name": "orders", "retryPolicy": None}).json()
    assert (changed["answers"], changed["retryPolicy"]["maxAttempts"]) == ("strict", 10)
    refused = server.post("namespaces/update", {**sent, "answers": "lax", "retryPolicy": {"maxRetries": 1}})
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, "answers")
    for options in ({"json": {}}, {}):
        listed = server.client.post("/api/v1/namespaces/list", **options)
        assert [namespace["name"] for namespace in listed.json()["namespaces"]] == ["default", "orders"]


def test_cluster_shows_nodes_and_shards(server: Served) -> None:
    cluster = server.client.get("/api/v1/cluster").json()
    assert (cluster["totalShards"], cluster["dispatching"], cluster["dispatchPausedReason"]) == (8, False, "lease")
    assert cluster["nodes"][0]["self"] is True
    assert cluster["shards"][0]["lagMs"] == 1.5
    assert cluster["shards"][0]["completeTo"] == "9999-12-31T23:59:59Z"
    assert cluster["shards"][1]["owner"] is None


def test_owners_of_the_shards_with_an_etag(server: Served) -> None:
    answer = server.client.get("/api/v1/cluster?view=owners")
    node = {"apiUrl": "http://10.0.0.5:8080", "alive": True, "leaving": False, "skewed": False}
    assert answer.json() == {"totalShards": 8, "nodes": [node], "owners": [0] * 7 + [None]}
    etag = answer.headers["etag"]
    for sent in (etag, f'"other", W/{etag}', "*"):
        current = server.client.get("/api/v1/cluster?view=owners", headers={"if-none-match": sent})
        assert (current.status_code, current.content, current.headers["etag"]) == (304, b"", etag)
    outdated = server.client.get("/api/v1/cluster?view=owners", headers={"if-none-match": '"other"'})
    assert outdated.json() == answer.json()
    refused = server.client.get("/api/v1/cluster?view=all")
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, "view")


def test_health_readiness_metrics(server: Served) -> None:
    assert server.client.get("/healthz").json() == {"status": "ok"}
    assert server.client.get("/readyz").json() == {"status": "ready"}
    server.service.reasons = ["store not open", "no shard claimed"]
    answer = server.client.get("/readyz")
    assert (answer.status_code, answer.json()["error"]) == (503, "NOT_READY")
    assert [reason["reason"] for reason in answer.json()["errors"]] == server.service.reasons
    assert "retry-after" in answer.headers
    assert server.client.get("/healthz").status_code == 200
    metrics = server.client.get("/metrics")
    assert (metrics.content, metrics.headers["content-type"]) == (b"up 1\n", "text/plain; version=1.0.0; charset=utf-8")
