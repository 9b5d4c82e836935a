"""The harness of `python -m bench peers`, without the peers."""

from __future__ import annotations

import argparse
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bench import __main__ as bench
from bench.peers import install, measuring
from bench.peers.install import PeerUnavailable
from bench.peers.programs import common
from bench.peers.tools import PEERS

from tocsin.model.instants import parse_instant

_PEERS = Path(install.__file__).parent


def test_each_peer_has_a_program_and_a_lock_file() -> None:
    files = [
        file
        for name in PEERS
        if name != "bullmq"
        for file in (f"programs/{name}.py", f"requirements-{name}.in", f"requirements-{name}.txt")
    ]
    assert [file for file in [*files, "js/bullmq.mjs", "js/package-lock.json"] if not (_PEERS / file).exists()] == []


def test_timers_are_due_within_the_spread_and_their_bodies_state_when() -> None:
    order = {"count": 250, "due_us": 4_102_444_800_000_000, "spread_s": 10.0, "batch": 100}
    calls = common._calls(order)
    assert [len(call) for call in calls] == [100, 100, 50]
    timers = [timer for call in calls for timer in call]
    due_us = [parse_instant(msgspec.json.decode(timer.body)["executeAt"]) for timer in timers]
    assert due_us == [int((timer.due - common._EPOCH) / timedelta(microseconds=1)) for timer in timers]
    assert 4_102_444_800_000_000 <= min(due_us) < max(due_us) < 4_102_444_810_000_000
    assert len({timer.name for timer in timers}) == 250
    assert [len(call) for call in common._calls(order | {"batch": 0})] == [1] * 250


def test_a_peer_that_is_not_to_be_had_is_named_and_one_that_fails_fails_in_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(name: str, count: int) -> dict[str, float]:
        if name == "bullmq":
            raise PeerUnavailable("there is no Node.js with npm")
        if name == "celery":
            raise RuntimeError("the program has ended")
        return {"lost": 0.0}

    monkeypatch.setattr(measuring, "measure", measure)
    results: dict[str, Any] = {}
    args = argparse.Namespace(only="bullmq,celery,pgqueuer", timers=640, quick=False, store=None)
    with pytest.raises(SystemExit, match="Celery, Redis: the program has ended"):
        bench._peers(args, results)
    assert list(results) == ["Tocsin, sqlite", PEERS["pgqueuer"].title]
    assert "BullMQ, Redis is unavailable: there is no Node.js with npm" in capsys.readouterr().out


def test_without_node_bullmq_is_not_to_be_had(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PeerUnavailable, match=r"no Node\.js"):
        install.bullmq()
