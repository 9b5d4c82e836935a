"""Does the core's steps with scripted answers and a clock that sleeps move."""

from __future__ import annotations

import json

from tocsin_client._core.session import Options, Session
from tocsin_client._core.steps import Reply, Send, Sleep

BASE = "http://tocsin.example"


class World:
    """The time, what was sent, and what is answered: replies, errors, or functions of the request, in order. Each request
    takes `request_s`."""

    def __init__(self, *script, request_s=0.0, uniform=0.5, **options):
        self.time = 1_000.0
        self.request_s = request_s
        self.script = list(script)
        self.sent: list[Send] = []
        self.slept: list[float] = []
        routing = options.pop("routing", None)
        self.session = Session(
            BASE, "tk_1", Options(**options), routing, monotonic=self.now, now=self.now, uniform=lambda: uniform
        )

    def now(self):
        return self.time

    def run(self, steps):
        """What the steps return, or raise."""
        try:
            step = next(steps)
            while True:
                if isinstance(step, Sleep):
                    self.slept.append(round(step.seconds, 6))
                    self.time += step.seconds
                    step = steps.send(None)
                else:
                    self.sent.append(step)
                    self.time += self.request_s
                    answer = self.script.pop(0)
                    step = steps.send(answer(step) if callable(answer) else answer)
        except StopIteration as done:
            return done.value

    def body(self, index):
        """What the request contained."""
        return json.loads(self.sent[index].body)


def reply(status, body=None, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, named, b"" if body is None else json.dumps(body).encode())


def problem(status, code, **headers):
    return reply(status, {"error": code, "message": "m", "errors": []}, **headers)


def timer(status="pending", timer_id="a", shard_id=0):
    at = "2027-01-31T12:00:00.000001Z"
    return {
        "namespace": "n", "id": timer_id, "timerUuid": "u", "shardId": shard_id, "status": status, "executeAt": at,
        "callbackUrl": "http://x/", "method": "POST", "headers": {}, "callbackTimeoutSeconds": 10, "tags": [],
        "attempts": 0, "attemptLog": [], "createdAt": at, "updatedAt": at, "later": "unknown members are ignored",
    }  # fmt: skip
