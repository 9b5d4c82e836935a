"""Validation of clients' input, without the HTTP API."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each

from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.request import check_headers
from tocsin.model.retry import RetryPolicy
from tocsin.model.validation import InputLimits, InputRules, is_deeper_than

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


def rules(limits: InputLimits | None = None, **options: Any) -> InputRules:
    return InputRules(limits or InputLimits(), options.get("check_target", EgressPolicy(allow_private=True).check_url))


def depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_nesting_depth_is_counted(value: object, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    for depth_max in range(6):
        assert is_deeper_than(text, depth_max) == (depth(value) > depth_max)


@given(JSON)
def test_brackets_in_strings_do_not_count_as_depth(value: object) -> None:
    assert not is_deeper_than(json.dumps({"text": json.dumps(value)}).encode(), 1)


@given(st.text(max_size=300))
def test_ids_are_any_text_without_control_characters(text: str) -> None:
    bad = not 1 <= len(text) <= 255 or any(ord(char) < 32 or 127 <= ord(char) < 160 for char in text)
    assert (rules().timer_id(text) is not None) == bad


@each("url", ["", "http://a b/", "http://a/\n", "http://münchen.example/", "http://u@a/"])
def test_urls_are_ascii_and_accepted_by_the_egress_policy(url: str) -> None:
    assert rules().url(url) is not None
    assert rules().url("HTTPS://A.Example.:8443/x/../y?z=%20#f") is None


def test_egress_policy_is_evaluated_once_per_url() -> None:
    asked: list[str] = []

    def check(url: str) -> str | None:
        asked.append(url)
        return "is not wanted" if "bad" in url else None

    judge = rules(check_target=check)
    for _ in range(3):
        assert judge.url("http://bad.example/") == "is not wanted"
        assert judge.url("http://good.example/") is None
    assert asked == ["http://bad.example/", "http://good.example/"]


def test_given_limits_apply() -> None:
    narrow = rules(InputLimits(id_chars_max=3, payload_bytes_max=5, payload_depth_max=2, url_chars_max=10))
    assert narrow.timer_id("abc") is None
    assert narrow.timer_id("abcd") == "is 4 characters long; at most 3 are accepted"
    assert narrow.payload(b'"123"') is None
    assert narrow.payload(b'"1234"') == "is 6 bytes long; at most 5 are accepted"
    assert narrow.payload(b"[[1]]") is None
    assert narrow.payload(b"[[[]]") is not None
    assert narrow.url("http://a.example") == "is 16 characters long; at most 10 are accepted"


def test_instants_out_of_range_are_refused_with_the_bound() -> None:
    limits = InputLimits(execute_past_max_us=1_500_000, execute_ahead_max_us=2_500_000)
    judge, now = rules(limits), 1_800_000_000_000_000
    assert judge.instant(now - 1_500_000, now) is None
    assert judge.instant(now + 2_500_000, now) is None
    # The instant in the reason is a whole second, and is accepted.
    assert judge.instant(now - 1_500_001, now) == (
        "is too far in the past; the earliest instant accepted now is 2027-01-15T07:59:59Z"
    )
    assert judge.instant(now + 2_500_001, now) == (
        "is too far ahead; the latest instant accepted now is 2027-01-15T08:00:02Z"
    )


@each(
    "policy, fields",
    [
        (RetryPolicy(), []),
        (RetryPolicy(max_attempts=1_000, backoff_multiplier=100, max_duration_us=1), []),
        (RetryPolicy(max_attempts=0, backoff_multiplier=0.99), ["maxAttempts", "backoffMultiplier"]),
        (RetryPolicy(max_duration_us=0, initial_interval_us=0), ["maxAttemptsDuration", "initialInterval"]),
        (RetryPolicy(initial_interval_us=2, max_interval_us=1), ["maxInterval"]),
        (RetryPolicy(max_interval_us=2**62), ["maxInterval"]),
    ],
)
def test_retry_policies(policy: RetryPolicy, fields: list[str]) -> None:
    assert [error.path for error in rules().retry(policy, "p")] == [f"p.{field}" for field in fields]


@each(
    "secret, accepted",
    [
        ("whsec_" + "A" * 32, True),
        ("whsec_" + "A" * 86 + "==", True),
        ("whsec_" + "A" * 28, False),
        ("whsec_" + "A" * 92, False),
        ("A" * 32, False),
        ("whsec_" + "é" * 32, False),
        ("whsec_", False),
    ],
)
def test_signing_secrets(secret: str, accepted: bool) -> None:
    assert (rules().secret(secret) is None) == accepted


@each(
    "headers, path",
    [
        ({"Accept-Encoding": "gzip"}, "headers.Accept-Encoding"),
        ({"content-encoding": "gzip"}, "headers.content-encoding"),
        ({"Webhook_Id": "a"}, "headers.Webhook_Id"),
        ({"tocsin-timer-id": "a"}, "headers.tocsin-timer-id"),
        ({"tocsin_attempt": "a"}, "headers.tocsin_attempt"),
        ({"Nats-Rollup": "all"}, "headers.Nats-Rollup"),
        ({"x-a": "1", "X_A": "2"}, "headers.X_A"),
        ({"x": " a"}, "headers.x"),
        ({"x": "a\t"}, "headers.x"),
        ({f"x-{number}": "a" * 4_000 for number in range(3)}, "headers"),
        ({"x": "", "y": "a b\tc"}, None),
        ({f"x-{number}": "a" * 4_000 for number in range(2)}, None),
    ],
)
def test_headers_that_can_be_sent_are_accepted(headers: dict[str, str], path: str | None) -> None:
    found = rules().headers(headers, "headers")
    assert [error.path for error in found] == ([] if path is None else [path])
    assert bool(check_headers(headers)) == bool(found)


@each("letter", ["\u202e", "\u200b", "\u2066", "\ufeff", "\u2028", "\u3164", "\U000e0041"])
def test_invisible_characters_in_new_ids_and_tags_are_refused(letter: str) -> None:
    text = f"a{letter}b"
    reason = rules().new_timer_id(text)
    assert reason is not None
    assert f"U+{ord(letter):04X}" in reason
    assert [error.path for error in rules().new_tags(["a", text], "tags")] == ["tags[1]"]
    # Stored ones can still be addressed.
    assert rules().timer_id(text) is None
    assert rules().tags([text], "tags") == []


@each("text", ["a b", "é\u0301", "日本", "עברית", "❤\ufe0f", "😀"])
def test_letters_of_any_script_are_accepted(text: str) -> None:
    assert rules().new_timer_id(text) is None
