"""The webhooks' receiver: its answers are random and recorded in the ledger."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from tocsin.model.answer import NoResponse, NotSent, Outcome, Refused, Response
from tocsin.model.ids import schedule_uuid, timer_uuid
from tocsin.model.instants import format_instant
from tocsin.ports.http import Exchange, Invocation

from .ledger import ReceiverAnswer

if TYPE_CHECKING:
    from .node import Node
    from .world import World


#: The namespace whose receiver hangs until everything is healed.
CROWD_NAMESPACE = "c"
#: The namespace of debounced creates, and the time-out of its timers.
DEBOUNCED_NAMESPACE = "debounced"
DEBOUNCED_TIMEOUT_US = 2_000_000
#: The share of unsent requests whose address is refused.
REFUSED_SHARE = 0.2


class Payload(msgspec.Struct):
    """The payload of the simulation's timers."""

    token: int


_payload = msgspec.json.Decoder(Payload)


def token_of(payload: bytes | msgspec.Raw) -> int:
    """The token of a timer's payload."""
    return _payload.decode(bytes(payload)).token


def secret_number(secret: str | None) -> int:
    """The secret's number in its namespace; 0: none."""
    return 0 if secret is None else int(secret)


def payload_of(token: int) -> msgspec.Raw:
    """The payload with a token."""
    return msgspec.Raw(b'{"token":%d}' % token)


class Receiver:
    """A node's caller, and the receiver. A node whose process has ended gets no answer, but its requests have been sent."""

    def __init__(self, world: World, node: Node, rng: random.Random, incarnation: bytes = b"") -> None:
        self._incarnation = incarnation
        self.connected = True
        self._world = world
        self._node = node
        self._rng = rng
        self._now_us = node.clock.now_us
        # What is to be done for the items of a batch, and after how many seconds, while it is taken apart.
        self._of_items: list[tuple[float, Callable[[], None]]] | None = None

    def destination(self, url: str) -> str:
        """The host."""
        return url.split("/")[2]

    def invoke(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """Decides at once how this call ends."""
        world, rng = self._world, self._rng
        if invocation.items is not None:
            self._invoke_batch(invocation, invocation.items, done)
            return
        if invocation.event:
            world.sinks.invoke(
                invocation,
                self._node.name,
                lambda delay_s, exchange: self._later(delay_s, lambda: self.connected and done(exchange)),
            )
            return
        if invocation.body is not None:
            self._invoke_hook(invocation, done)
            return
        if invocation.namespace == world.scheduled_namespace:
            self._invoke_scheduled(invocation, done)
            return
        if invocation.namespace == DEBOUNCED_NAMESPACE:
            self._invoke_debounced(invocation, done)
            return
        token = token_of(invocation.payload)
        uuid = timer_uuid(invocation.namespace, invocation.timer_id)
        if self._is_unsent():
            # No connection or no descriptor: the receiver does not see the request.
            world.record("not sent", self._node.name, uuid.hex()[:6], token)
            world.ledger.not_sent(uuid)
            if self._report_unsent(done):
                world.flows.order.refused(uuid)
            return
        world.record_firing(uuid, token, invocation, self._node, self._now_us())
        attempt = world.flows.begins(uuid, invocation.namespace, self, self._incarnation)
        outcome, delay_s, answer = self._decide(token, invocation)
        if delay_s * 1e6 >= invocation.timeout_us:
            outcome, delay_s, answer = NoResponse("TIMEOUT"), invocation.timeout_us / 1e6, ReceiverAnswer.FAILED
        delay_s = max(delay_s, 0.0001)
        if world.faulty and rng.random() < 0.02:
            # Received and answered, but after the service's time-out.
            outcome, answer = NoResponse("CONNECTION_FAILED"), ReceiverAnswer.FAILED
        exchange = Exchange(outcome, self._now_us(), int(delay_s * 1e6))

        def end() -> None:
            world.flows.ends(uuid, attempt)
            if self.connected:
                world.record("answer", self._node.name, uuid.hex()[:6], token, type(outcome).__name__, answer.name)
                world.ledger.answered(uuid, token, answer)
                done(exchange)

        self._later(delay_s, end)

    def _is_unsent(self) -> bool:
        """Whether this machine can't send the request; items of a batch are sent with it."""
        return self._of_items is None and not self._world.healed and self._rng.random() < self._world.unsent_rate

    def _later(self, delay_s: float, call: Callable[[], None]) -> None:
        if self._of_items is None:
            asyncio.get_running_loop().call_later(delay_s, call)
        else:
            self._of_items.append((delay_s, call))

    def _invoke_batch(self, batch: Invocation, items: tuple[Invocation, ...], done: Callable[[Exchange], None]) -> None:
        """Each item is answered as by itself, all at the same time; one without a response is left out of the results. If
        none has one, neither has the batch."""
        world = self._world
        world.record("BATCH", self._node.name, batch.message_id, len(items))
        world.batches.sent(batch, items)
        if self._is_unsent():
            uuids = [timer_uuid(item.namespace, item.timer_id) for item in items]
            for item, uuid in zip(items, uuids, strict=True):
                if item.namespace not in (world.scheduled_namespace, DEBOUNCED_NAMESPACE):
                    world.ledger.not_sent(uuid)
            # Where an address is refused, an ordered timer lets others pass; that is for those without batches.
            self._report_unsent(done, may_be_refused=not any(map(world.flows.is_ordered, uuids)))
            return
        results: dict[str, Outcome] = {}

        def result_of(item: Invocation) -> Callable[[Exchange], None]:
            return lambda exchange: results.update({item.message_id: exchange.outcome})

        self._of_items = calls = []
        for item in items:
            self.invoke(item, result_of(item))
        self._of_items = None
        delay_s, sent_at = max(delay_s for delay_s, _ in calls), self._now_us()

        def end() -> None:
            for _, call in calls:
                call()
            if self.connected:
                done(Exchange(_outcome_of(results), sent_at, int(delay_s * 1e6)))

        asyncio.get_running_loop().call_later(delay_s, end)

    def _invoke_scheduled(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """A call for an occurrence of a schedule; its receiver may take longer than the interval."""
        world, rng = self._world, self._rng
        uuid = schedule_uuid(invocation.namespace, invocation.timer_id)
        if self._is_unsent():
            world.record("not sent", self._node.name, uuid.hex()[:6], invocation.message_id)
            self._report_unsent(done)
            return
        world.schedules.begins(uuid, invocation, self._node.name, self._now_us())
        chance, delay_s = rng.random(), rng.choice((0.001, rng.uniform(0, 0.3), rng.uniform(0, 3.0)))
        broken = self.destination(invocation.url) in world.broken_hosts
        outcome: Outcome = Response(200)
        if world.healed:
            delay_s = min(delay_s, 0.2)
        elif broken or chance < 0.1 or delay_s * 1e6 >= invocation.timeout_us:
            outcome, delay_s = NoResponse("TIMEOUT"), invocation.timeout_us / 1e6
        elif chance < 0.3:
            outcome = Response(500)
        elif chance < 0.35:
            outcome = Response(404)
        elif chance < 0.45:
            due = invocation.fired_at + int(rng.choice((0.0, 0.3e6, 0.9e6, 5e6)))
            outcome = Response(200, b'{"nextExecuteAt":"%s"}' % format_instant(due).encode())
        exchange = Exchange(outcome, self._now_us(), int(delay_s * 1e6))

        def end() -> None:
            world.schedules.ends(uuid, invocation.message_id)
            if self.connected:
                world.record("answer", self._node.name, uuid.hex()[:6], invocation.message_id, type(outcome).__name__)
                done(exchange)

        self._later(max(delay_s, 0.0001), end)

    def _invoke_debounced(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """A call of a debounced timer."""
        world, rng = self._world, self._rng
        uuid = timer_uuid(invocation.namespace, invocation.timer_id)
        if self._is_unsent():
            self._report_unsent(done)
            return
        world.ledger_of_debounced.begins(uuid, invocation)
        chance, delay_s = rng.random(), rng.choice((0.001, rng.uniform(0, 0.3), rng.uniform(0, 3.0)))
        # None is refused for good.
        outcome: Outcome = Response(500 if chance < 0.3 else 200)
        if world.healed:
            outcome, delay_s = Response(200), min(delay_s, 0.2)
        elif (
            chance < 0.1
            or delay_s * 1e6 >= DEBOUNCED_TIMEOUT_US
            or self.destination(invocation.url) in world.broken_hosts
        ):
            outcome, delay_s = NoResponse("TIMEOUT"), DEBOUNCED_TIMEOUT_US / 1e6
        exchange = Exchange(outcome, self._now_us(), int(delay_s * 1e6))

        def end() -> None:
            if isinstance(outcome, Response) and outcome.status == 200:
                world.ledger_of_debounced.ends(uuid, invocation)
            if self.connected:
                done(exchange)

        self._later(max(delay_s, 0.0001), end)

    def _invoke_hook(self, invocation: Invocation, done: Callable[[Exchange], None]) -> None:
        """A notification; some are refused once."""
        world, rng, loop = self._world, self._rng, asyncio.get_running_loop()
        if not world.healed and rng.random() < world.unsent_rate:
            self._report_unsent(done)
            return
        world.notifications.called(invocation, self._node.name)
        status = 500 if invocation.attempt == 1 and rng.random() < 0.2 and not world.healed else 200
        exchange, delay_s = Exchange(Response(status), self._now_us(), 1_000), rng.choice((0.001, rng.uniform(0, 0.3)))
        loop.call_later(delay_s, self._report, done, exchange)

    def _report_unsent(self, done: Callable[[Exchange], None], *, may_be_refused: bool = True) -> bool:
        """This machine can't send the request, or its settings forbid the address; whether it is that."""
        rng = self._rng
        is_refused = rng.random() < REFUSED_SHARE and may_be_refused
        outcome = Refused("EGRESS_REFUSED") if is_refused else NotSent("NO_SLOT")
        delay_s = rng.choice((0.0001, 0.1, 1.0))
        asyncio.get_running_loop().call_later(delay_s, self._report, done, Exchange(outcome, None, 0))
        return isinstance(outcome, Refused)

    def _report(self, done: Callable[[Exchange], None], exchange: Exchange) -> None:
        if self.connected:
            done(exchange)

    def _decide(self, token: int, invocation: Invocation) -> tuple[Outcome, float, ReceiverAnswer]:
        """(outcome, seconds, result of the attempt)."""
        world, rng = self._world, self._rng
        if token in world.answers_in_s:
            return Response(200), world.answers_in_s[token], ReceiverAnswer.DONE
        chance = rng.random()
        delay_s = rng.choice((0.001, 0.01, rng.uniform(0, 0.3), rng.uniform(0, 3.0)))
        hangs = invocation.namespace == CROWD_NAMESPACE and not world.healed
        if not hangs and (world.healed or chance < 0.5):
            return (
                Response(200, rng.choice((b"", b'{"ok":true}'))),
                min(delay_s, 0.2) if world.healed else delay_s,
                ReceiverAnswer.DONE,
            )
        if hangs or self.destination(invocation.url) in world.broken_hosts or chance < 0.6:
            return NoResponse("TIMEOUT"), invocation.timeout_us / 1e6, ReceiverAnswer.FAILED
        if chance < 0.75:
            return Response(500), delay_s, ReceiverAnswer.FAILED
        if chance < 0.8:
            return Response(503, b"", "1"), delay_s, ReceiverAnswer.FAILED
        if chance < 0.84:
            return Response(404), delay_s, ReceiverAnswer.REFUSED
        if chance < 0.88:
            return Response(200, b'{"ok":false}'), delay_s, ReceiverAnswer.FAILED
        if chance < 0.9:
            return Response(200, b"<html>"), delay_s, ReceiverAnswer.DONE
        due = invocation.fired_at + int(rng.choice((-1e6, 0.0, 0.5e6, 5e6, 25e6)))
        child = world.ledger.token(
            due,
            world.true_us(),
            parent=token,
            single=token in world.ledger.single,
            attempts_max=world.ledger.attempts_max.get(token, 0),
        )
        world.runs.parent[child] = token
        body = b'{"ok":true,"nextExecuteAt":"%s","payload":{"token":%d}}' % (format_instant(due).encode(), child)
        return Response(200, body), delay_s, ReceiverAnswer.RESCHEDULED

    async def close(self) -> None:
        """Nothing to close."""
        self.connected = False


def _outcome_of(results: dict[str, Outcome]) -> Outcome:
    """The response to a batch with these results of its items."""
    parts = []
    for webhook_id, outcome in results.items():
        if isinstance(outcome, Response):
            part: dict[str, object] = {"webhookId": webhook_id, "status": outcome.status}
            if outcome.retry_after is not None:
                part["retryAfter"] = int(outcome.retry_after)
            if outcome.body.startswith(b"{"):
                part |= msgspec.json.decode(outcome.body)
            parts.append(part)
    return Response(200, msgspec.json.encode({"items": parts})) if parts else NoResponse("TIMEOUT")
