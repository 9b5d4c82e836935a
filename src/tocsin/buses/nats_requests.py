"""Commands and their replies over NATS, outside of streams: who isn't there can't answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count

import msgspec
from nats.aio.msg import Msg

from tocsin.buses.answering import Answering
from tocsin.buses.delivery import describe
from tocsin.buses.limits import BusLimits
from tocsin.buses.nats_connection import NatsConnection
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
    """The envelope that a message carries; InvalidMessage when it isn't one, or not of the prescribed form."""
    try:
        envelope = _decode(message.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidMessage(f"no envelope can be read: {error}") from error
    check(envelope)
    return envelope


class NatsRequests:
    """The requests that wait for a reply, on one connection after another."""

    def __init__(self, limits: BusLimits, check: Check) -> None:
        self._waiting_max = limits.pending_requests_max
        self._check = check
        self._inbox = ""
        self._tokens = count()
        self._waiting: dict[str, asyncio.Future[Msg]] = {}

    async def open(self, connection: NatsConnection) -> None:
        """Listens for replies."""
        self._inbox = connection.new_inbox()
        await connection.listen(f"{self._inbox}.*", self._replied)

    def end(self, reason: str) -> None:
        """The connection has ended: nobody will hear a reply."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(BusUnavailable(f"the connection to NATS ended: {reason}"))

    async def request(self, connection: NatsConnection, subject: str, envelope: Envelope, timeout_us: int) -> Envelope:
        """As the port's `request`."""
        if len(self._waiting) >= self._waiting_max:
            raise BusOverloaded(f"{self._waiting_max} commands wait already")
        token = str(next(self._tokens))
        future = self._waiting[token] = asyncio.get_running_loop().create_future()
        try:
            connection.send(subject, _encode(envelope), f"{self._inbox}.{token}")
            async with asyncio.timeout(timeout_us / 1e6):
                message = await future
        except TimeoutError:
            raise RequestUnanswered(f"no reply to {envelope.type} came in {timeout_us / 1e6:g} s") from None
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
            raise BusUnavailable(f"nobody answers {envelope.type}")
        if code := headers.get(_ERROR):
            raise _FAILURES.get(code, CommandFailed)(headers.get(_DETAIL, code))
        try:
            return read(message, self._check)
        except InvalidMessage as error:
            raise CommandFailed(f"the reply to {envelope.type} can't be read: {error}") from error


def take_command(
    message: Msg, connection: NatsConnection, answering: Answering, check: Check, subject: Callable[[Envelope], str]
) -> None:
    """Hands a command that came to its responder; what has a wrong form is answered at once. `subject` tells where an
    envelope belongs."""
    reply = partial(_send_reply, connection, message.reply)
    try:
        envelope = read(message, check)
        if subject(envelope) != message.subject:
            raise InvalidMessage(f"{envelope.type} {envelope.id} came on a subject that isn't its own")
    except InvalidMessage as error:
        reply(error)
    else:
        answering.offer(envelope, reply)


def _send_reply(connection: NatsConnection, subject: str, answer: Envelope | Exception) -> None:
    if not subject:
        return
    if isinstance(answer, Envelope):
        connection.send(subject, _encode(answer))
        return
    code = answer.code if isinstance(answer, TocsinError) and answer.code in _FAILURES else CommandFailed.code
    connection.send(subject, b"", headers={_ERROR: code, _DETAIL: str(answer) or describe(answer)})
