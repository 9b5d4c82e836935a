"""The demos of timers and of service calls: scenes with a server and a receiver, as a live table or as lines."""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import httpx
import msgspec
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from tocsin.cli import output
from tocsin.cli.calls_shown import lag_text, outcome_text, took_text, trace_table
from tocsin.cli.command import Refused, WrongUsage
from tocsin.cli.receiver import ReceivedCallback, Receiver, ReceiverResponse
from tocsin.model.ids import Uuid7Source
from tocsin.model.instants import format_instant, parse_instant
from tocsin.server import Server
from tocsin.settings import load_settings, sources
from tocsin.telemetry.logs import LogOptions, configure_logging

POLL_INTERVAL_S = 0.1
#: Time limit of a demo; when it is exceeded, something is wrong.
PATIENCE_S = 30.0
CANCEL_AFTER_S = 1.5


@dataclass
class Scene:
    """One timer or call: what it demonstrates, its status, the instant that it waits for, and what the receiver saw of it."""

    name: str
    shows: str
    status: str = field(default="", init=False)
    due: str | None = field(default=None, init=False)
    seen: list[str] = field(default_factory=list, init=False)

    def results(self) -> list[str]:
        """The lines of the live table."""
        return self.seen


S = TypeVar("S", bound=Scene)


class Demo(ABC, Generic[S]):
    """Plays its scenes once."""

    #: The headings of the live table's first and last column.
    headings: ClassVar[tuple[str, str]]
    #: The statuses of scenes that have not ended.
    unfinished: ClassVar[frozenset[str]]
    #: The statuses that the plain output leaves out, and the level from which on it has the server's log.
    unprinted: ClassVar[str] = ""
    log_level: ClassVar[str] = "error"
    #: Whether the server runs the agent of the database and the broker that the settings name.
    joins_agent: ClassVar[bool] = False

    def __init__(self, scenes: list[S], api: str, remark: str = "") -> None:
        """`api` is the path below which the demo calls the server, `remark` goes into the first line."""
        self.scenes = {scene.name: scene for scene in scenes}
        self._api = api
        self._remark = remark
        self._client: httpx.AsyncClient
        self._printed: dict[str, tuple[str, int]] = {}

    # -- the parts of each demo

    @abstractmethod
    async def begin(self, scene: S, url: str) -> None:
        """Creates the timer or call, which goes to `url`."""

    @abstractmethod
    async def cancel(self) -> None:
        """Cancels the scene that shows this."""

    @abstractmethod
    async def refresh(self) -> None:
        """Reads the status of each scene that is not over."""

    @abstractmethod
    async def conclude(self) -> str:
        """Prints the results. Returns what is wrong with them; empty if nothing is."""

    @abstractmethod
    def respond(self, scene: S, callback: ReceivedCallback) -> ReceiverResponse:
        """The receiver's response."""

    # -- the play

    async def play(self, folder: Path, *, plain: bool, keep: bool) -> None:
        """Runs all scenes, with the server's data in `folder`. Raises Refused if one fails or hangs."""
        # Warnings would break up the live table; errors are still logged.
        configure_logging(LogOptions(self.log_level if plain else "error", "console"))
        receiver = Receiver(lambda callback: self.respond(self.scenes[callback.path[1:]], callback))
        await receiver.start("127.0.0.1", 0)
        try:
            async with (
                _served(folder, self.joins_agent) as url,
                httpx.AsyncClient(base_url=url + self._api) as self._client,
            ):
                output.note(f"Server {url}, receiver {receiver.url},{self._remark} data in {folder}")
                with self._stage(plain) as show:
                    await asyncio.wait_for(self._act(receiver.url, show), PATIENCE_S)
                wrong = await self.conclude()
                if keep:
                    output.note(f"Still serving on {url}. Stop with Ctrl-C.")
                    await asyncio.Event().wait()
                if wrong:
                    raise Refused(wrong)
        except TimeoutError:
            late = ", ".join(scene.name for scene in self.scenes.values() if not self.over(scene))
            raise Refused(f"not finished after {PATIENCE_S:.0f} s: {late}") from None
        finally:
            await receiver.stop()

    def over(self, scene: S) -> bool:
        """Whether the scene has ended."""
        return scene.status not in self.unfinished

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """The decoded response. Raises Refused."""
        # The server has just started: it may not own all shards yet.
        while (response := await self._client.request(method, path, json=body)).status_code == 503:  # noqa: ASYNC110  (nothing to await)
            await asyncio.sleep(POLL_INTERVAL_S)
        if not response.is_success:
            raise Refused(f"{method} {response.url.path}: {response.status_code} {response.text}")
        return response.json() if response.content else {}

    async def _act(self, target: str, show: Callable[[], None]) -> None:
        for scene in self.scenes.values():
            await self.begin(scene, f"{target}/{scene.name}")
            show()
        cancel_at = time.monotonic() + CANCEL_AFTER_S
        while not all(map(self.over, self.scenes.values())):
            if cancel_at and time.monotonic() >= cancel_at:
                cancel_at = 0.0
                await self.cancel()
            await self.refresh()
            show()
            await asyncio.sleep(POLL_INTERVAL_S)

    # -- what is shown during the play

    @contextlib.contextmanager
    def _stage(self, plain: bool) -> Iterator[Callable[[], None]]:
        if plain:
            started = time.monotonic()
            yield lambda: self._print_changes(time.monotonic() - started)
            return
        with Live(self._table(), console=output.console(), auto_refresh=False) as live:
            yield lambda: live.update(self._table(), refresh=True)

    def _print_changes(self, elapsed_s: float) -> None:
        width = max(map(len, self.scenes)) + 1
        for scene in self.scenes.values():
            status, seen = self._printed.get(scene.name, ("", 0))
            clock = f"{elapsed_s:5.1f} s  {scene.name:<{width}}"
            if not status and scene.status:
                output.print_plain(f"{clock} {scene.shows}")
            for line in scene.seen[seen:]:
                output.print_plain(f"{clock} {line}")
            if scene.status not in (status, self.unprinted):
                output.print_plain(f"{clock} {scene.status}")
            self._printed[scene.name] = (scene.status, len(scene.seen))

    def _table(self) -> Table:
        first, last = self.headings
        state, due = Column("state", min_width=9), Column("due", min_width=5)
        table = output.plain_table(first, "demonstrates", state, due, last)
        for scene in self.scenes.values():
            shown = output.shown(scene.status, output.STATUS_STYLES.get(scene.status, ""))
            left = f"{max(0.0, parse_instant(scene.due) / 1e6 - time.time()):.1f} s" if scene.due else ""
            table.add_row(
                Text(scene.name, style="bold"), scene.shows, shown, left, output.shown("\n".join(scene.results()))
            )
        return table


@contextlib.asynccontextmanager
async def _served(folder: Path, joins_agent: bool) -> AsyncIterator[str]:
    """A server on a free port with its data in `folder`, and its URL. Raises WrongUsage if settings name data elsewhere;
    those of the service agent may be, if the demo joins it."""
    flags = {"host": "127.0.0.1", "port": 0, "data_dir": folder}
    settings, places = load_settings(flags), sources(flags)
    # As a node of another store it would fire that store's timers, and replace those that have the names of its scenes.
    shared: dict[str, object] = {"store": settings.store, "inbox_url": settings.inbox.url}
    if not joins_agent:
        # It would take over the agent of that database, and its calls.
        shared |= {"agent_database": settings.agent_database, "broker": settings.broker}
    if named := [places[field].place for field, value in shared.items() if value is not None]:
        raise WrongUsage(f"the demo has a store of its own; leave out what is set by {', '.join(named)}")
    server = Server(settings)
    await server.start()
    try:
        yield server.url
    finally:
        await server.stop()


_RETRIES = {"maxAttempts": 5, "initialInterval": "500ms", "backoffMultiplier": 2}


@dataclass
class TimerScene(Scene):
    """One timer, and the request that creates it."""

    create: dict[str, Any]


class TimersDemo(Demo[TimerScene]):
    """Timers: one is retried, one rescheduled, one deleted."""

    headings = ("timer", "attempts")
    unfinished = frozenset({"", "pending"})
    unprinted = "pending"
    log_level = "warning"

    def __init__(self) -> None:
        scenes = [
            TimerScene("now", "fires immediately", {"delay": "0s"}),
            TimerScene("soon", "fires in two seconds", {"delay": "2s", "payload": {"hello": "world"}}),
            TimerScene("retried", "fails twice, then succeeds", {"delay": "1s", "retryPolicy": _RETRIES}),
            TimerScene("rescheduled", "is rescheduled by its receiver", {"delay": "1500ms"}),
            TimerScene("canceled", "is deleted before it is due", {"delay": "3s"}),
        ]
        super().__init__(scenes, "/api/v1/timers")

    async def begin(self, scene: TimerScene, url: str) -> None:
        """Creates the timer."""
        body = {"namespace": "default", "id": scene.name, "callbackUrl": url, **scene.create}
        self._take(scene, await self.call("POST", "/create", body))

    async def cancel(self) -> None:
        """Deletes a timer."""
        await self.call("POST", "/delete", {"namespace": "default", "timerId": "canceled"})

    async def refresh(self) -> None:
        """Gets each timer."""
        for scene in self.scenes.values():
            if not self.over(scene):
                self._take(scene, await self.call("POST", "/get", {"namespace": "default", "timerId": scene.name}))

    def _take(self, scene: TimerScene, timer: dict[str, Any]) -> None:
        scene.status = timer["status"]
        scene.due = None if self.over(scene) else timer.get("nextAttemptAt") or timer["executeAt"]

    async def conclude(self) -> str:
        """Prints how each timer ended."""
        scenes = self.scenes.values()
        output.note("All done: " + ", ".join(f"{scene.name} {scene.status}" for scene in scenes))
        failed = ", ".join(scene.name for scene in scenes if scene.status == "failed")
        return failed and f"failed: {failed}"

    def respond(self, scene: TimerScene, callback: ReceivedCallback) -> ReceiverResponse:
        """Fails, reschedules, and records attempts."""
        now_us = time.time_ns() // 1_000
        body = msgspec.json.decode(callback.body)
        late = f"{(now_us - parse_instant(body['executeAt'])) / 1e3:+.1f} ms"
        if scene.name == "retried" and body["attempt"] < 3:
            scene.seen.append(f"attempt {body['attempt']}: 503")
            return ReceiverResponse(503)
        if scene.name == "rescheduled" and not scene.seen:
            scene.seen.append(f"fired ({late}), rescheduled in 2 s")
            return ReceiverResponse(
                body=msgspec.json.encode({"ok": True, "nextExecuteAt": format_instant(now_us + 2_000_000)})
            )
        scene.seen.append(f"fired (attempt {body['attempt']})" if body["attempt"] > 1 else f"fired ({late})")
        return ReceiverResponse()


CALLS = "/service-calls"
FAILING_DELAY_S = 1.0
#: The scene whose trace is shown at the end.
TRACED = "later"


@dataclass
class CallScene(Scene):
    """One call: its expected status, and the request that submits it."""

    expected: str
    delay_s: float = 0.0
    body: Any = None
    idempotency_key: str | None = None
    call_id: str = field(default="", init=False)
    call: dict[str, Any] = field(default_factory=dict, init=False)

    def results(self) -> list[str]:
        """What the receiver saw, and the error."""
        error = (self.call.get("outcome") or {}).get("errorMeta")
        return [*self.seen, f"{error['kind']}: {error['message']}"] if error else self.seen


class CallsDemo(Demo[CallScene]):
    """Service calls of one tenant: some of them fail on purpose."""

    headings = ("call", "result")
    joins_agent = True
    unfinished = frozenset({"", "Scheduled", "Running", "Retrying"})

    def __init__(self) -> None:
        self._tenant = Uuid7Source(lambda: time.time_ns() // 1_000)()
        scenes = [
            CallScene("now", "is made immediately", "Succeeded", body={"hello": "world"}),
            CallScene("later", "is made in three seconds", "Succeeded", 3.0, {"cups": 2}),
            CallScene("dead", "goes to a port where nothing listens", "Failed"),
            CallScene("failing", "gets a 503 after one second", "Failed", body={"try": "me"}),
            CallScene("deleted", "is deleted while Scheduled", "deleted", 30.0),
            CallScene("twice", "is sent twice with one idempotency key", "Succeeded", 1.0, idempotency_key="order-17"),
        ]
        super().__init__(scenes, f"/api/v1/tenants/{self._tenant}", f" tenant {self._tenant},")

    async def begin(self, scene: CallScene, url: str) -> None:
        """Submits the call."""
        if scene.name == "dead":
            # A port on which nothing listens any more.
            absent = Receiver(lambda callback: ReceiverResponse())
            await absent.start("127.0.0.1", 0)
            await absent.stop()
            url = f"{absent.url}/{scene.name}"
        request = {"method": "GET" if scene.body is None else "POST", "url": url}
        wanted: dict[str, Any] = {
            "name": scene.name,
            "requestSpec": request if scene.body is None else request | {"body": scene.body},
            "tags": ["demo"],
        }
        if scene.delay_s:
            wanted["dueAt"] = format_instant(time.time_ns() // 1_000 + round(scene.delay_s * 1e6))
        if scene.idempotency_key:
            wanted["idempotencyKey"] = scene.idempotency_key
        answer = await self.call("POST", CALLS, wanted)
        scene.call_id, scene.status = answer["serviceCallId"], answer["status"]
        if scene.idempotency_key:
            again = await self.call("POST", CALLS, wanted)
            same = again["serviceCallId"] == scene.call_id
            scene.seen.append("the second response names the same call" if same else "a SECOND call was made")

    async def cancel(self) -> None:
        """Deletes a call."""
        scene = self.scenes["deleted"]
        await self.call("DELETE", f"{CALLS}/{scene.call_id}")
        scene.status, scene.due = "deleted", None

    async def refresh(self) -> None:
        """Lists the calls."""
        listed = (await self.call("GET", f"{CALLS}?limit=100"))["serviceCalls"]
        calls = {call["serviceCallId"]: call for call in listed}
        for scene in self.scenes.values():
            if not self.over(scene) and scene.call_id in calls:
                scene.call = calls[scene.call_id]
                scene.status = scene.call["status"]
                scene.due = scene.call["dueAt"] if scene.status == "Scheduled" else None

    async def conclude(self) -> str:
        """Prints each call's outcome, all executions, and one call's trace with the command that shows it."""
        scenes = self.scenes.values()
        for scene in scenes:
            if scene.status != "deleted":
                scene.call = await self.call("GET", f"{CALLS}/{scene.call_id}")
        traced = self.scenes[TRACED]
        trace = await self.call("GET", f"{CALLS}/{traced.call_id}/trace")
        _title("Outcomes")
        output.print_table(
            ("call", "state", "outcome", "lag"),
            [
                (scene.name, scene.status, outcome_text(scene.call.get("outcome")), lag_text(scene.call))
                if scene.status != "deleted"
                else (scene.name, scene.status, "never made; its record was removed", "")
                for scene in scenes
            ],
        )
        _title("Executions")
        output.print_table(
            ("call", "execution", "started", "took", "status"),
            [
                (
                    scene.name,
                    execution["executionId"],
                    execution["startedAt"].partition("T")[2],
                    took_text(execution),
                    (execution.get("response") or {}).get("status"),
                )
                for scene in scenes
                for execution in scene.call.get("executions", ())
            ],
        )
        _title(f"Trace of {traced.name}, correlation id {trace['correlationId']}")
        output.console().print(trace_table(trace))
        output.note(f"The command for this trace: tocsin calls get {traced.call_id} --trace --tenant {self._tenant}")
        wrong = ", ".join(scene.name for scene in scenes if scene.status != scene.expected)
        return wrong and f"did not end as expected: {wrong}"

    def respond(self, scene: CallScene, callback: ReceivedCallback) -> ReceiverResponse:
        """The response of the called service."""
        if scene.name == "failing":
            scene.seen.append(f"{callback.method} received; responds 503 in 1 s")
            return ReceiverResponse(503, b'{"error": "out of order"}', FAILING_DELAY_S)
        scene.seen.append(f"{callback.method} received, responded 200")
        return ReceiverResponse(200, b'{"served": true}')


def _title(text: str) -> None:
    output.print_line([(text, "bold")])
