"""Responses that clients don't read: the memory that they take, and who is cut off."""

from __future__ import annotations

import asyncio
import queue
import socket
from contextlib import ExitStack, suppress

import msgspec
from api_server import Keys, make_api, serving
from fake_timers import FakeTimerService
from test_api_guard import Connection, new_api, post

from tocsin.model.timer import Timer
from tocsin.ports.observer import ClientRefused
from tocsin.web.api.clients import Clients, Waits
from tocsin.web.api.request import ApiLimits

MIB = 1024 * 1024
LIST = b'{"namespace": "default"}'
#: One address gets half of it, in which two responses have room.
LIMITS = ApiLimits(unread_responses_bytes_max=32 * MIB, batch_request_bytes_max=1)


class Reader:
    """A connection with this many bytes unread. It counts as reading, or not."""

    def __init__(self, clients: Clients, address: str, size: int, *, reading: bool = False) -> None:
        self.loop = asyncio.get_running_loop()
        self.client = (address, 1)
        self.waits: Waits | None = None
        self.body_taken = self.response_taken = 0
        self.reading, self.cut = reading, False
        clients.join(self, 75.0)
        clients.wait(self, Waits.READER)
        clients.take_response(self, size)

    def is_reading(self) -> bool:
        return self.reading

    def overdue(self, waited_for: Waits) -> None:
        raise AssertionError(waited_for)

    def abort(self) -> None:
        self.cut = True


def cut(*wanted: tuple[str, int, bool]) -> list[int]:
    """Which of these readers (address, MiB, whether it reads) are cut off."""

    async def main() -> list[int]:
        clients = Clients(LIMITS)
        readers = [Reader(clients, address, size * MIB, reading=reading) for address, size, reading in wanted]
        await asyncio.sleep(0)
        kept = [reader for reader in readers if not reader.cut]
        assert clients.responses_bytes == sum(reader.response_taken for reader in kept) <= 32 * MIB
        for reader in kept:
            clients.leave(reader)
        assert clients.responses_bytes == 0
        return [number for number, reader in enumerate(readers) if reader.cut]

    return asyncio.run(main())


def test_the_longest_waiting_readers_are_cut_off_until_the_rest_has_room() -> None:
    assert cut(("a", 8, False), ("a", 8, False)) == []
    assert cut(("a", 8, False), ("a", 8, False), ("a", 1, False)) == [0]
    assert cut(("a", 12, False), ("b", 12, False), ("c", 12, False)) == [0]


def test_an_address_beyond_its_share_loses_its_own_readers() -> None:
    assert cut(("b", 8, False), ("a", 8, False), ("a", 8, False), ("a", 8, False)) == [1]


def test_clients_that_read_are_cut_off_last() -> None:
    assert cut(("a", 8, True), ("a", 8, False), ("a", 8, False)) == [1]
    assert cut(("a", 8, True), ("a", 8, True), ("a", 8, True)) == [0]


async def test_the_next_request_begins_when_the_client_has_read_the_response_before_it() -> None:
    connection = Connection(new_api())
    await connection.send(post(body=LIST, path=b"/api/v1/timers/list"))
    await connection.idle()
    assert connection.statuses() == [200]
    connection.transport.unsent = 70_000
    connection.protocol.pause_writing()
    assert connection.protocol.waits is Waits.READER
    taken = connection.api.clients.responses_bytes
    assert taken == len(connection.transport.sent), "it is kept whole until its last byte is sent"
    for _ in range(2):
        await connection.send(post(body=LIST, path=b"/api/v1/timers/list"))
    await connection.idle()
    assert connection.statuses() == [200]
    connection.transport.unsent = 0
    connection.protocol.resume_writing()
    await connection.idle()
    assert connection.statuses() == [200, 200, 200]
    assert connection.api.clients.responses_bytes == 0


def test_lists_that_nobody_reads_stay_within_their_memory() -> None:
    service = FakeTimerService()
    payload = msgspec.Raw(b'"%b"' % (b"x" * 99_998))
    for number in range(70):
        timer = Timer("default", f"t{number}", 2_000_000_000_000_000, "http://a.example/", 0, 0, payload)
        service.timers["default", timer.id] = timer
    refused: queue.Queue[ClientRefused] = queue.Queue()
    clients = Clients(LIMITS, observe=refused.put)  # type: ignore[arg-type]
    api = make_api(service, Keys(), limits=LIMITS, clients=clients)
    readers = 6
    with serving(api) as url, ExitStack() as opened:
        host, _, port = url.removeprefix("http://").partition(":")
        connections = [opened.enter_context(socket.socket()) for _ in range(readers)]
        for connection in connections:
            connection.settimeout(60)
            # Otherwise the kernels of both sides might have room for a response.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
            connection.connect((host, int(port)))
            connection.sendall(post(body=LIST, path=b"/api/v1/timers/list"))
        # Seven megabytes each, of which the kernel has room for some.
        for _ in range(readers - 2):
            event = refused.get(timeout=60)
            assert event == ClientRefused("unread responses take too much memory", "127.0.0.1")
        assert 0 < clients.responses_bytes <= 16 * MIB
        sizes = [received(connection) for connection in connections]
        assert sum(size > 7_000_000 for size in sizes) == 2
        assert refused.empty()


def received(connection: socket.socket) -> int:
    """How many bytes of the response arrive before the connection is reset or silent, because all has arrived."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
    size = 0
    try:
        while more := len(connection.recv(MIB)):
            size += more
    except ConnectionResetError:
        pass
    return size
