"""A simulation proves nothing of what does not happen in it: each mishap, and each of its consequences, occurs. (Two nodes
that want one shard at once are rare: three seeds of two hundred.)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from .world import World

_SEEDS = 50

#: What goes wrong, as the trace tells it.
MISHAPS = {
    "crash", "close", "freeze", "thaw", "cut refused", "cut silent", "cut deaf", "jump forwards", "jump backwards", "drift",
    "parted", "connection breaks", "reads nothing", "blind", "changes a namespace", "not sent",
    *(f"{call} {fate}" for call in ("heartbeat", "apply", "claim")
      for fate in ("definite", "unavailable", "silent", "vanished", "late")),
}  # fmt: skip
#: What comes of it.
CONSEQUENCES = {
    # Heartbeats that were lost: the lease lapses, and what is still owned is read first.
    "HeartbeatFailed", "DispatchPaused lease", "DispatchPaused clock_skew", "DispatchPaused clock_jump",
    "ClockDistrusted", "ClockTrusted",
    # Owners that are owners no more find out by the fence, or when they look; outcomes that nobody knows.
    "ShardLost fenced", "ShardLost unknown_outcome", "ShardLost released", "a write of a former owner",
    "a member is forgotten",
    # Writes between nodes, in each of the three ways in which they can end.
    "WritesForwarded answered", "WritesForwarded moved", "WritesForwarded unknown", "PeerLost", "PeerConnected",
    # How timers end, and what clients hear.
    "finished completed", "finished failed", "finished canceled", "finished exhausted",
    "hears ok", "hears ShardUnavailable", "hears RequestExpired", "hears TimerNotFound", "hears TimerNotPending",
    # Creates that are repeated, in whichever state their timer is by then.
    "replayed pending", "replayed completed", "replayed failed", "replayed canceled", "existing pending",
    "hears TimerExists",
}  # fmt: skip


def kinds(trace: list[tuple[Any, ...]]) -> Iterator[str]:
    """The names of what happened."""
    versions: dict[str, int] = {}
    for _, *words in trace:
        match words:
            case ["cut", _, how]:
                yield f"cut {how}"
            case ["jump", _, offset_us]:
                yield "jump forwards" if offset_us > 0 else "jump backwards"
            case [_, "fate", call, fate, _]:
                yield f"{call} {fate}"
            case [_, "ShardLost", _, _, reason]:
                yield f"ShardLost {reason}"
            case [_, "ClaimFailed", _, reason]:
                yield f"ClaimFailed {reason}"
            case [_, "DispatchPaused" | "WritesForwarded" as name, detail, _]:
                yield f"{name} {detail}"
            case ["client hears", _, _, answer, *found]:
                yield f"hears {answer}"
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
            case [_, str(name), *_] if name[0].isupper() or name in ("crash", "close", "forgets"):
                yield "a member is forgotten" if name == "forgets" else name
            case [str(name), *_]:
                yield name


def test_every_fault_and_consequence_occurs() -> None:
    happened: Counter[str] = Counter()
    for seed in range(_SEEDS):
        world = World(seed)
        assert world.run() is None
        happened.update(kinds(world.trace))
    assert {kind for kind in MISHAPS | CONSEQUENCES if not happened[kind]} == set()
