"""Validates the input of tenants against named limits and reports all invalid fields together."""

from __future__ import annotations

import hashlib
import re
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from tocsin.model.errors import FieldError, InvalidInput, PayloadTooLarge
from tocsin.model.flow import flow_key_reason
from tocsin.model.hooks import NO_HOOKS, Event, Hook, Hooks, field_of
from tocsin.model.ids import is_uuid7
from tocsin.model.instants import INSTANT_MAX, INSTANT_MIN, parse_duration, parse_instant
from tocsin.model.opaque import from_opaque, to_opaque
from tocsin.model.redaction import REDACTED, withheld
from tocsin.model.retry import RetryPolicy, resolved
from tocsin.model.sealed_text import has_sealed
from tocsin.model.validation import (
    LOOKS_SEALED,
    InputRules,
    is_deeper_than,
    new_name_reason,
    new_text_reason,
    text_reason,
)
from tocsin.ports.agent_calls import Tenants
from tocsin.ports.credentials import CallCredentials, NoCallCredentials
from tocsin.ports.flow_gate import FlowGate
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import CallKey, CallStatus, Instant, RequestSpec, RetrySpec, SubmitServiceCall
from tocsin.service_calls.ports import CallFilter, PagePosition

#: Calls on a page when the request sets no limit.
PAGE_DEFAULT = 50
#: Characters of the correlation id of a request.
CORRELATION_ID_CHARS_MAX = 128

#: Checks method, URL, headers and body (as it is sent; None: no body) of a request. Returns the path within the request and
#: the reason of each error; empty if it can be sent.
CheckRequest = Callable[[str, str, Mapping[str, str], bytes | None], Sequence[tuple[str, str]]]

_FORMAT = 1
#: Replaces the due time in the fingerprint of a call with a delay.
_DELAYED = "delay"
_POSITION = struct.Struct(">Bq16s")
_CURSOR = re.compile(r"[A-Za-z0-9_-]{34}\Z", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,9}\Z", re.ASCII)


_STATUSES = frozenset(map(str, CallStatus))


class PolicySent(NamedTuple):
    """A retry policy as it was sent. None: the member was omitted. Durations are text."""

    max_attempts: int | None = None
    max_attempts_duration: str | None = None
    initial_interval: str | None = None
    backoff_multiplier: float | None = None
    max_interval: str | None = None


class Submission(NamedTuple):
    """A call as it was sent. `body` is JSON text. Without `due_at` and `delay` it runs now; without `retry` it has one
    attempt."""

    name: str
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    due_at: str | None
    tags: Sequence[str]
    service_call_id: str | None
    idempotency_key: str | None
    delay: str | None = None
    retry: PolicySent | None = None
    traceparent: str | None = None
    hooks: Mapping[Event, Hook] = {}
    flow_key: str | None = None
    credential: str | None = None

    @property
    def credentials(self) -> list[str]:
        """The names of the credentials that its request and its notifications have."""
        named = [self.credential, *(hook.credential for hook in self.hooks.values())]
        return [name for name in named if name]


class PageRequest(NamedTuple):
    """A page as it was requested. One text of `statuses` may contain several, separated by commas."""

    statuses: Sequence[str] = ()
    tags: Sequence[str] = ()
    name: str | None = None
    correlation_id: str | None = None
    submitted_from: str | None = None
    submitted_to: str | None = None
    limit: str | None = None
    cursor: str | None = None


class Named(NamedTuple):
    """What calls may name: flows, whose limits apply to them; None: none limits any. And credentials."""

    flows: FlowGate | None = None
    credentials: CallCredentials = NoCallCredentials()


NOTHING_NAMED = Named()


class CallRules:
    """The validation rules, with those that timers have too. All methods raise InvalidInput with every invalid
    field."""

    def __init__(
        self, limits: AgentLimits, rules: InputRules, check_request: CheckRequest, named: Named = NOTHING_NAMED
    ) -> None:
        self._limits = limits
        self._rules = rules
        self._check_request = check_request
        self._flows, self._credentials = named

    def submission(
        self, tenant_id: str, sent: Submission, now_us: int, new_id: Callable[[], str]
    ) -> tuple[str, SubmitServiceCall]:
        """The tenant's id in canonical form, and the command, with an id from `new_id` if none was sent.

        Raises PayloadTooLarge if a body over its limit is the only error.
        """
        limits, errors = self._limits, _Errors()
        tenant = errors.uuid7("tenantId", tenant_id)
        errors.note("name", new_name_reason(sent.name, limits.name_chars_max))
        spec, too_large = self._request(sent, errors)
        policy = None if sent.retry is None else self._policy(sent.retry, errors)
        due_at_us = self._due_at(sent, now_us, errors)
        tags = self._tags(sent.tags, errors)
        hooks = self._hooks(sent.hooks, errors)
        if sent.service_call_id is not None:
            service_call_id = errors.uuid7("serviceCallId", sent.service_call_id)
        else:
            service_call_id = new_id()
        if sent.idempotency_key is not None:
            errors.text("idempotencyKey", sent.idempotency_key, limits.idempotency_key_chars_max)
        if sent.flow_key is not None:
            errors.note("flowKey", flow_key_reason(sent.flow_key))
            if self._flows is not None and self._flows.is_ordered(sent.flow_key):
                errors.note(
                    "flowKey",
                    "is of an ordered flow, which service calls have no place in; name another key, or create a timer",
                )
        errors.refuse(PayloadTooLarge if too_large else InvalidInput)
        return tenant, SubmitServiceCall(
            service_call_id=service_call_id,
            name=sent.name,
            request_spec=spec,
            # A client that repeats a submission may send the rest of its delay: any delay gives the same fingerprint.
            fingerprint=fingerprint(
                sent.name, spec, due_at_us if sent.delay is None else _DELAYED, tags, policy, hooks, sent.flow_key
            ),
            due_at=None if due_at_us is None else Instant(due_at_us),
            tags=tags,
            idempotency_key=sent.idempotency_key,
            retry_policy=None if policy is None else RetrySpec.of(policy),
            traceparent=sent.traceparent,
            hooks=hooks,
            flow_key=sent.flow_key,
        )

    def key(self, tenant_id: str, service_call_id: str) -> CallKey:
        """Tenant and call in canonical form."""
        errors = _Errors()
        key = errors.key(tenant_id, service_call_id)
        errors.refuse()
        return key

    def tag(self, tenant_id: str, service_call_id: str, tag: str, *, new: bool) -> CallKey:
        """The call, after validating the tag: `new` True for a tag to add, False for one that the call may have."""
        errors = _Errors()
        key = errors.key(tenant_id, service_call_id)
        (errors.new_text if new else errors.text)("tag", tag, self._limits.tag_chars_max)
        errors.refuse()
        return key

    def page(self, tenants: Tenants, asked: PageRequest) -> CallFilter:
        """The filter for a page."""
        errors = _Errors()
        wanted = CallFilter(
            tenants=errors.uuid7("tenantId", tenants) if isinstance(tenants, str) else tenants,
            statuses=_statuses(asked.statuses, errors),
            tags=self._wanted_tags(asked.tags, errors),
            submitted_from=errors.parsed("from", asked.submitted_from, parse_instant),
            submitted_to=errors.parsed("to", asked.submitted_to, parse_instant),
            name=_search_text("name", asked.name, self._limits.name_chars_max, errors),
            correlation_id=_search_text("correlationId", asked.correlation_id, CORRELATION_ID_CHARS_MAX, errors),
            before=_position(asked.cursor, errors),
            limit=self._page_limit(asked.limit, errors),
        )
        errors.refuse()
        return wanted

    def _due_at(self, sent: Submission, now_us: int, errors: _Errors) -> int | None:
        if sent.due_at is not None:
            if sent.delay is not None:
                errors.note("delay", "cannot be combined with dueAt; give one of the two")
            due_at_us = errors.parsed("dueAt", sent.due_at, parse_instant)
            if due_at_us is not None:
                errors.note("dueAt", self._rules.instant(due_at_us, now_us))
            return due_at_us
        delay_us = errors.parsed("delay", sent.delay, parse_duration)
        if delay_us is None:
            return None
        errors.note("delay", self._rules.delay(delay_us))
        return now_us + delay_us

    def _policy(self, sent: PolicySent, errors: _Errors) -> RetryPolicy:
        """Members that were omitted get the current defaults and keep them for this call."""
        at, found = "requestSpec.retryPolicy", len(errors.found)
        total, initial, longest = (
            errors.parsed(f"{at}.{field}", text, parse_duration)
            for field, text in (
                ("maxAttemptsDuration", sent.max_attempts_duration),
                ("initialInterval", sent.initial_interval),
                ("maxInterval", sent.max_interval),
            )
        )
        policy = resolved(sent.max_attempts, total, initial, sent.backoff_multiplier, longest)
        if len(errors.found) == found:
            errors.found += self._rules.retry(policy, at)
        return policy

    def _request(self, sent: Submission, errors: _Errors) -> tuple[RequestSpec, bool]:
        """The request, and whether its body is over the limit."""
        limits = self._limits
        body = _as_sent(sent.body)
        too_large = body is not None and len(body) > limits.request_body_bytes_max
        if body is not None and too_large:
            reason = f"is {len(body)} bytes long; at most {limits.request_body_bytes_max} are accepted"
            errors.note("requestSpec.body", reason)
        elif sent.body is not None and is_deeper_than(sent.body, limits.request_body_depth_max):
            reason = f"is nested too deeply; at most {limits.request_body_depth_max} levels are accepted"
            errors.note("requestSpec.body", reason)
        errors.note("requestSpec.url", self._rules.url(sent.url))
        for path, reason in self._check_request(sent.method, sent.url, sent.headers, body):
            note = errors.note_once if path in ("url", "body") else errors.note
            note(f"requestSpec.{path}", reason)
        _refuse_placeholders("requestSpec", sent.url, sent.headers, errors)
        self._check_credential("requestSpec", sent.credential, sent.url, errors)
        spec = RequestSpec(
            method=sent.method,
            url=sent.url,
            headers=dict(sent.headers),
            body=UNSET if sent.body is None else msgspec.Raw(sent.body),
            credential=sent.credential,
        )
        return spec, too_large

    def _check_credential(self, at: str, name: str | None, url: str, errors: _Errors) -> None:
        # Without a valid URL it is not known where the credential would go.
        if name and all(error.path != f"{at}.url" for error in errors.found):
            errors.note(f"{at}.credential", self._credentials.refusal(name, url))

    def _hooks(self, sent: Mapping[Event, Hook], errors: _Errors) -> Hooks | None:
        for event, hook in sent.items():
            at, headers = field_of(event), hook.headers or {}
            errors.note(f"{at}.url", self._rules.url(hook.url))
            for path, reason in self._check_request("POST", hook.url, headers, b"{}"):
                errors.note_once(f"{at}.{path}", reason)
            _refuse_placeholders(at, hook.url, headers, errors)
            self._check_credential(at, hook.credential, hook.url, errors)
        return NO_HOOKS.changed({event.value: hook for event, hook in sent.items()})

    def _tags(self, tags: Sequence[str], errors: _Errors) -> tuple[str, ...]:
        limits = self._limits
        if len(tags) > limits.tags_max:
            errors.note("tags", f"has {len(tags)} entries; at most {limits.tags_max} are accepted")
            return ()
        seen: set[str] = set()
        for position, tag in enumerate(tags):
            path = f"tags[{position}]"
            errors.new_text(path, tag, limits.tag_chars_max)
            if tag in seen:
                errors.note_once(path, "is a duplicate; give each tag once")
            seen.add(tag)
        return tuple(tags)

    def _wanted_tags(self, tags: Sequence[str], errors: _Errors) -> tuple[str, ...]:
        limits = self._limits
        wanted = tuple(dict.fromkeys(tags))
        if len(wanted) > limits.tags_max:
            errors.note("tag", f"is given {len(wanted)} times; a call has at most {limits.tags_max} tags")
            return ()
        for tag in wanted:
            errors.text("tag", tag, limits.tag_chars_max)
        return wanted

    def _page_limit(self, text: str | None, errors: _Errors) -> int:
        if text is None:
            return PAGE_DEFAULT
        limit = int(text) if _NUMBER.match(text) else 0
        if not 1 <= limit <= self._limits.page_max:
            errors.note("limit", f"must be an integer from 1 to {self._limits.page_max}")
        return limit


def fingerprint(
    name: str,
    spec: RequestSpec,
    due: int | str | None,
    tags: Sequence[str],
    policy: RetryPolicy | None = None,
    hooks: Hooks | None = None,
    flow_key: str | None = None,
) -> str:
    """The SHA-256, in hexadecimal, of a client's submission without its id. It does not depend on the order of members,
    headers or tags, on white space, or on the time zone. `due` is the due time in microseconds, None for now, or a
    placeholder for any delay."""
    body = None if spec.body is UNSET else _canonical(bytes(spec.body))
    headers = _sorted(spec.headers)
    notified = [each and _notified(each) for each in msgspec.structs.astuple(hooks or NO_HOOKS)]
    retries = None if policy is None else msgspec.structs.astuple(policy)
    intent: list[object] = [_FORMAT, name, spec.method, spec.url, headers, body, due, sorted(tags), retries, notified]
    intent += [] if flow_key is None else [flow_key]
    # A list, which no flow key is.
    intent += [] if spec.credential is None else [[spec.credential]]
    return hashlib.sha256(msgspec.json.encode(intent)).hexdigest()


def _notified(hook: Hook) -> tuple[object, ...]:
    named = (hook.credential,) if hook.credential else ()
    return hook.url, _sorted(hook.headers or {}), *named


def _sorted(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted((header.lower(), value) for header, value in headers.items())


def encode_cursor(position: PagePosition) -> str:
    """An opaque text for the position where a page ended."""
    packed = _POSITION.pack(_FORMAT, position.submitted_at, uuid.UUID(position.service_call_id).bytes)
    return to_opaque(packed)


def decode_cursor(text: str) -> PagePosition:
    """The position that `encode_cursor` encoded. Raises ValueError for any other text."""
    if _CURSOR.match(text) is None:
        raise ValueError("not the form of a cursor")
    format_, submitted_at, id_bytes = _POSITION.unpack(from_opaque(text))
    position = PagePosition(submitted_at, str(uuid.UUID(bytes=id_bytes)))
    if format_ != _FORMAT or not INSTANT_MIN <= submitted_at <= INSTANT_MAX or encode_cursor(position) != text:
        raise ValueError("not a cursor of this version")
    return position


class _Errors:
    """Collects the invalid fields of one request."""

    def __init__(self) -> None:
        self.found: list[FieldError] = []

    def note(self, path: str, reason: str | None) -> None:
        if reason is not None:
            self.found.append(FieldError(path, reason))

    def note_once(self, path: str, reason: str) -> None:
        """Adds the error unless the field has one: of several checks of a field, the first error is enough."""
        if all(error.path != path for error in self.found):
            self.note(path, reason)

    def text(self, path: str, text: str, chars_max: int) -> None:
        self.note(path, text_reason(text, chars_max))

    def new_text(self, path: str, text: str, chars_max: int) -> None:
        self.note(path, new_text_reason(text, chars_max))

    def uuid7(self, path: str, text: str) -> str:
        """The id in lower case."""
        lower = text.lower()
        if not is_uuid7(lower):
            self.note(path, "must be a UUID of version 7, such as 01890a5d-ac96-774b-bcce-b302099a8057")
        return lower

    def key(self, tenant_id: str, service_call_id: str) -> CallKey:
        return CallKey(self.uuid7("tenantId", tenant_id), self.uuid7("serviceCallId", service_call_id))

    def parsed(self, path: str, text: str | None, parse: Callable[[str], int]) -> int | None:
        """The instant or duration in microseconds; None if there is none or it is invalid."""
        try:
            return None if text is None else parse(text)
        except ValueError as error:
            self.note(path, str(error))
            return None

    def refuse(self, kind: type[InvalidInput] = InvalidInput) -> None:
        """Raises if any field is invalid. `kind` is the error class if exactly one is."""
        if self.found:
            raise (kind if len(self.found) == 1 else InvalidInput)(*self.found)


def _refuse_placeholders(at: str, url: str, headers: Mapping[str, str], errors: _Errors) -> None:
    if withheld(url, headers):
        where = "url" if withheld(url, None) else "headers"
        errors.note_once(f"{at}.{where}", f"contains {REDACTED}, the placeholder for a secret; send the secret itself")
    for name, value in headers.items():
        if has_sealed(value):
            errors.note_once(f"{at}.headers", f"{name} has a value that {LOOKS_SEALED}")


def _statuses(texts: Sequence[str], errors: _Errors) -> frozenset[str]:
    wanted = [status for text in texts for status in text.split(",")]
    if not _STATUSES.issuperset(wanted):
        errors.note("status", f"must be one or several of {', '.join(CallStatus)}, separated by commas")
    return frozenset(wanted)


def _search_text(path: str, text: str | None, chars_max: int, errors: _Errors) -> str:
    if text is not None:
        errors.text(path, text, chars_max)
    return text or ""


def _position(cursor: str | None, errors: _Errors) -> PagePosition | None:
    if cursor is None:
        return None
    try:
        return decode_cursor(cursor)
    except ValueError:
        errors.note("cursor", "is not a valid cursor; send nextCursor of the previous page unchanged")
        return None


def _as_sent(body: bytes | None) -> bytes | None:
    """The body as it is sent: a JSON string as its text, any other value as JSON."""
    if body is None or not body.lstrip().startswith(b'"'):
        return body
    return msgspec.json.decode(body, type=str).encode()


def _canonical(body: bytes) -> str:
    """JSON with sorted members and without white space. A value beyond the decoder's range stays as it is written."""
    try:
        return msgspec.json.encode(msgspec.json.decode(body), order="sorted").decode()
    except (msgspec.MsgspecError, OverflowError, RecursionError, ValueError):
        return body.decode()
