"""A cluster of three nodes under load, for the tests of its faults."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.crash.cluster_load import PACE_S, ClusterLoad, drained, reckon
from tests.crash.ledger import Ledger
from tests.support.cluster import node, now_us, running, shared_by, until
from tests.support.http import Receiver
from tests.support.server import ServerProcess
from tocsin.model.instants import parse_instant

NAMES = ("one", "two", "three")
#: Results are durable within the commit interval; under load on a small machine a batch may take longer.
BEFORE_FAULT_US = 2_000_000


def found_lost(server: ServerProcess) -> int:
    """How many shards a node lost that was frozen for too long: with its lease, by the fence, or because the batch under way
    when it froze, possibly of all its shards, got no answer."""
    return len({line["shard_id"] for line in _lost(server) if line["reason"] in ("lease", "fenced", "unknown_outcome")})


def _lost(server: ServerProcess) -> list[dict[str, Any]]:
    """The lines of its log about shards that it lost."""
    return [json.loads(line) for line in server.log().splitlines() if '"event": "shard lost"' in line]


class Run(NamedTuple):
    """The running cluster and its load."""

    servers: list[ServerProcess]
    ledger: Ledger
    load: ClusterLoad

    def acknowledged(self) -> int:
        """How many writes have been acknowledged."""
        return sum(change.acked_at is not None for changes in self.ledger.changes.values() for change in changes)

    async def goes_on(self, writes: int = 300, timeout_s: float = 60.0) -> None:
        """Returns when so many more writes have been acknowledged."""
        least = self.acknowledged() + writes

        async def are_more() -> bool:
            return self.acknowledged() >= least

        await until(are_more, timeout_s)

    def fault(self, lasting_us: int = 0) -> int:
        """Records a fault that begins now and lasts for `lasting_us`; returns the instant."""
        begun = now_us()
        self.ledger.kills += range(begun, begun + lasting_us + 1, 1_000_000)
        return begun

    async def reckoned(self, before_us: int = BEFORE_FAULT_US, *, untouched: Sequence[ServerProcess] = ()) -> None:
        """Ends the load and checks the ledger. Where a node that the test leaves `untouched` has lost its lease all the same,
        the machine has halted, and results before that may be lost as well."""
        await self.load.stop()
        await drained(self.servers[0], self.ledger)
        lapses = [line["timestamp"] for server in untouched for line in _lost(server) if line["reason"] == "lease"]
        self.ledger.failures += map(parse_instant, lapses)
        reckon(self.ledger, self.load, before_us)


@asynccontextmanager
async def three_nodes(
    folder: Path,
    urls: list[str],
    *,
    prepare: Callable[[list[ServerProcess]], Awaitable[None]] | None = None,
) -> AsyncIterator[Run]:
    """Three nodes that share the shards, each with its own route to the database, under load. `prepare` is called before they
    start."""
    servers = [node(folder, name, url, "--shards", "12") for name, url in zip(NAMES, urls, strict=True)]
    if prepare is not None:
        await prepare(servers)
    async with running(*servers):
        await shared_by(servers, set(NAMES))
        async with at_work(servers) as run:
            yield run


@asynccontextmanager
async def at_work(servers: list[ServerProcess], pace_s: float = PACE_S) -> AsyncIterator[Run]:
    """Clients of running nodes, with pauses of `pace_s` on average, and a receiver that sometimes fails."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance, ledger = random.Random(seed), Ledger()

    def answer(body: dict[str, object], _: dict[str, str]) -> tuple[int, bytes]:
        ledger.receive(body, now_us())
        return (500, b"") if chance.random() < 0.03 else (200, b"")

    async with Receiver(answer) as receiver:
        run = Run(servers, ledger, ClusterLoad(servers, ledger, receiver.url, seed, pace_s))
        run.load.start()
        await run.goes_on(500)
        yield run
