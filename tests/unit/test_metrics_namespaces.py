"""Series of namespaces are bounded."""

from __future__ import annotations

from tocsin.ports.observer import AttemptFinished, TimersCreated
from tocsin.telemetry.metrics import GAUGES, Metrics


def test_namespaces_beyond_the_limit_share_a_series() -> None:
    metrics = Metrics(lambda: dict.fromkeys(GAUGES, 0.0), namespaces_max=2)
    for number in range(1_000):
        metrics(TimersCreated(f"n{number}", 3))
        metrics(AttemptFinished(0, f"n{number}", "t", 1, "done", None, 0, 0, "http://a:80"))
    lines = [
        line
        for line in metrics.exposition()[0].decode().splitlines()
        if line.startswith("tocsin_timers_created_total{")
    ]
    assert lines == [
        'tocsin_timers_created_total{namespace="n0"} 3.0',
        'tocsin_timers_created_total{namespace="n1"} 3.0',
        'tocsin_timers_created_total{namespace="tocsin.other"} 2994.0',
    ]
    # A namespace that is known keeps its series.
    metrics(TimersCreated("n1", 1))
    text = metrics.exposition()[0].decode()
    assert 'tocsin_timers_created_total{namespace="n1"} 4.0' in text
    assert 'tocsin_attempts_total{namespace="tocsin.other",outcome="done"} 998.0' in text
