"""Fixtures of real servers: one a kind and process, of DynamoDB, Cassandra and MongoDB one a test run; fresh data for each
test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.cassandra import CassandraServer
from tests.support.dynamodb import DynamoServer
from tests.support.mongodb import MongoServer
from tests.support.mysql import MysqlServer
from tests.support.nats import NatsServer
from tests.support.postgresql import PostgresServer
from tests.support.program import running
from tests.support.shared import shared_by_run


@pytest.fixture(scope="session")
def shared_postgresql() -> Iterator[PostgresServer]:
    """A shared server that tests must not stop; `postgresql` is one for a single test."""
    with running(PostgresServer()) as server:
        yield server


@pytest_asyncio.fixture
async def postgresql_url(shared_postgresql: PostgresServer) -> str:
    """The URL of an empty database."""
    return await shared_postgresql.create_database()


@pytest.fixture
def postgresql() -> Iterator[PostgresServer]:
    """A server of the test's own, running, to be stopped and killed at will."""
    with running(PostgresServer(fsync=True)) as server:
        yield server


@pytest.fixture(scope="session")
def shared_nats() -> Iterator[NatsServer]:
    """A shared server that tests must not stop; use a separate subject prefix on it. `nats` is one for a single test."""
    with running(NatsServer()) as server:
        yield server


@pytest.fixture
def nats() -> Iterator[NatsServer]:
    """A server of the test's own, running, to be stopped and killed at will."""
    with running(NatsServer()) as server:
        yield server


@pytest.fixture(scope="session")
def shared_mysql() -> Iterator[MysqlServer]:
    """A shared server that tests must not stop; `mysql` is one for a single test."""
    with running(MysqlServer()) as server:
        yield server


@pytest.fixture
def mysql_url(shared_mysql: MysqlServer) -> str:
    """The URL of a database of the test's own, which doesn't exist yet."""
    return shared_mysql.new_url()


@pytest.fixture
def mysql() -> Iterator[MysqlServer]:
    """A server of the test's own, running, to be stopped and killed at will."""
    with running(MysqlServer(fsync=True)) as server:
        yield server


@pytest.fixture(scope="session")
def shared_dynamodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DynamoServer]:
    """A server that nobody may stop; take `dynamodb` for one's own. All processes of a test run share it."""
    with shared_by_run(_folder_of_run(tmp_path_factory), "dynamodb", DynamoServer()) as server:
        yield server


def _folder_of_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all processes of a test run."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture
def dynamodb_url(shared_dynamodb: DynamoServer) -> str:
    """The URL of a table of the test's own, which doesn't exist yet."""
    return shared_dynamodb.new_url()


@pytest.fixture
def dynamodb() -> Iterator[DynamoServer]:
    """A server of the test's own, running, to be stopped and killed at will; its data are on disk."""
    with running(DynamoServer(kept=True)) as server:
        yield server


@pytest.fixture(scope="session")
def shared_cassandra(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CassandraServer]:
    """A server that nobody may stop; take `cassandra` for one's own. All processes of a test run share it."""
    with shared_by_run(_folder_of_run(tmp_path_factory), "cassandra", CassandraServer()) as server:
        yield server


@pytest.fixture
def cassandra_url(shared_cassandra: CassandraServer) -> str:
    """The URL of a keyspace of the test's own, which doesn't exist yet."""
    return shared_cassandra.new_url()


@pytest.fixture
def cassandra() -> Iterator[CassandraServer]:
    """A server of the test's own, running, to be stopped and killed at will."""
    with running(CassandraServer()) as server:
        yield server


@pytest.fixture(scope="session")
def shared_mongodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongoServer]:
    """A server that nobody may stop; take `mongodb` for one's own. All processes of a test run share it."""
    with shared_by_run(_folder_of_run(tmp_path_factory), "mongodb", MongoServer(synced=False)) as server:
        yield server


@pytest.fixture
def mongodb_url(shared_mongodb: MongoServer) -> str:
    """The URL of a database of the test's own, which doesn't exist yet."""
    return shared_mongodb.new_url()


@pytest.fixture
def mongodb() -> Iterator[MongoServer]:
    """A server of the test's own, running, to be stopped and killed at will."""
    with running(MongoServer()) as server:
        yield server
