"""`tocsin namespaces get` and `delete` against a real server, and the question on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess

from tests.integration.cli.conftest import MAIN, answer
from tests.support.patience import PATIENCE_S

URL = "http://127.0.0.1:9/hook"


def test_a_namespace_is_shown_and_deleted_with_what_is_in_it(cli):
    assert cli("namespaces", "create", "leaving", "--history", "failures").code == 0
    assert cli("timers", "create", URL, "--in", "1h", "--id", "t", "-n", "leaving").code == 0
    shown = cli("namespaces", "get", "leaving")
    assert (shown.code, "leaving" in shown.out, "failures" in shown.out) == (0, True, True)
    refused = cli("namespaces", "delete", "leaving", "--yes")
    assert (refused.code, "NAMESPACE_NOT_EMPTY" in refused.err) == (1, True)
    done = cli("namespaces", "delete", "leaving", "--cancel-pending", "--rate", "5000", "--watch", "--yes", "--json")
    assert done.code == 0, done.err
    assert (done.json()["state"], done.json()["of"], done.json()["changed"]) == ("completed", "namespace", 1)
    assert cli("namespaces", "get", "leaving").code == 1
    listed = cli("jobs", "list", "--namespace", "leaving")
    assert done.json()["id"] in listed.out
    assert "NAMESPACE_NOT_FOUND" in cli("namespaces", "delete", "leaving").err


def test_nothing_is_deleted_on_a_terminal_without_a_yes(scripted):
    scripted.script = [answer({"name": "billing", "numShards": 16})]
    command = [*MAIN, "namespaces", "delete", "billing", "--server", scripted.url]
    controller, terminal = pty.openpty()
    try:
        asked = subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        os.write(controller, b"n\n")
        out, err = asked.communicate(timeout=PATIENCE_S)
    finally:
        os.close(controller)
        os.close(terminal)
    assert (asked.returncode, out.strip()) == (1, "")
    assert "namespace billing with all that is in it is deleted: go on?" in err
    assert "nothing was changed" in err
    assert [each.path for each in scripted.received] == ["/api/v1/namespaces/get"]
