"""nginx before several nodes, with the configuration that the pages show."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.cluster import ended, is_ready, node, until
from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port
from tests.support.server import ServerProcess

PAGES = Path(__file__).parents[2] / "docs/how-to"
NODES = 3
CLIENTS = 4


def shown(page: str) -> str:
    """The block of nginx's configuration on a page."""
    (block,) = re.findall(
        r"^```nginx\n(.*?)^```$", (PAGES / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return str(block)


def configuration(folder: Path, port: int, nodes: list[int]) -> str:
    """What the pages show, on this machine's ports and without TLS."""
    server = re.sub(r"^ *ssl_.*\n", "", shown("secure.md"), flags=re.MULTILINE)
    placed = {"listen 443 ssl": f"listen 127.0.0.1:{port}", "http://127.0.0.1:8080": "http://tocsin"}
    upstream = shown("several-nodes.md")
    for here, there in zip(nodes, re.findall(r"server (\S+);", upstream), strict=True):
        placed[there] = f"127.0.0.1:{here}"
    text = upstream + server
    for old, new in placed.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    return (
        f"daemon off;\npid {folder}/nginx.pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{text}}}\n"
    )


@asynccontextmanager
async def nginx(folder: Path, nodes: list[int]) -> AsyncIterator[str]:
    """A running nginx before the nodes, by its URL."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        lacking("nginx", "Debian's package nginx has it")
    folder.mkdir()
    port = free_port()
    (folder / "nginx.conf").write_text(configuration(folder, port, nodes))
    process = await asyncio.create_subprocess_exec(program, "-e", "stderr", "-c", str(folder / "nginx.conf"))

    async def listens() -> bool:
        assert process.returncode is None
        try:
            (await asyncio.open_connection("127.0.0.1", port))[1].close()
        except OSError:
            return False
        return True

    try:
        await until(listens)
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


class Traffic:
    """Clients that create timers and read them without a pause. `statuses` counts the answers."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.statuses: Counter[Any] = Counter()
        self.answered = asyncio.Event()

    async def run(self, name: str) -> None:
        async with httpx.AsyncClient(base_url=self._url, timeout=PATIENCE_S, trust_env=False) as client:
            number = 0
            while True:
                number += 1
                id = {"namespace": "default", "id": f"{name}-{number}"}
                body = {**id, "delay": "1h", "callbackUrl": "http://192.0.2.1/"}
                for path, sent in (("create", body), ("get", id)):
                    answer = await client.post(f"/api/v1/timers/{path}", json=sent)
                    self.statuses[answer.status_code if answer.is_success else answer.text] += 1
                    self.answered.set()

    async def goes_on(self) -> None:
        """Returns when each client has had some more answers."""
        for _ in range(10 * CLIENTS):
            self.answered.clear()
            await self.answered.wait()


async def test_a_restart_of_a_node_fails_no_request(tmp_path: Path, postgresql_url: str) -> None:
    ports = [free_port() for _ in range(NODES)]
    nodes = [
        node(tmp_path, f"n{port}", postgresql_url, "--port", str(port), "--insecure", steady=True) for port in ports
    ]
    async with nginx(tmp_path / "nginx", ports) as url, AsyncExitStack() as stack:
        for server in nodes:
            await server.start()
            await stack.enter_async_context(ended(server))
        await all_ready(nodes)
        traffic = Traffic(url)
        async with asyncio.TaskGroup() as group:
            clients = [group.create_task(traffic.run(str(number))) for number in range(CLIENTS)]
            await traffic.goes_on()
            assert await nodes[0].stop() == 0
            await traffic.goes_on()
            await nodes[0].start()
            await all_ready(nodes)
            await traffic.goes_on()
            for client in clients:
                client.cancel()
        assert set(traffic.statuses) == {200}, traffic.statuses


async def all_ready(nodes: list[ServerProcess]) -> None:
    async def ready() -> bool:
        return all([await is_ready(server) for server in nodes])

    await until(ready)
