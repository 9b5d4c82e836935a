"""Nodes prove to one another that they know the secret; frames can't be changed, left out, repeated or moved."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from tocsin.cluster.channel import PeerUnreachable
from tocsin.cluster.handshake import Handshake, Seal
from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.stream import Called, dial

SECRET, OTHER = "correct horse battery", "wrong horse battery!!"
OWN, THEIRS = b"o" * 16, b"t" * 16


class End:
    """Notes what comes."""

    def __init__(self) -> None:
        self.channel = None
        self.got: list[bytes] = []
        self.heard = asyncio.Event()
        self.over: list[str] = []

    def opened(self, channel) -> None:
        self.channel = channel

    def received(self, payload: bytes) -> None:
        self.got.append(payload)
        self.heard.set()

    def writable(self) -> None:
        pass

    def lost(self, reason: str) -> None:
        self.over.append(reason)
        self.heard.set()


class Listener:
    """A node that takes connections."""

    def __init__(self, secret: str = SECRET, limits: ClusterLimits | None = None) -> None:
        self.secret, self.limits = secret, limits or ClusterLimits()
        self.end, self.arrivals, self.refusals, self.strangers = End(), [], [], set()
        self.address = ""

    async def __aenter__(self) -> Listener:
        def arrived(incarnation, channel):
            self.arrivals.append(incarnation)
            self.end.opened(channel)
            return self.end

        def make() -> Called:
            refused = lambda address, reason: self.refusals.append(reason)  # noqa: E731
            return Called(self.limits, self.secret, THEIRS, arrived, refused, self.strangers)

        self.server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
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


def test_both_sides_prove_themselves_and_agree_on_seals() -> None:
    proven, accepted = shake(SECRET, SECRET)
    assert accepted is not None
    assert (accepted[0], accepted[1]) == (OWN, proven[1])
    assert proven[2].caller.of(b"x") == accepted[2].caller.of(b"x")
    assert proven[2].called.of(b"x") == accepted[2].called.of(b"x")


def test_another_secret_another_node_and_a_proof_for_another_connection_are_refused() -> None:
    assert shake(SECRET, OTHER)[1] is None
    assert shake(SECRET, SECRET, expected=b"x" * 16)[0] is None
    proven, _ = shake(SECRET, SECRET)
    another = Handshake(SECRET, THEIRS, b"S" * 32)
    assert another.check_proof(proven[0]) is None
    assert another.check_proof(b"") is None


def test_the_secret_is_in_nothing_that_is_sent() -> None:
    proven, accepted = shake(SECRET, SECRET)
    sent = Handshake(SECRET, THEIRS, b"s" * 32).hello() + proven[0] + accepted[1]
    assert SECRET.encode() not in sent
    assert hashlib.sha256(SECRET.encode()).digest() not in sent


def test_a_seal_fits_its_frame_once_and_in_order() -> None:
    sender, reader = Seal(b"k" * 32), Seal(b"k" * 32)
    first, second = sender.of(b"one"), sender.of(b"two")
    assert reader.fits(b"one", first)
    assert not reader.fits(b"one", first)
    assert not Seal(b"k" * 32).fits(b"two", second)
    assert not Seal(b"k" * 32).fits(b"One", first)


async def test_frames_go_both_ways() -> None:
    async with Listener() as listener:
        end = End()
        await dial(ClusterLimits(), SECRET, OWN, THEIRS, listener.address, end)
        end.channel.send(b"a" * 100_000)
        await listener.end.heard.wait()
        listener.end.channel.send(b"answer")
        await end.heard.wait()
        assert (listener.end.got, end.got, listener.arrivals) == ([b"a" * 100_000], [b"answer"], [OWN])
        assert not listener.strangers
        end.channel.close()


@pytest.mark.parametrize(
    ("secret", "incarnation", "reason"),
    [(OTHER, THEIRS, "`cluster_secret` is not the same"), (SECRET, OWN, "another start of the node")],
)
async def test_who_does_not_belong_is_told_why(secret: str, incarnation: bytes, reason: str) -> None:
    async with Listener() as listener:
        with pytest.raises(PeerUnreachable, match=reason):
            await dial(ClusterLimits(), secret, OWN, incarnation, listener.address, End())
        assert listener.arrivals == []


async def test_what_is_no_node_is_not_listened_to() -> None:
    async with Listener() as listener:
        host, _, port = listener.address.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n" + b"x" * 200)
        hello = await reader.readexactly(63)
        assert hello.startswith(b"TOCSIN-PEERS/1 ")
        assert set(await reader.read()) <= {0}
        assert (listener.arrivals, listener.refusals) == ([], ["it doesn't know the cluster's secret"])
        writer.close()


async def test_who_says_nothing_is_sent_away() -> None:
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
        await listener.end.heard.wait()
        assert (listener.end.got, listener.end.over) == ([], ["a message of 101 bytes"])
        await end.heard.wait()
        assert end.over
