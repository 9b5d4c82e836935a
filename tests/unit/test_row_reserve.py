"""What the engine adds to a stored record fits in the room that clients' writes leave."""

from __future__ import annotations

import msgspec

from tocsin.model.answer import NoResponse, Response
from tocsin.model.condition import KEYS_MAX
from tocsin.model.instants import INSTANT_MAX
from tocsin.model.redaction import ANSWER_CHARS_MAX
from tocsin.model.schedule import (
    BACKFILLS_MAX,
    OCCURRENCES_MAX,
    TRIGGERS_MAX,
    Backfill,
    Definition,
    LastOccurrence,
    Missed,
    Schedule,
    Source,
    State,
    Trigger,
)
from tocsin.model.timer import CreateKey, Status, Timer, encode_record
from tocsin.timers.engine.attempt import ERROR_CHARS_MAX, conclude
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.rows import InFlightAttempt, Row

LIMITS = EngineLimits()
#: Characters that take the most bytes in a record: of those that an answer may have, and of all.
WIDEST_IN_ANSWER, WIDEST = "\N{GRINNING FACE}", "\a"
#: The greatest number that is stored as a count.
MANY = OCCURRENCES_MAX
#: A firing's longest name: epoch, number in the epoch, and how often it was postponed.
FIRING = f"{2**63 - 1:x}-{2**64 - 1:x}.{MANY}"
HASH = "f" * 64


def most_used(state: State) -> State:
    """The state with as much in it as a schedule may have."""
    outcomes = (*(status.value for status in Status), "superseded")
    return msgspec.structs.replace(
        state,
        turn=Source.BACKFILL,
        triggers=(Trigger(INSTANT_MAX, FIRING),) * TRIGGERS_MAX,
        backfills=(Backfill(MANY, INSTANT_MAX, INSTANT_MAX),) * BACKFILLS_MAX,
        backfills_made=MANY,
        counts=dict.fromkeys(outcomes, MANY),
        missed={reason.value: MANY for reason in Missed},
        failures=MANY,
        occurrences=MANY,
        last=LastOccurrence(INSTANT_MAX, Source.BACKFILL, "superseded", INSTANT_MAX, MANY),
        paused="failures",
        away=True,
        postponed=MANY,
        changed_at=INSTANT_MAX,
    )


def failed(timer: Timer, outcome: Response | NoResponse) -> Timer:
    """The timer after one more failed attempt."""
    row = Row((timer.execute_at, b"u" * 16), b"g" * 32, timer, 0)
    attempt = InFlightAttempt(row, superseded=False, number=timer.attempts + 1)
    attempt.fired_at = INSTANT_MAX
    conclusion, _ = conclude(attempt, outcome, INSTANT_MAX, None, LIMITS, now_us=0, jitter=0.0)
    return conclusion.timer


def test_longest_log_keys_and_backlog_of_a_schedule_fit_in_the_reserve() -> None:
    schedule = Schedule(Definition(every_us=1), State(0))
    # Every attempt but the first begins with the former one's log.
    timer = created = Timer("n", "i", 0, "http://h/", 0, 0, expire_after_us=0, schedule=schedule)
    for _ in range(LIMITS.attempt_log_max + 1):
        timer = failed(timer, Response(500, WIDEST_IN_ANSWER.encode() * 2 * ANSWER_CHARS_MAX))
    answers = [each.answer for each in timer.attempt_log]
    for _ in range(LIMITS.attempt_log_max + 1):
        timer = failed(timer, NoResponse("TIMEOUT", WIDEST * 2 * ERROR_CHARS_MAX))
    log = tuple(
        msgspec.structs.replace(each, answer=answer) for each, answer in zip(timer.attempt_log, answers, strict=True)
    )
    assert {len(str(each.error)) for each in log} == {ERROR_CHARS_MAX}
    assert {len(str(each.answer)) for each in log} == {ANSWER_CHARS_MAX}
    most = msgspec.structs.replace(
        timer,
        attempts=MANY,
        attempt_log=log,
        keys=(CreateKey(HASH, HASH),) * KEYS_MAX,
        firing=FIRING,
        schedule=Schedule(schedule.definition, most_used(schedule.state)),
    )
    grown = len(encode_record(most)) - len(encode_record(created))
    assert LIMITS.row_reserve_bytes // 2 < grown <= LIMITS.row_reserve_bytes
