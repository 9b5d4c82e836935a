"""The scenes of `tocsin demo --agent`: a few service calls, the outcome of each, and the trace of one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from rich import box
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from tocsin.cli import output
from tocsin.cli.calls_shown import lag_text, outcome_text, took_text, trace_table
from tocsin.cli.demo_scenes import PATIENCE_S, POLL_INTERVAL_S, served
from tocsin.cli.failure import Refused
from tocsin.cli.receiver import ReceivedCallback, Receiver, ReceiverResponse
from tocsin.model.instants import format_instant, parse_instant
from tocsin.model.uuid7 import Uuid7Source
from tocsin.telemetry.logs import configure_logging

CALLS = "/service-calls"
DELETE_AFTER_S = 1.5
FAILING_DELAY_S = 1.0
FINISHED = ("Succeeded", "Failed", "deleted")
#: The scene whose trace is shown at the end.
TRACED = "later"


@dataclass
class Scene:
    """One call of the demo: what it demonstrates, its expected status, and the requests that were received."""

    name: str
    shows: str
    expected: str
    delay_s: float = 0.0
    body: Any = None
    url: str = ""
    idempotency_key: str | None = None
    call_id: str = ""
    call: dict[str, Any] = field(default_factory=dict)
    status: str = ""
    seen: list[str] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether the call has finished or was deleted."""
        return self.status in FINISHED


async def play(folder: Path, *, plain: bool, keep: bool) -> None:
    """Runs all scenes, with the server's data in `folder`. Raises Refused if one does not end as expected."""
    # Some calls fail on purpose; only errors of the server itself are logged.
    configure_logging("error", "console")
    scenes = {scene.name: scene for scene in _scenes()}
    tenant = Uuid7Source(lambda: time.time_ns() // 1_000)()
    receiver = Receiver(_Responses(scenes))
    await receiver.start("127.0.0.1", 0)
    # A port on which nothing listens any more, for the call to a dead host.
    absent = Receiver(lambda callback: ReceiverResponse())
    await absent.start("127.0.0.1", 0)
    await absent.stop()
    for scene in scenes.values():
        scene.url = f"{absent.url if scene.name == 'dead' else receiver.url}/{scene.name}"
    try:
        async with (
            served(folder) as url,
            httpx.AsyncClient(base_url=f"{url}/api/tenants/{tenant}") as client,
        ):
            output.note(f"Server {url}, receiver {receiver.url}, tenant {tenant}, data in {folder}")
            with _stage(scenes, plain) as show:
                await asyncio.wait_for(_act(client, scenes, show), PATIENCE_S)
            await _conclude(client, scenes, tenant)
            wrong = [scene.name for scene in scenes.values() if scene.status != scene.expected]
            if keep:
                output.note(f"Still serving on {url}. Stop with Ctrl-C.")
                await asyncio.Event().wait()
            if wrong:
                raise Refused(f"did not end as expected: {', '.join(wrong)}")
    except TimeoutError:
        late = ", ".join(scene.name for scene in scenes.values() if not scene.over)
        raise Refused(f"not finished after {PATIENCE_S:.0f} s: {late}") from None
    finally:
        await receiver.stop()


def _scenes() -> list[Scene]:
    return [
        Scene("now", "is made immediately", "Succeeded", body={"hello": "world"}),
        Scene("later", "is made in three seconds", "Succeeded", delay_s=3.0, body={"cups": 2}),
        Scene("dead", "goes to a port where nothing listens", "Failed"),
        Scene("failing", "gets a 503 after one second", "Failed", body={"try": "me"}),
        Scene("deleted", "is deleted while Scheduled", "deleted", delay_s=30.0),
        Scene("twice", "is sent twice with one idempotency key", "Succeeded", delay_s=1.0, idempotency_key="order-17"),
    ]


class _Responses:
    """The responses of the called services."""

    def __init__(self, scenes: dict[str, Scene]) -> None:
        self._scenes = scenes

    def __call__(self, callback: ReceivedCallback) -> ReceiverResponse:
        scene = self._scenes[callback.path[1:]]
        if scene.name == "failing":
            scene.seen.append(f"{callback.method} received; responds 503 in 1 s")
            return ReceiverResponse(503, b'{"error": "out of order"}', FAILING_DELAY_S)
        scene.seen.append(f"{callback.method} received, responded 200")
        return ReceiverResponse(200, b'{"served": true}')


async def _act(client: httpx.AsyncClient, scenes: dict[str, Scene], show: Callable[[], None]) -> None:
    for scene in scenes.values():
        await _submit(client, scene)
        show()
    delete_at = time.monotonic() + DELETE_AFTER_S
    while not all(scene.over for scene in scenes.values()):
        if delete_at and time.monotonic() >= delete_at:
            delete_at = 0.0
            await _call(client, "DELETE", f"{CALLS}/{scenes['deleted'].call_id}")
            scenes["deleted"].status = "deleted"
        listed = (await _call(client, "GET", f"{CALLS}?limit=100"))["serviceCalls"]
        calls = {call["serviceCallId"]: call for call in listed}
        for scene in scenes.values():
            if not scene.over and scene.call_id in calls:
                scene.call = calls[scene.call_id]
                scene.status = scene.call["status"]
        show()
        await asyncio.sleep(POLL_INTERVAL_S)


async def _submit(client: httpx.AsyncClient, scene: Scene) -> None:
    request = {"method": "GET" if scene.body is None else "POST", "url": scene.url}
    wanted: dict[str, Any] = {
        "name": scene.name,
        "requestSpec": request if scene.body is None else request | {"body": scene.body},
        "tags": ["demo"],
    }
    if scene.delay_s:
        wanted["dueAt"] = format_instant(time.time_ns() // 1_000 + round(scene.delay_s * 1e6))
    if scene.idempotency_key:
        wanted["idempotencyKey"] = scene.idempotency_key
    answer = await _call(client, "POST", CALLS, wanted)
    scene.call_id, scene.status = answer["serviceCallId"], answer["status"]
    if scene.idempotency_key:
        again = await _call(client, "POST", CALLS, wanted)
        same = again["serviceCallId"] == scene.call_id
        scene.seen.append("the second response names the same call" if same else "a SECOND call was made")


async def _call(client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    response = await client.request(method, path, json=body)
    if not response.is_success:
        raise Refused(f"{method} {response.url.path}: {response.status_code} {response.text}")
    return response.json() if response.content else {}


async def _conclude(client: httpx.AsyncClient, scenes: dict[str, Scene], tenant: str) -> None:
    """Prints each call's outcome, all executions, and one call's trace with the command that shows it."""
    for scene in scenes.values():
        if scene.status != "deleted":
            scene.call = await _call(client, "GET", f"{CALLS}/{scene.call_id}")
    traced = scenes[TRACED]
    trace = await _call(client, "GET", f"{CALLS}/{traced.call_id}/trace")
    _title("Outcomes")
    output.print_table(
        ("call", "state", "outcome", "lag"),
        [
            (scene.name, scene.status, outcome_text(scene.call.get("outcome")), lag_text(scene.call))
            if scene.status != "deleted"
            else (scene.name, scene.status, "never made; its record was removed", "")
            for scene in scenes.values()
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
            for scene in scenes.values()
            for execution in scene.call.get("executions", ())
        ],
    )
    _title(f"Trace of {traced.name}, correlation id {trace['correlationId']}")
    output.console().print(trace_table(trace))
    output.note(f"The command for this trace: tocsin calls get {traced.call_id} --trace --tenant {tenant}")


def _title(text: str) -> None:
    output.print_line([(text, "bold")])


@contextlib.contextmanager
def _stage(scenes: dict[str, Scene], plain: bool) -> Iterator[Callable[[], None]]:
    if plain:
        yield _PlainOutput(scenes)
        return
    with Live(_table(scenes), console=output.console(), auto_refresh=False) as live:
        yield lambda: live.update(_table(scenes), refresh=True)


class _PlainOutput:
    """Prints a line for each change."""

    def __init__(self, scenes: dict[str, Scene]) -> None:
        self._scenes = scenes
        self._started = time.monotonic()
        self._printed: dict[str, tuple[str, int]] = {}

    def __call__(self) -> None:
        for scene in self._scenes.values():
            status, seen = self._printed.get(scene.name, ("", 0))
            clock = f"{time.monotonic() - self._started:5.1f} s  {scene.name:<8}"
            if not status and scene.status:
                output.print_plain(f"{clock} {scene.shows}")
            for line in scene.seen[seen:]:
                output.print_plain(f"{clock} {line}")
            if scene.status != status:
                output.print_plain(f"{clock} {scene.status}")
            self._printed[scene.name] = (scene.status, len(scene.seen))


def _table(scenes: dict[str, Scene]) -> Table:
    table = Table(
        "call", "demonstrates", Column("state", min_width=9), Column("due", min_width=5), "result",
        box=box.SIMPLE_HEAD, expand=False,
    )  # fmt: skip
    for scene in scenes.values():
        state = output.shown(scene.status, output.STATUS_STYLES.get(scene.status, ""))
        due = scene.call.get("dueAt") if scene.status == "Scheduled" else None
        left = "" if due is None else f"{max(0.0, parse_instant(due) / 1e6 - time.time()):.1f} s"
        error = (scene.call.get("outcome") or {}).get("errorMeta")
        seen = [*scene.seen, f"{error['kind']}: {error['message']}"] if error else scene.seen
        table.add_row(Text(scene.name, style="bold"), scene.shows, state, left, output.shown("\n".join(seen)))
    return table
