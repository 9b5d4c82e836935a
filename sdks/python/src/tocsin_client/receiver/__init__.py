"""Receives callbacks: verifies them, gives your handler a `Firing`, and sends its answer.

    from tocsin_client.receiver import Receiver, done, reschedule_at

    receiver = Receiver(lambda: os.environ["TOCSIN_SECRET"].split())
    app = receiver.asgi(remind)      # Starlette, FastAPI; or receiver.django(remind), receiver.flask(remind)

`Dedup` does the work of a firing once, however often its callback arrives.
"""

from __future__ import annotations

from tocsin_client.receiver._answers import Answer, done, fail, reschedule_at, retry
from tocsin_client.receiver._dedup import Dedup
from tocsin_client.receiver._firing import Firing
from tocsin_client.receiver._receiver import AsyncHandler, Handler, Receiver, Response
from tocsin_client.receiver._signatures import sign_body

__all__ = [
    "Answer",
    "AsyncHandler",
    "Dedup",
    "Firing",
    "Handler",
    "Receiver",
    "Response",
    "done",
    "fail",
    "reschedule_at",
    "retry",
    "sign_body",
]
