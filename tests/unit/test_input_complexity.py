"""Parsing of input takes linear time in its length, never quadratic time, whatever its content.

Each text is as long as its limit lets it be. A pass over it takes milliseconds; a pass for each of its characters takes
seconds to minutes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from tests.support.cpu import BLOCKED_S_MAX, blocked_s

from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.plain import check_request
from tocsin.http_client.request import check_form
from tocsin.http_client.target import parse_url
from tocsin.model.answer import Response, judge
from tocsin.model.redaction import (
    is_secret_name,
    redact_headers,
    redact_parameters,
    redact_text,
    redact_url,
    secrets_of,
)
from tocsin.model.validation import InputLimits, InputRules
from tocsin.service_calls.api.validation import CallRules, PageRequest, Submission
from tocsin.service_calls.execution.redaction import cut_text, redact_header, snippet, without_secrets
from tocsin.service_calls.limits import AgentLimits
from tocsin.web.api.routes import OPERATIONS, read_query
from tocsin.web.http import wire
from tocsin.web.http.convert import RequestParser
from tocsin.web.http.reading import JsonReader, check_content_type
from tocsin.web.pages.filters import instant_text, split_tags
from tocsin.web.pages.forms import json_errors
from tocsin.web.pages.presentation import pretty_json

#: What patterns and loops stop at or go back over, each alone and in the combinations that parts of a URL, a path, a list, a
#: number or JSON have.
UNITS = [
    *"aS9?&;=#@/:%.,-+*'\"\\ \t\n\0[]{}()<>`é😀\u202e",
    "?>", "?%", "//", "//@", "?a=", "&a=", "&token=", "[]", "[.]", "[1]", "{}", '{"a":', '""', '\\"', "\\u0041", "%41",
    "1.", "0x", "a.", "a-", "a b", "- ", ", ", "; ", "Bearer a ", "000000001",
]  # fmt: skip

BODY_CHARS, ANSWER_CHARS, HEADER_CHARS = 250_000, 128_000, 32_000

_create, _list = JsonReader(wire.CreateTimer), JsonReader(wire.ListTimers)
_parser = RequestParser(InputRules(InputLimits(), EgressPolicy(allow_private=True).check_url))
#: As many as a request of 8 KB can bring, and alike, so that none is ruled out by its first letter.
_secrets = secrets_of("https://a/", [("authorization", " ".join(f"{number:09}" for number in range(800)))])


def _created(**members: object) -> None:
    body = {"namespace": "default", "id": "x", "callbackUrl": "https://a.example/", "delay": "1s", **members}
    _parser.timer(_create.read(json.dumps(body).encode()), 0, None)


def _listed(**members: object) -> None:
    _parser.list_request(_list.read(json.dumps({"namespace": "default", **members}).encode()), None)


def _judged(body: bytes, retry_after: str | None = None, status: int = 200) -> None:
    answer = Response(status, body, retry_after)
    for strict in (False, True):
        judge(
            answer,
            now_us=10**15,
            retry_after_us_max=10**9,
            instant_us_max=10**18,
            payload_bytes_max=102_400,
            payload_depth_max=100,
            strict=strict,
        )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _lines(text: str) -> bytes:
    """A payload of many values with the maximum depth."""
    value = json.dumps(text[:5])
    return b"[" * 19 + f"[{','.join([value] * (len(text) // len(value)))}]".encode() + b"]" * 19


READERS: dict[str, tuple[int, Callable[[str], object]]] = {
    "header of an answer": (HEADER_CHARS, lambda text: redact_header("location", "=" + text, 4_096)),
    "headers": (HEADER_CHARS, lambda text: redact_headers({"x": text, text: "x"})),
    "echoes in headers": (HEADER_CHARS, lambda text: without_secrets([text[i::64] for i in range(64)], _secrets)),
    "body of an answer": (ANSWER_CHARS, lambda text: snippet(_bytes(text), 4_096, _secrets)),
    "text of an answer": (ANSWER_CHARS, lambda text: cut_text(text, 4_096)),
    "credentials in a URL": (HEADER_CHARS, lambda text: redact_parameters("//" + text + "@=")),
    "secrets in an answer": (2_000, redact_text),
    "URL": (2_048, lambda text: (parse_url("https://" + text), redact_url("https://" + text))),
    "name of a header": (HEADER_CHARS, is_secret_name),
    "secrets of a request": (8_192, lambda text: secrets_of("https://a/?" + text, [("authorization", text)])),
    "Retry-After": (HEADER_CHARS, lambda text: _judged(b"", text, 503)),
    "date in Retry-After": (HEADER_CHARS, lambda text: _judged(b"", "Mon, 1 Jan 2030 " + text, 503)),
    "answer": (ANSWER_CHARS, lambda text: _judged(_bytes(text))),
    "instant of an answer": (60_000, lambda text: _judged(json.dumps({"nextExecuteAt": text}).encode())),
    "field's name": (BODY_CHARS, lambda text: _created(**{text: 1})),
    "field's name like a path": (BODY_CHARS, lambda text: _created(**{" - at `$" + text: 1})),
    "body": (BODY_CHARS, lambda text: _create.read(_bytes(text))),
    "id": (BODY_CHARS, lambda text: _created(id=text)),
    "namespace": (BODY_CHARS, lambda text: _created(namespace=text)),
    "callbackUrl": (2_048, lambda text: _created(callbackUrl="https://" + text)),
    "delay": (BODY_CHARS, lambda text: _created(delay=text)),
    "tag": (BODY_CHARS, lambda text: _created(tags=[text])),
    "header": (BODY_CHARS // 2, lambda text: _created(headers={"a": text, text: "a"})),
    "payload": (100_000, lambda text: _created(payload=text)),
    "executeAfter": (BODY_CHARS, lambda text: _listed(executeAfter=text)),
    "cursor": (BODY_CHARS, lambda text: _listed(cursor=text)),
    "content-type": (HEADER_CHARS, lambda text: check_content_type({b"content-type": text.encode("latin-1", "replace")})),
    "headers of a call": (8_192, lambda text: check_form([("a", text), (text, "a")])),
    "payload on a page": (100_000, lambda text: (pretty_json(_bytes(text)), pretty_json(json.dumps(text).encode()))),
    "payload with lines": (32_000, lambda text: pretty_json(_lines(text))),
    "payload in a form": (100_000, lambda text: json_errors("payload", text)),
    "filters": (HEADER_CHARS, lambda text: (split_tags(text), instant_text(text))),
}  # fmt: skip


#: As many entries as a body of 256 KB, or the largest query, can have.
_MANY = [f"{number:x}" for number in range(35_000)]
_rules = InputRules(InputLimits(), EgressPolicy(allow_private=True).check_url)
_calls = CallRules(AgentLimits(), _rules, check_request)
_queries = next(operation for operation in OPERATIONS if operation.name == "listServiceCalls")
_TENANT = "01890a5d-ac96-774b-bcce-b302099a8057"


def _submitted(headers: dict[str, str], tags: Sequence[str]) -> None:
    sent = Submission("call", "POST", "https://a.example/", headers, b"{}", None, tags, None, None)
    _calls.submission(_TENANT, sent, 0, lambda: _TENANT)


LISTS: dict[str, Callable[[], object]] = {
    "tags": lambda: _created(tags=_MANY),
    "tags, all alike": lambda: _created(tags=["a"] * len(_MANY)),
    "tags to list by": lambda: _listed(tags=_MANY),
    "statuses": lambda: _listed(status=["pending"] * 20_000),
    "headers": lambda: _created(headers=dict.fromkeys(_MANY[:15_000], "\n")),
    "tags of a call": lambda: _submitted({}, ["a"] * len(_MANY)),
    "headers of a call": lambda: _submitted(dict.fromkeys(_MANY[:15_000], "\n"), ()),
    "tags of calls": lambda: _calls.page(_TENANT, PageRequest(tags=_MANY)),
    "parameters": lambda: read_query("&".join(_MANY).encode()[:60_000], _queries),
    "parameters alike": lambda: read_query(b"tag&" * 15_000, _queries),
}


@pytest.mark.parametrize("name", LISTS)
def test_no_list_takes_quadratic_time(name: str) -> None:
    took_s = blocked_s(LISTS[name])
    assert took_s < BLOCKED_S_MAX, f"{took_s * 1e3:.0f} ms"


@pytest.mark.parametrize("name", READERS)
def test_no_text_takes_quadratic_time(name: str) -> None:
    chars, read = READERS[name]
    for unit in UNITS:
        text = (unit * (chars // len(unit)))[: chars - 1] + "!"
        took_s = blocked_s(lambda: read(text))  # noqa: B023 -- called here
        assert took_s < BLOCKED_S_MAX, f"{chars} characters of {unit!r} took {took_s * 1e3:.0f} ms"
