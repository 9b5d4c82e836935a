"""`tocsin exec` with real commands, signals, terminals, and a server that is away."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.integration.cli.conftest import MAIN, ScriptedServer, problem
from tests.support.patience import PATIENCE_S
from tocsin.cli import exec as exec_command
from tocsin.cli.receiver import ReceiverResponse

#: Prints `ready`, then the number of each signal that it gets; ends with 9 at SIGUSR2.
SIGNALS = """
import signal, sys
def got(number, frame):
    print(number, flush=True)
    if number == signal.SIGUSR2:
        sys.exit(9)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, got)
print("ready", flush=True)
while True:
    signal.pause()
"""
AWAY = "http://127.0.0.1:9/ping/token"
#: `tocsin` whose patience with the server is short.
IMPATIENT = [
    sys.executable,
    "-u",
    "-c",
    "from tocsin.cli import app, exec; exec._TRY_S, exec._PAUSE_S, exec._END_S = {try_s}, 0.01, {end_s}; app.main()",
]


@pytest.fixture
def url(scripted: ScriptedServer) -> str:
    """A ping URL, of a server that accepts two pings."""
    scripted.script = [ReceiverResponse(200), ReceiverResponse(200)]
    return f"{scripted.url}/ping/token"


def paths(scripted: ScriptedServer) -> list[str]:
    """What was pinged, in order."""
    return [each.path for each in scripted.received]


@pytest.fixture
def dripping() -> Iterator[str]:
    """A ping URL, of a server whose responses never end: a byte comes before each timeout, so none is met."""
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def drip(connection: socket.socket) -> None:
        # Until the other side has left.
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
            while not over.wait(0.02):
                connection.sendall(b".")

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=drip, args=(connection,), daemon=True).start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/ping/token"
    over.set()
    listener.shutdown(socket.SHUT_RDWR)
    accepting.join()
    listener.close()


def impatient(try_s: float, end_s: float) -> list[str]:
    """`tocsin` that gives a try of a ping and the report of the end so long."""
    return [part.format(try_s=try_s, end_s=end_s) for part in IMPATIENT]


def begin(url: str, *command: str, **how: Any) -> subprocess.Popen[str]:
    """`tocsin exec` with pipes, unless `how` names others. It heeds what a terminal sends, which is ignored where the tests
    run in the background."""
    own = how.pop("preexec_fn", None)

    def heeding() -> None:
        for number in (signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        if own is not None:
            own()

    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [*MAIN, "exec", "--ping-url", url, "--", *command], text=True, preexec_fn=heeding, **(pipes | how)
    )  # type: ignore[call-overload,no-any-return]


def line(process: subprocess.Popen[str]) -> str:
    """The next line of its output."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_command_has_our_streams_and_its_exit_code_is_ours_and_pinged(scripted: ScriptedServer, url: str) -> None:
    with begin(url, "sh", "-c", "cat; echo trouble >&2; exit 3") as process:
        out, err = process.communicate("in\n", timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (3, "in\n", "trouble\n")
    assert paths(scripted) == ["/ping/token/start", "/ping/token/3"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_command_as_it_would_without_us(
    scripted: ScriptedServer, url: str, number: int, code: int
) -> None:
    def heed() -> None:
        # These tests may run under nohup, and what is ignored stays so.
        signal.signal(number, signal.SIG_DFL)

    # A shell that waits for its input, in a session without a terminal.
    with begin(url, "sh", "-c", "echo ready; read line", start_new_session=True, preexec_fn=heed) as process:
        assert line(process) == "ready"
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == code
    assert paths(scripted)[-1] == f"/ping/token/{code}"


def test_a_command_that_handles_signals_gets_each_of_them(url: str) -> None:
    with begin(url, sys.executable, "-c", SIGNALS, start_new_session=True) as process:
        assert line(process) == "ready"
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            process.send_signal(number)
            assert line(process) == str(int(number))
        process.send_signal(signal.SIGUSR2)
        assert process.wait(PATIENCE_S) == 9


def test_control_c_reaches_the_command_once(url: str) -> None:
    """The terminal sends it to both processes."""
    control, terminal = os.openpty()

    def own_terminal() -> None:
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    with begin(url, sys.executable, "-c", SIGNALS, stdin=terminal, preexec_fn=own_terminal) as process:
        assert line(process) == "ready"
        os.write(control, b"\x03")
        assert line(process) == str(int(signal.SIGINT))
        # Handled after SIGINT here, so a second one would be on its way before it.
        process.send_signal(signal.SIGUSR2)
        assert process.stdout is not None
        assert process.stdout.read().split() == [str(int(signal.SIGUSR2))]
        assert process.wait(PATIENCE_S) == 9
    os.close(control)
    os.close(terminal)


@pytest.mark.skipif(sys.platform != "linux", reason="others do not report who has sent a signal")
def test_what_is_sent_to_us_alone_on_a_terminal_reaches_the_command(url: str) -> None:
    """The terminal has sent nothing to the command."""
    control, terminal = os.openpty()

    def own_terminal() -> None:
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    with begin(url, sys.executable, "-c", SIGNALS, stdin=terminal, preexec_fn=own_terminal) as process:
        assert line(process) == "ready"
        process.send_signal(signal.SIGINT)
        assert line(process) == str(int(signal.SIGINT))
        process.send_signal(signal.SIGQUIT)
        assert process.wait(PATIENCE_S) == 128 + signal.SIGQUIT
    os.close(control)
    os.close(terminal)


def test_a_command_inherits_mask_files_and_ignored_signals(url: str, tmp_path: Path) -> None:
    """As if it were run by whoever runs us: under nohup, with a lock that is held by an open file."""
    lock = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)

    def inherited() -> None:
        os.umask(0o027)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    script = (
        f"import os, signal; os.fstat({lock}); "
        "print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, oct(os.umask(0)))"
    )
    with begin(url, sys.executable, "-c", script, preexec_fn=inherited, pass_fds=(lock,)) as process:
        out, err = process.communicate(timeout=PATIENCE_S)
    os.close(lock)
    assert (process.returncode, out, err) == (0, "True 0o27\n", "")


def test_a_server_that_is_away_changes_nothing() -> None:
    with begin(AWAY, "sh", "-c", "echo done; exit 5") as process:
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (5, "done\n")
    assert "exit code 5 not reported to the monitor" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_whoever_stops_us_during_the_last_ping_gets_the_commands_result(number: int) -> None:
    """A server that accepts connections and never answers; the command has ended."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/ping/token"
        with begin(url, "sh", "-c", "echo done; exit 5", start_new_session=True) as process:
            assert line(process) == "done"
            start, _ = silent.accept()
            start.close()
            last, _ = silent.accept()
            process.send_signal(number)
            assert process.wait(PATIENCE_S) == 5
            last.close()


def test_a_response_that_never_ends_keeps_nobody_waiting(dripping: str) -> None:
    command = [*impatient(try_s=1, end_s=2), "exec", "--ping-url", dripping, "--", "sh", "-c", "exit 5"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ran.returncode == 5
    assert "exit code 5 not reported to the monitor: no response from the server in time" in ran.stderr


def test_a_busy_server_is_asked_three_times_and_not_more_often_by_the_client(scripted: ScriptedServer) -> None:
    scripted.script = [problem(503, "UNAVAILABLE")] * 40
    command = [*impatient(try_s=PATIENCE_S, end_s=PATIENCE_S), "exec", "--server", scripted.url, "--monitor", "a"]
    ran = subprocess.run([*command, "--", "true"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (ran.returncode, "exit code 0 not reported to the monitor: UNAVAILABLE" in ran.stderr) == (0, True)
    events = [msgspec.json.decode(each.body)["event"] for each in scripted.received]
    assert events == ["start", "success", "success", "success"]


def test_no_start_is_sent_once_the_end_is_due() -> None:
    """It would begin another run."""
    sent: list[int | None] = []
    over = threading.Event()
    exec_command._attempt(sent.append, None, 1, over)
    over.set()
    exec_command._attempt(sent.append, None, 1, over)
    assert sent == [None]


def test_a_command_that_is_not_there_is_a_failure(scripted: ScriptedServer, url: str, tmp_path: Path) -> None:
    scripted.script = [ReceiverResponse(200)]
    with begin(url, str(tmp_path / "missing")) as process:
        _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "can't be run: No such file" in err) == (127, True)
    assert paths(scripted) == ["/ping/token/127"]
    scripted.script = [ReceiverResponse(200)]
    (tmp_path / "text").write_text("no program")
    with begin(url, str(tmp_path / "text")) as process:
        process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, paths(scripted)[-1]) == (126, "/ping/token/126")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "give either --monitor"),
        (("--monitor", "a", "--ping-url", AWAY), "give either --monitor"),
        (("--ping-url", "token"), "is not a URL"),
    ],
)
def test_options_that_name_no_monitor_are_refused(
    tocsin: Callable[..., Any], options: tuple[str, ...], words: str
) -> None:
    refused = tocsin("exec", *options, "--", "true")
    assert (refused.code, words in refused.err) == (2, True), refused.err
