"""Secrets are encrypted wherever they are stored, and in clear where they are used."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.integration.server.conftest import serving
from tests.support.calls import Api
from tests.support.command import command
from tests.support.http import Client, Receiver
from tests.support.patience import PATIENCE_S
from tocsin.model.ids import uuid7_text
from tocsin.model.secrets import new_secret


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
        for n in range(4)
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
        for more in ({}, {"delay": "1h"}):
            status, answer = await client.post(path, {"name": "call", "requestSpec": spec, **hooks, **more})
            assert status in (200, 201, 202), answer


async def test_no_secret_is_stored_in_clear_anywhere(tmp_path: Path) -> None:
    plants = Plants()
    async with serving(tmp_path) as server, Recorder() as ok, Recorder(status=500) as bad:
        api, client = Api(server), Client(server.address)
        await plant(api, client, plants, ok.url, bad.url)
        # A timer, an occurrence, a call, and the notifications of two timers and two calls.
        arrived = await ok.count(7)
        kept = tmp_path / "kept"
        assert (await command("backup", str(kept), "--data-dir", str(server.data_dir)))[0] == 0
        # Files with their write-ahead logs, while the server runs, and what it leaves.
        live = stored(server.data_dir)
        await server.kill()
        assert plants.found_in([*live, *stored(tmp_path)]) == []
        key = server.data_dir / "secrets.key"
        assert key.stat().st_mode & 0o077 == 0
        assert "secrets.key" not in {path.name for path in kept.iterdir()}
        assert len(plants.all) > 100
        received = plants.found_in(repr(each).encode() for each in arrived)
        assert len(received) >= 30
        assert b"tsl1." not in b"".join(repr(each).encode() for each in [*ok.arrived, *bad.arrived])
        log = server.log_path.read_bytes()
        assert plants.found_in([log]) == []
