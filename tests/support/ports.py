"""Free ports, and waiting for a server to listen on one."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import time
from functools import cache
from pathlib import Path

from tests.support.patience import PATIENCE_S

#: Browsers and the `fetch` of Node.js call no server on the ports of some other protocols; 10080 is the last of them.
_FIRST = 10_081
#: Of fewer ports, tests that run at the same time would choose the same now and then.
_PORTS_LEAST = 5_000
_TRIES = 100
_random = random.SystemRandom()


def free_port() -> int:
    """A loopback port that was free a moment ago. It is none of those that the system hands out, if there are enough others:
    the many servers and connections of other tests would take one of those before it is used, now and then."""
    for _ in range(_TRIES):
        port = _random.randrange(_FIRST, _handed_out()) if _handed_out() - _FIRST >= _PORTS_LEAST else 0
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise OSError(f"no port is free between {_FIRST} and {_handed_out()}")


@cache
def _handed_out() -> int:
    """The first of the ports that the system gives to whoever names none."""
    known = Path("/proc/sys/net/ipv4/ip_local_port_range")
    # Elsewhere those of RFC 6335.
    return int(known.read_text().split()[0]) if known.exists() else 49_152


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
