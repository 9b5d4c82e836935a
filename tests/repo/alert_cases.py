"""For each alert what its metrics look like in trouble, and when it fires: `test_alerts` has promtool evaluate them."""

from __future__ import annotations

from dataclasses import dataclass

#: Minutes before the trouble begins.
CALM_MIN = 20
_SAMPLES_PER_MIN = 4
_LATE, _COUNT = 'tocsin_lag_seconds_bucket{le="1.0"}', "tocsin_lag_seconds_count"


@dataclass(frozen=True)
class Series:
    """A series with its value, or with its growth per minute, before, in and after the trouble. None: it is not there."""

    name: str
    calm: float | None
    trouble: float | None
    grows: bool = False

    def values(self, lasts_min: float, after_min: float) -> str:
        """Its samples, as promtool reads them."""
        total, samples = 0.0, []
        for value, minutes in ((self.calm, CALM_MIN), (self.trouble, lasts_min), (self.calm, after_min)):
            for _ in range(int(minutes * _SAMPLES_PER_MIN)):
                if self.grows:
                    total += (value or 0) / _SAMPLES_PER_MIN
                shown = total if self.grows else value
                gone = "stale" if samples and not self.grows else "_"
                samples.append(gone if value is None and not total else f"{shown:g}")
        return " ".join(samples)

    def labelled(self) -> str:
        """Its name, with the labels of a node unless it names its own."""
        name, _, labels = self.name.partition("{")
        return f'{name}{{job="tocsin",instance="a:8080"{"," + labels if labels else "}"}'


@dataclass(frozen=True)
class Course:
    """What series in promtool's notation, one sample each 15 seconds, mean to an alert: whether it fires within these
    minutes."""

    alert: str
    series: dict[str, str]
    minutes: int
    fires: bool = False


@dataclass(frozen=True)
class Case:
    """An alert that is still quiet `quiet_min` minutes into the trouble (negative: it has no `for`), fires at `fires_min`,
    and is over `over_min` minutes after the trouble has ended, which takes `lasts_min` (negative: it does not end)."""

    alert: str
    series: tuple[Series, ...]
    quiet_min: float
    fires_min: float
    over_min: float
    lasts_min: float = 15

    @property
    def is_slow(self) -> bool:
        """Whether it shows the same if the rules are evaluated once a minute, which takes a quarter of the time."""
        return all(
            minutes < 0 or (minutes >= 1 and minutes % 1 == 0) for minutes in (self.quiet_min, self.over_min)
        ) and (self.fires_min >= 5 and self.fires_min % 1 == 0)


def _is(name: str, calm: float | None, trouble: float | None) -> Series:
    return Series(name, calm, trouble)


def _grows(name: str, trouble: float, calm: float | None = 0) -> Series:
    return Series(name, calm, trouble, grows=True)


def _case(alert: str, minutes: tuple[float, ...], *series: Series) -> Case:
    """`minutes`: quiet, fires, over, and lasts where that isn't 15."""
    return Case(alert, series, *minutes)


_DISPATCHING = _is("tocsin_dispatching", 1, 1)
_RUNNING = _is("tocsin_agent_running", 1, 1)
#: With these codes nothing is wrong with the machine: the timer is suspended, for which there are alerts of their own.
_SUSPENDING = ("EGRESS_REFUSED", "SECRET_UNREADABLE", "CREDENTIAL_NOT_READY")

CASES = (
    _case("TocsinTimersLate", (1, 5, 35, 20), _grows(_LATE, 0, 60), _grows(_COUNT, 60, 60)),
    _case("TocsinTimersLateForDays", (330, 380, 400, 400), _grows(_LATE, 995, 1000), _grows(_COUNT, 1000, 1000)),
    _case(
        "TocsinRequestsFail",
        (1, 8, 60, 20),
        _grows('tocsin_requests_total{operation="createTimer",status="503"}', 10),
        _grows('tocsin_requests_total{operation="createTimer",status="200"}', 90, 100),
        # A load balancer and Prometheus ask more often than clients do, and a node that restarts is not ready.
        _grows('tocsin_requests_total{operation="readiness",status="503"}', 120, 120),
        _grows('tocsin_requests_total{operation="readiness",status="200"}', 9000, 9000),
        _grows('tocsin_requests_total{operation="health",status="200"}', 9000, 9000),
        _grows('tocsin_requests_total{operation="metrics",status="200"}', 9000, 9000),
    ),
    _case("TocsinClusterSecretDiffers", (0.75, 1.5, 0.5), _is("tocsin_nodes_secret_differs", 0, 1)),
    _case("TocsinNodeNameShared", (0.75, 1.5, 0.5), _is("tocsin_node_names_shared", 0, 1)),
    _case("TocsinShardsWithoutOwner", (0.75, 1.5, 0.5), _is("tocsin_shards_without_owner", 0, 2)),
    _case(
        "TocsinPeerCertificateEnds",
        (59, 61, 0.5, 90),
        _is("tocsin_peer_certificate_expiry_timestamp_seconds", 900_000, 260_000),
    ),
    _case("TocsinNothingFires", (0.25, 1, 0.5), _is("tocsin_dispatching", 1, 0)),
    _case("TocsinOverdue", (0.25, 1, 0.5), _is("tocsin_overdue_seconds", 0, 15)),
    _case("TocsinOverdueLong", (0.75, 1.5, 0.5), _is("tocsin_overdue_seconds", 0, 70)),
    _case(
        "TocsinTimersFail",
        (5, 15, 16, 20),
        _grows('tocsin_attempts_total{namespace="a",outcome="failed"}', 10),
        _grows('tocsin_attempts_total{namespace="a",outcome="done"}', 90, 100),
    ),
    _case("TocsinTimersDeferred", (9.5, 11, 0.5), _is("tocsin_timers_deferred", 10, 2000)),
    _case(
        "TocsinBreakerStaysOpen", (-1, 0.5, 0.5), _is('tocsin_breaker_open_seconds{destination="https://a"}', 890, 910)
    ),
    _case("TocsinFlowNeverDrains", (116, 123, 2, 125), _is('tocsin_flow_timers_waiting{namespace="a",flow="v"}', 0, 5)),
    _case("TocsinTimersExpire", (5, 10, 15), _grows('tocsin_timers_expired_total{namespace="a",status="expired"}', 2)),
    _case(
        "TocsinAttemptsNotSent",
        (4, 7, 11),
        _grows('tocsin_attempts_not_sent_total{code="NO_DESCRIPTOR"}', 4),
        *(_grows(f'tocsin_attempts_not_sent_total{{code="{code}"}}', 4, 4) for code in _SUSPENDING),
    ),
    _case("TocsinCredentialsWithoutToken", (4.5, 6, 0.5), _is("tocsin_credentials_without_token", 0, 1)),
    _case("TocsinTimersRefused", (0.5, 2.5, 21), _grows('tocsin_timers_suspended_total{reason="egress"}', 1)),
    _case("TocsinSecretsUnreadable", (0.5, 2.5, 21), _grows('tocsin_timers_suspended_total{reason="secret"}', 1)),
    _case(
        "TocsinCredentialsUnusable", (24, 27, 21, 60), _grows('tocsin_timers_suspended_total{reason="credential"}', 1)
    ),
    _case("TocsinBadRecords", (-1, 1, 61, 1), _grows('tocsin_timers_suspended_total{reason="bad_record"}', 4)),
    _case("TocsinWritesRefused", (-1, 1, 16, 1), _grows("tocsin_writes_refused_total", 4)),
    _case(
        "TocsinSchedulesMissed",
        (-1, 1, 16, 1),
        _grows('tocsin_occurrences_missed_total{namespace="a",reason="late"}', 4, None),
    ),
    _case(
        "TocsinSchedulesOverlap",
        (10, 25, 61, 30),
        _grows('tocsin_occurrences_missed_total{namespace="a",reason="overlap"}', 1),
    ),
    _case(
        "TocsinSchedulesFail",
        (5, 15, 61, 20),
        _grows('tocsin_occurrences_total{namespace="a",outcome="failed"}', 1),
        _grows('tocsin_occurrences_total{namespace="a",outcome="completed"}', 1, 1),
    ),
    _case("TocsinMonitorsLate", (5, 13, 16), _grows('tocsin_monitors_changed_total{namespace="a",kind="late"}', 1)),
    _case(
        "TocsinMonitorsExcused",
        (-1, 1, 16, 1),
        _grows('tocsin_monitor_periods_total{namespace="a",outcome="excused"}', 4, None),
    ),
    _case(
        "TocsinPingsRefused",
        (5, 14, -1, 20),
        _grows('tocsin_authentication_failures_total{reason="unknown_token"}', 1),
    ),
    _case("TocsinAbsent", (1.75, 2.5, 0.5), _is("tocsin_dispatching", 1, None)),
    _case("TocsinDown", (0.75, 1.5, 0.5), _is("up", 1, 0)),
    _case(
        "TocsinNodePaused", (1.5, 2.5, 0.5), _is("tocsin_dispatching", 1, 0), _is('tocsin_dispatching{node="b"}', 1, 1)
    ),
    _case(
        "TocsinStoreAway",
        (0.25, 1.5, 13),
        _grows("tocsin_heartbeat_failures_total", 8),
        _grows('tocsin_heartbeat_failures_total{node="b"}', 8),
    ),
    _case("TocsinHeartbeatsFail", (0.25, 1.5, 11), _grows("tocsin_heartbeat_failures_total", 8)),
    _case("TocsinClockOff", (0.75, 1.5, 0.5), _is("tocsin_clock_offset_seconds", 0.01, -0.3)),
    _case(
        "TocsinShardsChurn",
        (8, 20, 31, 25),
        _is("tocsin_shards_owned", 4, 4),
        _grows('tocsin_shards_lost_total{reason="fenced"}', 1),
    ),
    _case("TocsinPeersLost", (6, 10, 6), _grows("tocsin_peer_losses_total", 2)),
    _case("TocsinPeersRefused", (-1, 1, 11), _grows('tocsin_peers_refused_total{reason="secret"}', 4)),
    _case("TocsinWritesWithoutOwner", (0.25, 1, 0.5), _is("tocsin_writes_without_owner", 0, 5)),
    _case(
        "TocsinFileDescriptors",
        (4.5, 6, 0.5),
        _DISPATCHING,
        _is("process_open_fds", 100, 900),
        _is("process_max_fds", 1024, 1024),
    ),
    _case("TocsinClientsRefused", (4, 9, 6), _grows('tocsin_clients_refused_total{reason="not HTTP"}', 10)),
    _case(
        "TocsinAuthenticationFails",
        (4, 9, 11),
        _grows('tocsin_authentication_failures_total{reason="unknown_key"}', 60),
    ),
    _case("TocsinKeysExpire", (59, 61, 0.5, 90), _is("tocsin_api_keys_expiring", 0, 1)),
    _case("TocsinAuditWritesFail", (-1, 1, 16), _grows("tocsin_audit_write_failures_total", 4)),
    _case("TocsinAuditExportDrops", (-1, 1, 16), _grows('tocsin_audit_export_dropped_total{sink="file"}', 4)),
    _case("TocsinCommitsFail", (3, 6, 3), _grows('tocsin_commits_total{result="unavailable"}', 2)),
    _case(
        "TocsinCommitsSlow",
        (4, 8, 6),
        _grows('tocsin_commit_duration_seconds_bucket{le="1.0"}', 0, 60),
        _grows('tocsin_commit_duration_seconds_bucket{le="2.5"}', 60, 60),
        _grows('tocsin_commit_duration_seconds_bucket{le="+Inf"}', 60, 60),
    ),
    _case("TocsinEventSinkBehind", (0.5, 2, 0.5), _is("tocsin_sink_behind_seconds", 0, 200)),
    _case("TocsinEventsLost", (-1, 1, 16), _grows('tocsin_sink_lost_total{reason="backlog"}', 30)),
    _case("TocsinInboxAway", (0.5, 2, 0.5), _is("tocsin_inbox_away_seconds", 0, 90)),
    _case("TocsinInboxBehind", (1.5, 3, 0.5), _is("tocsin_inbox_oldest_seconds", 1, 400)),
    _case("TocsinInboxRowsDead", (-1, 1, 0.5), _is("tocsin_inbox_rows_dead", 0, 2)),
    _case("TocsinLoadsFail", (3, 6, 3), _grows("tocsin_load_failures_total", 2)),
    _case("TocsinWritesPile", (0.25, 1, 0.5), _is("tocsin_writes_waiting", 10, 45_000)),
    _case("TocsinStoreThrottled", (4, 8, 6), _grows('tocsin_store_requests_repeated_total{reason="throttled"}', 300)),
    _case("TocsinDiskFilling", (14, 59, 40, 60), _grows("tocsin_store_free_bytes", -3e9, 1e10)),
    _case("TocsinShardTooLarge", (14, 16, 0.5, 21), _is("tocsin_shard_size_bytes_max", 1e9, 9e9)),
    _case("TocsinAgentNotRunning", (0.25, 1, 0.5), _is("tocsin_agent_running", 1, 0)),
    _case("TocsinAgentNoPoll", (0.5, 1.5, -1), _RUNNING, _is("tocsin_agent_last_poll_timestamp_seconds", 1200, 1200)),
    _case(
        "TocsinAgentPermanentErrors",
        (-1, 1, 16, 1),
        _grows('tocsin_agent_dead_letters_total{subscriber="s",type="t"}', 4, None),
    ),
    _case("TocsinAgentCallsRescued", (4, 6, 16), _grows('tocsin_agent_calls_rescued_total{action="dispatched"}', 4)),
    _case(
        "TocsinAgentStartsLate",
        (4, 8, 6),
        _grows('tocsin_agent_start_lag_seconds_bucket{le="1.0"}', 0, 60),
        _grows('tocsin_agent_start_lag_seconds_bucket{le="2.5"}', 60, 60),
        _grows('tocsin_agent_start_lag_seconds_bucket{le="+Inf"}', 60, 60),
    ),
    _case(
        "TocsinAgentOutboxBehind",
        (4, 8, 6),
        _grows('tocsin_agent_outbox_lag_seconds_bucket{le="5.0"}', 0, 60),
        _grows('tocsin_agent_outbox_lag_seconds_bucket{le="10.0"}', 60, 60),
        _grows('tocsin_agent_outbox_lag_seconds_bucket{le="+Inf"}', 60, 60),
    ),
    _case("TocsinAgentBrokerUnreachable", (0.25, 1, 0.5), _RUNNING, _is("tocsin_agent_broker_connected", 1, 0)),
    _case("TocsinAgentPollFailing", (-1, 1, 6), _grows('tocsin_agent_polls_total{result="failed"}', 8)),
)

_DONE = _grows('tocsin_attempts_total{namespace="a",outcome="done"}', 10, 10)
_COMPLETED = _grows('tocsin_occurrences_total{namespace="a",source="regular",outcome="completed"}', 1, 1)

#: The first of its kind that ever happens, many times before the first sample, and then never again.
BURSTS = (
    _case(
        "TocsinTimersFail", (1, 7, -1), _is('tocsin_attempts_total{namespace="a",outcome="failed"}', None, 500), _DONE
    ),
    _case(
        "TocsinTimersExpire", (1, 7, -1), _is('tocsin_timers_expired_total{namespace="a",status="failed"}', None, 500)
    ),
    _case("TocsinAttemptsNotSent", (1, 7, -1), _is('tocsin_attempts_not_sent_total{code="NO_MEMORY"}', None, 1)),
    _case(
        "TocsinSchedulesMissed",
        (-1, 1, -1),
        _is('tocsin_occurrences_missed_total{namespace="a",reason="late"}', None, 9),
    ),
    _case(
        "TocsinSchedulesOverlap",
        (1, 17, -1, 20),
        _is('tocsin_occurrences_missed_total{namespace="a",reason="overlap"}', None, 900),
    ),
    _case(
        "TocsinSchedulesFail",
        (1, 7, -1),
        _is('tocsin_occurrences_total{namespace="a",source="regular",outcome="failed"}', None, 50),
        _COMPLETED,
    ),
    _case("TocsinMonitorsLate", (-1, 2, -1), _is('tocsin_monitors_changed_total{namespace="a",kind="late"}', None, 50)),
    _case(
        "TocsinMonitorsExcused",
        (-1, 1, -1),
        _is('tocsin_monitor_periods_total{namespace="a",outcome="excused"}', None, 5),
    ),
)


def _attempts(outcome: str) -> str:
    return f'tocsin_attempts_total{{job="tocsin",instance="a:8080",namespace="a",outcome="{outcome}"}}'


def _occurrences(outcome: str) -> str:
    return f'tocsin_occurrences_total{{job="tocsin",instance="a:8080",namespace="a",outcome="{outcome}"}}'


def _heartbeats(node: str) -> str:
    return f'tocsin_heartbeat_failures_total{{job="tocsin",instance="{node}:8080"}}'


_PINGS_REFUSED = 'tocsin_authentication_failures_total{job="tocsin",instance="a:8080",reason="unknown_token"}'
_AGENT_RUNS, _LAST_POLL = (
    f'{name}{{job="tocsin",instance="a:8080"}}'
    for name in ("tocsin_agent_running", "tocsin_agent_last_poll_timestamp_seconds")
)
_WAITING = 'tocsin_flow_timers_waiting{job="tocsin",instance="a:8080",namespace="a",flow="v"}'

#: Trouble of other kinds, and what resembles it.
COURSES = (
    # A node that restarts is not ready, and a load balancer asks it again and again.
    Course(
        "TocsinRequestsFail",
        {
            'tocsin_requests_total{job="tocsin",instance="a:8080",operation="createTimer",status="200"}': "0+25x240",
            'tocsin_requests_total{job="tocsin",instance="a:8080",operation="readiness",status="503"}': "0x80 1+2x80 160x80",
        },
        60,
    ),
    # A job that runs now and then pings a URL that is no longer there; and a single ping to such a URL.
    Course("TocsinPingsRefused", {_PINGS_REFUSED: "0x40 1x400 2x60"}, 125, fires=True),
    Course("TocsinPingsRefused", {_PINGS_REFUSED: "0x40 1x460"}, 125),
    # An agent that has never polled since it took over; and a standby node.
    Course("TocsinAgentNoPoll", {_AGENT_RUNS: "0x40 1x20", _LAST_POLL: "0x60"}, 14, fires=True),
    Course("TocsinAgentNoPoll", {_AGENT_RUNS: "0x60", _LAST_POLL: "0x60"}, 14),
    # One node has an old password.
    Course("TocsinStoreAway", {_heartbeats("a"): "0+5x120", _heartbeats("b"): "0x120"}, 30),
    # The store goes away together with a third node.
    Course(
        "TocsinStoreAway",
        {
            _heartbeats("a"): "0x80 0+5x40",
            _heartbeats("b"): "0x80 0+5x40",
            _heartbeats("c"): "0x80 stale",
        },
        24,
        fires=True,
    ),
    # All other nodes crash at once.
    Course("TocsinPeersLost", {'tocsin_peer_losses_total{job="tocsin",instance="a:8080"}': "0x80 30x80"}, 40),
    # A flow whose timers wait for two minutes of each thirty: when none of them is left, its series is gone.
    Course("TocsinFlowNeverDrains", {_WAITING: " ".join(["5x7 stale _x111"] * 8)}, 240),
    # One that never drains, on a node that restarts.
    Course("TocsinFlowNeverDrains", {_WAITING: "5x360 stale _x2 5x360"}, 140, fires=True),
    # A new cluster whose node restarts five minutes later: few of those fail that were counted before and since.
    Course(
        "TocsinTimersFail",
        {
            _attempts("failed"): "_x40 1+1x20 stale",
            _attempts("done"): "_x40 30+30x20 0+1x60",
        },
        40,
    ),
    Course(
        "TocsinSchedulesFail",
        {
            _occurrences("failed"): "_x40 1+1x3 4x16 stale",
            _occurrences("completed"): "_x40 10+10x20 0+0.1x60",
        },
        40,
    ),
    # The same, where enough happened only with what was counted before.
    Course(
        "TocsinTimersExpire",
        {'tocsin_timers_expired_total{job="tocsin",instance="a:8080",namespace="a"}': "_x40 1x4 4x15 1x5 3x60"},
        40,
        fires=True,
    ),
    Course(
        "TocsinSchedulesOverlap",
        {
            'tocsin_occurrences_missed_total{job="tocsin",instance="a:8080",namespace="a",reason="overlap"}': (
                "_x40 1x4 4x15 1x5 3x120"
            )
        },
        60,
        fires=True,
    ),
    Course(
        "TocsinMonitorsLate",
        {
            'tocsin_monitors_changed_total{job="tocsin",instance="a:8080",namespace="a",kind="late"}': (
                "_x40 1x4 8x15 1x5 6x60"
            )
        },
        20,
        fires=True,
    ),
)
