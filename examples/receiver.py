"""A webhook receiver that trusts nobody: it checks signatures and rings once however often a callback comes.

    TOCSIN_SECRET=whsec_… python examples/receiver.py [port]

The secret is what `tocsin namespaces create billing --secret new` printed. Signatures follow Standard Webhooks; nothing
but Python's standard library is needed. A receiver that counts remembers the ids in its database, in the transaction
that does the work; this one keeps the latest in memory.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import sys
import time
from collections import OrderedDict
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

#: Older or newer messages are refused, so that a recorded one can't be played again later.
TOLERANCE_S = 300
IDS_REMEMBERED_MAX = 100_000
BODY_BYTES_MAX = 1024 * 1024


def verified(secret: str, headers: Mapping[str, str], body: bytes, now_s: float) -> bool:
    """Whether the body was signed with the secret, not long ago."""
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"))
        timestamp = int(headers["webhook-timestamp"])
        content = f"{headers['webhook-id']}.{timestamp}.".encode() + body
        signatures = headers["webhook-signature"].split()
    except (KeyError, ValueError):
        return False
    if abs(now_s - timestamp) > TOLERANCE_S:
        return False
    wanted = "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    # All of them are looked at: while a secret is being changed there are two.
    return any(hmac.compare_digest(wanted, signature) for signature in signatures)


class Seen:
    """The `webhook-id`s of firings whose work is done. All attempts of a firing bring the same."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._lock = Lock()

    def __contains__(self, webhook_id: str) -> bool:
        with self._lock:
            return webhook_id in self._ids

    def add(self, webhook_id: str) -> None:
        """Remembers it, and forgets the oldest if there are too many."""
        with self._lock:
            self._ids[webhook_id] = None
            if len(self._ids) > IDS_REMEMBERED_MAX:
                self._ids.popitem(last=False)


def ring(callback: dict[str, object]) -> None:
    """The work: here, a line."""
    print(
        f"{callback['namespace']}/{callback['timerId']} rang, due {callback['executeAt']}: {callback['payload']}",
        flush=True,
    )


class Handler(BaseHTTPRequestHandler):
    """Answers 401 to what isn't signed, 200 when the work is done, now or before."""

    protocol_version = "HTTP/1.1"
    secret = os.environ.get("TOCSIN_SECRET", "")
    seen = Seen()

    def do_POST(self) -> None:
        """One callback."""
        length = int(self.headers.get("content-length", 0))
        if length > BODY_BYTES_MAX:
            self.close_connection = True
            self._answer(413)
            return
        body = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        if not verified(self.secret, headers, body, time.time()):
            self._answer(401)
            return
        webhook_id = headers["webhook-id"]
        if webhook_id not in self.seen:
            ring(json.loads(body))
            # After the work: a crash in between means once more, never not at all.
            self.seen.add(webhook_id)
        self._answer(200)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Only rings are printed."""


def main() -> None:
    """Serves until Ctrl-C."""
    if not Handler.secret:
        sys.exit("TOCSIN_SECRET is not set; `tocsin namespaces create NAME --secret new` makes one")
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9000
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("bye")


if __name__ == "__main__":
    main()
