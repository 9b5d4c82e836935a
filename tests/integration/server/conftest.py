from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.server import ServerProcess


@asynccontextmanager
async def serving(folder: Path, *flags: str, env: dict[str, str] | None = None) -> AsyncIterator[ServerProcess]:
    running = ServerProcess(folder / "data", *flags, env=env)
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    """For tests of timers: without the service agent, which takes longer to start."""
    async with serving(tmp_path, "--no-agent") as running:
        yield running


@pytest.fixture
async def server_with_agent(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    async with serving(tmp_path) as running:
        yield running
