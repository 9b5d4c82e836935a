"""Who asks, and whether they may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tocsin.contract.errors import Forbidden, Unauthenticated
from tocsin.model.access import ApiKey, Role, hash_key

_SCHEME = b"bearer "


class KeyRing(Protocol):
    """The API keys in force."""

    @property
    def required(self) -> bool:
        """Whether a request without a key is refused."""

    def expired(self, hash: str) -> bool:
        """Whether the key of that hash is known, and its time is over."""

    def by_id(self, key_id: str) -> ApiKey | None:
        """The key of that id, if it is in force."""

    def lookup(self, hash: str) -> ApiKey | None:
        """The key stored under this SHA-256, if it is in force. Finding a hash in a table tells nothing, in time or
        otherwise, about the secret behind another."""


def authenticate(
    authorization: bytes | None, keys: KeyRing, failed: Callable[[str], object] | None = None
) -> ApiKey | None:
    """The key that an Authorization header brings; None stands for anybody, where keys are optional.

    Raises Unauthenticated. A key that is sent must be known even where none is needed. `failed` is called with the reason
    when one was sent that won't do, and may raise instead.
    """
    if authorization is None:
        if keys.required:
            raise Unauthenticated("an API key is needed; send it as Authorization: Bearer <key>")
        return None
    reason, message = "malformed", "the Authorization header has another scheme; send Authorization: Bearer <key>"
    if authorization[: len(_SCHEME)].lower() == _SCHEME:
        hash = hash_key(authorization[len(_SCHEME) :].strip().decode("latin-1"))
        key = keys.lookup(hash)
        if key is not None:
            return key
        reason, message = "unknown_key", "the API key is not known; it may have been deleted"
        if keys.expired(hash):
            reason, message = "expired_key", "the API key has expired; make another with `tocsin keys create`"
    if failed is not None:
        failed(reason)
    raise Unauthenticated(message)


def require_role(key: ApiKey | None, role: Role) -> None:
    """Raises Forbidden unless the key has the role somewhere."""
    if key is not None and not key.role.includes(role):
        raise Forbidden(f"this needs a key of role {role.value}; this key's role is {key.role.value}")


def require_service(key: ApiKey | None, role: Role) -> None:
    """Raises Forbidden unless the key has the role on the whole service."""
    require_role(key, role)
    if key is not None and not key.allows(role, None):
        raise Forbidden("this needs a key that is not limited to namespaces or tenants")


def require_namespace(key: ApiKey | None, role: Role, namespace: str) -> None:
    """Raises Forbidden unless the key has the role on the namespace."""
    if key is not None and not key.allows(role, namespace):
        require_role(key, role)
        raise Forbidden(f"this key may not touch the namespace {namespace!r}")


def require_tenant(key: ApiKey | None, role: Role, tenant_id: str) -> None:
    """Raises Forbidden unless the key has the role for the tenant."""
    if key is not None and not key.allows_tenant(role, tenant_id):
        require_role(key, role)
        raise Forbidden("this key may not touch this tenant")
