"""How the agent's API validates a submission: the fingerprint, the cursor, the statuses."""

from __future__ import annotations

import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from tests.support.cases import each

from tocsin.model.errors import InvalidInput, PayloadTooLarge
from tocsin.model.hooks import Hook, Hooks
from tocsin.model.ids import uuid7_text
from tocsin.model.instants import INSTANT_MAX, INSTANT_MIN
from tocsin.model.validation import InputLimits, InputRules
from tocsin.service_calls.api.validation import (
    CallRules,
    PolicySent,
    Submission,
    decode_cursor,
    encode_cursor,
    fingerprint,
)
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import RequestSpec, RetrySpec
from tocsin.service_calls.ports import PagePosition

ID = "01890a5d-ac96-774b-bcce-b302099a8058"


def print_of(body: bytes | None = None, **fields: object) -> str:
    spec = {"method": "POST", "url": "https://a/", "headers": {}, "name": "n", "due": None, "tags": (), **fields}
    return fingerprint(
        spec["name"],  # type: ignore[arg-type]
        RequestSpec(spec["method"], spec["url"], spec["headers"], UNSET if body is None else msgspec.Raw(body)),  # type: ignore[arg-type]
        spec["due"],  # type: ignore[arg-type]
        spec["tags"],  # type: ignore[arg-type]
        hooks=spec.get("hooks"),  # type: ignore[arg-type]
    )


@each(
    "one, other",
    [
        ({"body": b'{"a":1,"b":[1,2]}'}, {"body": b'{ "b" : [1, 2],\n"a": 1}'}),
        ({"body": '"ü"'.encode()}, {"body": b'"\\u00fc"'}),
        ({"headers": {"A": "1", "b": "2"}}, {"headers": {"B": "2", "a": "1"}}),
        ({"tags": ("a", "b")}, {"tags": ("b", "a")}),
    ],
)
def test_equal_submissions_have_equal_fingerprints(one: dict[str, object], other: dict[str, object]) -> None:
    assert print_of(**one) == print_of(**other)  # type: ignore[arg-type]


def test_different_submissions_have_different_fingerprints() -> None:
    huge = b"1" * 5_000
    prints = [
        print_of(),
        print_of(name="m"),
        print_of(method="PUT"),
        print_of(url="https://b/"),
        print_of(headers={"a": "1"}),
        print_of(headers={"a": "2"}),
        print_of(due=0),
        print_of(due=1),
        print_of(hooks=Hooks(failure=Hook("https://b/"))),
        print_of(hooks=Hooks(success=Hook("https://b/"))),
        print_of(tags=("a",)),
        print_of(tags=("a", "b")),
        print_of(b"null"),
        print_of(b'"null"'),
        print_of(b"1"),
        print_of(b'"1"'),
        print_of(b"[1,2]"),
        print_of(b"[2,1]"),
        print_of(huge),
        print_of(huge + b"1"),
    ]
    assert len(set(prints)) == len(prints)
    assert all(len(text) == 64 for text in prints)


@given(st.integers(INSTANT_MIN, INSTANT_MAX), st.integers(0, 2**48 - 1), st.integers(0, 2**74 - 1))
def test_a_cursor_encodes_the_position_of_the_last_call(submitted_at: int, ms: int, tail: int) -> None:
    place = PagePosition(submitted_at, uuid7_text(ms, tail))
    assert decode_cursor(encode_cursor(place)) == place


@given(st.binary(min_size=25, max_size=25))
def test_invalid_cursors_are_refused(packed: bytes) -> None:
    text = base64.urlsafe_b64encode(packed).rstrip(b"=").decode()
    try:
        place = decode_cursor(text)
    except ValueError:
        return
    assert encode_cursor(place) == text
    assert INSTANT_MIN <= place.submitted_at <= INSTANT_MAX


@each("change", [lambda text: text + "=", lambda text: text[:-1], lambda text: text + "\n"])
def test_a_changed_cursor_is_refused(change: object) -> None:
    text = encode_cursor(PagePosition(0, ID))
    with pytest.raises(ValueError, match="cursor"):
        decode_cursor(change(text))  # type: ignore[operator]


def rules(**limits: int) -> CallRules:
    return CallRules(
        AgentLimits(**limits),
        AnyUrl(InputLimits(), lambda url: None),
        lambda method, url, headers, body: [("headers", "is odd")] if "x" in headers else [],
    )


class AnyUrl(InputRules):
    """Accepts any URL, and every instant that has not passed."""

    def url(self, url: str) -> str | None:
        return None

    def instant(self, instant_us: int, now_us: int) -> str | None:
        return "is past" if instant_us < now_us else None


def sent(**fields: object) -> Submission:
    plain = Submission("n", "POST", "https://a/", {}, None, None, (), None, None)
    return plain._replace(**fields)  # type: ignore[arg-type]


def test_a_policy_is_resolved_when_its_call_is_submitted() -> None:
    _, command = rules().submission(ID, sent(retry=PolicySent()), 0, lambda: ID)
    assert command.retry_policy == RetrySpec(10, 5_000_000, 3.0, 4 * 3_600_000_000)
    _, command = rules().submission(ID, sent(retry=PolicySent(3, "1h", "2s", 1.5, "1m")), 0, lambda: ID)
    assert command.retry_policy == RetrySpec(3, 2_000_000, 1.5, 60_000_000, 3_600_000_000)
    assert RetrySpec.of(command.retry_policy.policy) == command.retry_policy
    assert rules().submission(ID, sent(), 0, lambda: ID)[1].retry_policy is None


def test_invalid_members_of_policy_and_time_are_named() -> None:
    wrong = PolicySent(max_attempts=0, initial_interval="2m", max_interval="1m")
    with pytest.raises(InvalidInput) as refused:
        rules().submission(ID, sent(retry=wrong, delay="1 day", name=""), 0, lambda: ID)
    assert [error.path for error in refused.value.errors] == [
        "name",
        "requestSpec.retryPolicy.maxAttempts",
        "requestSpec.retryPolicy.maxInterval",
        "delay",
    ]
    with pytest.raises(InvalidInput, match="cannot be combined with dueAt; give one of the two"):
        rules().submission(ID, sent(due_at="2027-01-31T12:00:00Z", delay="5s"), 0, lambda: ID)


def test_a_delay_counts_from_now_and_any_delay_has_the_same_fingerprint() -> None:
    first, later, now, retried = (
        rules().submission(ID, sent(**fields), now_us, lambda: ID)[1]  # type: ignore[arg-type]
        for now_us, fields in (
            (1_000, {"delay": "5s"}),
            (3_001_000, {"delay": "2s"}),
            (1_000, {}),
            (1_000, {"delay": "5s", "retry": PolicySent()}),
        )
    )
    assert first.due_at == later.due_at == 5_001_000
    assert first.fingerprint == later.fingerprint
    assert len({first.fingerprint, now.fingerprint, retried.fingerprint}) == 3


def test_an_id_is_created_only_if_none_was_sent() -> None:
    def new_id() -> str:
        raise AssertionError("an id was made")

    _, command = rules().submission(ID, sent(service_call_id=ID.upper()), 0, new_id)
    assert command.service_call_id == ID
    _, command = rules().submission(ID, sent(idempotency_key="k"), 0, lambda: ID)
    assert (command.service_call_id, command.idempotency_key) == (ID, "k")


@each("name", ["👩\u200d💻 on call", "می\u200cخواهم", "क्\u200dष", "❤\ufe0f", "e\u0301"])
def test_a_name_may_have_the_letters_of_any_language(name: str) -> None:
    _, command = rules().submission(ID, sent(name=name), 0, lambda: ID)
    assert command.name == name
    # Tags are compared, not interpreted.
    if "\u200c" in name or "\u200d" in name:
        with pytest.raises(InvalidInput, match=r"tags\[0\]: has the invisible character U\+200[CD]"):
            rules().submission(ID, sent(tags=(name,)), 0, lambda: ID)


@each("name", ["a\u202eb", "a\u2066b", "a\u200eb", "a\u200bb", "a\x1bb", "a\x9bb", "\u200d\u200c"])
def test_a_name_with_invisible_characters_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="name: has"):
        rules().submission(ID, sent(name=name), 0, lambda: ID)


def test_the_fingerprint_does_not_depend_on_ids() -> None:
    prints = {
        rules().submission(tenant, sent(service_call_id=call_id, idempotency_key=key), 0, lambda: ID)[1].fingerprint
        for tenant, call_id, key in ((ID, None, None), (ID, None, "k"), (uuid7_text(1, 2), uuid7_text(2, 3), None))
    }
    assert len(prints) == 1


def test_a_due_time_is_checked_against_the_current_time() -> None:
    _, command = rules().submission(ID, sent(due_at="1970-01-01T00:00:01.5Z"), 1_000_000, lambda: ID)
    assert command.due_at == 1_500_000
    with pytest.raises(InvalidInput, match="dueAt: is past"):
        rules().submission(ID, sent(due_at="1970-01-01T00:00:01Z"), 1_000_001, lambda: ID)


@each(
    "body, fits",
    [
        (b'"12345"', True),
        (b'"123456"', False),
        (b' "12345" ', True),
        ('"ää"'.encode(), True),
        ('"äää"'.encode(), False),
        (b'"\\u0061bcde"', True),
        (b"12345", True),
        (b"[1,2]", True),
        (b"[1, 2]", False),
    ],
)
def test_the_limit_of_a_body_applies_to_what_is_sent(body: bytes, fits: bool) -> None:
    limited = rules(request_body_bytes_max=5)
    if fits:
        _, command = limited.submission(ID, sent(body=body), 0, lambda: ID)
        assert bytes(command.request_spec.body) == body  # type: ignore[arg-type]
        return
    with pytest.raises(PayloadTooLarge):
        limited.submission(ID, sent(body=body), 0, lambda: ID)
    with pytest.raises(InvalidInput) as caught:
        limited.submission(ID, sent(body=body, headers={"x": ""}), 0, lambda: ID)
    assert not isinstance(caught.value, PayloadTooLarge)
    assert [error.path for error in caught.value.errors] == ["requestSpec.body", "requestSpec.headers"]
