"""API keys: roles, the namespaces and tenants that a key may access, and its operations and sources."""

from __future__ import annotations

import hashlib
import ipaddress
from enum import StrEnum
from functools import lru_cache

import msgspec

#: Stands for all namespaces, or tenants, that a key may access, in lists.
EVERY = "*"
#: How the id of somebody whom an identity provider knows begins, where that of an API key would stand. No key's does.
IDENTITY_PREFIX = "oidc-"
#: Among the operations of a key: all that a key of role read may use.
READS = "read"
#: How the name of a group of operations ends, such as `timers/*`.
GROUP = "/*"
#: Pairs of limits and what was checked against them whose result is kept: a busy server has few.
_CHECKED_MAX = 4_096


class Role(StrEnum):
    """What a key allows. Each role includes the ones before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, wanted: Role) -> bool:
        """Whether a key with this role may do what requires role `wanted`."""
        return _RANK[self] >= _RANK[wanted]


_RANK = {Role.READ: 0, Role.WRITE: 1, Role.ADMIN: 2}


#: A key's end is announced at the earliest when one of so many parts of its time is left.
_NOTICE_PART = 4


class ApiKey(msgspec.Struct, frozen=True):
    """A stored key. Of its secret only the SHA-256 is stored; the secret has 256 random bits, so that needs no salt or
    stretching.

    A key without `namespaces` and `tenants` may access all of them. A key with either may access exactly those that it names:
    one limited to namespaces may access no tenant, and vice versa. From `expires_at` on (microseconds; None: never) it is
    refused like a deleted key.

    With `operations`, it may use only those: each is the name of one, such as `timers/create`, the name of a group, such as
    `timers/*`, or READS. With `sources`, networks in CIDR notation, it counts only in requests from their addresses.
    """

    key_id: str
    hash: str
    role: Role
    namespaces: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    created_at: int = 0
    note: str = ""
    expires_at: int | None = None
    operations: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    def expired(self, now_us: int) -> bool:
        """Whether the key has expired."""
        return self.expires_at is not None and self.expires_at <= now_us

    def ends_within(self, notice_us: int, now_us: int) -> bool:
        """Whether the key expires within the notice, or has expired; at the earliest in the last quarter of its time, so that
        keys that were made for a short one are not announced from their creation."""
        if self.expires_at is None:
            return False
        return self.expires_at - min(notice_us, (self.expires_at - self.created_at) // _NOTICE_PART) <= now_us

    def allows(self, role: Role, namespace: str | None) -> bool:
        """Whether the key may act with that role on that namespace (None: on the whole service)."""
        if not self.role.includes(role):
            return False
        if self.unlimited:
            return True
        return namespace is not None and namespace in self.namespaces

    def permits(self, operation: str, role: Role) -> bool:
        """Whether the key's operations have this one, which requires the role."""
        return not self.operations or _permits(self.operations, operation, role)

    def comes_from(self, address: str) -> bool:
        """Whether the key's sources have this address. A key with sources counts from no address that is not known."""
        return not self.sources or _comes_from(self.sources, address)

    @property
    def unlimited(self) -> bool:
        """Whether the key may access all namespaces and tenants."""
        return not self.namespaces and not self.tenants

    def allows_tenant(self, role: Role, tenant_id: str) -> bool:
        """Whether the key may act with that role for that tenant. Tenant ids are compared case-insensitively."""
        if not self.role.includes(role):
            return False
        if self.unlimited:
            return True
        wanted = tenant_id.lower()
        return any(tenant.lower() == wanted for tenant in self.tenants)

    def covers(self, other: ApiKey) -> bool:
        """Whether this key may access everything that the other may. Only a key without limits covers a key without
        limits."""
        if self.unlimited:
            return True
        tenants = {tenant.lower() for tenant in self.tenants}
        return (
            bool(other.namespaces or other.tenants)
            and set(other.namespaces) <= set(self.namespaces)
            and {tenant.lower() for tenant in other.tenants} <= tenants
        )


@lru_cache(_CHECKED_MAX)
def _permits(operations: tuple[str, ...], operation: str, role: Role) -> bool:
    return any(
        each == operation
        or (each == READS and role is Role.READ)
        or (each.endswith(GROUP) and operation.startswith(each.removesuffix("*")))
        for each in operations
    )


@lru_cache(_CHECKED_MAX)
def _comes_from(sources: tuple[str, ...], address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    # What a socket for both versions of IP calls an IPv4 address.
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return any((mapped or parsed) in ipaddress.ip_network(each) for each in sources)


class SignIn(msgspec.Struct, frozen=True):
    """A sign-in to the web pages with the key `key_id`, or of somebody whom the identity provider knows by that id; only then
    it has their name, and the groups by which they may do something.

    `token_hash` is the hexadecimal SHA-256 of the cookie's token; the token itself is never stored. `seen_at` is the last
    use, accurate to a part of the idle time-out. The sign-in ends at `expires_at`. Both are microseconds. `version` is its
    record's."""

    key_id: str
    token_hash: str
    seen_at: int
    expires_at: int
    version: int = 1
    name: str = ""
    groups: tuple[str, ...] = ()


def hash_key(secret: str) -> str:
    """The hexadecimal SHA-256 under which a key is stored and looked up."""
    return hashlib.sha256(secret.encode()).hexdigest()
