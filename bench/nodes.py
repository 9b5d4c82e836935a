"""A cluster for a benchmark: nodes as processes on one database, and the resources that they use."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import asyncpg

from bench import processes, shares
from bench.database import Database
from bench.processes import Running

READY_TIMEOUT_S = 90.0
SETTLED_S = 1.5
#: Quiet means: for this long, no more WAL than heartbeats and the server itself write.
QUIET_S, QUIET_BYTES = 0.5, 4_096


@dataclass
class Used:
    """Resources used: processor seconds of the nodes and of the database server, bytes of write-ahead log, bytes exchanged
    between nodes and database, and between nodes."""

    nodes_s: float
    database_s: float
    wal_bytes: int
    database_bytes: int
    peers_bytes: int

    def __sub__(self, before: Used) -> Used:
        return Used(*(now - then for now, then in zip(astuple(self), astuple(before), strict=True)))


class Cluster:
    """Nodes that own all shards together. `limited_by` names the mechanism that limits their processor time, or is None."""

    def __init__(self, nodes: list[Running], database: Database, url: str, limited_by: str | None) -> None:
        self.nodes = nodes
        self.database = database
        self.limited_by = limited_by
        self._url = url
        self.owned = [_owned(node) for node in nodes]
        members = processes.cluster_of(nodes[0].port)["nodes"]
        self._peer_ports = [int(member["address"].rpartition(":")[2]) for member in members if member["address"]]

    @property
    def ports(self) -> str:
        """Ports of all nodes, in the format of the load process."""
        return ",".join(str(node.port) for node in self.nodes)

    @property
    def owned_text(self) -> str:
        """Shards of each node, in the format of the load process."""
        return ";".join(",".join(map(str, shards)) for shards in self.owned)

    @property
    def total_shards(self) -> int:
        """Number of shards of the cluster."""
        return sum(map(len, self.owned))

    def used(self) -> Used:
        """Resources used since the processes started."""
        return Used(
            sum(node.cpu_s() for node in self.nodes),
            self.database.cpu_s(),
            asyncio.run(_wal(self._url)),
            _network_bytes([self.database.port]),
            _network_bytes(self._peer_ports),
        )

    def metric(self, name: str) -> float:
        """Sum of a metric over all nodes."""
        return sum(processes.metric(node.port, name) for node in self.nodes)

    def timers_bytes(self) -> tuple[int, int]:
        """Disk bytes of the table of timers and of its indexes."""
        return asyncio.run(_size(self._url, "timers"))

    def wait_until_quiet(self) -> None:
        """Waits until writing has stopped: results of fired timers are recorded a moment later."""
        written, since = 0, time.monotonic()
        while time.monotonic() - since < QUIET_S:
            former, written = written, asyncio.run(_wal(self._url))
            if written - former > QUIET_BYTES:
                since = time.monotonic()
            time.sleep(0.05)

    def take_over_s(self) -> float:
        """Kills the last node; returns the seconds until the others own all of its shards."""
        last = self.nodes.pop()
        last.process.kill()
        last.process.wait()
        began = time.monotonic()
        _wait_until_shared(self.nodes, self.total_shards, settled_s=0.0)
        return time.monotonic() - began


async def _wal(url: str) -> int:
    return int(await _ask(url, "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))


async def _size(url: str, table: str) -> tuple[int, int]:
    return (
        int(await _ask(url, f"SELECT pg_table_size('tocsin.{table}')")),
        int(await _ask(url, f"SELECT pg_indexes_size('tocsin.{table}')")),
    )


def _network_bytes(ports: list[int]) -> int:
    """Bytes sent and received on open connections to these listening ports."""
    if not ports:
        return 0
    command = ["ss", "-tinH", " or ".join(f"sport = :{port}" for port in ports)]
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return sum(int(word.partition(":")[2]) for word in words if word.startswith(("bytes_sent:", "bytes_received:")))


async def _ask(url: str, sql: str) -> Any:
    session = await asyncpg.connect(url)
    try:
        return await session.fetchval(sql)
    finally:
        await session.close()


def _owned(node: Running) -> list[int]:
    return [shard["shardId"] for shard in processes.cluster_of(node.port)["shards"] if shard["ownedHere"]]


@contextlib.contextmanager
def cluster(database: Database, folder: Path, count: int, shards: int, share: float | None = None) -> Iterator[Cluster]:
    """Starts `count` nodes on a new database, waits until each owns its shards, then limits each to `share` of a core."""
    url = asyncio.run(database.create())
    with contextlib.ExitStack() as stack:
        nodes = []
        for number in range(count):
            data = folder / f"{count}-{shards}-{share or 1}-{number}"
            data.mkdir()
            nodes.append(stack.enter_context(_node(data, f"node-{number}", url, shards)))
        stack.callback(_end_together, nodes)
        _wait_until_shared(nodes, shards)
        limited_by = None
        for node in nodes:
            if share is not None:
                limited_by = stack.enter_context(shares.limited(node.process.pid, share))
        yield Cluster(nodes, database, url, limited_by)


def _node(data: Path, name: str, url: str, shards: int) -> contextlib.AbstractContextManager[Running]:
    port = _free_port()
    environment = {
        "TOCSIN_NODE_NAME": name,
        "TOCSIN_ADVERTISE_API": f"http://127.0.0.1:{port}",
        "TOCSIN_NAMESPACE_NUM_SHARDS": str(shards),
        "TOCSIN_STORE": url,
        **processes.CLUSTER,
    }
    return processes.serving(data, "--no-agent", "--shards", str(shards), "--port", str(port), environment=environment)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number: int = listener.getsockname()[1]
        return number


def _end_together(nodes: list[Running]) -> None:
    """Terminates all nodes at the same time, then waits for them."""
    for node in nodes:
        node.process.terminate()
    for node in nodes:
        node.process.wait(60)


def _wait_until_shared(nodes: list[Running], shards: int, settled_s: float = SETTLED_S) -> None:
    """Waits until all shards are owned, every node owns some, and ownership has been stable for `settled_s`."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    owned, since = [[0]], 0.0
    while True:
        former, owned = owned, [_owned(node) for node in nodes]
        if owned != former or sum(map(len, owned)) != shards or not all(owned):
            since = time.monotonic()
        elif time.monotonic() - since >= settled_s:
            return
        if time.monotonic() > deadline:
            parts = [len(each) for each in owned]
            raise TimeoutError(f"nodes own {parts} of {shards} shards after {READY_TIMEOUT_S:g} s")
        time.sleep(0.1)
