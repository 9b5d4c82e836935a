"""The jars of the SDK, built once for all processes that run its tests."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.needs import lacking

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def built():
    """The folder of the SDK, built by Maven unless the jars are newer than their sources."""
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            lacking("java", f"there is no {program} (Debian: default-jdk-headless, maven)")
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build/sdk-java.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes may run these tests
        made = subprocess.run(["make", "sdk-java"], cwd=ROOT, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stdout + made.stderr
    return ROOT / "sdks/java"
