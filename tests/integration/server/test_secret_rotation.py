"""A rotation of the keys under which secrets are encrypted, on a real server."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.conftest import serving
from tests.integration.server.test_agent_flow import finished, flags_of, new_id, submit, until
from tests.integration.server.test_sealed_secrets import Recorder
from tests.support.calls import Api
from tests.support.command import command
from tests.support.http import Client
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.model.sealed_text import key_ids_in
from tocsin.model.secrets import new_secret, sign
from tocsin.sealing import key_id

FIRST, SECOND = "11" * 32, "22" * 32
FORMER, PRESENT = (key_id(bytes.fromhex(key)) for key in (FIRST, SECOND))
HEADERS = {"Authorization": "Bearer something"}


async def listed(folder: Path, keys: Path) -> dict[str, Any]:
    flags = ("--data-dir", str(folder), "--json")
    code, out, err = await command("keys", "secrets", *flags, env={"TOCSIN_SECRETS_KEY_FILE": str(keys)})
    assert code == 0, err
    return {row["keyId"]: row for row in json.loads(out)}


async def test_what_waits_is_encrypted_again_and_the_former_key_can_be_forgotten(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(FIRST)
    async with (
        serving(tmp_path, "--no-agent", env={"TOCSIN_SECRETS_KEY_FILE": str(keys)}) as server,
        Recorder() as ok,
    ):
        api, folder = Api(server), server.data_dir
        url, hook = f"{ok.url}?token=abc", {"url": f"{ok.url}?sig=abc", "headers": HEADERS}
        secret = new_secret()
        await api("namespaces/update", name="default", secret=secret, onFailure=hook)
        for number in range(20):
            await api.create(f"t{number}", url, delay="1h", headers=HEADERS, onSuccess=hook)
        schedule = {"namespace": "default", "id": "s", "every": "1h", "callbackUrl": url, "headers": HEADERS}
        assert (await api("schedules/create", **schedule))[0] == 200
        assert (await api("monitors/put", namespace="default", id="m", every="1h", onLate=hook))[0] == 200
        await server.stop()
        keys.write_text(f"# rotated\n{SECOND}\n{FIRST}\n")
        await server.start()
        async with asyncio.timeout(PATIENCE_S):
            while (await listed(folder, keys)).get(FORMER, {}).get("waiting") != 0:
                pass
        states = {name: row["state"] for name, row in (await listed(folder, keys)).items()}
        assert states == {FORMER: "former", PRESENT: "encrypts"}
        # The present secret is the same, although it is encrypted with another key: nothing changes.
        _, answer = await api("namespaces/update", name="default", secret=secret)
        version = answer["version"]
        assert (await api("namespaces/update", name="default", secret=secret))[1]["version"] == version
        await server.stop()
        with sqlite3.connect(folder / "tocsin.db") as database:
            used = {
                name
                for table in ("timers", "records")
                for row in database.execute(f"SELECT * FROM {table}")
                for name in key_ids_in(" ".join(map(str, row)))
            }
        assert used == {PRESENT}
        keys.write_text(SECOND)
        code, _, err = await command("keys", "secrets", "--forget", FORMER, "--data-dir", str(folder))
        assert code == 0, err
        await server.start()
        assert (await api("timers/update", namespace="default", timerId="t7", delay="0s"))[0] == 200
        assert (await api("schedules/trigger", namespace="default", scheduleId="s"))[0] == 200
        arrived = await ok.count(3)
        assert {headers["authorization"] for _, headers, _ in arrived} == {HEADERS["Authorization"]}
        assert sorted(path for path, _, _ in arrived) == ["/hook?sig=abc", "/hook?token=abc", "/hook?token=abc"]


async def waits_for_flow(client: Client, tenant: str, call_id: str) -> None:
    """Returns when the call waits for its flow. The API has no notifications, so this polls."""
    async with asyncio.timeout(PATIENCE_S):
        while (await until(client, tenant, call_id, "Running")).get("waitsFor") != "flow":
            pass


@pytest.mark.parametrize("kind", ["embedded, SQLite, polling", "NATS, PostgreSQL, polling"])
async def test_what_the_agent_has_is_encrypted_again(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    keys, tenant, secret = tmp_path / "keys", new_id(), new_secret()
    keys.write_text(FIRST)
    env = {"TOCSIN_SECRETS_KEY_FILE": str(keys), "TOCSIN_BROKER_PREFIX": new_id().replace("-", "")}
    server = ServerProcess(tmp_path / "data", *(await flags_of(kind, request)), env=env)
    async with Recorder() as ok, Recorder(status=500) as bad:
        await server.start()
        api, client, folder = Api(server), Client(server.address), server.data_dir
        await api("tenants/rotateSecret", tenantId=tenant, secret=secret)
        flow = {"namespace": "default", "match": "vendor"}
        await api("flows/put", **flow, perKey={"parallelism": 1})
        assert (await api("flows/pause", **flow))[0] == 200

        async def made(url: str, **more: Any) -> str:
            hook = {"url": f"{ok.url}?sig=abc", "headers": HEADERS}
            # What looks like one in a body is none, and stays.
            body = f"tsl1.{FORMER}.{'a' * 60}"
            spec = {"method": "POST", "url": f"{url}?token=abc", "headers": HEADERS, "body": body}
            return await submit(client, tenant, url, requestSpec=spec, onSuccess=hook, **more)

        failed = await made(bad.url)
        assert (await finished(client, tenant, failed))["status"] == "Failed"
        suspended, later = await made(ok.url, flowKey="vendor"), await made(ok.url, delay="1h")
        await waits_for_flow(client, tenant, suspended)
        assert await server.stop() == 0

        keys.write_text(f"{SECOND}\n{FIRST}\n")
        await server.start()
        async with asyncio.timeout(PATIENCE_S):
            while (await listed(folder, keys)).get(FORMER, {}).get("callsWaiting") != 0:
                pass
        assert await server.stop() == 0
        if "SQLite" in kind:
            with sqlite3.connect(folder / "agent.db") as database:
                stored = ("tenant_secrets", "secrets"), ("service_calls", "hooks")
                for table, column in stored:
                    used = [key_ids_in(text) for (text,) in database.execute(f"SELECT {column} FROM {table}") if text]
                    assert used and set().union(*used) == {PRESENT}, table
        keys.write_text(SECOND)
        code, _, err = await command("keys", "secrets", "--forget", FORMER, "--data-dir", str(folder))
        assert code == 0, err

        await server.start()
        client = Client(server.address)
        assert (await api("flows/resume", **flow))[0] == 200
        assert (await finished(client, tenant, suspended))["status"] == "Succeeded"
        # The request and the notification of the call that waited for its flow.
        arrived = await ok.count(2)
        assert (await client.post(f"/api/v1/tenants/{tenant}/service-calls/{failed}/retry", None))[0] == 204
        repeated = (await bad.count(2))[1]
        for path, headers, raw in (*arrived, repeated):
            assert headers["authorization"] == HEADERS["Authorization"]
            assert path in ("/hook?token=abc", "/hook?sig=abc")
            signed = sign(secret, headers["webhook-id"], int(headers["webhook-timestamp"]), raw)
            assert headers["webhook-signature"] == signed
        found = await until(client, tenant, later, "Scheduled")
        assert found["requestSpec"]["headers"]["Authorization"] == "[redacted]"
        assert await server.stop() == 0
