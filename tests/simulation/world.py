"""One seeded run: nodes, clients, faults, healing, and the final checks."""

from __future__ import annotations

import asyncio
import hashlib
import random
from dataclasses import replace
from itertools import chain
from typing import Any

import msgspec

from tests.support.checked_window import TransitionCheck
from tests.support.simulation_loop import NoEnd, NothingScheduled, SimulationLoop, TimeNotAdvancing
from tocsin.administration import FLOW_RECORDS, put_namespace
from tocsin.cluster.limits import ClusterLimits
from tocsin.model.errors import RecordUndecodable
from tocsin.model.ids import timer_uuid
from tocsin.model.namespace import HistoryMode, Namespace
from tocsin.model.timer import NULL_PAYLOAD, Timer, decode_record
from tocsin.ports.http import Invocation
from tocsin.ports.store import Capabilities, ShardBatch, StoredRow, generation
from tocsin.testing.clock import EPOCH_US, FakeClock
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.rows import Row, stored

from .batches import BatchLedger
from .chaos import Chaos
from .clients import Client
from .debouncers import DebounceLedger, debouncers
from .departure import Departure
from .durable import ended_rows
from .flowing import FlowLedger
from .ledger import NAMESPACE_POLICY, Ledger, Violation, is_expired
from .network import Network
from .node import Node
from .notified import HOOKS, NotificationLedger
from .receiver import CROWD_NAMESPACE, DEBOUNCED_NAMESPACE, secret_number, token_of
from .repeaters import FORGETFUL_NAMESPACE, Repeater
from .run_ledger import RunLedger, check_failures
from .schedules import SCHEDULED_NAMESPACE, ScheduleLedger, Scheduler
from .sinks import SINK, SinkLedger
from .weak_store import WeakStore

SECOND = 1_000_000
#: How long clients and faults are active; afterwards everything is healed and has to drain.
ACTIVE_S = 40.0
DRAIN_S_MAX = 150.0
#: A run that takes longer waits for something that never happens.
RUN_S_MAX = 3_600.0
#: The greatest lag in a run without faults. A host that stops answering is called less for a while, and suspended timers are
#: resumed later.
LATE_US_MAX = 10 * SECOND
#: The same where a host gets a few calls at a time, some of which it does not answer, or where few timers may be deferred for
#: it: a host that was silent gets one call at a time, and the others are resumed in turn.
LATE_FEW_SLOTS_US_MAX = 20 * SECOND
#: The greatest lag after all faults are healed, with everything that they delayed due at once; some nodes make one call at a
#: time.
LATE_HEALED_US_MAX = 30 * SECOND
#: Undecodable rows that chaos writes belong to this namespace.
BAD_NAMESPACE = "bad"
HUNG_HOST = "hung"


SMALL_TRANSACTIONS = Capabilities(range_delete=False, shards_together=False, batch_rows_max=3, batch_bytes_max=2_000)


class World:
    """The world of one seed. `run` returns its violation, or None. `small_transactions`: a transaction takes a few
    rows of one shard, and the store deletes no ranges. `nodes` and `shards`: so many, instead of up to three."""

    def __init__(
        self,
        seed: int,
        *,
        small_transactions: bool = False,
        scheduled: bool | None = None,
        flowed: bool | None = None,
        debounced: bool | None = None,
        batched: bool | None = None,
        sunk: bool | None = None,
        nodes: int | None = None,
        shards: int | None = None,
        active_s: float = ACTIVE_S,
    ) -> None:
        self.seed = seed
        self.loop = SimulationLoop(seconds_max=RUN_S_MAX)  # type: ignore[abstract]  # only what a simulation needs
        self.trace: list[tuple[Any, ...]] = []
        rng = self.rng("world")
        self.faulty = seed % 5 != 0
        #: Most faults are those of the network between nodes, and clients retry at once at another node.
        self.storm = seed % 5 == 4
        #: Whether clients create with idempotency keys and repeat these requests.
        self.repeated = seed % 4 == 2
        #: Whether there are schedules, too.
        self.scheduled = seed % 7 in (3, 4, 6) if scheduled is None else scheduled
        #: Whether there are debounced creates, too.
        self.debounced = seed % 9 == 7 if debounced is None else debounced
        #: Whether callbacks are sent in batches, too.
        self.batched = seed % 10 == 7 or seed % 50 == 5 if batched is None else batched
        #: Whether namespaces have sinks.
        self.sunk = seed % 11 == 9 if sunk is None else sunk
        self.healed = False
        self.all_healed = asyncio.Event()
        #: The share of requests that are not sent, which does not count as a fault.
        self.unsent_rate = self.rng("unsent").choice((0.0, 0.05, 0.3))
        self.violation: Violation | None = None
        self.ledger = Ledger(self.broken, self._expired)
        self.transitions = TransitionCheck(self.broken)
        self.runs = RunLedger(self.ledger.root, self.broken)
        self.total_shards = rng.randint(1, 3) if shards is None else shards
        self.active_s = active_s
        # A node that was frozen or cut off for long enough is removed, and joins again.
        interval_us = self.rng("namespaces").choice((2, 10)) * SECOND
        self.limits = replace(
            self._limits(rng),
            member_forget_us=self.rng("forget").choice((6, 60)) * SECOND,
            namespaces_interval_us=interval_us,
            namespaces_lease_us=interval_us + 3 * SECOND,
        )
        if self.sunk:
            self.limits = replace(
                self.limits,
                sink_backlog_max=self.rng("sink", "backlog").choice((3, 1_000, 1_000)),
                sink_page_rows=self.rng("sink", "page").choice((1, 2, 200)),
            )
        self.hosts = [f"host{i}" for i in range(rng.choice((1, 2, 3)))]
        self.broken_hosts: set[str] = set()
        #: When a host that had stopped answering began to answer again.
        self.answering_since_us: dict[str, int] = {}
        #: Whether many large timers of a namespace of their own are due at a host that does not answer until all is healed.
        self.crowded = self.rng("crowd").random() < 0.3
        if self.crowded:
            self.limits = replace(
                self.limits, window_timers_max=1_000, window_bytes_max=1 << 18, callbacks_in_flight_max=100,
                destination_in_flight_max=self.rng("crowd", "limit").choice((4, 8)), destination_waiting_max=100,
                resume_rows=50,
            )  # fmt: skip
        self.healed_at_us = 0
        #: When timers are answered whose receiver is well, by token.
        self.answers_in_s: dict[int, float] = {}
        self.paused_namespaces: set[str] = set()
        #: The token of each `webhook-id`.
        self.fired: dict[str, int] = {}
        self.namespaces_unpaused_s = 0.0
        self.store = WeakStore(_StoreClock(self.loop), self.rng("store"), self.rng("store", "breaks"))
        self.store.reads_apart = self.rng("store", "reads").random() < 0.5
        if small_transactions:
            self.store.capabilities = SMALL_TRANSACTIONS
        self.cluster_limits = ClusterLimits(
            in_flight_max=rng.choice((1, 2, 10_000)),
            send_queue_max=rng.choice((3, 20_000)) if self.faulty else 20_000,
            frame_writes_max=rng.choice((1, 2, 500)),
            message_age_max_us=rng.choice((2, 10)) * SECOND,
            # Longer than the store takes, so that nothing is pending once all clients have ended.
            answer_grace_us=self.limits.store_timeout_us + 5 * SECOND,
        )
        self.network = Network(self)
        names = [f"n{i}" for i in range(nodes or (2 if self.storm else rng.choice((1, 2, 2, 3))))]
        self.nodes = [Node(self, name) for name in names]
        #: The last one is created by a node while others run.
        self.namespaces = ["a", "b", "c"]
        self.exists = {name: asyncio.Event() for name in self.namespaces}
        self.flows = FlowLedger(self, flowed)
        self.batches = BatchLedger(self, there=self.batched)
        self.clients = [Client(self, i) for i in range(rng.randint(4, 10))]
        if self.flows.there:
            # Enough timers of one flow for its limits to close.
            self.clients += [Client(self, number) for number in range(30, 39) if number % 3 < 2]
        if self.repeated:
            self.exists[FORGETFUL_NAMESPACE] = asyncio.Event()
            self.clients += [Repeater(self, 80, "a"), Repeater(self, 81, FORGETFUL_NAMESPACE)]
        #: The namespaces whose timers and schedules have hooks.
        self.notified_namespaces: tuple[str, ...] = ()
        if self.rng("notified").random() < 0.3:
            self.notified_namespaces = (*self.namespaces[:-1], SCHEDULED_NAMESPACE)
        self.notifications = NotificationLedger(self)
        self.sinks = SinkLedger(self, there=self.sunk)
        self.schedules = ScheduleLedger(self)
        self.scheduled_namespace = SCHEDULED_NAMESPACE
        if self.scheduled:
            self.exists[SCHEDULED_NAMESPACE] = asyncio.Event()
            self.clients += [Scheduler(self, number) for number in range(70, 73)]
        self.ledger_of_debounced = DebounceLedger(self)
        if self.debounced:
            self.clients += debouncers(self)
        if not self.faulty:
            # A timer that the store always refuses: it must not affect others (rule 5).
            refused = Client(self, 90)
            self.clients.append(refused)
            self.clients += [Client(self, number, patient=True) for number in range(91, 97)]
            for node in self.nodes:
                node.link.poison = {refused.uuid}
        self._failed: asyncio.Future[None] | None = None

    def rng(self, *name: object) -> random.Random:
        """A separate random generator for each part, so that one part's draws don't affect another's."""
        return random.Random("/".join(str(part) for part in (self.seed, *name)))

    @staticmethod
    def _limits(rng: random.Random) -> EngineLimits:
        return EngineLimits(
            look_ahead_max_us=rng.choice((2, 10, 30)) * SECOND,
            load_page_rows=rng.choice((1, 2, 3, 50)),
            window_timers_max=rng.choice((2, 4, 8, 1_000)),
            window_bytes_max=rng.choice((600, 2_000, 1 << 20, 1 << 20)),
            callbacks_in_flight_max=rng.choice((1, 3, 100, 100)),
            destination_in_flight_max=rng.choice((1, 2, 50)),
            destination_in_flight_min=1,
            destination_waiting_max=rng.choice((1, 2, 100)),
            exact_delete_after_us=rng.choice((0, 300_000, SECOND)),
            batch_rows_max=rng.choice((1, 2, 5, 100)),
            batch_bytes_max=rng.choice((300, 1 << 20)),
            lanes=rng.choice((1, 2)),
            write_timeout_us=rng.choice((SECOND // 2, 4 * SECOND)),
            store_timeout_us=rng.choice((SECOND, 3 * SECOND)),
            drain_timeout_us=5 * SECOND,
            rejected_write_retry_interval_us=5 * SECOND,
            resume_rows=rng.choice((1, 2, 50)),
            shard_retry_interval_us=3 * SECOND,
            refused_retry_interval_us=2 * SECOND,
            purge_interval_us=20 * SECOND,
        )

    # ------------------------------------------------------------------ trace and violations

    def record(self, *what: object) -> None:
        """Adds to the trace."""
        self.trace.append((self.loop.now_us(), *what))

    def broken(self, kind: str, detail: str) -> None:
        """Records a violation; the run ends with the first."""
        self.record("VIOLATION", kind, detail)
        if self.violation is None:
            self.violation = Violation(kind, detail)
            if self._failed is not None and not self._failed.done():
                self._failed.set_result(None)

    def fingerprint(self) -> str:
        """The trace's hash: equal for equal runs."""
        return hashlib.sha256(repr(self.trace).encode()).hexdigest()[:16]

    def record_firing(self, uuid: bytes, token: int, invocation: Invocation, node: Node, node_now: int) -> None:
        """Records a call of a receiver."""
        self.record("FIRE", node.name, uuid.hex()[:6], token, "attempt", invocation.attempt)
        former = self.fired.setdefault(invocation.message_id, token)
        if former != token and not {former, token} & self.ledger.replays:
            self.broken(
                "REUSED ID",
                f"{invocation.message_id} brought token {former}, and now {token}",
            )
        # A jump within the allowed skew is unnoticed until the next heartbeat; a slow heartbeat adds uncertainty.
        doubt_us = 2 * self.limits.clock_skew_max_us + node.link.round_trip_us_max
        # The first attempt was made when the node's clock had reached the instant; the clock may have been set back since.
        own_now = node_now if invocation.attempt == 1 else max(node_now, self.ledger.due[token])
        self.ledger.record_firing(uuid, token, own_now, self.true_us(), doubt_us, node.name)
        self.ledger.begins(token, node_now)
        self.ledger.fired_as(token, invocation.message_id)
        if invocation.namespace != FORGETFUL_NAMESPACE:
            self.runs.called(uuid, token, invocation.message_id, invocation.attempt)
        self.ledger.called(
            invocation.namespace, token, secret_number(invocation.secrets[0] if invocation.secrets else None), node.name
        )
        self.ledger.sent(uuid, invocation.attempt)
        if invocation.attempt == 1 and invocation.namespace != CROWD_NAMESPACE:
            self._check_late(uuid, token, invocation)

    def check_owners(self) -> None:
        """Checks that no two nodes may fire timers of one shard (rule 6)."""
        for shard_id in range(self.total_shards):
            firing = [node.name for node in self.nodes if node.may_fire(shard_id)]
            if len(firing) > 1:
                self.broken("TWO OWNERS", f"{' and '.join(firing)} may fire timers of shard {shard_id}")

    def _check_late(self, uuid: bytes, token: int, invocation: Invocation) -> None:
        """Checks that timers are on time where nothing is wrong or everything is healed, whatever else hangs."""
        limits = self.limits
        if limits.callbacks_in_flight_max < 50 or limits.resume_rows < 50:
            return
        if limits.destination_in_flight_max < 4 or limits.window_timers_max < 50:
            # A timer may wait for long behind a few slow answers of its own host if only one may be deferred.
            return
        if self.paused_namespaces or self.loop.time() - self.namespaces_unpaused_s <= 5.0:
            return
        if self.flows.limited(uuid):
            return
        host = invocation.url.split("/")[2]
        promised_us = self.ledger.late_since(token)
        if promised_us is None or host in self.broken_hosts:
            return
        answering_us = max(self.answering_since_us.get(host, 0), self.healed_at_us if self.faulty else 0)
        late_us = self.true_us() - max(promised_us, invocation.execute_at, answering_us)
        roomy = limits.destination_in_flight_max >= 50 and limits.destination_waiting_max >= 100
        usual_us = LATE_US_MAX if roomy else LATE_FEW_SLOTS_US_MAX
        if late_us > (LATE_HEALED_US_MAX if self.faulty else usual_us) and (self.healed or not self.faulty):
            self.broken("LATE", f"{uuid.hex()[:6]} token {token}, {late_us} us late")

    def true_us(self) -> int:
        """The store's clock, which shows the true time."""
        return EPOCH_US + self.loop.now_us()

    # ------------------------------------------------------------------ inspection of the store

    def stored_tokens(self) -> dict[bytes, int]:
        """The token of every live row that can be decoded."""
        tokens = {}
        for row in self.live_rows():
            try:
                timer = decode_record(row.record)
                if timer.schedule is None and timer.notifies is None and timer.debounced is None:
                    tokens[row.uuid] = token_of(timer.payload)
            except RecordUndecodable:
                continue
        return tokens

    def _expired(self, uuid: bytes) -> list[int]:
        """The tokens under which the timer ended because its time was over, by its history."""
        rows = [row for shard in self.store._shards.values() for row in shard.history.get(uuid, {}).values()]
        timers = [decode_record(row.record) for row in rows]
        return [token_of(timer.payload) for timer in timers if timer.payload != NULL_PAYLOAD and is_expired(timer)]

    def live_rows(self) -> list[StoredRow]:
        """Every live row of the shared store."""
        return [row for shard in self.store._shards.values() for row in shard.live.values()]

    # ------------------------------------------------------------------ the run

    def run(self) -> Violation | None:
        """Runs the seed from the start to the final checks."""
        try:
            with self.transitions.installed(), self.flows.installed():
                self.loop.run_until_complete(self._main())
        except (NothingScheduled, TimeNotAdvancing, NoEnd) as error:
            self.broken("STANDSTILL", str(error))
        for context in self.loop.unhandled:
            self.broken("UNHANDLED", f"{context.get('message')} {context.get('exception')!r}")
        self.loop.close()
        return self.violation

    async def _main(self) -> None:
        self._failed = self.loop.create_future()
        life = self.loop.create_task(self._life())
        await asyncio.wait({life, self._failed}, return_when=asyncio.FIRST_COMPLETED)
        if life.done():
            error = life.exception()
            if error is not None:
                self.broken("FATAL", repr(error))
        else:
            life.cancel()

    async def _life(self) -> None:
        for name in self.namespaces[:-1]:
            await put_namespace(self.store, self._namespace(name), create=True)
            self.exists[name].set()
        for rule in self.flows.rules:
            await FLOW_RECORDS.put(self.store, rule)
        self.notifications.watch()
        self.sinks.watch()
        if self.repeated:
            forgetful = Namespace(
                FORGETFUL_NAMESPACE, self.total_shards, 0, 0, HistoryMode.NONE, retry=NAMESPACE_POLICY
            )
            await put_namespace(self.store, forgetful, create=True)
            self.exists[FORGETFUL_NAMESPACE].set()
        if self.scheduled:
            await put_namespace(self.store, self._namespace(SCHEDULED_NAMESPACE), create=True)
            self.exists[SCHEDULED_NAMESPACE].set()
            self.schedules.watch()
        if self.debounced:
            await put_namespace(self.store, self._namespace(DEBOUNCED_NAMESPACE), create=True)
        if self.crowded:
            await self._crowd()
        for node in self.nodes:
            node.start()
        await asyncio.sleep(6.5)
        until = self.loop.time() + self.active_s
        clients = [self.loop.create_task(client.run(until)) for client in self.clients]
        chaos = Chaos(self)
        await chaos.run(until)
        await chaos.heal()
        await asyncio.gather(*clients)
        await self._drain()
        # A node whose last call before the healing was not answered waits for its time-out, then finds out what it lost.
        await asyncio.sleep(self.limits.store_timeout_us / 1e6 + 2.0)
        self._reckon()
        orderly = {node.context.incarnation for node in self.nodes if node.context is not None}
        await Departure(self).run()
        # Any node may claim at once a shard that is released, or whose owner is no longer a member.
        orderly &= {member.incarnation for member in await self.store.members()}
        owned = [state for state in await self.store.shards() if state.owner in orderly]
        if owned:
            self.broken("KEPT", f"shards not handed back: {owned}")

    def _namespace(self, name: str) -> Namespace:
        hooks = HOOKS if name in self.notified_namespaces else None
        limits = self.flows.of_namespaces.get(name)
        shards = self.shards_of(name)
        batch = self.batches.rules.get(name)
        return Namespace(
            name, shards, 0, 0, retry=NAMESPACE_POLICY, hooks=hooks, limits=limits, callback_batch=batch,
            event_sink=SINK if name in self.sinks.namespaces else None,
        )  # fmt: skip

    def shards_of(self, name: str) -> int:
        """How many shards the timers of a namespace are in."""
        return 1 if name in self.flows.ordered_namespaces else self.total_shards

    async def _crowd(self) -> None:
        """Writes the rows that a node finds when it restarts while a receiver hangs."""
        rng = self.rng("crowd", "timers")
        crowded = Namespace(CROWD_NAMESPACE, self.total_shards, 0, 0, retry=NAMESPACE_POLICY)
        await put_namespace(self.store, crowded, create=True)
        padding = "x" * rng.choice((2_000, 10_000))
        rows: dict[int, list[StoredRow]] = {shard_id: [] for shard_id in range(self.total_shards)}
        for number in range(60):
            uuid = timer_uuid(CROWD_NAMESPACE, str(number))
            due = self.true_us() + rng.randint(0, 20) * SECOND
            token = self.ledger.token(due, self.true_us(), single=True)
            self.ledger.acknowledged(uuid, token)
            payload = msgspec.Raw(b'{"token":%d,"padding":"%s"}' % (token, padding.encode()))
            timer = Timer(
                CROWD_NAMESPACE, str(number), due, f"http://{HUNG_HOST}/", due, due, payload=payload,
                timeout_us=3 * SECOND, firing=str(number),
            )  # fmt: skip
            shard_id = number % self.total_shards
            rows[shard_id].append(stored(Row((due, uuid), generation(0, bytes(16), number), timer, 0)))
        former = b"f" * 16
        for shard_id, upserts in rows.items():
            await self.store.claim(shard_id, expected_epoch=0, owner=former)
            batch = ShardBatch(shard_id, 1, former)
            batch.upserts = sorted(upserts, key=lambda row: row.key)
            await self.store.apply([batch])
            await self.store.release(shard_id, epoch=1, owner=former)

    async def _drain(self) -> None:
        deadline = self.loop.time() + DRAIN_S_MAX
        while self.loop.time() < deadline:
            await asyncio.sleep(1.0)
            if all(row.suspended and row.suspended.startswith("bad_record") for row in self.live_rows()):
                return
            self.ledger.check(self.stored_tokens())

    def _reckon(self) -> None:
        self.ledger.check_drained(self.stored_tokens())
        for row in self.live_rows():
            if not (row.namespace == BAD_NAMESPACE and row.suspended and row.suspended.startswith("bad_record")):
                self.broken("STUCK", f"{row.uuid.hex()[:6]} is still stored, suspended: {row.suspended}")
        if not self.faulty and self.ledger.duplicates:
            self.broken("DUPLICATE", f"{self.ledger.duplicates} in a run without faults")
        for node in self.nodes:
            for leak in node.leaks():
                self.broken("LEAKED", leak)
        self._check_history()
        check_failures(self.store, FORGETFUL_NAMESPACE, self.ledger.replayed_uuids, self.broken)
        self.runs.check(self.store)
        self.notifications.check()
        self.ledger_of_debounced.check()

    def _check_history(self) -> None:
        """Checks that every finished timer has its history row, and that every history row is true."""
        reported: set[bytes] = set()
        for row in chain.from_iterable(map(ended_rows, self.store._shards.values())):
            reported.add(row.uuid)
            timer = decode_record(row.record)
            if timer.status is not row.status:
                self.broken("UNTRUE", f"{row.uuid.hex()[:6]} is {row.status}, its record {timer.status}")
            attempts_max = (timer.retry or NAMESPACE_POLICY).max_attempts
            self.record("history", timer.status.value, timer.attempts, attempts_max)
            if timer.payload != NULL_PAYLOAD and timer.schedule is None and timer.debounced is None:
                self.ledger.finished_as(row.uuid, token_of(timer.payload), timer, faulty=self.faulty)
        for uuid, states in self.ledger.possible.items():
            if len(states) == 1 and uuid in self.ledger.created and uuid not in reported:
                self.broken("NO HISTORY", f"{uuid.hex()[:6]} finished in states {states} without a trace")


class _StoreClock(FakeClock):
    def __init__(self, loop: SimulationLoop) -> None:
        super().__init__()
        self._loop = loop

    def now_us(self) -> int:
        return EPOCH_US + self._loop.now_us()
