"""`python -m bench dynamodb-units`: the capacity units of DynamoDB that each life of a timer takes, and a node without work.

A server runs on DynamoDB Local, behind a proxy that asks for the units of each request (`ReturnConsumedCapacity`). Of the
actions of a transaction that take the same units, DynamoDB Local counts one only. So the proxy repeats each action in a
transaction of its own, on a second table with the same items, and counts that. It charges nothing for a query that
finds nothing, which the service charges like one item: such a query counts 1.
"""

from __future__ import annotations

import asyncio
import base64
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tests.support.calls import Api
from tests.support.dynamodb import DynamoServer
from tests.support.dynamodb_proxy import DynamoProxy, ProxyAnswer, Request
from tests.support.patience import PATIENCE_S
from tests.support.program import running
from tests.support.scripted import Reply, ScriptedReceiver
from tests.support.server import ServerProcess

from bench.processes import cluster_of
from tocsin.ports.store import GENERATION_BYTES, UUID_BYTES
from tocsin.stores.dynamodb.keys import BY_EXPIRY, BY_INSTANT, Item, is_run, is_timer

#: Dollars for a million units on demand in US East (N. Virginia); docs/how-to/dynamodb.md has the date.
WRITE_PRICE, READ_PRICE = 0.625, 0.125
_SHARDS = 16
_ITEM = "item"
_PLACES = (_ITEM, BY_INSTANT, BY_EXPIRY)
_FENCE, _TIMER, _HISTORY, _RUN, _FAILURE = "fence", "timer", "history", "run", "failure"
_OF_SHARDS = (_FENCE, _TIMER, _HISTORY, _RUN, _FAILURE)
_READS = ("GetItem", "BatchGetItem", "Query", "TransactGetItems")
_WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")
_TABLE, _COPY = "units", "units.copy"
#: Occurrences that the units of one are the mean of.
_OCCURRENCES = 5
#: What a node reads once after it has claimed its shards, it has read by then.
_SETTLING_S = 15

#: Units by what was written, how (`Put`, `Update`, `Delete`), and where: its item, or the entry in an index.
Written = Counter[tuple[str, str, str]]


def kind_of(place: Item) -> str:
    """What the item with this key is: a row of a shard, or the name of its partition."""
    partition, sort = place["p"]["S"], base64.b64decode(place["s"]["B"])
    if not partition.startswith("shard/"):
        return str(partition)
    if sort == b"shard":
        return _FENCE
    if is_run(sort):
        return _RUN
    if len(sort) == len(b"fail") + UUID_BYTES + GENERATION_BYTES:
        return _FAILURE
    return _TIMER if is_timer(sort) else _HISTORY


class Meter:
    """Counts units as a fault of the proxy, which forwards everything."""

    def __init__(self, proxy: DynamoProxy, port: int) -> None:
        self._port = port
        self._changed = asyncio.Condition()
        self.reset()
        for operation in _READS:
            proxy.always(operation, self._read)
        for operation in _WRITES:
            proxy.always(operation, self._written)
        proxy.always("CreateTable", self._created)

    def reset(self) -> None:
        """Starts over."""
        self.written: Written = Counter()
        self.read: Counter[str] = Counter()
        self.commits = 0
        #: How often each kind of row was put and deleted.
        self.changes: Counter[tuple[str, str]] = Counter()

    async def until(self, kind: str, verb: str, count: int = 1) -> None:
        """Returns when so many rows of the kind were put (`Put`) or deleted (`Delete`)."""
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(lambda: self.changes[kind, verb] >= count)

    async def _created(self, request: Request) -> ProxyAnswer:
        await self._on_copy(request, request.operation, request.content)
        return await request.forward()

    async def _read(self, request: Request) -> ProxyAnswer:
        status, answer = await request.forward()
        content = request.content
        if request.operation == "Query":
            of = content["ExpressionAttributeValues"][":p"]["S"].partition("/")[0]
            name = " ".join(filter(None, ("query of", of, content.get("IndexName"))))
        elif request.operation == "BatchGetItem":
            ((_, keys),) = content["RequestItems"].items()
            name = f"items of {keys['Keys'][0]['p']['S'].partition('/')[0]}"
        elif request.operation == "GetItem":
            name = f"item of {content['Key']['p']['S']}"
        else:
            name = "items in a transaction"
        self.read[name] += sum(max(1.0, each["CapacityUnits"]) for each in _consumed(answer))
        return status, answer

    async def _written(self, request: Request) -> ProxyAnswer:
        if request.operation != "TransactWriteItems":
            request.content["ReturnConsumedCapacity"] = "INDEXES"
        answer = await request.forward()
        if answer[0] == 200:
            await (self._transaction if request.operation == "TransactWriteItems" else self._single)(request, answer[1])
            async with self._changed:
                self._changed.notify_all()
        return answer

    async def _single(self, request: Request, answer: dict[str, Any]) -> None:
        await self._on_copy(request, request.operation, request.content)
        if request.operation != "BatchWriteItem":
            self._count(kind_of(request.content.get("Key") or request.content["Item"]), "Put", answer)
            return
        ((_, deletes),) = request.content["RequestItems"].items()
        kinds = [kind_of(each["DeleteRequest"]["Key"]) for each in deletes]
        # Rows that expire together are of one kind here.
        self._count(kinds[0], "Delete", answer)
        self.changes.update((kind, "Delete") for kind in kinds)

    async def _transaction(self, request: Request, _: dict[str, Any]) -> None:
        self.commits += 1
        for action in request.content["TransactItems"]:
            ((verb, what),) = action.items()
            alone = {"TransactItems": [action], "ReturnConsumedCapacity": "INDEXES"}
            answer = await self._on_copy(request, request.operation, alone)
            kind = kind_of(what.get("Key") or what["Item"])
            self._count(kind, verb, answer)
            self.changes[kind, verb] += 1

    def _count(self, kind: str, verb: str, answer: dict[str, Any]) -> None:
        for table in _consumed(answer):
            self.written[kind, verb, _ITEM] += table["Table"]["CapacityUnits"]
            for index, units in table.get("LocalSecondaryIndexes", {}).items():
                self.written[kind, verb, index] += units["CapacityUnits"]

    async def _on_copy(self, request: Request, operation: str, content: dict[str, Any]) -> dict[str, Any]:
        renamed = _in_copy(content)
        renamed.pop("ClientRequestToken", None)
        status, answer = await Request(operation, request.headers, renamed, self._port).forward()
        if status != 200:
            raise RuntimeError(f"{operation} on the copy of the table: {answer}")
        return answer


def _consumed(answer: dict[str, Any]) -> list[dict[str, Any]]:
    consumed = answer.get("ConsumedCapacity", [])
    return consumed if isinstance(consumed, list) else [consumed]


def _in_copy(content: Any) -> Any:
    """The content with the name of the copy for that of the table."""
    if isinstance(content, list):
        return [_in_copy(each) for each in content]
    if not isinstance(content, dict):
        return content
    renamed = {_COPY if name == _TABLE else name: _in_copy(value) for name, value in content.items()}
    return renamed | {"TableName": _COPY} if content.get("TableName") == _TABLE else renamed


class Lives:
    """The lives, one timer at a time: each of its writes has a commit of its own."""

    def __init__(self, api: Api, meter: Meter, receiver: ScriptedReceiver, *, removed: bool) -> None:
        self._api, self._meter, self._receiver, self._removed = api, meter, receiver, removed

    async def all(self) -> dict[str, dict[str, float]]:
        """The units by life."""
        for history in ("all", "none"):
            status, answer = await self._api(
                "namespaces/create", name=history, history=history, retention="1s", numShards=1
            )
            if status != 200:
                raise RuntimeError(f"namespaces/create: {answer}")
        return {
            "fired, no history": await self._of(self._fired_without_history),
            "fired": await self._of(self._fired),
            "fired after two retries": await self._of(self._retried),
            "canceled": await self._of(self._canceled),
            "an occurrence of a schedule": await self._occurrence(),
        }

    async def _of(self, live: Callable[[], Awaitable[None]]) -> dict[str, float]:
        self._meter.reset()
        await live()
        return _result(self._meter)

    async def _create(self, name: str, namespace: str = "all", delay: str = "1s", **more: Any) -> None:
        more |= {"delay": delay, "payload": {"order": 1}}
        await self._api.create(name, self._receiver.url(name), namespace=namespace, **more)

    async def _ended(self) -> None:
        """A finished timer is in the history, and has left it."""
        await self._meter.until(_HISTORY, "Put")
        if self._removed:
            await self._meter.until(_HISTORY, "Delete")

    async def _fired_without_history(self) -> None:
        await self._create("plain", "none")
        await self._meter.until(_TIMER, "Delete")

    async def _fired(self) -> None:
        await self._create("kept")
        await self._ended()

    async def _retried(self) -> None:
        await self._create("retried", retryPolicy={"maxAttempts": 3, "initialInterval": "1s"})
        await self._ended()

    async def _canceled(self) -> None:
        await self._create("canceled", delay="100d")
        await self._api("timers/delete", namespace="all", timerId="canceled")
        await self._ended()

    async def _occurrence(self) -> dict[str, float]:
        """The mean of some, between the end of one occurrence and that of another, and of the removals meanwhile."""
        meter, schedule = self._meter, {"namespace": "all", "id": "every-second"}
        meter.reset()
        status, answer = await self._api(
            "schedules/create", **schedule, every="1s", callbackUrl=self._receiver.url("occurs"), payload={"order": 1}
        )
        if status != 200:
            raise RuntimeError(f"schedules/create: {answer}")
        await meter.until(_RUN, "Put")
        meter.reset()
        await meter.until(_RUN, "Put", _OCCURRENCES)
        if self._removed:
            await meter.until(_RUN, "Delete")
        occurrences, removed = meter.changes[_RUN, "Put"], meter.changes[_RUN, "Delete"]
        found = {
            name: units / (removed if name.startswith(f"{_RUN}, Delete") else occurrences)
            for name, units in _result(meter).items()
        }
        await self._api("schedules/delete", namespace="all", scheduleId="every-second")
        return found


def _result(meter: Meter) -> dict[str, float]:
    units = {
        f"{kind}, {verb}, {place}": units
        for (kind, verb, place), units in sorted(meter.written.items())
        if kind in _OF_SHARDS and units
    }
    return units | {"commits": float(meter.commits)}


async def _every_shard_owned(server: ServerProcess) -> None:
    """Returns when the server has nothing left to claim, and serves a shard that others could."""
    async with asyncio.timeout(PATIENCE_S):
        while None in [shard["owner"] for shard in (await asyncio.to_thread(cluster_of, server.port))["shards"]]:  # noqa: ASYNC110 -- the API has no notifications
            await asyncio.sleep(0.1)


async def measure(*, time_to_live: bool, idle_s: float) -> dict[str, Any]:
    """Units by life, and of each second without work, by request."""
    environment = {
        "TOCSIN_PURGE_INTERVAL": "100ms",
        "TOCSIN_DYNAMODB_TIME_TO_LIVE": str(time_to_live).lower(),
        "TOCSIN_SHARDS": str(_SHARDS),
    }
    with running(DynamoServer()) as database, tempfile.TemporaryDirectory() as folder:
        async with DynamoProxy(database.port) as proxy, ScriptedReceiver(_SCRIPTS) as receiver:
            meter, url = Meter(proxy, database.port), database.url(_TABLE, proxy.port)
            server = ServerProcess(Path(folder) / "data", "--store", url, env=environment)
            await server.start()
            await _every_shard_owned(server)
            try:
                lives = await Lives(Api(server), meter, receiver, removed=not time_to_live).all()
            finally:
                await server.stop()
            del environment["TOCSIN_PURGE_INTERVAL"]
            await server.start()
            await _every_shard_owned(server)
            try:
                await asyncio.sleep(_SETTLING_S)
                meter.reset()
                await asyncio.sleep(idle_s)
                idle = {"heartbeat": meter.written["members", "Put", _ITEM]} | dict(meter.read)
            finally:
                await server.stop()
    return {"lives": lives, "idle": {name: units / idle_s for name, units in sorted(idle.items())}}


_SCRIPTS = {"retried": [Reply(503), Reply(503), Reply(200)]}


def show(title: str, found: dict[str, Any]) -> None:
    """Prints the units and prices."""
    table = Table("a timer", *_PLACES, "fences", "alone", "$/million", "in shared commits", "$/million", title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for life, units in found["lives"].items():
        fences = sum(value for name, value in units.items() if name.startswith(f"{_FENCE}, "))
        places = [
            sum(value for name, value in units.items() if name.endswith(f", {place}") and not name.startswith(_FENCE))
            for place in _PLACES
        ]
        alone, shared = sum(places) + fences, sum(places)
        prices = (f"{each * WRITE_PRICE:.2f}" for each in (alone, shared))
        counts = (f"{each:g}" for each in (*places, fences))
        table.add_row(f"[bold]{life}[/]", *counts, f"{alone:g}", next(prices), f"{shared:g}", next(prices))
        for kind, verb in dict.fromkeys(tuple(name.split(", ")[:2]) for name in units if ", " in name):
            table.add_row(f"  {kind}: {verb}", *(f"{units.get(f'{kind}, {verb}, {place}', 0):g}" for place in _PLACES))
    Console(width=140).print(table)
    idle = Table("a node without work", "units a second", "units a day", title=f"{title}; {_SHARDS} shards")
    for name, units in found["idle"].items():
        idle.add_row(name, f"{units:.2f}", f"{units * 86_400:,.0f}")
    Console(width=140).print(idle)
