"""The great account in small: see `tests.crash.account`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.account import Plan, account

TIMERS = 6_000


@pytest.mark.timeout(400)
async def test_every_timer_is_accounted_for(tmp_path: Path, postgresql_url: str) -> None:
    balance = await account(Plan(TIMERS, 30, 20_260, print), tmp_path, postgresql_url)
    print("\n".join(balance.lines()))
    assert balance.balances
    assert balance.updates_acknowledged > TIMERS * 0.1
    assert balance.deletes_acknowledged > TIMERS * 0.03
