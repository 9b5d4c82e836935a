"""Who may do what on a node: its copy of the API keys, read from the store every few seconds, so that a request only reads
memory, and what the API and the pages need besides it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from tocsin.administration import API_KEYS, api_keys, put_audit, put_key_use, unobserved
from tocsin.keys import ApiKeys, admin_key
from tocsin.model.access import IDENTITY_PREFIX, ApiKey, SignIn
from tocsin.model.audit import AuditAction, AuditEntry, AuditSource, Detail
from tocsin.model.errors import ConfigError, StoreError
from tocsin.model.instants import format_instant
from tocsin.ports.audit import AuditExport
from tocsin.ports.observer import Observer
from tocsin.ports.records import Records
from tocsin.ports.store import Store
from tocsin.server.audit import Audit, new_entry_id
from tocsin.server.first_key import touched_by_first_key
from tocsin.server.observers import Observers
from tocsin.server.peers import loopback
from tocsin.server.sign_ins import SignIns
from tocsin.settings import Settings
from tocsin.settings.sources import read_secret
from tocsin.sso.identity import Identity
from tocsin.tasks import end_tasks
from tocsin.telemetry.audit_export import open_exports
from tocsin.web.http.access import AuthFailures

if TYPE_CHECKING:
    from tocsin.sso.provider import Provider

_log = structlog.get_logger("tocsin.server")

#: Seconds between repeated log lines about an expiring key.
_NOTICE_INTERVAL_S = 86_400.0
#: A use of a key is noted unless one was within this time, and noted uses that one refresh stores.
_USE_INTERVAL_S = 3_600.0
_USES_STORED_MAX = 50


class Keyring:
    """API keys by the hash of their secret. They are read again every few seconds, so that a revoked key stops working
    within that time; an expiring one stops at its expiry.

    Keys are required if the server is `published`, that is, reachable from other machines; otherwise from the first key on
    until the process ends: revoking the last key does not open the server again. With `insecure` they are never required.
    """

    def __init__(
        self,
        store: Records,
        *,
        published: bool,
        insecure: bool = False,
        provider: Provider | None = None,
        expiry_notice_s: float = 0.0,
        now_s: Callable[[], float] = time.time,
        observe: Observer = unobserved,
    ) -> None:
        self._store = store
        self._observe = observe
        self._published = published
        self.insecure = insecure
        #: Where people sign in, and whose access tokens count.
        self.provider = provider
        self._expiry_notice_s = expiry_notice_s
        self._now_s = now_s
        self._keys: dict[str, ApiKey] = {}
        self._by_id: dict[str, ApiKey] = {}
        self._any_seen = False
        self._noticed_s: dict[str, float] = {}
        # When the latest use of a key was noted here, by its id, and those of which the store has none yet.
        self._used_s: dict[str, float] = {}
        self._unstored: list[str] = []
        # The number of reads begun, and the number of the latest one applied.
        self._begun = 0
        self._known = 0
        self._version: int | None = None
        #: Called when keys become required.
        self.on_required: Callable[[], None] | None = None

    @property
    def required(self) -> bool:
        """Whether a request without a key is refused."""
        return not self.insecure and (self._published or self._any_seen or self.provider is not None)

    def lookup(self, hash: str) -> ApiKey | None:
        """The key in force with this hash, or None."""
        return self._in_force(self._keys.get(hash))

    def used(self, key: ApiKey) -> None:
        """Notes the use of a key, at most once an hour, for `store_uses`."""
        if key.key_id not in self._used_s and not key.key_id.startswith(IDENTITY_PREFIX):
            self._used_s[key.key_id] = self._now_s()
            self._unstored.append(key.key_id)

    async def store_uses(self) -> None:
        """Stores the uses that were noted; raises the store's errors, and goes on with those the next time."""
        now_s = self._now_s()
        for key_id in self._unstored[:_USES_STORED_MAX]:
            # A key that is gone has no uses any more.
            if key_id in self._by_id:
                at = round(self._used_s[key_id] * 1e6)
                # The one that is stored may be an earlier one of another node, after which an hour ends sooner.
                self._used_s[key_id] = await put_key_use(self._store, key_id, at, round(_USE_INTERVAL_S * 1e6)) / 1e6
            del self._unstored[0]
        waiting = {*self._unstored}
        for key_id in [each for each, used_s in self._used_s.items() if now_s - used_s >= _USE_INTERVAL_S]:
            if key_id not in waiting:
                del self._used_s[key_id]

    def by_id(self, key_id: str) -> ApiKey | None:
        """The key in force with this id, or None."""
        return self._in_force(self._by_id.get(key_id))

    @property
    def identifies(self) -> bool:
        """Whether there is an identity provider."""
        return self.provider is not None

    def identify(self, token: str) -> ApiKey | None:
        """Whom the identity provider knows by this token, as a key with what they may do. Raises Unavailable."""
        return None if self.provider is None else self.provider.identify(token)

    def permitted(self, sign_in: SignIn) -> ApiKey | None:
        """The same of somebody who has signed in at the provider; None if they may do nothing any more."""
        if self.provider is None:
            return None
        return self.provider.permitted(Identity(sign_in.key_id, sign_in.name, sign_in.groups))

    def expired(self, hash: str) -> bool:
        """Whether the key with this hash is known and has expired."""
        return hash in self._keys and self.lookup(hash) is None

    @property
    def empty(self) -> bool:
        """Whether no key exists."""
        return not self._keys

    @property
    def expiring(self) -> int:
        """The number of keys that expire within the notice, or have expired and not been revoked."""
        return len(self._expiring())

    async def refresh(self) -> None:
        """Reads the keys if there were changes; raises the store's errors. Ignored if a read that began later has already
        been applied."""
        self._begun += 1
        number = self._begun
        (version,) = await self._store.records_versions(API_KEYS)
        if version == self._version:
            self._notice()
            return
        keys = await api_keys(self._store, self._observe)
        if number < self._known:
            return
        self._known, self._version = number, version
        self._keys = {key.hash: key for key in keys}
        self._by_id = {key.key_id: key for key in keys}
        was_required = self.required
        self._any_seen = self._any_seen or bool(keys)
        if self.required and not was_required and self.on_required is not None:
            self.on_required()
        self._notice()

    async def changed(self) -> None:
        """To be called after this node has changed the keys: reads them. If the store fails, the change applies after the
        interval, as on other nodes."""
        await _try_refresh("API key refresh failed", self.refresh)

    def _in_force(self, key: ApiKey | None) -> ApiKey | None:
        if key is None or key.expires_at is None or not key.expired(round(self._now_s() * 1e6)):
            return key
        return None

    def _expiring(self) -> list[ApiKey]:
        notice_us, now_us = round(self._expiry_notice_s * 1e6), round(self._now_s() * 1e6)
        return [key for key in self._keys.values() if key.ends_within(notice_us, now_us)]

    def _notice(self) -> None:
        now_s = self._now_s()
        expiring = {key.key_id: key for key in self._expiring()}
        self._noticed_s = {key_id: at for key_id, at in self._noticed_s.items() if key_id in expiring}
        for key_id, key in expiring.items():
            if now_s - self._noticed_s.get(key_id, -_NOTICE_INTERVAL_S) < _NOTICE_INTERVAL_S:
                continue
            self._noticed_s[key_id] = now_s
            assert key.expires_at is not None
            what = "API key expired" if key.expired(round(now_s * 1e6)) else "API key expiring soon"
            _log.warning(what, key=key_id, note=key.note, expires_at=format_instant(key.expires_at))


@dataclass(frozen=True, slots=True)
class Access:
    """Who may do what here, and what is recorded about it. `published`: other machines reach this server. `export` gets what
    is changed of timers, schedules and service calls; None: nothing does."""

    store: Store
    keys: Keyring
    sign_ins: SignIns
    failures: AuthFailures
    audit: Audit
    published: bool
    export: AuditExport | None


def is_published(settings: Settings) -> bool:
    """Whether other machines reach this server, at its address or through a proxy."""
    return any(not loopback(host) for host in (settings.host, *settings.origin_hosts()))


def fault_without_keys(settings: Settings) -> str | None:
    """Why the server does not start while its store has no key; None if it does."""
    if settings.insecure or settings.oidc.issuer is not None or not is_published(settings):
        return None
    where = f"ui.origins: {', '.join(settings.ui_origins)}" if loopback(settings.host) else settings.host
    return f"the server is reachable from other machines ({where}) and has no API key"


async def open_access(
    ends: AsyncExitStack, settings: Settings, store: Store, shards: int, node: str, observers: Observers
) -> Access:
    """Reads the keys, and keeps reading them; opens the export of the audit trail. Raises ConfigError if other machines reach
    the server and no key exists."""
    published = is_published(settings)
    keys = Keyring(
        store,
        published=published,
        insecure=settings.insecure,
        provider=_open_provider(ends, settings),
        expiry_notice_s=settings.keys_expiry_notice_s,
        observe=observers.observe,
    )
    await keys.refresh()
    if settings.admin_key_file is not None and keys.empty:
        # Counted before, so that a failure leaves no key of which nobody knows what it suspends.
        touched = await touched_by_first_key(store, shards, settings)
        await _create_admin_key(store, settings.admin_key_file, node)
        await keys.refresh()
        if touched.found:
            _log.warning(
                "first key suspends timers",
                effect="pending timers and schedules that lead to private addresses are suspended when they are due",
                timers=touched.found,
                more=touched.more,
                destinations=", ".join(touched.hosts),
                remedy="list their addresses in egress.allow and restart",
            )
    if keys.empty and (fault := fault_without_keys(settings)) is not None:
        raise ConfigError(
            f"host: {fault}; create one with `tocsin keys create`, name a file with the first one in admin_key_file, name an "
            "identity provider in oidc.issuer, listen on 127.0.0.1 without ui.origins, or accept the risk with --insecure"
        )
    count = observers.metrics.count
    sign_ins = SignIns(store, settings.ui, observers.observe)
    failed = partial(count, "tocsin_audit_write_failures")
    export = open_exports(settings.audit_export, node, partial(count, "tocsin_audit_export_dropped"))
    if export is not None:
        # After everything that reports to it.
        ends.push_async_callback(asyncio.to_thread, export.close)
    audit = Audit(store, node, settings.audit_retention_s, failed, observe=observers.observe, export=export)
    observers.gauges.add(lambda: {"tocsin_api_keys_expiring": keys.expiring})
    refreshing = asyncio.create_task(_keep_current(keys, sign_ins, audit, settings.keys_refresh_s))
    ends.push_async_callback(end_tasks, refreshing)
    return Access(
        store, keys, sign_ins, AuthFailures(partial(count, "tocsin_authentication_failures")), audit, published,
        export if settings.audit_export.changes else None,
    )  # fmt: skip


def _open_provider(ends: AsyncExitStack, settings: Settings) -> Provider | None:
    """The identity provider of the settings, whose keys are read until `ends`."""
    if settings.oidc.issuer is None:
        return None
    # An extra, and slow to import.
    from tocsin.sso.provider import Provider

    provider = Provider(settings.oidc)
    ends.push_async_callback(end_tasks, asyncio.create_task(provider.run()))
    return provider


def read_admin_key(path: Path) -> ApiKey:
    """The first key, whose secret the file has. Raises ConfigError for an unusable file."""
    try:
        return admin_key(read_secret(path, "admin_key_file"), time.time_ns() // 1_000)
    except ValueError as error:
        raise ConfigError(f"admin_key_file: the key in {path} {error}") from None


async def _create_admin_key(store: Store, path: Path, node: str) -> None:
    """Stores the first key. Raises ConfigError for an unusable file, StoreError."""
    key = read_admin_key(path)

    async def record(action: AuditAction, key_id: str, details: dict[str, Detail]) -> None:
        about = {**details, "file": str(path)}
        await put_audit(
            store, AuditEntry(key.created_at, new_entry_id(), action, None, key_id, AuditSource.CLI, "", node, about)
        )

    await ApiKeys(store).add(key, record)
    _log.info("admin key created", key=key.key_id, file=str(path))


async def _keep_current(keys: Keyring, sign_ins: SignIns, audit: Audit, interval_s: float) -> None:
    """Refreshes keys and sign-ins, stores uses of keys and pending audit entries, periodically, until it is cancelled."""
    while True:
        await asyncio.sleep(interval_s)
        # Concurrently: a read that hangs must not delay the others.
        await asyncio.gather(
            _try_refresh("API key refresh failed", keys.refresh),
            _try_refresh("API key uses not stored", keys.store_uses),
            _try_refresh("sign-in refresh failed", sign_ins.refresh),
            _try_refresh("audit write failed", audit.refresh),
        )


async def _try_refresh(failure: str, refresh: Callable[[], Awaitable[None]]) -> None:
    try:
        await refresh()
    except StoreError as error:
        _log.warning(failure, error=str(error))
