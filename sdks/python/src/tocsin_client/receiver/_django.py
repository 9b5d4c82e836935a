"""Django."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from tocsin_client.receiver._receiver import Handler, Receiver

DjangoView: TypeAlias = Callable[[HttpRequest], HttpResponse]


def django_view(receiver: Receiver, handler: Handler) -> DjangoView:
    """The view. It is exempt from the check of form tokens, since the signature proves who calls."""

    def view(request: HttpRequest) -> HttpResponse:
        answer = receiver.handle(request.headers.items(), request.body, handler)
        return HttpResponse(answer.body, status=answer.status, headers=dict(answer.headers))

    exempt: DjangoView = csrf_exempt(view)
    return exempt
