"""What the SDKs have in common: generated files are current, scenarios are written as the harness reads them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from sdks import generate
from sdks.scenario_runner.expectations import differences, filled
from sdks.scenario_runner.scenarios import scenarios

SDKS = Path(generate.SDKS)
_MEMBERS = {"name", "since", "needs", "client", "namespace", "receiver", "steps"}
_OF_STEP = {"do", "with", "client", "cancelAfterMs", "expect", "expectError", "repeat", "save"}
_PARTS = {"audit", "batcher", "calls", "cancel", "dedup", "keys", "outbox", "receiver", "routing", "schedules"}


def test_generated_files_are_current() -> None:
    assert [str(path) for path in generate.outdated()] == [], "run `make docs`"


def test_scenarios_have_the_documented_members() -> None:
    described = scenarios(SDKS)
    assert [name for name, count in Counter(name for name, _ in described).items() if count > 1] == []
    for name, scenario in described:
        assert scenario.keys() <= _MEMBERS, name
        assert set(scenario.get("needs", ())) <= _PARTS, name
        for step in scenario["steps"]:
            assert {"do"} <= step.keys() <= _OF_STEP, (name, step)


def test_vectors_have_unique_names() -> None:
    for path in (SDKS / "vectors").glob("*.json"):
        cases: list[dict[str, Any]] = json.loads(path.read_text())["cases"]
        assert len({case["name"] for case in cases}) == len(cases), path.name
        assert all(case.keys() == {"name", "with", "expect"} for case in cases), path.name


def test_expectations() -> None:
    actual = {"id": "t", "n": 3, "tags": ["a", "b"], "none": None, "ok": True}
    for fits in (
        {}, {"id": "t"}, {"none": None, "absent": None}, {"id": {"$matches": "^t"}}, {"n": {"$ge": 3}}, {"n": {"$le": 3}},
        {"absent": {"$absent": True}}, {"n": {"$any": True}}, {"n": {"$not": 4}}, {"tags": {"$count": 2}},
        {"tags": {"$contains": "b"}}, {"tags": {"$unordered": ["b", "a"]}}, {"tags": {"$each": {"$matches": "."}}},
    ):  # fmt: skip
        assert differences(fits, actual) == [], fits
    for differs in (
        {"id": "u"}, {"absent": 1}, {"none": {"$any": True}}, {"id": {"$matches": "u"}}, {"n": {"$ge": 4}}, {"n": {"$le": 2}},
        {"id": {"$absent": True}}, {"n": {"$not": 3}}, {"n": True}, {"ok": 1}, {"tags": ["a"]}, {"tags": {"$count": 1}},
        {"tags": {"$contains": "c"}}, {"tags": {"$unordered": ["b", "b"]}}, {"tags": {"$each": "a"}}, {"id": {"x": 1}}, [],
    ):  # fmt: skip
        assert differences(differs, actual), differs
    assert filled({"a": ["${x}", "-${x}-"]}, {"x": 1}.__getitem__) == {"a": [1, "-1-"]}
