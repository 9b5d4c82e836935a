"""Commands and their replies over NATS, outside of streams: a command without a responder fails at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count

import msgspec
from nats.aio.msg import Msg

from tocsin.messaging.delivery import describe
from tocsin.messaging.limits import BusLimits
from tocsin.messaging.nats.connection import NatsConnection
from tocsin.messaging.request_dispatcher import RequestDispatcher
from tocsin.model.envelope import Envelope
from tocsin.model.errors import TocsinError
from tocsin.ports.bus import BusOverloaded, BusUnavailable, Check, CommandFailed, InvalidMessage, RequestUnanswered

_ERROR = "Tocsin-Error"
_DETAIL = "Tocsin-Error-Detail"
_FAILURES: dict[str, type[TocsinError]] = {
    each.code: each for each in (BusOverloaded, BusUnavailable, InvalidMessage, CommandFailed)
}
_decode = msgspec.json.Decoder(Envelope).decode
_encode = msgspec.json.Encoder().encode


def read(message: Msg, check: Check) -> Envelope:
    """The envelope in a message. Raises InvalidMessage if there is none, or if `check` refuses it."""
    try:
        envelope = _decode(message.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidMessage(f"the message is not an envelope: {error}") from error
    check(envelope)
    return envelope


class NatsRequests:
    """Requests that wait for a reply, on one connection after another."""

    def __init__(self, limits: BusLimits, check: Check) -> None:
        self._waiting_max = limits.pending_requests_max
        self._check = check
        self._inbox = ""
        self._tokens = count()
        self._waiting: dict[str, asyncio.Future[Msg]] = {}

    async def open(self, connection: NatsConnection) -> None:
        """Subscribes to replies."""
        self._inbox = connection.new_inbox()
        await connection.listen(f"{self._inbox}.*", self._replied)

    def end(self, reason: str) -> None:
        """The connection has ended: no reply can arrive."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(BusUnavailable(f"the connection to NATS ended: {reason}"))

    async def request(self, connection: NatsConnection, subject: str, envelope: Envelope, timeout_us: int) -> Envelope:
        """Sends a command and returns its reply. Raises BusUnavailable, BusOverloaded, RequestUnanswered,
        InvalidMessage or CommandFailed."""
        if len(self._waiting) >= self._waiting_max:
            raise BusOverloaded(f"{self._waiting_max} commands wait already")
        token = str(next(self._tokens))
        future = self._waiting[token] = asyncio.get_running_loop().create_future()
        try:
            connection.send(subject, _encode(envelope), f"{self._inbox}.{token}")
            async with asyncio.timeout(timeout_us / 1e6):
                message = await future
        except TimeoutError:
            raise RequestUnanswered(f"no reply to {envelope.type} within {timeout_us / 1e6:g} s") from None
        finally:
            del self._waiting[token]
        return self._reply(envelope, message)

    def _replied(self, message: Msg) -> None:
        future = self._waiting.get(message.subject.rpartition(".")[2])
        if future is not None and not future.done():
            future.set_result(message)

    def _reply(self, envelope: Envelope, message: Msg) -> Envelope:
        headers = message.headers or {}
        if headers.get("Status") == "503":
            raise BusUnavailable(f"no responder for {envelope.type}")
        if code := headers.get(_ERROR):
            raise _FAILURES.get(code, CommandFailed)(headers.get(_DETAIL, code))
        try:
            return read(message, self._check)
        except InvalidMessage as error:
            raise CommandFailed(f"unreadable reply to {envelope.type}: {error}") from error


def take_command(
    message: Msg,
    connection: NatsConnection,
    dispatcher: RequestDispatcher,
    check: Check,
    subject: Callable[[Envelope], str],
) -> None:
    """Passes a received command to its dispatcher; an invalid one is answered at once. `subject` returns the subject of
    an envelope."""
    reply = partial(_send_reply, connection, message.reply)
    try:
        envelope = read(message, check)
        if subject(envelope) != message.subject:
            raise InvalidMessage(f"{envelope.type} {envelope.id} arrived on a subject of another message")
    except InvalidMessage as error:
        reply(error)
    else:
        dispatcher.offer(envelope, reply)


def _send_reply(connection: NatsConnection, subject: str, answer: Envelope | Exception) -> None:
    if not subject:
        return
    if isinstance(answer, Envelope):
        connection.send(subject, _encode(answer))
        return
    code = answer.code if isinstance(answer, TocsinError) and answer.code in _FAILURES else CommandFailed.code
    connection.send(subject, b"", headers={_ERROR: code, _DETAIL: str(answer) or describe(answer)})
