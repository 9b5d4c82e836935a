"""Monitors: when a job should report, what it reported, and what follows from that. A monitor is stored like a timer, due
when its job is late (`tocsin.timers.engine.monitoring`).

Instants and durations are microseconds. A *period* is one expected report: it is expected at an instant, and late after its
deadline. A ping before a period opens is a further one of the period before.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from enum import StrEnum

import msgspec

from tocsin.model.instants import US_PER_DAY, US_PER_SECOND
from tocsin.model.occurrences import recurrence_of
from tocsin.model.recurrence import Recurrence
from tocsin.model.schedule import Definition

GRACE_US_DEFAULT = 300 * US_PER_SECOND
GRACE_US_MIN, GRACE_US_MAX = US_PER_SECOND, 31 * US_PER_DAY
REPEAT_US_MIN, REPEAT_US_MAX = 60 * US_PER_SECOND, 366 * US_PER_DAY
#: A ping may come so long before its period's instant, because clocks differ; a quarter of the interval at most.
EARLY_US_MAX = 10 * US_PER_SECOND
#: Further pings of a period are written this seldom, or after half the grace if that is shorter.
WRITE_INTERVAL_US_MAX = 10 * US_PER_SECOND
#: Bytes that are kept of a ping's body.
BODY_BYTES_MAX = 10 * 1024
#: Periods without a report that are counted at once.
PERIODS_MAX = 100_000
EXIT_CODE_MAX = 255
_TOKEN = re.compile(r"[A-Za-z0-9_-]{22}\Z", re.ASCII)
_TOKEN_BYTES = 16


class MonitorStatus(StrEnum):
    """What is known of the job. `new`: it has never reported, which is not late. `up`: its last report was a success.
    `late`: no report came in time. `failed`: its last report was a failure."""

    NEW = "new"
    UP = "up"
    LATE = "late"
    FAILED = "failed"
    PAUSED = "paused"


class PingEvent(StrEnum):
    """What a ping reports: that the job has begun, has succeeded, or has failed."""

    SUCCESS = "success"
    START = "start"
    FAIL = "fail"


class MonitorDefinition(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """When a job should report: by `cron` (in `time_zone`), or `every_us` after its last report. It is late `grace_us` after
    that; while it is, somebody is notified each `repeat_us`, or once. With `schedule`, the id of a schedule in the same
    namespace, its job is that schedule's: an occurrence should have ended `grace_us` after its instant."""

    cron: str | None = None
    time_zone: str = "UTC"
    every_us: int | None = None
    grace_us: int = GRACE_US_DEFAULT
    repeat_us: int | None = None
    managed_by: str | None = None
    schedule: str | None = None

    @property
    def timing(self) -> tuple[object, ...]:
        """What decides on the expected instants."""
        return self.cron, self.time_zone, self.every_us, self.schedule

    @property
    def rule(self) -> Definition:
        """The same as a schedule's definition."""
        return Definition(cron=self.cron, time_zone=self.time_zone, every_us=self.every_us)

    @property
    def write_interval_us(self) -> int:
        """How long further pings of a period may stay in memory alone."""
        return min(WRITE_INTERVAL_US_MAX, self.grace_us // 2)

    def recurrence(self, anchor: int) -> Recurrence:
        """The instants at which a report is expected; of intervals, the anchor is one."""
        return recurrence_of(self.cron, self.time_zone, self.every_us, anchor)


class Watched(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a monitor's row remembers of the schedule that it watches.

    `generation` is that of the schedule's row when it was read last, empty if it never was: runs of this or a later one
    have ended since. `ended_at` is when the last occurrence had ended by then, `missed` counts the instants that had not
    fired though nobody wanted that. `looked_at` is when it was read last, `quiet_at` when it was so last that nothing was
    expected. `notified_at` is when somebody was notified last that an occurrence is late."""

    generation: bytes = b""
    ended_at: int = 0
    missed: int = 0
    looked_at: int = 0
    quiet_at: int = 0
    notified_at: int = 0


class MonitorState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a monitor's row carries besides the definition.

    `token` is the hash of its ping token. `status` is since `since`. The open period is expected at `expected` and late
    after `deadline`; pings before `opens` are further ones of the period before. `due` is the deadline as the definition
    gives it: `deadline` may be later, because of an outage of ours (`excused_from` to `excused_until`), or because the
    job has started. `started` is when the present run began. `recorded` counts the records of periods, `version` counts
    the changes of clients, the last at `changed_at`. `watched` is what is known of the schedule, once it was read."""

    token: str
    status: MonitorStatus = MonitorStatus.NEW
    since: int = 0
    last_ping: int | None = None
    expected: int | None = None
    opens: int = 0
    due: int | None = None
    deadline: int | None = None
    started: int | None = None
    excused_from: int | None = None
    excused_until: int | None = None
    recorded: int = 0
    version: int = 0
    changed_at: int = 0
    watched: Watched | None = None


class Monitor(msgspec.Struct, frozen=True, gc=False):
    """The part of a timer that makes it a monitor."""

    definition: MonitorDefinition
    state: MonitorState


# ---------------------------------------------------------------------- what clients ask for


class PutMonitor(msgspec.Struct, frozen=True, gc=False, tag="put_monitor"):
    """Creates the monitor that the operation's timer has, or gives the present one its definition. Without a token in that
    timer's state it is not created. `expected_version` is that of the present one; 0: there is none; None: whichever."""

    expected_version: int | None = None


class Ping(msgspec.Struct, frozen=True, gc=False, tag="ping", omit_defaults=True):
    """A report of the job. `token` is the hash of the token by which it came; None: by an API key."""

    event: PingEvent
    token: str | None = None
    exit_code: int | None = None
    body: str | None = None


class PauseMonitor(msgspec.Struct, frozen=True, gc=False, tag="pause_monitor"):
    """Expects nothing any more."""


class ResumeMonitor(msgspec.Struct, frozen=True, gc=False, tag="resume_monitor"):
    """Expects reports again, from the next instant on."""


class RotateToken(msgspec.Struct, frozen=True, gc=False, tag="rotate_token"):
    """Replaces the hash of the ping token."""

    token: str


MonitorChange = PutMonitor | Ping | PauseMonitor | ResumeMonitor | RotateToken


# ---------------------------------------------------------------------- tokens


def new_token() -> str:
    """A ping token: 128 random bits, as 22 characters for URLs."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def is_token(text: str) -> bool:
    """Whether the text has the form of a token."""
    return _TOKEN.match(text) is not None


def hash_token(token: str) -> str:
    """What is stored of a token: nothing leads from it back to the token."""
    return hashlib.sha256(token.encode()).hexdigest()
