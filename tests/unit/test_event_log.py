"""Log lines that clients and peers can cause are rate-limited."""

from __future__ import annotations

from structlog.testing import capture_logs

from tocsin.ports.observer import PeerRefused
from tocsin.service_calls.events import AgentLeadershipLost, AgentStepFailed
from tocsin.telemetry.agent_logs import WARNING_LINES_PER_SECOND_MAX, AgentLog
from tocsin.telemetry.logs import REFUSED_PEER_LINES_PER_SECOND_MAX, EventLog


def test_log_lines_about_refused_peers_are_limited_and_counted() -> None:
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


def test_changes_of_the_agents_node_are_logged_even_during_many_failures() -> None:
    with capture_logs() as lines:
        log = AgentLog(lambda: 1.0)
        for _ in range(50):
            log(AgentStepFailed("outbox acknowledgement", "node two has taken over the agent"))
        log(AgentLeadershipLost("node two has taken over the agent"))
    assert [line["event"] for line in lines] == ["agent step failed"] * WARNING_LINES_PER_SECOND_MAX + [
        "agent leadership lost"
    ]
