"""What happened in each second of a drill: the load of the machine, and how late timers were."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from bench.processes import TICK_S, children, times

from tests.support.cluster import now_us

_OTHERS = "others"


def cpu_s(pid: int) -> float:
    """Processor seconds so far of a process, and of the running ones that it has started, unless it is this one; 0 if it has
    ended."""
    found = 0
    with contextlib.suppress(OSError):
        # With those of children that have ended: a killed node's sessions, of a database.
        found = sum(times(pid))
        for each in children(pid) if pid != os.getpid() else ():
            with contextlib.suppress(OSError):
                found += sum(times(each)[:2])
    return found * TICK_S


def waited_ms(pid: int) -> float:
    """How long so far a process, and the running ones that it has started, unless it is this one, could have run and had no
    processor; 0 if it has ended."""
    found = 0
    with contextlib.suppress(OSError):
        for each in (pid, *(children(pid) if pid != os.getpid() else ())):
            with contextlib.suppress(OSError):
                for thread in Path(f"/proc/{each}/task").iterdir():
                    found += int((thread / "schedstat").read_text().split()[1])
    return found / 1e6


def machine_s() -> float:
    """Processor seconds so far that this machine was busy, or had no processor of its host."""
    user, nice, system, _, _, *others = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + sum(others)) * TICK_S


class Load:
    """How much of a processor each process uses in each second (since 1970), and all others of the machine, in percent, and
    how long the processes waited for one, in milliseconds."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = pids
        self.percent: dict[int, dict[str, int]] = {}
        self.waited: dict[int, int] = {}

    async def watch(self) -> None:
        """Goes on until it is canceled."""
        before, busy, waited = self._of_each(cpu_s), machine_s(), self._of_each(waited_ms)
        while True:
            await asyncio.sleep(1 - now_us() % 1_000_000 / 1e6)
            now, busy_now, waited_now = self._of_each(cpu_s), machine_s(), self._of_each(waited_ms)
            second = now_us() // 1_000_000 - 1
            used = {name: max(now[name] - before[name], 0) for name in now}
            used[_OTHERS] = max(busy_now - busy - sum(used.values()), 0)
            self.percent[second] = {name: round(each * 100) for name, each in used.items()}
            self.waited[second] = round(sum(max(waited_now[name] - waited[name], 0) for name in waited))
            before, busy, waited = now, busy_now, waited_now

    def _of_each(self, measure: Callable[[int], float]) -> dict[str, float]:
        return {name: measure(pid) for name, pid in self._pids.items()}

    def others(self, first: int, last: int) -> int:
        """How much of a processor all other processes of the machine used from one second to another, in percent."""
        found = [load[_OTHERS] for second, load in self.percent.items() if first <= second < last]
        return round(sum(found) / max(len(found), 1))

    def table(
        self, first: int, last: int, zero: int, calls: Counter[int], lags: Iterable[tuple[int, float, int]]
    ) -> str:
        """A line for each second in between (since 1970), named by its distance from `zero`: other calls, the timers of
        `lags` that were due then, p50 and maximum of their lags in ms, the load, how long all waited for a processor, and the
        shards of those that were later than 10 ms and ten times the p50. The lags are the second in which a timer was due, ms
        and shard."""
        due: dict[int, list[tuple[float, int]]] = {}
        for second, lag, shard in lags:
            due.setdefault(second, []).append((lag, shard))
        names = (*self._pids, _OTHERS)
        lines = [
            f"{'s':>4} {'calls':>6} {'due':>4} {'p50':>7} {'max':>8}  {' '.join(f'{each:>5}' for each in names)}  waited"
        ]
        for second in range(first, last):
            found = sorted(due.get(second, [(0.0, -1)]))
            middle = found[len(found) // 2][0]
            late = sorted({shard for lag, shard in found if lag > max(10 * middle, 10)})
            load = self.percent.get(second, {})
            used = " ".join(f"{load.get(each, 0):>{max(len(each), 5)}}" for each in names)
            lines.append(
                f"{second - zero:>4} {calls[second]:>6} {len(due.get(second, [])):>4} {middle:>7.1f} {found[-1][0]:>8.1f}  "
                f"{used}  {self.waited.get(second, 0):>6}  {' '.join(map(str, late))}".rstrip()
            )
        return "\n".join(lines)
