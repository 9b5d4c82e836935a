"""Creating, listing and revoking API keys, for the API and the command line."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from tocsin.administration import api_keys, delete_api_key, key_uses, limit_api_key, put_api_key
from tocsin.model.access import GROUP, READS, ApiKey, Role, hash_key
from tocsin.model.audit import AuditAction, Detail
from tocsin.model.errors import FieldError, InvalidInput, KeyNotFound, TooManyKeys
from tocsin.model.ids import is_uuid7
from tocsin.model.instants import US_PER_DAY, format_instant
from tocsin.model.namespace import NAME
from tocsin.model.validation import new_name_reason
from tocsin.ports.records import Records

#: Maximum number of keys: every node keeps all keys in memory, and reads them again every `keys_refresh`.
KEYS_MAX = 10_000
#: Maximum number of namespaces, of tenants, of operations and of sources of a key, for the same reason.
SCOPE_MAX = 100
NAME_CHARS_MAX = 255
#: A longer lifetime is probably a wrong unit; a key without an expiry never expires.
LIFETIME_US_MAX = 100 * 365 * US_PER_DAY
_KEY_ID_BYTES = 6
#: 32 random bytes are 43 URL-safe characters.
_SECRET_BYTES = 32

#: A secret that an operator chose: long enough not to be guessed, and short enough for a header.
FIRST_SECRET_CHARS_MIN, FIRST_SECRET_CHARS_MAX = 32, 256

#: Adds an entry to the audit trail: the action, the key's id, and details. If it raises, a new key is removed again.
RecordAudit = Callable[[AuditAction, str, dict[str, Detail]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """A key to create. Without namespaces and tenants it has access to all of them, without operations it may use each that
    its role allows, and without sources it counts from everywhere; `expires_at` in microseconds, None: never."""

    role: Role
    namespaces: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    name: str = ""
    expires_at: int | None = None
    operations: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


class NewKey(NamedTuple):
    """A key with its secret, which clients send and which is not stored."""

    key: ApiKey
    secret: str


def make(wanted: KeyRequest, now_us: int, operations: Collection[str]) -> NewKey:
    """Creates a key, not stored yet. `operations` are the names of all that a key can be limited to. Raises InvalidInput with
    all bad fields, by their API names."""
    errors = [
        *_scope_errors("namespaces", wanted.namespaces, _namespace_reason),
        *_scope_errors("tenants", wanted.tenants, _tenant_reason),
        *_scope_errors("operations", wanted.operations, partial(_operation_reason, operations)),
        *_scope_errors("sources", wanted.sources, _source_reason),
    ]
    if wanted.name and (reason := new_name_reason(wanted.name, NAME_CHARS_MAX)):
        errors.append(FieldError("name", reason))
    if wanted.expires_at is not None and not now_us < wanted.expires_at <= now_us + LIFETIME_US_MAX:
        reason = "must be in the future, by at most 100 years; leave it out for a key that never expires"
        errors.append(FieldError("expiresAt", reason))
    if errors:
        raise InvalidInput(*errors)
    key_id = secrets.token_hex(_KEY_ID_BYTES)
    secret = f"tk_{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    tenants = tuple(tenant.lower() for tenant in wanted.tenants)
    key = ApiKey(
        key_id, hash_key(secret), wanted.role, wanted.namespaces, tenants, now_us, wanted.name, wanted.expires_at,
        wanted.operations, tuple(str(ipaddress.ip_network(source)) for source in wanted.sources),
    )  # fmt: skip
    return NewKey(key, secret)


def admin_key(secret: str, now_us: int) -> ApiKey:
    """A key of role admin, without limits, whose secret an operator chose. Its id follows from the secret, so that nodes that
    start at the same time store one key. Raises ValueError for a secret that could be guessed or that no header carries."""
    if not FIRST_SECRET_CHARS_MIN <= len(secret) <= FIRST_SECRET_CHARS_MAX:
        raise ValueError(
            f"must have {FIRST_SECRET_CHARS_MIN} to {FIRST_SECRET_CHARS_MAX} characters, as from `openssl rand -hex 32`"
        )
    if not (secret.isascii() and secret.isprintable()) or " " in secret:
        raise ValueError("must consist of visible ASCII characters without spaces")
    hash = hash_key(secret)
    # Of the hash of the hash: the stored one is what a client's key is looked up by.
    return ApiKey(hash_key(hash)[: 2 * _KEY_ID_BYTES], hash, Role.ADMIN, created_at=now_us, note="admin_key_file")


def grant_refusal(key: ApiKey, maker: ApiKey) -> str | None:
    """Why the `maker` key may not create this `key`; None if it may."""
    if not maker.role.includes(Role.ADMIN):
        return f"creating keys requires a key of role admin; this key's role is {maker.role.value}"
    if (excess := _excess(key, maker)) is not None:
        return excess
    ends = maker.expires_at
    if ends is not None and (key.expires_at is None or key.expires_at > ends):
        return f"this key expires at {format_instant(ends)}; send an expiresAt that is not later"
    return None


def _excess(key: ApiKey, maker: ApiKey) -> str | None:
    """What `key` may do that `maker` may not, as the reason why it can't be created; None: nothing."""
    if not maker.covers(key):
        own = ", ".join((*maker.namespaces, *maker.tenants))
        return f"this key is limited to {own}; limit the new key to namespaces or tenants of these"
    if maker.operations and not (key.operations and set(key.operations) <= set(maker.operations)):
        return (
            f"this key is limited to the operations {', '.join(maker.operations)}; limit the new key to some of these"
        )
    if maker.sources and not (key.sources and all(_within(source, maker.sources) for source in key.sources)):
        return (
            f"this key is limited to the sources {', '.join(maker.sources)}; limit the new key to networks within these"
        )
    return None


class ApiKeys:
    """The keys in the store. All methods raise StoreError; `changed` is awaited after each change."""

    def __init__(self, store: Records, changed: Callable[[], Awaitable[None]] | None = None) -> None:
        self._store = store
        self._changed = changed

    async def add(self, key: ApiKey, record: RecordAudit) -> bool:
        """Stores a key and records it in the audit trail; if recording fails, removes the key. If another node has stored it
        at the same time, that one records it. Returns whether it is the first key. Raises TooManyKeys."""
        present = len(await api_keys(self._store))
        if present >= KEYS_MAX:
            raise TooManyKeys(
                f"there are {present} keys, the maximum is {KEYS_MAX}; revoke keys that are no longer used"
            )
        if not await put_api_key(self._store, key):
            await self._notify_changed()
            return False
        details: dict[str, Detail] = {
            "role": key.role.value,
            "namespaces": list(key.namespaces),
            "tenants": list(key.tenants),
            **({"operations": list(key.operations)} if key.operations else {}),
            **({"sources": list(key.sources)} if key.sources else {}),
            **({} if key.expires_at is None else {"expiresAt": format_instant(key.expires_at)}),
        }
        try:
            await record(AuditAction.KEY_CREATED, key.key_id, details)
        except Exception:
            await delete_api_key(self._store, key.key_id)
            raise
        await self._notify_changed()
        return not present

    async def seen_by(self, viewer: ApiKey | None) -> list[ApiKey]:
        """The keys that may do nothing that the viewer's key may not, oldest first; None sees all."""
        keys = sorted(await api_keys(self._store), key=lambda key: (key.created_at, key.key_id))
        return [key for key in keys if viewer is None or _excess(key, viewer) is None]

    async def uses(self) -> Mapping[str, int]:
        """When keys were used last, in microseconds, by their ids. A node stores a use at most once an hour, within seconds
        of it; keys that were never used are absent."""
        return await key_uses(self._store)

    async def revoke(self, key_id: str, revoker: ApiKey | None, record: RecordAudit) -> None:
        """Removes a key that the revoker's key sees, and records it in the audit trail. Raises KeyNotFound."""
        known = {key.key_id for key in await self.seen_by(revoker)}
        if key_id not in known or not await delete_api_key(self._store, key_id):
            raise KeyNotFound(f"no key has the id {key_id!r}")
        await self._notify_changed()
        await record(AuditAction.KEY_DELETED, key_id, {})

    async def withdraw(self, namespace: str, record: RecordAudit) -> None:
        """Takes the namespace from the keys that are limited to it and others; removes those that are limited to it alone, as
        without a limit they could access everything. Each is recorded in the audit trail."""
        changed = False
        for key in await api_keys(self._store):
            if namespace not in key.namespaces:
                continue
            changed = True
            left = tuple(each for each in key.namespaces if each != namespace)
            if (left or key.tenants) and await limit_api_key(self._store, key.key_id, namespace):
                await record(AuditAction.KEY_CHANGED, key.key_id, {"namespaces": list(left)})
                continue
            # Looked at again: the deletion of the other namespaces may have left this one alone to it.
            present = [each for each in await api_keys(self._store) if each.key_id == key.key_id and not each.tenants]
            if [each.namespaces for each in present] == [(namespace,)] and await delete_api_key(
                self._store, key.key_id
            ):
                await record(AuditAction.KEY_DELETED, key.key_id, {"namespace": namespace})
        if changed:
            await self._notify_changed()

    async def _notify_changed(self) -> None:
        if self._changed is not None:
            await self._changed()


def _scope_errors(field: str, names: tuple[str, ...], reason_of: Callable[[str], str | None]) -> list[FieldError]:
    if len(names) > SCOPE_MAX:
        return [FieldError(field, f"has {len(names)} entries; at most {SCOPE_MAX} are accepted")]
    errors = []
    seen: set[str] = set()
    for place, name in enumerate(names):
        reason = reason_of(name) or ("is a duplicate" if name in seen else None)
        seen.add(name)
        if reason is not None:
            errors.append(FieldError(f"{field}[{place}]", reason))
    return errors


def _namespace_reason(name: str) -> str | None:
    return None if NAME.match(name) else "is not a valid namespace name; use 1 to 255 of A-Z a-z 0-9 . _ : -"


def _operation_reason(known: Collection[str], name: str) -> str | None:
    if name == READS or name in known:
        return None
    if name.endswith(GROUP) and any(each.startswith(name.removesuffix("*")) for each in known):
        return None
    return (
        "is not the name of an operation, such as timers/create, of a group of them, such as timers/*, or read, which stands "
        "for all that a key of role read may use"
    )


def _source_reason(source: str) -> str | None:
    try:
        network = ipaddress.ip_network(source)
    except ValueError as error:
        return f"is not an address or network such as 10.1.0.0/16 or 2001:db8::/32 ({error})"
    if isinstance(network, ipaddress.IPv6Network) and network.network_address.ipv4_mapped is not None:
        return "is a network of IPv4 addresses in the notation of IPv6; write it as one of IPv4, such as 10.1.0.0/16"
    return None


def _within(source: str, networks: tuple[str, ...]) -> bool:
    inner = ipaddress.ip_network(source)
    outer = map(ipaddress.ip_network, networks)
    return any(inner.network_address in each and inner.prefixlen >= each.prefixlen for each in outer)


def _tenant_reason(tenant: str) -> str | None:
    if is_uuid7(tenant.lower()):
        return None
    return "is not a UUID of version 7, such as 01890a5d-ac96-774b-bcce-b302099a8057"
