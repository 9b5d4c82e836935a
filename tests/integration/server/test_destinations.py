"""Destinations on a real server: what is listed of them, pauses, and breakers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.integration.server.conftest import serving
from tests.support.calls import Api, Inbox
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess


async def listed(api: Api, name: str) -> dict[str, Any]:
    """The destination, as it is listed."""
    status, found = await api("destinations/list")
    assert status == 200, found
    return next((each for each in found["destinations"] if each["destination"] == name), {})


async def until(api: Api, name: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The destination, once that holds of it."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds(found := await listed(api, name)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return found


async def open_seconds(server: ServerProcess) -> dict[str, float]:
    """For how long breakers have been open, by destination: what the metrics show."""
    async with httpx.AsyncClient() as client:
        text = (await client.get(f"{server.url}/metrics")).text
    shown = re.findall(r'^tocsin_breaker_open_seconds\{destination="(.+)"\} (.+)$', text, re.MULTILINE)
    return {name: float(value) for name, value in shown}


async def test_a_paused_destination_waits_and_its_pause_survives_a_restart(tmp_path: Path) -> None:
    inbox = Inbox()
    async with Receiver(inbox) as receiver, serving(tmp_path, "--no-agent") as server:
        api, name = Api(server), receiver.url.removesuffix("/hook")
        status, paused = await api("destinations/pause", destination=f"{receiver.url}/path?q=1")
        assert (status, paused["destination"], paused["paused"], paused["complete"]) == (200, name, True, True)
        assert await api("destinations/pause", destination=name) == (200, paused)
        await api.create("t", receiver.url)
        await server.stop()
        await server.start()
        await until(api, name, lambda found: bool(found["waiting"]))
        _, explained = await api("timers/explain", namespace="default", timerId="t")
        assert (explained["waitsFor"], "is paused" in explained["sentence"]) == ("destination", True)
        _, resumed = await api("destinations/resume", destination=name)
        assert resumed["paused"] is False
        await inbox.count(1)
        _, trail = await api("audit/list", action="destination_changed")
        assert [(each["subject"], each["details"]) for each in trail["entries"]] == [
            (name, {"paused": False}),
            (name, {"paused": True}),
            (name, {"paused": True}),
        ]


async def test_a_breaker_opens_is_listed_and_closes_by_a_probe(tmp_path: Path) -> None:
    inbox = Inbox()
    async with Receiver(inbox) as receiver, serving(tmp_path, "--no-agent") as server:
        api, name = Api(server), receiver.url.removesuffix("/hook")
        inbox.default = (503, b"")
        for i in range(25):
            await api.create(f"t{i}", receiver.url, retryPolicy={"initialInterval": "1s"})
        found = await until(api, name, lambda each: each.get("breaker") == "open" and each["waiting"] == 25)
        assert found["lastError"] == "HTTP 503"
        assert found["failures"] == found["attempts"] >= 20
        assert found["nextProbeAt"] > found["lastErrorAt"]
        assert [each["breaker"] for each in found["nodes"]] == ["open"]
        _, explained = await api("timers/explain", namespace="default", timerId="t0")
        assert "its breaker is open" in explained["sentence"]
        assert 0 < (await open_seconds(server))[name] < PATIENCE_S
        await api("destinations/pause", destination=name)
        assert await open_seconds(server) == {}
        await api("destinations/resume", destination=name)
        inbox.default = (200, b"")
        status, probed = await api("destinations/probe", destination=name)
        assert status == 200, probed
        found = await until(api, name, lambda each: each["breaker"] == "closed" and not each["waiting"])
        assert "lastSuccessAt" in found


async def test_a_destination_needs_a_scheme_and_host(tmp_path: Path) -> None:
    async with serving(tmp_path, "--no-agent") as server:
        status, refused = await Api(server)("destinations/pause", destination="shop.example")
        assert (status, refused["errors"][0]["path"]) == (400, "destination")
        _, paused = await Api(server)("destinations/pause", destination="https://Shop.example./path")
        assert paused["destination"] == "https://shop.example:443"
