"""Starts and stops the processes of a benchmark: the real server, the receiver, and load processes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_LINE = re.compile(r"serves on http://(.+?):(\d+) ")


@dataclass
class Running:
    """A process and the port that it listens on."""

    process: subprocess.Popen[str]
    port: int

    def cpu_s(self) -> float:
        """Processor seconds so far, of all threads, and of the workers."""
        return sum(sum(times(pid)[:2]) for pid in self._pids()) * TICK_S

    def memory_mib(self) -> float:
        """Anonymous resident memory, without page cache, also of the workers."""
        statuses = [Path(f"/proc/{pid}/status").read_text() for pid in self._pids()]
        lines = [line for status in statuses for line in status.splitlines()]
        return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024

    def _pids(self) -> list[int]:
        return [self.process.pid, *children(self.process.pid)]

    def end(self) -> None:
        """Sends SIGTERM, and SIGKILL after a minute."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class ProcessorTime(Protocol):
    """A database server that was started for the benchmark."""

    def cpu_s(self) -> float:
        """Processor seconds so far of all of its processes."""


@dataclass
class Served:
    """How servers are started. `store_url`: the database for timers, where each data folder has its own schema, database or
    table, None for SQLite files; `database`, if its CPU time is to be measured; `workers` processes behind one port;
    `source`, a folder with another version of the package; `program`, the module that is run."""

    store_url: str | None = None
    database: ProcessorTime | None = None
    workers: int = 1
    source: Path | None = None
    program: str = "tocsin"


#: How `server` starts servers.
served = Served()

#: Settings of nodes that belong together. No load balancer uses them, so they need not wait for one.
CLUSTER = {"TOCSIN_CLUSTER_SECRET": "the benchmark's secret", "TOCSIN_CLUSTER_LEAVE_DELAY": "50ms"}

#: How long the owners of shards must not have changed before several workers count as ready.
_SETTLED_S = 1.5


@contextlib.contextmanager
def server(data_dir: Path, *flags: str) -> Iterator[Running]:
    """Runs `tocsin serve` on a free port and waits until it is ready; its log is in the data folder."""
    environment = {}
    if served.store_url is not None:
        name = "bench_" + hashlib.sha256(bytes(data_dir.resolve())).hexdigest()[:16]
        url = urlsplit(served.store_url)
        if url.scheme in ("mysql", "cassandra", "mongodb", "mongodb+srv"):
            url = url._replace(path=f"/{name}")
        if url.scheme == "dynamodb":
            url = url._replace(netloc=name)
        # A URL without a host, such as memory://, would lose its slashes.
        flags = (*flags, "--store", url.geturl() if url.netloc else served.store_url)
        environment["TOCSIN_POSTGRESQL_SCHEMA"] = name
    if served.workers > 1:
        flags = (*flags, "--workers", str(served.workers))
        environment |= CLUSTER
    with serving(data_dir, *flags, environment=environment) as running:
        _wait_until_ready(running.port, served.workers)
        yield running


@contextlib.contextmanager
def serving(data_dir: Path, *flags: str, environment: Mapping[str, str]) -> Iterator[Running]:
    """Runs `tocsin serve` on a free port and waits until it listens; it need not own any shards yet."""
    source = {} if served.source is None else {"PYTHONPATH": str(served.source)}
    with (data_dir / "server.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", served.program, "serve", "--port", "0", "--data-dir", str(data_dir), *flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            env={**os.environ, **environment, **source},
        )  # fmt: skip
    assert process.stdout is not None
    try:
        for line in process.stdout:
            found = _LINE.search(line)
            if found:
                running = Running(process, int(found[2]))
                break
        else:
            raise RuntimeError((data_dir / "server.log").read_text()[-2000:])
        yield running
    finally:
        if process.poll() is None:
            Running(process, 0).end()


def _wait_until_ready(port: int, workers: int, timeout_s: float = 60.0) -> None:
    """Waits until every shard is owned; on a shared database nodes claim them some seconds after their start. Several
    workers each own some, and have settled."""
    deadline, since = time.monotonic() + timeout_s, time.monotonic()
    owners: list[str | None] = []
    while True:
        former, owners = owners, [shard["owner"] for shard in cluster_of(port)["shards"]]
        if owners != former or None in owners or len(set(owners)) != workers:
            since = time.monotonic()
        if owners and None not in owners and (workers == 1 or time.monotonic() - since > _SETTLED_S):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"not all shards were claimed within {timeout_s:g} s")
        time.sleep(0.05)


def cluster_of(port: int) -> dict[str, Any]:
    """The server's view of nodes and shards."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/cluster", timeout=10) as answer:
        cluster: dict[str, Any] = json.load(answer)
    return cluster


def metric(port: int, name: str) -> float:
    """Sum of a metric over its labels, from the server's /metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(rf"{name}[ {{]", line))


@contextlib.contextmanager
def receiver() -> Iterator[Running]:
    """Runs the receiver process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.receiver"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield Running(process, int(process.stdout.readline()))
    finally:
        process.stdin.close()
        process.wait(10)


def start_load(port: int | str, receiver_port: int, *, due_us: int, **options: Any) -> subprocess.Popen[str]:
    """Starts a load process; `finish` waits for it. `port` may be several, separated by commas."""
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    return subprocess.Popen(
        [sys.executable, "-m", "bench.load", f"--port={port}", f"--receiver=http://127.0.0.1:{receiver_port}/hook",
         f"--due-us={due_us}", *flags],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str], *, failing: bool = False) -> dict[str, Any]:
    """Waits for a load process and returns its measurements. Raises RuntimeError if requests failed, unless they may be
    `failing`."""
    out, _ = process.communicate()
    result: dict[str, Any] = json.loads(out)
    if result["failures"] and not failing:
        raise RuntimeError(f"{result['failures']} requests failed, the first: {result['first_failure']}")
    return result


def load(port: int | str, receiver_port: int, *, due_us: int, **options: Any) -> dict[str, Any]:
    """Runs a load process and returns its measurements. Raises RuntimeError if requests failed."""
    return finish(start_load(port, receiver_port, due_us=due_us, **options))


def sdk_load(ports: str, prefix: str, *, owners: bool, **options: int) -> dict[str, float]:
    """Runs a load process of the SDK on nodes with these ports and returns its measurements."""
    flags = [f"--{name}={value}" for name, value in options.items()] + ["--owners"] * owners
    command = [sys.executable, "-m", "bench.sdk_load", f"--ports={ports}", f"--prefix={prefix}", *flags]
    result: dict[str, float] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return result


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder on the disk to be measured (that of the working folder)."""
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=".") as name:
        yield Path(name)


def times(pid: int) -> list[int]:
    """Ticks of a process: user, system, and both of its ended children."""
    return [int(text) for text in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:15]]


def children(pid: int) -> list[int]:
    """The processes that this one has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def now_us() -> int:
    """Wall clock, microseconds since 1970."""
    return time.time_ns() // 1_000
