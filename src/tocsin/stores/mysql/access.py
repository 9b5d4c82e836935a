"""Sign-ins and the audit trail in MySQL."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.model.audit import AuditEntry, decode_audit, encode_audit
from tocsin.ports.store import AuditQuery, SignIn
from tocsin.stores.mysql.driver import Connection
from tocsin.stores.mysql.text import cut, hexed, instant, listed, text, text_or_null
from tocsin.stores.mysql.writes import BEGIN

#: The LIMIT that means all rows; MySQL has no OFFSET without one.
_ROWS_ALL = 2**63 - 1


def put_sign_in(sign_in: SignIn, now_us: int, keep: int) -> list[bytes]:
    """The statements of one transaction."""
    token, key = text(sign_in.token_hash), text(sign_in.key_id)
    return [
        b"DELETE FROM sign_ins WHERE sign_in_expires_at <= %b AND sign_in_token_hash <> %b" % (instant(now_us), token),
        b"INSERT INTO sign_ins VALUES (%b, %b, %b, %b) ON DUPLICATE KEY UPDATE sign_in_key_id = VALUES(sign_in_key_id), "
        b"sign_in_seen_at = VALUES(sign_in_seen_at), sign_in_expires_at = VALUES(sign_in_expires_at)"
        % (token, key, instant(sign_in.seen_at), instant(sign_in.expires_at)),
        # A DELETE can't read its own table directly, hence the derived table.
        b"DELETE FROM sign_ins WHERE sign_in_token_hash IN (SELECT sign_in_token_hash FROM (SELECT sign_in_token_hash "
        b"FROM sign_ins WHERE sign_in_key_id = %b AND sign_in_token_hash <> %b "
        b"ORDER BY sign_in_seen_at DESC, sign_in_token_hash DESC LIMIT %d OFFSET %d) AS beyond)"
        % (key, token, _ROWS_ALL, keep - 1),
    ]


async def sign_ins(connection: Connection, token_hashes: Sequence[str]) -> list[SignIn]:
    """The stored sign-ins with these token hashes, expired ones included, in any order."""
    found: list[SignIn] = []
    for hashes in cut([text(each) for each in token_hashes]):
        rows = await connection.rows(b"SELECT * FROM sign_ins WHERE sign_in_token_hash IN " + listed(hashes))
        found += [SignIn(str(token), str(key), int(seen), int(expires)) for token, key, seen, expires in rows]
    return found


def touch(token_hash: str, seen_at: int) -> bytes:
    """The UPDATE of a sign-in's last use."""
    return b"UPDATE sign_ins SET sign_in_seen_at = GREATEST(sign_in_seen_at, %b) WHERE sign_in_token_hash = %b" % (
        instant(seen_at),
        text(token_hash),
    )


def delete_sign_in(token_hash: str) -> bytes:
    """The DELETE of a sign-in."""
    return b"DELETE FROM sign_ins WHERE sign_in_token_hash = " + text(token_hash)


def delete_api_key(key_id: str) -> list[bytes]:
    """The statements of one transaction; the last one matches the key."""
    return [
        b"DELETE FROM sign_ins WHERE sign_in_key_id = " + text(key_id),
        b"DELETE FROM api_keys WHERE key_id = " + text(key_id),
    ]


def put_audit(entry: AuditEntry) -> bytes:
    """The INSERT of an entry, without effect if it is already stored."""
    return b"INSERT INTO audit VALUES (%b, %b, %b, %b, %b, %b) ON DUPLICATE KEY UPDATE audit_id = audit_id" % (
        instant(entry.at),
        hexed(entry.entry_id),
        text(entry.action),
        text_or_null(entry.key_id),
        text(entry.subject),
        text(encode_audit(entry)),
    )


def purge_audit(before_us: int, limit: int) -> bytes:
    """The DELETE of the oldest entries."""
    return b"DELETE FROM audit WHERE audit_at < %b ORDER BY audit_at, audit_id LIMIT %d" % (instant(before_us), limit)


async def audit(connection: Connection, query: AuditQuery) -> list[AuditEntry]:
    """At most `limit` entries by (at, entry_id), descending. Walks the primary key backwards."""
    terms: list[bytes] = []
    if query.actions:
        terms.append(b"audit_action IN " + listed(text(action) for action in sorted(query.actions)))
    if query.key_id is not None:
        terms.append(b"audit_key_id = " + text(query.key_id))
    if query.subject is not None:
        terms.append(b"audit_subject = " + text(query.subject))
    if query.after is not None:
        terms.append(b"audit_at >= " + instant(query.after))
    if query.before is not None:
        terms.append(b"audit_at < " + instant(query.before))
    if query.cursor is not None:
        at, entry_id = instant(query.cursor[0]), hexed(query.cursor[1])
        # A row comparison would not use the index.
        terms.append(b"audit_at <= %b AND (audit_at < %b OR audit_id < %b)" % (at, at, entry_id))
    condition = b"WHERE " + b" AND ".join(terms) if terms else b""
    sql = b"SELECT audit_record FROM audit %b ORDER BY audit_at DESC, audit_id DESC LIMIT %d" % (condition, query.limit)
    return [decode_audit(values[0].encode()) for values in await connection.rows(sql)]


async def together(connection: Connection, statements: Sequence[bytes], undone_retries_max: int) -> int:
    """Runs the statements in one transaction; returns how many rows the last one matched."""

    async def work() -> int:
        return (await connection.run(BEGIN, *statements))[-1].affected

    return await connection.transaction(work, undone_retries_max)
