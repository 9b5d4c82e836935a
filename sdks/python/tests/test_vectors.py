"""The cases that all SDKs share."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sdks.scenario_runner.expectations import differences

sys.path.insert(0, str(Path(__file__).parents[1]))
from vectors import VECTORS

FILES = sorted((Path(__file__).parents[2] / "vectors").glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_vectors(file):
    cases = json.loads(file.read_text())["cases"]
    failed = {}
    for case in cases:
        try:
            check(file.stem, case)
        except Exception as error:  # noqa: BLE001 (all failures are reported together)
            failed[case["name"]] = repr(error)
    assert cases
    assert failed == {}


def check(name, case):
    expected = case["expect"]
    try:
        result = VECTORS[name](case["with"])
    except ValueError as raised:
        wanted = expected["error"]
        if isinstance(wanted, dict):
            assert type(raised).__name__ == wanted["classes"]["$contains"]
            assert re.search(wanted["message"]["$matches"], str(raised))
        return
    if "error" in expected:
        assert "error" in result
        return
    shown = {member: result.get(member) for member in expected}
    assert shown == pytest.approx(expected) if name == "retries" else differences(expected, shown) == []


def test_the_blocking_client_is_made_from_the_asynchronous_one():
    check = [sys.executable, str(Path(__file__).parents[1] / "unasync.py"), "--check"]
    subprocess.run(check, check=True)
