"""Finished timers that wait for their deletes, in the order of their keys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.model.timer import Timer
from tocsin.timers.engine.finished import Finished, FinishedTimers
from tocsin.timers.engine.rows import Row

TIMER = Timer("default", "t", 5, "http://x/", 1, 2)


def entry(instant: int, number: int) -> Finished:
    return Finished(Row((instant, bytes([number])), b"g" * 16, TIMER, instant), TIMER, 0)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("finish"), st.integers(0, 9), st.integers(0, 30)),
            st.tuples(st.just("first"), st.integers(0, 40), st.just(0)),
            st.tuples(st.just("written"), st.integers(0, 12), st.just(0)),
            st.tuples(st.just("gone"), st.just(0), st.integers(0, 30)),
        ),
        max_size=60,
    )
)
def test_first_has_those_with_the_smallest_keys(steps: list[tuple[str, int, int]]) -> None:
    finished = FinishedTimers()
    for what, instant, number in steps:
        if what == "finish":
            # Also once more, with another instant: a row that was replaced.
            finished[bytes([number])] = entry(instant, number)
        elif what == "gone":
            finished.pop(bytes([number]), None)
        elif what == "written":
            for each in finished.first(instant):
                del finished[each.row.key[1]]
        assert finished.first(instant) == sorted(finished.values(), key=lambda each: each.row.key)[:instant]
        assert finished.bytes == sum(each.size for each in finished.values())


def test_outdated_keys_do_not_pile_up() -> None:
    finished = FinishedTimers()
    finished[b"slow"] = entry(0, 0)
    for number in range(10_000):
        uuid = number.to_bytes(16, "big")
        finished[uuid] = Finished(Row((1, uuid), b"g" * 16, TIMER, 0), TIMER, 0)
        del finished[uuid]
    assert len(finished._later) < 2_000
