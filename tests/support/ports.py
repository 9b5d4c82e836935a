"""Free ports, and waiting for a server to listen on one."""

from __future__ import annotations

import socket
import subprocess
import time

from tests.support.patience import PATIENCE_S


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, process: subprocess.Popen[bytes], timeout_s: float = PATIENCE_S) -> None:
    """Returns when something listens; RuntimeError when the process ends first, TimeoutError when it takes too long."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None:
                raise RuntimeError(f"the server ended with exit code {process.returncode}") from None
            if time.monotonic() > deadline:
                raise TimeoutError(f"nothing listens on port {port} after {timeout_s:g} s") from None
            time.sleep(0.005)
