"""Many nodes: the guarantees under faults with flows, what a node does as the cluster grows, and how long faults last."""

from __future__ import annotations

import pytest

from tests.simulation.scale.faults import deaths, take_over
from tests.simulation.scale.loads import loads
from tests.simulation.scale.plan import Costs, Plan

from .world import World

#: More than a node of the small cluster may do, for each node of the large one.
_GROWTH_MAX = 2.5


def _cost(nodes: int, load: str) -> Costs:
    (found,) = (each for each in loads(nodes) if each.name == load)
    return Plan(nodes, 64, load=found).costs(settle_s=2.0, seconds=3.0)


def test_guarantees_hold_on_sixteen_nodes_with_flows() -> None:
    violation = World(3, flowed=True, nodes=16, shards=24, active_s=12.0).run()
    assert violation is None, str(violation)


@pytest.mark.parametrize(("seed", "nodes"), [(5, 16), (4, 64)])
def test_guarantees_hold_on_many_nodes_with_flows(seed: int, nodes: int) -> None:
    violation = World(seed, flowed=True, nodes=nodes, shards=nodes * 3 // 2, active_s=10.0).run()
    assert violation is None, str(violation)


def test_full_flows_cost_a_node_no_more_messages_on_four_times_the_nodes() -> None:
    few, many = _cost(4, "full flows"), _cost(16, "full flows")
    for kind in ("reports of flows", "grants of flows"):
        assert many.messages[kind] < _GROWTH_MAX * few.messages[kind]
    assert many.messages.get("notices of free slots", 0) < many.messages["reports of flows"]


def test_an_attempt_of_a_full_flow_takes_a_few_messages_however_many_nodes_wait() -> None:
    cost = _cost(10, "one full flow")
    assert cost.messages["reports of flows"] < 5 * cost.fires


def test_an_idle_cluster_seldom_reads_its_shards() -> None:
    assert _cost(4, "idle").calls.get("read shards", 0.0) < 0.5


def test_three_of_twenty_nodes_are_replaced_as_fast_as_one_of_three() -> None:
    one, three = (take_over(Plan(nodes, 60), "", deaths(gone)) for nodes, gone in ((3, 1), (20, 3)))
    assert 4.0 < three.over_s < 2 * one.over_s
