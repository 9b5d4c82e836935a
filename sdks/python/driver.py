"""Runs the scenarios' steps with this SDK: `sdks/harness.py` sends them, and checks what this program reports.

TOCSIN_SDK_CONTROL is the harness's URL; with TOCSIN_SDK_MODE=async the asynchronous client is used.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import os
import re
import sqlite3
import sys
import tempfile
import traceback
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from datetime import datetime
from inspect import isawaitable
from pathlib import Path
from typing import Any

import urllib3
from vectors import VECTORS, answer_of, failure

from tocsin_client import AsyncClient, Client, CreateTimer, ItemResult, Try, errors
from tocsin_client._values import UNSET, format_instant, parse_instant
from tocsin_client.outbox import AsyncDrain, DbApi, Drain, outbox
from tocsin_client.receiver import Answer, Dedup, Firing, Receiver

ASYNC = os.environ.get("TOCSIN_SDK_MODE") == "async"
CAN = [
    "receiver",
    "dedup",
    "outbox",
    "batcher",
    "routing",
    "schedules",
    "calls",
    "keys",
    "audit",
    *(["cancel"] if ASYNC else []),
]
NAMED = {"timerId": "timer_id", "scheduleId": "schedule_id", "serviceCallId": "service_call_id", "from": "from_"}
#: Clients by scenario and what it wants of them, and the folder of receivers' databases.
CLIENTS: dict[tuple[str | None, str], Any] = {}
#: The tries of all clients, and what was logged, since they were asked for or the scenario began.
TRIES: list[dict[str, Any]] = []
LINES: list[str] = []
FOLDER = tempfile.TemporaryDirectory()


class Lines(logging.Handler):
    """Keeps the debug lines of the SDK; the rest of what scenarios cause is not shown."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno == logging.DEBUG:
            LINES.append(record.getMessage())


def record(made: Try) -> None:
    TRIES.append({name: value for name, value in wire(made).items() if value is not None})


def record_and_raise(made: Try) -> None:
    record(made)
    raise RuntimeError("as the scenario wants it")


def tries() -> dict[str, Any]:
    """What was recorded, once."""
    shown = {"tries": TRIES[:], "lines": LINES[:]}
    TRIES.clear()
    LINES.clear()
    return shown


def snake(name: str) -> str:
    return NAMED.get(name) or re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def arguments(wire: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a method for the members of a request."""
    return {snake(name): argument(name, value) for name, value in wire.items()}


def argument(name: str, value: Any) -> Any:
    return float("nan") if value == {"$unencodable": True} else value


def wire(value: Any) -> Any:
    """A result as JSON."""
    if isinstance(value, ItemResult):
        return {"timer": wire(value.timer)} if value.error is None else {"error": failure(value.error)}
    if is_dataclass(value) and not isinstance(value, type):
        return {camel(each.name): wire(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, datetime):
        return format_instant(value)
    return [wire(each) for each in value] if isinstance(value, list) else value


async def resolved(value: Any) -> Any:
    return await value if isawaitable(value) else value


async def listed(pages: Any, by_page: bool) -> dict[str, Any]:
    """All elements of a list, or its pages."""
    source = pages.pages() if by_page else pages
    found = [wire(each) async for each in source] if ASYNC else [wire(each) for each in source]
    return {"pages" if by_page else "items": found}


async def batched(client: Any, items: list[CreateTimer]) -> list[ItemResult]:
    """What became of timers that were added to a batcher at once."""
    batcher = client.timers.batcher()
    futures = [await resolved(batcher.add(item)) for item in items]
    await resolved(batcher.close())
    results = []
    for future in futures:
        error = future.exception()
        results.append(ItemResult(error=error) if error else ItemResult(timer=future.result()))
    return results


async def created_each(client: Any, timers: list[CreateTimer], concurrency: int) -> list[ItemResult]:
    """What became of timers that were created one by one, so many at a time."""
    free = asyncio.Semaphore(concurrency)

    async def create(timer: CreateTimer) -> ItemResult:
        given = {each.name: getattr(timer, each.name) for each in fields(timer)}
        async with free:
            try:
                if ASYNC:
                    return ItemResult(timer=await client.timers.create(**given))
                return ItemResult(timer=await asyncio.to_thread(client.timers.create, **given))
            except errors.TocsinError as error:
                return ItemResult(error=error)  # type: ignore[arg-type]

    return await asyncio.gather(*map(create, timers))


async def monitored(part: Any, given: dict[str, Any]) -> dict[str, Any]:
    """What a monitored job did, in both forms of its run: as a statement if it fails, else as a decorator."""
    try:
        if "fail" not in given:
            job = part.watch(given["id"], namespace=given["namespace"])
            return {"returned": await job(asyncio.sleep)(0, "done") if ASYNC else job(lambda: "done")()}
        run = part.run(given["id"], namespace=given["namespace"])
        if ASYNC:
            async with run:
                raise RuntimeError(given["fail"])
        with run:
            raise RuntimeError(given["fail"])
    except RuntimeError as error:
        return {"raised": str(error)}


#: Lists that are one answer.
WHOLE = {"namespaces.list", "keys.list", "jobs.list", "failures.list", "destinations.list"}


async def call(client: Any, do: str, given: dict[str, Any]) -> Any:
    """Runs one step against a server."""
    family, _, verb = do.partition(".")
    given = dict(given)
    if do in ("timers.createMany", "timers.batcher", "timers.createEach"):
        timers = [CreateTimer(**arguments(each)) for each in given.get("timers", given.get("items", []))]
        if verb == "createEach":
            return await created_each(client, timers, given["concurrency"])
        return (
            await resolved(client.timers.create_many(timers)) if verb == "createMany" else await batched(client, timers)
        )
    part = client.calls(given.pop("tenantId")) if family == "calls" else getattr(client, family)
    if do == "calls.submit":
        spec = given.pop("requestSpec")
        # Any JSON: not the raw body of a timer.
        body = {"body": spec.pop("body")} if "body" in spec else {}
        return await resolved(part.submit(**arguments(given | spec), **body))
    if do == "monitors.run":
        return await monitored(part, given)
    by_page = bool(given.pop("pages", False))
    if "timeoutSeconds" in given:
        given["timeout"] = given.pop("timeoutSeconds")
    # Of a tenant: the parameter has no default.
    scope = {"namespace": UNSET} if do == "jobs.create" and "tenant" in given else {}
    result = getattr(part, snake(verb))(**arguments(given), **scope)
    if verb in ("list", "history", "members") and f"{family}.{verb}" not in WHOLE:
        return await listed(result, by_page)
    return await resolved(result)


def receive(given: dict[str, Any]) -> dict[str, Any]:
    """Runs a request through a receiver."""
    seen: list[Firing] = []
    worked: list[Firing] = []

    def work(firing: Firing) -> Answer:
        worked.append(firing)
        return answer_of(given.get("answers", {}).get(firing.timer_id) or given["answer"])

    def handler(firing: Firing) -> Answer:
        seen.append(firing)
        if "dedup" not in given:
            return work(firing)
        dedup = Dedup(lambda: sqlite3.connect(Path(FOLDER.name) / given["dedup"]))
        dedup.create_table()
        return dedup.once(firing, lambda _: work(firing))

    options: dict[str, Any] = {"now": parse_instant(given["now"]).timestamp} if given.get("now") else {}
    receiver = Receiver(
        given["secrets"], tolerance=given.get("toleranceSeconds", 300), unsigned=given.get("unsigned", False), **options
    )
    request = given["request"]
    response = receiver.handle([tuple(each) for each in request["headers"]], base64.b64decode(request["body"]), handler)
    shown = [{name: value for name, value in wire(each).items() if name not in ("body", "headers")} for each in seen]
    return {
        "status": response.status,
        "headers": dict(response.headers),
        "body": response.body.decode(),
        "handled": bool(worked),
        "firing": shown[0] if shown else None,
        "firings": shown,
    }


async def outboxed(client: Any, do: str, given: dict[str, Any]) -> Any:
    """Writes rows to an outbox in a database of that name, or drains it."""

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(Path(FOLDER.name) / given["database"])

    database = DbApi(connect)
    await asyncio.to_thread(Drain(Client("http://127.0.0.1:1"), database).create_table)
    with contextlib.closing(connect()) as connection:
        if do == "outbox.rows":
            found = connection.execute("SELECT timer_id, dead_reason FROM tocsin_outbox ORDER BY id").fetchall()
            return [{"timerId": row[0], "deadReason": row[1]} for row in found]
        if do == "outbox.create":
            ids = [outbox(connection).create(**arguments(each)) for each in given["timers"]]
            (connection.rollback if given.get("rollback") else connection.commit)()
            return ids
    if ASYNC:
        drained = await AsyncDrain(client, Awaited(database)).once()
    else:
        drained = await asyncio.to_thread(Drain(client, database).once)
    counts = {"created": drained.created, "dead": drained.dead, "waiting": drained.waiting}
    return {**counts, "unavailable": drained.unavailable is not None}


class Awaited:
    """SQLite for asynchronous programs, which wait for it."""

    def __init__(self, database: DbApi[sqlite3.Connection]) -> None:
        self._database = database

    async def transaction(self, work: Any) -> Any:
        """See `AsyncDatabase`."""

        def blocking(tx: sqlite3.Connection, execute: Any) -> Any:
            async def awaited(statement: str, parameters: Any) -> Any:
                return execute(statement, parameters)

            # Nothing in it waits.
            try:
                work(tx, awaited).send(None)
            except StopIteration as done:
                return done.value
            raise AssertionError("the work waits for something else")

        return self._database.transaction(blocking)


async def client_of(step: dict[str, Any]) -> Any:
    """The client of a step: one for each that its scenario wants, none of an earlier scenario."""
    scenario, wanted = step.get("scenario"), json.dumps(step["client"], sort_keys=True)
    for key in [key for key in CLIENTS if key[0] != scenario]:
        await resolved(CLIENTS.pop(key).close())
    if (scenario, wanted) not in CLIENTS:
        options = dict(step["client"])
        options["on_try"] = record_and_raise if options.pop("onTry", None) == "raise" else record
        CLIENTS[scenario, wanted] = (AsyncClient if ASYNC else Client)(**options)
    return CLIENTS[scenario, wanted]


async def run(step: dict[str, Any]) -> dict[str, Any]:
    """The outcome of a step."""
    do, given = step["do"], step.get("with", {})
    family, _, name = do.partition(".")
    try:
        if family == "vectors":
            return {"value": VECTORS[name](given)}
        if do == "tries":
            return {"value": tries()}
        if do == "receiver.handle":
            return {"value": receive(given)}
        client = await client_of(step)
        if family == "outbox":
            return {"value": await outboxed(client, do, given)}
        working: Awaitable[Any] = call(client, do, given)
        if "cancelAfterMs" in step:
            task = asyncio.ensure_future(working)
            asyncio.get_running_loop().call_later(step["cancelAfterMs"] / 1000, task.cancel)
            working = task
        return {"value": wire(await working)}
    except (AttributeError, KeyError) as unknown:
        return {"error": {"classes": ["UnknownStep"], "message": "".join(traceback.format_exception(unknown))}}
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 (reported)
        return {"error": failure(error)}


async def main() -> int:
    """Asks for steps until there are no more."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(64))
    log = logging.getLogger("tocsin_client")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    log.addHandler(Lines())
    control = os.environ["TOCSIN_SDK_CONTROL"] + "/next"
    scenario: str | None = None
    outcome: dict[str, Any] = {"hello": {"language": "python", "can": CAN}}
    while True:
        response = await asyncio.to_thread(urllib3.request, "POST", control, json=outcome, timeout=600, retries=False)
        step = json.loads(response.data)
        if step.get("done"):
            break
        if step.get("scenario") != scenario:
            scenario = step.get("scenario")
            tries()
        outcome = await run(step)
    for client in CLIENTS.values():
        await resolved(client.close())
    FOLDER.cleanup()
    print(*step["failures"], step["summary"], sep="\n")
    return 1 if step["failures"] else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
