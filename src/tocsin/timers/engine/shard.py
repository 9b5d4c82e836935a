"""One shard on this node: its window while the shard is owned, and the events that reach it from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tocsin.model.errors import ShardMoved
from tocsin.model.monitor import Ping
from tocsin.ports.observer import ShardClaimed, ShardLost, TimerSuspended
from tocsin.ports.store import KEY_MIN
from tocsin.timers.engine.admission import DEFERRED_PART
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.flow_order import ShardOrder
from tocsin.timers.engine.monitored import MonitorMemory
from tocsin.timers.engine.monitoring import Outage
from tocsin.timers.engine.parts import Creates
from tocsin.timers.engine.rows import FLOW_REASON, Batch, InFlightAttempt, Row, WriteOp
from tocsin.timers.engine.window import Window

if TYPE_CHECKING:
    from tocsin.timers.engine.committer import CommitLane
    from tocsin.timers.engine.context import Context
    from tocsin.timers.engine.flow_accounts import Account
    from tocsin.timers.engine.flow_tokens import TokenPlace
    from tocsin.timers.engine.limits import EngineLimits

#: Seconds between two checks whether a shard's hand-over, or a node's draining, is complete.
POLL_INTERVAL_S = 0.01


#: Reasons for which timers of a shard are suspended that it distinguishes. Of further keys of flows, of which there may be
#: millions, only the rules are known, as reasons of their own.
REASONS_MAX = 1_000
OTHER_KEYS = "flows:"


class Suspended:
    """The reasons for which timers of the shard are suspended in the store, and how far the present round has read. A round
    over all suspended rows may take several sweeps."""

    __slots__ = ("_context", "after", "found", "reasons", "recent", "refused_at", "refused_rounds")

    def __init__(self, context: Context) -> None:
        self._context = context
        #: None: unknown, because no round has been completed since the claim.
        self.reasons: set[str] | None = None
        #: The key after which the round continues.
        self.after = KEY_MIN
        #: Reasons of rows that this round has read and left suspended.
        self.found: set[str] = set()
        #: Reasons of rows suspended since the round began, which the round may have missed.
        self.recent: set[str] = set()
        #: Boot time from which timers whose address was refused are tried again: at once after a claim, since this owner's
        #: settings may permit what a former one's did not.
        self.refused_at = 0
        #: In how many rounds they are resumed, the present one included.
        self.refused_rounds = 0

    def note(self, reason: str) -> None:
        """Records that a row is about to be suspended for this reason."""
        self._add(self.recent, reason)
        if self.reasons is not None:
            self._add(self.reasons, reason)

    def left(self, reason: str) -> None:
        """The round has read a row suspended for this reason, and leaves it so."""
        self._add(self.found, reason)

    def _add(self, reasons: set[str], reason: str) -> None:
        if len(reasons) >= REASONS_MAX and reason not in reasons and reason.startswith(FLOW_REASON):
            reason = OTHER_KEYS + rule_of(self._context, reason)
        reasons.add(reason)


def rule_of(context: Context, reason: str) -> str:
    """Namespace and match of the rule of a flow's key for which timers are suspended; the match is empty for the limits of
    the namespace itself, and where there is no rule any more."""
    namespace, key = reason.removeprefix(FLOW_REASON).split("/", 1)
    rules = context.flows.get(namespace)
    flow = None if rules is None or not key else rules.find(key)
    return f"{namespace}/" if flow is None else f"{namespace}/{flow.match}"


class Shard:
    """A shard's window and its claim. `changed` is called after anything that may make a timer due or allow a load; `lost`
    with the reason after the claim ends."""

    def __init__(
        self,
        shard_id: int,
        context: Context,
        lane: CommitLane,
        *,
        changed: Callable[[Shard], None],
        lost: Callable[[Shard, str], None],
    ) -> None:
        self.shard_id = shard_id
        self.lane = lane
        self.window: Window | None = None
        #: The shard is being handed over: nothing is dispatched.
        self.draining = False
        #: The end of the hand-over: no write is accepted, either.
        self.closed = False
        #: Until when this node worked on the shard, the last time that it owned it.
        self.lost_at_us = 0
        self.suspended = Suspended(context)
        #: The order of what waits for ordered keys of flows.
        self.order = ShardOrder(lambda: context.flows)
        self._context = context
        self._notify_changed = changed
        self._notify_lost = lost
        self._orphaned: list[InFlightAttempt] = []
        self._tokens_left: dict[TokenPlace, Account] = {}
        self._counted = (0, 0, 0, 0)

    def changed(self) -> None:
        """Call it after anything that may make a timer due or allow a load."""
        self._notify_changed(self)

    # ------------------------------------------------------------------ ownership

    def own(self, epoch: int, *, draining: bool = False, outages: Iterable[Outage] = ()) -> None:
        """Starts an empty window after a successful claim, with the attempts that are still in flight as orphaned ones.
        `draining`: the shard only takes writes, and dispatches nothing."""
        context = self._context
        self.window = Window(
            self.shard_id,
            epoch,
            context.incarnation,
            orphaned=self._orphaned,
            range_delete=context.store.capabilities.range_delete,
            delete_watermark=context.store.capabilities.delete_watermark,
        )
        self.window.monitors = MonitorMemory(context.monitors_remembered)
        for outage in outages:
            self.window.monitors.add_outage(outage)
        tokens = self.window.queue.tokens
        tokens.earlier, self._tokens_left = self._tokens_left, {}
        tokens.on_unsaved = lambda: self.lane.schedule(self, urgent=False)
        tokens.on_wanted = lambda: context.tokens_wanted(self)
        self._orphaned = []
        self.suspended = Suspended(context)
        self.order = ShardOrder(lambda: context.flows)
        self.draining, self.closed = draining, False
        context.observe(ShardClaimed(self.shard_id, epoch))
        self.changed()

    def lose(self, reason: str) -> None:
        """Ends a claim that is lost or can't be relied on (rule 3): drops the window and refuses the waiting clients."""
        window = self.window
        if window is None:
            return
        error = ShardMoved(f"shard {self.shard_id} is changing its owner; nothing was written, try again")
        self.lost_at_us = self._context.beat_at_us
        # First, so that a client that gets the error and retries at once is refused as well.
        self.window = None
        window.monitors.forget()
        window.refuse_clients(error, self._context.clock.boottime_us())
        self._orphaned = [attempt for attempts in window.in_flight.values() for attempt in attempts]
        self._tokens_left = window.queue.tokens.left()
        self.recount()
        self._context.observe(ShardLost(self.shard_id, window.epoch, reason))
        self._notify_lost(self, reason)

    def forget_attempt(self, attempt: InFlightAttempt) -> None:
        """Discards an orphaned attempt that ended while the shard was not owned."""
        if attempt in self._orphaned:
            self._orphaned.remove(attempt)

    def move_on(self, row: Row) -> None:
        """Has what becomes of a schedule's or monitor's late row written. It must be deferred."""
        assert self.window is not None
        self.window.move_on(row)
        self.lane.schedule(self, urgent=False)

    def note_suspension(self, row: Row, reason: str) -> None:
        """Has the queued suspension of a row written, and remembers its reason."""
        self.lane.schedule(self, urgent=False)
        self.suspended.note(reason)
        self.order.suspended(row, reason)
        self._context.observe(TimerSuspended(self.shard_id, row.key[1], reason))

    # ------------------------------------------------------------------ writes

    def accept(self, *ops: WriteOp) -> None:
        """Queues writes for the next batch. Raises ShardMoved unless the shard is owned here, and not at the end of a
        hand-over."""
        window = self._open_window()
        for op in ops:
            if type(op.change) is Ping:
                if (row := self._noted(window, op.uuid, op.change)) is not None:
                    op.answer(row)
                    continue
                self._note_lapse(window)
            window.accept(op)
        self.lane.schedule(self, urgent=True, writes=len(ops))

    def take_ping(self, uuid: bytes, ping: Ping) -> bool:
        """Takes a monitor's ping that need not be written now; whether it has."""
        return self.window is not None and not self.closed and self._noted(self.window, uuid, ping) is not None

    def _noted(self, window: Window, uuid: bytes, ping: Ping) -> Row | None:
        """The monitor's row after a ping that need not be written now: while the node lease lasts, no other node owns the
        shard (rule 33)."""
        context = self._context
        if context.clock.boottime_us() >= context.lease_until or window.is_changing(uuid):
            return None
        return window.monitors.note(uuid, ping, context.planning_us())

    def _note_lapse(self, window: Window) -> None:
        """A report may come before the heartbeat that finds out that the node was frozen, and is judged at once: while the
        lease has expired, the time since the last heartbeat is an outage."""
        context = self._context
        if context.clock.boottime_us() >= context.lease_until:
            window.monitors.add_outage(Outage(context.beat_at_us, context.clock.now_us()))

    def accept_creates(self, creates: Creates, deadline_us: int) -> None:
        """Likewise plain creates, which are not written after that boot time."""
        self._open_window().accept_creates(creates, deadline_us)
        self.lane.schedule(self, urgent=True, writes=len(creates.uuids))

    def _open_window(self) -> Window:
        if self.window is None or self.closed:
            raise ShardMoved(f"shard {self.shard_id} is changing its owner; nothing was written, try again")
        return self.window

    def try_refused_again(self) -> None:
        """Queues again what the store refused `rejected_write_retry_interval` ago or longer."""
        window, context = self.window, self._context
        if window is not None:
            until_us = context.clock.boottime_us() - context.limits.rejected_write_retry_interval_us
            if window.try_refused_again(until_us):
                self.lane.schedule(self, urgent=False)

    def holds(self, batch: Batch) -> bool:
        """Whether the claim under which the batch was assembled is still this node's."""
        return self.window is not None and self.window.epoch == batch.store.epoch

    # ------------------------------------------------------------------ memory

    def recount(self) -> None:
        """Updates the node's memory account with what this window holds, and shrinks the window if the node's limits are
        exceeded."""
        self._count()
        context, limits = self._context, self._context.limits
        timers, size = context.window_timers + context.awaited, context.window_bytes + context.awaited_bytes
        if timers > limits.window_timers_max or size > limits.window_bytes_max:
            self._shrink()

    def _count(self) -> None:
        window, context, former = self.window, self._context, self._counted
        now = (len(window.rows), window.waiting.bytes, *window.awaited()) if window is not None else (0, 0, 0, 0)
        context.window_timers += now[0] - former[0]
        context.window_bytes += now[1] - former[1]
        context.awaited += now[2] - former[2]
        context.awaited_bytes += now[3] - former[3]
        self._counted = now

    def _shrink(self) -> None:
        """Rule 13: a window above its fair share, with its results that are not durable yet, drops its latest rows until it
        has three quarters of the share; but it keeps a quarter of the share, as many as may be deferred there: else deferred
        rows, the earliest, would have it read all of its results again."""
        window, context = self.window, self._context
        if window is None or not window.rows:
            return
        share, share_bytes = context.share_timers, context.share_bytes
        rows, size = len(window.rows), window.waiting.bytes
        waiting, waiting_bytes = window.awaited()
        rows_max, bytes_max = rows, size
        if rows + waiting > share:
            rows_max = max(share * 3 // 4 - waiting, share // DEFERRED_PART)
        if size + waiting_bytes > share_bytes:
            bytes_max = max(share_bytes * 3 // 4 - waiting_bytes, share_bytes // DEFERRED_PART)
        if rows_max < rows or bytes_max < size:
            window.truncate(window.waiting.fitting(rows_max, bytes_max))
            self._count()


def too_much_unwritten(shards: Iterable[Shard], limits: EngineLimits) -> str:
    """How much waits in a node's memory to be written, if that exceeds what may wait while the store takes no writes; else
    empty."""
    found = [shard.window.unwritten() for shard in shards if shard.window is not None]
    count, size = sum(count for count, _ in found), sum(size for _, size in found)
    if count < limits.uncommitted_results_max and size < limits.window_bytes_max:
        return ""
    return f"{count} results of attempts ({size} bytes) wait to be written"
