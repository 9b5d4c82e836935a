"""Who is alive, who should own what, and when that can be acted on."""

from __future__ import annotations

from collections import Counter

from tocsin.engine.membership import Membership, announced
from tocsin.ports.store import Member

SECOND = 1_000_000
TIMEOUT = 5 * SECOND
A, B, C = (letter * 16 for letter in (b"a", b"b", b"c"))


def row(incarnation: bytes, counter: int, *, leaving: bool = False) -> Member:
    name = chr(incarnation[0])
    return Member(incarnation, name, announced(f"{name}:1", leaving=leaving), counter)


def watched(*readings: tuple[int, list[Member]]) -> Membership:
    membership = Membership(A, TIMEOUT)
    for seconds, rows in readings:
        membership.observe(rows, seconds * SECOND)
    return membership


def test_who_joins_unsettles_and_who_dies_does_not() -> None:
    both = [(second, [row(A, second), row(B, 1)]) for second in range(7)]
    membership = watched(*both)
    assert not membership.alive(B)
    assert membership.stable_for_us(6 * SECOND) == 6 * SECOND
    membership.observe([row(A, 7), row(B, 2)], 7 * SECOND)
    assert membership.alive(B)
    assert membership.stable_for_us(7 * SECOND) == 0


def test_who_did_not_look_has_seen_nobody_stand_still() -> None:
    membership = watched((0, [row(A, 0), row(B, 1)]), (1, [row(A, 1), row(B, 1)]), (20, [row(A, 2), row(B, 1)]))
    assert membership.alive(B)
    assert membership.standing_still(B, 20 * SECOND) is None
    for second in range(21, 26):
        membership.observe([row(A, second), row(B, 1)], second * SECOND)
    assert membership.standing_still(B, 25 * SECOND) == (B, 1)


def test_who_leaves_gets_nothing_but_can_be_reached() -> None:
    membership = watched((0, [row(A, 0), row(B, 0)]), (1, [row(A, 1), row(B, 1, leaving=True)]))
    assert {membership.wanted(shard) for shard in range(50)} == {A}
    assert membership.leaving(B)
    assert membership.address(B) == "b:1"
    assert membership.alive(B)


def test_alone_means_that_there_is_no_row_of_anybody() -> None:
    assert watched((0, [row(A, 0)])).alone()
    assert not watched((0, [row(A, 0), row(B, 0)])).alone()
    assert not Membership(A, TIMEOUT).alone()


def test_a_node_that_comes_takes_only_its_share() -> None:
    two = watched((0, [row(A, 0), row(B, 0)]))
    three = watched((0, [row(A, 0), row(B, 0), row(C, 0)]))
    before = [two.wanted(shard) for shard in range(300)]
    after = [three.wanted(shard) for shard in range(300)]
    assert all(new in (old, C) for old, new in zip(before, after, strict=True))
    assert all(share > 60 for share in Counter(after).values())
