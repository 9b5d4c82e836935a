"""The content of the overview: the health sentence, tiles and tables."""

from __future__ import annotations

import pytest

from tocsin.statistics.outages import Outage
from tocsin.statistics.slots import CallCounts, Counts
from tocsin.web.pages.overview.content import (
    Health,
    call_tiles,
    degraded,
    health,
    health_with_silent,
    outage_sentence,
    tiles,
    with_silent,
)
from tocsin.web.pages.overview.nodes import Pause, Present

SECOND = 1_000_000
REST = Health("On time. 3 fires in the last minute.", "calm")
ALARM = Health("Behind: the oldest due timer has waited 5 s. 3 fires in the last minute.", "alarm")
DATABASE = "PostgreSQL at db:5432"


def present(*silent: str, overdue_s: float = 0.0) -> Present:
    return Present(1 + len(silent), list(silent), overdue_s, 0, 0, False, [])


@pytest.mark.parametrize(
    ("silent", "rest", "sentence", "tone"),
    [
        ([], REST, "On time. 3 fires in the last minute.", "calm"),
        (["b"], REST, "b does not respond. Otherwise: on time. 3 fires in the last minute.", "busy"),
        (["b", "c"], REST, "2 nodes do not respond. Otherwise: on time. 3 fires in the last minute.", "busy"),
        (["b"], ALARM, "b does not respond. Otherwise: behind: the oldest due timer has waited 5 s. 3 fires in the last "
            "minute.", "alarm"),
    ],
)  # fmt: skip
def test_health_sentence_names_nodes_that_do_not_respond(
    silent: list[str], rest: Health, sentence: str, tone: str
) -> None:
    assert health_with_silent(silent, rest) == Health(sentence, tone)


def test_only_what_is_of_this_moment_lacks_silent_nodes() -> None:
    counts = Counts(done=3, failed=1, created=5)
    whole = [*tiles(counts, counts, present()), *call_tiles(CallCounts(), CallCounts())]
    assert with_silent(whole, []) == whole
    part = {tile.name: tile for tile in with_silent(whole, ["b"])}
    assert {name for name, tile in part.items() if tile.note.endswith(", without b")} == {"overdue", "window"}
    assert (part["window"].value, part["overdue"].value) == ("≥\u00a00", "none known")


def test_health_sentence_of_the_last_minute() -> None:
    on_time = health(Counts(done=2), CallCounts(), present())
    assert on_time.sentence.startswith("On time. 2 fires in the last minute")
    assert health(Counts(failed=1), CallCounts(), present()).tone == "busy"
    assert health(Counts(), CallCounts(submitted=1, succeeded=2), present()).sentence.endswith(
        "nothing overdue. 2 service calls ended, none failed."
    )


def test_fires_that_came_late_are_not_called_on_time() -> None:
    minute = Counts(done=290, failed=10, late=3)
    minute.lag.count(50 * SECOND)
    late = "Came late: 3 of 300 fires in the last minute, by up to 50 s; 10 failed. Nothing is overdue now."
    assert health(minute, CallCounts(), present()) == Health(late, "busy")
    assert health(minute, CallCounts(), present(overdue_s=3.0)).sentence.startswith("Behind: ")
    punctual = Counts(done=2)
    punctual.lag.count(900_000)
    assert health(punctual, CallCounts(), present()).tone == "calm"


def test_a_degraded_service_names_the_database_and_since_when() -> None:
    assert degraded([], [], DATABASE, 0, nodes=1) is None
    assert degraded([], ["the store is full"], DATABASE, 0, nodes=1) == Health("Degraded: the store is full.", "alarm")
    lease = Pause("a", "lease", 10 * SECOND)
    assert degraded([lease], [], DATABASE, 52 * SECOND, nodes=1) == Health(
        "Degraded: PostgreSQL at db:5432 does not answer, or too slowly, for 42 s. Nothing fires, and writes fail, until it "
        "answers. What comes due waits and fires afterwards; nothing is lost.",
        "alarm",
    )
    skewed = degraded([Pause("b", "clock_skew", None)], ["x"], DATABASE, 0, nodes=2)
    assert skewed is not None
    assert skewed.sentence == (
        "Degraded: b: the node's clock differs from the store's. Nothing fires there until other nodes take over. What comes "
        "due waits and fires afterwards; nothing is lost. Also: x."
    )


def test_an_outage_is_described_with_its_numbers() -> None:
    outage = Outage("a", "lease", 0, 67 * SECOND, "", 214, 50 * SECOND, 17)
    assert outage_sentence(outage) == (
        "the database has not confirmed the node's lease in time, for 1 min 7 s: 214 fired late, by at most 50 s; 17 creates "
        "refused"
    )
    outage.late, outage.counting, outage.creates_refused = 0, True, 0
    assert outage_sentence(outage).endswith(": none fired late so far")
