"""What a start logs about the run before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.calls import Api
from tests.support.server import ServerProcess

INTERRUPTED = "former run interrupted"


async def test_a_start_after_a_kill_logs_when_the_former_run_wrote_last(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", "--no-agent")
    await server.start()
    assert await server.stop() == 0
    await server.start()
    # The shard of this timer is claimed.
    await Api(server).create("one", "http://127.0.0.1:9/", delay="1h")
    await server.kill()
    assert INTERRUPTED not in server.log()
    server.flags = ("--no-agent", "--host", "0.0.0.0")
    # It needs a key, claims nothing, and leaves the report to the next start.
    with pytest.raises(AssertionError, match="has no API key"):
        await server.start()
    assert INTERRUPTED not in server.log()
    server.flags = ("--no-agent",)
    await server.start()
    assert await server.stop() == 0
    await server.start()
    assert await server.stop() == 0
    (line,) = [line for line in server.log().splitlines() if INTERRUPTED in line]
    assert "claimed_shards" in line and "last_write" in line and "None" not in line
