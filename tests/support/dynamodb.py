"""DynamoDB Local, a real server that speaks DynamoDB's protocol, in a temporary folder, on a free port.

It knows transactions, tokens and limits as the service does. It never throttles, is never in conflict, leaves nothing
unprocessed, and ignores credentials: `tests.support.dynamodb_proxy` adds those faults. It answers a moment before it has
written to disk, so that SIGKILL may lose the latest transaction.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from tests.support.needs import java_of
from tests.support.program import ServerProgram

_PROGRAM = Path(__file__).parents[2] / "build" / "dynamodb-local"

#: Any will do; without some the driver sends nothing.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}


class DynamoServer(ServerProgram):
    """One server. With `kept` its data survive `kill` and `start`; otherwise they are in its memory, which is faster."""

    def __init__(self, *, kept: bool = False, heap_mb: int = 384) -> None:
        self._java = java_of("dynamodb", "dynamodb-local", _PROGRAM / ".ready")
        super().__init__("dynamodb")
        self._heap_mb = heap_mb
        self._place = ["-dbPath", str(self.folder)] if kept else ["-inMemory"]
        os.environ.update(CREDENTIALS)

    def command(self, port: int) -> list[str]:
        return [self._java, f"-Xmx{self._heap_mb}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                f"-Dsqlite4java.library.path={_PROGRAM}/lib", "-cp", f"{_PROGRAM}/lib/*:{_PROGRAM}/classes",
                "Loopback", "-disableTelemetry", "-port", str(port), "-sharedDb", *self._place]  # fmt: skip

    def environment(self) -> dict[str, str]:
        return {"DDB_LOCAL_TELEMETRY": "0"}

    def url(self, table: str, port: int | None = None) -> str:
        """How to reach a table, whether it exists or not; through another port where one stands for the server."""
        return f"dynamodb://{table}?region=eu-west-1&endpoint=http://127.0.0.1:{port or self.port}"

    def new_url(self) -> str:
        """The URL of a table that doesn't exist yet."""
        return self.url(f"t{uuid.uuid4().hex}")
