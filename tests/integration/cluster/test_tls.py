"""TLS between nodes, with real nodes: forwarding, plain nodes, wrong authorities, and new certificates."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import ssl
from pathlib import Path

import httpx
import pytest
import trustme

from tests.support.certificates import NodeFiles
from tests.support.cluster import node, running, shared_by, until, view
from tests.support.http import Client
from tests.support.ports import free_port
from tests.support.server import ServerProcess

FAR = "2040-01-01T00:00:00Z"
TIMERS = 16
# Nodes are started several times, one after another.
pytestmark = pytest.mark.timeout(400)


def _secured(tmp_path: Path, name: str, store: str, *authorities: trustme.CA) -> tuple[ServerProcess, NodeFiles]:
    files = NodeFiles(tmp_path / f"{name}-tls")
    files.write(*authorities)
    server = node(tmp_path, name, store, steady=True)
    server.env |= files.env
    return server, files


async def _creates(server: ServerProcess, round_: str) -> list[int]:
    """The statuses of creates at once, about half of which belong to the other node's shards."""
    clients = [Client(server.address) for _ in range(TIMERS)]
    answers = await asyncio.gather(
        *(
            client.post(
                "/api/v1/timers/create",
                {"namespace": "default", "id": f"{round_}-{n}", "executeAt": FAR, "callbackUrl": "http://127.0.0.1:9/"},
            )
            for n, client in enumerate(clients)
        )
    )
    for client in clients:
        client.close()
    return [status for status, _ in answers]


async def _metrics(server: ServerProcess) -> dict[str, float]:
    async with httpx.AsyncClient() as client:
        text = (await client.get(f"{server.url}/metrics")).text
    samples = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}


async def _sees(server: ServerProcess, name: str) -> bool:
    """Whether the server gets the report of that node, over a connection between them."""
    return any(entry["node"] == name and entry["version"] for entry in (await view(server))["nodes"])


async def _see_each_other(one: ServerProcess, two: ServerProcess) -> bool:
    return await _sees(one, two.data_dir.name) and await _sees(two, one.data_dir.name)


async def test_nodes_forward_over_tls_and_take_new_certificates_of_a_new_authority(
    tmp_path: Path, postgresql_url: str
) -> None:
    former, latter = trustme.CA(), trustme.CA()
    (one, one_files), (two, two_files) = (_secured(tmp_path, name, postgresql_url, former) for name in ("one", "two"))
    async with running(one, two):
        await shared_by([one, two], {"one", "two"})
        assert set(await _creates(one, "first")) == {200}
        seen = await _metrics(one)
        assert seen['tocsin_peer_certificate_reads_total{result="loaded"}'] == 1
        assert seen["tocsin_peer_certificate_expiry_timestamp_seconds"] > 0

        # An unusable file changes nothing but the log and the metric.
        key = one_files.key.read_bytes()
        one_files.key.write_text("not a key")
        _hang_up(one)
        await until(lambda: _counted(one, 'tocsin_peer_certificate_reads_total{result="failed"}'))
        assert "peer certificate not loaded" in one.log()
        assert "cluster.tls_certificate_file" in one.log()
        one_files.key.write_bytes(key)
        assert set(await _creates(one, "second")) == {200}

        # First both trust both authorities; then the certificates change, without a signal on one node.
        for files, server in ((one_files, one), (two_files, two)):
            files.write(former, latter)
            _hang_up(server)
        await until(lambda: _loaded_again(two, 2))
        one_files.write(latter)
        two_files.write(latter)
        _hang_up(one)
        await until(lambda: _loaded_again(two, 3))
        assert await two.stop() == 0
        # A new start: all its connections are made with the new certificates.
        await two.start()
        await until(lambda: _see_each_other(one, two))
        assert set(await _creates(two, "third")) == {200}
        assert await one.stop() == 0


async def test_plain_nodes_and_certificates_of_others_are_refused(tmp_path: Path, postgresql_url: str) -> None:
    authority = trustme.CA()
    one, _ = _secured(tmp_path, "one", postgresql_url, authority)
    foreign, _ = _secured(tmp_path, "foreign", postgresql_url, trustme.CA())
    plain = node(tmp_path, "plain", postgresql_url)
    one.env["TOCSIN_CLUSTER_PORT"] = str(port := free_port())
    async with running(one, foreign, plain):
        await until(lambda: _refused(one, plain, "it connects without TLS"))
        await until(lambda: _refused(one, foreign, "the TLS handshake failed"))
        await until(lambda: _logged(foreign, "self-signed certificate in certificate chain"))
        await until(lambda: _logged(plain, "it connects with TLS, which this node does not use"))
        # A certificate of the same authority that is no node's.
        service = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
        authority.issue_cert("billing.example").configure_cert(service)
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=service, server_hostname="tocsin-node"
            )
            assert await reader.read() == b""
            writer.close()
        await until(
            lambda: _logged(one, "does not have the name tocsin-node (cluster.tls_name); its names: billing.example")
        )
        seen = await _metrics(one)
        assert seen['tocsin_peers_refused_total{reason="plain"}'] >= 1
        assert seen['tocsin_peers_refused_total{reason="tls"}'] >= 2
        assert "peer refused" in one.log()
        for other in (foreign, plain):
            assert not await _sees(one, other.data_dir.name)
            assert not await _sees(other, "one")


async def _counted(server: ServerProcess, metric: str) -> bool:
    return (await _metrics(server)).get(metric, 0) > 0


async def _loaded_again(server: ServerProcess, times: int) -> bool:
    return (await _metrics(server)).get('tocsin_peer_certificate_reads_total{result="loaded"}', 0) >= times


async def _refused(server: ServerProcess, other: ServerProcess, text: str) -> bool:
    """Whether the server has logged that, after the other one tried to connect to it."""
    assert not await _sees(other, server.data_dir.name)
    return text in server.log()


async def _logged(server: ServerProcess, text: str) -> bool:
    return text in server.log()


def _hang_up(server: ServerProcess) -> None:
    """Has the server read the files at once."""
    assert server.process is not None
    server.process.send_signal(signal.SIGHUP)
