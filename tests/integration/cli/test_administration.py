"""Commands that need no server, and commands that administer one."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys

import msgspec
import pytest

from tests.integration.cli.conftest import answer, problem
from tests.support.cases import each
from tocsin.administration import api_keys
from tocsin.build_info import versions_text
from tocsin.keys import grant_refusal
from tocsin.model.access import ApiKey, Role, hash_key
from tocsin.stores.sqlite.store import SqliteStore


def stored_keys(folder):
    async def read():
        store = SqliteStore(folder / "tocsin.db", node=False)
        await store.open(None)
        try:
            return await api_keys(store)
        finally:
            await store.close()

    return asyncio.run(read())


class TestKeys:
    def test_a_key_that_would_outlive_its_maker_is_refused_with_the_option_that_helps(self, tocsin, scripted):
        maker, wanted = ApiKey("1", "", Role.ADMIN, expires_at=1_900_000_000_000_000), ApiKey("2", "", Role.READ)
        scripted.script = [
            problem(403, "FORBIDDEN", reason)
            for reason in (grant_refusal(wanted, maker), grant_refusal(wanted, ApiKey("3", "", Role.WRITE)))
        ]
        ran = tocsin("keys", "create", "--role", "read", "--server", scripted.url)
        assert (ran.code, "--expires-in" in ran.err, "role admin" in ran.err) == (1, True, False)
        ran = tocsin("keys", "create", "--role", "read", "--server", scripted.url)
        assert (ran.code, "--expires-in" in ran.err, "Keys are managed with a key of role admin" in ran.err) == (
            1,
            False,
            True,
        )

    def test_a_key_is_shown_once_and_kept_hashed(self, tocsin, tmp_path):
        ran = tocsin("keys", "create", "--role", "read", "-n", "a", "-n", "b", "--note", "n", "--data-dir", "d")
        assert ran.code == 0, ran.err
        secret = ran.out.strip()
        (key,) = stored_keys(tmp_path / "d")
        prefix, key_id, random = secret.split("_", 2)
        assert (prefix, key_id, len(random)) == ("tk", key.key_id, 43)
        assert key.hash == hash_key(secret)
        assert (key.role, key.namespaces, key.note) == (Role.READ, ("a", "b"), "n")
        listed = tocsin("keys", "list", "--data-dir", "d", "--json")
        assert random not in listed.out
        assert listed.json()[0]["keyId"] == key_id
        assert key_id in tocsin("keys", "list", "--data-dir", "d").out
        assert tocsin("keys", "revoke", key_id, "--data-dir", "d").code == 0
        assert stored_keys(tmp_path / "d") == []
        assert tocsin("keys", "revoke", key_id, "--data-dir", "d").code == 1

    def test_an_expiring_key_shows_its_expiry(self, tocsin, tmp_path):
        assert tocsin("keys", "create", "--expires-in", "10d", "--data-dir", "d").code == 0
        assert tocsin("keys", "create", "--expires-in", "90d", "--data-dir", "d").code == 0
        assert tocsin("keys", "create", "--data-dir", "d").code == 0
        lifetimes = sorted(
            (key.expires_at - key.created_at) // 86_400_000_000 for key in stored_keys(tmp_path / "d") if key.expires_at
        )
        assert lifetimes == [10, 90]
        listed = tocsin("keys", "list", "--data-dir", "d")
        assert (listed.out.count("(soon)"), listed.out.count("never")) == (1, 1)
        assert [key["expiresAt"] for key in tocsin("keys", "list", "--data-dir", "d", "--json").json()].count(None) == 1

    def test_a_failed_audit_write_undoes_a_create_and_is_reported_by_a_revoke(self, tocsin, tmp_path):
        ran = tocsin("keys", "create", "--data-dir", "d")
        assert "first key" in ran.err
        key_id = ran.out.split("_")[1]
        connection = sqlite3.connect(tmp_path / "d" / "tocsin.db")
        connection.execute(
            "CREATE TRIGGER no_audit BEFORE INSERT ON records WHEN NEW.record_kind = 'audit' "
            "BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
        connection.close()
        refused = tocsin("keys", "create", "--data-dir", "d")
        assert (refused.code, "no key was created" in refused.err, refused.out) == (1, True, "")
        assert [key.key_id for key in stored_keys(tmp_path / "d")] == [key_id]
        revoked = tocsin("keys", "revoke", key_id, "--data-dir", "d")
        assert (revoked.code, "is revoked, but the audit entry" in revoked.err) == (1, True)
        assert stored_keys(tmp_path / "d") == []

    @each(
        "arguments",
        [
            ["--expires-in", "0s"],
            ["--expires-in", "soon"],
            ["--role", "god"],
            ["-n", "no spaces"],
            ["--store", "memory://"],
        ],
    )
    def test_wrong_usage(self, tocsin, arguments):
        assert tocsin("keys", "create", *arguments).code == 2

    @pytest.mark.parametrize("arguments", [["list"], ["revoke", "1f0c9a7be2d4"]])
    def test_a_wrong_data_folder_creates_no_store(self, tocsin, tmp_path, arguments):
        ran = tocsin("keys", *arguments, "--data-dir", "slip")
        assert ran.code == 1
        assert "slip/tocsin.db" in ran.err
        assert not (tmp_path / "slip").exists()

    def test_create_makes_a_store_only_at_a_given_location(self, tocsin, tmp_path):
        ran = tocsin("keys", "create")
        assert (ran.code, "data/tocsin.db; check the path, which --data-dir" in ran.err) == (1, True)
        assert list(tmp_path.iterdir()) == []
        ran = tocsin("keys", "create", "--data-dir", "data")
        assert (ran.code, "stored in sqlite:///data/tocsin.db" in ran.err) == (0, True)
        assert tocsin("keys", "create").code == 0


class TestMigrate:
    def test_makes_the_schema(self, tocsin):
        ran = tocsin("migrate", "--store", "sqlite:///x/t.db", "--json")
        assert ran.code == 0, ran.err
        assert ran.json()["schema"] >= 1
        assert ran.json()["shards"] == 4

    def test_the_agents_database_is_migrated_as_well(self, tocsin, tmp_path):
        ran = tocsin("migrate", "--data-dir", "d", "--json")
        assert ran.code == 0, ran.err
        assert ran.json()["agentDatabase"] == "sqlite:///d/agent.db"
        assert ran.json()["agentSchema"] >= 1
        assert (tmp_path / "d" / "agent.db").exists()

    def test_the_agents_database_can_be_left_out(self, tocsin, tmp_path):
        ran = tocsin("migrate", "--data-dir", "d", "--no-agent", "--json")
        assert ran.code == 0, ran.err
        assert "agentSchema" not in ran.json()
        assert not (tmp_path / "d" / "agent.db").exists()

    def test_an_agents_database_of_an_unknown_kind(self, tocsin):
        ran = tocsin("migrate", "--agent-database", "oracle://x/y")
        assert ran.code == 2
        assert "agent.database" in ran.err

    def test_a_file_that_is_not_a_database_is_refused(self, tocsin, tmp_path):
        (tmp_path / "tocsin.db").write_text("hello " * 1_000)
        ran = tocsin("migrate", "--data-dir", ".")
        assert ran.code == 1
        assert "tocsin.db" in ran.err


class TestConfig:
    def test_show_prints_values_and_sources(self, tocsin, tmp_path, monkeypatch):
        (tmp_path / "c.toml").write_text('look_ahead_max = "60s"\n')
        monkeypatch.setenv("TOCSIN_EGRESS_ALLOW", "a,b")
        shown = tocsin("config", "show", "--config", "c.toml", "--changed", "--json").json()
        assert shown == {
            "look_ahead_max": {"value": "1m", "source": "c.toml, line 1"},
            "egress.allow": {"value": "a,b", "source": "TOCSIN_EGRESS_ALLOW"},
        }
        assert "8080" in tocsin("config", "show").out

    def test_check(self, tocsin, tmp_path, monkeypatch):
        assert tocsin("config", "check").code == 0
        (tmp_path / "c.toml").write_text("prot = 1\n")
        ran = tocsin("config", "check", "--config", "c.toml")
        assert ran.code == 2
        assert "did you mean port?" in ran.err
        monkeypatch.setenv("TOCSIN_PROT", "1")
        assert "Warning: TOCSIN_PROT" in tocsin("config", "check").err

    @pytest.mark.parametrize(
        ("flag", "message"),
        [
            ("--egress-allow", "--egress-allow is not a flag; set TOCSIN_EGRESS_ALLOW, or egress.allow in the file"),
        ],
    )
    def test_serve_refuses_a_flag_of_a_setting_without_one(self, tocsin, flag, message):
        ran = tocsin("serve", flag, "1")
        assert (ran.code, message in ran.err) == (2, True)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ('[egress]\nallow = ["10.0.0.0/99"]\n', "egress.allow (c.toml, line 2)"),
            ("shards = 99999999999\n", "at most 65536"),
        ],
    )
    def test_check_reports_settings_that_prevent_a_start(self, tocsin, tmp_path, content, message):
        (tmp_path / "c.toml").write_text(content)
        ran = tocsin("config", "check", "--config", "c.toml")
        assert ran.code == 2
        assert message in ran.err

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [(["--host", "no host"], "host: 'no host'"), (["--host", "192.0.2.1"], "192.0.2.1")],
    )
    def test_serve_names_an_unavailable_address(self, tocsin, arguments, message):
        ran = tocsin("serve", "--port", "0", *arguments)
        assert ran.code == 1
        assert message in ran.err

    def test_serve_refuses_wrong_settings_before_it_starts(self, tocsin):
        ran = tocsin("serve", "--log-format", "xml")
        assert ran.code == 2
        assert "log_format (--log-format)" in ran.err


class TestNamespacesAndCluster:
    def test_create_with_a_new_secret_shows_it(self, tocsin, scripted):
        scripted.script = [answer({"name": "billing", "signed": True})]
        ran = tocsin(
            "namespaces", "create", "billing", "--retention", "7d", "--secret", "new", "--server", scripted.url
        )
        assert ran.code == 0, ran.err
        body = msgspec.json.decode(scripted.received[-1].body)
        assert body == {"name": "billing", "retention": "7d", "secret": body["secret"]}
        assert ran.out.rstrip().endswith(body["secret"])

    def test_update(self, tocsin, scripted):
        scripted.script = [answer({"name": "billing"})]
        assert (
            tocsin("namespaces", "update", "billing", "--pause", "--remove-secret", "--server", scripted.url).code == 0
        )
        assert msgspec.json.decode(scripted.received[-1].body) == {"name": "billing", "paused": True, "secret": None}
        assert tocsin("namespaces", "update", "billing").code == 2
        assert tocsin("namespaces", "update", "billing", "--remove-secret", "--secret", "new").code == 2

    def test_quotas_are_set_and_removed(self, tocsin, scripted):
        scripted.script = [answer({"name": "billing"})]
        options = ("--pending-max", "100", "--creates-per-second", "0", "--server", scripted.url)
        assert tocsin("namespaces", "update", "billing", *options).code == 0
        quotas = {"pending": 100, "createsPerSecond": None}
        assert msgspec.json.decode(scripted.received[-1].body) == {"name": "billing", "quotas": quotas}

    def test_cluster(self, tocsin, scripted):
        node = {"node": "one", "incarnation": "1", "address": "a:1", "alive": True, "self": True, "shards": 1}
        node["largestShardBytes"] = 150 << 20
        node |= {"dispatching": False, "pausedReason": "clock_jump"}
        others = [
            {**node, "node": "two", "self": False, "pausedReason": "lease"},
            {**node, "node": "three", "self": False, "dispatching": True, "pausedReason": None},
        ]
        shard = {"shardId": 0, "version": 7, "owner": "one", "ownedHere": True, "lagMs": 0.5}
        cluster = {
            "totalShards": 1,
            "dispatching": False,
            "dispatchPausedReason": "clock_jump",
            "nodes": [node, *others],
            "shards": [shard],
        }
        scripted.script = [answer(cluster)]
        ran = tocsin("cluster", "--server", scripted.url)
        assert ran.code == 0, ran.err
        assert "one" in ran.out
        assert "one fires no timers: the node's wall clock jumped (clock_jump)" in ran.err
        # Also of nodes that were not asked.
        assert "two fires no timers: the database has not confirmed the node's lease in time (lease)" in ran.err
        assert "three fires" not in ran.err
        assert "Largest shard: 150 MiB" in ran.err


class TestProgram:
    @pytest.mark.parametrize("arguments", [[], ["--help"], ["timers", "--help"], ["version"]])
    def test_as_a_process(self, arguments):
        code = "from tocsin.cli.app import main; main()"
        ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
        assert ran.returncode == (0 if arguments else 2)
        assert ran.stdout or ran.stderr

    @pytest.mark.parametrize("arguments", [["--version"], ["version"]])
    def test_the_version_has_one_text(self, arguments):
        ran = subprocess.run([sys.executable, "-m", "tocsin", *arguments], capture_output=True, text=True, check=True)
        assert ran.stdout == versions_text() + "\n"

    def test_the_version_imports_no_command(self):
        code = "import sys; from tocsin.__main__ import main; main(); print('typer' in sys.modules, file=sys.stderr)"
        ran = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True)
        assert ran.stderr.split() == ["False"]

    def test_help_imports_nothing_heavy(self):
        heavy = ("httpx", "pydantic", "rich", "apsw", "uvicorn", "asyncio", "msgspec")
        code = (
            "import sys; from tocsin.cli.app import run; run(['--help']);"
            f"print(*[name for name in {heavy} if name in sys.modules], file=sys.stderr)"
        )
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert ran.stderr.split() == []

    def test_a_request_does_not_import_another_command_line(self, scripted):
        scripted.script = [answer({"timers": []})]
        code = (
            "import sys; from tocsin.cli.app import main\ntry: main()\n"
            "finally: print(*[name for name in ('httpx', 'pygments') if name in sys.modules], file=sys.stderr)"
        )
        command = [sys.executable, "-c", code, "timers", "list", "--json", "--server", scripted.url]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        assert ran.stderr.split() == ["httpx"]

    def test_every_command_has_an_example(self, tocsin):
        import typer.main

        from tocsin.cli.app import app

        def commands(command, path):
            yield path
            for name, inner in getattr(command, "commands", {}).items():
                yield from commands(inner, [*path, name])

        for path in commands(typer.main.get_command(app), []):
            ran = tocsin(*path, "--help")
            assert ran.code == 0
            assert "Example: tocsin" in ran.out, path

    def test_the_version_is_also_printed_for_the_flag_of_other_tools(self, tocsin):
        assert tocsin("--version") == tocsin("version")

    def test_an_unexpected_error_prints_no_traceback(self, tocsin, monkeypatch):
        def broken(text):
            raise RuntimeError("surprise")

        monkeypatch.setattr("tocsin.cli.output.print_json", broken)
        ran = tocsin("version", "--json")
        assert ran.code == 1
        assert "unexpected RuntimeError: surprise" in ran.err
        assert "Traceback" not in ran.err


@pytest.mark.parametrize(("arguments", "requests"), [(("3d",), 1), (("--to", "2099-01-01T00:00:00Z"), 7)])
def test_a_clock_is_not_moved_twice_by_a_duration(tocsin, scripted, monkeypatch, arguments, requests):
    monkeypatch.setattr("time.sleep", lambda pause_s: None)
    scripted.script = [problem(503, "STORE_FAILURE")] * 10
    assert tocsin("clock", "advance", *arguments, "--server", scripted.url).code == 1
    assert len(scripted.received) == requests
