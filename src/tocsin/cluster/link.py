"""This node's writes and requests to one other node: the requesting side of a connection.

Concurrent writes are sent together. The crucial question is what happens to writes when the connection fails. A write
that was not sent, or that the other node reports as not processed, was certainly not done: it fails with ShardMoved and
may be sent elsewhere. The outcome of a write that was sent is unknown, and reporting that too early would be harmful:
the client might write again, and the first write might be done after the second. So it is reported only when the first
write can no longer be done:

- the shard has a newer epoch: a write is accepted only in the epoch that it names; or
- the other node (in the same incarnation) has accepted a new connection from this one, which makes it drop the former
  connection unread; or
- the deadline has passed by the other node's clock: that node numbers its ticks, and writes are dated by the last tick
  received, so that a write that lay in a buffer counts with its full age.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from tocsin.cluster import wire
from tocsin.cluster.channel import Channel, Dial, PeerRefuses, PeerUnreachable, ThisNode
from tocsin.model.errors import (
    Overloaded,
    RecordUndecodable,
    RequestExpired,
    ShardMoved,
    ShardUnavailable,
    TocsinError,
    Unavailable,
)
from tocsin.model.retry import backoff_us
from tocsin.ports.forward import Write, WriteCompletion, Written
from tocsin.ports.observer import PeerConnected, PeerLeft, PeerLost, WritesForwarded, WritesSent

_TOO_LATE = "the request's deadline passed before the write could be sent to the shard's owner"

R = TypeVar("R")


class NotSent(Unavailable):
    """The other node certainly did not process the request: it is unreachable or stopping."""


@dataclass(slots=True, eq=False)
class _Sent:
    """A write in flight or queued, and the shard's epoch that it names."""

    write: Write
    epoch: int
    completion: WriteCompletion


class PeerLink:
    """The link to one incarnation of a node."""

    def __init__(self, incarnation: bytes, address: str, here: ThisNode, dial: Dial) -> None:
        self.incarnation = incarnation
        self.address = address
        self._here = here
        self._limits = here.limits
        self._dial = dial
        self._channel: Channel | None = None
        self._dialing = False
        # How often in a row the other node refused this one.
        self._refusals = 0
        # Until when failures belong to an outage that was reported: infinity after the node has left.
        self._reported_until: float = 0
        self._closed = False
        self._last_id = 0
        self._tick = 0
        self._tick_at = 0
        self._received_at = 0
        self._queue: deque[_Sent] = deque()
        self._in_flight: dict[int, _Sent] = {}
        self._in_doubt: list[_Sent] = []
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._unsent: list[wire.PeerRequest] = []
        self._flush_planned = False
        # The next check of what waits, and whether it is one of the frequent ones.
        self._sweep: asyncio.TimerHandle | None = None
        self._sweeps_often = False

    @property
    def idle(self) -> bool:
        """Whether nothing waits for this link."""
        return not (self._queue or self._in_flight or self._in_doubt or self._asked or self._dialing)

    # ------------------------------------------------------------------ requests

    def send(self, write: Write, epoch: int, completion: WriteCompletion) -> None:
        """Sends the write soon, together with others. Raises Overloaded."""
        if len(self._queue) >= self._limits.send_queue_max:
            raise Overloaded(f"{len(self._queue)} writes already wait for node {self.address} (cluster.send_queue_max)")
        self._queue.append(_Sent(write, epoch, completion))
        self._plan_flush()

    def notify(self, message: wire.PeerRequest) -> None:
        """Sends the message soon, if the other node can be reached. Whoever asks something that is answered uses `ask`."""
        if self._channel is not None and self._tick:
            self._channel.send(wire.encode(message))
        else:
            self._unsent.append(message)
            self._connect()

    async def ask(self, kind: type[R], question: Callable[[int], wire.Question]) -> R:
        """The other node's answer, of this kind, to the question with a new number. Raises NotSent, or Unavailable if the
        node may have processed it."""
        self._last_id += 1
        number = self._last_id
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        try:
            self.notify(question(number))
            reply = await answer
            assert isinstance(reply, kind)
            return reply
        finally:
            self._asked.pop(number, None)

    def close(self) -> None:
        """Closes the link: nothing more is sent or received."""
        self._closed = True
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.abort()
        if self._sweep is not None:
            self._sweep.cancel()
        self._gone("the node is stopping")
        doubtful, self._in_doubt = self._in_doubt, []
        self._refuse_unknown(doubtful)

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
        now, limits = self._here.clock.boottime_us(), self._limits
        while (
            self._queue and self._tick and not self._channel.congested and len(self._in_flight) < limits.in_flight_max
        ):
            self._send_frame(now)
        self._keep_watch()

    def _send_frame(self, now: int) -> None:
        limits, ops, size = self._limits, list[wire.PeerWrite](), 0
        room = min(limits.frame_writes_max, limits.in_flight_max - len(self._in_flight))
        while self._queue and len(ops) < room and size < limits.frame_fill_bytes:
            sent = self._queue.popleft()
            budget_us = sent.write.deadline_us - now
            if budget_us <= 0:
                sent.completion.refuse(RequestExpired(_TOO_LATE))
                continue
            self._last_id += 1
            self._in_flight[self._last_id] = sent
            op = wire.encode_write(sent.write, self._last_id, sent.epoch, budget_us)
            size += len(op.body)
            ops.append(op)
        if ops:
            self._send_ops(ops, now)
            self._here.observe(WritesSent(len(ops)))

    def _send_ops(self, ops: list[wire.PeerWrite], now: int) -> None:
        assert self._channel is not None
        self._channel.send(wire.encode(wire.PeerWrites(self._tick, now - self._tick_at, ops)))

    # ------------------------------------------------------------------ the connection

    def _connect(self) -> None:
        if not (self._dialing or self._closed or self._channel is not None):
            self._dialing = True
            self._here.spawn(self._dial_once())

    async def _dial_once(self) -> None:
        try:
            await self._dial(self.incarnation, self.address, self)
        except PeerUnreachable as error:
            self._report_loss(str(error))
            self._gone(str(error))
            self._refusals = self._refusals + 1 if isinstance(error, PeerRefuses) else 0
            first_us, max_us = self._limits.reconnect_interval_us, self._limits.reconnect_refused_max_us
            # Writes that arrive until then wait for the next try, which has a timeout too.
            await asyncio.sleep(backoff_us(max(self._refusals, 1), first_us, max_us) / 1e6)
        finally:
            self._dialing = False
        # The new connection may be lost before this task continues.
        if self._channel is None and (self._queue or self._in_doubt or self._unsent):
            self._connect()
            self._keep_watch()

    def opened(self, channel: Channel) -> None:
        """The connection is open and both nodes are authenticated: refuses the writes in doubt as unknown and waits for
        the first tick."""
        if self._closed:
            channel.abort()
            return
        self._channel = channel
        self._received_at = self._here.clock.boottime_us()
        self._reported_until = 0
        self._here.observe(PeerConnected(self.address))
        # The other node has dropped the former connection with everything unread on it.
        doubtful, self._in_doubt = self._in_doubt, []
        self._refuse_unknown(doubtful)
        self._keep_watch()

    def lost(self, reason: str) -> None:
        """The connection is lost: unsent writes fail with ShardMoved, sent ones are in doubt."""
        if self._channel is None:
            return
        self._report_loss(reason)
        self._gone(reason)

    def _report_loss(self, reason: str) -> None:
        """Reports an outage when it begins, and at intervals while attempts to connect fail: what waits for a node that
        crashed makes many of them until the node's shards have a new owner."""
        now = self._here.clock.boottime_us()
        if now >= self._reported_until:
            self._reported_until = now + self._limits.outage_report_interval_us
            self._here.observe(PeerLost(self.address, reason))

    def _gone(self, reason: str) -> None:
        """The connection is lost: unsent writes may go elsewhere, sent ones are in doubt."""
        self._channel, self._tick = None, 0
        unsent = {message.id for message in self._unsent if isinstance(message, wire.Question)}
        self._unsent.clear()
        for number, answer in self._asked.items():
            if not answer.done():
                error = NotSent if number in unsent else Unavailable
                answer.set_exception(error(f"node {self.address} is unreachable: {reason}"))
        self._in_doubt += self._in_flight.values()
        self._in_flight.clear()
        queue, self._queue = self._queue, deque()
        for sent in queue:
            sent.completion.refuse(ShardMoved(f"node {self.address} is unreachable: {reason}"))
        if self._in_doubt and not self._closed:
            self._connect()
            self._keep_watch()

    def writable(self) -> None:
        """The connection is no longer congested: continues sending."""
        self._plan_flush()

    # ------------------------------------------------------------------ received messages

    def received(self, payload: bytes) -> None:
        """Handles a message of the other node. A protocol error closes the connection."""
        self._received_at = self._here.clock.boottime_us()
        try:
            message = wire.decode_reply(payload)
            if message is not None:
                self._take(message)
        except wire.PeerProtocolError as error:
            self._break_off(f"protocol error: {error}")

    def _take(self, message: wire.PeerReply) -> None:
        if isinstance(message, wire.WriteResults):
            self._complete(message.answers)
        elif isinstance(message, wire.Tick):
            self._ticked(message.number)
        elif isinstance(message, wire.Goodbye):
            self._left(message.last_id)
        else:
            answer = self._asked.get(message.id)
            if answer is not None and not answer.done():
                answer.set_result(message)

    def _ticked(self, number: int) -> None:
        self._tick, self._tick_at = number, self._received_at
        assert self._channel is not None
        for message in self._unsent:
            self._channel.send(wire.encode(message))
        self._unsent.clear()
        if self._queue:
            self._plan_flush()
        else:
            self._send_ops([], self._received_at)

    def _complete(self, answers: list[wire.WriteResult]) -> None:
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
            if isinstance(result, TocsinError):
                sent.completion.refuse(result)
            else:
                sent.completion.resolve(result)
        self._count("answered", done)
        self._count("moved", moved)
        if self._queue:
            self._plan_flush()

    def _left(self, last_id: int) -> None:
        """The other node stops in order: what it has not processed was certainly not done."""
        unread = [number for number in self._in_flight if number > last_id]
        for number in unread:
            self._in_flight.pop(number).completion.refuse(ShardMoved(f"node {self.address} is stopping"))
        for number, answer in self._asked.items():
            if number > last_id and not answer.done():
                answer.set_exception(NotSent(f"node {self.address} is stopping"))
        self._count("moved", len(unread))
        self._reported_until = math.inf
        self._here.observe(PeerLeft(self.address))
        self._break_off("the node is stopping")
        # It has released its shards; its announcement may have been lost with its own connections.
        self._here.placement.refresh()

    def _break_off(self, reason: str) -> None:
        channel = self._channel
        if channel is not None:
            channel.abort()
            self.lost(reason)

    # ------------------------------------------------------------------ writes in doubt, silent connections

    def _keep_watch(self) -> None:
        """Plans the next check: often while writes wait, else as often as the other node signals that it is alive. With
        hundreds of nodes the checks of idle links would cost more than their signals."""
        waiting = bool(self._queue or self._in_flight or self._in_doubt)
        if self._closed or not (waiting or self._channel):
            return
        if self._sweep is not None:
            if self._sweeps_often or not waiting:
                return
            self._sweep.cancel()
        self._sweeps_often = waiting
        delay_s = self._limits.keepalive_interval_us / (4e6 if waiting else 1e6)
        self._sweep = asyncio.get_running_loop().call_later(delay_s, self._watch)

    def _watch(self) -> None:
        self._sweep = None
        now, limits = self._here.clock.boottime_us(), self._limits
        if self._channel is not None and now - self._received_at > limits.peer_timeout_us:
            self._break_off("no message within cluster.peer_timeout")
        if self._in_doubt:
            over = dict.fromkeys(sent for sent in self._in_doubt if self._is_over(sent, now))
            if over:
                self._in_doubt = [sent for sent in self._in_doubt if sent not in over]
                self._refuse_unknown(list(over))
        late_us = now - limits.answer_grace_us
        late = [number for number, sent in self._in_flight.items() if sent.write.deadline_us < late_us]
        self._refuse_unknown([self._in_flight.pop(number) for number in late])
        self._drop_expired(now)
        self._keep_watch()

    def _drop_expired(self, now: int) -> None:
        """Refuses queued writes whose deadline has passed while they could not be sent."""
        if any(sent.write.deadline_us <= now for sent in self._queue):
            queue, self._queue = self._queue, deque()
            for sent in queue:
                if sent.write.deadline_us <= now:
                    sent.completion.refuse(RequestExpired(_TOO_LATE))
                else:
                    self._queue.append(sent)

    def _is_over(self, sent: _Sent, now: int) -> bool:
        """Whether a sent write can no longer be done, unless it was done already."""
        if now >= sent.write.deadline_us:
            return True
        owner = self._here.placement.owner(sent.write.shard_id)
        return owner is not None and owner.epoch > sent.epoch

    def _refuse_unknown(self, writes: list[_Sent]) -> None:
        self._count("unknown", len(writes))
        for sent in writes:
            sent.completion.refuse(ShardUnavailable("the outcome of the write is unknown; try again"))

    def _count(self, outcome: str, writes: int) -> None:
        if writes:
            self._here.observe(WritesForwarded(outcome, writes))


def _read(answer: wire.WriteResult, write: Write) -> Written | TocsinError | None:
    """The result. If only a newer release can decode the record, the write was done all the same and the client has to
    ask again."""
    try:
        return wire.decode_result(answer, write.timer)
    except RecordUndecodable as error:
        return ShardUnavailable(f"the write was done, but this release cannot decode the result: {error}")
