"""Clients' writes on their way to the engine, or to the nodes that own their shards, and how their results come back."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from tocsin.model.condition import Condition
from tocsin.model.errors import Overloaded, RequestExpired, ShardMoved, TocsinError
from tocsin.model.monitor import Ping
from tocsin.model.packed import NewTimer
from tocsin.model.timer import Timer
from tocsin.ports.completion import Completion
from tocsin.ports.forward import Forwarder, Write, WriteCompletion, WriteKind, Written
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.parts import Creates, operation
from tocsin.timers.engine.rows import OpKind, Row, WriteOp
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.listing import TimerView, view_of

T = TypeVar("T")

#: Who waits for a write: gets the durable timer, or None after a delete.
WriteClient = Completion[TimerView | None]
#: Likewise, of a create that a codec may have made: then it gets the codec's answer.
CreateClient = Completion[TimerView | bytes | None]
#: What becomes of a create.
CreateOutcome = TimerView | bytes | TocsinError


class Writes:
    """Queues writes for their shards' next batches, within `pending_writes_max`, or forwards them to the shards' owners."""

    def __init__(self, context: Context, supervisor: Supervisor) -> None:
        #: None until other nodes can be reached.
        self.forwarder: Forwarder | None = None
        #: Writes that have not been answered yet.
        self.waiting = 0
        self._context, self._supervisor = context, supervisor
        self._shared = not context.store.capabilities.exclusive

    def submit(self, shard_id: int, op: WriteOp, client: WriteClient) -> None:
        """Queues a client's write, or forwards it."""
        self.submit_all(shard_id, (_ClientWrite(self, shard_id, op, client),))

    def create(self, shard_id: int, creates: PlainCreates[Any]) -> None:
        """Queues plain creates for one shard, or forwards them."""
        limits, boot_us, count = self._context.limits, self._context.clock.boottime_us(), len(creates.uuids)
        if self.waiting + count > limits.pending_writes_max or not self._in_touch(boot_us):
            self.submit_all(shard_id, creates.apart())
            return
        self.waiting += count
        try:
            self._supervisor.shards[shard_id].accept_creates(creates, boot_us + limits.write_timeout_us)
        except ShardMoved as error:
            creates.deadline_us = boot_us + limits.write_timeout_us
            creates.refuse(error)

    def take_ping(self, shard_id: int, uuid: bytes, ping: Ping) -> bool:
        """Takes a monitor's ping in memory, if its shard is this node's and it need not be written; whether it has."""
        if not self._in_touch(self._context.clock.boottime_us()):
            return False
        return self._supervisor.shards[shard_id].take_ping(uuid, ping)

    def _in_touch(self, boot_us: int) -> bool:
        return not self._shared or self._supervisor.lease.in_touch(boot_us)

    def submit_all(self, shard_id: int, writes: Sequence[EngineWrite]) -> None:
        """Queues writes for one shard, or forwards them."""
        limits, boot_us = self._context.limits, self._context.clock.boottime_us()
        if len(writes) > (room := max(limits.pending_writes_max - self.waiting, 0)):
            _refuse(writes[room:], self._overloaded())
            writes = writes[:room]
        if not self._in_touch(boot_us):
            # After a pause of this process, the client of a request unread until now may have retried it at another node.
            reason = "this node has no recent contact with the store; nothing was written, try again"
            _refuse(writes, ShardMoved(reason))
            return
        shard, deadline_us = self._supervisor.shards[shard_id], boot_us + limits.write_timeout_us
        ops = [write.op for write in writes]
        for op, write in zip(ops, writes, strict=True):
            op.deadline_us, op.completion = deadline_us, write
        self.waiting += len(ops)
        try:
            shard.accept(*ops)
        except ShardMoved as error:
            for op in ops:
                op.answer(error)

    def forward(self, shard_id: int, op: WriteOp, client: WriteClient, error: ShardMoved) -> None:
        """Forwards a write that this node certainly has not done, because of the error, to the shard's owner."""
        if self.forwarder is None:
            client.refuse(error)
            return
        assert op.deadline_us is not None
        if op.timer is not None and op.kind is OpKind.CREATE:
            # Set by the owner that accepted it before; the next owner sets its own.
            op.timer.firing = ""
        known = self._context.namespaces.get(op.namespace)
        write = Write(
            _WRITES[op.kind], shard_id, op.uuid, op.namespace, op.timer, op.changes, op.deadline_us,
            namespace_version=0 if known is None else known.version, execute_at=op.execute_at, expected=op.expected,
            condition=op.condition, change=op.change, only_if=op.only_if,
        )  # fmt: skip
        op.forwarded = True
        forwarded = _ForwardedWrite(self, shard_id, op.uuid, client)
        try:
            self.forwarder.forward(write, forwarded)
        except Exception as defect:  # noqa: BLE001 -- the client gets it
            forwarded.fail(defect)
        # Not before: the owner may be this node again, where the write must not find its own place taken.
        self.waiting += 1

    def accept(self, write: Write, epoch: int | None, completion: WriteCompletion) -> None:
        """Takes another node's write, or one that waited until this node owned its shard, in this epoch if one is given.
        Raises ShardMoved, RequestExpired, Overloaded."""
        shard = self._supervisor.shards.get(write.shard_id)
        window = shard.window if shard is not None else None
        if shard is None or window is None or epoch not in (None, window.epoch):
            raise ShardMoved(f"this node does not own shard {write.shard_id} in this epoch")
        if write.deadline_us <= self._context.clock.boottime_us():
            raise RequestExpired("the request's time budget ran out; nothing was written")
        if self.waiting >= self._context.limits.pending_writes_max:
            raise self._overloaded()
        op = WriteOp(
            _KINDS[write.kind], write.uuid, write.namespace, timer=write.timer, changes=write.changes,
            execute_at=write.execute_at, expected=write.expected, condition=write.condition, change=write.change,
            only_if=write.only_if, deadline_us=write.deadline_us, completion=_PeerWrite(self, completion),
        )  # fmt: skip
        shard.accept(op)
        self.waiting += 1

    def _overloaded(self) -> Overloaded:
        return Overloaded(f"{self.waiting} writes are already waiting (pending_writes_max); try again later")


class EngineWrite(Completion[Row | None]):
    """A client's write in the engine. The client gets its view of the durable row. If the shard has moved, the write goes to
    its owner."""

    __slots__ = ("_shard_id", "_writes", "op")

    _writes: Writes
    _shard_id: int
    op: WriteOp

    @abstractmethod
    def client(self) -> WriteClient:
        """Who waits for the write. Called once, for what the engine does not resolve."""

    def _refused(self, error: TocsinError) -> None:
        self._writes.waiting -= 1
        if type(error) is ShardMoved:
            self._writes.forward(self._shard_id, self.op, self.client(), error)
        else:
            self.client().refuse(error)

    def _failed(self, error: Exception) -> None:
        self._writes.waiting -= 1
        self.client().fail(error)


class _ClientWrite(EngineWrite):
    """A write whose client waits for it alone."""

    __slots__ = ("_client",)

    def __init__(self, writes: Writes, shard_id: int, op: WriteOp, client: WriteClient) -> None:
        self.completed = False
        self._writes = writes
        self._shard_id = shard_id
        self.op = op
        self._client = client

    def client(self) -> WriteClient:
        return self._client

    def _resolved(self, row: Row | None) -> None:
        view = None
        if row is not None:
            at, uuid = row.key
            view = view_of(row.timer, uuid, self._shard_id, at, row.outcome)
        self._writes.waiting -= 1
        self._client.resolve(view)


class PlainCreates(Creates, Generic[T]):
    """Plain creates in one shard, each for a client of the kind `T`; add them one by one, then submit them. Their clients
    get the views of the durable timers, or the answers of the codec that has made them. If the shard has moved, each create
    goes to its owner."""

    __slots__ = ("_clients", "_shard_id", "_writes")

    uuids: list[bytes]
    timers: list[NewTimer]

    def __init__(self, writes: Writes, shard_id: int) -> None:
        self.completed = False
        self.uuids, self.timers, self.deadline_us = [], [], None
        self._writes = writes
        self._shard_id = shard_id
        self._clients: list[T] = []

    def add(self, uuid: bytes, timer: NewTimer, client: T) -> None:
        """Adds a create."""
        self.uuids.append(uuid)
        self.timers.append(timer)
        self._clients.append(client)

    @abstractmethod
    def _write(self, op: WriteOp, client: T) -> EngineWrite:
        """One of them as a write of its own."""

    @abstractmethod
    def _give(self, outcomes: Iterable[TimerView | bytes]) -> None:
        """They are durable: gives each client its outcome, in their order. Should one of these fail, so do the others that
        come after it."""

    def operations(self) -> list[WriteOp]:
        return [write.op for write in self.apart()]

    def apart(self) -> list[EngineWrite]:
        """Each create as a write of its own; nothing completes this any more."""
        writes = []
        for uuid, timer, client in zip(self.uuids, self.timers, self._clients, strict=True):
            op = operation(uuid, timer, self.deadline_us)
            op.completion = write = self._write(op, client)
            writes.append(write)
        return writes

    def _resolved(self, rows: Sequence[Row]) -> None:
        shard_id = self._shard_id
        self._give(
            TimerView(timer, row.key[1], shard_id, row.key[0]) if isinstance(timer, Timer) else timer.answer(shard_id)
            for row, timer in zip(rows, self.timers, strict=True)
        )
        # Last: should one fail, each is failed by itself, and counted then.
        self._writes.waiting -= len(rows)

    def _refused(self, error: TocsinError) -> None:
        for write in self.apart():
            write.op.answer(error)

    def _failed(self, error: Exception) -> None:
        for write in self.apart():
            write.fail(error)


class SingleCreates(PlainCreates[CreateClient]):
    """Creates of clients each of which waits for one."""

    __slots__ = ()

    def _write(self, op: WriteOp, client: CreateClient) -> EngineWrite:
        return _ClientWrite(self._writes, self._shard_id, op, client)

    def _give(self, outcomes: Iterable[TimerView | bytes]) -> None:
        for client, outcome in zip(self._clients, outcomes, strict=True):
            client.resolve(outcome)


class Arrivals:
    """Plain creates of single requests on their way to their shards. Those that arrive in the same turn of the event loop go
    on together at its end, as those of a batch do, and share what each would cost by itself."""

    __slots__ = ("_shards", "_writes")

    def __init__(self, writes: Writes) -> None:
        self._writes = writes
        self._shards: dict[int, SingleCreates] = {}

    def add(self, shard_id: int, uuid: bytes, timer: NewTimer, client: CreateClient) -> None:
        """Takes a create, whose client is answered in any case."""
        creates = self._shards.get(shard_id)
        if creates is None:
            if not self._shards:
                asyncio.get_running_loop().call_soon(self._pass_on)
            creates = self._shards[shard_id] = SingleCreates(self._writes, shard_id)
        creates.add(uuid, timer, client)

    def _pass_on(self) -> None:
        shards, self._shards = self._shards, {}
        for shard_id, creates in shards.items():
            self._writes.create(shard_id, creates)


class _ForwardedWrite(Completion[Written | None]):
    """A client's write at the shard's owner. The client gets its view of what that has written."""

    __slots__ = ("_client", "_shard_id", "_uuid", "_writes")

    def __init__(self, writes: Writes, shard_id: int, uuid: bytes, client: WriteClient) -> None:
        super().__init__()
        self._writes, self._shard_id, self._uuid, self._client = writes, shard_id, uuid, client

    def _resolved(self, written: Written | None) -> None:
        view = None
        if written is not None:
            timer, at, outcome = written
            view = view_of(timer, self._uuid, self._shard_id, at, outcome, forwarded=True)
        self._writes.waiting -= 1
        self._client.resolve(view)

    def _refused(self, error: TocsinError) -> None:
        self._writes.waiting -= 1
        self._client.refuse(error)

    def _failed(self, error: Exception) -> None:
        self._writes.waiting -= 1
        self._client.fail(error)


class _PeerWrite(Completion[Row | None]):
    """Another node's write in the engine, or one that waited until this node owned its shard."""

    __slots__ = ("_completion", "_writes")

    def __init__(self, writes: Writes, completion: WriteCompletion) -> None:
        super().__init__()
        self._writes, self._completion = writes, completion

    def _resolved(self, row: Row | None) -> None:
        written = None if row is None else Written(row.timer, row.key[0], row.outcome)
        self._writes.waiting -= 1
        self._completion.resolve(written)

    def _refused(self, error: TocsinError) -> None:
        self._writes.waiting -= 1
        self._completion.refuse(error)

    def _failed(self, error: Exception) -> None:
        self._writes.waiting -= 1
        self._completion.fail(error)


class Outcomes:
    """The outcomes of a batch of creates or replays, in order; `all` is done when the last one is here. Each of them is a
    `BatchedWrite`, made by the thousand: it holds its place here, and a client of its own only if the engine refuses it."""

    def __init__(self, count: int) -> None:
        self.all: asyncio.Future[list[CreateOutcome]] = asyncio.get_running_loop().create_future()
        self._outcomes: list[CreateOutcome] = [_NO_OUTCOME] * count
        self._missing = count
        if not count:
            self.all.set_result([])

    async def views(self) -> list[TimerView | TocsinError]:
        """What `all` has, of writes of which no codec has made one."""
        return [outcome for outcome in await self.all if not isinstance(outcome, bytes)]

    def take(self, position: int, outcome: CreateOutcome) -> None:
        """Takes the outcome of one of them."""
        self.take_all((position,), (outcome,))

    def take_all(self, positions: Sequence[int], outcomes: Iterable[CreateOutcome]) -> None:
        """Takes the outcomes of those at these positions."""
        taken = self._outcomes
        for position, outcome in zip(positions, outcomes, strict=True):
            taken[position] = outcome
        self._missing -= len(positions)
        # Who waits may have gone.
        if not self._missing and not self.all.done():
            self.all.set_result(self._outcomes)

    def fail(self, error: Exception) -> None:
        """One of them has failed, and with it the batch."""
        if not self.all.done():
            self.all.set_exception(error)


class BatchedWrite(EngineWrite):
    """One create or replay of a batch."""

    __slots__ = ("_batch", "_position")

    def __init__(self, writes: Writes, shard_id: int, op: WriteOp, batch: Outcomes, position: int) -> None:
        self.completed = False
        self._writes = writes
        self._shard_id = shard_id
        self.op = op
        self._batch = batch
        self._position = position

    def client(self) -> WriteClient:
        return _BatchClient(self._batch, self._position)

    def _resolved(self, row: Row | None) -> None:
        assert row is not None
        at, uuid = row.key
        view = view_of(row.timer, uuid, self._shard_id, at, row.outcome)
        self._writes.waiting -= 1
        self._batch.take(self._position, view)


class BatchedCreates(PlainCreates[int]):
    """The plain creates of a batch that belong to one shard. The client of each is its position in the batch."""

    __slots__ = ("_batch",)

    def __init__(self, writes: Writes, shard_id: int, batch: Outcomes) -> None:
        super().__init__(writes, shard_id)
        self._batch = batch

    def _write(self, op: WriteOp, client: int) -> EngineWrite:
        return BatchedWrite(self._writes, self._shard_id, op, self._batch, client)

    def _give(self, outcomes: Iterable[TimerView | bytes]) -> None:
        self._batch.take_all(self._clients, outcomes)


class _BatchClient(Completion[TimerView | None]):
    """Who waits for one create or replay of a batch."""

    __slots__ = ("_batch", "_position")

    def __init__(self, batch: Outcomes, position: int) -> None:
        super().__init__()
        self._batch, self._position = batch, position

    def _resolved(self, view: TimerView | None) -> None:
        assert view is not None
        self._batch.take(self._position, view)

    def _refused(self, error: TocsinError) -> None:
        self._batch.take(self._position, error)

    def _failed(self, error: Exception) -> None:
        self._batch.fail(error)


class BatchOfCreates:
    """A batch's creates on their way to their shards. In each shard they keep their order, because ids may repeat: plain ones
    that follow one another go together."""

    def __init__(self, writes: Writes, outcomes: Outcomes) -> None:
        self._writes, self._outcomes = writes, outcomes
        self._runs: list[tuple[int, BatchedCreates | list[EngineWrite]]] = []
        # The last of these of each shard.
        self._last: dict[int, BatchedCreates | list[EngineWrite]] = {}

    def add(self, shard_id: int, uuid: bytes, timer: NewTimer, condition: Condition | None, position: int) -> None:
        """Adds a create, with its position in the batch."""
        run = self._last.get(shard_id)
        if is_plain(timer, condition):
            if not isinstance(run, BatchedCreates):
                run = self._last[shard_id] = BatchedCreates(self._writes, shard_id, self._outcomes)
                self._runs.append((shard_id, run))
            run.add(uuid, timer, position)
            return
        assert isinstance(timer, Timer)
        assert condition is not None
        if not isinstance(run, list):
            run = self._last[shard_id] = []
            self._runs.append((shard_id, run))
        op = create_op(uuid, timer, condition)
        run.append(BatchedWrite(self._writes, shard_id, op, self._outcomes, position))

    def submit(self) -> None:
        """Submits them all."""
        for shard_id, run in self._runs:
            if isinstance(run, list):
                self._writes.submit_all(shard_id, run)
            else:
                self._writes.create(shard_id, run)


def is_plain(timer: NewTimer, condition: Condition | None) -> bool:
    """Whether the create may go in a part: it has no condition, or only that of a first try, whose key the timer has then."""
    if condition is None:
        return True
    if condition.key is None or condition.reads or not isinstance(timer, Timer):
        return False
    timer.keys = (condition.key,)
    return True


def create_op(uuid: bytes, timer: Timer, condition: Condition) -> WriteOp:
    """The operation that creates the timer on this condition."""
    return WriteOp(OpKind.CREATE, uuid, timer.namespace, timer=timer, condition=condition)


def _refuse(writes: Iterable[EngineWrite], error: TocsinError) -> None:
    """Refuses writes that the engine has not taken."""
    for write in writes:
        # As in `WriteOp.answer`, nothing of it is left for the garbage collector.
        write.op.completion = None
        write.client().refuse(error)


_NO_OUTCOME = TocsinError()

#: Kinds of operations here and between nodes. A lookup costs a tenth of constructing the enum's member.
_WRITES = {OpKind[kind.name]: kind for kind in WriteKind}
_KINDS = {kind: OpKind[kind.name] for kind in WriteKind}
