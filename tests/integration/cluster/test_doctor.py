"""`tocsin doctor` beside a node that shares its store with others."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import asyncpg
import trustme

from tests.support.certificates import NodeFiles
from tests.support.cluster import node, running
from tests.support.command import command
from tests.support.nats import NatsServer
from tests.support.ports import free_port
from tests.support.postgresql import PostgresServer

SECRET = "s" * 32
#: A neighbour is alive if a heartbeat of it comes within two and a half of these: the node's own are far more frequent.
PATIENT = {"TOCSIN_HEARTBEAT_INTERVAL": "2s"}


async def test_a_neighbour_is_examined_with_this_machines_settings(tmp_path: Path, postgresql_url: str) -> None:
    files = NodeFiles(tmp_path / "tls")
    files.write(trustme.CA())
    server = node(tmp_path, "one", postgresql_url, secret=SECRET)
    server.env |= files.env

    async def neighbour(**env: str) -> tuple[int, str, str]:
        settings = {**PATIENT, "TOCSIN_STORE": postgresql_url, "TOCSIN_PORT": str(free_port()), **env}
        while True:
            code, out, _ = await command("doctor", "--json", "--data-dir", str(tmp_path), env=settings)
            by_check = {each["check"]: each for each in json.loads(out)}
            assert by_check["store"]["result"] in ("ok", "warn"), by_check
            assert by_check["clock"]["result"] == "ok", by_check
            found = by_check["neighbours"]
            # A busy machine may halt the neighbour for longer than it is waited for.
            if "no answer in time" not in found["text"]:
                return code, found["result"], found["text"]

    async with running(server):
        right, rotating, other_secret, no_secret, plain = await asyncio.gather(
            neighbour(TOCSIN_CLUSTER_SECRET=SECRET, **files.env),
            neighbour(TOCSIN_CLUSTER_SECRET="t" * 32, TOCSIN_CLUSTER_SECRET_FORMER=SECRET, **files.env),
            neighbour(TOCSIN_CLUSTER_SECRET="t" * 32, **files.env),
            neighbour(**files.env),
            neighbour(TOCSIN_CLUSTER_SECRET=SECRET),
        )
        assert right == rotating == (0, "ok", "one: alive and reachable")
        assert other_secret == no_secret == (1, "fail", "one: its cluster.secret is another one")
        assert (plain[:2], "closes the connection: it uses TLS" in plain[2]) == ((1, "fail"), True)


async def test_the_agents_database_and_broker_are_examined(
    tmp_path: Path, shared_postgresql: PostgresServer, shared_nats: NatsServer
) -> None:
    url = await shared_postgresql.create_database()
    reader = f"reader_{url.rpartition('/')[2]}"

    async def agent(database: str, broker: str) -> tuple[int, dict[str, tuple[str, str]]]:
        env = {"TOCSIN_AGENT_DATABASE": database, "TOCSIN_BROKER": broker, "TOCSIN_PORT": str(free_port())}
        code, out, _ = await command("doctor", "--json", "--data-dir", str(tmp_path), env=env)
        return code, {each["check"]: (each["result"], each["text"]) for each in json.loads(out)}

    code, found = await agent(url, shared_nats.url)
    assert (code, found["agent"][0], found["broker"][0]) == (0, "ok", "ok")
    assert "has no tables yet" in found["agent"][1]
    assert (await command("migrate", "--data-dir", str(tmp_path), env={"TOCSIN_AGENT_DATABASE": url}))[0] == 0
    session = await asyncpg.connect(url)
    await session.execute(f"CREATE ROLE {reader} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader}")
    await session.close()
    (_, writer), (code, reading) = await asyncio.gather(
        agent(url, shared_nats.url), agent(url.replace("postgres@", f"{reader}@"), "nats://127.0.0.1:1")
    )
    assert (writer["agent"][0], "can be read and written" in writer["agent"][1]) == ("ok", True)
    assert (code, reading["agent"][0], reading["broker"][0]) == (1, "fail", "fail")
    assert "rights on agent_heartbeat, agent_identity, agent_leader, " in reading["agent"][1]
    assert "unreachable" in reading["broker"][1]
