"""Slots and tokens of the limits of flows, as their home accounts for them. Pure: boot time comes from the caller.

`tests/model/flows` has the protocol of one limit (ADR 99).
"""

from __future__ import annotations

from typing import Protocol

from tocsin.model.flow import FlowLimits, Rate

#: More than can be granted at once.
UNLIMITED = 1 << 30


class Bucket:
    """The tokens of a rate, exactly: one token is `per_us` parts, and `count` parts come with each microsecond. It begins as
    if it had been empty at `since_us`."""

    __slots__ = ("_at", "burst", "parts", "rate")

    def __init__(self, rate: Rate, burst: int, since_us: int) -> None:
        self.rate = rate
        self.burst = burst
        #: Parts of tokens, as of the last time that it was filled.
        self.parts = 0
        self._at = since_us

    def change(self, rate: Rate, burst: int, now_us: int) -> None:
        """Goes on with another rate and burst, with the tokens that there are."""
        tokens = self.tokens(now_us)
        self.rate, self.burst = rate, burst
        self.parts = min(tokens, burst) * rate.per_us

    def _fill(self, now_us: int) -> None:
        elapsed_us = now_us - self._at
        if elapsed_us > 0:
            rate = self.rate
            parts, full = self.parts + rate.count * elapsed_us, self.burst * rate.per_us
            self.parts = parts if parts < full else full
            self._at = now_us

    def tokens(self, now_us: int) -> int:
        """Whole tokens."""
        self._fill(now_us)
        return self.parts // self.rate.per_us

    def has_token(self, now_us: int) -> bool:
        """Whether there is a token. `_fill` is repeated here, because each attempt asks."""
        rate, elapsed_us = self.rate, now_us - self._at
        if elapsed_us > 0:
            parts, full = self.parts + rate.count * elapsed_us, self.burst * rate.per_us
            self.parts = parts if parts < full else full
            self._at = now_us
        return self.parts >= rate.per_us

    def take(self, count: int) -> None:
        """Takes tokens that there are."""
        self.parts -= count * self.rate.per_us

    def give_back(self, count: int, held: int) -> None:
        """Takes back tokens that were not used, but not on top of those that others hold: with a bucket that was filled
        meanwhile, more than the burst could begin at once."""
        room = max((self.burst - held) * self.rate.per_us - self.parts, 0)
        self.parts += min(count * self.rate.per_us, room)

    def next_in_us(self, now_us: int) -> int:
        """In how many microseconds there is a token; 0 if there is one."""
        self._fill(now_us)
        missing = self.rate.per_us - self.parts
        return max(-(-missing // self.rate.count), 0)

    def is_full(self, now_us: int) -> bool:
        """Whether nothing more is added: the bucket could be forgotten."""
        rate = self.rate
        return self.parts + rate.count * (now_us - self._at) >= self.burst * rate.per_us


class InUse(Protocol):
    """A node's attempts in flight of a limit. A home that is on the same node reads them directly."""

    in_use: int


class Usage:
    """What one node has of a limit: attempts in flight, and those that began since `life`, which numbers the node's usages. A
    key's state has the same of itself."""

    __slots__ = ("begun", "in_use", "life")

    def __init__(self, life: int) -> None:
        self.life = life
        self.in_use = 0
        self.begun = 0


class _Holder:
    """What the home knows of another node's usage: its last report, and what it was granted then."""

    __slots__ = ("begun", "granted", "in_use", "life")

    def __init__(self, life: int) -> None:
        self.life = life
        self.in_use = 0
        self.begun = 0
        self.granted = 0


#: What most accounts have of other nodes. Never written to: with a dict or two of its own for each key, a burst of keys costs
#: a tenth more.
_NOBODY: dict[bytes, int] = {}
_NO_HOLDERS: dict[bytes, _Holder] = {}


class Account:
    """Slots and tokens of one limit at its home. `local` is the usage of the home's own node, which needs no grants."""

    __slots__ = ("_held", "_holders", "bucket", "closed_until", "limits", "local", "waiting")

    def __init__(self, limits: FlowLimits | None, local: InUse | None, since_us: int) -> None:
        self.limits = limits
        self.local: InUse | None = local
        self.bucket: Bucket | None = None
        if limits is not None and limits.rate is not None:
            self.bucket = Bucket(limits.rate, limits.burst, since_us)
        #: Boot time until which a receiver has asked for no more.
        self.closed_until = 0
        #: Nodes that could begin less than they wanted, in the order of their turns, and until when each counts as waiting.
        self.waiting = _NOBODY
        self._holders = _NO_HOLDERS
        # Slots of other nodes.
        self._held = 0

    def change(self, limits: FlowLimits | None, now_us: int) -> None:
        """Goes on with other limits."""
        if limits == self.limits:
            return
        rate = None if limits is None else limits.rate
        self.limits = limits
        if limits is None or rate is None:
            self.bucket = None
        elif self.bucket is None:
            self.bucket = Bucket(rate, limits.burst, now_us)
        else:
            self.bucket.change(rate, limits.burst, now_us)

    @property
    def in_use(self) -> int:
        """Slots that it takes for used."""
        local = self.local
        return self._held + (0 if local is None else local.in_use)

    def forgettable(self, now_us: int) -> bool:
        """Whether it is as good as a new one: no slot is in use and the bucket is full."""
        if self._holders or (self.local is not None and self.local.in_use) or self.closed_until > now_us:
            return False
        return self.bucket is None or self.bucket.is_full(now_us)

    def free(self, now_us: int) -> int:
        """How many attempts may begin."""
        limits = self.limits
        if self.closed_until > now_us:
            return 0
        if limits is None:
            return UNLIMITED
        slots = UNLIMITED if limits.parallelism is None else limits.parallelism - self.in_use
        return max(slots if self.bucket is None else min(slots, self.bucket.tokens(now_us)), 0)

    def lets(self, node: bytes, now_us: int) -> bool:
        """Whether that node may begin an attempt: `free_for` without the number, and with `in_use` written out, because each
        attempt asks."""
        if self.waiting:
            return self.free_for(node, now_us) > 0
        if self.closed_until > now_us:
            return False
        limits, bucket = self.limits, self.bucket
        if limits is None:
            return True
        most = limits.parallelism
        if most is not None:
            local = self.local
            if self._held + (0 if local is None else local.in_use) >= most:
                return False
        return bucket is None or bucket.has_token(now_us)

    def free_for(self, node: bytes, now_us: int) -> int:
        """How many attempts that node may begin: one is left to each node whose turn is before."""
        free = self.free(now_us)
        for other, until_us in self.waiting.items():
            if other == node or free <= 0:
                break
            free -= until_us > now_us
        return max(free, 0)

    def wait(self, node: bytes, until_us: int, *, had_turn: bool) -> None:
        """The node could begin less than it wants. If it `had_turn`, the others come first now."""
        if had_turn:
            self.waiting.pop(node, None)
        if self.waiting is _NOBODY:
            self.waiting = {}
        self.waiting[node] = until_us

    def has_all(self, node: bytes) -> bool:
        """The node waits no more; returns whether it did until now."""
        return self.waiting.pop(node, None) is not None

    def in_turn(self, now_us: int) -> list[bytes]:
        """The nodes that wait and could be granted something now (`free_for`). To notify others would be of no use to them,
        and with hundreds of nodes each of which reports then, reports would do nothing but cause others."""
        free, found = self.free(now_us) if self.waiting else 0, list[bytes]()
        for node, until_us in self.waiting.items():
            if free <= 0:
                break
            found.append(node)
            free -= until_us > now_us
        return found

    def again_in_us(self, now_us: int) -> int:
        """In how many microseconds an attempt may begin if none ends until then; 0: that helps nothing."""
        wait_us = max(self.closed_until - now_us, 0)
        if self.bucket is not None:
            wait_us = max(wait_us, self.bucket.next_in_us(now_us))
        return wait_us

    def take(self, count: int) -> None:
        """Takes the tokens of attempts that may begin."""
        if self.bucket is not None and count:
            self.bucket.take(count)

    def begin(self, node: bytes) -> None:
        """An attempt of the home's own `node` begins, which `lets` allowed: it takes a token, and waits no more. Not needed
        where there are neither tokens nor nodes that wait."""
        bucket = self.bucket
        if bucket is not None:
            bucket.parts -= bucket.rate.per_us
        if self.waiting:
            self.has_all(node)

    def grant(self, node: bytes, count: int) -> None:
        """Grants slots and tokens to another node, which has just reported."""
        self.take(count)
        self._holders[node].granted += count
        self._held += count

    def report(self, node: bytes, life: int, in_use: int, begun: int) -> bool:
        """Takes a later report of another node. What it was granted is in use as far as it states so; other tokens return.
        Returns whether that frees something."""
        holder = self._holders.get(node)
        if holder is None:
            if self._holders is _NO_HOLDERS:
                self._holders = {}
            holder = self._holders[node] = _Holder(life)
            holder.begun = begun
        held = holder.in_use + holder.granted
        self._held -= held
        # A new usage states nothing of what became of the grants of the one before.
        used = begun - holder.begun if holder.life == life else holder.granted
        unused, holder.granted = holder.granted - used, 0
        holder.life, holder.begun, holder.in_use = life, begun, in_use
        self._held += in_use
        if unused > 0 and self.bucket is not None:
            self.bucket.give_back(unused, self._granted())
        return in_use < held

    def _granted(self) -> int:
        return sum(holder.granted for holder in self._holders.values())

    def forget(self, node: bytes) -> None:
        """The node is presumed dead, or has nothing of it: it counts no more."""
        self.waiting.pop(node, None)
        holder = self._holders.pop(node, None)
        if holder is not None:
            self._held -= holder.in_use + holder.granted
