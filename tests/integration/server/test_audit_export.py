"""The export of the audit trail and of changes, as a file and as a collector get it from a real server."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from tests.support.calls import Api
from tests.support.cluster import until
from tests.support.command import command
from tests.support.mcp import over_http
from tests.support.otlp import Collector, attributes, collector
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.model.audit import AuditSource
from tocsin.model.ids import Uuid7Source
from tocsin.ports.audit import Actor
from tocsin.telemetry import audit_export
from tocsin.telemetry.audit_export import AuditExportOptions, Exports, open_exports

NOWHERE = "http://127.0.0.1:9/"
SECRET = "s3cr3t-that-nobody-sees"
ENV = {"TOCSIN_KEYS_REFRESH": "50ms", "TOCSIN_EGRESS_ALLOW": "127.0.0.1"}
ACTOR = Actor("k", "192.0.2.1", AuditSource.API, "shop")
_new_id = Uuid7Source(lambda: time.time_ns() // 1_000)


class Lines:
    """The lines of an export's file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[dict[str, Any]]:
        """The complete lines: the last one may be about to be written."""
        return [json.loads(line) for line in self.path.read_text().split("\n")[:-1]]

    async def wait(self, found: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        async def there() -> bool:
            return self.path.exists() and found(self.read())

        await until(there)
        return self.read()


async def make_key(server: ServerProcess, *flags: str) -> str:
    code, out, err = await command("keys", "create", "--data-dir", str(server.data_dir), *flags)
    assert code == 0, err
    return out.strip()


def timer(timer_id: str, **fields: Any) -> dict[str, Any]:
    return {"namespace": "default", "id": timer_id, "delay": "1h", "callbackUrl": NOWHERE, **fields}


async def test_a_line_names_who_changed_what_by_which_interface(tmp_path: Path) -> None:
    lines = Lines(tmp_path / "audit.jsonl")
    env = {**ENV, "TOCSIN_AUDIT_EXPORT_FILE": str(lines.path), "TOCSIN_MCP_ENABLED": "true"}
    server = ServerProcess(tmp_path / "data", env=env)
    key = await make_key(server, "--role", "admin", "--note", "the shop")
    tenant = _new_id()
    await server.start()
    async with httpx.AsyncClient(
        base_url=f"{server.url}/api/v1/", timeout=PATIENCE_S, headers={"authorization": f"Bearer {key}"}
    ) as client:

        async def call(path: str, /, **body: Any) -> Any:
            answer = await client.post(path, json=body)
            assert answer.status_code < 300, answer.text
            return answer.json() if answer.content else None

        hidden = {
            "payload": {"card": SECRET},
            "headers": {"authorization": SECRET},
            "callbackUrl": f"{NOWHERE}?token={SECRET}",
        }
        await call("timers/create", **timer("one", **hidden))
        await call("timers/create", **timer("plain"))
        # Nothing is written: the second of these, and what is refused.
        once = timer("once", idempotencyKey="k", **hidden)
        await call("timers/create", **once)
        await call("timers/create", **once)
        assert (await client.post("timers/create", json=timer("bad", callbackUrl=SECRET))).status_code == 400
        assert (await client.post("timers/delete", json={"namespace": "default", "timerId": "no"})).status_code == 404
        await call("timers/update", namespace="default", timerId="one", delay="2h")
        batch = [
            timer("b1"),
            timer("b2", **hidden),
            timer("b3", callbackUrl="nonsense"),
            timer("b2", onConflict="keep"),
        ]
        await call("timers/batch/create", timers=batch)
        await call("timers/batch/create", timers=[timer("b4"), timer("b5")])
        await call("timers/delete", namespace="default", timerId="one")
        await call("timers/delete", namespace="default", id="b1")
        schedule = {"namespace": "default", "id": "daily", "cron": "0 9 * * *", "callbackUrl": NOWHERE}
        await call("schedules/create", **schedule, dryRun=True)
        await call("schedules/create", **schedule)
        await call("schedules/create", **schedule)
        await call("schedules/pause", namespace="default", scheduleId="daily")
        await call("schedules/delete", namespace="default", scheduleId="daily")
        spec = {"method": "GET", "url": NOWHERE, "headers": {"authorization": SECRET}}
        due = {"dueAt": "2099-01-01T00:00:00Z"}
        made, on_pages = [
            await call(f"tenants/{tenant}/service-calls", name="c", requestSpec=spec, **due) for _ in range(2)
        ]
        path = f"tenants/{tenant}/service-calls/{made['serviceCallId']}"
        for method, what in (("PUT", f"{path}/tags/eu"), ("DELETE", f"{path}/tags/eu"), ("DELETE", path)):
            assert (await client.request(method, what)).status_code == 204
        await call("namespaces/rotateSecret", name="default", secret="whsec_" + "c2VjcmV0" * 4)
        of_mcp = await call("keys/create", role="write", name="agent")
        async with over_http(server.url, of_mcp["key"]) as tools:
            await tools("create_timer", callbackUrl=NOWHERE, delay="1h", id="of-mcp", payload={"card": SECRET})
        await _change_on_the_pages(server, key, "plain", tenant, on_pages["serviceCallId"])
        by_command = await make_key(server, "--role", "read")
        found = await lines.wait(lambda found: any(each.get("subject") == by_command.split("_")[1] for each in found))
    assert await server.stop() == 0

    changes = [each for each in found if each["kind"] == "change"]
    assert [(each["action"], each["source"], each["scope"], each["ids"]) for each in changes] == [
        ("timers/create", "api", "default", ["one"]),
        ("timers/create", "api", "default", ["plain"]),
        ("timers/create", "api", "default", ["once"]),
        ("timers/update", "api", "default", ["one"]),
        ("timers/batch/create", "api", "default", ["b1", "b2"]),
        ("timers/batch/create", "api", "default", ["b4", "b5"]),
        ("timers/delete", "api", "default", ["one"]),
        ("timers/delete", "api", "default", ["b1"]),
        ("schedules/create", "api", "default", ["daily"]),
        ("schedules/pause", "api", "default", ["daily"]),
        ("schedules/delete", "api", "default", ["daily"]),
        ("calls/submit", "api", tenant, [made["serviceCallId"]]),
        ("calls/submit", "api", tenant, [on_pages["serviceCallId"]]),
        ("calls/tag", "api", tenant, [made["serviceCallId"]]),
        ("calls/untag", "api", tenant, [made["serviceCallId"]]),
        ("calls/delete", "api", tenant, [made["serviceCallId"]]),
        ("timers/create", "mcp", "default", ["of-mcp"]),
        ("timers/delete", "pages", "default", ["plain"]),
        ("calls/tag", "pages", tenant, [on_pages["serviceCallId"]]),
        ("calls/untag", "pages", tenant, [on_pages["serviceCallId"]]),
        ("calls/tag", "pages", tenant, [on_pages["serviceCallId"]]),
        ("calls/delete", "pages", tenant, [on_pages["serviceCallId"]]),
    ]
    shop, agent = (key.split("_")[1], "the shop"), (of_mcp["keyId"], "agent")
    who = [(each["keyId"], each["name"]) for each in changes]
    assert who == [agent if each["source"] == "mcp" else shop for each in changes]
    assert {(each["address"], each["node"]) for each in changes} == {("127.0.0.1", changes[0]["node"])}
    entries = [(each["action"], each["source"]) for each in found if each["kind"] == "audit"]
    for expected in (
        ("secret_rotated", "api"), ("key_created", "api"), ("timer_created", "mcp"), ("sign_in", "pages"),
        ("key_created", "cli"),
    ):  # fmt: skip
        assert expected in entries
    # The first key, from before the start, was a command's, too; each once.
    assert entries.count(("key_created", "cli")) == 2
    assert len({each["entryId"] for each in found if each["kind"] == "audit"}) == len(entries)
    text = lines.path.read_text()
    for secret in (SECRET, "c2VjcmV0", key, of_mcp["key"], by_command):
        assert secret not in text
    assert lines.path.stat().st_mode & 0o077 == 0


async def _change_on_the_pages(server: ServerProcess, key: str, timer_id: str, tenant: str, call_id: str) -> None:
    """Cancels the timer; tags the call, removes the tag, stars and deletes it."""
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S, headers={"accept": "text/html"}) as browser:

        async def post(path: str, page: str, /, status: int = 303, **fields: str) -> None:
            token = re.search(r'name="csrf" (?:content|value)="(\w+)"', (await browser.get(page)).text)
            assert token is not None
            answer = await browser.post(path, data={"csrf": token[1], **fields})
            assert answer.status_code == status, answer.text

        await post("/login", "/login", key=key, to="/timers")
        await post("/timers/cancel", "/timers", namespace="default", id=timer_id)
        called = {"tenant": tenant, "id": call_id}
        await post("/calls/tag", "/timers", **called, tag="eu")
        await post("/calls/untag", "/timers", **called, tag="eu")
        await post("/calls/star", "/timers", star=f"{tenant}/{call_id}")
        await post("/calls/delete-many", "/timers", 200, id=f"{tenant}/{call_id}", confirmed="yes")


async def test_the_file_can_be_moved_away_while_the_server_runs(tmp_path: Path) -> None:
    lines = Lines(tmp_path / "audit.jsonl")
    server = ServerProcess(tmp_path / "data", "--no-agent", env={**ENV, "TOCSIN_AUDIT_EXPORT_FILE": str(lines.path)})
    await server.start()
    api = Api(server)
    await api.create("before", NOWHERE, delay="1h")
    await lines.wait(lambda found: len(found) == 1)
    moved = Lines(lines.path.rename(tmp_path / "audit.jsonl.1"))
    await api.create("after", NOWHERE, delay="1h")
    (after,) = await lines.wait(lambda found: len(found) == 1)
    (before,) = moved.read()
    assert (before["ids"], after["ids"]) == (["before"], ["after"])
    # As with logrotate's copytruncate.
    lines.path.write_text("")
    await api.create("truncated", NOWHERE, delay="1h")
    (truncated,) = await lines.wait(lambda found: len(found) == 1)
    assert truncated["ids"] == ["truncated"]
    # What is reported last is there when the server has ended.
    await api.create("last", NOWHERE, delay="1h")
    assert await server.stop() == 0
    assert [each["ids"] for each in lines.read()] == [["truncated"], ["last"]]


async def test_without_changes_the_trail_alone_goes_to_standard_output(tmp_path: Path) -> None:
    env = {**ENV, "TOCSIN_AUDIT_EXPORT_FILE": "-", "TOCSIN_AUDIT_EXPORT_CHANGES": "false"}
    server = ServerProcess(tmp_path / "data", "--no-agent", env=env)
    await server.start()
    api = Api(server)
    await api.create("unseen", NOWHERE, delay="1h")
    assert (await api("namespaces/create", name="shop"))[0] == 200
    assert server.process is not None and server.process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        while b'"kind"' not in (line := await server.process.stdout.readline()):
            assert line
    assert await server.stop() == 0
    found = json.loads(line)
    assert (found["kind"], found["action"], found["subject"]) == ("audit", "namespace_created", "shop")


async def test_a_file_that_can_not_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--no-agent", env={"TOCSIN_AUDIT_EXPORT_FILE": str(tmp_path)})
    with pytest.raises(AssertionError, match=r"audit_export\.file: .* can't be written: Is a directory"):
        await server.start()


async def test_a_collector_gets_logs_also_after_it_was_away(tmp_path: Path) -> None:
    async with collector() as collected:
        collected.refusing = True
        env = {**ENV, "TOCSIN_AUDIT_EXPORT_ENDPOINT": collected.url}
        server = ServerProcess(tmp_path / "data", "--no-agent", env=env)
        await server.start()
        api = Api(server)
        await api.create("one", NOWHERE, delay="1h", payload={"card": SECRET})
        await collected.refusals(1)
        await api.create("two", NOWHERE, delay="1h")
        assert (await api("namespaces/create", name="shop"))[0] == 200
        collected.refusing = False
        logs = await collected.count_logs(3)
        assert await server.stop() == 0
    shown = [attributes(each) for each in logs]
    assert [each["tocsin.audit.kind"] for each in shown] == ["change", "change", "audit"]
    assert [each.get("tocsin.audit.ids") for each in shown] == [["one"], ["two"], None]
    assert [each["tocsin.audit.action"] for each in shown] == ["timers/create", "timers/create", "namespace_created"]
    assert [each.event_name for each in logs] == ["tocsin.audit.change", "tocsin.audit.change", "tocsin.audit.audit"]
    assert (shown[2]["tocsin.audit.subject"], shown[2]["tocsin.audit.source"]) == ("shop", "api")
    assert all(each.time_unix_nano > 1e18 for each in logs)
    assert SECRET not in str(logs)
    assert "audit export interrupted" in server.log()
    assert "audit export resumed" in server.log()


@asynccontextmanager
async def exporting(to: Collector, dropped: Callable[[str], object]) -> AsyncIterator[Exports]:
    """An export to this collector alone, without a server."""
    exports = open_exports(AuditExportOptions(endpoint=to.url), "node", dropped)
    assert exports is not None
    try:
        yield exports
    finally:
        await asyncio.to_thread(exports.close)


def kinds_and_ids(logs: list[LogRecord]) -> list[tuple[str, ...]]:
    shown = [attributes(each) for each in logs]
    return [(each["tocsin.audit.kind"], *each.get("tocsin.audit.ids", ())) for each in shown]


async def test_a_collector_that_limits_bodies_gets_all_that_it_takes() -> None:
    dropped = list[str]()
    async with collector() as collected:
        collected.longest = 20_000
        async with exporting(collected, dropped.append) as exports:
            for number in range(600):
                exports.changed("timers/create", ACTOR, "default", ["x" * 30_000 if number == 300 else str(number)])
            logs = await collected.count_logs(600)
    expected = [("dropped",) if number == 300 else ("change", str(number)) for number in range(600)]
    assert kinds_and_ids(logs) == expected
    assert [attributes(each)["tocsin.audit.records"] for each in logs if each.event_name.endswith("dropped")] == [1]
    assert dropped == ["otlp"]


async def test_a_collector_that_refuses_everything_costs_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_export, "_PAUSE_S", 0.01)
    monkeypatch.setattr(audit_export, "_PAUSE_S_MAX", 0.01)
    dropped = list[str]()
    async with collector() as collected:
        collected.longest = 0
        async with exporting(collected, dropped.append) as exports:
            for number in range(5):
                exports.changed("timers/create", ACTOR, "default", [str(number)])
            await collected.refusals(20)
            collected.longest = 20_000
            logs = await collected.count_logs(5)
    assert kinds_and_ids(logs) == [("dropped",), *(("change", str(number)) for number in range(1, 5))]
    assert dropped == ["otlp"]


async def test_a_collector_that_is_away_keeps_no_server_from_ending(tmp_path: Path) -> None:
    server = ServerProcess(
        tmp_path / "data", "--no-agent", env={**ENV, "TOCSIN_AUDIT_EXPORT_ENDPOINT": "http://127.0.0.1:9"}
    )
    await server.start()
    api = Api(server)
    for number in range(3):
        await api.create(f"t{number}", NOWHERE, delay="1h")
    assert await server.stop() == 0
    assert "audit export ended with records left" in server.log()
