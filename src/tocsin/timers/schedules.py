"""The use cases of schedules. A schedule is changed at the owner of its shard, like a timer."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from tocsin.model.calendar import Calendars
from tocsin.model.condition import Outcome
from tocsin.model.errors import (
    FieldError,
    InvalidInput,
    ScheduleEnded,
    ScheduleNotFound,
    TimerNotFound,
    TimerNotPending,
    TocsinError,
)
from tocsin.model.explanation import Explanation
from tocsin.model.failure import FAILED
from tocsin.model.ids import schedule_uuid
from tocsin.model.instants import INSTANT_MAX, US_PER_DAY
from tocsin.model.occurrences import Occurrences, check, next_instants, recurrence_of
from tocsin.model.schedule import (
    BACKFILLED_MAX,
    Definition,
    DefinitionChanges,
    Edit,
    FailedOccurrence,
    Fire,
    LastOccurrence,
    Pause,
    Put,
    Refill,
    Remove,
    Replay,
    Resume,
    Schedule,
    ScheduleChange,
    ScheduleStatus,
    Skip,
    State,
    Unskip,
    status_of,
)
from tocsin.model.sealed import changes_sealed, seal_timer
from tocsin.model.stored_secrets import take_secrets, with_secrets, withholds
from tocsin.model.timer import Changes, Status, Timer
from tocsin.ports.seals import sealer
from tocsin.timers.engine.rows import OpKind, WriteOp
from tocsin.timers.engine.schedule_changes import Subject
from tocsin.timers.engine.schedule_changes import change as change_of
from tocsin.timers.listing import LIST_READS_MAX, IdListRequest, Scope, TimerView

if TYPE_CHECKING:
    from tocsin.model.run import Run
    from tocsin.tasks import Turns
    from tocsin.timers.history import RunPage
from tocsin.timers.credentials import uses_of
from tocsin.timers.service import TimerService

T = TypeVar("T")

#: Schedules that one part of a read in order of next instants has.
_SORTED_PER_READ = 500
_INSTANT = re.compile(r"[0-9]{1,19}", re.ASCII)
#: So much of a backfill's range is counted without a pause.
_COUNTED_US = 30 * US_PER_DAY
#: How many of its next instants a schedule is shown with.
NEXT_INSTANTS = 3


class ScheduleView(msgspec.Struct, frozen=True, gc=False):
    """A schedule as a client sees it. `timer` has what is sent and how often it is tried; `timer.created_at` is that of the
    schedule, `updated_at` the instant of a client's last change. `occurrence_at` is the instant of the current occurrence,
    `next_attempt_at` that of its next attempt; None once the schedule has ended. `next_instants` are the next regular ones.
    `version` counts the changes of clients. `counts` has the occurrences by outcome, `missed` the missed instants by reason.
    `triggers`, `backfills` and `replays` wait to be fired. `skips` are the instants to come that are skipped by hand.
    `unchanged`: a create or update has found nothing to change. `suspended` is as in TimerView, and None while the schedule
    is paused. `explanation` is also as there. `namespace_paused`: its namespace is paused, as far as this node knows."""

    timer: Timer
    uuid: bytes
    shard_id: int
    definition: Definition
    status: ScheduleStatus
    updated_at: int
    version: int
    paused: str | None
    next_instants: list[int]
    occurrence_at: int | None
    next_attempt_at: int | None
    last_occurrence: LastOccurrence | None
    counts: dict[str, int]
    missed: dict[str, int]
    triggers: int
    backfills: int
    replays: int
    skips: tuple[int, ...] = ()
    unchanged: bool = False
    suspended: str | None = None
    explanation: Explanation | None = None
    namespace_paused: bool = False


@dataclass(frozen=True, slots=True)
class ScheduleListRequest:
    """What to list, in the order of ids; of several namespaces, one namespace after the other. `cursor` is that of the page
    before: the id behind which the page begins, or `namespace/id`. Empty `statuses` mean all live ones. `failing`: only those
    whose last occurrence failed; `managed_by`: only those with this mark. `reads_max` bounds the reads of the store that
    return fewer matches than asked for; after them the page is short. `explained`: those that are due have their
    explanation."""

    scope: Scope
    statuses: frozenset[ScheduleStatus] = frozenset()
    id_prefix: str = ""
    cursor: str | None = None
    limit: int = 100
    reads_max: int = LIST_READS_MAX
    explained: bool = False
    failing: bool = False
    managed_by: str | None = None

    def matches(self, timer: Timer) -> bool:
        """Whether a live schedule is among those that are listed."""
        schedule = timer.schedule
        if schedule is None or not timer.id.startswith(self.id_prefix):
            return False
        if self.statuses and status_of(schedule.state) not in self.statuses:
            return False
        if self.managed_by is not None and schedule.definition.managed_by != self.managed_by:
            return False
        return not self.failing or has_failed(schedule.state.last)


def has_failed(last: LastOccurrence | None) -> bool:
    """Whether the last occurrence of a schedule failed or expired."""
    return last is not None and last.outcome in FAILED


class Schedules:
    """Create, read, change and list schedules. All errors are `TocsinError`s. Each method raises NamespaceNotFound and
    Unavailable; those that name a schedule also raise ScheduleNotFound."""

    def __init__(self, timers: TimerService) -> None:
        self._timers = timers

    def calendars(self, namespace: str) -> Calendars:
        """The calendars of the namespace, as this node knows them."""
        return self._timers.calendars.known(namespace)

    def instants_of(self, view: ScheduleView) -> Occurrences:
        """The regular instants of a schedule, as its calendars leave them. Raises InvalidInput if its time zone or its
        expression can't be read here."""
        calendars = self.calendars(view.timer.namespace)
        try:
            return Occurrences(view.definition, view.uuid, view.timer.created_at, calendars, view.skips)
        except ValueError as error:
            reason = f"names a schedule whose time zone or expression can't be read: {error}"
            raise InvalidInput(FieldError("scheduleId", reason)) from error

    async def check_calendars(self, namespace: str, definition: Definition) -> None:
        """Raises InvalidInput if the definition names calendars that the namespace doesn't have."""
        await self._timers.calendars.check(namespace, definition)

    @property
    def turns(self) -> Turns:
        """For what a request lets this process reckon of a schedule's instants."""
        return self._timers.turns

    async def create(
        self,
        timer: Timer,
        definition: Definition,
        *,
        expected_version: int | None = None,
        paused: bool = False,
        dry_run: bool = False,
    ) -> ScheduleView:
        """Stores a validated schedule, whose id is the timer's; it is durable when this returns. A schedule of that id keeps
        its state: one with another timing is planned again, from now on, and an identical one is not written at all.
        `[redacted]` in the URL and headers stands for the secrets of the stored schedule. The timer's instants are ignored.
        `paused`: one that did not exist, or had ended, begins paused. With `dry_run`, returns what the schedule would be by
        what is stored now, and writes nothing.

        Raises InvalidInput, QuotaExceeded, ScheduleEnded if the definition has no instant left, and VersionConflict if the
        schedule has not the version that is expected (0: there is none)."""
        await self._timers.namespaces.ensure_known(timer.namespace)
        if not dry_run:
            self._timers.quotas.check_create(timer)
        seal_timer(timer, sealer(self._timers.seals, timer.namespace))
        stored = await self._stored(timer.namespace, timer.id) if dry_run or withholds(timer) else None
        if withholds(timer):
            take_secrets(timer, None if stored is None else stored.timer)
        await self._timers.calendars.check(timer.namespace, definition)
        await self._timers.credentials.check(timer.namespace, uses_of(timer))
        timer.schedule = Schedule(definition, State(0))
        change = Put(expected_version, paused)
        if dry_run:
            return await self.turns.run(self._tried, timer, change, stored)
        return await self._change(timer.namespace, timer.id, change, timer=timer)

    async def get(self, namespace: str, schedule_id: str, *, explained: bool = False) -> ScheduleView:
        """The schedule, or the one of that id that ended last; with `explained` with its explanation, if it is due."""
        view = await self._existing(namespace, schedule_id)
        return await self._view((await self._timers.explained([view]))[0] if explained else view)

    async def get_many(self, namespace: str, schedule_ids: Iterable[str]) -> dict[str, ScheduleView]:
        """Like `get` for many ids, with one read for each shard; ids without a schedule are absent. Those that are due have
        their explanation."""
        found = await self._timers.get_many(namespace, schedule_ids, schedule_uuid)
        views = await self.turns.each(map(self._viewed, await self._timers.explained([*found.values()])))
        return dict(zip(found, views, strict=True))

    async def update(
        self,
        namespace: str,
        schedule_id: str,
        changes: Changes,
        definition: DefinitionChanges | None = None,
        expected_version: int | None = None,
    ) -> ScheduleView:
        """Changes a schedule; an attempt in flight goes on, and its result counts. `[redacted]` and the expected version have
        the same meaning as in `create`. Raises ScheduleEnded, QuotaExceeded, VersionConflict, and InvalidInput, also if the
        changed definition is invalid."""
        if changes.execute_at is not msgspec.UNSET:
            raise InvalidInput(FieldError("executeAt", "does not apply to schedules; change cron, every or anchor"))
        await self._timers.namespaces.ensure_known(namespace)
        self._timers.quotas.check_payload(namespace, changes.payload, changes.body)
        changes = changes_sealed(changes, sealer(self._timers.seals, namespace))
        definition = definition or DefinitionChanges()
        timed = definition != DefinitionChanges()
        stored = (await self._existing(namespace, schedule_id)).timer if timed or withholds(changes) else None
        if timed and stored is not None and stored.status is Status.PENDING and stored.schedule is not None:
            # The commit checks it again, by the definition of that moment. What takes long to refuse must not get there.
            wanted = definition.apply(stored.schedule.definition)
            if errors := await self.turns.run(check, wanted, self._timers.now_us()):
                raise InvalidInput(*errors)
            await self._timers.calendars.check(namespace, wanted)
        if stored is not None:
            changes = with_secrets(changes, stored)

        async def stored_url() -> str:
            return (await self._existing(namespace, schedule_id)).timer.url

        changes = await self._timers.credentials.checked(namespace, changes, stored_url)
        return await self._change(namespace, schedule_id, Edit(definition, expected_version), changes=changes)

    async def delete(self, namespace: str, schedule_id: str, expected_version: int | None = None) -> None:
        """Ends a schedule: nothing of it fires any more, but for an attempt in flight. Raises ScheduleEnded, and
        VersionConflict if it has not the version that is expected."""
        uuid = schedule_uuid(namespace, schedule_id)
        shard_id = await self._timers.shard_of(namespace, uuid)
        condition = None if expected_version is None else Remove(expected_version)
        try:
            await self._timers.write(shard_id, WriteOp(OpKind.DELETE, uuid, namespace, change=condition))
        except TimerNotFound:
            raise _not_found(namespace, schedule_id) from None
        except TimerNotPending:
            raise ScheduleEnded(f"schedule {schedule_id!r} has ended") from None

    async def pause(self, namespace: str, schedule_id: str) -> ScheduleView:
        """Lets the attempt in flight end, and begins no other until `resume`, but for triggers. Raises ScheduleEnded."""
        return await self._change(namespace, schedule_id, Pause())

    async def resume(self, namespace: str, schedule_id: str) -> ScheduleView:
        """Fires again, from the next instant on; instants that passed during the pause are skipped. Raises ScheduleEnded."""
        return await self._change(namespace, schedule_id, Resume())

    async def trigger(self, namespace: str, schedule_id: str) -> ScheduleView:
        """Fires once more, at once or after the current occurrence, also while the schedule is paused. Raises ScheduleEnded,
        BacklogFull."""
        return await self._change(namespace, schedule_id, Fire())

    async def backfill(self, namespace: str, schedule_id: str, after: int, before: int) -> ScheduleView:
        """Fires the instants from `after` (inclusive) to `before` (exclusive) once more, one after the other, in turn with
        regular ones. Raises ScheduleEnded, BacklogFull, InvalidInput if the range is empty, not past or has too many."""
        if before <= after:
            raise InvalidInput(FieldError("before", "must be later than after"))
        timer = (await self._existing(namespace, schedule_id)).timer
        if timer.schedule is not None and timer.status is Status.PENDING:
            await self._refuse_many(timer.schedule.definition, timer.created_at, after, before)
        return await self._change(namespace, schedule_id, Refill(after - 1, before))

    async def skip(self, namespace: str, schedule_id: str, instant: int) -> ScheduleView:
        """Skips one regular instant to come. Raises ScheduleEnded, InvalidInput if the schedule has no such instant or it has
        come, BacklogFull if too many are skipped."""
        return await self._change(namespace, schedule_id, Skip(instant))

    async def unskip(self, namespace: str, schedule_id: str, instant: int) -> ScheduleView:
        """Fires at an instant to come all the same that `skip` skips. Raises ScheduleEnded, InvalidInput if it is past."""
        return await self._change(namespace, schedule_id, Unskip(instant))

    async def replay(self, namespace: str, schedule_id: str, instants: Sequence[int]) -> ScheduleView:
        """Fires failed occurrences again, each under its `webhook-id`, one after the other and in turn with regular ones.
        Those that wait already are not taken twice. Raises ScheduleEnded, BacklogFull, InvalidInput for instants whose latest
        occurrence has not failed, or is no longer kept; then nothing is written."""
        uuid = schedule_uuid(namespace, schedule_id)
        failed = await self._timers.failed_runs(await self._timers.shard_of(namespace, uuid), uuid, set(instants))
        reason = "is not the instant of a failed occurrence whose history is kept; scheduleHistory lists them"
        if errors := [
            FieldError(f"instants[{position}]", reason) for position, at in enumerate(instants) if at not in failed
        ]:
            await self._existing(namespace, schedule_id)
            raise InvalidInput(*errors)
        wanted = tuple(FailedOccurrence(at, failed[at].firing) for at in dict.fromkeys(instants))
        generations = tuple(failed[each.instant].generation for each in wanted)
        return await self._change(namespace, schedule_id, Replay(wanted, generations))

    async def list(self, request: ScheduleListRequest) -> tuple[builtins.list[ScheduleView], str | None]:
        """A page of live schedules in the order of ids, and the cursor of the next page if one may follow. A page is shorter
        if payloads are large, or if few schedules match. Those whose record can't be read are left out; `get` explains."""
        return await self._list(request, self._viewed)

    async def list_answers(
        self, request: ScheduleListRequest, answer: Callable[[ScheduleView], T]
    ) -> tuple[builtins.list[T], str | None]:
        """Like `list`, with what `answer` makes of each schedule, as `TimerService.list_answers` does."""
        return await self._list(request, lambda view: answer(self._viewed(view)))

    async def soonest(
        self, request: ScheduleListRequest, rows_max: int
    ) -> tuple[builtins.list[ScheduleView], str | None] | None:
        """A page of live schedules in the order of their next instants, paused ones and those without any at the end, and the
        cursor of the next page. No index has this order, so all schedules of the scope are read, in parts; None if these are
        more than `rows_max`. Of one namespace, ids longer than the prefix are found, not the prefix itself. Raises
        InvalidInput for a cursor that this method has not returned."""
        places: builtins.list[_Place] = []
        of_several = not isinstance(request.scope, str)
        # The filters are not those of the read: what does not match counts, too.
        # Of one namespace, the ids with a prefix are together.
        prefix = "" if of_several else request.id_prefix
        wanted = IdListRequest(prefix, _SORTED_PER_READ, prefix, of_several=of_several)
        read = 0
        while True:
            some, cursor = await self._timers.list_schedules(request.scope, wanted, partial(self._place, request))
            read += len(some)
            if read > rows_max or (cursor is not None and read == rows_max):
                return None
            places += [place for place in some if place is not None]
            if cursor is None:
                break
            wanted = replace(wanted, after=cursor)
        # Only now: a list of more than `rows_max` has cursors of another order.
        first = _read_place(request.cursor) if request.cursor else None
        ahead = sorted(place for place in places if first is None or place[:3] > first)
        page = ahead[: request.limit]
        views = await self._timers.get_by_uuids((namespace, uuid) for _, namespace, _, uuid in page)
        live = [view for view in views if view.next_attempt_at is not None]
        by_uuid = {view.uuid: view for view in (await self._timers.explained(live) if request.explained else live)}
        found = await self.turns.each(self._viewed(by_uuid[place[3]]) for place in page if place[3] in by_uuid)
        return found, _write_place(page[-1]) if len(ahead) > len(page) else None

    def _place(self, request: ScheduleListRequest, view: TimerView) -> _Place | None:
        """The schedule's place in the order of next instants; None if it is not wanted."""
        timer, now_us = view.timer, self._timers.now_us()
        schedule = timer.schedule
        if schedule is None or not request.matches(timer):
            return None
        at = INSTANT_MAX
        if schedule.state.paused is None and not self._timers.namespaces.is_paused(timer.namespace):
            at = INSTANT_MAX if schedule.state.waits else timer.execute_at
            if at <= now_us or timer.attempts:
                # The current occurrence has begun, or is about to: the next one follows it.
                calendars = self.calendars(timer.namespace)
                at = next(next_instants(schedule, view.uuid, timer.created_at, now_us, 1, calendars), INSTANT_MAX)
        return at, timer.namespace, timer.id, view.uuid

    async def _list(
        self, request: ScheduleListRequest, answer: Callable[[TimerView], T]
    ) -> tuple[builtins.list[T], str | None]:
        matches, prefix, of_several = None, request.id_prefix, not isinstance(request.scope, str)
        if request.statuses or request.failing or request.managed_by is not None or (of_several and prefix):
            # Only of one namespace are the ids with a prefix together.
            matches = request.matches
        wanted = IdListRequest(
            request.cursor or "", request.limit, "" if of_several else prefix, matches, request.reads_max, of_several
        )
        return await self._timers.list_schedules(request.scope, wanted, answer, explained=request.explained)

    async def occurrences(self, namespace: str, schedule_id: str, limit: int, cursor: str | None = None) -> RunPage:
        """A page of the schedule's occurrences, newest first, the current one included. Raises InvalidInput for a bad
        cursor."""
        uuid = schedule_uuid(namespace, schedule_id)
        shard_id = await self._timers.shard_of(namespace, uuid)
        page = await self._timers.runs_by_uuid(shard_id, uuid, limit, cursor)
        if not page.runs and cursor is None:
            raise _not_found(namespace, schedule_id)
        return page

    async def latest_outcomes(self, view: ScheduleView, limit: int, bytes_max: int) -> builtins.list[Run]:
        """The occurrences of the schedule that ended last, newest first: at most `limit`, and fewer once their records have
        `bytes_max` bytes. One read of the store."""
        return await self._timers.latest_runs(view.shard_id, view.uuid, limit, bytes_max)

    @property
    def occurrences_kept(self) -> int:
        """How many occurrences of each schedule are kept, the newest ones, while retention lasts."""
        return self._timers.occurrences_kept

    # ------------------------------------------------------------------ inside

    async def _refuse_many(self, definition: Definition, created_at: int, after: int, before: int) -> None:
        """Raises InvalidInput for a range that has too many instants to fire them all."""
        anchor = created_at if definition.anchor is None else definition.anchor
        try:
            rule = recurrence_of(definition.cron, definition.time_zone, definition.every_us, anchor)
        except ValueError:
            # This node can't read it; the commit answers that.
            return
        begin, end = max(after, definition.start_at or after), min(before, self._timers.now_us())

        def counted() -> Iterator[int]:
            """How many there are up to the end of each part of the range, as far as there are not too many."""
            number = 0
            for at in range(begin, end, _COUNTED_US):
                yield (number := number + rule.count(at - 1, min(at + _COUNTED_US, end) - 1, BACKFILLED_MAX + 1))
                if number > BACKFILLED_MAX:
                    return

        if max(await self.turns.each(counted()), default=0) > BACKFILLED_MAX:
            reason = (
                f"begins a range of more than {BACKFILLED_MAX:,} instants, each of which is a call; send a shorter one"
            )
            raise InvalidInput(FieldError("after", reason))

    async def _stored(self, namespace: str, schedule_id: str) -> TimerView | None:
        return await self._timers.get_by_uuid(namespace, schedule_uuid(namespace, schedule_id))

    async def _existing(self, namespace: str, schedule_id: str) -> TimerView:
        found = await self._stored(namespace, schedule_id)
        if found is None:
            raise _not_found(namespace, schedule_id)
        return found

    def _tried(self, timer: Timer, change: ScheduleChange, stored: TimerView | None) -> ScheduleView:
        """The schedule as this change would leave it. Raises what would refuse it."""
        uuid, now_us = schedule_uuid(timer.namespace, timer.id), self._timers.now_us()
        op = WriteOp(OpKind.SCHEDULE, uuid, timer.namespace, timer=timer, change=change)
        known = None if stored is None or stored.timer.schedule is None else stored.timer
        is_live = known is not None and known.status is Status.PENDING
        live, ended = (known, None) if is_live else (None, known)
        subject = Subject(live, ended, timer.execute_at, False, "", self.calendars(timer.namespace))
        found = change_of(op, subject, now_us)
        if isinstance(found, TocsinError):
            raise found
        would_be, outcome = (found, Outcome.EXISTING) if isinstance(found, Timer) else (found.timer, Outcome.CREATED)
        shard_id = self._timers.namespaces.shard_of(timer.namespace, uuid)
        next_attempt_at = would_be.execute_at if would_be.status is Status.PENDING else None
        return self._viewed(TimerView(would_be, uuid, shard_id, next_attempt_at, outcome=outcome))

    async def _change(
        self,
        namespace: str,
        schedule_id: str,
        change: ScheduleChange,
        *,
        timer: Timer | None = None,
        changes: Changes | None = None,
    ) -> ScheduleView:
        uuid = schedule_uuid(namespace, schedule_id)
        shard_id = await self._timers.shard_of(namespace, uuid)
        op = WriteOp(OpKind.SCHEDULE, uuid, namespace, timer=timer, changes=changes, change=change)
        try:
            view = await self._timers.write(shard_id, op)
        except TimerNotFound:
            raise _not_found(namespace, schedule_id) from None
        assert view is not None
        return await self._view(view)

    async def _view(self, view: TimerView) -> ScheduleView:
        return await self.turns.run(self._viewed, view)

    def _viewed(self, view: TimerView) -> ScheduleView:
        timer, now_us = view.timer, self._timers.now_us()
        schedule, calendars = timer.schedule, self.calendars(timer.namespace)
        if schedule is None:
            # The placeholder of a record that can't be read.
            raise InvalidInput(FieldError("scheduleId", f"names a schedule that can't be read: {timer.last_error}"))
        state, live = schedule.state, timer.status is Status.PENDING
        return ScheduleView(
            timer,
            view.uuid,
            view.shard_id,
            schedule.definition,
            status_of(state) if live else ScheduleStatus.ENDED,
            state.changed_at,
            state.version,
            state.paused,
            list(next_instants(schedule, view.uuid, timer.created_at, now_us, NEXT_INSTANTS, calendars))
            if live
            else [],
            timer.execute_at if live and not state.waits else None,
            None if state.waits else view.next_attempt_at,
            state.last,
            state.counts,
            state.missed,
            len(state.triggers),
            len(state.backfills),
            len(state.replays),
            state.skips,
            view.outcome is Outcome.EXISTING,
            view.suspended if state.paused is None else None,
            view.explanation,
            self._timers.namespaces.is_paused(timer.namespace),
        )


#: Where a schedule is in the order of next instants: the instant, namespace and id. And its uuid.
_Place = tuple[int, str, str, bytes]


def _write_place(place: _Place) -> str:
    return f"{place[0]}.{place[1]}/{place[2]}"


def _read_place(cursor: str) -> tuple[int, str, str]:
    instant, _, name = cursor.partition(".")
    namespace, slash, schedule_id = name.partition("/")
    if not slash or not _INSTANT.fullmatch(instant):
        raise InvalidInput(
            FieldError("cursor", "is not a cursor of this order; leave it out to start at the beginning")
        )
    return int(instant), namespace, schedule_id


def _not_found(namespace: str, schedule_id: str) -> ScheduleNotFound:
    return ScheduleNotFound(f"no schedule {schedule_id!r} in namespace {namespace!r}")
