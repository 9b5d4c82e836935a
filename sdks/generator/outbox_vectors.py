"""The table of timers that programs write in their own transactions: its definition and statements in each database, and what
becomes of its rows. All SDKs write and drain the same table, so that one may drain what another has written."""

from __future__ import annotations

from .cases import Json, case_of

_DIALECTS = ("postgresql", "mysql", "sqlite")
_COLUMNS = (
    "id VARCHAR(36) NOT NULL PRIMARY KEY, namespace VARCHAR(255) NOT NULL, timer_id VARCHAR(255) NOT NULL, "
    "request {} NOT NULL, created_at BIGINT NOT NULL, due_at BIGINT NOT NULL, dead_reason TEXT, "
    "UNIQUE (namespace, timer_id, id)"
)
_DUE = (
    "SELECT {} FROM tocsin_outbox AS due WHERE due_at <= ? AND dead_reason IS NULL AND NOT EXISTS "
    "(SELECT 1 FROM tocsin_outbox AS older WHERE older.namespace = due.namespace AND older.timer_id = due.timer_id "
    "AND older.id < due.id AND older.dead_reason IS NULL) ORDER BY id LIMIT 250"
)
_LOCKED = " FOR UPDATE SKIP LOCKED"
_TAKEN = "id, request, created_at"
_UPDATE = "UPDATE tocsin_outbox SET due_at = ? WHERE "
_STATEMENTS = {
    "table": {
        "postgresql": f"CREATE TABLE IF NOT EXISTS tocsin_outbox ({_COLUMNS.format('TEXT')})",
        "mysql": f"CREATE TABLE IF NOT EXISTS tocsin_outbox ({_COLUMNS.format('MEDIUMTEXT')}) "
        "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
        "sqlite": f"CREATE TABLE IF NOT EXISTS tocsin_outbox ({_COLUMNS.format('TEXT')})",
    },
    "insert": dict.fromkeys(
        _DIALECTS,
        "INSERT INTO tocsin_outbox (id, namespace, timer_id, request, created_at, due_at) VALUES (?, ?, ?, ?, ?, 0)",
    ),
    # MySQL has two statements for it, in one transaction.
    "take": {
        "postgresql": f"{_UPDATE}id = ANY (ARRAY({_DUE.format('id')}{_LOCKED})) RETURNING {_TAKEN}",
        "mysql": f"{_DUE.format(_TAKEN)}{_LOCKED}",
        "sqlite": f"{_UPDATE}id IN ({_DUE.format('id')}) RETURNING {_TAKEN}",
    },
    # Of two rows.
    "delete": {
        "postgresql": "DELETE FROM tocsin_outbox WHERE id IN (?, ?)",
        "mysql": "DELETE settled FROM tocsin_outbox AS settled FORCE INDEX (PRIMARY) WHERE id IN (?, ?)",
        "sqlite": "DELETE FROM tocsin_outbox WHERE id IN (?, ?)",
    },
}
_AT_US = 1_801_396_800_000_000  # 2027-02-01T00:00:00Z
_ID = "0197a3c0-0000-7000-8000-000000000001"
_TIMER: Json = {"namespace": "orders", "id": "größe/17", "callbackUrl": "https://shop.example/hooks/remind"}
#: What servers answer, and whether they answer the same the next time.
_REFUSALS = (
    *((400, "INVALID_INPUT", True), (401, "UNAUTHENTICATED", False), (403, "FORBIDDEN", False)),
    *((404, "NAMESPACE_NOT_FOUND", True), (408, "REQUEST_TIMEOUT", False), (409, "TIMER_EXISTS", True)),
    (409, "COLLECTION_FULL", False),
    *((413, "PAYLOAD_TOO_LARGE", True), (429, "QUOTA_EXCEEDED", False), (500, "INTERNAL", False)),
    *((502, "", False), (503, "NOT_READY", False), (504, "", False)),
    # Not of Tocsin, or not of this timer: a proxy without a backend, another server, a wrong path.
    *((400, "", False), (404, "", False), (404, "Not Found", False), (404, "ROUTE_NOT_FOUND", False), (407, "", False)),
    (413, "", True),
)

ABOUT = (
    "The table of an outbox. `statement`: in that database, with `?` for each parameter. `timer`: the columns of its row; "
    "`request` is the JSON in the column of this name. `send`: what a drain sends for a row at `now`; times are microseconds "
    "since 1970. `refused`: whether a row that is refused like this is dead."
)


def outbox_cases() -> list[Json]:
    """The cases."""
    statements = [
        case_of(f"{name} in {dialect}", {"statement": name, "dialect": dialect}, {"text": _STATEMENTS[name][dialect]})
        for name in _STATEMENTS
        for dialect in _DIALECTS
    ]
    columns = {"namespace": "orders", "timerId": "größe/17"}
    delayed, dated = {**_TIMER, "delay": "1d", "payload": {"n": 1}}, {**_TIMER, "executeAt": "2027-02-01T00:00:00Z"}
    rows = [
        case_of("a row", {"timer": delayed}, {**columns, "request": delayed}),
        case_of("a row with an instant", {"timer": dated}, {**columns, "request": dated}),
    ]

    def sent(name: str, request: Json, after_us: int, expected: Json) -> Json:
        row = {"id": _ID, "request": request, "createdAt": _AT_US}
        return case_of(name, {"send": row, "now": _AT_US + after_us}, {"timer": {**expected, "idempotencyKey": _ID}})

    sends = [
        sent("an instant stays", dated, 3_600_000_000, dated),
        sent("what is left of a delay", delayed, 3_600_000_000, {**delayed, "delay": "23h"}),
        sent("a delay that is over", delayed, 90_000_000_000, {**delayed, "delay": "0s"}),
        sent("a clock that is behind", delayed, -5_000_000, {**delayed, "delay": "1d"}),
    ]
    refusals = [
        case_of(f"refused with {status} {code}".rstrip(), {"refused": {"status": status, "code": code}}, {"dead": dead})
        for status, code, dead in _REFUSALS
    ]
    return statements + rows + sends + refusals
