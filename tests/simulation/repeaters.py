"""Clients that create with idempotency keys and repeat the requests: without an answer, at another node, or long after the
timer fired."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from tocsin.model.condition import KEYS_MAX, Condition, OnConflict, Outcome
from tocsin.model.errors import TimerExists, TocsinError
from tocsin.model.ids import namespace_hash, shard_of, timer_uuid
from tocsin.model.timer import NULL_PAYLOAD, CreateKey, Status, Timer
from tocsin.timers.engine.rows import ExistingRow, OpKind, Row, WriteOp

from .clients import _POLICIES, _REFUSED, Client, _word
from .ledger import ABSENT
from .receiver import payload_of, token_of

if TYPE_CHECKING:
    from .world import World

SECOND = 1_000_000
#: The namespace that keeps no history.
FORGETFUL_NAMESPACE = "forgetful"


class Repeater(Client):
    """Writes one timer. A key is the number of its create's token; a repetition has the same contents, and what is left of
    the delay."""

    def __init__(self, world: World, number: int, namespace: str) -> None:
        super().__init__(world, number)
        self._namespace = namespace
        self.uuid = timer_uuid(namespace, self._id)
        total = world.total_shards
        self.shard_id = shard_of(namespace_hash(namespace), self.uuid, total, total)
        #: Tokens of the creates whose keys the timer remembers, newest last.
        self._remembered: list[int] = []

    async def run(self, until_s: float) -> None:
        """Writes until that time of the loop's clock."""
        rng, world = self._rng, self._world
        await world.exists[self._namespace].wait()
        while world.loop.time() < until_s:
            await asyncio.sleep(rng.choice((0.0, rng.uniform(0, 0.5), rng.uniform(0, 4))))
            choice = rng.random()
            if choice < 0.35 or (choice < 0.8 and not self._remembered):
                await self._create(rng.choice((*(OnConflict.REPLACE,) * 4, OnConflict.KEEP, OnConflict.REJECT)))
            elif choice < 0.8:
                await self._repeat(rng.choice(self._remembered))
            elif choice < 0.88:
                await self._create(rng.choice((OnConflict.KEEP, OnConflict.REJECT)), keyed=False)
            elif choice < 0.92:
                self._remembered.clear()
                await self._write(OpKind.CREATE)
            elif choice < 0.95:
                await self._write(OpKind.UPDATE)
            else:
                await self._delete()
        # The remaining time is for the timer to finish.
        if self._remembered:
            await self._repeat(self._remembered[0])

    # ------------------------------------------------------------------ requests

    async def _create(self, on_conflict: OnConflict, *, keyed: bool = True) -> None:
        world, rng = self._world, self._rng
        policy, due = rng.choice(_POLICIES), self._due()
        attempts_max = 0 if policy is None else policy.max_attempts
        token = world.ledger.token(due, world.true_us(), single=policy is None, attempts_max=attempts_max)
        timer = Timer(
            self._namespace, self._id, due, f"http://{rng.choice(world.hosts)}/", due, due,
            payload=payload_of(token), retry=policy, timeout_us=rng.randint(SECOND // 3, 3 * SECOND),
        )  # fmt: skip
        key = CreateKey(str(token), "") if keyed else None
        states = world.ledger.states(self.uuid)
        states.add(token)
        if keyed:
            world.ledger.keyed.add(token)
        # A first try does not read what it replaces, whose run is lost then.
        world.runs.asked(self.uuid, token, traceable=False)
        world.record("client", "CREATE", on_conflict.value, self.uuid.hex()[:6], token, keyed, "due", due)
        first_try = keyed and rng.random() < 0.3
        tries = iter((first_try,))
        answer, answered_all = await self._insist(
            lambda: self._op(timer, Condition(on_conflict, key, next(tries, False)))
        )
        while keyed and not answered_all and not isinstance(answer, Row | TimerExists):
            # Repeating it is what the key is for.
            await asyncio.sleep(rng.uniform(0, 1))
            answer, _ = await self._insist(lambda: self._op(timer, Condition(on_conflict, key)))
        world.record("client receives", self.uuid.hex()[:6], token, _word(answer), *_outcome(answer))
        if isinstance(answer, ExistingRow):
            self._check_standing(answer, token, answered_all=answered_all)
        elif isinstance(answer, Row):
            self._created(answer, token, keyed=keyed)
        elif isinstance(answer, TimerExists):
            self._check_exists(states, token, answered_all=answered_all)
        elif isinstance(answer, _REFUSED) and answered_all:
            states.discard(token)
        else:
            # The outcome is unknown, and so are the keys that the timer remembers.
            self._remembered.clear()
        if first_try and isinstance(answer, Row):
            # Whoever wrote it, now or in a try without an answer, may not have read the keys of the former timer.
            self._remembered = [int(known.key) for known in answer.timer.keys]

    async def _repeat(self, token: int) -> None:
        """Repeats a create: the answer is the present timer, and nothing else is written."""
        world, rng = self._world, self._rng
        timer = Timer(self._namespace, self._id, self._due(), "http://host0/", 0, 0, payload=payload_of(token))
        condition = Condition(rng.choice(list(OnConflict)), CreateKey(str(token), ""))
        world.record("client", "REPEAT", self.uuid.hex()[:6], token)
        answer, _ = await self._insist(lambda: self._op(timer, condition))
        world.record("client receives", self.uuid.hex()[:6], token, _word(answer), *_outcome(answer))
        if isinstance(answer, ExistingRow):
            self._check_standing(answer, token, answered_all=True)
        elif isinstance(answer, Row | TimerExists):
            world.broken(
                "NOT REPEATED", f"{self.uuid.hex()[:6]}: token {token} is remembered, answered {_word(answer)}"
            )

    def _op(self, timer: Timer, condition: Condition) -> WriteOp:
        late_us = max(self._world.true_us() - timer.execute_at, 0) if self._rng.random() < 0.3 else 0
        sent = msgspec.structs.replace(timer, execute_at=timer.execute_at + late_us)
        return WriteOp(OpKind.CREATE, self.uuid, self._namespace, timer=sent, condition=condition)

    # ------------------------------------------------------------------ answers

    def _created(self, answer: Row, token: int, *, keyed: bool) -> None:
        if token_of(answer.timer.payload) != token:
            self._world.broken("WRONG ANSWER", f"wrote {token}, answered {answer.timer.payload!r}")
        self._world.ledger.acknowledged(self.uuid, token, self._world.true_us())
        self._remembered = [*self._remembered, token][-KEYS_MAX:] if keyed else []
        self._check_stored(token)

    def _check_standing(self, answer: ExistingRow, token: int, *, answered_all: bool) -> None:
        """Checks the existing timer that was answered: it is a possible one, and its end, if it has finished, is true and
        final."""
        world, timer = self._world, answer.timer
        states = world.ledger.states(self.uuid)
        slim = timer.payload == NULL_PAYLOAD
        found = int(timer.keys[-1].key) if slim else token_of(timer.payload)
        root = world.ledger.root[found]
        what = f"{self.uuid.hex()[:6]}: token {found} answered as {timer.status}, states {sorted(states)}"
        if root == token:
            # A former try has created it; its receiver may have rescheduled it since.
            if token not in self._remembered and answer.outcome is Outcome.REPLAYED:
                self._remembered = [*self._remembered, token][-KEYS_MAX:]
        elif token not in self._remembered:
            states.discard(token)
        pending = {world.ledger.root[state] for state in states if state != ABSENT}
        if timer.status is Status.PENDING:
            if root not in pending:
                world.broken("WRONG ANSWER", what)
            world.ledger.acknowledged(self.uuid, found, world.true_us())
            self._check_stored(found)
        elif (
            root not in pending
            and self._namespace == FORGETFUL_NAMESPACE
            and any(world.ledger.is_settled(state) for state in states if state != ABSENT)
        ):
            # A later timer has finished without a history row, because this namespace keeps none. The other states are
            # creates whose outcome is unknown, and which may never have been written.
            return
        elif timer.status is Status.CANCELED:
            if ABSENT not in states:
                world.broken("WRONG ANSWER", what)
            world.ledger.acknowledged(self.uuid, ABSENT)
        elif slim:
            # Rescheduled by its receiver, or updated: the slim record does not have its last firing.
            world.ledger.over.update(pending)
        elif not world.ledger.has_ended(self.uuid, found):
            world.broken("UNTRUE", what)
        else:
            world.ledger.over.add(root)

    def _check_exists(self, states: set[int], token: int, *, answered_all: bool) -> None:
        if answered_all:
            states.discard(token)

    def _expire_after_us(self) -> int | None:
        # Only the history shows that a timer has expired.
        return None if self._namespace == FORGETFUL_NAMESPACE else super()._expire_after_us()

    async def _write(self, kind: OpKind) -> None:
        await super()._write(kind)
        # Not every namespace keeps the history of timers without a key.
        self._world.ledger.created.discard(self.uuid)


def _outcome(answer: Row | TocsinError | None) -> tuple[str, ...]:
    return (answer.outcome.value, answer.timer.status.value) if isinstance(answer, ExistingRow) else ()
