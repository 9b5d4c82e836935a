"""The traffic of the soak on a node: all of it happens, and its ledger agrees."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.drills.soak.nodes import ENV, PROGRAM
from tests.drills.soak.samples import Sampler
from tests.drills.soak.traffic import Plan, Traffic
from tests.support.cluster import ended, until
from tests.support.needs import lacking
from tests.support.server import ServerProcess
from tocsin.web.pages.assets import Assets

ALL_OF_IT = (
    "calls", "created", "events of pages", "further attempts", "notifications, timer.failed", "pages 200",
    "rows of jobs, cancel", "service calls",
)  # fmt: skip


@pytest.mark.timeout(240)
async def test_what_the_soak_does_is_done_and_accounted_for(tmp_path: Path) -> None:
    if not Assets().built:
        lacking("pages", "the web pages are not built; run `make web`")
    server = ServerProcess(tmp_path / "data", env=ENV, program=PROGRAM)
    async with ended(server):
        await server.start()
        traffic = Traffic([server], Plan(rate=20, retention_s=60))
        ledger = traffic.ledger
        sampler = Sampler([server], None, lambda: ledger.counted["duplicates"])

        async def is_done() -> bool:
            return all(ledger.counted[each] for each in ALL_OF_IT[:-2])

        async with traffic.running(), sampler.watching():
            await until(is_done)
            (node,) = (await sampler.take()).nodes
        assert node.rss_kib > node.heap_kib > node.used_kib > 10_000
        assert node.descriptors > 0 and node.connections > 0 and node.series
        assert sampler.samples[0].files["tocsin.db"] > 0
        assert [each for each in ALL_OF_IT if not ledger.counted[each]] == []
        assert ledger.wrong == []
        # Nothing is owed any more, whenever it was due.
        assert ledger.overdue(2**62) == []
        assert ledger.skipped() == []
        assert await server.stop() == 0
