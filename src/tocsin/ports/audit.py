"""The audit trail's port, for those that write to it and read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tocsin.model.audit import AuditAction, AuditEntries, AuditQuery, AuditSource, Detail


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: the key's id (None: without a key), the client's address, and the interface used."""

    key_id: str | None
    address: str
    source: AuditSource


class AuditLog(Protocol):
    """One node's access to the trail that all nodes share."""

    async def write(
        self, action: AuditAction, actor: Actor, subject: str = "", details: Mapping[str, Detail] | None = None
    ) -> None:
        """Adds an entry right after what it reports; it is durable when this returns.

        If the store fails, the entry is logged as an error, counted by a metric, and written once the store recovers: this
        never raises a StoreError.
        """

    async def read(self, query: AuditQuery) -> AuditEntries:
        """A page of entries, newest first. Raises StoreError."""


class NoAudit:
    """A trail that keeps nothing."""

    async def write(
        self, action: AuditAction, actor: Actor, subject: str = "", details: Mapping[str, Detail] | None = None
    ) -> None:
        """Drops the entry."""

    async def read(self, query: AuditQuery) -> AuditEntries:
        """No entries."""
        return AuditEntries([], None)
