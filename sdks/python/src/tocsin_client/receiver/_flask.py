"""Flask."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import flask

from tocsin_client.receiver._receiver import Handler, Receiver

FlaskView: TypeAlias = Callable[[], flask.Response]


def flask_view(receiver: Receiver, handler: Handler) -> FlaskView:
    """The view function."""

    def tocsin_receiver() -> flask.Response:
        body = flask.request.get_data(cache=False)
        answer = receiver.handle(flask.request.headers.items(), body, handler)
        return flask.Response(answer.body, status=answer.status, headers=dict(answer.headers))

    return tocsin_receiver
