"""A rotation of the keys under which secrets are encrypted, on a real server."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

from tests.integration.server.conftest import serving
from tests.integration.server.test_sealed_secrets import Recorder
from tests.support.calls import Api
from tests.support.command import command
from tests.support.patience import PATIENCE_S
from tocsin.model.sealed_text import key_ids_in
from tocsin.model.secrets import new_secret
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
