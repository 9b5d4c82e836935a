"""`python -m bench.schedules [COUNT]`: CPU time for planning schedules of a minute: occurrence by occurrence, and after a day
without a server; and how long a list of them by id takes in SQLite. Nothing is sent."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import msgspec

from tocsin.model.instants import US_PER_DAY
from tocsin.model.namespace import HistoryMode
from tocsin.model.schedule import Definition, Schedule, State
from tocsin.model.timer import Status, Timer
from tocsin.ports.store import ShardBatch, generation
from tocsin.stores.sqlite.store import SqliteStore
from tocsin.timers.engine import recurring
from tocsin.timers.engine.assembly import Assembly
from tocsin.timers.engine.rows import Row, stored
from tocsin.timers.engine.window import Window

NOW_US = 1_800_000_000_000_000
_OWNER = b"bench-incarnatio"


def rows(count: int, at: int) -> list[Row]:
    """Schedules of a minute, due at an instant."""
    definition = Definition(cron="* * * * *", time_zone="Europe/Berlin")
    made = []
    for number in range(count):
        timer = Timer(
            "n", f"schedule-{number:09}", at, "http://h/", at - US_PER_DAY, at - 1, firing=f"s-{at}",
            schedule=Schedule(definition, State(at - 1)),
        )  # fmt: skip
        made.append(Row((at, number.to_bytes(16, "big")), generation(1, _OWNER, number), timer, 300))
    return made


def finish(count: int) -> float:
    """Seconds of CPU for the end of so many occurrences on time."""
    due = rows(count, NOW_US)
    began = time.process_time()
    for row in due:
        result = msgspec.structs.replace(row.timer, attempts=1, status=Status.COMPLETED, executed_at=NOW_US + 1_000)
        recurring.recur(row.timer, row.key[1], result, 0, NOW_US + 1_000)
    return time.process_time() - began


def move_on(count: int) -> tuple[float, float]:
    """Seconds of CPU for planning so many schedules that are a day late, and for the longest batch."""
    window = Window(0, 1, _OWNER)
    window.horizon = (NOW_US + US_PER_DAY, b"\xff" * 16)
    for row in rows(count, NOW_US - US_PER_DAY):
        window._add(row)
    began, longest = time.process_time(), 0.0
    while (late := window.due(NOW_US)) is not None:
        assert recurring.gives_way(late.timer, late.key[1], NOW_US)
        window.defer()
        window.move_on(late)
    while window.pending:
        batch_began = time.process_time()
        assembly = Assembly(window, now_us=NOW_US, boot_us=0, history_rule=lambda _: (HistoryMode.ALL, US_PER_DAY))
        window.committed(assembly.batch(rows_max=2_000, bytes_max=1 << 26, finished_max=0, exact_after_us=0), 0)
        longest = max(longest, time.process_time() - batch_began)
    return time.process_time() - began, longest


async def listing(count: int) -> float:
    """The longest of a hundred pages of a hundred among so many schedules, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "tocsin.db")
        await store.open(1)
        await store.claim(0, expected_epoch=0, owner=_OWNER)
        made = [stored(row) for row in rows(count, NOW_US)]
        for first in range(0, count, 5_000):
            await store.apply([ShardBatch(0, 1, _OWNER, upserts=made[first : first + 5_000])])
        longest, after = 0.0, ""
        for _ in range(100):
            began = time.perf_counter()
            page = await store.list_schedules("n", (0,), after, 100)
            longest = max(longest, time.perf_counter() - began)
            after = page[-1].timer_id if len(page) == 100 else ""
        await store.close()
        return longest


def main() -> None:
    """Prints the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.schedules", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=10_000, help="schedules")
    count = parser.parse_args().count
    print(f"an occurrence that ends: {finish(count) / count * 1e6:.0f} µs of CPU")
    late_s, longest_s = move_on(count)
    print(f"{count} schedules a day late: {late_s:.2f} s of CPU, the longest batch {longest_s * 1e3:.0f} ms")
    print(f"a page of 100 among {count}: at most {asyncio.run(listing(count)) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
