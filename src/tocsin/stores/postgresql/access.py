"""Sign-ins and the audit trail in PostgreSQL."""

from __future__ import annotations

from typing import Any

from tocsin.model.audit import AuditEntry, decode_audit, encode_audit
from tocsin.ports.store import AuditQuery
from tocsin.stores.postgresql.driver import Connection

#: Nodes that remove rows at the same time take different ones, and none waits.
_OTHERS = "SELECT sign_in_token_hash FROM sign_ins WHERE sign_in_token_hash <> $1 AND "
PUT_SIGN_IN = (
    "WITH gone AS (DELETE FROM sign_ins WHERE sign_in_token_hash IN ("
    f"{_OTHERS} sign_in_expires_at <= $5 FOR UPDATE SKIP LOCKED) OR sign_in_token_hash IN ("
    f"{_OTHERS} sign_in_key_id = $2 ORDER BY sign_in_seen_at DESC, sign_in_token_hash DESC OFFSET $6 "
    "FOR UPDATE SKIP LOCKED)) "
    "INSERT INTO sign_ins VALUES ($1, $2, $3, $4) ON CONFLICT (sign_in_token_hash) DO UPDATE SET "
    "sign_in_key_id = excluded.sign_in_key_id, sign_in_seen_at = excluded.sign_in_seen_at, "
    "sign_in_expires_at = excluded.sign_in_expires_at RETURNING 1"
)
SIGN_INS = "SELECT * FROM sign_ins WHERE sign_in_token_hash = ANY ($1::text[])"
TOUCH = (
    "UPDATE sign_ins SET sign_in_seen_at = greatest(sign_in_seen_at, $2::bigint) WHERE sign_in_token_hash = $1 "
    "RETURNING 1"
)
DELETE_SIGN_IN = "DELETE FROM sign_ins WHERE sign_in_token_hash = $1 RETURNING 1"
DELETE_API_KEY = (
    "WITH gone AS (DELETE FROM sign_ins WHERE sign_in_key_id = $1) DELETE FROM api_keys WHERE key_id = $1 RETURNING 1"
)
PUT_AUDIT = "INSERT INTO audit VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING 1"
PURGE_AUDIT = (
    "WITH old AS (SELECT ctid FROM audit WHERE audit_at < $1 ORDER BY audit_at, audit_id LIMIT $2 "
    "FOR UPDATE SKIP LOCKED), gone AS (DELETE FROM audit WHERE ctid = ANY (ARRAY(SELECT ctid FROM old)) RETURNING 1) "
    "SELECT count(*) FROM gone"
)


def audit_values(entry: AuditEntry) -> tuple[Any, ...]:
    """The parameters of PUT_AUDIT."""
    return (entry.at, entry.entry_id, entry.action, entry.key_id, entry.subject, encode_audit(entry))


async def audit(connection: Connection, query: AuditQuery) -> list[AuditEntry]:
    """At most `limit` entries by (at, entry_id), descending. Walks the primary key backwards."""
    terms: list[str] = []
    values: list[Any] = []

    def where(term: str, *given: Any) -> None:
        first = len(values) + 1
        values.extend(given)
        terms.append(term.format(*(f"${first + i}" for i in range(len(given)))))

    if query.actions:
        where("audit_action = ANY ({}::text[])", sorted(query.actions))
    if query.key_id is not None:
        where("audit_key_id = {}", query.key_id)
    if query.subject is not None:
        where("audit_subject = {}", query.subject)
    if query.after is not None:
        where("audit_at >= {}", query.after)
    if query.before is not None:
        where("audit_at < {}", query.before)
    if query.cursor is not None:
        where("(audit_at, audit_id) < ({}, {})", *query.cursor)
    condition = f"WHERE {' AND '.join(terms)} " if terms else ""
    values.append(query.limit)
    sql = f"SELECT audit_record FROM audit {condition}ORDER BY audit_at DESC, audit_id DESC LIMIT ${len(values)}"
    return [decode_audit(row[0].encode()) for row in await connection.fetch(sql, *values)]
