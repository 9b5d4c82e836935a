"""Limits processes to a small share of a core, so that they are the bottleneck even on a machine of few cores.

Uses the kernel's CPU bandwidth control (cgroup v1 or v2) if this user may create a control group, otherwise SIGSTOP and
SIGCONT. The share applies to each PERIOD_US, or what the kernel allows for a smaller share, so that pauses are short.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

PERIOD_US = 10_000
#: The least that the kernel accepts for a period.
_QUOTA_MIN_US = 1_000
_ROOT = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def limited(pid: int, share: float) -> Iterator[str]:
    """Limits all threads of a process together to `share` of a core; yields the name of the mechanism."""
    group = _new_group(f"tocsin-bench-{pid}")
    if group is None:
        yield from _by_signals(pid, share)
        return
    try:
        quota_us = max(round(PERIOD_US * share), _QUOTA_MIN_US)
        period_us = round(quota_us / share)
        if (group / "cpu.max").exists():
            (group / "cpu.max").write_text(f"{quota_us} {period_us}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(period_us))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        (group / "cgroup.procs").write_text(str(pid))
        yield "CPU bandwidth control"
    finally:
        with contextlib.suppress(ProcessLookupError):
            (group.parent / "cgroup.procs").write_text(str(pid))
        group.rmdir()


def _new_group(name: str) -> Path | None:
    """A new control group that can limit CPU; None if it cannot be created."""
    for parent in (_ROOT / "cpu", _ROOT / "cpu,cpuacct", _ROOT):
        group = parent / name
        with contextlib.suppress(OSError):
            group.mkdir()
            if any((group / file).exists() for file in ("cpu.max", "cpu.cfs_quota_us")):
                return group
            group.rmdir()
    return None


def _by_signals(pid: int, share: float) -> Iterator[str]:
    """Stops and continues the process, with twice the period because signals are coarser."""
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
