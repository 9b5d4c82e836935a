"""What a node knows of keys and sign-outs: read from the store every few seconds, so that a request asks memory only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from tocsin.model.access import ApiKey
from tocsin.model.errors import StoreError
from tocsin.ports.store import SignOut, Store
from tocsin.ui.limits import UiLimits

_log = structlog.get_logger("tocsin.server")


class KeyRing:
    """API keys by the hash of their secret, read again every few seconds, so that a revoked key ends within that time."""

    def __init__(self, store: Store, *, required: bool) -> None:
        self.required = required
        self._store = store
        self._keys: dict[str, ApiKey] = {}

    def lookup(self, hash: str) -> ApiKey | None:
        """The key, or None."""
        return self._keys.get(hash)

    @property
    def empty(self) -> bool:
        """Whether no key exists."""
        return not self._keys

    async def refresh(self) -> None:
        """Reads the keys; raises what the store raises."""
        self._keys = {key.hash: key for key in await self._store.api_keys()}


class SignOuts:
    """Sign-ins that were ended before their time, on any node. Those of this node count at once, whatever becomes of the
    write; those of others from the next `refresh` on.

    No more are kept than `ui.sign_outs_max`. When there would be, those that expire first go, and every sign-in that would
    have expired by then is taken for ended: nobody gets one back by filling the table.
    """

    def __init__(self, store: Store, limits: UiLimits, now_s: Callable[[], float] = time.time) -> None:
        self._store = store
        self._limits = limits
        self._now_s = now_s
        #: This node's, until they have been read from the store; of these, those to be written.
        self._here: dict[str, int] = {}
        self._unwritten: set[str] = set()
        self._read: frozenset[str] = frozenset()
        #: Sign-ins that expire at or before one of these instants are ended: sign-outs of theirs may have been left out.
        self._over_here_us = self._over_us = 0
        self.unread_since_s: float | None = None

    def ended(self, name: str, expires_at_us: int) -> bool:
        """Whether the sign-in of that name, which would end by itself at that instant, was ended before."""
        return (
            name in self._read
            or name in self._here
            or expires_at_us <= self._over_us
            or expires_at_us <= self._over_here_us
        )

    async def add(self, name: str, expires_at_us: int) -> bool:
        """Ends a sign-in: on this node at once, on the others once they read it. False when the store has not said within
        `ui.sign_out_timeout` that it has it; `refresh` goes on trying."""
        self._here[name] = expires_at_us
        self._unwritten.add(name)
        if len(self._here) > self._limits.sign_outs_max:
            first = min(self._here, key=self._here.__getitem__)
            self._over_here_us = max(self._over_here_us, self._here.pop(first))
            self._unwritten.discard(first)
            if first == name:
                return False
        try:
            async with asyncio.timeout(self._limits.sign_out_timeout_s):
                await self._write(name)
        except (StoreError, TimeoutError) as error:
            _log.warning("a sign-out could not be written yet; it holds on this node only", error=str(error))
            return False
        return True

    async def refresh(self) -> None:
        """Writes what could not be written before, and reads all; raises what the store raises."""
        if self.unread_since_s is None:
            self.unread_since_s = self._now_s()
        for name in list(self._unwritten):
            await self._write(name)
        now_us, keep = round(self._now_s() * 1e6), self._limits.sign_outs_max
        rows = await self._store.sign_outs()
        latest = sorted((row.expires_at for row in rows), reverse=True)[:keep]
        self._over_us = latest[-1] if len(latest) == keep else 0
        self._read = frozenset(row.name for row in rows)
        self._here = {
            name: expires_at
            for name, expires_at in self._here.items()
            if name in self._unwritten or (name not in self._read and expires_at > now_us)
        }
        self.unread_since_s = None
        if len(rows) > keep or (latest and min(row.expires_at for row in rows) <= now_us):
            # By the store's clock: a node whose own is wrong shall not bring sign-ins back.
            await self._store.purge_sign_outs(await self._store.now(), keep)

    async def _write(self, name: str) -> None:
        if name in self._here:
            await self._store.put_sign_out(SignOut(name, self._here[name]))
        self._unwritten.discard(name)


async def keep_current(keys: KeyRing, sign_outs: SignOuts, interval_s: float) -> None:
    """Reads both again and again, for ever."""
    while True:
        await asyncio.sleep(interval_s)
        # At the same time: a read that hangs must not hide that the other one is due.
        await asyncio.gather(_read("API keys", keys.refresh), _read("sign-outs", sign_outs.refresh))


async def _read(what: str, refresh: Callable[[], Awaitable[None]]) -> None:
    try:
        await refresh()
    except StoreError as error:
        _log.warning(f"{what} could not be read; the former ones stay in force", error=str(error))
