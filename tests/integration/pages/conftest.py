"""Fixtures for tests of the pages on a real node with a store in memory, through an HTTP client."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.compiled_templates import keep_compiled
from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S
from tocsin.administration import put_api_key
from tocsin.model.access import ApiKey, Role, hash_key
from tocsin.server.node import Server, open_store
from tocsin.settings import Settings, load_settings
from tocsin.web.pages import counts
from tocsin.web.pages.assets import Assets

keep_compiled()

_VERSION = re.compile(r'name="version" value="([^"]+)"')
_TOKEN = re.compile(r'name="csrf" (?:content|value)="([0-9a-f]+)"')


@dataclass
class Browser:
    """An HTTP client that sends requests and forms as a browser does."""

    client: httpx.AsyncClient
    base: str

    async def get(self, path: str, **options: Any) -> httpx.Response:
        return await self.client.get(path, headers={"accept": "text/html", **options.pop("headers", {})}, **options)

    async def token(self) -> str:
        found = _TOKEN.search((await self.get("/login")).text) or _TOKEN.search((await self.get("/timers")).text)
        assert found is not None
        return found[1]

    async def post(self, path: str, fields: dict[str, Any], **headers: str) -> httpx.Response:
        """Submits a form as a browser does."""
        token = fields.pop("csrf", None) or await self.token()
        known = {"accept": "text/html", "origin": self.base, "sec-fetch-site": "same-origin", **headers}
        return await self.client.post(path, data={"csrf": token, **fields}, headers=known)

    async def version(self, path: str) -> dict[str, str]:
        """The field of the form at a path that names what the form was filled from."""
        found = _VERSION.search((await self.get(path)).text)
        assert found is not None, path
        return {"version": found[1]}

    async def fresh(self, path: str, *known: str, whole: str = "no") -> str:
        """What an open list with these rows shows of new ones."""
        answer = await self.post(f"/ui/fresh{path}", {"known": json.dumps(known), "whole": whole})
        assert answer.status_code == 200, answer.text
        return answer.text

    async def sign_in(self, secret: str) -> httpx.Response:
        return await self.post("/login", {"key": secret, "to": "/timers"})

    async def create(self, timer_id: str, **body: Any) -> None:
        sent = {"namespace": "default", "id": timer_id, "delay": "1h", "callbackUrl": "http://127.0.0.1:9/x", **body}
        answer = await self.client.post("/api/v1/timers/create", json=sent)
        assert answer.status_code == 200, answer.text


@dataclass
class Node:
    """A running node and the HTTP clients of its browsers."""

    server: Server
    clients: list[httpx.AsyncClient]

    def browser(self) -> Browser:
        # There is no TLS, and to read the certificates of authorities takes as long as a hundred requests.
        client = httpx.AsyncClient(base_url=self.server.url, timeout=PATIENCE_S, verify=False)
        self.clients.append(client)
        return Browser(client, self.server.url)


Start = Callable[..., Awaitable[Node]]


async def add_keys(settings: Settings, keys: dict[str, tuple[Role, tuple[str, ...]]]) -> None:
    """Stores API keys before a server opens the store; each key's id equals its secret."""
    store = open_store(settings)
    await store.open(None)
    for secret, (role, namespaces) in keys.items():
        await put_api_key(store, ApiKey(secret.removeprefix("tk_"), hash_key(secret), role, namespaces))
    await store.close()


@pytest.fixture
async def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    """Starts nodes with these settings. Their pages wait for the counts of tabs and for sign-ins, however long these take."""
    if not Assets().built:
        lacking("pages", "the web pages are not built; run `make web`")
    monkeypatch.setattr(counts, "_WAIT_S", PATIENCE_S)
    nodes: list[Node] = []

    async def begin(keys: dict[str, tuple[Role, tuple[str, ...]]] | None = None, **chosen: Any) -> Node:
        settings = load_settings(
            {"store": "memory://", "port": 0, "data_dir": tmp_path, "keys_refresh": "50ms", "shards": 4, **chosen}
        )
        settings = replace(settings, ui=replace(settings.ui, session_store_timeout_s=PATIENCE_S))
        if keys is not None:
            await add_keys(settings, keys)
        server = Server(settings)
        nodes.append(Node(server, []))
        await server.start()
        return nodes[-1]

    yield begin
    for node in nodes:
        for client in node.clients:
            await client.aclose()
        await node.server.stop()


@pytest.fixture
async def node(start: Start) -> Node:
    """A node on a loopback address that requires no key."""
    return await start()
