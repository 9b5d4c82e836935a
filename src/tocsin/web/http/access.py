"""Authentication and authorization of requests, and the limit of failed authentications from an address."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from typing import NoReturn, Protocol

import structlog

from tocsin.keys import grant_refusal
from tocsin.model.access import EVERY, ApiKey, Role, SignIn, hash_key
from tocsin.ports.agent_calls import Tenants
from tocsin.rate_limit import RateLimit
from tocsin.timers.listing import Scope
from tocsin.web.http.errors import Forbidden, ForeignSource, TooManyFailures, Unauthenticated

_SCHEME = b"bearer "
#: In the ASGI scope of a request that another node relayed: the SHA-256 of its key, instead of the key. No client sets it.
KEY_HASH = "tocsin.key_hash"
#: In the same scope, where the relaying node has checked a token of the identity provider: whose it is, an ApiKey.
IDENTITY = "tocsin.identity"
#: In the same scope: whether the relaying node has checked the Host header and the proxies, by its own settings.
RELAYED = "tocsin.relayed"

#: Failures that an address may cause in a burst, and seconds until it may cause another. A valid key never counts and is
#: never refused, so one client cannot lock out others behind the same address. Guessing is hopeless anyway: keys have
#: 256 random bits. The limit bounds the work and the log lines that a client with an invalid key causes.
_BURST = 20
_REFILL_S = 3.0
#: Addresses with a failure count; beyond it, the address that failed longest ago starts over.
_ADDRESSES_MAX = 10_000
#: Log lines per window, over all addresses; the next line has the number of those left out.
_LINES_MAX = 10
_LINES_WINDOW_S = 60.0
#: Providers assign a subscriber an IPv6 network with this prefix length.
_IPV6_PREFIX = 64

_log = structlog.get_logger("tocsin.access")


class Keyring(Protocol):
    """The API keys in force."""

    @property
    def required(self) -> bool:
        """Whether a request without a key is refused."""

    @property
    def insecure(self) -> bool:
        """Whether the setting `insecure` disables that."""

    def expired(self, hash: str) -> bool:
        """Whether the key with this hash is known and has expired."""

    def by_id(self, key_id: str) -> ApiKey | None:
        """The key with this id, if it is in force."""

    def used(self, key: ApiKey) -> None:
        """Notes that the key was accepted, without a write."""

    def lookup(self, hash: str) -> ApiKey | None:
        """The key stored under this SHA-256, if it is in force. A lookup by hash leaks nothing, by timing or otherwise, about
        other keys' secrets."""

    @property
    def identifies(self) -> bool:
        """Whether there is an identity provider."""

    def identify(self, token: str) -> ApiKey | None:
        """Whom the identity provider knows by this token, as a key with what they may do. Raises Unavailable."""

    def permitted(self, sign_in: SignIn) -> ApiKey | None:
        """The same of somebody who has signed in at the provider; None if they may do nothing any more."""


def without_key(headers: list[tuple[bytes, bytes]]) -> tuple[list[tuple[bytes, bytes]], str]:
    """The headers without the API key, and the key's SHA-256; without a key, all headers and ""."""
    sent = dict(headers).get(b"authorization", b"")
    if sent[: len(_SCHEME)].lower() != _SCHEME:
        return headers, ""
    return [header for header in headers if header[0] != b"authorization"], _hash_of(sent)


def _hash_of(authorization: bytes) -> str:
    return hash_key(authorization[len(_SCHEME) :].strip().decode("latin-1"))


def authenticate(
    authorization: bytes | None, keys: Keyring, key_hash: str = "", failed: Callable[[str], object] | None = None
) -> ApiKey | None:
    """The key in an Authorization header, or the key whose hash a relaying node sent; None for an anonymous client where
    keys are optional.

    Raises Unauthenticated. A key that is sent must be valid even where none is required. `failed` is called with the reason
    when an invalid key was sent, and may raise another error.
    """
    if authorization is None and key_hash:
        return _known(key_hash, keys, failed)
    if authorization is None:
        if keys.required:
            raise Unauthenticated("this request requires an API key; send it as Authorization: Bearer <key>")
        return None
    if authorization[: len(_SCHEME)].lower() == _SCHEME:
        token = authorization[len(_SCHEME) :].strip().decode("latin-1")
        return keys.lookup(hash_key(token)) or keys.identify(token) or _known(hash_key(token), keys, failed)
    return _refuse(
        "malformed", "the Authorization header's scheme is not Bearer; send Authorization: Bearer <key>", failed
    )


def _known(key_hash: str, keys: Keyring, failed: Callable[[str], object] | None) -> ApiKey:
    key = keys.lookup(key_hash)
    if key is not None:
        return key
    if keys.expired(key_hash):
        return _refuse("expired_key", "the API key has expired; create another with `tocsin keys create`", failed)
    return _refuse(
        "unknown_key",
        "the API key is unknown, possibly because it was revoked; create another with `tocsin keys create`",
        failed,
    )


def _refuse(reason: str, message: str, failed: Callable[[str], object] | None) -> NoReturn:
    if failed is not None:
        failed(reason)
    raise Unauthenticated(message)


def require_key(key: ApiKey | None) -> None:
    """Raises Unauthenticated for a request without a key."""
    if key is None:
        raise Unauthenticated(
            "managing keys always requires an admin key; create the first one with "
            "`tocsin keys create --role admin` on the server's machine"
        )


def require_role(key: ApiKey | None, role: Role) -> None:
    """Raises Forbidden unless the key has the role in any scope."""
    if key is not None and not key.role.includes(role):
        raise Forbidden(f"this operation requires a key of role {role.value}; this key's role is {key.role.value}")


def require_operation(key: ApiKey, operation: str, role: Role) -> None:
    """Raises Forbidden if the key is limited to operations and this one, which requires the role, is not among them."""
    if not key.permits(operation, role):
        raise Forbidden(
            f"this key is limited to some operations, and {operation} is not among them; use a key whose operations have it"
        )


def require_source(key: ApiKey, address: str) -> None:
    """Raises ForeignSource if the key is limited to networks and the client's address, empty if unknown, is in none."""
    if not key.comes_from(address):
        whence = f"the address {address}" if address else "a client whose address is unknown"
        raise ForeignSource(f"this key is limited to some sources, and {whence} is not among them", key.key_id)


def require_service(key: ApiKey | None, role: Role) -> None:
    """Raises Forbidden unless the key has the role on the whole service."""
    require_role(key, role)
    if key is not None and not key.allows(role, None):
        raise Forbidden("this operation requires a key that is not limited to namespaces or tenants")


def require_grant(maker: ApiKey, key: ApiKey) -> None:
    """Raises Forbidden if the new `key` would allow more than the key that creates it."""
    reason = grant_refusal(key, maker)
    if reason is not None:
        raise Forbidden(reason)


def require_namespace(key: ApiKey | None, role: Role, namespace: str) -> None:
    """Raises Forbidden unless the key has the role on the namespace."""
    if key is not None and not key.allows(role, namespace):
        require_role(key, role)
        raise Forbidden(f"this key has no access to the namespace {namespace!r}")


def require_credentials(key: ApiKey | None, namespace: str) -> None:
    """Raises Forbidden unless the key may have service calls send credentials of the namespace."""
    if key is not None and not key.allows(Role.WRITE, namespace):
        raise Forbidden(
            f"this key may not write in the namespace {namespace!r}, whose credentials service calls name; leave out "
            f"credential, or use a key that has this namespace besides the tenant"
        )


def listed_in(key: ApiKey | None, namespace: str) -> Scope:
    """What a list of this namespace reads; of EVERY, what the key has access to. A named one has been checked."""
    if namespace != EVERY:
        return namespace
    return None if key is None or key.unlimited else key.namespaces


def listed_tenants(key: ApiKey | None, tenant_id: str) -> Tenants:
    """The same of tenants."""
    if tenant_id != EVERY:
        return tenant_id
    return None if key is None or key.unlimited else tuple(tenant.lower() for tenant in key.tenants)


def require_tenant(key: ApiKey | None, role: Role, tenant_id: str) -> None:
    """Raises Forbidden unless the key has the role for the tenant."""
    if key is not None and not key.allows_tenant(role, tenant_id):
        require_role(key, role)
        raise Forbidden("this key has no access to this tenant")


class AuthFailures:
    """Failed authentications at one node. `failed` counts each, by `unknown_key`, `expired_key`, `malformed` or
    `foreign_source`."""

    def __init__(
        self, failed: Callable[[str], None] | None = None, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._failed = failed
        self._now_s = now_s
        self._log_limit = RateLimit(_LINES_MAX, _LINES_WINDOW_S, now_s)
        #: By address: failures left, and the time of that count; the latest failure last.
        self._left: dict[str, tuple[float, float]] = {}

    def failure(self, address: str, reason: str, where: str) -> int | None:
        """Records a failure; `where` is `api` or `pages`. If it was logged, the number of log lines left out before it; else
        None. Raises TooManyFailures if the address has exceeded its limit."""
        suppressed = self.report(address, reason, where)
        source, now_s = _source(address), self._now_s()
        left = self._left_of(source, now_s)
        refused = left < 1
        self._left.pop(source, None)
        self._left[source] = (left if refused else left - 1, now_s)
        if len(self._left) > _ADDRESSES_MAX:
            del self._left[next(iter(self._left))]
        if refused:
            raise _too_many(left)
        return suppressed

    def report(self, address: str, reason: str, where: str, key_id: str | None = None) -> int | None:
        """Counts and logs a failure like `failure`, without its limit: one with a valid key is no guess."""
        if self._failed is not None:
            self._failed(reason)
        suppressed = self._log_limit.grant()
        if suppressed is not None:
            of_key = {} if key_id is None else {"key": key_id}
            _log.warning(
                "authentication failed", address=address, reason=reason, where=where, suppressed=suppressed, **of_key
            )
        return suppressed

    def check(self, address: str) -> None:
        """Raises TooManyFailures if the next failure of the address would. It is no failure itself."""
        left = self._left_of(_source(address), self._now_s())
        if left < 1:
            raise _too_many(left)

    def _left_of(self, source: str, now_s: float) -> float:
        left, since_s = self._left.get(source, (_BURST, now_s))
        return min(_BURST, left + (now_s - since_s) / _REFILL_S)


def _too_many(left: float) -> TooManyFailures:
    return TooManyFailures(
        "too many requests with an invalid key from this address; correct the key, then retry",
        retry_after_s=(1 - left) * _REFILL_S,
    )


def _source(address: str) -> str:
    """What counts as one client: an IPv4 address, or the network of an IPv6 address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False))
