"""The views for people who read a database by hand show what the store keeps, in the database's own types."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import msgspec

from tests.support.mysql import session
from tocsin.model.schedule import Definition, Schedule, State
from tocsin.model.timer import RawBody, Status, Timer, encode_record
from tocsin.ports.store import Applied, FailureRow, HistoryRow, Member, ShardBatch, Store, StoredRow, schedules_of
from tocsin.stores.mysql.store import MysqlStore
from tocsin.stores.postgresql.store import PostgresStore
from tocsin.stores.sqlite.store import SqliteStore

AT = 1_795_391_537_971_269
OWNER = bytes(range(16))
PAYLOAD = '{"n": 1, "text": "\\u017elu\u0165"}'
UUID = "00112233-4455-6677-8899-aabbccddeeff"

Rows = Callable[[str], Any]


def stored(number: int, timer: Timer, *, at: int = AT, suspended: str | None = None) -> StoredRow:
    uuid = bytes.fromhex(UUID.replace("-", ""))[:15] + bytes([number])
    record = encode_record(timer)
    return StoredRow(at, uuid, bytes([number]) * 32, timer.namespace, timer.id, timer.tags, record, suspended)


def timer(timer_id: str, namespace: str = "default", **more: Any) -> Timer:
    return Timer(namespace, timer_id, AT, "http://127.0.0.1:9000/", AT - 7, AT - 7, **more)


async def fill(store: Store) -> None:
    """Timers, a schedule and history, with what reads badly: other bodies, records that are no JSON, the last instants."""
    await store.open(4)
    await store.heartbeat(Member(OWNER, "node-a", "http://127.0.0.1:8080#leaving", 1))
    assert await store.claim(0, expected_epoch=0, owner=OWNER) == 1
    schedule = Schedule(Definition(cron="0 2 * * *", time_zone="Europe/Prague"), State(position=AT, occurrences=3))
    plain = stored(0xFF, timer("plain", payload=msgspec.Raw(PAYLOAD.encode()), tags=("eu", "orders"), attempts=2))
    body = RawBody("text/plain", text="hello\nthere")
    rows = [
        plain,
        stored(1, timer("raw", body=body), at=-1_000_000),
        stored(2, timer("stopped"), suspended="the destination refuses"),
        stored(3, timer("undecodable"))._replace(record=b'\xff{"v":1'),
        stored(4, timer("last"), at=2**63 - 1),
        stored(5, timer("nightly", schedules_of("default"), schedule=schedule)),
    ]
    ended = stored(6, timer("ended", status=Status.FAILED, last_error="HTTP 500"))
    history = HistoryRow(*ended[:7], status=Status.FAILED, finished_at=AT + 1, expires_at=AT + 2)
    failure = FailureRow(ended.uuid, ended.generation, "default", "ended", "http://h/a\x1fHTTP 500", AT + 1, AT, AT + 3)
    assert await store.apply([ShardBatch(0, 1, OWNER, upserts=rows, history=[history], failures=[failure])]) == [
        Applied.DURABLE
    ]


def instant(us: int) -> datetime:
    return datetime.fromtimestamp(us // 1_000_000, UTC).replace(microsecond=us % 1_000_000)


async def check(rows: Rows, show: Callable[[int], Any]) -> None:
    """`show` is an instant in the database's own type."""
    (plain,) = await rows(
        "SELECT namespace, state, suspended_because, execute_at, next_attempt_at, attempts, method, url, tags, payload, "
        "created_at, uuid, shard FROM readable_timers WHERE id = 'plain'"
    )
    assert [str(value) if number == 11 else value for number, value in enumerate(plain) if number != 9] == [
        "default", "pending", None, show(AT), show(AT), 2, "POST", "http://127.0.0.1:9000/", "eu, orders", show(AT - 7),
        UUID, 0,
    ]  # fmt: skip
    assert json.loads(plain[9]) == json.loads(PAYLOAD)
    found = await rows(
        "SELECT id, state, suspended_because, next_attempt_at, payload, url FROM readable_timers ORDER BY id"
    )
    url = "http://127.0.0.1:9000/"
    assert [tuple(row) for row in found if row[0] != "plain"] == [
        ("last", "pending", None, None, None, url),
        ("raw", "pending", None, show(-1_000_000), "hello\nthere", url),
        ("stopped", "suspended", "the destination refuses", show(AT), None, url),
        ("undecodable", "pending", None, show(AT), None, None),
    ]
    (ended,) = await rows("SELECT id, kind, status, finished_at, kept_until, last_error FROM readable_history")
    assert tuple(ended) == ("ended", "timer", "failed", show(AT + 1), show(AT + 2), "HTTP 500")
    (failed,) = await rows(
        "SELECT namespace, id, kind, destination, error, failed_at, execute_at, kept_until, shard FROM readable_failures"
    )
    instants = (show(AT + 1), show(AT), show(AT + 3))
    assert tuple(failed) == ("default", "ended", "timer", "http://h/a", "HTTP 500", *instants, 0)
    (nightly,) = await rows(
        "SELECT namespace, id, state, cron, every_seconds, time_zone, next_attempt_at, occurrences FROM readable_schedules"
    )
    assert tuple(nightly) == ("default", "nightly", "active", "0 2 * * *", None, "Europe/Prague", show(AT), 3)
    (shard,) = await rows("SELECT shard, epoch, state, node, address, owner FROM readable_shards")
    assert tuple(shard) == (0, 1, "owned", "node-a", "http://127.0.0.1:8080", OWNER.hex())


@asynccontextmanager
async def opened(store: Store) -> AsyncIterator[None]:
    await fill(store)
    try:
        yield
    finally:
        await store.close()


async def test_sqlite(tmp_path: Path) -> None:
    async with opened(SqliteStore(tmp_path / "tocsin.db")):
        connection = apsw.Connection(str(tmp_path / "tocsin.db"), flags=apsw.SQLITE_OPEN_READONLY)

        async def rows(sql: str) -> Any:
            return connection.execute(sql).fetchall()

        await check(rows, lambda us: instant(us).isoformat(timespec="milliseconds")[:23] + "Z")
        connection.close()


async def test_postgresql(postgresql_url: str) -> None:
    async with opened(PostgresStore(postgresql_url)):
        connection = await asyncpg.connect(postgresql_url, server_settings={"search_path": "tocsin"})
        try:
            await check(connection.fetch, instant)
        finally:
            await connection.close()


async def test_mysql(mysql_url: str) -> None:
    async with opened(MysqlStore(mysql_url)), session(mysql_url) as other:

        async def rows(sql: str) -> Any:
            return await other.rows(sql.encode())

        await check(rows, lambda us: instant(us).replace(tzinfo=None))
