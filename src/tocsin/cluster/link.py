"""This node's writes and questions to one other: the asking side of a connection.

Writes that come together travel together. What matters is what happens to them when the connection fails. A write that was
not sent, or that the other node says it never looked at, certainly wasn't done: ShardMoved, and it may go elsewhere. For one
that was sent the outcome is unknown, and saying so too early would do harm: the client might write again, and the first
write be done after the second. So it is said only when the first can't be done any more:

- the shard has another epoch by now, and a write is accepted only in the epoch that it names; or
- the other node (in the same incarnation) has taken a new connection of ours, which makes it forget the former one unread; or
- the deadline has passed, which the other node tells by its own clock: it numbers its ticks, and writes are dated by the last
  tick that had come, so that one that lay in a buffer is as old as it is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from tocsin.cluster.channel import Channel, Dial, PeerUnreachable
from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.wire import (
    Answer,
    Answers,
    Ask,
    Bye,
    Http,
    HttpAnswer,
    Look,
    Op,
    Ops,
    PeerConfused,
    Refresh,
    Refreshed,
    Report,
    Tick,
    ToOwner,
    encode,
    op_of,
    read_to_asker,
    result_of,
)
from tocsin.model.errors import (
    Overloaded,
    RecordUndecodable,
    RequestExpired,
    ShardMoved,
    ShardUnavailable,
    TocsinError,
    Unavailable,
)
from tocsin.ports.clock import Clock
from tocsin.ports.forward import NodeReport, Placement, Settle, StatisticsReport, Write, Written
from tocsin.ports.observer import Event, PeerConnected, PeerLost, WritesForwarded, WritesSent

_TOO_LATE = "the time budget ran out before it could be sent to the shard's owner"


class NotSent(Unavailable):
    """The other node certainly never looked at the question: it can't be reached, or stops."""


class _Sent:
    """A write on its way, for the shard's epoch that it names."""

    __slots__ = ("epoch", "settle", "write")

    def __init__(self, write: Write, epoch: int, settle: Settle) -> None:
        self.write = write
        self.epoch = epoch
        self.settle = settle


class PeerLink:
    """`spawn` runs a coroutine for as long as the cluster does."""

    def __init__(
        self,
        incarnation: bytes,
        address: str,
        *,
        dial: Dial,
        placement: Placement,
        clock: Clock,
        limits: ClusterLimits,
        observe: Callable[[Event], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.incarnation = incarnation
        self.address = address
        self._dial = dial
        self._placement = placement
        self._clock = clock
        self._limits = limits
        self._observe = observe
        self._spawn = spawn
        self._channel: Channel | None = None
        self._dialing = False
        self._closed = False
        self._last_id = 0
        self._tick = 0
        self._tick_at = 0
        self._heard_at = 0
        self._queue: deque[_Sent] = deque()
        self._in_flight: dict[int, _Sent] = {}
        self._doubtful: list[_Sent] = []
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._unsent: list[ToOwner] = []
        self._flush_planned = False
        self._sweep: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing waits for it."""
        return not (self._queue or self._in_flight or self._doubtful or self._asked or self._dialing)

    # ------------------------------------------------------------------ what is asked of it

    def send(self, write: Write, epoch: int, settle: Settle) -> None:
        """Sends the write soon, together with others; Overloaded."""
        if len(self._queue) >= self._limits.send_queue_max:
            raise Overloaded(f"{len(self._queue)} writes wait for {self.address} already (cluster.send_queue_max)")
        self._queue.append(_Sent(write, epoch, settle))
        self._plan_flush()

    def look(self) -> None:
        """Tells the other node that ownership has changed, if it can be reached at once."""
        self._say(Look())

    async def ask(self) -> NodeReport:
        """How the other node is; Unavailable."""
        answer = await self._answer_to(lambda number: Ask(number))
        assert isinstance(answer, Report)
        return answer.report

    async def ask_statistics(self, after_us: int) -> tuple[NodeReport, StatisticsReport | None]:
        """The same, with what it has counted in points that began after an instant; None from a release that doesn't tell."""
        answer = await self._answer_to(lambda number: Ask(number, after_us))
        assert isinstance(answer, Report)
        return answer.report, answer.statistics

    async def refresh(self) -> None:
        """Returns when the other node has read the namespaces, since it was asked; Unavailable. A release that doesn't know
        the question never answers it."""
        answer = await self._answer_to(lambda number: Refresh(number))
        assert isinstance(answer, Refreshed)

    async def request(
        self,
        method: str,
        target: bytes,
        headers: list[tuple[bytes, bytes]],
        body: bytes,
        key_hash: str = "",
        client: str = "",
    ) -> HttpAnswer:
        """The other node's answer to an HTTP request; NotSent, or Unavailable when it may have been served."""
        answer = await self._answer_to(lambda number: Http(number, method, target, headers, body, key_hash, client))
        assert isinstance(answer, HttpAnswer)
        return answer

    async def _answer_to(self, make: Callable[[int], ToOwner]) -> Any:
        self._last_id += 1
        number = self._last_id
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        try:
            self._say(make(number))
            return await answer
        finally:
            self._asked.pop(number, None)

    def _say(self, message: ToOwner) -> None:
        if self._channel is not None and self._tick:
            self._channel.send(encode(message))
        else:
            self._unsent.append(message)
            self._connect()

    def close(self) -> None:
        """Nothing is sent or heard any more."""
        self._closed = True
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.abort()
        if self._sweep is not None:
            self._sweep.cancel()
        self._gone("the node stops")
        doubtful, self._doubtful = self._doubtful, []
        self._tell_unknown(doubtful)

    # ------------------------------------------------------------------ sending

    def _plan_flush(self) -> None:
        if not self._flush_planned:
            self._flush_planned = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_planned = False
        if self._channel is None:
            if self._queue:
                self._connect()
                self._keep_watch()
            return
        now, limits = self._clock.boottime_us(), self._limits
        while (
            self._queue and self._tick and not self._channel.congested and len(self._in_flight) < limits.in_flight_max
        ):
            self._send_frame(now)
        self._keep_watch()

    def _send_frame(self, now: int) -> None:
        limits, ops, size = self._limits, list[Op](), 0
        room = min(limits.frame_writes_max, limits.in_flight_max - len(self._in_flight))
        while self._queue and len(ops) < room and size < limits.frame_fill_bytes:
            sent = self._queue.popleft()
            budget_us = sent.write.deadline_us - now
            if budget_us <= 0:
                sent.settle(RequestExpired(_TOO_LATE))
                continue
            self._last_id += 1
            self._in_flight[self._last_id] = sent
            op = op_of(sent.write, self._last_id, sent.epoch, budget_us)
            size += len(op.body)
            ops.append(op)
        if ops:
            self._send_ops(ops, now)
            self._observe(WritesSent(len(ops)))

    def _send_ops(self, ops: list[Op], now: int) -> None:
        assert self._channel is not None
        self._channel.send(encode(Ops(self._tick, now - self._tick_at, ops)))

    # ------------------------------------------------------------------ the connection

    def _connect(self) -> None:
        if not (self._dialing or self._closed or self._channel is not None):
            self._dialing = True
            self._spawn(self._meet())

    async def _meet(self) -> None:
        try:
            await self._dial(self.incarnation, self.address, self)
        except PeerUnreachable as error:
            self._observe(PeerLost(self.address, str(error)))
            self._gone(str(error))
            # Whoever comes meanwhile waits for the next try, which is bounded, too.
            await asyncio.sleep(self._limits.reconnect_interval_us / 1e6)
        finally:
            self._dialing = False
        # A connection may be lost again before this is told that it was made.
        if self._channel is None and (self._queue or self._doubtful or self._unsent):
            self._connect()
            self._keep_watch()

    def opened(self, channel: Channel) -> None:
        """See CallerEnd."""
        if self._closed:
            channel.abort()
            return
        self._channel = channel
        self._heard_at = self._clock.boottime_us()
        self._observe(PeerConnected(self.address))
        # The other node has forgotten the former connection, with whatever of it was unread.
        doubtful, self._doubtful = self._doubtful, []
        self._tell_unknown(doubtful)
        self._keep_watch()

    def lost(self, reason: str) -> None:
        """See End."""
        if self._channel is None:
            return
        self._observe(PeerLost(self.address, reason))
        self._gone(reason)

    def _gone(self, reason: str) -> None:
        """There is no connection now: what was not sent goes elsewhere, what was is in doubt."""
        self._channel, self._tick = None, 0
        unsent = {message.id for message in self._unsent if not isinstance(message, Look | Ops)}
        self._unsent.clear()
        for number, answer in self._asked.items():
            if not answer.done():
                error = NotSent if number in unsent else Unavailable
                answer.set_exception(error(f"node {self.address} can't be reached: {reason}"))
        self._doubtful += self._in_flight.values()
        self._in_flight.clear()
        queue, self._queue = self._queue, deque()
        for sent in queue:
            sent.settle(ShardMoved(f"node {self.address} can't be reached: {reason}"))
        if self._doubtful and not self._closed:
            self._connect()
            self._keep_watch()

    def writable(self) -> None:
        """See End."""
        self._plan_flush()

    # ------------------------------------------------------------------ what comes

    def received(self, payload: bytes) -> None:
        """See End."""
        self._heard_at = self._clock.boottime_us()
        try:
            message = read_to_asker(payload)
            if message is not None:
                self._take(message)
        except PeerConfused as error:
            self._break_off(f"it said what can't be understood: {error}")

    def _take(self, message: Tick | Answers | Report | Refreshed | HttpAnswer | Bye) -> None:
        if isinstance(message, Answers):
            self._settle(message.answers)
        elif isinstance(message, Tick):
            self._ticked(message.number)
        elif isinstance(message, Bye):
            self._left(message.last_id)
        else:
            answer = self._asked.get(message.id)
            if answer is not None and not answer.done():
                answer.set_result(message)

    def _ticked(self, number: int) -> None:
        self._tick, self._tick_at = number, self._heard_at
        assert self._channel is not None
        for message in self._unsent:
            self._channel.send(encode(message))
        self._unsent.clear()
        if self._queue:
            self._plan_flush()
        else:
            self._send_ops([], self._heard_at)

    def _settle(self, answers: list[Answer]) -> None:
        moved = done = 0
        for answer in answers:
            sent = self._in_flight.pop(answer.id, None)
            if sent is None:
                continue
            result = _read(answer, sent.write)
            if isinstance(result, ShardMoved):
                moved += 1
            else:
                done += 1
            sent.settle(result)
        self._count("answered", done)
        self._count("moved", moved)
        if self._queue:
            self._plan_flush()

    def _left(self, last_id: int) -> None:
        """The other node stops in order: what it has not looked at certainly wasn't done."""
        unread = [number for number in self._in_flight if number > last_id]
        for number in unread:
            self._in_flight.pop(number).settle(ShardMoved(f"node {self.address} stops"))
        for number, answer in self._asked.items():
            if number > last_id and not answer.done():
                answer.set_exception(NotSent(f"node {self.address} stops"))
        self._count("moved", len(unread))
        self._break_off("it stops")
        # It has given its shards back; that it said so may have been lost with its own connections.
        self._placement.refresh()

    def _break_off(self, reason: str) -> None:
        channel = self._channel
        if channel is not None:
            channel.abort()
            self.lost(reason)

    # ------------------------------------------------------------------ doubt and silence

    def _keep_watch(self) -> None:
        waiting = self._queue or self._in_flight or self._doubtful
        if self._sweep is None and not self._closed and (waiting or self._channel):
            delay_s = self._limits.keepalive_interval_us / 4e6
            self._sweep = asyncio.get_running_loop().call_later(delay_s, self._watch)

    def _watch(self) -> None:
        self._sweep = None
        now, limits = self._clock.boottime_us(), self._limits
        if self._channel is not None and now - self._heard_at > limits.peer_timeout_us:
            self._break_off("it has fallen silent")
        if self._doubtful:
            settled = [sent for sent in self._doubtful if self._is_over(sent, now)]
            if settled:
                over = set(settled)
                self._doubtful = [sent for sent in self._doubtful if sent not in over]
                self._tell_unknown(settled)
        late_us = now - limits.answer_grace_us
        late = [number for number, sent in self._in_flight.items() if sent.write.deadline_us < late_us]
        self._tell_unknown([self._in_flight.pop(number) for number in late])
        self._drop_expired(now)
        self._keep_watch()

    def _drop_expired(self, now: int) -> None:
        """What can't be sent now, because there is no connection or too much is under way, doesn't wait for ever."""
        if any(sent.write.deadline_us <= now for sent in self._queue):
            queue, self._queue = self._queue, deque()
            for sent in queue:
                if sent.write.deadline_us <= now:
                    sent.settle(RequestExpired(_TOO_LATE))
                else:
                    self._queue.append(sent)

    def _is_over(self, sent: _Sent, now: int) -> bool:
        """Whether a write that was sent can't be done any more, if it hasn't been."""
        if now >= sent.write.deadline_us:
            return True
        owner = self._placement.owner(sent.write.shard_id)
        return owner is not None and owner.epoch > sent.epoch

    def _tell_unknown(self, writes: list[_Sent]) -> None:
        self._count("unknown", len(writes))
        for sent in writes:
            sent.settle(ShardUnavailable("whether it was written is unknown; try again"))

    def _count(self, outcome: str, writes: int) -> None:
        if writes:
            self._observe(WritesForwarded(outcome, writes))


def _read(answer: Answer, write: Write) -> Written | TocsinError | None:
    """The answer. A timer that only a newer release can read was written all the same; the client has to ask again."""
    try:
        return result_of(answer, write.timer)
    except RecordUndecodable as error:
        return ShardUnavailable(f"it was written, and the answer can't be read by this release: {error}")
