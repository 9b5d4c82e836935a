"""Dispatches due timers in key order, within the limits of node, namespaces and destinations. No task per timer."""

from __future__ import annotations

import asyncio

from tocsin.model.batch import CallbackBatch
from tocsin.model.namespace import Namespace
from tocsin.model.timer import UNUSABLE, Timer
from tocsin.ports.forward import Obstacle
from tocsin.ports.observer import DispatchPaused, DispatchResumed
from tocsin.timers.engine.admission import TURNS_MAX, Admission
from tocsin.timers.engine.alarm import Alarm
from tocsin.timers.engine.attempt import HandedOverResults, end_expired
from tocsin.timers.engine.batching import Batches, batch_rule
from tocsin.timers.engine.call_flows import CallQueue
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.destination import Destination, DestinationPath, Place, Queue
from tocsin.timers.engine.flow_control import FlowControl
from tocsin.timers.engine.flow_states import KeyState
from tocsin.timers.engine.recurring import gives_way
from tocsin.timers.engine.rows import HELD, Row
from tocsin.timers.engine.shard import Shard
from tocsin.timers.engine.slots import Slots

#: Rows that wait for a busy destination after one look at their flow's key, and after how long it is looked at again: while
#: such a destination answers, what leaves it brings more, and each of those rows may have to return to the key.
_PASSED_MAX, _PASSED_CHECK_US = 16, 1_000_000


class Dispatcher:
    """The node's dispatcher. It starts paused, and fires nothing until `resume`."""

    def __init__(self, context: Context, results: HandedOverResults, total_shards: int) -> None:
        self.results = results
        self.context = context
        self.flows = FlowControl(context, self, total_shards)
        self.admission = Admission(context, self._nothing_waits_at, self.reopened)
        self.batches = Batches(self)
        self._alarm = Alarm(context.clock, self._woken, context.wake_up)
        context.pauses_changed = self.admission.apply_pauses
        self._starved: dict[Shard, None] = {}
        # Shards with more due timers that wait for a turn of the event loop, and whether the next turn is scheduled.
        self._continuing: dict[Shard, None] = {}
        self._turn_scheduled = False
        self.shards: dict[int, Shard] = {}
        #: While the node stops: the boot time until which it waits for attempts. None is begun that may last longer.
        self.waits_until_us: int | None = None
        self._paused: str | None = "starting"
        self._paused_at_us = self._lease_until = self._clock_base = 0

    # ------------------------------------------------------------------ permission

    @property
    def paused_reason(self) -> str | None:
        """Why nothing fires now; None while timers fire."""
        if self._paused is not None:
            return self._paused
        return None if self.context.clock.boottime_us() < self._lease_until else "lease"

    @property
    def paused_since_us(self) -> int:
        """Since when nothing fires, by the wall clock; only while `paused_reason` is set."""
        return self._lapsed_us() if self._paused is None else self._paused_at_us

    def _lapsed_us(self) -> int:
        """When the lease ended, by the wall clock: perhaps before anybody noticed it."""
        clock = self.context.clock
        return clock.now_us() - max(clock.boottime_us() - self._lease_until, 0)

    @property
    def in_flight(self) -> int:
        """Attempts in flight."""
        return self.admission.in_flight

    @property
    def waiting(self) -> int:
        """Due timers deferred in memory until there is a slot. Some may have been changed since."""
        return self.admission.waiting

    def pause(self, reason: str, detail: str = "") -> None:
        """Stops firing until `resume`."""
        if self._paused != reason:
            self._paused = reason
            self._paused_at_us = self._lapsed_us() if reason == "lease" else self.context.clock.now_us()
            self.context.observe(DispatchPaused(reason, detail))

    def renew(self, lease_until: int) -> None:
        """Extends the node lease: the node may dispatch until this boot time (rule 6)."""
        self._lease_until = lease_until

    def resume(self, clock_base_us: int) -> None:
        """Lease and clock are valid: fires what is due.

        `clock_base_us` is the wall clock minus the boot time clock at the moment for which the wall clock was confirmed, so
        that a jump since then is detected.
        """
        self._clock_base = clock_base_us
        if self._paused is not None:
            reason, self._paused = self._paused, None
            self.context.observe(DispatchResumed(reason))
        # Answers that arrived during the pause freed slots for none of these.
        self._starved.clear()
        for shard in list(self.shards.values()):
            self.dispatch_due(shard)
        for destination in list(self.admission.destinations.values()):
            self.serve_waiting(destination)
        self.flows.wake_all()

    def clock_moved(self, by_us: int) -> None:
        """The wall clock was set forward on purpose: that is no jump. The time of the limits moves with it."""
        self._clock_base += by_us
        self.context.moved_us += by_us
        self.flows.clock_moved()

    def may_dispatch(self) -> bool:
        """Whether timers may fire now; if not, the node has paused."""
        return self._may_dispatch(self.context.clock.now_us())

    def _may_dispatch(self, now_us: int) -> bool:
        if self._paused is not None:
            return False
        boot = self.context.clock.boottime_us()
        if boot >= self._lease_until:
            self.pause("lease", "no heartbeat, or no read of the namespaces, has succeeded within its lease")
            return False
        drift = now_us - boot - self._clock_base
        if abs(drift) > self.context.limits.clock_skew_max_us:
            self.pause("clock_jump", f"the wall clock jumped by {drift / 1e6:.3f} s relative to the boot time clock")
            return False
        self.flows.asked_at_us = boot + self.context.moved_us
        return True

    # ------------------------------------------------------------------ dispatch

    def add(self, shard: Shard) -> None:
        """Begins to dispatch an owned shard's timers."""
        self.shards[shard.shard_id] = shard
        self.flows.own(shard)

    def remove(self, shard: Shard) -> None:
        """Stops dispatching a shard that is no longer owned."""
        self.shards.pop(shard.shard_id, None)
        self._starved.pop(shard, None)
        self._alarm.forget(shard.shard_id)
        self.admission.drop(shard)
        self.flows.disown(shard.shard_id)
        self.flows.wake_all()

    def dispatch_due(self, shard: Shard) -> None:
        """Fires what is due in the shard, as far as the limits allow, and sets the alarm for its next timer."""
        if self._continuing:
            self._continue(shard)
        else:
            self._dispatch_due_now(shard)

    def _dispatch_due_now(self, shard: Shard) -> None:
        window, order = shard.window, shard.order
        if window is None or shard.draining:
            return
        now = self.context.clock.now_us()
        if not self._may_dispatch(now):
            return
        limits = self.context.limits
        if order.active:
            self._resume_retries(shard, now)
        for _ in range(limits.dispatch_rows_per_turn):
            row = window.due(now)
            if row is None:
                break
            if self.admission.callbacks.free <= 0:
                self._starved[shard] = None
                break
            self._fire_or_defer(shard, row, now)
        else:
            self._continue(shard)
        key = window.next_key()
        if key is None or key[0] > now:
            at_us = key[0] if key is not None else None
            if order.active:
                order.all_dispatched(window, now)
                retry_us = order.next_retry_us()
                at_us = min((each for each in (at_us, retry_us) if each is not None), default=None)
            if at_us is not None:
                self._alarm.set(shard.shard_id, at_us, now)
        if order.ready:
            ready, order.ready = order.ready, {}
            for state in ready:
                self.flows.wake(state)

    def _resume_retries(self, shard: Shard, now: int) -> None:
        """Resumes timers of ordered keys whose next attempt is due."""
        window = shard.window
        assert window is not None
        ops = shard.order.due_retries(now, self.context.limits.dispatch_rows_per_turn)
        for op in ops:
            window.accept(op)
        if ops:
            shard.lane.schedule(shard, urgent=True)

    def _continue(self, shard: Shard) -> None:
        """More may be due: requests, answers and the other waiting shards get their turns first."""
        self._continuing[shard] = None
        self._schedule_turn()

    def _schedule_turn(self) -> None:
        if self._continuing and not self._turn_scheduled:
            self._turn_scheduled = True
            asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._turn_scheduled = False
        shard = next(iter(self._continuing))
        del self._continuing[shard]
        self._dispatch_due_now(shard)
        self._schedule_turn()

    def _woken(self, shard_id: int) -> None:
        shard = self.shards.get(shard_id)
        if shard is not None:
            self.dispatch_due(shard)

    def _fire_or_defer(self, shard: Shard, row: Row, now: int) -> None:
        """Fires a due row, or defers it until there is a slot for it, or suspends it (rule 14)."""
        window = shard.window
        assert window is not None
        timer = row.timer
        stops = self.waits_until_us is not None and not self._ends_in_time(row)
        if stops or (timer.schedule is not None and self._waits(shard, row, now)):
            window.defer()
            return
        if timer.monitor is not None:
            window.defer()
            if timer.monitor.definition.schedule is not None:
                self.context.look(shard, row)
            elif not window.is_changing(row.key[1]):
                shard.move_on(row)
            return
        namespace = self.context.namespaces.get(timer.namespace)
        if namespace is not None and namespace.held:
            window.defer()
            self._suspend(shard, row, f"namespace:{timer.namespace}")
            return
        if timer.expire_after_us is not None and end_expired(self.context, shard, row, now):
            return
        flow = self.flows.of(timer.namespace, timer.flow_key, namespace)
        rule, asked = batch_rule(timer, namespace, flow), True
        if flow is not None:
            # What finds no slot asks its flow when it gets one; but for the turn of an ordered key, which opens before.
            asked = flow.rule.ordered or rule is not None or flow.rule.flow.paused
            if flow.queues or (asked and not self._lets(shard, row, flow)):
                self._defer_to_flow(shard, row, flow)
                return
        self._begin_or_defer(shard, row, flow, rule, now, asked=asked, due=True)

    def _defer_to_flow(self, shard: Shard, row: Row, flow: KeyState) -> None:
        """Has a due row wait for its flow's key."""
        row.let_at = HELD
        (self._line_up if flow.rule.ordered else self._defer)(shard, row, flow)

    def _defer(self, shard: Shard, row: Row, place: Place, *, has_room: bool = False) -> None:
        """Has a due row wait at this place, or suspends it if there is no room for it. If the place `has_room`, the row's
        namespace has used up its share of the slots."""
        window = shard.window
        assert window is not None
        window.defer()
        self._defer_or_suspend(shard, row, place, has_room=has_room)

    def _defer_or_suspend(self, shard: Shard, row: Row, place: Place, *, has_room: bool) -> None:
        if not self.admission.defer_within_memory(shard, row, place, has_room=has_room):
            self._suspend(shard, row, self.admission.reason(row.timer.namespace, place, has_room=has_room))
            self.admission.settle(place)

    def _lets(self, shard: Shard, row: Row, flow: KeyState, *, in_turn: bool = False) -> bool:
        """Whether the order of the flow's key and its limits let the row begin. If not, the key is served when that may have
        changed."""
        assert shard.window is not None
        if flow.rule.ordered and not shard.order.lets(row, shard.window, flow):
            return False
        return self.flows.is_open(flow, in_turn=in_turn)

    def _line_up(self, shard: Shard, row: Row, flow: KeyState) -> None:
        """Has a due row of an ordered key wait there: in the store if earlier ones are stored, else in memory, if need be
        instead of the latest one that waits there."""
        window, order, admission = shard.window, shard.order, self.admission
        assert window is not None
        window.defer()
        order.recall(row)
        if order.is_behind_stored(row):
            self._suspend(shard, row, flow.reason)
            admission.settle(flow)
        elif admission.defer_within_memory(shard, row, flow, has_room=False):
            self._arrange(shard, row, flow)
        else:
            queue = flow.queues.get((shard, row.timer.namespace))
            if queue is None or not order.is_before(row, queue.rows[-1]):
                self._suspend(shard, row, flow.reason)
                admission.settle(flow)
                return
            later = admission.take(queue, last=True)
            admission.defer(shard, row, flow)
            self._arrange(shard, row, flow)
            if window.holds(later):
                self._suspend(shard, later, flow.reason)

    def _arrange(self, shard: Shard, row: Row, flow: KeyState) -> None:
        if shard.order.arrange(flow.queues[shard, row.timer.namespace]):
            self.flows.wake(flow)

    def _ends_in_time(self, row: Row) -> bool:
        """Whether an attempt that begins now certainly ends while the node, which stops, waits for it."""
        until_us = self.waits_until_us
        return until_us is None or self.context.clock.boottime_us() + row.timer.timeout_us <= until_us

    def _waits(self, shard: Shard, row: Row, now: int) -> bool:
        """Whether a schedule's due row must not fire: a client is changing it, it gives way and is planned again, or its time
        zone or expression can't be read here (rule 15). It has to be deferred until that is durable."""
        assert shard.window is not None
        if shard.window.is_changing(row.key[1]):
            return True
        try:
            if not gives_way(row.timer, row.key[1], now, self.context.calendars_of(row.timer.namespace)):
                return False
        except UNUSABLE as error:
            self._suspend(shard, row, f"bad_record: {type(error).__name__}: {error}")
            return True
        shard.move_on(row)
        return True

    def _suspend(self, shard: Shard, row: Row, reason: str) -> None:
        """Queues the suspension of a deferred row."""
        assert shard.window is not None
        shard.window.suspend(row, reason)
        shard.note_suspension(row, reason)

    # ------------------------------------------------------------------ what waits for a slot

    def serve_waiting(self, destination: Destination) -> None:
        """Gives a freed slot to what waits for this destination, then to what waits for any slot like it."""
        slots = destination.slots
        if not (destination.waiting_paths or slots.blocked or self._starved):
            return
        now = self.context.clock.now_us()
        if self._may_dispatch(now):
            if destination.waiting_paths:
                self._serve(destination, now)
            if slots.blocked:
                self._serve_blocked(slots, now)
            while self._starved and self.admission.callbacks.free > 0:
                shard = next(iter(self._starved))
                del self._starved[shard]
                self.dispatch_due(shard)

    def reopened(self, destination: Destination) -> None:
        """Serves what waits for a destination that may take requests again."""
        self.serve_waiting(destination)
        self.admission.settle_paths(destination)

    def _serve(self, destination: Destination, now: int) -> None:
        """Fires what waits for this destination, round robin over its paths, while it and they have room."""
        waiting, passed = destination.waiting_paths, 0
        while passed < len(waiting):
            path = next(iter(waiting))
            has_room = path.has_room
            if not has_room and (len(waiting) == 1 or not destination.has_room):
                # No other path has, either.
                break
            # It becomes the last of the paths.
            del waiting[path]
            waiting[path] = None
            passed = 0 if has_room and self._serve_path(path, now) else passed + 1

    def _serve_path(self, path: DestinationPath, now: int) -> bool:
        """Takes the first row of one of the path's queues in turn, whose namespace has room; whether one has."""
        queues, slots = path.queues, path.destination.slots
        for _ in range(len(queues)):
            name, queue = next(iter(queues.items()))
            # It becomes the last of the queues.
            del queues[name]
            queues[name] = queue
            if slots.has_slot(queue.namespace):
                self.fire_first(queue, now)
                return True
            slots.block(queue)
        return False

    def _serve_blocked(self, slots: Slots, now: int) -> None:
        """Fires what waits for its namespace's share of these slots, round robin over the namespaces.

        Namespaces that are not checked now are checked at the next answer; at the last answer, every namespace has slots.
        """
        blocked, passed = slots.blocked, 0
        while blocked and passed < min(len(blocked), TURNS_MAX):
            namespace = next(iter(blocked))
            queues = blocked.pop(namespace)
            if not slots.has_slot(namespace):
                blocked[namespace] = queues
                passed += 1
                continue
            queue = next(iter(queues))
            del queues[queue]
            if queues:
                blocked[namespace] = queues
            path = queue.place
            assert isinstance(path, DestinationPath)
            if path.has_room:
                self.fire_first(queue, now)
                if queue.rows and path.has_room:
                    slots.block(queue)
            passed = 0

    def fire_first(self, queue: Queue, now: int, *, in_turn: bool = False) -> bool:
        """Fires the first row of the queue if it is still current and due. If something else that it needs is closed, it
        waits there; False then. `in_turn`: its flow's key has its turn."""
        row, shard, place, done = self.admission.take(queue), queue.shard, queue.place, True
        namespace = self.context.namespaces.get(row.timer.namespace)
        if self._may_fire_still(shard, row, namespace, now):
            flow = self.flows.of(row.timer.namespace, row.timer.flow_key, namespace)
            # Whoever serves a flow's key has asked it.
            if not (flow is None or flow is place or self._lets(shard, row, flow, in_turn=in_turn)):
                row.let_at = HELD
                self.admission.defer(shard, row, flow)
                if flow.rule.ordered:
                    shard.order.arrange(flow.queues[shard, row.timer.namespace])
                done = False
            else:
                if row.let_at == HELD:
                    row.let_at = now
                rule = batch_rule(row.timer, namespace, flow)
                if isinstance(place, DestinationPath):
                    # Whoever serves a path has made sure that it and the namespace have a slot, or a batch has.
                    if rule is None or not self.batches.join(shard, row, flow, rule, now):
                        self.batches.begin(shard, row, place, flow, rule, now, waited=True)
                    if flow is not None and flow.queues:
                        self.flows.wake(flow)
                    return True
                done = self._begin_or_defer(shard, row, flow, rule, now, asked=True, due=False)
        if isinstance(place, DestinationPath):
            self._bring_next(row, namespace)
        # The queue may have been the last one of its place.
        self.admission.settle(place)
        return done

    def _may_fire_still(self, shard: Shard, row: Row, namespace: Namespace | None, now: int) -> bool:
        """Whether a row that was deferred is still current and due. If only its next turn can decide that, it returns to the
        window."""
        window, timer = shard.window, row.timer
        if window is None or shard.draining or not window.holds(row):
            return False
        expires_at = None if timer.expire_after_us is None else timer.expires_at
        if (
            row.key[0] > now
            or (namespace is not None and namespace.held)
            or (expires_at is not None and now > expires_at)
        ):
            # No longer due, or its namespace was paused or the timer expired in the meantime.
            if row.let_at == HELD:
                row.let_at = now
            window.put_back(row)
            self._alarm.set(shard.shard_id, row.key[0], now)
            return False
        if self.waits_until_us is not None and not self._ends_in_time(row):
            return False
        return timer.schedule is None or not self._waits(shard, row, now)

    def _bring_next(self, row: Row, namespace: Namespace | None) -> None:
        """The row has left its destination without an attempt. It may have been the one that had come from its flow's key."""
        flow = self.flows.of(row.timer.namespace, row.timer.flow_key, namespace)
        if flow is not None and flow.queues:
            self.flows.wake(flow)
        elif flow is not None:
            # It may be known only because it was asked for.
            self.flows.settle(flow)

    def _begin_or_defer(
        self,
        shard: Shard,
        row: Row,
        flow: KeyState | None,
        rule: CallbackBatch | None,
        now: int,
        *,
        asked: bool,
        due: bool,
    ) -> bool:
        """Begins an attempt of a row, or defers it: at its destination or, if that has a slot, at its flow, if that was not
        `asked` and is closed. False then. `due`: the row has waited nowhere yet."""
        if rule is not None and self.batches.join(shard, row, flow, rule, now):
            return True
        path, admission = self.admission.path(row.timer), self.admission
        has_room = path.has_room
        if has_room and path.destination.slots.has_slot(row.timer.namespace):
            if flow is None or asked or self.flows.is_open(flow):
                self.batches.begin(shard, row, path, flow, rule, now)
                return True
            self._defer_to_flow(shard, row, flow)
            admission.settle(path)
            return False
        ordered = flow is not None and flow.rule.ordered
        if ordered:
            # The others wait for it, as if it had begun.
            shard.order.give_turn(row)
        if due:
            self._defer(shard, row, path, has_room=has_room)
        elif ordered:
            admission.defer(shard, row, path, has_room=has_room)
        else:
            # Others of its key follow it: without a bound, a destination that is down would take all the memory.
            self._defer_or_suspend(shard, row, path, has_room=has_room)
        return False

    def serve_flow(self, flow: KeyState, most: int, *, in_turn: bool = False) -> int:
        """Fires what waits for this key, round robin over the shards, while it is open and at most so many rows; how many
        began, or wait for their destination now. Those let others pass, unless the key is ordered."""
        now, fired, passed = self.context.clock.now_us(), 0, 0
        if not self._may_dispatch(now):
            return 0
        while fired < most and flow.queues:
            if flow.rule.ordered and not self._first_may_begin(flow):
                break
            if not self.flows.is_open(flow, in_turn=in_turn):
                break
            name, queue = next(iter(flow.queues.items()))
            # It becomes the last of the queues.
            del flow.queues[name]
            flow.queues[name] = queue
            if isinstance(queue, CallQueue):
                if queue.begin_first(in_turn=in_turn):
                    fired += 1
                elif len(flow.queues) == 1:
                    break
                continue
            begun, row = flow.begun, queue.rows[0]
            if self.fire_first(queue, now, in_turn=in_turn):
                fired += flow.begun - begun
                continue
            if flow.rule.ordered:
                break
            fired += 1
            passed += self.admission.path(row.timer).drains(self.context.clock.boottime_us())
            if passed >= _PASSED_MAX:
                self.flows.plan(flow, self.context.flow_time_us() + _PASSED_CHECK_US)
                break
        return fired

    def _first_may_begin(self, flow: KeyState) -> bool:
        """Whether the order of the key lets its first row here begin; also if that is outdated, and only has to leave."""
        queue = next(iter(flow.queues.values()))
        if isinstance(queue, CallQueue):
            return True
        row, window = queue.rows[0], queue.shard.window
        return window is None or not window.holds(row) or queue.shard.order.lets(row, window, flow)

    def put_back(self, queue: Queue) -> None:
        """Returns all rows of the queue to their window, as if they had just become due."""
        window = queue.shard.window
        while queue.rows:
            row = self.admission.take(queue)
            if window is not None and window.holds(row):
                row.let_at = self.context.clock.now_us()
                window.put_back(row)

    def _nothing_waits_at(self, place: Place) -> None:
        if isinstance(place, KeyState):
            self.flows.settle(place)

    def obstacle(self, timer: Timer) -> tuple[Obstacle, str]:
        """What keeps the timer from a slot now, apart from its instant, and the name of its destination or flow."""
        if (closed := self.flows.obstacle(timer.namespace, timer.flow_key)) is not None:
            return closed
        name = self.context.destination_of(timer.namespace, timer.url)
        return self.admission.obstacle(timer.namespace, name, timer.url), name

    # ------------------------------------------------------------------ what is suspended

    def trim(self, shard: Shard) -> None:
        """Call it periodically: suspends what the shard defers beyond its share of memory, which shrinks when the node gets
        more shards, and forgets destinations that are no longer needed."""
        for row, place in (gone := self.admission.excess(shard)):
            self._suspend(shard, row, place.reason)
            self.admission.settle(place)
        if gone:
            self.flows.wake_all()
        self.admission.forget_idle()

    def close(self) -> None:
        """Stops firing, and cancels the alarms."""
        self._paused = "stopped"
        self.batches.close()
        self._alarm.close()
        self.admission.close()
        self.flows.close()
