from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.server import ServerProcess


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    """Without a service agent, which takes longer to start: these tests are about timers."""
    running = ServerProcess(tmp_path / "data", "--no-agent")
    await running.start()
    yield running
    await running.stop()
