"""The commands against `tocsin serve`, with timers that ring at `tocsin echo`'s kind of receiver."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from tocsin.cli.receiver import Answer

MAIN = [sys.executable, "-u", "-c", "from tocsin.cli.app import main; main()"]


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """The URL of a running server."""
    folder = tmp_path_factory.mktemp("node")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
    command = [*MAIN, "serve", "--port", "0", "--data-dir", str(folder), "--log-level", "error"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        yield re.search(r"http://[\d.:]+", process.stdout.readline())[0]
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


@pytest.fixture
def cli(tocsin, node, monkeypatch):
    """Runs a client command against the node."""
    monkeypatch.setenv("TOCSIN_URL", node)
    return tocsin


def test_a_timers_life(cli, scripted):
    scripted.script = [Answer(503), Answer(200, b'{"ok": true}')]
    policy = ["--retry-attempts", "3", "--retry-initial", "100ms"]
    created = cli("timers", "create", scripted.url, "--in", "1h", "--id", "life", *policy, "--payload", '{"a": 1}')
    assert created.code == 0, created.err
    updated = cli("timers", "update", "life", "--in", "100ms", "--json")
    assert updated.code == 0, updated.err
    watched = cli("timers", "watch", "life", "--interval", "50ms")
    assert watched.code == 0, watched.err
    assert "completed" in watched.out
    shown = cli("timers", "get", "life", "--json").json()
    assert (shown["status"], shown["attempts"], shown["payload"]) == ("completed", 2, {"a": 1})
    assert "completed" in cli("timers", "get", "life").out
    refused = cli("timers", "delete", "life")
    assert refused.code == 1
    assert "TIMER_NOT_PENDING" in refused.err


def test_a_failing_timer_fails_the_watch(cli, scripted):
    scripted.script = [Answer(404)]
    assert cli("timers", "create", scripted.url, "--in", "0s", "--id", "bad", "--tag", "w").code == 0
    watched = cli("timers", "watch", "--tag", "w", "--interval", "50ms")
    assert watched.code == 1
    assert "HTTP_404" in watched.out


def test_refusals_name_field_and_mend(cli):
    ran = cli("timers", "create", "ftp://x", "--in", "1s", "--timeout", "999")
    assert ran.code == 1
    assert "INVALID_INPUT" in ran.err
    assert "callbackUrl: " in ran.err
    assert "callbackTimeoutSeconds: " in ran.err


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_there_and_back(cli, tmp_path, form):
    assert cli("namespaces", "create", f"from-{form}", "--retention", "1d").code == 0
    assert cli("namespaces", "create", f"to-{form}").code == 0
    timers = [
        {
            "id": f"t{number:04}",
            "executeAt": f"2099-01-01T00:{number % 60:02}:00Z",
            "callbackUrl": "http://127.0.0.1:9/",
            "payload": {"n": number, "text": 'a, "b"\nc'},
            "tags": ["x", f"n{number % 3}"],
            "headers": {"X-N": str(number)},
            "retryPolicy": {"maxAttempts": 4, "maxAttemptsDuration": "1h"},
            "callbackTimeoutSeconds": 7,
        }
        for number in range(2_500)
    ]
    bad = {"id": "bad", "executeAt": "tomorrow", "callbackUrl": "http://127.0.0.1:9/"}
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(timer) + "\n" for timer in [*timers, bad]))
    imported = cli("timers", "import", "in.jsonl", "-n", f"from-{form}", "--json")
    assert imported.code == 1
    assert (imported.json()["created"], imported.json()["failed"]) == (2_500, 1)
    assert "line 2501: INVALID_INPUT" in imported.err
    assert "executeAt" in imported.err
    out = tmp_path / f"out.{form}"
    assert cli("timers", "export", "-n", f"from-{form}", "--tag", "n1", "-o", out).code == 0
    out.write_text(out.read_text().replace(f"from-{form}", f"to-{form}"))
    again = cli("timers", "import", out, "--json")
    assert again.code == 0, again.err
    assert again.json()["created"] == 833
    listed = cli("timers", "list", "-n", f"to-{form}", "--id-prefix", "t0001", "--json").json()["timers"]
    (copied,) = listed
    for name, value in timers[1].items():
        if name != "retryPolicy":
            assert copied[name] == value, name
    assert copied["retryPolicy"]["maxAttemptsDuration"] == "1h"


def test_namespaces_and_cluster(cli):
    created = cli("namespaces", "create", "billing", "--history", "failures", "--secret", "new", "--json")
    assert created.code == 0, created.err
    assert created.json()["secret"].startswith("whsec_")
    assert cli("namespaces", "update", "billing", "--pause").code == 0
    listed = cli("namespaces", "list", "--json").json()["namespaces"]
    (billing,) = (entry for entry in listed if entry["name"] == "billing")
    assert (billing["history"], billing["paused"], billing["signed"]) == ("failures", True, True)
    assert "billing" in cli("namespaces", "list").out
    assert cli("namespaces", "create", "billing").code == 1
    cluster = cli("cluster")
    assert cluster.code == 0, cluster.err
    assert "yes" in cluster.out


def test_a_second_server_on_the_same_folder_is_refused(tmp_path):
    command = [*MAIN, "serve", "--port", "0", "--data-dir", str(tmp_path), "--log-level", "error"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert "serves on" in first.stdout.readline()
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        first.terminate()
    assert second.returncode == 1
    assert "in use by another Tocsin" in second.stderr
    assert "Traceback" not in second.stderr


def test_demo_plays_to_its_end(tmp_path):
    ran = subprocess.run([*MAIN, "demo", "--plain"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "now completed, soon completed, retried completed, rescheduled completed, canceled canceled" in ran.stderr
    assert "attempt 2: 503" in ran.stdout
