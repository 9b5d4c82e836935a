"""The audit trail of one node: entries go to the store right after what they report."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping

import structlog

from tocsin.model.audit import AuditAction, AuditEntry, Detail
from tocsin.model.errors import StoreError
from tocsin.ports.audit import Actor
from tocsin.ports.store import AuditQuery, Store

_log = structlog.get_logger("tocsin.audit")

#: How long whoever did something waits for its entry; then it is written later.
_WRITE_TIMEOUT_S = 5.0
#: Entries that wait for the store; beyond it the oldest are in the log only.
_WAITING_MAX = 1_000
#: How often entries are removed whose time is over, and how many by one statement.
_PURGE_INTERVAL_S = 3_600.0
_PURGE_ROWS = 1_000


class Audit:
    """See the port AuditLog. `failed` is called for each write that the store did not take."""

    def __init__(
        self,
        store: Store,
        node: str,
        retention_s: float,
        failed: Callable[[], object],
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._node = node
        self._retention_s = retention_s
        self._failed = failed
        self._now_s = now_s
        self._waiting: list[AuditEntry] = []
        self._purged_s = 0.0

    async def write(
        self, action: AuditAction, actor: Actor, subject: str = "", details: Mapping[str, Detail] | None = None
    ) -> None:
        """See the port."""
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
                await self._store.put_audit(entry)
        except (StoreError, TimeoutError) as error:
            self._failed()
            _log.error("audit entry not stored yet", error=str(error) or "no answer", **_shown(entry))
            self._waiting.append(entry)
            if len(self._waiting) > _WAITING_MAX:
                _log.error("audit entry given up", **_shown(self._waiting.pop(0)))

    async def read(self, query: AuditQuery) -> list[AuditEntry]:
        """See the port."""
        return await self._store.audit(query)

    async def refresh(self) -> None:
        """Writes what waits, and now and then removes what is over; raises what the store raises."""
        while self._waiting:
            entry = self._waiting[0]
            # Writing it twice leaves one.
            await self._store.put_audit(entry)
            if self._waiting and self._waiting[0] is entry:
                del self._waiting[0]
        if self._now_s() - self._purged_s >= _PURGE_INTERVAL_S:
            before_us = round((self._now_s() - self._retention_s) * 1e6)
            # A full statement's worth: the next refresh goes on.
            if await self._store.purge_audit(before_us, _PURGE_ROWS) < _PURGE_ROWS:
                self._purged_s = self._now_s()


def new_entry_id() -> bytes:
    """Sixteen bytes that nobody else has."""
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
