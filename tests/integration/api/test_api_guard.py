"""Hostile input in any segmentation: the limits of a connection, and one response per request."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import httptools
import msgspec
import pytest
import uvicorn
from api_server import Keys, make_api
from fake_timers import FakeTimerService
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.cases import each
from uvicorn.server import ServerState

from tocsin.model.access import Role
from tocsin.ports.observer import ClientRefused
from tocsin.web.api.app import Api
from tocsin.web.api.clients import Clients, Waits
from tocsin.web.api.guard import CLOSE, encoded, encoded_json
from tocsin.web.api.heads import HEAD_BYTES_MAX, HEADS_MAX
from tocsin.web.api.protocol import ApiProtocol
from tocsin.web.api.request import ApiLimits, ApiRequest

JSON = b"content-type: application/json\r\n"
BODY = json.dumps({"namespace": "default", "id": "a", "delay": "1h", "callbackUrl": "https://a.example/x"}).encode()
BODY += b" " * 300
UPGRADE = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"


class Transport(asyncio.Transport):
    """Records what is written; reports its end later, as a real transport does."""

    def __init__(self, loop: asyncio.AbstractEventLoop, client: str) -> None:
        super().__init__({"peername": (client, 5), "sockname": ("127.0.0.1", 80)})
        self._loop = loop
        self.sent = b""
        self.paused = self.closing = False
        self.protocol: Any = None
        #: Bytes that the client has not accepted.
        self.unsent = 0

    def write(self, data: Any) -> None:
        assert not self.closing, "nothing may be written to a closed connection"
        self.sent += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high == 0, "writing is paused as long as anything is unsent"

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        if not self.closing:
            self.closing = True
            if not self.unsent:
                self._loop.call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.unsent, self.closing = 0, False
        self.close()

    def pause_reading(self) -> None:
        assert not self.paused
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_write_buffer_size(self) -> int:
        return self.unsent


class Connection:
    """A client's connection to an application, without a network."""

    def __init__(self, api: Api, client: str = "127.0.0.1") -> None:
        self.api = api
        loop = asyncio.get_running_loop()
        self.transport = Transport(loop, client)
        config = uvicorn.Config(api, lifespan="off", access_log=False, log_config=None)
        self.protocol = ApiProtocol(api, config, ServerState(), {}, loop)
        self.transport.protocol = self.protocol
        self.protocol.connection_made(self.transport)

    @property
    def owed(self) -> bool:
        cycle = self.protocol.cycle
        return cycle is not None and not cycle.response_complete

    async def send(self, data: bytes) -> None:
        """Delivers a segment once the server reads. Checks after each: a response is due, or a time limit of the client
        is running."""
        for _ in range(200):
            if not self.transport.paused or self.transport.closing:
                break
            await asyncio.sleep(0)
        if not self.transport.closing:
            self.protocol.data_received(data)
        self.check()

    def check(self) -> None:
        protocol = self.protocol
        assert self.transport.closing or self.owed or protocol.waits is not None
        assert len(protocol._unparsed) <= 256 * 1024
        assert len(protocol.pipeline) <= 2_000
        assert len(protocol.headers or ()) <= 201

    async def idle(self) -> None:
        """Runs the loop until nothing is pending."""
        for _ in range(60):
            await asyncio.sleep(0)
        self.check()

    def statuses(self) -> list[int]:
        """The statuses of all responses; raises for anything else."""
        return statuses(self.transport.sent)


def statuses(sent: bytes) -> list[int]:
    found: list[int] = []

    class Answers:
        def on_message_complete(self) -> None:
            found.append(parser.get_status_code())

    parser = httptools.HttpResponseParser(Answers())
    parser.feed_data(sent)
    return [status for status in found if status != 100]


def new_api(**options: Any) -> Api:
    return make_api(FakeTimerService(), Keys(), **options)


def post(extra: bytes = b"", body: bytes = BODY, path: bytes = b"/api/v1/timers/create") -> bytes:
    return b"POST %b HTTP/1.1\r\nhost: x\r\n%b%bcontent-length: %d\r\n\r\n%b" % (path, JSON, extra, len(body), body)


def chunked(extra: bytes = b"", trailers: bytes = b"", path: bytes = b"/api/v1/timers/create") -> bytes:
    head = b"POST %b HTTP/1.1\r\nhost: x\r\n%b%btransfer-encoding: chunked\r\n\r\n" % (path, JSON, extra)
    return (
        head + b"".join(b"%x;ext=1\r\n%b\r\n" % (len(p), p) for p in (BODY[:7], BODY[7:])) + b"0\r\n%b\r\n" % trailers
    )


#: Requests and their answers.
REQUESTS = [
    (post(), 200),
    (post(body=b"{}"), 400),
    (post(UPGRADE), 200),
    (post(b"authorization: Bearer unknown\r\n"), 401),
    (post(b"expect: 100-continue\r\n"), 200),
    (post(path=b"/nowhere"), 404),
    (chunked(), 200),
    (chunked(trailers=b"a: b\r\nlong: %b\r\nhost: y\r\n" % (b"v" * 500)), 200),
    (chunked(UPGRADE, trailers=b"upgrade: h2c\r\nconnection: upgrade\r\n"), 200),
    (chunked(path=b"/nowhere"), 404),
    (b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", 200),
    (b"\r\n\r\nGET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc", 200),
    (b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + UPGRADE + b"\r\n", 200),
    (b"GET /x?%zz HTTP/1.1\r\nhost: x\r\n\r\n", 404),
]
JUNK = [
    b"\x00\x01\x02\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\r\nname with spaces: v\r\n\r\n",
    post(b"content-length: 3\r\n"),
    post(b"transfer-encoding: chunked\r\n"),
    chunked(trailers=b"no colon\r\n"),
    chunked(UPGRADE)[:-30] + b"zz\r\n\r\n",
    post().replace(b"content-length: ", b"content-length: " + b"0" * 5_000),
    b"GET http://[ HTTP/1.1\r\nhost: x\r\n\r\n",
]


def segments(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[begin:end] for begin, end in pairwise(places)]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    requests=st.lists(st.sampled_from(REQUESTS), max_size=6),
    tail=st.one_of(st.just(b""), st.sampled_from(JUNK), st.binary(max_size=60)),
    cut_off=st.integers(0, 400),
    cuts=st.lists(st.integers(0, 10_000), max_size=12),
    turns=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    known=st.booleans(),
)
def test_each_request_gets_one_response_however_its_bytes_are_split(
    requests: list[tuple[bytes, int]], tail: bytes, cut_off: int, cuts: list[int], turns: list[int], known: bool
) -> None:
    async def run() -> None:
        api = new_api()
        for text in {text for text, _ in requests} if known else ():
            # From now on the API knows the request's head, if that is possible.
            before = Connection(api)
            await before.send(text)
            await before.idle()
        connection = Connection(api)
        rest = tail + (REQUESTS[0][0][:cut_off] if not tail else b"")
        for number, part in enumerate(segments(b"".join(text for text, _ in requests) + rest, cuts)):
            await connection.send(part)
            for _ in range(turns[number % len(turns)]):
                await asyncio.sleep(0)
        await connection.idle()
        expected = [status for _, status in requests]
        assert connection.statuses()[: len(expected)] == expected
        # What follows is at most one request, or no request at all and refused once.
        assert len(connection.statuses()) <= len(expected) + 1

    asyncio.run(run())


async def test_known_head_is_served_with_another_body_and_checked_key() -> None:
    keys = Keys()
    keys.add("secret", Role.WRITE)
    api = make_api(FakeTimerService(), keys)
    connection, authorized = Connection(api), b"authorization: Bearer secret\r\n"
    same_length = BODY.replace(b'"a"', b"'a'")
    for body in (BODY, same_length, BODY):
        await connection.send(post(authorized, body))
        await connection.idle()
    assert connection.statuses() == [200, 400, 200]
    assert api.heads.find(post(authorized)) is not None
    keys.known.clear()
    await connection.send(post(authorized))
    await connection.idle()
    assert connection.statuses()[3:] == [401]


async def test_a_known_head_is_checked_for_each_client_whose_key_is_for_some_addresses() -> None:
    keys = Keys()
    keys.add("secret", Role.WRITE)
    ((key_hash, key),) = keys.known.items()
    keys.known[key_hash] = msgspec.structs.replace(key, sources=("127.0.0.1/32",))
    api = make_api(FakeTimerService(), keys)
    known, other = Connection(api), Connection(api, "127.0.0.2")
    text = post(b"authorization: Bearer secret\r\n")
    await known.send(text)
    await known.idle()
    # In one turn of the event loop.
    await asyncio.gather(known.send(text), other.send(text))
    await known.idle()
    await other.idle()
    assert known.statuses() == [200, 200]
    assert other.statuses() == [403]


async def test_a_response_in_one_step_has_the_bytes_of_any_other() -> None:
    api = new_api()
    request = ApiRequest({}, "01-a", None, api.proxies)
    response = api.response(api.direct[b"/api/v1/timers/create"], request, b'{"id":"a"}')
    assert encoded_json(200, b'{"id":"a"}', "01-a", CLOSE) == encoded(response, CLOSE)


async def test_known_heads_are_bounded_and_may_come_again() -> None:
    api = new_api()
    connection = Connection(api)
    for number in range(HEADS_MAX + 5):
        await connection.send(post(b"user-agent: %d\r\n" % number))
        await asyncio.sleep(0)
    assert len(api.heads) == HEADS_MAX
    assert api.heads.find(post(b"user-agent: 4\r\n")) is None
    assert api.heads.find(post(b"user-agent: 5\r\n")) is not None
    for unfit in (b"x-correlation-id: 1\r\n", b"a: %b\r\n" % (b"v" * HEAD_BYTES_MAX), b"connection: close\r\n"):
        await connection.send(post(unfit))
        assert api.heads.find(post(unfit)) is None


def overhead(endless: bytes, begin: bytes, limits: ApiLimits | None = None) -> tuple[list[int], int, list[str]]:
    """The responses to a request of up to 20 MB, the bytes that were read, and what was reported."""
    taken = 0
    reported: list[str] = []

    def observe(event: Any) -> None:
        assert isinstance(event, ClientRefused)
        reported.append(event.reason)

    async def run() -> list[int]:
        nonlocal taken
        kept = limits or ApiLimits()
        connection = Connection(new_api(limits=kept, clients=Clients(kept, observe=observe)))
        await connection.send(begin)
        await connection.idle()
        part = endless * (65_536 // len(endless))
        while not connection.transport.closing and taken < 20_000_000:
            await connection.send(part)
            taken += len(part)
            await asyncio.sleep(0)
        await connection.idle()
        return connection.statuses()

    return asyncio.run(run()), taken, reported


@each("endless", [b"a: b\r\n", b"v"])
@each("extra, answers", [(b"", [431]), (b"authorization: Bearer unknown\r\n", [401])])
def test_endless_trailers_are_refused(endless: bytes, extra: bytes, answers: list[int]) -> None:
    begin = chunked(extra)[:-2] + b"a: "
    got, taken, _ = overhead(endless, begin)
    assert got == answers
    assert taken <= 3 * 64 * 1024


def test_heads_with_too_many_headers_are_refused() -> None:
    got, taken, _ = overhead(b"a:b\r\n", b"GET /healthz HTTP/1.1\r\n")
    assert (got, taken) == ([431], 65_535)


def test_the_rest_of_a_refused_body_is_bounded_in_size_and_time() -> None:
    limits = ApiLimits(batch_request_bytes_max=1_000_000)
    begin = post(b"authorization: Bearer unknown\r\n").replace(b"content-length: ", b"content-length: 9999999")
    got, taken, _ = overhead(b"x", begin, limits)
    assert (got, taken // 1_000_000) == ([401], 4)


async def test_waits_for_a_client_time_out_even_while_bytes_arrive() -> None:
    """Only complete requests and responses reset the time limit."""
    api = new_api()
    unauthorized = post(b"authorization: Bearer unknown\r\n")
    for begin, more, waits in (
        (b"", b"\r\n", Waits.REQUEST),
        (post(), b"\r\n", Waits.REQUEST),
        (unauthorized[:-200], b" ", Waits.DISCARDED),
        (b"GET / HTTP/1.1\r\n", b"a: b\r\n", Waits.HEAD),
        (post() + b"GET / HTTP/1.1\r\n", b"a: b\r\n", Waits.HEAD),
    ):
        connection = Connection(api)
        await connection.send(begin)
        await connection.idle()
        since = api.clients._waiting[waits][connection.protocol]
        for _ in range(3):
            await asyncio.sleep(0.001)
            await connection.send(more)
        assert api.clients._waiting[waits][connection.protocol] == since
        sent = len(connection.statuses())
        connection.protocol.overdue(waits)
        await connection.idle()
        assert connection.transport.closing
        assert len(connection.statuses()) == sent + (waits is Waits.HEAD)
    assert api.clients.count == 0


async def test_a_client_that_does_not_read_is_disconnected() -> None:
    connection = Connection(new_api())
    await connection.send(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    connection.transport.unsent = 100
    await connection.idle()
    assert connection.protocol.waits is Waits.END
    connection.transport.unsent = 50
    connection.protocol.overdue(Waits.END)
    assert connection.transport.unsent == 50, "it reads slowly"
    connection.protocol.overdue(Waits.END)
    await connection.idle()
    assert connection.api.clients.count == 0


async def test_pipelined_requests_are_parsed_only_after_earlier_responses() -> None:
    api = new_api()
    connection = Connection(api)
    health = b"GET /healthz HTTP/1.1\r\n\r\n"
    await connection.send(health * 8_000)
    assert len(connection.protocol.pipeline) < 1_000
    while connection.owed:  # noqa: ASYNC110 -- each turn of the loop answers some
        await asyncio.sleep(0)
    assert connection.statuses() == [200] * 8_000


async def test_a_head_split_across_large_segments_is_parsed() -> None:
    connection = Connection(new_api())
    health = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
    for part in (health + health[:20], health[20:] + health * 3_000 + health[:20], health[20:]):
        await connection.send(part)
    while connection.owed:  # noqa: ASYNC110 -- as above
        await asyncio.sleep(0)
    assert connection.statuses() == [200] * 3_003


async def test_the_longest_waiting_connection_is_closed_for_a_new_one() -> None:
    reported: list[Any] = []
    service = FakeTimerService()
    service.holding = True
    limits = ApiLimits()
    api = make_api(service, Keys(), limits=limits, clients=Clients(limits, 2, reported.append))
    busy, idle = Connection(api), Connection(api)
    await busy.send(post())
    third = Connection(api)
    assert (busy.transport.closing, idle.transport.closing, third.transport.closing) == (False, True, False)
    await third.send(post())
    fourth = Connection(api)
    assert (third.transport.closing, fourth.transport.closing) == (False, True)
    assert [event.reason for event in reported] == ["too many connections"] * 2
    await fourth.idle()
    assert api.clients.count == 2


async def test_connections_that_clients_have_reset_make_no_room_for_others() -> None:
    service = FakeTimerService()
    service.holding = True
    limits = ApiLimits()
    api = make_api(service, Keys(), limits=limits, clients=Clients(limits, 3))
    busy, also_busy, reset = Connection(api), Connection(api), Connection(api)
    for connection in (busy, also_busy, reset):
        await connection.send(post())
    # The outcome of its create comes only when the connection has been lost.
    reset.transport.abort()
    await asyncio.sleep(0)
    service.release()
    await reset.idle()
    service.holding = True
    last = Connection(api)
    await last.send(post())
    refused = Connection(api)
    assert [each.transport.closing for each in (busy, also_busy, last, refused)] == [False, False, False, True]
    assert api.clients.count == 3


async def test_incomplete_bodies_share_a_memory_limit_and_whole_requests_need_none() -> None:
    limits = ApiLimits(request_bodies_bytes_max=1_000_000, batch_request_bytes_max=400_000)
    clients = Clients(limits)
    api = new_api(limits=limits, clients=clients)
    batch = post(path=b"/api/v1/timers/batch/create", body=b" " * 400_000)
    hostile = []
    for _ in range(4):
        connection = Connection(api)
        hostile.append(connection)
        for at in range(0, 240_000, 60_000):
            await connection.send(batch[at : at + 60_000])
            await connection.idle()
    # One client may take half of it.
    assert [connection.statuses() for connection in hostile] == [[], [], [503], [503]]
    assert b"retry-after: 1" in hostile[3].transport.sent
    assert b"api.request_bodies_bytes_max" in hostile[3].transport.sent
    assert 400_000 < clients.bodies_bytes <= 500_000
    neighbour = Connection(api)
    await neighbour.send(post())
    await neighbour.idle()
    assert neighbour.statuses() == [200]
    elsewhere = Connection(api)
    elsewhere.protocol.client = ("192.0.2.7", 5)
    for part in (batch[:300_000], batch[300_000:]):
        await elsewhere.send(part)
        await elsewhere.idle()
    assert elsewhere.statuses() == [400], "a whole batch of spaces"
    for connection in hostile:
        connection.transport.abort()
    await neighbour.idle()
    assert clients.bodies_bytes == 0


@pytest.mark.parametrize(
    "sent", [post(), post(b"expect: nothing\r\n"), post() * 3], ids=["short way", "long way", "pipelined"]
)
async def test_a_half_closed_connection_still_gets_its_responses(sent: bytes) -> None:
    service = FakeTimerService()
    service.holding = True
    connection = Connection(make_api(service, Keys()))
    await connection.send(sent)
    keep_open = connection.protocol.eof_received()
    assert keep_open
    service.holding = False
    service.release()
    await connection.idle()
    assert connection.statuses() == [200] * sent.count(b"POST")
    assert connection.transport.closing


async def test_an_incomplete_request_ends_when_its_client_disconnects() -> None:
    for begin in (b"", post()[:50], post()[:-5], post(b"authorization: Bearer unknown\r\n")[:-5]):
        connection = Connection(new_api())
        await connection.send(begin)
        await connection.idle()
        assert not connection.protocol.eof_received()


def test_exhausted_descriptors_are_reported() -> None:
    reported: list[Any] = []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    clients = Clients(ApiLimits(), observe=reported.append)
    clients.check_descriptors()
    assert reported == []
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        clients.check_descriptors()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert reported == [ClientRefused("no file descriptor is left", None)]
