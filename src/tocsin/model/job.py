"""Jobs: one change of many timers, schedules, failures or service calls, which the server makes row by row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

import msgspec

from tocsin.model.access import EVERY
from tocsin.model.failure import split_failure
from tocsin.model.instants import US_PER_DAY
from tocsin.model.timer import Timer

#: Rows a second that a job changes at most, in the whole cluster, unless it was asked for another rate; and the greatest.
RATE_DEFAULT, RATE_MAX = 500, 5_000
#: How long a job that has ended is listed, in microseconds; and how many are kept at most, the newest ones: to list jobs, all
#: are read.
KEPT_US, KEPT_MAX = 30 * US_PER_DAY, 200
#: Jobs that may be running or paused at once: each has a part of one node's time.
LIVE_MAX = 20
#: Errors of which a job keeps what happened; all are counted. Characters of each.
SAMPLES_MAX, SAMPLE_CHARS_MAX = 10, 500


class JobKind(StrEnum):
    """What a job changes."""

    TIMERS = "timers"
    SCHEDULES = "schedules"
    #: Ends that failed: of timers, occurrences and notifications of a namespace, or of service calls of a tenant.
    FAILURES = "failures"
    #: Service calls of a tenant that wait for their due time or for a retry.
    CALLS = "calls"
    #: A namespace with all that is in it. Such a job is created by `namespaces/delete`.
    NAMESPACE = "namespace"


class JobAction(StrEnum):
    """What a job does with each row."""

    CANCEL = "cancel"
    SHIFT = "shift"
    SET_URL = "setUrl"
    PAUSE = "pause"
    RESUME = "resume"
    DELETE = "delete"
    REPLAY = "replay"


ACTIONS: Mapping[JobKind, tuple[JobAction, ...]] = {
    JobKind.TIMERS: (JobAction.CANCEL, JobAction.SHIFT, JobAction.SET_URL),
    JobKind.SCHEDULES: (JobAction.PAUSE, JobAction.RESUME, JobAction.DELETE, JobAction.SET_URL),
    JobKind.FAILURES: (JobAction.REPLAY,),
    JobKind.CALLS: (JobAction.DELETE,),
    JobKind.NAMESPACE: (JobAction.DELETE,),
}


class WaitingStatus(StrEnum):
    """What a service call waits for: its due time, or a retry."""

    SCHEDULED = "Scheduled"
    RETRYING = "Retrying"


class JobState(StrEnum):
    """`starting`: it is not known yet that no other job changes the same rows. `failed`: it has given up; `reason` has the
    cause."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    CANCELED = "canceled"
    FAILED = "failed"


#: States from which a job goes on, or may.
LIVE = frozenset({JobState.STARTING, JobState.RUNNING, JobState.PAUSED})


class RowFilter(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Which rows a job changes: those that match all of it. It is applied where they are read and again where the change
    becomes durable, so that what was changed since is changed only if it still matches.

    `destination` and `error` are parts of URL and last error, in lower case; of failures, those of their group, like
    `kind`. A failure counts as created when it failed, a service call when it was submitted. Instants are microseconds; those
    before are exclusive, those after are inclusive. `updated_before`: nothing has happened to the row since, neither a change
    nor an attempt. `name` is a part of a call's name, with letters A to Z in either case, and `status` a `WaitingStatus`."""

    created_before: int
    tags: tuple[str, ...] = ()
    id_prefix: str = ""
    destination: str = ""
    error: str = ""
    execute_after: int | None = None
    execute_before: int | None = None
    updated_before: int | None = None
    kind: str = ""
    created_after: int | None = None
    name: str = ""
    status: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether every row matches that was there when the job was created."""
        return self == RowFilter(self.created_before, updated_before=self.updated_before)

    def matches(self, timer: Timer) -> bool:
        """Whether a pending timer or a live schedule, as its row has it, is among those that are changed."""
        return (
            self._created(timer.created_at)
            and (self.updated_before is None or timer.updated_at < self.updated_before)
            and timer.id.startswith(self.id_prefix)
            and set(self.tags) <= set(timer.tags)
            and self.destination in timer.url.partition("://")[2].lower()
            and self.error in (timer.last_error or "").lower()
            and self._due(timer.execute_at)
        )

    def matches_failure(self, id: str, kind: str, failure: str, failed_at: int, execute_at: int) -> bool:
        """Whether a failure matches, apart from its tags. Destination and error are those of a group, as a whole."""
        destination, error = split_failure(failure)
        return (
            self._created(failed_at)
            and id.startswith(self.id_prefix)
            and self.kind in ("", kind)
            and self.destination in ("", destination)
            and self.error in ("", error)
            and self._due(execute_at)
        )

    def matches_call(
        self, id: str, name: str, status: str, tags: Collection[str], url: str, submitted_at: int, due_at: int
    ) -> bool:
        """Whether a service call that waits until `due_at` is among those that are deleted."""
        return (
            self._created(submitted_at)
            and id.startswith(self.id_prefix)
            and self.status in ("", status)
            and set(self.tags) <= set(tags)
            and self.destination in url.partition("://")[2].lower()
            and _ascii_lower(self.name) in _ascii_lower(name)
            and self._due(due_at)
        )

    def _created(self, at: int) -> bool:
        return at < self.created_before and (self.created_after is None or at >= self.created_after)

    def _due(self, at: int) -> bool:
        return (self.execute_after is None or at >= self.execute_after) and (
            self.execute_before is None or at < self.execute_before
        )


def _ascii_lower(text: str) -> bytes:
    """As searches of lists compare: never equal where theirs is not."""
    return text.encode(errors="surrogatepass").lower()


class JobError(msgspec.Struct, frozen=True, gc=False):
    """Why a row could not be changed."""

    namespace: str
    id: str
    error: str
    tenant: str = ""


class JobCounts(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Rows that matched, and what became of them: `changed`, `skipped` (they had ended, no longer matched, or were as wanted
    already) and `errors`. A dry run only counts those that match."""

    matched: int = 0
    changed: int = 0
    skipped: int = 0
    errors: int = 0

    def plus(self, other: JobCounts) -> JobCounts:
        """Both together."""
        return JobCounts(
            self.matched + other.matched,
            self.changed + other.changed,
            self.skipped + other.skipped,
            self.errors + other.errors,
        )


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job: what was asked for, and how far it is. All instants are microseconds.

    `namespace` is one, or `*` for all of them. A job of service calls has an empty one, and their `tenant`, or `*` for all.
    `request` is the hash of what was asked for, by which a repeated request is known. `created_by`, `address` and `source`
    are who asked, for the audit trail. `match_max`: the job fails instead of changing more rows; it also is what
    progress is measured by. `runner` is the incarnation of the node that works on it, `cursor` where that goes on: everything
    before it is done and durable. `seen_to` is the instant up to which timers were examined. `cancel_pending`: a namespace is
    deleted although timers or schedules are pending in it. `version` is its record's."""

    id: str
    namespace: str
    kind: JobKind
    action: JobAction
    filter: RowFilter
    created_at: int
    updated_at: int
    state: JobState
    request: str = ""
    created_by: str | None = None
    address: str = ""
    source: str = ""
    rate_per_second: int = RATE_DEFAULT
    shift_by_us: int = 0
    url: str = ""
    dry_run: bool = False
    match_max: int | None = None
    cancel_pending: bool = False
    runner: str = ""
    cursor: str | None = None
    seen_to: int | None = None
    counts: JobCounts = JobCounts()
    samples: tuple[JobError, ...] = ()
    reason: str = ""
    ended_at: int | None = None
    tenant: str = ""
    version: int = 0

    @property
    def live(self) -> bool:
        """Whether it goes on, or may."""
        return self.state in LIVE

    @property
    def where(self) -> str:
        """What has its rows, in words."""
        if self.tenant:
            return "all tenants" if self.tenant == EVERY else f"tenant {self.tenant}"
        return "all namespaces" if self.namespace == EVERY else f"namespace {self.namespace}"

    def deletes(self, namespace: str) -> bool:
        """Whether it deletes this namespace."""
        return self.kind is JobKind.NAMESPACE and self.namespace == namespace

    def overlaps(self, other: Job) -> bool:
        """Whether both may change the same rows. A dry run changes none, the deletion of a namespace all of them."""
        scopes = self.tenant or self.namespace, other.tenant or other.namespace
        together = bool(self.tenant) == bool(other.tenant) and (scopes[0] == scopes[1] or EVERY in scopes)
        alike = self.kind is other.kind or JobKind.NAMESPACE in (self.kind, other.kind)
        return together and alike and not (self.dry_run or other.dry_run)
