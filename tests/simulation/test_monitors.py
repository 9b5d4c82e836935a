"""Monitors on two nodes that are killed, frozen and stopped (rule 33)."""

from __future__ import annotations

import pytest

from .monitored import violation


@pytest.mark.parametrize("seed", [3])
def test_jobs_are_late_when_they_are_and_not_when_nodes_are_away(seed: int) -> None:
    assert violation(seed, hours=1) == ""


@pytest.mark.wide
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [4])
def test_a_day_is_accounted_for(seed: int) -> None:
    assert violation(seed, hours=24) == ""
