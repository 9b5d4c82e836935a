"""Keys and egress on a public server, while it runs."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.calls import Api, Inbox
from tests.support.cluster import node, running, until
from tests.support.command import command
from tests.support.http import Receiver
from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.private_files import tighten_folder

#: A key that is made while the server runs counts after this.
REFRESH = {"TOCSIN_KEYS_REFRESH": "50ms"}
TENANT = "01890a5d-ac96-774b-bcce-b302099a8057"
PUBLIC = "http://93.184.215.14/"
PRIVATE = (
    "http://127.0.0.1/", "http://localhost:8080/", "http://x.localhost/", "http://10.1.2.3/", "http://[::1]/",
    "http://169.254.169.254/latest/meta-data", "http://[::ffff:127.0.0.1]/", "http://0x7f.1/", "http://2130706433/",
    "http://[fe80::1]/", "http://100.64.0.1/", "http://0.0.0.0/",
)  # fmt: skip


async def make_key(server: ServerProcess, *flags: str) -> str:
    code, out, err = await command("keys", "create", "--data-dir", str(server.data_dir), *flags)
    assert code == 0, err
    return out.strip()


async def suspended(call: Caller, timer_id: str) -> dict[str, Any]:
    """The pending timer, once it is suspended because of its address; nothing has been recorded as an attempt."""
    async with asyncio.timeout(PATIENCE_S):
        while "suspended" not in (  # noqa: ASYNC110
            got := (await call("timers/get", namespace="default", timerId=timer_id))[1]
        ):
            await asyncio.sleep(0.02)
    assert (got["status"], got["suspended"], got["attempts"], got["attemptLog"]) == ("pending", "egress", 0, [])
    assert "lastError" not in got
    return got


@pytest.fixture
async def reachable(tmp_path: Path) -> AsyncIterator[tuple[ServerProcess, str]]:
    """A server on all addresses, with an admin key."""
    server = ServerProcess(tmp_path / "data", "--host", "0.0.0.0", env=REFRESH)
    admin = await make_key(server, "--role", "admin")
    await server.start()
    yield server, admin
    await server.stop()


class Caller:
    """Calls the API with a key."""

    def __init__(self, server: ServerProcess, key: str | None) -> None:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        # There is no TLS, and to read the certificates of authorities takes as long as a hundred requests.
        self._client = httpx.AsyncClient(
            base_url=server.url + "/api/v1/", headers=headers, timeout=PATIENCE_S, verify=False
        )

    async def __call__(self, path: str, **body: Any) -> tuple[int, Any]:
        answer = await self._client.post(path, json=body)
        return answer.status_code, answer.json() if answer.content else None

    async def until(self, status: int, path: str, **body: Any) -> None:
        """Repeats a request until it has this status: no event announces when a key takes effect."""
        async with asyncio.timeout(PATIENCE_S):
            while (await self(path, **body))[0] != status:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def test_a_public_server_without_a_key_starts_only_if_insecure(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--host", "0.0.0.0", "--no-agent")
    with pytest.raises(AssertionError, match="no API key"):
        await server.start()
    server = ServerProcess(tmp_path / "data", "--host", "0.0.0.0", "--insecure", "--no-agent")
    await server.start()
    assert (await Caller(server, None)("namespaces/list"))[0] == 200
    assert await server.stop() == 0


async def test_a_new_server_on_a_public_address_takes_its_first_admin_key_from_a_file(tmp_path: Path) -> None:
    secret, file = "0123456789abcdef" * 4, tmp_path / "admin.key"
    file.write_text(secret + "\n")
    server = ServerProcess(tmp_path / "data", "--host", "0.0.0.0", env={**REFRESH, "TOCSIN_ADMIN_KEY_FILE": str(file)})
    await server.start()
    admin = Caller(server, secret)
    status, listed = await admin("keys/list")
    assert (status, [key["role"] for key in listed["keys"]]) == (200, ["admin"])
    assert (await Caller(server, None)("namespaces/list"))[0] == 401
    assert "secret file readable by every user" in server.log()
    # It is the first key only: another secret changes nothing while a key exists.
    file.chmod(0o600)
    file.write_text("f" * 64)
    assert server.process is not None
    # With one node, SIGHUP reads certificates again, and does not end the process.
    server.process.send_signal(signal.SIGHUP)

    async def reloaded() -> bool:
        return "reload done" in server.log()

    await until(reloaded)
    assert (await Caller(server, "f" * 64)("keys/list"))[0] == 401
    assert await server.stop() == 0
    await server.start()
    admin = Caller(server, secret)
    listed["keys"][0].pop("lastUsedAt", None)
    assert (await admin("keys/list"))[1]["keys"][0].items() >= listed["keys"][0].items()
    assert (await Caller(server, "f" * 64)("keys/list"))[0] == 401
    assert await _responses(server, secret) >= {("listKeys", "200"), ("listKeys", "401")}
    assert await server.stop() == 0
    file.write_text("short\n")
    for name in ("tocsin.db", "agent.db"):
        (server.data_dir / name).unlink()
    with pytest.raises(AssertionError, match=r"admin_key_file: the key in .*admin\.key must have 32 to 256 characters"):
        await server.start()


async def test_a_first_key_from_a_file_reports_what_it_suspends(tmp_path: Path) -> None:
    file = tmp_path / "admin.key"
    file.write_text("k" * 64)
    file.chmod(0o600)
    server = ServerProcess(tmp_path / "data", "--no-agent")
    await server.start()
    for url in (PRIVATE[0], PUBLIC):
        await Api(server).create(url, url, delay="1h")
    assert await server.stop() == 0
    server.env["TOCSIN_ADMIN_KEY_FILE"] = str(file)
    await server.start()
    assert await server.stop() == 0
    (line,) = [json.loads(line) for line in server.log().splitlines() if "first key suspends timers" in line]
    assert (line["timers"], line["more"], line["destinations"]) == (1, False, "http://127.0.0.1:80")


async def _responses(server: ServerProcess, key: str) -> set[tuple[str, str]]:
    """The operations and statuses that the server has counted."""
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {key}"}) as client:
        text = (await client.get(f"{server.url}/metrics")).text
    assert "tocsin_shards_without_owner 0.0" in text
    assert re.search(r'tocsin_request_duration_seconds_bucket{le="\+Inf",operation="listKeys"} [23]\.0', text)
    return set(re.findall(r'tocsin_requests_total{operation="(\w+)",status="(\d+)"}', text))


async def test_created_and_revoked_keys_apply_to_a_running_server(reachable: tuple[ServerProcess, str]) -> None:
    server, admin = reachable
    status, problem = await Caller(server, None)("namespaces/list")
    assert (status, problem["error"]) == (401, "UNAUTHENTICATED")
    assert (await Caller(server, admin)("namespaces/list"))[0] == 200
    key = await make_key(server, "--role", "read")
    caller = Caller(server, key)
    await caller.until(200, "namespaces/list")
    code, _, err = await command("keys", "revoke", key.split("_")[1], "--data-dir", str(server.data_dir))
    assert code == 0, err
    await caller.until(401, "namespaces/list")


async def test_a_name_that_resolves_to_this_machine_is_refused_at_the_attempt(tmp_path: Path) -> None:
    name = socket.gethostname()
    try:
        addresses = {found[4][0] for found in socket.getaddrinfo(name, 80, socket.AF_INET, socket.SOCK_STREAM)}
    except socket.gaierror:
        addresses = set()
    if name == "localhost" or addresses != {"127.0.0.1"}:
        lacking("loopback-name", "this machine's name does not resolve to 127.0.0.1")
    server, inbox = ServerProcess(tmp_path / "data", "--host", "0.0.0.0", "--insecure", "--no-agent"), Inbox()
    async with Receiver(inbox) as receiver:
        url = receiver.url.replace("127.0.0.1", name)
        await server.start()
        call = Caller(server, None)
        policy = {"maxAttempts": 3, "initialInterval": "10ms"}
        timer = {"namespace": "default", "callbackUrl": url, "delay": "0s", "retryPolicy": policy}
        assert (await call("timers/create", id="refused", **timer))[0] == 200
        await suspended(call, "refused")
        assert inbox.calls == []
        assert await server.stop() == 0
        server.env = {"TOCSIN_EGRESS_ALLOW": name}
        await server.start()
        (call_made,) = await inbox.count(1)
        assert (call_made.body["timerId"], call_made.body["attempt"]) == ("refused", 1)
        assert await server.stop() == 0


async def test_invalid_keys_are_limited_per_address_and_valid_ones_are_not(
    reachable: tuple[ServerProcess, str],
) -> None:
    server, key = reachable
    wrong = f"{key[:-4]}nono"
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S) as client:
        answers = [
            await client.post(
                f"/api/v1/{path}", json={"namespace": "default"}, headers={"authorization": f"Bearer {wrong}"}
            )
            for path in ("namespaces/list", "timers/create") * 20
        ]
        statuses = [answer.status_code for answer in answers]
        assert statuses[:20] == [401] * 20
        # Each few seconds, one more is let through.
        limited = [answer for answer in answers if answer.status_code == 429]
        assert limited and all(int(answer.headers["retry-after"]) >= 1 for answer in limited)
        assert (await Caller(server, key)("namespaces/list"))[0] == 200
        metrics = (await client.get("/metrics", headers={"authorization": f"Bearer {key}"})).text
    assert 'tocsin_authentication_failures_total{reason="unknown_key"} 40.0' in metrics
    log = server.log_path.read_text()
    assert 1 <= log.count("authentication failed") <= 10
    assert wrong not in log
    assert wrong.rpartition("_")[2] not in log


async def test_the_audit_trail_records_key_action_and_subject(reachable: tuple[ServerProcess, str]) -> None:
    server, key = reachable
    key_id = key.split("_")[1]
    admin = Caller(server, key)
    secret = "whsec_" + "c2VjcmV0" * 6
    assert (await admin("namespaces/create", name="orders", secret=secret, history="failures"))[0] == 200
    assert (await admin("namespaces/update", name="orders", paused=True, secret=None))[0] == 200
    assert (await admin("namespaces/update", name="missing", paused=True))[0] == 404
    reader = await make_key(server, "--role", "read", "--expires-in", "90d")
    code, _, err = await command("keys", "revoke", reader.split("_")[1], "--data-dir", str(server.data_dir))
    assert code == 0, err
    entries: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        status, page = await admin("audit/list", limit=2, **cursor)
        assert status == 200, page
        entries += page["entries"]
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert [(entry["action"], entry["keyId"], entry["subject"], entry["source"]) for entry in entries] == [
        ("key_deleted", None, reader.split("_")[1], "cli"),
        ("key_created", None, reader.split("_")[1], "cli"),
        ("namespace_changed", key_id, "orders", "api"),
        ("namespace_created", key_id, "orders", "api"),
        ("key_created", None, key_id, "cli"),
    ]
    assert entries[2]["details"] == {"paused": True, "secret": "removed"}
    assert entries[3]["details"] == {"history": "failures", "secret": "set"}
    assert (entries[3]["address"], entries[3]["node"] != "") == ("127.0.0.1", True)
    assert secret not in str(entries)
    status, page = await admin("audit/list", action="namespace_changed", subject="orders", keyId=key_id)
    assert [entry["action"] for entry in page["entries"]] == ["namespace_changed"]
    assert (await admin("audit/list", before=entries[-1]["at"]))[1] == {"entries": []}
    status, problem = await admin("audit/list", cursor="x", limit=0, after="soon")
    assert (status, [field["path"] for field in problem["errors"]]) == (400, ["limit", "after", "cursor"])
    status, problem = await admin("audit/list", keyId="", subject="a\x00b")
    assert (status, [field["path"] for field in problem["errors"]]) == (400, ["keyId", "subject"])
    narrow = Caller(server, await make_key(server, "--role", "admin", "--namespace", "orders"))
    await narrow.until(403, "audit/list")


async def test_on_loopback_keys_are_required_from_the_first_key_even_after_its_revocation(tmp_path: Path) -> None:
    server, inbox = ServerProcess(tmp_path / "data", "--no-agent", env=REFRESH), Inbox()
    async with Receiver(inbox) as receiver:
        await server.start()
        try:
            anonymous = Caller(server, None)
            local = {"namespace": "default", "id": "t", "callbackUrl": receiver.url, "delay": "1h"}
            assert (await anonymous("timers/create", **local))[0] == 200
            every = {"namespace": "default", "id": "s", "callbackUrl": receiver.url, "every": "1s"}
            assert (await anonymous("schedules/create", **every))[0] == 200
            # Its connection stays open.
            await inbox.count(1)
            create = ("keys", "create", "--data-dir", str(server.data_dir))
            code, out, err = await command(*create)
            assert (code, out) == (2, "")
            assert f"private addresses: 2 ({receiver.url.removesuffix('/hook')};" in err
            assert "--yes" in err
            assert (await anonymous("namespaces/list"))[0] == 200
            code, out, err = await command(*create, env={"TOCSIN_EGRESS_ALLOW_PRIVATE": "true"})
            assert (code, "(admin)" in err) == (0, True), err
            key = out.strip()
            await anonymous.until(401, "namespaces/list")
            call = Caller(server, key)
            status, problem = await call("timers/create", **local)
            assert (status, problem.get("errors", [{}])[0].get("path")) == (400, "callbackUrl"), problem
            # What was accepted before waits; the schedule, too, in spite of its open connection.
            assert (await call("timers/update", namespace="default", timerId="t", delay="0s"))[0] == 200
            await suspended(call, "t")
            explained = (await call("timers/explain", namespace="default", timerId="t"))[1]
            assert (explained["state"], explained["waitsFor"]) == ("suspended", "egress")
            assert "egress.allow" in explained["sentence"]

            async def schedule_waits() -> bool:
                got = (await call("schedules/get", namespace="default", scheduleId="s"))[1]
                return bool(got.get("suspended") == "egress")

            await until(schedule_waits)
            calls = len(inbox.calls)
            code, out, err = await command("timers", "list", "--server", server.url, "--key", key)
            assert "pending (egress)" in out, err
            async with httpx.AsyncClient(base_url=server.url) as client:
                assert (await client.get("/metrics")).status_code == 401
                assert (await client.get("/timers")).headers["location"].startswith("/login")
                metrics = (await client.get("/metrics", headers={"authorization": f"Bearer {key}"})).text
            assert re.search(r'^tocsin_timers_suspended_total{reason="egress"} [23]', metrics, re.MULTILINE)
            code, _, err = await command("timers", "list", "--server", server.url)
            assert (code, "--key or TOCSIN_KEY" in err) == (1, True), err
            code, _, err = await command("keys", "revoke", key.split("_")[1], "--data-dir", str(server.data_dir))
            assert code == 0, err
            await call.until(401, "namespaces/list")
            assert (await anonymous("namespaces/list"))[0] == 401
            assert len(inbox.calls) == calls
        finally:
            await server.stop()
        # Other settings: everything fires that has waited.
        server.env = {"TOCSIN_EGRESS_ALLOW": "127.0.0.1", "TOCSIN_EGRESS_ALLOW_PRIVATE": "false"}
        await server.start()
        assert (await Api(server).settled("t", "completed"))["attempts"] == 1
        await inbox.wait(lambda found: any(call.body["timerId"] == "s" for call in found[calls:]))
        assert await server.stop() == 0


async def test_a_public_origin_requires_keys_like_a_public_address(tmp_path: Path) -> None:
    origins = {**REFRESH, "TOCSIN_UI_ORIGINS": "https://tocsin.example,http://x.localhost:8080"}
    server = ServerProcess(tmp_path / "data", "--no-agent", env=origins)
    with pytest.raises(AssertionError, match="no API key"):
        await server.start()
    await make_key(server)
    server = ServerProcess(tmp_path / "data", "--no-agent", env=origins)
    await server.start()
    assert (await Caller(server, None)("namespaces/list"))[0] == 401
    assert await server.stop() == 0
    server = ServerProcess(tmp_path / "other", "--no-agent", env={"TOCSIN_UI_ORIGINS": "http://x.localhost:8080"})
    await server.start()
    assert (await Caller(server, None)("namespaces/list"))[0] == 200
    assert await server.stop() == 0


async def test_the_data_folder_is_private(tmp_path: Path) -> None:
    new, before = tmp_path / "new", tmp_path / "before"
    before.mkdir(mode=0o755)
    for name in ("tocsin.db", "agent.db", "tocsin.lock"):
        (before / name).touch(0o644)
    for folder in (new, before):
        server = ServerProcess(tmp_path / "log", "--data-dir", str(folder))
        await server.start()
        found = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
        assert {"tocsin.db", "tocsin.db-wal", "tocsin.lock", "agent.db"} <= set(found)
        assert set(found.values()) == {0o600}
        assert folder.stat().st_mode & 0o777 == 0o700
        assert await server.stop() == 0


async def test_permissions_of_other_files_in_the_data_folder_are_kept(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "notes.txt").touch(0o644)
    (tmp_path / "tocsin.db").touch(0o644)
    assert tighten_folder(tmp_path) == []
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"notes.txt": 0o644, "tocsin.db": 0o600}
    assert tmp_path.stat().st_mode & 0o777 == 0o755


async def test_keys_are_managed_by_api_within_the_callers_scope(
    reachable: tuple[ServerProcess, str],
) -> None:
    server, secret = reachable
    admin = Caller(server, secret)
    status, made = await admin("keys/create", role="admin", name="orders team", namespaces=["orders", "invoices"])
    assert (status, made["role"], made["namespaces"], made["name"]) == (
        200, "admin", ["orders", "invoices"], "orders team",
    )  # fmt: skip
    # At once, at the node that made it.
    team = Caller(server, made["key"])
    assert (await admin("namespaces/create", name="orders"))[0] == 200
    status, narrow = await team("keys/create", role="write", namespaces=["orders"], expiresAt="2099-01-01T00:00:00Z")
    assert (status, narrow["expiresAt"]) == (200, "2099-01-01T00:00:00Z")
    writer = Caller(server, narrow["key"])
    timer = {"namespace": "orders", "id": "t", "delay": "1h", "callbackUrl": PUBLIC}
    assert (await writer("timers/create", **timer))[0] == 200
    for caller, body in (
        (team, {"role": "read"}),
        (team, {"role": "read", "namespaces": ["default"]}),
        (team, {"role": "read", "tenants": [TENANT]}),
        (writer, {"role": "read", "namespaces": ["orders"]}),
    ):
        status, problem = await caller("keys/create", **body)
        assert (status, problem["error"]) == (403, "FORBIDDEN"), body
    status, problem = await admin("keys/create", role="god", namespaces=["no spaces"])
    assert (status, problem["errors"][0]["path"]) == (400, "role")
    assert "read, write, admin" in problem["errors"][0]["reason"]

    async def listed(caller: Caller) -> set[str]:
        status, answer = await caller("keys/list")
        assert status == 200
        assert made["key"] not in str(answer) and "hash" not in str(answer)
        return {key["keyId"] for key in answer["keys"]}

    everybody = await listed(admin)
    assert len(everybody) == 3
    assert await listed(team) == {made["keyId"], narrow["keyId"]}
    assert (await writer("keys/list"))[0] == 403
    (own,) = everybody - {made["keyId"], narrow["keyId"]}
    status, problem = await team("keys/revoke", keyId=own)
    assert (status, problem["error"]) == (404, "KEY_NOT_FOUND")
    assert (await writer("keys/revoke", keyId=made["keyId"]))[0] == 403
    assert await team("keys/revoke", keyId=narrow["keyId"]) == (204, None)
    assert (await writer("timers/get", namespace="orders", timerId="t"))[0] == 401
    assert (await team("keys/revoke", keyId=narrow["keyId"]))[0] == 404
    _, trail = await admin("audit/list", action=["key_created", "key_deleted"])
    assert [(entry["action"], entry["keyId"], entry["subject"], entry["source"]) for entry in trail["entries"]] == [
        ("key_deleted", made["keyId"], narrow["keyId"], "api"),
        ("key_created", made["keyId"], narrow["keyId"], "api"),
        ("key_created", own, made["keyId"], "api"),
        ("key_created", None, own, "cli"),
    ]


async def test_lists_of_all_namespaces_have_what_the_key_has_access_to(reachable: tuple[ServerProcess, str]) -> None:
    server, secret = reachable
    admin = Caller(server, secret)

    async def limited(**scope: Any) -> Caller:
        status, made = await admin("keys/create", role="read", **scope)
        assert status == 200
        return Caller(server, made["key"])

    expected = set()
    for name in ("orders", "invoices", "stock"):
        assert (await admin("namespaces/create", name=name, numShards=1))[0] == 200
        for number in range(3):
            named = {"namespace": name, "id": f"{name}-{number}", "callbackUrl": PUBLIC}
            assert (await admin("timers/create", **named, delay=f"{number + 1}h"))[0] == 200
            assert (await admin("schedules/create", **named, every="1h"))[0] == 200
            expected.add((name, named["id"]))

    async def listed(caller: Caller, kind: str, **filters: Any) -> list[tuple[str, str]]:
        rows: list[dict[str, Any]] = []
        cursor: dict[str, str] = {}
        while True:
            status, page = await caller(f"{kind}/list", namespace="*", limit=2, **filters, **cursor)
            assert status == 200, page
            rows += page[kind]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        due = [row["executeAt"] for row in rows if kind == "timers"]
        assert due == sorted(due)
        names = [(row["namespace"], row["id"]) for row in rows]
        assert len(set(names)) == len(names)
        return names

    # The key's namespaces need not exist.
    two, tenant = await limited(namespaces=["stock", "none", "orders"]), await limited(tenants=[TENANT])
    none = await limited(namespaces=["none"])
    of_two = {each for each in expected if each[0] != "invoices"}
    for kind in ("timers", "schedules"):
        assert set(await listed(admin, kind)) == expected
        assert set(await listed(two, kind)) == of_two
        assert await listed(tenant, kind) == await listed(none, kind) == []
    assert set(await listed(two, "timers", status="pending", idPrefix="stock")) == {
        ("stock", f"stock-{n}") for n in range(3)
    }
    assert await listed(two, "timers", status="completed") == []
    assert (await two("schedules/pause", namespace="orders", scheduleId="orders-1"))[0] == 403
    assert (await admin("schedules/pause", namespace="orders", scheduleId="orders-1"))[0] == 200
    assert await listed(two, "schedules", status="paused") == [("orders", "orders-1")]
    assert (await two("timers/list", namespace="invoices"))[0] == 403
    for path, body in (("timers/get", {"timerId": "x"}), ("timers/create", {"callbackUrl": PUBLIC, "delay": "1h"})):
        status, problem = await admin(path, namespace="*", **body)
        assert (status, problem["errors"][0]["path"]) == (400, "namespace")


async def test_rotating_a_secret_requires_an_admin_key_of_its_namespace_or_tenant(
    reachable: tuple[ServerProcess, str],
) -> None:
    server, secret = reachable
    admin = Caller(server, secret)
    tenant, other = "01890a5d-ac96-774b-bcce-b302099a8057", "01890a5d-ac96-774b-bcce-b302099a8058"
    assert (await admin("namespaces/create", name="orders"))[0] == 200

    async def made(**scope: Any) -> Caller:
        status, key = await admin("keys/create", **scope)
        assert status == 200, key
        return Caller(server, key["key"])

    namespace_admin = await made(role="admin", namespaces=["orders"])
    tenant_admin = await made(role="admin", tenants=[tenant])
    writer = await made(role="write")
    orders, default = {"name": "orders"}, {"name": "default"}
    mine, theirs = {"tenantId": tenant.upper()}, {"tenantId": other}
    for caller, kind, body, status in (
        (admin, "namespaces", default, 200),
        (admin, "tenants", theirs, 200),
        (namespace_admin, "namespaces", orders, 200),
        (namespace_admin, "namespaces", default, 403),
        (namespace_admin, "tenants", mine, 403),
        (tenant_admin, "tenants", mine, 200),
        (tenant_admin, "tenants", mine, 200),
        (tenant_admin, "tenants", mine, 409),
        (tenant_admin, "tenants", theirs, 403),
        (tenant_admin, "namespaces", orders, 403),
        (writer, "namespaces", orders, 403),
        (writer, "tenants", mine, 403),
        (Caller(server, None), "namespaces", orders, 401),
        (Caller(server, None), "tenants", mine, 401),
        (admin, "namespaces", {"name": "nowhere"}, 404),
        (admin, "namespaces", {**orders, "secret": "hunter2"}, 400),
        (admin, "namespaces", {**orders, "grace": "31d"}, 400),
        (admin, "tenants", {"tenantId": "acme", "grace": "soon"}, 400),
    ):
        got, answer = await caller(f"{kind}/rotateSecret", **body)
        assert got == status, (kind, body, answer)
        assert "hunter2" not in str(answer)
    assert [error["path"] for error in answer["errors"]] == ["tenantId", "grace"]


@pytest.mark.parametrize("flags", [(), ("--host", "0.0.0.0", "--insecure")])
async def test_managing_keys_always_requires_a_key(tmp_path: Path, flags: tuple[str, ...]) -> None:
    server = ServerProcess(tmp_path / "data", *flags, env=REFRESH)
    await server.start()
    anybody = Caller(server, None)
    for operation, body in {"create": {"role": "admin"}, "list": {}, "revoke": {"keyId": "x"}}.items():
        status, problem = await anybody(f"keys/{operation}", **body)
        assert (status, problem["error"]) == (401, "UNAUTHENTICATED"), operation
        assert "tocsin keys create --role admin" in problem["detail"]
    admin = Caller(server, await make_key(server, "--role", "admin"))
    await admin.until(200, "keys/list")
    assert (await admin("keys/create", role="read"))[0] == 200
    await server.stop()


async def test_every_node_applies_keys_created_and_revoked_at_another(tmp_path: Path, postgresql_url: str) -> None:
    servers = [node(tmp_path, name, postgresql_url) for name in ("one", "two")]
    for server in servers:
        server.env |= REFRESH
    code, out, err = await command("keys", "create", "--store", postgresql_url, "--role", "admin")
    assert code == 0, err
    async with running(*servers):
        here, there = (Caller(server, out.strip()) for server in servers)
        status, made = await here("keys/create", role="read")
        assert status == 200
        await Caller(servers[1], made["key"]).until(200, "namespaces/list")
        assert await there("keys/revoke", keyId=made["keyId"]) == (204, None)
        assert (await Caller(servers[1], made["key"])("namespaces/list"))[0] == 401
        await Caller(servers[0], made["key"]).until(401, "namespaces/list")


async def test_commands_with_a_server_manage_keys_and_read_metrics_through_it(reachable, tmp_path: Path) -> None:
    server, admin = reachable
    env = {"TOCSIN_URL": server.url, "TOCSIN_KEY": admin}
    code, out, err = await command("keys", "create", "--role", "read", "-n", "orders", "--expires-in", "1d", env=env)
    assert (code, server.url in err) == (0, True), err
    narrow = out.strip()
    key_id = narrow.split("_")[1]
    code, out, _ = await command("keys", "list", "--json", env=env)
    assert (code, [(key["role"], key["namespaces"]) for key in json.loads(out)][1:]) == (0, [("read", ["orders"])])
    assert json.loads(out)[1]["keyId"] == key_id
    # A store named by an option is meant, whatever the environment has.
    assert (await command("keys", "list", "--data-dir", str(server.data_dir), env={"TOCSIN_URL": server.url}))[0] == 0
    flags = ("--server", server.url, "--data-dir", str(server.data_dir))
    assert (await command("keys", "list", *flags))[0] == 2

    code, out, err = await command("metrics", "tocsin_build_info", "tocsin_attempts_not_sent", env=env)
    assert (code, err) == (0, "")
    assert out.startswith("tocsin_build_info{") and "# tocsin_attempts_not_sent has no series yet" in out
    code, out, _ = await command("metrics", "tocsin_dispatching", "--json", env=env)
    assert (code, json.loads(out)) == (0, [{"name": "tocsin_dispatching", "labels": {}, "value": 1.0}])
    code, out, err = await command("metrics", "tocsin_dispatching", "tocsin_dispatched", env=env)
    assert (code, out) == (1, "tocsin_dispatching 1.0\n")
    assert "tocsin_dispatched" in err
    for key in (None, narrow):
        env = {"TOCSIN_URL": server.url, **({} if key is None else {"TOCSIN_KEY": key})}
        code, _, err = await command("metrics", env=env)
        assert (code, "role read is enough" in err) == (1, True), err
        code, _, err = await command("keys", "list", env=env)
        assert (code, "key of role admin" in err) == (1, True), err
    code, _, err = await command("keys", "revoke", key_id, env={"TOCSIN_URL": server.url, "TOCSIN_KEY": admin})
    assert code == 0, err
    assert (await Caller(server, narrow)("timers/list", namespace="orders"))[0] == 401
