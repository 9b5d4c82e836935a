"""Whatever a receiver sends, in whatever pieces: one outcome, bounded memory, and no second request after anything odd."""

from __future__ import annotations

import asyncio
import random
import tracemalloc
from dataclasses import dataclass, field
from itertools import pairwise

import h11
import pytest

from tocsin.http_client.connection import Connection, ResponseCache
from tocsin.http_client.in_flight import RequestInFlight, RequestOutcome
from tocsin.http_client.limits import CallbackLimits
from tocsin.http_client.target import parse_url
from tocsin.model.answer import NoResponse, Response

LIMITS = CallbackLimits(response_body_bytes_max=200, response_head_bytes_max=400, response_cache_entries_max=8)
ORIGIN = parse_url("http://127.0.0.1/").origin
STREAMS_PER_SEED = 400
SEEDS = 2


class Wire(asyncio.Transport):
    """The lowest end of a connection: keeps nothing, and reports its end as transports do, after the call that ended it."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Goes nowhere."""

    def abort(self) -> None:
        """Ends it."""
        self.ended = True

    def is_closing(self) -> bool:
        """Whether it has ended."""
        return self.ended


@dataclass
class Recorder:
    """What the connection reported to its owner."""

    outcomes: list[RequestOutcome] = field(default_factory=list)
    reusable: bool = False
    losses: int = 0

    def answered(
        self, connection: Connection, request: RequestInFlight, outcome: RequestOutcome, reusable: bool
    ) -> None:
        """See Owner."""
        self.outcomes.append(outcome)
        self.reusable = reusable
        if not reusable:
            connection.abort()

    def dropped(self, connection: Connection, request: RequestInFlight, outcome: NoResponse, replayable: bool) -> None:
        """See Owner."""
        self.outcomes.append(outcome)
        connection.abort()

    def lost(self, connection: Connection) -> None:
        """See Owner."""
        self.losses += 1


def deliver(pieces: list[bytes], cache: ResponseCache) -> tuple[RequestOutcome, bool]:
    """The outcome of a request answered by these pieces, and whether a second request might have gone on the connection."""
    owner, wire = Recorder(), Wire()
    connection = Connection(owner, LIMITS, ORIGIN.destination, cache)
    connection.connection_made(wire)
    connection.start(RequestInFlight(ORIGIN, b"", False, 1_000_000, lambda exchange: None), 0)
    taken = 0
    for piece in pieces:
        if wire.ended:
            break
        taken += len(piece) if not owner.outcomes else 0
        connection.data_received(piece)
        kept = len(connection._body) + sum(len(name) + len(value) for name, value in connection._headers)
        assert kept <= LIMITS.response_body_bytes_max + LIMITS.response_head_bytes_max + len(piece)
        # Eight bytes of framing for each of body are the most that is read on.
        assert taken <= LIMITS.response_head_bytes_max + 9 * (LIMITS.response_body_bytes_max + len(piece)) + len(piece)
    usable = owner.reusable and not wire.ended
    connection.connection_lost(None)
    assert (len(owner.outcomes), owner.losses) == (1, 1)
    return owner.outcomes[0], usable


def a_stream(draw: random.Random) -> bytes:
    """What a receiver sends: mostly an answer, often with something wrong."""
    interim = [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 X\r\nretry-after: 9\r\n\r\n"]
    parts = draw.choices(interim, k=draw.choice([0, 0, 0, 1, 3, 40]))
    body = bytes(draw.choices(b"ab\r\n0 {", k=draw.choice([0, 1, 11, 60, 199, 200, 201, 450])))
    headers = [b"x: y\r\n" * draw.choice([0, 1, 5, 90]), draw.choice([b"", b"retry-after: 3\r\n", b"set-cookie:\r\n"])]
    framing = draw.choice(["length", "length", "chunks", "chunks", "none", "short", "both"])
    if framing in ("length", "short", "both"):
        headers.append(b"content-length: %d\r\n" % (len(body) + (framing == "short")))
    if framing in ("chunks", "both"):
        headers.append(b"transfer-encoding: chunked\r\n")
    if draw.random() < 0.15:
        headers.append(b"connection: close\r\n")
    draw.shuffle(headers)
    status = draw.choice([b"200", b"200", b"200", b"503", b"204", b"304", b"99", b"2000"])
    parts.append(b"HTTP/1.1 %b X\r\n%b\r\n" % (status, b"".join(headers)))
    parts.append(chunked(body, draw) if framing in ("chunks", "both") else body)
    stream = b"".join(parts)
    if draw.random() < 0.3:
        stream += draw.choice([b"HTTP/1.1 200 OK\r\n\r\n", b"x", b"HTTP", b"\x00", stream])
    if draw.random() < 0.3:
        at = draw.randrange(len(stream))
        stream = draw.choice([stream[:at], stream[:at] + bytes([draw.randrange(256)]) + stream[at + 1 :]])
    return stream or b"\n"


def judged_elsewhere(stream: bytes) -> tuple[int, bytes, bool] | None:
    """Status, body and whether exactly this answer was there and keeps the connection, by another implementation; None for
    what it doesn't take."""
    other = h11.Connection(h11.CLIENT, max_incomplete_event_size=1_000_000)
    other.send(h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")]))
    other.send(h11.EndOfMessage())
    other.receive_data(stream)
    status, body = 0, b""
    try:
        while True:
            event = other.next_event()
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                rest, _ = other.trailing_data
                # Blank lines mean nothing between messages (RFC 9112 section 2.2).
                return status, body, not rest.strip(b"\r\n") and other.their_state is h11.DONE
            elif event is h11.NEED_DATA:
                return status, body, False
    except h11.RemoteProtocolError:
        return None


def chunked(body: bytes, draw: random.Random) -> bytes:
    """The body in chunks, with extensions and trailers, some too long."""
    size = draw.choice([1, 7, 300])
    extension = draw.choice([b"", b"", b";a=b", b";" + b"e" * draw.choice([10, 900])])
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    lines = [b"%x%b\r\n%b\r\n" % (len(chunk), extension, chunk) for chunk in chunks]
    return b"".join(lines) + b"0\r\n" + draw.choice([b"", b"", b"t: 1\r\n", b"t: 1\r\n" * 200]) + b"\r\n"


def in_pieces(stream: bytes, draw: random.Random) -> list[bytes]:
    """Cut at random places, or everywhere."""
    if draw.random() < 0.3:
        return [stream[at : at + 1] for at in range(len(stream))]
    cuts = sorted(draw.sample(range(len(stream) + 1), min(len(stream), draw.randrange(1, 6))))
    edges = [0, *cuts, len(stream)]
    return [stream[start:end] for start, end in pairwise(edges) if start < end]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_stream_in_any_pieces(seed: int) -> None:
    draw = random.Random(seed)
    cache = ResponseCache(LIMITS)
    answers = reused = 0
    for _ in range(STREAMS_PER_SEED):
        stream = a_stream(draw)
        whole = deliver([stream], cache)
        assert deliver([stream], cache) == whole, stream
        outcome, usable = deliver(in_pieces(stream, draw), ResponseCache(LIMITS))
        elsewhere = judged_elsewhere(stream)
        if elsewhere is not None:
            status, body, proper = elsewhere
            assert proper or not (usable or whole[1]), stream
            for answer in (outcome, whole[0]):
                if isinstance(answer, Response):
                    assert (answer.status, answer.body) == (status, body[: LIMITS.response_body_bytes_max]), stream
                    assert answer.truncated == (len(body) > LIMITS.response_body_bytes_max)
        answers += isinstance(outcome, Response)
        reused += usable
    # It would prove nothing if nothing got through.
    assert reused > STREAMS_PER_SEED / 40
    assert answers > reused


def test_a_body_in_tiny_pieces_takes_the_memory_of_its_bytes() -> None:
    size = 60_000
    connection = Connection(Recorder(), CallbackLimits(), ORIGIN.destination, ResponseCache(LIMITS))
    connection.connection_made(Wire())
    connection.start(RequestInFlight(ORIGIN, b"", False, 1_000_000, lambda exchange: None), 0)
    connection.data_received(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n")
    chunks = b"2\r\nab\r\n" * 1_000
    tracemalloc.start()
    try:
        for _ in range(size // 2_000):
            connection.data_received(chunks)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert connection._body == b"ab" * (size // 2)
    assert held < 2 * size
