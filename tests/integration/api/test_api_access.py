"""Access control of the API: roles, namespaces, missing and invalid keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from api_server import Keys, Served, make_api
from fake_agent import FakeAgent
from fake_timers import FakeTimerService
from tests.support.cases import each

from tocsin.cluster.wire import RelayedRequest
from tocsin.model.access import ApiKey, Role
from tocsin.server.relay import serve_relayed
from tocsin.web.http.hosts import Hosts

TIMER = {"namespace": "default", "id": "t1", "delay": "1h", "callbackUrl": "https://a.example/x"}
NAME = {"namespace": "default", "timerId": "t1"}


@pytest.fixture(scope="module")
def keys() -> Keys:
    return Keys(required=True)


@pytest.fixture(scope="module")
def guarded(serve: Callable[..., Served], keys: Keys) -> Served:
    return serve(keys=keys, metrics_open=False)


@pytest.fixture
def server(guarded: Served) -> Served:
    guarded.service.clear()
    return guarded


ALL_CALLS = [
    ("POST", "/api/v1/timers/create", TIMER),
    ("POST", "/api/v1/timers/get", NAME),
    ("POST", "/api/v1/timers/update", {**NAME, "tags": []}),
    ("POST", "/api/v1/timers/delete", NAME),
    ("POST", "/api/v1/timers/list", {"namespace": "default"}),
    ("POST", "/api/v1/timers/batch/create", {"timers": [TIMER]}),
    ("POST", "/api/v1/namespaces/create", {"name": "x"}),
    ("POST", "/api/v1/namespaces/update", {"name": "default"}),
    ("POST", "/api/v1/namespaces/list", {}),
    ("GET", "/api/v1/cluster", None),
    ("GET", "/metrics", None),
]


@each("method, path, body", ALL_CALLS)
@each("header", [None, "Bearer wrong", "Bearer", "Basic dTpw", "Bearer \xe9", "gibberish"])
def test_requests_without_a_valid_key_have_no_effect(
    server: Served, method: str, path: str, body: object, header: str | None
) -> None:
    headers = {} if header is None else {"authorization": header.encode("latin-1")}
    answer = server.client.request(method, path, json=body, headers=headers)  # type: ignore[arg-type]
    assert (answer.status_code, answer.json()["error"]) == (401, "UNAUTHENTICATED")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.headers["content-type"] == "application/problem+json"
    assert server.service.timers == {}


@each("path", ["/healthz", "/readyz", "/openapi.json", "/api/v1/openapi.json"])
def test_health_and_the_description_are_open(server: Served, path: str) -> None:
    assert server.client.get(path).status_code == 200


def statuses(server: Served, headers: dict[str, str]) -> list[int]:
    server.service.clear()
    return [
        server.client.request(method, path, json=body, headers=headers).status_code for method, path, body in ALL_CALLS
    ]


def test_roles_include_one_another(server: Served, keys: Keys) -> None:
    # In the order of ALL_CALLS; the timer is there only for those who could create it.
    assert statuses(server, keys.add("r", Role.READ)) == [403, 404, 403, 403, 200, 403, 403, 403, 200, 200, 200]
    assert statuses(server, keys.add("w", Role.WRITE)) == [200, 200, 200, 204, 200, 200, 403, 403, 200, 200, 200]
    assert statuses(server, keys.add("a", Role.ADMIN)) == [200, 200, 200, 204, 200, 200, 200, 200, 200, 200, 200]


def test_key_limited_to_a_namespace_has_access_to_no_other(server: Served, keys: Keys) -> None:
    at_home = keys.add("home", Role.ADMIN, "default")
    assert statuses(server, at_home) == [200, 200, 200, 204, 200, 200, 403, 403, 200, 403, 403]
    abroad = keys.add("abroad", Role.ADMIN, "elsewhere")
    assert statuses(server, abroad) == [403, 403, 403, 403, 403, 200, 403, 403, 200, 403, 403]
    assert server.service.timers == {}
    tenant = keys.add("tenant", Role.ADMIN, tenants=("0190",))
    assert statuses(server, tenant)[0] == 403


def test_any_key_shows_the_owners_of_shards(server: Served, keys: Keys) -> None:
    path = "/api/v1/cluster?view=owners"
    limited = [keys.add("home", Role.READ, "default"), keys.add("tenant", Role.WRITE, tenants=("0190",))]
    assert [server.client.get(path, headers=headers).status_code for headers in limited] == [200, 200]
    assert server.client.get(path).status_code == 401


def test_each_item_of_a_batch_is_checked(server: Served, keys: Keys) -> None:
    home = keys.add("home", Role.WRITE, "default")
    items = [TIMER, {**TIMER, "namespace": "elsewhere"}]
    results = server.post("timers/batch/create", {"timers": items}, headers=home).json()["results"]
    assert results[0]["timer"]["id"] == "t1"
    assert (results[1]["error"]["error"], results[1]["error"]["status"]) == ("FORBIDDEN", 403)


def test_list_shows_only_visible_namespaces(server: Served, keys: Keys) -> None:
    admin = keys.add("root", Role.ADMIN)
    for name in ("a", "b"):
        server.post("namespaces/create", {"name": name}, headers=admin)
    limited = keys.add("only-b", Role.READ, "b", "gone")
    listed = server.post("namespaces/list", {}, headers=limited).json()["namespaces"]
    assert [namespace["name"] for namespace in listed] == ["b"]


def test_list_of_all_tenants_has_what_the_key_has_access_to(server: Served, keys: Keys) -> None:
    tenants = [f"01890a5d-ac96-774b-bcce-b302099a80{number:02}" for number in range(3)]
    every, admin = "/api/v1/tenants/*/service-calls", keys.add("admin", Role.ADMIN)
    call = {"name": "n", "requestSpec": {"method": "POST", "url": "https://a.example/x"}}
    for tenant in tenants:
        path = f"/api/v1/tenants/{tenant}/service-calls"
        assert server.client.post(path, json=call, headers=admin).status_code == 202
    two = keys.add("two", Role.READ, tenants=(tenants[0], tenants[2].upper()))

    def listed(headers: dict[str, str], query: str = "") -> set[str]:
        answer = server.client.get(every + query, headers=headers)
        assert answer.status_code == 200, answer.text
        return {found["tenantId"] for found in answer.json()["serviceCalls"]}

    assert listed(admin) == set(tenants)
    assert listed(two) == listed(two, "?name=n") == {tenants[0], tenants[2]}
    assert listed(keys.add("home", Role.READ, "default")) == set()
    for answer in (
        server.client.post(every, json=call, headers=admin),
        server.client.get(f"{every}/{tenants[0]}", headers=admin),
    ):
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "tenantId")


def test_an_invalid_key_is_refused_where_keys_are_optional(serve: Callable[..., Served]) -> None:
    server = serve()
    assert server.post("timers/create", TIMER).status_code == 200
    assert server.post("timers/create", TIMER, headers={"authorization": "Bearer typo"}).status_code == 401
    reader = server.keys.add("r", Role.READ)
    assert server.post("timers/create", TIMER, headers=reader).status_code == 403
    assert server.client.get("/metrics").status_code == 200


def test_relaying_node_checks_the_host_header_and_forwards_the_client_address(serve: Callable[..., Served]) -> None:
    """The agent's node has other host names than the node that relays the request."""
    path = "/api/v1/tenants/01890a5d-ac96-774b-bcce-b302099a8057/service-calls"
    agents_node = make_api(FakeTimerService(), Keys(), FakeAgent(), hosts=Hosts("agent.example"))
    brought: list[RelayedRequest] = []

    async def relay(
        method: str, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes, client: str
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        brought.append(RelayedRequest(0, method, target, headers, body, client=client))
        answer = await serve_relayed(agents_node, brought[-1])
        return answer.status, answer.headers, answer.body

    asked = serve(agent=False, hosts=Hosts("asked.example"), relay=relay)
    assert asked.client.get(path, headers={"host": "asked.example"}).status_code == 200
    assert [request.client for request in brought] == ["127.0.0.1"]
    assert asked.client.get(path, headers={"host": "foreign.example"}).status_code == 403
    assert asked.client.get(path, headers={"authorization": "Bearer wrong"}).status_code == 401
    assert len(brought) == 1
    # A node that brings no address has checked nothing.
    unchecked = RelayedRequest(0, "GET", path.encode(), [(b"host", b"asked.example")], b"")
    assert asyncio.run(serve_relayed(agents_node, unchecked)).status == 403


def test_whom_another_node_has_identified_may_do_what_they_may(keys: Keys) -> None:
    """The token itself stays at the node that has checked it."""
    node = make_api(FakeTimerService(), keys, FakeAgent(), hosts=Hosts("agent.example"))
    path, limited = b"/api/v1/tenants/*/service-calls", ApiKey("oidc-1", "", Role.READ, ("default",))
    statuses = [
        asyncio.run(
            serve_relayed(node, RelayedRequest(0, "GET", path, [], b"", client="192.0.2.7", identity=each))
        ).status
        for each in (None, ApiKey("oidc-1", "", Role.READ), limited)
    ]
    assert statuses[:2] == [401, 200]
    asked = RelayedRequest(0, "POST", b"/api/v1/keys/list", [], b"{}", client="192.0.2.7", identity=limited)
    assert asyncio.run(serve_relayed(node, asked)).status == 403
