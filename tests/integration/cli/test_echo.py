"""`tocsin echo` as a process: its output and responses."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import subprocess
import sys

import pytest

from tests.support.patience import PATIENCE_S
from tocsin.model.instants import parse_instant

CALLBACK = {"namespace": "n", "timerId": "t", "executeAt": "2020-01-01T00:00:00Z", "attempt": 2, "payload": {"a": 1}}


@contextlib.contextmanager
def echo(*arguments):
    """A running echo: the process and a connection to it."""
    code = "from tocsin.cli.app import main; main()"
    command = [sys.executable, "-u", "-c", code, "echo", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            port = int(re.search(r"http://127.0.0.1:(\d+)", process.stderr.readline())[1])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
            yield process, connection
            connection.close()
        finally:
            process.terminate()


def invoke(connection, body=CALLBACK):
    connection.request("POST", "/hook", json.dumps(body), {"content-type": "application/json"})
    response = connection.getresponse()
    content = response.read()
    return response.status, json.loads(content) if content else None


def test_prints_a_line_for_each_callback():
    with echo() as (process, connection):
        assert invoke(connection) == (200, None)
        line = process.stdout.readline()
        assert "n/t" in line
        assert "attempt 2" in line
        assert '{"a":1}' in line
        process.send_signal(signal.SIGINT)
        assert "Received 1 callbacks." in process.stderr.read()
        assert process.wait() == 0


def test_prints_json_on_request():
    with echo("--json", "--status", "503") as (process, connection):
        assert invoke(connection)[0] == 503
        shown = json.loads(process.stdout.readline())
        assert (shown["timerId"], shown["attempt"], shown["answered"], shown["path"]) == ("t", 2, 503, "/hook")
        # Since when this attempt could have come, only the server knows.
        assert shown["lagMs"] is None
        invoke(connection, {**CALLBACK, "executeAt": "2099-01-01T00:00:00Z", "attempt": 1})
        assert json.loads(process.stdout.readline())["lagMs"] < 0


def test_a_service_call_is_printed_as_a_plain_request():
    with echo() as (process, connection):
        assert invoke(connection, {"cups": 2}) == (200, None)
        line = process.stdout.readline()
        assert "POST /hook" in line
        assert '{"cups": 2}' in line
    with echo("--json") as (process, connection):
        invoke(connection, [1])
        shown = json.loads(process.stdout.readline())
        assert (shown["method"], shown["path"], shown["body"]) == ("POST", "/hook", "[1]")


def test_fail_rate_selects_the_share_that_fails():
    with echo("--fail-rate", "1") as (_, connection):
        assert invoke(connection)[0] == 500
    with echo("--fail-rate", "0", "--status", "503") as (_, connection):
        assert invoke(connection)[0] == 200


def test_times_limits_reschedules_of_each_timer():
    with echo("--reschedule", "5s", "--times", "2") as (_, connection):
        answers = [invoke(connection)[1] for _ in range(3)]
        assert [bool(answer) for answer in answers] == [True, True, False]
        assert answers[0]["ok"] is True
        parse_instant(answers[0]["nextExecuteAt"])
        assert invoke(connection, {**CALLBACK, "timerId": "other"})[1]


def test_quiet_prints_the_rate_per_second():
    with echo("--quiet", "--json") as (process, connection):
        for _ in range(10):
            invoke(connection, {**CALLBACK, "executeAt": "2099-01-01T00:00:00Z", "attempt": 1})
        shown = json.loads(process.stdout.readline())
        assert shown["total"] > 0
        assert shown["lagMsP50"] < 0


@pytest.mark.parametrize("body", [b"", b"nonsense", b"[1]"])
def test_any_body_gets_a_response(body):
    with echo() as (process, connection):
        connection.request("POST", "/x?y=1", body)
        assert connection.getresponse().status == 200
        assert "/x?y=1" in process.stdout.readline()


def test_control_characters_of_a_callback_are_escaped():
    hostile = "\x1b[2J\x9b\u202e"
    with echo() as (process, connection):
        invoke(connection, {**CALLBACK, "timerId": hostile, "payload": hostile})
        connection.request("POST", "/x", hostile.encode())
        assert connection.getresponse().read() == b""
        shown = process.stdout.readline() + process.stdout.readline()
    assert "\\u001b[2J" in shown
    assert not set(hostile) & set("\x1b\x9b\u202e") & set(shown)
