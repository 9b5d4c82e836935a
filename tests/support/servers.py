"""Fixtures of real servers: one a kind and process, of DynamoDB and Cassandra one a test run, of MongoDB one a module; fresh
data for each test. Nobody may stop a shared server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

import pytest
import pytest_asyncio

from tests.support.cassandra import CassandraServer
from tests.support.dynamodb import DynamoServer
from tests.support.mongodb import MongoServer
from tests.support.mysql import MysqlServer
from tests.support.nats import NatsServer
from tests.support.postgresql import PostgresServer
from tests.support.program import ServerProgram, running
from tests.support.shared import shared_by_run


def _own(make: Callable[[], ServerProgram]) -> Any:
    """A server of the test's own, running, to be stopped and killed at will."""

    @pytest.fixture
    def server() -> Iterator[ServerProgram]:
        with running(make()) as started:
            yield started

    return server


def _of_process(make: Callable[[], ServerProgram], scope: Literal["session", "module"] = "session") -> Any:
    """A server that all tests of a process share, or those of a module."""

    @pytest.fixture(scope=scope)
    def server() -> Iterator[ServerProgram]:
        with running(make()) as started:
            yield started

    return server


def _of_run(name: str, make: Callable[[], ServerProgram]) -> Any:
    """A server that all processes of a test run share."""

    @pytest.fixture(scope="session")
    def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProgram]:
        folder = tmp_path_factory.getbasetemp()
        with shared_by_run(folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder, name, make()) as started:
            yield started

    return server


def _new_url(shared: str) -> Any:
    """The URL of a database, keyspace or table of the test's own, which doesn't exist yet."""

    @pytest.fixture
    def url(request: pytest.FixtureRequest) -> str:
        return str(request.getfixturevalue(shared).new_url())

    return url


shared_postgresql = _of_process(PostgresServer)
postgresql = _own(partial(PostgresServer, fsync=True))


@pytest_asyncio.fixture
async def postgresql_url(shared_postgresql: PostgresServer) -> str:
    """The URL of an empty database."""
    return await shared_postgresql.create_database()


#: Each test uses subjects with a prefix of its own.
shared_nats = _of_process(NatsServer)
nats = _own(NatsServer)
shared_mysql = _of_process(MysqlServer)
mysql = _own(partial(MysqlServer, fsync=True))
mysql_url = _new_url("shared_mysql")
shared_dynamodb = _of_run("dynamodb", DynamoServer)
#: Its data are on disk.
dynamodb = _own(partial(DynamoServer, kept=True))
dynamodb_url = _new_url("shared_dynamodb")
shared_cassandra = _of_run("cassandra", CassandraServer)
cassandra = _own(CassandraServer)
cassandra_url = _new_url("shared_cassandra")
#: It starts in half a second. When all processes of a test run used one, their transactions held each other up, until lists
#: that take milliseconds were not answered for 100 s.
shared_mongodb = _of_process(partial(MongoServer, synced=False), "module")
mongodb = _own(MongoServer)
mongodb_url = _new_url("shared_mongodb")
