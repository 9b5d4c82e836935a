"""Presentation of values, forms and filters of timers, accepted host names."""

from __future__ import annotations

import ast
import json
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest
from starlette.requests import Request
from tests.support.cases import each

from tocsin.model.audit import AuditAction
from tocsin.model.errors import InvalidInput
from tocsin.model.explanation import Explanation, TimerState, WaitsFor
from tocsin.model.timer import RawBody, Status, Timer
from tocsin.timers.service import TimerView
from tocsin.web.http.hosts import Hosts
from tocsin.web.pages import presentation
from tocsin.web.pages.admin import audit
from tocsin.web.pages.calls.presentation import CallResult
from tocsin.web.pages.context import Fields, cookie_value, read_form
from tocsin.web.pages.destinations import waiting_path
from tocsin.web.pages.forms import curl, due
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.timers.editing import TimerForm, command
from tocsin.web.pages.timers.listing import TimerFilters

NOW = 1_900_000_000_000_000
SECOND = 1_000_000


@each(
    "duration_us, text",
    [
        (0, "0 ms"),
        (12_400, "12 ms"),
        (SECOND, "1 s"),
        (59 * SECOND, "59 s"),
        (60 * SECOND, "1 min"),
        (125 * SECOND, "2 min 5 s"),
        (3_600 * SECOND, "1 h"),
        (90 * 60 * SECOND, "1 h 30 min"),
        (26 * 3_600 * SECOND, "1 d 2 h"),
        (40 * 86_400 * SECOND, "40 d"),
        (400 * 86_400 * SECOND, "1 y 35 d"),
    ],
)
def test_durations(duration_us: int, text: str) -> None:
    assert presentation.span(duration_us) == text


@each(
    "duration_us, text",
    [
        (0, "0 s"),
        (250, "250 µs"),
        (1_500_000, "1 s 500 ms"),
        (5 * SECOND, "5 s"),
        (20 * 3_600 * SECOND + 60 * SECOND, "20 h 1 min"),
        (400 * 86_400 * SECOND, "400 d"),
    ],
)
def test_durations_that_somebody_has_set_are_shown_in_full(duration_us: int, text: str) -> None:
    assert presentation.whole_span(duration_us).replace("\u00a0", " ") == text


@each(
    "destination, place",
    [
        ("https://psp.example:443", "psp.example"),
        ("http://psp.example:443", "psp.example:443"),
        ("http://127.0.0.1:80", "127.0.0.1"),
    ],
)
def test_what_waits_for_a_destination_is_listed_by_its_place_in_urls(destination: str, place: str) -> None:
    assert dict(parse_qsl(waiting_path(destination).partition("?")[2])) == {"view": "waiting", "destination": place}


def test_relative_times() -> None:
    assert presentation.relative(NOW + 300 * SECOND, NOW) == "in 5 min"
    assert presentation.relative(NOW - 2 * SECOND, NOW) == "2 s ago"
    assert presentation.relative(NOW + 999, NOW) == "now"


def test_indented_payload_keeps_its_numbers() -> None:
    text = b'{"a":1.10,"b":123456789012345678901234567890,"c":[],"d":{"e":null},"f":[true,"x\\u00e9"],"g":1e400}'
    pretty = presentation.pretty_json(text)
    assert '"a": 1.10' in pretty
    assert "123456789012345678901234567890" in pretty
    assert '"c": []' in pretty
    assert '"xé"' in pretty
    assert "1e400" in pretty
    assert presentation.pretty_json(b"not json") == "not json"
    # Pages are UTF-8, which can't encode a lone surrogate.
    assert presentation.pretty_json(b'["\\ud800"]') == '["\\ud800"]'
    assert presentation.pretty_json(b"[" * 970 + b"]" * 970) == "[" * 970 + "]" * 970


@each(
    "text",
    [
        '{"to":"\\u202egnp.exe"}',
        '{"to":"\u202egnp.exe"}',
        '{"to":"\u202egnp.exe","rest":"' + "x" * 40_000 + '"}',
        "[" * 30 + '"\u202egnp.exe"' + "]" * 30,
    ],
)
def test_indented_payload_hides_and_moves_nothing(text: str) -> None:
    pretty = presentation.pretty_json(text.encode())
    assert "\\u202egnp.exe" in pretty and "\u202e" not in pretty
    assert json.loads(pretty) == json.loads(text)


def test_body_of_a_response_hides_and_moves_nothing() -> None:
    body = "to\t\u202egnp.exe\r\nü\n"
    result = CallResult(200, {}, body, truncated=False, latency_ms=1.0, error_kind="", error="")
    assert result.readable == "to\t\\u202egnp.exe\r\nü\n"


@each("timer_id", ["a", "a/b", "..", ".", "a b", "ü?#&%", "/", "x/../y", '"><script>'])
def test_every_id_has_a_safe_path(timer_id: str) -> None:
    path = presentation.timer_path("default", timer_id)
    assert path.startswith("/timers/default/")
    assert ".." not in path.split("?")[0].split("/")
    assert set('"<> #') & set(path) == set()


def test_timer_states() -> None:
    timer = Timer("default", "t", NOW, "http://x/", NOW, NOW)
    assert presentation.state_of(TimerView(timer, b"", 0, NOW + 1), NOW, paused=False).word == "pending"
    assert presentation.state_of(TimerView(timer, b"", 0, NOW), NOW, paused=False).word == "due"
    assert presentation.state_of(TimerView(timer, b"", 0, NOW, "namespace:x"), NOW, paused=False).word == "suspended"
    # A paused namespace's timers are paused, due or not, unless something else keeps them from firing, too.
    for suspended, word in ((None, "paused"), ("namespace:x", "paused"), ("bad_record: x", "suspended")):
        shown = TimerView(timer, b"", 0, NOW + 1, suspended)
        assert presentation.state_of(shown, NOW, paused=True).word == word
    # What is due does what its owner reports.
    for state, waits_for, shown_as in (
        (TimerState.FIRING, WaitsFor.RESPONSE, ("firing", "firing", "")),
        (TimerState.WAITING, WaitsFor.NODE, ("waiting", "waiting", "for its node")),
        (TimerState.BLOCKED, WaitsFor.LEASE, ("waiting", "waiting", "for the database")),
        (TimerState.UNKNOWN, None, ("unknown", "due", "for an answer of its node")),
        (TimerState.FINISHED, None, ("due", "due", "")),
    ):
        why = Explanation(state, waits_for, None, 0, "n1", "")
        known = TimerView(timer, b"", 0, NOW, explanation=why)
        assert presentation.state_of(known, NOW, paused=False) == presentation.State(*shown_as)
        assert presentation.shown_version(known, paused=False) != presentation.version(known)
    assert {*presentation._WAITS} == set(WaitsFor) - {WaitsFor.INSTANT, WaitsFor.RESPONSE}
    retried = msgspec.structs.replace(timer, attempts=1)
    assert presentation.state_of(TimerView(retried, b"", 0, NOW + 1), NOW, paused=False).word == "retrying"
    done = msgspec.structs.replace(timer, status=Status.COMPLETED)
    assert presentation.state_of(TimerView(done, b"", 0, None), NOW, paused=True).word == "completed"


# -- when


def test_local_time_is_converted_to_utc() -> None:
    assert due("at", "", "2027-01-31T13:30", "60") == {"executeAt": "2027-01-31T12:30:00Z"}
    assert due("at", "", "2027-01-31T12:00:00+02:00", "") == {"executeAt": "2027-01-31T12:00:00+02:00"}
    assert due("in", " 5 M ", "", "") == {"delay": "5m"}


@each("zone", ["x", "99999", "1.5"])
def test_invalid_time_zone_offset_is_refused(zone: str) -> None:
    with pytest.raises(InvalidInput):
        due("at", "", "2027-01-31T13:30", zone)


# -- forms


def form(**fields: Any) -> TimerForm:
    return TimerForm(**{"id": "t", "url": "http://127.0.0.1:9/", **fields})


def test_form_converts_to_the_equivalent_api_request() -> None:
    body = form(
        payload='{"a": 1.10}',
        tags="x, y,,",
        retry="custom",
        max_duration="1h",
        headers=[("A", "b")],
        timeout="2,5",
        method="PUT",
    ).body()
    assert msgspec.json.decode(msgspec.json.encode(body)) == {
        "namespace": "default", "id": "t", "callbackUrl": "http://127.0.0.1:9/", "delay": "5m", "payload": {"a": 1.1},
        "onConflict": "reject",
        "method": "PUT", "headers": {"A": "b"}, "callbackTimeoutSeconds": 2.5, "tags": ["x", "y"],
        "retryPolicy": {"maxAttempts": 10, "initialInterval": "5s", "backoffMultiplier": 3, "maxInterval": "4h",
                        "maxAttemptsDuration": "1h"},
    }  # fmt: skip
    assert bytes(body["payload"]) == b'{"a": 1.10}'


def test_form_reports_all_invalid_fields_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        form(payload='{\n"a" 1}', timeout="soon", retry="custom", attempts="many").body()
    paths = {error.path: error.reason for error in refused.value.errors}
    assert set(paths) == {"payload", "callbackTimeoutSeconds", "retryPolicy.maxAttempts"}
    assert "line 2, column 5" in paths["payload"]


def test_edit_form_sends_only_changed_fields() -> None:
    timer = Timer("default", "t", NOW, "http://x/", NOW, NOW, msgspec.Raw(b'{"a":1.10}'), tags=("x",))
    view = TimerView(timer, b"", 0, NOW)
    kept = TimerForm.of(timer, when="keep")
    assert kept.changes(view) == {"namespace": "default", "timerId": "t"}
    kept.tags, kept.payload = "", '{"a": 1.1}'
    changed = kept.changes(view)
    assert (changed["tags"], bytes(changed["payload"])) == ([], b'{"a": 1.1}')
    assert set(changed) == {"namespace", "timerId", "tags", "payload"}


@each(
    "field, name, text, sent, flag",
    [
        ("expire_after", "expireAfter", " 2 H ", "2h", "--expire-after 2h"),
        ("expire_after", "expireAfter", "", None, "--no-expiry"),
        ("description", "description", "It's due", "It's due", """--description 'It'"'"'s due'"""),
        ("description", "description", "", None, "--description ''"),
        ("flow_key", "flowKey", "customer:2", "customer:2", "--flow-key customer:2"),
        ("flow_key", "flowKey", "", None, "--flow-key ''"),
    ],
)
def test_fields_are_kept_changed_and_removed_by_the_form(
    field: str, name: str, text: str, sent: str | None, flag: str
) -> None:
    timer = Timer(
        "default", "t", NOW, "http://x/", NOW, NOW,
        expire_after_us=90_000_000, description="An invoice", flow_key="customer:1",
    )  # fmt: skip
    view, identity = TimerView(timer, b"", 0, NOW), {"namespace": "default", "timerId": "t"}
    form = TimerForm.of(timer, when="keep")
    assert form.changes(view) == identity
    setattr(form, field, text)
    changed = form.changes(view)
    assert changed == {**identity, name: sent}
    assert flag in command("http://127.0.0.1:8080", changed)


def test_raw_body_survives_the_form_until_a_payload_replaces_it() -> None:
    raw = RawBody("text/xml", text="<a>ü</a>")
    timer = Timer("default", "t", NOW, "http://x/", NOW, NOW, body=raw)
    view = TimerView(timer, b"", 0, NOW)
    kept = TimerForm.of(timer, when="keep")
    assert kept.changes(view) == {"namespace": "default", "timerId": "t"}
    # A copy sends the raw body, and so does the equivalent command.
    copied = TimerForm.of(timer, when="in").body()
    assert msgspec.json.decode(copied["body"]) == {"contentType": "text/xml", "text": "<a>ü</a>"}
    assert "payload" not in copied
    words = shlex.split(command("http://127.0.0.1:8080", copied).replace("\\\n", " "))
    assert words[words.index("--body") : words.index("--body") + 4] == [
        "--body",
        "<a>ü</a>",
        "--content-type",
        "text/xml",
    ]
    kept.payload = "1"
    changed = kept.changes(view)
    assert (bytes(changed["payload"]), set(changed)) == (b"1", {"namespace", "timerId", "payload"})


def test_raw_body_is_shown_with_its_type_and_size() -> None:
    assert presentation.raw_body(RawBody("a/b", base64="AP8K")) == ("AP8K", "a/b, 3 bytes, shown as base64")
    assert presentation.raw_body(RawBody("a/b", text="é\n\x00")) == ("é\n\\u0000", "a/b, 4 bytes")
    assert presentation.raw_body(RawBody("a/b", json=msgspec.Raw(b"[ 1.0]"))) == ("[ 1.0]", "a/b, 6 bytes")


def test_equivalent_commands_are_quoted_for_the_shell() -> None:
    body = form(id="it's $HOME", payload='{"x": "a\'b"}', headers=[("X", "$(reboot)")], tags="a b").body()
    words = shlex.split(command("http://127.0.0.1:8080", body).replace("\\\n", " "))
    assert words[:5] == ["tocsin", "timers", "create", "http://127.0.0.1:9/", "--id"]
    assert {"it's $HOME", '{"x": "a\'b"}', "X: $(reboot)", "a b"} <= set(words)
    sent = shlex.split(curl("http://h/", body, key=False).replace("\\\n", " "))
    assert msgspec.json.decode(sent[-1])["headers"] == {"X": "$(reboot)"}
    assert "$TOCSIN_KEY" in curl("http://h/", body, key=True)


def test_malformed_form_body_is_refused() -> None:
    for body in (b"\xff\xfe", b"a=%ff", b"a=1&" * 30_000):
        with pytest.raises(InvalidInput):
            read_form(body)


# -- filters


def test_link_of_a_list_parses_to_the_same_filters() -> None:
    pairs = [
        ("namespace", "n"),
        ("view", "failed"),
        ("q", "a&b"),
        ("tag", "x,y"),
        ("due", "last-1h"),
        ("order", "asc"),
        ("rows", "25"),
    ]
    filters = TimerFilters.read(Fields(pairs), UiLimits(), "n")
    parsed = Fields(parse_qsl(filters.link().split("?")[1]))
    assert TimerFilters.read(parsed, UiLimits(), parsed.get("namespace")) == filters
    assert filters.link(cursor="c").endswith("&cursor=c")
    assert "order" not in filters.tab("pending")


def test_unknown_values_in_a_url_are_ignored() -> None:
    filters = TimerFilters.read(Fields([("view", "x"), ("due", "y"), ("rows", "-1"), ("order", "z")]), UiLimits(), "n")
    assert (filters.view, filters.range, filters.rows, filters.order) == ("pending", "", UiLimits().list_rows, "asc")
    assert TimerFilters.read(Fields([("rows", "99999")]), UiLimits(), "n").rows == UiLimits().list_rows_max


# -- hosts, sessions


def test_accepted_host_names() -> None:
    hosts = Hosts("192.0.2.7", ["https://tocsin.example", "http://other.example:81"])
    for host in (
        "localhost",
        "localhost:1",
        "a.localhost",
        "127.0.0.1:8080",
        "[::1]:80",
        "192.0.2.7",
        "tocsin.example",
        "other.example:81",
    ):
        assert hosts.accepts(host), host
    for host in (
        None,
        "",
        "evil.example",
        "tocsin.example.evil",
        "user@localhost",
        "localhost:x",
        "localhost/x",
        "a" * 400,
    ):
        assert not hosts.accepts(host), host
    assert hosts.secure("tocsin.example")
    assert not hosts.secure("localhost")


def test_parts_of_a_list_contain_all_rows_in_order() -> None:
    for count in (
        0,
        1,
        presentation.PART_ROWS - 1,
        presentation.PART_ROWS,
        presentation.PART_ROWS + 1,
        3 * presentation.PART_ROWS,
    ):
        parts = presentation.parted(range(count))
        assert [row for part in parts for row in part] == list(range(count))
        assert all(len(part) <= presentation.PART_ROWS for part in parts)
        assert len(parts) == max(-(-count // presentation.PART_ROWS), 1)


def test_each_action_of_the_audit_trail_has_words_once() -> None:
    tree = ast.parse(Path(audit.__file__).read_text())
    (words,) = [node for node in ast.walk(tree) if isinstance(node, ast.Dict) and len(node.keys) > 10]
    named = [key.attr for key in words.keys if isinstance(key, ast.Attribute)]
    assert sorted(named) == sorted(AuditAction.__members__)


@each(
    "sent, value",
    [
        ("", None),
        ("tocsin-80=a.b", "a.b"),
        ("x=1; tocsin-80=a=b;y", "a=b"),
        ('tocsin-80="YQ=="', "YQ=="),
        ("tocsin-8080=a; xtocsin-80=b", None),
        # None of this server's has escapes, which http.cookies would take seconds to read.
        ('tocsin-80="\\\\101"', None),
    ],
)
def test_the_value_of_a_cookie(sent: str, value: str | None) -> None:
    request = Request({"type": "http", "headers": [(b"cookie", sent.encode())]})
    assert cookie_value(request, "tocsin-80") == value
