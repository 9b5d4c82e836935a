"""Clients: one for each timer, one request at a time; a request answered with Unavailable is repeated."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from tests.support.completions import Noted
from tests.support.parts import NotedCreates
from tocsin.model.condition import Outcome
from tocsin.model.errors import (
    DefiniteFailure,
    Overloaded,
    RequestExpired,
    ShardMoved,
    TimerNotFound,
    TimerNotPending,
    TimerNotReplayable,
    TimerPending,
    TocsinError,
    Unavailable,
)
from tocsin.model.ids import namespace_hash, shard_of, timer_uuid
from tocsin.model.retry import RetryPolicy
from tocsin.model.timer import Changes, Timer
from tocsin.ports.store import Found
from tocsin.timers.engine.rows import ExistingRow, OpKind, Row, WriteOp
from tocsin.timers.listing import TimerView
from tocsin.timers.writing import is_plain

from .ledger import ABSENT
from .receiver import payload_of, secret_number, token_of

if TYPE_CHECKING:
    from .node import Node
    from .world import World

SECOND = 1_000_000
_POLICIES = (
    None,
    RetryPolicy(
        max_attempts=1_000, initial_interval_us=SECOND // 5, backoff_multiplier=2.0, max_interval_us=3 * SECOND
    ),
    RetryPolicy(max_attempts=3, initial_interval_us=SECOND // 5, backoff_multiplier=2.0, max_interval_us=3 * SECOND),
    RetryPolicy(max_attempts=1_000, initial_interval_us=1, backoff_multiplier=2.0, max_interval_us=SECOND),
)
#: Answers after which the write was certainly not done. A missing answer is not one of them.
_REFUSED = (RequestExpired, Overloaded, DefiniteFailure, ShardMoved)


class _Refused(Unavailable):
    """No node could be asked."""


class Client:
    """Writes one timer repeatedly."""

    def __init__(self, world: World, number: int, *, patient: bool = False) -> None:
        self._world = world
        # Whether it waits until each timer has finished.
        self._patient = patient
        self._rng = world.rng("client", number)
        self._expiry = world.rng("expiry", number)
        self._id = f"t{number}"
        self._namespace = world.namespaces[number % len(world.namespaces)]
        self.uuid = timer_uuid(self._namespace, self._id)
        self._flow_key = world.flows.key_for(number, self._namespace, self.uuid)
        self.shard_id = shard_of(
            namespace_hash(self._namespace), self.uuid, world.shards_of(self._namespace), world.total_shards
        )

    async def run(self, until_s: float) -> None:
        """Writes until that time of the loop's clock."""
        rng = self._rng
        await self._world.exists[self._namespace].wait()
        while self._patient and self._world.loop.time() < until_s:
            await self._write(OpKind.CREATE)
            await asyncio.sleep(rng.uniform(9, 14))
        while self._world.loop.time() < until_s:
            hasty = (0.0, rng.uniform(0, 0.2), rng.uniform(0, 2))
            await asyncio.sleep(rng.choice(hasty if self._world.storm else (0.0, rng.uniform(0, 1), rng.uniform(0, 6))))
            choice = rng.random()
            if choice < 0.5:
                await self._write(OpKind.CREATE)
            elif choice < 0.65:
                await self._write(OpKind.UPDATE)
            elif choice < 0.75:
                await self._write(OpKind.REPLAY)
            elif choice < 0.95:
                await self._delete()
            else:
                await asyncio.sleep(rng.uniform(2, 15))

    def _due(self) -> int:
        rng, now = self._rng, self._world.true_us()
        wait = rng.choice((-2.0, 0.0, rng.uniform(0, 3), rng.uniform(0, 10), rng.uniform(0, 30)))
        due = now + int(wait * SECOND)
        return due // SECOND * SECOND if rng.random() < 0.3 else due

    def _expire_after_us(self) -> int | None:
        rng = self._expiry
        return rng.choice((None, None, None, None, rng.randint(0, SECOND // 2), rng.randint(0, 5 * SECOND)))

    async def _write(self, kind: OpKind) -> None:
        world, rng = self._world, self._rng
        states = world.ledger.states(self.uuid)
        moves = kind is not OpKind.UPDATE or rng.random() < 0.5
        policy = rng.choice(_POLICIES)
        due = self._due()
        before = [world.ledger.due[token] for token in states if token != ABSENT]
        # An update that leaves the instant may meet any of the states, and a reschedule by the receiver.
        earliest = due if moves else min(before, default=0) if self._never_rescheduled(states) else 0
        if kind is OpKind.UPDATE:
            policy = _POLICIES[1]
        attempts_max = 0 if policy is None else policy.max_attempts
        expire_after_us = self._expire_after_us()
        token = world.ledger.token(
            earliest, world.true_us(), single=policy is None, attempts_max=attempts_max,
            expire_after_us=expire_after_us, moves=moves,
        )  # fmt: skip
        timer = Timer(
            self._namespace, self._id, due, f"http://{rng.choice(world.hosts)}/", due, due,
            payload=payload_of(token), retry=policy, timeout_us=rng.randint(SECOND // 3, 3 * SECOND),
            expire_after_us=expire_after_us, flow_key=self._flow_key,
        )  # fmt: skip
        # Only here a replay has a payload: each write has a token.
        changes = Changes(
            execute_at=due if moves else msgspec.UNSET, payload=payload_of(token), retry=policy,
            expire_after_us=expire_after_us,
        )  # fmt: skip
        states.add(token)
        if kind is OpKind.REPLAY:
            world.ledger.replays.add(token)
            world.ledger.replayed_uuids.add(self.uuid)
        world.record("client", kind.name, self.uuid.hex()[:6], token, "due", due if moves else None)

        write = world.runs.asked(self.uuid, token, traceable=kind is OpKind.UPDATE and moves)

        def op() -> WriteOp:
            write.tries += 1
            if kind is OpKind.CREATE:
                return WriteOp(kind, self.uuid, self._namespace, timer=msgspec.structs.replace(timer))
            return WriteOp(kind, self.uuid, self._namespace, changes=changes)

        answer, answered_all = await self._insist(op)
        world.record("client receives", self.uuid.hex()[:6], token, _word(answer))
        if isinstance(answer, Row):
            write.acknowledged = True
            if kind is OpKind.REPLAY:
                world.ledger.replayed(self.uuid, token)
            if token_of(answer.timer.payload) != token:
                world.broken("WRONG ANSWER", f"{self.uuid.hex()[:6]}: wrote {token}, answered {answer.timer.payload!r}")
            world.ledger.acknowledged(self.uuid, token, world.true_us())
            world.ledger.created.add(self.uuid)
            self._check_stored(token)
        elif isinstance(answer, TimerNotFound | TimerNotPending | TimerNotReplayable):
            if answered_all:
                states.discard(token)
            world.ledger.gone(self.uuid, answer.code)
            self._check_absent()
        elif isinstance(answer, TimerPending) and answered_all:
            states.discard(token)
            world.ledger.pending(self.uuid)
        elif isinstance(answer, _REFUSED) and answered_all:
            states.discard(token)

    def _never_rescheduled(self, states: set[int]) -> bool:
        ledger = self._world.ledger
        roots = {ledger.root[token] for token in states if token != ABSENT}
        return not any(root in roots and token != root for token, root in ledger.root.items())

    async def _delete(self) -> None:
        world = self._world
        states = world.ledger.states(self.uuid)
        was_absent = ABSENT in states
        world.ledger.delete_asked(self.uuid)
        states.add(ABSENT)
        world.record("client", "DELETE", self.uuid.hex()[:6])
        answer, answered_all = await self._insist(lambda: WriteOp(OpKind.DELETE, self.uuid, self._namespace))
        world.record("client receives", self.uuid.hex()[:6], "DELETE", _word(answer))
        if answer is None:
            world.ledger.acknowledged(self.uuid, ABSENT)
            self._check_absent()
        elif isinstance(answer, TimerNotFound | TimerNotPending):
            if answered_all and not was_absent:
                states.discard(ABSENT)
            world.ledger.gone(self.uuid, answer.code)
            self._check_absent()
        elif isinstance(answer, _REFUSED) and answered_all and not was_absent:
            states.discard(ABSENT)

    async def _insist(self, make: object) -> tuple[Row | TocsinError | None, bool]:
        """The last answer, and whether no earlier try may have been done without an answer."""
        answered_all = True
        answer: Row | TocsinError | None = None
        for _ in range(1 if self._world.storm else self._rng.choice((1, 4, 12))):
            answer = await self._ask(make())  # type: ignore[operator]
            # An answer of another kind would count as unknown, and nothing that depends on it would be checked.
            assert answer is None or isinstance(answer, Row | TocsinError)
            if isinstance(answer, RequestExpired) and not self._world.faulty:
                self._world.broken("BLOCKED", f"{self.uuid.hex()[:6]}: not written in time in a run without faults")
            if not isinstance(answer, Unavailable | DefiniteFailure):
                return answer, answered_all
            answered_all = answered_all and isinstance(answer, (*_REFUSED, _Refused))
            await asyncio.sleep(self._rng.uniform(0.0, 0.1) if self._world.storm else self._rng.uniform(0.05, 1.5))
        return (RequestExpired("no node took it") if isinstance(answer, _Refused) else answer), answered_all

    async def _ask(self, op: WriteOp) -> Row | TocsinError | None:
        anyone = [node for node in self._world.nodes if node.service is not None and not node.frozen]
        if anyone and self._rng.random() < 0.6:
            return await self._ask_anyone(self._rng.choice(anyone), op)
        owners = [node for node in self._world.nodes if node.shard(self.shard_id) is not None]
        if not owners:
            return _Refused("no owner")
        node = self._rng.choice(owners)
        shard = node.shard(self.shard_id)
        assert shard is not None
        assert shard.window is not None
        if self._rng.random() < 0.1:
            self._view(node)
        answer: asyncio.Future[Row | TocsinError | None] = self._world.loop.create_future()
        op.deadline_us = node.clock.boottime_us() + self._world.limits.write_timeout_us
        op.completion = Noted(answer.set_result)

        async def accept() -> None:
            if node.context is not None and self._namespace not in node.context.namespaces:
                raise _Refused("a namespace of which the node has not read")
            self._taken(node, op)
            if op.kind is OpKind.CREATE and op.timer is not None and is_plain(op.timer, op.condition):
                shard.accept_creates(NotedCreates((op.uuid, op.timer, answer.set_result)), op.deadline_us)
            else:
                shard.accept(op)

        # In the node's context: what accepting schedules belongs to the node.
        task = node.inside(accept())
        await asyncio.wait({task}, timeout=5.0)
        if not task.done():
            return Unavailable("the node does not answer")
        if task.exception() is not None:
            return _Refused("changing hands")
        await asyncio.wait({answer}, timeout=8.0)
        return answer.result() if answer.done() else Unavailable("no answer in time")

    async def _ask_anyone(self, node: Node, op: WriteOp) -> Row | TocsinError | None:
        """Writes through the node's use cases: the node forwards the write to the owner, or waits for one."""
        service = node.service
        assert service is not None
        answer: asyncio.Future[Row | TocsinError | None] = self._world.loop.create_future()

        async def submit() -> None:
            try:
                await service.namespaces.ensure_known(self._namespace)
                self._taken(node, op)
                client, writes = Noted(lambda result: answer.set_result(_row(result))), service._writes
                if op.kind is OpKind.CREATE and op.condition is None:
                    assert op.timer is not None
                    service.creating.arrivals.add(self.shard_id, op.uuid, op.timer, client)
                else:
                    writes.submit(self.shard_id, op, client)
            except TocsinError as error:
                answer.set_result(error)

        self._world.record("client asks", node.name)
        node.inside(submit())
        # Longer than the request's time budget and the store's time-out: a client that retries earlier may be overtaken by
        # its former request.
        await asyncio.wait({answer}, timeout=20.0)
        if node.service is not service:
            # The node was killed: what it had sent may still be under way for a while, and a client has to wait for it.
            await asyncio.sleep(self._world.cluster_limits.message_age_max_us / 1e6)
        return answer.result() if answer.done() else Unavailable("no answer in time")

    def _taken(self, node: Node, op: WriteOp) -> None:
        """Records the namespace as the node knows it now: the timer fires with it, or with a later version."""
        payload = op.timer.payload if op.timer is not None else op.changes.payload if op.changes is not None else UNSET
        if payload is not UNSET and node.context is not None:
            known = node.context.namespaces.get(self._namespace)
            # A node that was restarted since it was asked accepts nothing.
            if known is not None:
                self._world.ledger.taken(token_of(payload), secret_number(known.secret))

    def _view(self, node: Node) -> None:
        shard = node.shard(self.shard_id)
        if shard is not None and shard.window is not None:
            shard.window.present(self.uuid)

    # ------------------------------------------------------------------ an answer implies durability

    def _found(self) -> Found | None:
        shard = self._world.store._shards.get(self.shard_id)
        if shard is None:
            return None
        return Found(shard.live.get(self.uuid), shard.newest_history(self.uuid))

    def _check_stored(self, token: int) -> None:
        ledger, found = self._world.ledger, self._found()
        if ledger.has_ended(self.uuid, token):
            return
        present = token_in(found)
        if present is None or ledger.root[present] != ledger.root[token]:
            self._world.broken("LOST", f"{self.uuid.hex()[:6]}: token {token} acknowledged, stored: {present}")

    def _check_absent(self) -> None:
        found = self._found()
        if found is not None and found.live is not None:
            self._world.broken("NOT DURABLE", f"{self.uuid.hex()[:6]} is still stored after an answer that it is not")


def token_in(found: Found | None) -> int | None:
    """The token of a live row."""
    from tocsin.model.timer import decode_record

    return token_of(decode_record(found.live.record).payload) if found is not None and found.live is not None else None


def _row(answer: TimerView | TocsinError | None) -> Row | TocsinError | None:
    """The answer of the use cases in the form in which a shard answers."""
    if not isinstance(answer, TimerView):
        return answer
    timer, instant = answer.timer, answer.next_attempt_at
    row = Row((timer.execute_at if instant is None else instant, answer.uuid), b"", timer, 0)
    return row if answer.outcome is Outcome.CREATED else ExistingRow(row, answer.outcome)


def _word(answer: object) -> str:
    return "ok" if answer is None or isinstance(answer, Row) else type(answer).__name__
