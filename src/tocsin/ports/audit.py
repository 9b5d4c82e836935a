"""The audit trail's port, for those that write to it and read it, and that of the export, to which changes go, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tocsin.model.audit import AuditAction, AuditEntries, AuditEntry, AuditQuery, AuditSource, Detail


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: the key's id (None: without a key), the client's address, and the interface used; `name` is the key's, or
    that of somebody whom the identity provider knows."""

    key_id: str | None
    address: str
    source: AuditSource
    name: str = ""


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


class AuditExport(Protocol):
    """Sends a copy of the trail, and changes of timers, schedules and service calls, out of the node. Nothing here waits or
    fails: what its destination does not take in time is dropped, and how much that was is announced there."""

    def entry(self, entry: AuditEntry, name: str) -> None:
        """An entry of the trail; `name` is the actor's."""

    def changed(self, operation: str, actor: Actor, scope: str, ids: Sequence[str]) -> None:
        """An operation has changed timers or schedules of a namespace, or service calls of a tenant, the `scope`, with these
        ids."""


class NoAudit:
    """A trail that keeps nothing."""

    async def write(
        self, action: AuditAction, actor: Actor, subject: str = "", details: Mapping[str, Detail] | None = None
    ) -> None:
        """Drops the entry."""

    async def read(self, query: AuditQuery) -> AuditEntries:
        """No entries."""
        return AuditEntries([], None)
