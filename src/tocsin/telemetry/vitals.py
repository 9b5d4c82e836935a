"""A process's own vital data: how long it runs, what it takes, how late its event loop is, how long its store takes."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tocsin.ports.forward import NodeVitals
from tocsin.ports.observer import BatchCommitted, BatchFailed, Event, HeartbeatFailed, LoadFailed
from tocsin.statistics.slots import Latencies
from tocsin.tasks import end_tasks

#: What is reported covers the last minute, in parts of ten seconds.
_PART_S, _PARTS = 10.0, 6
_INTERVAL_S = 1.0
_FAILURES = (BatchFailed, HeartbeatFailed, LoadFailed)
_ERROR_CHARS_MAX = 300
_STATM = Path("/proc/self/statm")


@dataclass(slots=True)
class _Part:
    """What was measured since `begun_s` and the processor time at that moment."""

    begun_s: float
    cpu_s: float
    loop_lag_s: float = 0.0
    reads: Latencies = field(default_factory=Latencies)
    commits: Latencies = field(default_factory=Latencies)


class VitalSigns:
    """Measures this process. An observer of commits and of the store's errors; `read` takes the duration of each read that
    the engine measures. `gauges` returns the gauges under their names in the metrics."""

    def __init__(self, gauges: Callable[[], Mapping[str, float]]) -> None:
        self._gauges = gauges
        self._begun_s = time.monotonic()
        self._parts = deque([_Part(self._begun_s, time.process_time())], _PARTS)
        self._error, self._error_at = "", 0
        self._measuring: asyncio.Task[None] | None = None

    def __call__(self, event: Event) -> None:
        """Takes the duration of a commit, or the store's error."""
        if isinstance(event, BatchCommitted):
            self._parts[-1].commits.count(event.duration_us)
        elif isinstance(event, _FAILURES):
            self._error, self._error_at = event.error[:_ERROR_CHARS_MAX], time.time_ns() // 1_000

    def read(self, duration_us: int) -> None:
        """Takes the duration of a read of the store."""
        self._parts[-1].reads.count(duration_us)

    def start(self) -> None:
        """Begins to measure. Requires a running event loop."""
        self._measuring = asyncio.get_running_loop().create_task(self._measure())

    async def close(self) -> None:
        """Ends it. Idempotent."""
        if self._measuring is not None:
            await end_tasks(self._measuring)

    async def _measure(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            begun_s = clock()
            await asyncio.sleep(_INTERVAL_S)
            self.tick(clock() - begun_s - _INTERVAL_S)

    def tick(self, late_s: float) -> None:
        """Takes by how much the event loop woke this up too late."""
        part, now_s = self._parts[-1], time.monotonic()
        part.loop_lag_s = max(part.loop_lag_s, late_s)
        if now_s - part.begun_s >= _PART_S:
            self._parts.append(_Part(now_s, time.process_time()))

    def report(self) -> NodeVitals:
        """What was measured within the last minute, and what is now."""
        gauges, now_s, first = self._gauges(), time.monotonic(), self._parts[0]
        reads, commits = Latencies(), Latencies()
        for part in self._parts:
            reads.add(part.reads)
            commits.add(part.commits)
        return NodeVitals(
            uptime_s=round(now_s - self._begun_s),
            cpu_cores=round((time.process_time() - first.cpu_s) / max(now_s - first.begun_s, _INTERVAL_S), 3),
            memory_bytes=_memory_bytes(),
            loop_lag_ms=round(max(part.loop_lag_s for part in self._parts) * 1_000, 1),
            read_p50_ms=reads.percentile_ms(0.5),
            read_p99_ms=reads.percentile_ms(0.99),
            commit_p50_ms=commits.percentile_ms(0.5),
            commit_p99_ms=commits.percentile_ms(0.99),
            in_flight=round(gauges["tocsin_callbacks_in_flight"] + gauges["tocsin_messages_in_flight"]),
            callback_connections=round(gauges["tocsin_callback_connections"]),
            client_connections=round(gauges["tocsin_client_connections"]),
            store_error=self._error,
            store_error_at=self._error_at,
        )


def _memory_bytes() -> int | None:
    """Memory of this process in RAM; None where the system does not report it as Linux does."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
