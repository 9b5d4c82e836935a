"""Verifies requests and calls handlers, whatever server received them."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tocsin_client._values import Duration, seconds_of
from tocsin_client.receiver._answers import Answer
from tocsin_client.receiver._batch import Batch
from tocsin_client.receiver._firing import Firing, is_timestamp
from tocsin_client.receiver._signatures import is_signed, key_of, signatures_of

if TYPE_CHECKING:
    from tocsin_client.receiver._asgi import AsgiApp
    from tocsin_client.receiver._django import DjangoView
    from tocsin_client.receiver._flask import FlaskView

_log = logging.getLogger("tocsin_client")

BODY_BYTES_MAX = 1024 * 1024
#: More than a percent-encoded id, or ten signatures, have.
HEADER_CHARS_MAX = 8_192
_SIGNATURE_HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")
_READ_HEADERS = (*_SIGNATURE_HEADERS, "tocsin-namespace", "tocsin-timer-id")
TOLERANCE_S = 300.0

Handler: TypeAlias = Callable[[Firing], Answer]
AsyncHandler: TypeAlias = Callable[[Firing], Awaitable[Answer]]
Response: TypeAlias = Answer


class Receiver:
    """Verifies callbacks with the namespace's secrets: the current one, and the former one during a rotation.

    `secrets` is one or several, or a function that returns them; it is called for each request, so that nothing is needed
    when the program is only imported. Without secrets every request is refused, unless `unsigned` is True: then anybody who
    reaches the receiver can call it. `tolerance` is how far the sender's clock may differ, in seconds
    or as a timedelta or text.
    """

    def __init__(
        self,
        secrets: str | Sequence[str] | Callable[[], str | Sequence[str]] = (),
        *,
        tolerance: Duration = TOLERANCE_S,
        unsigned: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._secrets = secrets
        self._tolerance = seconds_of("tolerance", tolerance)
        self._unsigned = unsigned
        self._now = now

    def handle(self, headers: Headers, body: bytes, handler: Handler | AsyncHandler) -> Response:
        """The response to a request. An exception of the handler is logged, and answered 500: the server calls again. What
        an asynchronous handler returns runs in an event loop of its own. The callbacks of a batch are handled one after
        another, and answered together."""
        verified = self.verify(headers, body)
        if isinstance(verified, Batch):
            return verified.response([_handle(firing, handler) for firing in verified.firings])
        return _handle(verified, handler) if isinstance(verified, Firing) else verified

    async def handle_async(self, headers: Headers, body: bytes, handler: Handler | AsyncHandler) -> Response:
        """The same in an event loop, which a handler that is not asynchronous does not block: it runs in a thread."""
        verified = self.verify(headers, body)
        if isinstance(verified, Batch):
            return verified.response([await _handle_async(firing, handler) for firing in verified.firings])
        return await _handle_async(verified, handler) if isinstance(verified, Firing) else verified

    def verify(self, headers: Headers, body: bytes) -> Firing | Batch | Response:
        """The firing, or the firings of a batch, or the response to a request that is refused. TypeError: the body is not the
        raw bytes."""
        if not isinstance(body, (bytes, bytearray, memoryview)):
            raise TypeError(
                f"body: {type(body).__name__} is not bytes; give the request's raw body, before a parser has read it"
            )
        body = bytes(body)
        if len(body) > BODY_BYTES_MAX:
            return _refused(413, "the body is too large for a callback")
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        named = {name.lower(): value for name, value in pairs}
        if any(len(named.get(name, "")) > HEADER_CHARS_MAX for name in _READ_HEADERS):
            return _refused(503, "a header of the request is too long")
        refusal = None if self._unsigned else self._refusal(named, body)
        if refusal is not None:
            return refusal
        try:
            return Batch.read(named, body) if Batch.is_one(named) else Firing.read(named, body)
        except (ValueError, OverflowError, OSError) as wrong:
            _log.warning("callback refused: %s", wrong, extra={"webhook_id": named.get("webhook-id")})
            return _refused(503, "the request is not the callback that its webhook-id names")

    def _refusal(self, headers: Mapping[str, str], body: bytes) -> Response | None:
        """Why the request is not verified. What a mended configuration would accept is 503: after a 401 the timer fails."""
        if any(name not in headers for name in _SIGNATURE_HEADERS):
            return _refused(401, "the request is not signed")
        webhook_id, timestamp, signatures = (headers[name] for name in _SIGNATURE_HEADERS)
        # What costs nothing comes first: the secrets may come from elsewhere, and the body is hashed with each.
        if not is_timestamp(timestamp):
            return _refused(503, "the request's timestamp is not a number")
        if abs(self._now() - int(timestamp)) > self._tolerance:
            _log.warning("callback refused: timestamp is outside the tolerance", extra={"webhook_id": webhook_id})
            return _refused(503, "the request's timestamp is outside the tolerance; check both clocks")
        given = signatures_of(signatures)
        if given is None:
            return _refused(503, "the request has more signatures than a rotation of secrets gives it")
        try:
            keys = [key_of(secret) for secret in self._resolved()]
        except Exception:  # noqa: BLE001 (the function is the user's)
            _log.exception("signing secrets can't be read; callbacks are refused until they can")
            return _refused(503, "the receiver's secrets can't be read; its log has the reason")
        if not keys:
            _log.error("receiver has no signing secret; give one, or unsigned=True")
            return _refused(503, "the receiver has no secret")
        if not is_signed(keys, webhook_id, timestamp, body, given):
            _log.warning("callback refused: wrong signature", extra={"webhook_id": webhook_id})
            return _refused(503, "no signature is of this receiver's secrets")
        return None

    def _resolved(self) -> Iterable[str]:
        secrets = self._secrets() if callable(self._secrets) else self._secrets
        return [secrets] if isinstance(secrets, str) and secrets else secrets

    def asgi(self, handler: Handler | AsyncHandler) -> AsgiApp:
        """An ASGI application: the endpoint of a `Route` in Starlette or FastAPI, or served alone."""
        from tocsin_client.receiver._asgi import asgi_app

        return asgi_app(self, handler)

    def django(self, handler: Handler | AsyncHandler) -> DjangoView:
        """A view for Django's `path()`; asynchronous, if the handler is."""
        from tocsin_client.receiver._django import django_view

        return django_view(self, handler)

    def flask(self, handler: Handler | AsyncHandler) -> FlaskView:
        """A view function for Flask's `add_url_rule()`."""
        from tocsin_client.receiver._flask import flask_view

        return flask_view(self, handler)


Headers: TypeAlias = "Mapping[str, str] | Iterable[tuple[str, str]]"


def is_asynchronous(handler: Handler | AsyncHandler) -> bool:
    """Whether it is a coroutine function, a partial of one, or an object that is called like one."""
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004


def _handle(firing: Firing, handler: Handler | AsyncHandler) -> Answer:
    try:
        answer = handler(firing)
        return _checked(_run(answer) if inspect.isawaitable(answer) else answer)
    except Exception:  # noqa: BLE001 (logged, and answered)
        return _crashed(firing)


async def _handle_async(firing: Firing, handler: Handler | AsyncHandler) -> Answer:
    try:
        # Only its call shows what a function or an object returns; a coroutine function can be called here.
        answer = handler(firing) if is_asynchronous(handler) else await asyncio.to_thread(handler, firing)
        return _checked(await answer if inspect.isawaitable(answer) else answer)
    except Exception:  # noqa: BLE001 (logged, and answered)
        return _crashed(firing)


def _run(answer: Awaitable[Answer]) -> Answer:
    """RuntimeError: an event loop is running, which this would block."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_awaited(answer))
    if inspect.iscoroutine(answer):
        answer.close()
    raise RuntimeError("handle() can't run an asynchronous handler within an event loop; await handle_async()")


async def _awaited(answer: Awaitable[Answer]) -> Answer:
    return await answer


def _checked(answer: object) -> Answer:
    if not isinstance(answer, Answer):
        raise TypeError(f"the handler returned {answer!r}; return done(), reschedule_at(), retry() or fail()")
    return answer


def _crashed(firing: Firing) -> Response:
    _log.exception("handler failed", extra={"webhook_id": firing.webhook_id, "timer_id": firing.timer_id})
    return _refused(500, "the handler failed; the receiver's log has the reason")


def _refused(status: int, reason: str) -> Response:
    return Answer(status, {"content-type": "text/plain; charset=utf-8"}, reason.encode())
