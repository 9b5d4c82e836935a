"""Log lines that clients and peers can cause are rate-limited."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import capture_logs

from tocsin.ports.batches import BatchAccepted
from tocsin.ports.observer import (
    BatchFailed,
    ClaimFailed,
    HeartbeatFailed,
    LoadFailed,
    PeerRefused,
    TimerSuspended,
    WriteRefused,
)
from tocsin.service_calls.events import AgentLeadershipLost, AgentStepFailed
from tocsin.telemetry.logs import EventLog


def test_log_lines_about_refused_peers_are_limited_and_counted() -> None:
    now_s = 1.0
    with capture_logs() as lines:
        log = EventLog(lambda: now_s)
        for _ in range(50):
            log(PeerRefused("10.0.0.9:1", "it doesn't know the cluster's secret"))
        assert len(lines) == 5
        now_s = 2.0
        log(PeerRefused("10.0.0.9:1", "it doesn't know the cluster's secret"))
    assert lines[-1]["suppressed"] == 45
    assert lines[-1]["log_level"] == "warning"


def test_an_outage_is_one_line_for_each_kind_of_failure_with_the_shards_of_the_others() -> None:
    now_s = 1.0
    with capture_logs() as lines:
        log = EventLog(lambda: now_s)
        for shard in range(16):
            log(LoadFailed(shard, "refused"))
            log(BatchFailed(0, 1, "unavailable", "refused"))
            log(BatchFailed(0, 1, "unknown", "refused"))
            log(ClaimFailed(shard, "refused"))
            log(HeartbeatFailed("refused"))
        assert [line["event"] for line in lines] == [
            "load failed", "batch failed", "batch failed", "claim failed", "heartbeat failed",
        ]  # fmt: skip
        now_s += 10
        log(LoadFailed(3, "refused"))
        log(BatchFailed(0, 1, "unknown", "refused"))
    *_, load, batch = lines
    assert (load["shard_id"], load["suppressed"], load["suppressed_shards"]) == (3, 15, list(range(1, 16)))
    assert (batch["kind"], batch["suppressed"], "suppressed_shards" in batch) == ("unknown", 15, False)
    assert {line["log_level"] for line in lines} == {"error", "warning"}


def test_changes_of_the_agents_node_are_logged_even_during_many_failures() -> None:
    with capture_logs() as lines:
        log = EventLog(lambda: 1.0, "tocsin.agent")
        for _ in range(50):
            log(AgentStepFailed("outbox acknowledgement", "node two has taken over the agent"))
        log(AgentLeadershipLost("node two has taken over the agent"))
    assert [line["event"] for line in lines] == ["agent step failed"] * 20 + ["agent leadership lost"]


@pytest.fixture
def lines_of_debug(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Lines of this level are written, whatever a server in this process has chosen."""
    caplog.set_level(logging.DEBUG)
    former = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG))
    yield
    structlog.configure(**former)


@pytest.mark.usefixtures("lines_of_debug")
def test_the_line_of_a_large_batch_has_the_first_timers_and_their_number() -> None:
    ids, lags = tuple(f"t{n}" for n in range(100)), tuple(range(100))
    with capture_logs() as lines:
        log = EventLog(lambda: 1.0)
        log(BatchAccepted("shop", "msg_1", ids, lags, 9, "http://127.0.0.1:9"))
        log(BatchAccepted("shop", "msg_2", ids[:5], (), 9, "http://127.0.0.1:9"))
    large, small = lines
    assert (large["timer_ids"], large["timer_ids_total"]) == (("t0", "t1", "t2", "t3", "t4"), 100)
    assert (large["lags_us"], large["lags_us_total"]) == ((0, 1, 2, 3, 4), 100)
    assert small["timer_ids"] == ids[:5]
    assert "timer_ids_total" not in small


def test_lines_about_single_timers_are_limited() -> None:
    now_s = 1.0
    with capture_logs() as lines:
        log = EventLog(lambda: now_s)
        for n in range(50):
            log(WriteRefused(n, bytes(16), "too large"))
            log(TimerSuspended(n, bytes(16), "bad_record: no JSON"))
        assert len(lines) == 10
        now_s = 2.0
        log(WriteRefused(3, bytes(16), "too large"))
    assert lines[-1]["suppressed"] == 45
    assert 49 not in lines[-1]["suppressed_shards"]
    assert 5 in lines[-1]["suppressed_shards"]
