"""Publishes the events of namespaces with a sink, shard by shard, in the order of their commits.

A shard's owner publishes an event, waits until the sink has taken it, and has its row deleted with the shard's next batch.
So a crash, a lost claim or an unknown outcome repeats an event under the same id, and loses none. Timers never wait for a
sink."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec

from tocsin.model.answer import NoResponse, Outcome, Response
from tocsin.model.errors import RecordUndecodable, StoreError
from tocsin.model.instants import parse_instant
from tocsin.model.namespace import Namespace
from tocsin.model.retry import backoff_us
from tocsin.model.sink import GAP, SinkEvent, decode_event, encode_event, gap_event
from tocsin.model.timer import JSON_TYPE, NULL_PAYLOAD, RawBody
from tocsin.ports.http import Exchange, Invocation
from tocsin.ports.observer import LoadFailed
from tocsin.ports.seals import SealBroken, opener
from tocsin.ports.sinks import EventNotTaken, EventPublished, EventsLost
from tocsin.ports.store import EVENTS_END, EVENTS_START, EVENTS_SUFFIX, FireKey, StoredRow
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.event_log import Gap
from tocsin.timers.engine.shard import Shard
from tocsin.timers.engine.window import Window

#: Outcomes that concern all sinks: they are on one server. TIMEOUT does not: a mere subscriber acknowledges nothing.
_SERVER_AWAY, _SILENT = frozenset({"CONNECTION_FAILED", "CONNECTION_CLOSED", "SHUTDOWN"}), "TIMEOUT"
#: Least time between two removals of a few events beyond the backlog: each rewrites the gap. At most so many go in one chunk
#: with their gap, for which every store has room, and so many at once.
_LOSE_INTERVAL_US, _LOST_MAX, _LOST_AT_ONCE = 1_000_000, 50, 500
#: Published and other events whose rows wait for being deleted, at which a pass ends.
_REMOVED_MAX = 1_000
#: Silent sinks of a shard that are asked at once, beside the events of others.
_PROBES_MAX = 8
#: Events that are tried between two removals, so that a shard at its limit goes on publishing.
_TRIED_BETWEEN = 10
#: An event that was written so long before its namespace was created is of a former one of that name. What is less may be due
#: to clocks; the deletion of a namespace waits longer for its events.
FORMER_AFTER_US = 30_000_000
#: Characters of the reason why a sink has not taken an event.
_DETAIL_CHARS_MAX = 200


class _Lane:
    """The events of one namespace in a shard: its sink has taken everything up to `after`. `behind`: it has not taken what
    follows, which is tried again at `again_at`; since when that is so, `behind_since` (boot time). `silent`: it did not
    answer the last time; `probed`: whether it does is being found out."""

    __slots__ = ("after", "again_at", "behind", "behind_since", "failures", "probed", "silent")

    def __init__(self) -> None:
        self.after = EVENTS_START
        self.behind = False
        self.behind_since: int | None = None
        self.failures = 0
        self.again_at = 0
        self.silent = self.probed = False


class _Feed:
    """The events of one shard under one claim."""

    def __init__(
        self,
        shard: Shard,
        window: Window,
        context: Context,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self.window = window
        #: Set when there may be something to do.
        self.wake = asyncio.Event()
        self.lanes: dict[str, _Lane] = {}
        self._shard, self._context, self._log, self._spawn = shard, context, window.events, spawn
        # Up to where everything was read, and taken or left to a lane.
        self._read_to = EVENTS_START
        self._paused_until = self._lose_at = 0
        # Whether events were removed beyond the backlog since the last pass; how many the present one has tried.
        self._lost, self._tried = False, 0

    @property
    def ended(self) -> bool:
        """Whether the claim has ended, or the shard is being handed over."""
        return self._shard.window is not self.window or self._shard.draining

    async def run(self) -> None:
        """Publishes until the claim ends."""
        while not self.ended:
            self.wake.clear()
            try:
                await self._turn()
            except StoreError as error:
                self._context.observe(LoadFailed(self._shard.shard_id, str(error)))
            await self.wake.wait()

    async def _turn(self) -> None:
        log, boot_us = self._log, self._context.clock.boottime_us()
        if not log.counted:
            await self._count()
        if log.gaps:
            # Read again once they are durable, before what follows them.
            return
        paused = boot_us < self._paused_until
        loses = self._at_limit() and (paused or not self._lost)
        if loses:
            self._lose_at = boot_us + _LOSE_INTERVAL_US
            await self._lose(min(self._excess, _LOST_AT_ONCE))
            self._lost = bool(log.gaps)
            if self._lost:
                return
        if paused:
            return
        self._lost = False
        self._probe_silent(boot_us)
        due = [lane for lane in self.lanes.values() if lane.behind and not lane.silent and boot_us >= lane.again_at]
        if due or self._read_to < log.committed_to:
            await self._publish_from(min(self._read_to, *(lane.after for lane in due), log.committed_to), due)
        if not loses and self._at_limit():
            self.wake.set()

    @property
    def _excess(self) -> int:
        """How many events more than the backlog may have remain once what is published is deleted."""
        return self._log.rows - len(self._log.removed) - self._context.limits.sink_backlog_max

    def _at_limit(self) -> bool:
        """Whether events are to be removed now: many, or some if none were of late."""
        excess = self._excess
        return excess >= _LOST_MAX or (excess > 0 and self._context.clock.boottime_us() >= self._lose_at)

    async def _page(self, after: FireKey) -> tuple[list[StoredRow], FireKey]:
        """The events behind a key that are durable, and the key up to which they are all of them."""
        context, upto = self._context, min(self._log.committed_to, EVENTS_END)
        page = await context.in_turn(
            context.store.load_suspended(self._shard.shard_id, after, context.limits.sink_page_rows)
        )
        # A store may show a part of a batch that is being written.
        return [row for row in page.rows if row.key <= upto], min(page.complete_to, upto)

    async def _count(self) -> None:
        """Counts the events that earlier owners have left."""
        after, found = EVENTS_START, 0
        while after < self._log.claimed_at:
            rows, after = await self._page(after)
            found += sum(row.key < self._log.claimed_at for row in rows)
        self._log.count_earlier(found)

    # ------------------------------------------------------------------ publishing

    async def _publish_from(self, after: FireKey, due: list[_Lane]) -> None:
        """Publishes everything behind a key but what lanes that are behind have left; those that are due begin again."""
        for lane in due:
            lane.behind = False
        log, self._tried = self._log, 0
        upto, former = log.committed_to, self._read_to
        self._read_to = after
        while after < upto:
            # As of before the page is read: it may have rows that are gone once their turn comes.
            leaving = log.leaving()
            rows, after = await self._page(after)
            for row in rows:
                if row.uuid not in leaving and not await self._publish_row(row):
                    return
                self._read_to = row.key
                if self.ended or len(log.removed) >= _REMOVED_MAX:
                    return
                if self._tried >= _TRIED_BETWEEN and self._at_limit():
                    return
            # What lies between was taken, or left by lanes that are behind.
            after = max(after, min([former, *(lane.after for lane in due if not lane.behind)]))
            self._read_to = after

    async def _publish_row(self, row: StoredRow) -> bool:
        """Whether the pass goes on with the next row."""
        namespace = row.namespace.removesuffix(EVENTS_SUFFIX)
        lane = self.lanes.setdefault(namespace, _Lane())
        if lane.behind or row.key <= lane.after:
            return True
        known, url = self._known(namespace)
        if known is not None and known.damaged is not None:
            self._leave(lane, namespace, "NAMESPACE_DAMAGED", known.damaged)
            return True
        if known is None or url is None:
            self._remove(row)
            # A damaged row may have lost its name.
            self._context.observe(EventsLost(namespace, 1, "no_sink" if namespace else "damaged"))
            return True
        try:
            event = decode_event(row.record)
        except RecordUndecodable:
            # Read again once the gap is durable that takes its place, before what follows it.
            lane.behind, lane.again_at = True, 0
            self._replace(namespace, [row], "damaged")
            return True
        if _is_of_former(event, known, self._context.clock.now_us()):
            self._remove(row)
            self._context.observe(EventsLost(namespace, 1, "no_sink"))
            return True
        self._tried += 1
        outcome = await self._publish(event, f"{url}.{event.type}", known, row.record)
        if self._shard.window is not self.window:
            return False
        if isinstance(outcome, Response):
            lane.after, lane.failures, lane.behind_since = row.key, 0, None
            self._remove(row)
            self._context.observe(EventPublished(namespace, event.type))
            return True
        self._leave(lane, namespace, outcome.code, outcome.detail)
        if outcome.code in _SERVER_AWAY:
            self._paused_until = lane.again_at
            return False
        return True

    def _known(self, namespace: str) -> tuple[Namespace | None, str | None]:
        """The namespace and its sink."""
        return self._context.namespaces.get(namespace), self._context.sinks.get(namespace)

    async def _publish(self, event: SinkEvent, url: str, namespace: Namespace, record: bytes) -> Outcome:
        now_us = self._context.clock.now_us()
        signing = () if namespace.secret is None else namespace.signing.at(now_us)
        try:
            secrets = tuple(map(opener(self._context.seals, namespace.name), signing))
        except SealBroken as error:
            return NoResponse("SECRET_UNREADABLE", f"the namespace's secret can't be decrypted: {error}")
        invocation = Invocation(
            namespace=namespace.name,
            timer_id="",
            execute_at=now_us,
            fired_at=now_us,
            attempt=1,
            payload=NULL_PAYLOAD,
            message_id=event.id,
            url=url,
            method="POST",
            headers=None,
            timeout_us=self._context.limits.sink_timeout_us,
            secrets=secrets,
            traceparent=None,
            body=RawBody(JSON_TYPE, json=msgspec.Raw(record)),
            event=True,
        )
        ended: asyncio.Future[Exchange] = asyncio.get_running_loop().create_future()

        def done(exchange: Exchange) -> None:
            if not ended.done():
                ended.set_result(exchange)

        self._context.caller.invoke(invocation, done)
        return (await ended).outcome

    def _leave(self, lane: _Lane, namespace: str, code: str, detail: str) -> None:
        """The sink has not taken the event: the lane is behind until it is tried again."""
        # Nothing of the lane lies between, so that the next try need not read what others have left.
        lane.after = max(lane.after, self._read_to)
        self._postpone(lane, namespace, code, detail)

    def _postpone(self, lane: _Lane, namespace: str, code: str, detail: str) -> None:
        limits, boot_us = self._context.limits, self._context.clock.boottime_us()
        lane.failures += 1
        lane.silent = code == _SILENT
        pause_us = backoff_us(lane.failures, limits.sink_pause_initial_us, limits.sink_pause_max_us)
        lane.behind, lane.again_at = True, boot_us + int(pause_us * self._context.random.uniform(0.5, 1.0))
        if lane.behind_since is None:
            lane.behind_since = boot_us
        self._context.observe(EventNotTaken(namespace, code, detail[:_DETAIL_CHARS_MAX]))

    def _remove(self, row: StoredRow) -> None:
        self._log.removed[row.uuid] = None
        self._shard.lane.schedule(self._shard, urgent=False)

    # ------------------------------------------------------------------ silent sinks

    def _probe_silent(self, boot_us: int) -> None:
        """Has sinks asked that were silent, beside the events of others, which would wait for them otherwise: those that are
        due for the longest time, as many as may be."""
        room = _PROBES_MAX - sum(lane.probed for lane in self.lanes.values())
        due = [
            (lane.again_at, namespace)
            for namespace, lane in self.lanes.items()
            if lane.silent and not lane.probed and boot_us >= lane.again_at
        ]
        for _, namespace in sorted(due)[:room]:
            self.lanes[namespace].probed = True
            self._spawn(self._probe(self.lanes[namespace], namespace))

    async def _probe(self, lane: _Lane, namespace: str) -> None:
        """Publishes the first event of a lane whose sink was silent. If it answers, or the event is not to be published, the
        lane takes its turns again; the event is then published once more, under the same id."""
        try:
            row = await self._first_of(lane, namespace)
            outcome = None if row is None else await self._outcome_of(row, namespace)
        except StoreError as error:
            self._context.observe(LoadFailed(self._shard.shard_id, str(error)))
            return
        finally:
            lane.probed = False
        if isinstance(outcome, NoResponse) and outcome.code == _SILENT:
            self._postpone(lane, namespace, outcome.code, outcome.detail)
        else:
            lane.silent = False
        self.wake.set()

    async def _first_of(self, lane: _Lane, namespace: str) -> StoredRow | None:
        after, upto = lane.after, self._log.committed_to
        while after < upto and not self.ended:
            leaving = self._log.leaving()
            rows, after = await self._page(after)
            for row in rows:
                if row.namespace == namespace + EVENTS_SUFFIX and row.uuid not in leaving:
                    return row
        return None

    async def _outcome_of(self, row: StoredRow, namespace: str) -> Outcome | None:
        """What becomes of the event if it is published; None if it is not to be."""
        (known, url), event = self._known(namespace), _readable(row)
        if self.ended or known is None or known.damaged is not None or url is None or event is None:
            return None
        if _is_of_former(event, known, self._context.clock.now_us()):
            return None
        return await self._publish(event, f"{url}.{event.type}", known, row.record)

    # ------------------------------------------------------------------ losing

    async def _lose(self, excess: int) -> None:
        """Removes the oldest events, so many fewer remain; of each namespace's, the last becomes a gap, or that of each
        chunk."""
        log, found, after, count = self._log, dict[str, list[list[StoredRow]]](), EVENTS_START, 0
        while count < excess and after < log.committed_to:
            # As of before the page is read, as above.
            leaving = log.leaving()
            rows, after = await self._page(after)
            for row in rows:
                if row.uuid in leaving:
                    continue
                chunks = found.setdefault(row.namespace.removesuffix(EVENTS_SUFFIX), [[]])
                if len(chunks[-1]) > _LOST_MAX:
                    chunks.append([])
                count += bool(chunks[-1])
                chunks[-1].append(row)
                if count == excess:
                    break
        for namespace, chunks in found.items():
            for rows in chunks:
                if len(rows) > 1:
                    self._replace(namespace, rows, "backlog")

    def _replace(self, namespace: str, rows: list[StoredRow], reason: str) -> None:
        """A gap takes the place of these events of a namespace, oldest first."""
        events = [_readable(row) for row in rows]
        place, now_us = rows[-1], self._context.clock.now_us()
        gap = gap_event(place.uuid, namespace, events, now_us)
        row = place._replace(record=encode_event(gap))
        self._log.gaps[place.uuid] = Gap(row, [each.uuid for each in rows[:-1]])
        self._shard.lane.schedule(self._shard, urgent=False)
        lost = sum(event is None or event.type != GAP for event in events)
        self._context.observe(EventsLost(namespace, lost, reason))


def _is_of_former(event: SinkEvent, namespace: Namespace, now_us: int) -> bool:
    """Whether the event is of a namespace that was deleted, and whose name this one has. If this one's creation lies ahead,
    the clock was set back, and instants show nothing."""
    if namespace.created_at > now_us:
        return False
    written_at = event.last_at if event.type == GAP else event.timestamp
    return parse_instant(written_at) < namespace.created_at - FORMER_AFTER_US


def _readable(row: StoredRow) -> SinkEvent | None:
    try:
        return decode_event(row.record)
    except RecordUndecodable:
        return None


class EventSinks:
    """The events of all shards of this node. `owned` are the shards that it owns."""

    def __init__(
        self,
        context: Context,
        owned: Mapping[int, Shard],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._context, self._owned, self._spawn = context, owned, spawn
        self._feeds: dict[int, _Feed] = {}
        context.events_changed = self.changed

    @property
    def backlog(self) -> int:
        """Events that wait in the shards of this node, as far as they are counted."""
        return sum(feed.window.events.rows for feed in self._feeds.values())

    @property
    def behind_us(self) -> int:
        """For how long a sink has taken nothing, the longest of all; 0 if each takes what there is."""
        since = [
            lane.behind_since
            for feed in self._feeds.values()
            for lane in feed.lanes.values()
            if lane.behind_since is not None
        ]
        return self._context.clock.boottime_us() - min(since) if since else 0

    def changed(self, shard: Shard) -> None:
        """The shard may have events to publish."""
        window = shard.window
        if window is None or shard.draining:
            return
        feed = self._feeds.get(shard.shard_id)
        if feed is None or feed.window is not window:
            if feed is not None:
                feed.wake.set()
            feed = self._feeds[shard.shard_id] = _Feed(shard, window, self._context, self._spawn)
            self._spawn(feed.run())
        feed.wake.set()

    async def check(self) -> None:
        """Has feeds try again what is due, and end that have lost their claim. Call it at each heartbeat."""
        for shard_id, feed in list(self._feeds.items()):
            feed.wake.set()
            if feed.ended:
                del self._feeds[shard_id]
        if self._context.sinks:
            for shard in list(self._owned.values()):
                self.changed(shard)
