"""A webhook receiver that verifies signatures and does the work of each firing once, however often its callback arrives.

    TOCSIN_SECRET=whsec_… python examples/receiver.py [port]

`tocsin namespaces create billing --secret new` prints a secret. Signatures follow Standard Webhooks. The program needs only
Python's standard library. It commits the id of a firing, the work and the answer in one transaction in the file
`receiver.db`, so a crash leaves all of them or none.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import sqlite3
import sys
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: Messages that are older or newer are refused, so that a recorded message can't be replayed later.
TOLERANCE_S = 300
#: Longer than the time between the first and the last attempt of a firing: the default policy ends after 8.5 hours.
REMEMBERED_S = 7 * 86_400
BODY_BYTES_MAX = 1024 * 1024

SCHEMA = """
CREATE TABLE IF NOT EXISTS handled (id TEXT PRIMARY KEY, answer TEXT NOT NULL, handled_at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS handled_by_age ON handled (handled_at);
CREATE TABLE IF NOT EXISTS reminders (timer TEXT NOT NULL, due TEXT NOT NULL, payload TEXT NOT NULL);
"""


def verified(secret: str, headers: Mapping[str, str], body: bytes, now_s: float) -> bool:
    """Returns whether the body was signed with the secret within the tolerance."""
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
    # The header has several signatures while a secret is being rotated.
    return any(hmac.compare_digest(wanted, signature) for signature in signatures)


def refusal(headers: Mapping[str, str]) -> int:
    """Returns the status for what is not verified. 401 is final: without another attempt, the timer fails. So it is only for
    what is not signed at all, which is not Tocsin's. A wrong secret or clock is mended, and 503 has Tocsin call again."""
    return 503 if "webhook-signature" in headers else 401


def connect(path: str) -> sqlite3.Connection:
    """Opens a connection with explicit transactions."""
    database = sqlite3.connect(path, isolation_level=None, timeout=10)
    database.execute("PRAGMA journal_mode = WAL")
    return database


def handle(database: sqlite3.Connection, webhook_id: str, callback: dict[str, object], now_s: float) -> str:
    """Returns the answer to this firing. Only the first callback with an id does the work."""
    with database:
        # Takes the write lock at once: the second of two concurrent callbacks with one id waits here, then finds the answer.
        database.execute("BEGIN IMMEDIATE")
        database.execute("DELETE FROM handled WHERE handled_at < ?", (now_s - REMEMBERED_S,))
        known = database.execute("SELECT answer FROM handled WHERE id = ?", (webhook_id,)).fetchone()
        if known is not None:
            return str(known[0])
        answer = json.dumps(work(database, callback))
        database.execute("INSERT INTO handled VALUES (?, ?, ?)", (webhook_id, answer, now_s))
        return answer


def work(database: sqlite3.Connection, callback: dict[str, object]) -> dict[str, object]:
    """Does the work, here by inserting a row. It writes to the same database only, so that a rollback undoes all of it."""
    timer = f"{callback['namespace']}/{callback['timerId']}"
    payload = json.dumps(callback["payload"])
    database.execute("INSERT INTO reminders VALUES (?, ?, ?)", (timer, callback["executeAt"], payload))
    print(f"{timer}, due {callback['executeAt']}: {payload}", flush=True)
    return {"ok": True}


class Handler(BaseHTTPRequestHandler):
    """Answers 200 once the work is committed, and refuses callbacks without a valid signature."""

    protocol_version = "HTTP/1.1"
    secret = os.environ.get("TOCSIN_SECRET", "")
    path_of_database = os.environ.get("RECEIVER_DATABASE", "receiver.db")

    def setup(self) -> None:
        """Opens a connection to the database for each connection of a client."""
        super().setup()
        self.database = connect(self.path_of_database)

    def finish(self) -> None:
        """Closes both connections."""
        self.database.close()
        super().finish()

    def do_POST(self) -> None:
        """Handles one callback."""
        length = int(self.headers.get("content-length", 0))
        if length > BODY_BYTES_MAX:
            self.close_connection = True
            self._answer(413)
            return
        body = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        if not verified(self.secret, headers, body, time.time()):
            self._answer(refusal(headers))
            return
        try:
            answer = handle(self.database, headers["webhook-id"], json.loads(body), time.time())
        except sqlite3.Error as error:
            # Nothing was committed. Tocsin retries by the timer's policy.
            print(f"not handled: {error}", file=sys.stderr)
            self._answer(503)
            return
        self._answer(200, answer)

    def _answer(self, status: int, body: str = "") -> None:
        content = body.encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing: only the work is printed."""


def main() -> None:
    """Serves until Ctrl-C."""
    if not Handler.secret:
        sys.exit("TOCSIN_SECRET is not set; `tocsin namespaces create NAME --secret new` creates one")
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9000
    database = connect(Handler.path_of_database)
    database.executescript(SCHEMA)
    database.close()
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        print(f"Listening on http://127.0.0.1:{server.server_port}/", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("bye")


if __name__ == "__main__":
    main()
