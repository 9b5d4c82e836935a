"""The nodes of the soak."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.server import ServerProcess

#: A process of its own: one that is forked from a prepared one shares memory with that, and is measured with it.
PROGRAM = (sys.executable, "-m", "tests.drills.soak.measured")
#: Page caches that are full within minutes.
ENV = {
    "TOCSIN_EGRESS_ALLOW_PRIVATE": "true", "TOCSIN_PURGE_INTERVAL": "10s", "TOCSIN_SQLITE_CACHE_BYTES": "8MiB",
}  # fmt: skip
_SECRETS_KEY = "5f" * 32


def node(folder: Path, name: str, store: str | None, retention_s: int, *flags: str) -> ServerProcess:
    """A node, not started. Without `store` it uses SQLite. What has ended is kept for `retention_s`."""
    kept = f"{retention_s}s"
    env = ENV | {
        "TOCSIN_FAILURE_RETENTION": kept, "TOCSIN_AGENT_RETENTION": kept, "TOCSIN_AGENT_OUTBOX_RETENTION": kept,
        "TOCSIN_HISTORY_RETENTION": kept, "TOCSIN_AUDIT_RETENTION": kept,
    }  # fmt: skip
    if store is None:
        return ServerProcess(folder / name, *flags, env=env, program=PROGRAM)
    env |= {"TOCSIN_NODE_NAME": name, "TOCSIN_SECRETS_KEY": _SECRETS_KEY}
    return ServerProcess(folder / name, "--store", store, *flags, env=env, program=PROGRAM)
