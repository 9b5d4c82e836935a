"""What is known of batches of callbacks: what their items have in common, and that they are not sent again under one name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tocsin.model.batch import CallbackBatch
from tocsin.ports.http import Invocation

from .receiver import DEBOUNCED_NAMESPACE
from .schedules import SCHEDULED_NAMESPACE

if TYPE_CHECKING:
    from .world import World


class BatchLedger:
    """The rules of this run, and what was sent."""

    def __init__(self, world: World, *, there: bool) -> None:
        self._world = world
        rng = world.rng("batches")
        self._sent: set[str] = set()
        #: How many requests had more than one item.
        self.shared = 0
        #: By namespace.
        self.rules: dict[str, CallbackBatch] = {}
        #: How long a timer waits for others at most, by any rule.
        self.linger_us = 0
        if not there:
            return
        for name in ("a", "b", SCHEDULED_NAMESPACE, DEBOUNCED_NAMESPACE):
            if rng.random() < 0.8:
                self.rules[name] = CallbackBatch(rng.choice((2, 5, 50)), rng.choice((0, 50_000, 1_000_000, 2_000_000)))
        world.flows.rules = [
            msgspec.structs.replace(rule, callback_batch=CallbackBatch(3, 500_000)) if rng.random() < 0.3 else rule
            for rule in world.flows.rules
        ]
        lingers = [rule.linger_us for rule in self.rules.values()]
        lingers += [rule.callback_batch.linger_us for rule in world.flows.rules if rule.callback_batch is not None]
        self.linger_us = max(lingers, default=0)

    def sent(self, batch: Invocation, items: tuple[Invocation, ...]) -> None:
        """A batch is sent."""
        if batch.message_id in self._sent:
            self._world.broken("REUSED ID", f"{batch.message_id} is sent twice")
        self._sent.add(batch.message_id)
        self.shared += len(items) > 1
        most = max((rule.items for rule in self.rules.values()), default=0)
        if len(items) > max(most, 3):
            self._world.broken("CROWDED", f"{batch.message_id} has {len(items)} items")
        for item in items:
            if common_of(item) != common_of(batch):
                self._world.broken("MIXED", f"{batch.message_id} has {common_of(item)} and {common_of(batch)}")
        if len({item.message_id for item in items}) < len(items):
            self._world.broken("TWICE", f"{batch.message_id} has an item twice")


def common_of(invocation: Invocation) -> tuple[object, ...]:
    """What all items of a batch have in common."""
    return (invocation.namespace, invocation.url, invocation.method, invocation.headers, invocation.timeout_us)
