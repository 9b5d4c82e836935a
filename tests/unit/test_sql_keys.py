"""Key ranges as positions of rows, and the known left edges of shards."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.cases import each

from tocsin.ports.store import KEY_MAX, KEY_MIN, ShardBatch
from tocsin.sql.keys import UUID_MAX, UUID_MIN, LeftEdges, above, at_least, at_most
from tocsin.testing.store_conformance_base import ALICE, BOB, row, uuid_of

BATCH = ShardBatch(0, 1, ALICE)


@each(
    "key, least, most, next_one",
    [
        (KEY_MIN, (KEY_MIN[0], UUID_MIN), None, (KEY_MIN[0], UUID_MIN)),
        (KEY_MAX, KEY_MAX, KEY_MAX, None),
        ((5, b""), (5, UUID_MIN), (4, UUID_MAX), (5, UUID_MIN)),
        ((5, uuid_of(7)), (5, uuid_of(7)), (5, uuid_of(7)), (5, uuid_of(8))),
        ((5, uuid_of(255)), (5, uuid_of(255)), (5, uuid_of(255)), (5, uuid_of(256))),
        ((5, UUID_MAX), (5, UUID_MAX), (5, UUID_MAX), (6, UUID_MIN)),
    ],
)
def test_positions_at_key_bounds(key, least, most, next_one):
    assert (at_least(key), at_most(key), above(key)) == (least, most, next_one)


class TestLeftEdges:
    def test_edge_is_unknown_before_the_first_range_delete(self):
        edges = LeftEdges()
        edges.put(replace(BATCH, upserts=[row(1, 10)]), edges.take(BATCH))
        assert edges.take(BATCH) == KEY_MIN

    def test_edge_is_the_last_watermark_or_the_lowest_row_written_since(self):
        edges = LeftEdges()
        edges.put(replace(BATCH, delete_to=(10, uuid_of(1))), edges.take(BATCH))
        edges.put(replace(BATCH, upserts=[row(2, 50)]), edges.take(BATCH))
        edges.put(BATCH, edges.take(BATCH))
        assert edges.take(BATCH) == (10, uuid_of(1))
        edges.put(replace(BATCH, upserts=[row(3, 60), row(4, 5)]), (10, uuid_of(1)))
        assert edges.take(BATCH) == (5, uuid_of(4))

    def test_lower_watermark_does_not_lower_the_edge(self):
        edges = LeftEdges()
        edges.put(replace(BATCH, delete_to=(10, uuid_of(1))), edges.take(BATCH))
        edges.put(replace(BATCH, delete_to=(3, uuid_of(1))), edges.take(BATCH))
        assert edges.take(BATCH) == (10, uuid_of(1))

    def test_batch_with_an_unknown_outcome_makes_the_edge_unknown(self):
        edges = LeftEdges()
        edges.put(replace(BATCH, delete_to=(10, uuid_of(1))), edges.take(BATCH))
        edges.take(BATCH)
        assert edges.take(BATCH) == KEY_MIN

    @pytest.mark.parametrize("other", [replace(BATCH, epoch=2), replace(BATCH, owner=BOB)])
    def test_new_claim_starts_with_an_unknown_edge(self, other):
        edges = LeftEdges()
        edges.put(replace(BATCH, delete_to=(10, uuid_of(1))), edges.take(BATCH))
        assert edges.take(other) == KEY_MIN
