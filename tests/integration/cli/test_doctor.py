"""`tocsin doctor` without a server."""

from __future__ import annotations

import sqlite3

import pytest

from tests.integration.cli.conftest import answer
from tests.support.ports import free_port
from tocsin.cli.receiver import ReceiverResponse


def found(ran) -> dict[str, tuple[str, str]]:
    """The last finding of each check."""
    return {each["check"]: (each["result"], each["text"]) for each in ran.json()}


def test_a_machine_without_a_store_is_ready_for_one(tocsin, monkeypatch, tmp_path):
    monkeypatch.setenv("TOCSIN_PORT", str(free_port()))
    monkeypatch.setenv("TOCSIN_STOER", "memory://")
    ran = tocsin("doctor")
    assert ran.code == 0, ran.out
    lines = [line.split()[:2] for line in ran.out.splitlines()]
    assert ["warn", "settings"] in lines and ["ok", "store"] in lines and ["ok", "port"] in lines
    monkeypatch.setenv("TOCSIN_UI_ORIGINS", "https://tocsin.example")
    ran = tocsin("doctor", "--json")
    assert (ran.code, found(ran)["keys"][0]) == (1, "fail")
    assert list(tmp_path.iterdir()) == []


def test_wrong_settings_are_named_one_a_line(tocsin, monkeypatch):
    monkeypatch.setenv("TOCSIN_PORT", "high")
    monkeypatch.setenv("TOCSIN_HEARTBEAT_INTERVAL", "never")
    ran = tocsin("doctor")
    assert ran.code == 1
    assert [line.split()[0] for line in ran.out.splitlines()] == ["ok", "fail", "fail"]


def test_what_would_stop_a_server_fails(tocsin, monkeypatch, tmp_path, scripted):
    # It has the port, and is no Tocsin.
    monkeypatch.setenv("TOCSIN_PORT", scripted.url.rpartition(":")[2])
    monkeypatch.setenv("TOCSIN_HOST", "0.0.0.0")
    assert tocsin("migrate", "--no-agent").code == 0
    with sqlite3.connect(tmp_path / "data/tocsin.db") as connection:
        connection.execute("PRAGMA user_version = 999")
        connection.execute("UPDATE meta SET meta_value = 999 WHERE meta_name = 'readable_from'")
    connection.close()
    ran = tocsin("doctor", "--json", "--server", "http://127.0.0.1:9")
    by_check = found(ran)
    assert ran.code == 1
    assert by_check["port"][0] == "fail"
    assert by_check["store"][0] == "fail" and "schema 999" in by_check["store"][1]
    assert by_check["keys"][0] == "fail"
    assert by_check["server"][0] == "fail"
    with sqlite3.connect(tmp_path / "data/tocsin.db") as connection:
        connection.execute("PRAGMA application_id = 1")
    connection.close()
    assert "another application" in found(tocsin("doctor", "--json"))["store"][1]


@pytest.mark.parametrize(
    ("ready", "status", "result"),
    [
        (answer({"status": "ready"}), 404, "warn"),
        (answer({"status": "ready"}), 403, "fail"),
        # Any web server has pages, and lacks this one.
        (ReceiverResponse(200, b"<h1>Welcome</h1>"), 404, "fail"),
    ],
)
def test_metrics_that_a_proxy_hides_are_a_warning(tocsin, monkeypatch, scripted, ready, status, result):
    monkeypatch.setenv("TOCSIN_PORT", str(free_port()))
    scripted.script = [ready, ReceiverResponse(status)]
    ran = tocsin("doctor", "--json", "--server", scripted.url)
    verdict, text = found(ran)["metrics"]
    assert (verdict, ran.code) == (result, int(result == "fail"))
    assert f"responded {status}" in text
