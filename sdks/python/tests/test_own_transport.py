"""Proxies of the environment, and HTTP clients that the program gives."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
import urllib3

from proxy import Proxy
from tocsin_client import AsyncClient, Client, errors


def list_blocking(url):
    with Client(url) as client:
        return [each.name for each in client.namespaces.list()]


def list_async(url):
    async def run():
        async with AsyncClient(url) as client:
            return [each.name for each in await client.namespaces.list()]

    return asyncio.run(run())


@pytest.fixture(params=[list_blocking, list_async], ids=["urllib3", "aiohttp"])
def names(request):
    return request.param


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_proxy_of_the_environment(names, server, monkeypatch):
    with Proxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:s%40crt@127.0.0.1:{proxy.port}")
        assert "default" in names(server.url)
        assert proxy.targets == [f"{server.url}/api/v1/namespaces/list"]
        assert proxy.credentials == [urllib3.make_headers(proxy_basic_auth="me:s@crt")["proxy-authorization"]]


def test_hosts_without_proxy(names, server, monkeypatch):
    with Proxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
        assert "default" in names(server.url)
        assert proxy.targets == []


def test_a_proxy_that_is_not_supported_is_named_at_once(names, server, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5h://me:secret@127.0.0.1:1080")
    with pytest.raises(errors.InvalidArgument, match="scheme socks5h") as raised:
        names(server.url)
    assert "secret" not in str(raised.value)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert "default" in names(server.url)


def test_a_pool_that_can_not_use_the_url_is_not_asked_again(server):
    pool = urllib3.ProxyManager("http://127.0.0.1:1")
    pool.proxy = pool.proxy._replace(scheme="socks5")
    with Client(server.url, http_client=pool) as client, pytest.raises(errors.TransportError) as raised:
        client.namespaces.list()
    assert raised.value.final and not raised.value.maybe_done


def test_a_pool_of_the_program(server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")  # the pool alone decides
    pool = urllib3.PoolManager()
    with Client(server.url, http_client=pool) as client:
        client.namespaces.list()
    assert len(pool.pools) == 1
    assert pool.request("GET", server.url + "/healthz").status == 200


def test_a_session_of_the_program(server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    seen = []

    async def note(_session, _context, params):
        seen.append(params.url.path)

    async def run():
        trace = aiohttp.TraceConfig()
        trace.on_request_start.append(note)
        async with aiohttp.ClientSession(trace_configs=[trace], raise_for_status=True) as session:
            async with AsyncClient(server.url, http_client=session) as client:
                await client.namespaces.list()
            assert not session.closed

    asyncio.run(run())
    assert seen == ["/api/v1/namespaces/list"]
