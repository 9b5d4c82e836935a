"""The scenes of `tocsin demo --agent`: a few service calls, the outcome of each, and the trace of one."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from tocsin.cli import output
from tocsin.cli.calls_shown import lag_text, outcome_text, took_text, trace_table
from tocsin.cli.demo_stage import Demo, Scene
from tocsin.cli.receiver import ReceivedCallback, Receiver, ReceiverResponse
from tocsin.model.ids import Uuid7Source
from tocsin.model.instants import format_instant

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
