"""What namespaces with quotas have used of them, as far as one node knows. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tocsin.model.errors import QuotaExceeded
from tocsin.model.namespace import Namespace
from tocsin.model.quota import NO_QUOTAS, Quota, Room
from tocsin.ports.quotas import QuotaUse
from tocsin.ports.store import KEY_MIN, FireKey

#: The time over which the rate of creates is averaged.
_AVERAGED_US = 2_000_000


class PendingCount:
    """How many timers of a namespace are pending in one shard, since an epoch of this node. `timers` is None until the first
    count is complete. `counted_at` is when the last one was, `due_us` when the next one is due (boot time)."""

    __slots__ = ("_counting", "_seen_to", "counted_at", "due_us", "epoch", "timers")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.timers: int | None = None
        self.counted_at = 0
        self.due_us = 0
        # The count under way, and the key up to which it has read; None: there is none.
        self._counting = 0
        self._seen_to: FireKey | None = None

    def begin(self) -> None:
        """A count begins."""
        self._counting, self._seen_to = 0, KEY_MIN

    def read(self, timers: int, to: FireKey) -> None:
        """The count under way has read so many more, up to a key."""
        self._counting, self._seen_to = self._counting + timers, to

    def complete(self, timers: int, now_us: int, due_us: int) -> None:
        """The count is complete with these last ones; the next one is due then."""
        self.timers, self.counted_at, self.due_us = self._counting + timers, now_us, due_us
        self._seen_to = None

    def fail(self, due_us: int) -> None:
        """The count has failed; the next one is due then."""
        self.due_us, self._seen_to = due_us, None

    def note(self, key: FireKey, by: int) -> None:
        """A timer with that key was created (1) or has ended (-1). What the count under way has yet to read, it finds."""
        if self.timers is not None:
            self.timers = max(self.timers + by, 0)
        if self._seen_to is not None and key <= self._seen_to:
            self._counting = max(self._counting + by, 0)


class QuotaAccount:
    """What a namespace with quotas has used, as far as this node knows.

    `shards` has the counts of this node's own shards of the namespace, None before the first look at them. `reserved` are
    timers that batches under way create. `others` is what the other living nodes report, all together, and `nodes` how many
    living nodes there are."""

    __slots__ = (
        "_filled_us", "_rate", "_rated_us", "_tokens", "arc", "namespace", "nodes", "others", "quotas", "reserved", "shards",
    )  # fmt: skip

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self.quotas = namespace.quotas or NO_QUOTAS
        #: The shards of the namespace, once they are known.
        self.arc: frozenset[int] | None = None
        self.shards: dict[int, PendingCount] | None = None
        self.reserved = 0
        self.others = QuotaUse(0, 0, 0.0)
        self.nodes = 1
        # Creates that may be made at once, as of a boot time; None: as many as at all.
        self._tokens: float | None = None
        self._filled_us = 0
        # Creates a second, averaged, as of a boot time.
        self._rate = 0.0
        self._rated_us = 0

    def change(self, namespace: Namespace) -> None:
        """Takes over changed quotas; what has been used stays."""
        self.namespace, self.quotas = namespace, namespace.quotas or NO_QUOTAS
        if self.quotas.pending is None:
            self.shards = None

    # ------------------------------------------------------------------ creates a second

    def refuse_create(self, boot_us: int) -> QuotaExceeded | None:
        """Counts a create that this node admits, or why it does not."""
        quota = self.quotas.creates_per_second
        if quota is None:
            return None
        # What the other nodes leave, and at least an equal share.
        rate = max(quota / self.nodes, quota - self.others.creates_per_second)
        most = max(rate, 1.0)
        tokens = most if self._tokens is None else self._tokens + rate * (boot_us - self._filled_us) / 1e6
        self._tokens, self._filled_us = min(tokens, most), boot_us
        if self._tokens < 1:
            return QuotaExceeded(
                f"namespace {self.namespace.name!r} has used up its quota {Quota.CREATES_PER_SECOND} of {quota}; nothing was "
                "written; create more slowly, or have the quota raised (namespaces/update)",
                retry_after_s=(1 - self._tokens) / rate,
            )
        self._tokens -= 1
        self._rate, self._rated_us = self.rate(boot_us) + 1e6 / _AVERAGED_US, boot_us
        return None

    def rate(self, boot_us: int) -> float:
        """How many creates a second this node has admitted, averaged over the last seconds."""
        return self._rate * math.exp((self._rated_us - boot_us) / _AVERAGED_US)

    # ------------------------------------------------------------------ pending timers

    def follow(self, owned: Mapping[int, int]) -> None:
        """Takes over which shards this node owns in which epochs. A claimed one is counted again."""
        assert self.arc is not None
        known = self.shards or {}
        self.shards = {
            shard_id: count if (count := known.get(shard_id)) is not None and count.epoch == epoch else PendingCount(epoch)
            for shard_id, epoch in owned.items()
            if shard_id in self.arc
        }  # fmt: skip

    def count_of(self, shard_id: int) -> PendingCount | None:
        """The count of a shard."""
        return None if self.shards is None else self.shards.get(shard_id)

    def own(self) -> tuple[int | None, int]:
        """How many timers are pending in this node's shards, None before all are counted; and when the first of these counts
        was made."""
        total, counted_at = 0, 0
        if self.shards is None:
            return None, 0
        for count in self.shards.values():
            if count.timers is None:
                return None, 0
            total += count.timers
            counted_at = min(counted_at or count.counted_at, count.counted_at)
        return total, counted_at

    def use(self, boot_us: int) -> QuotaUse:
        """What this node has of it."""
        return QuotaUse(*self.own(), round(self.rate(boot_us), 3))

    def room(self, shard_id: int) -> Room | None:
        """For a batch of a shard; None if there is no quota, or not all is counted yet."""
        quota = self.quotas.pending
        if quota is None or self.count_of(shard_id) is None:
            return None
        own, _ = self.own()
        return None if own is None else Room(quota - own - self.reserved - (self.others.pending or 0), quota)


def open_account(accounts: dict[str, QuotaAccount], namespace: Namespace) -> None:
    """Takes over what a namespace has as quotas now: one without any has no account."""
    known = accounts.get(namespace.name)
    if namespace.quotas is None:
        accounts.pop(namespace.name, None)
    elif known is None or known.namespace.created_at != namespace.created_at:
        accounts[namespace.name] = QuotaAccount(namespace)
    else:
        known.change(namespace)
