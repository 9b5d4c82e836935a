"""Flows: which rule a key is subject to, what keys and matches look like, and until when a rule is paused."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each

from tocsin.model.flow import FLOW_KEY, FLOW_MATCH, PAUSED_FOR_GOOD, Flow, FlowLimits, FlowRules

#: Few characters, so that many keys and prefixes match one another.
MATCHES = st.text("ab:", min_size=1, max_size=6)
KEYS = MATCHES.filter(lambda key: not key.endswith(":"))


def rule(match: str) -> Flow:
    return Flow("n", match, 1, 1, total=FlowLimits(parallelism=1))


def found_naively(matches: set[str], key: str) -> str | None:
    """The key's own rule, else the longest of the prefixes that it begins with."""
    if key in matches:
        return key
    return max((each for each in matches if each.endswith(":") and key.startswith(each)), key=len, default=None)


@given(st.sets(MATCHES, max_size=12), KEYS)
def test_a_key_is_subject_to_its_own_rule_or_to_that_with_the_longest_prefix(matches: set[str], key: str) -> None:
    rules = FlowRules(map(rule, matches))
    found = rules.find(key)
    assert (None if found is None else found.match) == found_naively(matches, key)
    assert len(rules) == len(matches)
    assert [flow.match for flow in rules.all()] == sorted(matches)
    assert all(rules.get(match) == rule(match) for match in matches)
    assert (rules.get(key) is not None) == (key in matches)


@each("text, is_key, is_match", [
    ("a", True, True), ("a:b", True, True), ("a:", False, True), (":", False, True), (":a", True, True),
    ("x" * 64, True, True), ("x" * 65, False, False), ("x" * 63 + ":", False, True), ("", False, False),
    ("a b", False, False), ("é", False, False), ("a\n", False, False), ("a:\n", False, False), ("~!", True, True),
])  # fmt: skip
def test_a_prefix_is_no_key(text: str, is_key: bool, is_match: bool) -> None:
    assert (FLOW_KEY.match(text) is not None, FLOW_MATCH.match(text) is not None) == (is_key, is_match)


def test_a_pause_ends_at_its_instant() -> None:
    open_ = rule("a")
    assert open_.closed_until(5) is None
    assert Flow("n", "a", 1, 1, paused=True).closed_until(5) == PAUSED_FOR_GOOD
    timed = Flow("n", "a", 1, 1, paused=True, paused_until=7)
    assert [timed.closed_until(now) for now in (6, 7, 8)] == [7, None, None]
