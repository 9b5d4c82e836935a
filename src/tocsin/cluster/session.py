"""Another node's writes and questions to this one: the asked side of a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from functools import partial
from typing import Any

from tocsin.cluster.channel import Channel
from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.wire import (
    Answer,
    Answers,
    Ask,
    Bye,
    Http,
    HttpAnswer,
    Op,
    Ops,
    PeerConfused,
    Refresh,
    Refreshed,
    Report,
    Tick,
    answer_of,
    encode,
    read_to_owner,
    write_of,
)
from tocsin.model.errors import RecordUndecodable, ShardMoved, ShardUnavailable, TocsinError
from tocsin.ports.clock import Clock
from tocsin.ports.forward import LocalWrites, NodeReport, Placement, StatisticsReport, Write, Written

#: Ticks by which a write may still be dated.
_TICKS_KEPT = 64


class PeerSession:
    """One connection of one other node. It obeys the rules that `tocsin.cluster.link` relies on: a write counts only in the
    epoch that it names, before the deadline by this node's clock, once, and not after the session was made void."""

    def __init__(
        self,
        channel: Channel,
        *,
        local: LocalWrites,
        placement: Placement,
        report: Callable[[], NodeReport],
        statistics: Callable[[int], StatisticsReport | None],
        serve: Callable[[Http], Awaitable[HttpAnswer]],
        clock: Clock,
        limits: ClusterLimits,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        ended: Callable[[PeerSession], None],
    ) -> None:
        self._channel = channel
        self._local = local
        self._placement = placement
        self._report = report
        self._statistics = statistics
        self._serve = serve
        self._clock = clock
        self._limits = limits
        self._spawn = spawn
        self._ended = ended
        self._void = False
        self._last_id = 0
        self._number = 0
        self._ticks: dict[int, int] = {}
        self._under_way = 0
        self._answers: list[Answer] = []
        self._flush_planned = False
        self._timer: asyncio.TimerHandle | None = None
        self._heard_at = clock.boottime_us()
        self.quiet = asyncio.Event()
        self.quiet.set()

    def begin(self) -> None:
        """Says that this node is there; the other waits for it."""
        if self._void:
            return
        self._tick()

    def void(self) -> None:
        """Nothing that comes counts any more, read or unread. What was accepted goes on, unheard."""
        self._void = True
        if self._timer is not None:
            self._timer.cancel()
        self._channel.abort()
        self.quiet.set()

    def leave(self) -> None:
        """Ends in order, once the writes that were accepted are answered: `quiet` tells when they are."""
        if self._void:
            return
        self._flush()
        self._void = True
        if self._timer is not None:
            self._timer.cancel()
        self._channel.send(encode(Bye(self._last_id)))
        self._channel.close()

    # ------------------------------------------------------------------ time

    def _tick(self) -> None:
        now = self._clock.boottime_us()
        if now - self._heard_at > 2 * self._limits.peer_timeout_us:
            # It answers each tick.
            self.lost("it has fallen silent")
            self.void()
            return
        self._number += 1
        self._ticks[self._number] = now
        self._ticks.pop(self._number - _TICKS_KEPT, None)
        self._channel.send(encode(Tick(self._number)))
        self._timer = asyncio.get_running_loop().call_later(self._limits.keepalive_interval_us / 1e6, self._tick)

    # ------------------------------------------------------------------ what comes

    def received(self, payload: bytes) -> None:
        """See End."""
        if self._void:
            return
        self._heard_at = self._clock.boottime_us()
        try:
            message = read_to_owner(payload)
            if isinstance(message, Ops):
                self._take(message)
            elif isinstance(message, Ask):
                self._last_id = max(self._last_id, message.id)
                after_us = message.statistics_after
                statistics = None if after_us is None else self._statistics(after_us)
                self._channel.send(encode(Report(message.id, self._report(), statistics)))
            elif isinstance(message, Refresh):
                self._last_id = max(self._last_id, message.id)
                self._spawn(self._refresh(message.id))
            elif isinstance(message, Http):
                self._last_id = max(self._last_id, message.id)
                self._spawn(self._relay(message))
            elif message is not None:
                self._placement.refresh()
        except PeerConfused as error:
            self.lost(str(error))
            self.void()

    def _take(self, message: Ops) -> None:
        issued = self._ticks.get(message.tick)
        unread: list[tuple[Op, Write]] = []
        for op in message.ops:
            if op.id <= self._last_id:
                continue
            self._last_id = op.id
            self._under_way += 1
            try:
                if issued is None or self._heard_at - issued - message.elapsed_us > self._limits.message_age_max_us:
                    # Whoever sent it may be dead by now, and its client have written again by another way.
                    raise ShardMoved("it was under way for too long")
                write = _write_of(op, issued + message.elapsed_us + op.budget_us)
                if self._local.knows_namespace(op.namespace, op.namespace_version):
                    self._accept(op, write)
                else:
                    unread.append((op, write))
            except TocsinError as error:
                self._answered(op.id, False, error)
        if self._under_way:
            self.quiet.clear()
        if unread:
            self._spawn(self._accept_informed(unread))

    async def _accept_informed(self, writes: list[tuple[Op, Write]]) -> None:
        """Their senders know namespaces, or changes of them, of which this node has not read yet (rule 23)."""
        failure: TocsinError | None = None
        try:
            await self._local.refresh_namespaces()
        except TocsinError as error:
            failure = error
        for op, write in writes:
            try:
                if self._void:
                    # Their senders may know that, and write anew by another way.
                    raise ShardMoved("the connection ended before it was accepted")
                if failure is not None:
                    raise failure
                self._accept(op, write)
            except TocsinError as error:
                self._answered(op.id, False, error)

    async def _refresh(self, number: int) -> None:
        try:
            await self._local.refresh_namespaces()
        except TocsinError:
            # Whoever asks does not wait for ever, and asks again.
            return
        self._send_alone(encode(Refreshed(number)))

    def _accept(self, op: Op, write: Write) -> None:
        self._local.accept(write, op.epoch, partial(self._answered, op.id, op.brief))

    async def _relay(self, request: Http) -> None:
        try:
            frame = encode(await self._serve(request))
            most = self._limits.frame_bytes_max
            if len(frame) > most:
                why = f"the answer has {len(frame)} bytes; a message between nodes has at most {most}"
                frame = encode(_failed(request, why))
        except Exception:
            # A defect, which the event loop reports; whoever asked has to hear of it, too.
            self._send_alone(encode(_failed(request, "the node that was asked failed")))
            raise
        self._send_alone(frame)

    def _send_alone(self, frame: bytes) -> None:
        if not self._void:
            self._channel.send(frame)

    # ------------------------------------------------------------------ answers

    def _answered(self, number: int, brief: bool, result: Written | TocsinError | None) -> None:
        self._under_way -= 1
        self._answers.append(answer_of(number, result, brief=brief))
        if not self._flush_planned:
            self._flush_planned = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_planned = False
        answers, self._answers = self._answers, []
        if not self._void:
            for frame in self._frames(answers):
                self._channel.send(encode(Answers(frame)))
        if not self._under_way:
            self.quiet.set()

    def _frames(self, answers: list[Answer]) -> Iterator[list[Answer]]:
        """The answers in messages that the other node takes: they bring whole timers."""
        limits, frame, size = self._limits, list[Answer](), 0
        for answer in answers:
            frame.append(answer)
            size += len(answer.record)
            if len(frame) >= limits.frame_writes_max or size >= limits.frame_fill_bytes:
                yield frame
                frame, size = [], 0
        if frame:
            yield frame

    def writable(self) -> None:
        """See End."""

    def lost(self, reason: str) -> None:
        """See End."""
        self._void = True
        if self._timer is not None:
            self._timer.cancel()
        self.quiet.set()
        self._ended(self)


def _write_of(op: Op, deadline_us: int) -> Write:
    try:
        return write_of(op, deadline_us)
    except RecordUndecodable as error:
        # Of a newer release, perhaps; nothing was written.
        raise ShardUnavailable(f"the shard's owner can't read it: {error}") from error


def _failed(request: Http, why: str) -> HttpAnswer:
    return HttpAnswer(request.id, 500, [(b"content-type", b"text/plain; charset=utf-8")], why.encode())
