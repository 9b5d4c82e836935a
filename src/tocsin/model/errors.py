"""The errors of the domain: one base, one class per kind of failure.

Adapters translate their drivers' exceptions into the store errors at their edge; `tocsin.http.errors` is the only
place that turns any of them into an HTTP status.
"""

from __future__ import annotations

from dataclasses import dataclass


class TocsinError(Exception):
    """Base of every error that Tocsin raises on purpose."""

    code = "INTERNAL"


@dataclass(frozen=True, slots=True)
class FieldError:
    """One bad field: `path` is dotted, as in `timers[3].executeAt`; `reason` says what is wrong and what would be right."""

    path: str
    reason: str


class InvalidInput(TocsinError):
    """What the caller sent can't be accepted. Nothing was written."""

    code = "INVALID_INPUT"

    def __init__(self, *errors: FieldError) -> None:
        self.errors = errors
        super().__init__("; ".join(f"{e.path}: {e.reason}" if e.path else e.reason for e in errors))


class PayloadTooLarge(InvalidInput):
    """A timer's payload, or the body of a service call's request, exceeds its limit, and nothing else is wrong."""

    code = "PAYLOAD_TOO_LARGE"


class TooManyTags(InvalidInput):
    """The service call has as many tags as it may have."""

    code = "TOO_MANY_TAGS"


class NotFound(TocsinError):
    """The named thing does not exist."""

    code = "NOT_FOUND"


class TimerNotFound(NotFound):
    """No pending or retained finished timer has this namespace and id."""

    code = "TIMER_NOT_FOUND"


class NamespaceNotFound(NotFound):
    """No such namespace."""

    code = "NAMESPACE_NOT_FOUND"


class KeyNotFound(NotFound):
    """No API key of this id, or none that the caller may see."""

    code = "KEY_NOT_FOUND"


class ServiceCallNotFound(NotFound):
    """The tenant has no such service call, or no longer."""

    code = "SERVICE_CALL_NOT_FOUND"


class Conflict(TocsinError):
    """The request contradicts the present state."""

    code = "CONFLICT"


class TimerNotPending(Conflict):
    """The timer has finished: it can't be updated or deleted any more. Creating it again is possible."""

    code = "TIMER_NOT_PENDING"


class TimerExists(Conflict):
    """A timer of that name exists, and the create asked not to replace it. Nothing was written."""

    code = "TIMER_EXISTS"


class NamespaceExists(Conflict):
    """A namespace of that name exists."""

    code = "NAMESPACE_EXISTS"


class RotationPending(Conflict):
    """A signing secret that was replaced still signs. Nothing was changed."""

    code = "ROTATION_PENDING"


class TooManyKeys(Conflict):
    """There are as many API keys as there may be. Nothing was written."""

    code = "TOO_MANY_KEYS"


class ServiceCallNotScheduled(Conflict):
    """The service call has begun: it can't be deleted any more."""

    code = "SERVICE_CALL_NOT_SCHEDULED"


class IdempotencyConflict(Conflict):
    """Something else was sent under the same id or idempotency key before. Nothing was written."""

    code = "IDEMPOTENCY_CONFLICT"


class Unavailable(TocsinError):
    """Nothing was decided, or the outcome isn't known; the same request may be sent again after `retry_after_s`."""

    code = "SHARD_UNAVAILABLE"

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ShardUnavailable(Unavailable):
    """This node does not (or no longer) own the shard, or a commit's outcome is unknown."""


class ShardMoved(ShardUnavailable):
    """This node does not (or no longer) own the shard, and certainly nothing was written: whoever owns it now may be asked
    the same."""


class ClusterUpgrading(Unavailable):
    """A member of an earlier release couldn't read what would be written. Nothing was written; once every member runs this
    release, the same request is accepted."""

    code = "CLUSTER_UPGRADING"


class Overloaded(Unavailable):
    """A named limit on waiting work is reached; nothing was accepted."""

    code = "OVERLOADED"


class RequestExpired(Unavailable):
    """The request's time budget ran out before its write was put into a batch; nothing was written."""

    code = "REQUEST_EXPIRED"


class StoreError(TocsinError):
    """Base of what a store adapter raises."""

    code = "STORE_FAILURE"


class DefiniteFailure(StoreError):
    """The transaction certainly had no effect. The same call may be made again, or cut smaller."""


class OutcomeUnknown(StoreError):
    """Whether the write took effect, or still will, can't be known (time-out, broken connection during a commit)."""


class StoreUnavailable(DefiniteFailure):
    """The store can't be reached or refuses everything (full disk, read-only); nothing was written."""


class StoreCorrupted(StoreError):
    """The store's file or schema can't be used. The operator has to act."""


class StoreLocked(StoreError):
    """Another process holds this data folder."""


class SchemaTooNew(StoreError):
    """The schema was written by a newer Tocsin than this one."""


class RecordUndecodable(TocsinError):
    """A stored timer record can't be read; the row is suspended as it is, never dropped."""


class RecordTooNew(RecordUndecodable):
    """A stored record has a format of a newer Tocsin; this node must leave the shard to a newer one."""


class ConfigError(TocsinError):
    """Settings are wrong or contradict one another."""

    code = "INVALID_CONFIG"
