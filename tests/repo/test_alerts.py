"""The alert rules: Prometheus accepts them, and the metrics that they name exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.needs import lacking
from tocsin.telemetry.agent_metrics import AGENT_COUNTERS, AGENT_GAUGES, AGENT_HISTOGRAMS
from tocsin.telemetry.metrics import COUNTERS, GAUGES, HISTOGRAMS

RULES = sorted((Path(__file__).parents[2] / "deploy" / "prometheus").glob("*.rules.yml"))


def test_there_are_rules():
    assert RULES


@pytest.mark.parametrize("rules", RULES, ids=lambda path: path.name)
def test_every_metric_that_a_rule_names_exists(rules: Path):
    known = {f"{name}_total" for name in (*COUNTERS, *AGENT_COUNTERS)}
    known |= {f"{name}_bucket" for name in (*HISTOGRAMS, *AGENT_HISTOGRAMS)}
    known |= {*GAUGES, *AGENT_GAUGES}
    named = set(re.findall(r"\btocsin_\w+", rules.read_text()))
    assert named
    assert named <= known


@pytest.mark.parametrize("rules", RULES, ids=lambda path: path.name)
def test_prometheus_accepts_them(rules: Path):
    promtool = shutil.which("promtool")
    if promtool is None:
        lacking("promtool", "Debian's package prometheus has it")
    checked = subprocess.run([promtool, "check", "rules", str(rules)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
