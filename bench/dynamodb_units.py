"""`python -m bench dynamodb-units`: the capacity units of DynamoDB that each life of a timer takes, and a node without work.

A server runs on DynamoDB Local, behind a proxy that asks for the units of each request (`ReturnConsumedCapacity`). Of the
actions of a transaction that take the same units, DynamoDB Local counts one only. So the proxy repeats each action in a
transaction of its own, on a second table with the same items, and counts that. It charges nothing for a query that
finds nothing, which the service charges like one item: such a query counts 1.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import tempfile
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tests.support.calls import Api
from tests.support.cluster import STEADY
from tests.support.dynamodb import DynamoServer
from tests.support.dynamodb_proxy import DynamoProxy, ProxyAnswer, Request
from tests.support.patience import PATIENCE_S
from tests.support.program import running
from tests.support.scripted import Reply, ScriptedReceiver
from tests.support.server import ServerProcess

from tocsin.ports.store import GENERATION_BYTES, UUID_BYTES
from tocsin.stores.dynamodb.keys import BY_EXPIRY, BY_INSTANT, Item, is_run, is_timer

#: Dollars for a million units on demand in US East (N. Virginia); docs/how-to/dynamodb.md has the date.
WRITE_PRICE, READ_PRICE = 0.625, 0.125
#: The life that depends on the time that commits take.
OCCURRENCE = "an occurrence of a schedule"
_SHARDS = 16
_ITEM = "item"
_PLACES = (_ITEM, BY_INSTANT, BY_EXPIRY)
_CLAIM, _FENCE, _TIMER, _HISTORY, _RUN, _FAILURE = "claim", "fence", "timer", "history", "run", "failure"
_OF_SHARDS = (_FENCE, _TIMER, _HISTORY, _RUN, _FAILURE)
_READS = ("GetItem", "BatchGetItem", "Query", "TransactGetItems")
_WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")
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

    def __init__(self, proxy: DynamoProxy, port: int, table: str) -> None:
        self._port, self._table = port, table
        self._changed = asyncio.Condition()
        self._tokens: set[str] = set()
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
        token = request.content["ClientRequestToken"]
        if token in self._tokens:
            # Sent again because the answer took long, and carried out once.
            return
        self._tokens.add(token)
        counted = []
        for action in request.content["TransactItems"]:
            ((verb, what),) = action.items()
            kind = kind_of(what.get("Key") or what["Item"])
            if kind == _FENCE and "SET v" in what["UpdateExpression"]:
                kind = _CLAIM
            alone = {"TransactItems": [action], "ReturnConsumedCapacity": "INDEXES"}
            counted.append((kind, verb, await self._on_copy(request, request.operation, alone)))
        # At once, so that who waits for one of them sees the others.
        for kind, verb, answer in counted:
            self._count(kind, verb, answer)
            self.changes[kind, verb] += 1

    def _count(self, kind: str, verb: str, answer: dict[str, Any]) -> None:
        for table in _consumed(answer):
            self.written[kind, verb, _ITEM] += table["Table"]["CapacityUnits"]
            for index, units in table.get("LocalSecondaryIndexes", {}).items():
                self.written[kind, verb, index] += units["CapacityUnits"]

    async def _on_copy(self, request: Request, operation: str, content: dict[str, Any]) -> dict[str, Any]:
        renamed = _renamed(content, self._table)
        renamed.pop("ClientRequestToken", None)
        status, answer = await Request(operation, request.headers, renamed, self._port).forward()
        if status != 200:
            raise RuntimeError(f"{operation} on the copy of the table: {answer}")
        return answer


def _consumed(answer: dict[str, Any]) -> list[dict[str, Any]]:
    consumed = answer.get("ConsumedCapacity", [])
    return consumed if isinstance(consumed, list) else [consumed]


def _renamed(content: Any, table: str) -> Any:
    """The content for the copy of the table."""
    if isinstance(content, list):
        return [_renamed(each, table) for each in content]
    if not isinstance(content, dict):
        return content
    renamed = {f"{name}.copy" if name == table else name: _renamed(value, table) for name, value in content.items()}
    return renamed | {"TableName": f"{table}.copy"} if content.get("TableName") == table else renamed


class Lives:
    """The lives, one timer at a time: each of its writes has a commit of its own."""

    def __init__(self, api: Api, meter: Meter, receiver: ScriptedReceiver, *, removed: bool) -> None:
        self._api, self._meter, self._receiver, self._removed = api, meter, receiver, removed

    async def all(self, but: str) -> dict[str, dict[str, float]]:
        """The units by life, except one."""
        for history in ("all", "none"):
            await self._ask("namespaces/create", name=history, history=history, retention="1s", numShards=1)
        lives = {
            "fired, no history": self._fired_without_history,
            "fired": self._fired,
            "fired after two retries": self._retried,
            "canceled": self._canceled,
            OCCURRENCE: self._occurrence,
        }
        return {name: await self._of(live) for name, live in lives.items() if name != but}

    async def _of(self, live: Callable[[], Awaitable[dict[str, float] | None]]) -> dict[str, float]:
        self._meter.reset()
        return await live() or _result(self._meter)

    async def _ask(self, path: str, **body: Any) -> None:
        """Sends the request, again while a busy machine keeps the server from its store."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                status, answer = await self._api(path, **body)
                if status < 300:
                    return
                if status != 503:
                    raise RuntimeError(f"{path}: {answer}")
                await asyncio.sleep(0.2)

    async def _create(self, name: str, namespace: str = "all", delay: str = "1s", **more: Any) -> None:
        more |= {"namespace": namespace, "id": name, "delay": delay, "callbackUrl": self._receiver.url(name)}
        await self._ask("timers/create", payload={"order": 1}, **more)

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
        await self._ask("timers/delete", namespace="all", timerId="canceled")
        await self._ended()

    async def _occurrence(self) -> dict[str, float]:
        """The mean of some, between the end of one occurrence and that of another, and of the removals meanwhile."""
        meter, url = self._meter, self._receiver.url("occurs")
        schedule = {"namespace": "all", "id": "every-second", "every": "1s", "payload": {"order": 1}}
        await self._ask("schedules/create", callbackUrl=url, **schedule)
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
        await self._ask("schedules/delete", namespace="all", scheduleId="every-second")
        return found


def _result(meter: Meter) -> dict[str, float]:
    return {
        f"{kind}, {verb}, {place}": units
        for (kind, verb, place), units in sorted(meter.written.items())
        if kind in _OF_SHARDS and units
    }


async def measure_lives(database: DynamoServer, *, time_to_live: bool, but: str = "") -> dict[str, dict[str, float]]:
    """Units by life, except one."""
    environment = _environment(time_to_live) | {"TOCSIN_PURGE_INTERVAL": "100ms"}
    async with _serving(database, environment) as (server, meter), ScriptedReceiver(_SCRIPTS) as receiver:
        return await Lives(Api(server), meter, receiver, removed=not time_to_live).all(but)


async def measure_idle(database: DynamoServer, *, time_to_live: bool, seconds: float) -> dict[str, float]:
    """Units of each second without work, by request."""
    async with _serving(database, _environment(time_to_live)) as (_, meter):
        await asyncio.sleep(_SETTLING_S)
        meter.reset()
        await asyncio.sleep(seconds)
        found = {"heartbeat": meter.written["members", "Put", _ITEM]} | dict(meter.read)
    return {name: units / seconds for name, units in sorted(found.items())}


def _environment(time_to_live: bool) -> dict[str, str]:
    return {
        **STEADY,
        # A write that a busy machine answers late would be sent, and counted, twice.
        "TOCSIN_DYNAMODB_REQUEST_TIMEOUT": "60s",
        "TOCSIN_STORE_TIMEOUT": "90s",
        "TOCSIN_DYNAMODB_TIME_TO_LIVE": str(time_to_live).lower(),
        "TOCSIN_SHARDS": str(_SHARDS),
    }


@contextlib.asynccontextmanager
async def _serving(database: DynamoServer, environment: dict[str, str]) -> AsyncIterator[tuple[ServerProcess, Meter]]:
    """A server with tables of its own that has claimed every shard, and its meter."""
    table = f"units{uuid.uuid4().hex}"
    with tempfile.TemporaryDirectory() as folder:
        async with DynamoProxy(database.port) as proxy:
            meter = Meter(proxy, database.port, table)
            server = ServerProcess(
                Path(folder) / "data", "--store", database.url(table, proxy.port), "--no-agent", env=environment
            )
            try:
                await server.start()
                await meter.until(_CLAIM, "Update", _SHARDS)
                yield server, meter
            finally:
                await server.stop()


_SCRIPTS = {"retried": [Reply(503), Reply(503), Reply(200)]}


def measure(*, time_to_live: bool, idle_s: float) -> dict[str, dict[str, Any]]:
    """Units by life, and of a node without work."""
    with running(DynamoServer()) as database:
        return {
            "lives": asyncio.run(measure_lives(database, time_to_live=time_to_live)),
            "idle": asyncio.run(measure_idle(database, time_to_live=time_to_live, seconds=idle_s)),
        }


def totals(units: dict[str, float]) -> tuple[float, float]:
    """All write units of a life, and those without the fences, which timers of one commit share."""
    fences = sum(value for name, value in units.items() if name.startswith(f"{_FENCE}, "))
    every = sum(units.values())
    return every, every - fences


def show(title: str, found: dict[str, Any]) -> None:
    """Prints the units and prices."""
    table = Table("a timer", *_PLACES, "fences", "alone", "$/million", "in shared commits", "$/million", title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for life, units in found["lives"].items():
        alone, shared = totals(units)
        places = [
            sum(value for name, value in units.items() if name.endswith(f", {place}") and not name.startswith(_FENCE))
            for place in _PLACES
        ]
        prices = (f"{each * WRITE_PRICE:.2f}" for each in (alone, shared))
        counts = (f"{each:g}" for each in (*places, alone - shared))
        table.add_row(f"[bold]{life}[/]", *counts, f"{alone:g}", next(prices), f"{shared:g}", next(prices))
        for kind, verb in dict.fromkeys(tuple(name.split(", ")[:2]) for name in units):
            table.add_row(f"  {kind}: {verb}", *(f"{units.get(f'{kind}, {verb}, {place}', 0):g}" for place in _PLACES))
    Console(width=140).print(table)
    idle = Table("a node without work", "units a second", "units a day", title=f"{title}; {_SHARDS} shards")
    for name, units in found["idle"].items():
        idle.add_row(name, *_rates(units))
    idle.add_row("[bold]read units[/]", *_rates(sum(found["idle"].values()) - found["idle"]["heartbeat"]))
    Console(width=140).print(idle)


def _rates(units: float) -> tuple[str, str]:
    return f"{units:.2f}", f"{units * 86_400:,.0f}"
