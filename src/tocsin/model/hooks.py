"""Hooks: who is notified of what became of a timer or a schedule. Each notification is itself a timer, stored in the batch
that makes durable what it reports (`tocsin.timers.engine.notifications`)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from tocsin.model.redaction import redact_headers, redact_url


class Event(StrEnum):
    """What a hook is notified of. MISSED and PAUSED happen to schedules only, LATE to monitors, whose RECOVERY is their first
    report in time afterwards."""

    #: A timer or an occurrence failed, or it was too late for it (expired).
    FAILURE = "failure"
    SUCCESS = "success"
    #: A success after a failure: of the schedule's previous occurrence, or of the timer that was replayed.
    RECOVERY = "recovery"
    #: Instants that did not fire, though the schedule was not paused.
    MISSED = "missed"
    #: The schedule has paused itself after failures in a row.
    PAUSED = "paused"
    #: A monitor's job is late, or has failed.
    LATE = "late"


class Hook(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Where a notification is sent, its additional headers, and the credential that it has."""

    url: str
    headers: dict[str, str] | None = None
    credential: str = ""


class Hooks(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The hooks of a timer, of a schedule, or of a namespace, for all of its timers and schedules that have none of their own
    for the same event."""

    failure: Hook | None = None
    success: Hook | None = None
    recovery: Hook | None = None
    missed: Hook | None = None
    paused: Hook | None = None
    late: Hook | None = None

    def changed(self, changes: Mapping[str, Hook | None]) -> Hooks | None:
        """The hooks with those of some events replaced, or removed where None; None if no hook is left."""
        hooks = msgspec.structs.replace(self, **changes)
        return hooks if any(msgspec.structs.astuple(hooks)) else None


NO_HOOKS = Hooks()


def hook_for(event: Event, own: Hooks | None, defaults: Hooks | None) -> Hook | None:
    """The hook that is notified of the event: the timer's own, else its namespace's."""
    found = None if own is None else getattr(own, event)
    return found if found is not None or defaults is None else getattr(defaults, event)


def redacted(hook: Hook) -> Hook:
    """The hook without the secrets in its URL and headers."""
    headers = None if hook.headers is None else redact_headers(hook.headers)
    return Hook(redact_url(hook.url), headers, hook.credential)


def field_of(event: Event | str) -> str:
    """The name of the event's field in requests and responses: onFailure, onSuccess …"""
    return f"on{event.capitalize()}"
