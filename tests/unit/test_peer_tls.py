"""TLS between nodes: which files and certificates are refused, and who gets in."""

from __future__ import annotations

import asyncio
import datetime
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from tests.support.certificates import NodeFiles
from tests.support.patience import PATIENCE_S

from tocsin.cluster.channel import PeerUnreachable
from tocsin.cluster.handshake import ClusterSecrets
from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.stream import AcceptedConnection, TlsListener, dial
from tocsin.cluster.tls import PeerTls, TlsFiles
from tocsin.model.errors import ConfigError
from tocsin.ports.observer import Event, PeerCertificateLoaded, PeerCertificateNotLoaded

SECRET, OWN, THEIRS = "the secret of the cluster", b"o" * 16, b"t" * 16


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def files(tmp_path: Path, authority: trustme.CA) -> NodeFiles:
    made = NodeFiles(tmp_path)
    made.write(authority)
    return made


def tls_of(
    files: NodeFiles,
    observe: Callable[[Event], None] = lambda event: None,
) -> PeerTls:
    return PeerTls(TlsFiles(files.certificate, files.key, files.ca), "tocsin-node", observe)


def _foreign(files: NodeFiles) -> None:
    own = files.ca.read_bytes()
    files.write(trustme.CA())
    files.ca.write_bytes(own)


def _expired(files: NodeFiles) -> None:
    authority = trustme.CA()
    files.write(authority)
    issued = authority.issue_cert("tocsin-node", not_after=datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC))
    files.certificate.write_bytes(issued.cert_chain_pems[0].bytes())
    files.key.write_bytes(issued.private_key_pem.bytes())


def _locked(files: NodeFiles) -> None:
    key = load_pem_private_key(files.key.read_bytes(), None)
    protection = BestAvailableEncryption(b"passphrase")
    files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda files: files.ca.unlink(), "cluster.tls_ca_file: .* can't be read: No such file"),
        (lambda files: files.key.unlink(), "cluster.tls_key_file: .* can't be read: No such file"),
        (lambda files: files.ca.write_text("none"), "cluster.tls_ca_file: .* has no certificate in PEM form"),
        (lambda files: files.certificate.write_text("none"), "cluster.tls_certificate_file: .* can't be used"),
        (
            lambda files: files.key.write_bytes(trustme.CA().issue_cert("n").private_key_pem.bytes()),
            "cluster.tls_certificate_file: .*the key has to be the certificate's",
        ),
        (_locked, "cluster.tls_key_file: .* has a passphrase"),
        (_foreign, "other nodes would refuse .*: (self-signed|unable to get)"),
        (_expired, "other nodes would refuse .*: certificate has expired"),
        (
            lambda files: files.write(trustme.CA(), name="billing.example"),
            "other nodes would refuse .*hostname mismatch.* have the name tocsin-node",
        ),
    ],
)
def test_files_that_other_nodes_would_refuse_are_refused_at_the_start_and_kept_out_later(
    files: NodeFiles, spoil: Callable[[NodeFiles], object], reason: str
) -> None:
    events: list[Event] = []
    tls = tls_of(files, events.append)
    former = tls.dialing
    spoil(files)
    with pytest.raises(ConfigError, match=reason):
        tls_of(files)
    tls.refresh(always=True)
    assert [type(event) for event in events] == [PeerCertificateLoaded, PeerCertificateNotLoaded]
    assert tls.dialing is former


def test_changed_files_are_read_and_unchanged_ones_are_not(files: NodeFiles, authority: trustme.CA) -> None:
    events: list[Event] = []
    tls = tls_of(files, events.append)
    former = tls.dialing
    tls.refresh()
    assert tls.dialing is former
    files.write(authority)
    tls.refresh()
    assert tls.dialing is not former
    assert [type(event) for event in events] == [PeerCertificateLoaded] * 2


class End:
    """One side of a connection."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()

    def opened(self, channel: object) -> None:
        self.channel = channel
        self.arrived.set()

    def received(self, payload: bytes) -> None: ...

    def writable(self) -> None: ...

    def lost(self, reason: str) -> None: ...


class Node:
    """Accepts connections with TLS."""

    def __init__(self, tls: PeerTls, limits: ClusterLimits) -> None:
        self.tls, self.limits, self.end = tls, limits, End()
        self.refusals: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def make(self) -> AcceptedConnection:
        def arrived(incarnation: bytes, channel: object) -> End:
            self.end.opened(channel)
            return self.end

        return AcceptedConnection(self.limits, ClusterSecrets(SECRET), THEIRS, arrived, self.refused, {})

    def refused(self, address: str, reason: str, kind: str) -> None:
        self.refusals.put_nowait((kind, reason))

    async def connect(self, tls: PeerTls | None) -> None:
        end = End()
        await dial(self.limits, SECRET, OWN, THEIRS, self.address, end, tls)
        await self.end.arrived.wait()
        end.channel.abort()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        self.address = f"127.0.0.1:{listener.getsockname()[1]}"
        door = TlsListener(listener, self.tls, self.make, self.limits, self.refused)
        try:
            async with asyncio.timeout(PATIENCE_S):
                yield
        finally:
            door.close()


async def test_a_node_with_tls_gets_in_while_silent_connections_take_every_place(files: NodeFiles) -> None:
    tls = tls_of(files)
    node = Node(tls, ClusterLimits(unauthenticated_connections_max=2))
    async with node.listening():
        silent = [await asyncio.open_connection(*node.address.split(":")) for _ in range(4)]
        await node.connect(tls)
        for _, writer in silent:
            writer.close()


async def test_a_node_without_tls_is_refused(files: NodeFiles) -> None:
    limits = ClusterLimits(connect_timeout_us=1_000_000)
    node = Node(tls_of(files), limits)
    async with node.listening():
        with pytest.raises(PeerUnreachable):
            await node.connect(None)
        assert (await node.refusals.get())[0] == "plain"
        _reader, writer = await asyncio.open_connection(*node.address.split(":"))
        writer.write(b"\x16 is no handshake of TLS, although it begins like one")
        assert (await node.refusals.get())[0] == "tls"
        writer.close()
