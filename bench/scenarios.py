"""The scenarios of `python -m bench`: each starts the processes that it needs and returns named numbers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from bench import processes
from bench.wire import request
from tocsin.model.instants import format_instant

Results = dict[str, Any]
_HOUR_US = 3_600_000_000
#: How timers created a little after another are due: a little later than that one, or at any instant of a day, as they are
#: where each user chooses one. Stores that keep rows in the order of their instants write to one place, or to all.
_IN_ORDER: dict[str, Any] = {"spread": 10}
SCATTERED: dict[str, Any] = {"spread": 86_400, "order": "random"}
#: Timers whose creation shows how long creating others will take; and how much longer than that it may take.
_TRIAL, _MARGIN = 4_000, 2.5
#: What a burst costs its server.
DRAIN_CPU = "burst drain, CPU s per 1,000"
#: Results of the last callbacks are written within this time.
_WRITTEN_S = 0.5
#: Callbacks a second beside the mixed load.
MIXED_RATE = 500


class Costs:
    """Processor time used since now: by the server, and by the database if the benchmark has started one."""

    def __init__(self, server: processes.Running) -> None:
        self._server = server
        self._before = self._used()

    def _used(self) -> dict[str, float]:
        used = {"CPU s per 1,000": self._server.cpu_s()}
        if processes.served.database is not None:
            used["database's CPU s per 1,000"] = processes.served.database.cpu_s()
        return used

    def of(self, name: str, count: int) -> Results:
        """The results for `count` timers."""
        return {f"{name}, {kind}": (now - self._before[kind]) / count * 1_000 for kind, now in self._used().items()}


def _requests(name: str, result: Results, costs: Costs) -> Results:
    """The results of a load process whose requests have one timer each."""
    return {
        f"{name}, per s": result["per_s"],
        f"{name}, p50 ms": result["p50_ms"],
        f"{name}, p99 ms": result["p99_ms"],
        **costs.of(name, result["timers"]),
    }


def count_of(port: int) -> int:
    """Number of webhooks that the receiver on this port has counted."""
    return int(stats_of(port, "count")["count"])


def stats_of(port: int, what: str = "reset") -> dict[str, Any]:
    """Statistics of the receiver. `reset` returns all of them and starts over; `count` returns only the count."""
    import socket

    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(request("/stats", what.encode()))
        answer = b""
        while b"\r\n\r\n" not in answer or not answer.endswith(b"}"):
            answer += connection.recv(65_536)
    stats: dict[str, Any] = json.loads(answer.split(b"\r\n\r\n", 1)[1])
    return stats


def wait_for(port: int, count: int, timeout_s: float) -> int:
    """Waits until the receiver has counted `count` webhooks or the timeout is over; returns its count."""
    deadline = time.monotonic() + timeout_s
    while (seen := count_of(port)) < count and time.monotonic() < deadline:
        time.sleep(0.05)
    return seen


def create_single(count: int, *, scattered: bool = False) -> Results:
    """Single creates from 64 connections, due an hour later, each a little later than the one before; or scattered over the
    day after."""
    name = "create single, scattered" if scattered else "create single"
    with processes.folder() as data, processes.receiver() as receiver, processes.server(data) as server:
        options: dict[str, Any] = {"connections": 64, **(SCATTERED if scattered else _IN_ORDER)}
        processes.load(
            server.port, receiver.port, due_us=processes.now_us() + _HOUR_US, count=count // 5, prefix="w", **options
        )
        costs = Costs(server)
        result = processes.load(
            server.port, receiver.port, due_us=processes.now_us() + _HOUR_US, count=count, **options
        )
        return _requests(name, result, costs)


def create_batch(count: int, *, scattered: bool = False) -> Results:
    """Creates of 1,000 timers a request from 4 connections, due as those of `create_single`."""
    name = "create batch, scattered" if scattered else "create batch"
    with processes.folder() as data, processes.receiver() as receiver, processes.server(data) as server:
        costs = Costs(server)
        result = processes.load(
            server.port,
            receiver.port,
            due_us=processes.now_us() + _HOUR_US,
            count=count,
            batch=1_000,
            connections=4,
            **(SCATTERED if scattered else _IN_ORDER),
        )
        return {
            f"{name}, per s": result["per_s"],
            f"{name}, p99 ms per request": result["p99_ms"],
            **costs.of(name, result["timers"]),
        }


def change(operation: str, count: int, *, scattered: bool = False) -> Results:
    """Updates or deletes of pending timers, one a request from 64 connections. Scattered: the timers are due at any instant
    of a day, and updates move them to any other."""
    name = f"{operation}, scattered" if scattered else operation
    with processes.folder() as data, processes.receiver() as receiver, processes.server(data) as server:
        shape = SCATTERED if scattered else _IN_ORDER
        options: dict[str, Any] = {"due_us": processes.now_us() + _HOUR_US, "count": count, "connections": 64, **shape}
        processes.load(server.port, receiver.port, batch=1_000, **options)
        costs = Costs(server)
        result = processes.load(server.port, receiver.port, operation=operation, **options)
        return _requests(name, result, costs)


def mixed(count: int, *, scattered: bool = False) -> Results:
    """Creates, updates, gets and deletes from 64 connections, as fast as they are answered, while other timers fire at
    MIXED_RATE. The created timers are due together, or scattered over a day."""
    name = "mixed, scattered" if scattered else "mixed"
    with processes.folder() as data, processes.receiver() as receiver, processes.server(data) as server:
        seconds = 30 + count / 1_000
        due_later = processes.now_us() + int(seconds * 1e6) + _HOUR_US
        firing = due_evenly(server, receiver, MIXED_RATE, seconds)
        time.sleep(max((firing - processes.now_us()) / 1e6 + 1, 0))
        stats_of(receiver.port)
        costs, began = Costs(server), time.monotonic()
        result = processes.load(
            server.port, receiver.port, operation="mixed", due_us=due_later, count=count, connections=64, prefix="m",
            **(SCATTERED if scattered else {}),
        )  # fmt: skip
        if time.monotonic() - began > seconds:
            raise RuntimeError("the load took longer than planned; no timers fired beside its end")
        measured, stats = _requests(name, result, costs), stats_of(receiver.port)
        return measured | {
            f"{name}, lag at {MIXED_RATE}/s beside, p50 ms": stats["lag_p50_ms"],
            f"{name}, lag at {MIXED_RATE}/s beside, p99 ms": stats["lag_p99_ms"],
            f"{name}, early": stats["early"],
        }


def due_evenly(server: processes.Running, receiver: processes.Running, rate: int, seconds: float) -> int:
    """Creates timers that are due evenly at `rate` a second; returns the instant at which the first is due, a moment later.
    Raises RuntimeError if that has passed."""
    count = steady_count(rate, seconds)
    due = instant_after_creating(server, receiver, count)
    processes.load(server.port, receiver.port, due_us=due, count=count, batch=1_000, connections=4, spread=seconds)
    if processes.now_us() > due:
        raise RuntimeError("creating took longer than planned; timers were due before all were created")
    return due


def instant_after_creating(server: processes.Running, receiver: processes.Running, count: int) -> int:
    """An instant at which so many timers can be due that are created from now on, in batches of 1,000."""
    trial = processes.load(
        server.port, receiver.port, due_us=processes.now_us() + _HOUR_US, count=_TRIAL, batch=1_000, connections=4,
        prefix="trial",
    )  # fmt: skip
    return processes.now_us() + 3_000_000 + int(_MARGIN * count / trial["per_s"] * 1e6)


def steady_count(rate: int, seconds: float) -> int:
    """Number of timers that are due evenly at `rate` a second; each of four connections creates the same number."""
    return int(rate * seconds) // 4 * 4


def burst_with_flows(count: int) -> Results:
    """The same beside a burst of timers with a flow key each, under limits that never close."""
    plain, limited = burst(count), burst(count, flow="customer:")
    return {f"with flows: {name}": value for name, value in limited.items()} | {
        "with flows: CPU of the drain, ratio": limited[DRAIN_CPU] / max(plain[DRAIN_CPU], 1e-9)
    }


def burst_in_batches(count: int) -> Results:
    """The same with 100 timers in a request, beside a burst of single ones in the same run."""
    plain, together = burst(count), burst(count, batch=100)
    drain, cpu = "burst drain, fires per s", "burst drain, receiver's CPU s per 1,000"
    return {f"in batches: {name}": value for name, value in together.items()} | {
        f"single: {drain}": plain[drain],
        f"single: {DRAIN_CPU}": plain[DRAIN_CPU],
        f"single: {cpu}": plain[cpu],
        "in batches: drain, ratio": together[drain] / max(plain[drain], 1e-9),
        "in batches: CPU of the drain, ratio": together[DRAIN_CPU] / max(plain[DRAIN_CPU], 1e-9),
        "in batches: receiver's CPU, ratio": together[cpu] / max(plain[cpu], 1e-9),
    }


def _limit_each_key(server: processes.Running, match: str) -> None:
    rule = {"namespace": "default", "match": match, "perKey": {"rate": {"count": 1000, "per": "1s"}, "parallelism": 10}}
    _ask(server, "flows/put", rule)


def _ask(server: processes.Running, operation: str, body: dict[str, Any]) -> None:
    asked = urllib.request.Request(
        f"http://127.0.0.1:{server.port}/api/v1/{operation}",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    urllib.request.urlopen(asked).close()


def burst(count: int, flow: str = "", batch: int = 0) -> Results:
    """Timers due at the same instant, fired at full speed, while another client creates 200 a second. With a prefix of
    `flow` keys, a rule limits each of them; with `batch`, so many are sent in one request."""
    with processes.folder() as data, processes.receiver() as receiver, processes.server(data) as server:
        if flow:
            _limit_each_key(server, flow)
        if batch:
            _ask(server, "namespaces/update", {"name": "default", "callbackBatch": {"max": batch}})
        due = instant_after_creating(server, receiver, count)
        processes.load(server.port, receiver.port, due_us=due, count=count, batch=1_000, connections=4, flow=flow)
        ahead = (due - processes.now_us()) / 1e6
        if ahead < 0:
            raise RuntimeError("creating took longer than planned; the burst was due before it was complete")
        time.sleep(max(ahead - 0.3, 0))
        costs, receiver_before = Costs(server), receiver.cpu_s()
        beside = start_creating_beside(server, receiver, due)
        seen = wait_for(receiver.port, count, 120)
        used = costs.of("burst drain", count)
        stats = stats_of(receiver.port)
        api = processes.finish(beside, failing=True)
        return {
            "burst drain, fires per s": stats["count"] / max(stats["seconds"], 1e-9),
            "burst drain, lost": count - seen,
            "burst drain, early": stats["early"],
            **used,
            "burst drain, receiver's CPU s per 1,000": (receiver.cpu_s() - receiver_before) / count * 1_000,
            "API during the drain, p50 ms": api["p50_ms"],
            "API during the drain, p99 ms": api["p99_ms"],
            "API during the drain, failed": api["failures"],
            "memory after burst, MiB": server.memory_mib(),
        }


def start_creating_beside(server: processes.Running, receiver: processes.Running, due: int) -> subprocess.Popen[str]:
    """Starts to create 200 timers a second, for six seconds, which are due an hour after those of a burst."""
    return processes.start_load(
        server.port, receiver.port, due_us=due + _HOUR_US, count=1_200, connections=8, rate=200, prefix="beside"
    )


def steady(rate: int, seconds: float) -> Results:
    """Lag and cost of timers that are due evenly at `rate` a second."""
    with processes.folder() as data, processes.receiver() as receiver, processes.server(data) as server:
        due, count = due_evenly(server, receiver, rate, seconds), steady_count(rate, seconds)
        time.sleep(max((due - processes.now_us()) / 1e6 - 0.2, 0))
        costs = Costs(server)
        seen = wait_for(receiver.port, count, 30 + seconds)
        time.sleep(_WRITTEN_S)
        used, stats = costs.of(f"fire at {rate}/s", count), stats_of(receiver.port)
        return {
            f"lag at {rate}/s, p50 ms": stats["lag_p50_ms"],
            f"lag at {rate}/s, p99 ms": stats["lag_p99_ms"],
            f"lag at {rate}/s, max ms": stats["lag_max_ms"],
            f"lag at {rate}/s, early": stats["early"],
            f"lag at {rate}/s, lost": count - seen,
            **used,
        }


def pending(count: int, *, scattered: bool = False) -> Results:
    """Many timers due within a day, created in the order of their instants or scattered: the rate at which the last million
    is created, memory, idle CPU, time from restart to first fire."""
    last = min(count, 1_000_000)
    shape = SCATTERED if scattered else {"spread": 86_400}
    options: dict[str, Any] = {"batch": 1_000, "connections": 4, "seconds": 3_600, **shape}
    name = f"pending {count}, scattered" if scattered else f"pending {count}"
    with processes.folder() as data, processes.receiver() as receiver:
        with processes.server(data) as server:
            due = processes.now_us() + _HOUR_US
            made = 0
            if count > last:
                made = processes.load(server.port, receiver.port, due_us=due, count=count - last, **options)["timers"]
            result = processes.load(server.port, receiver.port, due_us=due, count=last, prefix="last", **options)
            if made + result["timers"] < count:
                raise RuntimeError(
                    f"only {made + result['timers']} of {count} timers were created within the time limit"
                )
            loaded_mib = server.memory_mib()
            time.sleep(3)
            before = server.cpu_s()
            time.sleep(10)
            idle = (server.cpu_s() - before) / 10
            # Due while the server is down, so that the first fire shows how long a restart takes.
            processes.load(server.port, receiver.port, due_us=processes.now_us() + 2_000_000, count=64, prefix="first")
            stats_of(receiver.port)
            server.process.kill()
            server.process.wait()
        time.sleep(2.5)
        began = processes.now_us()
        with processes.server(data) as server:
            wait_for(receiver.port, 64, 60)
            stats = stats_of(receiver.port)
            return {
                f"{name}, create per s over the last {last}": result["per_s"],
                f"{name}, memory MiB": loaded_mib,
                f"{name}, memory after restart MiB": server.memory_mib(),
                f"{name}, idle CPU share": idle,
                f"{name}, start to first fire s": (stats["first_at_us"] - began) / 1e6,
                **_file_mib(data, f"{name}, database MiB"),
            }


def _file_mib(data: Path, name: str) -> Results:
    """The size of SQLite's files; nothing for another store."""
    files = list(data.glob("tocsin.db*"))
    return {name: sum(file.stat().st_size for file in files) / 2**20} if files else {}


def schedules(count: int, minutes: int = 2) -> Results:
    """Schedules every minute, spread over it, while one-shot timers are due at 200 a second; and how long lists take then."""
    with processes.folder() as data, processes.receiver() as receiver, processes.server(data) as server:
        # They begin together, once all exist.
        start = processes.now_us() + 20_000_000 + count * 4_000
        declared = [
            {
                "id": f"schedule-{number:07}",
                "callbackUrl": f"http://127.0.0.1:{receiver.port}/hook",
                "every": "1m",
                "anchor": format_instant(start + number * 60_000_000 // count),
                "startAt": format_instant(start),
            }
            for number in range(count)
        ]
        definitions = Path(data) / "schedules.json"
        definitions.write_text(json.dumps({"schedules": declared}), encoding="utf-8")
        began = time.monotonic()
        address = f"http://127.0.0.1:{server.port}"
        applying = [sys.executable, "-m", "tocsin", "apply", "-f", str(definitions), "--server", address]
        subprocess.run(applying, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        created_s = time.monotonic() - began
        one_shot = 200 * 60 * minutes
        processes.load(
            server.port, receiver.port, due_us=max(start, processes.now_us()), count=one_shot, batch=1_000, connections=4,
            spread=60 * minutes,
        )  # fmt: skip
        time.sleep(max((start - processes.now_us()) / 1e6, 0))
        late = processes.now_us() - start
        stats_of(receiver.port)
        before = server.cpu_s()
        lists = []
        for number in range(60 * minutes):
            time.sleep(max((start + late + (number + 1) * 1_000_000 - processes.now_us()) / 1e6, 0))
            lists.append(_list_s(server.port))
        cpu = server.cpu_s() - before
        stats = stats_of(receiver.port)
        lists.sort()
        return {
            f"{count} schedules, created per s": count / created_s,
            f"{count} schedules, began late s": late / 1e6,
            f"{count} schedules, fires per s": stats["count"] / max(stats["seconds"], 1e-9),
            f"{count} schedules, CPU s per 1,000": cpu / max(stats["count"], 1) * 1_000,
            f"{count} schedules, lag p50 ms": stats["lag_p50_ms"],
            f"{count} schedules, lag p99 ms": stats["lag_p99_ms"],
            f"{count} schedules, lag max ms": stats["lag_max_ms"],
            f"{count} schedules, early": stats["early"],
            f"{count} schedules, list of 100 p50 ms": lists[len(lists) // 2] * 1_000,
            f"{count} schedules, list of 100 p99 ms": lists[len(lists) * 99 // 100] * 1_000,
            f"{count} schedules, memory MiB": server.memory_mib(),
        }


def _list_s(port: int) -> float:
    """How long a page of the list of schedules takes, in seconds."""
    body = json.dumps({"namespace": "default", "limit": 100}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/schedules/list", body, {"content-type": "application/json"}
    )
    began = time.monotonic()
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer.read()
    return time.monotonic() - began
