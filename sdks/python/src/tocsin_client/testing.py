"""For your tests: a server whose clock you move, and signed callbacks without a server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import urllib3

from tocsin_client._core.ids import timer_uuid
from tocsin_client._error_bases import TocsinError
from tocsin_client._sync.client import Client
from tocsin_client._values import Duration, JsonValue, duration_text, format_instant, parse_instant
from tocsin_client.receiver import Firing, sign_body

_LINE = re.compile(r"serves on (http://\S+)")
_START_S_MAX = 120.0
_STOP_S_MAX = 30.0
#: Of the request that moves the clock: days of callbacks are answered meanwhile.
_ADVANCE_S_MAX = 600.0


class ServerFailed(TocsinError):
    """The test's server did not start, or did not do what was asked."""


class TestServer:
    """`tocsin dev` on a free port, with an empty folder of its own. One serves a class of tests; it starts in about a second.

    The program is the environment's `TOCSIN_BIN`, else `tocsin` on the PATH, else `uvx tocsin`.
    """

    __test__ = False  # pytest takes it for a test otherwise

    def __init__(self, *flags: str, port: int = 0) -> None:
        self._flags = (*flags, "--port", str(port))
        self._folder = tempfile.TemporaryDirectory(prefix="tocsin-")
        self._process: subprocess.Popen[str] | None = None
        #: Where it answers.
        self.url: str = ""

    def start(self) -> TestServer:
        """Returns when it answers. ServerFailed: it ended instead; the message has its log."""
        folder = Path(self._folder.name)
        command = [*_program(), "dev", "--data-dir", str(folder / "data"), *self._flags]
        with (folder / "log").open("w") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        too_slow = threading.Timer(_START_S_MAX, self._process.kill)
        too_slow.start()
        try:
            for line in self._process.stdout:
                if found := _LINE.search(line):
                    self.url = found[1].rstrip("/")
                    return self
        finally:
            too_slow.cancel()
        log_text = (folder / "log").read_text()[-4000:]
        self.stop()
        raise ServerFailed(f"{' '.join(command)} did not start: {log_text}")

    def stop(self) -> None:
        """Ends the server and removes its data."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_S_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None
        self._folder.cleanup()

    def client(self) -> Client:
        """A client of this server."""
        return Client(self.url)

    def now(self) -> datetime:
        """What the server's clock shows."""
        return parse_instant(self._clock("get", {})["now"])

    def advance(self, by: Duration) -> int:
        """Moves the clock from one due instant to the next until so much time has passed. Returns when everything that was
        due has been answered and stored, with the number of instants. ServerFailed: something came to no end."""
        return int(self._clock("advance", {"by": duration_text("by", by)})["steps"])

    def _clock(self, operation: str, body: Mapping[str, JsonValue]) -> dict[str, str]:
        response = urllib3.request(
            "POST", f"{self.url}/api/v1/dev/clock/{operation}", json=dict(body), timeout=_ADVANCE_S_MAX, retries=False
        )
        answer: dict[str, str] = json.loads(response.data)
        if response.status != 200:
            raise ServerFailed(answer.get("message", response.data.decode(errors="replace")))
        return answer

    def __enter__(self) -> TestServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


@dataclass(frozen=True)
class SignedRequest:
    """A callback as the server would send it."""

    headers: dict[str, str]
    body: bytes


def firing(
    timer_id: str = "test",
    *,
    namespace: str = "default",
    payload: JsonValue = None,
    attempt: int = 1,
    execute_at: datetime | None = None,
    webhook_id: str | None = None,
) -> Firing:
    """A firing for a handler's test. A `webhook_id` of your own has to be one of this timer: receivers compare."""
    at = execute_at or datetime.now(timezone.utc)
    made = f"msg_{timer_uuid(namespace, timer_id).hex}_{uuid.uuid4().hex}"
    return Firing(webhook_id or made, namespace, timer_id, at, at, attempt, payload, b"", {})


def sign(firing: Firing, secret: str) -> SignedRequest:
    """The request that brings this firing, signed now. Send it to your application with the test client of its framework."""
    body = (
        firing.body
        or json.dumps(
            {
                "namespace": firing.namespace,
                "timerId": firing.timer_id,
                "executeAt": format_instant(firing.execute_at),
                "firedAt": format_instant(firing.fired_at),
                "attempt": firing.attempt,
                "payload": firing.payload,
            }
        ).encode()
    )
    timestamp_s = int(time.time())
    of_raw_body = {"tocsin-namespace": firing.namespace, "tocsin-timer-id": quote(firing.timer_id, safe="")}
    headers = {
        **(of_raw_body if firing.body else {}),
        **firing.headers,
        "content-type": firing.headers.get("content-type", "application/json"),
        "webhook-id": firing.webhook_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": sign_body([secret], firing.webhook_id, timestamp_s, body),
    }
    return SignedRequest(headers, body)


def _program() -> list[str]:
    if named := os.environ.get("TOCSIN_BIN"):
        return [named]
    if found := shutil.which("tocsin"):
        return [found]
    if found := shutil.which("uvx"):
        return [found, "tocsin"]
    raise ServerFailed("there is no program `tocsin`: install it, or name it in TOCSIN_BIN")
