"""Django."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from tocsin_client.receiver._receiver import BODY_BYTES_MAX, AsyncHandler, Handler, Receiver, Response, is_asynchronous

DjangoView: TypeAlias = Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse]]


def django_view(receiver: Receiver, handler: Handler | AsyncHandler) -> DjangoView:
    """The view. It is exempt from the check of form tokens, since the signature proves who calls."""

    def view(request: HttpRequest) -> HttpResponse:
        return _response(receiver.handle(request.headers.items(), _body(request), handler))

    async def async_view(request: HttpRequest) -> HttpResponse:
        return _response(await receiver.handle_async(request.headers.items(), _body(request), handler))

    exempt: DjangoView = csrf_exempt(async_view if is_asynchronous(handler) else view)
    return exempt


def _body(request: HttpRequest) -> bytes:
    """No more than decides; Django itself refuses what is too long by a 400, which ends timers."""
    body: bytes = request.read(BODY_BYTES_MAX + 1)
    return body


def _response(answer: Response) -> HttpResponse:
    return HttpResponse(answer.body, status=answer.status, headers=dict(answer.headers))
