"""The fault proxy between a client and the server: it loses answers after the commit, cuts connections, answers itself, and
keeps requests waiting. It also records what clients send."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import httpx

from .expectations import differences
from .http import Request, Response, json_response, serving

#: Headers of one connection.
_OF_CONNECTION = {"host", "connection", "keep-alive", "transfer-encoding", "content-length"}
#: Ports besides the first: scenarios use them as the nodes of a cluster, for clients that route by owners.
NODES = 2
#: The server's longest answer: advancing the clock waits for all that is due.
_TIMEOUT_S = 60.0


class Proxy:
    """Forwards to `server`, a URL. `ports` are its own: the first for clients, the others as nodes. `advance` moves the
    server's clock by a duration."""

    def __init__(self, server: str, advance: Callable[[str], Awaitable[None]]) -> None:
        self.ports: list[int] = []
        #: Requests since the last `begin`, in order of arrival.
        self.requests: list[dict[str, Any]] = []
        self._server = server
        self._advance = advance
        self._faults: list[dict[str, Any]] = []
        self._over = asyncio.Event()
        self._owners: list[int | None] = []
        self._client = httpx.AsyncClient(base_url=server, timeout=_TIMEOUT_S, follow_redirects=False)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serves its ports."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._client)
            for number in range(1 + NODES):
                self.ports.append(await stack.enter_async_context(serving(partial(self._serve, number - 1))))
            yield

    def url(self, node: int | None = None) -> str:
        """The URL of a node's port; by default that for clients."""
        return f"http://127.0.0.1:{self.ports[0 if node is None else node + 1]}"

    def begin(self) -> None:
        """Forgets requests and faults, and lets go of what is kept waiting."""
        self._over.set()
        self._over = asyncio.Event()
        self.requests = []
        self._faults = []
        self._owners = []

    def add(self, fault: dict[str, Any]) -> None:
        """Adds a fault: the next requests that it matches meet it, `times` of them (default 1) after `skip` (default 0).
        `sdks/README.md` lists the actions."""
        self._faults.append({"times": 1, "skip": 0, **fault})

    async def _serve(self, node: int, request: Request) -> Response | None:
        entry: dict[str, Any] = {
            "node": None if node < 0 else node, "method": request.method, "path": request.target,
            "headers": {name.lower(): value for name, value in request.headers}, "body": _json_of(request.body),
            "atMs": time.monotonic() * 1_000,
        }  # fmt: skip
        body = entry["body"]
        entry["idempotencyKey"] = entry["headers"].get("idempotency-key") or (
            body.get("idempotencyKey") if isinstance(body, dict) else None
        )
        if self.requests:
            entry["afterMs"] = entry["atMs"] - self.requests[-1]["atMs"]
        self.requests.append(entry)
        fault = self._fault(entry)
        if fault is None:
            return await self._forward(entry, request)
        action = fault["action"]
        if action == "reset":
            return None
        if action == "hold":
            await self._over.wait()
            return None
        if action == "respond":
            headers = [(str(name), str(value)) for name, value in fault.get("headers", {}).items()]
            text = json.dumps(fault["body"]) if "body" in fault else fault.get("text", "")
            if "body" in fault:
                headers.append(("content-type", "application/json"))
            return Response(fault["status"], headers, text.encode())
        if action == "owners":
            return await self._show_owners(fault)
        if action == "delay":
            await asyncio.sleep(fault["seconds"])
            return await self._forward(entry, request)
        if action == "advance":
            # Before the answer, whose instant is then past: no test needs to wait until the client has it.
            answer = await self._forward(entry, request)
            await self._advance(fault["by"])
            return answer
        if action == "loseAnswer":
            await self._forward(entry, request)
            if "thenAdvance" in fault:
                await self._advance(fault["thenAdvance"])
            return None
        raise ValueError(f"{action!r} is not an action of the fault proxy")

    def _fault(self, entry: dict[str, Any]) -> dict[str, Any] | None:
        for fault in self._faults:
            if not fault["times"] or differences(fault.get("match", {}), entry):
                continue
            if fault["skip"]:
                fault["skip"] -= 1
                continue
            fault["times"] -= 1
            return fault
        return None

    async def _forward(self, entry: dict[str, Any], request: Request) -> Response:
        kept = [(name, value) for name, value in request.headers if name.lower() not in _OF_CONNECTION]
        answer = await self._client.request(request.method, request.target, content=request.body, headers=kept)
        entry["status"] = answer.status_code
        answered = _json_of(answer.content)
        if isinstance(answered, dict) and "shardId" in answered and self._owners:
            entry["owner"] = self._owners[answered["shardId"]]
        headers = [(name, value) for name, value in answer.headers.items() if name.lower() not in _OF_CONNECTION]
        return Response(answer.status_code, headers, answer.content)

    async def _show_owners(self, fault: dict[str, Any]) -> Response:
        """The map of owners of a cluster whose nodes are this proxy's ports. `pattern` has the owner of shard 0, 1, … and
        begins again; `nodes` changes the description of each node."""
        answer = await self._client.get("/api/v1/cluster?view=owners")
        total, pattern = answer.json()["totalShards"], fault["pattern"]
        self._owners = [pattern[shard % len(pattern)] for shard in range(total)]
        nodes = [{"apiUrl": self.url(n), "alive": True, "leaving": False, "skewed": False} for n in range(NODES)]
        for node, change in zip(nodes, fault.get("nodes", []), strict=False):
            node |= change
        return json_response({"totalShards": total, "nodes": nodes, "owners": self._owners})


def _json_of(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
