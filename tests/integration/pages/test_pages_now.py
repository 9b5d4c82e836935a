"""The page Now of a real node: what it claims, and what it leaves open."""

from __future__ import annotations

import pytest

from tests.integration.pages.conftest import Node
from tocsin.timers.engine.placement import ObservedPlacement


async def test_a_shard_that_nobody_owns_is_named(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    browser, owner = node.browser(), ObservedPlacement.owner
    await browser.create("t")
    assert "Quiet: nothing fired" in (await browser.get("/")).text
    monkeypatch.setattr(
        ObservedPlacement, "owner", lambda self, shard_id: None if shard_id == 3 else owner(self, shard_id)
    )
    page = (await browser.get("/")).text
    assert "Nothing fired in the last minute. One shard has no owner." in page
    assert "A shard has no owner" in page
    assert "Quiet" not in page and "Nothing needs attention" not in page and "overdue" not in page
