"""Alerts fire on real nodes when their trouble is caused: `make test-alerts`. The rules are those of deploy/prometheus with
shorter times. What can't be caused here, or not in a minute, promtool tries: tests/repo/test_alerts.py."""

from __future__ import annotations

import asyncio
import re
import resource
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from tests.support.calls import Api
from tests.support.clocks import SettableClock
from tests.support.cluster import SOON, ended, running, shared_by
from tests.support.dynamodb import DynamoServer
from tests.support.dynamodb_proxy import DynamoProxy, throttled_shard
from tests.support.http import Client
from tests.support.nats import NatsServer
from tests.support.postgresql import PostgresServer
from tests.support.prometheus import Prometheus, prometheus
from tests.support.scripted import Reply, ScriptedReceiver
from tests.support.server import ServerProcess
from tocsin.model.ids import Uuid7Source

RULES = Path(__file__).parents[2] / "deploy/prometheus"
#: A `for` or a range of the rules takes this part of its time, and at least some scrapes.
_RANGE_PART, _RANGE_MIN_S = 1 / 30, 5
_FOR_PART, _FOR_MIN_S = 1 / 60, 1
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_TENANT = Uuid7Source(lambda: 1_800_000_000_000_000)()


def _shorter(text: str, part: float, least_s: int) -> str:
    return f"{max(least_s, int(int(text[:-1]) * _UNITS_S[text[-1]] * part))}s"


def faster_rules(folder: Path) -> list[Path]:
    """The rules with shorter times."""
    folder.mkdir()
    made = []
    for path in RULES.glob("*.rules.yml"):
        text = re.sub(r"\[(\d+\w)\]", lambda m: f"[{_shorter(m[1], _RANGE_PART, _RANGE_MIN_S)}]", path.read_text())
        text = re.sub(r"offset (\d+\w)", lambda m: f"offset {_shorter(m[1], _RANGE_PART, _RANGE_MIN_S)}", text)
        text = re.sub(r"for: (\d+\w)", lambda m: f"for: {_shorter(m[1], _FOR_PART, _FOR_MIN_S)}", text)
        made.append(folder / path.name)
        made[-1].write_text(text)
    return made


async def fires(asked: Prometheus, *alerts: str) -> None:
    """Returns when each of them fires; names the one that does not."""
    for alert in alerts:
        try:
            await asked.until(f'ALERTS{{alertname="{alert}",alertstate="firing"}}', timeout_s=90)
        except TimeoutError:
            pending = await asked.query("ALERTS")
            pytest.fail(f"{alert} does not fire; there are {[sample['metric'] for sample in pending]}")
        print(f"{alert} fires")


async def is_over(asked: Prometheus, *alerts: str) -> None:
    """Returns when none of them fires."""
    names = "|".join(alerts)
    await asked.until(f'ALERTS{{alertname=~"{names}",alertstate="firing"}}', lambda found: not found, timeout_s=120)


@asynccontextmanager
async def watched(tmp_path: Path, *servers: ServerProcess) -> AsyncIterator[Prometheus]:
    """A Prometheus with the alerts, on servers that have been started."""
    targets = [f"127.0.0.1:{server.port}" for server in servers]
    async with prometheus(tmp_path / "prometheus", {"tocsin": targets}, faster_rules(tmp_path / "rules")) as asked:
        await asked.until("min(tocsin_dispatching) == 1")
        yield asked


async def _schedule(api: Api, name: str, url: str, **more: object) -> None:
    status, schedule = await api("schedules/create", namespace="default", id=name, every="1s", callbackUrl=url, **more)
    assert status == 200, schedule


@pytest.mark.timeout(600)
async def test_receivers_and_clients(tmp_path: Path) -> None:
    env = {
        "TOCSIN_DESTINATION_IN_FLIGHT_MAX": "20",
        "TOCSIN_CALLBACKS_CONNECTIONS_MAX": "25",
        "TOCSIN_CALLBACKS_IN_FLIGHT_MAX": "20",
        "TOCSIN_HISTORY_RETENTION": "1h",
    }
    server = ServerProcess(tmp_path / "data", env=env)
    silent = [Reply(-1)]
    async with ScriptedReceiver({"gone": [Reply(410)], "silent": silent}) as receiver, ended(server):
        await server.start()
        async with watched(tmp_path, server) as asked:
            api = Api(server)
            for number in range(20):
                await api.create(f"first-{number}", receiver.url("gone"))
            await asked.until("sum(tocsin_attempts_total) >= 20")
            await _schedule(api, "fails", receiver.url("gone"))
            await _schedule(api, "slow", receiver.url("silent"), callbackTimeoutSeconds=5)
            for number in range(60):
                await api.create(f"gone-{number}", receiver.url("gone"))
                await api.create(
                    f"old-{number}", receiver.url("ok"), executeAt="2020-01-01T00:00:00Z", expireAfter="1s"
                )
                await asyncio.sleep(0.1)
            await fires(asked, "TocsinTimersFail", "TocsinSchedulesFail", "TocsinSchedulesOverlap")

            async def more_expire() -> None:
                for number in range(1_000):
                    await api.create(
                        f"x-{number}", receiver.url("ok"), executeAt="2020-01-01T00:00:00Z", expireAfter="1s"
                    )
                    await asyncio.sleep(0.1)

            expiring = asyncio.create_task(more_expire())
            await fires(asked, "TocsinTimersExpire")
            expiring.cancel()
            many = [
                {"namespace": "default", "id": f"many-{number}", "delay": "0s", "callbackUrl": receiver.url("silent")}
                for number in range(1_500)
            ]
            for start in range(0, len(many), 500):
                status, answer = await Api(server)("timers/batch/create", timers=many[start : start + 500])
                assert status == 200, answer
            await fires(asked, "TocsinTimersDeferred", "TocsinOverdue", "TocsinOverdueLong")
            await _clients(asked, server)


async def _clients(asked: Prometheus, server: ServerProcess) -> None:
    """Strange clients, and a process that runs out of descriptors."""

    async def no_http() -> None:
        while True:
            reader, writer = await asyncio.open_connection(*server.address())
            writer.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
            await reader.read()
            writer.close()
            await asyncio.sleep(0.1)

    strange = asyncio.create_task(no_http())
    await fires(asked, "TocsinClientsRefused")
    strange.cancel()
    assert server.process is not None
    open_now = int((await asked.query("process_open_fds"))[0]["value"][1])
    limit = open_now + 6
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
    await fires(asked, "TocsinFileDescriptors")


@pytest.mark.timeout(600)
async def test_keys_and_bad_records(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", env={"TOCSIN_METRICS_OPEN": "true"})
    async with ScriptedReceiver({}) as receiver, ended(server):
        await server.start()
        api = Api(server)
        await api.create("bad", receiver.url("ok"), delay="30s")
        await _schedule(api, "each", receiver.url("ok"))
        await receiver.count("ok", 1)
        async with watched(tmp_path, server) as asked:
            server.flags = ("--port", str(server.port))
            await server.stop()
            # Somebody spoils a row, and the server is down for some instants of the schedule.
            with closing(sqlite3.connect(tmp_path / "data/tocsin.db")) as database, database:
                spoiled = database.execute("UPDATE timers SET timer_record = '{' WHERE timer_id = 'bad'")
                assert spoiled.rowcount == 1
            await asyncio.sleep(4)
            await server.start()
            await fires(asked, "TocsinSchedulesMissed", "TocsinBadRecords")
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tocsin", "keys", "create", "--expires-in", "1m", "--yes",
                "--data-dir", str(tmp_path / "data"),
                stdout=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            assert await process.wait() == 0
            # The first key also closes the way to the schedule's receiver.
            await fires(asked, "TocsinTimersRefused")

            async def guess() -> None:
                client = Client(server.address, {"authorization": "Bearer tk_" + "a" * 40})
                while True:
                    assert (await client.post("/api/v1/namespaces/list", {}))[0] in {401, 429}

            guessing = asyncio.create_task(guess())
            await fires(asked, "TocsinAuthenticationFails")
            guessing.cancel()
            await fires(asked, "TocsinKeysExpire")


async def _calls(api: Api, receiver: ScriptedReceiver, servers: list[ServerProcess]) -> None:
    """Timers and service calls, whatever the answers are."""
    client = Client(servers[0].address)
    call = {"name": "call", "requestSpec": {"method": "GET", "url": receiver.url("ok")}}
    number = 0
    while True:
        number += 1
        try:
            await api(
                "timers/create", namespace="default", id=f"t-{number}", delay="1s", callbackUrl=receiver.url("ok")
            )
            await client.post(f"/api/v1/tenants/{_TENANT}/service-calls", call, 2)
        except (OSError, EOFError, TimeoutError):
            await asyncio.sleep(0.2)
        await asyncio.sleep(0.05)


@pytest.mark.timeout(900)
async def test_databases_brokers_and_nodes(tmp_path: Path, postgresql: PostgresServer) -> None:
    url = await postgresql.create_database()
    broker = NatsServer()
    broker.start()
    env = {**SOON, "TOCSIN_AGENT_SQL_LOCK_WAIT": "50ms", "TOCSIN_WRITE_TIMEOUT": "2s"}
    flags = ("--store", url, "--agent-database", url, "--broker", broker.url)
    servers = [ServerProcess(tmp_path / name, *flags, env={**env, "TOCSIN_NODE_NAME": name}) for name in ("a", "b")]
    other = ServerProcess(
        tmp_path / "c", *flags, env={**env, "TOCSIN_NODE_NAME": "c", "TOCSIN_CLUSTER_SECRET": "another secret of ours"}
    )
    try:
        async with ScriptedReceiver({}) as receiver, running(*servers), ended(other):
            await shared_by(servers, {"a", "b"})
            async with watched(tmp_path, *servers) as asked:
                calls = asyncio.create_task(_calls(Api(servers[0]), receiver, servers))
                await asked.until("sum(tocsin_agent_executions_total) > 5")
                broker.kill()
                await fires(asked, "TocsinAgentBrokerUnreachable")
                broker.start()
                await is_over(asked, "TocsinAgentBrokerUnreachable")
                for number in range(50):
                    await Api(servers[1]).create(f"late-{number}", receiver.url("ok"), delay="5s")
                postgresql.kill()
                await fires(asked, "TocsinHeartbeatsFail", "TocsinStoreAway", "TocsinNothingFires", "TocsinCommitsFail")
                await fires(asked, "TocsinAgentNotRunning", "TocsinLoadsFail")
                await asyncio.sleep(5)
                postgresql.start()
                await is_over(asked, "TocsinNothingFires", "TocsinAgentNotRunning", "TocsinLoadsFail")
                await fires(asked, "TocsinTimersLate")
                await other.start()
                await fires(asked, "TocsinClusterSecretDiffers")
                await other.stop()
                await servers[1].kill()
                await fires(asked, "TocsinDown")
                calls.cancel()
    finally:
        broker.remove()


@pytest.mark.timeout(600)
async def test_a_wrong_clock(tmp_path: Path, postgresql_url: str) -> None:
    clock = SettableClock(tmp_path)
    servers = [
        ServerProcess(tmp_path / name, "--store", postgresql_url, "--no-agent", env={**SOON, "TOCSIN_NODE_NAME": name})
        for name in ("a", "b")
    ]
    servers[1].env |= clock.env
    async with running(*servers):
        await shared_by(servers, {"a", "b"})
        async with watched(tmp_path, *servers) as asked:
            clock.set_off(0.4)
            await fires(asked, "TocsinClockOff")
            clock.set_off(20)
            await fires(asked, "TocsinNodePaused")
            clock.set_off(0)
            await is_over(asked, "TocsinClockOff", "TocsinNodePaused")


@pytest.mark.timeout(600)
async def test_throttling_of_one_shard(tmp_path: Path, shared_dynamodb: DynamoServer) -> None:
    async with DynamoProxy(shared_dynamodb.port) as proxy, ScriptedReceiver({}) as receiver:
        url = shared_dynamodb.url("alerts", proxy.port)
        server = ServerProcess(tmp_path / "data", "--store", url, "--no-agent", "--shards", "1")
        async with ended(server):
            await server.start()
            async with watched(tmp_path, server) as asked:
                await Api(server).create("throttled", receiver.url("ok"), delay="3s")
                proxy.always("TransactWriteItems", throttled_shard(0))
                await fires(asked, "TocsinStoreThrottled")
                proxy.always("TransactWriteItems", None)
                await is_over(asked, "TocsinStoreThrottled")
