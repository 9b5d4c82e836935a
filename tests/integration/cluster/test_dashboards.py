"""Every query of the dashboards, answered by a Prometheus that scraped a cluster at work."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from scripts.dashboard_panels import BOARDS
from scripts.dashboards import expand

from tests.support.calls import Api
from tests.support.cluster import SOON, STEADY, new_database, running, shared_by
from tests.support.http import Client
from tests.support.inbox import Program, new_program
from tests.support.prometheus import prometheus
from tests.support.scripted import Reply, ScriptedReceiver
from tests.support.server import ServerProcess
from tocsin.model.ids import Uuid7Source

#: What Grafana would put in their place.
_NAMES = {
    "SPACE": 'job=~"tocsin",instance=~".+",namespace=~".*"',
    "NODE": 'job=~"tocsin",instance=~".+"',
    "RANGE": "1m",
}
#: Panels without data while nothing goes wrong, or with another store.
_EMPTY = {
    "DynamoDB: capacity units",
    "DynamoDB: repeated requests",
    "SQLite: files and free space",
    "Dead letters and suspended messages",
    "Missed instants of schedules",
}
_TENANT = Uuid7Source(lambda: 1_800_000_000_000_000)()


async def _traffic(
    servers: list[ServerProcess], program: Program, receiver: ScriptedReceiver, failing: ScriptedReceiver
) -> None:
    """Something for each panel, again and again; through both nodes, so that some writes are forwarded."""
    apis = [Api(server) for server in servers]
    client = Client(servers[0].address)
    answer = await apis[0](
        "schedules/create", namespace="default", id="each", every="1s", callbackUrl=receiver.url("ok")
    )
    assert answer[0] == 200, answer
    answer = await apis[0]("monitors/put", namespace="default", id="each", schedule="each")
    assert answer[0] == 200, answer
    answer = await apis[0]("monitors/put", namespace="default", id="pinged", every="1h")
    ping = servers[0].url + urlsplit(answer[1]["pingUrl"]).path
    hourly = {"rate": {"count": 1, "per": "1h"}}
    answer = await apis[0]("flows/put", namespace="default", match="rare", perKey=hourly)
    assert answer[0] == 200, answer
    call = {"name": "call", "requestSpec": {"method": "GET", "url": receiver.url("ok")}}
    past = {"executeAt": "2020-01-01T00:00:00Z", "expireAfter": "1s"}
    for number in itertools.count():
        for api in apis:
            for which in range(5):
                await api.create(f"{number}-{which}", receiver.url("ok"))
            await api.create(f"{number}-fails", receiver.url("gone"))
            await api.create(f"{number}-expires", receiver.url("ok"), **past)
            await api.create(f"{number}-late", receiver.url("ok"), delay="1h")
            await api("timers/delete", namespace="default", timerId=f"{number}-late")
            await api.create(f"{number}-loaded", receiver.url("ok"), delay="3s")
            await api.create(f"{number}-waits", receiver.url("ok"), flowKey="rare")
            # Its breaker opens after 20 attempts on a node.
            for which in range(10):
                await api.create(f"{number}-down-{which}", failing.url("down"))
        async with httpx.AsyncClient() as job:
            for reported in (f"{ping}/fail", ping):
                (await job.post(reported)).raise_for_status()
        await asyncio.to_thread(program.write, "default", receiver.url("ok"), f"{number}-inbox")
        answer = await client.post(f"/api/v1/tenants/{_TENANT}/service-calls", call)
        assert answer[0] < 300, answer
        await asyncio.sleep(0.3)


def _has_data(samples: list[dict[str, Any]]) -> bool:
    return any(not math.isnan(float(sample["value"][1])) for sample in samples)


def _panels() -> Iterator[tuple[str, str]]:
    """Each panel's title, and an expression that has data if one of its queries has."""
    for board in BOARDS:
        for panel in board.panels:
            if panel.title not in _EMPTY:
                queries = (f"({expand(expression, _NAMES)})" for expression, _ in panel.queries)
                yield f"{board.title}: {panel.title}", " or ".join(queries)


# Two nodes and Prometheus, and a question for each panel.
@pytest.mark.timeout(400)
async def test_every_panel_of_a_cluster_at_work_has_data(tmp_path: Path, request: pytest.FixtureRequest):
    url = await new_database(request, "postgresql")
    # A short look-ahead, so that timers are loaded from the store.
    program, _ = await new_program(request, "postgresql")
    await program.cli("migrate")
    env = {
        **SOON,
        **STEADY,
        **program.settings("default"),
        "TOCSIN_AGENT_SQL_LOCK_WAIT": "50ms",
        "TOCSIN_LOOK_AHEAD_MAX": "1s",
    }
    servers = [
        ServerProcess(tmp_path / name, "--store", url, env={**env, "TOCSIN_NODE_NAME": name}) for name in ("a", "b")
    ]
    async with (
        ScriptedReceiver({"gone": [Reply(410)]}) as receiver,
        ScriptedReceiver({"down": [Reply(503)]}) as failing,
        running(*servers),
    ):
        await shared_by(servers, {"a", "b"})
        targets = [f"127.0.0.1:{server.port}" for server in servers]
        async with prometheus(tmp_path / "prometheus", {"tocsin": targets}) as asked:
            await asked.until("min(tocsin_dispatching) == 1")
            async with asyncio.TaskGroup() as tasks:
                traffic = tasks.create_task(_traffic(servers, program, receiver, failing))
                try:
                    for panel, expression in _panels():
                        try:
                            await asked.until(expression, _has_data)
                        except TimeoutError:
                            pytest.fail(f"{panel}: {expression} has no data")
                finally:
                    traffic.cancel()
