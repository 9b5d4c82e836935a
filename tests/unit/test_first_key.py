"""What the first API key touches, and how it is asked about."""

from __future__ import annotations

import sys

import pytest
from tests.simulation.crowd import Crowd

from tocsin.cli.command import Refused, WrongUsage
from tocsin.cli.keys import confirm
from tocsin.server import first_key
from tocsin.server.first_key import Touched, touched_by_first_key
from tocsin.settings import load_settings

HOSTS = ("127.0.0.1:9000", "localhost", "10.1.2.3", "[::1]", "hooks.example", "93.184.215.14", "10.9.9.9")


def touched(hosts: tuple[str, ...] = HOSTS, **flags: object) -> Touched:
    crowd = Crowd(shards=2)
    for number, host in enumerate(hosts):
        crowd.keep(f"t{number}", host, number, shard=number % 2)
    crowd.keep("agent", "127.0.0.1", 1, namespace="tocsin.agent")
    # It waits for its namespace or its destination.
    crowd.keep("paused", "10.1.2.3", 1, suspended="paused")
    # It waits for other settings, with or without a key.
    crowd.keep("refused", "10.1.2.3", 1, suspended="egress")
    crowd.loop.run_until_complete(crowd._fill())
    return crowd.loop.run_until_complete(touched_by_first_key(crowd.store, 2, load_settings(flags)))


def test_timers_to_private_addresses_that_the_settings_do_not_allow_are_counted() -> None:
    found = touched(egress_allow="10.9.0.0/16")
    assert (found.found, found.more) == (5, False)
    assert found.hosts == ("http://127.0.0.1:9000", "http://10.1.2.3:80", "http://localhost:80")
    for flags in ({"egress_allow_private": "true"}, {"egress_allow_private": "false"}, {"host": "0.0.0.0"}):
        # The key changes nothing.
        assert touched(**flags).found == 0


def test_the_count_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_key, "COUNTED_MAX", 2)
    assert touched()[::2] == (2, True)


def test_the_question(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = Touched(10_000, ("http://127.0.0.1:9000",), more=True)
    with pytest.raises(WrongUsage, match=r"private addresses: at least 10,000 .*9000, …; .*--yes"):
        confirm(found)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    with pytest.raises(Refused, match="no key was created"):
        confirm(found)
    assert "suspends them" in capsys.readouterr().err
    monkeypatch.setattr("typer.confirm", lambda *_, **__: True)
    confirm(found)
