"""Whether a program prints the same whatever Python's hashes of texts are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def printed_under_hash_seeds(program: str) -> set[str]:
    """What the program prints under two hash seeds."""
    return {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=_ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
