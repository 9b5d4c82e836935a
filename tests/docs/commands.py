"""Runs a page's `tocsin` in processes that are forked from one that has imported it: a page types up to thirty commands, and
importing takes nine tenths of the processor's time that one needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.preloaded_program import program_in


def preload(folder: Path) -> None:
    """In a mount namespace of its own, from now on the environment's `tocsin` is run by a process that is started here."""
    # Of effect in all programs of the page: their output comes when it is written.
    os.environ["PYTHONUNBUFFERED"] = "1"
    subprocess.run(["mount", "--bind", program_in(folder), Path(sys.executable).parent / "tocsin"], check=True)
