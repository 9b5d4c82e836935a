"""A node's view of sign-ins to the web pages: rows of the store, of which those in use are cached in memory and refreshed
every few seconds, so that a request only reads memory."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog

from tocsin.model.access import ApiKey
from tocsin.model.errors import Overloaded, StoreError, Unavailable
from tocsin.ports.store import SignIn, Store
from tocsin.tasks import end_tasks
from tocsin.web.pages.admin.sessions import SIGN_IN_PREFIX
from tocsin.web.pages.limits import UiLimits

_log = structlog.get_logger("tocsin.server")

#: Tokens looked up by one statement, and tokens that may wait for the next: invented cookies cost one statement at a time.
_LOOKUP_MAX = 1_000
#: A sign-in that was not used for this long is not refreshed until it is used again.
_UNUSED_S_MAX = 600.0
#: Sign-ins that could not be stored, and ended tokens; beyond the limit the oldest are dropped.
_LOCAL_MAX = 1_000
_ENDED_MAX = 10_000


def token_hash(token: str) -> str:
    """The hash of a token that the store keeps: 256 random bits need no salt and no stretching."""
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(slots=True)
class _Cached:
    sign_in: SignIn
    asked_s: float


class SignIns:
    """Sign-ins that are valid on every node. One that begins or ends on this node does so immediately, one that ends
    elsewhere within `keys_refresh`."""

    def __init__(self, store: Store, limits: UiLimits, now_s: Callable[[], float] = time.time) -> None:
        self._store = store
        self._limits = limits
        self._now_s = now_s
        #: By token hash, the most recently used last.
        self._cached: dict[str, _Cached] = {}
        #: Ended sign-ins by token hash; whether the store has deleted them.
        self._ended: dict[str, bool] = {}
        self._local: dict[str, SignIn] = {}
        self._touched: dict[str, int] = {}
        self._requested: dict[str, asyncio.Future[SignIn | Unavailable | None]] = {}
        self._lookup: asyncio.Task[None] | None = None
        self._unread_since_s: float | None = None

    @property
    def unknown_since_s(self) -> float | None:
        """Since when (wall clock, seconds since 1970) the store could not be read, once that exceeds
        `ui.session_stale_max`: from then on stored sign-ins are not accepted, since they may have ended elsewhere."""
        since = self._unread_since_s
        return None if since is None or self._now_s() - since <= self._limits.session_stale_max_s else since

    def known(self, token: str) -> SignIn | None:
        """The sign-in of a cookie's token, from memory. None: it has ended, or was not used on this node recently."""
        hash = token_hash(token)
        local = self._local.get(hash)
        if local is not None:
            return local
        cached = self._cached.pop(hash, None)
        if cached is None:
            return None
        self._cached[hash] = cached
        cached.asked_s = self._now_s()
        return None if self.unknown_since_s is not None else cached.sign_in

    async def find(self, token: str) -> SignIn | None:
        """The sign-in of a cookie's token, from memory or the store; concurrent lookups share a statement. Raises Unavailable
        if the store doesn't respond, Overloaded."""
        hash = token_hash(token)
        if hash in self._ended:
            return None
        known = self.known(token)
        if known is not None:
            return known
        future = self._requested.get(hash)
        if future is None:
            if len(self._requested) >= _LOOKUP_MAX:
                raise Overloaded("too many sign-ins are being looked up; try again")
            future = self._requested[hash] = asyncio.get_running_loop().create_future()
        if self._lookup is None:
            self._lookup = asyncio.create_task(self._look_up())
        # A caller that is cancelled must not cancel the future, which others may await.
        found = await asyncio.shield(future)
        if isinstance(found, Unavailable):
            raise found
        return None if hash in self._ended else found

    async def begin(self, key: ApiKey) -> str:
        """The token of a new sign-in. If it can't be stored in time, it is valid on this node only."""
        now_s = self._now_s()
        token = _new_token()
        expires_at = round((now_s + self._limits.session_lifetime_max_s) * 1e6)
        if key.expires_at is not None:
            expires_at = min(expires_at, key.expires_at)
        sign_in = SignIn(token_hash(token), key.key_id, round(now_s * 1e6), expires_at)
        try:
            async with asyncio.timeout(self._limits.session_store_timeout_s):
                # By the store's clock: a node with a wrong clock must not end other sign-ins.
                await self._store.put_sign_in(sign_in, await self._store.now(), self._limits.sessions_per_key_max)
        except (StoreError, TimeoutError) as error:
            _log.warning("sign-in not stored", key=key.key_id, effect="valid on this node only", error=str(error))
            # A new token: whether the first one was stored is unknown, and no client has it.
            token = _new_token()
            sign_in = sign_in._replace(token_hash=token_hash(token))
            self._local[sign_in.token_hash] = sign_in
            _keep(self._local, _LOCAL_MAX)
            return token
        self._keep_cached([sign_in])
        return token

    def touch(self, token: str) -> None:
        """Records a use, which the next `refresh` stores."""
        hash, now_us = token_hash(token), round(self._now_s() * 1e6)
        cached = self._cached.get(hash)
        if cached is not None:
            cached.sign_in = cached.sign_in._replace(seen_at=now_us)
            self._touched[hash] = now_us
        elif hash in self._local:
            self._local[hash] = self._local[hash]._replace(seen_at=now_us)

    async def end(self, token: str) -> bool:
        """Ends a sign-in, on this node immediately. False if the store has not confirmed its deletion within
        `session_store_timeout_s`: other nodes may accept it until `refresh`, which retries, succeeds."""
        hash = token_hash(token)
        self._cached.pop(hash, None)
        self._touched.pop(hash, None)
        if self._local.pop(hash, None) is not None:
            return True
        self._ended[hash] = False
        try:
            async with asyncio.timeout(self._limits.session_store_timeout_s):
                await self._store.delete_sign_in(hash)
        except (StoreError, TimeoutError) as error:
            _log.warning("sign-out not stored", effect="valid on this node only; retried", error=str(error))
            return False
        self._ended[hash] = True
        self._forget_ended()
        return True

    async def refresh(self) -> None:
        """Reads the sign-ins in use, then stores pending changes; raises the store's errors."""
        now_s = self._now_s()
        for hash in [each for each, cached in self._cached.items() if now_s - cached.asked_s > _UNUSED_S_MAX]:
            del self._cached[hash]
        if self._unread_since_s is None:
            self._unread_since_s = now_s
        hashes = list(self._cached)
        for begin in range(0, len(hashes), _LOOKUP_MAX):
            await self._read_again(hashes[begin : begin + _LOOKUP_MAX])
        self._unread_since_s = None
        for hash in [each for each, written in self._ended.items() if not written]:
            await self._store.delete_sign_in(hash)
            self._ended[hash] = True
        self._forget_ended()
        for hash, seen_at in list(self._touched.items()):
            await self._store.touch_sign_in(hash, seen_at)
            if self._touched.get(hash) == seen_at:
                del self._touched[hash]

    async def close(self) -> None:
        """Cancels the lookup in progress."""
        if self._lookup is not None:
            await end_tasks(self._lookup)

    async def _read_again(self, hashes: list[str]) -> None:
        found = {each.token_hash: each for each in await self._store.sign_ins(hashes)}
        for hash in hashes:
            cached = self._cached.get(hash)
            if cached is None:
                continue
            if hash not in found:
                del self._cached[hash]
                self._touched.pop(hash, None)
            elif found[hash].seen_at > cached.sign_in.seen_at:
                cached.sign_in = found[hash]

    async def _look_up(self) -> None:
        """Looks up all requested tokens, until none is left."""
        try:
            while self._requested:
                wanted, self._requested = self._requested, {}
                await self._resolve(wanted)
        finally:
            self._lookup = None

    async def _resolve(self, wanted: dict[str, asyncio.Future[SignIn | Unavailable | None]]) -> None:
        found: dict[str, SignIn] = {}
        failure: Unavailable | None = Unavailable("the server is stopping")
        try:
            async with asyncio.timeout(self._limits.session_store_timeout_s):
                rows = await self._store.sign_ins(list(wanted))
            found = {each.token_hash: each for each in rows if each.token_hash not in self._ended}
            failure = None
            self._keep_cached(found.values())
        except (StoreError, TimeoutError) as error:
            _log.warning("sign-in lookup failed", error=str(error))
            failure = Unavailable(
                "the store does not respond, so your sign-in can't be checked; try again, or sign in again at /login"
            )
        finally:
            for hash, future in wanted.items():
                future.set_result(found.get(hash) if failure is None else failure)

    def _keep_cached(self, found: Iterable[SignIn]) -> None:
        now_s = self._now_s()
        for sign_in in found:
            self._cached[sign_in.token_hash] = _Cached(sign_in, now_s)
        for hash in _keep(self._cached, self._limits.sessions_cached_max):
            self._touched.pop(hash, None)

    def _forget_ended(self) -> None:
        over = len(self._ended) - _ENDED_MAX
        if over > 0:
            for hash in [each for each, written in self._ended.items() if written][:over]:
                del self._ended[hash]


def _new_token() -> str:
    return SIGN_IN_PREFIX + secrets.token_urlsafe(32)


def _keep(table: dict[str, object] | dict[str, SignIn] | dict[str, _Cached], most: int) -> list[str]:
    """Removes the oldest entries beyond `most`, and returns their keys."""
    gone = list(table)[: max(0, len(table) - most)]
    for each in gone:
        del table[each]
    return gone
