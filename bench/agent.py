"""Scenarios of the service agent: submits and calls a second, end to end, and the lag of scheduled calls."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path
from typing import Any

from bench import processes
from bench.scenarios import Results, stats_of, wait_for

TENANTS = 500


def calls_now(count: int, *flags: str, label: str = "agent") -> Results:
    """Calls that are due immediately, submitted one per request from 64 connections."""
    with processes.folder() as data, processes.receiver() as receiver, processes.server(data, *flags) as server:
        options: dict[str, Any] = {"connections": 64, "tenants": TENANTS}
        processes.load(
            server.port, receiver.port, due_us=processes.now_us(), count=count // 10, prefix="warm", **options
        )
        wait_for(receiver.port, count // 10 - count // 10 % 64, 60)
        stats_of(receiver.port)
        before, began = server.cpu_s(), time.perf_counter()
        result = processes.load(server.port, receiver.port, due_us=processes.now_us(), count=count, **options)
        sent = result["requests"]
        seen = wait_for(receiver.port, sent, 120)
        seconds = time.perf_counter() - began
        cpu = server.cpu_s() - before
        return {
            f"{label} submits, per s": result["per_s"],
            f"{label} submits, p50 ms": result["p50_ms"],
            f"{label} submits, p99 ms": result["p99_ms"],
            f"{label} calls end to end, per s": seen / seconds,
            f"{label} calls, lost": sent - seen,
            f"{label} calls, CPU s per 1,000": cpu / sent * 1_000,
        }


def calls_due(per_tenant: int, seconds: float, *flags: str, label: str = "agent") -> Results:
    """Scheduled calls of 500 tenants, due evenly over `seconds`: their lag and their cost."""
    count = TENANTS * per_tenant
    with processes.folder() as data, processes.receiver() as receiver, processes.server(data, *flags) as server:
        began = time.perf_counter()
        due = processes.now_us() + int(10_000_000 + count * 1_500)
        result = processes.load(
            server.port, receiver.port, due_us=due, count=count, connections=50, tenants=TENANTS, spread=seconds
        )
        submitting = time.perf_counter() - began
        ahead = (due - processes.now_us()) / 1e6
        if ahead < 0:
            raise RuntimeError("submitting took longer than planned; calls were due before all were submitted")
        time.sleep(ahead)
        before = server.cpu_s()
        seen = wait_for(receiver.port, result["requests"], seconds + 60)
        cpu = server.cpu_s() - before
        stats = stats_of(receiver.port)
        time.sleep(1.0)
        results = {
            f"{label} {count} due in {seconds:g} s, submits per s": result["requests"] / submitting,
            f"{label} due, lag p50 ms": stats["lag_p50_ms"],
            f"{label} due, lag p99 ms": stats["lag_p99_ms"],
            f"{label} due, lag max ms": stats["lag_max_ms"],
            f"{label} due, early": stats["early"],
            f"{label} due, lost": result["requests"] - seen,
            f"{label} due, CPU share": cpu / seconds,
            f"{label} due, memory MiB": server.memory_mib(),
        }
        unfinished = _unfinished(data / "agent.db")
        return results if unfinished is None else {**results, f"{label} due, unfinished 1 s after": unfinished}


def _unfinished(path: Path) -> int | None:
    """Number of unfinished calls; None if they are in another database."""
    if not path.exists():
        return None
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return int(
            connection.execute(
                "SELECT count(*) FROM service_calls WHERE status IN ('Scheduled', 'Running')"
            ).fetchone()[0]
        )
