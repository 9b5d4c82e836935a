"""Rings due timers in key order, under a global and a per-destination limit. No task per timer."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from heapq import heappop, heappush

from tocsin.engine.attempts import conclude
from tocsin.engine.context import Context
from tocsin.engine.handover import HandedOver
from tocsin.engine.rows import Flight, Kind, Op, Row
from tocsin.engine.shard import Shard
from tocsin.model.answer import NoResponse, judge
from tocsin.ports.callback import Exchange, Ring
from tocsin.ports.observer import AttemptFinished, DispatchPaused, DispatchResumed, RowParked

#: Sleeps never exceed a second (rule 12): a wall clock that jumped is noticed by then.
_SLEEP_MAX_S = 1.0


class Destination:
    """What is in flight to one scheme, host and port, and what waits for it. `limit` shrinks while nobody answers."""

    __slots__ = ("in_flight", "limit", "name", "waiting")

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit
        self.in_flight = 0
        self.waiting: deque[tuple[Shard, Row]] = deque()


class Dispatcher:
    """The node's dispatcher. It rings nothing until `resume` was called, and nothing while paused."""

    def __init__(self, context: Context, results: HandedOver) -> None:
        self.results = results
        self._context = context
        self._destinations: dict[str, Destination] = {}
        self._in_flight = 0
        self._waiting_rows = 0
        self._waiting_bytes = 0
        self._starved: dict[Shard, None] = {}
        # Shards that wait for a turn, and whether the next turn is arranged for.
        self._continuing: dict[Shard, None] = {}
        self._turn_comes = False
        self._hungry: dict[Destination, None] = {}
        self._wakes: list[tuple[int, int]] = []
        self._wake_of: dict[int, int] = {}
        self.shards: dict[int, Shard] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0
        self._paused: str | None = "starting"
        self._lease_until = 0
        self._clock_base = 0

    # ------------------------------------------------------------------ permission

    @property
    def paused_reason(self) -> str | None:
        """Why nothing rings now; None while it rings."""
        if self._paused is not None:
            return self._paused
        return None if self._context.clock.boottime_us() < self._lease_until else "lease"

    @property
    def in_flight(self) -> int:
        """Callbacks under way."""
        return self._in_flight

    @property
    def waiting(self) -> int:
        """Due timers that wait for their destination's limit (some may have been changed or moved since)."""
        return self._waiting_rows

    def pause(self, reason: str, detail: str = "") -> None:
        """Nothing rings until `resume`."""
        if self._paused != reason:
            self._paused = reason
            self._context.observe(DispatchPaused(reason, detail))

    def renew(self, lease_until: int) -> None:
        """The node may dispatch until this boot time (rule 6)."""
        self._lease_until = lease_until

    def resume(self, clock_base_us: int) -> None:
        """Lease and clock are in order; whatever is due rings now. `clock_base_us` is the wall clock less the boot time
        clock at the moment whose wall clock was confirmed: a jump since then must not pass for confirmed."""
        clock = self._context.clock
        self._clock_base = clock_base_us
        if self._paused is not None:
            reason, self._paused = self._paused, None
            self._context.observe(DispatchResumed(reason))
        for shard in list(self.shards.values()):
            self.pump(shard)
        for destination in list(self._destinations.values()):
            self._next(destination, clock.now_us())

    def _may_dispatch(self, now_us: int) -> bool:
        if self._paused is not None:
            return False
        boot = self._context.clock.boottime_us()
        if boot >= self._lease_until:
            self.pause("lease", "no heartbeat reached the store for too long")
            return False
        drift = now_us - boot - self._clock_base
        if abs(drift) > self._context.limits.clock_skew_max_us:
            self.pause("clock_jump", f"the wall clock moved by {drift / 1e6:.3f} s against the boot time clock")
            return False
        return True

    # ------------------------------------------------------------------ dispatch

    def add(self, shard: Shard) -> None:
        """The shard is owned from now on."""
        self.shards[shard.shard_id] = shard

    def remove(self, shard: Shard) -> None:
        """The shard is owned no longer."""
        self.shards.pop(shard.shard_id, None)
        self._starved.pop(shard, None)
        self._wake_of.pop(shard.shard_id, None)
        for destination in self._destinations.values():
            kept = [entry for entry in destination.waiting if entry[0] is not shard]
            if len(kept) < len(destination.waiting):
                gone = [row for owner, row in destination.waiting if owner is shard]
                self._waiting_rows -= len(gone)
                self._waiting_bytes -= sum(row.size for row in gone)
                destination.waiting = deque(kept)

    def pump(self, shard: Shard) -> None:
        """Rings what is due in the shard, as far as the limits allow, and sets the alarm for what comes next."""
        if self._continuing:
            self._continue(shard)
        else:
            self._pump(shard)

    def _pump(self, shard: Shard) -> None:
        window = shard.window
        if window is None or shard.draining:
            return
        now = self._context.clock.now_us()
        if not self._may_dispatch(now):
            return
        limits = self._context.limits
        for _ in range(limits.dispatch_rows_per_turn):
            row = window.due(now)
            if row is None:
                break
            if self._in_flight >= limits.callbacks_in_flight_max:
                self._starved[shard] = None
                break
            self._go(shard, row, now)
        else:
            self._continue(shard)
        key = window.next_key()
        if key is not None and key[0] > now:
            self._alarm(shard.shard_id, key[0], now)

    def _continue(self, shard: Shard) -> None:
        """More may be due: requests and answers get their turn first, and the other shards that wait for theirs."""
        self._continuing[shard] = None
        self._arrange_turn()

    def _arrange_turn(self) -> None:
        if self._continuing and not self._turn_comes:
            self._turn_comes = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._turn_comes = False
        shard = next(iter(self._continuing))
        del self._continuing[shard]
        self._pump(shard)
        self._arrange_turn()

    def _go(self, shard: Shard, row: Row, now: int) -> None:
        """Rings a due row, or sets it aside for its destination, or has it parked (rule 14)."""
        window = shard.window
        assert window is not None
        timer = row.timer
        namespace = self._context.namespaces.get(timer.namespace)
        if namespace is not None and namespace.paused:
            self._park(shard, row, f"namespace:{timer.namespace}")
            return
        name = self._context.caller.destination(timer.url)
        destination = self._destinations.get(name)
        if destination is None:
            destination = Destination(name, self._context.limits.destination_in_flight_max)
            self._destinations[name] = destination
        if destination.in_flight < destination.limit:
            self._ring(shard, row, destination, now)
        elif self._may_wait(destination, row):
            window.set_aside()
            destination.waiting.append((shard, row))
            self._waiting_rows += 1
            self._waiting_bytes += row.size
        else:
            self._park(shard, row, f"destination:{name}")

    def _may_wait(self, destination: Destination, row: Row) -> bool:
        """Whether one more row may wait in memory. All that wait may fill half of the window: the other half is for what
        can go."""
        limits = self._context.limits
        return (
            len(destination.waiting) < limits.destination_waiting_max
            and self._waiting_rows < limits.window_timers_max // 2
            and self._waiting_bytes + row.size <= limits.window_bytes_max // 2
        )

    def _park(self, shard: Shard, row: Row, reason: str) -> None:
        window = shard.window
        assert window is not None
        window.set_aside()
        window.accept(Op(Kind.PARK, row.key[1], row.timer.namespace, expected=row.generation, reason=reason))
        shard.lane.poke(shard, urgent=False)
        shard.note_parked(reason)
        self._context.observe(RowParked(shard.shard_id, row.key[1], reason))

    def _ring(self, shard: Shard, row: Row, destination: Destination, now: int) -> None:
        window = shard.window
        assert window is not None
        flight = window.dispatch(row)
        timer = row.timer
        flight.attempt, flight.fired_at = timer.attempts + 1, now
        self._in_flight += 1
        destination.in_flight += 1
        namespace = self._context.namespaces.get(timer.namespace)
        self._context.caller.ring(
            Ring(
                timer.namespace,
                timer.id,
                timer.execute_at,
                now,
                flight.attempt,
                timer.payload,
                f"msg_{row.key[1].hex()}_{timer.firing}",
                timer.url,
                timer.method,
                timer.headers,
                timer.timeout_us,
                namespace.secret if namespace is not None else None,
                timer.traceparent,
            ),
            partial(self._done, shard, flight, destination),
        )

    # ------------------------------------------------------------------ answers

    def _done(self, shard: Shard, flight: Flight, destination: Destination, exchange: Exchange) -> None:
        context, limits = self._context, self._context.limits
        self._in_flight -= 1
        destination.in_flight -= 1
        now = context.clock.now_us()
        outcome = exchange.outcome
        timer = flight.row.timer
        verdict = judge(
            outcome,
            now_us=now,
            retry_after_us_max=limits.retry_after_max_us,
            instant_us_max=now + limits.execute_ahead_max_us,
            payload_bytes_max=limits.payload_bytes_max,
        )
        conclusion, word = conclude(
            timer,
            verdict,
            outcome,
            attempt=flight.attempt,
            fired_at=flight.fired_at,
            duration_us=exchange.duration_us,
            now_us=now,
            jitter=context.random.random(),
            limits=limits,
        )
        window = shard.window
        if flight.handed_over:
            self.results.bring(shard.shard_id, flight, conclusion)
        elif window is None:
            shard.forget_flight(flight)
            word = "superseded"
        elif window.answered(flight, conclusion, context.clock.boottime_us()):
            shard.lane.poke(shard, urgent=False)
        else:
            word = "superseded"
        lag = exchange.sent_at - flight.row.key[0] if exchange.sent_at is not None else None
        context.observe(
            AttemptFinished(
                shard.shard_id,
                timer.namespace,
                timer.id,
                flight.attempt,
                word,
                conclusion.timer.last_error,
                lag,
                exchange.duration_us,
                destination.name,
            )
        )
        self._learn(destination, isinstance(outcome, NoResponse))
        self._next(destination, now)

    def _learn(self, destination: Destination, silent: bool) -> None:
        """Additive increase, multiplicative decrease: who doesn't answer holds ever fewer of the node's slots."""
        limits = self._context.limits
        if silent:
            destination.limit = max(destination.limit // 2, limits.destination_in_flight_min)
        elif destination.limit < limits.destination_in_flight_max:
            destination.limit = min(destination.limit + 1, limits.destination_in_flight_max)

    def _next(self, destination: Destination, now: int) -> None:
        """The freed slot goes to who waits for this destination, then to the shards that wait for any slot."""
        limit = self._context.limits.callbacks_in_flight_max
        may = self._may_dispatch(now)
        if may:
            self._serve(destination, now)
        healthy = destination.limit == self._context.limits.destination_in_flight_max
        if healthy and not destination.waiting and destination.in_flight == 0:
            self._destinations.pop(destination.name, None)
        while may and self._hungry and self._in_flight < limit:
            hungry = next(iter(self._hungry))
            del self._hungry[hungry]
            self._serve(hungry, now)
        while may and self._starved and self._in_flight < limit:
            shard = next(iter(self._starved))
            del self._starved[shard]
            self.pump(shard)

    def _serve(self, destination: Destination, now: int) -> None:
        """Rings what waits for this destination, as far as it and the node have room."""
        waiting = destination.waiting
        while waiting and destination.in_flight < destination.limit:
            if self._in_flight >= self._context.limits.callbacks_in_flight_max:
                # None of its own answers may be to come that would bring it another turn.
                self._hungry[destination] = None
                return
            shard, row = waiting.popleft()
            self._waiting_rows -= 1
            self._waiting_bytes -= row.size
            if shard.window is None or shard.draining or not shard.window.holds(row):
                continue
            if row.key[0] <= now:
                self._ring(shard, row, destination, now)
            else:
                shard.window.put_back(row)
                self._alarm(shard.shard_id, row.key[0], now)

    def room_for(self, reason: str) -> int:
        """How many timers parked for this reason may come back now."""
        kind, _, name = reason.partition(":")
        if kind == "namespace":
            namespace = self._context.namespaces.get(name)
            return 0 if namespace is not None and namespace.paused else self._context.limits.resume_rows
        if kind == "destination":
            destination = self._destinations.get(name)
            waiting = len(destination.waiting) if destination is not None else 0
            limits = self._context.limits
            if self._waiting_bytes > limits.window_bytes_max // 4:
                return 0
            most = min(limits.destination_waiting_max // 2, limits.window_timers_max // 4 - self._waiting_rows)
            # At least one, however small the limits are: otherwise it would never come back.
            return max(max(most, 1) - waiting, 0)
        return 0

    # ------------------------------------------------------------------ alarms

    def _alarm(self, shard_id: int, at_us: int, now: int) -> None:
        if self._wake_of.get(shard_id) != at_us:
            self._wake_of[shard_id] = at_us
            heappush(self._wakes, (at_us, shard_id))
        if self._timer is None or at_us < self._timer_at:
            self._set_timer(self._wakes[0][0], now)

    def _set_timer(self, at_us: int, now: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at_us
        delay_s = min(max(at_us - now, 0) / 1e6, _SLEEP_MAX_S)
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = self._context.clock.now_us()
        ready: dict[int, None] = {}
        while self._wakes and self._wakes[0][0] <= now:
            at_us, shard_id = heappop(self._wakes)
            if self._wake_of.get(shard_id) == at_us:
                del self._wake_of[shard_id]
                ready[shard_id] = None
        for shard_id in ready:
            shard = self.shards.get(shard_id)
            if shard is not None:
                self.pump(shard)
        while self._wakes and self._wake_of.get(self._wakes[0][1]) != self._wakes[0][0]:
            heappop(self._wakes)
        if self._wakes and self._timer is None:
            self._set_timer(self._wakes[0][0], now)

    def close(self) -> None:
        """No more alarms."""
        self._paused = "stopped"
        if self._timer is not None:
            self._timer.cancel()
