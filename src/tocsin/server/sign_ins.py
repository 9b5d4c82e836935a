"""A node's view of sign-ins to the web pages: records of the store, of which those in use are kept in memory, so that a
request only reads memory."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec
import structlog

from tocsin.administration import (
    SIGN_INS,
    add_sign_in,
    delete_sign_in,
    purge_sign_ins,
    sign_in,
    sign_ins_of,
    touch_sign_in,
    unobserved,
)
from tocsin.model.access import ApiKey, SignIn
from tocsin.model.errors import StoreError, Unavailable
from tocsin.ports.observer import Observer
from tocsin.ports.store import Store
from tocsin.web.pages.admin.sessions import key_id_of, new_token
from tocsin.web.pages.limits import UiLimits

_log = structlog.get_logger("tocsin.server")

#: A sign-in that was not used for this long is not refreshed until it is used again.
_UNUSED_S_MAX = 600.0
#: Tokens that are looked for in the store at once: anybody can invent some.
_LOOKED_FOR_MAX = 8
#: How many sign-ins one refresh examines for expiry.
_PURGE_ROWS = 100


def token_hash(token: str) -> str:
    """The hash of a token that the store keeps: 256 random bits need no salt and no stretching."""
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(slots=True)
class _Cached:
    sign_in: SignIn
    used_s: float


class SignIns:
    """Sign-ins that are valid on every node. One that begins or ends on this node does so immediately, one that ends
    elsewhere within `keys_refresh`. Methods that need the store raise Unavailable if it does not respond in time."""

    def __init__(
        self,
        store: Store,
        limits: UiLimits,
        observe: Observer = unobserved,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._limits = limits
        self._observe = observe
        self._now_s = now_s
        #: By token, the most recently used last.
        self._cached: dict[str, _Cached] = {}
        self._ends = 0
        self._looking = asyncio.Semaphore(_LOOKED_FOR_MAX)
        self._version: int | None = None
        self._purged_to = ""
        self._unread_since_s: float | None = None

    def known(self, token: str) -> SignIn | None:
        """The sign-in of a cookie's token, from memory. None: it has ended, was not used on this node recently, or the store
        could not be read for `ui.session_stale_max`, so that it may have ended elsewhere."""
        cached = self._cached.pop(token, None)
        if cached is None:
            return None
        self._cached[token] = cached
        cached.used_s = self._now_s()
        since = self._unread_since_s
        stale = since is not None and self._now_s() - since > self._limits.session_stale_max_s
        return None if stale else cached.sign_in

    async def find(self, token: str) -> SignIn | None:
        """The sign-in of a cookie's token, from memory or the store."""
        known = self.known(token)
        if known is not None:
            return known
        ends = self._ends
        async with self._in_time("your sign-in can't be checked; try again"), self._looking:
            found = await sign_in(self._store, key_id_of(token), token_hash(token), self._observe)
        # What was read while a sign-in ended here may be that one.
        if found is not None and ends == self._ends:
            self._keep(token, found)
        return found

    async def begin(self, key: ApiKey, groups: Sequence[str] = ()) -> str:
        """The token of a new sign-in, with a key or of somebody in these groups of the identity provider."""
        now_s, token = self._now_s(), new_token(key.key_id)
        expires_at = round((now_s + self._limits.session_lifetime_max_s) * 1e6)
        if key.expires_at is not None:
            expires_at = min(expires_at, key.expires_at)
        fresh = SignIn(
            key.key_id,
            token_hash(token),
            round(now_s * 1e6),
            expires_at,
            name=key.note if groups else "",
            groups=tuple(groups),
        )
        async with self._in_time("you can't be signed in; try again"):
            # By the store's clock: a node with a wrong clock must not end other sign-ins.
            now_us = await self._store.now()
            await add_sign_in(self._store, fresh, now_us, self._limits.sessions_per_key_max, self._observe)
        self._keep(token, fresh)
        return token

    async def touch(self, token: str) -> None:
        """Records a use. If the store does not respond, only this node knows of it."""
        cached = self._cached.get(token)
        if cached is None:
            return
        cached.sign_in = msgspec.structs.replace(cached.sign_in, seen_at=round(self._now_s() * 1e6))
        try:
            async with self._in_time("the use of a sign-in is not stored"):
                # If another node was first, the next refresh reads its version.
                if await touch_sign_in(self._store, cached.sign_in):
                    cached.sign_in = msgspec.structs.replace(cached.sign_in, version=cached.sign_in.version + 1)
        except Unavailable as error:
            _log.warning("sign-in use not stored", error=str(error))

    async def end(self, token: str) -> None:
        """Ends a sign-in, on this node immediately."""
        self._ends += 1
        self._cached.pop(token, None)
        async with self._in_time("you can't be signed out; try again"):
            await delete_sign_in(self._store, key_id_of(token), token_hash(token))

    async def refresh(self) -> None:
        """Reads the sign-ins in use if there were changes, and removes some that have expired; raises the store's errors."""
        now_s = self._now_s()
        for token in [each for each, cached in self._cached.items() if now_s - cached.used_s > _UNUSED_S_MAX]:
            del self._cached[token]
        if self._unread_since_s is None:
            self._unread_since_s = now_s
        (version,) = await self._store.records_versions(SIGN_INS)
        if version != self._version:
            by_key: dict[str, list[str]] = {}
            for token in self._cached:
                by_key.setdefault(key_id_of(token), []).append(token)
            for key_id, tokens in by_key.items():
                self._update(tokens, await sign_ins_of(self._store, key_id, self._observe))
            self._version = version
        self._unread_since_s = None
        now_us = await self._store.now()
        self._purged_to = await purge_sign_ins(self._store, now_us, self._purged_to, _PURGE_ROWS)

    def _update(self, tokens: Sequence[str], stored: Mapping[str, SignIn]) -> None:
        """Applies what was read of one key to those of its tokens that were in memory before."""
        for token in tokens:
            found, cached = stored.get(token_hash(token)), self._cached.get(token)
            if cached is None:
                continue
            if found is None:
                del self._cached[token]
            elif found.seen_at >= cached.sign_in.seen_at:
                cached.sign_in = found

    def _keep(self, token: str, found: SignIn) -> None:
        self._cached[token] = _Cached(found, self._now_s())
        while len(self._cached) > self._limits.sessions_cached_max:
            del self._cached[next(iter(self._cached))]

    @asynccontextmanager
    async def _in_time(self, effect: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._limits.session_store_timeout_s):
                yield
        except (StoreError, TimeoutError) as error:
            _log.warning("sign-in store call failed", error=str(error) or "timeout")
            raise Unavailable(f"the store does not respond, so {effect}") from error
