"""What a node knows of API keys: read from the store every few seconds, so that a request asks memory only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from tocsin.model.access import ApiKey
from tocsin.model.errors import StoreError
from tocsin.model.instants import format_instant
from tocsin.ports.store import Store
from tocsin.server.audit import Audit
from tocsin.server.sign_ins import SignIns

_log = structlog.get_logger("tocsin.server")

#: How often the log repeats that a key expires soon.
_NOTICE_INTERVAL_S = 86_400.0


class Keyring:
    """API keys by the hash of their secret, read again every few seconds, so that a deleted key ends within that time; one
    that expires ends on the instant.

    Keys are asked for when the server is `published`, which is when others than this machine's own programs can reach it,
    and otherwise from the first key on, until the process ends: deleting the last one opens nothing. `insecure` never asks.
    """

    def __init__(
        self,
        store: Store,
        *,
        published: bool,
        insecure: bool = False,
        expiry_notice_s: float = 0.0,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._published = published
        self.insecure = insecure
        self._expiry_notice_s = expiry_notice_s
        self._now_s = now_s
        self._keys: dict[str, ApiKey] = {}
        self._by_id: dict[str, ApiKey] = {}
        self._any_seen = False
        self._noticed_s: dict[str, float] = {}
        # Readings in the order in which they began, and the latest whose answer is known here.
        self._begun = 0
        self._known = 0
        #: Called when keys begin to be asked for.
        self.on_required: Callable[[], None] | None = None

    @property
    def required(self) -> bool:
        """Whether a request without a key is refused."""
        return not self.insecure and (self._published or self._any_seen)

    def lookup(self, hash: str) -> ApiKey | None:
        """The key in force of that hash, or None."""
        return self._in_force(self._keys.get(hash))

    def by_id(self, key_id: str) -> ApiKey | None:
        """The key in force of that id, or None."""
        return self._in_force(self._by_id.get(key_id))

    def expired(self, hash: str) -> bool:
        """Whether the key of that hash is known, and its time is over."""
        return hash in self._keys and self.lookup(hash) is None

    @property
    def empty(self) -> bool:
        """Whether no key exists."""
        return not self._keys

    @property
    def expiring(self) -> int:
        """How many keys expire within the notice, or have expired and not been deleted."""
        return len(self._expiring())

    async def refresh(self) -> None:
        """Reads the keys; raises what the store raises. What a later reading has learned meanwhile stays."""
        self._begun += 1
        number = self._begun
        keys = await self._store.api_keys()
        if number < self._known:
            return
        self._known = number
        self._keys = {key.hash: key for key in keys}
        self._by_id = {key.key_id: key for key in keys}
        was_required = self.required
        self._any_seen = self._any_seen or bool(keys)
        if self.required and not was_required and self.on_required is not None:
            self.on_required()
        self._notice()

    async def changed(self) -> None:
        """This node has changed the keys, and goes by that from now on; where they can't be read now, within the interval, as
        all other nodes."""
        await _tried("API keys could not be read; the former ones stay in force", self.refresh)

    def _in_force(self, key: ApiKey | None) -> ApiKey | None:
        if key is None or key.expires_at is None or not key.expired(round(self._now_s() * 1e6)):
            return key
        return None

    def _expiring(self) -> list[ApiKey]:
        soon_us = round((self._now_s() + self._expiry_notice_s) * 1e6)
        return [key for key in self._keys.values() if key.expired(soon_us)]

    def _notice(self) -> None:
        now_s = self._now_s()
        expiring = {key.key_id: key for key in self._expiring()}
        self._noticed_s = {key_id: at for key_id, at in self._noticed_s.items() if key_id in expiring}
        for key_id, key in expiring.items():
            if now_s - self._noticed_s.get(key_id, -_NOTICE_INTERVAL_S) < _NOTICE_INTERVAL_S:
                continue
            self._noticed_s[key_id] = now_s
            assert key.expires_at is not None
            what = "API key has expired" if key.expired(round(now_s * 1e6)) else "API key expires soon"
            _log.warning(what, key=key_id, note=key.note, expires_at=format_instant(key.expires_at))


async def keep_current(keys: Keyring, sign_ins: SignIns, audit: Audit, interval_s: float) -> None:
    """Reads keys and sign-ins again and again, for ever, and writes what the audit trail lacks."""
    while True:
        await asyncio.sleep(interval_s)
        # At the same time: a read that hangs must not hide that the other one is due.
        await asyncio.gather(
            _tried("API keys could not be read; the former ones stay in force", keys.refresh),
            _tried("sign-ins could not be read or written", sign_ins.refresh),
            _tried("audit trail could not be written", audit.refresh),
        )


async def _tried(failure: str, refresh: Callable[[], Awaitable[None]]) -> None:
    try:
        await refresh()
    except StoreError as error:
        _log.warning(failure, error=str(error))
