"""Settings: which source wins, what is refused, and how a refusal helps."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from tocsin.agent.limits import AgentLimits
from tocsin.api.request import ApiLimits
from tocsin.callbacks.limits import CallbackLimits
from tocsin.config import Origin, Settings, env_name, load_settings, setting_name, sources, unknown_variables
from tocsin.config.settings import LIMITS, limit_setting
from tocsin.engine.limits import EngineLimits
from tocsin.model.errors import ConfigError
from tocsin.model.validation import InputLimits


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


def refusal(**flags) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(flags)
    return str(caught.value)


class TestSources:
    def test_without_any_the_defaults_are_those_of_the_limits(self):
        settings = load_settings()
        assert settings.engine_limits() == EngineLimits()
        assert settings.callback_limits() == CallbackLimits()
        assert settings.input_limits() == InputLimits()
        assert settings.api_limits() == ApiLimits()
        assert settings.agent_limits() == AgentLimits()
        assert (settings.host, settings.port, settings.shards) == ("127.0.0.1", 8080, None)
        assert settings.store_url() == "sqlite:///data/tocsin.db"

    def test_flag_before_environment_before_file_before_default(self, file, monkeypatch):
        path = file("port = 1\nshards = 1\nlanes = 1\n")
        monkeypatch.setenv("TOCSIN_PORT", "2")
        monkeypatch.setenv("TOCSIN_SHARDS", "2")
        flags = {"config": path, "port": 3, "data_dir": None}
        settings = load_settings(flags)
        assert (settings.port, settings.shards, settings.lanes, settings.data_dir) == (3, 2, 1, Path("data"))
        found = sources(flags)
        assert [found[name] for name in ("port", "shards", "lanes", "host")] == [
            (Origin.FLAG, "--port"),
            (Origin.ENVIRONMENT, "TOCSIN_SHARDS"),
            (Origin.FILE, f"{path}, line 3"),
            (Origin.DEFAULT, ""),
        ]

    def test_the_environment_can_name_the_file(self, file, monkeypatch):
        monkeypatch.setenv("TOCSIN_CONFIG", str(file('[egress]\nallow = ["10.0.0.0/8", "hook:80"]\n')))
        assert load_settings().egress_allow == ["10.0.0.0/8", "hook:80"]

    def test_every_limit_can_be_set_under_its_name(self, monkeypatch):
        # Beside these, everything becomes seven seconds or seven: they have to be something among one another.
        other = {
            "heartbeat_interval_us": 1_000_000,
            "node_lease_us": 2_000_000,
            "drain_timeout_us": 9_000_000,
            "tick_interval_us": 1_000_000,
            "member_forget_us": 8_000_000,
            "namespaces_interval_us": 3_000_000,
            "frame_bytes_max": 20,
        }
        for kind in LIMITS:
            for field in dataclasses.fields(kind):
                seconds = other.get(field.name, 7_000_000) // 1_000_000
                number = str(other.get(field.name, 7))
                text = f"{seconds}s" if field.name.endswith(("_us", "_ms", "_s")) else number
                text = "NORMAL" if field.name == "synchronous" else text
                monkeypatch.setenv(env_name(limit_setting(kind, field)), text)
        settings = load_settings()
        made = (
            settings.engine_limits(),
            settings.callback_limits(),
            settings.input_limits(),
            settings.api_limits(),
            settings.agent_limits(),
            settings.bus_limits(),
            settings.sql_settings(),
            settings.cluster_limits(),
            settings.ui_limits(),
        )
        assert {type(limits) for limits in made} == LIMITS.keys()
        for limits in made:
            for name, value in dataclasses.asdict(limits).items():
                seven = {"_us": 7_000_000, "_ms": 7_000}.get(name[-3:], "NORMAL" if name == "synchronous" else 7)
                assert value == other.get(name, seven), name

    def test_values_as_people_write_them(self, file):
        settings = load_settings(
            {
                "config": file(
                    'insecure = true\nlook_ahead_max = "1m30s"\nwindow_bytes_max = "2MiB"\nlog_level = "INFO"\n'
                    '[sqlite]\nsynchronous = "normal"\nmmap_bytes = 0\n[callbacks]\nconnections_max = 5\n'
                )
            }
        )
        assert settings.insecure is True
        assert settings.engine_limits().look_ahead_max_us == 90_000_000
        assert settings.engine_limits().window_bytes_max == 2 * 1024 * 1024
        assert settings.callback_limits().connections_max == 5
        assert settings.log_level == "info"
        assert settings.sqlite_options()["synchronous"] == "NORMAL"

    def test_lists_in_the_environment(self, monkeypatch):
        monkeypatch.setenv("TOCSIN_EGRESS_ALLOW", "10.0.0.0/8, hook:80")
        assert load_settings().egress_allow == ["10.0.0.0/8", "hook:80"]

    @pytest.mark.parametrize(("text", "value"), [("1", True), ("no", False), ("True", True), ("off", False)])
    def test_truth_in_the_environment(self, monkeypatch, text, value):
        monkeypatch.setenv("TOCSIN_METRICS_OPEN", text)
        assert load_settings().metrics_open is value

    def test_settings_are_fixed(self):
        with pytest.raises(ValueError, match="frozen"):
            load_settings().port = 1


class TestStore:
    @pytest.mark.parametrize(
        ("url", "path"),
        [("sqlite:///a/b.db", "a/b.db"), ("sqlite:////var/b.db", "/var/b.db"), ("sqlite:///b.db", "b.db")],
    )
    def test_paths(self, url, path):
        assert load_settings({"store": url}).sqlite_path() == Path(path)

    def test_an_absolute_data_folder(self, tmp_path):
        assert load_settings({"data_dir": tmp_path}).sqlite_path() == tmp_path / "tocsin.db"

    @pytest.mark.parametrize("url", ["oracle://u:secret@h/db", "tocsin.db", "sqlite://", "sqlite://tocsin.db", ""])
    def test_what_has_no_adapter_is_refused_naming_what_has(self, url):
        said = refusal(store=url)
        assert said.startswith("store (--store)")
        assert "sqlite:///" in said
        assert "secret" not in said

    def test_memory_has_no_file(self):
        with pytest.raises(ConfigError, match="needs a sqlite"):
            load_settings({"store": "memory://"}).sqlite_path()


class TestRefusals:
    def test_unknown_keys_name_line_and_nearest(self, file):
        path = file('prot = 1\n\n# [egress]\n[egress]\nalow = ["x"]\n[other]\nx = 1\n')
        assert refusal(config=path).splitlines() == [
            f"prot ({path}, line 1) is no setting; did you mean port?",
            f"egress.alow ({path}, line 5) is no setting; did you mean egress.allow?",
            f"other.x ({path}, line 7) is no setting; `tocsin config show` lists all",
        ]

    def test_a_key_without_its_table(self, file):
        assert "did you mean egress.allow?" in refusal(config=file("egress_allow = []"))
        gone = refusal(config=file("api.batch_items_per_turn = 5"))
        assert "api.batch_items_per_turn" in gone
        assert "is no setting any more; remove it" in gone

    def test_bad_values_name_their_source(self, file, monkeypatch):
        monkeypatch.setenv("TOCSIN_NODE_LEASE", "3")
        path = file('\n[sqlite]\ncache_bytes = "lots"\n')
        lines = refusal(config=path, port="x").splitlines()
        assert "port (--port): 'x' is not a whole number" in lines
        assert "node_lease (TOCSIN_NODE_LEASE): '3' is not a duration; write it as 500ms, 30s, 5m, 24h or 7d" in lines
        assert any(line.startswith(f"sqlite.cache_bytes ({path}, line 3): 'lots'") for line in lines)

    @pytest.mark.parametrize(
        ("flags", "said"),
        [
            ({"port": 70_000}, "has to be at most 65535"),
            ({"shards": 0}, "has to be at least 1"),
            ({"shards": True}, "is not a whole number"),
            ({"log_format": "xml"}, "is none of auto, console, json"),
            ({"metrics_open": "maybe"}, "is neither true nor false"),
            ({"node_lease": "0s"}, "has to be longer than nothing"),
            ({"egress_allow": 3}, "is not a list of texts"),
            ({"backoff_multiplier_max": "0.5"}, "at least 1"),
            ({"host": ""}, "host (--host)"),
        ],
    )
    def test_values_out_of_range(self, flags, said):
        assert said in refusal(**flags)

    @pytest.mark.parametrize(
        ("flags", "said"),
        [
            ({"node_lease": "1m"}, "member_timeout: 5s has to be longer than node_lease (1m)"),
            ({"heartbeat_interval": "3s"}, "node_lease: 3s has to be longer than heartbeat_interval (3s)"),
            ({"drain_timeout": "10s"}, "drain_timeout: 10s has to be longer than callback_timeout_max (1m)"),
            ({"destination_in_flight_min": 1_000}, "at most destination_in_flight_max"),
        ],
    )
    def test_settings_that_contradict_one_another(self, flags, said):
        assert said in refusal(**flags)

    def test_files_that_can_not_be_read(self, file, tmp_path):
        assert "can't be read: No such file" in refusal(config=tmp_path / "none.toml")
        assert "is not TOML" in refusal(config=file("port = = 1"))
        file("").write_bytes(b"\xff")
        assert "is not TOML" in refusal(config=tmp_path / "tocsin.toml")

    def test_variables_that_are_no_settings(self, monkeypatch):
        monkeypatch.setenv("TOCSIN_PROT", "1")
        monkeypatch.setenv("TOCSIN_URL", "http://x")
        assert unknown_variables() == ["TOCSIN_PROT is no setting; did you mean TOCSIN_PORT?"]


def test_names_are_unique():
    names = [setting_name(field) for field in Settings.model_fields]
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
        assert settings.agent_limits().polling_interval_us == 1_500_000
        assert settings.agent_limits().polling_batch_max == 7
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


@pytest.mark.parametrize(
    ("flags", "runs"),
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
