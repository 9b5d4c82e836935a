"""Schedules in the simulation: a client that creates, changes, pauses, triggers, backfills and deletes one, with a receiver
that may be slower than its interval; and the ledger of what it may and must do."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

import msgspec

from tocsin.administration import CALENDAR_RECORDS
from tocsin.model.calendar import WEEKDAYS, Calendar
from tocsin.model.errors import BacklogFull, InvalidInput, ScheduleEnded, TimerNotFound, TimerNotPending, TocsinError
from tocsin.model.ids import namespace_hash, schedule_uuid, shard_of
from tocsin.model.occurrences import Occurrences
from tocsin.model.retry import RetryPolicy
from tocsin.model.run import Run, RunStatus, decode_run
from tocsin.model.schedule import (
    CatchUp,
    Definition,
    DefinitionChanges,
    Edit,
    Fire,
    Pause,
    Put,
    Refill,
    Resume,
    Schedule,
    ScheduleChange,
    Source,
    State,
)
from tocsin.model.timer import Changes, Status, Timer, decode_record
from tocsin.ports.http import Invocation
from tocsin.ports.store import ShardBatch
from tocsin.timers.engine.rows import OpKind, Row, WriteOp

from .clients import _REFUSED, Client, _word
from .durable import watch_durable
from .receiver import payload_of, token_of

if TYPE_CHECKING:
    from .node import Node
    from .world import World

SECOND = 1_000_000
#: The namespace of schedules.
SCHEDULED_NAMESPACE = "scheduled"
#: How long after the healing a schedule may take to fire again.
_RECOVERY_S = 45.0
_POLICIES = (
    RetryPolicy(max_attempts=1),
    RetryPolicy(max_attempts=3, initial_interval_us=SECOND // 5, backoff_multiplier=2.0, max_interval_us=SECOND),
    RetryPolicy(
        max_attempts=1_000, initial_interval_us=SECOND // 5, backoff_multiplier=2.0, max_interval_us=3 * SECOND
    ),
)


@dataclass(slots=True)
class _Life:
    """One schedule from its creation to its end, as far as it is durable and as its receiver sees it."""

    created_at: int
    timer: Timer
    greatest_called: int = -1
    greatest_ended: int = -1
    called: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    in_flight: list[str] = field(default_factory=list)


class ScheduleLedger:
    """What becomes durable of schedules, and the calls of their receivers. Versions are the tokens of definitions."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lives: dict[bytes, _Life] = {}
        #: The oldest version with which an attempt may begin, by schedule; and those that may not begin at all.
        self.version: dict[bytes, int] = {}
        self.deleted: set[bytes] = set()
        self.paused: set[bytes] = set()
        self.superseded: set[bytes] = set()
        #: Those whose calendar excludes everything, as every node that fires knows by now.
        self.excluded: set[bytes] = set()
        self.triggers: dict[bytes, int] = {}
        self.calls: dict[bytes, int] = {}

    def _broken(self, kind: str, uuid: bytes, detail: str) -> None:
        self._world.broken(kind, f"schedule {uuid.hex()[:6]}: {detail}")

    # ------------------------------------------------------------------ durable batches

    def watch(self) -> None:
        """Has every durable transaction of the store checked."""
        watch_durable(self._world, self._written)

    def _written(self, batch: ShardBatch) -> None:
        runs: dict[bytes, list[Run]] = {}
        for each in batch.runs:
            runs.setdefault(each.uuid, []).append(decode_run(each.record))
        for row in batch.upserts:
            timer = decode_record(row.record) if row.namespace.endswith("/schedule") else None
            if timer is not None:
                self._moved(row.uuid, timer, runs.get(row.uuid, []))
        recorded = {row.uuid for row in batch.history}
        for uuid in batch.deletes:
            if uuid in self._lives and uuid not in recorded:
                self._broken("LOST", uuid, "its row was deleted without its end")
        for ended in batch.history:
            if ended.namespace.endswith("/schedule"):
                self._moved(ended.uuid, decode_record(ended.record), runs.get(ended.uuid, []))

    def _moved(self, uuid: bytes, timer: Timer, runs: list[Run]) -> None:
        """Checks one transition of a schedule's row: nothing goes back, and every instant passed is accounted for."""
        life = self._lives.get(uuid)
        before, self_after = (None if life is None else life.timer.schedule), timer.schedule
        assert self_after is not None
        if life is None or before is None or life.created_at != timer.created_at:
            life = self._lives[uuid] = _Life(timer.created_at, timer)
            return
        life.timer = timer
        old, new = before.state.position, self_after.state.position
        if new < old:
            self._broken("WENT BACK", uuid, f"position {old} became {new}")
        for run in runs:
            if run.status in (RunStatus.COMPLETED, RunStatus.FAILED):
                self._ended(uuid, life, run)
        if before.definition.timing != self_after.definition.timing:
            # Planned again behind what has ended. By a clock that is behind, what was called and forgotten is yet to come.
            life.greatest_called = min(life.greatest_called, new)
        if timer.status is Status.CANCELED:
            return
        self._account(uuid, before.definition, timer, before.state, runs)

    def _ended(self, uuid: bytes, life: _Life, run: Run) -> None:
        name = run.firing.partition(".")[0]
        if name in life.ended:
            self._broken("ENDED TWICE", uuid, run.firing)
        life.ended.add(name)
        if run.firing.startswith("s-"):
            if run.execute_at <= life.greatest_ended:
                self._broken("WENT BACK", uuid, f"{run.execute_at} ended after {life.greatest_ended}")
            life.greatest_ended = run.execute_at
        if run.firing.partition(".")[0] not in life.called:
            self._broken("NEVER CALLED", uuid, f"{run.firing} ended as {run.status}")

    def _account(self, uuid: bytes, former: Definition, timer: Timer, old: State, runs: list[Run]) -> None:
        """Every instant by the former definition up to the present position has fired, has begun, or is missed."""
        assert timer.schedule is not None
        new = timer.schedule.state
        # What its calendar excludes is missed, too; whether it did when an instant passed is known only to the node.
        definition = msgspec.structs.replace(former, skip=())
        occurrences = Occurrences(definition, uuid, timer.created_at)
        passed = []
        for at in occurrences.following(old.position):
            if at > new.position:
                break
            passed.append(at)
        missed = [each for run in runs for each in run.missed]
        fired = {run.execute_at for run in runs if run.firing.startswith("s-")}
        begun = {timer.execute_at} if new.source is Source.REGULAR else set()
        for at in passed:
            if at not in fired | begun and not any(each.first_at <= at <= each.last_at for each in missed):
                self._broken("UNACCOUNTED", uuid, f"{at} neither fired nor is missed: {runs}")
        if sum(each.instants for each in missed) > len(passed):
            self._broken("UNACCOUNTED", uuid, f"{missed} of {passed}")

    # ------------------------------------------------------------------ calls

    def begins(self, uuid: bytes, invocation: Invocation, node: str, node_now: int) -> None:
        """Checks a call that begins."""
        world, life = self._world, self._lives.get(uuid)
        firing = invocation.message_id.rpartition("_")[2]
        what = f"{firing} attempt {invocation.attempt} by {node}"
        version = token_of(invocation.payload)
        world.record("CALL", node, uuid.hex()[:6], firing, "attempt", invocation.attempt, "version", version)
        if life is None:
            self._broken("UNKNOWN", uuid, what)
            return
        self.calls[uuid] = self.calls.get(uuid, 0) + 1
        if uuid in self.deleted:
            self._broken("AFTER DELETE", uuid, what)
        if version < self.version.get(uuid, 0):
            self._broken("OUTDATED", uuid, f"{what} with version {version}, {self.version[uuid]} was acknowledged")
        if uuid in self.paused and not firing.startswith("m-"):
            self._broken("PAUSED", uuid, f"{what} after an acknowledged pause")
        if firing.startswith("s-"):
            if uuid in self.excluded and firing.partition(".")[0] not in life.called:
                self._broken("EXCLUDED", uuid, f"{what} on a date that its calendar excludes")
            self._regular(uuid, life, firing, invocation, node_now)
        if life.in_flight and not world.faulty:
            self._broken("OVERLAP", uuid, f"{what} beside {life.in_flight}")
        if not world.faulty and firing.partition(".")[0] in life.ended:
            self._broken("AGAIN", uuid, f"{what} after it has ended")
        life.called.add(firing.partition(".")[0])
        life.in_flight.append(firing)

    def _regular(self, uuid: bytes, life: _Life, firing: str, invocation: Invocation, node_now: int) -> None:
        at = invocation.execute_at
        if firing.partition(".")[0] != f"s-{at}":
            self._broken("RENAMED", uuid, f"{firing} is called for {at}")
        if at < life.greatest_called:
            self._broken("WENT BACK", uuid, f"{at} is called after {life.greatest_called}")
        life.greatest_called = max(life.greatest_called, at)
        # A later attempt may be made by a node whose clock is behind.
        if node_now < at and firing not in life.called:
            self._broken("EARLY", uuid, f"{firing} {at - node_now} us before its instant")

    def ends(self, uuid: bytes, message_id: str) -> None:
        """A call has ended, whether or not its node still waits for it. It may be one of a schedule that was deleted."""
        life, firing = self._lives.get(uuid), message_id.rpartition("_")[2]
        if life is not None and firing in life.in_flight:
            life.in_flight.remove(firing)

    def check_called(self, uuid: bytes) -> None:
        """Checks that a schedule without faults has ended what it began, and has fired what was triggered."""
        life = self._lives.get(uuid)
        if life is None:
            return
        triggered = sum(1 for firing in life.called if firing.startswith("m-") and "." not in firing)
        if triggered < self.triggers.get(uuid, 0):
            self._broken("NOT TRIGGERED", uuid, f"{triggered} of {self.triggers[uuid]}")

    def reborn(self, uuid: bytes) -> None:
        """A schedule is deleted: what was acknowledged of it no longer counts."""
        self.triggers.pop(uuid, None)
        self.version.pop(uuid, None)

    def state(self, uuid: bytes) -> Schedule | None:
        """The durable schedule."""
        life = self._lives.get(uuid)
        return None if life is None or life.timer.status is not Status.PENDING else life.timer.schedule


class Scheduler(Client):
    """Writes one schedule."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, number)
        self._namespace = SCHEDULED_NAMESPACE
        self.uuid = schedule_uuid(SCHEDULED_NAMESPACE, self._id)
        total = world.total_shards
        self.shard_id = shard_of(namespace_hash(SCHEDULED_NAMESPACE), self.uuid, total, total)
        self._ledger = world.schedules
        self._versions = 0
        self._calendar: Calendar | None = None

    def _taken(self, node: Node, op: WriteOp) -> None:
        """Namespaces' secrets are no matter here."""

    async def run(self, until_s: float) -> None:
        """Changes the schedule until that time of the loop's clock; then expects it to fire, and deletes it."""
        rng, world = self._rng, self._world
        while world.loop.time() < until_s:
            choice = rng.random()
            if self._ledger.state(self.uuid) is None or choice < 0.15:
                await self._put()
            elif choice < 0.4:
                await self._edit()
            elif choice < 0.55:
                await self._pause()
            elif choice < 0.7:
                await self._resume()
            elif choice < 0.82:
                await self._trigger()
            elif choice < 0.9:
                await self._change(Refill(world.true_us() - rng.randint(1, 8) * SECOND, world.true_us()))
            elif choice < 0.93:
                await self._delete()
            elif choice < 0.97:
                await self._put_calendar(excludes=rng.random() < 0.6)
            await asyncio.sleep(rng.choice((0.0, rng.uniform(0, 1), rng.uniform(0, 8))))
        await world.all_healed.wait()
        await self._finish()

    def _definition(self) -> Definition:
        rng = self._rng
        every = rng.choice((1, 1, 1, 2, 3)) * SECOND
        skip = (self._id,) if rng.random() < 0.4 else ()
        return Definition(
            skip=skip,
            cron="*/2 * * * * *" if rng.random() < 0.2 else None,
            every_us=every,
            # What calendars exclude is reported without jitter.
            jitter_us=0 if skip else rng.choice((0, 0, SECOND // 2)),
            catch_up=rng.choice(list(CatchUp)),
            catch_up_window_us=rng.choice((None, None, 3 * SECOND)),
            pause_after_failures=0 if rng.random() < 0.9 else 3,
        )

    def _timer(self) -> Timer:
        rng = self._rng
        self._versions += 1
        self._ledger.excluded.discard(self.uuid)
        definition = self._definition()
        if definition.cron is not None:
            definition = msgspec.structs.replace(definition, every_us=None)
        return Timer(
            self._namespace, self._id, 0, f"http://{rng.choice(self._world.hosts)}/", 0, 0,
            payload=payload_of(self._versions), retry=rng.choice(_POLICIES), timeout_us=rng.randint(SECOND // 3, 3 * SECOND),
            schedule=Schedule(definition, State(0)),
        )  # fmt: skip

    async def _put_calendar(self, *, excludes: bool) -> None:
        """Has the schedule's calendar exclude everything, or nothing; returns when every node that fires knows."""
        world, store = self._world, self._world.store
        world.record("client puts calendar", self.uuid.hex()[:6], excludes)
        self._ledger.excluded.discard(self.uuid)
        versions = self._versions
        self._calendar = Calendar(
            self._namespace,
            self._id,
            0,
            0,
            dates=() if excludes else (date(2000, 1, 1),),
            weekdays=WEEKDAYS if excludes else (),
            version=self._calendar.version + 1 if self._calendar is not None else 1,
        )
        assert await CALENDAR_RECORDS.put(store, self._calendar)
        await asyncio.sleep(1.2 * world.limits.namespaces_lease_us / SECOND + 1.0)
        schedule = self._ledger.state(self.uuid)
        if excludes and versions == self._versions and schedule is not None and schedule.definition.skip:
            self._ledger.excluded.add(self.uuid)

    async def _put(self) -> bool:
        """Creates or replaces the schedule; whether that was acknowledged."""
        timer, version = self._timer(), self._versions
        # It may be called before the answer arrives.
        self._ledger.deleted.discard(self.uuid)
        # A create of unknown outcome may come after a pause, but it pauses nothing and resumes nothing.
        if self._ledger.state(self.uuid) is None:
            self._ledger.paused.discard(self.uuid)
        acknowledged = isinstance(await self._change(Put(), timer=timer), Row)
        if acknowledged:
            self._ledger.version[self.uuid] = version
        return acknowledged

    async def _edit(self) -> None:
        timer, version = self._timer(), self._versions
        definition = DefinitionChanges()
        assert timer.schedule is not None
        if self._rng.random() < 0.5:
            wanted = timer.schedule.definition
            names = ("cron", "every_us") if wanted.cron is not None else ("every_us", "cron")
            definition = DefinitionChanges(
                **{names[0]: getattr(wanted, names[0])},
                catch_up=wanted.catch_up,
                jitter_us=wanted.jitter_us,
                skip=wanted.skip,
            )
        changes = Changes(payload=payload_of(version), retry=timer.retry)
        if isinstance(await self._change(Edit(definition), changes=changes), Row):
            self._ledger.version[self.uuid] = version

    async def _pause(self) -> None:
        if isinstance(await self._change(Pause()), Row):
            self._ledger.paused.add(self.uuid)

    async def _resume(self) -> None:
        self._ledger.paused.discard(self.uuid)
        await self._change(Resume())

    async def _trigger(self) -> None:
        if isinstance(await self._change(Fire()), Row):
            self._ledger.triggers[self.uuid] = self._ledger.triggers.get(self.uuid, 0) + 1

    async def _delete(self) -> None:
        self._ledger.reborn(self.uuid)
        answer, _ = await self._insist(lambda: WriteOp(OpKind.DELETE, self.uuid, self._namespace))
        self._world.record("client receives", self.uuid.hex()[:6], "DELETE", _word(answer))
        self._ledger.reborn(self.uuid)
        if answer is None or isinstance(answer, TimerNotFound | TimerNotPending):
            self._ledger.deleted.add(self.uuid)
            self._ledger.paused.discard(self.uuid)
            if self._ledger.state(self.uuid) is not None:
                self._ledger._broken("NOT DURABLE", self.uuid, "it is still stored after an answer that it is not")

    async def _change(
        self, change: ScheduleChange, *, timer: Timer | None = None, changes: Changes | None = None
    ) -> Row | TocsinError | None:
        def op() -> WriteOp:
            sent = None if timer is None else msgspec.structs.replace(timer)
            return WriteOp(OpKind.SCHEDULE, self.uuid, self._namespace, timer=sent, changes=changes, change=change)

        self._world.record("client", type(change).__name__, self.uuid.hex()[:6], self._versions)
        answer, _ = await self._insist(op)
        self._world.record("client receives", self.uuid.hex()[:6], type(change).__name__, _word(answer))
        expected = (BacklogFull, InvalidInput, ScheduleEnded, TimerNotFound, TimerNotPending, *_REFUSED)
        if isinstance(answer, Row):
            if answer.timer.schedule is None:
                self._ledger._broken("WRONG ANSWER", self.uuid, repr(answer.timer))
        elif self._world.healed and not isinstance(answer, expected):
            self._world.record("unexpected", repr(answer))
        return answer

    async def _finish(self) -> None:
        """The schedule fires again once all is healed, and does what was asked of it; then it is deleted."""
        world, ledger = self._world, self._ledger
        await self._put_calendar(excludes=False)
        for _ in range(30):
            if await self._put():
                break
            await asyncio.sleep(1.0)
        ledger.paused.discard(self.uuid)
        await self._change(Resume())
        calls, deadline, left = ledger.calls.get(self.uuid, 0), world.loop.time() + _RECOVERY_S, None
        while not self._is_done(calls):
            schedule = ledger.state(self.uuid)
            asked = None if schedule is None else (schedule.state.backfills, schedule.state.triggers)
            if asked != left:
                # Each occurrence of a backfill may wait for its batch.
                left, deadline = asked, world.loop.time() + _RECOVERY_S
            if world.loop.time() > deadline:
                ledger._broken("STUCK", self.uuid, f"{schedule}")
                return
            if schedule is not None and schedule.state.paused is not None:
                # An attempt from before the healing has failed since.
                await self._change(Resume())
            await asyncio.sleep(0.5)
        ledger.check_called(self.uuid)
        for _ in range(30):
            await self._delete()
            if self.uuid in ledger.deleted:
                return

    def _is_done(self, calls: int) -> bool:
        schedule = self._ledger.state(self.uuid)
        waits = schedule is None or schedule.state.triggers or schedule.state.backfills
        return not waits and self._ledger.calls.get(self.uuid, 0) >= calls + 2
