"""Commands and their replies over NATS, outside of streams: a command without a responder fails at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import msgspec
from nats.aio.msg import Msg
from nats.errors import NoRespondersError

from tocsin.messaging.delivery import RequestDispatcher, describe
from tocsin.messaging.nats.connection import NatsConnection
from tocsin.model.errors import TocsinError
from tocsin.ports.bus import (
    BusOverloaded,
    BusUnavailable,
    Check,
    CommandFailed,
    Envelope,
    InvalidMessage,
    RequestUnanswered,
)

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


async def request(
    connection: NatsConnection, subject: str, envelope: Envelope, timeout_us: int, check: Check
) -> Envelope:
    """Sends a command and returns its reply. Raises BusUnavailable, RequestUnanswered, InvalidMessage or
    CommandFailed."""
    try:
        message = await connection.request(subject, _encode(envelope), timeout_us / 1e6)
    except NoRespondersError:
        raise BusUnavailable(f"no responder for {envelope.type}") from None
    except TimeoutError:
        raise RequestUnanswered(f"no reply to {envelope.type} within {timeout_us / 1e6:g} s") from None
    headers = message.headers or {}
    if code := headers.get(_ERROR):
        raise _FAILURES.get(code, CommandFailed)(headers.get(_DETAIL, code))
    try:
        return read(message, check)
    except InvalidMessage as error:
        raise CommandFailed(f"unreadable reply to {envelope.type}: {error}") from error


def take_command(
    message: Msg,
    connection: NatsConnection,
    dispatcher: RequestDispatcher,
    check: Check,
    subject: Callable[[Envelope], str],
    leads: Callable[[], bool],
) -> None:
    """Passes a received command to its dispatcher; an invalid one is answered at once. `subject` returns the subject of
    an envelope. A failure is not reported if `leads` returns False by then: the first reply counts, and another agent may
    carry out the command."""
    reply = partial(_send_reply, connection, message.reply, leads)
    try:
        envelope = read(message, check)
        if subject(envelope) != message.subject:
            raise InvalidMessage(f"{envelope.type} {envelope.id} arrived on a subject of another message")
    except InvalidMessage as error:
        _send_failure(connection, message.reply, error)
    else:
        dispatcher.offer(envelope).add_done_callback(reply)


def _send_reply(
    connection: NatsConnection, subject: str, leads: Callable[[], bool], reply: asyncio.Future[Envelope]
) -> None:
    error = reply.exception()
    if isinstance(error, Exception):
        if leads():
            _send_failure(connection, subject, error)
    elif subject:
        connection.send(subject, _encode(reply.result()))


def _send_failure(connection: NatsConnection, subject: str, error: Exception) -> None:
    if subject:
        code = error.code if isinstance(error, TocsinError) and error.code in _FAILURES else CommandFailed.code
        connection.send(subject, b"", headers={_ERROR: code, _DETAIL: str(error) or describe(error)})
