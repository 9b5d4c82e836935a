"""The timer service's use cases, as the API, the pages, the CLI's demo and the agent call them.

Parameters and results are domain values; texts, HTTP statuses and JSON belong to `tocsin.web.http` and `tocsin.web.api`.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from tocsin.model.condition import Condition
from tocsin.model.errors import (
    Conflict,
    NamespaceNotFound,
    TimerNotFound,
    TimerNotPending,
    TocsinError,
    Unavailable,
)
from tocsin.model.explanation import Explanation
from tocsin.model.ids import timer_uuid
from tocsin.model.monitor import Ping
from tocsin.model.packed import NewTimer, PackedTimer
from tocsin.model.run import Run
from tocsin.model.sealed import changes_sealed
from tocsin.model.stored_secrets import with_secrets, withholds
from tocsin.model.timer import Changes, Timer
from tocsin.ports.completion import Awaited
from tocsin.ports.credentials import CredentialTester, NoCredentials
from tocsin.ports.destinations import DestinationQuestion, DestinationReport
from tocsin.ports.flows import LocalFlows
from tocsin.ports.forward import (
    FlowCounts,
    Forwarder,
    Located,
    NodeReport,
    NodeVitals,
    Peers,
    Whereabouts,
    Write,
    WriteCompletion,
)
from tocsin.ports.seals import Seals, sealer
from tocsin.ports.store import HistoryRow, Listed, ListQuery, Store, StoredRow, StoreFacts
from tocsin.tasks import Turns
from tocsin.timers.calendars import StoredCalendars
from tocsin.timers.cluster_view import (
    ClusterView,
    NodeView,
    OwnersView,
    ShardView,
    cluster_view,
    not_ready_because,
    others_alive,
    owners_view,
    report_of,
)
from tocsin.timers.creating import Creating
from tocsin.timers.credentials import StoredCredentials
from tocsin.timers.destinations import Destinations
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.flow_shown import counts
from tocsin.timers.engine.rows import OpKind, WriteOp
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.explaining import explain
from tocsin.timers.failures import Failures
from tocsin.timers.flows import Flows
from tocsin.timers.history import FailedRun, RunPage, failed_runs, latest_ended, runs_of
from tocsin.timers.listing import (
    PAGES_READ_MAX,
    IdListRequest,
    ListRequest,
    Scope,
    TimerView,
    list_page,
    page_by_id,
    query_of,
    view_of_stored,
    views_of_stored,
)
from tocsin.timers.locating import Owners, pause_of
from tocsin.timers.namespaces import Namespaces
from tocsin.timers.quotas import QuotaGate, TotalUse, use_of
from tocsin.timers.writing import (
    BatchedWrite,
    CreateClient,
    CreateOutcome,
    EngineWrite,
    Outcomes,
    Writes,
)

__all__ = ["ClusterView", "ListRequest", "NodeView", "OwnersView", "ShardView", "TimerService", "TimerView"]

T = TypeVar("T")

#: How long the owner of a timer's shard may take to answer, for the explanation of one timer, and of a page of a list.
_EXPLAIN_TIMEOUT_US, _LISTED_TIMEOUT_US = 1_000_000, 200_000

UuidOf = Callable[[str, str], bytes]

_NO_CREDENTIALS = NoCredentials()


class TimerService:
    """Create, read, change and list timers; `namespaces` does the same for namespaces. All errors are `TocsinError`s.
    `has_agent` is whether this node runs the service agent now, `agent_configured` whether it ever may,
    `largest_shard_bytes` the size of the largest shard, where the database reports sizes, `vitals` the process's. `tester`
    tries credentials.

    `read_namespaces` must have run (or the engine started) before anything else is asked.
    """

    def __init__(
        self,
        context: Context,
        supervisor: Supervisor,
        *,
        namespace_num_shards: int,
        retention_us: int,
        has_agent: Callable[[], bool] = bool,
        agent_configured: bool = False,
        largest_shard_bytes: Callable[[], int | None] = lambda: None,
        vitals: Callable[[], NodeVitals | None] = lambda: None,
        tester: CredentialTester = _NO_CREDENTIALS,
    ) -> None:
        self.namespaces = Namespaces(context, supervisor, num_shards=namespace_num_shards, retention_us=retention_us)
        #: What clients let this process reckon.
        self.turns = Turns()
        self.flow_rules = Flows(context, supervisor, self.namespaces)
        self.calendars = StoredCalendars(context, supervisor, self.namespaces)
        self.credentials = StoredCredentials(context, supervisor, self.namespaces, tester)
        self.destinations = Destinations(context, supervisor, self.namespaces)
        self.quotas = QuotaGate(context)
        self.failures = Failures(context.store, self.namespaces, self.turns, supervisor.total_shards)
        self._context, self._supervisor = context, supervisor
        self._shared = not context.store.capabilities.exclusive
        #: The pages of lists and of runs that may be read at once, and made into answers.
        self._pages = asyncio.Semaphore(PAGES_READ_MAX)
        self._writes = Writes(context, supervisor)
        #: The creates of timers.
        self.creating = Creating(context, self.namespaces, self.credentials, self.quotas, self._writes, self.get_many)
        self._owners = Owners(supervisor, context.clock)
        self._has_agent, self._agent_configured = has_agent, agent_configured
        self._largest_shard_bytes, self._vitals = largest_shard_bytes, vitals

    def connect(self, forwarder: Forwarder, peers: Peers) -> None:
        """Connects the other nodes: writes for shards that this node doesn't own are forwarded to their owners."""
        self._writes.forwarder, self.namespaces.peers, self._owners.peers = forwarder, peers, peers
        self._supervisor.results.submit, self._supervisor.flows.peers = self.write, peers
        self._supervisor.destinations.peers = peers

    @property
    def store(self) -> Store:
        """The database."""
        return self._context.store

    @property
    def seals(self) -> Seals:
        """What encrypts secrets before they are stored."""
        return self._context.seals

    @property
    def flows(self) -> LocalFlows:
        """What other nodes exchange with this one about flows."""
        return self._supervisor.flows

    def flow_counts(self, namespace: str) -> dict[str, FlowCounts]:
        """What this node has of the namespace's flows, by the match of their rule; without rules of which it has nothing."""
        return counts(self._supervisor.dispatcher.flows.rules.values(), namespace)

    def destination_reports(self, question: DestinationQuestion) -> list[DestinationReport]:
        """What this node knows of destinations."""
        return self._supervisor.destinations.answer(question)

    @property
    def writes_waiting(self) -> int:
        """Clients' writes that have not been answered yet."""
        return self._writes.waiting

    # ------------------------------------------------------------------ timers

    async def create(self, timer: Timer, condition: Condition | None = None) -> TimerView:
        """Stores a validated timer; it is durable when this returns. It replaces an existing timer of the same id, unless the
        condition forbids it. `[redacted]` in its URL and headers stands for the secrets of the timer that is stored under
        its id, pending or finished, when this begins.

        Raises InvalidInput, NamespaceNotFound, QuotaExceeded, Unavailable; with a condition also TimerExists,
        IdempotencyConflict.
        """
        return await self.creating.one(timer, condition)

    def create_for(self, client: CreateClient, timer: NewTimer, condition: Condition | None = None) -> None:
        """Like `create`, for a client that waits in no coroutine, as `Creating.begin`."""
        self.creating.begin(client, timer, condition)

    async def create_many(
        self, timers: Sequence[Timer], conditions: Sequence[Condition | None] | None = None
    ) -> builtins.list[TimerView | TocsinError]:
        """Like `create` for many timers: the results are in order, and each timer fails on its own."""
        return await self.creating.many(timers, conditions)

    async def create_packed(self, timers: Sequence[PackedTimer]) -> builtins.list[CreateOutcome]:
        """Likewise for timers that a codec has made."""
        return await self.creating.packed(timers)

    async def replay(self, namespace: str, ids: Sequence[str], changes: Changes) -> list[TimerView | TocsinError]:
        """Makes finished timers pending again, each under the `webhook-id` of its latest run: at the instant of the changes
        or at once, with their URL and headers if they have any. `[redacted]` has the same meaning as in `create`. The results
        are in the order of the ids, and each timer fails on its own: with TimerNotFound, TimerPending, TimerNotReplayable,
        InvalidInput, Unavailable. Raises NamespaceNotFound, Unavailable."""
        await self.namespaces.ensure_known(namespace)
        changes = changes_sealed(changes, sealer(self.seals, namespace))
        changes = await self.credentials.checked(namespace, changes)
        hidden = withholds(changes)
        stored = await self.get_many(namespace, ids) if hidden else {}
        outcomes, shards, writes = Outcomes(len(ids)), dict[int, list[EngineWrite]](), self._writes
        for position, timer_id in enumerate(ids):
            uuid = timer_uuid(namespace, timer_id)
            known = stored.get(timer_id)
            try:
                if hidden and known is None:
                    raise TimerNotFound("no such timer")
                wanted = with_secrets(changes, known.timer) if hidden and known is not None else changes
                shard_id = self.namespaces.shard_of(namespace, uuid)
            except TocsinError as error:
                outcomes.take(position, error)
                continue
            op = WriteOp(OpKind.REPLAY, uuid, namespace, changes=wanted)
            shards.setdefault(shard_id, []).append(BatchedWrite(writes, shard_id, op, outcomes, position))
        for shard_id, together in shards.items():
            writes.submit_all(shard_id, together)
        return [_named(outcome, timer_id) for outcome, timer_id in zip(await outcomes.views(), ids, strict=True)]

    async def get(self, namespace: str, timer_id: str) -> TimerView:
        """The pending timer, or else the latest finished one. Raises TimerNotFound, NamespaceNotFound, Unavailable."""
        shard_id, uuid = await self._locate(namespace, timer_id)
        found = (await self.namespaces.read(self._context.store.fetch(shard_id, [uuid]))).get(uuid)
        row = found and (found.live or found.finished)
        if not row:
            raise TimerNotFound(f"no timer {timer_id!r} in namespace {namespace!r}")
        if not (row.timer_id and row.namespace):
            # A damaged row may have lost its names.
            row = row._replace(namespace=namespace, timer_id=timer_id)
        return view_of_stored(row, shard_id)

    async def history(self, namespace: str, timer_id: str, limit: int, cursor: str | None = None) -> RunPage:
        """A page of the timer's runs, newest first. Raises TimerNotFound, NamespaceNotFound, InvalidInput, Unavailable."""
        shard_id, uuid = await self._locate(namespace, timer_id)
        page = await self.runs_by_uuid(shard_id, uuid, limit, cursor)
        if not page.runs and cursor is None:
            raise TimerNotFound(f"no timer {timer_id!r} in namespace {namespace!r}")
        return page

    async def get_many(self, namespace: str, ids: Iterable[str], uuid_of: UuidOf = timer_uuid) -> dict[str, TimerView]:
        """Like `get` for many ids, with one read for each shard; ids without a timer are absent. Raises NamespaceNotFound,
        Unavailable."""
        await self.namespaces.ensure_known(namespace)
        shards: dict[int, dict[bytes, str]] = {}
        for each in ids:
            uuid = uuid_of(namespace, each)
            shards.setdefault(self.namespaces.shard_of(namespace, uuid), {})[uuid] = each
        views = {}
        for shard_id, names in shards.items():
            found = await self.namespaces.read(self._context.store.fetch(shard_id, list(names)))
            rows = [row for stored in found.values() if (row := stored.live or stored.finished)]
            for view in await views_of_stored((row, shard_id) for row in rows):
                views[names[view.uuid]] = view
        return views

    async def get_by_uuids(self, named: Iterable[tuple[str, bytes]]) -> list[TimerView]:
        """What is stored under UUIDs in their namespaces, which this node knows: timers and schedules, each live or else the
        latest finished one, with one read for each shard. A UUID may be given with namespaces to which it does not belong.
        Raises Unavailable."""
        shards: dict[int, dict[bytes, set[str]]] = {}
        for namespace, uuid in named:
            with contextlib.suppress(NamespaceNotFound, Unavailable):
                shards.setdefault(self.namespaces.shard_of(namespace, uuid), {}).setdefault(uuid, set()).add(namespace)
        rows = []
        for shard_id, names in shards.items():
            found = await self.namespaces.read(self._context.store.fetch(shard_id, list(names)))
            stored = ((uuid, each.live or each.finished) for uuid, each in found.items())
            rows += [(row, shard_id) for uuid, row in stored if row and _namespace_of(row) in names[uuid]]
        return await views_of_stored(rows)

    async def explain(self, namespace: str, timer_id: str) -> Explanation:
        """Where the timer is, what it waits for, and what happens next. Raises TimerNotFound, NamespaceNotFound, Unavailable;
        if only the owner of its shard can't be asked, the explanation states that."""
        shard_id, uuid = await self._locate(namespace, timer_id)
        # In this order: what has left the owner's memory since is in the store.
        (asked,) = await self._owners.ask([(shard_id, uuid)], _EXPLAIN_TIMEOUT_US)
        view = await self.get(namespace, timer_id)
        now_us, obstacle = self._context.clock.now_us(), self._context.credential_gate.obstacle
        return explain(view, self.namespaces.get(namespace), asked, now_us, obstacle, pause_of(self._context, view))

    async def explained(self, views: Sequence[TimerView]) -> list[TimerView]:
        """The timers, those that are due with their explanation. Each owner of their shards is asked once, and not for long.
        What an owner has stored after the timers were read, they do not show yet."""
        now_us, obstacle = self.now_us(), self._context.credential_gate.obstacle
        due = [view for view in views if view.is_due(now_us)]
        if not due:
            return [*views]
        asked = await self._owners.ask([(view.shard_id, view.uuid) for view in due], _LISTED_TIMEOUT_US)
        of_uuid = {view.uuid: each for view, each in zip(due, asked, strict=True)}

        def completed(view: TimerView) -> TimerView:
            if not view.is_due(now_us):
                return view
            namespace = self.namespaces.get(view.timer.namespace)
            return msgspec.structs.replace(
                view, explanation=explain(view, namespace, of_uuid[view.uuid], now_us, obstacle)
            )

        return await self.turns.each(map(completed, views))

    def locate(self, timers: Located) -> list[Whereabouts | None]:
        """What this node knows of each of the timers in its memory; None if it does not own the shard."""
        return self._owners.locate(timers)

    async def update(self, namespace: str, timer_id: str, changes: Changes) -> TimerView:
        """Changes a pending timer; `[redacted]` has the same meaning as in `create`. Raises TimerNotFound, TimerNotPending,
        InvalidInput, QuotaExceeded, Unavailable."""
        shard_id, uuid = await self._locate(namespace, timer_id)
        if self._context.quotas:
            self.quotas.check_payload(namespace, changes.payload, changes.body)
        changes = changes_sealed(changes, sealer(self.seals, namespace))
        if withholds(changes):
            changes = with_secrets(changes, (await self.get(namespace, timer_id)).timer)

        async def stored_url() -> str:
            return (await self.get(namespace, timer_id)).timer.url

        changes = await self.credentials.checked(namespace, changes, stored_url)
        view = await self._change(timer_id, shard_id, WriteOp(OpKind.UPDATE, uuid, namespace, changes=changes))
        assert view is not None
        return view

    async def delete(self, namespace: str, timer_id: str) -> bool:
        """Cancels a pending timer. Returns whether the write was forwarded to another node. Raises TimerNotFound,
        TimerNotPending, Unavailable."""
        shard_id, uuid = await self._locate(namespace, timer_id)
        op = WriteOp(OpKind.DELETE, uuid, namespace)
        await self._change(timer_id, shard_id, op)
        return op.forwarded

    async def _change(self, timer_id: str, shard_id: int, op: WriteOp) -> TimerView | None:
        """Writes a change of a timer. Its errors name the timer, which the owner of the shard knows by its UUID only."""
        try:
            return await self.write(shard_id, op)
        except TimerNotFound:
            raise TimerNotFound(f"no timer {timer_id!r} in namespace {op.namespace!r}") from None
        except TimerNotPending as error:
            raise TimerNotPending(f"{error}: {timer_id!r} in namespace {op.namespace!r}") from None

    async def _locate(self, namespace: str, timer_id: str) -> tuple[int, bytes]:
        await self.namespaces.ensure_known(namespace)
        uuid = timer_uuid(namespace, timer_id)
        return self.namespaces.shard_of(namespace, uuid), uuid

    # ------------------------------------------------------------------ rows of schedules

    @property
    def occurrences_kept(self) -> int:
        """How many occurrences of each schedule are kept, the newest ones, while retention lasts."""
        return self._context.limits.occurrences_kept

    def now_us(self) -> int:
        """This node's wall clock."""
        return self._context.clock.now_us()

    async def shard_of(self, namespace: str, uuid: bytes) -> int:
        """The shard of a uuid. Raises NamespaceNotFound, Unavailable."""
        await self.namespaces.ensure_known(namespace)
        return self.namespaces.shard_of(namespace, uuid)

    async def get_by_uuid(self, namespace: str, uuid: bytes) -> TimerView | None:
        """The live row of a uuid, or else the latest finished one. Raises NamespaceNotFound, Unavailable."""
        shard_id = await self.shard_of(namespace, uuid)
        found = (await self.namespaces.read(self._context.store.fetch(shard_id, [uuid]))).get(uuid)
        row = found and (found.live or found.finished)
        return view_of_stored(row, shard_id) if row else None

    async def runs_by_uuid(self, shard_id: int, uuid: bytes, limit: int, cursor: str | None) -> RunPage:
        """A page of a row's runs, newest first. Raises InvalidInput for a bad cursor, and Unavailable."""
        async with self._pages:
            return await self.namespaces.read(runs_of(self._context.store, shard_id, uuid, limit, cursor))

    async def latest_runs(self, shard_id: int, uuid: bytes, limit: int, bytes_max: int) -> builtins.list[Run]:
        """The runs of a row that ended last, newest first, as `latest_ended` reads them. Raises Unavailable."""
        async with self._pages:
            read = latest_ended(self._context.store, shard_id, uuid, limit, bytes_max)
            return await self.namespaces.read(read)

    async def failed_runs(self, shard_id: int, uuid: bytes, instants: Collection[int]) -> dict[int, FailedRun]:
        """Of the latest kept run of each instant of a row, those that failed or expired, by instant. Raises Unavailable."""
        async with self._pages:
            read = failed_runs(self._context.store, shard_id, uuid, instants, self.occurrences_kept)
            return await self.namespaces.read(read)

    async def list_schedules(
        self, scope: Scope, request: IdListRequest, answer: Callable[[TimerView], T], *, explained: bool = False
    ) -> tuple[list[T], str | None]:
        """What `answer` makes of a page of live schedules, but for those whose record can't be read, and the cursor of the
        next page if one may follow. The request is one of several namespaces unless the scope is one. `explained` is as in
        `list_answers`. Raises NamespaceNotFound, Unavailable."""
        names, shards = await self._extent(scope)

        async def read(after: str, limit: int) -> Sequence[StoredRow]:
            rows = await self.namespaces.read(self._schedules(names, shards, request, after, limit))
            await self.namespaces.known_among({_namespace_of(row) for row in rows})
            return rows

        async with self._pages:
            views, cursor = await page_by_id(request, read, self._shard_of_row)
            readable = [view for view in views if view.timer.schedule is not None]
            if explained:
                readable = await self.explained(readable)
            return await self.turns.each(map(answer, readable)), cursor

    async def _schedules(
        self, names: tuple[str, ...] | None, shards: Sequence[int], request: IdListRequest, after: str, limit: int
    ) -> Sequence[StoredRow]:
        """The first schedules behind a cursor, of all namespaces or of these, which are read one after the other."""
        store = self._context.store
        if request.of_several:
            first, _, after_id = after.partition("/")
        else:
            first, after_id = "", after
        if names is None:
            return await store.list_all_schedules(shards, (first, after_id) if after else None, limit)
        rows: list[StoredRow] = []
        for name in names:
            if name >= first and len(rows) < limit:
                behind = "" if request.of_several and name > first else after_id
                rows += await store.list_schedules(name, self.namespaces.shards_of([name]), behind, limit - len(rows))
        return rows

    # ------------------------------------------------------------------ writes, here and at other nodes

    async def write(self, shard_id: int, op: WriteOp) -> TimerView | None:
        """Has the shard's owner do the write. Returns the durable timer, or None after a delete; raises its error."""
        written: Awaited[TimerView | None] = Awaited()
        self._writes.submit(shard_id, op, written)
        return await written

    def take_ping(self, shard_id: int, uuid: bytes, ping: Ping) -> bool:
        """Takes a ping of a monitor at once, if this node owns its shard and need not write it; whether it has."""
        return self._writes.take_ping(shard_id, uuid, ping)

    def accept(self, write: Write, epoch: int | None, completion: WriteCompletion) -> None:
        """Takes another node's write, or one that waited until this node owned its shard, in this epoch if one is given.
        Raises ShardMoved, RequestExpired, Overloaded."""
        self._writes.accept(write, epoch, completion)

    def knows_namespace(self, name: str, version: int) -> bool:
        """Whether this node knows the namespace in that version or a later one."""
        return self._context.knows_namespace(name, version)

    async def refresh_namespaces(self) -> None:
        """Reads the namespaces, by a read that begins after the call. Raises Unavailable."""
        await self.namespaces.refresh()

    # ------------------------------------------------------------------ the node and its cluster

    async def cluster(self) -> ClusterView:
        """Nodes, shards and owners, with the reports of the nodes that answer in time."""
        others, alone = await self.reports(), self._context.store.capabilities.exclusive
        return cluster_view(self._supervisor, self.report(), others, alone=alone)

    def owners(self) -> OwnersView:
        """The owners of the shards, as far as this node knows them."""
        return owners_view(self._supervisor, alone=self._context.store.capabilities.exclusive)

    def report(self) -> NodeReport:
        """This node's report about itself."""
        return report_of(
            self._supervisor,
            self._context,
            agent=self._has_agent(),
            agent_configured=self._agent_configured,
            largest_shard_bytes=self._largest_shard_bytes(),
            vitals=self._vitals(),
        )

    @property
    def node(self) -> str:
        """This node's name."""
        return self._supervisor.node

    @property
    def paused_reason(self) -> str | None:
        """Why this node fires nothing now, as in its report; None while it fires timers."""
        return self._supervisor.dispatcher.paused_reason

    @property
    def node_lease_us(self) -> int:
        """How long after the last answer of the database a node fires timers."""
        return self._context.limits.node_lease_us

    def other_nodes(self) -> Mapping[bytes, str]:
        """Names of the other living nodes, by incarnation. An exclusive store has none: its other members are former starts
        of this node."""
        return {} if self._context.store.capabilities.exclusive else others_alive(self._supervisor)

    async def reports(self) -> Mapping[bytes, NodeReport]:
        """The reports of the other nodes, by incarnation, without those that do not answer in time."""
        return {} if self.namespaces.peers is None else await self.namespaces.peers.reports()

    async def quota_use(self, namespace: str) -> TotalUse | None:
        """What the nodes that answer in time have of a namespace with quotas; None if it has none."""
        return await use_of(self._context, namespace, self.reports, len(self.other_nodes()))

    async def store_facts(self) -> StoreFacts:
        """What the database reports about itself. Raises Unavailable."""
        return await self.namespaces.read(self._context.store.facts())

    @property
    def unfit(self) -> bool:
        """Whether other nodes should do this node's work: its clock has differed from the store's for a while, and theirs
        have not, or they can't authenticate it."""
        supervisor = self._supervisor
        return supervisor.lease.clock_distrusted or supervisor.membership.secret_differs(supervisor.incarnation)

    def not_ready_because(self) -> list[str]:
        """The reasons why the node should get no traffic now; empty when it is ready."""
        context = self._context
        return not_ready_because(self._supervisor, alone=context.store.capabilities.exclusive, full=context.store_full)

    async def list_answers(
        self, request: ListRequest, answer: Callable[[TimerView], T], *, explained: bool = False
    ) -> tuple[list[T], str | None]:
        """Like `list`, with what `answer` makes of each timer; with `explained` they are like those of that method. While
        answers wait for other requests' turns, no further page is read in place of theirs."""
        async with self._pages:
            views, cursor = await self._page(request)
            if explained:
                views = await self.explained(views)
            return await self.turns.each(map(answer, views)), cursor

    async def count(self, request: ListRequest) -> tuple[int, bool]:
        """How many timers one read of the store finds, and whether there may be more; by neither destination nor error.
        Raises NamespaceNotFound, Unavailable."""
        names, shards = await self._extent(request.scope)
        async with self._pages:
            page = await self.namespaces.read(self._context.store.list(query_of(request, names, shards)))
        return len(page.rows), page.cursor is not None

    async def _page(self, request: ListRequest) -> tuple[list[TimerView], str | None]:
        names, shards = await self._extent(request.scope)

        async def read(query: ListQuery) -> Listed:
            page = await self.namespaces.read(self._context.store.list(query))
            await self.namespaces.known_among({row.namespace for row in page.rows})
            return page

        return await list_page(request, names, shards, read, self._shard_of_row)

    async def _extent(self, scope: Scope) -> tuple[tuple[str, ...] | None, Sequence[int]]:
        """The namespaces of a scope, None for all, and the shards in which they may have timers. Raises NamespaceNotFound,
        Unavailable."""
        if scope is None:
            return None, range(self._supervisor.total_shards)
        if isinstance(scope, str):
            await self.namespaces.ensure_known(scope)
        names = (scope,) if isinstance(scope, str) else await self.namespaces.known_among(scope)
        return names, self.namespaces.shards_of(names)

    def _shard_of_row(self, row: StoredRow | HistoryRow) -> int | None:
        """The row's shard; None if its namespace can't be read."""
        try:
            return self.namespaces.shard_of(_namespace_of(row), row.uuid)
        except (NamespaceNotFound, Unavailable):
            return None

    # Last in the class, because it hides the built-in name in what follows.
    async def list(self, request: ListRequest) -> tuple[list[TimerView], str | None]:
        """A page in the order of the request, and the cursor of the next page if one may follow. Raises InvalidInput for a
        bad cursor, NamespaceNotFound, Unavailable."""
        async with self._pages:
            return await self._page(request)


def _namespace_of(row: StoredRow | HistoryRow) -> str:
    return row.namespace.partition("/")[0]


def _named(outcome: TimerView | TocsinError, timer_id: str) -> TimerView | TocsinError:
    """The error with the timer's id, which the owner of the shard does not know."""
    if isinstance(outcome, TimerNotFound | Conflict):
        return type(outcome)(f"{outcome}: {timer_id!r}")
    return outcome
