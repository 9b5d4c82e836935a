"""The use cases of monitors. A monitor is changed, and pinged, at the owner of its shard, like a timer."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from tocsin.administration import key_below
from tocsin.model.condition import Outcome
from tocsin.model.errors import (
    NOT_DONE,
    FieldError,
    InvalidInput,
    MonitorNotFound,
    NamespaceDeleting,
    NamespaceNotFound,
    Overloaded,
    RecordUndecodable,
    StoreError,
    TimerNotFound,
    TimerNotPending,
    TocsinError,
    Unavailable,
)
from tocsin.model.ids import monitor_uuid, schedule_uuid
from tocsin.model.monitor import (
    Monitor,
    MonitorChange,
    MonitorDefinition,
    MonitorState,
    MonitorStatus,
    PauseMonitor,
    Ping,
    PingEvent,
    PutMonitor,
    ResumeMonitor,
    RotateToken,
    hash_token,
    is_token,
    new_token,
)
from tocsin.model.opaque import from_opaque, to_opaque
from tocsin.model.period import Period, PeriodStatus, decode_period
from tocsin.model.schedule import Remove
from tocsin.model.sealed import seal_timer
from tocsin.model.stored_secrets import take_secrets, withholds
from tocsin.model.timer import Status, Timer
from tocsin.ports.records import RECORD_KEY_END
from tocsin.ports.seals import sealer
from tocsin.ports.store import GENERATION_BYTES
from tocsin.timers.credentials import uses_of
from tocsin.timers.engine.monitoring import change, unreported
from tocsin.timers.engine.rows import OpKind, WriteOp
from tocsin.timers.engine.tenures import MONITORS
from tocsin.timers.listing import LIST_READS_MAX, Scope, TimerView
from tocsin.timers.monitor_records import (
    Place,
    add_monitor,
    delete_monitor,
    delete_token,
    list_monitor,
    monitor_keys,
    monitor_of_token,
    place_of,
    scope_of,
)
from tocsin.timers.namespaces import refuse_version
from tocsin.timers.service import TimerService

T = TypeVar("T")

#: Monitors whose tokens a node remembers.
_TOKENS_MAX = 50_000
#: Unknown tokens that are looked for in the store at once: a flood of them takes no more of it.
_LOOKUPS_MAX = 16
#: Pings that may wait for such a look-up; others are refused, and their jobs try again.
_LOOKUPS_WAITING_MAX = 1_000
#: A monitor whose row has been due for so long was not looked at. Its owner looks within seconds, and writes pings as late.
_UNWATCHED_US = 30_000_000
#: Monitors that one read of a list has.
_READ_MAX = 200


class MonitorView(msgspec.Struct, frozen=True, gc=False):
    """A monitor as a client sees it. `timer` has its names, tags, description and hooks. `token` is its new ping token, if
    one was made; `unchanged`: a put has found nothing to change. `due_at` is when its owner has to look at it next; None:
    not at all."""

    timer: Timer
    monitor: Monitor
    uuid: bytes
    shard_id: int
    token: str | None = None
    created: bool = False
    unchanged: bool = False
    due_at: int | None = None

    def unwatched_since(self, now_us: int) -> int | None:
        """Since when no node has looked at it although one should have: its stored state may be out of date. None if that
        is not so, or it wants attention anyway."""
        waits = self.due_at is None or self.due_at + _UNWATCHED_US > now_us
        return None if waits or self.monitor.state.status not in (MonitorStatus.UP, MonitorStatus.NEW) else self.due_at


@dataclass(frozen=True, slots=True)
class MonitorListRequest:
    """What to list, by namespace and id. `cursor` is that of the page before. Empty `states` mean all. After `reads_max`
    reads that return fewer matches than asked for, the page is short."""

    scope: Scope
    states: frozenset[MonitorStatus] = frozenset()
    tag: str | None = None
    managed_by: str | None = None
    id_prefix: str = ""
    cursor: str | None = None
    limit: int = 100
    reads_max: int = LIST_READS_MAX

    def matches(self, view: MonitorView) -> bool:
        """Whether a monitor is among those that are listed."""
        definition, state = view.monitor.definition, view.monitor.state
        return (
            (not self.states or state.status in self.states)
            and (self.tag is None or self.tag in view.timer.tags)
            and self.managed_by in (None, definition.managed_by)
            and view.timer.id.startswith(self.id_prefix)
        )


class Monitors:
    """Create, read, change, list and ping monitors. All errors are `TocsinError`s. Each method raises NamespaceNotFound and
    Unavailable; those that name a monitor also raise MonitorNotFound."""

    def __init__(self, timers: TimerService) -> None:
        self._timers, self._store = timers, timers.store
        #: Tokens that were good when they were used last, by their hashes.
        self._places: OrderedDict[str, Place] = OrderedDict()
        self._lookups, self._lookups_waiting = asyncio.Semaphore(_LOOKUPS_MAX), 0

    async def put(
        self,
        timer: Timer,
        definition: MonitorDefinition,
        *,
        expected_version: int | None = None,
        dry_run: bool = False,
    ) -> MonitorView:
        """Stores a validated monitor, whose id is the timer's; it is durable when this returns. A monitor of that id keeps
        its state and its token. `[redacted]` in hooks stands for the secrets of the stored monitor. The schedule that it
        watches must be there; a monitor of one gets no token that anybody is shown. With `dry_run`, returns what the monitor
        would be by what is stored now, and writes nothing. Raises VersionConflict, InvalidInput, QuotaExceeded."""
        namespace, monitor_id = timer.namespace, timer.id
        await self._timers.namespaces.ensure_known(namespace)
        if not dry_run:
            self._timers.quotas.check_create(timer)
        seal_timer(timer, sealer(self._timers.seals, namespace))
        if definition.schedule is not None:
            await self._check_schedule(namespace, definition.schedule)
        stored = await self._stored(namespace, monitor_id)
        if withholds(timer):
            take_secrets(timer, None if stored is None else stored.timer)
        await self._timers.credentials.check(namespace, uses_of(timer))
        if dry_run:
            return self._tried(timer, definition, PutMonitor(expected_version), stored)
        if stored is not None:
            timer.monitor = Monitor(definition, MonitorState(""))
            try:
                return await self._change(namespace, monitor_id, PutMonitor(expected_version), timer)
            except MonitorNotFound:
                # It was deleted meanwhile.
                pass
        refuse_version(f"monitor {monitor_id!r}", 0, expected_version)
        token = new_token()
        hashed = hash_token(token)
        self._timers.namespaces.refuse_deleting(namespace)
        timer.monitor = Monitor(definition, MonitorState(hashed))
        view = await self._change_with(hashed, namespace, monitor_id, PutMonitor(expected_version), timer)
        if view.monitor.state.token != hashed:
            # Another one has created it meanwhile.
            await self._read(delete_token(self._store, hashed))
            return view
        # A delete of the one before may have removed the record meanwhile. The token must be shown, even if this fails.
        with contextlib.suppress(Unavailable):
            await self._read(list_monitor(self._store, namespace, monitor_id))
        return msgspec.structs.replace(view, token=None if definition.schedule else token, created=True)

    async def get(self, namespace: str, monitor_id: str) -> MonitorView:
        """The monitor, as it was written last: the last pings of a period may be in its owner's memory alone."""
        found = await self._stored(namespace, monitor_id)
        if found is None:
            raise _not_found(namespace, monitor_id)
        return found

    async def delete(self, namespace: str, monitor_id: str, expected_version: int | None = None) -> None:
        """Removes the monitor, its history and its token. Raises VersionConflict, and MonitorNotFound also after it has
        removed what is left of a former monitor whose delete was interrupted."""
        stored = await self._timers.get_by_uuid(namespace, monitor_uuid(namespace, monitor_id))
        found = None if stored is None else _viewed(stored)
        if found is None:
            if stored is None:
                await self._remove_rest(namespace, monitor_id)
            raise _not_found(namespace, monitor_id)
        condition = None if expected_version is None else Remove(expected_version)
        op = WriteOp(OpKind.DELETE, found.uuid, namespace, change=condition)
        try:
            await self._timers.write(found.shard_id, op)
        except (TimerNotFound, TimerNotPending):
            raise _not_found(namespace, monitor_id) from None
        # First what nothing leads to any more; the rest is found again by a repeated delete.
        await self._read(delete_token(self._store, found.monitor.state.token))
        await self._read(self._store.forget(found.shard_id, [found.uuid]))
        await self._unlist(namespace, monitor_id)

    async def pause(self, namespace: str, monitor_id: str) -> MonitorView:
        """Expects nothing any more until `resume`; pings are taken, and change nothing."""
        return await self._change(namespace, monitor_id, PauseMonitor())

    async def resume(self, namespace: str, monitor_id: str) -> MonitorView:
        """Expects reports again, from the next instant on."""
        return await self._change(namespace, monitor_id, ResumeMonitor())

    async def rotate(self, namespace: str, monitor_id: str) -> MonitorView:
        """Replaces the monitor's token; the former one is unknown when this returns."""
        former, token = await self.get(namespace, monitor_id), new_token()
        hashed = hash_token(token)
        view = await self._change_with(hashed, namespace, monitor_id, RotateToken(hashed))
        await self._read(delete_token(self._store, former.monitor.state.token))
        return msgspec.structs.replace(view, token=token)

    async def ping(self, namespace: str, monitor_id: str, ping: Ping) -> MonitorView:
        """Takes a report of the job. It is durable when this returns, unless it only repeats what is known: such a ping may
        be in the owner's memory alone for a few seconds, which moves no deadline of its next owner forward."""
        return await self._change(namespace, monitor_id, ping)

    def remembers(self, token: str) -> bool:
        """Whether a ping by this token needs no look-up."""
        return hash_token(token) in self._places

    def take_further(self, token: str) -> bool:
        """Takes a success by a token that was good before, if it only repeats what is known, and this node owns the monitor's
        shard; whether it has. Anything else is `ping_by_token`'s."""
        hashed = hash_token(token)
        place = self._places.get(hashed)
        if place is None:
            return False
        try:
            uuid = monitor_uuid(place.namespace, place.id)
            shard_id = self._timers.namespaces.shard_of(place.namespace, uuid)
        except (NamespaceNotFound, Unavailable):
            return False
        taken = self._timers.take_ping(shard_id, uuid, Ping(PingEvent.SUCCESS, hashed))
        if taken:
            self._places.move_to_end(hashed)
        return taken

    async def ping_by_token(self, token: str, ping: Ping) -> MonitorView:
        """The same for whoever has the token. Raises MonitorNotFound, always with the same text, and Overloaded."""
        if not is_token(token):
            raise _unknown_token()
        hashed = hash_token(token)
        place = self._places.get(hashed)
        if place is None:
            place = await self._look_up(hashed)
        if place is None:
            raise _unknown_token()
        try:
            view = await self.ping(place.namespace, place.id, msgspec.structs.replace(ping, token=hashed))
        except (MonitorNotFound, NamespaceNotFound, NamespaceDeleting):
            # Whoever has a token learns no names.
            self._places.pop(hashed, None)
            raise _unknown_token() from None
        self._places[hashed] = place
        self._places.move_to_end(hashed)
        if len(self._places) > _TOKENS_MAX:
            self._places.popitem(last=False)
        return view

    async def history(
        self, namespace: str, monitor_id: str, limit: int, cursor: str | None = None
    ) -> tuple[builtins.list[Period], str | None]:
        """A page of the monitor's periods, newest first, and the cursor of the next page if one may follow. The first page
        begins with the periods that a late monitor has not reported so far. Raises InvalidInput for a bad cursor."""
        view, before = await self.get(namespace, monitor_id), _read_cursor(cursor)
        rows = await self._read(self._store.runs(view.shard_id, view.uuid, before, limit))
        found = [] if cursor is not None else unreported(view.monitor, self._timers.now_us())
        for row in rows:
            try:
                found.append(decode_period(row.record))
            except RecordUndecodable as error:
                note = f"what is stored of this period can't be read: {error}"
                found.append(Period(0, 0, PeriodStatus.MISSED, note=note))
        return found, to_opaque(rows[-1].generation) if len(rows) == limit else None

    async def list(self, request: MonitorListRequest) -> tuple[builtins.list[MonitorView], str | None]:
        """A page of monitors by namespace and id, and the cursor of the next page if one may follow."""
        scope = request.scope
        if isinstance(scope, str):
            await self._timers.namespaces.ensure_known(scope)
        names = [scope] if isinstance(scope, str) else None if scope is None else sorted(scope, key="{}/".format)
        after = _read_key(request.cursor)
        found: list[MonitorView] = []
        for begin, end in (
            [("", RECORD_KEY_END)] if names is None else [scope_of(each, request.id_prefix) for each in names]
        ):
            if after >= end:
                continue
            place = max(begin, after)
            for _ in range(request.reads_max):
                wanted = min(request.limit - len(found), _READ_MAX) if request.limit > len(found) else 0
                if not wanted:
                    return found, to_opaque(place.encode())
                keys = await self._read(monitor_keys(self._store, place, end, wanted))
                found += [view for view in await self._views(keys) if request.matches(view)]
                if len(keys) < wanted:
                    break
                place = keys[-1]
            else:
                return found, to_opaque(place.encode())
        return found, None

    # ------------------------------------------------------------------ inside

    def _tried(
        self, timer: Timer, definition: MonitorDefinition, asked: PutMonitor, stored: MonitorView | None
    ) -> MonitorView:
        """The monitor as the put would leave it. Raises what would refuse it."""
        uuid = monitor_uuid(timer.namespace, timer.id)
        timer.monitor = Monitor(definition, MonitorState(hash_token(new_token())))
        found = change(asked, None if stored is None else stored.timer, timer, self._timers.now_us(), ())
        if isinstance(found, TocsinError):
            raise found
        would_be = found if isinstance(found, Timer) else found.timer
        assert would_be.monitor is not None
        shard_id = self._timers.namespaces.shard_of(timer.namespace, uuid)
        return MonitorView(
            would_be, would_be.monitor, uuid, shard_id, created=stored is None, unchanged=would_be is found
        )

    async def _check_schedule(self, namespace: str, schedule_id: str) -> None:
        """Raises InvalidInput for a schedule that is not there: its monitor would never be late."""
        view = await self._timers.get_by_uuid(namespace, schedule_uuid(namespace, schedule_id))
        if view is None or view.timer.schedule is None or view.timer.status is not Status.PENDING:
            raise InvalidInput(
                FieldError("schedule", "names no schedule of the namespace that still fires; create it first")
            )

    async def _views(self, keys: builtins.list[str]) -> builtins.list[MonitorView]:
        by_namespace: dict[str, list[str]] = {}
        for place in map(place_of, keys):
            by_namespace.setdefault(place.namespace, []).append(place.id)
        found: dict[str, MonitorView] = {}
        for namespace in await self._timers.namespaces.known_among(by_namespace):
            views = await self._timers.get_many(namespace, by_namespace[namespace], monitor_uuid)
            found |= {key_below(namespace, name): seen for name, view in views.items() if (seen := _viewed(view))}
        return [found[key] for key in keys if key in found]

    async def _look_up(self, hashed: str) -> Place | None:
        if self._lookups_waiting >= _LOOKUPS_WAITING_MAX:
            raise Overloaded(f"{self._lookups_waiting} pings are already waiting for a look-up; try again later")
        self._lookups_waiting += 1
        try:
            await self._lookups.acquire()
        finally:
            self._lookups_waiting -= 1
        try:
            return await self._read(monitor_of_token(self._store, hashed))
        finally:
            self._lookups.release()

    async def _stored(self, namespace: str, monitor_id: str) -> MonitorView | None:
        view = await self._timers.get_by_uuid(namespace, monitor_uuid(namespace, monitor_id))
        return None if view is None else _viewed(view)

    async def _change(
        self, namespace: str, monitor_id: str, asked: MonitorChange, timer: Timer | None = None
    ) -> MonitorView:
        uuid = monitor_uuid(namespace, monitor_id)
        shard_id = await self._timers.shard_of(namespace, uuid)
        try:
            view = await self._timers.write(
                shard_id, WriteOp(OpKind.SCHEDULE, uuid, namespace, timer=timer, change=asked)
            )
        except MonitorNotFound:
            raise _not_found(namespace, monitor_id) from None
        found = None if view is None else _viewed(view)
        if found is None:
            raise _not_found(namespace, monitor_id)
        return found

    async def _change_with(
        self, hashed: str, namespace: str, monitor_id: str, asked: MonitorChange, timer: Timer | None = None
    ) -> MonitorView:
        """The same of a change that brings the token with this hash, whose records must be there before."""
        await self._read(add_monitor(self._store, namespace, monitor_id, hashed))
        try:
            return await self._change(namespace, monitor_id, asked, timer)
        except TocsinError as error:
            if isinstance(error, NOT_DONE) or not isinstance(error, (Unavailable, StoreError)):
                # Certainly refused. What can't be removed again is a hint to nothing.
                with contextlib.suppress(TocsinError):
                    await self._read(delete_token(self._store, hashed))
                    await self._unlist(namespace, monitor_id)
            raise

    async def _remove_rest(self, namespace: str, monitor_id: str) -> None:
        """Removes what may be left of a monitor that has no row any more."""
        uuid = monitor_uuid(namespace, monitor_id)
        shard_id = await self._timers.shard_of(namespace, uuid)
        if await self._read(self._store.runs(shard_id, uuid, None, 1)):
            await self._read(self._store.forget(shard_id, [uuid]))
        if await self._read(self._store.record(MONITORS, key_below(namespace, monitor_id))) is not None:
            await self._unlist(namespace, monitor_id)

    async def _unlist(self, namespace: str, monitor_id: str) -> None:
        """Removes the record of a monitor that is not there; one that was created meanwhile keeps it."""
        await self._read(delete_monitor(self._store, namespace, monitor_id))
        if await self._stored(namespace, monitor_id) is not None:
            await self._read(list_monitor(self._store, namespace, monitor_id))

    async def _read(self, call: Awaitable[T]) -> T:
        return await self._timers.namespaces.read(call)


def _viewed(view: TimerView) -> MonitorView | None:
    """None for one that was deleted, or can't be read."""
    timer = view.timer
    if timer.monitor is None or timer.status is not Status.PENDING:
        return None
    unchanged = view.outcome is Outcome.EXISTING
    due_at = None if view.suspended else view.next_attempt_at
    return MonitorView(timer, timer.monitor, view.uuid, view.shard_id, unchanged=unchanged, due_at=due_at)


def _not_found(namespace: str, monitor_id: str) -> MonitorNotFound:
    return MonitorNotFound(f"no monitor {monitor_id!r} in namespace {namespace!r}")


def _unknown_token() -> MonitorNotFound:
    return MonitorNotFound("no such monitor")


def _bad_cursor() -> InvalidInput:
    return InvalidInput(FieldError("cursor", "is not a cursor of this list; leave it out to start at the beginning"))


def _read_cursor(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        generation = from_opaque(text)
    except ValueError:
        raise _bad_cursor() from None
    if len(generation) != GENERATION_BYTES:
        raise _bad_cursor()
    return generation


def _read_key(text: str | None) -> str:
    if text is None:
        return ""
    try:
        key = from_opaque(text).decode()
    except ValueError:
        raise _bad_cursor() from None
    if "/" not in key or not (key.isascii() and key.isprintable()):
        raise _bad_cursor()
    return key
