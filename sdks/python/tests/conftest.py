"""A server for the tests of the SDK, with a clock that they move."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tocsin_client.testing import TestServer


@pytest.fixture(scope="session", autouse=True)
def _program(tmp_path_factory):
    """The server of this checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOCSIN_BIN", str(Path(sys.executable).parent / "tocsin"))
        yield


@pytest.fixture(scope="module")
def server():
    with TestServer("--log-level", "warning") as running:
        yield running
