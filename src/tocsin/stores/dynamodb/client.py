"""Requests to DynamoDB, with bounded repetition, and the time in its responses."""

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
from botocore.parsers import ResponseParserError

from tocsin.model.errors import ConfigError, OutcomeUnknown, StoreError, StoreUnavailable
from tocsin.model.retry import backoff_us
from tocsin.ports.observer import Observer, StoreRequestRepeated, StoreUnitsConsumed
from tocsin.ports.store import StoreFacts
from tocsin.stores.dynamodb.address import TableAddress
from tocsin.stores.dynamodb.errors import (
    TRANSLATED,
    ConditionFailed,
    Verdict,
    text_of,
    translate_error,
    verdict_of,
)
from tocsin.stores.dynamodb.keys import META_KEY, Item
from tocsin.stores.options import DynamoOptions
from tocsin.tasks import in_parallel

T = TypeVar("T")

Response = dict[str, Any]

#: DynamoDB's limits of BatchGetItem and BatchWriteItem.
_BATCH_KEYS_MAX, _BATCH_WRITES_MAX = 100, 25
#: The first pause before a request is sent again, at most, and how long it may become.
_PAUSE_FIRST_US, _PAUSE_MAX_US = 25_000, 1_000_000
#: UNREACHABLE is not among them: nothing was sent, and the callers retry anyway.
_AGAIN = frozenset({Verdict.THROTTLED, Verdict.CONFLICT, Verdict.UNANSWERED})
_US = 1_000_000
#: How the content type of DynamoDB's answers begins.
_CONTENT_TYPE = "application/x-amz-json-"


class RequestKind(Enum):
    """What an unanswered request means. READ: it had no effect. WRITE: it may have had its effect, and sending it again
    changes nothing more (an idempotent write, or a transaction with a token). WRITE_ONCE: it may have had its effect, and
    must not be sent again (a conditional write, whose first copy can make the second one fail)."""

    READ = "read"
    WRITE = "write"
    WRITE_ONCE = "write_once"


class DynamoClient:
    """A connection pool to one region. `observe` receives events about repeated requests and consumed capacity."""

    def __init__(self, address: TableAddress, options: DynamoOptions, observe: Observer) -> None:
        self.address = address
        self.options = options
        self.observe = observe
        # A request has not been sent while it waits for a connection: its timeout starts afterwards. Parallel requests of one
        # call share half of the connections, so that heartbeats and commits never wait for long lists.
        self._connections = asyncio.Semaphore(options.connections_max)
        self._bulk = asyncio.Semaphore(max(1, options.connections_max // 2))
        self._context: Any = None
        self._client: Any = None
        #: The latest reported size estimate of each shard, in bytes.
        self.shard_bytes: dict[int, int] = {}

    @property
    def table(self) -> str:
        """The table's name."""
        return self.address.table

    @property
    def place(self) -> str:
        """The table for people."""
        return self.address.place

    async def open(self) -> None:
        """Creates the client; sends nothing. Raises ConfigError if the region or the credentials are missing."""
        address, options = self.address, self.options
        config = AioConfig(
            connect_timeout=options.connect_timeout_s,
            read_timeout=options.request_timeout_s,
            max_pool_connections=options.connections_max,
            # `call` repeats requests: it knows which of them may be sent twice.
            retries={"total_max_attempts": 1},
            parameter_validation=False,
            user_agent_extra=options.application_name,
            # The table is addressed through the region's endpoint only.
            account_id_endpoint_mode="disabled",
        )
        session = get_session()
        session.register_component("data_loader", _loader())
        try:
            self._context = session.create_client(
                "dynamodb",
                region_name=address.region,
                endpoint_url=address.endpoint,
                # Without TLS nothing is verified; loading the system's certificate authorities would take long.
                verify=None if (address.endpoint or "https").startswith("https") else False,
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

    async def call(self, operation: str, kind: RequestKind, **arguments: Any) -> Response:
        """The response to one request, which is repeated as far as `kind` and `patience_s` permit.

        Raises ConditionFailed; StoreUnavailable, DefiniteFailure or StoreCorrupted if it certainly had no effect; and
        OutcomeUnknown for a write that may have had one.
        """
        deadline = time.monotonic() + self.options.patience_s
        failures, in_doubt = 0, False
        while True:
            try:
                return await self._send(operation, kind, arguments)
            except TRANSLATED as error:
                verdict = verdict_of(error)
                if verdict is Verdict.REFUSED:
                    raise ConditionFailed(str(error)) from error
                in_doubt |= verdict is Verdict.UNANSWERED and kind is not RequestKind.READ
                again = verdict in _AGAIN or (in_doubt and verdict is Verdict.UNREACHABLE)
                if not again or (in_doubt and kind is RequestKind.WRITE_ONCE) or time.monotonic() >= deadline:
                    raise self._failure(error, verdict, in_doubt) from error
            self.observe(StoreRequestRepeated(verdict.value))
            failures += 1
            await _pause(failures)

    async def _send(self, operation: str, kind: RequestKind, arguments: dict[str, Any]) -> Response:
        if self._client is None:
            raise StoreUnavailable(f"{self.place} is not open")
        # The driver's own time-out starts over with each byte that arrives.
        timeout_s = self.options.connect_timeout_s + self.options.request_timeout_s
        async with self._connections, asyncio.timeout(timeout_s):
            response: Response = await getattr(self._client, operation)(**arguments)
        kind_of_content = response["ResponseMetadata"]["HTTPHeaders"].get("content-type", "")
        if not kind_of_content.startswith(_CONTENT_TYPE):
            # A proxy's page with status 200, which the driver takes for an empty answer.
            raise ResponseParserError(f"an answer of type {kind_of_content!r}, which is not DynamoDB's")
        consumed = response.get("ConsumedCapacity")
        if consumed is not None:
            each = consumed if isinstance(consumed, list) else [consumed]
            units = sum(float(of_table["CapacityUnits"]) for of_table in each)
            self.observe(StoreUnitsConsumed("read" if kind is RequestKind.READ else "write", units))
        return response

    def _failure(self, error: BaseException, verdict: Verdict, in_doubt: bool) -> StoreError:
        if in_doubt:
            return OutcomeUnknown(f"{self.place}: {text_of(error)}; what became of the write is not known")
        return translate_error(error, verdict, self.place)

    # -- requests of this table

    async def _request(self, operation: str, kind: RequestKind, **arguments: Any) -> Response:
        return await self.call(operation, kind, ReturnConsumedCapacity="TOTAL", **arguments)

    async def now(self) -> int:
        """This machine's clock, limited to the second in the date of DynamoDB's response."""
        sent_us = time.time_ns() // 1_000
        response = await self._request("get_item", RequestKind.READ, TableName=self.table, Key=META_KEY)
        return time_of(response, sent_us)

    async def facts(self) -> StoreFacts:
        """The table's size, as of some hours ago."""
        table = (await self.call("describe_table", RequestKind.READ, TableName=self.table))["Table"]
        return StoreFacts(size_bytes=int(table.get("TableSizeBytes", 0)))

    async def get(self, key: Item) -> Item | None:
        """The item, read consistently."""
        response = await self._request("get_item", RequestKind.READ, TableName=self.table, Key=key, ConsistentRead=True)
        found = response.get("Item")
        return None if found is None else dict(found)

    async def put(self, item: Item, **condition: Any) -> Response:
        """Writes an item whole."""
        return await self._request("put_item", RequestKind.WRITE, TableName=self.table, Item=item, **condition)

    async def update(self, key: Item, expression: str, *, kind: RequestKind, **more: Any) -> Response:
        """Changes attributes of an item."""
        return await self._request(
            "update_item", kind, TableName=self.table, Key=key, UpdateExpression=expression, **more
        )

    async def delete(self, key: Item, **more: Any) -> Response:
        """Removes an item, whether it is there or not."""
        return await self._request("delete_item", RequestKind.WRITE, TableName=self.table, Key=key, **more)

    async def transact(self, actions: Iterable[Item], **more: Any) -> Response:
        """One transaction of actions such as {"Put": {"Item": …}}. Its token makes every repeated or late copy
        ineffective."""
        return await self._request(
            "transact_write_items",
            RequestKind.WRITE,
            TransactItems=self._in_table(actions),
            ClientRequestToken=str(uuid.uuid4()),
            **more,
        )

    async def read_together(self, gets: Iterable[Item]) -> Response:
        """Reads items in one transaction, each with a "Get"."""
        return await self._request("transact_get_items", RequestKind.READ, TransactItems=self._in_table(gets))

    def _in_table(self, actions: Iterable[Item]) -> list[Item]:
        return [{kind: {"TableName": self.table, **what}} for action in actions for kind, what in action.items()]

    async def query(self, partition: str, *, index: str | None = None, **more: Any) -> Response:
        """One page of a partition's items, read consistently."""
        if index is not None:
            more["IndexName"] = index
        values = more.pop("ExpressionAttributeValues", {})
        return await self._request(
            "query",
            RequestKind.READ,
            TableName=self.table,
            ConsistentRead=True,
            ExpressionAttributeValues={":p": {"S": partition}, **values},
            **more,
        )

    async def items(self, partition: str, *, limit: int | None = None, **more: Any) -> list[Item]:
        """The first `limit` items that a query returns, or all, page by page."""
        items: list[Item] = []
        while limit is None or len(items) < limit:
            if limit is not None:
                more["Limit"] = min(limit - len(items), self.options.page_items_max)
            page = await self.query(partition, **more)
            items += page["Items"]
            if "LastEvaluatedKey" not in page:
                break
            more["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        return items

    async def all(self, partition: str) -> list[Item]:
        """All items of a partition, in the order of their sort keys."""
        return await self.items(partition, KeyConditionExpression="p = :p")

    async def batch_get(self, keys: Sequence[Item]) -> list[Item]:
        """Those of the items that exist, read consistently, in any order."""
        parts = [keys[i : i + _BATCH_KEYS_MAX] for i in range(0, len(keys), _BATCH_KEYS_MAX)]
        found = await self.in_parallel(self._batch_get_part, parts)
        return [item for items in found for item in items]

    async def _batch_get_part(self, keys: Sequence[Item]) -> list[Item]:
        items: list[Item] = []

        async def ask(left: Any) -> Any:
            answer = await self._request("batch_get_item", RequestKind.READ, RequestItems={self.table: left})
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
            answer = await self._request("batch_write_item", RequestKind.WRITE, RequestItems={self.table: left})
            return answer.get("UnprocessedItems", {}).get(self.table)

        await self._until_processed([{"DeleteRequest": {"Key": key}} for key in keys], ask)

    async def _until_processed(self, left: Any, ask: Callable[[Any], Awaitable[Any]]) -> None:
        """Repeats what was left unprocessed. Raises StoreUnavailable after `patience_s`."""
        deadline, failures = time.monotonic() + self.options.patience_s, 0
        while left := await ask(left):
            if time.monotonic() >= deadline:
                raise StoreUnavailable(f"{self.place}: DynamoDB left a part of a request unprocessed: it is throttled")
            self.observe(StoreRequestRepeated("unprocessed"))
            failures += 1
            await _pause(failures)

    async def in_parallel(self, ask: Callable[[Any], Awaitable[T]], arguments: Iterable[Any]) -> list[T]:
        """The results in order, with a limited number of requests at once. The first failure cancels the others."""
        return await in_parallel(ask, arguments, asyncio.Semaphore(self.options.parallel_max), self._bulk)


async def _pause(failures: int) -> None:
    await asyncio.sleep(random.uniform(0, backoff_us(failures, _PAUSE_FIRST_US, _PAUSE_MAX_US)) / 1e6)


@cache
def _loader() -> Any:
    """Loads the driver's service description once per process."""
    return create_loader()


def time_of(response: Response, sent_us: int) -> int:
    """The store's clock, in microseconds, when the response to a request sent at `sent_us` arrived: this machine's clock if
    it agrees with the second in the response's `Date` header, otherwise the nearest instant that agrees."""
    received_us = time.time_ns() // 1_000
    date = response["ResponseMetadata"]["HTTPHeaders"].get("date", "")
    try:
        begin_us = int(email.utils.parsedate_to_datetime(date).timestamp()) * _US
    except (TypeError, ValueError):
        return received_us
    # The response was dated between sending and receiving.
    return min(max(received_us, begin_us), begin_us + _US - 1 + max(received_us - sent_us, 0))
