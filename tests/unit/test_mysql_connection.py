"""Connections to MySQL that break while they are opened."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections import Counter

import asyncmy.connection
import pytest
import uvloop

from tocsin.model.errors import ConfigError, StoreUnavailable, StoreUnreachable
from tocsin.sql.pool import ServerOptions
from tocsin.stores.mysql.connection import MysqlServer, connect
from tocsin.stores.options import MysqlOptions

TRIES = 30


def server(port: int) -> MysqlServer:
    options = ServerOptions(connect_timeout_s=60, statement_timeout_s=60, answer_grace_s=60)
    return MysqlServer(f"mysql://root@127.0.0.1:{port}/tocsin", options, MysqlOptions(idle_transaction_timeout_s=60))


def test_connection_closed_by_the_server_is_unavailable_not_a_config_error() -> None:
    """A balancer without a server closes connections like this. A ConfigError would end the process."""
    listener = socket.create_server(("127.0.0.1", 0))

    def hang_up() -> None:
        for _ in range(TRIES):
            connection, _ = listener.accept()
            # With RST.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()

    async def be_busy() -> None:
        """Delays each step, so that the connection can end between any two steps of opening it."""
        while True:
            time.sleep(0.002)  # noqa: ASYNC251 -- to block is its purpose
            await asyncio.sleep(0)

    async def try_again_and_again() -> Counter[type]:
        outcomes: Counter[type] = Counter()
        busy = asyncio.create_task(be_busy())
        for _ in range(TRIES):
            try:
                await connect(server(listener.getsockname()[1]))
            except (StoreUnavailable, ConfigError) as error:
                outcomes[type(error)] += 1
        busy.cancel()
        return outcomes

    hanging_up = threading.Thread(target=hang_up)
    hanging_up.start()
    # The event loop of nodes, which drops its state of a broken socket.
    outcomes = uvloop.run(try_again_and_again())
    hanging_up.join()
    listener.close()
    assert outcomes == {StoreUnreachable: TRIES}


async def test_authentication_that_needs_a_package_is_a_config_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(**arguments: object) -> None:
        raise RuntimeError(
            "'cryptography' package is required for sha256_password or caching_sha2_password auth methods"
        )

    monkeypatch.setattr(asyncmy.connection, "connect", refuse)
    with pytest.raises(ConfigError, match="ssl-mode=REQUIRED"):
        await connect(server(1))
