"""Who asks, and whether they may."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, Protocol

from tocsin.http.errors import Forbidden, Unauthenticated
from tocsin.keys import grant_refusal
from tocsin.model.access import ApiKey, Role, hash_key

_SCHEME = b"bearer "
#: In the scope of a request that another node has brought: the SHA-256 of its key, instead of the key. No client sets it.
KEY_HASH = "tocsin.key_hash"
#: In the same scope: whether that node has checked the Host header and the proxies, as its own settings have it.
RELAYED = "tocsin.relayed"


class Keyring(Protocol):
    """The API keys in force."""

    @property
    def required(self) -> bool:
        """Whether a request without a key is refused."""

    @property
    def insecure(self) -> bool:
        """Whether a setting keeps it from that."""

    def expired(self, hash: str) -> bool:
        """Whether the key of that hash is known, and its time is over."""

    def by_id(self, key_id: str) -> ApiKey | None:
        """The key of that id, if it is in force."""

    def lookup(self, hash: str) -> ApiKey | None:
        """The key stored under this SHA-256, if it is in force. Finding a hash in a table tells nothing, in time or
        otherwise, about the secret behind another."""


def without_key(headers: list[tuple[bytes, bytes]]) -> tuple[list[tuple[bytes, bytes]], str]:
    """The headers without the API key, and the SHA-256 under which it is stored; "" and all headers when there is none."""
    sent = dict(headers).get(b"authorization", b"")
    if sent[: len(_SCHEME)].lower() != _SCHEME:
        return headers, ""
    return [header for header in headers if header[0] != b"authorization"], _hash_of(sent)


def _hash_of(authorization: bytes) -> str:
    return hash_key(authorization[len(_SCHEME) :].strip().decode("latin-1"))


def authenticate(
    authorization: bytes | None, keys: Keyring, key_hash: str = "", failed: Callable[[str], object] | None = None
) -> ApiKey | None:
    """The key that an Authorization header brings, or whose hash another node told; None stands for anybody, where keys are
    optional.

    Raises Unauthenticated. A key that is sent must be known even where none is needed. `failed` is called with the reason
    when one was sent that won't do, and may raise instead.
    """
    if authorization is None and key_hash:
        return _known(key_hash, keys, failed)
    if authorization is None:
        if keys.required:
            raise Unauthenticated("an API key is needed; send it as Authorization: Bearer <key>")
        return None
    if authorization[: len(_SCHEME)].lower() == _SCHEME:
        return _known(_hash_of(authorization), keys, failed)
    return _refuse("malformed", "the Authorization header has another scheme; send Authorization: Bearer <key>", failed)


def _known(key_hash: str, keys: Keyring, failed: Callable[[str], object] | None) -> ApiKey:
    key = keys.lookup(key_hash)
    if key is not None:
        return key
    if keys.expired(key_hash):
        return _refuse("expired_key", "the API key has expired; make another with `tocsin keys create`", failed)
    return _refuse("unknown_key", "the API key is not known; it may have been deleted", failed)


def _refuse(reason: str, message: str, failed: Callable[[str], object] | None) -> NoReturn:
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


def require_grant(maker: ApiKey, key: ApiKey) -> None:
    """Raises Forbidden unless the maker's key allows it to make this one."""
    reason = grant_refusal(key, maker)
    if reason is not None:
        raise Forbidden(reason)


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
