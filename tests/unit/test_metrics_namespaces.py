"""Series of namespaces are bounded, and shared by the events of single callbacks and of batches."""

from __future__ import annotations

from tocsin.ports.batches import BatchAccepted
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


def test_the_timers_that_a_batch_s_receiver_accepted_count_like_single_ones() -> None:
    singly, together = (Metrics(lambda: dict.fromkeys(GAUGES, 0.0)) for _ in range(2))
    lags_us = (0, 20_000, 7_000_000)
    for number, lag_us in enumerate(lags_us):
        singly(AttemptFinished(0, "a", f"t{number}", 1, "done", None, lag_us, 3_000, "http://a:80"))
    together(BatchAccepted("a", "batch_1", ("t0", "t1", "t2"), lags_us, 3_000, "http://a:80"))

    def counted(metrics: Metrics) -> list[str]:
        names = ("tocsin_attempts_total", "tocsin_lag_seconds", "tocsin_callback_duration_seconds")
        return [line for line in metrics.exposition()[0].decode().splitlines() if line.startswith(names)]

    assert counted(together) == counted(singly)
    assert 'tocsin_attempts_total{namespace="a",outcome="done"} 3.0' in counted(together)
    # A series that two events increase is shown once.
    assert sum(line.startswith("tocsin_lag_seconds_count") for line in counted(together)) == 1
