"""What the cell drill measures each minute."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import median
from typing import Any

from bench import processes
from bench.database import Database
from bench.scenarios import stats_of

from tests.drills.seconds import cpu_s
from tests.support.cluster import now_us
from tests.support.server import ServerProcess

_MIB, _MB = 2**20, 1e6
#: The vacuums are those of all tables, also of the agent's.
_COUNTED = """
SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS wal, (SELECT wal_fpi FROM pg_stat_wal) AS pages,
  (SELECT sum(autovacuum_count) FROM pg_stat_user_tables) AS vacuums,
  (SELECT checkpoint_time FROM pg_control_checkpoint()) AS checkpoint
"""
_SIZES = """
SELECT pg_table_size('tocsin.timers') AS timers, pg_indexes_size('tocsin.timers') AS indexes,
  pg_total_relation_size('tocsin.history') AS history,
  (SELECT n_dead_tup FROM pg_stat_user_tables WHERE schemaname = 'tocsin' AND relname = 'timers') AS dead,
  (SELECT max(extract(epoch FROM replay_lag)) FROM pg_stat_replication) AS standby
"""


@dataclass(frozen=True)
class Minute:
    """What happened between two samples: timers created and fired a second; lags in ms; processor time of all nodes and of
    the database in percent of a core; MB of write-ahead log and whole pages in it a second; checkpoints, vacuums. Dead rows,
    the sizes in MiB and by how many seconds the standby is behind are those at its end."""

    created: float
    fired: float
    lag_p50: float
    lag_p99: float
    lag_max: float
    nodes: float
    database: float
    wal: float
    pages: float
    checkpoints: float
    vacuums: float
    dead: float
    timers: float
    indexes: float
    history: float
    standby: float


#: Of several minutes the median counts, but of these the sum, the highest, or the last.
_SUMMED, _HIGHEST, _LAST = {"checkpoints", "vacuums"}, {"lag_max", "dead", "standby"}, {"timers", "indexes", "history"}
_PRECISE = {"lag_p50": 1, "lag_p99": 1, "wal": 1, "standby": 2}


def together(minutes: Sequence[Minute]) -> Minute:
    """Several minutes as one."""

    def one(name: str) -> float:
        values: list[float] = [getattr(each, name) for each in minutes]
        if name in _SUMMED:
            return sum(values)
        return values[-1] if name in _LAST else max(values) if name in _HIGHEST else median(values)

    return Minute(**{each.name: one(each.name) for each in fields(Minute)})


def head() -> str:
    """The names of the columns of lines."""
    return " ".join([" " * 10, *(f"{each.name:>11}" for each in fields(Minute))])


def line(name: str, of: Minute) -> str:
    """A minute, or several, as a line."""
    cells = (f"{getattr(of, each.name):>11,.{_PRECISE.get(each.name, 0)}f}" for each in fields(Minute))
    return " ".join([f"{name:<10}", *cells])


@dataclass(frozen=True)
class _Counts:
    at: int
    created: float
    nodes_s: float
    database_s: float
    row: Any


class Meter:
    """Measures running nodes and their database. `session` is one of the database, `receiver` the port of a receiver of the
    bench, whose calls are counted in `arrived` and `early`."""

    def __init__(self, servers: list[ServerProcess], database: Database, session: Any, receiver: int) -> None:
        self.minutes: list[Minute] = []
        self.arrived = self.early = 0
        self._servers, self._database, self._session, self._receiver = servers, database, session, receiver
        self._before: _Counts | None = None

    async def begin(self) -> None:
        """Counts from now on."""
        self._before = await self._counts()
        await self.receive()

    async def receive(self) -> dict[str, Any]:
        """What has arrived since the last time."""
        stats = await asyncio.to_thread(stats_of, self._receiver)
        self.arrived += int(stats["count"])
        self.early += int(stats["early"])
        return stats

    async def take(self) -> Minute:
        """One more."""
        before, stats, now = self._before, await self.receive(), await self._counts()
        assert before is not None
        self._before = now
        seconds = (now.at - before.at) / 1e6
        sizes = await self._session.fetchrow(_SIZES)
        minute = Minute(
            created=(now.created - before.created) / seconds,
            fired=stats["count"] / seconds,
            lag_p50=stats["lag_p50_ms"],
            lag_p99=stats["lag_p99_ms"],
            lag_max=stats["lag_max_ms"],
            nodes=100 * (now.nodes_s - before.nodes_s) / seconds,
            database=100 * (now.database_s - before.database_s) / seconds,
            wal=float(now.row["wal"] - before.row["wal"]) / seconds / _MB,
            pages=(now.row["pages"] - before.row["pages"]) / seconds,
            checkpoints=int(now.row["checkpoint"] != before.row["checkpoint"]),
            vacuums=float(now.row["vacuums"] - before.row["vacuums"]),
            dead=sizes["dead"],
            timers=sizes["timers"] / _MIB,
            indexes=sizes["indexes"] / _MIB,
            history=sizes["history"] / _MIB,
            standby=float(sizes["standby"] or 0),
        )
        self.minutes.append(minute)
        return minute

    async def _counts(self) -> _Counts:
        nodes = [each.process.pid for each in self._servers if each.process is not None]
        ports = [each.address()[1] for each in self._servers]
        created = [await asyncio.to_thread(processes.metric, port, "tocsin_timers_created_total") for port in ports]
        row = await self._session.fetchrow(_COUNTED)
        return _Counts(now_us(), sum(created), sum(map(cpu_s, nodes)), self._database.cpu_s(), row)
