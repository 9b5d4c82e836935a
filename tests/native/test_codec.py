"""What the compiled codec takes, it reads and writes as Python does, byte for byte; it refuses nothing by itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tocsin_client import CreateTimer

from tocsin.model.condition import Condition
from tocsin.model.ids import timer_uuid
from tocsin.model.packed import PackedTimer, unpacked
from tocsin.model.timer import Timer, encode_record
from tocsin.model.validation import InputLimits, InputRules
from tocsin.timers.listing import TimerView
from tocsin.web.http import wire
from tocsin.web.http.codec import Codec, native_codec
from tocsin.web.http.convert import RequestParser, timer_answer
from tocsin.web.http.reading import JsonReader, check_utf8
from tocsin.web.http.repeated import condition_of

_NOW = 1_800_000_000_123_456
_TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
_PLAIN: dict[str, Any] = {
    "namespace": "orders",
    "id": "order-17",
    "executeAt": "2027-01-31T12:00:00.5Z",
    "callbackUrl": "https://user:secret@example.com/hook?token=1",
    "payload": {"order": 17},
}
_read = JsonReader(wire.CreateTimer).read


def _as_python(rules: InputRules, body: bytes, now_us: int, key: str | None) -> tuple[Timer, Condition | None]:
    """What Python makes of the same request. Raises its error."""
    check_utf8(body)
    sent = _read(body)
    timer = RequestParser(rules).timer(sent, now_us, _TRACE)
    return timer, condition_of(sent, key, timer.execute_at, first_try=True)


def _check(rules: InputRules, packed: PackedTimer, body: bytes, now_us: int, key: str | None) -> None:
    timer, condition = _as_python(rules, body, now_us, key)
    assert (packed.namespace, packed.id, packed.execute_at) == (timer.namespace, timer.id, timer.execute_at)
    uuid = timer_uuid(timer.namespace, timer.id)
    assert packed.uuid == uuid
    if condition is not None:
        assert not condition.reads
        timer.keys = condition.keys_after(None)
    assert packed.keys == tuple((each.key, each.body) for each in timer.keys)
    packed.traceparent, packed.firing, timer.firing = _TRACE, "1-2a", "1-2a"
    assert packed.record() == encode_record(timer)
    assert unpacked(packed) == timer
    shown = msgspec.json.encode(timer_answer(TimerView(timer, uuid, 41, timer.execute_at)))
    assert packed.answer(41) == shown


_texts = st.one_of(
    st.text(max_size=12),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=12),
    st.sampled_from(["a", "x" * 255, "x" * 256, "é", "a\x7f", "a\u202eb", "*", "a b", 'a"b', "a\\b"]),
)
_instants = st.one_of(
    st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(lambda at: at.isoformat() + "Z"),
    st.integers(-(10**15), 10**16).map(
        lambda us: (datetime(2027, 1, 1, tzinfo=UTC) + timedelta(seconds=us / 1e6)).strftime("%Y-%m-%dT%H:%M:%SZ")
    ),
    st.sampled_from(
        [
            "2027-02-29T00:00:00Z", "2028-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2027-01-31t12:00:00z", "2027-01-31",
            "2027-01-31T24:00:00Z", "2027-01-31T12:00:60Z", "2027-01-31T12:00:00.Z", "2027-01-31T12:00:00.1234567Z",
            "2027-01-31T12:00:00+02:00", "0000-01-01T00:00:00Z", "2027-00-01T00:00:00Z", "2027-13-01T00:00:00Z",
            "2027-01-00T00:00:00Z", "2127-01-01T00:00:00.000001Z", "2027-01-31T12:00:00.123456Z",
        ]
    ),
)  # fmt: skip
_delays = st.one_of(
    st.integers(0, 10**11).map(lambda count: f"{count}s"),
    st.lists(
        st.tuples(st.integers(0, 5_000), st.sampled_from(["us", "ms", "s", "m", "h", "d", "w", ""])), max_size=4
    ).map(lambda parts: "".join(f"{count}{unit}" for count, unit in parts)),
    st.sampled_from(
        [
            "0s",
            "1.5s",
            "-1s",
            "",
            "5",
            "s",
            "36600d",
            "36601d",
            "999999999d",
            "1000000000s",
            "01h",
            "1 s",
            "0s" * 100,
            "0s" * 101,
        ]
    ),
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)
_raw_json = st.one_of(
    _json.map(lambda value: json.dumps(value)),
    _json.map(lambda value: json.dumps(value, ensure_ascii=False, indent=1)),
    st.sampled_from(
        [
            "01", "-", "-0", "1.", ".5", "1e5", "1e999", "1E+", "-1.5e-7", "nul", "truex", '"\\ud800"', '"\\ud83d\\ude00"',
            '"\\x"', '"\t"', "[1,]", "[,1]", '{"a":1,}', '{"a" 1}', "{1:2}", "[[[[1]]]]", "[[[[[1]]]]]", "'a'", "[1 2]",
            '"' + "x" * 198 + '"', '"' + "x" * 199 + '"', "NaN", "Infinity", '"\\u00e9\\n"', "{}", "[]", " 1 ", '"\x7f"',
            "9" * 30, "1" * 100 + ".5", '{"a":1,"a":2}',
        ]
    ),
)  # fmt: skip
_urls = st.sampled_from(
    [
        "http://x", "https://user:pw@example.com/a?token=s", "http://refused", "", "ftp://x", "http://x/[redacted]",
        "http://x?a=%5Bredacted%5D",
        "nats://orders.due", "http://x/" + "y" * 2_040, "http://é", "HTTP://x", 'http://x/"', "http://x/a b",
    ]
)  # fmt: skip
_keys = st.one_of(st.none(), st.sampled_from(["k", "k" * 255, "k" * 256, "", "a b", "é", '"q"', "other"]))


def _quoted(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return values.map(lambda value: json.dumps(value, ensure_ascii=False))


_fields = {
    "namespace": _quoted(st.sampled_from(["n", "orders", "a.b_c:d-e", "*", "", "a b", "é", "n" * 255, "n" * 256])),
    "id": _quoted(_texts),
    "timerId": _quoted(_texts),
    "executeAt": _quoted(_instants),
    "delay": _quoted(_delays),
    "callbackUrl": _quoted(_urls),
    "payload": _raw_json,
    "idempotencyKey": _quoted(_keys.filter(bool)),
    "tags": st.just('["a"]'),
    "method": st.just('"POST"'),
    "onConflict": st.sampled_from(['"replace"', '"keep"']),
    "headers": st.just("{}"),
    "unknown": st.just("1"),
}
_space = st.sampled_from(["", "", "", " ", "\n\t", "\r\n"])


@st.composite
def _objects(draw: st.DrawFn) -> str:
    """Objects of creates: mostly the usual fields, with values that are fine, or nearly so."""
    names = ["namespace", draw(st.sampled_from(["id", "id", "timerId"])), "callbackUrl"]
    names.append(draw(st.sampled_from(["executeAt", "delay"])))
    if draw(st.booleans()):
        names.append("payload")
    if draw(st.integers(0, 3)) == 0:
        names.append(draw(st.sampled_from(sorted(_fields))))
    if draw(st.integers(0, 9)) == 0:
        names.pop(draw(st.integers(0, len(names) - 1)))
    usual = {name: json.dumps(value) for name, value in (_PLAIN | {"delay": "90m", "timerId": "t"}).items()}
    space, members = draw(_space), []
    odd = draw(st.sampled_from(names)) if names else ""
    for name in draw(st.permutations(names)):
        value = draw(_fields[name]) if name in (odd, "payload") or name not in usual else usual[name]
        members.append(f'{space}"{name}"{space}:{space}{value}{space}')
    return f"{space}{{{','.join(members)}}}{space}"


@st.composite
def _bodies(draw: st.DrawFn) -> bytes:
    """Bodies of creates, now and then with some bytes changed."""
    body = bytearray(draw(_objects()).encode("utf-8", "surrogatepass"))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        at = draw(st.integers(0, max(len(body) - 1, 0)))
        body[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(body)


@settings(max_examples=600, deadline=None)
@given(body=_bodies(), key=_keys)
@example(body=json.dumps(_PLAIN).encode(), key="k")
def test_what_the_codec_takes_is_what_python_makes(
    rules: InputRules, codec: Codec, body: bytes, key: str | None
) -> None:
    packed = codec.create(body, _NOW, key, True)
    if packed is not None:
        _check(rules, packed, body, _NOW, key)


@settings(max_examples=200, deadline=None)
@given(bodies=st.lists(_objects(), max_size=4), key=_keys, space=_space)
def test_the_creates_of_a_batch_are_those_of_its_items(
    rules: InputRules, codec: Codec, bodies: list[str], key: str | None, space: str
) -> None:
    items = [body.encode("utf-8", "surrogatepass") for body in bodies]
    body = b'%b{"timers":%b[%b]}' % (space.encode(), space.encode(), b",".join(items))
    packed = codec.creates(body, _NOW, key, True, 3)
    if packed is None:
        return
    assert 1 <= len(packed) <= 3
    for each, item in zip(packed, items, strict=True):
        _check(rules, each, item, _NOW, key)


@settings(max_examples=300, deadline=None)
@given(body=st.binary(max_size=64) | st.text(alphabet='{}[]":,\\ntrue01.e- \x7fé', max_size=40).map(str.encode))
def test_arbitrary_bytes_are_left_to_python(codec: Codec, body: bytes) -> None:
    assert codec.create(body, _NOW, None, False) is None
    assert codec.creates(body, _NOW, None, False, 1_000) is None


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"payload": None},
        {"payload": "é\n"},
        {"id": None, "timerId": "t"},
        {"executeAt": None, "delay": "1h30m"},
        {"executeAt": "2020-01-01T00:00:00Z"},
        {"idempotencyKey": "8e03978e-40d5-43e8-bc93-6894a57f9324"},
    ],
    ids=str,
)
def test_the_usual_creates_are_taken(rules: InputRules, codec: Codec, changes: dict[str, Any]) -> None:
    sent = {name: value for name, value in (_PLAIN | changes).items() if value is not None or name == "payload"}
    for body in (json.dumps(sent).encode(), json.dumps(sent, ensure_ascii=False, indent=2).encode()):
        packed = codec.create(body, _NOW, changes.get("idempotencyKey"), True)
        assert packed is not None
        _check(rules, packed, body, _NOW, changes.get("idempotencyKey"))
        together = codec.creates(b'{"timers":[%b,%b]}' % (body, body), _NOW, None, True, 2)
        assert together is not None
        assert len(together) == 2


def test_a_key_that_may_have_been_sent_is_left_to_python(codec: Codec) -> None:
    assert codec.create(json.dumps(_PLAIN).encode(), _NOW, "k", False) is None
    assert codec.create(json.dumps(_PLAIN | {"idempotencyKey": "k"}).encode(), _NOW, None, False) is None


def test_verdicts_on_urls_are_forgotten_with_the_rules(codec: Codec) -> None:
    refusals: dict[str, str] = {}
    rules = InputRules(InputLimits(), refusals.get)
    own = native_codec(rules)
    assert own is not None
    body = json.dumps(_PLAIN).encode()
    assert own.create(body, _NOW, None, False) is not None
    refusals[_PLAIN["callbackUrl"]] = "may not be called"
    rules.forget_targets()
    assert own.create(body, _NOW, None, False) is None


def test_an_error_of_the_rules_is_not_swallowed(codec: Codec) -> None:
    def broken(url: str) -> str | None:
        raise RuntimeError(url)

    own = native_codec(InputRules(InputLimits(), broken))
    assert own is not None
    with pytest.raises(RuntimeError, match="example"):
        own.create(json.dumps(_PLAIN).encode(), _NOW, None, False)


def test_a_create_of_the_client_library_is_taken(rules: InputRules, codec: Codec) -> None:
    sent = CreateTimer(
        namespace="orders",
        id="order-17",
        execute_at=datetime(2027, 1, 31, 12, 0, 0, 250_000, UTC),
        callback_url="https://example.com/hook",
        payload={"order": 17, "items": ["é", 1.5]},
        idempotency_key="8e03978e-40d5-43e8-bc93-6894a57f9324",
    ).to_json()
    body = json.dumps(sent).encode()
    packed = codec.create(body, _NOW, None, True)
    assert packed is not None
    _check(rules, packed, body, _NOW, None)
