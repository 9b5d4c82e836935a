"""The last hour of all nodes: what the others have counted, asked for while somebody looks, and merged with this node's.

Each node is asked for what is new to this one, once a second at most. Points that have ended are merged once, when they
come; those of a node are kept packed, in case somebody wants to see that node alone. Of a node that can't be asked, or has
ended, the part that came stays, and from when on the rest is missing is said wherever its numbers would be.
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
from tocsin.ui.limits import UiLimits
from tocsin.ui.statistics import Bucket, Statistics, Unreadable, unpack

_BEFORE_ALL = -(2**63)
_LEFT = "further nodes"


class Nodes(Protocol):
    """This node and the others, as the service knows them."""

    @property
    def node(self) -> str:
        """This node's name."""

    def other_nodes(self) -> Mapping[bytes, str]:
        """Names of the other nodes that live, by incarnation."""

    async def statistics_of(self, incarnation: bytes, after_us: int) -> tuple[NodeReport, StatisticsReport | None]:
        """What another node says of itself and has counted since; Unavailable."""


class Gap(NamedTuple):
    """What is missing: a node's part from `from_us` (None: all that it ever counted) to `to_us` (None: now). `ended`: the
    node is gone. `why`, of one that is not, in words that follow its name."""

    node: str
    from_us: int | None
    to_us: int | None
    ended: bool
    why: str

    def touches(self, from_us: int) -> bool:
        """Whether anything at or after the instant is missing."""
        return self.to_us is None or self.to_us > from_us


class Hour(NamedTuple):
    """What the overview shows, of all nodes or of one.

    `buckets` have ended on all nodes that answer, the earliest first; `open` are those that some still count into. `now` has
    the gauges as they are, `at_us`. `nodes` counts names. `starts` are nodes that began to count within the hour, and when.
    `paused` says of which other nodes nothing rings and why; `agent`, whether one of them runs the service agent.
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


class _Part:
    """What one start of another node has told."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.since_us: int | None = None
        self.points: deque[tuple[int, bytes]] = deque()
        self.last_us = _BEFORE_ALL
        self.present: Bucket | None = None
        self.heard_us: int | None = None
        self.ended_us: int | None = None
        self.why: str | None = "has not been asked yet"
        self.report: NodeReport | None = None

    @property
    def answers(self) -> bool:
        """Whether it did when it was asked last."""
        return self.why is None and self.ended_us is None

    def gap(self, own: str) -> Gap | None:
        """What of it is missing, as the node called `own` sees it. What one of its own name did that never answered, it did
        itself before it was restarted: since when it counts is said anyway."""
        if self.answers or (self.heard_us is None and self.node == own):
            return None
        return Gap(self.node, self.heard_us, self.ended_us, self.ended_us is not None, self.why or "has ended")

    def buckets(self) -> list[Bucket]:
        """Everything that came, the present bucket last."""
        present = [] if self.present is None else [self.present]
        return [unpack(packed) for _, packed in self.points] + present


class ClusterStatistics:
    """Asks, keeps and merges. `refresh` asks; `hour` tells what is there."""

    def __init__(self, statistics: Statistics, nodes: Nodes, clock: Clock, limits: UiLimits) -> None:
        self._statistics = statistics
        self._nodes = nodes
        self._clock = clock
        self._limits = limits
        self._parts: dict[bytes, _Part] = {}
        #: Ended points of all nodes, by their beginning; this node's up to `_own_us` among them.
        self._merged: dict[int, Bucket] = {}
        self._own_us = _BEFORE_ALL
        #: What is missing of nodes that ended, and were too many to be kept.
        self._left: Gap | None = None
        self._asking: asyncio.Task[None] | None = None
        self._asked_at_s: float | None = None
        #: Grows with each round of questions: what was made of the answers of one stays good until the next.
        self.round = 0

    @property
    def span_us(self) -> int:
        """How far back is shown."""
        return round(self._limits.chart_interval_s * 1e6) * self._limits.chart_points

    # ------------------------------------------------------------------ asking

    async def refresh(self) -> None:
        """Asks the other nodes, unless that was done within `statistics_interval_s`; whoever comes meanwhile waits for the
        same answers. Doesn't raise: what could not be asked is a gap."""
        if self._asking is None or self._asking.done():
            now_s = asyncio.get_running_loop().time()
            if self._asked_at_s is not None and now_s - self._asked_at_s < self._limits.statistics_interval_s:
                return
            self._asked_at_s = now_s
            self._asking = asyncio.ensure_future(self._ask_all())
        asking = self._asking
        await asyncio.wait([asking])
        if not asking.cancelled():
            asking.result()

    async def close(self) -> None:
        """Asks nobody any more. Idempotent."""
        if self._asking is not None:
            self._asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._asking

    async def _ask_all(self) -> None:
        others = self._nodes.other_nodes()
        for incarnation, node in others.items():
            if incarnation not in self._parts:
                self._parts[incarnation] = _Part(node)
            # One that stood still and was taken for dead may wake.
            self._parts[incarnation].ended_us = None
        await asyncio.gather(*(self._ask(incarnation, self._parts[incarnation]) for incarnation in others))
        now_us = self._clock.now_us()
        for incarnation, part in self._parts.items():
            if incarnation not in others and part.ended_us is None:
                part.ended_us = now_us
        if self._parts:
            self._merge_own()
        self._forget(now_us - self.span_us)
        self.round += 1

    async def _ask(self, incarnation: bytes, part: _Part) -> None:
        more = True
        try:
            while more:
                asked_us = self._clock.now_us()
                report, told = await self._nodes.statistics_of(incarnation, part.last_us)
                if told is None:
                    part.why = "runs a release that tells no statistics"
                    return
                if told.width_us != round(self._limits.chart_interval_s * 1e6):
                    part.why = f"counts in points of {told.width_us / 1e6:g} s, unlike this node (ui.chart_interval)"
                    return
                self._take(part, told)
                more = told.more
        except Unavailable:
            part.why = "does not answer"
        except Unreadable:
            part.why = "runs a release that counts in another way"
        else:
            part.report, part.heard_us, part.why = report, asked_us, None

    def _take(self, part: _Part, told: StatisticsReport) -> None:
        came, present = [(packed, unpack(packed)) for packed in told.points], unpack(told.present)
        for packed, bucket in came:
            part.points.append((bucket.begins_us, packed))
            part.last_us = bucket.begins_us
            self._merge(bucket)
        part.since_us, part.present = told.since_us, present

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

    def _forget(self, before_us: int) -> None:
        for begins_us in [begins_us for begins_us in self._merged if begins_us < before_us]:
            del self._merged[begins_us]
        for incarnation, part in list(self._parts.items()):
            while part.points and part.points[0][0] < before_us:
                part.points.popleft()
            if part.ended_us is not None and part.ended_us < before_us:
                del self._parts[incarnation]
        ended = sorted((part.ended_us, key) for key, part in self._parts.items() if part.ended_us is not None)
        for ended_us, key in ended[: max(0, len(ended) - self._limits.ended_nodes_max)]:
            from_us = self._parts.pop(key).heard_us
            if self._left is not None:
                from_us = None if None in (from_us, self._left.from_us) else min(from_us or 0, self._left.from_us or 0)
            self._left = Gap(_LEFT, from_us, ended_us, ended=True, why="have ended")

    # ------------------------------------------------------------------ telling

    def nodes(self) -> list[str]:
        """Names of the nodes of which there is, or should be, a part; more than one if there is a choice."""
        return sorted({self._nodes.node, *(part.node for part in self._parts.values())})

    def hour(self, node: str | None = None) -> Hour:
        """All nodes' last hour, or that of one of `nodes`."""
        parts = [part for part in self._parts.values() if node in (None, part.node)]
        with_own = node in (None, self._nodes.node)
        now_us = self._clock.now_us()
        from_us = now_us - self.span_us
        reports = [(part.node, part.report) for part in parts if part.answers and part.report is not None]
        # The present gauges.
        now = Bucket(self._statistics.present.begins_us)
        if with_own:
            self._statistics.sample(now)
        for part in parts:
            if part.answers and part.present is not None:
                now.overdue_s = max(now.overdue_s, part.present.overdue_s)
                now.window_timers += part.present.window_timers
                now.in_flight += part.present.in_flight
        starts = [(part.node, part.since_us) for part in parts if part.since_us is not None]
        starts += [(self._nodes.node, self._statistics.since_us)] if with_own else []
        known = [part.gap(self._nodes.node) for part in parts] + ([self._left] if node is None else [])
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
        self, parts: list[_Part], from_us: int, *, merged: bool, with_own: bool
    ) -> tuple[list[Bucket], list[Bucket]]:
        """Those that have ended wherever somebody answers, and those that have not."""
        if not parts and with_own:
            return list(self._statistics.buckets), [self._statistics.present]
        counting = [part.present.begins_us for part in parts if part.answers and part.present is not None]
        counting += [self._statistics.present.begins_us] if with_own else []
        presents = [part.present for part in parts if part.present is not None]
        if merged:
            # The gauges of a bucket that goes on are those of its last question.
            found = self._together(self._merged, [*self._not_merged(), *presents])
        else:
            own = [*self._statistics.buckets, self._statistics.present] if with_own else []
            found = self._together({}, [*own, *(bucket for part in parts for bucket in part.buckets())])
        shown = sorted((bucket for bucket in found if bucket.begins_us >= from_us), key=lambda bucket: bucket.begins_us)
        # Where nobody answers nothing is counted any more.
        until_us = min(counting, default=self._clock.now_us())
        return [b for b in shown if b.begins_us < until_us], [b for b in shown if b.begins_us >= until_us]

    def _not_merged(self) -> list[Bucket]:
        own = [bucket for bucket in self._statistics.buckets if bucket.begins_us > self._own_us]
        return [*own, self._statistics.present]

    def _together(self, known: Mapping[int, Bucket], others: Iterable[Bucket]) -> list[Bucket]:
        """The known ones, and the others counted together with them; the known stay as they are."""
        sums = dict(known)
        for bucket in others:
            into = Bucket(bucket.begins_us)
            if bucket.begins_us in sums:
                into.add(sums[bucket.begins_us], self._limits.chart_destinations_max)
            into.add(bucket, self._limits.chart_destinations_max)
            sums[bucket.begins_us] = into
        return list(sums.values())
