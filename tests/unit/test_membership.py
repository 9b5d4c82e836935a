"""Membership: living members, the assignment of shards, and the stability of the view."""

from __future__ import annotations

from collections import Counter

from tocsin.ports.store import Member
from tocsin.timers.engine.membership import Flag, Membership, address_of, announced, api_url_of

SECOND = 1_000_000
TIMEOUT = 5 * SECOND
SHARDS = 300
PLACEMENT_ABC = "aacbabaacbcbcaaabcccaababbccbbcc"
PLACEMENT_WEIRD = [1, 2, 2, 0, 1, 2, 1, 1, 2, 0, 0, 1, 0, 2, 0, 0]
A, B, C = (letter * 16 for letter in (b"a", b"b", b"c"))


def row(incarnation: bytes, counter: int, *, leaving: bool = False, skewed: bool = False) -> Member:
    name = chr(incarnation[0])
    return Member(incarnation, name, announced(f"{name}:1", leaving=leaving, skewed=skewed), counter)


def watched(*readings: tuple[int, list[Member]]) -> Membership:
    membership = Membership(A, TIMEOUT, SHARDS)
    for seconds, rows in readings:
        membership.observe(rows, seconds * SECOND)
    return membership


def test_joining_member_resets_stability_and_dying_one_does_not() -> None:
    both = [(second, [row(A, second), row(B, 1)]) for second in range(7)]
    membership = watched(*both)
    assert not membership.alive(B)
    assert membership.stable_for_us(6 * SECOND) == 6 * SECOND
    membership.observe([row(A, 7), row(B, 2)], 7 * SECOND)
    assert membership.alive(B)
    assert membership.stable_for_us(7 * SECOND) == 0


def test_paused_observer_presumes_nobody_dead() -> None:
    membership = watched((0, [row(A, 0), row(B, 1)]), (1, [row(A, 1), row(B, 1)]), (20, [row(A, 2), row(B, 1)]))
    assert membership.alive(B)
    assert membership.presumed_dead(B, 20 * SECOND) is None
    for second in range(21, 26):
        membership.observe([row(A, second), row(B, 1)], second * SECOND)
    assert membership.presumed_dead(B, 25 * SECOND) == (B, 1)


def test_leaving_member_gets_no_shards_and_stays_reachable() -> None:
    membership = watched((0, [row(A, 0), row(B, 0)]), (1, [row(A, 1), row(B, 1, leaving=True)]))
    assert {membership.wanted(shard) for shard in range(50)} == {A}
    assert membership.has(B, Flag.LEAVING)
    assert membership.address(B) == "b:1"
    assert membership.alive(B)


def test_what_a_member_announces() -> None:
    with_url = Member(A, "a", announced("a:1", leaving=True, skewed=True, api_url="http://a:8080/x"), 1)
    assert with_url.address == "a:1#leaving api=http://a:8080/x"
    assert (address_of(with_url), api_url_of(with_url)) == ("a:1", "http://a:8080/x")
    assert announced("a:1", leaving=False) == "a:1#"


def test_alone_requires_that_no_other_member_row_exists() -> None:
    assert watched((0, [row(A, 0)])).alone()
    assert not watched((0, [row(A, 0), row(B, 0)])).alone()
    assert not Membership(A, TIMEOUT, SHARDS).alone()


def test_nodes_have_equal_shares_and_one_that_joins_moves_little_else() -> None:
    two = watched((0, [row(A, 0), row(B, 0)]))
    three = watched((0, [row(A, 0), row(B, 0), row(C, 0)]))
    before = [two.wanted(shard) for shard in range(SHARDS)]
    after = [three.wanted(shard) for shard in range(SHARDS)]
    assert Counter(before) == {A: 150, B: 150}
    assert Counter(after) == {A: 100, B: 100, C: 100}
    moved = [new for old, new in zip(before, after, strict=True) if new != old]
    assert len(moved) <= 120


def named(*names: str, shards: int = SHARDS) -> Membership:
    """A view with living members of these names; the first is this node."""
    rows = [Member(bytes([number]) * 16, name, f"{name}:1", 0) for number, name in enumerate(names)]
    membership = Membership(rows[0].incarnation, TIMEOUT, shards)
    membership.observe(rows, 0)
    return membership


def placed(*names: str, shards: int) -> list[str]:
    """The name of the node that should own each shard."""
    membership = named(*names, shards=shards)
    by_incarnation = {member.incarnation: member.node for member in membership.members()}
    return [by_incarnation[wanted] for shard in range(shards) if (wanted := membership.wanted(shard)) is not None]


def test_placement_is_stable_across_releases() -> None:
    """Nodes of two releases must agree, or they would hand shards back and forth."""
    assert "".join(placed("a", "b", "c", shards=32)) == PLACEMENT_ABC
    weird = ["zürich 1", "10.0.0.5:8080/0", "節点"]
    assert [weird.index(name) for name in placed(*weird, shards=16)] == PLACEMENT_WEIRD


def test_every_node_computes_the_same_placement() -> None:
    rows = [row(A, 0), row(B, 0), row(C, 0)]
    views = []
    for own in (A, B, C):
        for order in (rows, rows[::-1]):
            membership = Membership(own, TIMEOUT, SHARDS)
            membership.observe(order, 7 * SECOND)
            views.append([membership.wanted(shard) for shard in range(SHARDS)])
    assert all(view == views[0] for view in views)


def test_of_nodes_with_one_name_one_is_assigned_every_shard() -> None:
    membership = named("same", "same")
    assert {membership.wanted(shard) for shard in range(50)} == {bytes([1]) * 16}


def test_any_change_of_the_counter_counts_as_a_heartbeat() -> None:
    membership = watched((0, [row(A, 0), row(B, 2**62)]))
    for second, counter in enumerate((0, 1, 0, 2**62, -(2**62), 0), 1):
        membership.observe([row(A, second), row(B, counter)], second * SECOND)
    assert membership.alive(B)
    assert membership.silent_for_us(B, 6 * SECOND) == 0


def test_failed_own_heartbeats_reset_stability() -> None:
    membership = watched(*[(second, [row(A, second), row(B, second)]) for second in range(7)])
    assert membership.stable_for_us(6 * SECOND) == 6 * SECOND
    membership.unsettle()
    assert membership.stable_for_us(6 * SECOND) == 0
    membership.observe([row(A, 7), row(B, 7)], 7 * SECOND)
    assert membership.stable_for_us(8 * SECOND) == SECOND


def test_node_without_a_member_row_is_assigned_nothing() -> None:
    membership = watched((0, [row(B, 0)]))
    assert {membership.wanted(shard) for shard in range(20)} == {B}
    assert not membership.alone()
    assert not membership.alive(A)


def test_member_is_presumed_dead_only_after_the_timeout() -> None:
    membership = watched(*[(second, [row(A, second), row(B, 1)]) for second in range(5)])
    assert membership.presumed_dead(B, 5 * SECOND - 1) is None
    assert membership.presumed_dead(B, 5 * SECOND) == (B, 1)
    assert membership.presumed_dead(C, 5 * SECOND) is None


def test_node_never_presumes_itself_dead() -> None:
    membership = watched(*[(second, [row(A, 1), row(B, second)]) for second in range(20)])
    assert membership.alive(A)
    assert {membership.wanted(shard) for shard in range(50)} == {A, B}


def called(incarnation: bytes, counter: int, name: str = "same", *, leaving: bool = False) -> Member:
    return Member(incarnation, name, announced("x:1", leaving=leaving), counter)


def test_shared_name_is_reported_after_the_timeout() -> None:
    membership = Membership(A, TIMEOUT, SHARDS)
    for second in range(12):
        # B joins at 3. The counters of both move until the end; C has another name.
        rows = [called(A, second), *([called(B, second)] if second >= 3 else []), called(C, second, "other")]
        membership.observe(rows, second * SECOND)
        assert membership.shared_names() == ({"same": (A, B)} if second >= 8 else {})
    # One of them is leaving, then gone.
    membership.observe([called(A, 12), called(B, 12, leaving=True)], 12 * SECOND)
    assert membership.shared_names() == {}
    membership.observe([called(A, 13)], 13 * SECOND)
    assert membership.shared_names() == {}


def test_dead_members_name_is_free_after_the_timeout() -> None:
    membership = Membership(A, TIMEOUT, SHARDS)
    for second in range(20):
        membership.observe([called(A, second), called(B, min(second, 10))], second * SECOND)
        assert membership.shared_names() == ({"same": (A, B)} if 5 <= second < 15 else {})


def test_restarted_node_does_not_share_its_name_with_its_former_row() -> None:
    # Its own view: the former row's counter does not move.
    own = watched(*((second, [called(A, second), called(B, 77)]) for second in range(20)))
    assert own.shared_names() == {}
    # Another node's view: the former row's counter moved for long, but never beside the new one's.
    other = Membership(C, TIMEOUT, SHARDS)
    for second in range(40):
        rows = [called(C, second, "other"), called(B, min(second, 19)), *([called(A, second)] if second >= 20 else [])]
        other.observe(rows, second * SECOND)
        assert other.shared_names() == {}


def test_dead_member_is_not_reported_as_sharing_a_name() -> None:
    membership = watched(*((second, [called(A, second), called(B, second), called(C, 5)]) for second in range(20)))
    assert membership.shared_names() == {"same": (A, B)}


def test_skewed_member_gets_no_shards_while_others_are_right() -> None:
    membership = watched((0, [row(A, 0), row(B, 0), row(C, 0, skewed=True)]))
    assert {membership.wanted(shard) for shard in range(50)} == {A, B}
    assert membership.has(C, Flag.SKEWED)
    assert membership.excluded(C)
    assert not membership.excluded(A)
    assert membership.address(C) == "c:1"
    # A wrong clock of the others does not make a leaving node a candidate.
    membership.observe([row(A, 1, skewed=True), row(B, 1, leaving=True), row(C, 1, skewed=True)], SECOND)
    assert {membership.wanted(shard) for shard in range(50)} == {A, C}
    assert not membership.excluded(A)
    assert membership.excluded(B)


def test_unknown_member_flags_are_ignored() -> None:
    membership = watched((0, [row(A, 0), Member(B, "b", "b:1#dreaming", 0)]))
    assert membership.address(B) == "b:1"
    assert not membership.excluded(B)


def known_by(incarnation: bytes, counter: int, since_us: int, *marks: str) -> Member:
    name = chr(incarnation[0])
    address = announced(f"{name}:1", leaving=False, secret_marks=marks, since_us=since_us)
    return Member(incarnation, name, address, counter)


def test_a_member_without_a_common_secret_gets_no_shards_unless_it_started_first() -> None:
    rows = [known_by(A, 1, 20, "one"), known_by(B, 1, 10, "two"), known_by(C, 1, 30, "two", "one")]
    membership = watched((0, rows))
    assert [each.node for each in membership.with_another_secret()] == ["a"]
    assert {membership.wanted(shard) for shard in range(50)} == {B, C}
    assert membership.excluded(A)
    assert membership.address(A) == "a:1"
    # B has gone, so nobody who started before A is in its way; C knows both.
    membership.observe([known_by(A, 2, 20, "one"), rows[2]], SECOND)
    assert membership.with_another_secret() == []
    assert {membership.wanted(shard) for shard in range(50)} == {A, C}


def test_a_secret_is_replaced_in_two_steps_in_which_all_members_know_one_another() -> None:
    former, both, new = ("one",), ("two", "one"), ("two",)
    for step in ([former, former], [both, former], [both, both], [new, both], [new, new]):
        membership = watched((0, [known_by(A, 1, 10, *step[0]), known_by(B, 1, 20, *step[1])]))
        assert membership.with_another_secret() == []
    # A step too many: B is stopped before A forgets the former secret.
    membership = watched((0, [known_by(A, 1, 10, *former), known_by(B, 1, 20, *both), known_by(C, 1, 30, *new)]))
    assert [each.node for each in membership.with_another_secret()] == ["c"]


def test_a_member_that_announces_no_secret_differs_from_none() -> None:
    membership = watched((0, [row(A, 1), known_by(B, 1, 10, "one"), known_by(C, 1, 20, "two")]))
    assert [each.node for each in membership.with_another_secret()] == ["c"]
