"""The flows of a run: rules for the timers of some clients, and the ledger of what they promise across nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

from tocsin.model.flow import Flow, FlowLimits, Rate
from tocsin.timers.engine.flow_home import Home

if TYPE_CHECKING:
    from .receiver import Receiver
    from .world import World

SECOND = 1_000_000
#: How much more than its rate a rule may begin, because a grant may be used a second after its request.
GRANT_S = 1
#: What clocks of 200 ppm and roundings may add to the instants of a run.
_DOUBT_US = 100_000


class _Attempt:
    def __init__(self, receiver: Receiver, incarnation: bytes) -> None:
        self.receiver = receiver
        self.incarnation = incarnation


class FlowLedger:
    """Checks that no rule begins more than it promises. Attempts at receivers do not count if their node was presumed dead,
    or a new home could not ask it."""

    def __init__(self, world: World, there: bool | None) -> None:
        self._world = world
        rng = world.rng("flows")
        #: Whether there are flows in this run.
        quarter = rng.random() < 0.25
        self.there = quarter if there is None else there
        self._in_flight: dict[str, dict[_Attempt, None]] = {}
        self._begun: dict[str, list[int]] = {}
        #: By what the limits apply to: a namespace, or a key in it.
        self._limits: dict[str, FlowLimits] = {}
        self.rules: list[Flow] = []
        #: The limits of namespaces themselves.
        self.of_namespaces: dict[str, FlowLimits] = {}
        self._key_of: dict[bytes, tuple[str, str]] = {}
        if self.there:
            rate = Rate(rng.choice((2, 5, 20)), SECOND)
            self.rules = [
                Flow("a", "rated", 0, 0, per_key=FlowLimits(rate, burst=rng.choice((1, 3)))),
                Flow("a", "one:", 0, 0, per_key=FlowLimits(parallelism=1), total=FlowLimits(parallelism=2)),
                Flow("b", "some", 0, 0, per_key=FlowLimits(rate, burst=2, parallelism=2)),
            ]
            if rng.random() < 0.5:
                self.of_namespaces["b"] = FlowLimits(parallelism=2)

    def key_for(self, number: int, namespace: str, uuid: bytes) -> str:
        """The flow key of all timers of a client."""
        if not self.there or namespace not in ("a", "b"):
            return ""
        keys = ("rated", "one:x", "one:y", "") if namespace == "a" else ("some", "")
        key = self._world.rng("flow", number).choice(keys)
        self._key_of[uuid] = (namespace, key)
        return key

    def limited(self, uuid: bytes) -> bool:
        """Whether the timer may be late because of a rule."""
        namespace, key = self._key_of.get(uuid, ("", ""))
        return bool(key) or namespace in self.of_namespaces

    def _subject_to(self, namespace: str, key: str) -> Iterator[tuple[str, FlowLimits]]:
        if namespace in self.of_namespaces:
            yield namespace, self.of_namespaces[namespace]
        for rule in self.rules:
            if rule.namespace == namespace and key and key.startswith(rule.match):
                if rule.per_key is not None:
                    yield f"{namespace}/{key}", rule.per_key
                if rule.total is not None:
                    yield f"{namespace}/{rule.match}*", rule.total

    def begins(self, uuid: bytes, namespace: str, receiver: Receiver, incarnation: bytes) -> _Attempt:
        """Records that an attempt begins."""
        attempt, now_us = _Attempt(receiver, incarnation), self._world.true_us()
        for name, limits in self._subject_to(namespace, self._key_of.get(uuid, ("", ""))[1]):
            present = self._in_flight.setdefault(name, {})
            for other in [each for each in present if not each.receiver.connected]:
                del present[other]
            present[attempt] = None
            if limits.parallelism is not None and len(present) > limits.parallelism:
                self._world.broken("PARALLELISM", f"{name}: {len(present)} in flight, {limits.parallelism} allowed")
            if limits.rate is not None:
                self._check_rate(name, limits, limits.rate, now_us)
        return attempt

    def _check_rate(self, name: str, limits: FlowLimits, rate: Rate, now_us: int) -> None:
        begun = self._begun.setdefault(name, [])
        begun.append(now_us)
        slack_us = (GRANT_S * SECOND if len(self._world.nodes) > 1 else 0) + _DOUBT_US
        for position, since_us in enumerate(begun):
            allowed = limits.burst + rate.count * (now_us - since_us + slack_us) // rate.per_us
            if len(begun) - position > allowed:
                what = f"{len(begun) - position} within {now_us - since_us} us, {allowed} allowed"
                self._world.broken("RATE", f"{name}: {what}")

    def ends(self, attempt: _Attempt) -> None:
        """Records that an attempt ends."""
        for present in self._in_flight.values():
            present.pop(attempt, None)

    def forgiven(self, incarnation: bytes) -> None:
        """What the node has in flight does not count any more: it was presumed dead."""
        for present in self._in_flight.values():
            for attempt in [each for each in present if each.incarnation == incarnation]:
                del present[attempt]

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Watches which nodes the homes presume dead, or could not ask."""
        ledger, world, begin, awaited, forget = self, self._world, Home.begin, Home.awaited, Home.forget

        def watched_begin(home: Home, others: set[bytes], now_us: int, patience_us: int) -> bool:
            fresh = home._awaited is None
            asks = begin(home, others, now_us, patience_us)
            if fresh:
                alive = others | {home_of(home)}
                for node in world.nodes:
                    if node.context is not None and node.context.incarnation not in alive:
                        ledger.forgiven(node.context.incarnation)
            return asks

        def home_of(home: Home) -> bytes:
            for node in world.nodes:
                if node.supervisor is not None and home in node.supervisor.dispatcher.flows.homes.values():
                    return node.supervisor.incarnation
            return b""

        def watched_awaited(home: Home, now_us: int) -> set[bytes]:
            before = set(home._awaited or ())
            now = awaited(home, now_us)
            for node in before - now:
                ledger.forgiven(node)
            return now

        def watched_forget(home: Home, node: bytes) -> None:
            ledger.forgiven(node)
            forget(home, node)

        with (
            patch.object(Home, "begin", watched_begin),
            patch.object(Home, "awaited", watched_awaited),
            patch.object(Home, "forget", watched_forget),
        ):
            yield
