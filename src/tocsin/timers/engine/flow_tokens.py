"""What the home of a rule keeps in its shard of the tokens of slow rates, so that they outlive it (ADR 132). Pure."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tocsin.model.flow import Rate
from tocsin.model.ids import flow_uuid
from tocsin.model.timer import Status
from tocsin.ports.store import FLOWS_SUFFIX, TIMERS_END_US, Found, HistoryRow
from tocsin.timers.engine.flow_accounts import Account

if TYPE_CHECKING:
    from tocsin.timers.engine.rows import Batch

#: How much later tokens are there by the row than by the account: by how much the clocks of two nodes may differ.
CLOCKS_US = 1_000_000
#: More than any bucket takes to fill.
_FOREVER_US = 2**63


class RuleName(NamedTuple):
    """A rule, by its namespace and match; the match is empty for the limits of the namespace itself, whose only key is
    empty."""

    namespace: str
    match: str


#: A rule and one of its keys, or an empty one for all keys of the rule together.
TokenPlace = tuple[RuleName, str]


class _Stored(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row's record: by which wall clock all tokens are there (microseconds), and under which limits."""

    full_at_us: int
    count: int
    per_us: int
    burst: int


_decoder = msgspec.msgpack.Decoder(_Stored)


def uuid_of(place: TokenPlace) -> bytes:
    """What identifies the row."""
    (namespace, match), key = place
    return flow_uuid(namespace, match, key)


def token_row(place: TokenPlace, account: Account, generation: bytes, now_us: int, flow_us: int) -> HistoryRow:
    """The row of an account with a slow rate, at this moment of the wall clock and of the limits' time. It expires when it
    states nothing any more: no row means that all tokens are there. Lists of timers end before its instant."""
    (namespace, match), key = place
    assert account.limits is not None
    assert account.limits.rate is not None
    rate, full_at_us = account.limits.rate, now_us + account.full_in_us(flow_us) + CLOCKS_US
    record = msgspec.msgpack.encode(_Stored(full_at_us, rate.count, rate.per_us, account.limits.burst))
    name, status = f"{match}={key}", Status.COMPLETED
    return HistoryRow(
        TIMERS_END_US,
        uuid_of(place),
        generation,
        namespace + FLOWS_SUFFIX,
        name,
        (),
        record,
        status,
        now_us,
        full_at_us,
    )


def restore(account: Account, found: Found | None, now_us: int, flow_us: int, earlier: Account | None = None) -> None:
    """Continues an account by its row at this moment of the wall clock and of the limits' time, or by one of an `earlier`
    claim if that lacks more. A row that can't be read counts as no token."""
    _restore(account, found, now_us, flow_us)
    if earlier is not None:
        account.deplete(earlier.full_in_us(flow_us), flow_us)


def _restore(account: Account, found: Found | None, now_us: int, flow_us: int) -> None:
    limits = account.limits
    assert limits is not None
    assert limits.rate is not None
    row = None if found is None else found.finished
    if row is None:
        account.restore(limits.rate, limits.burst, 0, flow_us)
        return
    try:
        stored = _decoder.decode(row.record)
        rate, burst, full_in_us = Rate(stored.count, stored.per_us), stored.burst, stored.full_at_us - now_us
        readable = min(rate.count, rate.per_us, burst) > 0
    except msgspec.DecodeError:
        readable = False
    if readable:
        account.restore(rate, burst, full_in_us, flow_us)
    else:
        account.restore(limits.rate, limits.burst, _FOREVER_US, flow_us)


def is_kept(account: Account) -> bool:
    """Whether its tokens are stored."""
    return account.noted is not None and account.limits is not None and account.limits.is_slow


class TokenRows:
    """The accounts of a shard under one claim of which a row is to be written, or to be looked up."""

    __slots__ = ("earlier", "on_unsaved", "on_wanted", "unsaved", "wanted")

    def __init__(self) -> None:
        #: Accounts of an earlier claim of this node that ended before their rows were written. They still lack it.
        self.earlier: dict[TokenPlace, Account] = {}
        #: Accounts whose tokens have changed since their row was written.
        self.unsaved: dict[TokenPlace, Account] = {}
        #: Accounts that are to be looked up.
        self.wanted: dict[TokenPlace, None] = {}
        #: Called when there is something to write, or to look up.
        self.on_unsaved: Callable[[], None] = lambda: None
        self.on_wanted: Callable[[], None] = lambda: None

    @property
    def waits(self) -> bool:
        """Whether something is to be written."""
        return bool(self.unsaved)

    def left(self) -> dict[TokenPlace, Account]:
        """The accounts of which no row has what they lack, for the next claim."""
        return self.earlier | self.unsaved

    def note(self, place: TokenPlace, account: Account) -> None:
        """Tokens of the account were taken, or have returned."""
        idle = not self.unsaved
        self.unsaved[place] = account
        if idle:
            self.on_unsaved()

    def want(self, place: TokenPlace) -> None:
        """The account is to be looked up."""
        self.wanted[place] = None
        self.on_wanted()

    def add_to(self, batch: Batch, most: int, next_generation: Callable[[], bytes], now_us: int, flow_us: int) -> None:
        """Adds at most so much of what is to be written to a batch, at this moment of the wall clock and of the limits' time:
        what has changed first."""
        for place, account in list(islice(self.unsaved.items(), most)):
            if is_kept(account):
                batch.tokens.append((place, account, account.full_at))
                batch.store.history.append(token_row(place, account, next_generation(), now_us, flow_us))
            else:
                # The rule has changed.
                del self.unsaved[place]

    def written(self, batch: Batch) -> None:
        """The batch is durable, or the store refuses what it has of these rows."""
        for place, account, full_at in batch.tokens:
            if self.unsaved.get(place) is not account:
                continue
            del self.unsaved[place]
            if account.full_at != full_at:
                # It has changed since. The others come first.
                self.unsaved[place] = account
