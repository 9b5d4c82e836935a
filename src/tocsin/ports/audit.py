"""The audit trail as those see it who write to it and read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tocsin.model.audit import AuditAction, AuditEntry, AuditSource, Detail
from tocsin.ports.store import AuditQuery


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: the key's id (None: nobody's key), from which address, by which way."""

    key_id: str | None
    address: str
    source: AuditSource


class AuditLog(Protocol):
    """One node's way to the trail that all nodes share."""

    async def write(
        self, action: AuditAction, actor: Actor, subject: str = "", details: Mapping[str, Detail] | None = None
    ) -> None:
        """Adds an entry right after what it reports; durable when it returns. Where the store doesn't take it, the log has
        it as an error, a metric counts it, and it is written as soon as the store does: never raises a StoreError."""

    async def read(self, query: AuditQuery) -> list[AuditEntry]:
        """Entries, newest first. Raises StoreError."""


class NoAudit:
    """A trail that nobody keeps."""

    async def write(
        self, action: AuditAction, actor: Actor, subject: str = "", details: Mapping[str, Detail] | None = None
    ) -> None:
        """Nothing."""

    async def read(self, query: AuditQuery) -> list[AuditEntry]:
        """No entries."""
        return []
