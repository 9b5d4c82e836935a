"""The size of the largest shard, as databases report it."""

from __future__ import annotations

from tocsin.ports.observer import PartitionSizeMeasured, ShardLost, ShardSizeEstimated
from tocsin.telemetry.metrics import Metrics


def test_the_largest_shard_is_the_one_that_the_database_reports():
    metrics = Metrics(dict)
    assert metrics.largest_shard_bytes() is None
    metrics(PartitionSizeMeasured(5))
    assert metrics.largest_shard_bytes() == 5
    metrics(ShardSizeEstimated(0, 7))
    assert metrics.largest_shard_bytes() == 7
    metrics(ShardLost(0, 1, "fenced"))
    assert metrics.largest_shard_bytes() == 5
