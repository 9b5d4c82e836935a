"""Starts `tocsin` in processes that are forked from one that has imported it.

Importing takes three quarters of the processor's time that a server needs to start, and the tests start hundreds. A forked
process is one of its own as any other: with its own arguments, environment and folder, and with an end that only it has.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

#: What a server and the commands that ask it import, most of it only when they run.
IMPORTED = (
    "tocsin.cli.app", "tocsin.cli.client", "tocsin.cli.rows", "httpcore",
    "tocsin.cli.serving", "tocsin.server.running", "tocsin.server.agent", "tocsin.stores.sqlite",
    "tocsin.stores.postgresql", "typer._adapters", "uvloop", "uvicorn.lifespan.off", "uvicorn.protocols.websockets.auto",
)  # fmt: skip
#: Variables with other names may be of effect before the first line of Python, or while it imports.
_READ_LATE = "TOCSIN_"
_REQUEST_BYTES_MAX = 200_000
#: In a request: standard input, output and error, and where to write how the process ended.
_FDS = 4
_REPOSITORY = Path(__file__).parents[2]


def suits(env: Mapping[str, str]) -> bool:
    """Whether a process with these additional variables can be forked."""
    return all(name.startswith(_READ_LATE) for name in env)


class PreloadedProcess(asyncio.Protocol):
    """A running process, used as one of `asyncio.subprocess`."""

    def __init__(self) -> None:
        self.pid = 0
        self.returncode: int | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        loop = asyncio.get_running_loop()
        self._started: asyncio.Future[None] = loop.create_future()
        self._ended: asyncio.Future[None] = loop.create_future()
        self._received = b""

    async def wait(self) -> int:
        """Returns its exit code, or the negative number of the signal that ended it."""
        await asyncio.shield(self._ended)
        assert self.returncode is not None
        return self.returncode

    async def communicate(self) -> tuple[bytes, bytes]:
        """Returns all that it writes to standard output and standard error."""
        assert self.stdout is not None and self.stderr is not None
        out, err = await asyncio.gather(self.stdout.read(), self.stderr.read())
        await self.wait()
        return out, err

    def send_signal(self, number: int) -> None:
        """Raises ProcessLookupError if it has ended."""
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def data_received(self, data: bytes) -> None:
        """A line has its number, a second one how it ended."""
        self._received += data
        lines = self._received.split(b"\n")[:-1]
        if lines and not self._started.done():
            self.pid = int(lines[0])
            self._started.set_result(None)
        if len(lines) > 1:
            self.returncode = int(lines[1])

    def connection_lost(self, error: Exception | None) -> None:
        """It has ended."""
        for future in (self._started, self._ended):
            if not future.done():
                future.set_result(None)


async def start(arguments: Sequence[str], env: Mapping[str, str], stderr: int | None = None) -> PreloadedProcess:
    """Starts `tocsin` with these arguments, in this environment and no other, and in the current folder. Its output can be
    read from the process, standard error too unless it has a file."""
    process = PreloadedProcess()
    ours, theirs = socket.socketpair()
    await asyncio.get_running_loop().create_connection(lambda: process, sock=ours)
    process.stdout, stdout = await _pipe()
    if stderr is None:
        process.stderr, its_stderr = await _pipe()
    else:
        its_stderr = os.dup(stderr)
    stdin = os.open(os.devnull, os.O_RDONLY)
    try:
        pass_on(arguments, env, str(Path.cwd()), (stdin, stdout, its_stderr, theirs.fileno()))
    finally:
        theirs.close()
        os.close(stdin)
        os.close(stdout)
        os.close(its_stderr)
    await process._started
    assert process.pid, "the process from which others are forked has ended"
    return process


def pass_on(arguments: Sequence[str], env: Mapping[str, str], folder: str, fds: Sequence[int]) -> None:
    """Has `tocsin` run with these arguments, in this environment and folder. `fds` are its standard input, output and error,
    and a socket that gets the number of the process, and then how it ended."""
    request = json.dumps({"arguments": list(arguments), "env": dict(env), "folder": folder}).encode()
    assert len(request) <= _REQUEST_BYTES_MAX
    socket.send_fds(_forked_parent or _parent(), [request], fds)


async def _pipe() -> tuple[asyncio.StreamReader, int]:
    reader = asyncio.StreamReader(limit=2**20)
    readable, writable = os.pipe()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(readable, "rb", 0)
    )
    return reader, writable


_forked_parent: socket.socket | None = None


def fork_from_here() -> None:
    """From now on processes are forked from a copy of this one, which is prepared. The copy ends with a SystemExit, which
    nothing may handle."""
    global _forked_parent
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        if os.fork() == 0:
            control.close()
            sys.exit(_run_requested(theirs))
    _forked_parent = control


@cache
def _parent() -> socket.socket:
    """Leads to the process from which others are forked. It ends, with all of them, when this one ends."""
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", __name__, str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, cwd=_REPOSITORY)
    atexit.register(process.wait)
    atexit.register(control.close)
    return control


# ---------------------------------------------------------------------- in the process from which others are forked


def _requested(control: socket.socket) -> dict[str, Any] | None:
    """Forks a process for each request. In a forked process, returns its request; here, None when nobody is left to ask."""
    woken, wake = socket.socketpair()
    woken.setblocking(False)
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running: dict[int, socket.socket] = {}
    selector = selectors.DefaultSelector()
    selector.register(control, selectors.EVENT_READ)
    selector.register(woken, selectors.EVENT_READ)
    while True:
        ready = {key.fileobj for key, _ in selector.select()}
        if woken in ready:
            woken.recv(1_000)
            _reap(running)
        if control in ready:
            message, fds, _, _ = socket.recv_fds(control, _REQUEST_BYTES_MAX, _FDS)
            if not message:
                for pid in running:
                    os.kill(pid, signal.SIGKILL)
                return None
            if (pid := os.fork()) == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                selector.close()
                for each in (control, woken, wake, *running.values()):
                    each.close()
                for number, fd in enumerate(fds[:3]):
                    os.dup2(fd, number)
                for fd in fds:
                    os.close(fd)
                return dict(json.loads(message))
            for fd in fds[:3]:
                os.close(fd)
            running[pid] = socket.socket(fileno=fds[3])
            with contextlib.suppress(OSError):
                running[pid].send(b"%d\n" % pid)


def _reap(running: dict[int, socket.socket]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        # A test that is over has closed its end.
        with running.pop(pid) as asker, contextlib.suppress(OSError):
            asker.send(b"%d\n" % os.waitstatus_to_exitcode(status))


def prepare() -> None:
    """Does what each forked process would do again."""
    # As the console script does before it imports httpx.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    for name in IMPORTED:
        importlib.import_module(name)
    sys.modules["tocsin.cli.app"].program()
    importlib.import_module("tests.support.compiled_templates").keep_compiled()
    gc.collect()
    gc.freeze()


def _main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    prepare()
    _run_requested(control)


def _run_requested(control: socket.socket) -> None:
    request = _requested(control)
    if request is not None:
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["folder"])
        sys.argv = ["tocsin", *request["arguments"]]
        try:
            sys.modules["tocsin.cli.app"].main()
        except SystemExit as end:
            _exit(end)


def _exit(end: SystemExit) -> NoReturn:
    """Ends as the interpreter does, but doesn't take apart all that was imported, which takes a tenth of a second."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    assert isinstance(end.code, int)
    os._exit(end.code)


if __name__ == "__main__":
    _main()
