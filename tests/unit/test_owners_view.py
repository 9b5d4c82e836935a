"""The map of owners that clients read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tocsin.ports.forward import Owner
from tocsin.ports.store import Member
from tocsin.timers.cluster_view import ApiNode, owners_view
from tocsin.timers.engine.membership import Membership, announced

SECOND = 1_000_000
A, B, C, GONE = (letter * 16 for letter in (b"a", b"b", b"c", b"g"))


def _row(incarnation: bytes, counter: int, url: str, *, leaving: bool = False) -> Member:
    name = chr(incarnation[0])
    return Member(incarnation, name, announced(f"{name}:1", leaving=leaving, api_url=url), counter)


def _supervisor(*owners: bytes | None) -> Any:
    """Node a beside b, which is leaving and shares its URL with c, and a former start of a, which is dead."""
    membership = Membership(A, 5 * SECOND, len(owners))
    for second in range(7):
        members = [_row(A, second, "http://a"), _row(B, second, "http://x", leaving=True), _row(C, second, "http://x")]
        membership.observe([*members, _row(GONE, 1, "http://a")], second * SECOND)
    placement = SimpleNamespace(owner=lambda shard: owners[shard] and Owner(owners[shard], 1, ""))
    return SimpleNamespace(
        membership=membership, placement=placement, total_shards=len(owners), incarnation=A
    )  # fmt: skip


def test_owners_are_indexes_of_nodes_or_unknown() -> None:
    assert owners_view(_supervisor(C, A, None, b"?" * 16)).owners == [2, 0, None, None]


def test_a_url_is_shown_for_the_one_living_node_that_has_it() -> None:
    assert owners_view(_supervisor(A)).nodes == [
        ApiNode("http://a", True, False, False),
        ApiNode(None, True, True, False),
        ApiNode(None, True, False, False),
        ApiNode(None, False, False, False),
    ]


def test_former_starts_of_a_node_alone_are_left_out() -> None:
    view = owners_view(_supervisor(A, GONE), alone=True)
    assert (view.nodes, view.owners) == ([ApiNode("http://a", True, False, False)], [0, None])
