"""`tocsin exec`: runs a command and pings a monitor when it begins and ends.

The command comes first: it is started before anything is sent, has this process's standard streams, files and file mode mask,
and no failure to reach the server changes what it does or its exit code.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.command import Failure, WrongUsage
from tocsin.cli.options import ServerOptions, client_of

if TYPE_CHECKING:
    import httpx

#: What is passed on to the command, as far as the platform has it; the others act on this process alone.
_FORWARDED = [
    getattr(signal, name)
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
]
#: Those that a terminal sends to all processes in its foreground, so to the command, too.
_OF_THE_TERMINAL = frozenset({signal.SIGINT, getattr(signal, "SIGQUIT", signal.SIGINT)})
#: Whether the kernel reports who has sent a signal: itself, as for a terminal, or a process.
_SENDER_IS_KNOWN = sys.platform == "linux"
#: As shells have it: for a command that a signal ended, that is not there, and that may not be run.
_SIGNALED, _NOT_FOUND, _NOT_EXECUTABLE = 128, 127, 126
#: How long a try of a ping may wait in each of its phases, tries of the last one, and the pause between them.
_TRY_S, _TRIES, _PAUSE_S = 5.0, 3, 1.0
#: From the command's end to ours, at most: the job is done by then, and whoever waits for it should not wait long for this.
_END_S = 15.0

Ping = Callable[[int | None], None]


def run_monitored(
    *,
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND...", help="The command and its arguments, behind --.")
    ],
    monitor: Annotated[
        str | None, typer.Option(metavar="ID", help="The monitor to ping, with a key that may write.")
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="The monitor's namespace.")
    ] = "default",
    ping_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The monitor's ping URL instead, which needs no key.")
    ] = None,
    server: ServerOptions,
) -> None:
    """Run a command, and report to a monitor when it begins and ends, and with which exit code.

    Its input, output and signals are those of this process, and so is its exit code, whether or not the server is reached.
    """
    if (monitor is None) == (ping_url is None):
        raise WrongUsage("give either --monitor with the id of a monitor, or --ping-url with its ping URL")
    ping = _by_url(ping_url) if ping_url is not None else _by_key(server, namespace, str(monitor))
    try:
        process = _Process(command)
    except OSError as error:
        code = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
        output.note(f"tocsin exec: {command[0]} can't be run: {error.strerror or error}")
        _report_end(ping, code, time.monotonic() + _END_S)
        raise typer.Exit(code) from None
    over = threading.Event()
    start = _in_background(_attempt, ping, None, 1, over)
    code = process.wait()
    deadline = time.monotonic() + _END_S
    # A start that arrives after the end would begin another run. One that is under way gets the time of a try; a later one
    # is not sent.
    start.join(_TRY_S)
    over.set()
    _report_end(ping, code, deadline)
    raise typer.Exit(code)


class _Process:
    """The running command. Signals reach it from before its start on."""

    def __init__(self, command: list[str]) -> None:
        """Raises OSError if it can't be started."""
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        former = {number: signal.getsignal(number) for number in _FORWARDED}
        for number, handler in former.items():
            # What is ignored stays so, here and, by inheritance, in the command: nohup.
            if handler is not signal.SIG_IGN:
                signal.signal(number, self._forward)
        # These are waited for instead of handled, because a handler does not learn who has sent them.
        self._watched = {each for each in _OF_THE_TERMINAL if _SENDER_IS_KNOWN and former[each] is not signal.SIG_IGN}
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._watched) if self._watched else None
        try:
            self._process = subprocess.Popen(
                command,
                # Files that are open may be locks that the command should hold.
                close_fds=False,
                umask=_inherited_umask(),
                preexec_fn=None if mask is None else lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask),
            )
        except BaseException:
            if mask is not None:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            for number, handler in former.items():
                signal.signal(number, handler)
            raise
        while self._early:
            self._send(self._early.pop(0))
        if self._watched:
            _in_background(self._watch)

    def wait(self) -> int:
        """The exit code, once the command has ended: that of shells if a signal ended it."""
        assert self._process is not None
        self._process.wait()
        # From here on they end this process, but not those that the command has got, too.
        if self._watched:
            while signal.sigtimedwait(self._watched, 0) is not None:
                pass
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._watched)
        return self._code()

    def _code(self) -> int:
        assert self._process is not None
        code = self._process.returncode
        return code if code >= 0 else _SIGNALED - code

    def _forward(self, number: int, frame: FrameType | None) -> None:
        if self._process is not None and self._process.returncode is not None:
            # Only the last ping is under way. Whoever is in a hurry gets the command's result.
            raise SystemExit(self._code())
        if number in _OF_THE_TERMINAL and not _SENDER_IS_KNOWN and _in_foreground():
            return
        if self._process is None:
            self._early.append(number)
        else:
            self._send(number)

    def _watch(self) -> None:
        """Passes on what processes send, and nothing that the kernel sends: a terminal sends that to the command, too."""
        while True:
            info = signal.sigwaitinfo(self._watched)
            if info.si_code <= 0:
                self._send(info.si_signo)

    def _send(self, number: int) -> None:
        assert self._process is not None
        # Not a signal to a process id that has been given to another process meanwhile.
        self._process.send_signal(number)


def _in_foreground() -> bool:
    """Whether this process, and with it the command, is in the foreground of its terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _inherited_umask() -> int:
    """The mask that this process was started with. Ours keeps files private, which the command's files need not be."""
    from tocsin.private_files import inherited_umask

    return inherited_umask()


def _by_key(server: ServerOptions, namespace: str, monitor: str) -> Ping:
    def ping(code: int | None) -> None:
        event: dict[str, Any] = {"event": "start"}
        if code is not None:
            event = {"event": "fail" if code else "success", "exitCode": code}
        with client_of(server.server, server.key, answer_timeout_s=_TRY_S) as client:
            # Tries are counted here, for both kinds of pings.
            client.post("/monitors/ping", {"namespace": namespace, "id": monitor, **event}, retried=False)

    return ping


def _by_url(url: str) -> Ping:
    if not url.startswith(("http://", "https://")):
        raise WrongUsage(f"--ping-url: {url!r} is not a URL; `tocsin monitors rotate` shows a new one")

    def ping(code: int | None) -> None:
        import httpx

        path = "start" if code is None else str(code)
        try:
            answer: httpx.Response = httpx.post(f"{url.rstrip('/')}/{path}", timeout=_TRY_S)
        except httpx.HTTPError as error:
            raise Failure(f"can't reach the server: {error}") from error
        if not answer.is_success:
            raise Failure(f"the server responded {answer.status_code}; check --ping-url")

    return ping


def _in_background(function: Callable[..., None], *arguments: object) -> threading.Thread:
    """Runs it in a thread, because the server may be away: a daemon, so that it keeps nothing from ending."""
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def _report_end(ping: Ping, code: int, deadline: float) -> None:
    """Returns when the end is reported, or could not be, and at that instant of the monotonic clock at the latest, whatever
    the server does: a response whose bytes arrive one by one meets no timeout of its phases."""
    end = _in_background(_attempt, ping, code, _TRIES)
    end.join(max(0.0, deadline - time.monotonic()))
    if end.is_alive():
        output.note(f"tocsin exec: exit code {code} not reported to the monitor: no response from the server in time")


def _attempt(ping: Ping, code: int | None, tries: int, over: threading.Event | None = None) -> None:
    """Sends a ping: the beginning for None, else the end with this exit code. One that is not delivered is a line in the
    error output. Once `over` is set, nothing more is sent."""
    what = "start" if code is None else f"exit code {code}"
    for left in range(tries - 1, -1, -1):
        if over is not None and over.is_set():
            return
        try:
            ping(code)
        except Exception as error:  # noqa: BLE001  (whatever goes wrong here, the command's result stands)
            if not left:
                output.note(f"tocsin exec: {what} not reported to the monitor: {' '.join(str(error).split())}")
                return
            time.sleep(_PAUSE_S)
        else:
            return
