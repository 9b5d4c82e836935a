"""`python -m tests.simulation.scale`: plays the plan in all sizes, most of an hour, and writes its table and plot.

Each result is kept in a file at once; what is there is not played again. `--only` plays a part, `--write` plays nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from .faults import deaths, partition, partition_from_store, restarts, slow_store, take_over
from .loads import loads
from .pages import write_pages
from .plan import Load, Plan

_ROOT = Path(__file__).parents[3]
_KEPT = _ROOT / "build" / "scale.json"
_SIZES = (4, 16, 64, 200)
_SHARDS = 1_024
#: Of the idle cluster also with other numbers of shards, as far as memory allows.
_OTHER_SHARDS = (256, 4_096)

Play = Callable[[], Any]


def _plays() -> Iterator[tuple[str, Play]]:
    for nodes in _SIZES:
        for load in loads(nodes):
            yield f"cost {nodes} {_SHARDS} {load.name}", partial(_cost, nodes, _SHARDS, load)
        for shards in _OTHER_SHARDS:
            yield f"cost {nodes} {shards} idle", partial(_cost, nodes, shards, loads(nodes)[0])
    faults = (
        (3, "one dies", deaths(1)),
        (64, "three die", deaths(3)),
        (200, "ten die", deaths(10)),
        (3, "the store answers in 50 ms, one dies 3 s later", slow_store),
        (200, "the store answers in 50 ms, one dies 3 s later", slow_store),
        (4, "nodes cut in two halves", partition),
        (64, "nodes cut in two halves", partition),
        (4, "nodes cut in two halves, one cut from the store", partition_from_store),
        (64, "nodes cut in two halves, one cut from the store", partition_from_store),
        (200, "nodes cut in two halves, one cut from the store", partition_from_store),
        (4, "rolling restart, until its end", restarts),
        (64, "rolling restart, until its end", restarts),
    )
    for nodes, name, cause in faults:
        yield f"fault {nodes} {_SHARDS} {name}", partial(_fault, nodes, name, cause)


def _cost(nodes: int, shards: int, load: Load) -> Any:
    return Plan(nodes, shards, load=load).costs()


def _fault(nodes: int, name: str, cause: Any) -> Any:
    return take_over(Plan(nodes, _SHARDS), name, cause)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.scale", description=__doc__)
    parser.add_argument("--only", default="", help="play only what has this in its name, such as 'cost 16 '")
    parser.add_argument(
        "--write", action="store_true", help="write the table and the plot of what is kept, play nothing"
    )
    options = parser.parse_args()
    kept: dict[str, dict[str, Any]] = json.loads(_KEPT.read_text()) if _KEPT.exists() else {}
    if not options.write:
        for name, play in _plays():
            if name in kept or options.only not in name:
                continue
            began_s = time.perf_counter()
            kept[name] = asdict(play())
            _KEPT.parent.mkdir(exist_ok=True)
            _KEPT.write_text(json.dumps(kept, indent=1))
            print(f"{name}: played in {time.perf_counter() - began_s:.0f} s", flush=True)
    write_pages(_ROOT, kept)


if __name__ == "__main__":
    main()
