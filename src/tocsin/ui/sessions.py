"""Who looks at the pages: signed-in keys, and the tokens that tell our own forms from foreign ones.

The cookie of somebody who has signed in is a random token. The store keeps its hash, which key it was made with and until
when it holds, for all nodes; nothing that is stored makes a cookie. The key is looked up for each request; deleting it ends
its sign-ins everywhere.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tocsin.http.access import Keyring
from tocsin.model.access import ApiKey, Role, hash_key
from tocsin.ports.store import SignIn
from tocsin.ui.limits import UiLimits

#: What tells a sign-in's token from the random bytes that a form of somebody without one is bound to.
SIGN_IN_PREFIX = "s."
_TOKEN = r"[A-Za-z0-9_-]{43}"
_ANONYMOUS = re.compile(rf"{_TOKEN}\Z")
_SIGNED_IN = re.compile(rf"{re.escape(SIGN_IN_PREFIX)}{_TOKEN}\Z")
#: The share of the idle time-out after which a use is written down.
_TOUCHED_AFTER = 0.05
_FORMS = b"tocsin pages: forms"


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks. Without a key: anybody, on a server that needs none. `csrf` belongs into every form."""

    key: ApiKey | None
    csrf: str

    def may(self, role: str, namespace: str | None = None) -> bool:
        """Whether the visitor has the role on the namespace, or on the whole service."""
        return self.key is None or self.key.allows(Role(role), namespace)

    def may_call(self, role: str, tenant_id: str) -> bool:
        """Whether the visitor has the role for the tenant's service calls."""
        return self.key is None or self.key.allows_tenant(Role(role), tenant_id)

    def may_call_somewhere(self, role: str) -> bool:
        """Whether the visitor has the role for any tenant."""
        if self.key is None:
            return True
        return self.key.role.includes(Role(role)) and bool(self.key.tenants or not self.key.namespaces)

    @property
    def names_tenants(self) -> bool:
        """Whether the visitor may touch some tenants only."""
        return self.key is not None and bool(self.key.tenants or self.key.namespaces)

    def may_somewhere(self, role: str) -> bool:
        """Whether the visitor has the role on any namespace."""
        if self.key is None:
            return True
        return self.key.role.includes(Role(role)) and bool(self.key.namespaces or not self.key.tenants)


class SignIns(Protocol):
    """The sign-ins that all nodes share."""

    @property
    def unknown_since_s(self) -> float | None:
        """Since when the store could not be read, once that is too long to rely on what was read; seconds since 1970."""

    def known(self, token: str) -> SignIn | None:
        """The sign-in of a token in use, from memory."""

    async def find(self, token: str) -> SignIn | None:
        """The sign-in of a token. Raises Unavailable, Overloaded."""

    async def begin(self, key: ApiKey) -> str:
        """The token of a new one."""

    def touch(self, token: str) -> None:
        """Notes a use."""

    async def end(self, token: str) -> bool:
        """Ends it, here at once. False when the other nodes will know only later."""


class Sessions:
    """The sign-ins as the pages see them; `now_s` is the wall clock."""

    def __init__(self, keys: Keyring, sign_ins: SignIns, limits: UiLimits, now_s: Callable[[], float]) -> None:
        self._keys = keys
        self._sign_ins = sign_ins
        self._limits = limits
        self._now_s = now_s

    def new_cookie(self) -> str:
        """Random bytes as text; nobody is signed in by them."""
        return secrets.token_urlsafe(32)

    def well_formed(self, cookie: str | None) -> bool:
        """Whether the cookie may be one of ours."""
        return cookie is not None and (_ANONYMOUS.match(cookie) or _SIGNED_IN.match(cookie)) is not None

    async def visitor(self, cookie: str) -> Visitor | None:
        """Who comes with this cookie; None for somebody who has to sign in first. Raises Unavailable when that can't be
        known now, Overloaded."""
        sign_in = await self._sign_ins.find(cookie) if _SIGNED_IN.match(cookie) else None
        if sign_in is not None:
            unused_s = self._now_s() - sign_in.seen_at / 1e6
            if unused_s > self._limits.session_idle_timeout_s:
                sign_in = None
            elif unused_s > _TOUCHED_AFTER * self._limits.session_idle_timeout_s:
                self._sign_ins.touch(cookie)
        return self._visitor(cookie, sign_in)

    def still(self, cookie: str) -> Visitor | None:
        """The same for an answer that lasts, which is no request: being idle does not end it."""
        return self._visitor(cookie, self._sign_ins.known(cookie) if _SIGNED_IN.match(cookie) else None)

    def stranger(self, cookie: str) -> Visitor:
        """Somebody who has not signed in, with this cookie."""
        return Visitor(None, self.csrf(cookie))

    def csrf(self, cookie: str) -> str:
        """What a form sent with this cookie has to bring. A page of another site can't read the cookie, and the cookie
        can't be made from the token."""
        return hmac.digest(cookie.encode(), _FORMS, "sha256").hex()

    def csrf_holds(self, cookie: str, token: str) -> bool:
        """Whether this is that token, as `masked` gives it."""
        return hmac.compare_digest(self.csrf(cookie).encode(), _unmasked(token).encode())

    @property
    def required(self) -> bool:
        """Whether nobody sees anything without a key."""
        return self._keys.required

    async def sign_in(self, secret: str) -> str | None:
        """The cookie of a new sign-in, if the secret is that of a key in force."""
        key = self._keys.lookup(hash_key(secret))
        return None if key is None else await self._sign_ins.begin(key)

    @property
    def unknown_since_s(self) -> float | None:
        """Since when this node could not find out who has signed out elsewhere, if that is too long; seconds since 1970. Who
        signed in before has to do it again meanwhile."""
        return self._sign_ins.unknown_since_s

    async def sign_out(self, cookie: str) -> bool:
        """Ends the sign-in, if it is one, for copies of its cookie, too: here at once. False when the other nodes can't know
        yet."""
        return not _SIGNED_IN.match(cookie) or await self._sign_ins.end(cookie)

    def _visitor(self, cookie: str, sign_in: SignIn | None) -> Visitor | None:
        key = None
        if sign_in is not None and sign_in.expires_at > self._now_s() * 1e6:
            key = self._keys.by_id(sign_in.key_id)
        if key is None and self._keys.required:
            return None
        return Visitor(key, self.csrf(cookie))


def masked(token: str) -> str:
    """A form's token in other characters each time: an answer is compressed together with text that others choose, and its
    length would tell of a token that stays the same. The mask, and the token under it."""
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
