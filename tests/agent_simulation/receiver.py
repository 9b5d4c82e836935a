"""The services that are called, and the HTTP client that calls them."""

from __future__ import annotations

import contextvars
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from tocsin.model.answer import NoResponse
from tocsin.ports.http import Reply, Request, Result
from tocsin.testing.simulation_loop import NODE

if TYPE_CHECKING:
    from .world import World


class Answer(NamedTuple):
    """What a service said, known by its body."""

    call: int
    status: int


class Receivers:
    """Each request is noted, then answered or not: at once, late, never."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world = world
        self.rng = rng
        #: By call, when its requests arrived, microseconds.
        self.arrivals: dict[int, list[int]] = {}
        #: By call, how many requests were sent, those that found no connection included.
        self.sent: dict[int, int] = {}
        #: By call, when the process that runs the agent sent the last one, microseconds.
        self.sent_at: dict[int, int] = {}
        self.answers: dict[str, Answer] = {}
        #: By call, what the client made of each request, in the order in which it did.
        self.results: dict[int, list[str]] = {}

    def arrive(self, call: int) -> None:
        """A request is here."""
        self.world.say("arrival", call)
        self.arrivals.setdefault(call, []).append(self.world.now_us())

    def fate(self, host: str) -> str:
        """What becomes of the next request."""
        if host == "hung":
            return "hang"
        if host == "slow":
            return self.rng.choice(("slow", "ok"))
        return self.rng.choices(("ok", "error", "hang", "slow", "refuse"), (80, 7, 3, 5, 5))[0]


class SimulatedClient:
    """The port Requester for one process. Its callbacks belong to the process; the requests are on their way alone."""

    def __init__(self, receivers: Receivers) -> None:
        self._receivers = receivers
        self._world = receivers.world
        self._context = contextvars.copy_context()

    def destination(self, url: str) -> str:
        """See the port."""
        return urlsplit(url).netloc

    def send(self, request: Request, done: Callable[[Result], None]) -> None:
        """See the port."""
        receivers, rng, world = self._receivers, self._receivers.rng, self._world
        parts = urlsplit(request.url)
        call, began_us, finished = int(parts.path[1:]), world.now_us(), False
        receivers.sent[call] = receivers.sent.get(call, 0) + 1
        if NODE.get() == world.process.name:
            receivers.sent_at[call] = began_us
        fate = receivers.fate(parts.netloc)

        def end(outcome: Reply | NoResponse, what: str) -> None:
            nonlocal finished
            if not finished:
                finished = True
                world.say("result", call, what)
                receivers.results.setdefault(call, []).append(what)
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
        receivers.answers[body] = Answer(call, status)
        delay_s = rng.uniform(0.5, 1.2) * timeout_s if fate == "slow" else rng.choice((0.01, 3.0, 9.0)) * rng.random()
        later(way_s + delay_s, Reply(status, (), body.encode(), False), body)
