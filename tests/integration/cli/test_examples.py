"""The examples run, against a server and as a receiver."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integration.cli.conftest import problem
from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S
from tocsin.model.secrets import sign

EXAMPLES = Path(__file__).parents[3] / "examples"
SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
HOOK = "http://127.0.0.1:9/"


def created_by(command, scripted):
    if shutil.which(command[0]) is None or (command[0] == "sh" and shutil.which("curl") is None):
        lacking("curl", f"{command[0]} and curl are needed")
    environment = {"PATH": os.environ["PATH"], "TOCSIN_URL": scripted.url, "TOCSIN_KEY": "tk_1_x"}
    return subprocess.run([*command, HOOK, "10s"], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "command",
    [[sys.executable, EXAMPLES / "create_timer.py"], ["sh", EXAMPLES / "create_timer.sh"]],
    ids=["python", "shell"],
)
class TestCreate:
    def test_creates(self, scripted, command):
        ran = created_by(command, scripted)
        assert ran.returncode == 0, ran.stderr
        assert "order-17-reminder" in ran.stdout
        timer = scripted.timers["default", "order-17-reminder"]
        assert (timer["callbackUrl"], timer["payload"]) == (HOOK, {"order": 17})
        assert scripted.received[-1].headers["authorization"] == "Bearer tk_1_x"

    def test_prints_the_error(self, scripted, command):
        scripted.script = [problem(400, "INVALID_INPUT", "no", errors=[{"path": "delay", "reason": "is too long"}])]
        ran = created_by(command, scripted)
        assert ran.returncode != 0
        assert "is too long" in ran.stdout + ran.stderr


@contextlib.contextmanager
def receiver(database, **settings):
    command = [sys.executable, str(EXAMPLES / "receiver.py"), "0"]
    environment = {**os.environ, "TOCSIN_SECRET": SECRET, "RECEIVER_DATABASE": str(database), **settings}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        port = int(process.stdout.readline().rsplit(":", 1)[1].rstrip("/\n"))
        yield process, port
        process.kill()


def post(port, webhook_id, timer_id, *, signature=None, age_s=0):
    body = json.dumps({"namespace": "n", "timerId": timer_id, "executeAt": "x", "payload": 1}).encode()
    timestamp = int(time.time()) - age_s
    headers = {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature or sign(SECRET, webhook_id, timestamp, body),
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("POST", "/", body, headers)
    response = connection.getresponse()
    answer = response.status, response.read()
    connection.close()
    return answer


DONE = (200, b'{"ok": true}')


def work_done(database):
    with contextlib.closing(sqlite3.connect(database)) as opened:
        return [row[0] for row in opened.execute("SELECT timer FROM reminders ORDER BY rowid")]


def test_receiver_with_a_wrong_secret_is_called_again(tmp_path):
    with receiver(tmp_path / "r.db", TOCSIN_SECRET="whsec_x") as (_, port):
        assert post(port, "1", "a")[0] == 503


def urlopen_status(url):
    """Of a request without a signature."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url, b"{}", timeout=PATIENCE_S)
    return refused.value.code


def test_receiver_checks_signatures(tmp_path):
    with receiver(tmp_path / "r.db") as (_, port):
        assert post(port, "1", "a") == DONE
        assert post(port, "2", "forged", signature="v1,bm90IHRoaXM=")[0] == 503
        assert post(port, "3", "replayed", age_s=3_600)[0] == 503
        assert urlopen_status(f"http://127.0.0.1:{port}/") == 401
    assert work_done(tmp_path / "r.db") == ["n/a"]


def test_receiver_processes_a_firing_once(tmp_path):
    database = tmp_path / "r.db"
    with receiver(database) as (process, port):
        with ThreadPoolExecutor(8) as clients:
            assert list(clients.map(lambda _: post(port, "1", "a"), range(8))) == [DONE] * 8
        process.kill()
    with receiver(database) as (_, port):
        assert post(port, "1", "a") == DONE
        # The work fails, here for want of its table: then the id isn't remembered either.
        with contextlib.closing(sqlite3.connect(database)) as opened:
            opened.execute("ALTER TABLE reminders RENAME TO elsewhere")
            assert post(port, "2", "b")[0] == 503
            opened.execute("ALTER TABLE elsewhere RENAME TO reminders")
        assert post(port, "2", "b") == DONE
    assert work_done(database) == ["n/a", "n/b"]
