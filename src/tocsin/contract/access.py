"""Who asks, and whether they may."""

from __future__ import annotations

from typing import Protocol

from tocsin.contract.errors import Forbidden, Unauthenticated
from tocsin.model.access import ApiKey, Role, hash_key

_SCHEME = b"bearer "
#: In the scope of a request that another node has brought: the SHA-256 of its key, instead of the key. No client sets it.
KEY_HASH = "tocsin.key_hash"


class KeyRing(Protocol):
    """The API keys in force."""

    @property
    def required(self) -> bool:
        """Whether a request without a key is refused."""

    def lookup(self, hash: str) -> ApiKey | None:
        """The key stored under this SHA-256. Finding a hash in a table tells nothing, in time or otherwise, about the
        secret behind another."""


def without_key(headers: list[tuple[bytes, bytes]]) -> tuple[list[tuple[bytes, bytes]], str]:
    """The headers without the API key, and the SHA-256 under which it is stored; "" and all headers when there is none."""
    sent = dict(headers).get(b"authorization", b"")
    if sent[: len(_SCHEME)].lower() != _SCHEME:
        return headers, ""
    return [header for header in headers if header[0] != b"authorization"], _hash_of(sent)


def _hash_of(authorization: bytes) -> str:
    return hash_key(authorization[len(_SCHEME) :].strip().decode("latin-1"))


def authenticate(authorization: bytes | None, keys: KeyRing, key_hash: str = "") -> ApiKey | None:
    """The key that an Authorization header brings, or whose hash another node told; None stands for anybody, where keys are
    optional.

    Raises Unauthenticated. A key that is sent must be known even where none is needed.
    """
    if authorization is None and key_hash:
        return _known(key_hash, keys)
    if authorization is None:
        if keys.required:
            raise Unauthenticated("an API key is needed; send it as Authorization: Bearer <key>")
        return None
    if authorization[: len(_SCHEME)].lower() != _SCHEME:
        raise Unauthenticated("the Authorization header has another scheme; send Authorization: Bearer <key>")
    return _known(_hash_of(authorization), keys)


def _known(key_hash: str, keys: KeyRing) -> ApiKey:
    key = keys.lookup(key_hash)
    if key is None:
        raise Unauthenticated("the API key is not known; it may have been deleted")
    return key


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
