"""Requests to DynamoDB: sent again while that is harmless and patience lasts, counted, and dated."""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import Enum
from functools import cache
from typing import Any, TypeVar

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from botocore import exceptions as driver
from botocore.loaders import create_loader

from tocsin.model.errors import ConfigError, OutcomeUnknown, StoreError, StoreUnavailable
from tocsin.ports.observer import Observer, StoreRequestRepeated, StoreUnitsConsumed
from tocsin.stores.dynamodb.errors import (
    TRANSLATED,
    Verdict,
    failed_conditions,
    text_of,
    translate_error,
    verdict_of,
)
from tocsin.stores.dynamodb.keys import Item
from tocsin.stores.dynamodb.settings import DynamoSettings

T = TypeVar("T")

Response = dict[str, Any]

#: What BatchGetItem and BatchWriteItem take.
_BATCH_KEYS_MAX, _BATCH_WRITES_MAX = 100, 25
#: The first pause before a request is sent again, at most, and how long it may become.
_PAUSE_FIRST_S, _PAUSE_MAX_S = 0.025, 1.0
#: A server that can't be reached isn't: whoever asked has a rhythm of its own, and knows at once that nothing was done.
_AGAIN = frozenset({Verdict.THROTTLED, Verdict.CONFLICT, Verdict.UNANSWERED})
_US = 1_000_000


class Kind(Enum):
    """What is at stake when a request isn't answered: nothing (it reads); nothing but the outcome, since sending it again
    changes nothing more (a write that says what shall be, or a transaction with its token); or more than that (a write with
    a condition, which its own first copy may have made fail)."""

    READ = "read"
    WRITE = "write"
    WRITE_ONCE = "write_once"


class DynamoClient:
    """A connection pool to one region. `observe` gets what is repeated and what it costs."""

    def __init__(self, settings: DynamoSettings, observe: Observer) -> None:
        self.settings = settings
        self.observe = observe
        # A request that waits for a connection has not been sent: its time begins when it has one. Requests of which a call
        # has many share a half of them, so that heartbeats and commits never wait behind a long list.
        self._connections = asyncio.Semaphore(settings.connections_max)
        self._bulk = asyncio.Semaphore(max(1, settings.connections_max // 2))
        self._context: Any = None
        self._client: Any = None
        #: The latest estimate of each shard's size that was told, in bytes.
        self.shard_bytes: dict[int, int] = {}

    @property
    def table(self) -> str:
        """The table's name."""
        return self.settings.address.table

    @property
    def place(self) -> str:
        """The table for people."""
        return self.settings.address.place

    async def open(self) -> None:
        """Makes the client; ConfigError for a region or credentials that are missing. Nothing is sent yet."""
        settings = self.settings
        config = AioConfig(
            connect_timeout=settings.connect_timeout_s,
            read_timeout=settings.request_timeout_s,
            max_pool_connections=settings.connections_max,
            # Repeating is decided here, where it is known what is harmless.
            retries={"total_max_attempts": 1},
            parameter_validation=False,
            user_agent_extra=settings.application_name,
            # Fewer round trips to find one that is not wanted.
            account_id_endpoint_mode="disabled",
        )
        session = get_session()
        session.register_component("data_loader", _loader())
        try:
            self._context = session.create_client(
                "dynamodb",
                region_name=settings.address.region,
                endpoint_url=settings.address.endpoint,
                # Without TLS nothing is verified, and reading the system's authorities takes its time.
                verify=None if (settings.address.endpoint or "https").startswith("https") else False,
                config=config,
            )
            self._client = await self._context.__aenter__()
            if await session.get_credentials() is None:
                raise driver.NoCredentialsError
        except driver.NoRegionError as error:
            raise ConfigError(f"store: {self.place}: no region; add ?region=… or set AWS_REGION") from error
        except driver.NoCredentialsError as error:
            await self.close()
            raise ConfigError(
                f"store: {self.place}: no credentials; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role "
                "give them, and for a local DynamoDB any will do"
            ) from error
        except (driver.BotoCoreError, ValueError) as error:
            raise ConfigError(f"store: {self.place}: {error}") from error

    async def close(self) -> None:
        """Ends the connections. Idempotent."""
        context, self._context, self._client = self._context, None, None
        if context is not None:
            await context.__aexit__(None, None, None)

    async def call(self, operation: str, kind: Kind, **arguments: Any) -> Response:
        """The answer to one request, sent again as `kind` and patience allow.

        Raises ConditionFailed; StoreUnavailable, DefiniteFailure or StoreCorrupted when certainly nothing was done;
        OutcomeUnknown for a write of which nobody knows.
        """
        deadline = time.monotonic() + self.settings.patience_s
        pause_s, in_doubt = _PAUSE_FIRST_S, False
        while True:
            try:
                return await self._send(operation, kind, arguments)
            except TRANSLATED as error:
                verdict = verdict_of(error)
                if verdict is Verdict.REFUSED:
                    raise failed_conditions(error) from error
                in_doubt |= verdict is Verdict.UNANSWERED and kind is not Kind.READ
                again = verdict in _AGAIN or (in_doubt and verdict is Verdict.UNREACHABLE)
                if not again or (in_doubt and kind is Kind.WRITE_ONCE) or time.monotonic() >= deadline:
                    raise self._failure(error, verdict, in_doubt) from error
            self.observe(StoreRequestRepeated(verdict.value))
            await asyncio.sleep(random.uniform(0, pause_s))
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)

    async def _send(self, operation: str, kind: Kind, arguments: dict[str, Any]) -> Response:
        if self._client is None:
            raise StoreUnavailable(f"{self.place} is not open")
        # The driver's own time-out starts over with each byte that arrives.
        timeout_s = self.settings.connect_timeout_s + self.settings.request_timeout_s
        async with self._connections, asyncio.timeout(timeout_s):
            response: Response = await getattr(self._client, operation)(**arguments)
        consumed = response.get("ConsumedCapacity")
        if consumed is not None:
            each = consumed if isinstance(consumed, list) else [consumed]
            units = sum(float(of_table["CapacityUnits"]) for of_table in each)
            self.observe(StoreUnitsConsumed("read" if kind is Kind.READ else "write", units))
        return response

    def _failure(self, error: BaseException, verdict: Verdict, in_doubt: bool) -> StoreError:
        if in_doubt:
            return OutcomeUnknown(f"{self.place}: {text_of(error)}; what became of the write is not known")
        return translate_error(error, verdict, self.place)

    # -- requests of this table

    async def get(self, key: Item) -> Item | None:
        """The item, read consistently."""
        found = (
            await self.call(
                "get_item",
                Kind.READ,
                TableName=self.table,
                Key=key,
                ConsistentRead=True,
                ReturnConsumedCapacity="TOTAL",
            )
        ).get("Item")
        return None if found is None else dict(found)

    async def put(self, item: Item, *, kind: Kind = Kind.WRITE, **condition: Any) -> Response:
        """Writes an item whole."""
        return await self.call(
            "put_item", kind, TableName=self.table, Item=item, ReturnConsumedCapacity="TOTAL", **condition
        )

    async def update(self, key: Item, expression: str, *, kind: Kind, **more: Any) -> Response:
        """Changes attributes of an item."""
        return await self.call(
            "update_item",
            kind,
            TableName=self.table,
            Key=key,
            UpdateExpression=expression,
            ReturnConsumedCapacity="TOTAL",
            **more,
        )

    async def delete(self, key: Item, *, kind: Kind = Kind.WRITE, **more: Any) -> Response:
        """Removes an item, whether it is there or not."""
        return await self.call(
            "delete_item", kind, TableName=self.table, Key=key, ReturnConsumedCapacity="TOTAL", **more
        )

    async def transact(self, actions: Sequence[Item], **more: Any) -> Response:
        """One transaction. Its token makes a copy of it that is sent again, or comes late, do nothing."""
        return await self.call(
            "transact_write_items",
            Kind.WRITE,
            TransactItems=actions,
            ClientRequestToken=str(uuid.uuid4()),
            ReturnConsumedCapacity="TOTAL",
            **more,
        )

    async def query(self, partition: str, *, index: str | None = None, **more: Any) -> Response:
        """One page of a partition's items, read consistently. `values` of the conditions are in `more`."""
        if index is not None:
            more["IndexName"] = index
        values = more.pop("ExpressionAttributeValues", {})
        return await self.call(
            "query",
            Kind.READ,
            TableName=self.table,
            ConsistentRead=True,
            ReturnConsumedCapacity="TOTAL",
            ExpressionAttributeValues={":p": {"S": partition}, **values},
            **more,
        )

    async def all(self, partition: str) -> list[Item]:
        """All items of a partition, in the order of their sort keys."""
        items: list[Item] = []
        more: dict[str, Any] = {}
        while True:
            page = await self.query(partition, KeyConditionExpression="p = :p", **more)
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                return items
            more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    async def batch_get(self, keys: Sequence[Item]) -> list[Item]:
        """Those of the items that exist, read consistently, in any order."""
        parts = [keys[i : i + _BATCH_KEYS_MAX] for i in range(0, len(keys), _BATCH_KEYS_MAX)]
        found = await self.in_parallel(self._batch_get_part, parts)
        return [item for items in found for item in items]

    async def _batch_get_part(self, keys: Sequence[Item]) -> list[Item]:
        items: list[Item] = []

        async def ask(left: Any) -> Any:
            answer = await self.call(
                "batch_get_item", Kind.READ, RequestItems={self.table: left}, ReturnConsumedCapacity="TOTAL"
            )
            items.extend(answer.get("Responses", {}).get(self.table, ()))
            return answer.get("UnprocessedKeys", {}).get(self.table)

        await self._until_processed({"Keys": list(keys), "ConsistentRead": True}, ask)
        return items

    async def batch_delete(self, keys: Sequence[Item]) -> None:
        """Removes the items, each by itself, whether they are there or not."""
        parts = [keys[i : i + _BATCH_WRITES_MAX] for i in range(0, len(keys), _BATCH_WRITES_MAX)]
        await self.in_parallel(self._batch_delete_part, parts)

    async def _batch_delete_part(self, keys: Sequence[Item]) -> None:
        async def ask(left: Any) -> Any:
            answer = await self.call(
                "batch_write_item", Kind.WRITE, RequestItems={self.table: left}, ReturnConsumedCapacity="TOTAL"
            )
            return answer.get("UnprocessedItems", {}).get(self.table)

        await self._until_processed([{"DeleteRequest": {"Key": key}} for key in keys], ask)

    async def _until_processed(self, left: Any, ask: Callable[[Any], Awaitable[Any]]) -> None:
        """Asks until nothing is left unprocessed; StoreUnavailable when patience ends."""
        deadline, pause_s = time.monotonic() + self.settings.patience_s, _PAUSE_FIRST_S
        while left := await ask(left):
            if time.monotonic() >= deadline:
                raise StoreUnavailable(f"{self.place}: DynamoDB left a part of a request unprocessed: it is throttled")
            self.observe(StoreRequestRepeated("unprocessed"))
            await asyncio.sleep(random.uniform(0, pause_s))
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)

    async def in_parallel(self, ask: Callable[[Any], Awaitable[T]], each: Iterable[Any]) -> list[T]:
        """The answers in order, a few asked for at once. The first failure ends the others."""
        turns = asyncio.Semaphore(self.settings.parallel_max)

        async def in_turn(what: Any) -> T:
            async with turns, self._bulk:
                return await ask(what)

        arguments = list(each)
        if len(arguments) == 1:
            return [await ask(arguments[0])]
        tasks = [asyncio.ensure_future(in_turn(what)) for what in arguments]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()


@cache
def _loader() -> Any:
    """Reads the driver's description of the service once a process."""
    return create_loader()


def time_of(response: Response, sent_us: int) -> int:
    """What time it was, in microseconds, when the answer came to a request that was sent at `sent_us`: by this machine's
    clock, if that agrees with the second in which DynamoDB dates its answer; otherwise the nearest instant that does."""
    received_us = time.time_ns() // 1_000
    date = response["ResponseMetadata"]["HTTPHeaders"].get("date", "")
    try:
        begin_us = int(email.utils.parsedate_to_datetime(date).timestamp()) * _US
    except (TypeError, ValueError):
        return received_us
    # It was dated while the request was under way.
    return min(max(received_us, begin_us), begin_us + _US - 1 + max(received_us - sent_us, 0))
