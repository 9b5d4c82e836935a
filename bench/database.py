"""Real database servers for a benchmark, whose processor time is measured. They sync like production servers, except DynamoDB
Local."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.support.cassandra import CassandraServer
from tests.support.dynamodb import DynamoServer
from tests.support.mongodb import MongoServer
from tests.support.mysql import MysqlServer
from tests.support.postgresql import PostgresServer

from bench.processes import TICK_S, children, times

#: Differences from PostgreSQL's defaults, as recommended for a dedicated machine (docs/how-to/postgresql.md).
SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "15min",
    "wal_compression": "on",
    "autovacuum_naptime": "10s",
    "max_connections": "200",
}


#: Differences from MariaDB's defaults, likewise (docs/how-to/mysql.md).
MYSQL_SETTINGS = {"innodb_buffer_pool_size": "1G", "innodb_log_file_size": "2G"}


class Database:
    """A running PostgreSQL server and the processor time of all of its processes."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    @property
    def port(self) -> int:
        """Port on the loopback address."""
        return self._server.port

    def url(self, database: str = "postgres") -> str:
        """URL of one of its databases."""
        return self._server.url(database)

    async def create(self) -> str:
        """The URL of a new, empty database."""
        return await self._server.create_database()

    def cpu_s(self) -> float:
        """Processor seconds so far, including backends and workers that have ended."""
        assert self._server.process is not None
        main = self._server.process.pid
        # The main process has waited for ended children, so their time is in its third and fourth field.
        ticks = sum(times(main)[:4])
        for child in children(main):
            # A child that ends at this moment is counted by the next call.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                ticks += sum(times(child)[:2])
        return ticks * TICK_S


class Mysql:
    """A running MariaDB or MySQL server and its processor time."""

    def __init__(self, server: MysqlServer) -> None:
        self._server = server

    def url(self, database: str = "bench") -> str:
        """URL of one of its databases, which need not exist."""
        return self._server.url(database)

    def cpu_s(self) -> float:
        """Processor seconds so far."""
        assert self._server.process is not None
        return sum(times(self._server.process.pid)[:2]) * TICK_S


class JavaServer:
    """A running Cassandra, or a DynamoDB Local, and its processor time. The latter has its data in memory: it shows what the
    client costs, and nothing about the speed of the service."""

    def __init__(self, server: DynamoServer | CassandraServer) -> None:
        self._server = server

    def url(self, name: str = "bench") -> str:
        """URL of a table or keyspace, which need not exist."""
        return self._server.url(name)

    def cpu_s(self) -> float:
        """Processor seconds so far."""
        assert self._server.process is not None
        return sum(times(self._server.process.pid)[:2]) * TICK_S


class MongoStandIn:
    """The running stand-in for MongoDB, which syncs each commit, and its processor time. It shows what the client costs, and
    nothing about MongoDB's speed."""

    def __init__(self, server: MongoServer) -> None:
        self._server = server

    def url(self, database: str = "bench") -> str:
        """URL of one of its databases, which need not exist."""
        return self._server.url(database)

    def cpu_s(self) -> float:
        """Processor seconds so far."""
        assert self._server.process is not None
        return sum(times(self._server.process.pid)[:2]) * TICK_S


@contextlib.contextmanager
def database(**settings: str) -> Iterator[Database]:
    """Starts a server with fsync on; stops it and removes its data at the end."""
    server = PostgresServer(fsync=True, settings={**SETTINGS, **settings})
    try:
        server.init()
        server.start()
        yield Database(server)
    finally:
        server.remove()


@contextlib.contextmanager
def mysql() -> Iterator[Mysql]:
    """Starts a server that syncs every commit; stops it and removes its data at the end."""
    server = MysqlServer(fsync=True, settings=MYSQL_SETTINGS)
    try:
        server.init()
        server.start()
        yield Mysql(server)
    finally:
        server.remove()


@contextlib.contextmanager
def dynamodb() -> Iterator[JavaServer]:
    """Starts DynamoDB Local; stops it at the end."""
    server = DynamoServer()
    try:
        server.start()
        yield JavaServer(server)
    finally:
        server.remove()


@contextlib.contextmanager
def cassandra() -> Iterator[JavaServer]:
    """Starts a node of Cassandra that syncs every commit; stops it at the end."""
    server = CassandraServer(sync="group", heap="1G")
    try:
        server.start()
        yield JavaServer(server)
    finally:
        server.remove()


@contextlib.contextmanager
def mongodb() -> Iterator[MongoStandIn]:
    """Starts the stand-in for MongoDB; stops it and removes its data at the end."""
    server = MongoServer()
    try:
        server.start()
        yield MongoStandIn(server)
    finally:
        server.remove()
