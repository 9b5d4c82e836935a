"""`python -m bench stages`: CPU time and memory blocks of each stage of each operation, on SQLite and PostgreSQL.

Each operation runs on a server of its own, whose functions are metered (`bench.probes`): once under the load of the other
measurements for CPU time, once one request at a time for blocks, so that threads do not count one another's.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from bench import processes
from bench.database import Database
from bench.nodes import cluster
from bench.probes import STAGES
from bench.processes import Running
from bench.scenarios import SCATTERED, due_evenly, steady_count, wait_for

FIRE_RATES = (500, 2_000, 5_000)
SHARDS = 16
_HOUR_US = 3_600_000_000
#: The results of the last callbacks are committed within this time.
_WRITTEN_S = 0.5
#: Before the measurement begins, timers are loaded, and code paths have run once.
_WARM_UP = 2_000
#: What else the servers report: what no stage accounts for, the sum of all, and what the meters cost, which is not in it.
TOTALS = ("rest of the event loop", "rest of other threads", "total", "meter")


class Usage(NamedTuple):
    """What a number of timers has used in each stage: nanoseconds of CPU time, or memory blocks; how many metered calls; and
    the database's CPU seconds meanwhile."""

    timers: int
    used: Mapping[str, float]
    calls: Mapping[str, int]
    database_s: float


@dataclass
class Under:
    """A measurement: the metered servers, the port of the one that gets the requests and the shards that they are for, the
    receiver, how many timers, and whether their blocks are counted, one request at a time."""

    servers: list[Running]
    owned: str
    receiver: Running
    count: int
    blocks: bool
    _database_s_before: float = 0.0

    def load(self, count: int, **options: Any) -> dict[str, Any]:
        """Runs a load process."""
        owned = {"owned": self.owned, "total_shards": SHARDS} if self.owned else {}
        options = {"due_us": processes.now_us() + _HOUR_US, "spread": 10, "connections": 64, **options, **owned}
        return processes.load(self.servers[0].port, self.receiver.port, count=count, **options)

    def begin(self) -> None:
        """Starts the meters."""
        self._database_s_before = _database_s()
        for server in self.servers:
            _command(server, "blocks" if self.blocks else "time")

    def end(self, count: int) -> Usage:
        """What the servers have used since, for so many timers."""
        used: Counter[str] = Counter()
        calls: Counter[str] = Counter()
        for server in self.servers:
            report = _command(server, "read")
            # Sums of what may be negative: a stage may free more than it allocates.
            used.update(report["stages"] | {total: report[total] for total in TOTALS})
            calls.update(report["calls"])
        return Usage(count, used, calls, _database_s() - self._database_s_before)


def _database_s() -> float:
    return 0.0 if processes.served.database is None else processes.served.database.cpu_s()


def _command(server: Running, text: str) -> dict[str, Any]:
    assert server.process.stdin is not None
    assert server.process.stdout is not None
    print(text, file=server.process.stdin, flush=True)
    for line in server.process.stdout:
        if line.startswith("{"):
            answer: dict[str, Any] = json.loads(line)
            return answer
    raise RuntimeError("the server has ended")


def _create(under: Under, **options: Any) -> Usage:
    under.load(_WARM_UP, prefix="warm", **options)
    if under.blocks:
        options["connections"] = 1
    under.begin()
    made = under.load(under.count, **options)["timers"]
    return under.end(made)


def create(under: Under, **shape: Any) -> Usage:
    """Single creates."""
    return _create(under, **shape)


def create_batch(under: Under, **shape: Any) -> Usage:
    """Creates of 1,000 timers a request."""
    return _create(under, batch=1_000, connections=4, **shape)


def change(operation: str) -> Callable[[Under], Usage]:
    """Updates or deletes of pending timers, or lists of 100."""

    def run(under: Under) -> Usage:
        due, count = processes.now_us() + _HOUR_US, under.count if operation != "list" else under.count // 10
        connections = 1 if under.blocks else 4 if operation == "list" else 64
        options = {"due_us": due, "connections": connections}
        under.load(max(count, 10_000), batch=1_000, prefix="t", **options)
        under.begin()
        made = under.load(count, operation=operation, prefix="t", **options)["timers"]
        return under.end(made)

    return run


def fire(rate: int) -> Callable[[Under], Usage]:
    """Timers due evenly at `rate` a second."""

    def run(under: Under) -> Usage:
        seconds = min(max(under.count / rate, 2.0), 12.0)
        due, count = due_evenly(under.servers[0], under.receiver, rate, seconds), steady_count(rate, seconds)
        time.sleep(max((due - processes.now_us()) / 1e6 - 0.2, 0))
        under.begin()
        if (seen := wait_for(under.receiver.port, count, 30 + seconds)) < count:
            raise RuntimeError(f"{count - seen} of {count} callbacks did not arrive")
        time.sleep(_WRITTEN_S)
        return under.end(count)

    return run


OPERATIONS: dict[str, Callable[[Under], Usage]] = {
    "create": create,
    "create scattered": partial(create, **SCATTERED),
    "create batch": create_batch,
    "create batch scattered": partial(create_batch, **SCATTERED),
    **{f"fire {rate}/s": fire(rate) for rate in FIRE_RATES},
    "update": change("update"),
    "delete": change("delete"),
    "list of 100": change("list"),
    "create forwarded": create,
}


@contextlib.contextmanager
def _servers(operation: str, folder: Path) -> Iterator[tuple[list[Running], str]]:
    """One server, or for forwarded creates two nodes, the second of which owns the shards that are returned."""
    if operation != "create forwarded":
        with processes.server(folder) as server:
            yield [server], ""
        return
    assert isinstance(processes.served.database, Database)
    with cluster(processes.served.database, folder, 2, SHARDS) as nodes:
        yield nodes.nodes, ",".join(map(str, nodes.owned[1]))


def _measured(operation: str, count: int, *, blocks: bool) -> Usage:
    """What the operation uses: CPU time, or with `blocks` memory blocks."""
    with (
        processes.folder() as folder,
        processes.receiver() as receiver,
        _servers(operation, folder) as (servers, owned),
    ):
        return OPERATIONS[operation](Under(servers, owned, receiver, count, blocks))


def measure(operation: str, count: int) -> dict[str, dict[str, Any]]:
    """CPU time (`cpu_us`), metered `calls`, and `blocks` of a timer in each stage, by the operation's name. Nothing for
    forwarded creates without PostgreSQL, which they need."""
    if operation == "create forwarded" and not isinstance(processes.served.database, Database):
        return {}
    processes.served.program = "bench.probes"
    kept = _measured(operation, min(count, 2_000), blocks=True)
    timed = _measured(operation, count, blocks=False)
    return {
        operation: {
            "cpu_us": {stage: timed.used[stage] / timed.timers / 1_000 for stage in (*STAGES, *TOTALS)}
            | ({"database": timed.database_s * 1e6 / timed.timers} if timed.database_s else {}),
            "calls": {stage: timed.calls[stage] / timed.timers for stage in STAGES},
            "blocks": {stage: kept.used[stage] / kept.timers for stage in STAGES},
        }
    }


def show(store: str, results: dict[str, dict[str, Any]]) -> None:
    """Prints one table of CPU time and one of blocks; rows without a noticeable share are left out."""
    for kind, title in (("cpu_us", "µs of CPU time"), ("blocks", "memory blocks kept")):
        table = Table("stage", *results, title=f"{title} for each timer, {store}")
        for stage in dict.fromkeys(stage for result in results.values() for stage in result[kind]):
            cells = [f"{result[kind].get(stage, 0.0):.1f}" for result in results.values()]
            if any(cell.strip("-0.") for cell in cells):
                table.add_row(stage, *(cell if cell.strip("-0.") else "" for cell in cells))
        for column in table.columns[1:]:
            column.justify = "right"
        Console(width=170).print(table)
