"""A scripted server that implements the API over a real socket, for responses that a real one gives only under stress."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.support.patience import PATIENCE_S
from tocsin.cli.app import run
from tocsin.cli.receiver import ReceivedCallback, Receiver, ReceiverResponse

MAIN = [sys.executable, "-u", "-c", "from tocsin.cli.app import main; main()"]


class Ran(NamedTuple):
    """The result of a command."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The standard output as JSON."""
        return msgspec.json.decode(self.out)


class ScriptedServer:
    """Keeps timers in a dict. `script` are the responses to send first, whatever the request; `received` has all requests."""

    def __init__(self) -> None:
        self.url = ""
        self.script: list[ReceiverResponse] = []
        self.received: list[ReceivedCallback] = []
        self.timers: dict[tuple[str, str], dict[str, Any]] = {}
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        receiver = Receiver(self._answer)
        self._loop.run_until_complete(receiver.start("127.0.0.1", 0))
        self.url = receiver.url
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(receiver.stop())
        self._loop.close()

    def _answer(self, request: ReceivedCallback) -> ReceiverResponse:
        self.received.append(request)
        if self.script:
            return self.script.pop(0)
        body = msgspec.json.decode(request.body) if request.body else {}
        action = getattr(self, "_" + request.path.removeprefix("/api/v1/").replace("/", "_"), None)
        return action(body) if action else problem(404, "NOT_FOUND")

    def _timers_create(self, body: dict[str, Any]) -> ReceiverResponse:
        return answer(self._created(body))

    def _created(self, body: dict[str, Any]) -> dict[str, Any]:
        known = {"status": "pending", "attempts": 0, "executeAt": "2099-01-01T00:00:00Z", "shardId": 3}
        timer = known | {name: value for name, value in body.items() if name not in ("delay", "idempotencyKey")}
        self.timers[body["namespace"], body["id"]] = timer
        return timer

    def _timers_batch_create(self, body: dict[str, Any]) -> ReceiverResponse:
        bad = {"error": "INVALID_INPUT", "message": "…", "errors": [{"path": "callbackUrl", "reason": "is missing"}]}
        results = [
            {"timer": self._created(item)} if "callbackUrl" in item else {"error": bad} for item in body["timers"]
        ]
        return answer({"results": results})

    def _timers_get(self, body: dict[str, Any]) -> ReceiverResponse:
        timer = self.timers.get((body["namespace"], body["timerId"]))
        return answer(timer) if timer else problem(404, "TIMER_NOT_FOUND", "no such timer")

    def _timers_explain(self, body: dict[str, Any]) -> ReceiverResponse:
        return answer(
            {
                "state": "scheduled", "waitsFor": "instant", "next": "2099-01-01T00:00:00Z", "shard": 3, "owner": None,
                "sentence": f"{body['timerId']} is in the store.",
            }
        )  # fmt: skip

    def _timers_delete(self, body: dict[str, Any]) -> ReceiverResponse:
        timer = self.timers.pop((body["namespace"], body["timerId"]), None)
        return ReceiverResponse(204) if timer else problem(404, "TIMER_NOT_FOUND", "no such timer")

    def _timers_list(self, body: dict[str, Any]) -> ReceiverResponse:
        limit, start = body["limit"], int(body.get("cursor", 0))
        found = sorted(self.timers.values(), key=lambda timer: (timer["executeAt"], timer["id"]))
        found = [timer for timer in found if set(body.get("tags", ())) <= set(timer.get("tags", ()))]
        page: dict[str, Any] = {"timers": found[start : start + limit]}
        return answer(page | ({"nextCursor": str(start + limit)} if len(found) > start + limit else {}))


def answer(value: Any, status: int = 200) -> ReceiverResponse:
    """A JSON response."""
    return ReceiverResponse(status, msgspec.json.encode(value))


def problem(status: int, code: str, detail: str = "", **members: Any) -> ReceiverResponse:
    """A problem response."""
    return answer({"title": code, "status": status, "error": code, "detail": detail, **members}, status)


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    """A running scripted server."""
    server = ScriptedServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def tocsin(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Callable[..., Ran]:
    """Runs a command in this process, in an empty folder and an environment without settings."""
    for name in [name for name in os.environ if name.startswith("TOCSIN_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Ran:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return call


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a running server."""
    folder = tmp_path_factory.mktemp("node")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
    command = [*MAIN, "serve", "--port", "0", "--data-dir", str(folder), "--log-level", "error"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        yield re.search(r"http://[\d.:]+", process.stdout.readline())[0]
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


@pytest.fixture
def cli(tocsin: Callable[..., Ran], node: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Runs a client command against the node."""
    monkeypatch.setenv("TOCSIN_URL", node)
    return tocsin
