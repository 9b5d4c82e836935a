"""The scenes of `tocsin demo`, and the receiver's responses."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import msgspec

from tocsin.cli import output
from tocsin.cli.demo_stage import Demo, Scene
from tocsin.cli.receiver import ReceivedCallback, ReceiverResponse
from tocsin.model.instants import format_instant, parse_instant

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
