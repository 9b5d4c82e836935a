"""Gives processes an equal, small share of a core, so that on a machine of few cores it is they that are the limit.

By the kernel's CPU bandwidth control, version 1 or 2, where this user may make a control group; else by stopping and
continuing the process. Both leave long pauses out: a share is dealt out each PERIOD_US.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

PERIOD_US = 10_000
_ROOT = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def limited(pid: int, share: float) -> Iterator[str]:
    """Bounds all threads of a process together to `share` of a core; yields by what."""
    group = _new_group(f"tocsin-bench-{pid}")
    if group is None:
        yield from _by_signals(pid, share)
        return
    try:
        quota_us = round(PERIOD_US * share)
        if (group / "cpu.max").exists():
            (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        (group / "cgroup.procs").write_text(str(pid))
        yield "CPU bandwidth control"
    finally:
        with contextlib.suppress(ProcessLookupError):
            (group.parent / "cgroup.procs").write_text(str(pid))
        group.rmdir()


def _new_group(name: str) -> Path | None:
    """A control group in which CPU can be bounded; None where there can't be one."""
    for parent in (_ROOT / "cpu", _ROOT / "cpu,cpuacct", _ROOT):
        group = parent / name
        with contextlib.suppress(OSError):
            group.mkdir()
            if any((group / file).exists() for file in ("cpu.max", "cpu.cfs_quota_us")):
                return group
            group.rmdir()
    return None


def _by_signals(pid: int, share: float) -> Iterator[str]:
    """Twice the period, since stopping is coarser; only what the process uses while it runs is bounded so."""
    over = threading.Event()
    period_s = 2 * PERIOD_US / 1e6

    def alternate() -> None:
        with contextlib.suppress(ProcessLookupError):
            while not over.wait(period_s * share):
                os.kill(pid, signal.SIGSTOP)
                over.wait(period_s * (1 - share))
                os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=alternate)
    thread.start()
    try:
        yield "stop and continue signals"
    finally:
        over.set()
        thread.join()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
