"""Monitors on two nodes that are killed, frozen and stopped (rule 33)."""

from __future__ import annotations

import pytest

from . import monitored, watched


@pytest.mark.parametrize("seed", [3])
def test_jobs_are_late_when_they_are_and_not_when_nodes_are_away(seed: int) -> None:
    assert monitored.violation(seed, hours=1) == ""


@pytest.mark.parametrize("seed", [1])
def test_schedules_are_late_when_they_are_and_not_when_nodes_are_away(seed: int) -> None:
    assert watched.violation(seed, hours=2) == ""


@pytest.mark.wide
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [4])
def test_a_day_of_schedules_is_accounted_for(seed: int) -> None:
    assert watched.violation(seed, hours=24) == ""


@pytest.mark.wide
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [4])
def test_a_day_is_accounted_for(seed: int) -> None:
    assert monitored.violation(seed, hours=24) == ""
