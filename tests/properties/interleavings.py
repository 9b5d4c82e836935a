"""Random interleavings of the pure window's events: one shard, several owners, one fenced store.

There is no event loop and there are no tasks: each step is one random action, and the invariants are checked after each step.
Time is in ticks.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import msgspec

from tests.properties.owners import Letter, Owner
from tests.simulation.ledger import ABSENT, Ledger, ReceiverAnswer, Violation
from tests.simulation.receiver import payload_of, token_of
from tests.support.checked_window import CheckedWindow, TransitionCheck
from tests.support.completions import Noted
from tests.support.parts import NotedCreates
from tests.support.window_bench import at_once
from tocsin.model.errors import (
    DefiniteFailure,
    RequestExpired,
    TimerNotFound,
    TimerNotPending,
    TimerPending,
    Unavailable,
)
from tocsin.model.namespace import HistoryMode
from tocsin.model.timer import Changes, Status, Timer, decode_record
from tocsin.ports.store import KEY_MAX, KEY_MIN, Applied, ShardBatch
from tocsin.stores.memory import MemoryStore
from tocsin.timers.engine.assembly import Assembly
from tocsin.timers.engine.attempt import conclude_expired
from tocsin.timers.engine.parts import Part
from tocsin.timers.engine.rows import (
    Batch,
    Conclusion,
    FinalAttempt,
    InFlightAttempt,
    NextAttempt,
    OpKind,
    Row,
    WriteOp,
    decoded_row,
)
from tocsin.timers.engine.window import Window

_LEASE = 24
_LOOK_AHEAD = 30
_UUID_MAX = b"\xff" * 16
_HEALING_ROUNDS = 300


class Interleaving:
    """One seeded run. `run` returns the violated invariant, or None."""

    def __init__(self, seed: int) -> None:
        self._rng = rng = random.Random(f"interleaving/{seed}")
        self.trace: list[tuple[Any, ...]] = []
        self.transitions = TransitionCheck(self._broken)
        self.faulty = seed % 3 != 0
        self._fired: set[bytes] | None = None if self.faulty else set()
        # In-flight attempts that will turn out not to have been sent.
        self._unsent: set[InFlightAttempt] = set()
        self.store = MemoryStore()
        self.now = 1_000
        self.skew = [0, 0, 0]
        self.ledger = Ledger(self._broken, self._expired)
        self.uuids = [rng.randbytes(16) for _ in range(5)]
        self.busy: set[bytes] = set()
        self.letters: list[Letter] = []
        self.owners: list[Owner] = []
        self._claims = 0
        self._steps = rng.choice((40, 100, 200, 400))
        self._unsent_rate = rng.choice((0.0, 0.1, 0.4))
        self._claim(0)

    # ------------------------------------------------------------------ what happened

    def record(self, *what: object) -> None:
        """Adds to the trace."""
        self.trace.append((self.now, *what))

    def _broken(self, kind: str, detail: str) -> None:
        self.record("VIOLATION", kind, detail)
        raise Violation(kind, detail)

    def run(self) -> Violation | None:
        """Runs the steps, heals all faults, and checks the end state."""
        try:
            for _ in range(self._steps):
                self._rng.choice(_ACTIONS)(self)
                self._check()
            self._heal()
        except Violation as violation:
            return violation
        except ValueError as error:
            return Violation("BATCH", str(error))
        return None

    # ------------------------------------------------------------------ ownership

    def _claim(self, node: int) -> Owner:
        epoch = self.store._shards[0].epoch if 0 in self.store._shards else 0
        incarnation = bytes([node]) * 8 + self._claims.to_bytes(8, "big")
        orphaned: list[InFlightAttempt] = []
        for owner in [o for o in self.owners if o.node == node]:
            incarnation = owner.incarnation
            orphaned = [attempt for attempts in owner.window.in_flight.values() for attempt in attempts]
            self._drop(owner)
        self._claims += 1
        granted = at_once(self.store.claim(0, expected_epoch=epoch, owner=incarnation))
        owner = Owner(node, CheckedWindow(self.transitions, 0, granted, incarnation, orphaned=orphaned), self.now)
        self.owners.append(owner)
        self.record("claim", node, granted)
        return owner

    def _drop(self, owner: Owner) -> None:
        self.owners.remove(owner)
        if owner.letter is not None:
            owner.letter.batch.refuse(Unavailable("unknown"))
        window = owner.window
        window.refuse_clients(Unavailable("lost"), self.now)

    def _present(self) -> Owner | None:
        shard = self.store._shards[0]
        return next((o for o in self.owners if (o.window.epoch, o.incarnation) == (shard.epoch, shard.owner)), None)

    def fault(self) -> None:
        """Lets another node take over once the lease allows it, after a crash, a cut or with a skewed clock."""
        if not self.faulty:
            return
        chance = self._rng.random()
        present = self._present()
        if chance < 0.3:
            for owner in self.owners:
                owner.cut_off = self._rng.random() < 0.5
        elif chance < 0.45:
            if present is None or self.now - present.last_beat >= _LEASE:
                self._claim(self._rng.randrange(3))
        elif chance < 0.5 and self.owners:
            owner = self._rng.choice(self.owners)
            self.record("crash", owner.node)
            self._drop(owner)
        elif chance < 0.6 and present is not None:
            # A graceful hand-over at any moment.
            self._drop(present)
            self._claim(self._rng.randrange(3))
        else:
            self.skew[self._rng.randrange(3)] = self._rng.randint(-4, 4)

    def beat(self) -> None:
        """Renews the leases of the owners that reach the store; an expired one is verified first."""
        for owner in list(self.owners):
            if owner.cut_off:
                continue
            if self.now - owner.last_beat >= _LEASE and owner is not self._present():
                self._drop(owner)
            else:
                owner.last_beat = self.now

    def tick(self) -> None:
        """Lets time pass."""
        self.now += self._rng.randint(1, 3)

    # ------------------------------------------------------------------ clients

    def client(self) -> None:
        """A request for a timer for which no other request is under way."""
        rng = self._rng
        uuid = rng.choice(self.uuids)
        if uuid in self.busy or not self.owners:
            return
        owner = rng.choice(self.owners)
        if owner.cut_off:
            return
        kind = rng.choice((OpKind.CREATE, OpKind.CREATE, OpKind.UPDATE, OpKind.DELETE, OpKind.REPLAY))
        if kind is OpKind.CREATE and rng.random() < 0.6:
            self._create_together(owner, uuid)
            return
        due = self.now + self.skew[owner.node] + rng.choice((-3, 0, 2, 5, 5, 10, 20, 40, 60))
        due = due // 5 * 5 if rng.random() < 0.4 else due
        states = self.ledger.states(uuid)
        token, expire_after = ABSENT, None
        if kind is not OpKind.DELETE:
            expire_after = rng.choice((None, None, 0, 4, 15))
            token = self.ledger.token(due, self.now, expire_after_us=expire_after)
        added = token not in states
        states.add(token)
        op = WriteOp(kind, uuid, "n")
        if kind is OpKind.CREATE:
            op.timer = self._timer(uuid, due, token, expire_after)
        elif kind is not OpKind.DELETE:
            # Only here a replay has a payload: each write has a token.
            op.changes = Changes(execute_at=due, payload=payload_of(token), expire_after_us=expire_after)
        if rng.random() < 0.2:
            op.deadline_us = self.now + rng.randint(0, 6)
        replays = kind is OpKind.REPLAY
        op.completion = Noted(lambda answer: self._reply_received(uuid, token, added, answer, replays=replays))
        self.busy.add(uuid)
        self.record("client", kind.name, uuid.hex()[:4], token, due, "to", owner.window.epoch)
        owner.window.accept(op)

    def _create_together(self, owner: Owner, uuid: bytes) -> None:
        """Plain creates of one request, which their shard takes together."""
        rng, creates = self._rng, []
        for each in [*rng.sample(self.uuids, rng.randint(0, 2)), uuid]:
            if each in self.busy:
                continue
            due = self.now + self.skew[owner.node] + rng.choice((-3, 0, 2, 5, 5, 10, 20, 40, 60))
            expire_after = rng.choice((None, None, 0, 4, 15))
            token = self.ledger.token(due, self.now, expire_after_us=expire_after)
            self.ledger.states(each).add(token)
            self.busy.add(each)
            note = partial(self._reply_received, each, token, True, replays=False)
            creates.append((each, self._timer(each, due, token, expire_after), note))
            self.record("client", "CREATE together", each.hex()[:4], token, due, "to", owner.window.epoch)
        deadline_us = self.now + rng.randint(0, 6) if rng.random() < 0.2 else None
        owner.window.accept_creates(NotedCreates(*creates), deadline_us)

    def _timer(self, uuid: bytes, due: int, token: int, expire_after: int | None) -> Timer:
        timer = Timer("n", uuid.hex()[:4], due, "http://h/", self.now, self.now, payload=payload_of(token))
        timer.expire_after_us = expire_after
        return timer

    def _reply_received(self, uuid: bytes, token: int, added: bool, answer: Any, *, replays: bool) -> None:
        if uuid not in self.busy:
            return
        self.busy.remove(uuid)
        self.record("answer", uuid.hex()[:4], token, type(answer).__name__)
        states = self.ledger.states(uuid)
        if isinstance(answer, Row) and answer.key[0] != self.ledger.due[token]:
            self._broken("MOVED", f"{uuid.hex()[:4]} asked for {self.ledger.due[token]}, got {answer.key[0]}")
        if isinstance(answer, TimerPending):
            states.discard(token)
            self.ledger.pending(uuid)
        elif answer is None or isinstance(answer, Row):
            if replays:
                self.ledger.replayed(uuid, token)
            self.ledger.acknowledged(uuid, token)
        elif isinstance(answer, TimerNotFound | TimerNotPending):
            if added:
                states.discard(token)
            self.ledger.gone(uuid, answer.code)
            if uuid in self.store._shards[0].live:
                self._broken("NOT DURABLE", uuid.hex()[:4])
        elif isinstance(answer, RequestExpired | DefiniteFailure) and added:
            states.discard(token)

    # ------------------------------------------------------------------ committer

    def send(self, owner: Owner | None = None, *, all_of_it: bool = False) -> None:
        """Assembles a batch and sends it, as small as earlier failures require."""
        owner = owner or self._any_owner()
        if owner is None or owner.letter is not None:
            return
        window, rng = owner.window, self._rng
        rows_max = owner.cut or rng.choice((1, 2, 100))
        finished_max = rows_max if owner.cut is None else 0
        uuids = window.to_fetch(rows_max, rows_max)
        found = at_once(self.store.fetch(0, uuids))
        batch = Assembly(
            window, now_us=self.now + self.skew[owner.node], boot_us=self.now, history_rule=_keep_all,
            failure_retention_us=0,
            fetched={uuid: found.get(uuid) for uuid in uuids},
        ).batch(
            rows_max=rows_max, bytes_max=rng.choice((300, 100_000)), finished_max=finished_max,
            exact_after_us=0 if all_of_it else rng.choice((0, 4, 1_000)),
        )  # fmt: skip
        if owner.cut is not None and not batch.writes:
            owner.cut = None
            if window.finished and rng.random() < 0.5:
                assembly = Assembly(
                    window, now_us=self.now, boot_us=self.now, history_rule=_keep_all, failure_retention_us=0
                )
                batch = assembly.only(rng.choice(list(window.finished.values())))
        if not batch.writes and not batch.finished:
            return
        entries: list[WriteOp | Part] = [*batch.ops, *(each.part for each in batch.parts)]
        for entry in entries:
            if entry.deadline_us is not None and entry.deadline_us <= self.now:
                self._broken("TOO LATE", f"written {self.now - entry.deadline_us} after its time")
        owner.letter = Letter(owner, batch)
        self.letters.append(owner.letter)
        self.record("send", window.epoch, _seen(batch))

    def network(self, letter: Letter | None = None) -> None:
        """Delivers, loses or fails a batch, or delivers or loses its answer."""
        if letter is None:
            if not self.letters:
                return
            letter = self._rng.choice(self.letters)
            if letter.owner.cut_off and self._rng.random() < 0.7:
                return
        chance = self._rng.random() if self.faulty else 1.0
        if letter.result is None:
            if chance < 0.03:
                self.letters.remove(letter)
            elif chance < 0.1:
                letter.result = DefiniteFailure("no")
            else:
                self._land(letter)
            return
        self.letters.remove(letter)
        if chance < 0.04 or letter.owner not in self.owners or letter.owner.letter is not letter:
            return
        letter.owner.letter = None
        self._answered(letter)

    def _land(self, letter: Letter) -> None:
        shard, part = self.store._shards[0], letter.batch.store
        before = dict(shard.live)
        (result,) = at_once(self.store.apply([part]))
        letter.result = result
        self.record("land", part.epoch, result.name)
        if result is Applied.DURABLE:
            finished = {entry.row.generation for entry in letter.batch.finished}
            written = {row.uuid for row in part.upserts} | set(part.deletes)
            for uuid, row in before.items():
                if uuid not in shard.live and uuid not in written and row.generation not in finished:
                    self._broken("RANGE", f"{uuid.hex()[:4]} was unfinished, deleted up to {part.delete_to}")

    def _answered(self, letter: Letter) -> None:
        owner, batch = letter.owner, letter.batch
        if letter.result is Applied.DURABLE:
            owner.window.committed(batch, self.now)
            batch.answer()
        elif letter.result is Applied.OWNERSHIP_LOST:
            batch.refuse(Unavailable("fenced"))
            owner.letter = None
            self._drop(owner)
        else:
            self._failed(owner, batch)

    def _failed(self, owner: Owner, batch: Batch) -> None:
        """Rule 5: bisects a failed batch until the offending operation is refused."""
        window = owner.window
        window.abandon(batch)
        if batch.writes == 1 and owner.cut is not None:
            op = window.pending.popleft()
            window.refuse(op, DefiniteFailure("refused"), self.now)
        elif not batch.writes and owner.cut is None and len(batch.finished) == 1 and not batch.store.upserts:
            window.delete_refused(batch.finished[0], self.now)
        else:
            owner.cut = max(batch.writes // 2, 1)

    def refused(self) -> None:
        """Tries refused changes again."""
        owner = self._any_owner()
        if owner is not None:
            owner.window.try_refused_again(self.now - 10)

    def timeout(self) -> None:
        """Rule 3: the outcome of a batch becomes unknown; the node claims the shard again, or loses it to another."""
        owner = self._any_owner()
        if not self.faulty or owner is None or owner.letter is None:
            return
        if owner is not self._present():
            self._drop(owner)
            return
        self.record("unknown", owner.window.epoch)
        self._claim(owner.node)

    # ------------------------------------------------------------------ loader

    def load(self, owner: Owner | None = None) -> None:
        """The next step of a load: announce it, read the page, or merge it."""
        owner = owner or self._any_owner()
        if owner is None or owner.cut_off:
            return
        window = owner.window
        if owner.load is None:
            request = window.announce_load((self.now + self.skew[owner.node] + _LOOK_AHEAD, _UUID_MAX))
            if request is not None:
                owner.load = (request, None)
            return
        request, page = owner.load
        if page is None:
            read = at_once(self.store.load(0, request.after, request.up_to, self._rng.choice((1, 2, 50))))
            owner.load = (request, read)
            return
        owner.load = None
        if self.faulty and self._rng.random() < 0.05:
            window.load_failed(request)
            return
        joined = window.loaded(request, [decoded_row(row) for row in page.rows], page.complete_to)
        self.record("joined", window.epoch, joined, page.complete_to[0], [row.uuid.hex()[:4] for row in page.rows])

    def truncate(self) -> None:
        """Truncates the window, as when memory is short."""
        owner = self._any_owner()
        if owner is not None and owner.window.rows:
            owner.window.truncate(self._rng.randrange(len(owner.window.rows)))
            self.record("truncate", owner.window.epoch, owner.window.horizon[0])

    # ------------------------------------------------------------------ dispatcher

    def dispatch(self, owner: Owner | None = None, *, fire: bool = False) -> None:
        """Fires, defers or suspends a due row."""
        owner = owner or self._any_owner()
        if owner is None or self.now - owner.last_beat >= _LEASE:
            return
        window, rng = owner.window, self._rng
        if owner.waiting and rng.random() < 0.5:
            row = owner.waiting.pop(0)
            if window.holds(row) and row.key[0] <= self.now + self.skew[owner.node]:
                self._fire_or_end(owner, row)
            elif window.holds(row):
                window.put_back(row)
            return
        due = window.due(self.now + self.skew[owner.node])
        if due is None:
            return
        chance = 0.0 if fire else rng.random()
        if chance < 0.7:
            self._fire_or_end(owner, due)
            return
        window.defer()
        if chance < 0.9:
            owner.waiting.append(due)
        else:
            self.record("suspend", due.key[1].hex()[:4])
            window.accept(WriteOp(OpKind.SUSPEND, due.key[1], "n", expected=due.generation, reason="destination:h"))

    def _fire_or_end(self, owner: Owner, row: Row) -> None:
        conclusion = conclude_expired(row, self.now + self.skew[owner.node])
        if conclusion is None:
            self._fire(owner, row)
            return
        decides = owner.window.end_unfired(row, conclusion, self.now)
        self.record("expired", owner.window.epoch, row.key[1].hex()[:4], token_of(row.timer.payload), decides)

    def _fire(self, owner: Owner, row: Row) -> None:
        attempt = owner.window.dispatch(row)
        if self._rng.random() < self._unsent_rate:
            self.record("not sent", owner.window.epoch, row.key[1].hex()[:4])
            self._unsent.add(attempt)
            return
        if self._fired is not None:
            if row.generation in self._fired:
                self._broken("DUPLICATE", f"{row.key[1].hex()[:4]} in a run without faults")
            self._fired.add(row.generation)
        token = token_of(row.timer.payload)
        self.record("FIRE", owner.window.epoch, row.key[1].hex()[:4], token)
        self.ledger.record_firing(row.key[1], token, self.now + self.skew[owner.node], self.now, 8, str(owner.node))
        self.ledger.begins(token, self.now + self.skew[owner.node])

    def answer(self, *, finish: float = 0.6) -> None:
        """Ends an in-flight attempt."""
        owner = self._any_owner()
        if owner is None or not owner.window.in_flight:
            return
        rng, window = self._rng, owner.window
        attempt = rng.choice(rng.choice(list(window.in_flight.values())))
        if attempt in self._unsent:
            self._unsent.discard(attempt)
            if window.not_sent(attempt, rng.choice((None, "egress"))):
                self.record("refused", attempt.row.key[1].hex()[:4])
            return
        token = token_of(attempt.row.timer.payload)
        timer = msgspec.structs.replace(attempt.row.timer)
        conclusion: Conclusion = FinalAttempt(timer)
        final = rng.random() < finish
        timer.status = Status.COMPLETED
        if not final:
            timer.status = Status.PENDING
            again = self.now + self.skew[owner.node] + rng.choice((0, 1, 5, 20, 45))
            conclusion = NextAttempt(timer, again)
        self.ledger.answered(attempt.row.key[1], token, ReceiverAnswer.DONE if final else ReceiverAnswer.FAILED)
        decides = window.answered(attempt, conclusion, self.now)
        self.record("answer", window.epoch, attempt.row.key[1].hex()[:4], token, final, decides)

    def _expired(self, uuid: bytes) -> list[int]:
        """The tokens under which the timer ended because its time was over, by its history."""
        rows = self.store._shards[0].history.get(uuid, {}).values()
        timers = [decode_record(row.record) for row in rows]
        return [token_of(timer.payload) for timer in timers if timer.status in (Status.EXPIRED, Status.FAILED)]

    def resume(self) -> None:
        """Resumes a suspended row."""
        owner = self._any_owner()
        if owner is None or owner.cut_off:
            return
        for row in at_once(self.store.load_suspended(0, KEY_MIN, 2)).rows:
            owner.window.accept(WriteOp(OpKind.RESUME, row.uuid, "n", expected=row.generation))

    def _any_owner(self) -> Owner | None:
        return self._rng.choice(self.owners) if self.owners else None

    # ------------------------------------------------------------------ rules

    def _check(self) -> None:
        live = self.store._shards[0].live
        self.ledger.check({uuid: token_of(decode_record(row.record).payload) for uuid, row in live.items()})
        for owner in self.owners:
            owner.window.check_all()
            self._check_memory(owner.window)
        present = self._present()
        if present is not None:
            self._check_complete(present)

    def _check_memory(self, window: Window) -> None:
        if window.waiting.bytes != sum(row.size for row in window.rows.values()):
            self._broken("ACCOUNT", f"{window.waiting.bytes} bytes")
        if window.in_flight_count != sum(len(attempts) for attempts in window.in_flight.values()):
            self._broken("ACCOUNT", f"{window.in_flight_count} attempts")
        known = {*window.waiting._order, *window.waiting._deferred}
        for row in window.rows.values():
            if row.key not in known:
                self._broken("ACCOUNT", f"{row.key[1].hex()[:4]} is in no order")
            if row.key > window.horizon:
                self._broken("ACCOUNT", f"{row.key[1].hex()[:4]} is beyond the horizon")

    def _check_complete(self, owner: Owner) -> None:
        """Checks rule 7 for the owner against the store, apart from rows that a batch under way has written."""
        window = owner.window
        letter = owner.letter
        unsure = set(letter.batch.final) if letter is not None and letter.result is Applied.DURABLE else set()
        for uuid, stored in self.store._shards[0].live.items():
            if stored.suspended is not None or stored.key > window.horizon or uuid in unsure:
                continue
            row = window.rows.get(uuid)
            if (row is None or row.generation != stored.generation) and not window.has_begun(decoded_row(stored)):
                self._broken("INCOMPLETE", f"{uuid.hex()[:4]} at {stored.execute_at}, horizon {window.horizon[0]}")
        for uuid, row in window.rows.items():
            durable = self.store._shards[0].live.get(uuid)
            if uuid not in unsure and (durable is None or durable.generation != row.generation):
                self._broken("PHANTOM", f"{uuid.hex()[:4]} at {row.key[0]} is not what the store has")

    # ------------------------------------------------------------------ the end

    def _heal(self) -> None:
        self.record("healing")
        self.faulty, self.skew, self._unsent_rate = False, [0, 0, 0], 0.0
        while self.letters:
            self.network(self.letters[0])
        owner = self._present() or self._claim(0)
        for other in [o for o in self.owners if o is not owner]:
            self._drop(other)
        if owner.letter is not None:
            owner = self._claim(owner.node)
        owner.cut_off = False
        for _ in range(_HEALING_ROUNDS):
            self._healthy_round(owner)
            if not self.store._shards[0].live and not owner.window.pending and not self.letters:
                break
        live = self.store._shards[0].live
        self.ledger.check_drained({uuid: token_of(decode_record(row.record).payload) for uuid, row in live.items()})
        window = owner.window
        for part in (
            window.rows,
            window.awaiting_write,
            window.superseded,
            window.retrying,
            window.finished,
            window._client_ops,
            window._suspending,
        ):
            if part:
                self._broken("LEAKED", repr(part))
        if self.busy:
            self._broken("UNANSWERED", repr(list(self.busy)))

    def _healthy_round(self, owner: Owner) -> None:
        self.now += 2
        owner.last_beat = self.now
        owner.window.try_refused_again(self.now)
        for _ in range(3):
            self.load(owner)
        for _ in range(5):
            self.dispatch(owner, fire=True)
        while owner.window.in_flight:
            self.answer(finish=1.0)
        if self._rng.random() < 0.3:
            self.resume()
        self.send(owner, all_of_it=True)
        while self.letters:
            self.network(self.letters[0])
        self._check()


def _keep_all(namespace: str) -> tuple[HistoryMode, int]:
    return HistoryMode.ALL, 1_000_000


def _seen(batch: Batch) -> str:
    part: ShardBatch = batch.store
    upserts = [(row.execute_at, row.uuid.hex()[:4], row.suspended is not None) for row in part.upserts]
    mark = (part.delete_to[0], part.delete_to[1].hex()[:4]) if part.delete_to not in (None, KEY_MAX) else None
    return f"upserts {upserts} deletes {[uuid.hex()[:4] for uuid in part.deletes]} to {mark}"


_ACTIONS = (
    [Interleaving.tick] * 3 + [Interleaving.client] * 4 + [Interleaving.send] * 4 + [Interleaving.network] * 7
    + [Interleaving.load] * 6 + [Interleaving.dispatch] * 5 + [Interleaving.answer] * 3 + [Interleaving.beat] * 2
    + [Interleaving.fault, Interleaving.timeout, Interleaving.truncate, Interleaving.truncate, Interleaving.resume]
    + [Interleaving.refused]
)  # fmt: skip
