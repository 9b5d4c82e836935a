"""A real Prometheus that scrapes servers under test every second, and evaluates rules."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port, wait_for_port


class Prometheus:
    """What tests ask it."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an instant vector, each with `metric` and `value`."""
        answer = await self._client.get("/api/v1/query", params={"query": expression})
        assert answer.status_code == 200, (expression, answer.text)
        return list(answer.json()["data"]["result"])

    async def until(
        self, expression: str, holds: Callable[[list[dict[str, Any]]], bool] = bool, timeout_s: float = PATIENCE_S
    ) -> list[dict[str, Any]]:
        """The samples, once the condition holds of them; by default: once there are some."""
        async with asyncio.timeout(timeout_s):
            while not holds(found := await self.query(expression)):  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        return found


@asynccontextmanager
async def prometheus(
    folder: Path, jobs: Mapping[str, Sequence[str]], rules: Sequence[Path] = ()
) -> AsyncIterator[Prometheus]:
    """A Prometheus with its data in the folder; `jobs` have the addresses that it scrapes."""
    program = shutil.which("prometheus")
    if program is None:
        lacking("promtool", "Debian's package prometheus has it, beside Prometheus")
    folder.mkdir(parents=True, exist_ok=True)
    scrapes = [{"job_name": job, "static_configs": [{"targets": list(targets)}]} for job, targets in jobs.items()]
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": list(map(str, rules)),
        "scrape_configs": scrapes,
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    port = free_port()
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            await asyncio.to_thread(wait_for_port, port, process)
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:
                async with asyncio.timeout(PATIENCE_S):
                    while (await client.get("/-/ready")).status_code != 200:  # noqa: ASYNC110  it has no notifications
                        await asyncio.sleep(0.05)
                yield Prometheus(client)
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait, PATIENCE_S)
