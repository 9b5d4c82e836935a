"""The end-to-end ledger check of `tests.crash.ledger_check`, with few timers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.ledger_check import Plan, check

TIMERS = 6_000


@pytest.mark.timeout(400)
async def test_every_timer_is_accounted_for(tmp_path: Path, postgresql_url: str) -> None:
    report = await check(Plan(TIMERS, 30, 20_260, print), tmp_path, postgresql_url)
    print("\n".join(report.lines()))
    assert report.passed
    assert report.updates_acknowledged > TIMERS * 0.1
    assert report.deletes_acknowledged > TIMERS * 0.03
