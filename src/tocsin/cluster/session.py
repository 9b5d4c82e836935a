"""Another node's writes and requests to this one: the serving side of a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import assert_never

from tocsin.cluster import wire
from tocsin.cluster.channel import Channel, ThisNode
from tocsin.model.errors import RecordUndecodable, ShardMoved, ShardUnavailable, TocsinError
from tocsin.ports.completion import Completion
from tocsin.ports.forward import Write, Written

#: The number of latest ticks by which a write may be dated.
_TICKS_KEPT = 64


class PeerSession:
    """One connection of one other node. It follows the rules that `tocsin.cluster.link` relies on: a write is accepted
    only in the epoch that it names, before its deadline by this node's clock, once, and not after the session became
    void."""

    def __init__(self, channel: Channel, here: ThisNode, ended: Callable[[PeerSession], None]) -> None:
        self._channel = channel
        self._here = here
        self._limits = here.limits
        self._ended = ended
        self._void = False
        self._last_id = 0
        self._number = 0
        self._ticks: dict[int, int] = {}
        self._in_flight = 0
        self._answers: list[wire.WriteResult] = []
        self._flush_planned = False
        self._timer: asyncio.TimerHandle | None = None
        self._received_at = here.clock.boottime_us()
        self.quiet = asyncio.Event()
        self.quiet.set()

    def begin(self) -> None:
        """Sends the first tick, which the other node waits for."""
        if self._void:
            return
        self._tick()

    def void(self) -> None:
        """Ignores everything from now on, read or unread. Accepted writes continue, but their results are not sent."""
        self._void = True
        if self._timer is not None:
            self._timer.cancel()
        self._channel.abort()
        self.quiet.set()

    def leave(self) -> None:
        """Ends the session in order. Call it when `quiet` is set: all accepted writes have been answered."""
        if self._void:
            return
        self._flush()
        self._void = True
        if self._timer is not None:
            self._timer.cancel()
        self._channel.send(wire.encode(wire.Goodbye(self._last_id)))
        self._channel.close()

    # ------------------------------------------------------------------ time

    def _tick(self) -> None:
        now = self._here.clock.boottime_us()
        if now - self._received_at > 2 * self._limits.peer_timeout_us:
            # The other node answers each tick.
            self.lost("no message within twice cluster.peer_timeout")
            self.void()
            return
        self._number += 1
        self._ticks[self._number] = now
        self._ticks.pop(self._number - _TICKS_KEPT, None)
        self._channel.send(wire.encode(wire.Tick(self._number)))
        self._timer = asyncio.get_running_loop().call_later(self._limits.keepalive_interval_us / 1e6, self._tick)

    # ------------------------------------------------------------------ received messages

    def received(self, payload: bytes) -> None:
        """Handles a message of the other node. A protocol error ends the session."""
        if self._void:
            return
        self._received_at = self._here.clock.boottime_us()
        try:
            message = wire.decode_request(payload)
            if isinstance(message, wire.PeerWrites):
                self._take(message)
            elif isinstance(message, wire.OwnershipChanged):
                self._here.placement.refresh()
            elif isinstance(message, wire.FlowsFreed):
                self._here.local.flows.freed(message.shard_ids)
            elif message is not None:
                self._last_id = max(self._last_id, message.id)
                self._answer(message)
        except wire.PeerProtocolError as error:
            self.lost(str(error))
            self.void()

    def _answer(self, question: wire.Question) -> None:
        """Answers at once, or once what it takes has been done."""
        number, local = question.id, self._here.local
        reply: wire.PeerReply
        match question:
            case wire.RefreshNamespaces():
                self._here.spawn(self._refresh(number))
                return
            case wire.RelayedRequest():
                self._here.spawn(self._relay(question))
                return
            case wire.ReportRequest():
                reply = wire.PeerReport(number, self._here.report())
            case wire.LocateTimers(timers=timers):
                reply = wire.TimersLocated(number, local.locate(timers))
            case wire.ReportFlows(reports=reports):
                reply = wire.FlowAnswers(number, local.flows.reported(reports))
            case wire.AskFlows(incarnation=incarnation, homes=homes):
                reply = wire.FlowReports(number, local.flows.asked(incarnation, homes))
            case wire.CountFlows(namespace=namespace):
                reply = wire.FlowsCounted(number, local.flow_counts(namespace))
            case wire.AskDestinations(question=asked):
                reply = wire.DestinationsReported(number, local.destination_reports(asked))
            case _:
                assert_never(question)
        self._channel.send(wire.encode(reply))

    def _take(self, message: wire.PeerWrites) -> None:
        issued = self._ticks.get(message.tick)
        unread: list[tuple[Write, int, _Answer]] = []
        for op in message.ops:
            if op.id <= self._last_id:
                continue
            self._last_id = op.id
            self._in_flight += 1
            answer = _Answer(self, op.id, brief=op.brief)
            try:
                if issued is None or self._received_at - issued - message.elapsed_us > self._limits.message_age_max_us:
                    # The sender may have died since, and its client may have written again through another node.
                    raise ShardMoved("the write arrived too late (cluster.message_age_max)")
                write = _decode_write(op, issued + message.elapsed_us + op.budget_us)
                if self._here.local.knows_namespace(op.namespace, op.namespace_version):
                    self._here.local.accept(write, op.epoch, answer)
                else:
                    unread.append((write, op.epoch, answer))
            except TocsinError as error:
                answer.refuse(error)
            except Exception as error:  # noqa: BLE001 -- the sender gets an answer, and the event loop the report
                answer.fail(error)
        if self._in_flight:
            self.quiet.clear()
        if unread:
            self._here.spawn(self._accept_informed(unread))

    async def _accept_informed(self, writes: list[tuple[Write, int, _Answer]]) -> None:
        """Accepts writes whose senders know namespaces, or versions of them, that this node has not read yet."""
        failure: Exception | None = None
        try:
            await self._here.local.refresh_namespaces()
        except Exception as error:  # noqa: BLE001 -- it answers all writes, below
            failure = error
        for write, epoch, answer in writes:
            try:
                if self._void:
                    # The sender may know that and write again through another connection.
                    raise ShardMoved("the connection ended before it was accepted")
                if failure is not None:
                    raise failure
                self._here.local.accept(write, epoch, answer)
            except TocsinError as error:
                answer.refuse(error)
            except Exception as error:  # noqa: BLE001 -- as in `_take`
                answer.fail(error)

    async def _refresh(self, number: int) -> None:
        try:
            await self._here.local.refresh_namespaces()
        except TocsinError:
            # The requesting node has a timeout and repeats the request.
            return
        self._send_alone(wire.encode(wire.NamespacesRefreshed(number)))

    async def _relay(self, request: wire.RelayedRequest) -> None:
        try:
            frame = wire.encode(await self._here.serve(request))
            most = self._limits.frame_bytes_max
            if len(frame) > most:
                why = f"the response has {len(frame)} bytes; a message between nodes has at most {most}"
                frame = wire.encode(_failed(request, why))
        except Exception:
            # A defect, which the event loop reports; the requesting node needs a response, too.
            self._send_alone(wire.encode(_failed(request, "the node that served the request failed")))
            raise
        self._send_alone(frame)

    def _send_alone(self, frame: bytes) -> None:
        if not self._void:
            self._channel.send(frame)

    # ------------------------------------------------------------------ results

    def answered(self, number: int, result: Written | TocsinError | None, *, brief: bool) -> None:
        """Sends the result of a write, together with others."""
        self._answers.append(wire.encode_result(number, result, brief=brief))
        self._in_flight -= 1
        if not self._flush_planned:
            self._flush_planned = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_planned = False
        answers, self._answers = self._answers, []
        if not self._void:
            for frame in self._frames(answers):
                self._channel.send(wire.encode(wire.WriteResults(frame)))
        if not self._in_flight:
            self.quiet.set()

    def _frames(self, answers: list[wire.WriteResult]) -> Iterator[list[wire.WriteResult]]:
        """The results, split into messages below the size limit of the other node: they may contain whole timers."""
        limits, frame, size = self._limits, list[wire.WriteResult](), 0
        for answer in answers:
            frame.append(answer)
            size += len(answer.record)
            if len(frame) >= limits.frame_writes_max or size >= limits.frame_fill_bytes:
                yield frame
                frame, size = [], 0
        if frame:
            yield frame

    def writable(self) -> None:
        """Does nothing: results are sent whether the connection is congested or not."""

    def lost(self, reason: str) -> None:
        """The connection is lost: ends the session."""
        self._void = True
        if self._timer is not None:
            self._timer.cancel()
        self.quiet.set()
        self._ended(self)


class _Answer(Completion[Written | None]):
    """The result of a write, which goes back to the sender under the write's number."""

    __slots__ = ("_brief", "_number", "_session")

    def __init__(self, session: PeerSession, number: int, *, brief: bool) -> None:
        super().__init__()
        self._session, self._number, self._brief = session, number, brief

    def _resolved(self, written: Written | None) -> None:
        self._session.answered(self._number, written, brief=self._brief)

    def _refused(self, error: TocsinError) -> None:
        self._session.answered(self._number, error, brief=self._brief)

    def _failed(self, error: Exception) -> None:
        self._refused(ShardUnavailable("the shard's owner failed; the outcome of the write is unknown, try again"))
        # It is reported to the event loop.
        raise error


def _decode_write(op: wire.PeerWrite, deadline_us: int) -> Write:
    try:
        return wire.decode_write(op, deadline_us)
    except RecordUndecodable as error:
        # Perhaps from a newer release. Nothing was written.
        raise ShardUnavailable(f"the shard's owner cannot decode the write: {error}") from error


def _failed(request: wire.RelayedRequest, why: str) -> wire.RelayedResponse:
    return wire.RelayedResponse(request.id, 500, [(b"content-type", b"text/plain; charset=utf-8")], why.encode())
