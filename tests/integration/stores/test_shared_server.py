"""The real server on shared databases: timers fire, survive SIGKILL, and move between nodes."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from tests.support.calls import Inbox
from tests.support.http import Client, Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.cli.app import run
from tocsin.model.instants import format_instant
from tocsin.stores.cassandra import address as cassandra_address
from tocsin.stores.dynamodb import address as dynamodb_address
from tocsin.stores.mongodb import address as mongodb_address
from tocsin.stores.mysql import schema as mysql_schema
from tocsin.stores.postgresql import schema as postgresql_schema

#: A dead node is noticed within the member time-out; the default of five seconds would only make the tests longer.
QUICK = {"TOCSIN_HEARTBEAT_INTERVAL": "250ms", "TOCSIN_NODE_LEASE": "1s", "TOCSIN_MEMBER_TIMEOUT": "2s"}


@pytest.fixture(params=["postgresql", "mysql", "dynamodb", "cassandra", "mongodb"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database, or of one that can be created."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


async def fired(inbox: Inbox, names: set[str]) -> None:
    """Returns when each of these timers has fired; checks that no call was early."""
    calls = await inbox.wait(lambda calls: names <= {call.body["timerId"] for call in calls})
    assert [call.body["timerId"] for call in calls if call.lag_us < 0] == []


async def created(servers: list[ServerProcess], url: str, name: str, in_us: int) -> None:
    """Creates a timer at the node that owns its shard; other nodes refuse it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for server in servers:
                timer = {
                    "namespace": "default",
                    "id": name,
                    "callbackUrl": url,
                    "executeAt": format_instant(time.time_ns() // 1_000 + in_us),
                }
                client = Client(server.address)
                status, body = await client.post("/api/v1/timers/create", timer)
                client.close()
                if status == 200:
                    return
                assert status == 503, body
            await asyncio.sleep(0.02)


async def test_timers_fire_after_create_and_after_sigkill(tmp_path: Path, database_url: str) -> None:
    inbox = Inbox()
    server = ServerProcess(tmp_path / "data", "--store", database_url, env=QUICK)
    async with Receiver(inbox) as receiver:
        await server.start()
        await created([server], receiver.url, "first", 50_000)
        await fired(inbox, {"first"})
        names = {f"later-{number}" for number in range(40)}
        for name in sorted(names):
            await created([server], receiver.url, name, 1_500_000)
        await server.kill()
        await server.start()
        await fired(inbox, names)
        assert await server.stop() == 0
    assert not list((tmp_path / "data").glob("tocsin.db*"))


def _newest_schema(database_url: str) -> int:
    if database_url.startswith("dynamodb"):
        return dynamodb_address.LAYOUT
    if database_url.startswith("cassandra"):
        return cassandra_address.LAYOUT
    if database_url.startswith("mongodb"):
        return mongodb_address.LAYOUT
    return (postgresql_schema if database_url.startswith("postgresql") else mysql_schema).migrations()[-1][0]


def test_keys_and_migrations_from_the_command_line(database_url: str, capfd: pytest.CaptureFixture[str]) -> None:
    """In this process: how commands run as processes does not depend on the store."""

    def tocsin(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        return (run([*arguments, "--store", database_url]), *capfd.readouterr())

    code, _, error = tocsin("keys", "list")
    assert (code, "tocsin migrate" in error) == (1, True)
    migrated = json.loads(tocsin("migrate", "--json")[1])
    assert (migrated["schema"], migrated["shards"]) == (_newest_schema(database_url), 16)
    made = json.loads(tocsin("keys", "create", "--role", "read", "--json")[1])
    listed = json.loads(tocsin("keys", "list", "--json")[1])
    assert [key["keyId"] for key in listed] == [made["keyId"]]
    assert tocsin("keys", "revoke", made["keyId"])[0] == 0
    assert json.loads(tocsin("keys", "list", "--json")[1]) == []
