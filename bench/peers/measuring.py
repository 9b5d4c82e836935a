"""What is measured of each tool, and the table.

All do the same: timers of about 100 bytes are created by 64 callers, one a call, each waiting for its acknowledgement, and
are due scattered over ten seconds that begin once all are created; then as many in batches of 1,000, due at one instant. Lag
is that of 200 timers a second. Workers post each to the receiver, which has the clock.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import processes
from bench.peers.tools import PEERS, Creates, Tocsin, started
from bench.scenarios import stats_of, wait_for

#: Divisible by the numbers of callers.
_TRIAL, _LIGHT, _CALLERS = 1_024, 2_048, 64
_LIGHT_S = _LIGHT / 200
_SPREAD_S = 10.0
_BATCH, _BATCH_CALLERS = 1_000, 4
#: How long all of them may take to fire.
_FIRED_S = 180.0
#: When results of fires are written that came last.
_WRITTEN_S = 2.0

COLUMNS = {
    "creates/s, one a call": "creates, per s",
    "in batches": "creates in batches, per s",
    "fires/s of a burst": "burst, fires per s",
    "lag at 200/s, p50": "lag at 200/s, p50 ms",
    "p99 ms": "lag at 200/s, p99 ms",
    "CPU s per 1,000 created": "creates, CPU s per 1,000",
    "fired": "burst, CPU s per 1,000",
    "lost": "lost",
    "early": "early",
}


def measure(name: str, count: int) -> dict[str, float]:
    """The results of a peer, or of `tocsin`. Raises PeerUnavailable, and RuntimeError if it does not do the work."""
    with processes.folder() as data, processes.receiver() as receiver:
        if name == "tocsin":
            with processes.server(data) as server:
                return _work(Tocsin(server, receiver), receiver.port, count, batches=True)
        with started(name, data, receiver) as tool:
            return _work(tool, receiver.port, count, batches=PEERS[name].batches)


def _work(tool: Creates, receiver: int, count: int, *, batches: bool) -> dict[str, float]:
    trial_s = tool.create(_TRIAL, due_us=processes.now_us() + 2_000_000)
    if wait_for(receiver, _TRIAL, _FIRED_S) < _TRIAL:
        raise RuntimeError("the first timers were not fired")
    stats_of(receiver)
    per_s = _TRIAL / trial_s

    light = _part(tool, receiver, _LIGHT, per_s, spread_s=_LIGHT_S)
    single = _part(tool, receiver, count, per_s, spread_s=_SPREAD_S)
    results = {
        "creates, per s": count / single["seconds to create"],
        "lag at 200/s, p50 ms": light["lag_p50_ms"],
        "lag at 200/s, p99 ms": light["lag_p99_ms"],
        "creates, CPU s per 1,000": single["CPU s to create"] / count * 1_000,
        "lag of the scattered, p50 ms": single["lag_p50_ms"],
        "lag of the scattered, p99 ms": single["lag_p99_ms"],
    }
    burst = _part(tool, receiver, count, per_s, batch=_BATCH) if batches else _part(tool, receiver, count, per_s)
    if batches:
        results["creates in batches, per s"] = count / burst["seconds to create"]
    return results | {
        # From the instant at which they were due: some tools call nobody for a while, and then all at once.
        "burst, fires per s": burst["count"] / max(burst["lag_max_ms"] / 1e3, 1e-9),
        "burst, CPU s per 1,000": burst["CPU s to fire"] / count * 1_000,
        "lost": light["lost"] + single["lost"] + burst["lost"],
        "early": light["early"] + single["early"] + burst["early"],
    }


def _part(
    tool: Creates, receiver: int, count: int, per_s: float, *, spread_s: float = 0.0, batch: int = 0
) -> dict[str, Any]:
    """Creates timers and waits until they are fired. They are due once they are created, by the rate of the first ones."""
    due_us = processes.now_us() + 3_000_000 + int(1.5 * count / per_s * 1e6)
    before_s = tool.cpu_s()
    seconds = tool.create(
        count, due_us=due_us, spread_s=spread_s, batch=batch, callers=_BATCH_CALLERS if batch else _CALLERS
    )
    created_s = tool.cpu_s()
    ahead_s = (due_us - processes.now_us()) / 1e6
    if ahead_s < 0:
        raise RuntimeError(f"creating {count} took {seconds:.1f} s, longer than planned; they were due before")
    time.sleep(max(ahead_s - 0.3, 0))
    waited_s = tool.cpu_s()
    seen = wait_for(receiver, count, spread_s + _FIRED_S)
    time.sleep(_WRITTEN_S)
    return stats_of(receiver) | {
        "seconds to create": seconds,
        "CPU s to create": created_s - before_s,
        "CPU s to fire": tool.cpu_s() - waited_s,
        "lost": count - seen,
    }


def show(results: Mapping[str, Mapping[str, float]]) -> None:
    """Prints one table."""
    table = Table("", *COLUMNS, title="Beside other tools; all sync what they acknowledge")
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
    for title, found in results.items():
        table.add_row(title, *(_cell(found.get(name)) for name in COLUMNS.values()))
    Console(width=140).print(table)


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:,.2f}"
