"""Flask."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import flask

from tocsin_client.receiver._receiver import BODY_BYTES_MAX, AsyncHandler, Handler, Receiver

FlaskView: TypeAlias = Callable[[], flask.Response]


def flask_view(receiver: Receiver, handler: Handler | AsyncHandler) -> FlaskView:
    """The view function."""

    def tocsin_receiver() -> flask.Response:
        # No more than decides. What was read before, the request keeps.
        body = flask.request.stream.read(BODY_BYTES_MAX + 1) or flask.request.get_data()
        answer = receiver.handle(flask.request.headers.items(), body, handler)
        return flask.Response(answer.body, status=answer.status, headers=dict(answer.headers))

    return tocsin_receiver
