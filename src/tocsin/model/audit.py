"""The audit trail: who changed keys and namespaces, who signed in, who changed many timers by a job, what clients changed
over MCP, and whose rows the inbox turns into timers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import msgspec

#: Values in the details of an entry: flat, so that an entry fits in a line.
Detail = str | int | bool | None | list[str]


class AuditAction(StrEnum):
    """What an entry reports. Stores keep the value as text, so that a node can show entries of a newer release."""

    SIGN_IN = "sign_in"
    SIGN_IN_FAILED = "sign_in_failed"
    SIGN_OUT = "sign_out"
    KEY_CREATED = "key_created"
    KEY_CHANGED = "key_changed"
    KEY_DELETED = "key_deleted"
    NAMESPACE_CREATED = "namespace_created"
    NAMESPACE_CHANGED = "namespace_changed"
    NAMESPACE_DELETED = "namespace_deleted"
    SECRET_ROTATED = "secret_rotated"
    TENANT_LABELED = "tenant_labeled"
    FAILURES_DISMISSED = "failures_dismissed"
    FLOW_CHANGED = "flow_changed"
    FLOW_DELETED = "flow_deleted"
    CALENDAR_CHANGED = "calendar_changed"
    CALENDAR_DELETED = "calendar_deleted"
    CREDENTIAL_CHANGED = "credential_changed"
    CREDENTIAL_DELETED = "credential_deleted"
    MONITOR_CHANGED = "monitor_changed"
    MONITOR_PAUSED = "monitor_paused"
    MONITOR_RESUMED = "monitor_resumed"
    MONITOR_ROTATED = "monitor_rotated"
    MONITOR_DELETED = "monitor_deleted"
    DESTINATION_CHANGED = "destination_changed"
    JOB_CREATED = "job_created"
    JOB_CHANGED = "job_changed"
    JOB_ENDED = "job_ended"
    INBOX_OPENED = "inbox_opened"
    INBOX_REPLAYED = "inbox_replayed"
    INBOX_DELETED = "inbox_deleted"
    # Of changes over MCP only: those by the API and the pages are too many, and are the timers' own history.
    TIMER_CREATED = "timer_created"
    TIMERS_CANCELED = "timers_canceled"
    TIMERS_REPLAYED = "timers_replayed"
    SCHEDULE_CREATED = "schedule_created"
    SCHEDULE_DELETED = "schedule_deleted"


class AuditSource(StrEnum):
    """The interface through which a change was made."""

    API = "api"
    PAGES = "pages"
    CLI = "cli"
    MCP = "mcp"
    INBOX = "inbox"


class AuditEntry(msgspec.Struct, frozen=True):
    """One entry. It never changes.

    `at` is microseconds since 1970, `entry_id` 16 bytes that make the entry unique. `key_id` is the acting key; None for an
    actor without one. `subject` is what was acted on: a key's id, the name of a namespace, also for its timers and schedules,
    a tenant's id, a job's id, the source of an inbox. `address` is the client's as the node sees it; empty for the command
    line and an inbox. `node` is the name of the node, or of the machine that ran the command. `details` never contain a
    secret."""

    at: int
    entry_id: bytes
    action: str
    key_id: str | None
    subject: str
    source: str
    address: str
    node: str
    details: dict[str, Detail] = {}

    @property
    def place(self) -> tuple[int, bytes]:
        """The entry's position in the trail's order."""
        return (self.at, self.entry_id)


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Which entries of the audit trail to read, newest first. `after` is inclusive, `before` exclusive, in microseconds.
    `cursor` is where the previous page ended."""

    actions: frozenset[str] = frozenset()
    key_id: str | None = None
    subject: str | None = None
    after: int | None = None
    before: int | None = None
    cursor: tuple[int, bytes] | None = None
    limit: int = 100

    @property
    def is_filter(self) -> bool:
        """Whether it leaves out entries between two others."""
        return bool(self.actions) or self.key_id is not None or self.subject is not None

    def matches(self, entry: AuditEntry) -> bool:
        """Whether the entry is one of those, apart from instants and cursor."""
        return (
            (not self.actions or entry.action in self.actions)
            and self.key_id in (None, entry.key_id)
            and self.subject in (None, entry.subject)
        )


class AuditEntries(NamedTuple):
    """A page of the trail. The next page begins after `cursor`; None when nothing can follow. A page may be short, even
    empty, and still have a cursor: the search stops after many entries that don't match."""

    entries: list[AuditEntry]
    cursor: tuple[int, bytes] | None
