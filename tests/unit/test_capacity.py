"""`tocsin capacity`: its plans agree with the page that they come from, and bad input is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tocsin.cli.app import app
from tocsin.cli.capacity_model import Basis, Load, plan
from tocsin.cli.failure import WrongUsage

SCALE = Path(__file__).parents[2] / "docs" / "explanation" / "scale.md"


def load(**changes: Any) -> Load:
    usual = {
        "creates_per_s": 1_000.0, "fires_per_s": 1_000.0, "pending": 1_000_000, "payload_bytes": 40,
        "batches": False, "retention_s": 0.0, "sqlite": False,
    }  # fmt: skip
    return Load(**{**usual, **changes})


def values(wanted: Load) -> dict[str, float]:
    return {result.name: result.value for result in plan(wanted).results}


def test_a_billion_timers_take_what_the_page_about_scale_plans():
    wanted = load(creates_per_s=1e6, fires_per_s=1e6, pending=10**9, retention_s=1.0)
    found = values(wanted)
    assert plan(wanted).cells == 16
    assert found["nodes"] == 20
    assert found["busy cores of all nodes"] == pytest.approx(11.9, rel=0.02)
    assert found["busy cores of the database"] == pytest.approx(2.8, rel=0.05)
    assert found["write-ahead log, MB/s"] == pytest.approx(115, rel=0.01)
    assert found["disk for pending timers, GB"] == pytest.approx(50, rel=0.05)
    assert found["shards"] == 256
    for number in ("11.9 busy; 20 nodes", "2.8 busy; 8 cores", "115 MB/s", "sixteen cells"):
        assert number in SCALE.read_text(), f"{number}: the page has changed, and so must the constants"


def test_only_what_was_measured_is_marked_so():
    def basis(wanted: Load, name: str) -> Basis:
        return next(result.basis for result in plan(wanted).results if result.name == name)

    log, disk = "write-ahead log, MB/s", "disk for pending timers, GB"
    assert basis(load(), log) is basis(load(), disk) is Basis.MEASURED
    assert basis(load(payload_bytes=1_024), log) is Basis.EXTRAPOLATED
    assert basis(load(creates_per_s=50_000.0), log) is Basis.EXTRAPOLATED
    assert basis(load(pending=10_000_000), log) is Basis.MEASURED
    assert basis(load(pending=10_000_000), disk) is Basis.EXTRAPOLATED
    assert basis(load(pending=10_000_000, sqlite=True), disk) is Basis.MEASURED


@pytest.mark.parametrize(
    "more", [{"creates_per_s": 9e4}, {"fires_per_s": 9e4}, {"pending": 10**8}, {"payload_bytes": 10**5}]
)
@pytest.mark.parametrize("sqlite", [True, False])
def test_a_greater_load_never_takes_less(more: dict[str, Any], sqlite: bool):
    def totals(wanted: Load) -> dict[str, float]:
        found = values(wanted)
        return {
            name: value * plan(wanted).cells * (found["nodes"] if "of a node" in name else 1)
            for name, value in found.items()
        }

    less, greater = totals(load(sqlite=sqlite)), totals(load(sqlite=sqlite, **more))
    assert {name for name in less if greater[name] < less[name]} == set()


def test_sqlite_that_would_be_too_busy_is_advised_against():
    assert plan(load(sqlite=True)).notes == []
    assert "--store postgresql" in plan(load(sqlite=True, creates_per_s=8_000.0)).notes[0]


def test_the_command_prints_json():
    done = CliRunner().invoke(app, ["capacity", "--creates", "30k/min", "--fires", "0/s", "--pending", "0", "--json"])
    assert done.exit_code == 0
    assert {result["basis"] for result in json.loads(done.stdout)["results"]} <= {basis.value for basis in Basis}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--creates", "500"], "--creates"),
        (["--creates", "-5/s"], "--creates"),
        (["--creates", "1/s", "--fires", "many/s"], "--fires"),
        (["--creates", "1/s", "--pending", "10X"], "--pending"),
        (["--creates", "1/s", "--pending", "9" * 400], "--pending"),
        (["--creates", "1/s", "--payload", "1 parsec"], "--payload"),
        (["--creates", "1/s", "--retention", "long"], "--retention"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_bad_input_is_refused_by_name(arguments: list[str], named: str):
    done = CliRunner().invoke(app, ["capacity", *arguments])
    assert isinstance(done.exception, WrongUsage)
    assert str(done.exception).startswith(f"{named}: ")
