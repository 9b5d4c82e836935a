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
class Case:
    """An alert that is still quiet `quiet_min` minutes into the trouble (negative: it has no `for`), fires at `fires_min`,
    and is over `over_min` minutes after the trouble has ended, which takes `lasts_min` (negative: it does not end)."""

    alert: str
    series: tuple[Series, ...]
    quiet_min: float
    fires_min: float
    over_min: float
    lasts_min: float = 30


def _is(name: str, calm: float | None, trouble: float | None) -> Series:
    return Series(name, calm, trouble)


def _grows(name: str, trouble: float, calm: float | None = 0) -> Series:
    return Series(name, calm, trouble, grows=True)


def _case(alert: str, *series: Series, quiet: float, fires: float, over: float, lasts: float = 30) -> Case:
    return Case(alert, series, quiet, fires, over, lasts)


_DISPATCHING = _is("tocsin_dispatching", 1, 1)
_RUNNING = _is("tocsin_agent_running", 1, 1)

CASES = (
    _case("TocsinTimersLate", _grows(_LATE, 0, 60), _grows(_COUNT, 60, 60), quiet=1, fires=5, over=35, lasts=20),
    _case(
        "TocsinTimersLateForDays",
        _grows(_LATE, 995, 1000),
        _grows(_COUNT, 1000, 1000),
        quiet=330,
        fires=380,
        over=400,
        lasts=400,
    ),
    _case(
        "TocsinRequestsFail",
        _grows('tocsin_requests_total{operation="createTimer",status="503"}', 10),
        _grows('tocsin_requests_total{operation="createTimer",status="200"}', 90, 100),
        quiet=1,
        fires=8,
        over=60,
        lasts=20,
    ),
    _case("TocsinClusterSecretDiffers", _is("tocsin_nodes_secret_differs", 0, 1), quiet=0.75, fires=1.5, over=0.5),
    _case("TocsinNodeNameShared", _is("tocsin_node_names_shared", 0, 1), quiet=0.75, fires=1.5, over=0.5),
    _case("TocsinShardsWithoutOwner", _is("tocsin_shards_without_owner", 0, 2), quiet=0.75, fires=1.5, over=0.5),
    _case(
        "TocsinPeerCertificateEnds",
        _is("tocsin_peer_certificate_expiry_timestamp_seconds", 900_000, 260_000),
        quiet=59,
        fires=61,
        over=0.5,
        lasts=90,
    ),
    _case("TocsinNothingFires", _is("tocsin_dispatching", 1, 0), quiet=0.25, fires=1, over=0.5),
    _case("TocsinOverdue", _is("tocsin_overdue_seconds", 0, 15), quiet=0.25, fires=1, over=0.5),
    _case("TocsinOverdueLong", _is("tocsin_overdue_seconds", 0, 70), quiet=0.75, fires=1.5, over=0.5),
    _case(
        "TocsinTimersFail",
        _grows('tocsin_attempts_total{namespace="a",outcome="failed"}', 10),
        _grows('tocsin_attempts_total{namespace="a",outcome="done"}', 90, 100),
        quiet=5,
        fires=15,
        over=16,
    ),
    _case("TocsinTimersDeferred", _is("tocsin_timers_deferred", 10, 2000), quiet=9.5, fires=11, over=0.5),
    _case(
        "TocsinTimersExpire",
        _grows('tocsin_timers_expired_total{namespace="a",status="expired"}', 2),
        quiet=5,
        fires=10,
        over=15,
    ),
    _case(
        "TocsinAttemptsNotSent",
        _grows('tocsin_attempts_not_sent_total{code="NO_DESCRIPTOR"}', 4),
        quiet=4,
        fires=7,
        over=11,
    ),
    _case(
        "TocsinTimersRefused",
        _grows('tocsin_timers_suspended_total{reason="egress"}', 1),
        quiet=0.5,
        fires=2.5,
        over=21,
    ),
    _case(
        "TocsinBadRecords",
        _grows('tocsin_timers_suspended_total{reason="bad_record"}', 4),
        quiet=-1,
        fires=1,
        over=61,
        lasts=1,
    ),
    _case("TocsinWritesRefused", _grows("tocsin_writes_refused_total", 4), quiet=-1, fires=1, over=16, lasts=1),
    _case(
        "TocsinSchedulesMissed",
        _grows('tocsin_occurrences_missed_total{namespace="a",reason="late"}', 4, None),
        quiet=-1,
        fires=1,
        over=16,
        lasts=1,
    ),
    _case(
        "TocsinSchedulesOverlap",
        _grows('tocsin_occurrences_missed_total{namespace="a",reason="overlap"}', 1),
        quiet=10,
        fires=25,
        over=61,
    ),
    _case(
        "TocsinSchedulesFail",
        _grows('tocsin_occurrences_total{namespace="a",outcome="failed"}', 1),
        _grows('tocsin_occurrences_total{namespace="a",outcome="completed"}', 1, 1),
        quiet=5,
        fires=15,
        over=61,
    ),
    _case("TocsinAbsent", _is("tocsin_dispatching", 1, None), quiet=1.75, fires=2.5, over=0.5),
    _case("TocsinDown", _is("up", 1, 0), quiet=0.75, fires=1.5, over=0.5),
    _case(
        "TocsinNodePaused",
        _is("tocsin_dispatching", 1, 0),
        _is('tocsin_dispatching{node="b"}', 1, 1),
        quiet=1.5,
        fires=2.5,
        over=0.5,
    ),
    _case("TocsinHeartbeatsFail", _grows("tocsin_heartbeat_failures_total", 8), quiet=0.25, fires=1.5, over=11),
    _case("TocsinClockOff", _is("tocsin_clock_offset_seconds", 0.01, -0.3), quiet=0.75, fires=1.5, over=0.5),
    _case(
        "TocsinShardsChurn",
        _is("tocsin_shards_owned", 4, 4),
        _grows('tocsin_shards_lost_total{reason="fenced"}', 1),
        quiet=8,
        fires=20,
        over=31,
    ),
    _case("TocsinPeersLost", _grows("tocsin_peer_losses_total", 2), quiet=5, fires=10, over=11),
    _case("TocsinPeersRefused", _grows('tocsin_peers_refused_total{reason="secret"}', 4), quiet=-1, fires=1, over=11),
    _case("TocsinWritesWithoutOwner", _is("tocsin_writes_without_owner", 0, 5), quiet=0.25, fires=1, over=0.5),
    _case(
        "TocsinFileDescriptors",
        _DISPATCHING,
        _is("process_open_fds", 100, 900),
        _is("process_max_fds", 1024, 1024),
        quiet=4.5,
        fires=6,
        over=0.5,
    ),
    _case(
        "TocsinClientsRefused", _grows('tocsin_clients_refused_total{reason="not HTTP"}', 10), quiet=4, fires=9, over=6
    ),
    _case(
        "TocsinAuthenticationFails",
        _grows('tocsin_authentication_failures_total{reason="unknown_key"}', 60),
        quiet=4,
        fires=9,
        over=11,
    ),
    _case("TocsinKeysExpire", _is("tocsin_api_keys_expiring", 0, 1), quiet=59, fires=61, over=0.5, lasts=90),
    _case("TocsinAuditWritesFail", _grows("tocsin_audit_write_failures_total", 4), quiet=-1, fires=1, over=16),
    _case("TocsinCommitsFail", _grows('tocsin_commits_total{result="unavailable"}', 2), quiet=3, fires=6, over=3),
    _case(
        "TocsinCommitsSlow",
        _grows('tocsin_commit_duration_seconds_bucket{le="1.0"}', 0, 60),
        _grows('tocsin_commit_duration_seconds_bucket{le="2.5"}', 60, 60),
        _grows('tocsin_commit_duration_seconds_bucket{le="+Inf"}', 60, 60),
        quiet=4,
        fires=8,
        over=6,
    ),
    _case("TocsinLoadsFail", _grows("tocsin_load_failures_total", 2), quiet=3, fires=6, over=3),
    _case("TocsinWritesPile", _is("tocsin_writes_waiting", 10, 45_000), quiet=0.25, fires=1, over=0.5),
    _case(
        "TocsinStoreThrottled",
        _grows('tocsin_store_requests_repeated_total{reason="throttled"}', 300),
        quiet=4,
        fires=8,
        over=6,
    ),
    _case("TocsinDiskFilling", _grows("tocsin_store_free_bytes", -3e9, 1e10), quiet=14, fires=59, over=40, lasts=60),
    _case("TocsinShardTooLarge", _is("tocsin_shard_size_bytes_max", 1e9, 9e9), quiet=14, fires=16, over=0.5),
    _case("TocsinAgentNotRunning", _is("tocsin_agent_running", 1, 0), quiet=0.25, fires=1, over=0.5),
    _case(
        "TocsinAgentNoPoll",
        _RUNNING,
        _is("tocsin_agent_last_poll_timestamp_seconds", 1200, 1200),
        quiet=0.5,
        fires=1.5,
        over=-1,
    ),
    _case(
        "TocsinAgentPermanentErrors",
        _grows('tocsin_agent_dead_letters_total{subscriber="s",type="t"}', 4, None),
        quiet=-1,
        fires=1,
        over=16,
        lasts=1,
    ),
    _case(
        "TocsinAgentCallsRescued",
        _grows('tocsin_agent_calls_rescued_total{action="dispatched"}', 4),
        quiet=4,
        fires=6,
        over=16,
    ),
    _case(
        "TocsinAgentStartsLate",
        _grows('tocsin_agent_start_lag_seconds_bucket{le="1.0"}', 0, 60),
        _grows('tocsin_agent_start_lag_seconds_bucket{le="2.5"}', 60, 60),
        _grows('tocsin_agent_start_lag_seconds_bucket{le="+Inf"}', 60, 60),
        quiet=4,
        fires=8,
        over=6,
    ),
    _case(
        "TocsinAgentOutboxBehind",
        _grows('tocsin_agent_outbox_lag_seconds_bucket{le="5.0"}', 0, 60),
        _grows('tocsin_agent_outbox_lag_seconds_bucket{le="10.0"}', 60, 60),
        _grows('tocsin_agent_outbox_lag_seconds_bucket{le="+Inf"}', 60, 60),
        quiet=4,
        fires=8,
        over=6,
    ),
    _case(
        "TocsinAgentBrokerUnreachable",
        _RUNNING,
        _is("tocsin_agent_broker_connected", 1, 0),
        quiet=0.25,
        fires=1,
        over=0.5,
    ),
    _case("TocsinAgentPollFailing", _grows('tocsin_agent_polls_total{result="failed"}', 8), quiet=-1, fires=1, over=6),
)
