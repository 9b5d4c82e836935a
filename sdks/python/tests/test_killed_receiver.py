"""A receiver is killed between its work and its answer: the work is done once."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.ports import free_port

from tocsin_client import RetryPolicy
from tocsin_client.receiver import Dedup

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
PROGRAM = Path(__file__).with_name("killed_receiver.py")


@contextlib.contextmanager
def receiver(port, database, point):
    """The program as a process; yields the process and its port."""
    command = [sys.executable, str(PROGRAM), str(port), str(database), point]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "SECRET": SECRET}) as process:
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


@pytest.mark.parametrize("point", ["before commit", "before answer"])
def test_the_work_is_done_once(server, tmp_path, point):
    database = tmp_path / "app.db"
    Dedup(lambda: sqlite3.connect(database)).create_table()
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE reminders (timer TEXT)")
    with server.client() as client:
        client.namespaces.create(point.replace(" ", "-"), secret=SECRET)
        # Where it is started again, so none that others might get meanwhile.
        with receiver(free_port(), database, point) as (process, port):
            # Not due again before the receiver is back, however long it takes to start.
            policy = RetryPolicy(initial_interval="10m")
            url = f"http://127.0.0.1:{port}/"
            timer = client.timers.create(point.replace(" ", "-"), "a", url, delay="1s", retry_policy=policy)
            server.advance("2s")
            assert process.wait(30) == -9
        timer = client.timers.get(timer.namespace, "a")
        assert (timer.status, timer.attempts) == ("pending", 1)
        with receiver(port, database, point):
            server.advance("30m")
        timer = client.timers.get(timer.namespace, "a")
        assert (timer.status, timer.attempts) == ("completed", 2)
    with contextlib.closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT * FROM reminders").fetchall() == [("a",)]
