"""What a node admits of a namespace's quotas, what it takes over from other nodes, and that a count stays right meanwhile."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each

from tocsin.model.namespace import Namespace
from tocsin.model.quota import Quotas
from tocsin.ports.forward import NodeReport
from tocsin.ports.quotas import QuotaUse
from tocsin.testing.clock import FakeClock
from tocsin.timers.engine.quota_accounts import PendingCount, QuotaAccount, open_account
from tocsin.timers.quotas import take_over, use_of

SECOND = 1_000_000


def shop(**quotas: int) -> Namespace:
    return Namespace("shop", 2, 0, 0, quotas=Quotas(**quotas))


def admitted(account: QuotaAccount, from_s: float, to_s: float, every_s: float = 0.01) -> int:
    """How many of the creates at these times it admits."""
    times = (from_s + number * every_s for number in range(int((to_s - from_s) / every_s)))
    return sum(account.refuse_create(round(at * SECOND)) is None for at in times)


class Reporting:
    """A context with one account."""

    def __init__(self, account: QuotaAccount) -> None:
        self.quotas = {"shop": account}
        self.clock = FakeClock()


def reports(*uses: QuotaUse) -> dict[bytes, NodeReport]:
    return {
        bytes([number]): NodeReport("1", True, None, False, [], quotas={"shop": use}) for number, use in enumerate(uses)
    }


def test_creates_have_one_seconds_worth_at_once_and_their_rate_afterwards() -> None:
    account = QuotaAccount(shop(creates_per_second=10))
    assert admitted(account, 0, 0.001, every_s=0.00001) == 10
    refused = account.refuse_create(round(0.05 * SECOND))
    assert refused is not None and 0.04 < refused.retry_after_s < 0.06
    assert admitted(account, 1, 6) in range(58, 62)
    assert 8 < account.rate(6 * SECOND) < 10
    assert account.rate(60 * SECOND) < 0.1


@each("others, nodes, expected", (((), 0, 30), ((4.0,), 1, 26), ((30.0,), 1, 15), ((20.0, 25.0), 2, 10)))
def test_a_node_admits_what_the_others_leave_and_at_least_its_share(
    others: tuple[float, ...], nodes: int, expected: int
) -> None:
    account = QuotaAccount(shop(creates_per_second=30))
    take_over(Reporting(account), reports(*(QuotaUse(None, 0, rate) for rate in others)), nodes)  # type: ignore[arg-type]
    admitted(account, 0, 1)
    assert abs(admitted(account, 1, 11) - 10 * expected) <= 10


def test_room_is_left_of_all_nodes_pending_timers_once_the_own_ones_are_counted() -> None:
    account = QuotaAccount(shop(pending=10))
    account.arc = frozenset({3, 4})
    assert account.room(3) is None
    account.follow({3: 1, 4: 1, 5: 1})
    assert account.shards is not None and account.shards.keys() == {3, 4}
    for shard_id, timers in ((3, 2), (4, 1)):
        assert account.room(3) is None
        account.shards[shard_id].begin()
        account.shards[shard_id].complete(timers, 7, 9)
    take_over(Reporting(account), reports(QuotaUse(4, 5, 0.0), QuotaUse(None, 0, 0.0)), 2)  # type: ignore[arg-type]
    account.reserved = 1
    room = account.room(3)
    assert room is not None and (room.left, room.quota) == (2, 10)
    assert account.use(0) == QuotaUse(3, 7, 0.0)
    # A shard of another epoch is counted again, and one that is gone does not count.
    account.follow({3: 2})
    assert account.room(3) is None and account.shards.keys() == {3}


@each("nodes, complete", ((1, True), (2, False)))
async def test_the_use_of_all_nodes_is_incomplete_without_one_that_did_not_answer(nodes: int, complete: bool) -> None:
    account = QuotaAccount(shop(pending=10))
    account.arc = frozenset({3})
    account.follow({3: 1})
    assert account.shards is not None
    account.shards[3].begin()
    account.shards[3].complete(2, 7, 9)

    async def answered() -> dict[bytes, NodeReport]:
        return reports(QuotaUse(4, 5, 1.5))

    found = await use_of(Reporting(account), "shop", answered, nodes)  # type: ignore[arg-type]
    assert found == (6, 5, 1.5, complete)


def test_an_account_is_kept_while_its_namespace_has_quotas() -> None:
    accounts: dict[str, QuotaAccount] = {}
    open_account(accounts, shop(pending=10))
    kept = accounts["shop"]
    kept.shards = {}
    open_account(accounts, shop(creates_per_second=1))
    assert accounts["shop"] is kept and kept.quotas.pending is None and kept.shards is None
    open_account(accounts, Namespace("shop", 2, created_at=9, updated_at=9, quotas=Quotas(pending=1)))
    assert accounts["shop"] is not kept
    open_account(accounts, Namespace("shop", 2, 9, 10))
    assert accounts == {}


@given(st.lists(st.tuples(st.sampled_from(["create", "end", "read"]), st.integers(0, 30)), max_size=60))
def test_a_count_is_right_whatever_is_created_and_ends_while_it_reads(steps: list[tuple[str, int]]) -> None:
    count, stored = PendingCount(1), {(at, b"") for at in range(0, 30, 3)}
    count.begin()
    seen_to = (-1, b"")
    for step, at in steps:
        key = (at, b"")
        if step == "create" and key not in stored:
            stored.add(key)
            count.note(key, 1)
        elif step == "end" and key in stored:
            stored.remove(key)
            count.note(key, -1)
        elif step == "read" and key > seen_to:
            count.read(sum(seen_to < each <= key for each in stored), key)
            seen_to = key
    count.complete(sum(each > seen_to for each in stored), 0, 0)
    assert count.timers == len(stored)
    count.note((1, b""), 1)
    assert count.timers == len(stored) + 1
