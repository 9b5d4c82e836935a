"""The dashboards in deploy/grafana are those that the tables make, and the metrics that they name exist."""

from __future__ import annotations

import json
import re

from scripts.dashboards import FOLDER, made

from tests.repo.test_alerts import METRICS
from tests.support.cases import each


def test_the_files_are_up_to_date():
    assert {path: path.read_text() for path in FOLDER.glob("*.json")} == made()


@each("path", sorted(FOLDER.glob("*.json")))
def test_every_panel_is_described_and_its_metrics_exist(path):
    board = json.loads(path.read_text())
    for panel in board["panels"]:
        assert panel["description"], panel["title"]
        assert all(
            name in METRICS for query in panel["targets"] for name in re.findall(r"\btocsin_\w+", query["expr"])
        ), panel["title"]


def test_all_namespaces_are_all_also_those_that_have_created_no_timers():
    """Grafana's "All" is the list of a variable's values unless it has one of its own."""
    found = 0
    for path in FOLDER.glob("*.json"):
        board = json.loads(path.read_text())
        narrowed = {
            name
            for panel in board["panels"]
            for query in panel["targets"]
            for name in re.findall(r"\b(tocsin_\w+)\{[^}]*\$namespace", query["expr"])
        }
        for variable in board["templating"]["list"]:
            if variable["name"] == "namespace":
                found += 1
                assert variable["allValue"] == ".*"
                assert set(re.findall(r"\btocsin_\w+", variable["query"])) == narrowed
    assert found == 1
