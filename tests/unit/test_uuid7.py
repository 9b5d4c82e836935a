"""UUIDs of version 7: their form, and their order whatever the clock does."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from tocsin.model.ids import CountedUuid7, Uuid7Source, is_uuid7, uuid7_text


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**74 - 1))
def test_text_is_a_uuid_of_version_7_that_begins_with_its_timestamp(timestamp_ms: int, tail: int):
    text = uuid7_text(timestamp_ms, tail)
    parsed = uuid.UUID(text)
    assert str(parsed) == text
    assert parsed.version == 7
    assert parsed.variant == uuid.RFC_4122
    assert parsed.int >> 80 == timestamp_ms
    assert is_uuid7(text)


@given(st.lists(st.integers(0, 2**50), min_size=2, max_size=50))
def test_counted_ids_are_of_version_7_and_never_repeat(clock_us: list[int]):
    times = iter(clock_us)
    source = CountedUuid7(lambda: next(times))
    made = [source() for _ in clock_us]
    assert all(map(is_uuid7, made))
    assert [uuid.UUID(text).int >> 80 for text in made] == [now_us // 1_000 for now_us in clock_us]
    assert len(set(made)) == len(made)


@given(st.lists(st.integers(0, 2**40), min_size=2, max_size=50))
def test_ids_never_decrease(clock_us: list[int]):
    times = iter(clock_us)
    source = Uuid7Source(lambda: next(times))
    made = [source() for _ in clock_us]
    assert made == sorted(set(made))


def test_full_millisecond_borrows_from_the_next():
    source = Uuid7Source(lambda: 5_000, lambda count: b"\xff" * count)
    first = source()
    made = {source() for _ in range(10)}
    assert all(one > first and is_uuid7(one) for one in made)


def test_other_versions_and_forms_are_refused():
    assert not is_uuid7(str(uuid.uuid4()))
    assert not is_uuid7(uuid7_text(1, 0xABCDEF).upper())
    assert not is_uuid7(uuid7_text(1, 2).replace("-", ""))
    assert not is_uuid7(uuid7_text(1, 2) + "\n")
