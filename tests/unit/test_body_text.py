"""Bodies are UTF-8, wherever their parts begin."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tocsin.web.http.errors import MalformedBody
from tocsin.web.http.reading import _UTF8_PART_BYTES, check_utf8

PART = _UTF8_PART_BYTES


@given(st.text(), st.integers(0, 3))
@example("\u00e4\u20ac\U0001f600" * 30_000, 1)
def test_text_is_accepted(text: str, before: int) -> None:
    check_utf8(b"a" * before + text.encode())


@given(
    st.sampled_from([b"\xff", b"\x80", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80"]),
    st.integers(-4, 4),
    st.booleans(),
)
def test_the_first_byte_that_is_not_is_named(wrong: bytes, place: int, last: bool) -> None:
    body = b"a" * (PART + place) + wrong + (b"" if last else b"b" * PART)
    with pytest.raises(MalformedBody, match=f"at byte {PART + place}$"):
        check_utf8(body)
