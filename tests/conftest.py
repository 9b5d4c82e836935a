"""What all tests share."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.time_limit import begin, limit_coroutine

pytest_plugins = ["tests.support.servers"]

if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    # Images of containers like to set it. But the tests start hundreds of processes, and where nothing keeps what was
    # compiled, each of them compiles all its modules again, which takes more than all the rest of its start.
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(Path(__file__).parents[1] / "build" / "bytecode")
    sys.dont_write_bytecode = False

# Of a machine that stands still for a moment, no example is too slow.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

#: Tests that start servers as processes, or try very many cases, the longest first: left out of `make test-fast`.
_SLOW = (
    "tests/crash/",
    "tests/clients/",
    "tests/integration/cluster/",
    "tests/e2e/",
    "test_commands_print_what_the_page_shows",
    "tests/integration/cli/test_echo.py",
    "tests/integration/cli/test_examples.py",
    "tests/integration/cli/test_real_server.py",
    "tests/integration/stores/test_shared_server.py",
    "test_random_histories_match_the_memory_store",
    "tests/integration/server/",
    "tests/upgrade/",
    "sdks/python/tests/test_docs.py",
    "sdks/python/tests/test_killed_receiver.py",
    "sdks/python/tests/test_clients.py",
)


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A test that configures logging, as a server does, leaves nothing of it to the next one."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the slow ones by where they stand. Where several processes share the tests, these come first, so that at the
    end none of them has a long one left while the others have nothing to do."""
    for item in items:
        if _place(item) < len(_SLOW):
            item.add_marker(pytest.mark.slow)
    if hasattr(config, "workerinput"):
        items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    return next((place for place, part in enumerate(_SLOW) if part in item.nodeid), len(_SLOW))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Its time begins with its fixtures."""
    begin(item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Cancels the test's coroutine shortly before its time limit."""
    limit_coroutine(item)
