"""The rate of log lines that other programs can cause is limited."""

from __future__ import annotations

from structlog.testing import capture_logs

from tocsin.agent.events import AgentLeadershipLost, AgentStepFailed
from tocsin.ports.observer import PeerRefused
from tocsin.telemetry.agent_logs import WARNING_LINES_PER_SECOND_MAX, AgentLog
from tocsin.telemetry.logs import REFUSED_PEER_LINES_PER_SECOND_MAX, EventLog


def test_refused_peers_are_logged_at_a_limited_rate_and_counted() -> None:
    now_s = 1.0
    with capture_logs() as lines:
        log = EventLog(lambda: now_s)
        for _ in range(50):
            log(PeerRefused("10.0.0.9:1", "it doesn't know the cluster's secret"))
        assert len(lines) == REFUSED_PEER_LINES_PER_SECOND_MAX
        now_s = 2.0
        log(PeerRefused("10.0.0.9:1", "it doesn't know the cluster's secret"))
    assert lines[-1]["suppressed"] == 50 - REFUSED_PEER_LINES_PER_SECOND_MAX
    assert lines[-1]["log_level"] == "warning"


def test_leadership_events_are_logged_beyond_the_rate_limit() -> None:
    with capture_logs() as lines:
        log = AgentLog(lambda: 1.0)
        for _ in range(50):
            log(AgentStepFailed("outbox mark", "node two has taken over the agent"))
        log(AgentLeadershipLost("node two has taken over the agent"))
    assert [line["event"] for line in lines] == ["agent step failed"] * WARNING_LINES_PER_SECOND_MAX + [
        "agent leadership lost"
    ]
