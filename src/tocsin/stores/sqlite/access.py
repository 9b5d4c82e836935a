"""Sign-ins and the audit trail in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from tocsin.model.audit import AuditEntry, decode_audit, encode_audit
from tocsin.ports.store import AuditQuery, SignIn

#: Values in one IN list; more are split into several statements.
_LISTED_MAX = 500


def put_sign_in(connection: apsw.Connection, sign_in: SignIn, now_us: int, keep: int) -> None:
    """Stores a sign-in, or replaces the one with its `token_hash`."""
    connection.execute("DELETE FROM sign_ins WHERE sign_in_expires_at <= ?", (now_us,))
    connection.execute("INSERT OR REPLACE INTO sign_ins VALUES (?, ?, ?, ?)", sign_in)
    connection.execute(
        "DELETE FROM sign_ins WHERE sign_in_token_hash IN (SELECT sign_in_token_hash FROM sign_ins "
        "WHERE sign_in_key_id = ? AND sign_in_token_hash <> ? "
        "ORDER BY sign_in_seen_at DESC, sign_in_token_hash DESC LIMIT -1 OFFSET ?)",
        (sign_in.key_id, sign_in.token_hash, keep - 1),
    )


def sign_ins(connection: apsw.Connection, token_hashes: Sequence[str]) -> list[SignIn]:
    """The stored sign-ins with these token hashes, expired ones included, in any order."""
    found: list[SignIn] = []
    for begin in range(0, len(token_hashes), _LISTED_MAX):
        chunk = token_hashes[begin : begin + _LISTED_MAX]
        sql = f"SELECT * FROM sign_ins WHERE sign_in_token_hash IN ({','.join('?' * len(chunk))})"
        found += [SignIn(*row) for row in connection.execute(sql, chunk)]
    return found


TOUCH = "UPDATE sign_ins SET sign_in_seen_at = max(sign_in_seen_at, ?2) WHERE sign_in_token_hash = ?1"


def delete_api_key(connection: apsw.Connection, key_id: str) -> bool:
    """Removes the key and its sign-ins."""
    connection.execute("DELETE FROM sign_ins WHERE sign_in_key_id = ?", (key_id,))
    connection.execute("DELETE FROM api_keys WHERE key_id = ?", (key_id,))
    return connection.changes() > 0


def put_audit(connection: apsw.Connection, entry: AuditEntry) -> None:
    """Stores an entry."""
    connection.execute(
        "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (entry.at, entry.entry_id, entry.action, entry.key_id, entry.subject, encode_audit(entry)),
    )


def audit(connection: apsw.Connection, query: AuditQuery) -> list[AuditEntry]:
    """At most `limit` entries by (at, entry_id), descending. Walks the primary key backwards."""
    terms: list[str] = []
    values: list[object] = []

    def where(term: str, *given: object) -> None:
        terms.append(term)
        values.extend(given)

    if query.actions:
        where(f"audit_action IN ({','.join('?' * len(query.actions))})", *sorted(query.actions))
    if query.key_id is not None:
        where("audit_key_id = ?", query.key_id)
    if query.subject is not None:
        where("audit_subject = ?", query.subject)
    if query.after is not None:
        where("audit_at >= ?", query.after)
    if query.before is not None:
        where("audit_at < ?", query.before)
    if query.cursor is not None:
        where("(audit_at, audit_id) < (?, ?)", *query.cursor)
    condition = f"WHERE {' AND '.join(terms)} " if terms else ""
    sql = f"SELECT audit_record FROM audit {condition}ORDER BY audit_at DESC, audit_id DESC LIMIT ?"
    return [decode_audit(row[0].encode()) for row in connection.execute(sql, (*values, query.limit))]


PURGE_AUDIT = (
    "DELETE FROM audit WHERE (audit_at, audit_id) IN "
    "(SELECT audit_at, audit_id FROM audit WHERE audit_at < ? ORDER BY audit_at, audit_id LIMIT ?)"
)
