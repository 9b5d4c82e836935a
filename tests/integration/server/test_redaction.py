"""No response contains a timer's credential, and sending a redacted value back keeps the stored one."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.cli.app import app
from tocsin.model.redaction import REDACTED
from tocsin.model.sealed import headers_opened, url_opened
from tocsin.ports.seals import opener
from tocsin.sealing import KeySeals, parse_keys

SECRET, PASSWORD = "sk-live-5f2c81d0", "q9-url-7c41aa"
HEADERS = {"Authorization": f"Bearer {SECRET}", "x-api-key": SECRET, "x-plain": "shown"}
URL = f"http://127.0.0.1:9/hook?order=17&token={PASSWORD}"
SHOWN_URL = f"http://127.0.0.1:9/hook?order=17&token={REDACTED}"
SHOWN_HEADERS = {"Authorization": REDACTED, "x-api-key": REDACTED, "x-plain": "shown"}
NAME = {"namespace": "default", "timerId": "paid"}


def timer(timer_id: str = "paid", **fields: Any) -> dict[str, Any]:
    return {"namespace": "default", "id": timer_id, "delay": "1h", "callbackUrl": URL, "headers": HEADERS, **fields}


class Client:
    """Checks every response for credentials."""

    def __init__(self, server: ServerProcess) -> None:
        self._client = httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S)
        self.url = server.url

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *ended: object) -> None:
        await self._client.aclose()

    async def post(self, path: str, body: object, status: int = 200) -> Any:
        answer = await self._client.post(f"/api/v1/timers/{path}", json=body)
        assert answer.status_code == status, answer.text
        return json.loads(harmless(answer.text))

    async def page(self, path: str) -> str:
        answer = await self._client.get(path, headers={"accept": "text/html"})
        assert answer.status_code == 200, answer.text
        return harmless(answer.text)


def harmless(text: str) -> str:
    assert SECRET not in text
    assert PASSWORD not in text
    return text


def stored(server: ServerProcess, timer_id: str) -> tuple[str, dict[str, str]]:
    """URL and headers as stored in the database, decrypted."""
    seals = KeySeals(parse_keys((server.data_dir / "secrets.key").read_text()))
    unseal = opener(seals, "default")
    with sqlite3.connect(server.data_dir / "tocsin.db") as database:
        for (record,) in database.execute("SELECT timer_record FROM timers WHERE timer_id = ?", (timer_id,)):
            found = json.loads(record)
            harmless(record)
            return url_opened(found["url"], unseal), headers_opened(found["headers"], unseal) or {}
    raise AssertionError(f"{timer_id} is not stored")


@pytest.mark.asyncio
async def test_no_response_contains_a_credential(server: ServerProcess, tmp_path: Path) -> None:
    async with Client(server) as client:
        created = await client.post("create", timer())
        assert (created["callbackUrl"], created["headers"]) == (SHOWN_URL, SHOWN_HEADERS)
        assert (await client.post("get", NAME))["headers"] == SHOWN_HEADERS
        assert (await client.post("list", {"namespace": "default"}))["timers"][0]["callbackUrl"] == SHOWN_URL
        batch = await client.post("batch/create", {"timers": [timer("second")]})
        assert batch["results"][0]["timer"]["headers"] == SHOWN_HEADERS
        assert (await client.post("update", {**NAME, "tags": ["a"]}))["callbackUrl"] == SHOWN_URL
        for path in ("/timers", "/timers/default/paid", "/timers/export.json", "/timers/export.csv", "/metrics"):
            await client.page(path)
        for path in ("/timers/edit?namespace=default&id=paid", "/timers/new?namespace=default&like=paid"):
            assert REDACTED in await client.page(path)
        for arguments in (["get", "paid"], ["get", "paid", "--json"], ["list"], ["list", "--json"], ["export"]):
            ran = CliRunner().invoke(app, ["timers", *arguments, "--server", server.url])
            assert ran.exit_code == 0, ran.output
            harmless(ran.output)
    assert stored(server, "paid") == (URL, HEADERS)
    harmless(server.log())


@pytest.mark.asyncio
async def test_redacted_values_can_be_sent_back(server: ServerProcess, tmp_path: Path) -> None:
    async with Client(server) as client:
        await client.post("create", timer())
        changed = {"authorization": REDACTED, "x-plain": "changed"}
        await client.post("update", {**NAME, "headers": changed, "callbackUrl": SHOWN_URL})
        kept = {"authorization": HEADERS["Authorization"], "x-plain": "changed"}
        assert stored(server, "paid") == (URL, kept)
        shown = {"callbackUrl": SHOWN_URL, "headers": changed}
        await client.post("create", timer(**shown))
        assert stored(server, "paid") == (URL, kept)
        answered = await client.post("batch/create", {"timers": [timer(**shown), timer("another", **shown)]})
        assert stored(server, "paid") == (URL, kept)
        refused = answered["results"][1]["error"]
        assert refused["error"] == "INVALID_INPUT"
        assert refused["errors"][0]["path"] == "callbackUrl"

        alone = await client.post("create", timer("another", callbackUrl="http://127.0.0.1:9/", headers=changed), 400)
        assert [bad["path"] for bad in alone["errors"]] == ["headers.authorization"]
        # Where it would go somewhere else, a secret of the URL is not kept.
        elsewhere = SHOWN_URL.replace("hook", "other")
        refused = await client.post("update", {**NAME, "callbackUrl": elsewhere}, 400)
        assert [bad["path"] for bad in refused["errors"]] == ["callbackUrl"]
        unknown = {**NAME, "headers": {"x-token": REDACTED}}
        assert (await client.post("update", unknown, 400))["errors"][0]["path"] == "headers.x-token"

    for form in ("jsonl", "csv"):
        file = str(tmp_path / f"timers.{form}")
        for arguments in (["export", "--output", file], ["import", file]):
            ran = CliRunner().invoke(app, ["timers", *arguments, "--server", server.url])
            assert ran.exit_code == 0, ran.output
        assert stored(server, "paid") == (URL, kept)


@pytest.mark.asyncio
async def test_a_redacted_value_is_refused_in_a_service_call(server_with_agent: ServerProcess) -> None:
    spec = {"method": "POST", "url": "http://127.0.0.1:9/", "headers": {"authorization": REDACTED}}
    path = "/api/v1/tenants/01890a5d-ac96-774b-bcce-b302099a8057/service-calls"
    async with httpx.AsyncClient(base_url=server_with_agent.url, timeout=PATIENCE_S) as client:
        answer = await client.post(path, json={"name": "pay", "requestSpec": spec})
    assert answer.status_code == 400
    assert [bad["path"] for bad in answer.json()["errors"]] == ["requestSpec.headers"]
