"""Namespaces, API keys, secrets, sign-ins and the audit trail: one partition per kind, one row each. All writes are
conditional, because no clock may decide which of two came later."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tocsin.model.access import ApiKey
from tocsin.model.audit import AuditEntry, decode_audit, encode_audit
from tocsin.model.namespace import Namespace, decode_namespace, encode_namespace
from tocsin.ports.store import AuditQuery, SignIn
from tocsin.stores.cassandra.client import CassandraClient, Write
from tocsin.stores.cassandra.keys import API_KEYS, AUDIT, NAMESPACES, SECRETS, SIGN_INS, instant_bytes

_INSERT = "INSERT INTO {t} (p, k, v, n) VALUES (?, ?, ?, ?) IF NOT EXISTS"
#: Inserts the row, or replaces another one with this key.
_PUT = "UPDATE {t} SET v = ?, n = ? WHERE p = ? AND k = ? IF v != ?"
_DELETE = "DELETE FROM {t} WHERE p = ? AND k = ? IF EXISTS"
_ALL = "SELECT k, v, n FROM {t} WHERE p = ?"
_AUDIT_END = b"\xff" * 25
_PURGE_ROWS = 500

_key_encoder = msgspec.json.Encoder()
_key_decoder = msgspec.json.Decoder(ApiKey)
_encode = msgspec.msgpack.Encoder().encode


class _SignIn(msgspec.Struct, array_like=True):
    key_id: str
    expires_at: int


_sign_in_decoder = msgspec.msgpack.Decoder(_SignIn)


async def namespaces(client: CassandraClient) -> list[Namespace]:
    """All of them, by name."""
    rows = await client.read(_ALL, client.partition(NAMESPACES))
    return [decode_namespace(key.decode(), value or b"") for key, value, _ in rows]


async def put_namespace(client: CassandraClient, namespace: Namespace, *, create: bool) -> bool:
    """With `create`, inserts the namespace; False when it already exists."""
    partition, key = client.partition(NAMESPACES), namespace.name.encode()
    value = encode_namespace(namespace)
    if create:
        return bool((await client.write(_INSERT, partition, key, value, namespace.version))[0])
    statement = "UPDATE {t} SET v = ?, n = ? WHERE p = ? AND k = ? IF n = ?"
    return bool((await client.write(statement, value, namespace.version, partition, key, namespace.version - 1))[0])


async def api_keys(client: CassandraClient) -> list[ApiKey]:
    """All of them, by key_id."""
    return [_key_decoder.decode(value) for _, value, _ in await client.read(_ALL, client.partition(API_KEYS))]


async def put_api_key(client: CassandraClient, api_key: ApiKey) -> None:
    """Inserts the key, or replaces the one with its `key_id`."""
    value = _key_encoder.encode(api_key)
    await client.write(_PUT, value, None, client.partition(API_KEYS), api_key.key_id.encode(), value)


async def delete_api_key(client: CassandraClient, key_id: str) -> bool:
    """Removes the key and its sign-ins. The key is deleted first: sign-ins without a key are invalid, and the next call
    deletes the rest."""
    removed = bool((await client.write(_DELETE, client.partition(API_KEYS), key_id.encode()))[0])
    for each in await _all_sign_ins(client):
        if each.key_id == key_id:
            await delete_sign_in(client, each.token_hash)
    return removed


async def shared_secret(client: CassandraClient, name: str, fresh: str) -> str:
    """The secret of that name that all nodes of this store share: the stored one, or else `fresh`, which is then
    stored."""
    partition, key = client.partition(SECRETS), name.encode()
    await client.write(_INSERT, partition, key, fresh.encode(), None)
    rows = await client.read("SELECT v FROM {t} WHERE p = ? AND k = ?", partition, key)
    return bytes(rows[0][0]).decode()


# -- sign-ins


async def put_sign_in(client: CassandraClient, sign_in: SignIn, now_us: int, keep: int) -> None:
    """Stores a sign-in, or replaces the one with its `token_hash`. The sign-in is stored first; after a failure, the next
    call removes what is left."""
    value = _encode(_SignIn(sign_in.key_id, sign_in.expires_at))
    place = (client.partition(SIGN_INS), sign_in.token_hash.encode())
    await client.write(_PUT, value, sign_in.seen_at, *place, value)
    others = [each for each in await _all_sign_ins(client) if each.token_hash != sign_in.token_hash]
    gone = [each for each in others if each.expires_at <= now_us]
    of_key = [each for each in others if each.key_id == sign_in.key_id and each.expires_at > now_us]
    gone += sorted(of_key, key=lambda each: (each.seen_at, each.token_hash), reverse=True)[keep - 1 :]
    for each in gone:
        await delete_sign_in(client, each.token_hash)


async def sign_ins(client: CassandraClient, token_hashes: Sequence[str]) -> list[SignIn]:
    """The stored sign-ins with these token hashes, expired ones included, in any order."""
    keys = [token_hash.encode() for token_hash in dict.fromkeys(token_hashes)]
    if not keys:
        return []
    statement = "SELECT k, v, n FROM {t} WHERE p = ? AND k IN ?"
    return [_sign_in(*row) for row in await client.read(statement, client.partition(SIGN_INS), keys)]


async def touch_sign_in(client: CassandraClient, token_hash: str, seen_at: int) -> bool:
    """Updates the sign-in's last use, never to an earlier instant."""
    place = (client.partition(SIGN_INS), token_hash.encode())
    applied = await client.write("UPDATE {t} SET n = ? WHERE p = ? AND k = ? IF n < ?", seen_at, *place, seen_at)
    # A refusal comes with the present value, if there is a row.
    return bool(applied[0]) or applied[-1] not in (None, False)


async def delete_sign_in(client: CassandraClient, token_hash: str) -> bool:
    """Removes the sign-in."""
    return bool((await client.write(_DELETE, client.partition(SIGN_INS), token_hash.encode()))[0])


async def _all_sign_ins(client: CassandraClient) -> list[SignIn]:
    return [_sign_in(*row) for row in await client.read(_ALL, client.partition(SIGN_INS))]


def _sign_in(key: bytes, value: bytes, seen_at: int) -> SignIn:
    stored = _sign_in_decoder.decode(value)
    return SignIn(key.decode(), stored.key_id, seen_at, stored.expires_at)


# -- the audit trail


async def put_audit(client: CassandraClient, entry: AuditEntry) -> None:
    """Stores an entry."""
    key = _audit_key(*entry.place)
    await client.write(_INSERT, client.partition(AUDIT), key, encode_audit(entry).encode(), None)


async def audit(client: CassandraClient, query: AuditQuery) -> list[AuditEntry]:
    """At most `limit` entries by (at, entry_id), descending. Filters what it reads."""
    first = b"" if query.after is None else instant_bytes(query.after)
    last = _AUDIT_END if query.before is None else instant_bytes(query.before)
    if query.cursor is not None:
        last = min(last, _audit_key(*query.cursor))
    filtered = bool(query.actions) or query.key_id is not None or query.subject is not None
    page_rows = client.settings.page_rows_max if filtered else min(query.limit, client.settings.page_rows_max)
    statement = "SELECT k, v FROM {t} WHERE p = ? AND k >= ? AND k < ? ORDER BY k DESC LIMIT ?"
    found: list[AuditEntry] = []
    while len(found) < query.limit and first < last:
        page = await client.read(statement, client.partition(AUDIT), first, last, page_rows)
        found += [entry for _, value in page if _matches(query, entry := decode_audit(value))]
        if len(page) < page_rows:
            break
        last = page[-1][0]
    return found[: query.limit]


def _matches(query: AuditQuery, entry: AuditEntry) -> bool:
    return (
        (not query.actions or entry.action in query.actions)
        and query.key_id in (None, entry.key_id)
        and query.subject in (None, entry.subject)
    )


async def purge_audit(client: CassandraClient, before_us: int, limit: int) -> int:
    """Removes up to `limit` entries with at < before_us, oldest first; returns how many."""
    partition, removed = client.partition(AUDIT), 0
    statement = "SELECT k FROM {t} WHERE p = ? AND k < ? LIMIT ?"
    while removed < limit:
        wanted = min(limit - removed, _PURGE_ROWS)
        keys = [row[0] for row in await client.read(statement, partition, instant_bytes(before_us), wanted)]
        # A batch of conditions is refused whole if another node has removed one of the rows meanwhile.
        if not keys or not (await client.write_all(Write(_DELETE, (partition, key)) for key in keys))[0]:
            break
        removed += len(keys)
        if len(keys) < wanted:
            break
    return removed


def _audit_key(at: int, entry_id: bytes) -> bytes:
    return instant_bytes(at) + entry_id
