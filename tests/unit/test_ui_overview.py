"""What the overview says, and that no number in it passes for whole when a node's part is missing."""

from __future__ import annotations

import pytest

from tocsin.ui.cluster_statistics import Gap
from tocsin.ui.overview_content import Health, Period, call_tiles, health, health_of_part, minutes, partly, tiles
from tocsin.ui.statistics import Bucket

MINUTE = 60_000_000
SILENT = Gap("b", 5, None, False, "does not answer")
ENDED = Gap("c", 5, 9, True, "has ended")
WHOLE: dict[Period, list[Gap]] = {over: [] for over in Period}
REST = Health("On time. 3 fires in the last minute.", "calm")


def bucket(begins_us: int = 0, **counts: int) -> Bucket:
    return Bucket(begins_us, **counts)


@pytest.mark.parametrize(
    ("gaps", "sentence", "tone"),
    [
        ([], "On time. 3 fires in the last minute.", "calm"),
        ([SILENT], "b does not answer. As far as is known: on time. 3 fires in the last minute.", "busy"),
        ([ENDED], "c has ended. As far as is known: on time. 3 fires in the last minute.", "calm"),
        (
            [SILENT, ENDED, SILENT._replace(node="d")],
            "2 nodes can’t be asked, c has ended. As far as is known: on time. 3 fires in the last minute.",
            "busy",
        ),
    ],
)
def test_the_sentence_names_who_is_missing(gaps: list[Gap], sentence: str, tone: str) -> None:
    assert health_of_part(gaps, REST, alone=False) == Health(sentence, tone)


def test_the_sentence_about_a_node_that_is_missing_claims_nothing_of_it() -> None:
    assert health_of_part([SILENT], REST, alone=True) == Health(
        "b does not answer; what it does now isn’t known here.", "busy"
    )
    alarm = Health("Behind: the oldest due timer has waited 5 s. 3 fires in the last minute.", "alarm")
    assert health_of_part([SILENT], alarm, alone=False).tone == "alarm"


def test_every_sum_without_a_part_says_so() -> None:
    hour = [bucket(done=3, failed=1, retried=2, created=5)]
    whole = [*tiles(hour, hour, bucket()), *call_tiles(hour, hour)]
    assert partly(whole, WHOLE) == whole
    part = partly(whole, {over: [SILENT, ENDED] for over in Period})
    assert all(tile.note.endswith(", without 2 nodes") for tile in part)
    values = {tile.name: tile.value for tile in part}
    assert {name for name, value in values.items() if value.startswith("≥\u00a0")} == {
        "fires", "created", "window", "failed", "calls-submitted", "calls-succeeded", "calls-failed",
    }  # fmt: skip
    assert (values["fires"], values["overdue"], values["lag"]) == ("≥\u00a06", "none known", "–")


def test_only_figures_of_the_time_that_is_missing_say_so() -> None:
    hour = [bucket(done=3, created=5)]
    whole = tiles(hour, hour, bucket())
    part = {tile.name: tile for tile in partly(whole, {**WHOLE, Period.HOUR: [ENDED]})}
    assert (part["fires"].value, part["fires"].note) == ("3", "0 in flight")
    # The minute is whole, the hour in the remark isn't.
    assert (part["created"].value, part["created"].note) == ("5", "≥\u00a05 this hour, without c")
    assert (part["failed"].value, part["failed"].note) == ("≥\u00a00", "≥\u00a00 attempts retried, without c")
    assert part["overdue"].value == "none"


def test_minutes_that_lack_a_part_are_told_apart() -> None:
    buckets = [bucket(number * MINUTE, done=1) for number in range(4)]
    gaps = [Gap("b", MINUTE + 5, MINUTE + 9, True, "has ended"), Gap("c", 3 * MINUTE + 1, None, False, "x")]
    assert [line.whole for line in minutes(buckets, gaps)] == [True, False, True, False]
    assert not any(line.whole for line in minutes(buckets, [Gap("d", None, None, False, "x")]))


def test_the_last_minute_in_a_sentence() -> None:
    assert health([bucket(done=2)], bucket(), [], 10.0).sentence.startswith("On time. 2 fires in the last minute")
    assert health([bucket(failed=1)], bucket(), [], 10.0).tone == "busy"
    assert health([], bucket(), ["b: lease"], 10.0) == Health("Not serving as it should: b: lease.", "alarm")
