"""The audit trail of one node: an entry is stored right after the action that it records."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping

import structlog

from tocsin.administration import AUDIT, audit, purge_audit, put_audit, unobserved
from tocsin.model.audit import AuditAction, AuditEntries, AuditEntry, AuditQuery, AuditSource, Detail
from tocsin.model.errors import StoreError
from tocsin.ports.audit import Actor
from tocsin.ports.observer import Observer
from tocsin.ports.store import Store
from tocsin.telemetry.audit_export import Exports

_log = structlog.get_logger("tocsin.audit")

#: How long an action waits for its entry to be stored; then the entry is stored later.
_WRITE_TIMEOUT_S = 5.0
#: Entries that wait for the store; beyond it the oldest remain in the log only.
_WAITING_MAX = 1_000
#: How often entries past their retention are removed, and how many by one statement.
_PURGE_INTERVAL_S = 3_600.0
_PURGE_ROWS = 1_000
#: How far back entries of commands are looked for, whose machines have clocks of their own; and entries of all kinds that one
#: search reads.
_COMMANDS_S = 600.0
_COMMANDS_READ_MAX = 1_000


class Audit:
    """Implements the port AuditLog on the store. `failed` is called for each failed write; `export` gets a copy of each
    entry."""

    def __init__(
        self,
        store: Store,
        node: str,
        retention_s: float,
        failed: Callable[[], object],
        now_s: Callable[[], float] = time.time,
        observe: Observer = unobserved,
        export: Exports | None = None,
    ) -> None:
        #: Whether this node does what one node does for all of them.
        self.acts_for_all: Callable[[], bool] = lambda: False
        self._exported: set[bytes] = set()
        self._exported_version: int | None = None
        self._export = export
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
        if self._export is not None:
            self._export.entry(entry, actor.name)
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
        """Stores pending entries, exports those of commands, and periodically removes entries past their retention; raises
        the store's errors."""
        if self._export is not None:
            self._export.announce()
            await self._export_commands(self._export)
        while self._waiting:
            entry = self._waiting[0]
            # Idempotent: storing an entry twice leaves one.
            await put_audit(self._store, entry)
            if self._waiting and self._waiting[0] is entry:
                del self._waiting[0]
        if self._now_s() - self._purged_s >= _PURGE_INTERVAL_S:
            # By both clocks, of which one that is set far ahead would have all entries removed.
            now_s = min(self._now_s(), await self._store.now() / 1e6)
            before_us = round((now_s - self._retention_s) * 1e6)
            removed = await purge_audit(self._store, before_us, self._purged_to, _PURGE_ROWS)
            if removed:
                self._purged_to = removed[-1]
            # Otherwise more may be left, which the next refresh removes.
            if len(removed) < _PURGE_ROWS:
                self._purged_s = self._now_s()

    async def _export_commands(self, export: Exports) -> None:
        """Exports what commands have written to the store themselves, as the one node that does it. After another one did,
        those of the last minutes are exported once more."""
        if not self.acts_for_all():
            self._exported.clear()
            self._exported_version = None
            return
        (version,) = await self._store.records_versions(AUDIT)
        if version == self._exported_version:
            return
        after = round((self._now_s() - _COMMANDS_S) * 1e6)
        found = await audit(self._store, AuditQuery(after=after, limit=_COMMANDS_READ_MAX), self._observe)
        made = {entry.entry_id: entry for entry in found.entries if entry.source == AuditSource.CLI}
        for entry_id in reversed([*made]):
            if entry_id not in self._exported:
                export.entry(made[entry_id], "")
        self._exported, self._exported_version = {*made}, version


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
