"""What a cluster does in a span of virtual time, by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import get_args

from tocsin.cluster import wire

#: What a message between nodes is counted as, by its tag.
_KINDS = {
    "t": "keep-alive",
    "o": "forwards",
    "a": "results of forwards",
    "l": "ownership notices",
    "f": "reports of flows",
    "u": "grants of flows",
    "g": "questions of new homes",
    "v": "answers to new homes",
    "e": "notices of free slots",
    "n": "namespace changes",
    "m": "namespace changes",
    "q": "quota exchange",
    "r": "quota exchange",
    "i": "destinations",
    "s": "destinations",
}


def _kinds() -> Iterator[tuple[bytes, str]]:
    for each in (*get_args(wire.PeerRequest), *get_args(wire.PeerReply)):
        yield each.__struct_config__.tag.encode(), _KINDS.get(each.__struct_config__.tag, each.__name__)


_KIND_OF = dict(_kinds())
#: How a message of writes ends that has none: it answers a tick.
_NO_WRITES = b"\x90"


@dataclass
class Counts:
    """Sums over all nodes."""

    calls: Counter[str] = field(default_factory=Counter)
    rows_read: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    message_bytes: int = 0
    fires: int = 0
    creates: int = 0

    def store(self, kind: str) -> None:
        """A call of the store."""
        self.calls[kind] += 1

    def rows(self, kind: str, rows: int) -> None:
        """Rows that a call has read."""
        self.rows_read[kind] += rows

    def message(self, payload: bytes) -> None:
        """A message between nodes. Its tag is behind the length of the array and that of the tag itself, a byte each."""
        kind = _KIND_OF[payload[2:3]]
        if kind == "forwards" and payload.endswith(_NO_WRITES):
            kind = "keep-alive"
        self.messages[kind] += 1
        self.message_bytes += len(payload)

    def clear(self) -> None:
        """Begins at zero."""
        for each in (self.calls, self.rows_read, self.messages):
            each.clear()
        self.message_bytes = self.fires = self.creates = 0


def per_node(counts: Mapping[str, int], nodes: int, seconds: float) -> dict[str, float]:
    """Per node and second, the largest first."""
    return {kind: count / nodes / seconds for kind, count in Counter(counts).most_common()}
