"""The parameters of TLS in the URL of the agent's database, before a server that ends the connection after the handshake."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from pathlib import Path

import pytest
import trustme

from tocsin.model.errors import ConfigError, StoreUnavailable
from tocsin.stores.postgresql.store import PostgresStore
from tocsin.stores.service_calls.database import agent_database


@pytest.mark.parametrize("trusted", [True, False])
async def test_the_authority_in_the_url_decides_which_server_is_trusted(trusted: bool, tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    file = tmp_path / "ca.crt"
    (authority if trusted else trustme.CA()).cert_pem.write_to_path(str(file))
    startups: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(8) == struct.pack("!ii", 8, 80877103)
        writer.write(b"S")
        # A client that does not trust the certificate ends the handshake.
        with contextlib.suppress(OSError):
            await writer.start_tls(context)
            startups.append(await reader.read(4096))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        url = f"postgresql://tocsin@127.0.0.1:{port}/tocsin?sslmode=verify-full&sslrootcert={file}"
        with pytest.raises(StoreUnavailable) as raised:
            await agent_database(url).open(wait_s=0)
    assert bool(startups) == trusted
    assert ("certificate verify failed" in str(raised.value)) != trusted


@pytest.mark.parametrize("value", ["/missing/ca.crt", "system"])
def test_a_file_that_does_not_exist_is_a_setting_to_correct(value: str) -> None:
    url = f"postgresql://tocsin@127.0.0.1/tocsin?sslmode=verify-full&sslrootcert={value}"
    for setting, opened in (("store", PostgresStore), ("agent.database", agent_database)):
        with pytest.raises(ConfigError, match=f"{setting}: sslrootcert: there is no file {value}"):
            opened(url)
