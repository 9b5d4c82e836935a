"""Nodes authenticate each other with the secret; frames cannot be changed, dropped, repeated or moved."""

from __future__ import annotations

import asyncio
import hashlib
import socket

import pytest
from tests.support.cases import each

from tocsin.cluster.channel import PeerUnreachable
from tocsin.cluster.handshake import ClusterSecrets, Handshake, Seal
from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.stream import AcceptedConnection, dial

SECRET, OTHER = "correct horse battery", "wrong horse battery!!"
OWN, THEIRS = b"o" * 16, b"t" * 16


class End:
    """Records the channel's events."""

    def __init__(self) -> None:
        self.channel = None
        self.got: list[bytes] = []
        self.changed = asyncio.Event()
        self.over: list[str] = []

    def opened(self, channel) -> None:
        self.channel = channel

    def received(self, payload: bytes) -> None:
        self.got.append(payload)
        self.changed.set()

    def writable(self) -> None:
        pass

    def lost(self, reason: str) -> None:
        self.over.append(reason)
        self.changed.set()


class Listener:
    """A node that accepts connections."""

    def __init__(self, secret: str = SECRET, limits: ClusterLimits | None = None) -> None:
        self.secret, self.limits = secret, limits or ClusterLimits()
        self.end, self.arrivals, self.refusals, self.unauthenticated = End(), [], [], {}
        self.address = ""

    def make(self) -> AcceptedConnection:
        """The protocol of a new connection."""
        return AcceptedConnection(
            self.limits, ClusterSecrets(self.secret), THEIRS, self._arrived, self._refused, self.unauthenticated
        )

    def _arrived(self, incarnation: bytes, channel) -> End:
        self.arrivals.append(incarnation)
        self.end.opened(channel)
        return self.end

    def _refused(self, address: str, reason: str, kind: str) -> None:
        self.refusals.append(reason)

    async def __aenter__(self) -> Listener:
        self.server = await asyncio.get_running_loop().create_server(self.make, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_) -> None:
        self.server.close()
        if self.end.channel is not None:
            self.end.channel.abort()


def shake(caller_secret: str, called_secret: str, *, expected: bytes = THEIRS):
    caller = Handshake(caller_secret, OWN, b"c" * 32)
    called = Handshake(called_secret, THEIRS, b"s" * 32)
    proven = caller.prove(called.hello(), expected)
    return proven, None if proven is None else called.check_proof(proven[0])


def test_both_sides_authenticate_and_agree_on_seals() -> None:
    proven, accepted = shake(SECRET, SECRET)
    assert accepted is not None
    assert (accepted[0], accepted[1]) == (OWN, proven[1])
    assert proven[2].caller.of(b"x") == accepted[2].caller.of(b"x")
    assert proven[2].called.of(b"x") == accepted[2].called.of(b"x")


def test_wrong_secret_wrong_node_and_replayed_proof_are_refused() -> None:
    assert shake(SECRET, OTHER)[1] is None
    assert shake(SECRET, SECRET, expected=b"x" * 16)[0] is None
    proven, _ = shake(SECRET, SECRET)
    another = Handshake(SECRET, THEIRS, b"S" * 32)
    assert another.check_proof(proven[0]) is None
    assert another.check_proof(b"") is None


def test_a_node_takes_proofs_with_the_former_secret_while_it_is_replaced() -> None:
    for secret in (SECRET, OTHER):
        called = Handshake(SECRET, THEIRS, b"s" * 32, former=OTHER)
        proven = Handshake(secret, OWN, b"c" * 32).prove(called.hello(), THEIRS)
        assert proven is not None
        accepted = called.check_proof(proven[0])
        assert accepted is not None
        assert accepted[1] == proven[1]
        assert proven[2].called.of(b"x") == accepted[2].called.of(b"x")
    called = Handshake(SECRET, THEIRS, b"s" * 32, former=OTHER)
    third = Handshake("a third secret of the cluster", OWN, b"c" * 32).prove(called.hello(), THEIRS)
    assert third is not None
    assert called.check_proof(third[0]) is None


def test_a_node_with_another_protocol_version_is_refused() -> None:
    hello = Handshake(SECRET, THEIRS, b"s" * 32).hello()
    assert Handshake(SECRET, OWN, b"c" * 32).prove(hello.replace(b"PEERS/1", b"PEERS/2"), THEIRS) is None


def test_the_secret_is_never_sent() -> None:
    proven, accepted = shake(SECRET, SECRET)
    sent = Handshake(SECRET, THEIRS, b"s" * 32).hello() + proven[0] + accepted[1]
    assert SECRET.encode() not in sent
    assert hashlib.sha256(SECRET.encode()).digest() not in sent


def test_a_seal_verifies_each_frame_once_and_in_order() -> None:
    sender, reader = Seal(b"k" * 32), Seal(b"k" * 32)
    first, second = sender.of(b"one"), sender.of(b"two")
    assert reader.fits(b"one", first)
    assert not reader.fits(b"one", first)
    assert not Seal(b"k" * 32).fits(b"two", second)
    assert not Seal(b"k" * 32).fits(b"One", first)


async def test_frames_are_sent_in_both_directions() -> None:
    async with Listener() as listener:
        end = End()
        await dial(ClusterLimits(), SECRET, OWN, THEIRS, listener.address, end)
        end.channel.send(b"a" * 100_000)
        await listener.end.changed.wait()
        listener.end.channel.send(b"answer")
        await end.changed.wait()
        assert (listener.end.got, end.got, listener.arrivals) == ([b"a" * 100_000], [b"answer"], [OWN])
        assert not listener.unauthenticated
        end.channel.close()


@pytest.mark.parametrize(
    ("secret", "incarnation", "reason"),
    [(OTHER, THEIRS, "cluster.secret differs"), (SECRET, OWN, "a different incarnation of the node")],
)
async def test_a_refused_node_learns_the_reason(secret: str, incarnation: bytes, reason: str) -> None:
    async with Listener() as listener:
        with pytest.raises(PeerUnreachable, match=reason):
            await dial(ClusterLimits(), secret, OWN, incarnation, listener.address, End())
        assert listener.arrivals == []


async def test_a_client_without_the_protocol_is_disconnected() -> None:
    async with Listener() as listener:
        host, _, port = listener.address.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n" + b"x" * 200)
        hello = await reader.readexactly(63)
        assert hello.startswith(b"TOCSIN-PEERS/1 ")
        assert set(await reader.read()) <= {0}
        assert (listener.arrivals, listener.refusals) == ([], ["wrong cluster.secret"])
        writer.close()


async def test_a_silent_client_is_disconnected() -> None:
    async with Listener(limits=ClusterLimits(connect_timeout_us=50_000)) as listener:
        host, _, port = listener.address.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        await reader.readexactly(63)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()


async def test_a_frame_that_is_too_large_ends_the_connection() -> None:
    async with Listener(limits=ClusterLimits(frame_bytes_max=100)) as listener:
        end = End()
        await dial(ClusterLimits(), SECRET, OWN, THEIRS, listener.address, end)
        end.channel.send(b"a" * 101)
        await listener.end.changed.wait()
        assert (listener.end.got, listener.end.over) == ([], ["a message of 101 bytes, which is too large"])
        await end.changed.wait()
        assert end.over


async def connected(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """An unauthenticated client that has received the greeting and sends nothing."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    await reader.readexactly(63)
    return reader, writer


async def test_unauthenticated_connections_do_not_block_cluster_nodes() -> None:
    async with Listener(
        limits=ClusterLimits(unauthenticated_connections_max=3, connect_timeout_us=60_000_000)
    ) as listener:
        unauthenticated = [await connected(listener.address) for _ in range(5)]
        assert len(listener.unauthenticated) == 3
        for reader, _ in unauthenticated[:2]:
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
        end = End()
        await dial(ClusterLimits(), SECRET, OWN, THEIRS, listener.address, end)
        assert listener.arrivals == [OWN]
        assert len(listener.unauthenticated) == 2
        end.channel.abort()
        for _, writer in unauthenticated:
            writer.close()


async def test_an_unauthenticated_client_can_send_no_more_than_a_proof() -> None:
    async with Listener() as listener:
        reader, writer = await connected(listener.address)
        stream = next(iter(listener.unauthenticated))
        writer.write(b"x" * 40)
        await writer.drain()
        writer.write(b"y" * 1_000_000)
        assert set(await until_closed(reader)) <= {0}
        assert len(stream._buffer) < 512 * 1024
        assert listener.refusals == ["wrong cluster.secret"]
        writer.close()


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    """The bytes that arrive before the connection ends, in order or not."""
    got = b""
    try:
        while part := await reader.read(1_000):
            got += part
    except ConnectionError:
        pass
    return got


class Between:
    """A man in the middle that changes frames as instructed."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.passed: list[bytes] = []
        self.writer: asyncio.StreamWriter | None = None
        self.address = ""
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Between:
        self.server = await asyncio.start_server(self._meet, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        for task in self._tasks:
            task.cancel()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self.target.partition(":")
        onward_reader, self.writer = await asyncio.open_connection(host, int(port))
        for source, target in ((reader, self.writer), (onward_reader, writer)):
            task = asyncio.get_running_loop().create_task(self._pass(source, target))
            self._tasks.add(task)

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while part := await source.read(65_536):
            if target is self.writer:
                self.passed.append(part)
            target.write(part)
        target.close()


@pytest.mark.parametrize("what", ["again", "changed", "of another connection", "back"])
async def test_a_man_in_the_middle_can_only_break_the_connection(what: str) -> None:
    async with Listener() as listener, Between(listener.address) as between:
        end = End()
        await dial(ClusterLimits(), SECRET, OWN, THEIRS, between.address, end)
        end.channel.send(b"first")
        await listener.end.changed.wait()
        listener.end.changed.clear()
        frame = between.passed[-1]
        if what == "changed":
            frame = frame[:-1] + b"!"
        elif what == "of another connection":
            another = Handshake(SECRET, OWN, b"c" * 32).prove(Handshake(SECRET, THEIRS, b"s" * 32).hello(), THEIRS)
            assert another is not None
            frame = frame[:4] + another[2].caller.of(b"first") + b"first"
        elif what == "back":
            # A message of the accepting node is not valid in the other direction.
            seal = listener.end.channel._outgoing.of(b"first")
            frame = frame[:4] + seal + b"first"
        assert between.writer is not None
        between.writer.write(frame)
        await listener.end.changed.wait()
        assert (listener.end.got, listener.end.over) == ([b"first"], ["a message with an invalid MAC"])
        end.channel.abort()


async def test_a_replayed_proof_is_refused() -> None:
    async with Listener() as listener, Between(listener.address) as between:
        end = End()
        await dial(ClusterLimits(), SECRET, OWN, THEIRS, between.address, end)
        end.channel.abort()
        reader, writer = await connected(listener.address)
        writer.write(between.passed[0])
        assert set(await until_closed(reader)) <= {0}
        assert (listener.arrivals, len(listener.refusals)) == ([OWN], 1)
        writer.close()


async def test_frames_are_reassembled_from_any_segments() -> None:
    async with Listener() as listener:
        end = End()
        await dial(ClusterLimits(), SECRET, OWN, THEIRS, listener.address, end)
        sent = []
        channel = end.channel
        transport, channel._transport = channel._transport, _Cut(sent)
        for size in (0, 1, 3, 70_000):
            channel.send(b"p" * size)
        whole = b"".join(sent)
        for first in range(120):
            transport.write(whole[first : first + 1])
            await asyncio.sleep(0)
        transport.write(whole[120:])
        while len(listener.end.got) < 4:
            await listener.end.changed.wait()
            listener.end.changed.clear()
        assert [len(payload) for payload in listener.end.got] == [0, 1, 3, 70_000]
        channel._transport = transport
        channel.abort()


class _Cut:
    def __init__(self, sent: list[bytes]) -> None:
        self._sent = sent

    def write(self, data: bytes) -> None:
        self._sent.append(data)


@each("address", ["127.0.0.1:1", "127.0.0.1:70000", "nowhere", "", "[::1]:x", "x" * 300 + ":1", "\ud800:1"])
async def test_an_invalid_address_is_unreachable(address: str) -> None:
    with pytest.raises(PeerUnreachable):
        await dial(ClusterLimits(), SECRET, OWN, THEIRS, address, End())


async def test_dialing_a_silent_listener_times_out() -> None:
    silent = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
    address = f"127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    with pytest.raises(PeerUnreachable, match="no answer in time"):
        await dial(ClusterLimits(connect_timeout_us=50_000), SECRET, OWN, THEIRS, address, End())
    silent.close()


async def test_nodes_connect_over_ipv6() -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    listener = Listener()
    try:
        async with listener:
            server = await asyncio.get_running_loop().create_server(listener.make, "::1", 0)
            end = End()
            port = server.sockets[0].getsockname()[1]
            await dial(ClusterLimits(), SECRET, OWN, THEIRS, f"[::1]:{port}", end)
            end.channel.abort()
            server.close()
    except OSError as error:
        pytest.skip(f"no IPv6 loopback address here: {error}")
    assert listener.arrivals == [OWN]


async def test_a_refused_connection_is_not_read_again() -> None:
    async with Listener() as listener:
        host, _, port = listener.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        proven = Handshake(SECRET, OWN, b"c" * 32).prove(await reader.readexactly(63), THEIRS)
        assert proven is not None
        writer.write(b"x" * len(proven[0]) + proven[0])
        assert set(await until_closed(reader)) <= {0}
        assert (listener.arrivals, len(listener.refusals)) == ([], 1)
        writer.close()


async def test_an_authenticated_connection_has_no_handshake_timeout() -> None:
    async with Listener() as listener:
        end = End()
        await dial(ClusterLimits(), SECRET, OWN, THEIRS, listener.address, end)
        end.channel.send(b"x")
        await listener.end.changed.wait()
        late = listener.end.channel._late
        assert late is not None
        assert late.cancelled()
        end.channel.abort()


async def test_a_connection_reports_congestion_and_its_end() -> None:
    async with Listener() as listener:
        end = End()
        reported: list[bool] = []
        end.writable = lambda: reported.append(end.channel.congested)  # type: ignore[method-assign]
        await dial(ClusterLimits(), SECRET, OWN, THEIRS, listener.address, end)
        end.channel.pause_writing()
        assert (end.channel.congested, reported) == (True, [])
        end.channel.resume_writing()
        assert reported == [False]
        end.channel.abort()
