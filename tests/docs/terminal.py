"""A shell in which a reader's commands are typed, and one that a server keeps busy."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from tests.support.patience import PATIENCE_S

_END = "the block has ended"
#: How long a block may take: some start servers and type ten commands, each of which takes seconds on a busy machine.
_BLOCK_S = 4 * PATIENCE_S


class CommandFailed(AssertionError):
    """A command did not do what the page describes."""


class Terminal:
    """A bash process. The output of its commands, stdout and stderr together, is collected."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], cwd=folder, env=environment, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
        )  # fmt: skip
        # Removed with the page's own folder.
        self._blocks = Path(tempfile.mkdtemp(prefix="blocks-", dir=environment["HOME"]))
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.printed = ""
        threading.Thread(target=self._read, daemon=True).start()
        self._type("set -eu -o pipefail")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _type(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def run(self, text: str) -> str:
        """Types the block, and returns its output. Raises CommandFailed if one of its commands fails."""
        return self._run_until(text, _END)

    def start(self, text: str, ready: str) -> str:
        """Types a block that ends with a server, and returns when the server is ready."""
        return self._run_until(text, ready)

    def _run_until(self, text: str, awaited: str) -> str:
        # From a file, so that a command that reads its standard input doesn't get the rest of the block.
        block = self._blocks / "block.sh"
        block.write_text(text)
        self._type(f". {block} < /dev/null\necho {_END}")
        deadline, printed = time.monotonic() + _BLOCK_S, ""
        while awaited not in printed.lower():
            try:
                line = self._lines.get(timeout=deadline - time.monotonic())
            except (queue.Empty, ValueError):
                raise CommandFailed(f"{text}\nstill runs after {_BLOCK_S:g} s. It printed:\n{printed}") from None
            if line is None or (awaited != _END and line.strip() == _END):
                raise CommandFailed(f"{text}\nfailed. It printed:\n{printed}")
            printed += line
        self.printed += printed.replace(f"{_END}\n", "")
        return printed.replace(f"{_END}\n", "")

    def read_on(self) -> bool:
        """Waits briefly for a line of a server's output; False if the server has ended."""
        try:
            line = self._lines.get(timeout=0.2)
        except queue.Empty:
            return True
        self.printed += line or ""
        return line is not None

    def interrupt(self) -> None:
        """Sends Ctrl-C, and waits for the end of the command."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        os.killpg(self._process.pid, signal.SIGINT)
        self._process.wait(PATIENCE_S)
