"""A home of flows: reports, grants, and the first seconds after a claim."""

from __future__ import annotations

from tocsin.model.flow import Flow, FlowLimits, Rate
from tocsin.ports.flows import FlowReport, KeyReport, RuleReport
from tocsin.timers.engine.flow_accounts import Usage
from tocsin.timers.engine.flow_home import Home, RuleAccounts
from tocsin.timers.engine.flow_tokens import RuleName

SECOND = 1_000_000
NODE, OTHER = b"n" * 16, b"o" * 16
NAME = RuleName("a", "k:")


def home_with(
    per_key: FlowLimits | None, total: FlowLimits | None = None, *, others: frozenset[bytes] = frozenset()
) -> Home:
    home = Home(3, 7, 0)
    home.begin(set(others), 0, 5 * SECOND)
    home.rules[NAME] = RuleAccounts(Flow("a", "k:", 0, 0, per_key=per_key, total=total), Usage(1), -(10**12))
    return home


def report(number: int, *keys: KeyReport, node: bytes = NODE) -> FlowReport:
    in_use, begun = sum(key.in_use for key in keys), sum(key.begun for key in keys)
    rules = [RuleReport("a", "k:", 1, in_use, begun, list(keys))] if keys else []
    return FlowReport(node, 3, 7, number, rules)


def granted(home: Home, sent: FlowReport, now_us: int = 0) -> dict[str, int]:
    return {grant.key: grant.count for grant in home.report(sent, now_us, may_grant=True).grants}


def test_a_grant_needs_a_slot_of_the_key_and_one_of_all() -> None:
    home = home_with(FlowLimits(parallelism=2), FlowLimits(parallelism=3))
    wanted = [KeyReport(f"k:{i}", 1, 0, 0, 5) for i in range(3)]
    assert granted(home, report(1, *wanted)) == {"k:0": 2, "k:1": 1, "k:2": 0}


def test_a_report_that_was_overtaken_changes_nothing() -> None:
    home = home_with(FlowLimits(parallelism=1))
    assert granted(home, report(2, KeyReport("k:x", 1, 0, 0, 1))) == {"k:x": 1}
    assert granted(home, report(1, KeyReport("k:x", 1, 0, 0, 1))) == {}
    assert granted(home, report(1, KeyReport("k:x", 1, 0, 0, 1), node=OTHER)) == {"k:x": 0}


def test_a_key_without_an_entry_has_nothing() -> None:
    home = home_with(FlowLimits(parallelism=1), FlowLimits(parallelism=1))
    assert granted(home, report(1, KeyReport("k:x", 1, 0, 0, 1))) == {"k:x": 1}
    assert granted(home, report(2, KeyReport("k:x", 1, 1, 1, 0))) == {}
    assert granted(home, report(1, KeyReport("k:x", 1, 0, 0, 1), node=OTHER)) == {"k:x": 0}
    assert granted(home, report(3)) == {}
    assert granted(home, report(2, KeyReport("k:x", 1, 0, 0, 1), node=OTHER)) == {"k:x": 1}


def test_nothing_is_granted_before_all_living_nodes_have_reported() -> None:
    home = home_with(FlowLimits(parallelism=1), others=frozenset({OTHER}))
    assert granted(home, report(1, KeyReport("k:x", 1, 0, 0, 1))) == {"k:x": 0}
    assert granted(home, report(1, KeyReport("k:x", 1, 1, 1, 0), node=OTHER)) == {}
    assert granted(home, report(2, KeyReport("k:x", 1, 0, 0, 1))) == {"k:x": 0}
    assert granted(home, report(2, node=OTHER)) == {}
    assert granted(home, report(3, KeyReport("k:x", 1, 0, 0, 1))) == {"k:x": 1}


def test_a_silent_node_is_awaited_only_until_it_is_presumed_dead() -> None:
    home = home_with(FlowLimits(parallelism=1), others=frozenset({OTHER}))
    assert granted(home, report(1, KeyReport("k:x", 1, 0, 0, 1)), 5 * SECOND - 1) == {"k:x": 0}
    assert granted(home, report(2, KeyReport("k:x", 1, 0, 0, 1)), 5 * SECOND) == {"k:x": 1}


def test_a_node_that_may_not_fire_grants_nothing() -> None:
    home = home_with(FlowLimits(parallelism=1))
    answer = home.report(report(1, KeyReport("k:x", 1, 0, 0, 1)), 0, may_grant=False)
    assert [grant.count for grant in answer.grants] == [0]


def test_an_unknown_rule_is_granted_nothing() -> None:
    home = home_with(None)
    home.rules.clear()
    assert granted(home, report(1, KeyReport("k:x", 1, 0, 0, 1))) == {"k:x": 0}


def test_the_answer_states_when_to_ask_again() -> None:
    home = home_with(FlowLimits(Rate(10, SECOND)))
    assert granted(home, report(1, KeyReport("k:x", 1, 0, 0, 1))) == {"k:x": 1}
    (grant,) = home.report(report(2, KeyReport("k:x", 1, 1, 1, 1)), 40_000, may_grant=True).grants
    assert (grant.count, grant.again_us) == (0, 60_000)


def test_a_receivers_wish_closes_the_key_for_all_nodes() -> None:
    home = home_with(FlowLimits(parallelism=5))
    granted(home, report(1, KeyReport("k:x", 1, 0, 0, 0, 2 * SECOND)))
    assert granted(home, report(1, KeyReport("k:x", 1, 0, 0, 1), node=OTHER), SECOND) == {"k:x": 0}
    assert granted(home, report(2, KeyReport("k:x", 1, 0, 0, 1), node=OTHER), 2 * SECOND) == {"k:x": 1}


def test_nodes_that_wait_are_notified_of_what_becomes_free() -> None:
    home = home_with(FlowLimits(parallelism=1))
    granted(home, report(1, KeyReport("k:x", 1, 0, 0, 1)))
    granted(home, report(1, KeyReport("k:x", 1, 0, 0, 1), node=OTHER))
    home.to_notify.clear()
    granted(home, report(2, KeyReport("k:x", 1, 0, 1, 1)))
    assert home.to_notify >= {OTHER}
    # The one that has just had the slot comes after it.
    assert granted(home, report(2, KeyReport("k:x", 1, 0, 0, 1), node=OTHER)) == {"k:x": 1}


def test_only_those_are_notified_whose_turn_it_is_and_only_of_what_has_become_free() -> None:
    home, crowd = home_with(FlowLimits(parallelism=1)), [bytes([number]) * 16 for number in range(100)]
    assert granted(home, report(1, KeyReport("k:x", 1, 0, 0, 1))) == {"k:x": 1}
    for node in crowd:
        assert granted(home, report(1, KeyReport("k:x", 1, 0, 0, 1), node=node)) == {"k:x": 0}
    assert not home.to_notify, "a request frees nothing"
    home.report(report(2, KeyReport("k:x", 1, 0, 1, 0)), 0, may_grant=True)
    assert home.to_notify == {crowd[0]}
    home.to_notify.clear()
    # It wants no more by now, so it is the turn of the next one.
    home.report(report(2, KeyReport("k:x", 1, 0, 0, 0), node=crowd[0]), 0, may_grant=True)
    assert home.to_notify == {crowd[1]}
    home.to_notify.clear()
    assert granted(home, report(2, KeyReport("k:x", 1, 0, 0, 1), node=crowd[1])) == {"k:x": 1}
    assert not home.to_notify


def test_many_keys_that_are_over_take_no_memory() -> None:
    home = home_with(FlowLimits(Rate(100, SECOND), parallelism=1))
    for number in range(1, 1_000):
        now_us = number * 100_000
        granted(home, report(number, KeyReport(f"k:{number}", 1, 0, 0, 1)), now_us)
    assert len(home.rules[NAME]) < 10
