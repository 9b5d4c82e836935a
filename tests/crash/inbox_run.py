"""Orders that several processes take while they and Tocsin are killed, and the balance of what fired."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash.inbox_orders import ROLLED_BACK
from tests.support.cluster import now_us, until
from tests.support.http import Receiver
from tests.support.inbox import Program
from tests.support.server import ServerProcess

ROOT = Path(__file__).parents[2]
#: How long the last rows may take, once everything runs.
_BALANCE_S = 300.0


@dataclass
class Result:
    """What a run found: how many orders were committed, the timers that fired without one, those that did not, and those
    under several names; how many were called more than once. `latencies_ms`: from each commit to the callback, sorted."""

    committed: int
    wrongly: set[str]
    missing: set[str]
    renamed: set[str]
    repeated: int
    shop_kills: int
    server_kills: int
    latencies_ms: list[float]

    def percentile(self, share: float) -> float:
        """A percentile of the latencies, in milliseconds."""
        return self.latencies_ms[int(len(self.latencies_ms) * share)]


@dataclass
class InboxRun:
    """Takes `orders` orders in `processes` processes, at `rate` orders a second together. With `library`, a process with the
    drain of the Python SDK drains the table instead of the server, and is killed as often as a shop."""

    program: Program
    server: ServerProcess
    orders: int
    processes: int
    rate: int
    seed: str
    library: bool = False
    names: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    calls: Counter[str] = field(default_factory=Counter)
    arrived_at: dict[str, int] = field(default_factory=dict)
    committed_at: dict[str, int] = field(default_factory=dict)
    shops: dict[int, asyncio.subprocess.Process] = field(default_factory=dict)
    shop_kills: int = 0
    server_kills: int = 0
    drain: asyncio.subprocess.Process | None = None

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    async def run(self, kills: int) -> Result:
        """Takes all orders, while the server is killed so often, and a shop up to twice as often: none is left to be killed
        once all are taken, which on a slow machine they may be while the server starts."""
        await self.program.cli("migrate")
        self.program.execute("CREATE TABLE orders (id INT NOT NULL PRIMARY KEY)")
        async with Receiver(self._called) as receiver:
            await self.server.start()
            await self._begin_drain()
            part = self.orders // self.processes
            taking = [asyncio.create_task(self._shop(number, number * part, (number + 1) * part, receiver.url))
                      for number in range(self.processes)]  # fmt: skip
            all_taken = asyncio.gather(*taking)
            for number in range(kills):
                await self._progress(all_taken, (2 * number + 1) / (2 * kills + 1))
                self._kill_shop()
                await self._end_drain()
                await self._begin_drain()
                await self._progress(all_taken, (2 * number + 2) / (2 * kills + 1))
                self._kill_shop()
                self.server_kills += 1
                await self.server.kill()
                await self._end_drain()
                await self.server.start()
                await self._begin_drain()
            await all_taken
            committed = {f"order-{number}" for (number,) in self.program.execute("SELECT id FROM orders")}

            async def is_settled() -> bool:
                return not self.program.left() and set(self.calls) >= committed

            with contextlib.suppress(TimeoutError):
                await until(is_settled, _BALANCE_S)
            await self._end_drain()
            fired = set(self.calls)
            latencies = (self.arrived_at[each] - at for each, at in self.committed_at.items() if each in fired)
            return Result(
                committed=len(committed),
                wrongly=fired - committed,
                missing=committed - fired,
                renamed={each for each, names in self.names.items() if len(names) > 1},
                repeated=sum(count > 1 for count in self.calls.values()),
                shop_kills=self.shop_kills,
                server_kills=self.server_kills,
                latencies_ms=sorted(each / 1e3 for each in latencies),
            )

    def _called(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        timer = body["timerId"]
        self.arrived_at.setdefault(timer, now_us())
        self.calls[timer] += 1
        self.names[timer].add(headers["webhook-id"])
        return 200, b""

    async def _progress(self, all_taken: asyncio.Future[Any], share: float) -> None:
        """Returns once about this share of what will be committed has been, or all orders are taken."""
        least = share * (1 - ROLLED_BACK) * self.orders
        while len(self.committed_at) < least and not all_taken.done():  # noqa: ASYNC110 -- it is the shops' progress
            await asyncio.sleep(0.02)

    def _kill_shop(self) -> None:
        """SIGKILL to a shop in the middle of whatever it does; it begins again behind the order that it was taking."""
        running = [shop for shop in self.shops.values() if shop.returncode is None]
        if running:
            self.shop_kills += 1
            self._chance.choice(running).kill()

    async def _begin_drain(self) -> None:
        if self.library:
            arguments = ("--server", self.server.url, "--database", self.program.url, "--every", "100ms")
            self.drain = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tocsin_client.outbox", *arguments, stderr=asyncio.subprocess.DEVNULL
            )

    async def _end_drain(self) -> None:
        """SIGKILL: what it had taken is taken again a minute later."""
        drain, self.drain = self.drain, None
        if drain is not None:
            drain.kill()
            await drain.wait()

    async def _shop(self, number: int, first: int, last: int, hook: str) -> None:
        pause_s = self.processes / self.rate
        while first < last:
            arguments = (self.program.url, hook, self.seed, str(first), str(last), str(pause_s))
            shop = self.shops[number] = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.crash.inbox_orders", *arguments, stdout=asyncio.subprocess.PIPE, cwd=ROOT
            )
            assert shop.stdout is not None
            async for line in shop.stdout:
                order, at = line.split()
                self.committed_at[f"order-{int(order)}"] = int(at)
            if await shop.wait() == 0:
                return
            # What it had begun is in the table or not; the numbers of the greatest transaction are left out.
            known = [int(each.partition("-")[2]) for each in self.committed_at]
            first = max([each for each in known if first <= each < last] + [first]) + 1
            (last_taken,) = self.program.execute(f"SELECT max(id) FROM orders WHERE id >= {first - 1} AND id < {last}")
            first = max(first, (last_taken[0] or 0) + 1)
