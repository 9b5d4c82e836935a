"""Keys that are limited to operations and to sources, on a server behind a proxy: in the API, over MCP, on the pages."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import pytest_asyncio

from tests.support.cluster import until
from tests.support.command import command
from tests.support.mcp import over_http
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.model.ids import Uuid7Source

pytestmark = pytest.mark.asyncio(loop_scope="module")

INSIDE, OUTSIDE = "10.1.2.3", "203.0.113.9"
NOWHERE = "http://127.0.0.1:9/"
ENV = {
    "TOCSIN_KEYS_REFRESH": "50ms",
    "TOCSIN_MCP_ENABLED": "true",
    "TOCSIN_TRUSTED_PROXIES": "127.0.0.1",
    "TOCSIN_EGRESS_ALLOW": "127.0.0.1",
}
_new_id = Uuid7Source(lambda: time.time_ns() // 1_000)


class Place(NamedTuple):
    """The server and its admin key."""

    server: ServerProcess
    admin: str

    @property
    def url(self) -> str:
        return self.server.url

    async def key(self, role: str = "write", **limits: Any) -> str:
        """A new key."""
        status, made = await self.call(self.admin, "keys/create", role=role, **limits)
        assert status == 200, made
        assert {name: made.get(name) for name in limits} == limits
        return str(made["key"])

    async def call(self, key: str, path: str, /, *, via: str | None = None, **body: Any) -> tuple[int, Any]:
        """Status and answer; `via` is what a proxy names as the client."""
        headers = {"authorization": f"Bearer {key}", **({} if via is None else {"x-forwarded-for": via})}
        # There is no TLS, and to read the certificates of authorities takes as long as a hundred requests.
        async with httpx.AsyncClient(timeout=PATIENCE_S, headers=headers, verify=False) as client:
            answer = await client.post(f"{self.url}/api/v1/{path}", json=body)
        return answer.status_code, answer.json() if answer.content else None

    async def foreign_sources(self) -> int:
        """How many requests were refused because of their source."""
        async with httpx.AsyncClient(headers={"authorization": f"Bearer {self.admin}"}) as client:
            metrics = (await client.get(f"{self.url}/metrics")).text
        found = re.search(r'tocsin_authentication_failures_total{reason="foreign_source"} (\d+)\.0', metrics)
        return 0 if found is None else int(found[1])

    def foreign_lines(self) -> list[tuple[str, str, str]]:
        """What the log has of them: where, from which address, with which key."""
        lines = [json.loads(line) for line in self.server.log().splitlines() if "foreign_source" in line]
        return [(line["where"], line["address"], line["key"]) for line in lines]

    async def create(self, key: str, timer_id: str, *, via: str | None = None) -> tuple[int, Any]:
        timer = {"namespace": "default", "id": timer_id, "delay": "1h", "callbackUrl": NOWHERE}
        return await self.call(key, "timers/create", via=via, **timer)


@asynccontextmanager
async def started(folder: Path) -> AsyncIterator[Place]:
    """A server behind a proxy, with an admin key."""
    server = ServerProcess(folder / "data", env=ENV)
    code, out, err = await command("keys", "create", "--role", "admin", "--data-dir", str(server.data_dir))
    assert code == 0, err
    await server.start()
    yield Place(server, out.strip())
    assert await server.stop() == 0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    async with started(tmp_path_factory.mktemp("limited-keys")) as place:
        yield place


async def test_a_key_may_use_its_operations_and_no_others(place: Place) -> None:
    key = await place.key(operations=["timers/create", "schedules/*"])
    assert (await place.create(key, "one"))[0] == 200
    # Once more, with a head that is known.
    assert (await place.create(key, "one"))[0] == 200
    status, problem = await place.call(key, "timers/delete", namespace="default", timerId="one")
    assert (status, problem["error"]) == (403, "FORBIDDEN")
    assert problem["detail"].startswith("this key is limited to some operations, and timers/delete is not among them")
    status, problem = await place.call(key, "timers/batch/create", timers=[])
    assert (status, "timers/batch/create is not among them" in problem["detail"]) == (403, True)
    assert (await place.call(key, "timers/get", namespace="default", timerId="one"))[0] == 403
    assert (await place.call(key, "schedules/list", namespace="default"))[0] == 200
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"{place.url}/healthz", headers={"authorization": f"Bearer {key}"})).status_code == 200
    reading = await place.key(operations=["timers/create", "read"])
    assert (await place.call(reading, "timers/get", namespace="default", timerId="one"))[0] == 200
    assert (await place.call(reading, "timers/delete", namespace="default", timerId="one"))[0] == 403
    # The role still counts.
    reader = await place.key("read", operations=["timers/*"])
    status, problem = await place.create(reader, "two")
    assert (status, "role write" in problem["detail"]) == (403, True)


async def test_service_calls_are_operations_too(place: Place) -> None:
    tenant = _new_id()
    key = await place.key(operations=["calls/submit", "calls/get"], tenants=[tenant])
    call = {"name": "c", "requestSpec": {"method": "GET", "url": NOWHERE}, "dueAt": "2099-01-01T00:00:00Z"}
    status, made = await place.call(key, f"tenants/{tenant}/service-calls", **call)
    assert status == 202, made
    path = f"{place.url}/api/v1/tenants/{tenant}/service-calls/{made['serviceCallId']}"
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {key}"}) as client:
        assert (await client.get(path)).status_code == 200
        refused = await client.delete(path)
        assert (refused.status_code, "calls/delete is not among them" in refused.text) == (403, True)
        assert (await client.get(path.rpartition("/")[0])).status_code == 403


async def test_a_key_counts_from_its_sources_as_the_proxy_names_them(place: Place) -> None:
    key = await place.key(sources=["10.0.0.0/8", "2001:db8::/32"])
    for address in (INSIDE, "2001:db8::1", f"8.8.8.8, {INSIDE}", f"{INSIDE}:4711"):
        assert (await place.create(key, "one", via=address))[0] == 200
    for address in (OUTSIDE, f"{INSIDE}, {OUTSIDE}", "2001:db9::1"):
        status, problem = await place.create(key, "one", via=address)
        last = address.rpartition(", ")[2]
        assert (status, problem["error"]) == (403, "FORBIDDEN")
        assert problem["detail"] == f"this key is limited to some sources, and the address {last} is not among them"
        assert "10.0.0.0" not in json.dumps(problem)
    # Without the header, the proxy itself has sent the request.
    status, problem = await place.create(key, "one")
    assert (status, "127.0.0.1 is not among them" in problem["detail"]) == (403, True)
    # However often: a valid key is no guess.
    before = await place.foreign_sources()
    assert {(await place.create(key, "one", via=OUTSIDE))[0] for _ in range(25)} == {403}
    assert await place.foreign_sources() == before + 25


async def test_without_trusted_proxies_the_connection_counts(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--no-agent", env={"TOCSIN_EGRESS_ALLOW": "127.0.0.1"})
    flags = ("--role", "write", "--data-dir", str(server.data_dir))
    keys = []
    for source in ("10.0.0.0/8", "127.0.0.1"):
        code, out, err = await command("keys", "create", *flags, "--source", source, "--operation", "timers/*")
        assert code == 0, err
        keys.append(out.strip())
    await server.start()
    place = Place(server, "")
    assert (await place.create(keys[0], "one", via=INSIDE))[0] == 403
    assert (await place.create(keys[1], "one", via=OUTSIDE))[0] == 200
    assert await server.stop() == 0
    code, out, err = await command("keys", "list", "--json", "--data-dir", str(server.data_dir))
    assert code == 0, err
    shown = {(*each["sources"], *each["operations"]) for each in json.loads(out)}
    assert shown == {("10.0.0.0/8", "timers/*"), ("127.0.0.1/32", "timers/*")}


async def test_tools_of_mcp_are_limited_alike(place: Place) -> None:
    without = await place.key(operations=["timers/create"])
    async with httpx.AsyncClient() as client:
        refused = await client.post(f"{place.url}/mcp", json={}, headers={"authorization": f"Bearer {without}"})
    assert (refused.status_code, "mcp is not among them" in refused.text) == (403, True)
    key = await place.key(operations=["mcp", "timers/create", "timers/list"], sources=["10.0.0.0/8"])
    async with over_http(place.url, key, **{"x-forwarded-for": INSIDE}) as tools:
        await tools("create_timer", callbackUrl=NOWHERE, delay="1h", id="of-mcp")
        answer = await tools.refused("get_timer", id="of-mcp")
        assert "timers/get is not among them" in json.dumps(answer)
    outside = {"authorization": f"Bearer {key}", "x-forwarded-for": OUTSIDE}
    async with httpx.AsyncClient() as client:
        refused = await client.post(f"{place.url}/mcp", json={}, headers=outside)
    assert (refused.status_code, f"the address {OUTSIDE} is not among them" in refused.text) == (403, True)


class Browser:
    """Somebody who signs in at the pages from an address."""

    def __init__(self, place: Place, address: str) -> None:
        self.client = httpx.AsyncClient(
            base_url=place.url, timeout=PATIENCE_S, headers={"x-forwarded-for": address, "accept": "text/html"}
        )

    async def post(self, path: str, form: str, **fields: str) -> httpx.Response:
        """Sends a form of the page `form`."""
        found = re.search(r'name="csrf" (?:content|value)="(\w+)"', (await self.client.get(form)).text)
        assert found is not None
        return await self.client.post(path, data={"csrf": found[1], **fields})

    async def sign_in(self, key: str) -> httpx.Response:
        return await self.post("/login", "/login", key=key, to="/timers")


async def test_the_pages_are_limited_alike(place: Place) -> None:
    insider, outsider = Browser(place, INSIDE), Browser(place, OUTSIDE)
    async with insider.client, outsider.client:
        key = await place.key("admin", operations=["read", "timers/create"], sources=["10.0.0.0/8"])
        refused = await outsider.sign_in(key)
        assert (refused.status_code, f"the address {OUTSIDE} is not among them" in refused.text) == (403, True)
        refused = await insider.sign_in(await place.key(operations=["timers/*"]))
        assert (refused.status_code, "limited to operations of the API" in refused.text) == (403, True)
        assert (await insider.sign_in(key)).status_code == 303
        assert (await insider.client.get("/timers")).status_code == 200
        # What it only reads: a page has no name among the operations.
        refused = await insider.client.get("/keys")
        assert (refused.status_code, "limited to operations" in refused.text) == (403, True)
        refused = await insider.post("/timers/cancel", "/timers", namespace="default", id="one")
        assert (refused.status_code, "it changes nothing" in refused.text) == (403, True)
        # A stolen cookie, elsewhere.
        outsider.client.cookies.update(insider.client.cookies)
        refused = await outsider.client.get("/timers")
        assert (refused.status_code, f"the address {OUTSIDE} is not among them" in refused.text) == (403, True)
        assert "default" not in refused.text
        assert (await outsider.client.get("/login")).status_code == 200


async def test_use_of_a_key_from_elsewhere_is_counted_and_logged_with_the_key(tmp_path: Path) -> None:
    # A server of its own: the log has the first ten of a minute.
    async with started(tmp_path) as place:
        insider, outsider = Browser(place, INSIDE), Browser(place, OUTSIDE)
        async with insider.client, outsider.client:
            key = await place.key(sources=["10.0.0.0/8"])
            assert (await place.create(key, "one", via=OUTSIDE))[0] == 403
            assert (await outsider.sign_in(key)).status_code == 403
            assert (await insider.sign_in(key)).status_code == 303
            outsider.client.cookies.update(insider.client.cookies)
            assert (await outsider.client.get("/timers")).status_code == 403
            assert await place.foreign_sources() == 3
            key_id = key.split("_")[1]
            assert place.foreign_lines() == [(where, OUTSIDE, key_id) for where in ("api", "pages", "pages")]


async def test_the_form_makes_limited_keys_and_the_table_shows_them(place: Place) -> None:
    admin = Browser(place, INSIDE)
    async with admin.client:
        assert (await admin.sign_in(place.admin)).status_code == 303
        wrong = await admin.post("/keys/new", "/keys/new", role="write", operations="timers/mend", sources="10.0.0.1/8")
        assert wrong.status_code == 400
        assert "is not the name of an operation" in wrong.text
        assert "has host bits set" in wrong.text
        limits = {"operations": "timers/*, read", "sources": "10.7.0.0/16"}
        made = await admin.post("/keys/new", "/keys/new", role="write", name="shop", expires="", **limits)
        assert made.status_code == 200
        assert all(text in made.text for text in ("timers/*, read", "10.7.0.0/16"))
        shown = (await admin.client.get("/keys?q=10.7.0.0")).text
        assert all(text in shown for text in ("shop", "timers/*, read", "10.7.0.0/16", "Last used"))


async def test_no_key_makes_one_that_may_more(place: Place) -> None:
    maker = await place.key("admin", operations=["keys/*", "timers/*"], sources=["10.0.0.0/8"])
    for wanted, why in (
        ({"sources": ["10.1.0.0/16"]}, "limited to the operations keys/*, timers/*"),
        ({"operations": ["timers/*"]}, "limited to the sources 10.0.0.0/8"),
        ({"operations": ["timers/*"], "sources": ["0.0.0.0/0"]}, "limited to the sources 10.0.0.0/8"),
    ):
        status, problem = await place.call(maker, "keys/create", via=INSIDE, role="write", **wanted)
        assert (status, why in problem["detail"]) == (403, True), problem
    wanted = {"operations": ["timers/*"], "sources": ["10.1.0.0/16"]}
    assert (await place.call(maker, "keys/create", via=INSIDE, role="write", **wanted))[0] == 200
    status, problem = await place.call(place.admin, "keys/create", role="write", operations=["a"], sources=["b"])
    assert (status, [field["path"] for field in problem["errors"]]) == (400, ["operations[0]", "sources[0]"])


async def test_a_key_shows_when_it_was_used_last(place: Place) -> None:
    key = await place.key()

    async def shown() -> dict[str, Any]:
        _, listed = await place.call(place.admin, "keys/list")
        return next(each for each in listed["keys"] if each["keyId"] == key.split("_")[1])

    assert "lastUsedAt" not in await shown()
    assert (await place.create(key, "one"))[0] == 200

    async def used() -> bool:
        return "lastUsedAt" in await shown()

    await until(used)
    first = await shown()
    assert first["createdAt"] <= first["lastUsedAt"]
    # Not again within the hour.
    assert (await place.create(key, "one"))[0] == 200
    other = await place.key()
    assert (await place.create(other, "one"))[0] == 200

    async def other_used() -> bool:
        _, listed = await place.call(place.admin, "keys/list")
        return any(each["keyId"] == other.split("_")[1] and "lastUsedAt" in each for each in listed["keys"])

    await until(other_used)
    assert await shown() == first
    code, out, err = await command("keys", "list", "--server", place.url, "--key", place.admin, "--json")
    assert code == 0, err
    assert {each["keyId"]: each["lastUsedAt"] for each in json.loads(out)}[first["keyId"]] == first["lastUsedAt"]
