"""API keys: who may do what, where."""

from __future__ import annotations

import hashlib
from enum import StrEnum

import msgspec


class Role(StrEnum):
    """What a key allows; each role includes the ones before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, wanted: Role) -> bool:
        """Whether a key of this role may do what `wanted` names."""
        return _RANK[self] >= _RANK[wanted]


_RANK = {Role.READ: 0, Role.WRITE: 1, Role.ADMIN: 2}


class ApiKey(msgspec.Struct, frozen=True):
    """A stored key: its secret only as a SHA-256 (the secret has 256 random bits, so no salt or stretching is needed).

    A key without `namespaces` and `tenants` may touch all of them; a key with either may touch exactly those that it
    names, so that one limited to namespaces may touch no tenant, and the other way round. From `expires_at` on
    (microseconds; None: never) it is refused like one that was deleted.
    """

    key_id: str
    hash: str
    role: Role
    namespaces: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    created_at: int = 0
    note: str = ""
    expires_at: int | None = None

    def expired(self, now_us: int) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and self.expires_at <= now_us

    def allows(self, role: Role, namespace: str | None) -> bool:
        """Whether the key may act in that role, on that namespace (None: on the whole service)."""
        if not self.role.includes(role):
            return False
        if not self.namespaces and not self.tenants:
            return True
        return namespace is not None and namespace in self.namespaces

    def allows_tenant(self, role: Role, tenant_id: str) -> bool:
        """Whether the key may act in that role for that tenant, whose id is compared without regard to case."""
        if not self.role.includes(role):
            return False
        if not self.namespaces and not self.tenants:
            return True
        wanted = tenant_id.lower()
        return any(tenant.lower() == wanted for tenant in self.tenants)

    def covers(self, other: ApiKey) -> bool:
        """Whether whatever the other key may touch, this one may touch, too. A key without limits is covered by such a one
        alone."""
        if not self.namespaces and not self.tenants:
            return True
        tenants = {tenant.lower() for tenant in self.tenants}
        return (
            bool(other.namespaces or other.tenants)
            and set(other.namespaces) <= set(self.namespaces)
            and {tenant.lower() for tenant in other.tenants} <= tenants
        )


def hash_key(secret: str) -> str:
    """The hexadecimal SHA-256 under which a key is stored and looked up."""
    return hashlib.sha256(secret.encode()).hexdigest()
