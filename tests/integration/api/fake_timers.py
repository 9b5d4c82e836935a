"""A timer service in memory that never fires, for tests of the HTTP layer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import msgspec
from fake_calendars import FakeCalendars
from fake_credentials import FakeCredentials
from fake_destinations import FakeDestinations
from fake_failures import FakeFailures
from fake_flows import FakeFlows
from tests.support.completions import complete

from tocsin.model.condition import Condition, OnConflict, Outcome
from tocsin.model.errors import (
    FieldError,
    InvalidInput,
    NamespaceExists,
    NamespaceNotFound,
    TimerExists,
    TimerNotFound,
    TimerNotPending,
    TimerPending,
    TocsinError,
)
from tocsin.model.explanation import Explanation, TimerState, WaitsFor
from tocsin.model.ids import namespace_hash, shard_of, timer_uuid
from tocsin.model.namespace import HistoryMode, Namespace
from tocsin.model.packed import NewTimer, PackedTimer, unpacked
from tocsin.model.quota import NO_QUOTAS
from tocsin.model.run import RunStatus, run_of
from tocsin.model.timer import Changes, LoggedAttempt, Status, Timer
from tocsin.ports.seals import NoSeals
from tocsin.stores.memory import MemoryStore
from tocsin.tasks import Turns
from tocsin.telemetry.clock import SystemClock
from tocsin.timers.cluster_view import ApiNode
from tocsin.timers.engine.rows import OpKind, WriteOp
from tocsin.timers.history import FailedRun, RunPage, read_cursor
from tocsin.timers.listing import IdListRequest, Scope
from tocsin.timers.namespaces import Namespaces
from tocsin.timers.quotas import QuotaGate
from tocsin.timers.service import (
    ClusterView,
    ListRequest,
    NodeView,
    OwnersView,
    ShardView,
    TimerService,
    TimerView,
)
from tocsin.timers.writing import CreateClient, CreateOutcome

TOTAL_SHARDS = 8

T = TypeVar("T")


def _unpacked(packed: PackedTimer) -> tuple[Timer, Condition | None]:
    """The timer that the codec has made, and the condition of its key's first try."""
    timer = unpacked(packed)
    keys, timer.keys = timer.keys, ()
    return timer, Condition(key=keys[0], first_try=True) if keys else None


class FakeNamespaces(Namespaces):
    """Namespaces in memory. `check` raises what a request about one of that name is refused with."""

    def __init__(self, check: Callable[[str], None]) -> None:
        self.known = {"default": Namespace("default", 4, 1_700_000_000_000_000, 1_700_000_000_000_000)}
        self._check = check

    def is_paused(self, name: str) -> bool:
        return False

    async def ensure_known(self, namespace: str) -> None:
        return

    async def all(self):  # type: ignore[no-untyped-def]
        self._check("default")
        return sorted(self.known.values(), key=lambda namespace: namespace.name)

    async def refresh(self) -> None:
        return

    def get(self, name: str) -> Namespace:
        self._check(name)
        return self.known[name]

    async def stored(self, name: str) -> Namespace:
        return self.get(name)

    async def mark(self, name: str, job_id: str) -> None:
        self._check(name)

    async def create(  # type: ignore[override]
        self,
        name: str,
        *,
        num_shards: int | None = None,
        history: HistoryMode | None = None,
        retention_us: int | None = None,
        quotas: Any = None,
        **fields: Any,
    ) -> Namespace:
        self._check("default")
        if name in self.known:
            raise NamespaceExists(f"the namespace {name!r} exists")
        if num_shards is not None and num_shards > TOTAL_SHARDS:
            raise InvalidInput(FieldError("numShards", f"is more than there are: {TOTAL_SHARDS}"))
        history, retention_us = history or HistoryMode.ALL, retention_us or 86_400_000_000
        fields["quotas"] = NO_QUOTAS.changed(quotas)
        self.known[name] = Namespace(name, num_shards or 4, 1, 1, history, retention_us, **fields)
        return self.known[name]

    async def update(  # type: ignore[override]
        self,
        name: str,
        *,
        remove_secret: bool = False,
        expected_version: int | None = None,
        dry_run: bool = False,
        **fields: Any,
    ) -> tuple[Namespace, bool]:
        self._check(name)
        fields["quotas"] = (self.known[name].quotas or NO_QUOTAS).changed(fields["quotas"])
        kept = {"retry", "limits", "quotas", "managed_by"}
        wanted = {field: value for field, value in fields.items() if value is not None or field in kept}
        wanted = {field: value for field, value in wanted.items() if value is not msgspec.UNSET}
        if remove_secret:
            wanted["secret"] = None
        self.known[name] = msgspec.structs.replace(self.known[name], **wanted)
        return self.known[name], True

    async def rotate_secret(self, name: str, fresh: str, grace_us: int, *, force: bool = False) -> Namespace:
        self._check(name)
        known = self.known[name]
        secrets = known.signing.rotated(fresh, SystemClock().now_us(), grace_us, force=force)
        changed = msgspec.structs.replace(known, secret=secrets.secret, previous_secrets=secrets.previous)
        self.known[name] = changed
        return changed


class FakeTimerService(TimerService):
    """While set, `fault` is raised by every call; `reasons` are why the service is not ready. While `holding`, single creates
    wait for `release`; `blocked` is set when one waits. `defect` is raised by single creates after they have succeeded.
    Schedules keep their definition, whatever is changed."""

    def __init__(self) -> None:
        self.turns = Turns()
        # Monitors take the store from it.
        self._context = cast("Any", SimpleNamespace(store=MemoryStore(), quotas={}, seals=NoSeals()))
        self.quotas = QuotaGate(self._context)
        self.clear()

    def clear(self) -> None:
        self.timers: dict[tuple[str, str], Timer] = {}
        self.schedules: dict[bytes, Timer] = {}
        self.fault: Exception | None = None
        self.reasons: list[str] = []
        self.holding = False
        self.blocked = threading.Event()
        self.defect: Exception | None = None
        self._held: tuple[asyncio.AbstractEventLoop, CreateClient, TimerView]
        self.namespaces = FakeNamespaces(self._check)
        self.failures = cast("Any", FakeFailures(self._check))
        self.flow_rules = FakeFlows(self._check)
        self.credentials = FakeCredentials(self._check)
        self.calendars = FakeCalendars(self._check, self.namespaces)
        self.destinations = FakeDestinations()

    def _view(self, timer: Timer) -> TimerView:
        uuid = timer_uuid(timer.namespace, timer.id)
        shard = shard_of(namespace_hash(timer.namespace), uuid, 4, TOTAL_SHARDS)
        return TimerView(timer, uuid, shard, timer.execute_at if timer.status is Status.PENDING else None)

    def _check(self, namespace: str) -> None:
        if self.fault is not None:
            raise self.fault
        if namespace not in self.namespaces.known:
            raise NamespaceNotFound(f"there is no namespace {namespace!r}")

    def _check_scope(self, scope: Scope) -> None:
        self._check(scope if isinstance(scope, str) else "default")

    def _create(self, timer: Timer, condition: Condition | None) -> TimerView:
        self._check(timer.namespace)
        former = self.timers.get((timer.namespace, timer.id))
        if condition is not None:
            if former is not None and condition.is_repeated(former):
                return msgspec.structs.replace(self._view(former), outcome=Outcome.REPLAYED)
            if former is not None and condition.on_conflict is OnConflict.KEEP:
                return msgspec.structs.replace(self._view(former), outcome=Outcome.EXISTING)
            if former is not None and condition.on_conflict is OnConflict.REJECT:
                raise TimerExists(f"there is a timer {timer.id!r}")
            timer.keys = condition.keys_after(former)
        self.timers[timer.namespace, timer.id] = timer
        return self._view(timer)

    async def create(self, timer: Timer, condition: Condition | None = None) -> TimerView:
        return self._create(timer, condition)

    def create_for(self, client: CreateClient, timer: NewTimer, condition: Condition | None = None) -> None:
        if not isinstance(timer, Timer):
            timer, condition = _unpacked(timer)
        loop, view = asyncio.get_running_loop(), self._create(timer, condition)
        if self.defect is not None:
            client.resolve(view)
            raise self.defect
        if self.holding:
            self._held = (loop, client, view)
            self.blocked.set()
        else:
            # Like the engine, later rather than at once.
            loop.call_soon(client.resolve, view)

    def release(self, error: TocsinError | None = None) -> None:
        self.holding = False
        loop, client, view = self._held
        loop.call_soon_threadsafe(complete, client, view if error is None else error)

    async def create_many(
        self, timers: Sequence[Timer], conditions: Sequence[Condition | None] | None = None
    ) -> list[TimerView | TocsinError]:
        outcomes: list[TimerView | TocsinError] = []
        for timer, condition in zip(timers, conditions or [None] * len(timers), strict=True):
            try:
                outcomes.append(await self.create(timer, condition))
            except TocsinError as error:
                outcomes.append(error)
        return outcomes

    async def create_packed(self, timers: Sequence[PackedTimer]) -> list[CreateOutcome]:
        return [*await self.create_many(*zip(*map(_unpacked, timers), strict=True))]

    async def replay(self, namespace: str, ids: Sequence[str], changes: Changes) -> list[TimerView | TocsinError]:
        self._check(namespace)
        return [
            TimerNotFound("no such timer")
            if (timer := self.timers.get((namespace, each))) is None
            else TimerPending("it waits already")
            if timer.status is Status.PENDING
            else self._view(timer)
            for each in ids
        ]

    async def get(self, namespace: str, timer_id: str) -> TimerView:
        self._check(namespace)
        timer = self.timers.get((namespace, timer_id))
        if timer is None:
            raise TimerNotFound(f"there is no timer {timer_id!r} in {namespace!r}")
        return self._view(timer)

    async def explain(self, namespace: str, timer_id: str) -> Explanation:
        found = (await self.get(namespace, timer_id)).timer
        return Explanation(
            TimerState.SCHEDULED, WaitsFor.INSTANT, found.execute_at, 0, "n1", "The timer is in the store."
        )

    async def _pending(self, namespace: str, timer_id: str) -> Timer:
        timer = (await self.get(namespace, timer_id)).timer
        if timer.status is not Status.PENDING:
            raise TimerNotPending(f"the timer {timer_id!r} has finished: it is {timer.status.value}")
        return timer

    async def update(self, namespace: str, timer_id: str, changes: Changes) -> TimerView:
        return await self.create(changes.apply(await self._pending(namespace, timer_id), SystemClock().now_us()))

    async def delete(self, namespace: str, timer_id: str) -> bool:
        timer = await self._pending(namespace, timer_id)
        self.timers[namespace, timer_id] = msgspec.structs.replace(timer, status=Status.CANCELED)
        return False

    def now_us(self) -> int:
        return SystemClock().now_us()

    async def shard_of(self, namespace: str, uuid: bytes) -> int:
        self._check(namespace)
        return shard_of(namespace_hash(namespace), uuid, 4, TOTAL_SHARDS)

    async def get_by_uuid(self, namespace: str, uuid: bytes) -> TimerView | None:
        self._check(namespace)
        timer = self.schedules.get(uuid)
        return None if timer is None else msgspec.structs.replace(self._view(timer), uuid=uuid)

    async def list_schedules(
        self, scope: Scope, request: IdListRequest, answer: Callable[[TimerView], T], *, explained: bool = False
    ) -> tuple[list[T], str | None]:
        self._check_scope(scope)
        matches = request.matches or bool
        found = sorted(
            (request.position(timer.namespace, timer.id), uuid, timer)
            for uuid, timer in self.schedules.items()
            if _covers(scope, timer) and matches(timer)
        )
        views = [await self.get_by_uuid(timer.namespace, uuid) for name, uuid, timer in found if name > request.after]
        page = [view for view in views if view is not None][: request.limit]
        last = page[-1].timer if len(views) > request.limit else None
        return [*map(answer, page)], None if last is None else request.position(last.namespace, last.id)

    async def history(self, namespace: str, timer_id: str, limit: int, cursor: str | None = None) -> RunPage:
        timer = (await self.get(namespace, timer_id)).timer
        read_cursor(cursor)
        return RunPage([run_of(timer, timer.status)], None)

    async def runs_by_uuid(self, shard_id: int, uuid: bytes, limit: int, cursor: str | None) -> RunPage:
        timer = self.schedules.get(uuid)
        return RunPage([] if timer is None else [run_of(timer, RunStatus.PENDING)], None)

    async def failed_runs(self, shard_id: int, uuid: bytes, instants: Collection[int]) -> dict[int, FailedRun]:
        return {each: FailedRun(bytes(15), "failed", RunStatus.FAILED) for each in instants}

    async def write(self, shard_id: int, op: WriteOp) -> TimerView | None:
        if op.timer is not None:
            self.schedules[op.uuid] = op.timer
        if op.uuid not in self.schedules:
            raise TimerNotFound
        if op.kind is OpKind.DELETE:
            del self.schedules[op.uuid]
        return await self.get_by_uuid(op.namespace, op.uuid)

    def finish(self, namespace: str, timer_id: str, now_us: int) -> None:
        """Makes a timer look as if it had failed after two attempts."""
        log = (LoggedAttempt(now_us, 1_500, 503, "HTTP_503"), LoggedAttempt(now_us + 1, 2_000, 0, "TIMEOUT"))
        self.timers[namespace, timer_id] = msgspec.structs.replace(
            self.timers[namespace, timer_id],
            status=Status.FAILED,
            attempts=2,
            attempt_log=log,
            executed_at=now_us,
            last_error="TIMEOUT",
        )

    async def list_answers(
        self, request: ListRequest, answer: Callable[[TimerView], T], *, explained: bool = False
    ) -> tuple[list[T], str | None]:
        views, cursor = await self.list(request)
        return [*map(answer, views)], cursor

    async def list(self, request: ListRequest) -> tuple[Sequence[TimerView], str | None]:  # type: ignore[override]
        self._check_scope(request.scope)
        found = [timer for timer in self.timers.values() if _covers(request.scope, timer)]
        return [self._view(timer) for timer in found[: request.limit]], None

    def owners(self) -> OwnersView:
        return OwnersView([ApiNode("http://10.0.0.5:8080", True, False, False)], [0] * (TOTAL_SHARDS - 1) + [None])

    async def cluster(self) -> ClusterView:
        self._check("default")
        node = NodeView("node-1", "5f" * 16, "127.0.0.1:8080", alive=True, self=True, shards=1)
        owned = ShardView(0, 3, "node-1", True, 7, 1, 2**63 - 1, 1_500)
        return ClusterView(TOTAL_SHARDS, [node], [owned, replace(owned, shard_id=1, owner=None)], False, "lease")

    def not_ready_because(self) -> Sequence[str]:  # type: ignore[override]
        return self.reasons


def _covers(scope: Scope, timer: Timer) -> bool:
    return scope is None or timer.namespace in ((scope,) if isinstance(scope, str) else scope)
