"""Connecting to a destination: names, addresses, ports, certificates, and egress rules."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trustme
from callback_receivers import OK, Peer, keep_answering
from name_servers import Names
from tests.support.cases import each
from tests.support.needs import lacking
from tests.support.ports import free_port

from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.limits import CallbackLimits
from tocsin.model.answer import NoResponse, Refused, Response

TOOK = Response(200, b'{"ok":true}')


async def test_a_refused_port(client: Any) -> None:
    port = free_port()
    exchange = await client.call(f"http://127.0.0.1:{port}/")
    assert exchange.outcome.code == "CONNECTION_FAILED"
    assert f"127.0.0.1 port {port}" in exchange.outcome.detail
    assert not exchange.outcome.final
    assert exchange.sent_at is None


async def test_a_dead_host(dead_port: int, client: Any) -> None:
    exchange = await client.call(f"http://127.0.0.1:{dead_port}/", timeout_us=100_000)
    assert exchange.outcome == NoResponse("TIMEOUT", "no connection was established within 0.1 s")
    assert exchange.duration_us >= 100_000
    assert exchange.sent_at is None


async def test_a_dead_resolver(client_with: Any) -> None:
    async def never(host: str) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    exchange = await client_with(lookup=never).call("http://hooks.example/", timeout_us=50_000)
    assert exchange.outcome.code == "TIMEOUT"


async def test_the_system_s_resolver(receive: Any, client: Any) -> None:
    receiver = await receive(keep_answering)
    assert (await client.call(f"http://localhost:{receiver.port}/")).outcome == TOOK
    assert receiver.requests[0][1]["host"] == f"localhost:{receiver.port}"


async def test_ipv6(receive: Any, client: Any) -> None:
    try:
        receiver = await receive(keep_answering, host="::1")
    except OSError:
        lacking("ipv6", "there is no IPv6 loopback address")
    assert (await client.call(receiver.url)).outcome == TOOK
    assert receiver.requests[0][1]["host"] == f"[::1]:{receiver.port}"


async def test_concurrent_lookups_of_a_name_share_a_query(receive: Any, client_with: Any) -> None:
    names = Names(hooks_example=["127.0.0.1"])
    receiver = await receive(keep_answering)
    client = client_with(lookup=names)
    url = f"http://hooks.example:{receiver.port}/"
    exchanges = await asyncio.gather(*[client.begin(url) for _ in range(50)])
    assert {exchange.outcome for exchange in exchanges} == {TOOK}
    assert names.asked == ["hooks.example"]


async def test_resolved_addresses_expire(receive: Any, client_with: Any) -> None:
    names = Names(hooks_example=["127.0.0.1"])
    receiver = await receive(keep_answering)
    client = client_with(lookup=names, limits=CallbackLimits(dns_ttl_us=0, idle_connections_max=0))
    for _ in range(3):
        assert (await client.call(f"http://hooks.example:{receiver.port}/")).outcome == TOOK
    assert len(names.asked) == 3


async def test_the_resolver_cache_is_bounded(receive: Any, client_with: Any) -> None:
    names = Names(a_example=["127.0.0.1"], b_example=["127.0.0.1"])
    receiver = await receive(keep_answering)
    client = client_with(lookup=names, limits=CallbackLimits(dns_names_cached_max=1, idle_connections_max=0))
    for host in ("a", "b", "b", "a"):
        assert (await client.call(f"http://{host}.example:{receiver.port}/")).outcome == TOOK
    assert names.asked == ["a.example", "b.example", "a.example"]


async def test_resolver_failures_are_not_cached(receive: Any, client_with: Any) -> None:
    names = Names(empty_example=[])
    receiver = await receive(keep_answering)
    client = client_with(lookup=names)
    for host in ("hooks", "empty"):
        outcome = (await client.call(f"http://{host}.example:{receiver.port}/")).outcome
        assert (outcome.code, outcome.final) == ("NAME_NOT_RESOLVED", False)
        assert f"{host}.example" in outcome.detail
    names.addresses["hooks.example"] = ["127.0.0.1"]
    assert (await client.call(f"http://hooks.example:{receiver.port}/")).outcome == TOOK


async def test_a_faulty_resolver_fails_only_its_calls(receive: Any, client_with: Any) -> None:
    async def faulty(host: str) -> Sequence[str]:
        raise LookupError("no such luck")

    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context["exception"]))
    receiver = await receive(keep_answering)
    client = client_with(lookup=faulty)
    assert (await client.call("http://hooks.example/")).outcome.code == "CONNECTION_FAILED"
    assert (await client.call(receiver.url)).outcome == TOOK
    assert [str(error) for error in reported] == ["no such luck"]


async def test_the_next_address_is_tried(receive: Any, client_with: Any) -> None:
    receiver = await receive(keep_answering)
    names = Names(hooks_example=["127.0.0.2", "127.0.0.3", "127.0.0.1"])
    client = client_with(lookup=names)
    assert (await client.call(f"http://hooks.example:{receiver.port}/")).outcome == TOOK


async def test_a_dead_address_leaves_time_for_the_next(dead_port: int, receive: Any, client_with: Any) -> None:
    with socket.socket() as answering:
        answering.bind(("127.0.0.2", dead_port))
        answering.listen()
        server = await asyncio.start_server(_answer_once, sock=answering)
        client = client_with(lookup=Names(hooks_example=["127.0.0.1", "127.0.0.2"]))
        # The dead one gets a part of this.
        exchange = await client.call(f"http://hooks.example:{dead_port}/", timeout_us=4_000_000)
        assert exchange.outcome == Response(204)
        server.close()


async def _answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    writer.close()


# -- what is forbidden


@each("host", ["127.0.0.1", "127.1", "2130706433", "[::ffff:127.0.0.1]", "hooks.example"])
async def test_private_addresses_are_refused_at_the_connection(host: str, receive: Any, client_with: Any) -> None:
    receiver = await receive(keep_answering)
    client = client_with(egress=EgressPolicy(), lookup=Names(hooks_example=["127.0.0.1", "::1"]))
    exchange = await client.call(f"http://{host}:{receiver.port}/")
    assert isinstance(exchange.outcome, Refused)
    assert exchange.outcome.code == "EGRESS_REFUSED"
    # Whoever creates timers need not know where a name leads; the operator does.
    assert ("loopback" in exchange.outcome.detail) == (host != "hooks.example")
    assert exchange.outcome.addresses in ("127.0.0.1", "::ffff:7f00:1", "127.0.0.1, ::1")
    assert exchange.sent_at is None
    assert receiver.connections == 0


async def test_connections_of_former_rules_are_not_used(receive: Any, client_with: Any) -> None:
    asked, answering = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(OK)
        await peer.request()
        asked.set()
        await answering.wait()
        await peer.send(OK)

    receiver, other = await receive(script), await receive(keep_answering)
    egress = EgressPolicy(allow_private=True)
    client = client_with(egress=egress)
    for first in [client.begin(receiver.url) for _ in range(2)]:
        assert (await first).outcome == TOOK
    # One of two connections is in use, the other idle; a third is being opened.
    busy = client.begin(receiver.url)
    await asked.wait()
    opening = client.begin(other.url)
    egress.allow_private = False
    client.caller.rules_changed()
    assert isinstance((await opening).outcome, Refused)
    assert isinstance((await client.call(receiver.url)).outcome, Refused)
    answering.set()
    assert (await busy).outcome == TOOK
    assert isinstance((await client.call(receiver.url)).outcome, Refused)
    assert client.caller.connections == 0
    assert (len(receiver.requests), len(other.requests)) == (3, 0)


async def test_only_permitted_addresses_are_connected_to(receive: Any, client_with: Any) -> None:
    receiver = await receive(keep_answering, host="0.0.0.0")
    names = Names(hooks_example=["127.0.0.2", "10.0.0.1", "127.0.0.1"])
    client = client_with(egress=EgressPolicy(allow=["127.0.0.1"]), lookup=names)
    assert (await client.call(f"http://hooks.example:{receiver.port}/")).outcome == TOOK


async def test_a_name_that_changes_to_a_private_address_is_refused(receive: Any, client_with: Any) -> None:
    receiver = await receive(keep_answering)
    names = Names(hooks_example=["127.0.0.1"])
    limits = CallbackLimits(dns_ttl_us=0, idle_connections_max=0)
    client = client_with(egress=EgressPolicy(allow=["127.0.0.1"]), lookup=names, limits=limits)
    url = f"http://hooks.example:{receiver.port}/"
    assert (await client.call(url)).outcome == TOOK
    names.addresses["hooks.example"] = ["169.254.169.254"]
    assert (await client.call(url)).outcome.code == "EGRESS_REFUSED"


async def test_a_redirect_to_a_private_address_is_not_followed(receive: Any, client_with: Any) -> None:
    inside = await receive(keep_answering)

    async def script(peer: Any) -> None:
        await peer.request()
        await peer.send(f"HTTP/1.1 307 Go\r\nlocation: {inside.url}\r\ncontent-length: 0\r\n\r\n".encode())

    outside = await receive(script)
    client = client_with(egress=EgressPolicy(allow=[f"127.0.0.1:{outside.port}"]))
    assert (await client.call(outside.url)).outcome == Response(307)
    assert inside.connections == 0


# -- TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """A certificate authority that only the clients of these tests trust."""
    return trustme.CA()


def serving(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    """A receiver's context, with a certificate for these names."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """A client's context that trusts the authority."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_tls(authority: trustme.CA, receive: Any, client_with: Any) -> None:
    context = serving(authority, "hooks.example")
    asked_for: list[str] = []
    context.sni_callback = lambda connection, name, context: asked_for.append(name)
    receiver = await receive(keep_answering, tls=context)
    client = client_with(tls=trusting(authority), lookup=Names(hooks_example=["127.0.0.1"]))
    for _ in range(3):
        assert (await client.call(f"https://hooks.example:{receiver.port}/")).outcome == TOOK
    assert receiver.connections == 1
    assert asked_for == ["hooks.example"]


async def test_tls_to_an_address(authority: trustme.CA, receive: Any, client_with: Any) -> None:
    receiver = await receive(keep_answering, tls=serving(authority, "127.0.0.1"))
    assert (await client_with(tls=trusting(authority)).call(receiver.url)).outcome == TOOK


async def test_a_certificate_for_another_name(authority: trustme.CA, receive: Any, client_with: Any) -> None:
    receiver = await receive(keep_answering, tls=serving(authority, "other.example"))
    client = client_with(tls=trusting(authority), lookup=Names(hooks_example=["127.0.0.1"]))
    exchange = await client.call(f"https://hooks.example:{receiver.port}/")
    assert (exchange.outcome.code, exchange.outcome.final) == ("TLS_FAILED", False)
    assert "hooks.example" in exchange.outcome.detail
    assert exchange.sent_at is None
    assert receiver.requests == []


async def test_an_untrusted_certificate_is_refused(authority: trustme.CA, receive: Any, client: Any) -> None:
    receiver = await receive(keep_answering, tls=serving(authority, "127.0.0.1"))
    outcome = (await client.call(receiver.url)).outcome
    assert outcome.code == "TLS_FAILED"
    assert "certificate" in outcome.detail


async def test_authorities_of_the_environment_s_file_are_trusted(
    authority: trustme.CA, receive: Any, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.crt"))
    receiver = await receive(keep_answering, tls=serving(authority, "127.0.0.1"))
    assert (await client.call(receiver.url)).outcome == TOOK


async def test_tls_to_a_plain_text_port_fails(receive: Any, client: Any) -> None:
    async def script(peer: Any) -> None:
        await peer.reader.read(1)
        await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    receiver = await receive(script)
    outcome = (await client.call(receiver.url.replace("http:", "https:"))).outcome
    assert outcome.code in ("TLS_FAILED", "CONNECTION_FAILED")


async def test_a_handshake_that_hangs(receive: Any, client: Any) -> None:
    async def script(peer: Any) -> None:
        await peer.closed_by_client()

    receiver = await receive(script)
    exchange = await client.call(receiver.url.replace("http:", "https:"), timeout_us=80_000)
    assert exchange.outcome.code == "TIMEOUT"
    await receiver.closed.wait()
