"""The traffic of the soak: everything that a service does for its users, at a steady rate."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.drills.soak.ledger import Ledger
from tests.support.cluster import AnyNode, now_us
from tests.support.http import Receiver
from tests.support.server import ServerProcess
from tocsin.model.ids import Uuid7Source
from tocsin.model.instants import format_instant, parse_instant

MAIN, BATCHED = "soak", "batched"
SCHEDULES, MONITORS, LAPSING = 10, 12, 4
#: Of the timers that clients create.
_BATCH_TIMERS = 10
_FLOW_KEYS = 50
#: Debounced ids are taken in turn.
_DEBOUNCED_IDS = 20
_PING_S, _PINGS_KEPT = 4.0, 20
#: A monitor is late so long after the last ping of its job.
_MONITOR_LATE_S = 15
#: A job that lapses does not ping for so long, and then pings for so long.
_LAPSE_S, _HEALTHY_S = 30, 60
#: How long what is canceled by a job would have waited: it is in memory by then, and a job ends it long before.
_CANCELED_AFTER_S = 240
_JOBS_S = 45.0
#: How long a live stream stays open, and how often a page is read.
_STREAM_S, _PAGE_S = 20.0, 2.0
_PAGES = ("/", "/timers?namespace=soak", "/schedules?namespace=soak", "/failures", "/monitors", "/nodes", "/calls")
_STREAMS = ("/ui/live/overview", "/ui/live?namespace=soak", "/ui/live/schedules?namespace=soak")


@dataclass(frozen=True)
class Plan:
    """Timers a second, and for how long what has ended is kept."""

    rate: int
    retention_s: int


class Traffic:
    """Clients of running nodes, and their receiver. `counted` is in the ledger."""

    def __init__(self, servers: list[ServerProcess], plan: Plan) -> None:
        self.servers, self.plan, self.ledger = servers, plan, Ledger()
        self._receiver = Receiver(self._received)
        self._numbers = itertools.count()
        self._stopping = asyncio.Event()
        self._new_id = Uuid7Source(now_us)
        self._tenant = self._new_id()
        #: What has been reported as failed, and was not replayed since; whatever of it is called later succeeds.
        self._failed: set[str] = set()
        self._repaired: set[str] = set()
        #: Of each monitor the latest pings: when each was sent, and when it was acknowledged.
        self._pings: dict[str, deque[tuple[int, int]]] = defaultdict(partial(deque, maxlen=_PINGS_KEPT))
        self._clients: list[AnyNode] = []

    # ------------------------------------------------------------------ requests

    def _client(self) -> AnyNode:
        client = AnyNode(self.servers, len(self._clients))
        self._clients.append(client)
        return client

    async def _post(self, client: AnyNode, path: str, body: Any) -> tuple[int, Any]:
        """The status, and 0 without an answer: then the outcome is unknown."""
        try:
            status, answer = await client.post(path, body)
        except (OSError, EOFError, TimeoutError) as error:
            self.ledger.counted[f"unanswered: {type(error).__name__}"] += 1
            return 0, None
        if status >= 400:
            self.ledger.counted[f"refused: {path} {status}"] += 1
        return status, answer

    async def _sure(self, path: str, body: Any) -> Any:
        """The answer to what is done once; again where nothing was done yet. Raises AssertionError if it is refused."""
        client = self._client()
        while (answered := await client.post(path, body))[0] == 503:  # noqa: ASYNC110 -- nodes announce nothing
            await asyncio.sleep(0.5)
        status, answer = answered
        assert status in (200, 201, 202), (path, status, answer)
        return answer

    async def _every(self, seconds: float, act: Callable[[AnyNode, int], Awaitable[None]]) -> None:
        """Acts at a steady pace until the end, each time with the next number. What takes longer delays what follows."""
        client, loop = self._client(), asyncio.get_running_loop()
        begun = loop.time()
        for number in itertools.count():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(max(begun + number * seconds, loop.time())):
                    await self._stopping.wait()
            if self._stopping.is_set():
                return
            await act(client, number)

    # ------------------------------------------------------------------ beginning and end

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Sets everything up, and lets it run until the end of the block; then nothing new begins."""
        async with self._receiver:
            await self._set_up()
            per_second = self.plan.rate
            acts: list[tuple[float, Callable[[AnyNode, int], Awaitable[None]]]] = [
                (1 / (per_second * 0.4), self._create),
                (_BATCH_TIMERS / (per_second * 0.3), self._create_batch),
                (_BATCH_TIMERS / (per_second * 0.15), self._create_sent_together),
                (1 / (per_second * 0.05), self._create_in_flow),
                (1 / (per_second * 0.03), self._create_moved),
                (1 / (per_second * 0.02), self._create_deleted),
                (1 / (per_second * 0.02), self._create_canceled),
                (1 / (per_second * 0.02), self._create_debounced),
                (1 / (per_second * 0.01), self._create_failing),
                (1.0, self._call),
                (_JOBS_S, self._run_jobs),
                (5.0, self._read),
            ]
            try:
                # What fails here ends the run at once.
                async with asyncio.TaskGroup() as tasks:
                    for each in acts:
                        tasks.create_task(self._every(*each))
                    for number in range(MONITORS):
                        tasks.create_task(self._monitored(number))
                    for server in self.servers:
                        tasks.create_task(self._look(server))
                        for path in _STREAMS:
                            tasks.create_task(self._stream(server, path))
                    yield
                    self._stopping.set()
                await self._settle()
            finally:
                for client in self._clients:
                    client.close()

    async def _set_up(self) -> None:
        hook, retention = {"url": self._receiver.url}, f"{self.plan.retention_s}s"
        hooks = {"onFailure": hook, "onRecovery": hook, "onLate": hook}
        await self._sure("/api/v1/namespaces/create", {"name": MAIN, "retention": retention, **hooks})
        batch = {"max": 100, "linger": "200ms"}
        await self._sure("/api/v1/namespaces/create", {"name": BATCHED, "retention": retention, "callbackBatch": batch})
        limits = {"rate": {"count": 20, "per": "1s"}, "burst": 5, "parallelism": 2}
        await self._sure("/api/v1/flows/put", {"namespace": MAIN, "match": "customer:", "perKey": limits})
        for number in range(SCHEDULES):
            body = {
                "namespace": MAIN, "id": f"s{number}", "every": "1s", "catchUp": "all", "callbackUrl": self._receiver.url,
            }  # fmt: skip
            await self._sure("/api/v1/schedules/create", body)

    async def _settle(self, timeout_s: float = 180.0) -> None:
        """Ends the schedules, and returns when nothing is owed any more, or after a limit."""
        for number in range(SCHEDULES):
            await self._sure("/api/v1/schedules/pause", {"namespace": MAIN, "scheduleId": f"s{number}"})
        await self._cancel(self._client())
        await self._replay(self._client())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self.ledger.owed or self.ledger.calls or self.ledger.notices:  # noqa: ASYNC110 -- calls end it
                    await asyncio.sleep(0.5)

    # ------------------------------------------------------------------ timers

    def _timer(self, kind: str, after_s: float, namespace: str = MAIN, **more: Any) -> tuple[str, dict[str, Any]]:
        """A new timer, promised, with its name in the ledger."""
        timer_id, due = f"{kind}{next(self._numbers)}", now_us() + int(after_s * 1e6)
        name = f"{namespace}/{timer_id}"
        self.ledger.promise(name, due)
        return name, {
            "namespace": namespace, "id": timer_id, "executeAt": format_instant(due), "callbackUrl": self._receiver.url,
            "payload": {"of": timer_id}, "headers": {"authorization": "Bearer of-the-soak"}, **more,
        }  # fmt: skip

    async def _created(self, client: AnyNode, name: str, body: dict[str, Any]) -> bool:
        status, _ = await self._post(client, "/api/v1/timers/create", body)
        if status != 200:
            self.ledger.take_back(name)
            return False
        self.ledger.counted["created"] += 1
        return True

    async def _create(self, client: AnyNode, number: int) -> None:
        # Every second one may be repeated, and so is looked up by its key.
        more = {"idempotencyKey": self._new_id()} if number % 2 else {}
        await self._created(client, *self._timer("p", 1 + number % 20, **more))

    async def _create_batch(self, client: AnyNode, number: int, namespace: str = MAIN) -> None:
        timers = [self._timer("b", 2 + number % 8, namespace) for _ in range(_BATCH_TIMERS)]
        status, answer = await self._post(
            client, "/api/v1/timers/batch/create", {"timers": [body for _, body in timers]}
        )
        results = answer["results"] if status == 200 else [{"error": status}] * _BATCH_TIMERS
        for (name, _), result in zip(timers, results, strict=True):
            self.ledger.counted["refused" if "error" in result else "created"] += 1
            if "error" in result:
                self.ledger.take_back(name)

    async def _create_sent_together(self, client: AnyNode, number: int) -> None:
        await self._create_batch(client, number, BATCHED)

    async def _create_in_flow(self, client: AnyNode, number: int) -> None:
        await self._created(client, *self._timer("f", 2, flowKey=f"customer:{number % _FLOW_KEYS}"))

    async def _create_moved(self, client: AnyNode, _: int) -> None:
        name, body = self._timer("m", 60)
        if not await self._created(client, name, body):
            return
        due = now_us() + 3_000_000
        self.ledger.promise(name, due)
        moved = {"namespace": MAIN, "timerId": body["id"], "executeAt": format_instant(due)}
        if (await self._post(client, "/api/v1/timers/update", moved))[0] != 200:
            self.ledger.take_back(name)

    async def _create_deleted(self, client: AnyNode, _: int) -> None:
        name, body = self._timer("d", 20)
        if not await self._created(client, name, body):
            return
        if (await self._post(client, "/api/v1/timers/delete", {"namespace": MAIN, "timerId": body["id"]}))[0] == 200:
            self.ledger.end(name, now_us())
        else:
            self.ledger.take_back(name)

    async def _create_canceled(self, client: AnyNode, _: int) -> None:
        await self._created(client, *self._timer("c", _CANCELED_AFTER_S, tags=["canceled"]))

    async def _create_debounced(self, client: AnyNode, number: int) -> None:
        """A create of an id that may still wait: its delay begins again, for at most five seconds in all."""
        timer_id = f"o{number % _DEBOUNCED_IDS}"
        name = f"{MAIN}/{timer_id}"
        begun = now_us()
        # The ledger keeps the earliest instant; it is owed from its longest delay on.
        self.ledger.due[name] = min(self.ledger.due.get(name, begun), begun) if name in self.ledger.owed else begun
        self.ledger.owed[name] = begun + 5_000_000
        body = {
            "namespace": MAIN, "id": timer_id, "delay": "2s", "maxDelay": "5s", "onConflict": "debounce",
            "callbackUrl": self._receiver.url, "payload": {"number": number},
        }  # fmt: skip
        if not await self._created(client, name, body):
            self.ledger.take_back(name)

    async def _create_failing(self, client: AnyNode, _: int) -> None:
        policy = {"maxAttempts": 2, "initialInterval": "1s"}
        name, body = self._timer("x", 2, retryPolicy=policy)
        if await self._created(client, name, body):
            self.ledger.notices[f"timer.failed {name}"] = now_us() + 5_000_000

    # ------------------------------------------------------------------ jobs, calls, reads

    async def _job(self, client: AnyNode, action: str, of: str, filter_: dict[str, Any]) -> bool:
        """Whether it has been done as a whole."""
        body = {"namespace": MAIN, "action": action, "of": of, "filter": filter_, "idempotencyKey": self._new_id()}
        status, answer = await self._post(client, "/api/v1/jobs/create", body)
        while status in (200, 202) and answer["job"]["state"] == "running":
            await asyncio.sleep(0.5)
            status, answer = await self._post(client, "/api/v1/jobs/get", {"jobId": answer["job"]["id"]})
        if status != 200 or answer["job"]["state"] != "completed":
            self.ledger.counted[f"job {action}: {status}"] += 1
            return False
        self.ledger.counted[f"rows of jobs, {action}"] += answer["job"]["changed"]
        return True

    async def _run_jobs(self, client: AnyNode, _: int) -> None:
        await self._cancel(client)
        await self._replay(client)

    async def _cancel(self, client: AnyNode) -> None:
        concerned = [name for name in self.ledger.owed if name.startswith(f"{MAIN}/c")]
        if await self._job(client, "cancel", "timers", {"tags": ["canceled"]}):
            ended = now_us()
            for name in concerned:
                self.ledger.end(name, ended)

    async def _replay(self, client: AnyNode) -> None:
        """Replays what has been reported as failed; each is owed once more, and its recovery."""
        concerned, self._failed = self._failed, set()
        for name in concerned:
            self.ledger.owed[name] = self.ledger.notices[f"timer.recovered {name}"] = now_us() + 15_000_000
        if not await self._job(client, "replay", "failures", {"idPrefix": "x"}):
            for name in concerned:
                self.ledger.take_back(name)
                self.ledger.notices.pop(f"timer.recovered {name}", None)

    async def _call(self, client: AnyNode, number: int) -> None:
        name, due = f"call {number}", now_us() + number % 5 * 1_000_000
        self.ledger.calls[name] = due
        body = {
            "name": name, "dueAt": format_instant(due), "tags": ["soak"],
            "requestSpec": {"method": "POST", "url": self._receiver.url, "body": {"call": name}},
        }  # fmt: skip
        status, _ = await self._post(client, f"/api/v1/tenants/{self._tenant}/service-calls", body)
        if status != 202:
            self.ledger.calls.pop(name, None)

    async def _read(self, client: AnyNode, number: int) -> None:
        """What programs ask beside: each request once in a while."""
        path, body = (
            ("timers/list", {"namespace": MAIN, "status": "pending", "limit": 100}),
            ("schedules/history", {"namespace": MAIN, "scheduleId": "s0", "limit": 50}),
            ("failures/list", {"namespace": "*"}),
            ("statistics/get", {"namespace": "*"}),
            ("timers/list", {"namespace": MAIN, "status": "completed", "limit": 100}),
            ("schedules/list", {"namespace": MAIN}),
            ("audit/list", {"limit": 50}),
        )[number % 7]
        await self._post(client, f"/api/v1/{path}", body)

    # ------------------------------------------------------------------ monitors

    async def _monitored(self, number: int) -> None:
        """A job with a monitor. The first few lapse again and again, and are noticed each time."""
        name = f"j{number}"
        body = {"namespace": MAIN, "id": name, "every": "10s", "grace": f"{_MONITOR_LATE_S - 10}s"}
        answer = await self._sure("/api/v1/monitors/put", body)
        path, late = urlsplit(answer["pingUrl"]).path, f"monitor.late {MAIN}/{name}"
        loop = asyncio.get_running_loop()
        began = loop.time() + number
        server = self.servers[number % len(self.servers)]
        async with httpx.AsyncClient(base_url=server.url, timeout=30, verify=False) as job:
            while not self._stopping.is_set():
                lapses = number < LAPSING and loop.time() >= began + _HEALTHY_S
                if lapses:
                    self.ledger.notices[late] = now_us() + 25_000_000
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LAPSE_S if lapses else _PING_S):
                        await self._stopping.wait()
                if lapses:
                    began = loop.time()
                    # At the end of the run it may not have been long enough for a notice.
                    if self._stopping.is_set():
                        self.ledger.notices.pop(late, None)
                await self._ping(job, path, name)
        await self._sure("/api/v1/monitors/pause", {"namespace": MAIN, "id": name})

    async def _ping(self, job: httpx.AsyncClient, path: str, name: str) -> None:
        sent = now_us()
        try:
            answer = await job.post(path)
        except httpx.HTTPError as error:
            self.ledger.counted[f"unanswered: {type(error).__name__}"] += 1
            return
        if answer.status_code == 200:
            self._pings[name].append((sent, now_us()))
        else:
            self.ledger.counted[f"refused: ping {answer.status_code}"] += 1

    # ------------------------------------------------------------------ pages

    async def _look(self, server: ServerProcess) -> None:
        """Somebody who looks at one page after another."""
        async with httpx.AsyncClient(base_url=server.url, timeout=30, follow_redirects=True) as browser:

            async def look(_: AnyNode, number: int) -> None:
                try:
                    answer = await browser.get(_PAGES[number % len(_PAGES)])
                except httpx.HTTPError as error:
                    self.ledger.counted[f"unanswered: {type(error).__name__}"] += 1
                    return
                self.ledger.counted[f"pages {answer.status_code}"] += 1

            await self._every(_PAGE_S, look)

    async def _stream(self, server: ServerProcess, path: str) -> None:
        """An open page: a live stream, opened again and again."""
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError, OSError):
                async with asyncio.timeout(_STREAM_S):
                    reader, writer = await asyncio.open_connection(*server.address())
                    try:
                        writer.write(
                            b"GET %s HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n" % path.encode()
                        )
                        while line := await reader.readline():
                            self.ledger.counted["events of pages"] += line.startswith(b"data:")
                            if self._stopping.is_set():
                                break
                    finally:
                        writer.close()

    # ------------------------------------------------------------------ the receiver

    def _received(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        arrived = now_us()
        if "items" in body:
            results = []
            for item in body["items"]:
                self._fired(item, item["webhookId"], arrived)
                results.append({"webhookId": item["webhookId"], "status": 200})
            return 200, json.dumps({"items": results}).encode()
        if "type" in body:
            return self._noticed(body, arrived)
        if "call" in body:
            due = self.ledger.calls.pop(body["call"], None)
            if due is not None and arrived < due:
                self.ledger.violated(f"service {body['call']} came {due - arrived} us early")
            self.ledger.counted["service calls"] += 1
            return 200, b""
        return self._fired(body, headers["webhook-id"], arrived)

    def _fired(self, body: dict[str, Any], firing: str, arrived: int) -> tuple[int, bytes]:
        name, attempt = f"{body['namespace']}/{body['timerId']}", int(body["attempt"])
        kind = body["timerId"][0]
        if kind == "s":
            instant = parse_instant(body["executeAt"])
            self.ledger.occurred(name, instant=instant, firing=firing, attempt=attempt, arrived=arrived)
            return 200, b""
        # A replay continues a firing under its name, and its count of attempts starts over.
        is_replayed = name in self._repaired
        # Timers of a flow and of a batch wait for more than their instant, and so do those that clients put off.
        self.ledger.fired(
            name, firing=f"{firing} again" if is_replayed else firing, attempt=attempt,
            fired_at=parse_instant(body["firedAt"]), arrived=arrived,
            punctual=kind in "pm" or (kind == "b" and body["namespace"] == MAIN),
        )  # fmt: skip
        if kind == "x" and not is_replayed:
            return 500, b""
        # A job may have found the failure before its notification came, and has replayed it then.
        self._failed.discard(name)
        return 200, b""

    def _noticed(self, body: dict[str, Any], arrived: int) -> tuple[int, bytes]:
        kind = body["type"]
        of = body.get("timer") or body.get("schedule") or body.get("monitor") or {}
        name = f"{of.get('namespace')}/{of.get('id')}"
        self.ledger.counted[f"notifications, {kind}"] += 1
        known = self.ledger.notices.pop(f"{kind} {name}", None)
        if kind == "timer.failed" and known is not None:
            self._failed.add(name)
            self._repaired.add(name)
        if kind == "monitor.late":
            self._check_late(str(of["id"]), parse_instant(body["timestamp"]))
        return 200, b""

    def _check_late(self, name: str, at: int) -> None:
        """A ping counts from when it arrived, which is not before it was sent, if it was acknowledged by then."""
        sent = max((sent for sent, acknowledged in self._pings[name] if acknowledged < at), default=0)
        if (since_s := (at - sent) / 1e6) < _MONITOR_LATE_S:
            self.ledger.violated(f"{name} was reported as late {since_s:.1f} s after a ping that was acknowledged")
