"""Test vectors of receivers: signatures, and what an accepted request proves."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import uuid
from typing import Any

from tocsin.model.ids import schedule_uuid, timer_uuid
from tocsin.model.instants import format_instant
from tocsin.model.secrets import signatures

from .cases import Json, case_of

_NEW = "whsec_" + base64.b64encode(bytes(range(24))).decode()
_OLD = "whsec_" + base64.b64encode(bytes(range(100, 164))).decode()
_OTHER = "whsec_" + base64.b64encode(bytes(range(200, 232))).decode()
_NOW_S = 1_790_000_000
_NAMESPACE, _TIMER_ID = "default", "größe/17"
_ENVELOPE: Json = {
    "namespace": _NAMESPACE, "timerId": _TIMER_ID, "executeAt": "2026-09-21T14:13:20Z",
    "firedAt": "2026-09-21T14:13:20.250000Z", "attempt": 2, "payload": {"n": 1},
}  # fmt: skip
_BODY = json.dumps(_ENVELOPE, ensure_ascii=False, separators=(",", ":"))
_ID = f"msg_{timer_uuid(_NAMESPACE, _TIMER_ID).hex()}_1-2"
_TOLERANCE_S = 300
#: A receiver compares so many signatures of a request, and refuses one with more.
_SIGNATURES_MAX = 10


def _signed(*secrets: str, at_s: int = _NOW_S, body: str = _BODY) -> dict[str, str]:
    return {
        "webhook-id": _ID,
        "webhook-timestamp": str(at_s),
        "webhook-signature": signatures(secrets, _ID, at_s, body.encode()),
    }


def _signed_as(timestamp: str) -> dict[str, str]:
    """A request that is signed for the timestamp as it is written, and for the number that it may be taken for."""
    given = [
        hmac.digest(bytes(range(24)), f"{_ID}.{text}.{_BODY}".encode(), "sha256") for text in (timestamp, str(_NOW_S))
    ]
    signature = " ".join("v1," + binascii.b2a_base64(each, newline=False).decode() for each in given)
    return {"webhook-id": _ID, "webhook-timestamp": timestamp, "webhook-signature": signature}


def signature_cases() -> list[Json]:
    """Whether a request is accepted."""

    def case(name: str, headers: Json, result: str = "", secrets: tuple[str, ...] = (_NEW, _OLD)) -> Json:
        given = {
            "secrets": list(secrets), "toleranceSeconds": _TOLERANCE_S, "now": format_instant(_NOW_S * 1_000_000),
            "headers": headers, "body": _BODY,
        }  # fmt: skip
        return case_of(name, given, {"error": result} if result else {"valid": True})

    good = _signed(_NEW)
    tampered = {**good, "webhook-signature": _signed(_NEW, body=_BODY.replace("1", "2"))["webhook-signature"]}
    without = {name: value for name, value in good.items() if name != "webhook-signature"}
    return [
        case("signed with the newer secret", good),
        case("signed with the older secret", _signed(_OLD)),
        case("signed with an unknown secret and a known one", _signed(_OTHER, _OLD)),
        case("signed by another scheme beside", {**good, "webhook-signature": "v2,AAAA " + good["webhook-signature"]}),
        case("at the end of the tolerance", _signed(_NEW, at_s=_NOW_S - _TOLERANCE_S)),
        case("at the end of the tolerance, from a clock that is ahead", _signed(_NEW, at_s=_NOW_S + _TOLERANCE_S)),
        case("too old", _signed(_NEW, at_s=_NOW_S - _TOLERANCE_S - 1), "stale"),
        case("too new", _signed(_NEW, at_s=_NOW_S + _TOLERANCE_S + 1), "stale"),
        case("another body", tampered, "wrong"),
        case("another id", {**good, "webhook-id": _ID + "x"}, "wrong"),
        case("an unknown secret", _signed(_OTHER), "wrong"),
        case("not base64", {**good, "webhook-signature": "v1,%%%"}, "wrong"),
        case("an empty signature", {**good, "webhook-signature": ""}, "wrong"),
        case("a timestamp that is no number", {**good, "webhook-timestamp": "soon"}, "wrong"),
        case("a timestamp of 12 digits", _signed_as(f"{_NOW_S:012}")),
        case("a timestamp of 13 digits", _signed_as(f"{_NOW_S:013}"), "wrong"),
        case("a timestamp of 12 digits, far ahead", _signed(_NEW, at_s=10**12 - 1), "stale"),
        case("a timestamp with a sign", _signed_as(f"+{_NOW_S}"), "wrong"),
        case("a timestamp after a space", _signed_as(f" {_NOW_S}"), "wrong"),
        case("a timestamp with a fraction", _signed_as(f"{_NOW_S}.0"), "wrong"),
        case("an empty timestamp", _signed_as(""), "wrong"),
        case("a timestamp in other digits", _signed_as("".join(chr(0x660 + int(d)) for d in str(_NOW_S))), "wrong"),
        case(
            "as many signatures as are compared", {**good, "webhook-signature": _after(_SIGNATURES_MAX - 1, "v1,AAAA")}
        ),
        case("one signature more", {**good, "webhook-signature": _after(_SIGNATURES_MAX, "v1,AAAA")}, "wrong"),
        case(
            "one signature of another scheme more",
            {**good, "webhook-signature": _after(_SIGNATURES_MAX, "v2,A")},
            "wrong",
        ),
        case("empty signatures beside", {**good, "webhook-signature": _after(2, "")}),
        case("too many empty signatures beside", {**good, "webhook-signature": _after(_SIGNATURES_MAX, "")}, "wrong"),
        case("no signature", without, "unsigned"),
        case("no headers", {}, "unsigned"),
    ]


def _after(number: int, signature: str) -> str:
    """The right signature after others."""
    return " ".join([signature] * number + [_signed(_NEW)["webhook-signature"]])


def signing_cases() -> list[Json]:
    """How a message is signed."""
    given = {"webhookId": _ID, "timestamp": _NOW_S, "body": _BODY}
    return [
        case_of(
            f"{len(secrets)} secrets",
            {"secrets": list(secrets), **given},
            {"signature": _signed(*secrets)["webhook-signature"]},
        )
        for secrets in ((_NEW,), (_NEW, _OLD))
    ]


def firing_cases() -> list[Json]:
    """What is read of an accepted request."""
    sent_at = format_instant(_NOW_S * 1_000_000)
    hex_id = timer_uuid(_NAMESPACE, _TIMER_ID).hex()
    schedule_id = f"msg_{schedule_uuid(_NAMESPACE, _TIMER_ID).hex()}_s-{_NOW_S}000000"
    read = {"webhookId": _ID, **_ENVELOPE}
    named = {"tocsin-namespace": _NAMESPACE, "tocsin-timer-id": "gr%C3%B6%C3%9Fe%2F17"}
    instants = {
        "tocsin-execute-at": "2000-01-01T00:00:00Z",
        "tocsin-fired-at": "2000-01-01T00:00:00Z",
        "tocsin-attempt": "7",
    }
    foreign = {"tocsin-namespace": "orders", "tocsin-timer-id": "other", **instants}
    raw = {
        "webhookId": _ID, "namespace": _NAMESPACE, "timerId": _TIMER_ID, "executeAt": sent_at, "firedAt": sent_at,
        "attempt": 0, "payload": None,
    }  # fmt: skip
    nameless = {**raw, "namespace": "", "timerId": ""}
    other = {**_ENVELOPE, "timerId": "other"}
    # The UUID of a schedule is that of a timer whose id or namespace contains the separator, which none does.
    shifted_id = f"schedule\0{_TIMER_ID}"

    def case(
        name: str, body: Any, headers: Json, expected: Json | None, webhook_id: str = _ID, method: str = "POST"
    ) -> Json:
        given = {
            "method": method, "headers": {"webhook-id": webhook_id, "webhook-timestamp": str(_NOW_S), **headers},
            "body": body if isinstance(body, str) else json.dumps(body, ensure_ascii=False),
        }  # fmt: skip
        return case_of(name, given, {"error": "refused"} if expected is None else {**expected, "webhookId": webhook_id})

    def without(member: str) -> Json:
        return {name: value for name, value in _ENVELOPE.items() if name != member}

    envelopes = [
        case("an envelope", _ENVELOPE, {}, read),
        case("an envelope with null as payload", {**_ENVELOPE, "payload": None}, {}, {**read, "payload": None}),
        case("an envelope with a member of a later release", {**_ENVELOPE, "later": 1}, {}, read),
        case("an envelope beside headers of another timer", _ENVELOPE, foreign, read),
        case("an envelope beside its own headers", _ENVELOPE, {**named, **instants}, read),
        case("an envelope of a schedule", _ENVELOPE, {}, read, schedule_id),
        case("an envelope of another timer", other, {}, None),
        case("an envelope of another namespace", {**_ENVELOPE, "namespace": "orders"}, {}, None),
        case(
            "an envelope of another timer, beside headers of that timer",
            other,
            {**foreign, "tocsin-namespace": _NAMESPACE},
            None,
        ),
        case("no envelope: no attempt", without("attempt"), {}, None),
        case("no envelope: no payload", without("payload"), {}, None),
        case("no envelope: a list", [_ENVELOPE], {}, None),
        case("no envelope: the id is a number", {**_ENVELOPE, "timerId": 17}, {}, None),
        case("no envelope: an instant is none", {**_ENVELOPE, "executeAt": "soon"}, {}, None),
        case("a schedule's envelope, NUL in the id", {**_ENVELOPE, "timerId": shifted_id}, {}, None, schedule_id),
        case(
            "a schedule's envelope, NUL in the namespace",
            {**_ENVELOPE, "namespace": f"{_NAMESPACE}\0schedule"},
            {},
            None,
            schedule_id,
        ),
    ]
    raws = [
        case("a raw body", "<note/>", {**named, **instants}, raw),
        case("a raw body without the headers that prove nothing", "<note/>", named, raw),
        case(
            "a raw body whose other headers are altered",
            "<note/>",
            {**named, "tocsin-attempt": "x", "tocsin-fired-at": "x"},
            raw,
        ),
        case("an empty raw body", "", {**named, **instants}, raw),
        case("a raw body of a schedule", "<note/>", named, raw, schedule_id),
        case("a raw body that imitates an envelope of another timer", other, named, raw),
        case("a raw body that lacks a member of an envelope", without("firedAt"), named, raw),
        case("a raw body that is a number", "17", named, raw),
        case(
            "a raw body, the id not percent-encoded where it need not be",
            "x",
            {**named, "tocsin-timer-id": "gr%c3%b6%c3%9fe/17"},
            raw,
        ),
        case("another namespace in the header", "<note/>", {**named, "tocsin-namespace": "orders"}, None),
        case("another id in the header", "<note/>", {**named, "tocsin-timer-id": "other"}, None),
        case(
            "namespace and id shifted",
            "<note/>",
            {"tocsin-namespace": "defaul", "tocsin-timer-id": "t" + named["tocsin-timer-id"]},
            None,
        ),
        case(
            "a raw body of a schedule, NUL in the id",
            "<note/>",
            {**named, "tocsin-timer-id": "schedule%00" + named["tocsin-timer-id"]},
            None,
            schedule_id,
        ),
        case("an id that is not UTF-8", "<note/>", {**named, "tocsin-timer-id": "gr%FF"}, None),
        case("a raw body without headers", "<note/>", {}, None),
        case(
            "a raw body without the namespace's header", "<note/>", {"tocsin-timer-id": named["tocsin-timer-id"]}, None
        ),
        case("a raw body without the id's header", "<note/>", {"tocsin-namespace": _NAMESPACE}, None),
    ]
    bodiless = [
        case("GET", "", {}, nameless, method="GET"),
        case("GET of a timer with an empty raw body", "", {**named, **instants}, raw, method="GET"),
        case("GET beside headers of another timer", "", foreign, None, method="GET"),
        case("HEAD", "", {}, nameless, method="HEAD"),
    ]
    ids = [
        case("an envelope with a foreign webhook-id", _ENVELOPE, {}, None, "0f6d3c1e-7a52-4c0e-9a57-1f0f5d2f6b11"),
        case("a raw body with a foreign webhook-id", "<note/>", named, None, "msg_2b5OqQPnXmX0rIZfTz7kZvJ1w4K"),
        case("an upper-case webhook-id", _ENVELOPE, {}, None, f"msg_{hex_id.upper()}_1-2"),
        case("a webhook-id without a name", _ENVELOPE, {}, None, f"msg_{hex_id}"),
        case("a webhook-id with hyphens", _ENVELOPE, {}, None, f"msg_{uuid.UUID(hex_id)}_1-2"),
        case("something before the webhook-id", _ENVELOPE, {}, None, f"xmsg_{hex_id}_1-2"),
    ]
    return [*envelopes, *raws, *bodiless, *ids]


def batch_cases() -> list[Json]:
    """What is read of an accepted batch, and responded."""
    batch_id = f"batch_{'0' * 32}"
    ids = {"a": {"done": {}}, "größe/17": {"retry": {"after": 60}}, "c": {"fail": {"reason": "no such order"}}}
    answers: Json = {
        **ids,
        "d": {"rescheduleAt": {"at": "2027-01-31T12:00:00Z", "payload": {"n": 2}}},
        "e": {"retry": {}},
    }
    answers["f"] = {"raise": "a defect"}

    def item(timer_id: str, **changes: Any) -> Json:
        webhook_id = f"msg_{timer_uuid(_NAMESPACE, timer_id).hex()}_1-2"
        return {"webhookId": webhook_id, **_ENVELOPE, "timerId": timer_id, **changes}

    def case(name: str, items: Any, expected: Json | None, webhook_id: str = batch_id) -> Json:
        body = json.dumps(items if isinstance(items, dict) else {"items": items}, ensure_ascii=False)
        headers = {"webhook-id": webhook_id, "webhook-timestamp": str(_NOW_S)}
        given = {"headers": headers, "body": body, "answers": answers}
        return case_of(name, given, {"error": "refused"} if expected is None else expected)

    def responded(timer_id: str, status: int, **members: Any) -> Json:
        return {"webhookId": item(timer_id)["webhookId"], "status": status, **members}

    of_all = [
        responded("a", 200, ok=True),
        responded("größe/17", 503, retryAfter=60),
        responded("c", 422, ok=False, reason="no such order"),
        responded("d", 200, nextExecuteAt="2027-01-31T12:00:00Z", payload={"n": 2}),
        responded("e", 503),
        responded("f", 500),
    ]
    every = [item(timer_id) for timer_id in answers]
    schedule = item("a", webhookId=f"msg_{schedule_uuid(_NAMESPACE, 'a').hex()}_s-1")
    done = {"webhookId": schedule["webhookId"], "status": 200, "ok": True}
    foreign = item("c", webhookId=item("e")["webhookId"])
    quoting = item("a", payload={"]": '"}\\', "[": ["{", {}]})

    def without(name: str) -> Json:
        return {member: value for member, value in item("e").items() if member != name}

    def beside(*unreadable: str) -> Json:
        """The response if only the first timer's item can be read."""
        items = [responded("a", 200, ok=True), *(responded(each, 503) for each in unreadable)]
        return {"status": 200, "body": {"items": items}, "firings": [item("a")]}

    return [
        case("each answer", every, {"status": 200, "body": {"items": of_all}, "firings": every}),
        case("a schedule", [schedule], {"status": 200, "body": {"items": [done]}, "firings": [schedule]}),
        case(
            "members of a later release",
            {"items": [item("e", later=1)], "later": 1},
            {"status": 200, "body": {"items": [responded("e", 503)]}, "firings": [item("e")]},
        ),
        case("one of another timer than its webhookId names", [foreign, item("a")], beside("e")),
        case("one without a webhookId", [without("webhookId"), item("a")], beside()),
        case("one that is no envelope", [without("attempt"), item("a")], beside("e")),
        case("one that is no object", [17, "}", [], item("a"), None], beside()),
        case("brackets and quotes within texts", [quoting], {**beside(), "firings": [quoting]}),
        case("no items", {}, None),
        case("items that are no list", {"items": {}}, None),
        case("the webhook-id of a single callback", [item("a")], None, item("a")["webhookId"]),
    ]
