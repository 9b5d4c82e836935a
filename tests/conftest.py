"""What all tests share."""

from __future__ import annotations

import pytest

pytest_plugins = ["tests.support.servers"]

#: Tests that start servers as processes, or try very many cases: left out of `make test-fast`.
_SLOW = (
    "tests/crash/",
    "tests/e2e/",
    "tests/integration/server/",
    "tests/integration/cli/test_echo.py",
    "tests/integration/cli/test_examples.py",
    "tests/integration/cli/test_real_server.py",
    "tests/integration/cli/test_tutorials.py",
    "tests/integration/api/test_openapi.py",
    "test_random_histories_look_like_the_memory",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the slow ones by where they stand."""
    for item in items:
        if any(part in item.nodeid for part in _SLOW):
            item.add_marker(pytest.mark.slow)
