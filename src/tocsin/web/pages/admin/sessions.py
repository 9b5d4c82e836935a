"""Sessions of the pages: principals, sign-ins, and the CSRF tokens of forms.

The cookie of a sign-in is a random token. The store keeps the token's hash, its API key and its expiry for all nodes; a
cookie can't be made from what is stored. The key is looked up for each request, so deleting a key ends its sign-ins on all
nodes.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from tocsin.model.access import IDENTITY_PREFIX, READS, ApiKey, Role, SignIn, hash_key
from tocsin.web.http.access import Keyring, require_source
from tocsin.web.http.errors import Forbidden
from tocsin.web.pages.limits import UiLimits

#: The token of a sign-in names its key, under which the store has it. A browser that is not signed in has a random cookie.
_TOKEN = r"[A-Za-z0-9_-]{43}"
_ANONYMOUS = re.compile(rf"{_TOKEN}\Z")
_SIGNED_IN = re.compile(rf"s\.(?P<key_id>[A-Za-z0-9_-]{{1,64}})\.{_TOKEN}\Z")
_IDENTITY = re.compile(rf"{IDENTITY_PREFIX}[0-9a-f]{{24}}\Z")
#: The share of the idle timeout after which a use is stored.
_TOUCHED_AFTER = 0.05
_FORMS = b"tocsin pages: forms"


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a request. `key` is None on a server that requires no key. `csrf` is the token for its forms."""

    key: ApiKey | None
    csrf: str

    def may(self, role: str, namespace: str | None = None) -> bool:
        """Whether the principal has the role on the namespace; without one, on the whole service."""
        return self.key is None or self.key.allows(Role(role), namespace)

    def may_call(self, role: str, tenant_id: str) -> bool:
        """Whether the principal has the role for the tenant's service calls."""
        return self.key is None or self.key.allows_tenant(Role(role), tenant_id)

    def may_call_somewhere(self, role: str) -> bool:
        """Whether the principal has the role for any tenant."""
        if self.key is None:
            return True
        return self.key.role.includes(Role(role)) and bool(self.key.tenants or not self.key.namespaces)

    @property
    def is_limited(self) -> bool:
        """Whether the principal is limited to some tenants or namespaces."""
        return self.key is not None and bool(self.key.tenants or self.key.namespaces)

    def may_somewhere(self, role: str) -> bool:
        """Whether the principal has the role on any namespace."""
        if self.key is None:
            return True
        return self.key.role.includes(Role(role)) and bool(self.key.namespaces or not self.key.tenants)


class SignIns(Protocol):
    """The sign-ins, shared by all nodes."""

    def known(self, token: str) -> SignIn | None:
        """The sign-in of a token, from memory only."""

    async def find(self, token: str) -> SignIn | None:
        """The sign-in of a token. Raises Unavailable."""

    async def begin(self, key: ApiKey, groups: Sequence[str] = ()) -> str:
        """Starts a sign-in, with a key or of somebody in these groups of the identity provider. Returns its token. Raises
        Unavailable."""

    async def touch(self, token: str) -> None:
        """Records a use."""

    async def end(self, token: str) -> None:
        """Ends a sign-in, on this node at once. Raises Unavailable."""


class Sessions:
    """Resolves cookies to principals; `now_s` is the wall clock."""

    def __init__(self, keys: Keyring, sign_ins: SignIns, limits: UiLimits, now_s: Callable[[], float]) -> None:
        self._keys = keys
        self._sign_ins = sign_ins
        self._limits = limits
        self._now_s = now_s

    def new_cookie(self) -> str:
        """A random cookie without a sign-in."""
        return secrets.token_urlsafe(32)

    def well_formed(self, cookie: str | None) -> bool:
        """Whether the cookie has the format of this server's cookies."""
        return cookie is not None and (_ANONYMOUS.match(cookie) or _SIGNED_IN.match(cookie)) is not None

    async def principal(self, cookie: str, *, used: bool = True) -> Principal | None:
        """The principal of a cookie; None if a sign-in is required. `used`: the request counts as a use of the sign-in, after
        which it may be idle for as long again. Raises Unavailable if the store can't be read."""
        sign_in = await self._sign_ins.find(cookie) if self._names_key(cookie) else None
        if sign_in is not None:
            unused_s = self._now_s() - sign_in.seen_at / 1e6
            if unused_s > self._limits.session_idle_timeout_s:
                sign_in = None
            elif used and unused_s > _TOUCHED_AFTER * self._limits.session_idle_timeout_s:
                await self._sign_ins.touch(cookie)
        return self._principal(cookie, sign_in)

    def current(self, cookie: str) -> Principal | None:
        """The principal of a cookie now, for a response that stays open. Reads memory only; an idle timeout does not
        apply."""
        return self._principal(cookie, self._sign_ins.known(cookie) if _SIGNED_IN.match(cookie) else None)

    def anonymous(self, cookie: str) -> Principal:
        """A principal that is not signed in."""
        return Principal(None, self.csrf(cookie))

    def csrf(self, cookie: str) -> str:
        """The token that a form sent with this cookie must contain. Another site can't read the cookie, and the cookie can't
        be derived from the token."""
        return hmac.digest(cookie.encode(), _FORMS, "sha256").hex()

    def csrf_holds(self, cookie: str, token: str) -> bool:
        """Whether a token masked by `masked` is that of the cookie."""
        return hmac.compare_digest(self.csrf(cookie).encode(), _unmasked(token).encode())

    @property
    def required(self) -> bool:
        """Whether the pages require an API key."""
        return self._keys.required

    async def sign_in(self, secret: str, address: str) -> str | None:
        """The cookie of a new sign-in; None if the secret is not that of a valid key. Raises Forbidden if the key does not
        count from the client's address or may use no pages; Unavailable."""
        key = self._keys.lookup(hash_key(secret))
        if key is None:
            return None
        require_source(key, address)
        if key.operations and READS not in key.operations:
            raise Forbidden(
                "this key is limited to operations of the API; the pages need one without such a limit, or with read among "
                "its operations, by which they show everything and change nothing"
            )
        self._keys.used(key)
        return await self._sign_ins.begin(key)

    async def sign_in_identity(self, identity: ApiKey, groups: Sequence[str]) -> str:
        """The cookie of a new sign-in of somebody whom the identity provider knows. Raises Unavailable."""
        return await self._sign_ins.begin(identity, groups)

    async def sign_out(self, cookie: str) -> None:
        """Ends the cookie's sign-in, if it has one, for copies of the cookie too: on this node at once. Raises
        Unavailable."""
        if _SIGNED_IN.match(cookie):
            await self._sign_ins.end(cookie)

    def _names_key(self, cookie: str) -> bool:
        """Whether the cookie may be that of a sign-in: an invented one with the id of no key costs the store nothing."""
        if not _SIGNED_IN.match(cookie):
            return False
        key_id = key_id_of(cookie)
        return (self._keys.identifies and _IDENTITY.match(key_id) is not None) or self._keys.by_id(key_id) is not None

    def _principal(self, cookie: str, sign_in: SignIn | None) -> Principal | None:
        key = None
        if sign_in is not None and sign_in.expires_at > self._now_s() * 1e6:
            key = self._keys.permitted(sign_in) if sign_in.groups else self._keys.by_id(sign_in.key_id)
        if key is None and self._keys.required:
            return None
        if key is not None:
            self._keys.used(key)
        if key is not None and key.operations:
            # What a page does has no name among the operations.
            key = msgspec.structs.replace(key, role=Role.READ)
        return Principal(key, self.csrf(cookie))


def new_token(key_id: str) -> str:
    """The random token of a new sign-in with that key."""
    return f"s.{key_id}.{secrets.token_urlsafe(32)}"


def key_id_of(token: str) -> str:
    """The key that a sign-in's token names."""
    return token.split(".")[1]


def masked(token: str) -> str:
    """The CSRF token, masked differently in each response: the length of a compressed response would leak a constant token.
    Returns the mask followed by the masked token."""
    mask = secrets.token_bytes(len(token) // 2)
    return (mask + _under(mask, bytes.fromhex(token))).hex()


def _unmasked(text: str) -> str:
    try:
        both = bytes.fromhex(text)
    except ValueError:
        return ""
    half = len(both) // 2
    return _under(both[:half], both[half:]).hex() if half * 2 == len(both) else ""


def _under(mask: bytes, token: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(mask, token, strict=True))
