"""A node: its heartbeats and lease, its claims, and the window of the shard while it owns it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .rules import Mutant
from .values import (
    HEARTBEAT_INTERVAL,
    LOOK_AHEAD,
    MEMBER_TIMEOUT,
    NODE_LEASE,
    UUIDS,
    Attempt,
    Batch,
    Kind,
    Outcome,
    Write,
)
from .window import Window

if TYPE_CHECKING:
    from .world import World

_LOAD_BELOW_ROWS = 3
_PAGE_ROWS = 2


class View(NamedTuple):
    """What the node has read of the shard: epoch, owner and the owner's counter, which was first read at `since`."""

    epoch: int
    owner: int | None
    counter: int
    since: int


class Node:
    """One process at a time. `frozen`: it does nothing; `cut_off`: the database can't be reached from here."""

    def __init__(self, world: World, number: int) -> None:
        self.number = number
        self.skew = 0
        self.frozen = False
        self.cut_off = False
        self._world = world
        self._start()

    def _start(self) -> None:
        self.incarnation = self._world.new_incarnation()
        self.window: Window | None = None
        self.draining = False
        self.batches: list[Batch] = []
        self._attempts: list[Attempt] = []
        self._last_ok: int | None = None
        self._sent_at = -HEARTBEAT_INTERVAL
        self._counter = 0
        self._lapses = 0
        self._claim: object | None = None
        self._last_epoch = 0
        self.view: View | None = None

    def restart(self) -> None:
        """The process is killed, and another begins. Its clients learn nothing."""
        self._drop(Outcome.UNKNOWN)
        self._start()

    def __str__(self) -> str:
        return f"n{self.number}"

    @property
    def now(self) -> int:
        """The node's clock."""
        return self._world.ticks + self.skew

    # ------------------------------------------------------------------ heartbeats and lease

    def heartbeat(self) -> None:
        """Sends a heartbeat if it is time."""
        world = self._world
        if world.ticks - self._sent_at < HEARTBEAT_INTERVAL:
            return
        self._sent_at = sent = world.ticks
        self._counter += 1
        write = world.store.heartbeat(self.incarnation, self._counter)
        world.send(self, ("heartbeat",), write, lambda _: self._alive(sent))

    def _alive(self, sent: int) -> None:
        """A heartbeat was answered. If the lease has lapsed meanwhile, somebody may be about to claim the shard, whatever the
        database shows at this moment: the window and a claim under way are dropped, and the shard is claimed again."""
        lapsed = self._last_ok is not None and not self.in_touch
        world = self._world
        self._last_ok = max(sent, self._last_ok or sent)
        if not lapsed or world.mutant is Mutant.LAPSE_IGNORED:
            return
        world.note(self, "notices that its lease has lapsed")
        self._lapses += 1
        if world.mutant is Mutant.LAPSE_READS_OWNERSHIP and self.window is not None:
            state = (world.store.epoch, world.store.owner)
            if state == (self.window.epoch, self.incarnation):
                return
        self._drop(Outcome.UNKNOWN)

    @property
    def in_touch(self) -> bool:
        """Whether the node lease holds."""
        return self._last_ok is not None and self._world.ticks - self._last_ok < NODE_LEASE

    # ------------------------------------------------------------------ claims

    def observe(self) -> None:
        """Reads who owns the shard."""
        store, former = self._world.store, self.view
        counter = store.counters.get(store.owner, 0) if store.owner is not None else 0
        if former is not None and former[:3] == (store.epoch, store.owner, counter):
            return
        self.view = View(store.epoch, store.owner, counter, self._world.ticks)

    def claim(self) -> None:
        """Claims the shard if nobody owns it, its owner has long been silent, or the owner is this node without a window."""
        world, view = self._world, self.view
        if self.window is not None or self._claim is not None or view is None or not self.in_touch:
            return
        presumed_dead = None
        if view.owner == self.incarnation:
            if world.mutant is Mutant.UNKNOWN_CLAIM_USED and view.epoch > self._last_epoch:
                self._own(view.epoch)
                return
        elif view.owner is not None:
            timeout = NODE_LEASE // 2 if world.mutant is Mutant.MEMBER_TIMEOUT_BELOW_LEASE else MEMBER_TIMEOUT
            if world.ticks - view.since < timeout:
                return
            presumed_dead = (view.owner, view.counter)
        claim = self._claim = object()
        lapses = self._lapses
        write = world.store.claim(view.epoch, self.incarnation, presumed_dead)
        world.send(self, ("claim", view), write, lambda epoch: self._claimed(claim, lapses, epoch))

    def _claimed(self, claim: object, lapses: int, epoch: int | None) -> None:
        if self._claim is not claim:
            return
        self._claim = None
        if epoch is not None and lapses == self._lapses:
            self._own(epoch)

    def _own(self, epoch: int) -> None:
        world = self._world
        world.note(self, "owns epoch", epoch)
        world.ledger.repeats_excused |= epoch > 1
        self._last_epoch = epoch
        self.draining = False
        self.window = Window(
            epoch,
            self.incarnation,
            world.mutant,
            world.store.traits.range_delete,
            self._attempts,
            reports=world.reports,
        )
        self._attempts = []
        if world.mutant is Mutant.CLAIM_LOADS_FROM_NOW:
            self.window.horizon = (self.now - 1, UUIDS)

    def release(self) -> None:
        """Hands the shard over: no attempt begins any more, those in flight end, the last writes become durable, and then the
        claim is released. To be called until it is."""
        window, world = self.window, self._world
        if window is None:
            return
        self.draining = True
        if not window.idle or self.batches:
            return
        write = world.store.release(window.epoch, self.incarnation)
        if world.mutant is Mutant.FIRES_WHILE_RELEASING:
            world.send(self, ("release",), write, lambda _: self._drop(Outcome.UNKNOWN))
        else:
            self._drop(Outcome.UNKNOWN)
            world.send(self, ("release",), write, lambda _: None)

    def _drop(self, unanswered: Outcome) -> None:
        """Drops the window. What was in a batch without an answer has this outcome; what waited was certainly not written.
        Attempts go on."""
        window, self.window, self._claim = self.window, None, None
        if window is None:
            return
        for batch in self.batches:
            for op in batch.ops:
                op.answer(unanswered)
        for op in window.pending:
            op.answer(Outcome.REFUSED)
        self._attempts, self.batches, self.draining = window.attempts, [], False

    # ------------------------------------------------------------------ writes

    @property
    def accepts(self) -> bool:
        """Whether clients can write here."""
        return self.window is not None and not self.draining

    def accept(self, op: Write) -> None:
        """Takes a client's write."""
        window, stored, mutant = self.window, self._world.store.rows.get(op.uuid), self._world.mutant
        assert window is not None
        if mutant is Mutant.DELETE_BY_FORMER_KEY and (known := window.present(op.uuid) or stored) is not None:
            op.former_key = known.key
        answered_early = mutant is Mutant.ANSWERED_WHEN_ACCEPTED or (
            mutant is Mutant.FINISHED_ANSWERED_AT_ONCE and op.kind is Kind.DELETE and op.uuid in window.finished
        )
        if answered_early:
            op.answer(Outcome.DURABLE)
            if mutant is Mutant.FINISHED_ANSWERED_AT_ONCE:
                return
        window.accept(op)

    def write(self, *, exact: bool) -> None:
        """Sends the next batch, when the former one was answered."""
        window, world = self.window, self._world
        if window is None or len(self.batches) >= 1 + (world.mutant is Mutant.TWO_BATCHES_AT_ONCE):
            return
        batch = window.assemble(world.store.fetch, exact=exact)
        if batch is not None:
            self.batches.append(batch)
            world.send(self, ("batch", batch), world.store.apply(batch), lambda outcome: self._written(batch, outcome))

    def _written(self, batch: Batch, outcome: Outcome) -> None:
        if batch not in self.batches:
            return
        assert self.window is not None
        if outcome is Outcome.DURABLE:
            self.batches.remove(batch)
            self.window.committed(batch)
            self._world.check()
        else:
            self._drop(outcome)

    def give_up_waiting(self) -> None:
        """No answer in time. The outcome of a batch is unknown, and so is that of a claim: the shard is claimed again."""
        window, mutant = self.window, self._world.mutant
        self._claim = None
        if window is None or not self.batches:
            return
        self._world.ledger.repeats_excused = True
        if mutant is Mutant.UNKNOWN_OUTCOME_IGNORED:
            ops = [op for batch in self.batches for op in batch.ops]
            self.batches = []
            for op in ops:
                if op.by_client:
                    window.pending.insert(0, op)
                    window.refuse(op)
                else:
                    window.pending.append(op)
            return
        self._drop(Outcome.UNKNOWN)
        if mutant is Mutant.UNKNOWN_OUTCOME_RELOADS:
            self._own(window.epoch)

    # ------------------------------------------------------------------ loads, attempts

    def load(self) -> None:
        """Takes the next step of a load: announces it, reads its page, merges it."""
        window = self.window
        if window is None:
            return
        if window.load is None:
            if len(window.rows) < _LOAD_BELOW_ROWS:
                window.announce_load((self.now + LOOK_AHEAD, UUIDS))
        elif window.load.page is None:
            window.load.page = self._world.store.page(window.load.after, window.load.up_to, _PAGE_ROWS)
        else:
            window.loaded()

    def fire(self) -> None:
        """Begins the next attempt that is due, while the lease holds."""
        window, world = self.window, self._world
        if window is None or (not self.in_touch and world.mutant is not Mutant.NO_LEASE):
            return
        if self.draining and world.mutant is not Mutant.FIRES_WHILE_RELEASING:
            return
        row = window.next_due(self.now)
        if row is None:
            return
        attempt = window.dispatch(row)
        attempt.waits = world.collects
        if attempt.waits:
            world.note(self, "collects", row)
        else:
            self._begin(attempt)

    def _begin(self, attempt: Attempt) -> None:
        self._world.note(self, "fires", attempt.row, "in epoch", attempt.epoch)
        self._world.ledger.fires(attempt, self.now)

    def send_collected(self) -> None:
        """Sends the calls that were collected, but for those that may not begin any more."""
        window = self.window
        attempts = self._attempts if window is None else window.attempts
        for attempt in [each for each in attempts if each.waits]:
            attempt.waits = False
            if self._may_begin(attempt):
                self._begin(attempt)
            elif window is None:
                attempts.remove(attempt)
            else:
                self._world.note(self, "does not send", attempt.row)
                window.not_sent(attempt)

    def _may_begin(self, attempt: Attempt) -> bool:
        mutant = self._world.mutant
        current = not attempt.stale or mutant is Mutant.ITEM_SENT_THOUGH_REPLACED
        owned = (self.window is not None and not self.draining) or mutant is Mutant.ITEM_SENT_THOUGH_NOT_OWNED
        in_touch = self.in_touch or mutant is Mutant.ITEM_SENT_WITHOUT_LEASE
        return current and owned and in_touch and attempt.row.key[0] <= self.now

    def answer(self, retry_after: int | None) -> None:
        """One of the attempts ends."""
        window, world = self.window, self._world
        attempts = self._attempts if window is None else window.attempts
        begun = [each for each in attempts if not each.waits]
        if not begun:
            return
        attempt = world.random.choice(begun)
        world.note(attempt.row, "is done" if retry_after is None else "is to be retried")
        if retry_after is None:
            world.ledger.ends(attempt)
        if window is None:
            attempts.remove(attempt)
        else:
            window.answered(attempt, None if retry_after is None else self.now + retry_after)

    # ------------------------------------------------------------------ events

    def publish(self) -> None:
        """Sends the next event to the sink, or once more the one that the sink has not acknowledged."""
        window, world = self.window, self._world
        if window is None:
            return
        event = window.sent
        if event is None or world.mutant is Mutant.EVENTS_SENT_TOGETHER:
            event = world.store.first_event(window.events_read, window.events_durable) or event
        if event is None:
            return
        window.sent, window.events_read = event, event.key
        if world.mutant is Mutant.EVENT_DELETED_UNACKNOWLEDGED:
            window.acknowledged(event)
        world.send(self, ("event", event), world.sink(event), lambda _: window.acknowledged(event))
