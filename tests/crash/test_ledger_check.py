"""The end-to-end ledger check of `tests.crash.ledger_check`, with few timers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.ledger_check import Plan, check
from tests.support.cluster import new_database


@pytest.mark.timeout(400)
# On DynamoDB and MongoDB, `test_cluster_schedules.py` kills, freezes and restarts nodes.
@pytest.mark.parametrize(("database", "timers", "seconds"), [("postgresql", 6_000, 15), ("cassandra", 2_000, 15)])
async def test_every_timer_is_accounted_for(
    tmp_path: Path, database: str, timers: int, seconds: float, request: pytest.FixtureRequest
) -> None:
    report = await check(Plan(timers, seconds, 20_260, print), tmp_path, await new_database(request, database))
    print("\n".join(report.lines()))
    assert report.passed
    # Many were refused: of a timer that has fired, or whose shard had no owner. On a busy machine most are.
    assert report.updates_acknowledged > 20
    assert report.deletes_acknowledged > 5
