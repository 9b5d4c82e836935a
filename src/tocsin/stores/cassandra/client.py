"""Requests to Cassandra over its driver, whose answers arrive in its thread and are handed to the event loop: no
thread waits for a request."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import UTC
from typing import Any, NamedTuple, TypeVar

from cassandra import ConsistencyLevel, ProtocolVersion
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import (
    DCAwareRoundRobinPolicy,
    ExponentialReconnectionPolicy,
    FallthroughRetryPolicy,
    LoadBalancingPolicy,
    RoundRobinPolicy,
    TokenAwarePolicy,
)
from cassandra.query import BatchStatement, BatchType, BoundStatement, SimpleStatement, tuple_factory

from tocsin.model.errors import ConfigError
from tocsin.ports.store import StoreFacts
from tocsin.stores.cassandra.address import Address
from tocsin.stores.cassandra.errors import TRANSLATED, refused_start, translate_error
from tocsin.stores.cassandra.keys import partition_of
from tocsin.stores.options import CassandraOptions
from tocsin.tasks import in_parallel

T = TypeVar("T")
A = TypeVar("A")

Row = tuple[Any, ...]

TABLE = "tocsin"
_HEARTBEAT_S = 2
_RECONNECT_FIRST_S, _RECONNECT_S = 0.5, 5.0
_LEVELS = {
    "quorum": (ConsistencyLevel.QUORUM, ConsistencyLevel.SERIAL),
    "local_quorum": (ConsistencyLevel.LOCAL_QUORUM, ConsistencyLevel.LOCAL_SERIAL),
}


class Write(NamedTuple):
    """A statement of a write, and its values."""

    cql: str
    values: tuple[Any, ...]


class _Prepared(NamedTuple):
    """A prepared statement, and what makes bytes of each of its values."""

    statement: Any
    serializers: tuple[Callable[[Any, int], bytes], ...]


class CassandraClient:
    """A session of a keyspace. Every request may raise the store errors; only writes raise OutcomeUnknown."""

    def __init__(self, address: Address, options: CassandraOptions) -> None:
        self.address = address
        self.options = options
        self._level, self._serial = _LEVELS[address.consistency]
        self._cluster: Any = None
        self._session: Any = None
        self._prepared: dict[str, _Prepared] = {}
        self._preparing = asyncio.Lock()
        self._gate = asyncio.Semaphore(options.parallel_max)

    @property
    def place(self) -> str:
        """The address for people."""
        return self.address.place

    def partition(self, name: str) -> str:
        """The partition key of that name."""
        return self.options.scope + name

    def shard(self, shard_id: int) -> str:
        """The partition key of a shard."""
        return self.partition(partition_of(shard_id))

    # -- life cycle

    async def open(self) -> None:
        """Connects to the cluster, not yet to the keyspace. Raises StoreUnavailable, or ConfigError for credentials."""
        await asyncio.to_thread(self._connect)

    def _connect(self) -> None:
        address, options = self.address, self.options
        profile = ExecutionProfile(
            load_balancing_policy=_routing(address.datacenter),
            # A conditional write that is sent twice may contradict itself.
            retry_policy=FallthroughRetryPolicy(),
            consistency_level=self._level,
            serial_consistency_level=self._serial,
            request_timeout=options.request_timeout_s,
            row_factory=tuple_factory,
        )
        auth = None if address.user is None else PlainTextAuthProvider(address.user, address.password or "")
        self._cluster = Cluster(
            contact_points=list(address.hosts),
            auth_provider=auth,
            ssl_context=address.ssl_context(),
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            # Without it each answer of a few packets waits for an acknowledgement that is delayed by 40 ms.
            sockopts=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
            connect_timeout=options.connect_timeout_s,
            control_connection_timeout=options.connect_timeout_s,
            application_name=options.application_name,
            # So that a frozen server is out of use after seconds, and used again soon after its return.
            idle_heartbeat_interval=_HEARTBEAT_S,
            idle_heartbeat_timeout=_HEARTBEAT_S,
            reconnection_policy=ExponentialReconnectionPolicy(_RECONNECT_FIRST_S, _RECONNECT_S),
            # What all releases of Cassandra from 4.0 on and ScyllaDB have in common, so that nothing is tried first.
            protocol_version=ProtocolVersion.V4,
            compression=False,
        )
        try:
            # All, so that `hosts` has those that can be asked.
            with _silent(logging.getLogger("cassandra.cluster")):
                self._session = self._cluster.connect(wait_for_all_pools=True)
        except TRANSLATED as error:
            known = {str(host.datacenter) for host in self._cluster.metadata.all_hosts() if host.datacenter}
            self._cluster.shutdown()
            if known and address.datacenter is not None and address.datacenter not in known:
                raise ConfigError(
                    f"store: {self.place}: there is no datacenter {address.datacenter}; there are "
                    f"{', '.join(sorted(known))}"
                ) from error
            raise refused_start(error, self.place) from error
        # Values of a query are a list or None, never a lazy result.
        self._session.default_fetch_size = None

    async def close(self) -> None:
        """Disconnects."""
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            await asyncio.to_thread(cluster.shutdown)

    def hosts(self) -> list[Any]:
        """The nodes of the cluster that can be asked."""
        connected = self._session.get_pool_state()
        return [host for host in self._cluster.metadata.all_hosts() if host in connected]

    # -- requests

    async def now(self) -> int:
        """This machine's clock, limited to the millisecond that a node of the cluster reported in between."""
        sent_us = time.time_ns() // 1_000
        rows = await self.read("SELECT cast(now() AS timestamp) FROM system.local")
        milliseconds: float = rows[0][0].replace(tzinfo=UTC).timestamp() * 1_000
        begin_us, received_us = round(milliseconds) * 1_000, time.time_ns() // 1_000
        return min(max(received_us, begin_us), begin_us + 999 + received_us - sent_us)

    async def facts(self) -> StoreFacts:
        """The version of a node of the cluster."""
        return StoreFacts(str((await self.read("SELECT release_version FROM system.local"))[0][0]))

    async def plain(self, cql: str, *, host: Any = None, timeout_s: float | None = None) -> list[Row]:
        """The rows of a statement without values, such as DDL; from this node, if one is given."""
        return await self._send(SimpleStatement(cql, consistency_level=ConsistencyLevel.ONE), False, host, timeout_s)

    async def read(self, cql: str, *values: Any, serial: bool = False) -> list[Row]:
        """The rows of a query. With `serial`, it completes or excludes what an earlier write has begun."""
        bound = await self._bound(cql, values)
        if serial:
            bound.consistency_level = self._serial
        return await self._send(bound, False)

    async def write(self, cql: str, *values: Any) -> Row:
        """Executes one conditional statement; the row of its result begins with whether it was applied."""
        return (await self._send(await self._bound(cql, values), True))[0]

    async def write_all(self, writes: Iterable[Write]) -> Row:
        """Executes statements of one partition, of which the first is conditional, as a whole or not at all."""
        # Unlogged: a batch of one partition is one write, with nothing to log.
        batch = BatchStatement(BatchType.UNLOGGED, consistency_level=self._level, serial_consistency_level=self._serial)
        first, *others = writes
        # Its partition decides where the batch is sent.
        batch.add(await self._bound(first.cql, first.values))
        version = self._cluster.protocol_version
        for cql, values in others:
            prepared = self._prepared.get(cql) or await self._prepared_now(cql)
            # What `add` does with a bound statement, which takes the larger part of a commit's processor time.
            encoded = [serialize(value, version) for serialize, value in zip(prepared.serializers, values, strict=True)]
            batch._add_statement_and_params(True, prepared.statement.query_id, encoded)
        return (await self._send(batch, True))[0]

    async def in_parallel(self, ask: Callable[[A], Awaitable[T]], arguments: Iterable[A]) -> list[T]:
        """The results of the calls, in order, at most `parallel_max` at a time."""
        return await in_parallel(ask, arguments, self._gate)

    async def _bound(self, cql: str, values: Sequence[Any]) -> BoundStatement:
        prepared = self._prepared.get(cql) or await self._prepared_now(cql)
        return prepared.statement.bind(values)

    async def _prepared_now(self, cql: str) -> _Prepared:
        async with self._preparing:
            return self._prepared.get(cql) or await self._prepare(cql)

    async def _prepare(self, cql: str) -> _Prepared:
        text = cql.replace("{t}", f"{self.address.keyspace}.{TABLE}")
        session: Session = self._session
        try:
            statement = await asyncio.to_thread(session.prepare, text)
        except TRANSLATED as error:
            raise translate_error(error, self.place, write=False) from error
        serializers = tuple(column.type.serialize for column in statement.column_metadata)
        prepared = self._prepared[cql] = _Prepared(statement, serializers)
        return prepared

    async def _send(self, statement: Any, write: bool, host: Any = None, timeout_s: float | None = None) -> list[Row]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Row]] = loop.create_future()

        def settle(rows: list[Row] | None, error: BaseException | None) -> None:
            if answer.done():
                return
            if error is None:
                answer.set_result(rows or [])
            else:
                answer.set_exception(error)

        def post(rows: list[Row] | None, error: BaseException | None = None) -> None:
            try:
                loop.call_soon_threadsafe(settle, rows, error)
            except RuntimeError:
                # The loop was closed: nobody waits any more.
                return

        timeout_s = timeout_s or self.options.request_timeout_s
        try:
            sent = self._session.execute_async(statement, timeout=timeout_s, host=host)
            sent.add_callbacks(post, lambda error: post(None, error))
            return await answer
        except TRANSLATED as error:
            raise translate_error(error, self.place, write=write) from error


@contextlib.contextmanager
def _silent(logger: logging.Logger) -> Iterator[None]:
    """Drops what the logger gets: the driver logs a traceback for each node and each try, and raises the error, too."""

    def drop(record: logging.LogRecord) -> bool:
        return False

    logger.addFilter(drop)
    try:
        yield
    finally:
        logger.removeFilter(drop)


def _routing(datacenter: str | None) -> LoadBalancingPolicy:
    return TokenAwarePolicy(RoundRobinPolicy() if datacenter is None else DCAwareRoundRobinPolicy(local_dc=datacenter))
