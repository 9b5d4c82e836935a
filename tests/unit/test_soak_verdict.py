"""The soak's ledger and verdict: each broken promise is reported, and nothing else."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from tests.drills.soak.ledger import Ledger
from tests.drills.soak.samples import NodeSample, Sample, parse_metrics
from tests.drills.soak.verdict import table, verdict

COUNT, INTERVAL_US = 40, 30_000_000
SERIES = frozenset(f"series{number}" for number in range(100))
NODE = NodeSample(
    used_kib=60_000, rss_kib=100_000, heap_kib=70_000, descriptors=40, connections=60, threads=9, series=SERIES, purged=0,
    reasons=0, log_bytes=1_000, stall_ms=5.0,
)  # fmt: skip
SAMPLE = Sample(
    at=0, nodes=(NODE,), files={"database": 1_000_000}, duplicates=0, steal=0.0, busy=0.3, drill_stall_ms=5.0
)


def run(node: Callable[[int], dict[str, Any]] | None = None, **more: Callable[[int], Any]) -> list[Sample]:
    """Samples of a steady run; `node` and `more` return what differs in the sample of a number."""
    return [
        dataclasses.replace(
            SAMPLE,
            at=number * INTERVAL_US,
            nodes=(dataclasses.replace(NODE, **(node(number) if node else {})),),
            **{name: of(number) for name, of in more.items()},
        )
        for number in range(COUNT)
    ]


def lagging(last_ms: float) -> Ledger:
    """A ledger with a call each second, 10 ms late, and in the last quarter later."""
    ledger, end = Ledger(), COUNT * INTERVAL_US
    for arrived in range(0, end, 1_000_000):
        ledger.late(arrived, int(1e3 * (last_ms if arrived > end * 0.7 else 10)))
    return ledger


def judged(
    samples: list[Sample], ledger: Ledger | None = None, turnovers: float = 8, events_of_pages: int = 1
) -> tuple[list[str], list[str]]:
    """What is wrong, and the remarks."""
    ledger = ledger or Ledger()
    ledger.counted["events of pages"] += events_of_pages
    found = verdict(samples, ledger, COUNT * INTERVAL_US, turnovers=turnovers)
    return found.wrong, found.remarks


def test_a_steady_run_keeps_every_promise() -> None:
    # What grows before the middle is what a node fills once.
    assert judged(run(lambda number: {"used_kib": 60_000 + min(number, 10) * 3_000})) == ([], [])


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (lambda number: {"used_kib": 60_000 + number * 60}, "its memory in use grew by 1."),
        (lambda number: {"descriptors": 40 + number}, "descriptors more at the end"),
        (lambda number: {"series": SERIES | {f"of{each}" for each in range(number)}}, "series that it did not have"),
    ],
)
def test_what_grows_after_the_middle_is_reported(node: Callable[[int], dict[str, Any]], words: str) -> None:
    (wrong,), remarks = judged(run(node))
    assert words in wrong and not remarks


def test_resident_memory_that_grows_is_only_a_remark() -> None:
    wrong, (remark,) = judged(run(lambda number: {"rss_kib": 100_000 + number * 60}))
    assert not wrong and "its resident memory grew by 1." in remark


def test_less_than_a_mebibyte_is_no_growth() -> None:
    assert judged(run(lambda number: {"used_kib": 60_000 + number * 30})) == ([], [])


def test_a_longer_lag_is_a_fault_only_where_the_machine_had_time() -> None:
    (wrong,), _ = judged(run(), lagging(100))
    assert "the p99 of the lag was 10.0 ms in the second quarter and 100.0 ms in the last" in wrong
    for shared in ({"steal": lambda _: 0.2}, {"busy": lambda _: 0.98}):
        wrong, remarks = judged(run(**shared), lagging(100))
        assert not wrong and len(remarks) == 1
    assert judged(run(), lagging(14)) == ([], [])


def test_a_second_call_of_an_attempt_needs_a_reason() -> None:
    came = {"duplicates": lambda number: int(number >= 20)}
    (wrong,), _ = judged(run(**came))
    assert "1 attempts arrived twice in sample 20, without a reason" in wrong
    wrong, (remark,) = judged(run(lambda number: {"reasons": int(number >= 19)}, **came))
    assert not wrong and "with a reason" in remark
    assert judged(run(lambda number: {"reasons": int(number >= 5)}, **came))[0]


def test_pages_have_to_be_there_and_to_follow() -> None:
    ledger = Ledger()
    ledger.counted["pages 404"] += 2
    ledger.counted["pages 200"] += 1
    assert judged(run(), ledger, events_of_pages=0) == (["pages 404: 2", "no event came to a page"], [])


def test_a_retention_that_turned_over_too_seldom_is_remarked() -> None:
    assert judged(run(), turnovers=2)[1] == ["retention turned over 2.0 times only: run it for longer"]


def test_the_ledger_reports_what_is_lost_early_or_fires_after_its_end() -> None:
    ledger = Ledger()

    def fired(timer: str, arrived: int, firing: str = "first") -> None:
        ledger.fired(
            timer, firing=f"{timer} {firing}", attempt=1, fired_at=arrived, arrived=arrived, punctual=True
        )  # fmt: skip

    ledger.promise("a/kept", 1_000)
    fired("a/kept", 1_500)
    ledger.promise("a/early", 1_000)
    fired("a/early", 999)
    ledger.promise("a/deleted", 9_000)
    ledger.end("a/deleted", 500)
    fired("a/deleted", 9_001)
    fired("a/unknown", 1_000)
    ledger.promise("a/lost", 1_000)
    ledger.promise("a/refused", 1_000)
    ledger.take_back("a/refused")
    ledger.promise("a/later", 99_000)
    fired("a/kept", 1_600)
    assert ledger.wrong == [
        "a/early came 1 us early",
        "a/deleted fired 8501 us after it was acknowledged as ended",
        "a/unknown was never created",
    ]
    assert ledger.overdue(10_000) == ["a/lost"]
    assert ledger.counted["duplicates"] == 1
    assert ledger.lags_ms(0, 2_000) == [0.5]
    assert judged(run(), ledger)[0][:3] == ledger.wrong


def test_an_occurrence_that_is_left_out_is_lost() -> None:
    ledger = Ledger()
    for second in (5, 6, 8, 7, 10):
        instant = second * 1_000_000
        ledger.occurred("a/s", instant=instant, firing=str(second), attempt=1, arrived=instant + 1_000)
    assert ledger.skipped() == ["a/s at second 9"]
    assert not ledger.wrong


def test_the_table_has_a_column_for_each_quarter() -> None:
    shown = table(run(lambda number: {"purged": number * 10}), lagging(10)).splitlines()
    assert shown[0].split() == ["1st", "2nd", "3rd", "4th", "quarter"]
    assert next(line for line in shown if "rows purged" in line).split()[-4:] == ["90", "90", "90", "90"]
    assert next(line for line in shown if "lag p99" in line).split()[-4:] == ["10.0", "10.0", "10.0", "10.0"]


def test_series_are_read_with_their_labels() -> None:
    text = '# HELP a x\na_total 3.0\nb{c="d e",f="{}"} 1.5e+3\n'
    assert parse_metrics(text) == {"a_total": 3.0, 'b{c="d e",f="{}"}': 1500.0}
