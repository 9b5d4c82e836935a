"""Who looks at the pages: signed-in keys, and the tokens that tell our own forms from foreign ones.

The cookie carries the sign-in itself, under a signature that every node which knows the secret can make and check: random
bytes, the hash of the API key, when it began and when it was used last. So any node may answer any request. The key is
looked up each time; a revoked one ends its sessions everywhere. So does a sign-out, of which all nodes read in their store.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tocsin.contract.access import KeyRing
from tocsin.model.access import ApiKey, Role, hash_key
from tocsin.ui.limits import UiLimits

_NAME = r"[A-Za-z0-9_-]{43}"
#: Of somebody who has not signed in: random bytes, to which forms are bound.
_ANONYMOUS = re.compile(rf"{_NAME}\Z")
#: Name, key's hash, begin, last use (seconds), signature.
_SIGNED_IN = re.compile(rf"({_NAME})\.([0-9a-f]{{64}})\.([0-9]{{1,12}})\.([0-9]{{1,12}})\.([0-9a-f]{{64}})\Z")
#: The share of the idle time-out after which a cookie is written anew, with a later last use.
_RENEWED_AFTER = 0.05


class _Session(NamedTuple):
    name: str
    key_hash: str
    begun_s: int
    seen_s: int


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


class SignOuts(Protocol):
    """Sign-ins that were ended before their time, on whichever node."""

    @property
    def unread_since_s(self) -> float | None:
        """Since when (wall clock, seconds since 1970) this node has tried in vain to read what others have ended; None when
        the last try succeeded."""

    def ended(self, name: str, expires_at_us: int) -> bool:
        """Whether the sign-in of that name, which would end by itself at that instant, was ended before."""

    async def add(self, name: str, expires_at_us: int) -> bool:
        """Ends a sign-in, here at once. False when the other nodes will hear of it only later."""


class Sessions:
    """The sign-ins as one node sees them. `secret` is what all nodes behind one address share; `now_s` is the wall clock,
    which they share, too."""

    def __init__(
        self, keys: KeyRing, sign_outs: SignOuts, limits: UiLimits, now_s: Callable[[], float], secret: bytes
    ) -> None:
        self._keys = keys
        self._sign_outs = sign_outs
        self._limits = limits
        self._now_s = now_s
        self._signing_key = hmac.digest(secret, b"tocsin pages: sign-ins", "sha256")
        self._form_key = hmac.digest(secret, b"tocsin pages: forms", "sha256")

    def new_cookie(self) -> str:
        """Random bytes as text; nobody is signed in by them yet."""
        return secrets.token_urlsafe(32)

    def well_formed(self, cookie: str | None) -> bool:
        """Whether the cookie is one of ours: any random bytes, or a sign-in that this secret has signed."""
        return cookie is not None and (_ANONYMOUS.match(cookie) is not None or self._read(cookie) is not None)

    def visitor(self, cookie: str) -> Visitor | None:
        """Who comes with this cookie; None for somebody who has to sign in first."""
        session = self._read(cookie)
        idle = session is not None and self._now_s() - session.seen_s > self._limits.session_idle_timeout_s
        return self._visitor(cookie, None if idle else session)

    def still(self, cookie: str) -> Visitor | None:
        """The same for an answer that lasts, which is no request: being idle does not end it."""
        return self._visitor(cookie, self._read(cookie))

    def renewed(self, cookie: str) -> str | None:
        """The cookie with a later last use, when it is time to write one; only for a visitor's."""
        session = self._read(cookie)
        now = self._now_s()
        if session is None or now - session.seen_s < _RENEWED_AFTER * self._limits.session_idle_timeout_s:
            return None
        return self._write(session._replace(seen_s=int(now)))

    def csrf(self, cookie: str) -> str:
        """What a form sent with this cookie has to bring: the same for all cookies of one sign-in. It can't be made from
        the cookie without our secret."""
        return hmac.digest(self._form_key, cookie.partition(".")[0].encode(), "sha256").hex()

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
        now = int(self._now_s())
        return self._write(_Session(self.new_cookie(), key_hash, now, now))

    @property
    def unknown_since_s(self) -> float | None:
        """Since when this node could not find out who has signed out elsewhere, if that is too long; seconds since 1970. Who
        signed in before has to do it again meanwhile."""
        since = self._sign_outs.unread_since_s
        return None if since is None or self._now_s() - since <= self._limits.sign_outs_unread_max_s else since

    async def sign_out(self, cookie: str) -> bool:
        """Ends the session, if it is one, for copies of its cookie, too: here at once. False when the other nodes can't hear
        of it yet."""
        session = self._read(cookie)
        return session is None or await self._sign_outs.add(session.name, self._expires_at_us(session))

    def _expires_at_us(self, session: _Session) -> int:
        return round((session.begun_s + self._limits.session_lifetime_max_s) * 1e6)

    def _visitor(self, cookie: str, session: _Session | None) -> Visitor | None:
        key = None
        if session is not None and self._now_s() - session.begun_s <= self._limits.session_lifetime_max_s:
            since = self.unknown_since_s
            if since is None or session.begun_s > since:
                key = self._keys.lookup(session.key_hash)
        if key is None and self._keys.required:
            return None
        return Visitor(key, self.csrf(cookie))

    def _read(self, cookie: str) -> _Session | None:
        match = _SIGNED_IN.match(cookie)
        if match is None or not hmac.compare_digest(self._signature(cookie.rpartition(".")[0]), match[5]):
            return None
        session = _Session(match[1], match[2], int(match[3]), int(match[4]))
        return None if self._sign_outs.ended(session.name, self._expires_at_us(session)) else session

    def _write(self, session: _Session) -> str:
        text = ".".join(map(str, session))
        return f"{text}.{self._signature(text)}"

    def _signature(self, text: str) -> str:
        return hmac.digest(self._signing_key, text.encode(), "sha256").hex()
