"""Slots and tokens of the limits of flows, as their home accounts for them. Pure: boot time comes from the caller.

`tests/model/flows` has the protocol of one limit (ADR 99).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tocsin.model.flow import FlowLimits, Rate

#: More than can be granted at once.
UNLIMITED = 1 << 30
#: When all tokens are there of an account that has to be looked up: never.
_UNKNOWN = 1 << 100


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


def _fills_in_us(rate: Rate, burst: int) -> int:
    """How long a bucket takes from empty to full, in whole microseconds."""
    return -(-burst * rate.per_us // rate.count)


class Account:
    """Slots and tokens of one limit at its home. `local` is the usage of the home's own node, which needs no grants.

    The tokens of a rate are counted by the instant at which all of them would be there again: the generic cell rate algorithm
    of ITU-T I.371. That instant is in parts of a microsecond, `rate.count` in each, so that it is a whole number. An account
    begins as if it had had no token at `since_us`; one of a slow rate is looked up instead (ADR 132), and lets nothing begin
    until then.
    """

    __slots__ = ("_full_at", "_held", "_holders", "closed_until", "limits", "local", "noted", "waiting")

    def __init__(self, limits: FlowLimits | None, local: InUse | None, since_us: int) -> None:
        self.limits = limits
        self.local: InUse | None = local
        self._full_at = 0
        if limits is not None:
            rate = limits.rate
            if rate is not None:
                self._full_at = since_us * rate.count + limits.burst * rate.per_us
        #: Called after tokens of a slow rate were taken, or have returned; None: the rate is not slow.
        self.noted: Callable[[Account], None] | None = None
        #: Boot time until which a receiver has asked for no more.
        self.closed_until = 0
        #: Nodes that could begin less than they wanted, in the order of their turns, and until when each counts as waiting.
        self.waiting = _NOBODY
        self._holders = _NO_HOLDERS
        # Slots of other nodes.
        self._held = 0

    def change(self, limits: FlowLimits | None, now_us: int) -> None:
        """Goes on with other limits, and with the tokens that there are."""
        former = self.limits
        if limits == former:
            return
        tokens = 0 if self.unknown else self._tokens(now_us)
        self.limits = limits
        if limits is None or limits.rate is None:
            self._full_at = 0
        elif former is not None and (former.rate, former.burst) == (limits.rate, limits.burst):
            return
        elif not (self.unknown and limits.is_slow):
            missing = limits.burst - min(tokens or 0, limits.burst)
            self._full_at = limits.rate.count * now_us + missing * limits.rate.per_us
            if self.noted is not None:
                self.noted(self)

    @property
    def unknown(self) -> bool:
        """Whether it is to be looked up, and lets nothing begin until then."""
        return self._full_at == _UNKNOWN

    def ask(self) -> None:
        """It is to be looked up, unless no token can be missing."""
        self._full_at = _UNKNOWN

    def restore(self, rate: Rate, burst: int, full_in_us: int, now_us: int) -> None:
        """It was looked up: under this rate and burst, which may have changed since, all tokens are there in so many
        microseconds. That they never take longer than from none on keeps a clock that was wrong from closing it for long."""
        limits, most_us = self.limits, _fills_in_us(rate, burst)
        assert limits is not None
        self._full_at = rate.count * (now_us + min(max(full_in_us, 0), most_us))
        if (rate, burst) != (limits.rate, limits.burst):
            self.limits = FlowLimits(rate, burst)
            self.change(limits, now_us)
        elif full_in_us > most_us and self.noted is not None:
            self.noted(self)

    def deplete(self, full_in_us: int, now_us: int) -> None:
        """No tokens are there that take so many microseconds to come back, or as many as an empty account does."""
        limits = self.limits
        assert limits is not None
        assert limits.rate is not None
        full_at = limits.rate.count * (now_us + min(full_in_us, _fills_in_us(limits.rate, limits.burst)))
        if full_at > self._full_at:
            self._full_at = full_at
            if self.noted is not None:
                self.noted(self)

    @property
    def full_at(self) -> int:
        """When all tokens are there, in parts of a microsecond; changes whenever some are taken."""
        return self._full_at

    def full_in_us(self, now_us: int) -> int:
        """In how many microseconds all tokens are there."""
        rate = None if self.limits is None else self.limits.rate
        return 0 if rate is None else max(-((rate.count * now_us - self._full_at) // rate.count), 0)

    def _tokens(self, now_us: int) -> int | None:
        """Whole tokens; None without a rate."""
        limits = self.limits
        if limits is None or limits.rate is None:
            return None
        return limits.burst + min(limits.rate.count * now_us - self._full_at, 0) // limits.rate.per_us

    @property
    def in_use(self) -> int:
        """Slots that it takes for used."""
        local = self.local
        return self._held + (0 if local is None else local.in_use)

    def forgettable(self, now_us: int) -> bool:
        """Whether it is as good as a new one: no slot is in use and all tokens are there."""
        if self._holders or (self.local is not None and self.local.in_use) or self.closed_until > now_us:
            return False
        rate = None if self.limits is None else self.limits.rate
        return rate is None or self._full_at <= rate.count * now_us or self.unknown

    def free(self, now_us: int) -> int:
        """How many attempts may begin."""
        limits = self.limits
        if self.closed_until > now_us:
            return 0
        if limits is None:
            return UNLIMITED
        slots = UNLIMITED if limits.parallelism is None else limits.parallelism - self.in_use
        tokens = self._tokens(now_us)
        return max(slots if tokens is None else min(slots, tokens), 0)

    def lets(self, node: bytes, now_us: int) -> bool:
        """Whether that node may begin an attempt: `free_for` without the number, and with `in_use` and `_tokens` written out,
        because each attempt asks."""
        if self.waiting:
            return self.free_for(node, now_us) > 0
        if self.closed_until > now_us:
            return False
        limits = self.limits
        if limits is None:
            return True
        most = limits.parallelism
        if most is not None:
            local = self.local
            if self._held + (0 if local is None else local.in_use) >= most:
                return False
        rate = limits.rate
        return rate is None or self._full_at - rate.count * now_us <= (limits.burst - 1) * rate.per_us

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
        limits = self.limits
        if limits is not None and limits.rate is not None and not self.unknown:
            rate = limits.rate
            missing = self._full_at - rate.count * now_us - (limits.burst - 1) * rate.per_us
            wait_us = max(wait_us, -(-missing // rate.count))
        return wait_us

    def take(self, count: int, now_us: int) -> None:
        """Takes the tokens of attempts that may begin."""
        rate = None if self.limits is None else self.limits.rate
        if rate is not None and count:
            self._full_at = max(self._full_at, rate.count * now_us) + count * rate.per_us
            if self.noted is not None:
                self.noted(self)

    def _give_back(self, count: int, held: int, now_us: int) -> None:
        """Takes back tokens that were not used, but not on top of those that others hold: with tokens that came meanwhile,
        more than the burst could begin at once."""
        limits = self.limits
        if limits is not None and limits.rate is not None:
            full_at, now = self._full_at, limits.rate.count * now_us
            self._full_at = min(full_at, max(full_at - count * limits.rate.per_us, now + held * limits.rate.per_us))
            if self.noted is not None:
                self.noted(self)

    def begin(self, node: bytes, now_us: int) -> None:
        """An attempt of the home's own `node` begins, which `lets` allowed: it takes a token, and waits no more. Not needed
        where there are neither limits nor nodes that wait."""
        limits = self.limits
        if limits is not None:
            rate = limits.rate
            if rate is not None:
                now, full_at = rate.count * now_us, self._full_at
                self._full_at = (full_at if full_at > now else now) + rate.per_us
                if self.noted is not None:
                    self.noted(self)
        if self.waiting:
            self.has_all(node)

    def grant(self, node: bytes, count: int, now_us: int) -> None:
        """Grants slots and tokens to another node, which has just reported."""
        self.take(count, now_us)
        self._holders[node].granted += count
        self._held += count

    def report(self, node: bytes, life: int, in_use: int, begun: int, now_us: int) -> bool:
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
        if unused > 0:
            self._give_back(unused, self._granted(), now_us)
        return in_use < held

    def _granted(self) -> int:
        return sum(holder.granted for holder in self._holders.values())

    def forget(self, node: bytes) -> None:
        """The node is presumed dead, or has nothing of it: it counts no more."""
        self.waiting.pop(node, None)
        holder = self._holders.pop(node, None)
        if holder is not None:
            self._held -= holder.in_use + holder.granted
