"""The last hour of all nodes: the statistics of the other nodes, polled while a page is open, merged with this node's.

Each node is polled for the buckets that this one lacks, once a second at most. Completed buckets are merged once, when they
arrive; those of each node are also kept encoded, for a view of that node alone. If a node does not respond or has stopped,
the data received so far stays, and the pages show since when the rest is missing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from tocsin.model.errors import Unavailable
from tocsin.ports.clock import Clock
from tocsin.ports.forward import NodeReport, StatisticsReport
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.overview.statistics import Bucket, Statistics, Unreadable, unpack

_BEFORE_ALL = -(2**63)
_DROPPED_NODES = "other nodes"


class Nodes(Protocol):
    """This node and the others: the part of the timer service that this module needs."""

    @property
    def node(self) -> str:
        """This node's name."""

    def other_nodes(self) -> Mapping[bytes, str]:
        """Names of the other live nodes, by incarnation."""

    async def statistics_of(self, incarnation: bytes, after_us: int) -> tuple[NodeReport, StatisticsReport | None]:
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

    `buckets` are complete on all nodes that respond, the earliest first; `open` are those that some node still counts into.
    `now` has the gauges at `at_us`. `nodes` is the number of node names. `starts` are the nodes that started within the hour,
    and when. `paused` lists the other nodes that do not dispatch, with the reason; `agent` indicates whether one of them runs
    the service agent.
    """

    at_us: int
    buckets: list[Bucket]
    open: list[Bucket]
    now: Bucket
    nodes: int
    gaps: list[Gap]
    starts: list[tuple[str, int]]
    paused: list[str]
    agent: bool


class _RemoteStatistics:
    """The statistics received from one incarnation of another node."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.since_us: int | None = None
        self.points: deque[tuple[int, bytes]] = deque()
        self.last_us = _BEFORE_ALL
        self.present: Bucket | None = None
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

    def buckets(self) -> list[Bucket]:
        """All received buckets, the current one last."""
        present = [] if self.present is None else [self.present]
        return [unpack(packed) for _, packed in self.points] + present


class ClusterStatistics:
    """Polls, keeps and merges the statistics. `refresh` polls the nodes; `hour` returns the result."""

    def __init__(self, statistics: Statistics, nodes: Nodes, clock: Clock, limits: UiLimits) -> None:
        self._statistics = statistics
        self._nodes = nodes
        self._clock = clock
        self._limits = limits
        self._parts: dict[bytes, _RemoteStatistics] = {}
        #: Completed buckets of all nodes, by their start; this node's up to `_own_us` included.
        self._merged: dict[int, Bucket] = {}
        self._own_us = _BEFORE_ALL
        #: The missing data of stopped nodes that are no longer kept one by one.
        self._dropped: Gap | None = None
        self._polling: asyncio.Task[None] | None = None
        self._polled_at_s: float | None = None
        #: Grows with each poll: whatever was computed from the results of one poll is valid until the next.
        self.round = 0

    @property
    def span_us(self) -> int:
        """How far back the statistics reach."""
        return round(self._limits.chart_interval_s * 1e6) * self._limits.chart_points

    # ------------------------------------------------------------------ polling

    async def refresh(self) -> None:
        """Polls the other nodes, unless that was done within `statistics_interval_s`. Concurrent callers share one poll.
        Doesn't raise: a node that can't be polled is a gap."""
        if self._polling is None or self._polling.done():
            now_s = asyncio.get_running_loop().time()
            if self._polled_at_s is not None and now_s - self._polled_at_s < self._limits.statistics_interval_s:
                return
            self._polled_at_s = now_s
            self._polling = asyncio.ensure_future(self._poll_all())
        polling = self._polling
        await asyncio.wait([polling])
        if not polling.cancelled():
            polling.result()

    async def close(self) -> None:
        """Stops polling. Idempotent."""
        if self._polling is not None:
            self._polling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._polling

    async def _poll_all(self) -> None:
        others = self._nodes.other_nodes()
        for incarnation, node in others.items():
            if incarnation not in self._parts:
                self._parts[incarnation] = _RemoteStatistics(node)
            # A node that froze and was considered dead may resume.
            self._parts[incarnation].ended_us = None
        await asyncio.gather(*(self._poll(incarnation, self._parts[incarnation]) for incarnation in others))
        now_us = self._clock.now_us()
        for incarnation, part in self._parts.items():
            if incarnation not in others and part.ended_us is None:
                part.ended_us = now_us
        if self._parts:
            self._merge_own()
        self._expire(now_us - self.span_us)
        self.round += 1

    async def _poll(self, incarnation: bytes, part: _RemoteStatistics) -> None:
        more = True
        try:
            while more:
                polled_us = self._clock.now_us()
                report, statistics = await self._nodes.statistics_of(incarnation, part.last_us)
                if statistics is None:
                    part.why = "runs a release that reports no statistics"
                    return
                if statistics.width_us != round(self._limits.chart_interval_s * 1e6):
                    part.why = f"uses points of {statistics.width_us / 1e6:g} s, unlike this node (ui.chart_interval)"
                    return
                self._add(part, statistics)
                more = statistics.more
        except Unavailable:
            part.why = "does not respond"
        except Unreadable:
            part.why = "runs a release with other statistics"
        else:
            part.report, part.received_us, part.why = report, polled_us, None

    def _add(self, part: _RemoteStatistics, report: StatisticsReport) -> None:
        received, present = [(packed, unpack(packed)) for packed in report.points], unpack(report.present)
        for packed, bucket in received:
            part.points.append((bucket.begins_us, packed))
            part.last_us = bucket.begins_us
            self._merge(bucket)
        part.since_us, part.present = report.since_us, present

    def _merge(self, bucket: Bucket) -> None:
        into = self._merged.get(bucket.begins_us)
        if into is None:
            into = self._merged[bucket.begins_us] = Bucket(bucket.begins_us)
        into.add(bucket, self._limits.chart_destinations_max)

    def _merge_own(self) -> None:
        for bucket in self._statistics.buckets:
            if bucket.begins_us > self._own_us:
                self._merge(bucket)
                self._own_us = bucket.begins_us

    def _expire(self, before_us: int) -> None:
        for begins_us in [begins_us for begins_us in self._merged if begins_us < before_us]:
            del self._merged[begins_us]
        for incarnation, part in list(self._parts.items()):
            while part.points and part.points[0][0] < before_us:
                part.points.popleft()
            if part.ended_us is not None and part.ended_us < before_us:
                del self._parts[incarnation]
        ended = sorted((part.ended_us, key) for key, part in self._parts.items() if part.ended_us is not None)
        for ended_us, key in ended[: max(0, len(ended) - self._limits.ended_nodes_max)]:
            from_us = self._parts.pop(key).received_us
            if self._dropped is not None:
                from_us = (
                    None if None in (from_us, self._dropped.from_us) else min(from_us or 0, self._dropped.from_us or 0)
                )
            self._dropped = Gap(_DROPPED_NODES, from_us, ended_us, ended=True, why="have stopped")

    # ------------------------------------------------------------------ results

    def nodes(self) -> list[str]:
        """Names of all nodes that have, or should have, statistics. If there are several, the page offers a choice."""
        return sorted({self._nodes.node, *(part.node for part in self._parts.values())})

    def hour(self, node: str | None = None) -> Hour:
        """The last hour of all nodes, or of one of `nodes`."""
        parts = [part for part in self._parts.values() if node in (None, part.node)]
        with_own = node in (None, self._nodes.node)
        now_us = self._clock.now_us()
        from_us = now_us - self.span_us
        reports = [(part.node, part.report) for part in parts if part.responds and part.report is not None]
        now = Bucket(self._statistics.present.begins_us)
        if with_own:
            self._statistics.sample(now)
        for part in parts:
            if part.responds and part.present is not None:
                now.overdue_s = max(now.overdue_s, part.present.overdue_s)
                now.window_timers += part.present.window_timers
                now.in_flight += part.present.in_flight
        starts = [(part.node, part.since_us) for part in parts if part.since_us is not None]
        starts += [(self._nodes.node, self._statistics.since_us)] if with_own else []
        known = [part.gap(self._nodes.node) for part in parts] + ([self._dropped] if node is None else [])
        gaps = [gap for gap in known if gap is not None and gap.touches(from_us)]
        return Hour(
            now_us,
            *self._buckets(parts, from_us, merged=node is None, with_own=with_own),
            now,
            len({name for name, _ in starts} | {gap.node for gap in gaps}),
            sorted(gaps, key=lambda gap: (gap.node, gap.from_us or 0)),
            sorted((start for start in starts if start[1] > from_us), key=lambda start: start[::-1]),
            [f"{name}: {report.dispatch_paused_reason}" for name, report in reports if not report.dispatching],
            any(report.agent for _, report in reports),
        )

    def _buckets(
        self, parts: list[_RemoteStatistics], from_us: int, *, merged: bool, with_own: bool
    ) -> tuple[list[Bucket], list[Bucket]]:
        """The buckets that are complete on all nodes that respond, and those that are not."""
        if not parts and with_own:
            return list(self._statistics.buckets), [self._statistics.present]
        counting = [part.present.begins_us for part in parts if part.responds and part.present is not None]
        counting += [self._statistics.present.begins_us] if with_own else []
        presents = [part.present for part in parts if part.present is not None]
        if merged:
            # The gauges of an open bucket are those of the latest poll.
            found = self._combined(self._merged, [*self._not_merged(), *presents])
        else:
            own = [*self._statistics.buckets, self._statistics.present] if with_own else []
            found = self._combined({}, [*own, *(bucket for part in parts for bucket in part.buckets())])
        shown = sorted((bucket for bucket in found if bucket.begins_us >= from_us), key=lambda bucket: bucket.begins_us)
        # If no node responds, no bucket is open any more.
        until_us = min(counting, default=self._clock.now_us())
        return [b for b in shown if b.begins_us < until_us], [b for b in shown if b.begins_us >= until_us]

    def _not_merged(self) -> list[Bucket]:
        own = [bucket for bucket in self._statistics.buckets if bucket.begins_us > self._own_us]
        return [*own, self._statistics.present]

    def _combined(self, known: Mapping[int, Bucket], others: Iterable[Bucket]) -> list[Bucket]:
        """The sums of the known buckets and the others; the known buckets stay unchanged."""
        sums = dict(known)
        for bucket in others:
            into = Bucket(bucket.begins_us)
            if bucket.begins_us in sums:
                into.add(sums[bucket.begins_us], self._limits.chart_destinations_max)
            into.add(bucket, self._limits.chart_destinations_max)
            sums[bucket.begins_us] = into
        return list(sums.values())
