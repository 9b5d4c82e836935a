"""The messages by which nodes account for flows: what each node states to the home of a rule, and what it is granted.

All limits of a rule have one home, the owner of one shard, which the rule determines (ADR 99). Nodes of different releases
exchange these: new fields are only added at the end, with a default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class KeyReport(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a node states of one key: attempts in flight; attempts begun since the node knows the key in this `life`; how many
    it wants to begin; and for how long a receiver has asked for no more (microseconds)."""

    key: str
    life: int
    in_use: int
    begun: int
    wanted: int
    closed_us: int = 0


class RuleReport(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The same of all keys of one rule together; `match` is empty for the limits of the namespace itself, whose only key is
    empty. A key without an entry has nothing in flight and wants nothing."""

    namespace: str
    match: str
    life: int
    in_use: int
    begun: int
    keys: list[KeyReport]


class FlowReport(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The whole state of the rules whose home is the owner of one shard, in one of its epochs. Later reports have greater
    numbers. A rule without an entry has nothing in flight and wants nothing."""

    incarnation: bytes
    shard_id: int
    epoch: int
    number: int
    rules: list[RuleReport]


class FlowGrant(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """So many attempts of a key may begin, within the validity that counts from the report. Where none may, the next request
    is worthwhile in `again_us` microseconds, or sooner if an attempt of this node ends."""

    namespace: str
    match: str
    key: str
    count: int
    again_us: int = 0


class FlowAnswer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The answer to the report with that number. `known` is False if the node is not the home in that epoch."""

    shard_id: int
    epoch: int
    number: int
    grants: list[FlowGrant]
    known: bool = True


#: A home: its shard, and the epoch in which that is owned.
HomePlace = tuple[int, int]


class FlowPeers(Protocol):
    """The other nodes, for what flows need."""

    async def report_flows(self, incarnation: bytes, reports: Sequence[FlowReport]) -> list[FlowAnswer]:
        """Reports to homes on that node, and returns their answers. Raises Unavailable, also if these don't come in time."""

    async def ask_flows(self, incarnation: bytes, homes: Sequence[HomePlace]) -> list[FlowReport]:
        """The node's reports to these homes, which are this node's. Raises Unavailable, also if they don't come in time."""

    def flows_are_free(self, incarnation: bytes, shard_ids: Sequence[int]) -> None:
        """Notifies the node, if it can be reached, that homes which granted it less than it wanted may grant more."""


class LocalFlows(Protocol):
    """The flows of this node, for other nodes."""

    def reported(self, reports: Sequence[FlowReport]) -> list[FlowAnswer]:
        """Takes the reports of another node to homes on this node."""

    def asked(self, incarnation: bytes, homes: Sequence[HomePlace]) -> list[FlowReport]:
        """This node's reports to homes on the node that asks."""

    def freed(self, shard_ids: Sequence[int]) -> None:
        """Homes of these shards may grant more than before."""
