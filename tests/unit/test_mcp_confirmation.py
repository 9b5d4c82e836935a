"""Tokens of dry runs: they confirm what was shown to the same caller, and nothing else."""

from __future__ import annotations

import pytest
from tests.support.cases import each

from tocsin.model.errors import InvalidInput
from tocsin.web.api.mcp.confirmation import Confirmations
from tocsin.web.api.mcp.options import CONFIRM_WITHIN_S

ROWS = [{"id": "a", "createdAt": "2027-01-31T12:00:00Z"}]
ISSUED = ("k1", "cancel_timers", {"ids": ["a"], "namespace": "default"}, ROWS)


class Now:
    """A clock that is set."""

    us = 1_800_000_000_000_000

    def __call__(self) -> int:
        return self.us


def test_a_token_confirms_what_was_shown_on_any_node_of_the_store():
    now = Now()
    token, ends_us = Confirmations("s", now).issue(*ISSUED)
    assert ends_us == now.us + CONFIRM_WITHIN_S * 1_000_000
    now.us = ends_us - 1
    Confirmations("s", now).check(token, *ISSUED)


@each(
    "other",
    [
        ("k2", *ISSUED[1:]),
        ("k1", "replay_timers", *ISSUED[2:]),
        ("k1", "cancel_timers", {"ids": ["a", "b"], "namespace": "default"}, ROWS),
        ("k1", "cancel_timers", {"ids": ["a"], "namespace": "other"}, ROWS),
    ],
)
def test_a_token_is_bound_to_caller_tool_and_arguments(other):
    confirmations = Confirmations("s", Now())
    token, _ = confirmations.issue(*ISSUED)
    with pytest.raises(InvalidInput, match="was not issued to this caller for this tool and these arguments"):
        confirmations.check(token, *other)


def test_a_token_ends_and_its_instant_cannot_be_moved():
    now = Now()
    confirmations = Confirmations("s", now)
    token, now.us = confirmations.issue(*ISSUED)
    with pytest.raises(InvalidInput, match="has ended: it could be used for 300 s; take the dry run again"):
        confirmations.check(token, *ISSUED)
    ends, rest = token.split(".", 1)
    with pytest.raises(InvalidInput, match="was not issued"):
        confirmations.check(f"{int(ends, 16) + 60:x}.{rest}", *ISSUED)


def test_a_token_ends_when_the_rows_change():
    confirmations = Confirmations("s", Now())
    token, _ = confirmations.issue(*ISSUED)
    created_again = [{"id": "a", "createdAt": "2027-01-31T12:00:01Z"}]
    for rows in (created_again, [], [*ROWS, *created_again]):
        with pytest.raises(InvalidInput, match="what would happen has changed, and nothing was done"):
            confirmations.check(token, *ISSUED[:3], rows)
    state = confirmations.issue(*ISSUED[:3], created_again)[0].split(".")[1]
    ends, _, code = token.split(".")
    with pytest.raises(InvalidInput, match="was not issued"):
        confirmations.check(f"{ends}.{state}.{code}", *ISSUED[:3], created_again)


@each("text", ["", ".", "..", "yes", "-1..", "0x1.a.b", "1_0.a.b", "f" * 10_000, "ä.ö.ü", "\ud800"])
def test_other_texts_are_no_tokens(text):
    with pytest.raises(InvalidInput, match="was not issued"):
        Confirmations("s", Now()).check(text, *ISSUED)


def test_another_store_does_not_accept_a_token():
    token, _ = Confirmations("s", Now()).issue(*ISSUED)
    with pytest.raises(InvalidInput, match="was not issued"):
        Confirmations("t", Now()).check(token, *ISSUED)
