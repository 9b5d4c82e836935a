"""Clients whose creates are debounced, and what is known of them: each acknowledged payload is delivered, none under the name
of another, and, where clocks are right, none later than its longest delay allows."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from tocsin.model.condition import Condition, OnConflict, Outcome
from tocsin.model.debounce import Debounce
from tocsin.model.errors import CollectionFull, TocsinError
from tocsin.model.ids import namespace_hash, shard_of, timer_uuid
from tocsin.model.timer import CreateKey, Timer
from tocsin.ports.http import Invocation
from tocsin.timers.engine.rows import ExistingRow, OpKind, Row, WriteOp

from .clients import _POLICIES, Client, _word
from .receiver import DEBOUNCED_NAMESPACE, DEBOUNCED_TIMEOUT_US

if TYPE_CHECKING:
    from .node import Node
    from .world import World

SECOND = 1_000_000
#: The attempts of these timers never run out.
_POLICY = _POLICIES[1]
#: Timers and the clients of each: one that collects payloads has several, whose creates meet in a batch.
_TIMERS = (("single0", 1), ("single1", 1), ("all", 2))
_COLLECT = 20


def _decoded(payload: msgspec.Raw) -> tuple[int, ...]:
    found = msgspec.json.decode(bytes(payload), type=int | list[int])
    return (found,) if isinstance(found, int) else tuple(found)


@dataclass
class _Known:
    """What is known of one timer."""

    #: When the answer to the create of a payload was read, and its longest delay, by payload.
    acknowledged: dict[int, tuple[int, int]] = field(default_factory=dict)
    #: The names under which a payload was sent.
    sent_as: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    done: set[int] = field(default_factory=set)


class DebounceLedger:
    """What clients and receivers know of debounced timers."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[bytes, _Known] = defaultdict(_Known)
        self._contents: dict[str, tuple[int, ...]] = {}

    def acknowledged(self, uuid: bytes, payload: int, max_delay_us: int) -> None:
        """Records that the create of a payload was answered."""
        self._known[uuid].acknowledged[payload] = (self._world.true_us(), max_delay_us)

    def begins(self, uuid: bytes, invocation: Invocation) -> None:
        """Checks a call that begins."""
        world, known, payloads = self._world, self._known[uuid], _decoded(invocation.payload)
        world.record("DEBOUNCED", uuid.hex()[:6], invocation.message_id, payloads)
        what, collects = f"{uuid.hex()[:6]} {invocation.message_id} with {payloads}", _collects(invocation.timer_id)
        if self._contents.setdefault(invocation.message_id, payloads) != payloads:
            world.broken("REUSED ID", f"{what}, and {self._contents[invocation.message_id]} before")
        if len(set(payloads)) < len(payloads):
            world.broken("TWICE", what)
        for payload, (at, max_delay_us) in known.acknowledged.items():
            if known.sent_as[payload] or (not collects and any(later > payload for later in known.sent_as)):
                continue
            if payload not in payloads and (collects or max(payloads) < payload):
                world.broken("SUPERSEDED", f"{what}, after {payload} was acknowledged")
            # Where an attempt was not sent, the window that it began goes on without having been seen.
            if not world.faulty and not world.unsent_rate:
                latest = at + max_delay_us + collects * DEBOUNCED_TIMEOUT_US
                if invocation.execute_at > latest:
                    world.broken("LATE", f"{what} is due {invocation.execute_at - latest} us after its longest delay")
        for payload in payloads:
            known.sent_as[payload].add(invocation.message_id)
            if not collects and not world.faulty and len(known.sent_as[payload]) > 1:
                world.broken("TWICE", f"{payload} was sent as {known.sent_as[payload]}")

    def ends(self, uuid: bytes, invocation: Invocation) -> None:
        """Records that a receiver has accepted a call."""
        self._known[uuid].done.update(_decoded(invocation.payload))

    def check(self) -> None:
        """Checks, when nothing is pending, that what was acknowledged has been delivered: all of it, or the latest."""
        for number, (timer_id, _) in enumerate(_TIMERS):
            uuid = timer_uuid(DEBOUNCED_NAMESPACE, timer_id)
            known = self._known[uuid]
            if _collects(timer_id):
                lost = known.acknowledged.keys() - known.done
            else:
                latest = max(known.acknowledged, default=-1)
                lost = {latest} - {-1} if max(known.done, default=-1) < latest else set()
            if lost:
                self._world.broken("LOST", f"{uuid.hex()[:6]} ({number}): {sorted(lost)} acknowledged, never delivered")


def _collects(timer_id: str) -> bool:
    return timer_id == "all"


def debouncers(world: World) -> list[Client]:
    """The clients."""
    numbers = iter(range(50, 60))
    return [Debouncer(world, next(numbers), timer_id) for timer_id, clients in _TIMERS for _ in range(clients)]


class Debouncer(Client):
    """Creates one timer, again and again, with a key for each payload; and repeats some of these requests."""

    def __init__(self, world: World, number: int, timer_id: str) -> None:
        super().__init__(world, number)
        self._namespace, self._id, self._number = DEBOUNCED_NAMESPACE, timer_id, number
        self.uuid = timer_uuid(DEBOUNCED_NAMESPACE, timer_id)
        total = world.total_shards
        self.shard_id = shard_of(namespace_hash(DEBOUNCED_NAMESPACE), self.uuid, total, total)
        self._payload = 0

    def _taken(self, node: Node, op: WriteOp) -> None:
        """Namespaces' secrets are no matter here."""

    async def run(self, until_s: float) -> None:
        """Creates until that time of the loop's clock."""
        rng, world = self._rng, self._world
        while world.loop.time() < until_s:
            await asyncio.sleep(rng.choice((0.0, rng.uniform(0, 0.3), rng.uniform(0, 2), rng.uniform(0, 6))))
            await self._create()

    async def _create(self) -> None:
        world, rng = self._world, self._rng
        # Payloads of several clients differ, and grow.
        self._payload += 10
        payload, delay = self._payload + self._number % 10, rng.choice((0, rng.randint(0, 3 * SECOND)))
        wanted = Debounce(delay, delay + rng.choice((0, rng.randint(0, 4 * SECOND))), _COLLECT * _collects(self._id))
        timer = Timer(
            self._namespace, self._id, world.true_us(), f"http://{rng.choice(world.hosts)}/", world.true_us(),
            world.true_us(), payload=msgspec.Raw(b"%d" % payload), retry=_POLICY, timeout_us=DEBOUNCED_TIMEOUT_US,
        )  # fmt: skip
        world.record("client", "DEBOUNCE", self.uuid.hex()[:6], payload, "delays", delay, wanted.max_delay_us)
        key = CreateKey(str(payload), "")
        answer = await self._answered(timer, Condition(OnConflict.DEBOUNCE, key, False, wanted))
        world.record("client receives", self.uuid.hex()[:6], payload, _word(answer))
        if isinstance(answer, Row):
            if payload not in _decoded(answer.timer.payload) and not isinstance(answer, ExistingRow):
                world.broken("WRONG ANSWER", f"created {payload}, answered {answer.timer.payload!r}")
            world.ledger_of_debounced.acknowledged(self.uuid, payload, wanted.max_delay_us)
            if rng.random() < 0.2:
                repeated = await self._answered(timer, Condition(OnConflict.DEBOUNCE, key, False, wanted))
                if isinstance(repeated, Row) and repeated.outcome is not Outcome.REPLAYED:
                    world.broken("NOT REPEATED", f"{self.uuid.hex()[:6]}: {payload}, answered {_word(repeated)}")

    async def _answered(self, timer: Timer, condition: Condition) -> Row | TocsinError | None:
        """The answer to a create, repeated until there is one: that is what the key is for."""
        for _ in range(20):
            answer, _ = await self._insist(
                lambda: WriteOp(
                    OpKind.CREATE, self.uuid, self._namespace, timer=msgspec.structs.replace(timer), condition=condition
                )
            )
            if isinstance(answer, Row | CollectionFull):
                break
            await asyncio.sleep(self._rng.uniform(0, 1))
        return answer
