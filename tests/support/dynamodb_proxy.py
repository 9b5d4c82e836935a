"""A proxy before DynamoDB Local that brings what only the service itself does: conflicts, throttling, parts left unprocessed,
short pages, slow answers, and answers that get lost."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from typing import Any

#: A status and the content of an answer, JSON or a page; None closes the connection instead.
ProxyAnswer = tuple[int, dict[str, Any] | str] | None


class Request:
    """What a client sent: the operation, as `TransactWriteItems`, its headers, and its content, which a fault may change
    before it has it forwarded."""

    def __init__(self, operation: str, headers: bytes, content: dict[str, Any], port: int) -> None:
        self.operation = operation
        self.content = content
        self.headers = headers
        self._port = port

    async def forward(self) -> tuple[int, dict[str, Any]]:
        """The server's answer."""
        body = json.dumps(self.content).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            kept = [
                line
                for line in self.headers.split(b"\r\n")[1:]
                if line and not line.lower().startswith((b"content-length:", b"connection:", b"expect:"))
            ]
            kept += [b"Content-Length: %d" % len(body), b"Connection: close"]
            writer.write(b"POST / HTTP/1.1\r\n" + b"\r\n".join(kept) + b"\r\n\r\n" + body)
            answer = await reader.read()
        finally:
            writer.close()
        head, _, content = answer.partition(b"\r\n\r\n")
        return int(head.split(b" ", 2)[1]), json.loads(content)


Fault = Callable[[Request], Awaitable[ProxyAnswer]]


class DynamoProxy:
    """Forwards to the server at `target_port`. `port` is its own."""

    def __init__(self, target_port: int) -> None:
        self.port = 0
        #: The requests that came, in order.
        self.requests: list[Request] = []
        self._target_port = target_port
        self._faults: dict[str, deque[Fault]] = defaultdict(deque)
        self._lasting: dict[str, Fault] = {}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> DynamoProxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def once(self, operation: str, *faults: Fault) -> None:
        """The operation's next requests meet these faults, one each."""
        self._faults[operation] += faults

    def always(self, operation: str, fault: Fault | None) -> None:
        """All of its requests do, from now on; None ends it."""
        if fault is None:
            self._lasting.pop(operation, None)
        else:
            self._lasting[operation] = fault

    def count(self, operation: str) -> int:
        """How many of its requests came."""
        return sum(request.operation == operation for request in self.requests)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            # A client may leave at any moment.
            with contextlib.suppress(OSError, EOFError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        headers = await reader.readuntil(b"\r\n\r\n")
        lines = (line.partition(b":") for line in headers.split(b"\r\n")[1:])
        fields = {name.strip().lower(): value.strip() for name, _, value in lines}
        content = json.loads(await reader.readexactly(int(fields[b"content-length"])))
        request = Request(fields[b"x-amz-target"].partition(b".")[2].decode(), headers, content, self._target_port)
        self.requests.append(request)
        waiting = self._faults[request.operation]
        fault = waiting.popleft() if waiting else self._lasting.get(request.operation, Request.forward)
        answer = await fault(request)
        if answer is None:
            return False
        status, answered = answer
        is_page = isinstance(answered, str)
        body = answered.encode() if isinstance(answered, str) else json.dumps(answered).encode()
        writer.write(
            b"HTTP/1.1 %d -\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
            % (status, b"text/html" if is_page else b"application/x-amz-json-1.0", len(body))
            + body
        )
        await writer.drain()
        return True


# -- faults


def refused(code: str, message: str = "refused by the test", status: int = 400) -> Fault:
    """The request is answered with this error, and not forwarded."""

    async def fault(_: Request) -> ProxyAnswer:
        return status, {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message}

    return fault


def page(status: int) -> Fault:
    """The request is answered with a page, as by a server that is not DynamoDB, and not forwarded."""

    async def fault(_: Request) -> ProxyAnswer:
        return status, "<!DOCTYPE html>\n<title>Welcome</title>\n"

    return fault


def canceled(code: str) -> Fault:
    """A transaction is canceled because of its last action, and not forwarded."""

    async def fault(request: Request) -> ProxyAnswer:
        others: list[dict[str, Any]] = [{"Code": "None"} for _ in request.content["TransactItems"][1:]]
        return 400, {
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "Message": "canceled by the test",
            "CancellationReasons": [*others, {"Code": code, "Message": f"{code} by the test"}],
        }

    return fault


def throttled_shard(shard_id: int) -> Fault:
    """A shard's transactions and queries are refused, as those of a partition whose capacity is used up; others are
    forwarded."""
    partition = {"S": f"shard/{shard_id}"}
    query = refused("ProvisionedThroughputExceededException", "The level of configured throughput is exceeded")
    transaction = canceled("ThrottlingError")

    async def fault(request: Request) -> ProxyAnswer:
        if request.operation == "Query":
            throttled = partition in request.content["ExpressionAttributeValues"].values()
            return await (query if throttled else Request.forward)(request)
        changed = [action["Update"]["Key"]["p"] for action in request.content["TransactItems"] if "Update" in action]
        return await (transaction if partition in changed else Request.forward)(request)

    return fault


def in_bursts(refusals: int, passed: int) -> Fault:
    """So many requests in a row are throttled, of all operations that have this fault, and so many forwarded, in turn."""
    throttled, count = refused("ThrottlingException"), 0

    async def fault(request: Request) -> ProxyAnswer:
        nonlocal count
        count += 1
        refusing = (count - 1) % (refusals + passed) < refusals
        return await (throttled if refusing else Request.forward)(request)

    return fault


async def lost_answer(request: Request) -> ProxyAnswer:
    """It is carried out, and its answer gets lost."""
    await request.forward()
    return None


async def lost_request(_: Request) -> ProxyAnswer:
    """It never arrives, and its connection breaks."""
    return None


def slow(seconds: float) -> Fault:
    """It is carried out at once, and answered so much later."""

    async def fault(request: Request) -> ProxyAnswer:
        answer = await request.forward()
        await asyncio.sleep(seconds)
        return answer

    return fault


def unprocessed(keep: int) -> Fault:
    """Of a batch only the first `keep` are done."""

    async def fault(request: Request) -> ProxyAnswer:
        ((table, items),) = request.content["RequestItems"].items()
        if request.operation == "BatchGetItem":
            left = {**items, "Keys": items["Keys"][keep:]}
            request.content["RequestItems"][table] = {**items, "Keys": items["Keys"][:keep]}
        else:
            left = items[keep:]
            request.content["RequestItems"][table] = items[:keep]
        if keep:
            status, answer = await request.forward()
        else:
            status, answer = 200, {"Responses": {}}
        name = "UnprocessedKeys" if request.operation == "BatchGetItem" else "UnprocessedItems"
        return status, answer | {name: {table: left}}

    return fault


def page_of(items: int) -> Fault:
    """A query reads only so many items; with 0, one that its answer lacks."""

    async def fault(request: Request) -> ProxyAnswer:
        request.content["Limit"] = min(items or 1, request.content.get("Limit", items or 1))
        status, answer = await request.forward()
        if not items and "LastEvaluatedKey" in answer:
            answer |= {"Items": [], "Count": 0}
        return status, answer

    return fault
