"""The stand-in for MongoDB, in a temporary folder, on a free port: a server that speaks MongoDB's protocol.

It has transactions, conflicts, snapshots, validators and indexes like MongoDB's. It is a replica set of one member: it shows
no elections, no rollbacks and no lost majority, and neither MongoDB's plans nor its speed. Its licence is the GPL: tests
start its program, nothing imports it.
"""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

from tests.support.needs import lacking
from tests.support.program import ServerProgram

#: MongoDB gives its storage engine four threads for eviction, the stand-in one. With one, pages that all transactions write
#: were not evicted after some minutes of load; each access to them then slept, and nothing was answered for minutes.
_STORAGE_ENGINE = "eviction=(threads_min=4,threads_max=8),eviction_dirty_trigger=60,eviction_updates_trigger=60"


class MongoServer(ServerProgram):
    """One server. With `synced` it syncs each commit to disk, as MongoDB does for a majority; it keeps its port when started
    again. `standalone` starts one outside a replica set."""

    def __init__(self, *, synced: bool = True, standalone: bool = False) -> None:
        self._program = _program()
        self._flags = ["--sync-on-commit"] * synced + ["--standalone"] * standalone
        super().__init__("mongodb")

    def command(self, port: int) -> list[str]:
        return [self._program, "--host", "127.0.0.1", "--port", str(port),
                "--storage-path", str(self.folder / "data"), "--log-level", "WARNING", *self._flags]  # fmt: skip

    def environment(self) -> dict[str, str]:
        return {"WIREDTIGER_CONFIG": _STORAGE_ENGINE}

    def url(self, database: str, port: int | None = None) -> str:
        """How to reach a database, whether it exists or not; through another port where one stands for the server. The
        server announces its own port, so that a client that looked for the replica set would pass by a proxy."""
        return f"mongodb://127.0.0.1:{port or self.port}/{database}?directConnection=true"

    def new_url(self) -> str:
        """The URL of a database that doesn't exist yet."""
        return self.url(f"t{uuid.uuid4().hex}")


def _program() -> str:
    program = Path(sys.executable).with_name("secantusd-py")
    if not program.exists():
        lacking("mongodb", "there is no secantusd-py; `make setup` installs it")
    return str(program)
