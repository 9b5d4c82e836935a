"""What all nodes have counted, merged: sums, percentiles of all rings, and what is missing of whom and since when."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import msgspec
import pytest

from tocsin.model.errors import Unavailable
from tocsin.ports.forward import NodeReport, StatisticsReport
from tocsin.ports.observer import AttemptFinished, TimersCreated
from tocsin.testing.clock import FakeClock
from tocsin.ui.cluster_statistics import ClusterStatistics, Gap
from tocsin.ui.limits import UiLimits
from tocsin.ui.statistics import OTHER_DESTINATIONS, Bucket, Statistics, percentile_ms

SECOND = 1_000_000
WIDTH = 10 * SECOND
LIMITS = UiLimits(chart_points=6, chart_destinations_max=2, statistics_interval_s=0.0)


class Counting:
    """A node that counts."""

    def __init__(self, name: str, clock: FakeClock, limits: UiLimits) -> None:
        self.name = name
        self.gauges = {"tocsin_overdue_seconds": 0.0, "tocsin_window_timers": 0.0, "tocsin_callbacks_in_flight": 0.0}
        self.statistics = Statistics(limits, clock.now_us(), lambda: self.gauges)
        self.silent = False
        self.release: int | None = None
        self.paused: str | None = None
        self.agent = False

    def rings(self, *lags_ms: float, outcome: str = "done", destination: str = "http://x:80") -> None:
        for lag_ms in lags_ms:
            error = None if outcome == "done" else "HTTP_503"
            lag_us = round(lag_ms * 1_000)
            self.statistics(AttemptFinished(0, "default", "t", 1, outcome, error, lag_us, 10, destination))


class Several:
    """Nodes, as the first of them sees the others: in the form in which they travel."""

    def __init__(self, *names: str, limits: UiLimits = LIMITS) -> None:
        self.clock = FakeClock()
        self.limits = limits
        self.known = {name.encode() * 8: Counting(name, self.clock, limits) for name in names}
        self.first = next(iter(self.known))
        self.asked: Counter[str] = Counter()
        self.held: asyncio.Event | None = None
        self.gathered = ClusterStatistics(self[self.node].statistics, self, self.clock, limits)

    def __getitem__(self, name: str) -> Counting:
        return next(node for node in reversed(self.known.values()) if node.name == name)

    @property
    def node(self) -> str:
        return self.known[self.first].name

    def other_nodes(self) -> dict[bytes, str]:
        return {incarnation: node.name for incarnation, node in self.known.items() if incarnation != self.first}

    async def statistics_of(self, incarnation: bytes, after_us: int) -> tuple[NodeReport, StatisticsReport | None]:
        node = self.known[incarnation]
        self.asked[node.name] += 1
        if self.held is not None:
            await self.held.wait()
        if node.silent:
            raise Unavailable("silent")
        report = NodeReport("1", node.paused is None, node.paused, node.agent, [])
        told = msgspec.msgpack.encode(node.statistics.report(after_us))
        return report, None if node.release == 0 else msgspec.msgpack.decode(told, type=StatisticsReport)

    def passes(self, seconds: int = 10) -> None:
        for _ in range(seconds):
            self.clock.advance(SECOND)
            for node in self.known.values():
                node.statistics.roll(self.clock.now_us())


def total(buckets: list[Bucket]) -> int:
    return sum(bucket.rings for bucket in buckets)


async def test_counts_are_summed_and_percentiles_are_those_of_all_rings() -> None:
    nodes = Several("a", "b")
    nodes["a"].rings(*[1.0] * 99)
    nodes["b"].rings(*[1_000.0] * 3, outcome="failed")
    nodes["a"].statistics(TimersCreated("default", 4))
    nodes["b"].statistics(TimersCreated("default", 5))
    nodes["a"].gauges |= {"tocsin_overdue_seconds": 1.0, "tocsin_window_timers": 2.0}
    nodes["b"].gauges |= {"tocsin_overdue_seconds": 3.0, "tocsin_window_timers": 5.0, "tocsin_callbacks_in_flight": 7.0}
    nodes.passes()
    await nodes.gathered.refresh()
    hour = nodes.gathered.hour()
    (bucket,) = hour.buckets
    assert (bucket.created, bucket.rings, bucket.done, bucket.failed) == (9, 102, 99, 3)
    assert (bucket.overdue_s, bucket.window_timers, bucket.in_flight) == (3.0, 7.0, 7.0)
    assert (hour.now.overdue_s, hour.now.window_timers, hour.now.in_flight) == (3.0, 7.0, 7.0)
    # One figure for a hundred fast rings and three slow ones; the mean of the nodes' own would be somewhere between.
    whole = Bucket(0)
    for node in ("a", "b"):
        whole.add(nodes[node].statistics.buckets[0], 2)
    assert bucket.lag_ms(0.97) == percentile_ms(whole.lag_counts, 0.97, 1_000.0) < 2
    assert bucket.lag_ms(0.99) == 1_000.0
    assert bucket.destinations["http://x:80"].failures == 3
    assert (hour.nodes, hour.gaps, hour.paused, hour.agent) == (2, [], [], False)
    assert [name for name, _ in hour.starts] == ["a", "b"]
    # Each alone is what it counted.
    alone = {name: nodes.gathered.hour(name) for name in ("a", "b")}
    assert {name: (total(hour.buckets), hour.now.overdue_s) for name, hour in alone.items()} == {
        "a": (99, 1.0), "b": (3, 3.0),
    }  # fmt: skip
    assert nodes.gathered.hour("c").nodes == 0


async def test_a_former_start_of_this_node_is_no_node_that_is_missed() -> None:
    nodes = Several("a", "b")
    # Killed and started again at once, it is still a member for a while; another that has its name does answer.
    nodes.known |= {b"former": Counting("a", nodes.clock, LIMITS), b"namesake": Counting("a", nodes.clock, LIMITS)}
    nodes.known[b"former"].silent = True
    await nodes.gathered.refresh()
    assert nodes.gathered.hour().gaps == []
    del nodes.known[b"former"], nodes.known[b"namesake"]
    await nodes.gathered.refresh()
    assert [(gap.node, gap.ended, gap.from_us) for gap in nodes.gathered.hour().gaps] == [
        ("a", True, nodes.clock.now_us())
    ]


async def test_no_point_is_counted_twice_and_none_before_all_have_ended_it() -> None:
    nodes = Several("a", "b")
    for step in range(1, 10):
        nodes["a"].rings(1.0)
        nodes["b"].rings(1.0, 1.0)
        await nodes.gathered.refresh()
        await nodes.gathered.refresh()
        hour = nodes.gathered.hour()
        assert total(hour.open) == 3
        assert total(hour.buckets) == 3 * min(step - 1, LIMITS.chart_points)
        nodes.passes()
    # One that ends its point a moment later holds it back.
    nodes["a"].rings(1.0)
    nodes.clock.advance(WIDTH)
    nodes["a"].statistics.roll(nodes.clock.now_us())
    await nodes.gathered.refresh()
    hour = nodes.gathered.hour()
    assert nodes["b"].statistics.present.begins_us not in [bucket.begins_us for bucket in hour.buckets]
    assert total(hour.open) == 1
    # Nothing older than the charts is kept.
    assert len(nodes.gathered._merged) <= LIMITS.chart_points + 1


async def test_many_points_come_in_several_messages() -> None:
    nodes = Several("a", "b", limits=replace(LIMITS, chart_points=50, statistics_message_bytes=1))
    for _ in range(20):
        nodes["b"].rings(1.0)
        nodes.passes()
    await nodes.gathered.refresh()
    assert nodes.asked["b"] == 20
    assert total(nodes.gathered.hour().buckets) == 20
    await nodes.gathered.refresh()
    assert nodes.asked["b"] == 21


async def test_failing_destinations_beyond_the_limit_are_counted_together() -> None:
    nodes = Several("a", "b")
    nodes["a"].rings(1.0, 1.0, outcome="failed", destination="http://1:80")
    nodes["a"].rings(1.0, outcome="retried", destination="http://2:80")
    nodes["b"].rings(1.0, outcome="failed", destination="http://3:80")
    nodes.passes()
    await nodes.gathered.refresh()
    (bucket,) = nodes.gathered.hour().buckets
    assert len(bucket.destinations) == 3
    assert OTHER_DESTINATIONS in bucket.destinations
    assert sum(one.failures for one in bucket.destinations.values()) == 4
    assert sum(one.gave_up for one in bucket.destinations.values()) == 3


async def test_others_are_asked_only_when_somebody_looks_and_once_for_all_who_do() -> None:
    nodes = Several("a", "b", "c", limits=replace(LIMITS, statistics_interval_s=3_600.0))
    nodes.passes(30)
    assert not nodes.asked
    nodes.held = asyncio.Event()
    looking = [asyncio.ensure_future(nodes.gathered.refresh()) for _ in range(50)]
    await asyncio.sleep(0)
    # One who goes away takes nobody's answer along.
    looking[0].cancel()
    await asyncio.sleep(0)
    nodes.held.set()
    await asyncio.gather(*looking[1:])
    for _ in range(50):
        await nodes.gathered.refresh()
    assert nodes.asked == {"b": 1, "c": 1}
    assert nodes.gathered.round == 1


async def test_a_silent_nodes_part_is_missing_since_it_was_heard_and_comes_back_whole() -> None:
    nodes = Several("a", "b")
    nodes["b"].rings(1.0)
    nodes["b"].gauges["tocsin_overdue_seconds"] = 9.0
    await nodes.gathered.refresh()
    heard_us = nodes.clock.now_us()
    nodes["b"].silent = True
    nodes.passes()
    nodes["b"].rings(1.0, 1.0)
    await nodes.gathered.refresh()
    hour = nodes.gathered.hour()
    assert hour.gaps == [Gap("b", heard_us, None, False, "does not answer")]
    # What came stays; nothing is said of its present.
    assert total([*hour.buckets, *hour.open]) == 1
    assert hour.now.overdue_s == 0.0
    assert nodes.gathered.hour("a").gaps == []
    assert nodes.gathered.hour("b").gaps == hour.gaps
    nodes["b"].silent = False
    await nodes.gathered.refresh()
    hour = nodes.gathered.hour()
    assert (hour.gaps, total([*hour.buckets, *hour.open]), hour.now.overdue_s) == ([], 3, 9.0)


async def test_what_a_node_did_after_it_was_heard_last_and_before_it_was_gone_stays_missing() -> None:
    nodes = Several("a", "b")
    nodes["b"].rings(1.0)
    await nodes.gathered.refresh()
    heard_us = nodes.clock.now_us()
    nodes.passes(5)
    gone = nodes.known.popitem()
    await nodes.gathered.refresh()
    ended = Gap("b", heard_us, heard_us + 5 * SECOND, True, "has ended")
    assert nodes.gathered.hour().gaps == [ended]
    assert nodes.gathered.nodes() == ["a", "b"]
    # It starts again, and is whole from then on.
    nodes.known[b"other"] = Counting("b", nodes.clock, LIMITS)
    nodes["b"].rings(1.0)
    nodes.passes(20)
    await nodes.gathered.refresh()
    for choice in (None, "b"):
        hour = nodes.gathered.hour(choice)
        assert hour.gaps == [ended]
        assert total([*hour.buckets, *hour.open]) == 2
    # A former start that was only taken for dead may wake.
    nodes.known[gone[0]] = gone[1]
    await nodes.gathered.refresh()
    assert nodes.gathered.hour().gaps == []
    del nodes.known[gone[0]]
    await nodes.gathered.refresh()
    # When the charts don't reach back so far any more, it is forgotten.
    nodes.passes(80)
    await nodes.gathered.refresh()
    assert nodes.gathered.hour().gaps == []
    assert len(nodes.gathered._parts) == 1


async def test_who_can_t_be_counted_in_is_named_with_the_reason() -> None:
    nodes = Several("a", "b", "c", "d", "e")
    nodes.known[b"c" * 8].statistics = Statistics(replace(LIMITS, chart_interval_s=5.0), 0, lambda: nodes["c"].gauges)
    nodes["b"].release = 0
    nodes["d"].statistics.present.lag_counts.append(1)
    nodes["e"].silent = True
    await nodes.gathered.refresh()
    assert [(gap.node, gap.from_us, gap.why) for gap in nodes.gathered.hour().gaps] == [
        ("b", None, "runs a release that tells no statistics"),
        ("c", None, "counts in points of 5 s, unlike this node (ui.chart_interval)"),
        ("d", None, "runs a release that counts in another way"),
        ("e", None, "does not answer"),
    ]
    assert nodes.gathered.hour().nodes == 5
    hour = nodes.gathered.hour("e")
    assert (hour.nodes, hour.buckets, hour.open) == (1, [], [])


async def test_nodes_that_come_and_go_again_and_again_leave_a_bounded_trace() -> None:
    nodes = Several("a", limits=replace(LIMITS, ended_nodes_max=2))
    for number in range(6):
        nodes.known[bytes([number])] = Counting(f"n{number}", nodes.clock, LIMITS)
        nodes.known[bytes([number])].silent = number == 0
        await nodes.gathered.refresh()
        nodes.clock.advance(SECOND)
        nodes.known.popitem()
        await nodes.gathered.refresh()
    gaps = nodes.gathered.hour().gaps
    assert [gap.node for gap in gaps] == ["further nodes", "n4", "n5"]
    assert (gaps[0].from_us, gaps[0].to_us) == (None, nodes.clock.now_us() - 2 * SECOND)
    assert len(nodes.gathered._parts) == 2


@pytest.mark.parametrize("agent", [False, True])
async def test_what_others_say_of_themselves(agent: bool) -> None:
    nodes = Several("a", "b", "c")
    nodes["b"].paused = "its clock jumped"
    nodes["c"].agent = agent
    await nodes.gathered.refresh()
    hour = nodes.gathered.hour()
    assert (hour.paused, hour.agent) == (["b: its clock jumped"], agent)
    nodes["b"].silent = nodes["c"].silent = True
    await nodes.gathered.refresh()
    hour = nodes.gathered.hour()
    assert (hour.paused, hour.agent) == ([], False)


async def test_a_node_on_its_own_shows_what_it_counts() -> None:
    nodes = Several("a")
    nodes["a"].rings(1.0)
    await nodes.gathered.refresh()
    hour = nodes.gathered.hour()
    assert (hour.open, hour.buckets, hour.gaps) == ([nodes["a"].statistics.present], [], [])
    assert nodes.gathered._merged == {}
    await nodes.gathered.close()
    await nodes.gathered.close()
