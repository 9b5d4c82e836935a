"""The example for Alertmanager: it accepts the file, and an outage of the database pages once, whatever else it breaks."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.repo.test_alerts import ALERTS, FOLDER, RULES
from tests.support.needs import lacking
from tests.support.promtool import promtool

FILE = FOLDER / "alertmanager.yml"
INHIBITS = yaml.safe_load(FILE.read_text())["inhibit_rules"]
SOURCE = "TocsinStoreAway"
_STEP_S = 15
#: Four seconds before a scrape: the nodes have just paused when Prometheus looks, so the symptoms are as early as can be.
_BEGIN_S = 20 * 60 - 4
#: How long the slowest window of a paging alert remembers the outage, and some more.
_AFTER_S = 45 * 60


def _amtool(*arguments: str | Path) -> str:
    program = shutil.which("amtool")
    if program is None:
        lacking("amtool", "Debian's package prometheus-alertmanager has it")
    ran = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.strip()


def test_alertmanager_accepts_the_example_and_pages_for_critical_alerts_only():
    _amtool("check-config", FILE)
    for severity, receiver in (("critical", "pager"), ("warning", "messages")):
        assert _amtool("config", "routes", "test", f"--config.file={FILE}", f"severity={severity}") == receiver


def test_the_example_names_alerts_that_exist():
    for rule in INHIBITS:
        for matcher in (*rule["source_matchers"], *rule["target_matchers"]):
            names = re.findall(r"\w+", matcher.replace("Tocsin(", "(").partition("=")[2])
            assert {f"Tocsin{name.removeprefix('Tocsin')}" for name in names} <= set(ALERTS), matcher


def _selector(matchers: list[str]) -> str:
    """The firing alerts that Alertmanager's matchers match, in Prometheus' language."""
    parts = (re.fullmatch(r'(\w+)\s*(=~|!~|!=|=)\s*"?(.*?)"?', matcher) for matcher in matchers)
    return 'ALERTS{alertstate="firing",' + ",".join(f'{part[1]}{part[2]}"{part[3]}"' for part in parts if part) + "}"


def _notifying(names: str = 'alertname!=""', by: str = "job, alertname") -> str:
    """The critical alerts of these names that fire and that no rule of the file inhibits."""
    critical = f'ALERTS{{alertstate="firing",severity="critical",{names}}}'
    for rule in INHIBITS:
        on = ",".join(rule["equal"])
        inhibited = f"({_selector(rule['target_matchers'])} and on ({on}) {_selector(rule['source_matchers'])})"
        critical = f"({critical} unless {inhibited})"
    return f"group by ({by}) ({critical})"


def _outage(lasts_s: float, heartbeats_per_min: float) -> list[dict[str, str]]:
    """What two nodes show that lose their database and get it back."""
    end_s = _BEGIN_S + lasts_s

    def grows(calm: float, trouble: float) -> Callable[[float], float]:
        """A counter, by its growth per minute without and within the outage."""

        def total(at_s: float) -> float:
            within_s = min(max(at_s - _BEGIN_S, 0), lasts_s)
            return ((at_s - within_s) * calm + within_s * trouble) / 60

        return total

    def during(value: float, else_: float, delay_s: float) -> Callable[[float], float]:
        return lambda at_s: value if _BEGIN_S + delay_s <= at_s < end_s else else_

    on_time = grows(60, 0)
    node: dict[str, Callable[[float], float]] = {
        "up": lambda at_s: 1,
        "tocsin_dispatching": during(0, 1, 3),
        "tocsin_agent_running": during(0, 1, 5),
        "tocsin_shards_without_owner": during(16, 0, 5),
        "tocsin_writes_without_owner": during(5, 0, 5),
        "tocsin_overdue_seconds": lambda at_s: at_s - _BEGIN_S if _BEGIN_S <= at_s < end_s else 0,
        "tocsin_heartbeat_failures_total": grows(0, heartbeats_per_min),
        'tocsin_commits_total{result="unavailable"}': grows(0, 60),
        "tocsin_load_failures_total": grows(0, 300),
        'tocsin_requests_total{operation="createTimer",status="200"}': grows(100, 0),
        'tocsin_requests_total{operation="createTimer",status="503"}': grows(0, 100),
        'tocsin_lag_seconds_bucket{le="1.0"}': on_time,
        # What was due in the outage fires late at its end.
        "tocsin_lag_seconds_count": lambda at_s: on_time(at_s) + (lasts_s if at_s >= end_s else 0),
    }
    times = range(0, int(end_s + _AFTER_S), _STEP_S)
    made = []
    for instance in ("a:8080", "b:8080"):
        for series, value in node.items():
            name, _, labels = series.partition("{")
            labelled = f'{name}{{job="tocsin",instance="{instance}"{"," + labels if labels else "}"}'
            made.append({"series": labelled, "values": " ".join(f"{value(at_s):g}" for at_s in times)})
    return made


@pytest.mark.parametrize(
    ("lasts_s", "heartbeats_per_min", "fires"),
    [
        # A fail-over, which a node survives without a hand-over, pages nobody.
        (3, 60, ""),
        (5, 60, ""),
        (8, 60, f"{SOURCE} HeartbeatsFail"),
        (21, 60, f"{SOURCE} HeartbeatsFail RequestsFail TimersLate"),
        # A database that does not answer: each heartbeat waits for its time limit.
        (300, 20, f"{SOURCE} AgentNotRunning CommitsFail HeartbeatsFail LoadsFail NothingFires OverdueLong RequestsFail"
         " ShardsWithoutOwner TimersLate WritesWithoutOwner"),
    ],
    ids=["3 s", "5 s", "8 s", "21 s", "5 min"],
)  # fmt: skip
def test_an_outage_of_the_database_pages_at_most_once(
    lasts_s: float, heartbeats_per_min: float, fires: str, tmp_path: Path
):
    end_s = int(_BEGIN_S + lasts_s)
    over_s = end_s + _AFTER_S - _STEP_S
    fired = f'group by (alertname) (last_over_time(ALERTS{{alertstate="firing",severity="critical"}}[{over_s}s]))'
    names = sorted(f"Tocsin{name.removeprefix('Tocsin')}" for name in fires.split())
    paged = [{"labels": f'{{alertname="{SOURCE}",job="tocsin"}}', "value": 1}] if fires else []
    expected = [
        # They all fire: it is the file that keeps them quiet.
        (fired, over_s, [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in names]),
        *((_notifying(), at_s, paged) for at_s in (max(_BEGIN_S + 64, end_s), end_s + 570)),
        *((_notifying(f'alertname!="{SOURCE}"'), at_s, []) for at_s in range(0, over_s, _STEP_S)),
        (_notifying(), over_s, []),
    ]
    _evaluate(tmp_path / "outage.test.yml", _outage(lasts_s, heartbeats_per_min), expected)


_Expected = tuple[str, int, list[dict[str, object]]]


def _evaluate(file: Path, series: list[dict[str, str]], expected: list[_Expected]) -> None:
    """Has promtool compare what each expression is at its second."""
    tests = [
        {
            "interval": f"{_STEP_S}s",
            "input_series": series,
            "promql_expr_test": [
                {"expr": expr, "eval_time": f"{at_s}s", "exp_samples": samples} for expr, at_s, samples in expected
            ],
        }
    ]
    rules = [str(path) for path in RULES]
    file.write_text(json.dumps({"rule_files": rules, "evaluation_interval": f"{_STEP_S}s", "tests": tests}))
    promtool("test", "rules", file)


def test_a_node_that_cannot_write_silences_its_own_symptoms_and_not_those_of_others(tmp_path: Path):
    """The one called a was left with an old password; meanwhile b is overloaded, and its timers are late."""
    lasts_min = 40

    def on(node: str, name: str, labels: str = "") -> str:
        return f'{name}{{job="tocsin",instance="{node}:8080"{labels}}}'

    values = {
        on("a", "tocsin_dispatching"): "0x160",
        on("b", "tocsin_dispatching"): "1x160",
        on("a", "tocsin_heartbeat_failures_total"): "0+5x160",
        on("b", "tocsin_heartbeat_failures_total"): "0x160",
        on("a", "tocsin_commits_total", ',result="unavailable"'): "0+5x160",
        on("a", "tocsin_overdue_seconds"): "0+15x160",
        on("b", "tocsin_overdue_seconds"): "0x40 70x120",
        on("b", "tocsin_lag_seconds_bucket", ',le="1.0"'): "0+15x40 600x120",
        on("b", "tocsin_lag_seconds_count"): "0+15x160",
    }
    series = [{"series": name, "values": shown} for name, shown in values.items()]
    paged = [
        {"labels": f'{{alertname="Tocsin{name}",job="tocsin"}}', "value": 1}
        for name in ("HeartbeatsFail", "OverdueLong", "TimersLate")
    ]
    # Of b alone: those of a are its symptoms.
    others = _notifying('alertname=~"Tocsin(OverdueLong|CommitsFail)"', by="instance")
    expected: list[_Expected] = [
        (_notifying(), lasts_min * 60, paged),
        (others, lasts_min * 60, [{"labels": '{instance="b:8080"}', "value": 1}]),
    ]
    _evaluate(tmp_path / "node.test.yml", series, expected)
