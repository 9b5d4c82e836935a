"""The quick ways of parsing and formatting instants agree with the plain ones: of the model, and of the standard library."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.cases import each

from tocsin.model import instants as model
from tocsin.web.http import instants as quick

MICROSECONDS = st.integers(model.parse_instant("0001-01-01T00:00:00Z"), model.parse_instant("9999-12-31T23:59:59Z"))


@given(MICROSECONDS)
@example(0)
@example(-1)
def test_formatting_agrees(instant_us: int) -> None:
    plain = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant_us)
    assert model.format_instant(instant_us) == plain.isoformat().replace("+00:00", "Z")


@given(
    MICROSECONDS.map(lambda us: model.format_instant(us)[:19]),
    st.sampled_from(["", ".", ".5", ".123456", ".1234567", ".1234560", ".٣", ". 1", ".+1", "x1"]),
    st.sampled_from(["Z", "z", "", "+02:00", "-23:59", "Ž"]),
)
def test_parsing_agrees(second: str, fraction: str, zone: str) -> None:
    check(second + fraction + zone)


@each("text", ["", "Z", "2027-02-30T00:00:00Z", "2027-01-01T24:00:00Z", "2027-01-01 00:00:00Z"])
def test_refusing_agrees(text: str) -> None:
    check(text)


@given(st.text(max_size=30))
def test_any_text_agrees(text: str) -> None:
    check(text)


def check(text: str) -> None:
    try:
        expected = model.parse_instant(text)
    except ValueError as error:
        with pytest.raises(ValueError) as refused:
            quick.parse_instant(text)
        assert str(refused.value) == str(error)
    else:
        assert quick.parse_instant(text) == expected
