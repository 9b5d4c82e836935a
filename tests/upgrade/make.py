"""Makes what `test_earlier_data.py` opens: `python -m tests.upgrade.make FOLDER`, run in a checkout of the earlier commit.

A server is filled through its front door, killed, and its databases are written down as SQL text: `tocsin.sql` and
`agent.sql` of SQLite, `postgresql.sql` of both in PostgreSQL. `expected.json` has what the server had acknowledged.
Instants of what must still be pending lie in 2037, retention is as long as it may be.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.support.http import Client, Receiver
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess

TENANT = "01975b2e-7c00-7000-8000-000000000001"
FAR = "2037-06-01T12:00:00Z"
RETENTION = "3650d"


async def fill(server: ServerProcess, receiver: str) -> dict[str, Any]:
    """Creates one object of each kind, and returns them as the server shows them."""
    client = Client(server.address)

    async def post(path: str, body: dict[str, Any]) -> Any:
        status, answer = await client.post(f"/api/v1/{path}", body)
        assert status in (200, 204), (path, status, answer)
        return answer

    async def get(namespace: str, timer_id: str) -> dict[str, Any]:
        return dict(await post("timers/get", {"namespace": namespace, "timerId": timer_id}))

    for name, more in {
        "kept": {"numShards": 2, "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
        "paused": {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
    }.items():
        await post("namespaces/create", {"name": name, "history": "all", "retention": RETENTION, **more})
    far = {"executeAt": FAR, "callbackUrl": "http://127.0.0.1:1/far"}
    await post("timers/create", {"namespace": "kept", "id": "plain", **far})
    await post(
        "timers/create",
        {
            "namespace": "kept",
            "id": "každý",
            **far,
            "payload": {"text": "žluťoučký \u2028 \U0001f514", "n": 12345678901234567890, "deep": [[[{}]]]},
            "method": "PUT",
            "headers": {"x-order": "17", "authorization": "Bearer of-the-receiver"},
            "retryPolicy": {"maxAttempts": 7},
            "callbackTimeoutSeconds": 20,
            "tags": ["eu", "orders"],
        },
    )
    await post("timers/create", {"namespace": "kept", "id": "policy-of-defaults", **far, "retryPolicy": {}})
    await post("timers/create", {"namespace": "default", "id": "in-default", **far})
    # They fail before their namespace pauses, or would be due while it does.
    now = {"delay": "0s", "callbackUrl": receiver}
    retried = {"retryPolicy": {"maxAttempts": 3, "initialInterval": "30s"}, "payload": {"status": 503}}
    await post("timers/create", {"namespace": "paused", "id": "retrying", **now, **retried})
    await until(lambda: get("paused", "retrying"), lambda timer: timer["attempts"] == 1)
    await post("namespaces/update", {"name": "paused", "paused": True})
    await post("timers/create", {"namespace": "paused", "id": "due", **now, "payload": {"n": 2}})
    for timer_id, answered in (("done", 200), ("refused", 400)):
        await post("timers/create", {"namespace": "kept", "id": timer_id, **now, "payload": {"status": answered}})
    await until(lambda: get("kept", "done"), lambda timer: timer["status"] == "completed")
    await until(lambda: get("kept", "refused"), lambda timer: timer["status"] == "failed")
    await post("timers/create", {"namespace": "kept", "id": "canceled", **far})
    await post("timers/delete", {"namespace": "kept", "timerId": "canceled"})

    async def submit(name: str, answered: int, **more: Any) -> str:
        spec = {"method": "POST", "url": receiver, "headers": {"x-n": "1"}, "body": {"status": answered}}
        body = {"name": name, "requestSpec": spec, **more}
        status, answer = await client.post(f"/api/v1/tenants/{TENANT}/service-calls", body)
        assert status == 202, answer
        return str(answer["serviceCallId"])

    async def call(call_id: str) -> dict[str, Any]:
        return dict((await client.get(f"/api/v1/tenants/{TENANT}/service-calls/{call_id}"))[1])

    succeeded = await submit("succeeded", 200, tags=["starred"])
    refused = await submit("refused", 418)
    scheduled = await submit("scheduled", 200, dueAt=FAR, tags=["later"], idempotencyKey="only-once")
    await until(lambda: call(succeeded), lambda found: found["status"] == "Succeeded")
    await until(lambda: call(refused), lambda found: found["status"] == "Failed")
    names = [("kept", n) for n in ("plain", "každý", "policy-of-defaults", "done", "refused", "canceled")]
    names += [("default", "in-default"), ("paused", "retrying"), ("paused", "due")]
    _, namespaces = await client.post("/api/v1/namespaces/list", {})
    timers = [await get(*name) for name in names]
    calls = [await call(call_id) for call_id in (succeeded, refused, scheduled)]
    client.close()
    return {"timers": timers, "calls": calls, "namespaces": namespaces["namespaces"]}


def answer(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
    """The status that a timer's payload or a service call's body requests."""
    return body.get("payload", body).get("status", 200), b'{"ok": true}'


async def until(
    ask: Callable[[], Awaitable[dict[str, Any]]], wanted: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """Repeats a request until the response matches."""
    while True:
        answer = await ask()
        if wanted(answer):
            return answer
        await asyncio.sleep(0.02)


def make_key(*flags: str) -> str:
    """An unlimited key, created in the store."""
    command = [sys.executable, "-m", "tocsin", "keys", "create", "--role", "admin", "--json", *flags]
    return str(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["secret"])


async def main(folder: Path) -> None:
    """Fills a server on each of the two databases, and records their content."""
    folder.mkdir(parents=True, exist_ok=True)
    expected: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary) / "data"
        database = PostgresServer()
        try:
            database.init()
            database.start()
            url = await database.create_database()
            for kind, flags in {"sqlite": [], "postgresql": ["--store", url, "--agent-database", url]}.items():
                server = ServerProcess(data / kind, "--shards", "4", *flags)
                await server.start()
                async with Receiver(answer) as receiver:
                    expected[kind] = await fill(server, receiver.url)
                    expected[kind]["key"] = make_key("--data-dir", str(data / kind), *flags[:2])
                    await server.kill()
            for name in ("tocsin", "agent"):
                (folder / f"{name}.sql").write_text(sqlite_text(data / "sqlite", name), encoding="utf-8")
            (folder / "postgresql.sql").write_text(postgresql_text(database, url), encoding="utf-8")
        finally:
            database.remove()
    (folder / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def sqlite_text(data: Path, name: str) -> str:
    """An SQLite database as SQL text, including its application id and schema version."""
    import apsw

    connection = apsw.Connection(str(data / f"{name}.db"))
    heads = {word: connection.pragma(word) for word in ("application_id", "user_version")}
    tables = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY rowid").fetchall()
    # SQLite makes that one itself, with the first table that counts its rows.
    counted = [name for name, _ in tables if name == "sqlite_sequence"]
    others = connection.execute("SELECT sql FROM sqlite_schema WHERE type != 'table' AND sql IS NOT NULL").fetchall()
    lines = [f"PRAGMA {word} = {value};" for word, value in heads.items()]
    lines += [f"{sql};" for name, sql in tables if name not in counted]
    for table in [*(name for name, _ in tables if name not in counted), *counted]:
        columns = [f'quote("{column[1]}")' for column in connection.execute(f'PRAGMA table_info("{table}")')]
        rows = connection.execute(f"""SELECT {" || ', ' || ".join(columns)} FROM "{table}" """)
        lines += [f'DELETE FROM "{table}";'] if table in counted else []
        lines += [f'INSERT INTO "{table}" VALUES ({row[0]});' for row in rows]
    lines += [f"{sql};" for (sql,) in others]
    connection.close()
    return "\n".join(lines) + "\n"


def postgresql_text(database: PostgresServer, url: str) -> str:
    """A PostgreSQL database as SQL text, without statements for `psql` or newer servers only."""
    dump = [str(database.programs / "pg_dump"), "--no-owner", "--inserts", url]
    text = subprocess.run(dump, check=True, capture_output=True, text=True).stdout
    return re.sub(r"^(\\(un)?restrict .*|SET transaction_timeout .*|--.*)\n", "", text, flags=re.MULTILINE)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
