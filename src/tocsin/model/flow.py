"""Flows: how many attempts may begin and be in flight for timers that name the same key, across all nodes.

A rule matches one key, or all keys with a prefix. It limits each of its keys by itself, and all of them together. A namespace
has limits of its own, for all of its attempts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from tocsin.model.batch import CallbackBatch

#: What a key looks like: visible ASCII characters. It does not end with a colon, which marks a prefix.
FLOW_KEY = re.compile(r"[!-~]{0,63}[!-9;-~]\Z", re.ASCII)
#: What a rule matches: a key, or a prefix, which ends with a colon.
FLOW_MATCH = re.compile(r"[!-~]{1,64}\Z", re.ASCII)
FLOW_KEY_CHARS_MAX = 64
#: Rules of one namespace: every node has all of them in memory.
FLOWS_MAX = 1_000
#: The highest count of a rate, burst and parallelism. More than a cluster could begin or have in flight.
FLOW_COUNT_MAX = 1_000_000
#: The shortest and the longest time of a rate.
RATE_PER_US_MIN, RATE_PER_US_MAX = 1_000_000, 86_400_000_000
#: A rate is slow if its tokens are farther apart: nobody can wait for them after each change of owner, so they are stored.
SLOW_INTERVAL_US = 60_000_000


class Rate(msgspec.Struct, frozen=True, gc=False):
    """So many attempts within so many microseconds, evenly spread."""

    count: int
    per_us: int


def flow_key_reason(key: str) -> str | None:
    """Why this is not a flow's key; None if it is one."""
    if FLOW_KEY.match(key):
        return None
    return (
        f"is not a flow's key; use 1 to {FLOW_KEY_CHARS_MAX} visible ASCII characters, without spaces and without a colon at "
        "the end"
    )


class FlowLimits(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The limits of one key, of all keys of a rule together, or of a namespace; None: there is no such limit.

    In any time T, at most `burst` + `rate` · T attempts begin, and never more than `parallelism` are in flight. `ordered` is
    for the limits of one key, whose `parallelism` is 1 then: its timers begin in the order of their instants, each when the
    one before has ended (ADR 105)."""

    rate: Rate | None = None
    burst: int = 1
    parallelism: int | None = None
    ordered: bool = False

    @property
    def is_slow(self) -> bool:
        """Whether it has a rate whose tokens are far apart (ADR 132)."""
        return self.rate is not None and self.rate.per_us > SLOW_INTERVAL_US * self.rate.count


class Flow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule of a namespace.

    `match` is a key, or a prefix of keys that ends with a colon. `paused`: nothing of it begins, until `paused_until` (in
    microseconds) if that is not None. `close_on_retry_after`: an answer 429 or 503 with Retry-After closes its key until
    then. `version` is its record's. `managed_by` names the declaration that it comes from. `callback_batch`: the callbacks
    of its keys are sent together, instead of by the namespace's rule."""

    namespace: str
    match: str
    created_at: int
    updated_at: int
    per_key: FlowLimits | None = None
    total: FlowLimits | None = None
    close_on_retry_after: bool = False
    paused: bool = False
    paused_until: int | None = None
    version: int = 1
    managed_by: str | None = None
    callback_batch: CallbackBatch | None = None

    @property
    def is_prefix(self) -> bool:
        """Whether the rule matches all keys that begin with `match`."""
        return self.match.endswith(":")

    @property
    def ordered(self) -> bool:
        """Whether the timers of each of its keys begin in order."""
        return self.per_key is not None and self.per_key.ordered

    @property
    def limits_nothing(self) -> bool:
        """Whether it has no limits: it stands for a record that can't be decoded, because every stored rule has some."""
        return not (self.per_key or self.total or self.close_on_retry_after or self.callback_batch)

    def closed_until(self, now_us: int) -> int | None:
        """Until when the rule is paused, None if it is not; `PAUSED_FOR_GOOD` without an end."""
        if not self.paused:
            return None
        until = PAUSED_FOR_GOOD if self.paused_until is None else self.paused_until
        return until if until > now_us else None


#: The end of a pause that has none.
PAUSED_FOR_GOOD = 2**63 - 1


class FlowRules:
    """The rules of one namespace, for finding the one that a key is subject to."""

    __slots__ = ("_keys", "_prefixes", "ordered")

    def __init__(self, flows: Iterable[Flow]) -> None:
        self._keys: dict[str, Flow] = {}
        # Without the colon at their end.
        self._prefixes: dict[str, Flow] = {}
        for flow in flows:
            if flow.is_prefix:
                self._prefixes[flow.match[:-1]] = flow
            else:
                self._keys[flow.match] = flow
        #: What the ordered ones match.
        self.ordered = frozenset(flow.match for flow in self.all() if flow.ordered)

    def __len__(self) -> int:
        return len(self._keys) + len(self._prefixes)

    def all(self) -> list[Flow]:
        """All rules, by what they match."""
        return sorted((*self._keys.values(), *self._prefixes.values()), key=lambda flow: flow.match)

    def get(self, match: str) -> Flow | None:
        """The rule with exactly this match."""
        return self._prefixes.get(match[:-1]) if match.endswith(":") else self._keys.get(match)

    def find(self, key: str) -> Flow | None:
        """The rule that the key is subject to: the one with this key, else the one with its longest prefix; None: the key is
        not limited."""
        found, end = self._keys.get(key), key.rfind(":")
        while found is None and end >= 0:
            found = self._prefixes.get(key[:end])
            end = key.rfind(":", 0, end)
        return found

    def is_ordered(self, key: str) -> bool:
        """Whether the timers of this key begin in order."""
        if not self.ordered or not key:
            return False
        flow = self.find(key)
        return flow is not None and flow.ordered
