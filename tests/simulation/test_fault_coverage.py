"""The simulation covers every fault and every consequence, and together with the interleavings every transition of a timer: a
simulation proves nothing about events that do not occur in it.
(Two nodes that claim one shard at the same time are rare: three seeds of two hundred.)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.properties.interleavings import Interleaving
from tests.properties.rare_transitions import RARE
from tests.support.checked_window import PERMITTED

from .weak_store import BROKEN_OFF
from .world import World

#: Besides the first ones, one in which a former owner finds out by the fence.
_SEEDS = (*range(100), 737)
_INTERLEAVINGS = 100

#: Faults, by their names in the trace.
MISHAPS = {
    "crash", "close", "freeze", "thaw", "cut refused", "cut silent", "cut deaf", "jump forwards", "jump backwards", "drift",
    "parted", "connection breaks", "reads nothing", "blind", "changes a namespace", "not sent",
    *(f"{call} {fate}" for call in ("heartbeat", "apply", "claim")
      for fate in ("definite", "unavailable", "silent", "vanished", "late")),
    *(f"{call} twice" for call in ("heartbeat", "claim", "release")),
}  # fmt: skip
#: Their consequences.
CONSEQUENCES = {
    # Lost heartbeats: the node lease expires, with all claims, also those under way.
    "HeartbeatFailed", "DispatchPaused lease", "ShardLost lease", "ClaimFailed the node lease expired in the meantime",
    "DispatchPaused clock_skew", "DispatchPaused clock_jump",
    "ClockDistrusted", "ClockTrusted",
    # Former owners find out by the fence or when they read the ownership; unknown outcomes.
    "ClaimFailed a transaction of the former owner has not ended",
    f"BatchFailed {BROKEN_OFF}", "outdated entries",
    "ShardLost fenced", "ShardLost unknown_outcome", "ShardLost released", "a write of a former owner",
    "a member is forgotten",
    # A refused address suspends the timer.
    "TimerSuspended egress",
    # Writes between nodes, with each of their three outcomes.
    "WritesForwarded answered", "WritesForwarded moved", "WritesForwarded unknown", "PeerLost", "PeerConnected",
    # How timers end, and how clients are answered.
    "finished completed", "finished failed", "finished canceled", "finished exhausted",
    "finished expired", "TimerExpired expired", "TimerExpired failed",
    "receives ok", "receives ShardUnavailable", "receives RequestExpired", "receives TimerNotFound",
    "receives TimerNotPending",
    # Repeated creates, in each state of their timer.
    "replayed pending", "replayed completed", "replayed failed", "replayed canceled", "existing pending",
    "receives TimerExists",
}  # fmt: skip


def kinds(trace: list[tuple[Any, ...]]) -> Iterator[str]:
    """The names of the events in a trace."""
    versions: dict[str, int] = {}
    for _, *words in trace:
        match words:
            case ["cut", _, how]:
                yield f"cut {how}"
            case ["jump", _, offset_us]:
                yield "jump forwards" if offset_us > 0 else "jump backwards"
            case [_, "fate", call, fate, _]:
                yield f"{call} {fate}"
            case [_, "twice", call]:
                yield f"{call} twice"
            case [_, "ShardLost", _, _, reason]:
                yield f"ShardLost {reason}"
            case [_, "ClaimFailed", _, reason]:
                yield f"ClaimFailed {reason}"
            case [_, "BatchFailed", *_, reason]:
                yield f"BatchFailed {reason}"
            case [_, "TimerSuspended", _, _, "egress"]:
                yield "TimerSuspended egress"
            case [_, "TimerExpired", _, _, _, status, _]:
                yield f"TimerExpired {status}"
            case [_, "DispatchPaused" | "WritesForwarded" as name, detail, _]:
                yield f"{name} {detail}"
            case ["client receives", _, _, answer, *found]:
                yield f"receives {answer}"
                if found:
                    yield " ".join(found)
            case ["history", status, attempts, most]:
                yield f"finished {status}"
                if status == "failed" and attempts == most > 1:
                    yield "finished exhausted"
            case [_, "batch", place, *_]:
                # Such as "shard 1 v3 of 8c1f".
                _, shard, epoch, *_ = place.split()
                number = int(epoch[1:])
                if number < versions.get(shard, 0):
                    yield "a write of a former owner"
                versions[shard] = max(versions.get(shard, 0), number)
            case [_, str(name), *_] if name[0].isupper() or name in ("crash", "close", "forgets", "outdated entries"):
                yield "a member is forgotten" if name == "forgets" else name
            case [str(name), *_]:
                yield name


# A busy machine takes minutes.
@pytest.mark.timeout(600)
def test_every_fault_and_consequence_and_every_transition_occurs() -> None:
    happened: Counter[str] = Counter()
    reached = set(RARE)
    for seed in _SEEDS:
        world = World(seed)
        assert world.run() is None
        happened.update(kinds(world.trace))
        reached |= world.transitions.reached
    for seed in range(_INTERLEAVINGS):
        interleaving = Interleaving(seed)
        assert interleaving.run() is None
        reached |= interleaving.transitions.reached
    assert PERMITTED - reached == set()
    assert {kind for kind in MISHAPS | CONSEQUENCES if not happened[kind]} == set()
