"""The audit trail of one node: an entry is stored right after the action that it records."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping

import structlog

from tocsin.administration import audit, purge_audit, put_audit, unobserved
from tocsin.model.audit import AuditAction, AuditEntries, AuditEntry, AuditQuery, Detail
from tocsin.model.errors import StoreError
from tocsin.ports.audit import Actor
from tocsin.ports.observer import Observer
from tocsin.ports.records import Records

_log = structlog.get_logger("tocsin.audit")

#: How long an action waits for its entry to be stored; then the entry is stored later.
_WRITE_TIMEOUT_S = 5.0
#: Entries that wait for the store; beyond it the oldest remain in the log only.
_WAITING_MAX = 1_000
#: How often entries past their retention are removed, and how many by one statement.
_PURGE_INTERVAL_S = 3_600.0
_PURGE_ROWS = 1_000


class Audit:
    """Implements the port AuditLog on the store. `failed` is called for each failed write."""

    def __init__(
        self,
        store: Records,
        node: str,
        retention_s: float,
        failed: Callable[[], object],
        now_s: Callable[[], float] = time.time,
        observe: Observer = unobserved,
    ) -> None:
        self._store = store
        self._node = node
        self._retention_s = retention_s
        self._failed = failed
        self._now_s = now_s
        self._observe = observe
        self._waiting: list[AuditEntry] = []
        self._purged_s, self._purged_to = 0.0, ""

    async def write(
        self, action: AuditAction, actor: Actor, subject: str = "", details: Mapping[str, Detail] | None = None
    ) -> None:
        """Stores an entry. If the store fails or does not respond in time, logs the entry and stores it later."""
        entry = AuditEntry(
            at=round(self._now_s() * 1e6),
            entry_id=new_entry_id(),
            action=action.value,
            key_id=actor.key_id,
            subject=subject,
            source=actor.source.value,
            address=actor.address,
            node=self._node,
            details=dict(details or {}),
        )
        try:
            async with asyncio.timeout(_WRITE_TIMEOUT_S):
                await put_audit(self._store, entry)
        except (StoreError, TimeoutError) as error:
            self._failed()
            _log.error("audit entry not stored", error=str(error) or "timeout", **_shown(entry))
            self._waiting.append(entry)
            if len(self._waiting) > _WAITING_MAX:
                _log.error("audit entry dropped", **_shown(self._waiting.pop(0)))

    async def read(self, query: AuditQuery) -> AuditEntries:
        """A page of matching entries, newest first; raises the store's errors."""
        return await audit(self._store, query, self._observe)

    async def refresh(self) -> None:
        """Stores pending entries, and periodically removes entries past their retention; raises the store's errors."""
        while self._waiting:
            entry = self._waiting[0]
            # Idempotent: storing an entry twice leaves one.
            await put_audit(self._store, entry)
            if self._waiting and self._waiting[0] is entry:
                del self._waiting[0]
        if self._now_s() - self._purged_s >= _PURGE_INTERVAL_S:
            before_us = round((self._now_s() - self._retention_s) * 1e6)
            removed = await purge_audit(self._store, before_us, self._purged_to, _PURGE_ROWS)
            if removed:
                self._purged_to = removed[-1]
            # Otherwise more may be left, which the next refresh removes.
            if len(removed) < _PURGE_ROWS:
                self._purged_s = self._now_s()


def new_entry_id() -> bytes:
    """Sixteen random bytes, unique."""
    return os.urandom(16)


def _shown(entry: AuditEntry) -> dict[str, object]:
    return {
        "action": entry.action,
        "key": entry.key_id,
        "subject": entry.subject,
        "address": entry.address,
        "details": entry.details,
        "at": entry.at,
    }
