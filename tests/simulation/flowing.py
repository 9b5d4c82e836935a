"""The flows of a run: rules for the timers of some clients, and the ledger of what they promise across nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

from tocsin.model.errors import RecordUndecodable
from tocsin.model.flow import SLOW_INTERVAL_US, Flow, FlowLimits, Rate
from tocsin.model.ids import namespace_hash
from tocsin.model.timer import Timer, decode_record
from tocsin.ports.store import FireKey, StoredRow
from tocsin.timers.engine.flow_accounts import Account
from tocsin.timers.engine.flow_home import Home
from tocsin.timers.engine.flow_states import CALLS, KeyState
from tocsin.timers.engine.flow_tokens import TokenPlace, TokenRows
from tocsin.timers.engine.rows import Batch, shows_attempt
from tocsin.timers.engine.shard import Shard
from tocsin.timers.engine.window import Window

if TYPE_CHECKING:
    from .receiver import Receiver
    from .world import World

SECOND = 1_000_000
#: How much more than its rate a rule may begin, because a grant may be used a second after its request.
GRANT_S = 1
#: What clocks of 200 ppm and roundings may add to the instants of a run.
_DOUBT_US = 100_000


def limited_name(place: TokenPlace) -> str:
    """What the limits of an account apply to, as the ledger names it."""
    (namespace, match), key = place
    if not match:
        return namespace
    return f"{namespace}/{key}" if key else f"{namespace}/{match}*"


class _Attempt:
    def __init__(self, receiver: Receiver, incarnation: bytes) -> None:
        self.receiver = receiver
        self.incarnation = incarnation


class OrderLedger:
    """Checks that the timers of an ordered key begin in order: nothing while another one is between its attempts, and
    nothing before an earlier one that waited when the key became free."""

    def __init__(self, world: World) -> None:
        self._world = world
        # What waited when a key became free, and under which claim.
        self._waited: dict[tuple[str, str], tuple[Window, set[tuple[FireKey, bytes]]]] = {}
        # Timers whose address was refused since their last attempt: they let others pass.
        self._refused: set[bytes] = set()
        #: How often an order was checked.
        self.checks = 0

    def refused(self, uuid: bytes) -> None:
        """The timer's address is refused."""
        self._refused.add(uuid)

    def _shard(self, namespace: str, incarnation: bytes) -> Shard | None:
        """The namespace's only shard, if that node owns it, and no transaction of it is under way."""
        world = self._world
        shard_id = namespace_hash(namespace) % world.total_shards
        for node in world.nodes:
            if node.supervisor is not None and node.supervisor.incarnation == incarnation:
                shard = node.supervisor.shards[shard_id]
                window, stored = shard.window, world.store._shards[shard_id]
                if window is not None and stored.epoch == window.epoch and world.store.is_settled(shard_id):
                    return shard
        return None

    def _rows(self, shard: Shard, key: str) -> Iterator[tuple[StoredRow, Timer]]:
        """Live rows of the key that nothing is about to change."""
        assert shard.window is not None
        for row in self._world.store._shards[shard.shard_id].live.values():
            if shard.window.being_written(row.uuid) or row.uuid in shard.window._suspending:
                continue
            try:
                timer = decode_record(row.record)
            except RecordUndecodable:
                continue
            if timer.flow_key == key:
                yield row, timer

    def begins(self, uuid: bytes, namespace: str, key: str, incarnation: bytes) -> None:
        """An attempt begins."""
        shard = self._shard(namespace, incarnation)
        self._refused.discard(uuid)
        if shard is None or shard.window is None:
            return
        self.checks += 1
        window, waited = self._waited.pop((namespace, key), (None, set()))
        attempts = shard.window.in_flight.get(uuid, ())
        first = bool(attempts) and not shows_attempt(attempts[-1].row.timer, attempts[-1].row.key[0])
        for row, timer in self._rows(shard, key):
            if row.uuid == uuid or row.uuid in shard.window.in_flight or row.uuid in self._refused:
                continue
            kind = (row.suspended or "").partition(":")[0]
            # One that has begun before may begin again beside another that has: its end was not durable when its node lost
            # the shard, and the next of its key had begun.
            if first and shows_attempt(timer, row.execute_at) and kind in ("", "turn", "flow", "destination"):
                what = f"{row.uuid.hex()[:6]} has the turn, {row.suspended}, attempts {timer.attempts}"
                self._world.broken("TURN", f"{uuid.hex()[:6]} begins while {what}")
            if not first or window is not shard.window or (row.key, row.generation) not in waited:
                continue
            if row.key < attempts[-1].row.key:
                what = f"{row.uuid.hex()[:6]}, {row.suspended}, at {row.execute_at}"
                self._world.broken("ORDER", f"{uuid.hex()[:6]} begins before {what}")

    def ends(self, namespace: str, key: str, incarnation: bytes) -> None:
        """An attempt ends."""
        shard = self._shard(namespace, incarnation)
        if shard is None or shard.window is None:
            return
        state = _known(self._world, namespace, key, incarnation)
        queues = [] if state is None else [each for name, each in state.queues.items() if name != CALLS]
        here = {row.key for queue in queues for row in queue.rows if shard.window.holds(row)}
        kinds = ("flow", "destination", "namespace")
        found = {
            (row.key, row.generation)
            for row, _ in self._rows(shard, key)
            if row.key in here or (row.suspended or "").partition(":")[0] in kinds
        }
        self._waited[namespace, key] = (shard.window, found)


def _known(world: World, namespace: str, key: str, incarnation: bytes) -> KeyState | None:
    for node in world.nodes:
        if node.supervisor is not None and node.supervisor.incarnation == incarnation:
            return node.supervisor.dispatcher.flows.known(namespace, key)
    return None


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
        #: Whether every rate counts as slow, so that its tokens are stored.
        self.slow = self.there and world.rng("slow").random() < 0.5
        # Of what the limits apply to, tokens of which no row is durable, by claim: they may be forgotten with it.
        self._unsaved: dict[str, dict[TokenRows, int]] = {}
        #: Namespaces with one shard, where rules may be ordered.
        self.ordered_namespaces: tuple[str, ...] = ()
        self.order = OrderLedger(world)
        if self.there:
            rate = Rate(rng.choice((2, 5, 20)), SECOND)
            self.rules = [
                Flow("a", "rated", 0, 0, per_key=FlowLimits(rate, burst=rng.choice((1, 3)))),
                Flow("a", "one:", 0, 0, per_key=FlowLimits(parallelism=1), total=FlowLimits(parallelism=2)),
                Flow("b", "some", 0, 0, per_key=FlowLimits(rate, burst=2, parallelism=2)),
            ]
            if rng.random() < 0.5:
                self.of_namespaces["b"] = FlowLimits(parallelism=2)
            if world.rng("ordered").random() < 0.7:
                self.ordered_namespaces = ("b",)
                self.rules.append(Flow("b", "line:", 0, 0, per_key=FlowLimits(parallelism=1, ordered=True)))

    def key_for(self, number: int, namespace: str, uuid: bytes) -> str:
        """The flow key of all timers of a client."""
        if not self.there or namespace not in ("a", "b"):
            return ""
        keys = ("rated", "one:x", "one:y", "") if namespace == "a" else ("some", "")
        key = self._world.rng("flow", number).choice(keys)
        if namespace in self.ordered_namespaces and self._world.rng("ordered", number).random() < 0.7:
            key = "line:x"
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
        if self.is_ordered(uuid):
            self.order.begins(uuid, *self._key_of[uuid], incarnation)
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
        # Tokens are taken when timers join their batch: what one has waited for others is not seen here.
        slack_us = (GRANT_S * SECOND if len(self._world.nodes) > 1 else 0) + _DOUBT_US + self._world.batches.linger_us
        forgotten = sum(self._unsaved.get(name, {}).values())
        for position, since_us in enumerate(begun):
            allowed = forgotten + limits.burst + rate.count * (now_us - since_us + slack_us) // rate.per_us
            if len(begun) - position > allowed:
                what = f"{len(begun) - position} within {now_us - since_us} us, {allowed} allowed"
                self._world.broken("RATE", f"{name}: {what}")

    def is_ordered(self, uuid: bytes) -> bool:
        """Whether the timer's key is ordered."""
        return self._key_of.get(uuid, ("", ""))[1].startswith("line:")

    def ends(self, uuid: bytes, attempt: _Attempt) -> None:
        """Records that an attempt ends."""
        if self.is_ordered(uuid):
            self.order.ends(*self._key_of[uuid], attempt.incarnation)
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
        note, written = TokenRows.note, TokenRows.written

        def watched_note(tokens: TokenRows, place: TokenPlace, account: Account) -> None:
            of = ledger._unsaved.setdefault(limited_name(place), {})
            of[tokens] = of.get(tokens, 0) + 1
            note(tokens, place, account)

        def watched_written(tokens: TokenRows, batch: Batch) -> None:
            written(tokens, batch)
            for place, _, _ in batch.tokens:
                if place not in tokens.unsaved:
                    ledger._unsaved[limited_name(place)].pop(tokens, None)

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
            patch.object(TokenRows, "note", watched_note),
            patch.object(TokenRows, "written", watched_written),
            patch("tocsin.model.flow.SLOW_INTERVAL_US", 0 if self.slow else SLOW_INTERVAL_US),
        ):
            yield
