"""What a deployment for given rates takes, calculated from measured costs. Pure: `tocsin capacity` prints it.

Each constant names where it was measured. Costs for each timer are the most stable part of a measurement, and about the same
on other machines; rates are not, so those here only bound what has been measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

# docs/explanation/scale.md, "Results", nodes without a CPU limit: seconds of CPU for one timer. A create is that of one node;
# what forwarding adds is in "What a million timers cost".
NODE_CREATE_S, NODE_BATCH_S, NODE_FIRE_S = 58e-6, 18e-6, 47e-6
FORWARD_CREATE_S, FORWARD_BATCH_S = 90e-6, 22e-6
# The same table, the highest of its columns.
DATABASE_CREATE_S, DATABASE_BATCH_S, DATABASE_FIRE_S = 33e-6, 9e-6, 13e-6
# docs/explanation/performance.md, "Results": one node on SQLite.
SQLITE_CREATE_S, SQLITE_BATCH_S, SQLITE_FIRE_S = 90e-6, 36e-6, 71e-6
#: The process's one loop and SQLite's writer can't use more than a core and a part; from creates 10,600/s at 90 µs.
SQLITE_CORES_MAX = 0.95
# docs/explanation/scale.md, "Bytes per timer": on disk while pending, and the log of a create (single, in a batch) and
# of a fire with its history.
PENDING_BYTES, WAL_CREATE_BYTES, WAL_BATCH_BYTES, WAL_FIRE_BYTES = 580, 750, 690, 1_090
#: The same for a fire without history: 850 bytes for create and fire together (docs/explanation/scale.md, "A plan").
WAL_FIRE_NO_HISTORY_BYTES = 100
#: 10 million pending timers in a file of 4.4 GB (docs/explanation/performance.md, "Results").
SQLITE_PENDING_BYTES = 440
#: A row of history; the description of the setting `occurrences_kept` has it.
HISTORY_BYTES = 450
#: Rows that vacuum has not reached (docs/explanation/scale.md, "A plan for a billion timers").
DEAD_ROWS_SHARE = 1 / 3
#: The payload of the measurements' timers, in bytes.
MEASURED_PAYLOAD_BYTES = 50
# docs/explanation/performance.md: memory of a process while ten million timers were created; with 100,000 schedules in the
# window, 315 MiB, less the 42 MiB of a process at rest. A timer takes less than a schedule.
PROCESS_BYTES, WINDOW_TIMER_BYTES = 129 * 2**20, 2_800
#: Defaults of the settings look_ahead_max, window_timers_max and window_bytes_max.
LOOK_AHEAD_S, WINDOW_TIMERS_MAX, WINDOW_BYTES_MAX = 300.0, 100_000, 64 * 2**20

# Assumptions, none measured: how busy nodes and a database may be on average, and what a primary's disks sustain for hours.
NODE_SHARE, SURVIVORS_SHARE, DATABASE_SHARE, WAL_BYTES_PER_S = 0.6, 0.9, 0.4, 120e6
#: Shards for each node, so that shares are about even: the plan in docs/explanation/scale.md has 256 for 20 nodes.
SHARDS_PER_NODE, SHARDS_MIN, SHARDS_MAX = 12, 16, 1_024

# How far measurements went (docs/explanation/scale.md, "Results" and "What is not known").
NODES_MEASURED, CREATES_MEASURED, BATCH_MEASURED, FIRES_MEASURED = 4, 10_910, 52_060, 38_500
PENDING_MEASURED, SQLITE_PENDING_MEASURED = 3_000_000, 10_000_000


class Basis(StrEnum):
    """Where a result comes from."""

    MEASURED = "measured"
    EXTRAPOLATED = "extrapolated"
    ASSUMED = "assumed"


@dataclass(frozen=True)
class Load:
    """What is wanted, on average over a busy minute."""

    creates_per_s: float
    fires_per_s: float
    pending: int
    payload_bytes: int
    batches: bool
    retention_s: float
    sqlite: bool


@dataclass(frozen=True)
class Result:
    """One line: `value` in the unit that `name` ends with."""

    name: str
    value: float
    basis: Basis


@dataclass(frozen=True)
class Plan:
    """What one cell takes, and how many cells of that size. A cell is a database with its nodes and namespaces."""

    cells: int
    results: list[Result]
    notes: list[str]


def plan(load: Load) -> Plan:
    """What the load takes, divided over as many cells as one database's log and 64 nodes' shards allow."""
    if load.sqlite:
        return _sqlite(load)
    cells = max(1, math.ceil(_wal_per_s(load) / WAL_BYTES_PER_S))
    return _postgresql(load, cells)


def _postgresql(load: Load, cells: int) -> Plan:
    creates, fires, pending = load.creates_per_s / cells, load.fires_per_s / cells, load.pending / cells
    nodes = _nodes(load, creates, fires)
    database = creates * (DATABASE_BATCH_S if load.batches else DATABASE_CREATE_S) + fires * DATABASE_FIRE_S
    most = BATCH_MEASURED if load.batches else CREATES_MEASURED
    tried = cells == 1 and creates <= most and fires <= FIRES_MEASURED
    of_rates = _basis(tried and nodes <= NODES_MEASURED)
    of_bytes = _basis(tried and load.payload_bytes <= MEASURED_PAYLOAD_BYTES)
    kept = fires * load.retention_s * (HISTORY_BYTES + _more(load))
    disk = pending * (PENDING_BYTES + _more(load)) * (1 + DEAD_ROWS_SHARE)
    stored = _basis(of_bytes is Basis.MEASURED and pending <= PENDING_MEASURED)
    results = [
        Result("nodes", nodes, Basis.ASSUMED),
        Result("busy cores of all nodes", _busy(load, creates, fires, nodes), of_rates),
        Result("database cores", max(1, math.ceil(database / DATABASE_SHARE)), Basis.ASSUMED),
        Result("busy cores of the database", database, of_rates),
        Result("write-ahead log, MB/s", _wal_per_s(load) / cells / 1e6, of_bytes),
        Result("disk for pending timers, GB", disk / 1e9, stored),
        Result("disk for finished timers, GB", kept / 1e9, Basis.EXTRAPOLATED),
        Result("memory of a node, MiB", _memory(load, fires / nodes) / 2**20, Basis.EXTRAPOLATED),
        Result("shards", _shards(nodes), Basis.ASSUMED),
    ]
    notes = [] if fires * LOOK_AHEAD_S / nodes <= WINDOW_TIMERS_MAX else [
        f"A node's window holds the next {WINDOW_TIMERS_MAX * nodes / fires:.0f} s of timers; window_timers_max extends that."
    ]  # fmt: skip
    if cells > 1:
        notes.append(
            f"One database would write {_wal_per_s(load) / 1e6:,.0f} MB of log a second. The load is divided over {cells} "
            "clusters, each with namespaces of its own; Tocsin does not route between them."
        )
    return Plan(cells, results, notes)


def _sqlite(load: Load) -> Plan:
    busy = load.creates_per_s * (SQLITE_BATCH_S if load.batches else SQLITE_CREATE_S) + load.fires_per_s * SQLITE_FIRE_S
    small = load.payload_bytes <= MEASURED_PAYLOAD_BYTES
    within = busy <= SQLITE_CORES_MAX
    disk = load.pending * (SQLITE_PENDING_BYTES + _more(load))
    kept = load.fires_per_s * load.retention_s * (HISTORY_BYTES + _more(load))
    results = [
        Result("nodes", 1, Basis.MEASURED if within else Basis.EXTRAPOLATED),
        Result("busy cores", busy, _basis(within)),
        Result("disk for pending timers, GB", disk / 1e9, _basis(small and load.pending <= SQLITE_PENDING_MEASURED)),
        Result("disk for finished timers, GB", kept / 1e9, Basis.EXTRAPOLATED),
        Result("memory, MiB", _memory(load, load.fires_per_s) / 2**20, Basis.EXTRAPOLATED),
        Result("shards", 4, Basis.ASSUMED),
    ]
    notes = [] if busy <= NODE_SHARE else [
        f"One node on SQLite would be {busy:.1f} cores busy, and should be at most {NODE_SHARE}: use --store postgresql."
    ]  # fmt: skip
    return Plan(1, results, notes)


def _nodes(load: Load, creates: float, fires: float) -> int:
    """Processes of one core each, at least two, so that the others manage when one fails."""
    nodes = 2
    while True:
        busy = _busy(load, creates, fires, nodes)
        if busy <= nodes * NODE_SHARE and busy <= (nodes - 1) * SURVIVORS_SHARE:
            return nodes
        nodes += 1


def _busy(load: Load, creates: float, fires: float, nodes: int) -> float:
    """Cores that all nodes keep busy, if clients write to any node: all but one in `nodes` are forwarded."""
    own, forward = (NODE_BATCH_S, FORWARD_BATCH_S) if load.batches else (NODE_CREATE_S, FORWARD_CREATE_S)
    return creates * (own + forward * (nodes - 1) / nodes) + fires * NODE_FIRE_S


def _wal_per_s(load: Load) -> float:
    """The payload is in the log once as it is created, and once more if history keeps it."""
    create = WAL_BATCH_BYTES if load.batches else WAL_CREATE_BYTES
    fire = WAL_FIRE_BYTES + _more(load) if load.retention_s else WAL_FIRE_NO_HISTORY_BYTES
    return load.creates_per_s * (create + _more(load)) + load.fires_per_s * fire


def _more(load: Load) -> int:
    """Bytes of a payload beyond what was measured."""
    return max(0, load.payload_bytes - MEASURED_PAYLOAD_BYTES)


def _memory(load: Load, fires_per_s: float) -> float:
    rows = min(fires_per_s * LOOK_AHEAD_S, WINDOW_TIMERS_MAX, load.pending)
    return PROCESS_BYTES + rows * WINDOW_TIMER_BYTES + min(rows * _more(load), WINDOW_BYTES_MAX)


def _shards(nodes: int) -> int:
    wanted = max(SHARDS_MIN, nodes * SHARDS_PER_NODE)
    return min(SHARDS_MAX, 1 << (wanted - 1).bit_length())


def _basis(measured: bool) -> Basis:
    return Basis.MEASURED if measured else Basis.EXTRAPOLATED
