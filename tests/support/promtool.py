"""Prometheus' own tool, by which tests evaluate rules."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support.needs import lacking


def promtool(*arguments: str | Path) -> None:
    """Runs it; fails with what it printed. The test is skipped where the machine lacks it."""
    program = shutil.which("promtool")
    if program is None:
        lacking("promtool", "Debian's package prometheus has it")
    ran = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
