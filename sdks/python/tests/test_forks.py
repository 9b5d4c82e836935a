"""Clients that are used before a fork work in parent and children."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

PROGRAM = Path(__file__).with_name("forking.py")


@pytest.mark.parametrize("kind", ["sync", "batcher", "async"])
def test_each_process_gets_its_own_timers(server, kind):
    ran = subprocess.run(
        [sys.executable, str(PROGRAM), kind, server.url],
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    with server.client() as client:
        ids = {each.id for each in client.timers.list("default", limit=1_000)}
        client.timers.delete("default", "0-0")
    assert {f"{process}-{each}" for process in range(4) for each in range(300)} <= ids
