"""Debounced creates on three nodes of a shared database, of which one is killed: the debounce drill, with few of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.drills.debounce import Plan, run
from tests.support.cluster import DATABASE, new_database


@pytest.mark.slow
async def test_debounced_creates_are_all_delivered_once_a_node_is_killed(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    plan = Plan(creates=640, ids=64, rate=160, delay_s=1, max_delay_s=2, in_time=False)
    assert await run(await new_database(request, DATABASE), tmp_path, plan) == []
