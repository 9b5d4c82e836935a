"""Settings: which source wins, which values are refused, and the texts of the errors."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from tests.support.cases import each

from tocsin.model.errors import ConfigError
from tocsin.settings import Origin, Settings, env_name, load_settings, sources, unknown_variables
from tocsin.settings.declared import SETTINGS
from tocsin.settings.settings import SHARED


@pytest.fixture(autouse=True)
def no_settings_around(monkeypatch):
    for name in [name for name in os.environ if name.startswith("TOCSIN_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path):
    """Writes a settings file and returns its path."""

    def write(text: str) -> Path:
        path = tmp_path / "tocsin.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


#: The fields of Settings that hold the dataclass of a part.
PARTS = [field for field in dataclasses.fields(Settings) if "part" in field.metadata]


def refusal(**flags) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(flags)
    return str(caught.value)


class TestSources:
    def test_without_any_the_defaults_are_those_of_the_limits(self):
        settings = load_settings()
        assert settings == Settings()
        for part in PARTS:
            assert getattr(settings, part.name) == type(part.default)()
        assert (settings.host, settings.port, settings.shards) == ("127.0.0.1", 8080, None)
        assert settings.store_url() == "sqlite:///data/tocsin.db"

    def test_flag_before_environment_before_file_before_default(self, file, monkeypatch):
        path = file("port = 1\nshards = 1\nlanes = 1\n")
        monkeypatch.setenv("TOCSIN_PORT", "2")
        monkeypatch.setenv("TOCSIN_SHARDS", "2")
        flags = {"config": path, "port": 3, "data_dir": None}
        settings = load_settings(flags)
        assert (settings.port, settings.shards, settings.engine.lanes, settings.data_dir) == (3, 2, 1, Path("data"))
        found = sources(flags)
        assert [found[name] for name in ("port", "shards", "lanes", "host")] == [
            (Origin.FLAG, "--port"),
            (Origin.ENVIRONMENT, "TOCSIN_SHARDS"),
            (Origin.FILE, f"{path}, line 3"),
            (Origin.DEFAULT, ""),
        ]

    def test_the_environment_can_name_the_file(self, file, monkeypatch):
        monkeypatch.setenv("TOCSIN_CONFIG", str(file('[egress]\nallow = ["10.0.0.0/8", "hook:80"]\n')))
        assert load_settings().egress.allow == ("10.0.0.0/8", "hook:80")

    def test_every_setting_of_a_limit_fills_it(self, monkeypatch):
        # The others are seven or seven seconds; these must be shorter or longer than some of those.
        other = {
            "heartbeat_interval_us": 1_000_000,
            "node_lease_us": 2_000_000,
            "drain_timeout_us": 9_000_000,
            "namespaces_interval_us": 3_000_000,
        }
        filled = {
            (setting.part, setting.attribute): field for field, setting in SETTINGS.items() if setting.part
        } | SHARED
        numbers = {key: field for key, field in filled.items() if SETTINGS[field].kind in ("int", "float")}
        del numbers["tracing", "sample_ratio"]
        assert len(filled) - len(numbers) == 39
        for (_, limit), field in numbers.items():
            seconds = other.get(limit, 7_000_000) // 1_000_000
            monkeypatch.setenv(env_name(field), f"{seconds}s" if limit.endswith(("_us", "_ms", "_s")) else "7")
        settings = load_settings()
        for part, limit in numbers:
            seven = {"_us": 7_000_000, "_ms": 7_000}.get(limit[-3:], 7)
            assert getattr(getattr(settings, part), limit) == other.get(limit, seven), limit

    def test_a_setting_of_two_parts_has_one_default(self):
        defaults = load_settings()
        for (part, attribute), field in SHARED.items():
            assert SETTINGS[field].attribute == attribute
            assert SETTINGS[field].default == getattr(getattr(defaults, part), attribute)

    def test_values_as_people_write_them(self, file):
        settings = load_settings(
            {
                "config": file(
                    'insecure = true\nlook_ahead_max = "1m30s"\nwindow_bytes_max = "2MiB"\nlog_level = "INFO"\n'
                    '[sqlite]\nsynchronous = "normal"\n[callbacks]\nconnections_max = 5\n'
                )
            }
        )
        assert settings.insecure is True
        assert settings.engine.look_ahead_max_us == 90_000_000
        assert settings.engine.window_bytes_max == 2 * 1024 * 1024
        assert settings.callbacks.connections_max == 5
        assert settings.log.level == "info"
        assert (settings.sqlite.synchronous, settings.agent_sql.synchronous) == ("NORMAL", "NORMAL")

    def test_lists_in_the_environment(self, monkeypatch):
        monkeypatch.setenv("TOCSIN_EGRESS_ALLOW", "10.0.0.0/8, hook:80")
        assert load_settings().egress.allow == ("10.0.0.0/8", "hook:80")

    @pytest.mark.parametrize(("text", "value"), [("1", True), ("no", False), ("True", True), ("off", False)])
    def test_truth_in_the_environment(self, monkeypatch, text, value):
        monkeypatch.setenv("TOCSIN_METRICS_OPEN", text)
        assert load_settings().metrics_open is value

    def test_settings_are_fixed(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            load_settings().port = 1


class TestSecretFiles:
    """`cluster.secret_file` and its like."""

    SECRET = "a secret of sixteen or more"

    def test_a_file_has_the_precedence_of_the_setting_that_names_it(self, file, tmp_path, monkeypatch):
        secret = tmp_path / "url"
        secret.write_text("postgresql://tocsin:hunter2@db.internal/tocsin\n")
        path = file(f'store_file = "{secret}"\n[cluster]\nsecret = "{self.SECRET}"\n')
        settings, found = load_settings({"config": path}), sources({"config": path})
        assert settings.store == "postgresql://tocsin:hunter2@db.internal/tocsin"
        assert found["store"] == (Origin.FILE, f"{path}, line 1: {secret}")
        monkeypatch.setenv("TOCSIN_CLUSTER_SECRET_FILE", str(secret))
        assert load_settings({"config": path}).cluster_secret == settings.store
        assert sources({"config": path})["cluster_secret"].place == f"TOCSIN_CLUSTER_SECRET_FILE: {secret}"
        # A file that isn't needed isn't read.
        secret.unlink()
        monkeypatch.setenv("TOCSIN_CLUSTER_SECRET", self.SECRET)
        monkeypatch.delenv("TOCSIN_CLUSTER_SECRET_FILE")
        assert load_settings({"config": path, "store": "memory://"}).store == "memory://"

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (None, "can't be read: No such file or directory"),
            (b"", "is empty"),
            (b"\n", "is empty"),
            (b"\xff" * 20, "is not UTF-8 text"),
            (b"a secret\nof two lines\n", "has several lines"),
            (b"s" * 70_000, "has more than 65536 bytes"),
        ],
    )
    def test_an_unusable_file_is_named_with_its_setting(self, tmp_path, monkeypatch, content, reason):
        secret = tmp_path / "secret"
        if content is not None:
            secret.write_bytes(content)
        monkeypatch.setenv("TOCSIN_CLUSTER_SECRET_FILE", str(secret))
        text = refusal()
        assert text.startswith(f"cluster.secret_file (TOCSIN_CLUSTER_SECRET_FILE): {secret} ")
        assert reason in text

    def test_a_wrong_value_is_not_shown(self, tmp_path, monkeypatch):
        secret = tmp_path / "secret"
        secret.write_text("hunter2")
        for variable in ("TOCSIN_STORE_FILE", "TOCSIN_BROKER_FILE", "TOCSIN_CLUSTER_SECRET_FILE"):
            monkeypatch.setenv(variable, str(secret))
            text = refusal()
            assert variable in text
            assert "hunter2" not in text
            monkeypatch.delenv(variable)

    def test_a_value_and_a_file_for_it_contradict_one_another(self, file, tmp_path, monkeypatch):
        path = file(f'[cluster]\nsecret = "{self.SECRET}"\nsecret_file = "{tmp_path}/secret"\n')
        assert "are both set; remove one of them" in refusal(config=path)
        monkeypatch.setenv("TOCSIN_STORE", "memory://")
        monkeypatch.setenv("TOCSIN_STORE_FILE", "/nowhere")
        assert "store (TOCSIN_STORE) and store_file (TOCSIN_STORE_FILE) are both set" in refusal()

    def test_tls_between_nodes_takes_all_its_files(self, monkeypatch):
        monkeypatch.setenv("TOCSIN_CLUSTER_TLS_KEY_FILE", "tls.key")
        text = refusal()
        assert "cluster.tls_certificate_file: is missing" in text
        assert "cluster.tls_ca_file: is missing" in text
        monkeypatch.delenv("TOCSIN_CLUSTER_TLS_KEY_FILE")
        monkeypatch.setenv("TOCSIN_CLUSTER_TLS_NAME", "*.example")
        assert "is not a DNS name" in refusal()


class TestStore:
    @each(
        "url, path",
        [("sqlite:///a/b.db", "a/b.db"), ("sqlite:////var/b.db", "/var/b.db"), ("sqlite:///b.db", "b.db")],
    )
    def test_paths(self, url, path):
        assert load_settings({"store": url}).sqlite_path() == Path(path)

    def test_an_absolute_data_folder(self, tmp_path):
        assert load_settings({"data_dir": tmp_path}).sqlite_path() == tmp_path / "tocsin.db"

    @each("url", ["oracle://u:secret@h/db", "tocsin.db", "sqlite://", "sqlite://tocsin.db", ""])
    def test_what_has_no_adapter_is_refused_naming_what_has(self, url):
        message = refusal(store=url)
        assert message.startswith("store (--store)")
        assert "sqlite:///" in message
        assert "secret" not in message

    def test_memory_has_no_file(self):
        with pytest.raises(ConfigError, match="write it as sqlite:///path"):
            load_settings({"store": "memory://"}).sqlite_path()


class TestRefusals:
    def test_unknown_keys_name_line_and_nearest(self, file):
        path = file('prot = 1\n\n# [egress]\n[egress]\nalow = ["x"]\n[other]\nx = 1\n')
        assert refusal(config=path).splitlines() == [
            f"prot ({path}, line 1) is not a setting; did you mean port?",
            f"egress.alow ({path}, line 5) is not a setting; did you mean egress.allow?",
            f"other.x ({path}, line 7) is not a setting; `tocsin config show` lists all",
        ]

    def test_an_empty_table_sets_nothing_and_an_unknown_one_is_named_with_its_line(self, file):
        path = file('port = 5\n\n[egress]\n# allow = ["127.0.0.1:9000"]\n')
        assert load_settings({"config": path}).port == 5
        assert refusal(config=file("port = 5\n\n[egres]\n")).startswith(f"egres ({path}, line 3) is not a setting")

    def test_a_key_without_its_table(self, file):
        assert "did you mean egress.allow?" in refusal(config=file("egress_allow = []"))

    def test_bad_values_name_their_source(self, file, monkeypatch):
        monkeypatch.setenv("TOCSIN_NODE_LEASE", "3")
        path = file('\n[sqlite]\ncache_bytes = "lots"\n')
        lines = refusal(config=path, port="x").splitlines()
        assert "port (--port): 'x' is not a whole number" in lines
        assert "node_lease (TOCSIN_NODE_LEASE): '3' is not a duration; write it as 500ms, 30s, 5m, 24h or 7d" in lines
        assert any(line.startswith(f"sqlite.cache_bytes ({path}, line 3): 'lots'") for line in lines)

    @each(
        "flags, message",
        [
            ({"port": 70_000}, "must be at most 65535"),
            ({"shards": 0}, "must be at least 1"),
            ({"shards": True}, "is not a whole number"),
            ({"log_format": "xml"}, "is not one of auto, console, json"),
            ({"metrics_open": "maybe"}, "is not true or false"),
            ({"node_lease": "0s"}, "must be greater than zero"),
            ({"egress_allow": 3}, "is not a list of strings"),
            ({"host": ""}, "host (--host)"),
        ],
    )
    def test_values_out_of_range(self, flags, message):
        assert message in refusal(**flags)

    @each(
        "flags, message",
        [
            ({"node_lease": "1m"}, "member_timeout: 5s must be longer than node_lease (1m)"),
            ({"heartbeat_interval": "3s"}, "node_lease: 3s must be longer than heartbeat_interval (3s)"),
            ({"drain_timeout": "10s"}, "drain_timeout: 10s must be longer than callback_timeout_max (1m)"),
            ({"nats_targets": "shop=orders"}, "nats_targets: requires nats_url"),
            ({"nats_url": "nats://n", "nats_targets": "shop=svc.a"}, "'shop=svc.a' leads to the agent's own subjects"),
            ({"nats_url": "nats://n", "nats_targets": "shop=svc-dead"}, "leads to the agent's own subjects"),
            ({"nats_url": "nats://n", "nats_targets": "shop=a.*"}, "is not a namespace and a subject"),
        ],
    )
    def test_settings_that_contradict_one_another(self, flags, message):
        assert message in refusal(**flags)

    def test_files_that_can_not_be_read(self, file, tmp_path):
        assert "can't be read: No such file" in refusal(config=tmp_path / "none.toml")
        assert "is not TOML" in refusal(config=file("port = = 1"))
        file("").write_bytes(b"\xff")
        assert "is not TOML" in refusal(config=tmp_path / "tocsin.toml")

    def test_variables_that_are_no_settings(self, monkeypatch):
        monkeypatch.setenv("TOCSIN_PROT", "1")
        monkeypatch.setenv("TOCSIN_URL", "http://x")
        assert unknown_variables() == ["TOCSIN_PROT is not a setting; did you mean TOCSIN_PORT?"]


def test_names_are_unique():
    names = [setting.name for setting in SETTINGS.values()]
    assert len(set(names)) == len(names)


class TestTheAgent:
    def test_its_database_is_beside_the_timers_unless_named(self):
        assert load_settings({"data_dir": "x"}).agent_database_url() == "sqlite:///x/agent.db"
        assert load_settings({"store": "memory://"}).agent_database_url() == "sqlite://"
        assert load_settings({"agent_database": "a/b.db"}).agent_database_url() == "sqlite:///a/b.db"
        named = "postgresql://me@host/agent"
        assert load_settings({"agent_database": named}).agent_database_url() == named

    def test_variables_known_by_other_names_count_below_our_own(self, monkeypatch):
        monkeypatch.setenv("TIMER_POLLING_INTERVAL", "1500")
        monkeypatch.setenv("TIMER_BATCH_SIZE", "7")
        monkeypatch.setenv("DB_PATH", "./event_service.db")
        monkeypatch.setenv("TIMER_BROKER_URL", "nats://127.0.0.1:4222")
        settings = load_settings()
        assert settings.agent.polling_interval_us == 1_500_000
        assert settings.agent.polling_batch_max == 7
        assert settings.agent_database_url() == "sqlite:///./event_service.db"
        assert settings.broker == "nats://127.0.0.1:4222"
        assert sources()["broker"] == (Origin.ENVIRONMENT, "TIMER_BROKER_URL")
        monkeypatch.setenv("TIMER_DB_PATH", "other.db")
        monkeypatch.setenv("TOCSIN_BROKER", "embedded")
        assert load_settings().agent_database_url() == "sqlite:///other.db"
        assert load_settings().broker is None

    def test_what_is_wrong_is_named_with_its_source(self, monkeypatch):
        assert "broker (--broker)" in refusal(broker="amqp://host")
        assert "agent.database (--agent-database)" in refusal(agent_database="redis://host/0")
        assert "agent.timer (--agent-timer)" in refusal(agent_timer="cron")
        monkeypatch.setenv("TIMER_POLLING_INTERVAL", "often")
        assert "agent.polling_interval (TIMER_POLLING_INTERVAL)" in refusal()


@each(
    "flags, runs",
    [
        ({}, True),
        ({"store": "postgresql://x@db/x"}, True),
        ({"store": "mysql://x@db/x"}, False),
        ({"store": "mariadb://x@db/x"}, False),
        ({"store": "mysql://x@db/x", "agent_database": "postgresql://x@db/x"}, True),
        ({"store": "mysql://x@db/x", "agent_enabled": True}, True),
        ({"agent_enabled": False}, False),
    ],
)
def test_the_agent_runs_where_nodes_would_share_its_database_or_it_is_asked_for(flags, runs):
    assert load_settings(flags).has_agent() is runs


def test_dataclasses_list_settings_before_constants():
    for part in PARTS:
        declared = ["setting" in field.metadata for field in dataclasses.fields(part.default)]
        assert declared == sorted(declared, reverse=True), part.name


def test_an_empty_path_is_refused():
    assert "is empty" in refusal(data_dir="")


def test_parameters_of_a_file_are_refused():
    assert "parameters" in refusal(store="sqlite:///data/tocsin.db?mode=ro")
    assert "parameters" in refusal(agent_database="sqlite:///data/agent.db?mode=ro")


@each("setting", ["store", "agent_database", "inbox_url"])
@each("password", ["s3cr/et", "1/et==", "s3cr?et", "s3cr#et=", "s3 cr"])
def test_a_password_that_ends_its_host_is_refused_and_not_shown(setting, password):
    text = refusal(**{setting: f"postgresql://tocsin:{password}@db:5432/tocsin"})
    assert "percent-encode" in text
    assert password not in text


@each("url", ["mysql://db:3306/x?ssl_ca=a@b", "postgresql://?host=/tmp", "postgresql://u:p@h1:5432,h2:5433/d?a=b@c"])
def test_an_at_sign_elsewhere_is_no_password(url):
    assert load_settings({"store": url}).store == url
