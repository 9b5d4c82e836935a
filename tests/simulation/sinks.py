"""Events in the simulation: each durable end has one in its batch; none is removed that its sink has not taken, unless a gap
of the same batch counts it; and a sink gets those of a shard in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from tocsin.model.answer import NoResponse, Outcome, Response
from tocsin.model.run import RunStatus, decode_run
from tocsin.model.sink import GAP, decode_event
from tocsin.model.timer import decode_record
from tocsin.ports.http import Exchange, Invocation
from tocsin.ports.store import EVENTS_SUFFIX, FireKey, ShardBatch, StoredRow

from .durable import watch_durable
from .schedules import SCHEDULED_NAMESPACE

if TYPE_CHECKING:
    from .world import World

SINK = "nats://events"
_OCCURRENCES = {RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.EXPIRED}


class _Known(msgspec.Struct):
    """An event that is durable: its shard, its key, how many events were lost with it if it is a gap, and whether the sink
    has taken it as it is."""

    shard_id: int
    key: FireKey
    type: str
    lost: int = 0
    taken: bool = False
    #: It stands for something that an earlier owner had published, and so may come behind what that has published after it.
    again: bool = False


class SinkLedger:
    """The namespaces with a sink, and what is durable and published of their events."""

    def __init__(self, world: World, *, there: bool) -> None:
        self._world = world
        self._rng = world.rng("sink")
        self.namespaces: tuple[str, ...] = ("a", SCHEDULED_NAMESPACE) if there else ()
        self._known: dict[bytes, _Known] = {}
        self._last_written: dict[int, FireKey] = {}
        self._last_published: dict[tuple[int, str], FireKey] = {}
        self._ids: set[str] = set()
        self._away_until_us = 0

    def watch(self) -> None:
        """Has every durable transaction of the store checked."""
        if not self.namespaces:
            return
        watch_durable(self._world, self._written)

    # ------------------------------------------------------------------ what is durable

    def _written(self, batch: ShardBatch) -> None:
        world = self._world
        rows = [row for row in batch.upserts if row.namespace.endswith(EVENTS_SUFFIX)]
        added, replaced = (
            [row for row in rows if row.uuid not in self._known],
            [row for row in rows if row.uuid in self._known],
        )
        self._account(batch, replaced)
        reported: Counter[str] = Counter()
        for row in sorted(added, key=lambda row: row.key):
            event = decode_event(row.record)
            if row.key <= self._last_written.get(batch.shard_id, (0, b"")):
                world.broken("EVENT ORDER", f"{event.id} is written behind a later one")
            self._last_written[batch.shard_id] = row.key
            self._known[row.uuid] = _Known(batch.shard_id, row.key, event.type)
            if event.type != "occurrence.missed":
                reported[f"{event.type} {event.timer_id or event.schedule_id}"] += 1
        ended = Counter(self._ends(batch))
        if ended != reported:
            world.broken("NO EVENT", f"ended {ended - reported}, reported {reported - ended}")

    def _account(self, batch: ShardBatch, replaced: Sequence[StoredRow]) -> None:
        """Whatever is removed was taken, or is counted by a gap; so may be what was taken and not acknowledged."""
        removed = [self._known.pop(uuid) for uuid in batch.deletes if uuid in self._known]
        most = sum(each.lost or 1 for each in removed)
        lost = most - sum(each.lost or 1 for each in removed if each.taken)
        counted = 0
        for row in replaced:
            former, gap = self._known[row.uuid], decode_event(row.record)
            if gap.type != GAP:
                self._world.broken("REWRITTEN", f"{row.uuid.hex()} becomes {gap.type}")
            most += former.lost or 1
            lost += 0 if former.taken else former.lost or 1
            counted += gap.lost
            self._known[row.uuid] = _Known(former.shard_id, former.key, GAP, gap.lost, again=most > lost)
        if not lost <= counted <= most:
            self._world.broken("LOST EVENTS", f"{lost} were removed before they were taken, and gaps count {counted}")

    def _ends(self, batch: ShardBatch) -> Iterator[str]:
        """The ends in the batch, of timers and occurrences of namespaces with a sink."""
        ids = {row.uuid: row.timer_id for row in (*batch.upserts, *batch.history)}
        wanted = {
            row.uuid for row in (*batch.upserts, *batch.history) if row.namespace.partition("/")[0] in self.namespaces
        }
        for row in batch.history:
            timer = decode_record(row.record)
            if timer.namespace in self.namespaces and timer.notifies is None:
                yield f"{'timer' if timer.schedule is None else 'schedule'}.{timer.status} {timer.id}"
        for run in batch.runs:
            status = decode_run(run.record).status
            if run.uuid in wanted and status in _OCCURRENCES:
                yield f"occurrence.{status} {ids[run.uuid]}"

    # ------------------------------------------------------------------ the sink

    def invoke(self, invocation: Invocation, node: str, later: Callable[[float, Exchange], None]) -> None:
        """An event reaches the sink, or does not; its acknowledgement may be lost."""
        world, rng = self._world, self._rng
        now_us = world.true_us()
        if not world.healed and now_us >= self._away_until_us and rng.random() < 0.02:
            self._away_until_us = now_us + rng.choice((1, 5, 15)) * 1_000_000
        chance = 1.0 if world.healed else rng.random()
        outcome: Outcome = Response(200)
        if not world.healed and now_us < self._away_until_us:
            outcome = NoResponse("CONNECTION_FAILED")
        elif chance < 0.05:
            outcome = NoResponse("NO_STREAM")
        else:
            self._take(invocation, node)
            if chance < 0.1:
                outcome = NoResponse("TIMEOUT")
        delay_s = 1.0 if outcome == NoResponse("TIMEOUT") else rng.choice((0.001, 0.02, 0.3))
        later(delay_s, Exchange(outcome, None, 0))

    def _take(self, invocation: Invocation, node: str) -> None:
        world, name = self._world, invocation.message_id
        assert invocation.body is not None
        event = decode_event(invocation.body.sent())
        uuid = bytes.fromhex(name.split("_")[1])
        known = self._known.get(uuid)
        world.record("EVENT", node, name, event.type)
        if invocation.url != f"{SINK}.{event.type}" or event.id != name:
            world.broken("MISLED EVENT", f"{name} is published to {invocation.url} as {event.id}")
        if name in self._ids:
            if known is not None and (known.type == GAP) == (event.type == GAP):
                known.taken = True
            return
        self._ids.add(name)
        if known is None:
            world.broken("UNTRUE", f"{name} is published, and not durable")
            return
        known.taken = known.type == event.type and known.lost == event.lost
        lane = (known.shard_id, event.namespace)
        last = self._last_published.get(lane, known.key)
        if known.key < last and not known.again:
            world.broken("EVENT ORDER", f"{name} is published behind a later one")
        self._last_published[lane] = max(last, known.key)
