"""A process's vital data: what was measured within the last minute."""

from __future__ import annotations

import pytest

from tocsin.ports.observer import BatchCommitted
from tocsin.telemetry import vitals
from tocsin.telemetry.vitals import VitalSigns

GAUGES = {
    "tocsin_callbacks_in_flight": 2.0,
    "tocsin_messages_in_flight": 5.0,
    "tocsin_callback_connections": 3.0,
    "tocsin_client_connections": 4.0,
}


def test_vitals_are_those_of_the_last_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1_000.0
    monkeypatch.setattr(vitals.time, "monotonic", lambda: now_s)
    signs = VitalSigns(lambda: GAUGES)
    signs(BatchCommitted(0, 1, 1, 0, 0, 4_000))
    signs.read(700)
    signs.tick(0.025)
    report = signs.report()
    assert (report.in_flight, report.callback_connections, report.client_connections) == (7, 3, 4)
    assert (report.loop_lag_ms, report.commit_p99_ms, report.read_p50_ms) == (25.0, 4.0, 0.7)
    assert report.memory_bytes is None or report.memory_bytes > 1_000_000
    for _ in range(7):
        now_s += 10
        signs.tick(0.001)
    report = signs.report()
    assert (report.uptime_s, report.loop_lag_ms, report.commit_p99_ms, report.read_p50_ms) == (70, 1.0, None, None)
