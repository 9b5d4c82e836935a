"""`serve --workers`: nodes as processes behind one port."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.cluster import SOON, STEADY, evenly, owners, until
from tests.support.http import Client
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.model.ids import Uuid7Source

FAR = "2040-01-01T00:00:00Z"


@pytest.fixture
async def workers(tmp_path: Path, postgresql_url: str) -> AsyncIterator[ServerProcess]:
    """Two workers that share the shards."""
    flags = ("--store", postgresql_url, "--workers", "2", "--shards", "8")
    server = ServerProcess(tmp_path / "data", *flags, env=SOON | STEADY)
    await server.start()
    await until(lambda: _shared(server))
    yield server
    if server.process is not None and server.process.returncode is None:
        await server.stop()


async def _shared(server: ServerProcess) -> bool:
    """Whether two workers own the shards, each half of them."""
    seen = await owners(server)
    return len(seen) == 2 and evenly(seen)


def _children(server: ServerProcess) -> list[int]:
    assert server.process is not None
    pid = server.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def _scraped(server: ServerProcess) -> dict[str, dict[str, float]]:
    """The values of one scrape by the worker's number and the metric's name, for metrics with one value for each worker.
    Nothing if the worker that was asked ends."""
    host, port = server.address()
    try:
        async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
            body = (await client.get(f"http://{host}:{port}/metrics")).raise_for_status().text
    except httpx.TransportError:
        return {}
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(body):
        for sample in family.samples:
            found.setdefault(sample.labels["worker"], {})[sample.name] = sample.value
    return found


async def _scraped_of_both(server: ServerProcess) -> dict[str, dict[str, float]]:
    """A scrape in which both workers are: one that is busy for longer than a second is left out."""
    found: dict[str, dict[str, float]] = {}

    async def are_both() -> bool:
        found.clear()
        found.update(await _scraped(server))
        return set(found) == {"0", "1"}

    await until(are_both)
    return found


async def test_a_scrape_has_the_metrics_of_all_workers(workers: ServerProcess) -> None:
    client = Client(workers.address)
    for number in range(20):
        timer = {"namespace": "default", "id": f"t{number}", "executeAt": FAR, "callbackUrl": "http://127.0.0.1:9/"}
        status, made = await client.post("/api/v1/timers/create", timer)
        assert status == 200, made
    client.close()
    for _ in range(10):
        # Each over its own connection, which any worker may accept.
        found = await _scraped_of_both(workers)
        assert sum(found[each]["tocsin_shards_owned"] for each in found) == 8
        assert sum(found[each]["tocsin_timers_created_total"] for each in found) == 20
    # One that was killed is missing until another takes its place.
    killed, other = _children(workers)
    os.kill(killed, signal.SIGKILL)

    async def replaced() -> bool:
        now = await _scraped(workers)
        return set(now) == {"0", "1"} and killed not in _children(workers) and other in _children(workers)

    await until(replaced)


@pytest.mark.timeout(400)
async def test_a_dead_worker_is_restarted(workers: ServerProcess) -> None:
    before = _children(workers)
    assert len(before) == 2
    # As when a terminal signals all its processes: restarts are up to the parent.
    os.kill(before[0], signal.SIGHUP)
    os.kill(before[1], signal.SIGKILL)

    async def replaced() -> bool:
        now = _children(workers)
        return len(now) == 2 and before[1] not in now and await _shared(workers)

    await until(replaced)
    assert before[0] in _children(workers)
    assert "worker died" in workers.log()


@pytest.mark.timeout(400)
async def test_any_worker_serves_agent_requests_and_ends_with_the_parent(workers: ServerProcess) -> None:
    new_id = Uuid7Source(lambda: time.time_ns() // 1_000)
    call = {"name": "later", "requestSpec": {"method": "GET", "url": "http://127.0.0.1:9/"}, "dueAt": FAR}
    for _ in range(40):
        # Each over its own connection, which any worker may accept.
        client, tenant = Client(workers.address), new_id()
        status, made = await client.post(f"/api/v1/tenants/{tenant}/service-calls", call)
        assert status == 202, made
        status, got = await client.get(f"/api/v1/tenants/{tenant}/service-calls/{made['serviceCallId']}")
        assert (status, got["status"]) == (200, "Scheduled")
        status, refused = await client.post(f"/api/v1/tenants/{tenant}/service-calls", {"name": 1})
        assert (status, refused["error"]) == (400, "INVALID_INPUT")
        client.close()
    children = _children(workers)
    await workers.kill()

    async def ended() -> bool:
        return not any(Path(f"/proc/{child}").exists() for child in children)

    await until(ended)


async def test_sqlite_with_several_workers_is_refused(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--workers", "2")
    with pytest.raises(AssertionError):
        await server.start()
    assert "workers: a sqlite store belongs to one process" in server.log()


async def test_a_worker_that_cannot_start_ends_all(tmp_path: Path, postgresql_url: str) -> None:
    url = postgresql_url.rpartition("/")[0] + "/missing"
    server = ServerProcess(tmp_path / "data", "--workers", "2", "--store", url)
    with pytest.raises(AssertionError):
        await server.start()
    assert server.process is not None
    assert await server.process.wait() == 1
