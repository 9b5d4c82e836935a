"""A store decorator that injects faults, for simulations: slow calls, failures, unknown outcomes, late effects.

All randomness comes from the given `random.Random` and all time from the running event loop, so that a seed can be replayed.
"""

from __future__ import annotations

import asyncio
import builtins
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from typing import TypeVar

from tocsin.model.access import ApiKey
from tocsin.model.audit import AuditEntry
from tocsin.model.errors import DefiniteFailure, OutcomeUnknown, StoreError, StoreUnavailable
from tocsin.model.namespace import Namespace
from tocsin.ports.store import (
    Applied,
    AuditQuery,
    FireKey,
    Found,
    Listed,
    ListQuery,
    Loaded,
    Member,
    ShardBatch,
    ShardState,
    SignIn,
    Store,
)

T = TypeVar("T")


class Fault(Enum):
    """A fault of one call."""

    #: No fault.
    NONE = "none"
    #: DefiniteFailure, without effect. The only fault of reads.
    FAIL = "fail"
    #: OutcomeUnknown; the call took effect.
    UNKNOWN_DONE = "unknown_done"
    #: OutcomeUnknown; the call took no effect and never will.
    UNKNOWN_LOST = "unknown_lost"
    #: OutcomeUnknown; the call takes effect some time later.
    LATE = "late"


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The probability of each fault per call, and delays in seconds.

    Each way, to the store and back, takes between `delay_s_min` and `delay_s_max`; a call is slow with probability `slow`,
    and then takes up to `slow_s_max` longer. Late effects happen within `late_s_max`. A call while the store is cut off fails
    after `cut_timeout_s`."""

    delay_s_min: float = 0.0
    delay_s_max: float = 0.0
    slow: float = 0.0
    slow_s_max: float = 1.0
    fail: float = 0.0
    read_fail: float = 0.0
    unknown_done: float = 0.0
    unknown_lost: float = 0.0
    late: float = 0.0
    late_s_max: float = 10.0
    cut_timeout_s: float = 1.0


#: A plan without random faults; scripts and cuts still work.
NO_FAULTS = FaultPlan()


class FaultyStore:
    """A decorator of any store, as one node sees it.

    Faults come from `script` first, then from the plan's probabilities. `cut` disconnects the node from the store: each new
    call raises StoreUnavailable after a time, and the outcome of writes under way is unknown. `injected` counts the injected
    faults, so that a run can tell whether it had any.
    """

    def __init__(self, inner: Store, random: Random, plan: FaultPlan = NO_FAULTS) -> None:
        self.inner = inner
        self.capabilities = inner.capabilities
        self.plan = plan
        self.injected: Counter[str] = Counter()
        self._random = random
        self._scripts: dict[str, deque[Fault]] = defaultdict(deque)
        self._cuts = 0
        self._is_cut = False
        self._late: list[asyncio.Task[None]] = []

    def partitioned(self, node: str) -> FaultyStore:
        """Another node's view of the same store, with its own faults, which depend on the seed and the node's name."""
        return FaultyStore(self.inner, Random(f"{self._random.getrandbits(64)}/{node}"), self.plan)

    def script(self, method: str, *faults: Fault) -> None:
        """Sets the faults of a method's next calls, in order; then the plan applies again."""
        self._scripts[method].extend(faults)

    @property
    def is_cut(self) -> bool:
        """Whether this node is cut off from the store."""
        return self._is_cut

    def cut(self) -> None:
        """Cuts this node off from the store. Late effects still happen."""
        self._is_cut = True
        self._cuts += 1

    def heal(self) -> None:
        """Connects the node again."""
        self._is_cut = False

    async def settle(self) -> None:
        """Waits until all late effects have happened."""
        while self._late:
            await asyncio.gather(*self._late)

    # -- the faults

    def _next(self, method: str, *, write: bool) -> Fault:
        script = self._scripts[method]
        if script:
            return script.popleft()
        plan, draw = self.plan, self._random.random()
        if not write:
            return Fault.FAIL if draw < plan.read_fail else Fault.NONE
        for fault, probability in (
            (Fault.FAIL, plan.fail),
            (Fault.UNKNOWN_DONE, plan.unknown_done),
            (Fault.UNKNOWN_LOST, plan.unknown_lost),
            (Fault.LATE, plan.late),
        ):
            if draw < probability:
                return fault
            draw -= probability
        return Fault.NONE

    async def _way(self) -> None:
        """Waits for the delay of one way, to the store or back."""
        plan = self.plan
        delay_s = self._random.uniform(plan.delay_s_min, plan.delay_s_max)
        if self._random.random() < plan.slow:
            self.injected["slow"] += 1
            delay_s += self._random.uniform(0, plan.slow_s_max)
        await asyncio.sleep(delay_s)

    async def _read(self, method: str, call: Callable[[], Awaitable[T]]) -> T:
        return await self._call(method, call, write=False)

    async def _write(self, method: str, call: Callable[[], Awaitable[T]]) -> T:
        return await self._call(method, call, write=True)

    async def _call(self, method: str, call: Callable[[], Awaitable[T]], *, write: bool) -> T:
        if self._is_cut:
            self.injected["cut"] += 1
            await asyncio.sleep(self.plan.cut_timeout_s)
            raise StoreUnavailable(f"{method}: the store can't be reached")
        cuts, fault = self._cuts, self._next(method, write=write)
        arrives_despite_cut = self._random.random() < 0.5
        if fault is not Fault.NONE:
            self.injected[fault.value] += 1
        await self._way()
        if fault is Fault.FAIL:
            raise DefiniteFailure(f"{method}: injected failure")
        if self._cuts != cuts and not arrives_despite_cut:
            raise self._interrupted(method, write=write)
        if fault is Fault.UNKNOWN_LOST:
            raise OutcomeUnknown(f"{method}: injected loss of the call")
        if fault is Fault.LATE:
            self._land_late(call)
            raise OutcomeUnknown(f"{method}: injected late effect")
        result = await call()
        await self._way()
        if self._cuts != cuts:
            raise self._interrupted(method, write=write)
        if fault is Fault.UNKNOWN_DONE:
            raise OutcomeUnknown(f"{method}: injected loss of the answer")
        return result

    def _interrupted(self, method: str, *, write: bool) -> StoreError:
        self.injected["interrupted"] += 1
        kind = OutcomeUnknown if write else StoreUnavailable
        return kind(f"{method}: the connection was cut")

    def _land_late(self, call: Callable[[], Awaitable[T]]) -> None:
        delay_s = self._random.uniform(0, self.plan.late_s_max)

        async def land() -> None:
            try:
                await asyncio.sleep(delay_s)
                # Nobody receives the result, as with a real database.
                await call()
            except StoreError:
                self.injected["late_refused"] += 1
            finally:
                self._late.remove(task)

        task = asyncio.get_running_loop().create_task(land())
        self._late.append(task)

    # -- the port

    async def open(self, total_shards: int | None) -> int:
        """Opens the inner store, without faults."""
        return await self.inner.open(total_shards)

    async def close(self) -> None:
        """Leaves the inner store open, because other nodes may use it."""

    async def now(self) -> int:
        """The store's clock in microseconds."""
        return await self._read("now", self.inner.now)

    async def shards(self) -> builtins.list[ShardState]:
        """Every shard that was ever claimed."""
        return await self._read("shards", self.inner.shards)

    async def claim(
        self, shard_id: int, *, expected_epoch: int, owner: bytes, presumed_dead: tuple[bytes, int] | None = None
    ) -> int | None:
        """Claims the shard: the epoch becomes `expected_epoch` + 1 and the owner `owner`; returns the new epoch."""
        return await self._write(
            "claim",
            lambda: self.inner.claim(shard_id, expected_epoch=expected_epoch, owner=owner, presumed_dead=presumed_dead),
        )

    async def release(self, shard_id: int, *, epoch: int, owner: bytes) -> bool:
        """Clears the owner if epoch and owner are still these, and returns whether they were."""
        return await self._write("release", lambda: self.inner.release(shard_id, epoch=epoch, owner=owner))

    async def heartbeat(self, member: Member) -> int:
        """Writes the member row; returns the store's clock in microseconds."""
        return await self._write("heartbeat", lambda: self.inner.heartbeat(member))

    async def members(self) -> builtins.list[Member]:
        """All member rows."""
        return await self._read("members", self.inner.members)

    async def forget_member(self, incarnation: bytes, counter: int | None = None) -> None:
        """Removes a member row; with `counter`, only while the member's heartbeat counter is still that one, so that a member
        that has resumed meanwhile stays."""
        await self._write("forget_member", lambda: self.inner.forget_member(incarnation, counter))

    async def apply(self, batches: Sequence[ShardBatch]) -> builtins.list[Applied]:
        """Writes the parts of several shards, each shard at most once; durable when it returns. The batches are copied: what
        lands late is what was sent, whatever the caller does with its lists."""
        sent = [
            replace(batch, upserts=[*batch.upserts], deletes=[*batch.deletes], history=[*batch.history])
            for batch in batches
        ]
        return await self._write("apply", lambda: self.inner.apply(sent))

    async def load(self, shard_id: int, after: FireKey, up_to: FireKey, limit: int) -> Loaded:
        """Live rows that are not suspended with after < key ≤ up_to: at most `limit`, smallest keys first, from a snapshot
        that began after the call."""
        return await self._read("load", lambda: self.inner.load(shard_id, after, up_to, limit))

    async def load_suspended(self, shard_id: int, after: FireKey, limit: int) -> Loaded:
        """Suspended rows with key > after, as `load` returns live ones."""
        return await self._read("load_suspended", lambda: self.inner.load_suspended(shard_id, after, limit))

    async def fetch(self, shard_id: int, uuids: Sequence[bytes]) -> dict[bytes, Found]:
        """What is stored for each uuid; a uuid without any row is absent."""
        wanted = list(uuids)
        return await self._read("fetch", lambda: self.inner.fetch(shard_id, wanted))

    async def list(self, query: ListQuery) -> Listed:
        """A page of one namespace's timers, live and finished."""
        return await self._read("list", lambda: self.inner.list(query))

    async def purge_history(self, now_us: int, limit: int) -> int:
        """Removes up to `limit` history rows with expires_at ≤ now_us and returns how many."""
        return await self._write("purge_history", lambda: self.inner.purge_history(now_us, limit))

    async def namespaces(self) -> builtins.list[Namespace]:
        """All namespaces."""
        return await self._read("namespaces", self.inner.namespaces)

    async def put_namespace(self, namespace: Namespace, *, create: bool) -> bool:
        """With `create`, inserts the namespace; False when it already exists."""
        return await self._write("put_namespace", lambda: self.inner.put_namespace(namespace, create=create))

    async def api_keys(self) -> builtins.list[ApiKey]:
        """All API keys."""
        return await self._read("api_keys", self.inner.api_keys)

    async def put_api_key(self, key: ApiKey) -> None:
        """Inserts the key, or replaces the one with its `key_id`."""
        await self._write("put_api_key", lambda: self.inner.put_api_key(key))

    async def delete_api_key(self, key_id: str) -> bool:
        """Removes the key and its sign-ins."""
        return await self._write("delete_api_key", lambda: self.inner.delete_api_key(key_id))

    async def shared_secret(self, name: str, fresh: str) -> str:
        """The secret of that name that all nodes of this store share: the stored one, or else `fresh`, which is then
        stored."""
        return await self._write("shared_secret", lambda: self.inner.shared_secret(name, fresh))

    async def put_sign_in(self, sign_in: SignIn, now_us: int, keep: int) -> None:
        """Stores a sign-in, or replaces the one with its `token_hash`."""
        await self._write("put_sign_in", lambda: self.inner.put_sign_in(sign_in, now_us, keep))

    async def sign_ins(self, token_hashes: Sequence[str]) -> builtins.list[SignIn]:
        """The stored sign-ins with these token hashes, expired ones included, in any order."""
        return await self._read("sign_ins", lambda: self.inner.sign_ins(token_hashes))

    async def touch_sign_in(self, token_hash: str, seen_at: int) -> bool:
        """Updates the sign-in's last use, never to an earlier instant."""
        return await self._write("touch_sign_in", lambda: self.inner.touch_sign_in(token_hash, seen_at))

    async def delete_sign_in(self, token_hash: str) -> bool:
        """Removes the sign-in."""
        return await self._write("delete_sign_in", lambda: self.inner.delete_sign_in(token_hash))

    async def put_audit(self, entry: AuditEntry) -> None:
        """Stores an entry."""
        await self._write("put_audit", lambda: self.inner.put_audit(entry))

    async def audit(self, query: AuditQuery) -> builtins.list[AuditEntry]:
        """At most `limit` entries by (at, entry_id), descending."""
        return await self._read("audit", lambda: self.inner.audit(query))

    async def purge_audit(self, before_us: int, limit: int) -> int:
        """Removes up to `limit` entries with at < before_us, oldest first; returns how many."""
        return await self._write("purge_audit", lambda: self.inner.purge_audit(before_us, limit))
