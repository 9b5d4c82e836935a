"""What the soak measures of its nodes each half minute."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import httpx

from tests.drills.soak.measured import address_of
from tests.support.cluster import now_us
from tests.support.http import Client
from tests.support.server import ServerProcess

#: How often a node is asked for its health: the longest answer of a sample shows how long its event loop was busy.
_HEALTH_S = 0.25
#: Counters of what may be a reason for a second call of an attempt: a shard without its owner, or a commit that may be lost.
_REASONS = re.compile(r"tocsin_shards_lost_total|tocsin_commits_total\{result=\"(?!durable)")
#: What has a descriptor each, for as long as somebody needs it.
_CONNECTIONS = ("tocsin_client_connections", "tocsin_callback_connections", "tocsin_agent_connections")


@dataclass(frozen=True)
class NodeSample:
    """One node at one moment. `used_kib` is what its allocators have given out (`measured`), `rss_kib` and `heap_kib` are its
    resident memory with and without files, `descriptors` are those beside connections, which come and go, `stall_ms` is the
    longest answer since the last sample."""

    used_kib: int
    rss_kib: int
    heap_kib: int
    descriptors: int
    connections: int
    threads: int
    series: frozenset[str]
    purged: int
    reasons: int
    log_bytes: int
    stall_ms: float


@dataclass(frozen=True)
class Sample:
    """All nodes at one moment, `at` in microseconds. `steal` and `busy` are shares of the machine's time since the last one;
    `drill_stall_ms` is how long the drill's own event loop was busy at most: as much of a lag may be its own."""

    at: int
    nodes: tuple[NodeSample, ...]
    files: dict[str, int]
    duplicates: int
    steal: float
    busy: float
    drill_stall_ms: float


def parse_metrics(text: str) -> dict[str, float]:
    """The series of an exposition, with their values."""
    pairs = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def processor() -> tuple[int, int, int]:
    """The machine's time since its start, in ticks: stolen, busy and all of it."""
    fields = [int(each) for each in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return fields[7], sum(fields) - fields[3] - fields[4] - fields[7], sum(fields)


class Sampler:
    """Measures running nodes. `duplicates` returns how many attempts have arrived twice so far."""

    def __init__(self, servers: list[ServerProcess], database: str | None, duplicates: Callable[[], int]) -> None:
        self.samples: list[Sample] = []
        self._servers, self._database, self._duplicates = servers, database, duplicates
        self._stalls_ms = [0.0] * len(servers)
        self._drill_stall_ms = 0.0
        self._processor = processor()

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Asks the nodes for their health until the end of the block."""
        tasks = [asyncio.create_task(self._watch(number)) for number in range(len(self._servers))]
        tasks.append(asyncio.create_task(self._watch_itself()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, number: int) -> None:
        client, loop = Client(self._servers[number].address), asyncio.get_running_loop()
        try:
            while True:
                began = loop.time()
                with contextlib.suppress(OSError, EOFError, TimeoutError):
                    await client.get("/healthz")
                self._stalls_ms[number] = max(self._stalls_ms[number], (loop.time() - began) * 1e3)
                await asyncio.sleep(_HEALTH_S)
        finally:
            client.close()

    async def _watch_itself(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + 0.05
            await asyncio.sleep(0.05)
            self._drill_stall_ms = max(self._drill_stall_ms, (loop.time() - due) * 1e3)

    async def take(self) -> Sample:
        """One more sample."""
        nodes = tuple([await self._node(number) for number in range(len(self._servers))])
        before, self._processor = self._processor, processor()
        steal, busy, whole = (now - then for now, then in zip(self._processor, before, strict=True))
        files = await self._files()
        sample = Sample(
            now_us(),
            nodes,
            files,
            self._duplicates(),
            steal / max(whole, 1),
            busy / max(whole, 1),
            self._drill_stall_ms,
        )
        self._drill_stall_ms = 0.0
        self.samples.append(sample)
        return sample

    async def _node(self, number: int) -> NodeSample:
        server = self._servers[number]
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            series = parse_metrics((await client.get("/metrics")).text)
        assert server.process is not None
        status = _status(server.process.pid)
        descriptors = len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
        connections = int(sum(series.get(name, 0) for name in _CONNECTIONS))
        stall_ms, self._stalls_ms[number] = self._stalls_ms[number], 0.0
        return NodeSample(
            used_kib=await _bytes_in_use(server.process.pid) // 1024,
            rss_kib=status["VmRSS"],
            heap_kib=status["RssAnon"],
            descriptors=descriptors - connections,
            connections=connections,
            threads=status["Threads"],
            series=frozenset(series),
            purged=int(series.get("tocsin_history_purged_total", 0)),
            reasons=int(sum(value for name, value in series.items() if _REASONS.match(name))),
            log_bytes=server.log_path.stat().st_size,
            stall_ms=stall_ms,
        )

    async def _files(self) -> dict[str, int]:
        """Bytes: of the database server's database, else of SQLite's files."""
        if self._database is not None:
            connection = await asyncpg.connect(self._database)
            try:
                return {"database": int(await connection.fetchval("SELECT pg_database_size(current_database())"))}
            finally:
                await connection.close()
        found = (path for server in self._servers for path in server.data_dir.glob("*.db*"))
        return {path.name: path.stat().st_size for path in found}


async def _bytes_in_use(pid: int) -> int:
    reader, writer = await asyncio.open_unix_connection(address_of(pid))
    try:
        return int(await reader.readline())
    finally:
        writer.close()


def _status(pid: int) -> dict[str, int]:
    """The numbers of a process's status; memory in KiB."""
    lines = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}
