"""`tocsin doctor` beside a node that shares its store with others."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import trustme

from tests.support.certificates import NodeFiles
from tests.support.cluster import SOON, node, running
from tests.support.command import command
from tests.support.ports import free_port

SECRET = "s" * 32


async def test_a_neighbour_is_examined_with_this_machines_settings(tmp_path: Path, postgresql_url: str) -> None:
    files = NodeFiles(tmp_path / "tls")
    files.write(trustme.CA())
    server = node(tmp_path, "one", postgresql_url, secret=SECRET)
    server.env |= files.env

    async def neighbour(**env: str) -> tuple[int, str, str]:
        settings = {**SOON, "TOCSIN_STORE": postgresql_url, "TOCSIN_PORT": str(free_port()), **env}
        code, out, _ = await command("doctor", "--json", "--data-dir", str(tmp_path), env=settings)
        by_check = {each["check"]: each for each in json.loads(out)}
        assert by_check["store"]["result"] in ("ok", "warn"), by_check
        assert by_check["clock"]["result"] == "ok", by_check
        found = by_check["neighbours"]
        return code, found["result"], found["text"]

    async with running(server):
        right, other_secret, plain = await asyncio.gather(
            neighbour(TOCSIN_CLUSTER_SECRET=SECRET, **files.env),
            neighbour(TOCSIN_CLUSTER_SECRET="t" * 32, **files.env),
            neighbour(TOCSIN_CLUSTER_SECRET=SECRET),
        )
        assert right == (0, "ok", "one: alive and reachable")
        assert other_secret == (1, "fail", "one: its cluster.secret is another one")
        assert (plain[:2], "closes the connection: it uses TLS" in plain[2]) == ((1, "fail"), True)
