"""What all tests share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

pytest_plugins = ["tests.support.servers"]

#: Tests that start servers as processes, or try very many cases: left out of `make test-fast`.
_SLOW = (
    "tests/crash/",
    "tests/e2e/",
    "tests/integration/server/",
    "tests/integration/cluster/",
    "tests/integration/cli/test_echo.py",
    "tests/integration/cli/test_examples.py",
    "tests/integration/cli/test_real_server.py",
    "tests/integration/cli/test_tutorials.py",
    "tests/integration/api/test_openapi.py",
    "test_random_histories_look_like_the_memory",
)


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A test that configures logging, as a server does, leaves nothing of it to the next one."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the slow ones by where they stand."""
    for item in items:
        if any(part in item.nodeid for part in _SLOW):
            item.add_marker(pytest.mark.slow)
