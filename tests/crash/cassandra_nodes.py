"""Three real Cassandra nodes and three nodes of Tocsin: one Cassandra node is killed, then one is frozen, then one is cut off
from the others, while timers are created and fire. Run by hand, or by `make test-cassandra-nodes`:

    python -m tests.crash.cassandra_nodes

It takes about five minutes and 2 GB of memory, needs root for a network namespace of its own, and ends with 0 if the ledger
balances.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.cluster_run import Run, three_nodes
from tests.support.cassandra import CassandraServer, cluster

_HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
#: How long each fault lasts: longer than Cassandra takes to mark a node as down, and than Tocsin's leases.
_FAULT_S = 20
_INSIDE = "TOCSIN_TEST_INSIDE_NAMESPACE"


async def _faults(servers: list[CassandraServer], folder: Path) -> None:
    url = f"cassandra://{','.join(f'{server.host}:{server.port}' for server in servers)}/timers?replication=3"
    async with three_nodes(folder, [url] * 3) as run:
        await _fault(run, "killed", servers[1].kill, servers[1].start)
        process = servers[2].process
        assert process is not None
        await _fault(
            run, "frozen", lambda: process.send_signal(signal.SIGSTOP), lambda: process.send_signal(signal.SIGCONT)
        )
        await _fault(run, "cut off", lambda: _cut(servers[2].host), _mend)
        # With two nodes away there is no quorum.
        await _without_quorum(run, servers)
        await run.reckoned(_FAULT_S * 1_000_000)


async def _fault(run: Run, name: str, begin: object, end: object) -> None:
    """A fault of one node: two of three replicas are left, and writes go on."""
    assert callable(begin) and callable(end)
    run.fault((_FAULT_S + 30) * 1_000_000)
    before, begun = run.acknowledged(), time.monotonic()
    await asyncio.to_thread(begin)
    await run.goes_on(50, 120)
    print(f"{name}: first 50 writes were acknowledged after {time.monotonic() - begun:.1f} s", flush=True)
    await asyncio.sleep(max(_FAULT_S - (time.monotonic() - begun), 0))
    print(
        f"{name}: {run.acknowledged() - before} writes in {time.monotonic() - begun:.0f} s, one node away", flush=True
    )
    await asyncio.to_thread(end)
    run.fault(10_000_000)
    await run.goes_on(200, 180)
    print(f"{name}: over; failures so far {dict(run.load.failures)}", flush=True)


async def _without_quorum(run: Run, servers: list[CassandraServer]) -> None:
    """Two of three nodes are away: nothing is acknowledged, and nothing is lost."""
    run.fault((_FAULT_S + 60) * 1_000_000)
    processes = [server.process for server in servers[1:]]
    for process in processes:
        assert process is not None
        process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(8)
    before = run.acknowledged()
    await asyncio.sleep(8)
    print(f"no quorum: {run.acknowledged() - before} writes were acknowledged in 8 s", flush=True)
    assert run.acknowledged() == before
    for process in processes:
        assert process is not None
        process.send_signal(signal.SIGCONT)
    await run.goes_on(200, 180)
    print(f"no quorum: over; failures so far {dict(run.load.failures)}", flush=True)


def _cut(host: str) -> None:
    """Drops all that is sent to this address or from it: no client and no other node of Cassandra reaches the node there.
    What it sends over connections that it has opened itself comes from another address, and passes."""
    rules = f"""table ip tocsin {{
        chain input {{
            type filter hook input priority 0;
            ip saddr {host} drop
            ip daddr {host} drop
        }}
    }}"""
    subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True)


def _mend() -> None:
    subprocess.run(["nft", "delete", "table", "ip", "tocsin"], check=True)


def _main() -> int:
    if _INSIDE not in os.environ:
        for program in ("unshare", "ip", "nft"):
            if shutil.which(program) is None:
                print(f"{program} is missing (Debian: util-linux, iproute2, nftables)", file=sys.stderr)
                return 2
        command = ["unshare", "--net", sys.executable, "-m", "tests.crash.cassandra_nodes"]
        return subprocess.run(command, env={**os.environ, _INSIDE: "1"}, check=False).returncode
    # The nodes know no such setting.
    del os.environ[_INSIDE]
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory(prefix="tocsin-cassandra-nodes-") as folder, cluster(_HOSTS) as servers:
        print(f"three nodes on {', '.join(_HOSTS)}", flush=True)
        asyncio.run(_faults(servers, Path(folder)))
    print("passed", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
