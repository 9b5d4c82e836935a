"""The commands against `tocsin serve`, with timers that call a scripted receiver."""

from __future__ import annotations

import json
import os
import subprocess
import uuid

import pytest

from tests.integration.cli.conftest import MAIN
from tocsin.cli.receiver import ReceiverResponse


def test_a_timer_is_created_updated_and_completed(cli, scripted):
    scripted.script = [ReceiverResponse(503), ReceiverResponse(200, b'{"ok": true}')]
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
    table = " ".join(cli("timers", "get", "life").out.split())
    assert "completed" in table
    assert "attemptLog" not in table
    for attempt in shown["attemptLog"]:
        assert f"{attempt['startedAt']} {attempt['durationMs']:g} ms" in table
    history = cli("timers", "history", "life")
    assert (history.code, "HTTP_503" in history.out, "completed" in history.out) == (0, True, True)
    assert len(cli("timers", "history", "life", "--json").json()["runs"]) == 1
    refused = cli("timers", "delete", "life")
    assert refused.code == 1
    assert "TIMER_NOT_PENDING: the timer has finished: 'life' in namespace 'default'" in refused.err
    missing = cli("timers", "update", "nobody", "--in", "1h")
    assert "TIMER_NOT_FOUND: no timer 'nobody' in namespace 'default'" in missing.err
    created = cli("timers", "create", scripted.url, "--in", "1h", "--id", "quiet", "--quiet")
    assert (created.code, created.out) == (0, "quiet\n")


def test_statistics_show_what_happened(cli, scripted):
    scripted.script = [ReceiverResponse(404)]
    assert cli("timers", "create", scripted.url, "--in", "0s", "--id", "counted").code == 0
    assert cli("timers", "watch", "counted", "--interval", "50ms").code == 1
    answer = cli("statistics", "--json").json()
    assert sum(slot["failed"] for slot in answer["slots"]) >= 1
    table = " ".join(cli("statistics", "--namespace", "default", "--ten-minutes").out.split())
    assert "attempts" in table
    assert "HTTP_404" in table
    refused = cli("statistics", "--namespace", "nobody")
    assert (refused.code, "NAMESPACE_NOT_FOUND" in refused.err) == (1, True)


def test_a_failing_timer_fails_the_watch(cli, scripted):
    scripted.script = [ReceiverResponse(404)]
    assert cli("timers", "create", scripted.url, "--in", "0s", "--id", "bad", "--tag", "w").code == 0
    watched = cli("timers", "watch", "--tag", "w", "--interval", "50ms")
    assert watched.code == 1
    assert "HTTP_404" in watched.out


def test_a_repeated_create_makes_one_timer(cli, scripted):
    scripted.script = [ReceiverResponse(200)] * 2
    create = ("timers", "create", scripted.url, "--id", "once", "--idempotency-key", "tea-1", "--json")
    first = cli(*create, "--in", "100ms")
    assert (first.code, first.err) == (0, "")
    assert cli("timers", "watch", "once", "--interval", "50ms").code == 0
    again = cli(*create, "--in", "50ms")
    assert (again.code, again.json()["status"]) == (0, "completed")
    assert "nothing was written" in again.err
    assert len(scripted.received) == 1
    kept = cli("timers", "create", scripted.url, "--in", "1s", "--id", "once", "--on-conflict", "keep")
    assert "was kept" in kept.err
    refused = cli("timers", "create", scripted.url, "--in", "1s", "--id", "once", "--on-conflict", "reject")
    assert (refused.code, "TIMER_EXISTS" in refused.err) == (1, True)
    wrong = cli("timers", "create", scripted.url, "--in", "1s", "--idempotency-key", "k")
    assert (wrong.code, "--idempotency-key requires --id" in wrong.err) == (2, True)


def test_debounced_creates_are_one_timer_that_can_be_exported(cli, tmp_path):
    create = ("timers", "create", "http://127.0.0.1:9/", "--json")
    debounced = ("--id", "index", "--debounce", "1h", "--max-delay", "2h", "--collect", "2")
    for number, payload in enumerate(([1], [1, 2])):
        made = cli(*create, *debounced, "--payload", str(number + 1)).json()
        assert (made["payload"], made["debounced"]["creates"]) == (payload, number + 1)
    full = cli(*create, *debounced, "--payload", "3")
    assert (full.code, "COLLECTION_FULL" in full.err) == (1, True)
    assert "It is debounced: 2 creates since" in cli("timers", "explain", "index").out
    for options, reason in (
        (debounced[2:], "--debounce requires --id"),
        (debounced[:4], "--debounce requires --max-delay"),
        ((*debounced, "--in", "1s"), "--debounce conflicts with --in, --at and --on-conflict"),
        (("--in", "1s", "--max-delay", "2s"), "--max-delay and --collect require --debounce"),
    ):
        wrong = cli(*create, *options)
        assert (wrong.code, reason in wrong.err) == (2, True)
    exported = tmp_path / "timers.jsonl"
    assert cli("timers", "export", "--id-prefix", "index", "--output", str(exported)).code == 0
    assert cli("timers", "delete", "index").code == 0
    imported = cli("timers", "import", str(exported))
    assert (imported.code, imported.err.count("Created 1 timers")) == (0, 1), imported.err


def test_refusals_name_the_field_and_the_remedy(cli):
    ran = cli("timers", "create", "ftp://x", "--in", "1s", "--timeout", "999")
    assert ran.code == 1
    assert "INVALID_INPUT" in ran.err
    assert "callbackUrl: " in ran.err
    assert "callbackTimeoutSeconds: " in ran.err


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_imported_timers_can_be_exported_and_imported_again(cli, tmp_path, form):
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
    # Neither has a payload: their callbacks' bodies are raw.
    for timer, raw in zip(timers[1:5:3], ({"text": 'a, "b"\r\n'}, {"base64": "AP8="}), strict=True):
        del timer["payload"]
        timer["body"] = {"contentType": "a/b", **raw}
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
    for number in (1, 4, 7):
        listed = cli("timers", "list", "-n", f"to-{form}", "--id-prefix", f"t{number:04}", "--json").json()["timers"]
        (copied,) = listed
        for name, value in timers[number].items():
            if name != "retryPolicy":
                assert copied[name] == value, name
    assert copied["retryPolicy"]["maxAttemptsDuration"] == "1h"


def test_all_namespaces_are_exported_into_one_file_and_imported_each_into_its_own(cli, tmp_path):
    assert cli("namespaces", "create", "one").code == cli("namespaces", "create", "other").code == 0
    for name in ("one", "other"):
        for tag in ("moved", "left"):
            made = cli(
                "timers",
                "create",
                "http://127.0.0.1:9/",
                "-n",
                name,
                "--id",
                f"{tag}-{name}",
                "--tag",
                tag,
                "--in",
                "1h",
            )
            assert made.code == 0, made.err
    assert cli("timers", "export", "--all-namespaces", "--tag", "moved", "-o", tmp_path / "t.csv").code == 0
    for name in ("one", "other"):
        assert cli("timers", "delete", f"moved-{name}", "-n", name).code == 0
    assert cli("timers", "import", tmp_path / "t.csv", "--json").json()["created"] == 2
    for name in ("one", "other"):
        assert (
            cli("timers", "list", "-n", name, "--tag", "moved", "--json").json()["timers"][0]["id"] == f"moved-{name}"
        )
    both = cli("timers", "export", "-n", "one", "--all-namespaces")
    assert (both.code, "conflict" in both.err) == (2, True)


def test_namespaces_and_cluster(cli):
    created = cli("namespaces", "create", "billing", "--history", "failures", "--secret", "new", "--json")
    assert created.code == 0, created.err
    assert created.json()["secret"].startswith("whsec_")
    assert cli("namespaces", "update", "billing", "--pause").code == 0
    listed = cli("namespaces", "list", "--json").json()["namespaces"]
    (billing,) = (entry for entry in listed if entry["name"] == "billing")
    assert (billing["history"], billing["paused"], billing["signed"]) == ("failures", True, True)
    assert "billing" in cli("namespaces", "list").out
    assert cli("tenants", "rotate-secret", "01890a5d-ac96-774b-bcce-b302099a8057").out.startswith("whsec_")
    rotated = cli("namespaces", "rotate-secret", "billing", "--grace", "48h")
    assert rotated.out.startswith("whsec_")
    assert "keeps signing until" in rotated.err
    pending = cli("namespaces", "rotate-secret", "billing")
    assert (pending.code, "ROTATION_PENDING" in pending.err or "force" in pending.err) == (1, True)
    forced = cli("namespaces", "rotate-secret", "billing", "--grace", "0s", "--force", "--json").json()
    assert sorted(forced) == ["name", "secret"]
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


def test_demo_completes(tmp_path):
    ran = subprocess.run([*MAIN, "demo", "--plain"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "now completed, soon completed, retried completed, rescheduled completed, canceled canceled" in ran.stderr
    assert "attempt 2: 503" in ran.stdout


def test_a_demo_joins_no_store_that_the_environment_names(tmp_path):
    env = {
        **os.environ,
        "TOCSIN_STORE": f"sqlite:///{tmp_path / 'real.db'}",
        "DB_PATH": str(tmp_path / "agent.db"),
        "TOCSIN_BROKER": "nats://127.0.0.1:9",
        "TOCSIN_INBOX_NAMESPACES": "default",
        "TOCSIN_INBOX_URL": "mysql://nobody@127.0.0.1:9/orders",
    }
    ran = subprocess.run([*MAIN, "demo", "--plain"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    named = "TOCSIN_STORE, TOCSIN_INBOX_URL, DB_PATH, TOCSIN_BROKER"
    assert f"leave out what is set by {named}" in " ".join(ran.stderr.split())
    assert not {"real.db", "agent.db"} & {file.name for file in tmp_path.iterdir()}


@pytest.fixture(params=["defaults", "nats and engine", "postgresql"])
def surroundings(request, monkeypatch, tmp_path):
    """Configures the agent's broker and database by environment variables."""
    if request.param == "nats and engine":
        monkeypatch.setenv("TOCSIN_BROKER", request.getfixturevalue("shared_nats").url)
        monkeypatch.setenv("TOCSIN_BROKER_PREFIX", uuid.uuid4().hex)
        monkeypatch.setenv("TOCSIN_AGENT_TIMER", "engine")
    elif request.param == "postgresql":
        monkeypatch.setenv("TOCSIN_AGENT_DATABASE", request.getfixturevalue("postgresql_url"))
        migrated = subprocess.run(
            [*MAIN, "migrate", "--data-dir", tmp_path], capture_output=True, text=True, check=False
        )
        assert "agentSchema" in migrated.stdout, migrated.stderr


@pytest.mark.usefixtures("surroundings")
def test_demo_of_service_calls_completes(tmp_path):
    ran = subprocess.run([*MAIN, "demo", "--agent"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for text in ("HTTP_STATUS: HTTP 503", "CONNECTION_FAILED", "names the same call", "never made"):
        assert text in ran.stdout, text
    assert ran.stdout.count("twice    GET received") == 1
    assert "ServiceCallSucceeded" in ran.stdout


class TestServiceCalls:
    @pytest.fixture
    def calls(self, cli, monkeypatch):
        monkeypatch.setenv("TOCSIN_TENANT", cli("calls", "new-tenant").out.strip())
        return lambda *arguments: cli("calls", *arguments)

    def test_a_call_is_submitted_tagged_and_completed(self, calls, scripted):
        scripted.script = [ReceiverResponse(201, b'{"made": 1}')]
        body = ["--body", '{"a": 1.50}', "-H", "Authorization: Bearer secret"]
        call = calls("submit", "life", scripted.url, "--in", "300ms", *body, "--tag", "x", "-q").out.strip()
        assert calls("list", "--tag", "x", "--json").json()["serviceCalls"][0]["serviceCallId"] == call
        waited = calls("get", call, "--wait")
        assert waited.code == 0, waited.err
        assert "201 in" in waited.out
        assert '{"made": 1}' in waited.out
        assert scripted.received[-1].body == b'{"a": 1.50}'
        assert scripted.received[-1].headers["authorization"] == "Bearer secret"
        shown = calls("get", call, "--json")
        assert "Bearer secret" not in shown.out
        assert [execution["response"]["status"] for execution in shown.json()["executions"]] == [201]
        assert calls("tag", call, "a/b ü").code == 0
        assert sorted(calls("get", call, "--json").json()["tags"]) == ["a/b ü", "x"]
        assert calls("untag", call, "a/b ü").code == 0
        assert calls("get", call, "--json").json()["tags"] == ["x"]
        trace = calls("get", call, "--trace", "--json").json()["entries"]
        assert {"ServiceCallSubmitted", "ExecutionSucceeded", "ServiceCallSucceeded"} <= {e["name"] for e in trace}
        assert "Bearer secret" not in calls("get", call, "--trace", "--json").out
        late = calls("delete", call)
        assert late.code == 1
        assert "SERVICE_CALL_NOT_SCHEDULED" in late.err

    def test_a_scheduled_call_is_deleted(self, calls, scripted):
        call = calls("submit", "never", scripted.url, "--in", "1h", "-q").out.strip()
        assert calls("delete", call).code == 0
        gone = calls("get", call)
        assert gone.code == 1
        assert "SERVICE_CALL_NOT_FOUND" in gone.err
        assert not scripted.received

    def test_a_failed_call_exits_with_an_error(self, calls, scripted):
        scripted.script = [ReceiverResponse(503, b"out of order")]
        ran = calls("submit", "bad", scripted.url, "--wait")
        assert ran.code == 1
        assert "the call failed: HTTP_STATUS: HTTP 503" in ran.err
        assert "out of order" in ran.out

    def test_a_repeated_submit_returns_the_call_and_a_different_one_conflicts(self, calls, scripted):
        once = calls("submit", "a", scripted.url, "--idempotency-key", "k", "-q")
        again = calls("submit", "a", scripted.url, "--idempotency-key", "k", "-q")
        assert (once.code, once.out) == (again.code, again.out) == (0, once.out)
        other = calls("submit", "b", scripted.url, "--idempotency-key", "k")
        assert other.code == 1
        assert "IDEMPOTENCY_CONFLICT" in other.err

    def test_pages(self, calls, scripted):
        made = [calls("submit", f"n{n}", scripted.url, "--in", "1h", "-q").out.strip() for n in range(5)]
        page = calls("list", "--limit", "2", "--json").json()
        assert [call["name"] for call in page["serviceCalls"]] == ["n4", "n3"]
        rest = calls("list", "--limit", "3", "--cursor", page["nextCursor"], "--json").json()["serviceCalls"]
        assert [call["name"] for call in rest] == ["n2", "n1", "n0"]
        assert len(calls("list", "--all", "--status", "Scheduled", "--json").out.splitlines()) == len(made)

    def test_refusals_name_the_field(self, calls):
        ran = calls("submit", "x" * 1_000, "ftp://x")
        assert ran.code == 1
        assert "requestSpec.url: " in ran.err
        assert "name: " in ran.err
