"""Hooks on a real server: of timers, schedules and namespaces, and what passes notifications on."""

from __future__ import annotations

import asyncio
import os
import socketserver
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_string
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from tests.integration.server.conftest import serving
from tests.support.calls import Api, Inbox
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S

_EXAMPLE = Path(__file__).parents[3] / "examples/notify.py"
_ONCE = {"maxAttempts": 1}


async def test_failures_go_to_the_own_hook_or_the_namespaces_and_secrets_are_kept_but_not_shown(tmp_path: Path) -> None:
    broken, own, all_ = Inbox(default=(500, b"")), Inbox(), Inbox()
    async with (
        serving(tmp_path, "--no-agent") as server,
        Receiver(broken) as target, Receiver(own) as own_hook, Receiver(all_) as hook,
    ):  # fmt: skip
        api = Api(server)
        _, namespace = await api("namespaces/update", name="default", onFailure={"url": hook.url})
        assert namespace["onFailure"] == {"url": hook.url}
        with_secret = {"url": own_hook.url, "headers": {"authorization": "Bearer abc"}}
        made = await api.create("t", target.url, delay="1h", retryPolicy=_ONCE, onFailure=with_secret)
        assert made["onFailure"] == {"url": own_hook.url, "headers": {"authorization": "[redacted]"}}
        _, kept = await api("timers/update", namespace="default", timerId="t", onFailure=made["onFailure"], delay="0s")
        assert kept["onFailure"] == made["onFailure"]
        (call,) = await own.count(1)
        assert (call.headers["authorization"], call.body["type"]) == ("Bearer abc", "timer.failed")
        await api.create("u", target.url, retryPolicy=_ONCE)
        (call,) = await all_.count(1)
        assert call.body["timer"]["id"] == "u"
        _, page = await api("timers/list", namespace="*")
        assert [timer["id"] for timer in page["timers"]] == ["t", "u"]


async def test_schedule_reports_failure_pause_and_recovery(tmp_path: Path) -> None:
    broken, inbox = Inbox(answers=[(500, b"")]), Inbox()
    async with serving(tmp_path, "--no-agent") as server, Receiver(broken) as target, Receiver(inbox) as hook:
        api = Api(server)
        hooks = {name: {"url": hook.url} for name in ("onFailure", "onRecovery", "onPaused")}
        schedule = {"namespace": "default", "id": "s", "callbackUrl": target.url, "every": "1h", "retryPolicy": _ONCE}
        await api("schedules/create", **schedule, **hooks, pauseAfterFailures=1)
        await api("schedules/trigger", namespace="default", scheduleId="s")
        calls = await inbox.count(2)
        assert {call.body["type"] for call in calls} == {"schedule.failed", "schedule.paused"}
        await api("schedules/trigger", namespace="default", scheduleId="s")
        *_, recovered = await inbox.count(3)
        assert (recovered.body["type"], recovered.body["run"]["status"]) == ("schedule.recovered", "completed")


async def test_bad_hook_is_refused_with_its_field(tmp_path: Path) -> None:
    async with serving(tmp_path, "--no-agent") as server:
        timer = {"namespace": "default", "id": "t", "delay": "1h", "callbackUrl": "http://127.0.0.1:1/"}
        for hook, path in (
            ({"url": "ftp://x"}, "onFailure.url"),
            ({"url": "http://x/?token=[redacted]"}, "onFailure.url"),
            ({"url": "http://x/", "headers": {"content-type": "text/plain"}}, "onFailure.headers.content-type"),
            ({}, "onFailure.url"),
        ):
            status, problem = await Api(server)("timers/create", **timer, onFailure=hook)
            assert (status, problem["errors"][0]["path"]) == (400, path), hook


class _Mailbox(socketserver.StreamRequestHandler):
    """As much of SMTP as smtplib speaks."""

    def handle(self) -> None:
        self.wfile.write(b"220 ready\r\n")
        lines: list[str] | None = None
        for raw in self.rfile:
            line = raw.decode().rstrip("\r\n")
            if lines is not None and line != ".":
                lines.append(line)
                continue
            if lines is not None:
                self.server.mails.put("\n".join(lines))  # type: ignore[attr-defined]
                lines = None
            elif line == "data":
                lines = []
            self.wfile.write(
                b"354 go on\r\n" if lines is not None else b"221 bye\r\n" if line == "quit" else b"250 ok\r\n"
            )


@contextmanager
def mailbox() -> Iterator[tuple[str, Queue[str]]]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Mailbox) as server:
        server.daemon_threads = True
        server.mails = Queue[str]()  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", server.mails  # type: ignore[attr-defined]
        server.shutdown()


@contextmanager
def relay(**settings: str) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, _EXAMPLE, "0"], env={**os.environ, **settings}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait()


def test_example_is_called_again_after_a_wrong_secret() -> None:
    with relay(TOCSIN_SECRET="whsec_" + "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=") as url:
        signed = {"webhook-id": "m", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,YQ=="}
        for headers, status in ((signed, 503), ({}, 401)):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(url, b"{}", headers), timeout=PATIENCE_S)
            assert refused.value.code == status


async def test_example_opens_and_resolves_incidents_and_sends_mails(tmp_path: Path) -> None:
    secret = "whsec_" + "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
    broken, incidents = Inbox(answers=[(500, b"")]), Inbox()
    async with serving(tmp_path, "--no-agent") as server, Receiver(broken) as target, Receiver(incidents) as pagerduty:
        api = Api(server)
        with mailbox() as (smtp, mails), relay(
            PAGERDUTY_KEY="key", PAGERDUTY_URL=pagerduty.url, TOCSIN_SECRET=secret,
            MAIL_TO="ops@shop.example", MAIL_FROM="tocsin@shop.example", SMTP=smtp,
        ) as url:  # fmt: skip
            hooks: dict[str, Any] = {name: {"url": url} for name in ("onFailure", "onRecovery")}
            await api("namespaces/update", name="default", secret=secret, **hooks)
            schedule = {"namespace": "default", "id": "s", "callbackUrl": target.url, "every": "1h"}
            await api("schedules/create", **schedule, retryPolicy=_ONCE)
            for number, action in enumerate(("trigger", "resolve"), start=1):
                await api("schedules/trigger", namespace="default", scheduleId="s")
                *_, call = await incidents.count(number)
                event = call.body
                assert (event["event_action"], event["dedup_key"]) == (action, "schedule/default/s")
                assert event["payload"]["custom_details"]["type"].startswith("schedule.")
                mail = message_from_string(await asyncio.to_thread(mails.get, timeout=PATIENCE_S))
                assert (mail["To"], mail["Subject"]) == ("ops@shop.example", event["payload"]["summary"])
