"""`tocsin transfer --online` between real servers, killed twice on the way, while a client of the SDK creates timers: no
create fails, nothing is lost, nothing fires twice or early, and a firing goes on under its `webhook-id`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.crash.test_transfer import mark_in_file
from tests.drills.transfer import KEY, Supervised, Wanted, drill
from tests.integration.server.test_agent_flow import new_id, now_us, submit, until
from tests.support.calls import Api, Inbox
from tests.support.command import command
from tests.support.http import Client, Receiver
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess
from tocsin.model.instants import US_PER_DAY, format_instant

NOWHERE = "http://127.0.0.1:9/hook"


@pytest.mark.timeout(300)
async def test_clients_bridge_the_pause_of_a_transfer_that_was_killed(
    shared_postgresql: PostgresServer, tmp_path: Path
) -> None:
    source, target = f"sqlite:///{tmp_path / 'source' / 'tocsin.db'}", await shared_postgresql.create_database()
    wanted = Wanted(
        source, target, 16, timers=4_000, schedules=5, history=200, rate=50, kills_s=(0.5, 1.0), due_s=(1, 6)
    )
    assert await drill(wanted, tmp_path) == []


@pytest.mark.timeout(300)
@pytest.mark.wide
async def test_all_nodes_of_a_cluster_are_paused(shared_postgresql: PostgresServer, tmp_path: Path) -> None:
    source, target = [await shared_postgresql.create_database() for _ in range(2)]
    wanted = Wanted(source, target, 16, timers=1_000, schedules=5, history=200, rate=30, nodes=2, due_s=(1, 6))
    assert await drill(wanted, tmp_path) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("workers", [1, 2])
async def test_service_calls_go_on_where_the_timers_are(
    workers: int, shared_postgresql: PostgresServer, tmp_path: Path
) -> None:
    """With an agent that runs, of a server with one process and of one with two, which end together."""
    target, flags = await shared_postgresql.create_database(), ["--workers", str(workers)]
    source = f"sqlite:///{tmp_path / 'source' / 'tocsin.db'}"
    if workers > 1:
        source = await shared_postgresql.create_database()
    server, tenant, inbox = Supervised(tmp_path / "source", source, target, *flags), new_id(), Inbox()
    async with Receiver(inbox) as receiver:
        try:
            await server.start()
            client = Client(server.server.address)
            done = await submit(client, tenant, receiver.url)
            await inbox.count(1)
            later = await submit(client, tenant, receiver.url, dueAt=format_instant(now_us() + US_PER_DAY))
            due = await submit(client, tenant, receiver.url, dueAt=format_instant(now_us() + 4_000_000))
            without = tmp_path / "without.toml"
            without.write_text(f'store = "sqlite:///{tmp_path / "b" / "tocsin.db"}"\nagent.enabled = false\n')
            expected = {done: "Succeeded", later: "Scheduled", due: "Succeeded"}
            moving = ("transfer", "--online", "--from", source)
            refused = await command(*moving, "--to-config", str(without), env=KEY)
            code, out, err = await command(*moving, "--to", target, "--json", env=KEY)
            await server.wait_until_moved()
            await inbox.count(2)
            client = Client(server.server.address)
            calls = [(await until(client, tenant, each, status))["status"] for each, status in expected.items()]
            assert await server.server.stop() == 0
        finally:
            await server.end()
    assert (refused[0], "has service calls, and the target has no agent.database" in refused[2]) == (1, True), refused
    assert (code, json.loads(out)["calls"]) == (0, 3), err
    assert calls == [*expected.values()]
    assert len(inbox.calls) == 2


async def test_a_canceled_transfer_leaves_the_servers_with_the_source(tmp_path: Path) -> None:
    server, target = ServerProcess(tmp_path / "source"), f"sqlite:///{tmp_path / 'target' / 'tocsin.db'}"
    source = ("--from", f"sqlite:///{server.data_dir / 'tocsin.db'}")
    await server.start()
    api = Api(server)
    for number in range(20):
        await api.create(f"a{number}", NOWHERE, delay="1h")
    code, _, refusal = await command("transfer", "--cancel", *source)
    assert (code, "no transfer" in refusal) == (1, True), refusal
    moving = asyncio.create_task(command("transfer", "--online", *source, "--to", target))
    while not mark_in_file(server.data_dir / "tocsin.db"):  # noqa: ASYNC110 -- the file has no event to await
        await asyncio.sleep(0.005)
    # A job that has not ended keeps the transfer from switching over.
    job = {"namespace": "default", "action": "cancel", "of": "timers", "all": True, "ratePerSecond": 1}
    status, created = await api("jobs/create", **job, idempotencyKey="j")
    assert status == 202, created
    assert (await api("jobs/pause", jobId=created["job"]["id"]))[0] == 200
    # What is logged, and what is not shown.
    await api.create("b", NOWHERE, delay="1h")
    assert (await command("transfer", "--cancel", *source))[0] == 0
    code, _, refusal = await moving
    assert (code, "canceled" in refusal) == (1, True), refusal
    assert (await api.get("b"))["status"] == "pending"
    assert (await api("jobs/cancel", jobId=created["job"]["id"]))[0] == 200
    assert await server.stop() == 0
    # The log is no timer.
    code, out, _ = await command("transfer", "--dry-run", *source, "--to", target, "--json")
    await server.start()
    listed = (await Api(server)("timers/list", namespace="default", status="pending"))[1]["timers"]
    assert (code, len(listed)) == (0, json.loads(out)["timers"])
    assert await server.stop() == 0
