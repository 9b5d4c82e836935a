"""The content of the overview: the health sentence, tiles and tables, with and without missing data."""

from __future__ import annotations

import pytest

from tocsin.ports.statistics import StatisticsSlot
from tocsin.web.pages.overview.cluster_statistics import Gap
from tocsin.web.pages.overview.content import (
    Health,
    Period,
    call_tiles,
    health,
    health_with_gaps,
    minutes,
    tiles,
    with_gaps,
)

MINUTE = 60_000_000
UNRESPONSIVE = Gap("b", 5, None, False, "does not respond")
STOPPED = Gap("c", 5, 9, True, "has stopped")
NO_GAPS: dict[Period, list[Gap]] = {period: [] for period in Period}
REST = Health("On time. 3 fires in the last minute.", "calm")


def slot(begins_us: int = 0, **counts: int) -> StatisticsSlot:
    return StatisticsSlot(begins_us, **counts)


@pytest.mark.parametrize(
    ("gaps", "sentence", "tone"),
    [
        ([], "On time. 3 fires in the last minute.", "calm"),
        ([UNRESPONSIVE], "b does not respond. Otherwise: on time. 3 fires in the last minute.", "busy"),
        ([STOPPED], "c has stopped. Otherwise: on time. 3 fires in the last minute.", "calm"),
        (
            [UNRESPONSIVE, STOPPED, UNRESPONSIVE._replace(node="d")],
            "2 nodes do not respond, c has stopped. Otherwise: on time. 3 fires in the last minute.",
            "busy",
        ),
    ],
)
def test_health_sentence_names_nodes_with_gaps(gaps: list[Gap], sentence: str, tone: str) -> None:
    assert health_with_gaps(gaps, REST, alone=False) == Health(sentence, tone)


def test_health_of_an_unresponsive_node_is_unknown() -> None:
    assert health_with_gaps([UNRESPONSIVE], REST, alone=True) == Health(
        "b does not respond. Its current state is unknown.", "busy"
    )
    alarm = Health("Behind: the oldest due timer has waited 5 s. 3 fires in the last minute.", "alarm")
    assert health_with_gaps([UNRESPONSIVE], alarm, alone=False).tone == "alarm"


def test_totals_with_missing_data_are_marked() -> None:
    hour = slot(done=3, failed=1, retried=2, created=5)
    whole = [*tiles(hour, hour, slot()), *call_tiles(hour, hour)]
    assert with_gaps(whole, NO_GAPS) == whole
    part = with_gaps(whole, {period: [UNRESPONSIVE, STOPPED] for period in Period})
    assert all(tile.note.endswith(", without 2 nodes") for tile in part)
    values = {tile.name: tile.value for tile in part}
    assert {name for name, value in values.items() if value.startswith("≥\u00a0")} == {
        "fires", "created", "window", "failed", "calls-submitted", "calls-succeeded", "calls-failed",
    }  # fmt: skip
    assert (values["fires"], values["overdue"], values["lag"]) == ("≥\u00a06", "none known", "–")


def test_only_statistics_of_the_missing_period_are_marked() -> None:
    hour = slot(done=3, created=5)
    whole = tiles(hour, hour, slot())
    part = {tile.name: tile for tile in with_gaps(whole, {**NO_GAPS, Period.HOUR: [STOPPED]})}
    assert (part["fires"].value, part["fires"].note) == ("3", "0 in flight")
    # The data of the minute is complete, that of the hour in the remark is not.
    assert (part["created"].value, part["created"].note) == ("5", "≥\u00a05 this hour, without c")
    assert (part["failed"].value, part["failed"].note) == ("≥\u00a00", "≥\u00a00 attempts retried, without c")
    assert part["overdue"].value == "none"


def test_minutes_with_missing_data_are_marked() -> None:
    slots = [slot(number * MINUTE, done=1) for number in range(4)]
    gaps = [Gap("b", MINUTE + 5, MINUTE + 9, True, "has stopped"), Gap("c", 3 * MINUTE + 1, None, False, "x")]
    assert [minute.whole for minute in minutes(slots, gaps, 9)] == [True, False, True, False]
    assert not any(minute.whole for minute in minutes(slots, [Gap("d", None, None, False, "x")], 9))


def test_health_sentence_of_the_last_minute() -> None:
    assert health(slot(done=2), slot(), [], 60.0).sentence.startswith("On time. 2 fires in the last minute")
    assert health(slot(failed=1), slot(), [], 60.0).tone == "busy"
    assert health(slot(), slot(), ["b: not ready"], 60.0) == Health("Degraded: b: not ready.", "alarm")
    paused = health(slot(), slot(), ["dispatch paused: the node is starting"], 60.0)
    assert paused.sentence.endswith(
        "starting. Meanwhile nothing fires there; what comes due waits, and nothing is lost."
    )


def test_fires_that_came_late_are_not_called_on_time() -> None:
    minute = slot(done=290, failed=10)
    for lag_ms in (3, 900, 1_500, 2_000, 50_000):
        minute.lag.count(lag_ms * 1_000)
    late = "Came late: 3 of 300 fires in the last minute, by up to 50 s; 10 failed. Nothing is overdue now."
    assert health(minute, slot(), [], 60.0) == Health(late, "busy")
    assert health(minute, StatisticsSlot(overdue_s=3.0), [], 60.0).sentence.startswith("Behind: ")
    punctual = slot(done=2)
    punctual.lag.count(900_000)
    assert health(punctual, slot(), [], 60.0).tone == "calm"
