"""The services that are called, and the HTTP client that calls them."""

from __future__ import annotations

import contextvars
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from tests.support.simulation_loop import NODE
from tocsin.model.answer import NoResponse
from tocsin.ports.http import Reply, Request, Result

if TYPE_CHECKING:
    from .world import World


class ServiceAnswer(NamedTuple):
    """A service's response, identified by its body."""

    call: int
    status: int


class Receivers:
    """Records each request and answers it at once, late or never."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world = world
        self.rng = rng
        #: When the requests of each call arrived, in microseconds.
        self.arrivals: dict[int, list[int]] = {}
        #: How many requests of each call were sent, including failed connections.
        self.sent: dict[int, int] = {}
        #: When the process that runs the agent sent the last request of each call, in microseconds.
        self.sent_at: dict[int, int] = {}
        self.answers: dict[str, ServiceAnswer] = {}
        #: The client's result of each request of a call, by the request's number: a frozen process gets results late.
        self.results: dict[int, dict[int, str]] = {}
        #: The `traceparent` of the first request of each call.
        self.traceparents: dict[int, str | None] = {}

    def arrive(self, call: int) -> None:
        """A request arrives."""
        self.world.log("arrival", call)
        self.arrivals.setdefault(call, []).append(self.world.now_us())

    def fate(self, host: str) -> str:
        """Draws the outcome of the next request."""
        if host == "hung":
            return "hang"
        if host == "slow":
            return self.rng.choice(("slow", "ok"))
        return self.rng.choices(("ok", "error", "hang", "slow", "refuse"), (80, 7, 3, 5, 5))[0]


class SimulatedClient:
    """Implements the port Requester for one process. Its callbacks belong to the process; requests in flight do not."""

    def __init__(self, receivers: Receivers) -> None:
        self._receivers = receivers
        self._world = receivers.world
        self._context = contextvars.copy_context()

    def destination(self, url: str) -> str:
        return urlsplit(url).netloc

    def send(self, request: Request, done: Callable[[Result], None]) -> None:
        receivers, rng, world = self._receivers, self._receivers.rng, self._world
        parts = urlsplit(request.url)
        call, began_us, finished = int(parts.path[1:]), world.now_us(), False
        number = receivers.sent[call] = receivers.sent.get(call, 0) + 1
        if NODE.get() == world.process.name:
            receivers.sent_at[call] = began_us
        traceparent = None if request.trace is None else request.trace.traceparent
        if traceparent is None or traceparent != receivers.traceparents.setdefault(call, traceparent):
            world.broken("TRACE", f"call {call}: {traceparent}, not {receivers.traceparents.get(call)}")
        world.issuer.check(call, request)
        fate = receivers.fate(parts.netloc)

        def end(outcome: Reply | NoResponse, what: str) -> None:
            nonlocal finished
            if not finished:
                finished = True
                world.log("result", call, what)
                receivers.results.setdefault(call, {})[number] = what
                done(Result(outcome, began_us, world.now_us() - began_us))

        def later(delay_s: float, outcome: Reply | NoResponse, what: str) -> None:
            self._context.run(world.loop.call_later, delay_s, end, outcome, what)

        timeout_s = request.timeout_us / 1e6
        if fate == "refuse":
            later(rng.uniform(0.001, 0.01), NoResponse("CONNECTION_FAILED"), "CONNECTION_FAILED")
            return
        way_s = rng.uniform(0.001, 0.02)
        world.outside(way_s, receivers.arrive, call)
        later(timeout_s, NoResponse("TIMEOUT"), "TIMEOUT")
        if fate == "hang":
            return
        body = f"answer-{len(receivers.answers)}"
        status = rng.choice((500, 404, 302)) if fate == "error" else rng.choice((200, 200, 204, 299))
        receivers.answers[body] = ServiceAnswer(call, status)
        delay_s = rng.uniform(0.5, 1.2) * timeout_s if fate == "slow" else rng.choice((0.01, 3.0, 9.0)) * rng.random()
        later(way_s + delay_s, Reply(status, (), body.encode(), False), body)
