"""Secrets are encrypted wherever they are stored, and in clear where they are used."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.integration.server.conftest import serving
from tests.support.calls import Api
from tests.support.command import command
from tests.support.http import Client, Receiver
from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.model.ids import uuid7_text
from tocsin.model.sealed_text import SEALED
from tocsin.model.secrets import new_secret, sign
from tocsin.sealing import key_id, parse_keys


class Recorder(Receiver):
    """A receiver that keeps what arrives. It answers with the credential that it got, as careless ones do."""

    def __init__(self, status: int = 200) -> None:
        super().__init__(lambda body, headers: (status, b""))
        self.arrived: list[tuple[str, dict[str, str], bytes]] = []
        self.status = status
        self._changed = asyncio.Condition()

    async def _respond(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, bytes]:
        async with self._changed:
            self.arrived.append((path, headers, raw))
            self._changed.notify_all()
        return self.status, headers.get("authorization", "").encode()

    async def count(self, number: int) -> list[tuple[str, dict[str, str], bytes]]:
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(lambda: len(self.arrived) >= number)
        return self.arrived


class Plants:
    """Secrets that are found again."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def one(self) -> str:
        self.all.append(f"plant-{len(self.all)}-{secrets.token_hex(8)}")
        return self.all[-1]

    def signing(self) -> str:
        self.all.append(new_secret())
        return self.all[-1]

    def headers(self) -> dict[str, str]:
        """In all forms: by name, by form, and beside what is no secret."""
        return {
            "Authorization": f"Bearer {self.one()}",
            "X-Api-Key": self.one(),
            "Cookie": f"session={self.one()}",
            "X-Other": f"Basic {self.one()}",
            "X-Plain": "plain",
        }

    def url(self, base: str) -> str:
        """With secrets in its query, one of them encoded, and in its fragment."""
        return f"{base}?order=7&token={self.one()}&api_key={quote(self.one() + ' &')}#{self.one()}"

    def hook(self, base: str) -> dict[str, Any]:
        return {"url": self.url(base), "headers": self.headers()}

    def found_in(self, contents: Iterable[bytes]) -> list[str]:
        data = b"\0".join(contents)
        return [plant for plant in self.all if plant.encode() in data]


def stored(*folders: Path) -> list[bytes]:
    """The content of all files but the log of the test's own server, and the key."""
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [path.read_bytes() for path in files if path.name not in ("server.log", "secrets.key")]


async def plant(api: Api, client: Client, plants: Plants, ok: str, bad: str) -> None:
    """Everything that has secrets: to receivers that accept and that refuse."""

    async def done(path: str, **body: Any) -> Any:
        status, answer = await api(path, **body)
        assert status == 200, answer
        return answer

    hooks = {"onFailure": plants.hook(ok), "onSuccess": plants.hook(ok)}
    await done("namespaces/update", name="default", secret=plants.signing(), onFailure=plants.hook(ok))
    await done("namespaces/rotateSecret", name="default", secret=plants.signing(), grace="1h")
    await done("namespaces/create", name="other", onSuccess=plants.hook(ok), secret=plants.signing())
    once = {"maxAttempts": 1}
    for name, url in (("good", ok), ("bad", bad)):
        await api.create(name, plants.url(url), headers=plants.headers(), retryPolicy=once, **hooks)
    timers = [
        {"namespace": "other", "id": f"t{n}", "delay": "1h", "callbackUrl": plants.url(ok), "headers": plants.headers()}
        for n in range(16)
    ]
    await done("timers/batch/create", timers=timers)
    await done("timers/update", namespace="other", timerId="t0", headers=plants.headers(), callbackUrl=plants.url(ok))
    await done(
        "schedules/create", namespace="default", id="s", every="1h", callbackUrl=plants.url(ok), headers=plants.headers(),
        onMissed=plants.hook(ok),
    )  # fmt: skip
    await done("schedules/update", namespace="default", scheduleId="s", headers=plants.headers())
    await done("schedules/trigger", namespace="default", scheduleId="s")
    await done("monitors/put", namespace="default", id="m", every="1h", onLate=plants.hook(ok))
    tenant = uuid7_text(1_700_000_000_000, secrets.randbits(74))
    await done("tenants/rotateSecret", tenantId=tenant, secret=plants.signing())
    for url in (ok, bad):
        spec = {"method": "POST", "url": plants.url(url), "headers": plants.headers()}
        path = f"/api/v1/tenants/{tenant}/service-calls"
        for more in ({}, {"delay": "1h"}, {"delay": "2h"}):
            status, answer = await client.post(path, {"name": "call", "requestSpec": spec, **hooks, **more})
            assert status in (200, 201, 202), answer
    await done("credentials/put", namespace="default", name="api", type="bearer", token=plants.one())
    await api.create("named", ok, credential="api")
    spec = {"method": "POST", "url": plants.url(ok), "credential": "api"}
    # One that waits in the table of orders, and one that is sent.
    flow = {"namespace": "default", "match": "closed"}
    await done("flows/put", **flow, perKey={"parallelism": 1})
    await done("flows/pause", **flow)
    for more in ({"flowKey": "closed"}, {}):
        await client.post(path, {"name": "call", "requestSpec": {**spec, "headers": {"Cookie": plants.one()}}, **more})


@pytest.mark.parametrize("bus", ["embedded", "nats"])
async def test_no_secret_is_stored_in_clear_anywhere(bus: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """With the embedded bus, on a clock that passes hours in a moment."""
    plants = Plants()
    nats: NatsServer | None = request.getfixturevalue("nats") if bus == "nats" else None
    chosen = ("dev", ()) if nats is None else ("serve", ("--broker", nats.url))
    server = ServerProcess(tmp_path / "data", *chosen[1], command=chosen[0])
    async with Recorder() as ok, Recorder(status=500) as bad:
        await server.start()
        api, client = Api(server), Client(server.address)
        await plant(api, client, plants, ok.url, bad.url)
        # A timer, an occurrence, a call, and the notifications of two timers and two calls; a timer and a call with a
        # credential.
        arrived = await ok.count(9)
        if nats is None:
            assert (await api("dev/clock/advance", by="3h"))[0] == 200
            # Three more occurrences, the timers of an hour with their notifications, and two calls with theirs.
            arrived = await ok.count(9 + 3 + 32 + 4)
        kept = tmp_path / "kept"
        assert (await command("backup", str(kept), "--data-dir", str(server.data_dir)))[0] == 0
        # Files with their write-ahead logs, while the server runs, and what it leaves.
        folders = [tmp_path] if nats is None else [tmp_path, nats.folder]
        live = stored(*folders)
        await server.kill()
        assert plants.found_in([*live, *stored(*folders)]) == []
        key = server.data_dir / "secrets.key"
        assert key.stat().st_mode & 0o077 == 0
        assert "secrets.key" not in {path.name for path in kept.iterdir()}
        assert len(plants.all) > 200
        received = plants.found_in(repr(each).encode() for each in arrived)
        assert len(received) >= 30
        # Those that are sent by namespace and tenant are signed with the secrets that were sent.
        for path, headers, raw in arrived:
            signing = [plant for plant in plants.all if plant.startswith("whsec_")]
            first = headers["webhook-signature"].split(" ")[0]
            made = [sign(each, headers["webhook-id"], int(headers["webhook-timestamp"]), raw) for each in signing]
            assert first in made, path
        assert b"tsl1." not in b"".join(repr(each).encode() for each in [*ok.arrived, *bad.arrived])
        log = server.log_path.read_bytes()
        assert plants.found_in([log]) == []


async def refused(server: ServerProcess) -> str:
    """What a server reports that does not start."""
    with pytest.raises(AssertionError) as ended:
        await server.start()
    return str(ended.value)


async def test_a_key_that_is_missing_or_another_one_is_refused_at_the_start(tmp_path: Path) -> None:
    key = tmp_path / "data" / "secrets.key"
    async with serving(tmp_path, "--no-agent") as server, Recorder() as ok:
        api = Api(server)
        headers = {"Authorization": "Bearer something"}
        await api.create("later", f"{ok.url}?token=a&order=1", delay="1h", headers=headers)
        await server.kill()
        kept = key.read_text()
        key.unlink()
        assert f"SECRETS_KEY_MISSING: secrets in the store are encrypted with key {key_id(parse_keys(kept)[0])}" in (
            await refused(server)
        )
        # None is made in its place.
        assert not key.exists()
        key.write_text("ab" * 32)
        assert "SECRETS_KEY_MISSING" in await refused(server)
        key.write_text("too short")
        assert "too short" not in (await refused(server)).split("secrets.key", 1)[1]
        key.unlink()
        # The same key from elsewhere.
        named = tmp_path / "keys"
        named.write_text(kept)
        moved = ServerProcess(server.data_dir, "--no-agent", env={"TOCSIN_SECRETS_KEY_COMMAND": f"cat {named}"})
        await moved.start()
        status, _ = await Api(moved)("timers/update", namespace="default", timerId="later", delay="0s")
        assert status == 200
        ((path, received, _),) = await ok.count(1)
        assert (path, received["authorization"]) == ("/hook?token=a&order=1", headers["Authorization"])
        await moved.stop()
        server.env = {"TOCSIN_SECRETS_KEY_FILE": str(named)}
        await server.start()


async def test_a_secret_moved_to_another_namespace_is_not_sent(tmp_path: Path) -> None:
    async with serving(tmp_path, "--no-agent") as server, Recorder() as ok:
        api = Api(server)
        assert (await api("namespaces/create", name="other"))[0] == 200
        await api.create("a", ok.url, delay="1h", headers={"Authorization": "Bearer first"})
        await api.create("b", ok.url, namespace="other", delay="1h", headers={"Authorization": "Bearer second"})
        await server.kill()
        with sqlite3.connect(server.data_dir / "tocsin.db") as database:
            records = dict(database.execute("SELECT timer_id, timer_record FROM timers"))
            token = SEALED.search(records["a"])
            assert token is not None
            changed = SEALED.sub(token[0], records["b"])
            database.execute("UPDATE timers SET timer_record = ? WHERE timer_id = 'b'", (changed,))
        await server.start()
        assert (await api("timers/update", namespace="other", timerId="b", delay="0s"))[0] == 200
        named = {"namespace": "other", "timerId": "b"}
        async with asyncio.timeout(PATIENCE_S):
            while (await api("timers/get", **named))[1].get("suspended") != "secret":
                pass
        _, found = await api("timers/explain", **named)
        assert (found["state"], found["waitsFor"]) == ("suspended", "secret")
        # It costs no attempt, and what is sent again replaces it.
        assert (await api("timers/get", **named))[1]["attempts"] == 0
        headers = {"Authorization": "Bearer third"}
        assert (await api("timers/update", **named, headers=headers, delay="0s"))[0] == 200
        ((_, received, _),) = await ok.count(1)
        assert received["authorization"] == "Bearer third"


async def test_creates_are_repeated_compared_and_batched_as_without_encryption(tmp_path: Path) -> None:
    async with serving(tmp_path, "--no-agent") as server, Recorder() as ok:
        api = Api(server)
        url, headers = f"{ok.url}?token=abc", {"Authorization": "Bearer something"}
        keyed = {"delay": "1h", "headers": headers, "idempotencyKey": "k1"}
        first = await api.create("keyed", url, **keyed)
        assert await api.create("keyed", url, **keyed) == first
        other = keyed | {"headers": {"Authorization": "Bearer other"}}
        status, answer = await api("timers/create", namespace="default", id="keyed", callbackUrl=url, **other)
        assert (status, answer["error"]) == (409, "IDEMPOTENCY_CONFLICT")
        schedule = {"namespace": "default", "id": "s", "every": "1h", "callbackUrl": url, "headers": headers}
        versions = [(await api("schedules/create", **schedule))[1]["version"] for _ in range(2)]
        assert versions == [1, 1]

        batch = {"max": 3, "linger": "5s"}
        assert (await api("namespaces/create", name="batched", callbackBatch=batch))[0] == 200
        timers = [
            {"namespace": "batched", "id": f"t{n}", "delay": "0s", "callbackUrl": url, "headers": headers}
            for n in range(3)
        ]
        assert (await api("timers/batch/create", timers=timers))[0] == 200
        ((_, received, raw),) = await ok.count(1)
        assert received["authorization"] == headers["Authorization"]
        assert [raw.count(b'"t%d"' % n) for n in range(3)] == [1, 1, 1]


async def test_a_receiver_that_repeats_a_secret_is_redacted(tmp_path: Path) -> None:
    async with serving(tmp_path, "--no-agent") as server, Recorder(status=500) as bad:
        api = Api(server)
        secret = secrets.token_hex(8)
        headers = {"Authorization": f"Bearer {secret}", "X-Plain": "plain"}
        await api.create("t", bad.url, headers=headers, retryPolicy={"maxAttempts": 1})
        await api.settled("t", "failed")
        _, page = await api("timers/history", namespace="default", timerId="t")
        # What it answers is kept, without the secret.
        assert "[redacted]" in repr(page["runs"])
        await server.kill()
        assert secret.encode() not in b"".join(stored(server.data_dir))
