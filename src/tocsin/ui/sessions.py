"""Who looks at the pages: signed-in keys, and the tokens that tell our own forms from foreign ones.

The cookie holds 32 random bytes and nothing else. Whoever has signed in has an entry here, by the hash of those bytes;
it names the key's hash, so that a revoked key ends its sessions. Sign-ins end with the process.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from tocsin.contract.access import KeyRing
from tocsin.model.access import ApiKey, Role, hash_key
from tocsin.ui.limits import UiLimits

_COOKIE = re.compile(r"[A-Za-z0-9_-]{43}\Z")


@dataclass(slots=True)
class _Session:
    key_hash: str
    begun_s: float
    seen_s: float


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


class Sessions:
    """The sign-ins of one process. `now_s` is a clock that is never set back."""

    def __init__(self, keys: KeyRing, limits: UiLimits, now_s: Callable[[], float]) -> None:
        self._keys = keys
        self._limits = limits
        self._now_s = now_s
        self._secret = secrets.token_bytes(32)
        self._sessions: dict[str, _Session] = {}

    def new_cookie(self) -> str:
        """Random bytes as text; nobody is signed in by them yet."""
        return secrets.token_urlsafe(32)

    def well_formed(self, cookie: str | None) -> bool:
        """Whether the cookie can be one of ours."""
        return cookie is not None and _COOKIE.match(cookie) is not None

    def visitor(self, cookie: str) -> Visitor | None:
        """Who comes with this cookie; None for somebody who has to sign in first."""
        key = self._key(cookie)
        if key is None and self._keys.required:
            return None
        return Visitor(key, self.csrf(cookie))

    def csrf(self, cookie: str) -> str:
        """What a form sent with this cookie has to bring. It can't be made from the cookie without our secret."""
        return hmac.new(self._secret, cookie.encode(), hashlib.sha256).hexdigest()

    def csrf_holds(self, cookie: str, token: str) -> bool:
        """Whether this is that token."""
        return hmac.compare_digest(self.csrf(cookie).encode(), token.encode())

    @property
    def required(self) -> bool:
        """Whether nobody sees anything without a key."""
        return self._keys.required

    def sign_in(self, secret: str) -> str | None:
        """The cookie of a new session, if the secret is that of a known key."""
        key_hash = hash_key(secret)
        if self._keys.lookup(key_hash) is None:
            return None
        cookie, now = self.new_cookie(), self._now_s()
        if len(self._sessions) >= self._limits.sessions_max:
            del self._sessions[min(self._sessions, key=lambda name: self._sessions[name].seen_s)]
        self._sessions[_name(cookie)] = _Session(key_hash, now, now)
        return cookie

    def sign_out(self, cookie: str) -> None:
        """Ends the session, if it is one."""
        self._sessions.pop(_name(cookie), None)

    def _key(self, cookie: str) -> ApiKey | None:
        name = _name(cookie)
        session = self._sessions.get(name)
        if session is None:
            return None
        now, limits = self._now_s(), self._limits
        key = self._keys.lookup(session.key_hash)
        idle, age = now - session.seen_s, now - session.begun_s
        if key is None or idle > limits.session_idle_timeout_s or age > limits.session_lifetime_max_s:
            del self._sessions[name]
            return None
        session.seen_s = now
        return key


def _name(cookie: str) -> str:
    """Under what a session is kept: whoever reads this process's memory dump finds no cookie to use."""
    return hashlib.sha256(cookie.encode()).hexdigest()
