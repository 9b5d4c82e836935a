"""The last hour of all nodes: the statistics of the other nodes, polled while a page is open, merged with this node's.

Each node is polled for the slots that this one lacks, once a second at most. Complete slots are summed once, when they
arrive; those of each node are kept as well, for a view of that node alone. If a node does not respond or has stopped, the
data received so far stays, and the pages show since when the rest is missing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from tocsin.model.errors import Unavailable
from tocsin.ports.clock import Clock
from tocsin.ports.forward import NodeReport
from tocsin.ports.statistics import StatisticsReport, StatisticsSlot, total
from tocsin.timers.explaining import PAUSE_TEXTS
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.overview.paused import Refreshed
from tocsin.web.pages.overview.statistics import Statistics

_BEFORE_ALL = -(2**63)
_DROPPED_NODES = "other nodes"


class Nodes(Protocol):
    """This node and the others: the part of the timer service that this module needs."""

    @property
    def node(self) -> str:
        """This node's name."""

    def other_nodes(self) -> Mapping[bytes, str]:
        """Names of the other live nodes, by incarnation."""

    async def statistics_of(self, incarnation: bytes, after_us: int) -> tuple[NodeReport, StatisticsReport]:
        """Another node's report and its statistics since an instant. Raises Unavailable."""


class Gap(NamedTuple):
    """Missing data: that of a node from `from_us` (None: all of it) to `to_us` (None: now). `ended`: the node has stopped.
    `why`: the reason, as a phrase that follows the node's name."""

    node: str
    from_us: int | None
    to_us: int | None
    ended: bool
    why: str

    def touches(self, from_us: int) -> bool:
        """Whether data at or after the instant is missing."""
        return self.to_us is None or self.to_us > from_us


class Hour(NamedTuple):
    """What the overview shows, of all nodes or of one.

    `slots` are complete on all nodes that respond, the earliest first; `open` are those that some node still counts into.
    `now` has the gauges at `at_us`. `nodes` is the number of node names. `starts` are the nodes that started within the hour,
    and when. `paused` lists the other nodes that do not dispatch, with the reason; `agent` indicates whether one of them runs
    the service agent.
    """

    at_us: int
    slots: list[StatisticsSlot]
    open: list[StatisticsSlot]
    now: StatisticsSlot
    nodes: int
    gaps: list[Gap]
    starts: list[tuple[str, int]]
    paused: list[str]
    agent: bool


class _NodeStatistics:
    """The statistics of one incarnation of a node, as far as they were received."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.since_us: int | None = None
        self.slots: deque[StatisticsSlot] = deque()
        self.present: StatisticsSlot | None = None
        self.received_us: int | None = None
        self.ended_us: int | None = None
        self.why: str | None = "has not been polled yet"
        self.report: NodeReport | None = None

    @property
    def responds(self) -> bool:
        """Whether it responded to the latest poll."""
        return self.why is None and self.ended_us is None

    def gap(self, own: str) -> Gap | None:
        """The missing data, as the node named `own` sees it. An incarnation of that name that never responded is an earlier
        start of the node itself, and no gap: the pages show the node's start anyway."""
        if self.responds or (self.received_us is None and self.node == own):
            return None
        return Gap(self.node, self.received_us, self.ended_us, self.ended_us is not None, self.why or "has stopped")


class ClusterStatistics(Refreshed):
    """Polls, keeps and sums the statistics. `refresh` polls the nodes, and does not raise: a node that can't be polled is a
    gap. `hour` returns the result."""

    def __init__(self, statistics: Statistics, nodes: Nodes, clock: Clock, limits: UiLimits) -> None:
        super().__init__(limits.statistics_interval_s)
        self._statistics = statistics
        self._nodes = nodes
        self._clock = clock
        self._limits = limits
        self._own = _NodeStatistics(nodes.node)
        self._own.slots, self._own.since_us, self._own.why = statistics.slots, statistics.since_us, None
        self._others: dict[bytes, _NodeStatistics] = {}
        #: Complete slots of all nodes, by their start; this node's up to `_own_us` included.
        self._sums: dict[int, StatisticsSlot] = {}
        self._own_us = _BEFORE_ALL
        #: The missing data of stopped nodes that are no longer kept one by one.
        self._dropped: Gap | None = None
        #: Grows with each poll: what was computed from the results of one poll is valid until the next.
        self.round = 0

    @property
    def span_us(self) -> int:
        """How far back the statistics reach."""
        return round(self._limits.chart_interval_s * 1e6) * self._limits.chart_points

    # ------------------------------------------------------------------ polling

    async def _read(self) -> None:
        others = self._nodes.other_nodes()
        for incarnation, name in others.items():
            # A node that froze and was considered dead may resume.
            self._others.setdefault(incarnation, _NodeStatistics(name)).ended_us = None
        await asyncio.gather(*(self._poll(incarnation, self._others[incarnation]) for incarnation in others))
        now_us = self._clock.now_us()
        for incarnation, node in self._others.items():
            if incarnation not in others and node.ended_us is None:
                node.ended_us = now_us
        self._expire(now_us - self.span_us)
        self.round += 1

    async def _poll(self, incarnation: bytes, node: _NodeStatistics) -> None:
        more = True
        try:
            while more:
                polled_us = self._clock.now_us()
                after_us = node.slots[-1].begins_us if node.slots else _BEFORE_ALL
                report, statistics = await self._nodes.statistics_of(incarnation, after_us)
                if statistics.width_us != round(self._limits.chart_interval_s * 1e6):
                    node.why = f"uses points of {statistics.width_us / 1e6:g} s, unlike this node (ui.chart_interval)"
                    return
                node.slots.extend(statistics.slots)
                self._add(self._sums, statistics.slots)
                node.since_us, node.present, more = statistics.since_us, statistics.present, statistics.more
        except Unavailable:
            node.why = "does not respond"
        else:
            node.report, node.received_us, node.why = report, polled_us, None

    def _add(self, sums: dict[int, StatisticsSlot], slots: Iterable[StatisticsSlot]) -> None:
        """Adds slots to the sums of those that start at the same instant."""
        for slot in slots:
            into = sums.setdefault(slot.begins_us, StatisticsSlot(slot.begins_us))
            into.add(slot, self._limits.chart_destinations_max)

    def _expire(self, before_us: int) -> None:
        self._sums = {begins_us: slot for begins_us, slot in self._sums.items() if begins_us >= before_us}
        for incarnation, node in list(self._others.items()):
            while node.slots and node.slots[0].begins_us < before_us:
                node.slots.popleft()
            if node.ended_us is not None and node.ended_us < before_us:
                del self._others[incarnation]
        ended = sorted((node.ended_us, key) for key, node in self._others.items() if node.ended_us is not None)
        for ended_us, key in ended[: max(0, len(ended) - self._limits.ended_nodes_max)]:
            starts = [self._others.pop(key).received_us, *([self._dropped.from_us] if self._dropped else [])]
            from_us = (
                min((start for start in starts if start is not None), default=None) if None not in starts else None
            )
            self._dropped = Gap(_DROPPED_NODES, from_us, ended_us, ended=True, why="have stopped")

    # ------------------------------------------------------------------ results

    def nodes(self) -> list[str]:
        """Names of all nodes that have, or should have, statistics. If there are several, the page offers a choice."""
        return sorted({node.node for node in (self._own, *self._others.values())})

    def hour(self, node: str | None = None) -> Hour:
        """The last hour of all nodes, or of one of `nodes`."""
        self._statistics.sample()
        self._own.present = self._statistics.present
        chosen = [each for each in (self._own, *self._others.values()) if node in (None, each.node)]
        responding = [each for each in chosen if each.responds]
        presents = [each.present for each in responding if each.present is not None]
        now_us = self._clock.now_us()
        from_us = now_us - self.span_us
        starts = [(each.node, each.since_us) for each in chosen if each.since_us is not None]
        known = [each.gap(self._own.node) for each in chosen] + ([self._dropped] if node is None else [])
        gaps = [gap for gap in known if gap is not None and gap.touches(from_us)]
        reports = [(each.node, each.report) for each in responding if each.report is not None]
        # If no node responds, no slot is open any more.
        open_us = min((slot.begins_us for slot in presents), default=now_us)
        slots = [slot for slot in self._slots(chosen, everything=node is None) if slot.begins_us >= from_us]
        return Hour(
            now_us,
            [slot for slot in slots if slot.begins_us < open_us],
            [slot for slot in slots if slot.begins_us >= open_us],
            total(presents, self._limits.chart_destinations_max),
            len({name for name, _ in starts} | {gap.node for gap in gaps}),
            sorted(gaps, key=lambda gap: (gap.node, gap.from_us or 0)),
            sorted((start for start in starts if start[1] > from_us), key=lambda start: start[::-1]),
            [
                f"{name}: dispatch paused: {PAUSE_TEXTS.get(reason := report.dispatch_paused_reason or '', reason)}"
                for name, report in reports
                if not report.dispatching
            ],
            any(report.agent for _, report in reports),
        )

    def _slots(self, nodes: Iterable[_NodeStatistics], *, everything: bool) -> list[StatisticsSlot]:
        """All slots of the nodes, those that are not complete included, the earliest first."""
        new = [slot for slot in self._statistics.slots if slot.begins_us > self._own_us]
        self._own_us = new[-1].begins_us if new else self._own_us
        self._add(self._sums, new)
        complete = dict(self._sums) if everything else {}
        present: dict[int, StatisticsSlot] = {}
        if not everything:
            self._add(complete, (slot for node in nodes for slot in node.slots))
        self._add(present, (node.present for node in nodes if node.present is not None))
        for begins_us in complete.keys() & present.keys():
            self._add(present, [complete[begins_us]])
        return [slot for _, slot in sorted((complete | present).items())]
