"""The scenes of `tocsin demo`, the receiver's responses, and the live table."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec
from rich import box
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tocsin.cli import output
from tocsin.cli.failure import Refused
from tocsin.cli.receiver import ReceivedCallback, Receiver, ReceiverResponse
from tocsin.model.instants import format_instant, parse_instant
from tocsin.server import Server
from tocsin.settings import load_settings
from tocsin.telemetry.logs import configure_logging

POLL_INTERVAL_S = 0.1
#: Time limit of the demo; when it is exceeded, something is wrong.
PATIENCE_S = 30.0
CANCEL_AFTER_S = 1.5


@dataclass
class Scene:
    """One timer of the demo: what it demonstrates, the request that creates it, and its attempts."""

    id: str
    shows: str
    create: dict[str, Any]
    status: str = ""
    due: str | None = None
    attempts: list[str] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether it has finished."""
        return self.status not in ("", "pending")


async def play(folder: Path, *, plain: bool, keep: bool) -> None:
    """Runs all scenes, with the server's data in `folder`. Raises Refused if one fails or hangs."""
    # Warnings would break up the live table; errors are still logged.
    configure_logging("warning" if plain else "error", "console")
    scenes = {scene.id: scene for scene in _scenes()}
    receiver = Receiver(_Responses(scenes))
    await receiver.start("127.0.0.1", 0)
    try:
        async with served(folder) as url, httpx.AsyncClient(base_url=f"{url}/api/v1") as client:
            output.note(f"Server {url}, receiver {receiver.url}, data in {folder}")
            with _stage(scenes, plain) as show:
                await asyncio.wait_for(_act(client, receiver.url, scenes, show), PATIENCE_S)
            failed = [scene.id for scene in scenes.values() if scene.status == "failed"]
            output.note("All done: " + ", ".join(f"{scene.id} {scene.status}" for scene in scenes.values()))
            if keep:
                output.note(f"Still serving on {url}. Stop with Ctrl-C.")
                await asyncio.Event().wait()
            if failed:
                raise Refused(f"failed: {', '.join(failed)}")
    except TimeoutError:
        late = ", ".join(scene.id for scene in scenes.values() if not scene.over)
        raise Refused(f"not finished after {PATIENCE_S:.0f} s: {late}") from None
    finally:
        await receiver.stop()


@contextlib.asynccontextmanager
async def served(folder: Path) -> AsyncIterator[str]:
    """A server on a free port with its data in `folder`, and its URL."""
    server = Server(load_settings({"host": "127.0.0.1", "port": 0, "data_dir": folder}))
    await server.start()
    try:
        yield server.url
    finally:
        await server.stop()


def _scenes() -> list[Scene]:
    retries = {"maxAttempts": 5, "initialInterval": "500ms", "backoffMultiplier": 2}
    return [
        Scene("now", "fires immediately", {"delay": "0s"}),
        Scene("soon", "fires in two seconds", {"delay": "2s", "payload": {"hello": "world"}}),
        Scene("retried", "fails twice, then succeeds", {"delay": "1s", "retryPolicy": retries}),
        Scene("rescheduled", "is rescheduled by its receiver", {"delay": "1500ms"}),
        Scene("canceled", "is deleted before it is due", {"delay": "3s"}),
    ]


class _Responses:
    """The receiver's responses: fails, reschedules, and records attempts."""

    def __init__(self, scenes: dict[str, Scene]) -> None:
        self._scenes = scenes

    def __call__(self, callback: ReceivedCallback) -> ReceiverResponse:
        now_us = time.time_ns() // 1_000
        body = msgspec.json.decode(callback.body)
        scene = self._scenes[body["timerId"]]
        late = f"{(now_us - parse_instant(body['executeAt'])) / 1e3:+.1f} ms"
        if scene.id == "retried" and body["attempt"] < 3:
            scene.attempts.append(f"attempt {body['attempt']}: 503")
            return ReceiverResponse(503)
        if scene.id == "rescheduled" and not scene.attempts:
            scene.attempts.append(f"fired ({late}), rescheduled in 2 s")
            return ReceiverResponse(
                body=msgspec.json.encode({"ok": True, "nextExecuteAt": format_instant(now_us + 2_000_000)})
            )
        scene.attempts.append(f"fired (attempt {body['attempt']})" if body["attempt"] > 1 else f"fired ({late})")
        return ReceiverResponse()


async def _act(client: httpx.AsyncClient, target: str, scenes: dict[str, Scene], show: Callable[[], None]) -> None:
    for scene in scenes.values():
        body = {"namespace": "default", "id": scene.id, "callbackUrl": f"{target}/{scene.id}", **scene.create}
        _take(scene, await _call(client, "/timers/create", body))
        show()
    cancel_at = time.monotonic() + CANCEL_AFTER_S
    while not all(scene.over for scene in scenes.values()):
        if cancel_at and time.monotonic() >= cancel_at:
            cancel_at = 0.0
            await _call(client, "/timers/delete", {"namespace": "default", "timerId": "canceled"})
        for scene in scenes.values():
            if not scene.over:
                _take(scene, await _call(client, "/timers/get", {"namespace": "default", "timerId": scene.id}))
        show()
        await asyncio.sleep(POLL_INTERVAL_S)


async def _call(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    # The server has just started: it may not own all shards yet.
    while (response := await client.post(path, json=body)).status_code == 503:  # noqa: ASYNC110  (nothing to await)
        await asyncio.sleep(POLL_INTERVAL_S)
    if not response.is_success:
        raise Refused(f"{path}: {response.status_code} {response.text}")
    return response.json() if response.content else {}


def _take(scene: Scene, timer: dict[str, Any]) -> None:
    scene.status = timer["status"]
    scene.due = timer.get("nextAttemptAt") or timer["executeAt"]


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
            status, printed = self._printed.get(scene.id, ("", 0))
            clock = f"{time.monotonic() - self._started:5.1f} s  {scene.id:<12}"
            if not status and scene.status:
                output.print_plain(f"{clock} {scene.shows}")
            for attempt in scene.attempts[printed:]:
                output.print_plain(f"{clock} {attempt}")
            if scene.status not in (status, "pending"):
                output.print_plain(f"{clock} {scene.status}")
            self._printed[scene.id] = (scene.status, len(scene.attempts))


def _table(scenes: dict[str, Scene]) -> Table:
    table = Table("timer", "demonstrates", "state", "due", "attempts", box=box.SIMPLE_HEAD, expand=False)
    for scene in scenes.values():
        state = output.shown(scene.status, output.STATUS_STYLES.get(scene.status, ""))
        due = "" if scene.over else _countdown(scene.due)
        table.add_row(Text(scene.id, style="bold"), scene.shows, state, due, output.shown("\n".join(scene.attempts)))
    return table


def _countdown(due: str | None) -> str:
    if due is None:
        return ""
    return f"{max(0.0, parse_instant(due) / 1e6 - time.time()):.1f} s"
