"""A server with the compiled codec gives the answers, and stores the rows, of one without it."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import httpx

from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.web.http.codec import Codec

_CREATE, _BATCH = "timers/create", "timers/batch/create"
_FIRST = {"tocsin-first-try": "1"}
#: What is a server's own: instants, ids of requests, names of firings.
_OWN = re.compile(r'"(createdAt|updatedAt|timestamp|correlationId|firing)":"[^"]*"|"(created_at|updated_at)":\d+')


def _timer(timer_id: str, **fields: Any) -> dict[str, Any]:
    usual = {
        "namespace": "default",
        "executeAt": "2035-01-31T12:00:00Z",
        "callbackUrl": "http://127.0.0.1:9/hook?key=1",
    }
    return {"id": timer_id, **usual, **fields}


def _requests() -> list[tuple[str, dict[str, Any], dict[str, str]]]:
    """Paths, bodies and headers: usual ones and others, some of which change what others have created."""
    key, other = {"idempotency-key": "k1"}, {"idempotency-key": "k2"}
    return [
        (_CREATE, _timer("plain", payload={"order": [1, "é", None]}), {}),
        (_CREATE, _timer("plain", payload="again"), {}),
        (_CREATE, _timer("keyed", payload=1), key | _FIRST),
        (_CREATE, _timer("keyed", payload=1), key),
        (_CREATE, _timer("keyed", payload=2), key | _FIRST),
        (_CREATE, _timer("keyed", payload=2), other | _FIRST),
        (_CREATE, _timer("keyed", payload=1), key),
        (_CREATE, _timer("field", idempotencyKey="f"), _FIRST),
        (_CREATE, _timer("tagged", tags=["a"], headers={"x-a": "1", "authorization": "s"}), {}),
        (_CREATE, _timer("bad", executeAt="tomorrow"), {}),
        (_CREATE, _timer("", payload=1), {}),
        (_CREATE, _timer("nowhere", namespace="missing"), {}),
        (_CREATE, _timer("badkey"), {"idempotency-key": "a b"}),
        (_CREATE, _timer("badtry"), {"tocsin-first-try": "2"}),
        (_BATCH, {"timers": [_timer(f"b{number}", payload=number) for number in range(120)]}, {}),
        (_BATCH, {"timers": [_timer("b1"), _timer("b1", payload=2), _timer("b2")]}, other | _FIRST),
        (_BATCH, {"timers": [_timer("b1"), _timer("b1", payload=2), _timer("b2")]}, other),
        (_BATCH, {"timers": [_timer("c1"), _timer("c2", tags=["t"]), _timer("c3", method="PUT")]}, {}),
        (_BATCH, {"timers": [_timer("d1"), _timer("d2", namespace="missing")]}, {}),
        (_BATCH, {"timers": []}, {}),
        ("timers/delete", {"namespace": "default", "timerId": "b7"}, {}),
        (_CREATE, _timer("b7", payload=1), {"idempotency-key": "k7", **_FIRST}),
        ("timers/get", {"namespace": "default", "timerId": "keyed"}, {}),
        # From here on, quotas decide about creates, too.
        ("namespaces/create", {"name": "limited", "quotas": {"pending": 2}}, {}),
        (_CREATE, _timer("q1", namespace="limited"), {}),
        (_BATCH, {"timers": [_timer(f"q{number}", namespace="limited") for number in range(1, 5)]}, other | _FIRST),
    ]


async def _served(folder: Path, native: str) -> tuple[list[tuple[int, str]], list[tuple[Any, ...]], str]:
    """The answers of a server to the requests, its rows after them, and which codec its log names."""
    # One key, so that both store the same of a secret.
    server = ServerProcess(folder, env={"TOCSIN_NATIVE": native, "TOCSIN_SECRETS_KEY": "11" * 32})
    await server.start()
    answers = []
    try:
        async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S) as client:
            for path, body, headers in _requests():
                answer = await client.post(f"/api/v1/{path}", json=body, headers=headers)
                answers.append((answer.status_code, _OWN.sub("…", answer.text)))
    finally:
        await server.stop()
    with contextlib.closing(sqlite3.connect(folder / "tocsin.db")) as database:
        rows = database.execute(
            "SELECT shard_id, timer_uuid, timer_execute_at, timer_namespace, timer_id, timer_record FROM timers "
            "WHERE row_type > 1 ORDER BY timer_uuid, timer_execute_at"
        ).fetchall()
        stored = [(*row[:-1], _OWN.sub("…", str(row[-1]))) for row in rows]
    started = next(line for line in server.log_path.read_text().splitlines() if "server started" in line)
    return answers, stored, started


async def test_a_server_with_the_codec_answers_and_stores_as_one_without_it(codec: Codec, tmp_path: Path) -> None:
    compiled, rows, log = await _served(tmp_path / "compiled", "on")
    python, python_rows, python_log = await _served(tmp_path / "python", "off")
    for request, one, other in zip(_requests(), compiled, python, strict=True):
        assert one == other, json.dumps(request)
    assert rows == python_rows
    assert len(rows) > 120
    assert "tocsin-native" in log
    assert "off (TOCSIN_NATIVE)" in python_log
