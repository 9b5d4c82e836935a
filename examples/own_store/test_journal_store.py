"""The store in a journal passes the conformance tests of all stores."""

from __future__ import annotations

from pathlib import Path

import pytest
from journal_store import JournalStore

from tocsin.model.errors import StoreCorrupted, StoreLocked
from tocsin.ports.store import Applied
from tocsin.testing.store_conformance import StoreConformance
from tocsin.testing.store_conformance_base import TOTAL_SHARDS, claimed


class TestJournalStore(StoreConformance):
    #: How many random histories are tried.
    examples = 20

    def make_store(self, folder: Path) -> JournalStore:
        return JournalStore(folder / "timers.journal")

    async def test_half_a_line_at_the_end_is_cut_off(self, store: JournalStore, tmp_path: Path) -> None:
        batch = await claimed(store)
        await store.close()
        with (tmp_path / "timers.journal").open("ab") as file:
            file.write(b'{"call":"release","argum')
        assert await store.open(None) == TOTAL_SHARDS
        assert await store.apply([batch]) == [Applied.DURABLE]

    async def test_a_damaged_line_stops_the_store(self, store: JournalStore, tmp_path: Path) -> None:
        await store.close()
        with (tmp_path / "timers.journal").open("ab") as file:
            file.write(b"damage\n")
        with pytest.raises(StoreCorrupted, match="line 2 can't be read"):
            await store.open(None)

    async def test_a_second_process_is_refused(self, store: JournalStore, tmp_path: Path) -> None:
        with pytest.raises(StoreLocked):
            await self.make_store(tmp_path).open(None)
