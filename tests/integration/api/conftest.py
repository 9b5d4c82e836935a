"""The API on a real server, on a free port, over a service in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from api_server import Keys, Served, make_api, serving
from fake_agent import FakeAgent
from fake_timers import FakeTimerService
from tests.support.patience import PATIENCE_S


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., Served]]:
    """Starts servers that run until the module's tests end."""
    with ExitStack() as stack:

        def start(**options: Any) -> Served:
            service, agent = FakeTimerService(), FakeAgent()
            keys = options.pop("keys", None) or Keys()
            with_agent = agent if options.pop("agent", True) else None
            url = stack.enter_context(serving(make_api(service, keys, with_agent, **options)))
            client = stack.enter_context(httpx.Client(base_url=url, timeout=PATIENCE_S))
            return Served(service, agent, keys, url, client)

        yield start


@pytest.fixture(scope="module")
def module_server(serve: Callable[..., Served]) -> Served:
    return serve()


@pytest.fixture
def server(module_server: Served) -> Served:
    """The module's server, emptied."""
    module_server.service.clear()
    module_server.agent.clear()
    return module_server
