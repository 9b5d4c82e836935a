"""What clients may cost a node: reads and refused changes by the hundred stall no timer, and take bounded memory."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from pathlib import Path
from typing import Any

from tests.support.calls import Api, Inbox
from tests.support.http import Client, Receiver
from tests.support.server import ServerProcess

MEMORY_MIB_MAX = 150
SCHEDULES, FINISHED, TIMERS = 1_000, 30, 10
NOWHERE = "http://127.0.0.1:9/"
DEFAULT = {"namespace": "default"}
FINISHED_TIMER = {**DEFAULT, "timerId": "finished"}


def rare(number: int) -> str:
    """A rule of Sundays that are 29 February."""
    return f"{number % 60} {number // 60} 29 2 */7"


def never(number: int) -> dict[str, str]:
    """A rule of times that the clocks always skip: of all rules, to refuse it takes longest."""
    return {"cron": f"*/1,{number % 60},{number // 60} 2 * 3 0L", "timeZone": "Europe/Berlin"}


class Crowd:
    """Requests that are sent at once, each on a connection of its own. The server's clients leave some responses unread."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._unread: list[asyncio.StreamWriter] = []

    async def ask(self, expected: int, path: str, **body: Any) -> None:
        client = Client(self._server.address)
        assert (await client.post(f"/api/v1/{path}", body))[0] == expected
        client.close()

    async def leave_unread(self, path: str, **body: Any) -> None:
        """Returns when the response has begun, or its connection was closed because others are unread, too."""
        receiving = socket.socket()
        receiving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        receiving.setblocking(False)
        await asyncio.get_running_loop().sock_connect(receiving, self._server.address())
        reader, writer = await asyncio.open_connection(sock=receiving, limit=1)
        self._unread.append(writer)
        sent = json.dumps(body).encode()
        writer.write(
            b"POST /api/v1/%s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
            % (path.encode(), len(sent), sent)
        )
        assert await reader.read(9) in (b"HTTP/1.1 ", b"")

    def leave(self) -> None:
        for writer in self._unread:
            writer.transport.abort()


async def add_schedules(server: ServerProcess, numbers: range) -> None:
    api = Api(server)
    for number in numbers:
        wanted = {**DEFAULT, "id": f"s{number}", "cron": rare(number), "jitter": "100d", "callbackUrl": NOWHERE}
        assert (await api("schedules/create", **wanted))[0] == 200


async def add_finished_timers(server: ServerProcess) -> None:
    """Finished timers of one id: 3 MB of records."""
    api = Api(server)
    for _ in range(FINISHED):
        await api.create(FINISHED_TIMER["timerId"], NOWHERE, delay="1h", payload="x" * 100_000)
        assert (await api("timers/delete", **FINISHED_TIMER))[0] == 204


async def readiness(server: ServerProcess, ended: asyncio.Event) -> set[int]:
    """The statuses of /readyz, asked again and again until the end."""
    client, found = Client(server.address), set()
    while not ended.is_set():
        found.add((await client.get("/readyz"))[0])
    return found


def memory_mib(server: ServerProcess, name: str) -> float:
    """The process's resident memory: now (VmRSS), or the most that it ever had (VmHWM)."""
    assert server.process is not None
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{server.process.pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1_024


async def test_reads_and_refused_changes_by_the_hundred_stall_no_timer(server: ServerProcess) -> None:
    inbox, crowd, ended = Inbox(), Crowd(server), asyncio.Event()
    parts = (range(first, SCHEDULES, 20) for first in range(20))
    await asyncio.gather(add_finished_timers(server), *(add_schedules(server, part) for part in parts))
    before_mib = memory_mib(server, "VmRSS")
    async with Receiver(inbox) as receiver:
        ready = asyncio.create_task(readiness(server, ended))
        for number in range(TIMERS):
            await Api(server).create(f"t{number}", receiver.url, delay=f"{number * 200}ms")
        await asyncio.gather(
            *(crowd.ask(200, "schedules/preview", cron=rare(0), count=100) for _ in range(40)),
            crowd.ask(200, "schedules/list", **DEFAULT, limit=SCHEDULES),
            *(crowd.leave_unread("timers/list", **DEFAULT, limit=1_000) for _ in range(80)),
            *(crowd.leave_unread("timers/history", **FINISHED_TIMER, limit=1_000) for _ in range(80)),
            *(crowd.ask(400, "schedules/update", **DEFAULT, scheduleId="s0", **never(number)) for number in range(200)),
        )
        await inbox.count(TIMERS)
    ended.set()
    assert await ready == {200}
    crowd.leave()
    assert memory_mib(server, "VmHWM") - before_mib <= MEMORY_MIB_MAX
    assert "dispatch paused" not in server.log()
