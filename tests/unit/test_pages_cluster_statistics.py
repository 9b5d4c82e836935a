"""Statistics of all nodes, merged: totals, percentiles, and the gaps of nodes whose data is missing."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import msgspec
import pytest

from tocsin.model.errors import Unavailable
from tocsin.ports.forward import NodeReport
from tocsin.ports.observer import AttemptFinished, TimersCreated
from tocsin.ports.statistics import OTHER_DESTINATIONS, StatisticsReport, StatisticsSlot, total
from tocsin.testing.clock import FakeClock
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.overview.cluster_statistics import ClusterStatistics, Gap
from tocsin.web.pages.overview.statistics import Statistics

SECOND = 1_000_000
WIDTH = 10 * SECOND
LIMITS = UiLimits(chart_points=6, chart_destinations_max=2, statistics_interval_s=0.0)


class StatisticsNode:
    """A node with its own statistics."""

    def __init__(self, name: str, clock: FakeClock, limits: UiLimits) -> None:
        self.name = name
        self.gauges = {"tocsin_overdue_seconds": 0.0, "tocsin_window_timers": 0.0, "tocsin_callbacks_in_flight": 0.0}
        self.statistics = Statistics(limits, clock.now_us(), lambda: self.gauges)
        self.unresponsive = False
        self.paused: str | None = None
        self.agent = False

    def fires(self, *lags_ms: float, outcome: str = "done", destination: str = "http://x:80") -> None:
        for lag_ms in lags_ms:
            error = None if outcome == "done" else "HTTP_503"
            lag_us = round(lag_ms * 1_000)
            self.statistics(AttemptFinished(0, "default", "t", 1, outcome, error, lag_us, 10, destination))


class Several:
    """Several nodes, as seen by the first one; reports are encoded as between nodes."""

    def __init__(self, *names: str, limits: UiLimits = LIMITS) -> None:
        self.clock = FakeClock()
        self.limits = limits
        self.known = {name.encode() * 8: StatisticsNode(name, self.clock, limits) for name in names}
        self.first = next(iter(self.known))
        self.polls: Counter[str] = Counter()
        self.blocked: asyncio.Event | None = None
        self.cluster_statistics = ClusterStatistics(self[self.node].statistics, self, self.clock, limits)

    def __getitem__(self, name: str) -> StatisticsNode:
        return next(node for node in reversed(self.known.values()) if node.name == name)

    @property
    def node(self) -> str:
        return self.known[self.first].name

    def other_nodes(self) -> dict[bytes, str]:
        return {incarnation: node.name for incarnation, node in self.known.items() if incarnation != self.first}

    async def statistics_of(self, incarnation: bytes, after_us: int) -> tuple[NodeReport, StatisticsReport]:
        node = self.known[incarnation]
        self.polls[node.name] += 1
        if self.blocked is not None:
            await self.blocked.wait()
        if node.unresponsive:
            raise Unavailable("unresponsive")
        report = NodeReport("1", node.paused is None, node.paused, node.agent, [])
        report_bytes = msgspec.msgpack.encode(node.statistics.report(after_us))
        return report, msgspec.msgpack.decode(report_bytes, type=StatisticsReport)

    def passes(self, seconds: int = 10) -> None:
        for _ in range(seconds):
            self.clock.advance(SECOND)
            for node in self.known.values():
                node.statistics.roll(self.clock.now_us())


def fires(slots: list[StatisticsSlot]) -> int:
    return total(slots, LIMITS.chart_destinations_max).fires


async def test_counts_are_summed_and_percentiles_cover_all_fires() -> None:
    nodes = Several("a", "b")
    nodes["a"].fires(*[1.0] * 99)
    nodes["b"].fires(*[1_000.0] * 3, outcome="failed")
    nodes["a"].statistics(TimersCreated("default", 4))
    nodes["b"].statistics(TimersCreated("default", 5))
    nodes["a"].gauges |= {"tocsin_overdue_seconds": 1.0, "tocsin_window_timers": 2.0}
    nodes["b"].gauges |= {"tocsin_overdue_seconds": 3.0, "tocsin_window_timers": 5.0, "tocsin_callbacks_in_flight": 7.0}
    nodes.passes()
    await nodes.cluster_statistics.refresh()
    hour = nodes.cluster_statistics.hour()
    (slot,) = hour.slots
    assert (slot.created, slot.fires, slot.done, slot.failed) == (9, 102, 99, 3)
    assert (slot.overdue_s, slot.window_timers, slot.in_flight) == (3.0, 7.0, 7.0)
    assert (hour.now.overdue_s, hour.now.window_timers, hour.now.in_flight) == (3.0, 7.0, 7.0)
    # The percentile covers a hundred fast fires and three slow ones; a mean of the nodes' percentiles would lie in between.
    whole = total((nodes[node].statistics.slots[0] for node in ("a", "b")), 2)
    assert slot.lag.percentile_ms(0.97) == whole.lag.percentile_ms(0.97)
    assert slot.lag.percentile_ms(0.97) < 2
    assert slot.lag.percentile_ms(0.99) == 1_000.0
    assert slot.failing["http://x:80"].failures == 3
    assert (hour.nodes, hour.gaps, hour.paused, hour.agent) == (2, [], [], False)
    assert [name for name, _ in hour.starts] == ["a", "b"]
    # Each node alone has its own counts.
    alone = {name: nodes.cluster_statistics.hour(name) for name in ("a", "b")}
    assert {name: (fires(hour.slots), hour.now.overdue_s) for name, hour in alone.items()} == {
        "a": (99, 1.0), "b": (3, 3.0),
    }  # fmt: skip
    assert nodes.cluster_statistics.hour("c").nodes == 0


async def test_earlier_start_of_this_node_is_no_gap() -> None:
    nodes = Several("a", "b")
    # The node was killed and restarted: its earlier start is still a member for a while. Another node of its name responds.
    nodes.known |= {
        b"earlier": StatisticsNode("a", nodes.clock, LIMITS),
        b"namesake": StatisticsNode("a", nodes.clock, LIMITS),
    }
    nodes.known[b"earlier"].unresponsive = True
    await nodes.cluster_statistics.refresh()
    assert nodes.cluster_statistics.hour().gaps == []
    del nodes.known[b"earlier"], nodes.known[b"namesake"]
    await nodes.cluster_statistics.refresh()
    assert [(gap.node, gap.ended, gap.from_us) for gap in nodes.cluster_statistics.hour().gaps] == [
        ("a", True, nodes.clock.now_us())
    ]


async def test_bucket_is_counted_once_after_all_nodes_completed_it() -> None:
    nodes = Several("a", "b")
    for step in range(1, 10):
        nodes["a"].fires(1.0)
        nodes["b"].fires(1.0, 1.0)
        await nodes.cluster_statistics.refresh()
        await nodes.cluster_statistics.refresh()
        hour = nodes.cluster_statistics.hour()
        assert fires(hour.open) == 3
        assert fires(hour.slots) == 3 * min(step - 1, LIMITS.chart_points)
        nodes.passes()
    # A node that has not completed its bucket yet keeps it open.
    nodes["a"].fires(1.0)
    nodes.clock.advance(WIDTH)
    nodes["a"].statistics.roll(nodes.clock.now_us())
    await nodes.cluster_statistics.refresh()
    hour = nodes.cluster_statistics.hour()
    assert nodes["b"].statistics.present.begins_us not in [slot.begins_us for slot in hour.slots]
    assert fires(hour.open) == 1
    # Buckets older than the charts are discarded.
    assert len(nodes.cluster_statistics._sums) <= LIMITS.chart_points + 1


async def test_many_buckets_arrive_in_several_messages() -> None:
    nodes = Several("a", "b", limits=replace(LIMITS, chart_points=50, statistics_slots_max=1))
    for _ in range(20):
        nodes["b"].fires(1.0)
        nodes.passes()
    await nodes.cluster_statistics.refresh()
    assert nodes.polls["b"] == 20
    assert fires(nodes.cluster_statistics.hour().slots) == 20
    await nodes.cluster_statistics.refresh()
    assert nodes.polls["b"] == 21


async def test_failing_destinations_beyond_the_limit_are_counted_together() -> None:
    nodes = Several("a", "b")
    nodes["a"].fires(1.0, 1.0, outcome="failed", destination="http://1:80")
    nodes["a"].fires(1.0, outcome="retried", destination="http://2:80")
    nodes["b"].fires(1.0, outcome="failed", destination="http://3:80")
    nodes.passes()
    await nodes.cluster_statistics.refresh()
    (slot,) = nodes.cluster_statistics.hour().slots
    assert len(slot.failing) == 3
    assert OTHER_DESTINATIONS in slot.failing
    assert sum(one.failures for one in slot.failing.values()) == 4
    assert sum(one.exhausted for one in slot.failing.values()) == 3


async def test_nodes_are_polled_on_demand_and_once_for_concurrent_pages() -> None:
    nodes = Several("a", "b", "c", limits=replace(LIMITS, statistics_interval_s=3_600.0))
    nodes.passes(30)
    assert not nodes.polls
    nodes.blocked = asyncio.Event()
    callers = [asyncio.ensure_future(nodes.cluster_statistics.refresh()) for _ in range(50)]
    await asyncio.sleep(0)
    # A canceled caller does not cancel the poll for the others.
    callers[0].cancel()
    await asyncio.sleep(0)
    nodes.blocked.set()
    await asyncio.gather(*callers[1:])
    for _ in range(50):
        await nodes.cluster_statistics.refresh()
    assert nodes.polls == {"b": 1, "c": 1}
    assert nodes.cluster_statistics.round == 1


async def test_data_of_an_unresponsive_node_is_missing_until_it_responds_again() -> None:
    nodes = Several("a", "b")
    nodes["b"].fires(1.0)
    nodes["b"].gauges["tocsin_overdue_seconds"] = 9.0
    await nodes.cluster_statistics.refresh()
    received_us = nodes.clock.now_us()
    nodes["b"].unresponsive = True
    nodes.passes()
    nodes["b"].fires(1.0, 1.0)
    await nodes.cluster_statistics.refresh()
    hour = nodes.cluster_statistics.hour()
    assert hour.gaps == [Gap("b", received_us, None, False, "does not respond")]
    # The data received before stays; its current gauges are left out.
    assert fires([*hour.slots, *hour.open]) == 1
    assert hour.now.overdue_s == 0.0
    assert nodes.cluster_statistics.hour("a").gaps == []
    assert nodes.cluster_statistics.hour("b").gaps == hour.gaps
    nodes["b"].unresponsive = False
    await nodes.cluster_statistics.refresh()
    hour = nodes.cluster_statistics.hour()
    assert (hour.gaps, fires([*hour.slots, *hour.open]), hour.now.overdue_s) == ([], 3, 9.0)


async def test_data_between_the_last_poll_and_the_stop_of_a_node_stays_missing() -> None:
    nodes = Several("a", "b")
    nodes["b"].fires(1.0)
    await nodes.cluster_statistics.refresh()
    received_us = nodes.clock.now_us()
    nodes.passes(5)
    gone = nodes.known.popitem()
    await nodes.cluster_statistics.refresh()
    ended = Gap("b", received_us, received_us + 5 * SECOND, True, "has stopped")
    assert nodes.cluster_statistics.hour().gaps == [ended]
    assert nodes.cluster_statistics.nodes() == ["a", "b"]
    # The node starts again, and its data is complete from then on.
    nodes.known[b"other"] = StatisticsNode("b", nodes.clock, LIMITS)
    nodes["b"].fires(1.0)
    nodes.passes(20)
    await nodes.cluster_statistics.refresh()
    for choice in (None, "b"):
        hour = nodes.cluster_statistics.hour(choice)
        assert hour.gaps == [ended]
        assert fires([*hour.slots, *hour.open]) == 2
    # An earlier start that was considered dead may resume.
    nodes.known[gone[0]] = gone[1]
    await nodes.cluster_statistics.refresh()
    assert nodes.cluster_statistics.hour().gaps == []
    del nodes.known[gone[0]]
    await nodes.cluster_statistics.refresh()
    # The gap is discarded once it is older than the charts.
    nodes.passes(80)
    await nodes.cluster_statistics.refresh()
    assert nodes.cluster_statistics.hour().gaps == []
    assert len(nodes.cluster_statistics._others) == 1


async def test_gap_names_the_node_and_the_reason() -> None:
    nodes = Several("a", "c", "e")
    nodes.known[b"c" * 8].statistics = Statistics(replace(LIMITS, chart_interval_s=5.0), 0, lambda: nodes["c"].gauges)
    nodes["e"].unresponsive = True
    await nodes.cluster_statistics.refresh()
    assert [(gap.node, gap.from_us, gap.why) for gap in nodes.cluster_statistics.hour().gaps] == [
        ("c", None, "uses points of 5 s, unlike this node (ui.chart_interval)"),
        ("e", None, "does not respond"),
    ]
    assert nodes.cluster_statistics.hour().nodes == 3
    hour = nodes.cluster_statistics.hour("e")
    assert (hour.nodes, hour.slots, hour.open) == (1, [], [])


async def test_stopped_nodes_use_bounded_memory() -> None:
    nodes = Several("a", limits=replace(LIMITS, ended_nodes_max=2))
    for number in range(6):
        nodes.known[bytes([number])] = StatisticsNode(f"n{number}", nodes.clock, LIMITS)
        nodes.known[bytes([number])].unresponsive = number == 0
        await nodes.cluster_statistics.refresh()
        nodes.clock.advance(SECOND)
        nodes.known.popitem()
        await nodes.cluster_statistics.refresh()
    gaps = nodes.cluster_statistics.hour().gaps
    assert [gap.node for gap in gaps] == ["n4", "n5", "other nodes"]
    assert (gaps[2].from_us, gaps[2].to_us) == (None, nodes.clock.now_us() - 2 * SECOND)
    assert len(nodes.cluster_statistics._others) == 2


@pytest.mark.parametrize("agent", [False, True])
async def test_reports_of_other_nodes_are_included(agent: bool) -> None:
    nodes = Several("a", "b", "c")
    nodes["b"].paused = "clock_jump"
    nodes["c"].agent = agent
    await nodes.cluster_statistics.refresh()
    hour = nodes.cluster_statistics.hour()
    assert (hour.paused, hour.agent) == (["b: dispatch paused: the node's wall clock jumped"], agent)
    nodes["b"].unresponsive = nodes["c"].unresponsive = True
    await nodes.cluster_statistics.refresh()
    hour = nodes.cluster_statistics.hour()
    assert (hour.paused, hour.agent) == ([], False)


async def test_single_node_shows_its_own_statistics() -> None:
    nodes = Several("a")
    nodes["a"].fires(1.0)
    await nodes.cluster_statistics.refresh()
    hour = nodes.cluster_statistics.hour()
    assert (hour.open, hour.slots, hour.gaps) == ([nodes["a"].statistics.present], [], [])
    await nodes.cluster_statistics.close()
    await nodes.cluster_statistics.close()
