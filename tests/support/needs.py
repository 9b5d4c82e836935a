"""Skips that name what the machine lacks, and that `TOCSIN_TEST_REQUIRE=name,name` turns into failures."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest


def lacking(name: str, reason: str) -> NoReturn:
    """Skips the test because the machine has no `name`; fails it if `name` is required."""
    required = {word.strip() for word in os.environ.get("TOCSIN_TEST_REQUIRE", "").split(",")}
    if name in required:
        pytest.fail(f"TOCSIN_TEST_REQUIRE names {name}, which isn't to be had: {reason}")
    pytest.skip(f"{name} is not to be had: {reason}")


def java_of(name: str, target: str, ready: Path) -> str:
    """Where Java is, once `make` has made the target, a server of that name, whose build ends with the file `ready`; skips
    the test where either can't be had."""
    for program in ("java", "mvn", "javac"):
        if shutil.which(program) is None and (program == "java" or not ready.exists()):
            lacking(name, f"there is no {program} (Debian: default-jdk-headless, maven)")
    build = Path(__file__).parents[2] / "build"
    build.mkdir(exist_ok=True)
    # Of the processes that run tests, one installs it.
    with (build / f"{target}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            made = subprocess.run(["make", target], cwd=build.parent, capture_output=True, text=True, check=False)
            if made.returncode:
                lacking(name, f"`make {target}` failed: {made.stdout}{made.stderr}"[-2000:])
    return str(shutil.which("java"))
