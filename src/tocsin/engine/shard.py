"""One shard on this node: its window while it is owned, and what happens to it from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tocsin.engine.rows import Batch, InFlightAttempt, WriteOp
from tocsin.engine.window import Window
from tocsin.model.errors import ShardMoved, ShardUnavailable, TocsinError
from tocsin.ports.observer import ShardClaimed, ShardLost, WriteRefused
from tocsin.ports.store import KEY_MIN, Found

if TYPE_CHECKING:
    from tocsin.engine.committer import CommitLane
    from tocsin.engine.context import Context
    from tocsin.engine.limits import EngineLimits


class Suspended:
    """Why timers of the shard are suspended in the store, and how far a sweep has looked for those that may come back. A
    round of the store's suspended rows may take several sweeps."""

    __slots__ = ("after", "found", "lately", "reasons")

    def __init__(self) -> None:
        #: None: not known, there has been no whole round since the claim.
        self.reasons: set[str] | None = None
        #: The key after which the round goes on.
        self.after = KEY_MIN
        #: Reasons of rows that this round has seen and left where they are.
        self.found: set[str] = set()
        #: Reasons of rows suspended since the round began, which it may have missed.
        self.lately: set[str] = set()

    def note(self, reason: str) -> None:
        """A row is about to be suspended for this reason."""
        self.lately.add(reason)
        if self.reasons is not None:
            self.reasons.add(reason)


class Shard:
    """The window and its surroundings. `changed` is called after whatever may let something ring or be loaded."""

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
        #: While the shard is handed over: nothing rings any more.
        self.draining = False
        #: At the end of that: nothing is accepted any more, either.
        self.closed = False
        self.suspended = Suspended()
        self._context = context
        self._changed = changed
        self._lost = lost
        self._orphaned: list[InFlightAttempt] = []
        self._counted = (0, 0)
        self._last_epoch = 0
        self._fetched: tuple[list[bytes], dict[bytes, Found]] = ([], {})

    # ------------------------------------------------------------------ ownership

    def own(self, epoch: int) -> None:
        """The claim succeeded: an empty window, complete up to nothing; attempts still under way are remembered."""
        context = self._context
        self.window = Window(
            self.shard_id,
            epoch,
            context.incarnation,
            orphaned=self._orphaned,
            range_delete=context.store.capabilities.range_delete,
        )
        self._orphaned = []
        self._fetched = ([], {})
        self._last_epoch = epoch
        self.suspended = Suspended()
        self.draining = self.closed = False
        context.observe(ShardClaimed(self.shard_id, epoch))
        self._changed(self)

    @property
    def last_epoch(self) -> int:
        """The epoch of the latest claim that this node used or renounced; no claim up to it must ever be used again."""
        return self._last_epoch

    def renounce(self, epoch: int) -> None:
        """A claim that was not used is given back, and never will be used."""
        self._last_epoch = max(self._last_epoch, epoch)

    def lose(self, reason: str) -> None:
        """The claim is gone, or can't be relied on: window and finished are dropped, clients that wait hear it (rule 3)."""
        window = self.window
        if window is None:
            return
        error = ShardMoved(f"shard {self.shard_id} is changing hands; try again")
        # First, so that who hears the error and asks again at once is refused as well.
        self.window = None
        window.refuse_clients(error, self._context.clock.boottime_us())
        self._orphaned = [attempt for attempts in window.in_flight.values() for attempt in attempts]
        self._recount()
        self._context.observe(ShardLost(self.shard_id, window.epoch, reason))
        self._lost(self, reason)

    def forget_attempt(self, attempt: InFlightAttempt) -> None:
        """An attempt ended while the shard was not owned."""
        if attempt in self._orphaned:
            self._orphaned.remove(attempt)

    def not_sent(self, attempt: InFlightAttempt) -> None:
        """An attempt was never made: its timer waits again, and has to be loaded again if memory was short."""
        if self.window is None:
            self.forget_attempt(attempt)
            return
        self.window.not_sent(attempt)
        self._changed(self)

    # ------------------------------------------------------------------ writes

    @property
    def accepts_writes(self) -> bool:
        """Whether writes are accepted: not while it isn't owned, or is being handed over and all but gone."""
        return self.window is not None and not self.closed

    def accept(self, op: WriteOp) -> None:
        """Takes a write; ShardMoved unless it `takes` any."""
        if self.window is None or self.closed:
            raise ShardMoved(f"shard {self.shard_id} is changing hands; try again")
        self.window.accept(op)
        self.lane.schedule(self, urgent=True)

    async def fetch(self, rows_max: int) -> None:
        """Asks the store for what the next batch has to know and memory doesn't."""
        window = self.window
        uuids = window.to_fetch(rows_max) if window is not None else []
        found: dict[bytes, Found] = {}
        if uuids:
            found = await self._context.bounded(self._context.store.fetch(self.shard_id, uuids))
        self._fetched = (uuids, found) if self.window is window else ([], {})

    def assemble(self, rows_max: int, finished_max: int) -> Batch | None:
        """The next batch, or None if there is nothing to write."""
        window = self.window
        if window is None:
            return None
        uuids, found = self._fetched
        self._fetched = ([], {})
        clock, limits = self._context.clock, self._context.limits
        batch = window.assemble(
            now_us=clock.now_us(),
            boot_us=clock.boottime_us(),
            rows_max=rows_max,
            bytes_max=limits.batch_bytes_max,
            exact_after_us=0 if self.draining else limits.exact_delete_after_us,
            history_rule=self._context.history_rule,
            fetched=found,
            fetched_uuids=uuids,
            finished_max=finished_max,
        )
        for uuid, reason in batch.unusable:
            self._context.observe(WriteRefused(self.shard_id, uuid, reason))
        return batch if batch.ops or batch.finished else None

    def committed(self, batch: Batch) -> None:
        """The batch is durable."""
        window = self.window
        if window is None or window.epoch != batch.store.epoch:
            self._answer(batch, ShardUnavailable(f"shard {self.shard_id} changed hands; try again"))
            return
        window.committed(batch, self._context.clock.boottime_us())
        self._recount()
        for op, answer in zip(batch.ops, batch.answers, strict=True):
            if op.reply is not None:
                op.reply(answer)
        self._changed(self)

    def abandon(self, batch: Batch) -> None:
        """The batch certainly had no effect."""
        if self.window is not None and self.window.epoch == batch.store.epoch:
            self.window.abandon(batch)
        else:
            self._answer(batch, ShardMoved(f"shard {self.shard_id} changed hands; try again"))

    def refuse_first(self, op: WriteOp, error: TocsinError) -> None:
        """The first pending operation fails by itself: it is taken out."""
        if self.window is not None and self.window.pending and self.window.pending[0] is op:
            self.window.pending.popleft()
            self.window.refuse(op, error, self._context.clock.boottime_us())

    def try_refused_again(self) -> None:
        """What the store refused a while ago is put into the next batch again."""
        window, context = self.window, self._context
        if window is not None:
            until_us = context.clock.boottime_us() - context.limits.refused_interval_us
            if window.try_refused_again(until_us):
                self.lane.schedule(self, urgent=False)

    def refuse_clients(self, error: TocsinError) -> None:
        """Every waiting client hears the error."""
        if self.window is not None:
            self.window.refuse_clients(error, self._context.clock.boottime_us())

    def time_out_clients(self, batch: Batch, boot_us: int) -> None:
        """Those clients whose time is over hear that nobody knows yet what becomes of their writes; the batch goes on."""
        for op in batch.ops:
            if op.reply is not None and op.deadline_us is not None and op.deadline_us <= boot_us:
                reply, op.reply = op.reply, None
                reply(
                    ShardUnavailable(
                        "the store takes longer than the request's time; whether it was written is unknown"
                    )
                )

    def expire(self, boot_us: int) -> None:
        """Clients' writes whose time is over and that are in no batch are dropped, as the next batch would."""
        if self.window is not None:
            self.window.expire(boot_us)

    def fenced(self, batch: Batch) -> None:
        """The fence refused the batch: another owner has the shard."""
        self._answer(batch, ShardMoved(f"shard {self.shard_id} belongs to another node now; try again"))
        if self.window is not None and self.window.epoch == batch.store.epoch:
            self.lose("fenced")

    def outcome_unknown(self, batch: Batch) -> None:
        """The batch may or may not be durable, or become it: the claim counts as lost."""
        self._answer(batch, ShardUnavailable("whether it was written is unknown; try again"))
        if self.window is not None and self.window.epoch == batch.store.epoch:
            self.lose("unknown_outcome")

    def _answer(self, batch: Batch, error: TocsinError) -> None:
        for op in batch.ops:
            if op.reply is not None:
                op.reply(error)

    # ------------------------------------------------------------------ memory

    def recount(self) -> None:
        """Tells the node's account what this window holds now."""
        self._recount()

    def _recount(self) -> None:
        window = self.window
        now = (len(window.rows), window.bytes) if window is not None else (0, 0)
        self._context.window_timers += now[0] - self._counted[0]
        self._context.window_bytes += now[1] - self._counted[1]
        self._counted = now
        limits = self._context.limits
        if (
            self._context.window_timers > limits.window_timers_max
            or self._context.window_bytes > limits.window_bytes_max
        ):
            self._shrink()

    def _shrink(self) -> None:
        """Rule 13: a window above its fair share drops its latest rows, down to three quarters of the share."""
        window, context = self.window, self._context
        if window is None or not window.rows:
            return
        share, share_bytes = context.share_timers, context.share_bytes
        keep = len(window.rows)
        if keep > share:
            keep = max(share * 3 // 4, 1)
        if window.bytes > share_bytes:
            keep = min(keep, max(len(window.rows) * 3 * share_bytes // (4 * window.bytes), 1))
        if keep < len(window.rows):
            window.truncate(keep)
            self._context.window_timers += len(window.rows) - self._counted[0]
            self._context.window_bytes += window.bytes - self._counted[1]
            self._counted = (len(window.rows), window.bytes)


def too_much_unwritten(shards: Iterable[Shard], limits: EngineLimits) -> str:
    """What waits in a node's memory to be written, if it is more than may while the store takes no writes."""
    found = [shard.window.unwritten() for shard in shards if shard.window is not None]
    count, size = sum(count for count, _ in found), sum(size for _, size in found)
    if count < limits.unwritten_results_max and size < limits.window_bytes_max:
        return ""
    return f"{count} results of {size} bytes wait to be written"
