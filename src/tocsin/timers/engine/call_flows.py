"""Service calls at the flows of the timers: they wait at the same keys, and take turns with the shards' timers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from tocsin.ports.flow_gate import UNLIMITED, FlowHold
from tocsin.timers.engine.destination import Queue
from tocsin.timers.engine.flow_states import CALLS, KeyState, Taken

if TYPE_CHECKING:
    from tocsin.timers.engine.dispatcher import Dispatcher
    from tocsin.timers.engine.flow_control import FlowControl

#: Waiting calls of one key that count among what waits in memory, and for which a home elsewhere is asked. The others are in
#: the agent's table, and must not take the timers' part of the memory.
_COUNTED_MAX = 256


class CallQueue(Queue):
    """Calls that wait at a key. The agent has them; here is how many wait for each of their flow keys, which may be several
    where only the namespace's limits apply. It has no rows and no shard."""

    __slots__ = ("_calls", "keys")

    def __init__(self, calls: CallFlows, place: KeyState) -> None:
        # Not that of the base class, which takes a shard.
        self._calls = calls
        self.namespace = calls.namespace
        self.place = place
        self.rows = deque()
        self.bytes = 0
        #: In the order of their turns.
        self.keys: dict[str, int] = {}

    @property
    def hidden(self) -> int:
        """Calls that wait and are not counted in what waits at the key."""
        return max(sum(self.keys.values()) - _COUNTED_MAX, 0)

    def begin_first(self, *, in_turn: bool) -> bool:
        """Has the agent begin the first call of one of the keys; whether it did."""
        key, count = next(iter(self.keys.items()))
        # It becomes the last of the keys.
        del self.keys[key]
        self.keys[key] = count
        assert isinstance(self.place, KeyState)
        return self._calls.serve(key, self.place, in_turn=in_turn)

    def put_back(self) -> None:
        """Its calls wait where the rules as they are now have them wait."""
        self._calls.place_again(self)


def hidden_calls(state: KeyState) -> int:
    """Waiting calls that are not counted in what waits at the key."""
    queue = state.queues.get(CALLS)
    return queue.hidden if isinstance(queue, CallQueue) else 0


def counted_calls(state: KeyState) -> int:
    """Waiting calls that are counted in what waits at the key."""
    queue = state.queues.get(CALLS)
    return min(sum(queue.keys.values()), _COUNTED_MAX) if isinstance(queue, CallQueue) else 0


class _Hold:
    """Slots and tokens of a call's attempt."""

    __slots__ = ("_flows", "_taken")

    def __init__(self, flows: FlowControl, taken: Taken) -> None:
        self._flows = flows
        self._taken = taken

    def close_flow(self, for_us: int) -> None:
        self._flows.close_for(self._taken, for_us)

    def end(self) -> None:
        self._flows.end(self._taken)


class CallFlows:
    """The port FlowGate, for calls that are subject to the rules and to the limits of one namespace. While this node may not
    fire timers, it lets no call begin that is limited: limits that have their home here hold only within the node's lease."""

    def __init__(self, dispatcher: Dispatcher, namespace: str) -> None:
        self.namespace = namespace
        self._dispatcher = dispatcher
        self._flows = dispatcher.flows
        self._serve: Callable[[str], bool] | None = None
        #: Where the calls of each key wait.
        self._places: dict[str, CallQueue] = {}
        # How many wait of keys that nothing limits any more, and whether they are served in the next turn of the event loop.
        self._unlimited: dict[str, int] = {}
        self._turn: asyncio.Handle | None = None
        # While a key is served: where, and whether it has its turn there.
        self._served: KeyState | None = None
        self._in_turn = False

    # ------------------------------------------------------------------ the port

    def attach(self, serve: Callable[[str], bool]) -> None:
        self._serve = serve

    def detach(self) -> None:
        self._serve = None
        for key in [*self._places, *self._unlimited]:
            self.wait(key, 0)
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None

    def begin(self, key: str) -> FlowHold | None:
        flows, state = self._flows, self._state(key)
        if state is None:
            return UNLIMITED
        served = self._served is state
        if (
            not self._dispatcher.may_dispatch()
            or (state.queues and not served)
            or not flows.is_open(state, in_turn=served and self._in_turn)
        ):
            if not served:
                flows.settle(state)
            return None
        return _Hold(flows, flows.begin(state))

    def wait(self, key: str, count: int) -> None:
        queue = self._places.get(key)
        if queue is None and count:
            queue = self._placed(key)
            if queue is None:
                self._unlimited[key] = count
                self._schedule()
                return
        self._unlimited.pop(key, None)
        if queue is not None:
            self._set(queue, key, count)

    def wake(self, key: str) -> None:
        queue = self._places.get(key)
        if queue is not None:
            assert isinstance(queue.place, KeyState)
            self._flows.wake(queue.place)
        elif key in self._unlimited:
            self._schedule()

    def is_closed(self, key: str) -> bool:
        return self._flows.obstacle(self.namespace, key) is not None

    def is_ordered(self, key: str) -> bool:
        rules = self._dispatcher.context.flows.get(self.namespace)
        return rules is not None and rules.is_ordered(key)

    # ------------------------------------------------------------------ where calls wait

    def _state(self, key: str) -> KeyState | None:
        return self._flows.of(self.namespace, key, self._dispatcher.context.namespaces.get(self.namespace))

    def _placed(self, key: str) -> CallQueue | None:
        """The queue at which calls of the key wait; None if nothing limits them."""
        state = self._state(key)
        if state is None:
            return None
        queue = state.queues.get(CALLS)
        if queue is None:
            queue = CallQueue(self, state)
            state.line_up(CALLS, queue)
        assert isinstance(queue, CallQueue)
        self._places[key] = queue
        self._flows.wake(state)
        return queue

    def _set(self, queue: CallQueue, key: str, count: int) -> None:
        state = queue.place
        assert isinstance(state, KeyState)
        state.waiting -= counted_calls(state)
        if count:
            queue.keys[key] = count
        else:
            queue.keys.pop(key, None)
            del self._places[key]
        if queue.keys:
            state.waiting += counted_calls(state)
            return
        del state.queues[CALLS]
        if state is not self._served:
            self._flows.settle(state)

    def place_again(self, queue: CallQueue) -> None:
        """Moves the calls of a queue, whose rule may have changed, to where they wait now."""
        waiting = dict(queue.keys)
        for key in waiting:
            self._set(queue, key, 0)
        for key, count in waiting.items():
            self.wait(key, count)

    # ------------------------------------------------------------------ turns

    def serve(self, key: str, place: KeyState, *, in_turn: bool) -> bool:
        """Has the agent begin the first call of the key, which waits at an open place; whether it did."""
        if self._serve is None:
            return False
        self._served, self._in_turn = place, in_turn
        try:
            return self._serve(key)
        finally:
            self._served, self._in_turn = None, False

    def _schedule(self) -> None:
        if self._turn is None:
            self._turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Serves the keys that nothing limits, a call of each in turn, until none can begin one."""
        self._turn = None
        left = self._dispatcher.context.limits.dispatch_rows_per_turn
        keys = deque(self._unlimited)
        while keys and self._serve is not None:
            if left <= 0:
                self._schedule()
                return
            key = keys.popleft()
            if self._serve(key):
                left -= 1
                if key in self._unlimited:
                    keys.append(key)
