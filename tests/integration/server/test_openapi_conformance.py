"""A real server conforms to the committed OpenAPI document."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.timeout(600)
def test_random_requests_are_answered_as_the_document_describes() -> None:
    """In a process of its own: schemathesis makes its cases while tests are collected, which takes seconds, and each process
    of a test run would collect them."""
    requests = Path(__file__).with_name("openapi_requests.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(requests)]
    ran = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " passed" in ran.stdout
