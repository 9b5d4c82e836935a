"""A data folder and a PostgreSQL schema that an earlier commit left behind, killed, open with this one: nothing is lost.

`before_hardening/` was made by `make.py` at commit 6e01cba.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw
import asyncpg

from tests.support.http import Client, Receiver
from tests.support.server import ServerProcess
from tests.upgrade.make import TENANT, until

MADE = Path(__file__).parent / "before_hardening"
#: Retention of service calls is a setting of the node, and the data grows old. Where there is a key, addresses of this
#: machine are called only on demand.
SETTINGS = {"TOCSIN_AGENT_RETENTION": "36500d", "TOCSIN_EGRESS_ALLOW_PRIVATE": "true"}


def restore_sqlite(folder: Path) -> list[str]:
    """A copy of the earlier data folder."""
    folder.mkdir()
    for name in ("tocsin", "agent"):
        connection = apsw.Connection(str(folder / f"{name}.db"))
        connection.pragma("journal_mode", "wal")
        connection.execute((MADE / f"{name}.sql").read_text(encoding="utf-8"))
        connection.close()
    return []


async def restore_postgresql(url: str) -> list[str]:
    """The earlier schemas."""
    connection = await asyncpg.connect(url)
    await connection.execute((MADE / "postgresql.sql").read_text(encoding="utf-8"))
    await connection.close()
    return ["--store", url, "--agent-database", url]


async def test_a_data_folder_of_an_earlier_version_is_upgraded(tmp_path: Path) -> None:
    flags = restore_sqlite(tmp_path / "data")
    await check_server(ServerProcess(tmp_path / "data", *flags, env=SETTINGS), "sqlite")


async def test_a_postgresql_schema_of_an_earlier_version_is_upgraded(tmp_path: Path, postgresql_url: str) -> None:
    flags = await restore_postgresql(postgresql_url)
    await check_server(ServerProcess(tmp_path / "data", *flags, env=SETTINGS), "postgresql")


async def check_server(server: ServerProcess, kind: str) -> None:
    """Checks that everything acknowledged is present and continues."""
    expected = json.loads((MADE / "expected.json").read_text(encoding="utf-8"))[kind]
    await server.start()
    client = Client(server.address, {"authorization": f"Bearer {expected['key']}"})
    try:
        await check_timers(client, expected)
        await check_calls(client, expected)
        await check_resumed(client)
    finally:
        client.close()
        assert await server.stop() == 0
    assert "Traceback" not in server.log(), server.log()[-4000:]


def shown(timer: dict[str, Any]) -> dict[str, Any]:
    """The fields of a timer that must not change; credentials in headers may be redacted now."""
    headers = {name: value for name, value in timer["headers"].items() if name != "authorization"}
    return {**timer, "headers": headers}


async def check_timers(client: Client, expected: dict[str, Any]) -> None:
    for timer in expected["timers"]:
        status, found = await client.post(
            "/api/v1/timers/get", {"namespace": timer["namespace"], "timerId": timer["id"]}
        )
        assert status == 200, found
        assert {name: shown(found)[name] for name in timer} == shown(timer)
        if timer["id"] == "policy-of-defaults":
            # Members left out of a stored policy keep what they meant when it was stored.
            assert found["retryPolicy"] == {
                "maxAttempts": 5, "initialInterval": "1s", "backoffMultiplier": 2.0, "maxInterval": "5m"
            }  # fmt: skip
    _, listed = await client.post("/api/v1/timers/list", {"namespace": "kept"})
    assert {timer["id"] for timer in listed["timers"]} == {
        timer["id"] for timer in expected["timers"] if timer["namespace"] == "kept"
    }
    _, found = await client.post("/api/v1/namespaces/list", {})
    by_name = {namespace["name"]: namespace for namespace in found["namespaces"]}
    for namespace in expected["namespaces"]:
        assert {name: by_name[namespace["name"]][name] for name in namespace} == namespace


async def check_calls(client: Client, expected: dict[str, Any]) -> None:
    base = f"/api/v1/tenants/{TENANT}/service-calls"

    async def get(path: str) -> Any:
        status, answer = await client.get(path)
        assert status == 200, answer
        return answer

    for call in expected["calls"]:
        found = await get(f"{base}/{call['serviceCallId']}")
        # What later releases report in addition.
        for execution in found["executions"]:
            assert execution.pop("number")
        assert {name: found[name] for name in call} == call
    listed = await get(f"{base}?tag=later")
    assert [call["name"] for call in listed["serviceCalls"]] == ["scheduled"]
    scheduled = expected["calls"][2]
    status = await client.delete(f"{base}/{scheduled['serviceCallId']}")
    assert status == 204


async def check_resumed(client: Client) -> None:
    """What waited in a paused namespace, one of them for its second attempt, fires when that resumes. The other, stored
    without a policy, goes by its namespace's."""
    arrived: dict[str, dict[str, Any]] = {}

    def answer(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        failed = body["timerId"] == "due" and "due" not in arrived
        arrived[body["timerId"]] = {**body, "signed": "webhook-signature" in headers}
        return (503, b"") if failed else (200, b'{"ok": true}')

    async with Receiver(answer) as receiver:
        for timer_id in ("due", "retrying"):
            body = {"namespace": "paused", "timerId": timer_id, "callbackUrl": receiver.url}
            status, found = await client.post("/api/v1/timers/update", body)
            assert status == 200, found
        status, found = await client.post(
            "/api/v1/namespaces/update", {"name": "paused", "paused": False, "retryPolicy": {"initialInterval": "50ms"}}
        )
        assert status == 200, found

        async def get(timer_id: str) -> dict[str, Any]:
            return dict((await client.post("/api/v1/timers/get", {"namespace": "paused", "timerId": timer_id}))[1])

        for timer_id in ("due", "retrying"):
            await until(lambda timer_id=timer_id: get(timer_id), lambda timer: timer["status"] == "completed")
    assert arrived["due"]["payload"] == {"n": 2}
    assert (arrived["due"]["attempt"], arrived["retrying"]["attempt"]) == (2, 2)
    assert all(body["signed"] for body in arrived.values())
