"""Passes Tocsin's notifications on to PagerDuty or by mail.

    PAGERDUTY_KEY=… python examples/notify.py [port]
    MAIL_TO=ops@shop.example MAIL_FROM=tocsin@shop.example SMTP=mail.shop.example:25 python examples/notify.py [port]

With TOCSIN_SECRET=whsec_… it accepts only what is signed with that secret. Tocsin sends again what is not answered with 200,
so an error of the other side, or of the secret, loses nothing. The program needs only Python's standard library.
"""

from __future__ import annotations

import json
import os
import smtplib
import sys
import time
import urllib.request
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from receiver import BODY_BYTES_MAX, refusal, verified

PAGERDUTY = os.environ.get("PAGERDUTY_URL", "https://events.pagerduty.com/v2/enqueue")
TIMEOUT_S = 8


def page(key: str, notification: dict[str, Any]) -> None:
    """Opens an incident for a failure, and resolves it with the next success. A repeated notification changes nothing: all
    of one timer or schedule have the same key."""
    kind, _, verb = notification["type"].partition(".")
    subject = notification[kind]
    event = {
        "routing_key": key,
        "event_action": "resolve" if verb in ("succeeded", "recovered") else "trigger",
        "dedup_key": f"{kind}/{subject['namespace']}/{subject['id']}",
        "payload": {
            "summary": notification["text"][:1024],
            "source": f"tocsin/{subject['namespace']}",
            "severity": "error",
            "timestamp": notification["timestamp"],
            "custom_details": notification,
        },
    }
    request = urllib.request.Request(PAGERDUTY, json.dumps(event).encode(), {"content-type": "application/json"})
    urllib.request.urlopen(request, timeout=TIMEOUT_S).close()


def mail(server: str, sender: str, to: str, webhook_id: str, notification: dict[str, Any]) -> None:
    """Sends a mail. A repeated notification has the same Message-ID, by which mailboxes know it again."""
    message = EmailMessage()
    message["From"], message["To"] = sender, to
    message["Subject"] = notification["text"].split("\n")[0][:200]
    message["Message-ID"] = f"<{webhook_id}@tocsin>"
    message.set_content(json.dumps(notification, indent=2))
    host, _, port = server.partition(":")
    with smtplib.SMTP(host, int(port or 25), timeout=TIMEOUT_S) as smtp:
        smtp.send_message(message)


class Handler(BaseHTTPRequestHandler):
    """Takes notifications."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(min(int(self.headers.get("content-length", 0)), BODY_BYTES_MAX))
        secret = os.environ.get("TOCSIN_SECRET")
        headers = {name.lower(): value for name, value in self.headers.items()}
        if secret and not verified(secret, headers, body, time.time()):
            self._answer(refusal(headers), "the signature is missing or wrong")
            return
        try:
            self._pass_on(json.loads(body))
        except (OSError, smtplib.SMTPException) as error:
            self._answer(503, f"could not be passed on: {error}")
            return
        self._answer(200, "")

    def _pass_on(self, notification: dict[str, Any]) -> None:
        if key := os.environ.get("PAGERDUTY_KEY"):
            page(key, notification)
        if to := os.environ.get("MAIL_TO"):
            webhook_id = self.headers.get("webhook-id", "")
            mail(os.environ["SMTP"], os.environ["MAIL_FROM"], to, webhook_id, notification)

    def _answer(self, status: int, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 9100), Handler)
    print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()
