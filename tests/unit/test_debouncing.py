"""Debounced creates in one window: which of them are one firing, when it is due, what it delivers."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from tests.support.window_bench import UUID, Bench, completed

from tocsin.model.condition import Condition, OnConflict, Outcome
from tocsin.model.debounce import COLLECTION_BYTES_MAX, DEBOUNCED_KEYS_MAX, Debounce
from tocsin.model.errors import CollectionFull
from tocsin.model.explanation import TimerState
from tocsin.model.namespace import Namespace
from tocsin.model.timer import Changes, CreateKey, RawBody, Timer, decode_record
from tocsin.timers.engine.attempt import HAND_OVER_MARGIN_US
from tocsin.timers.engine.rows import FinalAttempt, NextAttempt, OpKind, WriteOp
from tocsin.timers.explaining import Asked, explain
from tocsin.timers.listing import view_of

DELAY, MAX_DELAY, TIMEOUT = 10, 30, 50


class DebounceBench(Bench):
    """A bench whose creates are debounced."""

    def sent(
        self, payload: Any, *, collect: int = 0, key: str = "", max_delay: int = MAX_DELAY, delay: int = DELAY
    ) -> WriteOp:
        """An accepted create."""
        raw = msgspec.Raw(json.dumps(payload, separators=(",", ":")).encode())
        timer = Timer("n", "t", 0, "http://h/", self.now, self.now, raw, timeout_us=TIMEOUT)
        wanted, named = Debounce(delay, max_delay, collect), CreateKey(key, "b") if key else None
        op = WriteOp(
            OpKind.CREATE, UUID, "n", timer=timer, condition=Condition(OnConflict.DEBOUNCE, named, False, wanted)
        )
        op.completion = self.answered
        self.window.accept(op)
        return op

    def made(self, payload: Any, **wanted: Any) -> Any:
        """A durable create's answer."""
        self.sent(payload, **wanted)
        self.commit(self.assemble())
        return self.answers[-1]

    def begin(self) -> None:
        """Begins the attempt that is due."""
        self.fire(self.now)
        self.attempt.fired_at = self.now

    @property
    def timer(self) -> Timer:
        """What is stored."""
        return decode_record(self.stored()[UUID].record)

    @property
    def payload(self) -> Any:
        return json.loads(bytes(self.timer.payload))


def test_creates_of_a_window_fire_once_a_delay_after_the_latest_and_no_later_than_the_longest_delay() -> None:
    bench = DebounceBench()
    due = []
    for number, bench.now in enumerate((0, 8, 16, 24)):
        due.append(bench.made(number).key[0])
    assert due == [10, 18, 26, 30]
    assert bench.payload == 3
    bench.now = 29
    assert bench.window.due(29) is None
    bench.now = 30
    bench.begin()
    assert bench.finish()
    bench.commit(bench.assemble(exact_after=0))
    assert not bench.stored()


def test_the_longest_delay_of_each_create_is_kept() -> None:
    bench = DebounceBench()
    assert bench.made(1, max_delay=30).key[0] == 10
    bench.now = 9
    assert bench.made(2, max_delay=12).key[0] == 12
    assert bench.made(3, max_delay=1_000).key[0] == 12


@pytest.mark.parametrize("retried", [False, True])
def test_a_create_that_meets_an_attempt_opens_a_new_window_under_another_name(retried: bool) -> None:
    bench = DebounceBench()
    first = bench.made(1).timer.firing
    bench.now = 10
    bench.begin()
    if retried:
        row = bench.attempt.row
        after = msgspec.structs.replace(row.timer, attempts=1)
        assert bench.window.answered(bench.attempt, NextAttempt(after, 100), 0)
        bench.commit(bench.assemble())
    bench.now = 12
    opened = bench.made(2)
    assert (opened.key[0], opened.timer.debounced.first_at, opened.timer.debounced.creates) == (22, 12, 1)
    assert opened.timer.firing != first
    assert bench.payload == 2


def test_no_two_contents_have_one_name() -> None:
    # The row becomes due while the batch of another create is written.
    bench = DebounceBench()
    bench.made(1)
    bench.now = 9
    bench.sent(2)
    batch = bench.assemble()
    bench.now = 10
    bench.begin()
    sent = {bench.attempt.row.timer.firing: bytes(bench.attempt.row.timer.payload)}
    bench.commit(batch)
    assert bench.timer.firing not in sent
    assert bench.payload == 2


def test_collected_payloads_whose_delivery_is_not_durable_begin_the_new_window_after_their_attempt() -> None:
    bench = DebounceBench()
    for number in (1, 2):
        bench.made(number, collect=100)
    bench.now = 10
    bench.begin()
    opened = bench.made(3, collect=100)
    assert (bench.payload, opened.timer.debounced.creates) == ([1, 2, 3], 1)
    assert opened.key[0] == bench.attempt.fired_at + TIMEOUT
    # Nor is a further create of that window due before.
    bench.now = 11
    assert bench.made(4, collect=100).key[0] == bench.attempt.fired_at + TIMEOUT


def test_what_an_attempt_has_delivered_while_a_create_waits_is_not_delivered_again() -> None:
    bench = DebounceBench()
    bench.made(1, collect=100)
    bench.now = 10
    bench.begin()
    bench.sent(2, collect=100)
    assert not bench.window.answered(bench.attempt, FinalAttempt(completed(bench.attempt.row.timer)), 0)
    bench.commit(bench.assemble())
    assert bench.payload == [2]


def test_a_full_collection_refuses_and_leaves_the_timer_as_it_is() -> None:
    bench = DebounceBench()
    bench.made(1, collect=2)
    bench.made(2, collect=2)
    before = bench.stored()[UUID]
    refused = bench.made(3, collect=2)
    assert isinstance(refused, CollectionFull)
    assert "timer 't' has collected 2 payloads of 5 bytes" in str(refused)
    assert bench.stored()[UUID] == before
    bench.now = 10
    bench.begin()
    bench.sent(3, collect=2)
    # The refused create leaves the attempt its result.
    batch = bench.assemble()
    assert not bench.finish()
    bench.commit(batch)
    assert isinstance(bench.answers[-1], CollectionFull)
    bench.commit(bench.assemble(exact_after=0))
    assert not bench.stored()
    assert bench.made(3, collect=2).timer.debounced.collected == 1


def test_a_collection_is_limited_in_bytes_but_takes_any_single_payload() -> None:
    bench = DebounceBench()
    bench.row_bytes_max = 10 * COLLECTION_BYTES_MAX
    large = "x" * (COLLECTION_BYTES_MAX - 2)
    assert bench.made(large, collect=100).timer.debounced.collected == 1
    assert isinstance(bench.made(1, collect=100), CollectionFull)


def test_each_collected_payload_keeps_its_key_and_others_keep_the_last_ones() -> None:
    bench = DebounceBench()
    for number in range(30):
        bench.made(number, collect=100, key=f"k{number}")
    for number in range(30):
        assert bench.made(number, collect=100, key=f"k{number}").outcome is Outcome.REPLAYED
    assert bench.payload == list(range(30))
    bench = DebounceBench()
    for number in range(30):
        bench.made(number, key=f"k{number}")
    assert [key.key for key in bench.timer.keys] == [f"k{number}" for number in range(30)][-DEBOUNCED_KEYS_MAX:]
    # One without a key leaves those of the others.
    bench.made(0)
    assert len(bench.timer.keys) == DEBOUNCED_KEYS_MAX


def test_a_row_in_memory_spares_a_debounced_create_the_store() -> None:
    bench = DebounceBench()
    bench.sent(1, key="k")
    assert bench.window.to_fetch(10, 10) == [UUID]
    bench.commit(bench.assemble())
    bench.sent(2, key="l")
    bench.sent(1, key="k")
    assert bench.window.to_fetch(10, 10) == []
    bench.commit(bench.assemble())
    assert [answer.outcome for answer in bench.answers[-2:]] == [Outcome.CREATED, Outcome.REPLAYED]


def test_a_debounced_create_replaces_a_timer_that_is_none_and_collects_from_one_that_did_not() -> None:
    bench = DebounceBench()
    bench.created(500)
    assert bench.made(1).key[0] == 10
    assert bench.made(2, collect=100).timer.debounced.collected == 2
    assert bench.payload == [1, 2]
    assert bench.made(3).timer.debounced.collected == 0
    assert bench.payload == 3


@pytest.mark.parametrize(
    "changes", [Changes(payload=msgspec.Raw(b"[7]")), Changes(body=RawBody("text/plain", text="x"))]
)
def test_a_changed_payload_is_one_payload_and_a_raw_body_none(changes: Changes) -> None:
    bench = DebounceBench()
    bench.made(1, collect=100)
    bench.window.accept(WriteOp(OpKind.UPDATE, UUID, "n", changes=changes))
    bench.commit(bench.assemble())
    bench.made(2, collect=100)
    assert bench.payload == ([[7], 2] if changes.body is msgspec.UNSET else [2])


def test_a_replayed_firing_is_not_joined() -> None:
    bench = DebounceBench()
    bench.made(1, collect=100)
    bench.now = 10
    bench.begin()
    bench.finish()
    bench.commit(bench.assemble(exact_after=0))
    bench.window.accept(WriteOp(OpKind.REPLAY, UUID, "n", changes=Changes()))
    bench.commit(bench.assemble())
    assert bench.timer.replay
    assert bench.made(2, collect=100).timer.debounced.creates == 1
    assert bench.payload == [1, 2]


def test_a_timer_handed_over_in_flight_is_not_joined_and_its_attempt_may_end_first() -> None:
    bench = DebounceBench()
    bench.made(1, collect=100)
    bench.now = 10
    bench.begin()
    bench.window.hand_over(HAND_OVER_MARGIN_US)
    bench.commit(bench.assemble())
    bench.claim(1)
    bench.load()
    opened = bench.made(2, collect=100)
    assert (opened.key[0], opened.timer.debounced.creates) == (10 + TIMEOUT, 1)
    assert bench.payload == [1, 2]


def test_an_explanation_states_for_which_creates_a_timer_waits() -> None:
    bench = DebounceBench()
    asked, namespace = Asked("n1"), Namespace("n", 4, 0, 0)
    for number, words in enumerate(("1 create since", "2 creates since")):
        row = bench.made(number)
        found = explain(view_of(row.timer, UUID, 0, row.key[0], row.outcome), namespace, asked, 0)
        assert found.state is TimerState.SCHEDULED
        until = "1970-01-01T00:00:00.000030Z"
        assert f"It is debounced: {words} 1970-01-01T00:00:00Z; it fires at the latest at {until}." in found.sentence
