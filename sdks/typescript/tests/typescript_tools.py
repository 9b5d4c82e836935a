"""Where the SDK is, and how its tests run programs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SDK = Path(__file__).parents[1]
ROOT = SDK.parents[1]


def run(*command, cwd, **environment):
    """Standard output; fails with all output."""
    environment = {**os.environ, **environment}
    ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout
