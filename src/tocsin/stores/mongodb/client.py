"""The connection to a replica set: checks at the start, sessions, transactions, translated errors."""

from __future__ import annotations

import asyncio
import datetime
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

import pymongo
from bson.timestamp import Timestamp
from pymongo import AsyncMongoClient, errors
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import ReadPreference
from pymongo.write_concern import WriteConcern

from tocsin.model.errors import ConfigError, OutcomeUnknown, StoreUnavailable
from tocsin.ports.store import StoreFacts
from tocsin.stores.mongodb.address import DatabaseAddress
from tocsin.stores.mongodb.documents import uuid_binary
from tocsin.stores.mongodb.errors import (
    TRANSLATED,
    is_conflict,
    is_denied,
    text_of,
    translate_error,
)
from tocsin.stores.options import MongoOptions

T = TypeVar("T")

Document: TypeAlias = dict[str, Any]
Session: TypeAlias = AsyncClientSession
Collection: TypeAlias = AsyncCollection[Document]

#: The wire version of MongoDB 5.0.
_WIRE_VERSION_MIN, _VERSION_MIN = 13, "5.0"
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_MAJORITY = WriteConcern(w="majority", j=True)
#: The first pause before a transaction is repeated, at most, and how long it may become.
_PAUSE_FIRST_S, _PAUSE_MAX_S = 0.01, 0.2


class MongoClient:
    """A pool of connections. All writes wait for the journals of a majority; all reads are of what a majority has, on the
    primary, and not older than what this client last wrote or read."""

    def __init__(self, address: DatabaseAddress, options: MongoOptions) -> None:
        self.address = address
        self.options = options
        self._client: AsyncMongoClient[Document] | None = None
        #: The session in which each shard's claims and batches are written.
        self._sessions: dict[int, Session] = {}
        #: The greatest operation time seen: reads wait until the server has reached it.
        self._time: Timestamp | None = None

    @property
    def place(self) -> str:
        """The database for people."""
        return self.address.place

    async def open(self) -> None:
        """Connects and checks the server. Raises ConfigError, StoreUnavailable."""
        options = self.options
        try:
            self._client = AsyncMongoClient(
                self.address.url,
                appname=options.application_name,
                timeoutMS=round(options.operation_timeout_s * 1e3),
                serverSelectionTimeoutMS=round(options.connect_timeout_s * 1e3),
                connectTimeoutMS=round(options.connect_timeout_s * 1e3),
                maxPoolSize=options.connections_max,
                datetime_conversion="DATETIME_AUTO",
            )
            with pymongo.timeout(options.connect_timeout_s):
                await self._client.aconnect()
                self._check(await self._admin("hello"))
                await self._check_durable()
        except TRANSLATED as error:
            await self.close()
            if isinstance(error, errors.ConfigurationError) or is_denied(error):
                # No retry helps.
                raise ConfigError(f"store: {self.place}: {text_of(error)}") from error
            raise translate_error(error, self.place, in_doubt=False) from error
        except BaseException:
            await self.close()
            raise

    def _check(self, hello: Document) -> None:
        if "setName" not in hello and hello.get("msg") != "isdbgrid":
            raise ConfigError(
                f"store: {self.place} is a server outside a replica set, which has no transactions; start mongod with "
                "--replSet NAME and run rs.initiate() in mongosh once"
            )
        if hello["maxWireVersion"] < _WIRE_VERSION_MIN:
            raise ConfigError(
                f"store: {self.place} is older than MongoDB {_VERSION_MIN}, which Tocsin requires; upgrade it"
            )
        if not hello.get("isWritablePrimary"):
            raise StoreUnavailable(f"{self.place} is not the primary; leave directConnection out, so that it is found")

    async def _check_durable(self) -> None:
        """Raises ConfigError for a storage engine that keeps nothing on disk."""
        try:
            engine = (await self._admin("serverStatus")).get("storageEngine", {})
        except errors.OperationFailure as error:
            if not is_denied(error):
                raise
            # Without the right, the engine stays unknown. That it keeps data on disk is the rule.
            return
        if not engine.get("persistent", True):
            raise ConfigError(
                f"store: {self.place} uses the storage engine {engine.get('name')}, which keeps nothing on disk, so that a "
                "crash loses acknowledged timers; use wiredTiger"
            )

    async def _admin(self, command: str | Document) -> Document:
        return await self._connected.admin.command(command)

    async def close(self) -> None:
        """Disconnects. Idempotent."""
        client, self._client = self._client, None
        sessions, self._sessions = self._sessions, {}
        if client is not None:
            for session in sessions.values():
                await session.end_session()
            await client.close()

    async def now(self) -> int:
        """The primary's clock in microseconds, which counts milliseconds."""
        try:
            local: datetime.datetime = (await self._admin("hello"))["localTime"]
        except TRANSLATED as error:
            raise translate_error(error, self.place, in_doubt=False) from error
        return (local - _EPOCH) // _MICROSECOND

    async def facts(self) -> StoreFacts:
        """The server's version, and the size and number of documents of the database."""
        try:
            version = (await self._admin("buildInfo"))["version"]
            stats = await self.database.command("dbStats")
        except TRANSLATED as error:
            raise translate_error(error, self.place, in_doubt=False) from error
        return StoreFacts(str(version), int(stats["totalSize"] if "totalSize" in stats else stats["storageSize"]))

    @property
    def _connected(self) -> AsyncMongoClient[Document]:
        if self._client is None:
            raise StoreUnavailable(f"{self.place} is not open")
        return self._client

    @property
    def database(self) -> AsyncDatabase[Document]:
        """The database, for reads and writes of a majority."""
        return self._connected.get_database(
            self.address.database,
            read_concern=ReadConcern("majority"),
            write_concern=_MAJORITY,
            read_preference=ReadPreference.PRIMARY,
        )

    def collection(self, name: str) -> Collection:
        """A collection of the database."""
        return self.database[name]

    # -- sessions

    def session_of(self, shard_id: int) -> Session:
        """The session of a shard's transactions, one at a time. One that was left open after a failure is ended by the next,
        and what arrives of it later is refused."""
        if shard_id not in self._sessions:
            self._sessions[shard_id] = self._start_session()
        return self._sessions[shard_id]

    def _start_session(self) -> Session:
        """A causally consistent session, to be ended by the caller."""
        session = self._connected.start_session(causal_consistency=True)
        if self._time is not None:
            session.advance_operation_time(self._time)
        return session

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[Session]:
        async with self._start_session() as session:
            try:
                yield session
            finally:
                self._observe(session)

    def _observe(self, session: Session) -> None:
        reached = session.operation_time
        if reached is not None and (self._time is None or self._time < reached):
            self._time = reached

    async def read(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """The result of reading. Each statement reads by itself."""
        try:
            async with self._session() as session:
                return await work(session)
        except TRANSLATED as error:
            raise translate_error(error, self.place, in_doubt=False) from error

    async def write(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """The result of a write of one document, or of several independent ones. The driver repeats it once if the answer is
        lost, and MongoDB does it once."""
        try:
            async with self._session() as session:
                return await work(session)
        except TRANSLATED as error:
            raise translate_error(error, self.place, in_doubt=True) from error

    async def change(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """The result of a transaction of its own."""
        async with self._session() as session:
            return await self.transaction(session, lambda: work(session))

    async def snapshot(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """The result of reading from one snapshot, which contains all that was durable when the call began: a transaction
        without writes, whose commit fails if another server has become the primary."""
        async with self._session() as session:
            try:
                return await self.transaction(session, lambda: work(session))
            except OutcomeUnknown as error:
                # It wrote nothing.
                raise StoreUnavailable(str(error)) from error

    async def transaction(self, session: Session, work: Callable[[], Awaitable[T]]) -> T:
        """The result of the work, whose writes are durable. Repeated while MongoDB rolls it back in favour of another
        transaction. What the work raises rolls it back.

        Raises OutcomeUnknown if the commit was sent and not confirmed: it may have been done, or may still be.
        """
        pause_s = _PAUSE_FIRST_S
        for attempts_left in reversed(range(self.options.conflict_retries_max)):
            try:
                with pymongo.timeout(self.options.operation_timeout_s):
                    return await self._attempt(session, work)
            except errors.OperationFailure as error:
                if not attempts_left:
                    raise Conflict(f"{self.place}: {text_of(error)}") from error
            await asyncio.sleep(random.uniform(0, pause_s))
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)
        raise AssertionError("conflict_retries_max is zero")

    async def _attempt(self, session: Session, work: Callable[[], Awaitable[T]]) -> T:
        """Raises OperationFailure for a conflict with another transaction, and store errors for all else."""
        try:
            await session.start_transaction(
                read_concern=ReadConcern("snapshot"), write_concern=_MAJORITY, read_preference=ReadPreference.PRIMARY
            )
            result = await work()
        except TRANSLATED as error:
            await self._abort(session)
            if is_conflict(error):
                raise
            raise translate_error(error, self.place, in_doubt=False) from error
        except BaseException:
            await self._abort(session)
            raise
        try:
            await session.commit_transaction()
        except TRANSLATED as error:
            if is_conflict(error):
                raise
            raise OutcomeUnknown(
                f"{self.place}: {text_of(error)}; the outcome of the transaction is unknown"
            ) from error
        finally:
            self._observe(session)
        return result

    async def _abort(self, session: Session) -> None:
        """Rolls back. The driver ignores failures: a server that does not receive it ends the transaction by itself."""
        if session.in_transaction:
            await session.abort_transaction()

    async def end_transaction_of(self, session_id: bytes) -> None:
        """Ends another session, with a transaction in it that has not been committed."""
        try:
            await self._admin({"killSessions": [{"id": uuid_binary(session_id)}]})
        except TRANSLATED as error:
            raise translate_error(error, self.place, in_doubt=False) from error


class Conflict(StoreUnavailable):
    """The transaction was rolled back in favour of another one, each time that it was repeated."""
