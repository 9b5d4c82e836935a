"""The alert rules: Prometheus accepts them, each fires in its trouble and only then, and each has a runbook."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

import tocsin.server.node  # noqa: F401 -- the modules of a node declare its events
from tests.repo.alert_cases import BURSTS, CALM_MIN, CASES, COURSES, Case
from tests.support.cases import each
from tests.support.promtool import promtool
from tocsin.ports.event import AnyEvent, declared
from tocsin.ports.observer import TimerSuspended
from tocsin.telemetry.metrics import (
    AGENT_GAUGES,
    BREAKER_GAUGES,
    COUNTERS,
    DISK_GAUGES,
    FLOW_GAUGES,
    GAUGES,
    INFOS,
    REQUEST_DURATION,
    REQUESTS,
)

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy/prometheus"
RULES = sorted(FOLDER.glob("*.rules.yml"))
RUNBOOKS = ROOT / "docs/runbooks"
ALERTS_OF = {
    path: {
        rule["alert"]: rule
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    for path in RULES
}
ALERTS = {name: rule for rules in ALERTS_OF.values() for name, rule in rules.items()}
_EVENTS = list(declared(AnyEvent))
_COUNTERS = [*(event.counter for event in _EVENTS if event.counter), *COUNTERS, REQUESTS]
_HISTOGRAMS = [*(histogram for event in _EVENTS for histogram in event.histograms), REQUEST_DURATION]
METRICS = {
    *(f"{counter.name}_total" for counter in _COUNTERS),
    *(f"{histogram.name}{part}" for histogram in _HISTOGRAMS for part in ("", "_bucket", "_count", "_sum")),
    *(event.gauge.name for event in _EVENTS if event.gauge),
    *INFOS,
    *GAUGES,
    *DISK_GAUGES,
    *FLOW_GAUGES,
    *BREAKER_GAUGES,
    *AGENT_GAUGES,
}
#: A metric of the server; `job:tocsin_…` is one that a rule records.
_METRIC = re.compile(r"(?<![\w:])tocsin_\w+")


def test_every_metric_that_a_rule_or_a_runbook_names_exists():
    for path in (*RULES, *RUNBOOKS.glob("*.md")):
        named = {name.rstrip("_") for name in _METRIC.findall(path.read_text())} - {
            "tocsin_late_firings",
            "tocsin_failed_requests",
        }
        assert named <= METRICS, path.name


def test_each_reason_for_which_a_timer_is_suspended_counts_from_zero():
    section = (ROOT / "docs/reference/errors.md").read_text().partition("## Suspended timers")[2].partition("\n## ")[0]
    counter = TimerSuspended.counter
    assert counter is not None
    assert sorted(counter.from_zero) == sorted(re.findall(r"^\| `(\w+):?` ", section, re.MULTILINE))


def test_pings_to_unknown_urls_count_from_zero():
    """Otherwise the first of them is no increase, and a nightly job needs one more night until its alert."""
    (counter,) = (each for each in COUNTERS if each.name == "tocsin_authentication_failures")
    assert "unknown_token" in counter.from_zero


def test_prometheus_accepts_the_rules_and_the_configuration(tmp_path: Path):
    promtool("check", "rules", *RULES)
    promtool("check", "config", FOLDER / "prometheus.yml")
    shown = re.search("^```yaml\n(.*?)^```$", (ROOT / "docs/how-to/monitor.md").read_text(), re.MULTILINE | re.DOTALL)
    assert shown is not None
    key = tmp_path / "tocsin-key"
    key.write_text("tk_key")
    config = tmp_path / "prometheus.yml"
    config.write_text(shown[1].replace("/etc/prometheus/tocsin-key", str(key)))
    promtool("check", "config", config)


def test_every_alert_has_a_case():
    assert sorted(case.alert for case in CASES) == sorted(ALERTS)


def _promtool_test(case: Case) -> dict[str, object]:
    firing = f'count(ALERTS{{alertname="{case.alert}",alertstate="firing"}})'
    times = {CALM_MIN - 0.25: False, CALM_MIN + case.fires_min: True}
    if case.quiet_min >= 0:
        times[CALM_MIN + case.quiet_min] = False
    after = max(case.over_min, 0)
    if case.over_min >= 0:
        times[CALM_MIN + case.lasts_min + after] = False
    return {
        "interval": "15s",
        "name": case.alert,
        "input_series": [
            {"series": series.labelled(), "values": series.values(case.lasts_min, after + 5)} for series in case.series
        ],
        "promql_expr_test": [
            {
                "expr": firing,
                "eval_time": f"{int(minutes * 60)}s",
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
            for minutes, fires in sorted(times.items())
        ],
    }


@pytest.mark.parametrize("rules", RULES, ids=lambda path: path.name)
def test_every_alert_fires_in_its_trouble_and_only_then(rules: Path, tmp_path: Path):
    """Not before, not before its `for` has passed, and not for long after."""
    cases = [case for case in CASES if case.alert in ALERTS_OF[rules]]
    assert cases
    files = []
    for slow in (False, True):
        tests = [_promtool_test(case) for case in cases if case.is_slow == slow]
        test = {"rule_files": [str(rules)], "evaluation_interval": "1m" if slow else "15s", "tests": tests}
        files.append(tmp_path / f"{slow}.test.yml")
        files[-1].write_text(json.dumps(test))
    promtool("test", "rules", *files)


def test_alerts_fire_for_what_happens_for_the_first_time_and_at_once(tmp_path: Path):
    """Counters with labels of their own begin with their first event, so that Prometheus sees no increase of them."""
    (rules,) = [path for path in RULES if all(case.alert in ALERTS_OF[path] for case in BURSTS)]
    test = {
        "rule_files": [str(rules)],
        "evaluation_interval": "15s",
        "tests": [_promtool_test(case) for case in BURSTS],
    }
    (tmp_path / "bursts.test.yml").write_text(json.dumps(test))
    promtool("test", "rules", tmp_path / "bursts.test.yml")


def test_alerts_fire_in_trouble_and_not_in_what_resembles_it(tmp_path: Path):
    tests = [
        {
            "interval": "15s",
            "name": case.alert,
            "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
            "promql_expr_test": [
                {
                    "expr": (
                        f'count(last_over_time(ALERTS{{alertname="{case.alert}",alertstate="firing"}}[{case.minutes}m]))'
                    ),
                    "eval_time": f"{case.minutes}m",
                    "exp_samples": [{"labels": "{}", "value": 1}] if case.fires else [],
                }
            ],
        }
        for case in COURSES
    ]
    assert {case.alert for case in COURSES} <= set(ALERTS)
    test = {"rule_files": [str(path) for path in RULES], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "courses.test.yml").write_text(json.dumps(test))
    promtool("test", "rules", tmp_path / "courses.test.yml")


def test_every_alert_names_its_severity_and_its_runbook():
    for name, rule in ALERTS.items():
        assert rule["labels"]["severity"] in {"critical", "warning"}, name
        assert rule["annotations"]["runbook_url"] == f"https://tocsin.dev/docs/latest/runbooks/{name}"
        assert rule["annotations"]["summary"], name


def test_every_alert_has_a_runbook_and_every_runbook_an_alert():
    assert sorted(path.stem for path in RUNBOOKS.glob("Tocsin*.md")) == sorted(ALERTS)
    listed = re.findall(r"^\| \[(\w+)\]\(\1\.md\) \| (\w+) ", (RUNBOOKS / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted((name, rule["labels"]["severity"]) for name, rule in ALERTS.items())


@each("name", sorted(ALERTS))
def test_a_runbook_answers_the_four_questions(name: str):
    text = (RUNBOOKS / f"{name}.md").read_text()
    assert text.startswith(f"# {name}\n")
    assert re.findall("^## (.*)$", text, re.MULTILINE) == ["Meaning", "Impact", "Check", "Mend"]
