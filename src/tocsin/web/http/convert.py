"""Converts between the wire structs and the model: text to instants and durations, and back."""

from __future__ import annotations

import re
from functools import cache, lru_cache

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.model.access import ApiKey
from tocsin.model.condition import OnConflict
from tocsin.model.errors import FieldError, InvalidInput, PayloadTooLarge
from tocsin.model.explanation import Explanation
from tocsin.model.hooks import NO_HOOKS, Event, Hook, Hooks, field_of, redacted
from tocsin.model.instants import US_PER_SECOND, format_duration, format_instant, parse_duration
from tocsin.model.redaction import redact_headers, redact_url
from tocsin.model.retry import RetryPolicy, resolved
from tocsin.model.run import Run
from tocsin.model.secrets import GRACE_US_DEFAULT, GRACE_US_MAX, new_secret
from tocsin.model.subjects import is_subject_url
from tocsin.model.timer import (
    BINARY_TYPE,
    JSON_TYPE,
    NULL_PAYLOAD,
    TEXT_TYPE,
    Changes,
    LoggedAttempt,
    RawBody,
    Status,
    Timer,
    header_conflicts,
    unsent,
)
from tocsin.model.validation import InputRules
from tocsin.timers.history import RunPage
from tocsin.timers.service import ListRequest, TimerView
from tocsin.web.http import administration, schedule_wire, wire
from tocsin.web.http.access import listed_in
from tocsin.web.http.constraints import ROWS_DEFAULT, bad_fields, below, namespace_of
from tocsin.web.http.debounced import bad_debounce, debounced_answer
from tocsin.web.http.instants import RepeatedInstant, optional_instant, parse_instant, read, read_instant
from tocsin.web.http.optional import or_default, or_none
from tocsin.web.http.replays import REPLAYED_MAX, ReplayTimers

#: Fields of hooks in structs, with the event and the field's path.
_HOOKS = tuple((f"on_{event}", event.value, field_of(event)) for event in Event)
#: Requests that define what is sent to a callback.
SentCall = wire.CreateTimer | wire.UpdateTimer | schedule_wire.CreateSchedule | schedule_wire.UpdateSchedule

#: W3C Trace Context, section 3.2: version ff and ids of zeros are invalid.
_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}\Z")

_DEFAULT_TIMEOUT_S = 10
_DEFAULT_TIMEOUT_US = _DEFAULT_TIMEOUT_S * US_PER_SECOND
#: The timers of a batch have one instant of creation.
_created = RepeatedInstant()
_NO_CHANGES = Changes()
#: Cached retry policies in wire form; the timers of one application share a few policies.
_POLICIES_CACHED_MAX = 256


@cache
def _hooks_in(struct: type[msgspec.Struct]) -> tuple[tuple[str, str, str], ...]:
    """Those of `_HOOKS` that a request's struct has."""
    return tuple(each for each in _HOOKS if each[0] in struct.__struct_fields__)


def traceparent_of(header: bytes | None) -> str | None:
    """The header if it is valid; an invalid one is treated as absent, as the specification requires."""
    return header.decode() if header is not None and _TRACEPARENT.match(header) else None


class RequestParser:
    """Turns requests into domain values. Every method raises InvalidInput with all bad fields of the request."""

    def __init__(self, rules: InputRules) -> None:
        #: The checks on values.
        self.rules = rules

    def timer(self, sent: wire.CreateTimer, now_us: int, traceparent: str | None) -> Timer:
        """The timer to create; a delay counts from `now_us`."""
        errors = bad_fields(sent, self.rules)
        timer_id = _timer_id(sent, "id", errors)
        execute_at = self._execute_at(sent, now_us, errors)
        if execute_at is UNSET and sent.on_conflict is not OnConflict.DEBOUNCE:
            errors.append(FieldError("executeAt", "is missing; send executeAt or delay"))
        if sent.on_conflict is OnConflict.DEBOUNCE or sent.max_delay is not UNSET or sent.collect is not UNSET:
            errors += bad_debounce(sent, self.rules)
        call = self.call(sent, execute_at, errors)
        if errors or execute_at is UNSET:
            raise self.refusal(errors, call)
        return new_timer(sent.namespace, timer_id, execute_at, call, now_us, traceparent)

    def changes(self, sent: wire.UpdateTimer, now_us: int) -> Changes:
        """The requested changes; a delay counts from `now_us`."""
        errors = bad_fields(sent, self.rules)
        _timer_id(sent, "timerId", errors)
        changes = self.call(sent, self._execute_at(sent, now_us, errors), errors)
        if not errors and changes == _NO_CHANGES:
            errors.append(FieldError("", "the request changes nothing; send a field besides namespace and timerId"))
        if errors:
            raise self.refusal(errors, changes)
        return changes

    def replay(self, sent: ReplayTimers, now_us: int) -> Changes:
        """The changes with which the timers are replayed; a delay counts from `now_us`."""
        errors = bad_fields(sent, self.rules)
        if not 1 <= len(sent.ids) <= REPLAYED_MAX:
            errors.append(FieldError("ids", f"has {len(sent.ids)} entries; send 1 to {REPLAYED_MAX}"))
        else:
            reasons = ((position, self.rules.timer_id(each)) for position, each in enumerate(sent.ids))
            errors += [FieldError(f"ids[{position}]", reason) for position, reason in reasons if reason]
            if len(set(sent.ids)) < len(sent.ids):
                errors.append(FieldError("ids", "has duplicates; give each id once"))
        execute_at = self._execute_at(sent, now_us, errors)
        if sent.set_headers:
            errors += self.rules.headers(sent.set_headers, "setHeaders")
        if errors:
            raise InvalidInput(*errors)
        return Changes(execute_at=execute_at, url=sent.set_url, headers=sent.set_headers)

    def name(self, sent: wire.TimerName) -> tuple[str, str]:
        """The timer's namespace and id."""
        errors = bad_fields(sent, self.rules)
        _timer_id(sent, "timerId", errors)
        if errors:
            raise InvalidInput(*errors)
        return name_of(sent)

    def history_request(self, sent: wire.TimerHistory) -> tuple[str, str, int, str | None]:
        """The timer's namespace and id, and the limit and cursor of the page of its runs."""
        return *self.name(sent), or_default(sent.limit, ROWS_DEFAULT), or_none(sent.cursor)

    def list_request(self, sent: wire.ListTimers, key: ApiKey | None) -> ListRequest:
        """The list that is requested with the key."""
        errors = bad_fields(sent, self.rules)
        if sent.tags is not UNSET:
            errors += self.rules.tags(sent.tags, "tags")
        after = read_instant("executeAfter", sent.execute_after, errors)
        before = read_instant("executeBefore", sent.execute_before, errors)
        if errors:
            raise InvalidInput(*errors)
        wanted = [] if sent.status is UNSET else [sent.status] if isinstance(sent.status, Status) else sent.status
        return ListRequest(
            scope=listed_in(key, sent.namespace),
            statuses=frozenset(wanted),
            tags=tuple(or_default(sent.tags, [])),
            id_prefix=or_default(sent.id_prefix, ""),
            execute_after=after,
            execute_before=before,
            destination=or_default(sent.destination, ""),
            error=or_default(sent.error, ""),
            limit=or_default(sent.limit, ROWS_DEFAULT),
            cursor=or_none(sent.cursor),
        )

    def rotation(self, sent: administration.RotationSent, errors: list[FieldError]) -> administration.Rotation:
        """The rotation of a secret, of a namespace or a tenant; `errors` are those found in its owner's name."""
        errors = bad_fields(sent, self.rules) + errors
        grace_us = GRACE_US_DEFAULT
        if sent.grace is not UNSET:
            grace_us = read(parse_duration, "grace", sent.grace, errors)
            if grace_us > GRACE_US_MAX:
                reason = f"is too long; at most {format_duration(GRACE_US_MAX)} are accepted"
                errors.append(FieldError("grace", reason))
        if errors:
            raise InvalidInput(*errors)
        return administration.Rotation(
            new_secret() if sent.secret is UNSET else sent.secret, grace_us, sent.force is True
        )

    def refusal(self, errors: list[FieldError], call: Changes) -> InvalidInput:
        """The error to raise: a payload that is too large, and nothing else, has another status."""
        payload = call.payload if call.body is UNSET else call.body.sent()
        size = 0 if payload is UNSET else len(payload)
        too_large = size > self.rules.limits.payload_bytes_max
        return (PayloadTooLarge if too_large and len(errors) == 1 else InvalidInput)(*errors)

    def _execute_at(
        self, sent: wire.CreateTimer | wire.UpdateTimer | ReplayTimers, now_us: int, errors: list[FieldError]
    ) -> int | UnsetType:
        """The requested instant, given as an instant or as a delay."""
        rules, found = self.rules, len(errors)
        if sent.execute_at is not UNSET:
            if sent.delay is not UNSET:
                errors.append(FieldError("delay", "conflicts with executeAt; send only one of them"))
            instant_us = read(parse_instant, "executeAt", sent.execute_at, errors)
            if len(errors) == found and (reason := rules.instant(instant_us, now_us)):
                errors.append(FieldError("executeAt", reason))
            return instant_us
        if sent.delay is UNSET:
            return UNSET
        delay_us = read(parse_duration, "delay", sent.delay, errors)
        if reason := rules.delay(delay_us):
            errors.append(FieldError("delay", reason))
        return now_us + delay_us

    def call(self, sent: SentCall, execute_at: int | UnsetType, errors: list[FieldError]) -> Changes:
        """The callback of a timer or schedule: the fields that creating and updating share, to whose `errors` this adds those
        that `bad_fields` does not find."""
        rules = self.rules
        payload = sent.payload
        if payload is not UNSET:
            # A copy: a reference to a few bytes of payload would keep the whole body in memory.
            payload = payload.copy()
            if reason := rules.payload(bytes(payload)):
                errors.append(FieldError("payload", reason))
        body = UNSET if sent.body is UNSET else self._raw_body(sent, sent.body, errors)
        if sent.method is not UNSET:
            errors += unsent(sent.method, payload, body)
            if sent.callback_url is not UNSET and is_subject_url(sent.callback_url):
                errors.append(FieldError("method", "does not apply to a NATS subject; leave it out"))
        if sent.headers:
            errors += rules.headers(sent.headers, "headers")
        retry = self.policy(sent.retry_policy, errors)
        timeout_us: int | UnsetType = UNSET
        if sent.callback_timeout_seconds is not UNSET and not errors:
            timeout_us = round(sent.callback_timeout_seconds * US_PER_SECOND)
        tags: tuple[str, ...] | UnsetType = UNSET
        if sent.tags is not UNSET:
            tags = tuple(sent.tags)
            errors += rules.new_tags(sent.tags, "tags")
        return Changes(
            execute_at, sent.callback_url, payload, retry, timeout_us, sent.method, sent.headers, tags, body,
            self._expire_after(sent.expire_after, errors), sent.description, self.hooks(sent, errors),
            UNSET if sent.flow_key is UNSET else sent.flow_key or "",
            credential=UNSET if sent.credential is UNSET else sent.credential or "",
        )  # fmt: skip

    def hooks(self, sent: msgspec.Struct, errors: list[FieldError]) -> dict[str, Hook | None] | UnsetType:
        """The hooks in a request's fields, by their events; None for those to be removed."""
        found: dict[str, Hook | None] = {}
        for name, event, path in _hooks_in(type(sent)):
            hook: wire.Hook | UnsetType | None = getattr(sent, name)
            if hook is UNSET:
                continue
            found[event] = None
            if hook is None:
                continue
            bad = bad_fields(hook, self.rules, namespace_of(sent))
            headers = or_none(hook.headers)
            if headers:
                bad += [*self.rules.headers(headers, "headers"), *header_conflicts(headers)]
            errors += below(path, bad)
            found[event] = Hook(hook.url, headers, or_default(hook.credential, ""))
        return found or UNSET

    def _expire_after(self, text: str | UnsetType | None, errors: list[FieldError]) -> int | UnsetType | None:
        if text is UNSET or text is None:
            return text
        found = len(errors)
        expire_after_us = read(parse_duration, "expireAfter", text, errors)
        if len(errors) == found and (reason := self.rules.expire_after(expire_after_us)):
            errors.append(FieldError("expireAfter", reason))
        return expire_after_us

    def _raw_body(self, sent: SentCall, body: wire.RawBody, errors: list[FieldError]) -> RawBody | UnsetType:
        rules = self.rules
        if sent.payload is not UNSET:
            errors.append(FieldError("body", "conflicts with payload; send only one of them"))
        if body.content_type is not UNSET and (reason := rules.content_type(body.content_type)):
            errors.append(FieldError("body.contentType", reason))
        if sent.headers:
            errors += header_conflicts(sent.headers)
        forms = (body.json, body.text, body.base64)
        if sum(form is not UNSET for form in forms) != 1:
            errors.append(FieldError("body", "must have exactly one of json, text and base64"))
        elif body.json is not UNSET:
            if reason := rules.payload(bytes(body.json)):
                errors.append(FieldError("body.json", reason))
            return RawBody(or_default(body.content_type, JSON_TYPE), json=body.json.copy())
        else:
            name, default = ("text", TEXT_TYPE) if body.text is not UNSET else ("base64", BINARY_TYPE)
            raw = RawBody(or_default(body.content_type, default), text=body.text, base64=body.base64)
            try:
                size = len(raw.sent())
            except ValueError:
                errors.append(
                    FieldError(f"body.{name}", "is not valid base64; use the standard alphabet (+ and /) with padding")
                )
                return UNSET
            if reason := rules.raw_size(size):
                errors.append(FieldError(f"body.{name}", reason))
            return raw
        return UNSET

    def policy(
        self, sent: wire.RetryPolicy | UnsetType | None, errors: list[FieldError]
    ) -> RetryPolicy | UnsetType | None:
        """The policy with all its members filled in; UNSET and None are returned unchanged."""
        if sent is UNSET or sent is None:
            return sent
        found = len(errors)
        at, initial, longest, total = "retryPolicy.", None, None, None
        if sent.initial_interval is not UNSET:
            initial = read(parse_duration, f"{at}initialInterval", sent.initial_interval, errors)
        if isinstance(sent.max_attempts_duration, str):
            total = read(parse_duration, f"{at}maxAttemptsDuration", sent.max_attempts_duration, errors)
        if sent.max_interval is not UNSET:
            longest = read(parse_duration, f"{at}maxInterval", sent.max_interval, errors)
        policy = resolved(or_none(sent.max_attempts), total, initial, or_none(sent.backoff_multiplier), longest)
        unreadable = {error.path for error in errors[found:]}
        errors += [error for error in self.rules.retry(policy, "retryPolicy") if error.path not in unreadable]
        return policy


def new_timer(
    namespace: str, timer_id: str, execute_at: int, call: Changes, now_us: int, traceparent: str | None
) -> Timer:
    """A timer with this callback, which has a URL."""
    assert call.url is not UNSET
    return Timer(
        namespace,
        timer_id,
        execute_at,
        call.url,
        now_us,
        now_us,
        NULL_PAYLOAD if call.payload is UNSET else call.payload,
        "POST" if call.method is UNSET else call.method,
        None if call.headers is UNSET else call.headers,
        None if call.retry is UNSET else call.retry,
        _DEFAULT_TIMEOUT_US if call.timeout_us is UNSET else call.timeout_us,
        () if call.tags is UNSET else call.tags,
        traceparent,
        body=None if call.body is UNSET else call.body,
        expire_after_us=None if call.expire_after_us is UNSET else call.expire_after_us,
        description=None if call.description is UNSET else call.description,
        flow_key="" if call.flow_key is UNSET else call.flow_key,
        credential="" if call.credential is UNSET else call.credential,
        hooks=None if call.hooks is UNSET else NO_HOOKS.changed(call.hooks),
    )


def timer_answer(view: TimerView) -> wire.Timer:
    """The timer as clients of every role see it: without the secrets in its URL and headers."""
    timer = view.timer
    execute_at = format_instant(timer.execute_at)
    created_at = _created.format(timer.created_at)
    next_at = view.next_attempt_at
    uuid = view.uuid.hex()
    answer = wire.Timer(
        timer.namespace,
        timer.id,
        f"{uuid[:8]}-{uuid[8:12]}-{uuid[12:16]}-{uuid[16:20]}-{uuid[20:]}",
        view.shard_id,
        timer.status,
        execute_at,
        redact_url(timer.url),
        timer.method,
        redact_headers(timer.headers) if timer.headers else {},
        _DEFAULT_TIMEOUT_S if timer.timeout_us == _DEFAULT_TIMEOUT_US else seconds_answer(timer.timeout_us),
        list(timer.tags) if timer.tags else [],
        timer.attempts,
        [attempt_answer(attempt) for attempt in timer.attempt_log] if timer.attempt_log else [],
        created_at,
        created_at if timer.updated_at == timer.created_at else format_instant(timer.updated_at),
        timer.payload if timer.body is None else UNSET,
        UNSET if timer.retry is None else retry_answer(timer.retry),
        UNSET if next_at is None else execute_at if next_at == timer.execute_at else format_instant(next_at),
        UNSET if timer.executed_at is None else format_instant(timer.executed_at),
        UNSET if timer.last_error is None else timer.last_error,
        UNSET if timer.body is None else raw_body_answer(timer.body),
        UNSET if timer.expire_after_us is None else format_duration(timer.expire_after_us),
        UNSET if timer.description is None else timer.description,
        timer.flow_key or UNSET,
        timer.credential or UNSET,
        UNSET if view.suspended is None else view.suspended,
        UNSET if view.explanation is None else explanation_answer(view.explanation),
    )
    if timer.hooks is not None:
        set_hooks(answer, timer.hooks)
    if timer.debounced is not None:
        answer.debounced = debounced_answer(timer.debounced)
    return answer


def set_hooks(answer: msgspec.Struct, hooks: Hooks | None) -> None:
    """Sets the answer's fields of the hooks that there are, without their secrets."""
    for name, event, _ in _HOOKS:
        hook: Hook | None = getattr(hooks or NO_HOOKS, event)
        if hook is not None:
            shown = redacted(hook)
            setattr(answer, name, wire.HookAnswer(shown.url, shown.headers or UNSET, shown.credential or UNSET))


def history_answer(page: RunPage) -> wire.RunPageAnswer:
    """The page as clients see it."""
    return wire.RunPageAnswer([_run_answer(run) for run in page.runs], UNSET if page.cursor is None else page.cursor)


def _run_answer(run: Run) -> wire.RunAnswer:
    attempts = [attempt_answer(attempt) for attempt in run.attempts]
    return wire.RunAnswer(
        run.firing, format_instant(run.execute_at), run.status, run.made, attempts, True if run.replay else UNSET
    )


def attempt_answer(attempt: LoggedAttempt) -> wire.Attempt:
    """The attempt as clients see it."""
    return wire.Attempt(
        format_instant(attempt.at),
        attempt.duration_us / 1_000,
        attempt.status or UNSET,
        UNSET if attempt.error is None else attempt.error,
        UNSET if attempt.answer is None else attempt.answer,
        UNSET if attempt.batch is None else attempt.batch,
    )


def explanation_answer(found: Explanation) -> wire.Explanation:
    """The explanation as clients see it."""
    return wire.Explanation(
        found.state,
        found.shard_id,
        found.owner,
        found.sentence,
        UNSET if found.waits_for is None else found.waits_for,
        optional_instant(found.next_at),
        UNSET if found.attempt is None else found.attempt,
        optional_instant(found.since),
    )


def raw_body_answer(body: RawBody) -> wire.RawBodyAnswer:
    """The raw body as clients see it; they can send it back unchanged."""
    return wire.RawBodyAnswer(body.content_type, body.json, body.text, body.base64)


@lru_cache(maxsize=_POLICIES_CACHED_MAX)
def retry_answer(policy: RetryPolicy) -> wire.RetryPolicyAnswer:
    """The policy as clients see it."""
    total = policy.max_duration_us
    return wire.RetryPolicyAnswer(
        max_attempts=policy.max_attempts,
        initial_interval=format_duration(policy.initial_interval_us),
        backoff_multiplier=policy.backoff_multiplier,
        max_interval=format_duration(policy.max_interval_us),
        max_attempts_duration=UNSET if total is None else format_duration(total),
    )


def _timer_id(
    sent: wire.CreateTimer | wire.TimerName | wire.UpdateTimer, documented: str, errors: list[FieldError]
) -> str:
    """The timer's id, sent as `id` or as `timerId`; `documented` is the name to use in errors about a missing one."""
    timer_id = sent.id if sent.timer_id is UNSET else sent.timer_id
    if timer_id is UNSET:
        errors.append(FieldError(documented, "is missing"))
        return ""
    if sent.id is not UNSET and sent.id != timer_id:
        errors.append(FieldError("timerId", f"differs from id; both name the timer, so send {documented} only"))
    return timer_id


def name_of(sent: wire.TimerName | wire.UpdateTimer) -> tuple[str, str]:
    """The namespace and id in a request that has been checked."""
    timer_id = sent.id if sent.timer_id is UNSET else sent.timer_id
    assert timer_id is not UNSET
    return sent.namespace, timer_id


def seconds_answer(duration_us: int) -> float:
    """Seconds; a whole number if there is no fraction."""
    return duration_us / US_PER_SECOND if duration_us % US_PER_SECOND else duration_us // US_PER_SECOND


def below_path(error: InvalidInput, at: str) -> InvalidInput:
    """The same error with its fields' paths below `at`."""
    kind = PayloadTooLarge if isinstance(error, PayloadTooLarge) else InvalidInput
    return kind(*(FieldError(f"{at}.{bad.path}" if bad.path else at, bad.reason) for bad in error.errors))
