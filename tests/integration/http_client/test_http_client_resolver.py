"""Name resolution: slow and dead names do not affect others; caching."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from callback_receivers import keep_answering
from name_servers import Names, NameServer

from tocsin.http_client import resolver
from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.limits import CallbackLimits
from tocsin.http_client.resolver import NoSuchName, Resolver, SystemLookup
from tocsin.model.answer import NotSent, Response

TOOK = Response(200, b'{"ok":true}')


@pytest.fixture
async def server() -> AsyncIterator[NameServer]:
    """A name server."""
    async with NameServer() as listening:
        yield listening


async def test_unresponsive_names_do_not_delay_others(server: NameServer, receive: Any, client_with: Any) -> None:
    receiver = await receive(keep_answering)
    lookup = SystemLookup([server.address])
    client = client_with(lookup=lookup)
    dead = [client.begin(f"http://h{n}.silent:{receiver.port}/") for n in range(300)]
    for n in range(10):
        assert (await client.call(f"http://h{n}.example:{receiver.port}/")).outcome == TOOK
    assert (client.caller.resolving, [call for call in dead if call.done()]) == (300, [])
    lookup.close()


async def test_name_server_errors_are_distinguished(server: NameServer, receive: Any, client_with: Any) -> None:
    receiver = await receive(keep_answering)
    lookup = SystemLookup([server.address], domains=["corp.example"])
    client = client_with(lookup=lookup)
    missing = (await client.call(f"http://hooks.missing.:{receiver.port}/")).outcome
    assert (missing.code, missing.final) == ("NAME_NOT_RESOLVED", False)
    assert (await client.call(f"http://hooks:{receiver.port}/")).outcome == TOOK
    assert "hooks.corp.example" in server.asked
    refused = await client_with(lookup=lookup, egress=EgressPolicy()).call(f"http://hooks.example:{receiver.port}/")
    assert refused.outcome.code == "EGRESS_REFUSED"
    lookup.close()


async def test_lookups_beyond_the_limit_are_not_sent(receive: Any, client_with: Any) -> None:
    receiver = await receive(keep_answering)
    names = Names(hooks_example=["127.0.0.1"])

    async def lookup(host: str) -> Sequence[str]:
        if host.endswith(".silent"):
            await asyncio.Event().wait()
        return await names(host)

    client = client_with(lookup=lookup, limits=CallbackLimits(dns_lookups_max=2, dns_ttl_us=0, idle_connections_max=0))
    assert (await client.call(f"http://hooks.example:{receiver.port}/")).outcome == TOOK
    for n in range(2):
        client.begin(f"http://h{n}.silent/")
    exchange = await client.call("http://other.example/")
    assert isinstance(exchange.outcome, NotSent)
    assert (exchange.outcome.code, exchange.sent_at) == ("RESOLVER_FULL", None)
    # What is known is used, outdated or not.
    assert (await client.call(f"http://hooks.example:{receiver.port}/")).outcome == TOOK
    assert names.asked == ["hooks.example"]


async def test_lookups_that_nobody_waits_for_give_way(receive: Any, client_with: Any) -> None:
    receiver = await receive(keep_answering)
    names = Names(hooks_example=["127.0.0.1"])
    ended = []

    async def lookup(host: str) -> Sequence[str]:
        if host.endswith(".silent"):
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(host)
        return await names(host)

    client = client_with(lookup=lookup, limits=CallbackLimits(dns_lookups_max=2))
    waiting = client.begin("http://h1.silent/")
    assert (await client.call("http://h2.silent/", timeout_us=1_000)).outcome.code == "TIMEOUT"
    assert (client.caller.resolving, ended) == (2, [])
    assert (await client.call(f"http://hooks.example:{receiver.port}/")).outcome == TOOK
    assert ended == ["h2.silent"] and not waiting.done()
    client.begin("http://h3.silent/")
    assert (await client.call("http://h4.silent/")).outcome.code == "RESOLVER_FULL"


async def test_queries_that_nobody_waits_for_are_ended_and_others_go_on(server: NameServer, monkeypatch: Any) -> None:
    monkeypatch.setattr(resolver, "_ABANDONED_MAX", 10)
    lookup = SystemLookup([server.address])
    loop = asyncio.get_running_loop()
    wanted = loop.create_task(lookup("wanted.silent"))
    abandoned = [loop.create_task(lookup(f"h{n}.silent")) for n in range(10)]
    await server.has_been_asked("wanted.silent", "h9.silent")
    server.silent = ".nobody"
    for task in abandoned:
        task.cancel()
    # As often as it takes the library to ask again by itself, it waits seconds each time.
    assert await asyncio.wait_for(wanted, 1.5) == ["127.0.0.1"]
    assert lookup._channel is not None
    assert await asyncio.to_thread(lookup._channel.wait, 0.1), "the abandoned queries go on"
    lookup.close()


async def test_a_stale_address_is_used_on_server_failure_but_not_for_a_removed_name(monkeypatch: Any) -> None:
    monkeypatch.setattr(resolver, "_STALE_ANSWER_AFTER_S", 0.01)
    over = asyncio.Event()
    answers: list[Any] = [["127.0.0.1"], OSError("no server answers"), None, NoSuchName("gone")]
    answers.append(OSError("no server answers, again"))

    async def lookup(host: str) -> Sequence[str]:
        answer = answers.pop(0)
        if answer is None:
            await over.wait()
            answer = OSError("no server answers")
        if isinstance(answer, OSError):
            raise answer
        return list(answer)

    names = Resolver(CallbackLimits(dns_ttl_us=0), lookup)
    assert [await names.resolve("hooks.example") for _ in range(3)] == [["127.0.0.1"]] * 3
    over.set()
    while names.resolving:  # noqa: ASYNC110 -- it ends by itself, within a few turns of the loop
        await asyncio.sleep(0)
    with pytest.raises(NoSuchName):
        await names.resolve("hooks.example")
    # Nor do the former addresses come back when the name server fails afterwards.
    with pytest.raises(OSError, match="again"):
        await names.resolve("hooks.example")


async def test_only_a_few_of_thousands_of_addresses_are_tried() -> None:
    names = Resolver(CallbackLimits(), Names(hooks_example=[f"10.0.{n // 250}.{n % 250}" for n in range(4_000)]))
    assert len(await names.resolve("hooks.example")) == 16
