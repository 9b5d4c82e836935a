# Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
"""What requests and answers contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from tocsin_client._values import (
    UNSET,
    Duration,
    Instant,
    JsonValue,
    Unset,
    duration_text,
    instant_text,
    list_json,
    map_json,
    object_json,
    parse_instant,
    seconds_of,
)

#: The action that an entry records.
AuditAction: TypeAlias = Literal[
    "sign_in",
    "sign_in_failed",
    "sign_out",
    "key_created",
    "key_changed",
    "key_deleted",
    "namespace_created",
    "namespace_changed",
    "namespace_deleted",
    "secret_rotated",
    "tenant_labeled",
    "failures_dismissed",
    "flow_changed",
    "flow_deleted",
    "calendar_changed",
    "calendar_deleted",
    "credential_changed",
    "credential_deleted",
    "monitor_changed",
    "monitor_paused",
    "monitor_resumed",
    "monitor_rotated",
    "monitor_deleted",
    "destination_changed",
    "job_created",
    "job_changed",
    "job_ended",
    "inbox_opened",
    "inbox_replayed",
    "inbox_deleted",
    "timer_created",
    "timers_canceled",
    "timers_replayed",
    "schedule_created",
    "schedule_deleted",
]

#: Where a change came from.
AuditSource: TypeAlias = Literal["api", "pages", "cli", "mcp", "inbox"]

#: `closed`: attempts begin as usual. `open`: none begins before the wait is over. `half_open`: probes, one at a time.
BreakerState: TypeAlias = Literal["closed", "open", "half_open"]

#: How responses to a namespace's callbacks are interpreted.
CallbackAnswers: TypeAlias = Literal["standard", "strict"]

#: The method of a callback. GET and HEAD have no body.
CallbackMethod: TypeAlias = Literal["POST", "GET", "PUT", "PATCH", "DELETE", "HEAD"]

#: What becomes of instants that pass while a schedule cannot fire.
CatchUp: TypeAlias = Literal["latest", "all", "none"]

#: Where a token endpoint gets the client's secret.
ClientAuth: TypeAlias = Literal["basic", "post"]

#: How a request identifies itself.
CredentialType: TypeAlias = Literal["basic", "bearer", "oauth2ClientCredentials", "jwt", "mtls"]

#: Why an instant doesn't fire: its date is of a calendar of `skip`, or of none of `only`; it was skipped by hand
#: (once); or a calendar is missing, so that nobody knows.
ExclusionReason: TypeAlias = Literal["only", "skip", "once", "missing"]

#: What failed.
FailedKind: TypeAlias = Literal["timer", "occurrence", "notification", "call"]

#: What the failures of a group have in common.
FailureGroupedBy: TypeAlias = Literal["namespace", "tenant", "destination", "error", "kind"]

#: Why an attempt failed; docs/reference/errors.md has a remedy for each.
FailureKind: TypeAlias = Literal[
    "NO_STREAM",
    "NATS_REFUSED",
    "CALLBACK_NOT_OK",
    "INVALID_CALLBACK_RESPONSE",
    "NO_RESULT",
    "TIMEOUT",
    "CONNECTION_FAILED",
    "CONNECTION_CLOSED",
    "NAME_NOT_RESOLVED",
    "TLS_FAILED",
    "BAD_RESPONSE",
    "EGRESS_REFUSED",
    "SECRET_UNREADABLE",
    "INVALID_REQUEST",
    "INVALID_SECRET",
    "SHUTDOWN",
    "EXPIRED",
    "HTTP_STATUS",
    "INTERRUPTED",
    "START_TIMEOUT",
    "WATCHDOG_TIMEOUT",
]

#: Which finished timers stay visible until retention removes them.
HistoryMode: TypeAlias = Literal["all", "failures", "none"]

#: What a job does with each row.
JobAction: TypeAlias = Literal["cancel", "shift", "setUrl", "pause", "resume", "delete", "replay"]

#: What a job changes.
JobKind: TypeAlias = Literal["timers", "schedules", "failures", "calls", "namespace"]

#: running and paused ones go on, or may; completed, canceled and failed ones have ended.
JobState: TypeAlias = Literal["running", "paused", "completed", "canceled", "failed"]

#: What an API key allows; each role includes the previous ones.
KeyRole: TypeAlias = Literal["read", "write", "admin"]

#: The state of a schedule that has not ended.
LiveScheduleStatus: TypeAlias = Literal["active", "paused"]

#: What is known of a monitor's job.
MonitorState: TypeAlias = Literal["new", "up", "late", "failed", "paused"]

#: Why an occurrence fired.
OccurrenceSource: TypeAlias = Literal["regular", "trigger", "backfill", "replay"]

#: What a create does if a timer with its id exists.
OnConflict: TypeAlias = Literal["replace", "keep", "reject", "debounce"]

#: What becomes of an instant that a calendar excludes.
OnSkipped: TypeAlias = Literal["none", "next"]

#: How a period of a monitor ended.
PeriodState: TypeAlias = Literal["onTime", "late", "missed", "failed", "excused"]

#: What a ping reports.
PingEvent: TypeAlias = Literal["success", "start", "fail"]

#: How a run stands or ended.
RunStatus: TypeAlias = Literal[
    "pending", "completed", "failed", "canceled", "expired", "rescheduled", "superseded", "missed"
]

#: A schedule's state. Only `active` schedules fire at their instants.
ScheduleStatus: TypeAlias = Literal["active", "paused", "ended"]

#: The method of a service call's request.
ServiceCallMethod: TypeAlias = Literal["POST", "GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]

#: A service call's state.
ServiceCallStatus: TypeAlias = Literal["Scheduled", "Running", "Retrying", "Succeeded", "Failed"]

#: The length of a slot.
StatisticsResolution: TypeAlias = Literal["minute", "tenMinutes"]

#: Where a timer is. `scheduled`, `retrying`: its instant, or that of its next attempt, is in the future. `waiting`:
#: it is due and waits for its turn. `firing`: an attempt is in flight. `writing`: a result or a change is being
#: stored. `paused`: its namespace is paused, or is being deleted. `suspended`: its stored record can't be read, or
#: the settings of the node that owns its shard forbid the address that its URL leads to. `blocked`: it is due, and no
#: node fires it now. `unknown`: it is due, and the owner of its shard could not be asked. `finished`: it has its
#: final status.
TimerState: TypeAlias = Literal[
    "scheduled", "retrying", "waiting", "firing", "writing", "paused", "suspended", "blocked", "unknown", "finished"
]

#: A timer's state. Only `pending` timers fire and can be changed.
TimerStatus: TypeAlias = Literal["pending", "completed", "failed", "canceled", "expired"]

#: What has to happen before the timer moves on. `instant`: its time. `destination`, `namespace`, `node`: a free slot
#: there; a paused namespace: that it is resumed. `flow`: a slot or a token of its flow, or of its namespace's limits;
#: a paused flow: that it is resumed. `response`: that of the receiver. `write`: that results or changes are stored.
#: `lease`, `clock`: that of the node that owns its shard. `owner`: a node that owns its shard. `create`: that a
#: client creates it again. `egress`: that the settings permit its address, or its URL leads elsewhere. `secret`: the
#: key under which one of its secrets is encrypted. `credential`: that its credential can be sent: it has a token,
#: exists, and may go to the URL.
TimerWaitsFor: TypeAlias = Literal[
    "instant",
    "destination",
    "namespace",
    "node",
    "flow",
    "response",
    "write",
    "lease",
    "clock",
    "owner",
    "create",
    "egress",
    "secret",
    "credential",
]

#: What a service call waits for: its due time, or a retry.
WaitingStatus: TypeAlias = Literal["Scheduled", "Retrying"]

#: A day of the week.
Weekday: TypeAlias = Literal["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]


@dataclass(kw_only=True, slots=True)
class CreateTimer:
    """A timer to create; send exactly one of `executeAt` and `delay`, and at most one of `payload` and `body`.
    `maxDelay` and `collect` belong to `onConflict: debounce`, which takes `delay` only."""

    #: The namespace's name.
    namespace: str
    #: The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets.
    callback_url: str
    #: The timer's id, unique in its namespace.
    id: str
    #: An RFC 3339 instant with a time zone.
    execute_at: Instant | Unset = UNSET
    #: A duration: 500ms, 30s, 5m, 1h30m, 7d.
    delay: Duration | Unset = UNSET
    #: What to do if a timer with this id exists, pending or finished and retained: replace it (the default), keep it and
    #: return it, or reject the request; or debounce: fire once for all creates that follow one another, delay after the
    #: latest.
    on_conflict: OnConflict | Unset = UNSET
    #: With onConflict debounce, required: the timer fires at the latest this long after the first create for which it
    #: stands. Of different values, each is kept.
    max_delay: Duration | Unset = UNSET
    #: With onConflict debounce: the callback's payload is an array of the payloads of all creates for which it stands, at
    #: most this many, and 100 KiB. Without it, the payload is that of the latest create.
    collect: int | Unset = UNSET
    #: Makes the create safe to repeat: a timer with this id that was created with the same key is returned unchanged,
    #: even after it has finished. Equivalent to the header Idempotency-Key.
    idempotency_key: str | Unset = UNSET
    #: Any JSON, delivered exactly as sent; at most 102400 bytes, and 100 levels of nested arrays and objects. With GET
    #: and HEAD, which send none, only null.
    payload: JsonValue | Unset = UNSET
    #: The whole body of the callback, instead of the envelope with the payload.
    body: RawBody | Mapping[str, Any] | Unset = UNSET
    #: The HTTP method of the callback.
    method: CallbackMethod | Unset = UNSET
    #: Additional headers of the callback. The value [redacted] keeps the timer's stored value.
    headers: Mapping[str, str] | None | Unset = UNSET
    #: Without one, each attempt uses the namespace's current policy.
    retry_policy: RetryPolicy | Mapping[str, Any] | None | Unset = UNSET
    #: Timeout of one attempt, in seconds. Default 10.
    callback_timeout_seconds: float | Unset = UNSET
    #: Labels to filter lists by.
    tags: Sequence[str] | Unset = UNSET
    #: No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as expired then,
    #: any other as failed.
    expire_after: Duration | Unset = UNSET
    #: What it is for, in one line; shown in lists and never sent to the callback.
    description: str | None | Unset = UNSET
    #: The flow that limits how many of its attempts begin and are in flight at once, if a rule of the namespace matches
    #: it.
    flow_key: str | None | Unset = UNSET
    #: The namespace's credential that its requests have; it goes to no other origin than the credential's own.
    credential: str | None | Unset = UNSET
    #: Who is notified when it has failed, or expired.
    on_failure: Hook | Mapping[str, Any] | Unset = UNSET
    #: Who is notified when it has succeeded.
    on_success: Hook | Mapping[str, Any] | Unset = UNSET
    #: Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its replay.
    on_recovery: Hook | Mapping[str, Any] | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "callbackUrl": self.callback_url,
            "id": self.id,
        }
        if self.execute_at is not UNSET:
            sent["executeAt"] = instant_text("execute_at", self.execute_at)
        if self.delay is not UNSET:
            sent["delay"] = duration_text("delay", self.delay)
        if self.on_conflict is not UNSET:
            sent["onConflict"] = self.on_conflict
        if self.max_delay is not UNSET:
            sent["maxDelay"] = duration_text("max_delay", self.max_delay)
        if self.collect is not UNSET:
            sent["collect"] = self.collect
        if self.idempotency_key is not UNSET:
            sent["idempotencyKey"] = self.idempotency_key
        if self.payload is not UNSET:
            sent["payload"] = self.payload
        if self.body is not UNSET:
            sent["body"] = object_json("body", self.body, RawBody)
        if self.method is not UNSET:
            sent["method"] = self.method
        if self.headers is not UNSET:
            sent["headers"] = None if self.headers is None else map_json("headers", self.headers)
        if self.retry_policy is not UNSET:
            sent["retryPolicy"] = (
                None if self.retry_policy is None else object_json("retry_policy", self.retry_policy, RetryPolicy)
            )
        if self.callback_timeout_seconds is not UNSET:
            sent["callbackTimeoutSeconds"] = seconds_of("callback_timeout_seconds", self.callback_timeout_seconds)
        if self.tags is not UNSET:
            sent["tags"] = list_json("tags", self.tags)
        if self.expire_after is not UNSET:
            sent["expireAfter"] = duration_text("expire_after", self.expire_after)
        if self.description is not UNSET:
            sent["description"] = self.description
        if self.flow_key is not UNSET:
            sent["flowKey"] = self.flow_key
        if self.credential is not UNSET:
            sent["credential"] = self.credential
        if self.on_failure is not UNSET:
            sent["onFailure"] = object_json("on_failure", self.on_failure, Hook)
        if self.on_success is not UNSET:
            sent["onSuccess"] = object_json("on_success", self.on_success, Hook)
        if self.on_recovery is not UNSET:
            sent["onRecovery"] = object_json("on_recovery", self.on_recovery, Hook)
        return sent


@dataclass(kw_only=True, slots=True)
class RawBody:
    """A callback body that is sent, and signed, exactly as given; send one of `json`, `text` and `base64`. The fields
    that otherwise surround the payload are sent as headers: `tocsin-namespace`, `tocsin-timer-id` (percent-encoded),
    `tocsin-execute-at`, `tocsin-fired-at`, `tocsin-attempt`."""

    #: Any JSON, sent byte for byte as written; at most 102400 bytes.
    json: JsonValue | Unset = UNSET
    #: Text, sent in UTF-8.
    text: str | Unset = UNSET
    #: Bytes, in base64 with padding.
    base64: str | Unset = UNSET
    #: The body's media type. Default: application/json, text/plain; charset=utf-8 or application/octet-stream.
    content_type: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {}
        if self.json is not UNSET:
            sent["json"] = self.json
        if self.text is not UNSET:
            sent["text"] = self.text
        if self.base64 is not UNSET:
            sent["base64"] = self.base64
        if self.content_type is not UNSET:
            sent["contentType"] = self.content_type
        return sent


@dataclass(kw_only=True, slots=True)
class RetryPolicy:
    """How often and for how long failed attempts are retried. The delay grows from `initialInterval` by
    `backoffMultiplier` up to `maxInterval`."""

    #: Maximum number of attempts, including the first. Default 10.
    max_attempts: int | Unset = UNSET
    #: No attempt starts later than this after the first.
    max_attempts_duration: Duration | None | Unset = UNSET
    #: Delay before the second attempt. Default 5s, or maxInterval if shorter.
    initial_interval: Duration | Unset = UNSET
    #: Factor by which each delay grows. Default 3.
    backoff_multiplier: float | Unset = UNSET
    #: Maximum delay. Default 4h, or initialInterval if longer.
    max_interval: Duration | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {}
        if self.max_attempts is not UNSET:
            sent["maxAttempts"] = self.max_attempts
        if self.max_attempts_duration is not UNSET:
            sent["maxAttemptsDuration"] = (
                None
                if self.max_attempts_duration is None
                else duration_text("max_attempts_duration", self.max_attempts_duration)
            )
        if self.initial_interval is not UNSET:
            sent["initialInterval"] = duration_text("initial_interval", self.initial_interval)
        if self.backoff_multiplier is not UNSET:
            sent["backoffMultiplier"] = self.backoff_multiplier
        if self.max_interval is not UNSET:
            sent["maxInterval"] = duration_text("max_interval", self.max_interval)
        return sent


@dataclass(kw_only=True, slots=True)
class Hook:
    """Where a notification is sent, signed like a callback."""

    #: The http or https URL, or `nats://subject`, to notify.
    url: str
    #: Additional headers of the notification. The value [redacted] keeps the stored value.
    headers: Mapping[str, str] | Unset = UNSET
    #: The credential that the notification has: of the namespace; for service calls, of that which
    #: `agent.credentials_namespace` names.
    credential: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "url": self.url,
        }
        if self.headers is not UNSET:
            sent["headers"] = map_json("headers", self.headers)
        if self.credential is not UNSET:
            sent["credential"] = self.credential
        return sent


@dataclass(kw_only=True, slots=True)
class TimerName:
    """Identifies a timer."""

    #: The namespace's name.
    namespace: str
    #: The timer's id, unique in its namespace.
    timer_id: str

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "timerId": self.timer_id,
        }
        return sent


@dataclass(kw_only=True, slots=True)
class TimerHistory:
    """A timer whose runs are wanted."""

    #: The namespace's name.
    namespace: str
    #: The timer's id, unique in its namespace.
    timer_id: str
    #: Maximum number of runs on the page. Default 100.
    limit: int | Unset = UNSET
    #: `nextCursor` of the previous page.
    cursor: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "timerId": self.timer_id,
        }
        if self.limit is not UNSET:
            sent["limit"] = self.limit
        if self.cursor is not UNSET:
            sent["cursor"] = self.cursor
        return sent


@dataclass(kw_only=True, slots=True)
class UpdateTimer:
    """Changes to a pending timer; absent fields stay unchanged. Null removes `headers`, `expireAfter`, `description`,
    `flowKey`, `credential` and the hooks; a null `retryPolicy` returns to the namespace's policy. `payload` and `body`
    replace one another. Send at most one of `executeAt` and `delay`."""

    #: The namespace's name.
    namespace: str
    #: The timer's id, unique in its namespace.
    timer_id: str
    #: An RFC 3339 instant with a time zone.
    execute_at: Instant | Unset = UNSET
    #: A duration: 500ms, 30s, 5m, 1h30m, 7d.
    delay: Duration | Unset = UNSET
    #: The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets.
    callback_url: str | Unset = UNSET
    #: Any JSON, delivered exactly as sent; at most 102400 bytes, and 100 levels of nested arrays and objects. With GET
    #: and HEAD, which send none, only null.
    payload: JsonValue | Unset = UNSET
    #: The whole body of the callback, instead of the envelope with the payload.
    body: RawBody | Mapping[str, Any] | Unset = UNSET
    #: The HTTP method of the callback.
    method: CallbackMethod | Unset = UNSET
    #: Additional headers of the callback. The value [redacted] keeps the timer's stored value.
    headers: Mapping[str, str] | None | Unset = UNSET
    #: Without one, each attempt uses the namespace's current policy.
    retry_policy: RetryPolicy | Mapping[str, Any] | None | Unset = UNSET
    #: Timeout of one attempt, in seconds. Default 10.
    callback_timeout_seconds: float | Unset = UNSET
    #: Labels to filter lists by.
    tags: Sequence[str] | Unset = UNSET
    #: No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as expired then,
    #: any other as failed.
    expire_after: Duration | None | Unset = UNSET
    #: What it is for, in one line; shown in lists and never sent to the callback.
    description: str | None | Unset = UNSET
    #: The flow that limits how many of its attempts begin and are in flight at once, if a rule of the namespace matches
    #: it.
    flow_key: str | None | Unset = UNSET
    #: The namespace's credential that its requests have; it goes to no other origin than the credential's own.
    credential: str | None | Unset = UNSET
    #: Who is notified when it has failed, or expired.
    on_failure: Hook | Mapping[str, Any] | None | Unset = UNSET
    #: Who is notified when it has succeeded.
    on_success: Hook | Mapping[str, Any] | None | Unset = UNSET
    #: Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its replay.
    on_recovery: Hook | Mapping[str, Any] | None | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "timerId": self.timer_id,
        }
        if self.execute_at is not UNSET:
            sent["executeAt"] = instant_text("execute_at", self.execute_at)
        if self.delay is not UNSET:
            sent["delay"] = duration_text("delay", self.delay)
        if self.callback_url is not UNSET:
            sent["callbackUrl"] = self.callback_url
        if self.payload is not UNSET:
            sent["payload"] = self.payload
        if self.body is not UNSET:
            sent["body"] = object_json("body", self.body, RawBody)
        if self.method is not UNSET:
            sent["method"] = self.method
        if self.headers is not UNSET:
            sent["headers"] = None if self.headers is None else map_json("headers", self.headers)
        if self.retry_policy is not UNSET:
            sent["retryPolicy"] = (
                None if self.retry_policy is None else object_json("retry_policy", self.retry_policy, RetryPolicy)
            )
        if self.callback_timeout_seconds is not UNSET:
            sent["callbackTimeoutSeconds"] = seconds_of("callback_timeout_seconds", self.callback_timeout_seconds)
        if self.tags is not UNSET:
            sent["tags"] = list_json("tags", self.tags)
        if self.expire_after is not UNSET:
            sent["expireAfter"] = (
                None if self.expire_after is None else duration_text("expire_after", self.expire_after)
            )
        if self.description is not UNSET:
            sent["description"] = self.description
        if self.flow_key is not UNSET:
            sent["flowKey"] = self.flow_key
        if self.credential is not UNSET:
            sent["credential"] = self.credential
        if self.on_failure is not UNSET:
            sent["onFailure"] = None if self.on_failure is None else object_json("on_failure", self.on_failure, Hook)
        if self.on_success is not UNSET:
            sent["onSuccess"] = None if self.on_success is None else object_json("on_success", self.on_success, Hook)
        if self.on_recovery is not UNSET:
            sent["onRecovery"] = (
                None if self.on_recovery is None else object_json("on_recovery", self.on_recovery, Hook)
            )
        return sent


@dataclass(kw_only=True, slots=True)
class ReplayTimers:
    """Finished timers to fire again, at once unless `executeAt` or `delay` is given. Send at most one of these."""

    #: The namespace's name.
    namespace: str
    #: Ids of timers.
    ids: Sequence[str]
    #: An RFC 3339 instant with a time zone.
    execute_at: Instant | Unset = UNSET
    #: A duration: 500ms, 30s, 5m, 1h30m, 7d.
    delay: Duration | Unset = UNSET
    #: The http or https URL to call from now on, instead of each timer's own.
    set_url: str | Unset = UNSET
    #: Additional headers of the callback from now on, instead of each timer's own; null: none. The value [redacted] keeps
    #: the timer's stored value.
    set_headers: Mapping[str, str] | None | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "ids": list_json("ids", self.ids),
        }
        if self.execute_at is not UNSET:
            sent["executeAt"] = instant_text("execute_at", self.execute_at)
        if self.delay is not UNSET:
            sent["delay"] = duration_text("delay", self.delay)
        if self.set_url is not UNSET:
            sent["setUrl"] = self.set_url
        if self.set_headers is not UNSET:
            sent["setHeaders"] = None if self.set_headers is None else map_json("set_headers", self.set_headers)
        return sent


@dataclass(kw_only=True, slots=True)
class ListTimers:
    """Filters of a list of timers; a timer must match all of them."""

    #: The namespace's name; `*`: all that the API key has access to.
    namespace: str
    #: A status, or several: timers with any of them match.
    status: Sequence[TimerStatus] | Unset = UNSET
    #: A timer must have all of these tags.
    tags: Sequence[str] | Unset = UNSET
    #: Prefix of the timers' ids.
    id_prefix: str | Unset = UNSET
    #: An RFC 3339 instant with a time zone.
    execute_after: Instant | Unset = UNSET
    #: An RFC 3339 instant with a time zone.
    execute_before: Instant | Unset = UNSET
    #: A part of the callback's host and path; case does not matter.
    destination: str | Unset = UNSET
    #: A part of the last error; case does not matter.
    error: str | Unset = UNSET
    #: Adds to each timer that is due what it does now, or waits for (explanation).
    explain: bool | Unset = UNSET
    #: Maximum number of timers on the page. Default 100.
    limit: int | Unset = UNSET
    #: `nextCursor` of the previous page.
    cursor: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
        }
        if self.status is not UNSET:
            sent["status"] = list_json("status", self.status)
        if self.tags is not UNSET:
            sent["tags"] = list_json("tags", self.tags)
        if self.id_prefix is not UNSET:
            sent["idPrefix"] = self.id_prefix
        if self.execute_after is not UNSET:
            sent["executeAfter"] = instant_text("execute_after", self.execute_after)
        if self.execute_before is not UNSET:
            sent["executeBefore"] = instant_text("execute_before", self.execute_before)
        if self.destination is not UNSET:
            sent["destination"] = self.destination
        if self.error is not UNSET:
            sent["error"] = self.error
        if self.explain is not UNSET:
            sent["explain"] = self.explain
        if self.limit is not UNSET:
            sent["limit"] = self.limit
        if self.cursor is not UNSET:
            sent["cursor"] = self.cursor
        return sent


@dataclass(kw_only=True, slots=True)
class BatchCreateTimers:
    """Timers to create in one request; an invalid one fails without affecting the others."""

    #: The timers to create.
    timers: Sequence[CreateTimer | Mapping[str, Any]]

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "timers": [object_json("timers", each, CreateTimer) for each in self.timers],
        }
        return sent


@dataclass(kw_only=True, slots=True)
class CreateSchedule:
    """A schedule to create; send exactly one of `cron` and `every`, and at most one of `payload` and `body`. Without
    `managedBy` an existing schedule keeps it."""

    #: The namespace's name.
    namespace: str
    #: The schedule's id, unique among its namespace's schedules.
    id: str
    #: The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets.
    callback_url: str
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | Unset = UNSET
    #: Whether a new schedule begins paused; one that exists stays as it is. Default false.
    paused: bool | Unset = UNSET
    #: The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none.
    expected_version: int | Unset = UNSET
    #: Writes nothing: the response shows what would be written. Default false.
    dry_run: bool | Unset = UNSET
    #: Any JSON, delivered exactly as sent; at most 102400 bytes, and 100 levels of nested arrays and objects. With GET
    #: and HEAD, which send none, only null.
    payload: JsonValue | Unset = UNSET
    #: The whole body of the callback, instead of the envelope with the payload.
    body: RawBody | Mapping[str, Any] | Unset = UNSET
    #: The HTTP method of the callback.
    method: CallbackMethod | Unset = UNSET
    #: Additional headers of the callback. The value [redacted] keeps the timer's stored value.
    headers: Mapping[str, str] | None | Unset = UNSET
    #: Without one, each attempt uses the namespace's current policy.
    retry_policy: RetryPolicy | Mapping[str, Any] | None | Unset = UNSET
    #: Timeout of one attempt, in seconds. Default 10.
    callback_timeout_seconds: float | Unset = UNSET
    #: Labels to filter lists by.
    tags: Sequence[str] | Unset = UNSET
    #: No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as expired then,
    #: any other as failed.
    expire_after: Duration | Unset = UNSET
    #: What it is for, in one line; shown in lists and never sent to the callback.
    description: str | None | Unset = UNSET
    #: The flow that limits how many of its attempts begin and are in flight at once, if a rule of the namespace matches
    #: it.
    flow_key: str | None | Unset = UNSET
    #: The namespace's credential that its requests have; it goes to no other origin than the credential's own.
    credential: str | None | Unset = UNSET
    #: Who is notified when it has failed, or expired.
    on_failure: Hook | Mapping[str, Any] | Unset = UNSET
    #: Who is notified when it has succeeded.
    on_success: Hook | Mapping[str, Any] | Unset = UNSET
    #: Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its replay.
    on_recovery: Hook | Mapping[str, Any] | Unset = UNSET
    #: A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the seconds first,
    #: or @hourly, @daily, @weekly, @monthly, @yearly.
    cron: str | Unset = UNSET
    #: The IANA time zone of cron. Default UTC.
    time_zone: str | Unset = UNSET
    #: An interval of 1s to 366d, by elapsed time, instead of cron.
    every: Duration | Unset = UNSET
    #: An instant from which every counts, in both directions. Default: the schedule's creation.
    anchor: Instant | Unset = UNSET
    #: No instant is earlier than this.
    start_at: Instant | Unset = UNSET
    #: All instants are earlier than this.
    end_at: Instant | Unset = UNSET
    #: How many instants it has; afterwards it ends.
    max_occurrences: int | Unset = UNSET
    #: Longest delay of an instant; none is delayed past the next one. The delay depends only on the schedule and the
    #: instant. Default 0s.
    jitter: Duration | Unset = UNSET
    #: What becomes of instants that pass while the schedule cannot fire, or while its previous occurrence has not
    #: finished. latest: the last of them fires (the default); all: each fires; none: none fires.
    catch_up: CatchUp | Unset = UNSET
    #: Instants that are later than this are missed. Default 24h; with catchUp none, 60s.
    catch_up_window: Duration | Unset = UNSET
    #: Pauses the schedule when this many occurrences in a row have failed. Default 0: never.
    pause_after_failures: int | Unset = UNSET
    #: Calendars: only instants on a date of one of them fire. Empty: no restriction.
    only: Sequence[str] | Unset = UNSET
    #: Calendars: no instant on a date of any of them fires.
    skip: Sequence[str] | Unset = UNSET
    #: What becomes of an instant that a calendar excludes. none: nothing (the default); next: it moves to the same time
    #: of day on the next date that is allowed, unless the rule has instants on that date or before it. next requires cron
    #: with fixed times.
    on_skipped: OnSkipped | Unset = UNSET
    #: Who is notified when instants did not fire, though the schedule was not paused.
    on_missed: Hook | Mapping[str, Any] | Unset = UNSET
    #: Who is notified when the schedule has paused itself after failures in a row.
    on_paused: Hook | Mapping[str, Any] | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "id": self.id,
            "callbackUrl": self.callback_url,
        }
        if self.managed_by is not UNSET:
            sent["managedBy"] = self.managed_by
        if self.paused is not UNSET:
            sent["paused"] = self.paused
        if self.expected_version is not UNSET:
            sent["expectedVersion"] = self.expected_version
        if self.dry_run is not UNSET:
            sent["dryRun"] = self.dry_run
        if self.payload is not UNSET:
            sent["payload"] = self.payload
        if self.body is not UNSET:
            sent["body"] = object_json("body", self.body, RawBody)
        if self.method is not UNSET:
            sent["method"] = self.method
        if self.headers is not UNSET:
            sent["headers"] = None if self.headers is None else map_json("headers", self.headers)
        if self.retry_policy is not UNSET:
            sent["retryPolicy"] = (
                None if self.retry_policy is None else object_json("retry_policy", self.retry_policy, RetryPolicy)
            )
        if self.callback_timeout_seconds is not UNSET:
            sent["callbackTimeoutSeconds"] = seconds_of("callback_timeout_seconds", self.callback_timeout_seconds)
        if self.tags is not UNSET:
            sent["tags"] = list_json("tags", self.tags)
        if self.expire_after is not UNSET:
            sent["expireAfter"] = duration_text("expire_after", self.expire_after)
        if self.description is not UNSET:
            sent["description"] = self.description
        if self.flow_key is not UNSET:
            sent["flowKey"] = self.flow_key
        if self.credential is not UNSET:
            sent["credential"] = self.credential
        if self.on_failure is not UNSET:
            sent["onFailure"] = object_json("on_failure", self.on_failure, Hook)
        if self.on_success is not UNSET:
            sent["onSuccess"] = object_json("on_success", self.on_success, Hook)
        if self.on_recovery is not UNSET:
            sent["onRecovery"] = object_json("on_recovery", self.on_recovery, Hook)
        if self.cron is not UNSET:
            sent["cron"] = self.cron
        if self.time_zone is not UNSET:
            sent["timeZone"] = self.time_zone
        if self.every is not UNSET:
            sent["every"] = duration_text("every", self.every)
        if self.anchor is not UNSET:
            sent["anchor"] = instant_text("anchor", self.anchor)
        if self.start_at is not UNSET:
            sent["startAt"] = instant_text("start_at", self.start_at)
        if self.end_at is not UNSET:
            sent["endAt"] = instant_text("end_at", self.end_at)
        if self.max_occurrences is not UNSET:
            sent["maxOccurrences"] = self.max_occurrences
        if self.jitter is not UNSET:
            sent["jitter"] = duration_text("jitter", self.jitter)
        if self.catch_up is not UNSET:
            sent["catchUp"] = self.catch_up
        if self.catch_up_window is not UNSET:
            sent["catchUpWindow"] = duration_text("catch_up_window", self.catch_up_window)
        if self.pause_after_failures is not UNSET:
            sent["pauseAfterFailures"] = self.pause_after_failures
        if self.only is not UNSET:
            sent["only"] = list_json("only", self.only)
        if self.skip is not UNSET:
            sent["skip"] = list_json("skip", self.skip)
        if self.on_skipped is not UNSET:
            sent["onSkipped"] = self.on_skipped
        if self.on_missed is not UNSET:
            sent["onMissed"] = object_json("on_missed", self.on_missed, Hook)
        if self.on_paused is not UNSET:
            sent["onPaused"] = object_json("on_paused", self.on_paused, Hook)
        return sent


@dataclass(kw_only=True, slots=True)
class ScheduleName:
    """Identifies a schedule."""

    #: The namespace's name.
    namespace: str
    #: The schedule's id, unique among its namespace's schedules.
    schedule_id: str

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "scheduleId": self.schedule_id,
        }
        return sent


@dataclass(kw_only=True, slots=True)
class UpdateSchedule:
    """Changes to a schedule; absent fields stay unchanged. A new `cron` replaces `every` and the other way round. Null
    removes `anchor`, `startAt`, `endAt`, `maxOccurrences`, `expireAfter`, `headers`, `description`, `flowKey`,
    `credential`, `managedBy` and the hooks, and restores the default of `catchUpWindow` and `retryPolicy`."""

    #: The namespace's name.
    namespace: str
    #: The schedule's id, unique among its namespace's schedules.
    schedule_id: str
    #: The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets.
    callback_url: str | Unset = UNSET
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | None | Unset = UNSET
    #: The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none.
    expected_version: int | Unset = UNSET
    #: Any JSON, delivered exactly as sent; at most 102400 bytes, and 100 levels of nested arrays and objects. With GET
    #: and HEAD, which send none, only null.
    payload: JsonValue | Unset = UNSET
    #: The whole body of the callback, instead of the envelope with the payload.
    body: RawBody | Mapping[str, Any] | Unset = UNSET
    #: The HTTP method of the callback.
    method: CallbackMethod | Unset = UNSET
    #: Additional headers of the callback. The value [redacted] keeps the timer's stored value.
    headers: Mapping[str, str] | None | Unset = UNSET
    #: Without one, each attempt uses the namespace's current policy.
    retry_policy: RetryPolicy | Mapping[str, Any] | None | Unset = UNSET
    #: Timeout of one attempt, in seconds. Default 10.
    callback_timeout_seconds: float | Unset = UNSET
    #: Labels to filter lists by.
    tags: Sequence[str] | Unset = UNSET
    #: No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as expired then,
    #: any other as failed.
    expire_after: Duration | None | Unset = UNSET
    #: What it is for, in one line; shown in lists and never sent to the callback.
    description: str | None | Unset = UNSET
    #: The flow that limits how many of its attempts begin and are in flight at once, if a rule of the namespace matches
    #: it.
    flow_key: str | None | Unset = UNSET
    #: The namespace's credential that its requests have; it goes to no other origin than the credential's own.
    credential: str | None | Unset = UNSET
    #: Who is notified when it has failed, or expired.
    on_failure: Hook | Mapping[str, Any] | None | Unset = UNSET
    #: Who is notified when it has succeeded.
    on_success: Hook | Mapping[str, Any] | None | Unset = UNSET
    #: Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its replay.
    on_recovery: Hook | Mapping[str, Any] | None | Unset = UNSET
    #: A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the seconds first,
    #: or @hourly, @daily, @weekly, @monthly, @yearly.
    cron: str | Unset = UNSET
    #: The IANA time zone of cron. Default UTC.
    time_zone: str | Unset = UNSET
    #: An interval of 1s to 366d, by elapsed time, instead of cron.
    every: Duration | Unset = UNSET
    #: An instant from which every counts, in both directions. Default: the schedule's creation.
    anchor: Instant | None | Unset = UNSET
    #: No instant is earlier than this.
    start_at: Instant | None | Unset = UNSET
    #: All instants are earlier than this.
    end_at: Instant | None | Unset = UNSET
    #: How many instants it has; afterwards it ends.
    max_occurrences: int | None | Unset = UNSET
    #: Longest delay of an instant; none is delayed past the next one. The delay depends only on the schedule and the
    #: instant. Default 0s.
    jitter: Duration | Unset = UNSET
    #: What becomes of instants that pass while the schedule cannot fire, or while its previous occurrence has not
    #: finished. latest: the last of them fires (the default); all: each fires; none: none fires.
    catch_up: CatchUp | Unset = UNSET
    #: Instants that are later than this are missed. Default 24h; with catchUp none, 60s.
    catch_up_window: Duration | None | Unset = UNSET
    #: Pauses the schedule when this many occurrences in a row have failed. Default 0: never.
    pause_after_failures: int | Unset = UNSET
    #: Calendars: only instants on a date of one of them fire. Empty: no restriction.
    only: Sequence[str] | Unset = UNSET
    #: Calendars: no instant on a date of any of them fires.
    skip: Sequence[str] | Unset = UNSET
    #: What becomes of an instant that a calendar excludes. none: nothing (the default); next: it moves to the same time
    #: of day on the next date that is allowed, unless the rule has instants on that date or before it. next requires cron
    #: with fixed times.
    on_skipped: OnSkipped | Unset = UNSET
    #: Who is notified when instants did not fire, though the schedule was not paused.
    on_missed: Hook | Mapping[str, Any] | None | Unset = UNSET
    #: Who is notified when the schedule has paused itself after failures in a row.
    on_paused: Hook | Mapping[str, Any] | None | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "scheduleId": self.schedule_id,
        }
        if self.callback_url is not UNSET:
            sent["callbackUrl"] = self.callback_url
        if self.managed_by is not UNSET:
            sent["managedBy"] = self.managed_by
        if self.expected_version is not UNSET:
            sent["expectedVersion"] = self.expected_version
        if self.payload is not UNSET:
            sent["payload"] = self.payload
        if self.body is not UNSET:
            sent["body"] = object_json("body", self.body, RawBody)
        if self.method is not UNSET:
            sent["method"] = self.method
        if self.headers is not UNSET:
            sent["headers"] = None if self.headers is None else map_json("headers", self.headers)
        if self.retry_policy is not UNSET:
            sent["retryPolicy"] = (
                None if self.retry_policy is None else object_json("retry_policy", self.retry_policy, RetryPolicy)
            )
        if self.callback_timeout_seconds is not UNSET:
            sent["callbackTimeoutSeconds"] = seconds_of("callback_timeout_seconds", self.callback_timeout_seconds)
        if self.tags is not UNSET:
            sent["tags"] = list_json("tags", self.tags)
        if self.expire_after is not UNSET:
            sent["expireAfter"] = (
                None if self.expire_after is None else duration_text("expire_after", self.expire_after)
            )
        if self.description is not UNSET:
            sent["description"] = self.description
        if self.flow_key is not UNSET:
            sent["flowKey"] = self.flow_key
        if self.credential is not UNSET:
            sent["credential"] = self.credential
        if self.on_failure is not UNSET:
            sent["onFailure"] = None if self.on_failure is None else object_json("on_failure", self.on_failure, Hook)
        if self.on_success is not UNSET:
            sent["onSuccess"] = None if self.on_success is None else object_json("on_success", self.on_success, Hook)
        if self.on_recovery is not UNSET:
            sent["onRecovery"] = (
                None if self.on_recovery is None else object_json("on_recovery", self.on_recovery, Hook)
            )
        if self.cron is not UNSET:
            sent["cron"] = self.cron
        if self.time_zone is not UNSET:
            sent["timeZone"] = self.time_zone
        if self.every is not UNSET:
            sent["every"] = duration_text("every", self.every)
        if self.anchor is not UNSET:
            sent["anchor"] = None if self.anchor is None else instant_text("anchor", self.anchor)
        if self.start_at is not UNSET:
            sent["startAt"] = None if self.start_at is None else instant_text("start_at", self.start_at)
        if self.end_at is not UNSET:
            sent["endAt"] = None if self.end_at is None else instant_text("end_at", self.end_at)
        if self.max_occurrences is not UNSET:
            sent["maxOccurrences"] = self.max_occurrences
        if self.jitter is not UNSET:
            sent["jitter"] = duration_text("jitter", self.jitter)
        if self.catch_up is not UNSET:
            sent["catchUp"] = self.catch_up
        if self.catch_up_window is not UNSET:
            sent["catchUpWindow"] = (
                None if self.catch_up_window is None else duration_text("catch_up_window", self.catch_up_window)
            )
        if self.pause_after_failures is not UNSET:
            sent["pauseAfterFailures"] = self.pause_after_failures
        if self.only is not UNSET:
            sent["only"] = list_json("only", self.only)
        if self.skip is not UNSET:
            sent["skip"] = list_json("skip", self.skip)
        if self.on_skipped is not UNSET:
            sent["onSkipped"] = self.on_skipped
        if self.on_missed is not UNSET:
            sent["onMissed"] = None if self.on_missed is None else object_json("on_missed", self.on_missed, Hook)
        if self.on_paused is not UNSET:
            sent["onPaused"] = None if self.on_paused is None else object_json("on_paused", self.on_paused, Hook)
        return sent


@dataclass(kw_only=True, slots=True)
class ListSchedules:
    """Which schedules are listed."""

    #: The namespace's name; `*`: all that the API key has access to.
    namespace: str
    #: active, paused, or both: schedules with any of them match. Ended ones are not listed.
    status: LiveScheduleStatus | Unset = UNSET
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | Unset = UNSET
    #: Maximum number of schedules on the page. Default 100.
    limit: int | Unset = UNSET
    #: `nextCursor` of the previous page.
    cursor: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
        }
        if self.status is not UNSET:
            sent["status"] = self.status
        if self.managed_by is not UNSET:
            sent["managedBy"] = self.managed_by
        if self.limit is not UNSET:
            sent["limit"] = self.limit
        if self.cursor is not UNSET:
            sent["cursor"] = self.cursor
        return sent


@dataclass(kw_only=True, slots=True)
class BackfillSchedule:
    """The range of instants that fire once more."""

    #: The namespace's name.
    namespace: str
    #: The schedule's id, unique among its namespace's schedules.
    schedule_id: str
    #: Only instants at or after this one.
    after: Instant
    #: Only instants before this one.
    before: Instant

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "scheduleId": self.schedule_id,
            "after": instant_text("after", self.after),
            "before": instant_text("before", self.before),
        }
        return sent


@dataclass(kw_only=True, slots=True)
class SkipSchedule:
    """An instant of a schedule that is still to come."""

    #: The namespace's name.
    namespace: str
    #: The schedule's id, unique among its namespace's schedules.
    schedule_id: str
    #: The instant, exactly as schedules/preview of the schedule shows it.
    instant: Instant

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "scheduleId": self.schedule_id,
            "instant": instant_text("instant", self.instant),
        }
        return sent


@dataclass(kw_only=True, slots=True)
class ReplaySchedule:
    """The failed occurrences that fire again."""

    #: The namespace's name.
    namespace: str
    #: The schedule's id, unique among its namespace's schedules.
    schedule_id: str
    #: Their instants.
    instants: Sequence[Instant]

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "scheduleId": self.schedule_id,
            "instants": list_json("instants", self.instants),
        }
        return sent


@dataclass(kw_only=True, slots=True)
class PreviewSchedule:
    """A definition, with exactly one of `cron` and `every`, or a schedule: `namespace` and `scheduleId`. A definition
    with `only` or `skip` requires the `namespace` of the calendars."""

    #: The namespace's name.
    namespace: str | Unset = UNSET
    #: The schedule's id, unique among its namespace's schedules.
    schedule_id: str | Unset = UNSET
    #: A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the seconds first,
    #: or @hourly, @daily, @weekly, @monthly, @yearly.
    cron: str | Unset = UNSET
    #: The IANA time zone of cron. Default UTC.
    time_zone: str | Unset = UNSET
    #: An interval of 1s to 366d, by elapsed time, instead of cron.
    every: Duration | Unset = UNSET
    #: An instant from which every counts, in both directions. Default: the schedule's creation.
    anchor: Instant | Unset = UNSET
    #: No instant is earlier than this.
    start_at: Instant | Unset = UNSET
    #: All instants are earlier than this.
    end_at: Instant | Unset = UNSET
    #: Calendars: only instants on a date of one of them fire. Empty: no restriction.
    only: Sequence[str] | Unset = UNSET
    #: Calendars: no instant on a date of any of them fires.
    skip: Sequence[str] | Unset = UNSET
    #: What becomes of an instant that a calendar excludes. none: nothing (the default); next: it moves to the same time
    #: of day on the next date that is allowed, unless the rule has instants on that date or before it. next requires cron
    #: with fixed times.
    on_skipped: OnSkipped | Unset = UNSET
    #: Maximum number of instants. Default 10.
    count: int | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {}
        if self.namespace is not UNSET:
            sent["namespace"] = self.namespace
        if self.schedule_id is not UNSET:
            sent["scheduleId"] = self.schedule_id
        if self.cron is not UNSET:
            sent["cron"] = self.cron
        if self.time_zone is not UNSET:
            sent["timeZone"] = self.time_zone
        if self.every is not UNSET:
            sent["every"] = duration_text("every", self.every)
        if self.anchor is not UNSET:
            sent["anchor"] = instant_text("anchor", self.anchor)
        if self.start_at is not UNSET:
            sent["startAt"] = instant_text("start_at", self.start_at)
        if self.end_at is not UNSET:
            sent["endAt"] = instant_text("end_at", self.end_at)
        if self.only is not UNSET:
            sent["only"] = list_json("only", self.only)
        if self.skip is not UNSET:
            sent["skip"] = list_json("skip", self.skip)
        if self.on_skipped is not UNSET:
            sent["onSkipped"] = self.on_skipped
        if self.count is not UNSET:
            sent["count"] = self.count
        return sent


@dataclass(kw_only=True, slots=True)
class ScheduleHistory:
    """The schedule whose occurrences are wanted."""

    #: The namespace's name.
    namespace: str
    #: The schedule's id, unique among its namespace's schedules.
    schedule_id: str
    #: Maximum number of occurrences on the page. Default 100.
    limit: int | Unset = UNSET
    #: `nextCursor` of the previous page.
    cursor: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "scheduleId": self.schedule_id,
        }
        if self.limit is not UNSET:
            sent["limit"] = self.limit
        if self.cursor is not UNSET:
            sent["cursor"] = self.cursor
        return sent


@dataclass(kw_only=True, slots=True)
class DeleteSchedule:
    """A schedule to delete."""

    #: The namespace's name.
    namespace: str
    #: The schedule's id, unique among its namespace's schedules.
    schedule_id: str
    #: The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none.
    expected_version: int | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "scheduleId": self.schedule_id,
        }
        if self.expected_version is not UNSET:
            sent["expectedVersion"] = self.expected_version
        return sent


@dataclass(kw_only=True, slots=True)
class ListFailures:
    """Which failures to group, and how."""

    #: The namespace's name; `*`: all that the API key has access to.
    namespace: str | Unset = UNSET
    #: The tenant whose service calls are meant, instead of a namespace; `*`: all that the API key has access to.
    tenant: str | Unset = UNSET
    #: Only failures since this instant.
    since: Instant | Unset = UNSET
    #: What the failures of a group have in common. Default: all of these.
    group_by: Sequence[FailureGroupedBy] | Unset = UNSET
    #: Maximum number of groups. Default 50.
    limit: int | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {}
        if self.namespace is not UNSET:
            sent["namespace"] = self.namespace
        if self.tenant is not UNSET:
            sent["tenant"] = self.tenant
        if self.since is not UNSET:
            sent["since"] = instant_text("since", self.since)
        if self.group_by is not UNSET:
            sent["groupBy"] = list_json("group_by", self.group_by)
        if self.limit is not UNSET:
            sent["limit"] = self.limit
        return sent


@dataclass(kw_only=True, slots=True)
class ListFailureMembers:
    """Which failures to list: those of a group, or all."""

    #: The namespace's name; `*`: all that the API key has access to.
    namespace: str | Unset = UNSET
    #: The tenant whose service calls are meant, instead of a namespace; `*`: all that the API key has access to.
    tenant: str | Unset = UNSET
    #: The URL that was called, without credentials and query.
    destination: str | Unset = UNSET
    #: The stable code of the last error, without details.
    error: str | Unset = UNSET
    #: What failed.
    kind: FailedKind | Unset = UNSET
    #: Only failures since this instant.
    since: Instant | Unset = UNSET
    #: Maximum number of failures on the page. Default 100.
    limit: int | Unset = UNSET
    #: `nextCursor` of the previous page.
    cursor: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {}
        if self.namespace is not UNSET:
            sent["namespace"] = self.namespace
        if self.tenant is not UNSET:
            sent["tenant"] = self.tenant
        if self.destination is not UNSET:
            sent["destination"] = self.destination
        if self.error is not UNSET:
            sent["error"] = self.error
        if self.kind is not UNSET:
            sent["kind"] = self.kind
        if self.since is not UNSET:
            sent["since"] = instant_text("since", self.since)
        if self.limit is not UNSET:
            sent["limit"] = self.limit
        if self.cursor is not UNSET:
            sent["cursor"] = self.cursor
        return sent


@dataclass(kw_only=True, slots=True)
class DismissFailures:
    """Which failures to remove from the list: by their ids, or those of a group."""

    #: The namespace's name.
    namespace: str | Unset = UNSET
    #: The tenant whose service calls are meant, instead of a namespace.
    tenant: str | Unset = UNSET
    #: The failureId of each, up to 1,000.
    ids: Sequence[str] | Unset = UNSET
    #: The URL that was called, without credentials and query.
    destination: str | Unset = UNSET
    #: The stable code of the last error, without details.
    error: str | Unset = UNSET
    #: What failed.
    kind: FailedKind | Unset = UNSET
    #: With `true` and no other field: all failures of it.
    all: bool | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {}
        if self.namespace is not UNSET:
            sent["namespace"] = self.namespace
        if self.tenant is not UNSET:
            sent["tenant"] = self.tenant
        if self.ids is not UNSET:
            sent["ids"] = list_json("ids", self.ids)
        if self.destination is not UNSET:
            sent["destination"] = self.destination
        if self.error is not UNSET:
            sent["error"] = self.error
        if self.kind is not UNSET:
            sent["kind"] = self.kind
        if self.all is not UNSET:
            sent["all"] = self.all
        return sent


@dataclass(kw_only=True, slots=True)
class CreateJob:
    """A job to create: of a namespace or, to replay or delete service calls, of a tenant."""

    #: What is done with each row: cancel, shift and setUrl of timers; pause, resume, delete and setUrl of schedules;
    #: replay of failures; delete of service calls.
    action: JobAction
    #: What is changed: timers, schedules, failures, or calls that wait.
    of: JobKind
    #: The namespace's name; `*`: all that the API key has access to.
    namespace: str | Unset = UNSET
    #: The tenant whose service calls are meant, instead of a namespace; `*`: all that the API key has access to.
    tenant: str | Unset = UNSET
    filter: JobFilter | Mapping[str, Any] | Unset = UNSET
    #: Must be true if the filter is empty: every row is changed.
    all: bool | Unset = UNSET
    #: By how much shift moves the instants: a duration, with - to an earlier one.
    shift_by: str | Unset = UNSET
    #: The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets.
    url: str | Unset = UNSET
    #: Rows a second that the job changes at most, in the whole cluster. Default 500.
    rate_per_second: int | Unset = UNSET
    #: Only counts the rows that match. Default false.
    dry_run: bool | Unset = UNSET
    #: The job fails instead of changing more rows, for example than a dry run has counted.
    match_max: int | Unset = UNSET
    #: Makes the request safe to repeat: the same key answers the same job.
    idempotency_key: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "action": self.action,
            "of": self.of,
        }
        if self.namespace is not UNSET:
            sent["namespace"] = self.namespace
        if self.tenant is not UNSET:
            sent["tenant"] = self.tenant
        if self.filter is not UNSET:
            sent["filter"] = object_json("filter", self.filter, JobFilter)
        if self.all is not UNSET:
            sent["all"] = self.all
        if self.shift_by is not UNSET:
            sent["shiftBy"] = self.shift_by
        if self.url is not UNSET:
            sent["url"] = self.url
        if self.rate_per_second is not UNSET:
            sent["ratePerSecond"] = self.rate_per_second
        if self.dry_run is not UNSET:
            sent["dryRun"] = self.dry_run
        if self.match_max is not UNSET:
            sent["matchMax"] = self.match_max
        if self.idempotency_key is not UNSET:
            sent["idempotencyKey"] = self.idempotency_key
        return sent


@dataclass(kw_only=True, slots=True)
class JobFilter:
    """Which rows a job changes: pending timers, schedules that have not ended, failures that are listed, or service
    calls that wait for their due time or for a retry, that match all of it. It is checked again when each change
    becomes durable. Rows created after the job stay as they are."""

    #: A row must have all of these tags. Not of failures, but of service calls.
    tags: Sequence[str] | Unset = UNSET
    #: Prefix of the ids.
    id_prefix: str | Unset = UNSET
    #: A part of the URL's host and path; case does not matter. Of failures: the destination of a group.
    destination: str | Unset = UNSET
    #: A part of the last error; case does not matter. Of failures: the error of a group. Of timers and failures only.
    error: str | Unset = UNSET
    #: Only timers and service calls due at or after this instant, or failures of such runs.
    execute_after: Instant | Unset = UNSET
    #: Only timers and service calls due before this instant, or failures of such runs.
    execute_before: Instant | Unset = UNSET
    #: Only rows created before this instant, or failed before it. Default: the job's creation.
    created_before: Instant | Unset = UNSET
    #: Only failures of this kind. Of failures only.
    kind: FailedKind | Unset = UNSET
    #: Only rows created at or after this instant: failed then, or submitted if it is a service call.
    created_after: Instant | Unset = UNSET
    #: A part of the name, with letters A to Z in either case. Of service calls only.
    name: str | Unset = UNSET
    #: Only calls that wait for this. Of service calls only.
    status: WaitingStatus | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {}
        if self.tags is not UNSET:
            sent["tags"] = list_json("tags", self.tags)
        if self.id_prefix is not UNSET:
            sent["idPrefix"] = self.id_prefix
        if self.destination is not UNSET:
            sent["destination"] = self.destination
        if self.error is not UNSET:
            sent["error"] = self.error
        if self.execute_after is not UNSET:
            sent["executeAfter"] = instant_text("execute_after", self.execute_after)
        if self.execute_before is not UNSET:
            sent["executeBefore"] = instant_text("execute_before", self.execute_before)
        if self.created_before is not UNSET:
            sent["createdBefore"] = instant_text("created_before", self.created_before)
        if self.kind is not UNSET:
            sent["kind"] = self.kind
        if self.created_after is not UNSET:
            sent["createdAfter"] = instant_text("created_after", self.created_after)
        if self.name is not UNSET:
            sent["name"] = self.name
        if self.status is not UNSET:
            sent["status"] = self.status
        return sent


@dataclass(kw_only=True, slots=True)
class JobName:
    """Names a job."""

    #: The job's id.
    job_id: str

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "jobId": self.job_id,
        }
        return sent


@dataclass(kw_only=True, slots=True)
class ListJobs:
    """Which jobs are listed."""

    #: The namespace's name; `*`: all that the API key has access to.
    namespace: str | Unset = UNSET
    #: The tenant whose service calls are meant, instead of a namespace; `*`: all that the API key has access to.
    tenant: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {}
        if self.namespace is not UNSET:
            sent["namespace"] = self.namespace
        if self.tenant is not UNSET:
            sent["tenant"] = self.tenant
        return sent


@dataclass(kw_only=True, slots=True)
class SetJobRate:
    """Another rate of a job."""

    #: The job's id.
    job_id: str
    #: Rows a second that the job changes at most, in the whole cluster. Default 500.
    rate_per_second: int

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "jobId": self.job_id,
            "ratePerSecond": self.rate_per_second,
        }
        return sent


@dataclass(kw_only=True, slots=True)
class CreateNamespace:
    """A namespace to create."""

    #: The namespace's name.
    name: str
    #: The number of shards that its timers are spread over. Cannot be changed later.
    num_shards: int | Unset = UNSET
    #: Which finished timers stay visible.
    history: HistoryMode | Unset = UNSET
    #: How long finished timers stay visible; at most 3653d.
    retention: Duration | Unset = UNSET
    #: What a 2xx response to a callback means. standard: success, unless its body is a JSON object with ok: false or
    #: nextExecuteAt. strict: success only with an empty body or ok: true.
    answers: CallbackAnswers | Unset = UNSET
    #: The policy of timers without their own; null for the default: 10 attempts in 8.5 h.
    retry_policy: RetryPolicy | Mapping[str, Any] | None | Unset = UNSET
    #: The limits of all attempts of the namespace together.
    limits: FlowLimits | Mapping[str, Any] | Unset = UNSET
    #: Limits on what its clients create.
    quotas: Quotas | Mapping[str, Any] | Unset = UNSET
    #: Due timers with the same URL, method, headers and timeout are sent in one request, which the receiver answers timer
    #: by timer.
    callback_batch: CallbackBatch | Mapping[str, Any] | Unset = UNSET
    #: Where what becomes of its timers, schedules and monitors is published: below this subject of NATS, such as
    #: `shop.events.timer.failed`, with JetStream’s acknowledgement. The setting `nats_targets` has to list the subject
    #: for the namespace. Events without a sink are not kept.
    event_sink: str | Unset = UNSET
    #: Who is notified when it has failed, or expired.
    on_failure: Hook | Mapping[str, Any] | Unset = UNSET
    #: Who is notified when it has succeeded.
    on_success: Hook | Mapping[str, Any] | Unset = UNSET
    #: Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its replay.
    on_recovery: Hook | Mapping[str, Any] | Unset = UNSET
    #: Who is notified when instants did not fire, though the schedule was not paused.
    on_missed: Hook | Mapping[str, Any] | Unset = UNSET
    #: Who is notified when the schedule has paused itself after failures in a row.
    on_paused: Hook | Mapping[str, Any] | Unset = UNSET
    #: Who is notified when it is late, and when its job reports a failure, or an occurrence fails.
    on_late: Hook | Mapping[str, Any] | Unset = UNSET
    #: Secret that signs its callbacks (Standard Webhooks): whsec_ and base64.
    secret: str | Unset = UNSET
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "name": self.name,
        }
        if self.num_shards is not UNSET:
            sent["numShards"] = self.num_shards
        if self.history is not UNSET:
            sent["history"] = self.history
        if self.retention is not UNSET:
            sent["retention"] = duration_text("retention", self.retention)
        if self.answers is not UNSET:
            sent["answers"] = self.answers
        if self.retry_policy is not UNSET:
            sent["retryPolicy"] = (
                None if self.retry_policy is None else object_json("retry_policy", self.retry_policy, RetryPolicy)
            )
        if self.limits is not UNSET:
            sent["limits"] = object_json("limits", self.limits, FlowLimits)
        if self.quotas is not UNSET:
            sent["quotas"] = object_json("quotas", self.quotas, Quotas)
        if self.callback_batch is not UNSET:
            sent["callbackBatch"] = object_json("callback_batch", self.callback_batch, CallbackBatch)
        if self.event_sink is not UNSET:
            sent["eventSink"] = self.event_sink
        if self.on_failure is not UNSET:
            sent["onFailure"] = object_json("on_failure", self.on_failure, Hook)
        if self.on_success is not UNSET:
            sent["onSuccess"] = object_json("on_success", self.on_success, Hook)
        if self.on_recovery is not UNSET:
            sent["onRecovery"] = object_json("on_recovery", self.on_recovery, Hook)
        if self.on_missed is not UNSET:
            sent["onMissed"] = object_json("on_missed", self.on_missed, Hook)
        if self.on_paused is not UNSET:
            sent["onPaused"] = object_json("on_paused", self.on_paused, Hook)
        if self.on_late is not UNSET:
            sent["onLate"] = object_json("on_late", self.on_late, Hook)
        if self.secret is not UNSET:
            sent["secret"] = self.secret
        if self.managed_by is not UNSET:
            sent["managedBy"] = self.managed_by
        return sent


@dataclass(kw_only=True, slots=True)
class FlowLimits:
    """Limits of attempts; send a rate, a parallelism, or both. In any time at most `burst` attempts begin, and those
    of the rate."""

    rate: FlowRate | Mapping[str, Any] | Unset = UNSET
    #: How many attempts may begin at once if none did for a while. Requires a rate; default 1: they are evenly spaced.
    burst: int | Unset = UNSET
    #: How many attempts may be in flight at once.
    parallelism: int | Unset = UNSET
    #: Whether the timers of each key begin one at a time, in the order of their instants, each when the one before has
    #: ended, retries included. Only in `perKey`, without another parallelism than 1, and in a namespace with `numShards`
    #: 1. Default false.
    ordered: bool | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {}
        if self.rate is not UNSET:
            sent["rate"] = object_json("rate", self.rate, FlowRate)
        if self.burst is not UNSET:
            sent["burst"] = self.burst
        if self.parallelism is not UNSET:
            sent["parallelism"] = self.parallelism
        if self.ordered is not UNSET:
            sent["ordered"] = self.ordered
        return sent


@dataclass(kw_only=True, slots=True)
class FlowRate:
    """So many attempts within a time, evenly spread."""

    #: How many attempts may begin in that time.
    count: int
    #: The time: 1s to 1d.
    per: Duration

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "count": self.count,
            "per": duration_text("per", self.per),
        }
        return sent


@dataclass(kw_only=True, slots=True)
class Quotas:
    """Quotas of a namespace; null removes one, and an absent one stays unchanged. What exceeds one is refused with
    QUOTA_EXCEEDED."""

    #: Its timers that may be pending at once; not schedules.
    pending: int | None | Unset = UNSET
    #: Timers and schedules created in it, and monitors put, in a second, at most; with one second's worth at once.
    creates_per_second: int | None | Unset = UNSET
    #: Bytes that the payload or the raw body of one timer or schedule may have.
    payload_bytes: int | None | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {}
        if self.pending is not UNSET:
            sent["pending"] = self.pending
        if self.creates_per_second is not UNSET:
            sent["createsPerSecond"] = self.creates_per_second
        if self.payload_bytes is not UNSET:
            sent["payloadBytes"] = self.payload_bytes
        return sent


@dataclass(kw_only=True, slots=True)
class CallbackBatch:
    """How due timers of one receiver are sent together."""

    #: How many timers one request has at most.
    max: int
    #: How long the first due timer of a request waits for others: 0s to 5s. Default 100ms.
    linger: Duration | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "max": self.max,
        }
        if self.linger is not UNSET:
            sent["linger"] = duration_text("linger", self.linger)
        return sent


@dataclass(kw_only=True, slots=True)
class GetNamespace:
    """Names a namespace."""

    #: The namespace's name.
    name: str

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "name": self.name,
        }
        return sent


@dataclass(kw_only=True, slots=True)
class UpdateNamespace:
    """Changes to a namespace; absent fields stay unchanged. The hooks are those of timers, schedules and monitors
    without their own for the same event; null removes one, and null removes `managedBy`, `limits`, `callbackBatch` and
    `eventSink`, which are otherwise replaced as a whole."""

    #: The namespace's name.
    name: str
    #: Which finished timers stay visible.
    history: HistoryMode | Unset = UNSET
    #: How long finished timers stay visible; at most 3653d.
    retention: Duration | Unset = UNSET
    #: A new signing secret; null removes the secret.
    secret: str | None | Unset = UNSET
    #: While true, none of its timers fires.
    paused: bool | Unset = UNSET
    #: What a 2xx response to a callback means. standard: success, unless its body is a JSON object with ok: false or
    #: nextExecuteAt. strict: success only with an empty body or ok: true.
    answers: CallbackAnswers | Unset = UNSET
    #: The policy of timers without their own; null for the default: 10 attempts in 8.5 h.
    retry_policy: RetryPolicy | Mapping[str, Any] | None | Unset = UNSET
    #: The limits of all attempts of the namespace together.
    limits: FlowLimits | Mapping[str, Any] | None | Unset = UNSET
    #: Changes to its quotas; null removes all.
    quotas: Quotas | Mapping[str, Any] | None | Unset = UNSET
    #: Due timers with the same URL, method, headers and timeout are sent in one request, which the receiver answers timer
    #: by timer.
    callback_batch: CallbackBatch | Mapping[str, Any] | None | Unset = UNSET
    #: Where what becomes of its timers, schedules and monitors is published: below this subject of NATS, such as
    #: `shop.events.timer.failed`, with JetStream’s acknowledgement. The setting `nats_targets` has to list the subject
    #: for the namespace. Events without a sink are not kept.
    event_sink: str | None | Unset = UNSET
    #: Who is notified when it has failed, or expired.
    on_failure: Hook | Mapping[str, Any] | None | Unset = UNSET
    #: Who is notified when it has succeeded.
    on_success: Hook | Mapping[str, Any] | None | Unset = UNSET
    #: Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its replay.
    on_recovery: Hook | Mapping[str, Any] | None | Unset = UNSET
    #: Who is notified when instants did not fire, though the schedule was not paused.
    on_missed: Hook | Mapping[str, Any] | None | Unset = UNSET
    #: Who is notified when the schedule has paused itself after failures in a row.
    on_paused: Hook | Mapping[str, Any] | None | Unset = UNSET
    #: Who is notified when it is late, and when its job reports a failure, or an occurrence fails.
    on_late: Hook | Mapping[str, Any] | None | Unset = UNSET
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | None | Unset = UNSET
    #: The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none.
    expected_version: int | Unset = UNSET
    #: Writes nothing: the response shows what would be written. Default false.
    dry_run: bool | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "name": self.name,
        }
        if self.history is not UNSET:
            sent["history"] = self.history
        if self.retention is not UNSET:
            sent["retention"] = duration_text("retention", self.retention)
        if self.secret is not UNSET:
            sent["secret"] = self.secret
        if self.paused is not UNSET:
            sent["paused"] = self.paused
        if self.answers is not UNSET:
            sent["answers"] = self.answers
        if self.retry_policy is not UNSET:
            sent["retryPolicy"] = (
                None if self.retry_policy is None else object_json("retry_policy", self.retry_policy, RetryPolicy)
            )
        if self.limits is not UNSET:
            sent["limits"] = None if self.limits is None else object_json("limits", self.limits, FlowLimits)
        if self.quotas is not UNSET:
            sent["quotas"] = None if self.quotas is None else object_json("quotas", self.quotas, Quotas)
        if self.callback_batch is not UNSET:
            sent["callbackBatch"] = (
                None
                if self.callback_batch is None
                else object_json("callback_batch", self.callback_batch, CallbackBatch)
            )
        if self.event_sink is not UNSET:
            sent["eventSink"] = self.event_sink
        if self.on_failure is not UNSET:
            sent["onFailure"] = None if self.on_failure is None else object_json("on_failure", self.on_failure, Hook)
        if self.on_success is not UNSET:
            sent["onSuccess"] = None if self.on_success is None else object_json("on_success", self.on_success, Hook)
        if self.on_recovery is not UNSET:
            sent["onRecovery"] = (
                None if self.on_recovery is None else object_json("on_recovery", self.on_recovery, Hook)
            )
        if self.on_missed is not UNSET:
            sent["onMissed"] = None if self.on_missed is None else object_json("on_missed", self.on_missed, Hook)
        if self.on_paused is not UNSET:
            sent["onPaused"] = None if self.on_paused is None else object_json("on_paused", self.on_paused, Hook)
        if self.on_late is not UNSET:
            sent["onLate"] = None if self.on_late is None else object_json("on_late", self.on_late, Hook)
        if self.managed_by is not UNSET:
            sent["managedBy"] = self.managed_by
        if self.expected_version is not UNSET:
            sent["expectedVersion"] = self.expected_version
        if self.dry_run is not UNSET:
            sent["dryRun"] = self.dry_run
        return sent


@dataclass(kw_only=True, slots=True)
class DeleteNamespace:
    """A namespace to delete."""

    #: The namespace's name.
    name: str
    #: Delete it although timers or schedules are pending in it. Default false.
    cancel_pending: bool | Unset = UNSET
    #: Rows a second that the job changes at most, in the whole cluster. Default 500.
    rate_per_second: int | Unset = UNSET
    #: The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none.
    expected_version: int | Unset = UNSET
    #: Makes the request safe to repeat: the same key answers the same job.
    idempotency_key: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "name": self.name,
        }
        if self.cancel_pending is not UNSET:
            sent["cancelPending"] = self.cancel_pending
        if self.rate_per_second is not UNSET:
            sent["ratePerSecond"] = self.rate_per_second
        if self.expected_version is not UNSET:
            sent["expectedVersion"] = self.expected_version
        if self.idempotency_key is not UNSET:
            sent["idempotencyKey"] = self.idempotency_key
        return sent


@dataclass(kw_only=True, slots=True)
class RotateSecret:
    """The rotation of a namespace's signing secret."""

    #: The namespace's name.
    name: str
    #: The new secret: whsec_ and base64. Without one, the server generates it.
    secret: str | Unset = UNSET
    #: How long the previous secret keeps signing: at most 30d; 0s: not at all. Default 24h.
    grace: Duration | Unset = UNSET
    #: Rotate even during the grace period of an earlier rotation. Default false.
    force: bool | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "name": self.name,
        }
        if self.secret is not UNSET:
            sent["secret"] = self.secret
        if self.grace is not UNSET:
            sent["grace"] = duration_text("grace", self.grace)
        if self.force is not UNSET:
            sent["force"] = self.force
        return sent


@dataclass(kw_only=True, slots=True)
class PutFlow:
    """A rule with all its limits; send at least one of `perKey`, `total`, `callbackBatch` and a true
    `closeOnRetryAfter`. Without `managedBy` the rule keeps it; null removes it."""

    #: The namespace's name.
    namespace: str
    #: The flow key that the rule is for, or a prefix of keys, which ends with a colon.
    match: str
    #: The limits of each flow key by itself.
    per_key: FlowLimits | Mapping[str, Any] | Unset = UNSET
    #: The limits of all flow keys of the rule together.
    total: FlowLimits | Mapping[str, Any] | Unset = UNSET
    #: Whether an answer 429 or 503 with Retry-After lets nothing more of its flow key begin until then. Default false.
    close_on_retry_after: bool | Unset = UNSET
    #: Due timers with the same URL, method, headers and timeout are sent in one request, which the receiver answers timer
    #: by timer.
    callback_batch: CallbackBatch | Mapping[str, Any] | Unset = UNSET
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | None | Unset = UNSET
    #: The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none.
    expected_version: int | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "match": self.match,
        }
        if self.per_key is not UNSET:
            sent["perKey"] = object_json("per_key", self.per_key, FlowLimits)
        if self.total is not UNSET:
            sent["total"] = object_json("total", self.total, FlowLimits)
        if self.close_on_retry_after is not UNSET:
            sent["closeOnRetryAfter"] = self.close_on_retry_after
        if self.callback_batch is not UNSET:
            sent["callbackBatch"] = object_json("callback_batch", self.callback_batch, CallbackBatch)
        if self.managed_by is not UNSET:
            sent["managedBy"] = self.managed_by
        if self.expected_version is not UNSET:
            sent["expectedVersion"] = self.expected_version
        return sent


@dataclass(kw_only=True, slots=True)
class FlowName:
    """Names a rule."""

    #: The namespace's name.
    namespace: str
    #: The flow key that the rule is for, or a prefix of keys, which ends with a colon.
    match: str

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "match": self.match,
        }
        return sent


@dataclass(kw_only=True, slots=True)
class ListFlows:
    """The namespace whose rules are wanted."""

    #: The namespace's name.
    namespace: str
    #: Maximum number of rules on the page. Default 100.
    limit: int | Unset = UNSET
    #: `nextCursor` of the previous page.
    cursor: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
        }
        if self.limit is not UNSET:
            sent["limit"] = self.limit
        if self.cursor is not UNSET:
            sent["cursor"] = self.cursor
        return sent


@dataclass(kw_only=True, slots=True)
class PauseFlow:
    """A rule to pause."""

    #: The namespace's name.
    namespace: str
    #: The flow key that the rule is for, or a prefix of keys, which ends with a colon.
    match: str
    #: When it goes on; without it, when it is resumed.
    until: Instant | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "match": self.match,
        }
        if self.until is not UNSET:
            sent["until"] = instant_text("until", self.until)
        return sent


@dataclass(kw_only=True, slots=True)
class DeleteFlow:
    """A rule to delete."""

    #: The namespace's name.
    namespace: str
    #: The flow key that the rule is for, or a prefix of keys, which ends with a colon.
    match: str
    #: The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none.
    expected_version: int | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "match": self.match,
        }
        if self.expected_version is not UNSET:
            sent["expectedVersion"] = self.expected_version
        return sent


@dataclass(kw_only=True, slots=True)
class PutCalendar:
    """A calendar with all its dates; send at least one of `dates`, `ranges` and `weekdays`. Without `managedBy` the
    calendar keeps it; null removes it."""

    #: The namespace's name.
    namespace: str
    #: The calendar's name, unique in its namespace.
    name: str
    #: The IANA time zone in which its dates begin and end. Default UTC.
    time_zone: str | Unset = UNSET
    #: Single dates, as 2027-12-25.
    dates: Sequence[str] | Unset = UNSET
    #: Ranges of dates, both ends included.
    ranges: Sequence[DateRange | Mapping[str, Any]] | Unset = UNSET
    #: Weekdays, of every week.
    weekdays: Sequence[Weekday] | Unset = UNSET
    #: What it is for, in one line; shown in lists.
    description: str | Unset = UNSET
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | None | Unset = UNSET
    #: The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none.
    expected_version: int | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "name": self.name,
        }
        if self.time_zone is not UNSET:
            sent["timeZone"] = self.time_zone
        if self.dates is not UNSET:
            sent["dates"] = list_json("dates", self.dates)
        if self.ranges is not UNSET:
            sent["ranges"] = [object_json("ranges", each, DateRange) for each in self.ranges]
        if self.weekdays is not UNSET:
            sent["weekdays"] = list_json("weekdays", self.weekdays)
        if self.description is not UNSET:
            sent["description"] = self.description
        if self.managed_by is not UNSET:
            sent["managedBy"] = self.managed_by
        if self.expected_version is not UNSET:
            sent["expectedVersion"] = self.expected_version
        return sent


@dataclass(kw_only=True, slots=True)
class DateRange:
    """Dates from the first to the last."""

    #: The first date.
    first: str
    #: The last date.
    last: str

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "first": self.first,
            "last": self.last,
        }
        return sent


@dataclass(kw_only=True, slots=True)
class CalendarId:
    """Names a calendar."""

    #: The namespace's name.
    namespace: str
    #: The calendar's name, unique in its namespace.
    name: str

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "name": self.name,
        }
        return sent


@dataclass(kw_only=True, slots=True)
class ListCalendars:
    """The namespace whose calendars are wanted."""

    #: The namespace's name.
    namespace: str
    #: Maximum number of calendars on the page. Default 100.
    limit: int | Unset = UNSET
    #: `nextCursor` of the previous page.
    cursor: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
        }
        if self.limit is not UNSET:
            sent["limit"] = self.limit
        if self.cursor is not UNSET:
            sent["cursor"] = self.cursor
        return sent


@dataclass(kw_only=True, slots=True)
class DeleteCalendar:
    """A calendar to delete."""

    #: The namespace's name.
    namespace: str
    #: The calendar's name, unique in its namespace.
    name: str
    #: The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none.
    expected_version: int | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "name": self.name,
        }
        if self.expected_version is not UNSET:
            sent["expectedVersion"] = self.expected_version
        return sent


@dataclass(kw_only=True, slots=True)
class PutCredential:
    """A credential with all that it has. A secret that is left out keeps its stored value, unless `hosts`, `tokenUrl`
    or `ca` would have it sent elsewhere; it is never returned. Without `managedBy` the credential keeps it; null
    removes it."""

    #: How a request identifies itself.
    type: CredentialType
    #: The namespace's name.
    namespace: str
    #: The credential's name, unique in its namespace.
    name: str
    #: Where it may be sent, and nowhere else: `host` or `host:port` for HTTPS, `http://host:port` for plain HTTP. Without
    #: any, only this machine's own addresses.
    hosts: Sequence[str] | Unset = UNSET
    #: Of basic: the user's name.
    username: str | Unset = UNSET
    #: Of oauth2ClientCredentials: the token endpoint.
    token_url: str | Unset = UNSET
    #: Of oauth2ClientCredentials: the client's id.
    client_id: str | Unset = UNSET
    #: Of oauth2ClientCredentials: whether the token endpoint gets the client's secret in the header Authorization
    #: (`basic`, the default) or in the body (`post`).
    client_authentication: ClientAuth | Unset = UNSET
    #: Of oauth2ClientCredentials: the scopes to ask for, with spaces between.
    scope: str | Unset = UNSET
    #: Of jwt: its `aud`. Of oauth2ClientCredentials: the parameter `audience`.
    audience: str | Unset = UNSET
    #: Of jwt: how long each is valid, 1m to 1h. Default 10m.
    lifetime: str | Unset = UNSET
    #: Of mtls: the client's certificate in PEM, followed by those that lead to its authority.
    certificate: str | Unset = UNSET
    #: Certificates in PEM of the authorities that are trusted for its hosts, instead of those that the system trusts.
    ca: str | Unset = UNSET
    #: What it is for, in one line; shown in lists.
    description: str | Unset = UNSET
    #: Of basic: the password.
    password: str | Unset = UNSET
    #: Of bearer: the token.
    token: str | Unset = UNSET
    #: Of oauth2ClientCredentials: the client's secret.
    client_secret: str | Unset = UNSET
    #: Of mtls: the certificate's private key in PEM, without a password.
    private_key: str | Unset = UNSET
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | None | Unset = UNSET
    #: The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none.
    expected_version: int | Unset = UNSET
    #: Writes nothing: the response shows what would be written. Default false.
    dry_run: bool | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "type": self.type,
            "namespace": self.namespace,
            "name": self.name,
        }
        if self.hosts is not UNSET:
            sent["hosts"] = list_json("hosts", self.hosts)
        if self.username is not UNSET:
            sent["username"] = self.username
        if self.token_url is not UNSET:
            sent["tokenUrl"] = self.token_url
        if self.client_id is not UNSET:
            sent["clientId"] = self.client_id
        if self.client_authentication is not UNSET:
            sent["clientAuthentication"] = self.client_authentication
        if self.scope is not UNSET:
            sent["scope"] = self.scope
        if self.audience is not UNSET:
            sent["audience"] = self.audience
        if self.lifetime is not UNSET:
            sent["lifetime"] = self.lifetime
        if self.certificate is not UNSET:
            sent["certificate"] = self.certificate
        if self.ca is not UNSET:
            sent["ca"] = self.ca
        if self.description is not UNSET:
            sent["description"] = self.description
        if self.password is not UNSET:
            sent["password"] = self.password
        if self.token is not UNSET:
            sent["token"] = self.token
        if self.client_secret is not UNSET:
            sent["clientSecret"] = self.client_secret
        if self.private_key is not UNSET:
            sent["privateKey"] = self.private_key
        if self.managed_by is not UNSET:
            sent["managedBy"] = self.managed_by
        if self.expected_version is not UNSET:
            sent["expectedVersion"] = self.expected_version
        if self.dry_run is not UNSET:
            sent["dryRun"] = self.dry_run
        return sent


@dataclass(kw_only=True, slots=True)
class CredentialId:
    """Names a credential."""

    #: The namespace's name.
    namespace: str
    #: The credential's name, unique in its namespace.
    name: str

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "name": self.name,
        }
        return sent


@dataclass(kw_only=True, slots=True)
class ListCredentials:
    """The namespace whose credentials are wanted."""

    #: The namespace's name.
    namespace: str
    #: Maximum number of credentials on the page. Default 100.
    limit: int | Unset = UNSET
    #: `nextCursor` of the previous page.
    cursor: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
        }
        if self.limit is not UNSET:
            sent["limit"] = self.limit
        if self.cursor is not UNSET:
            sent["cursor"] = self.cursor
        return sent


@dataclass(kw_only=True, slots=True)
class TestCredential:
    """A credential to try."""

    #: The namespace's name.
    namespace: str
    #: The credential's name, unique in its namespace.
    name: str
    #: A URL to which it may go. HEAD is sent there with it.
    url: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "name": self.name,
        }
        if self.url is not UNSET:
            sent["url"] = self.url
        return sent


@dataclass(kw_only=True, slots=True)
class DeleteCredential:
    """A credential to delete."""

    #: The namespace's name.
    namespace: str
    #: The credential's name, unique in its namespace.
    name: str
    #: The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none.
    expected_version: int | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "name": self.name,
        }
        if self.expected_version is not UNSET:
            sent["expectedVersion"] = self.expected_version
        return sent


@dataclass(kw_only=True, slots=True)
class PutMonitor:
    """A monitor with all its fields; send exactly one of `cron`, `every` and `schedule`. Without `managedBy` an
    existing monitor keeps it."""

    #: The namespace's name.
    namespace: str
    #: The monitor's id, unique among its namespace's monitors.
    id: str
    #: A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the seconds first,
    #: or @hourly, @daily, @weekly, @monthly, @yearly.
    cron: str | Unset = UNSET
    #: The IANA time zone of cron. Default UTC.
    time_zone: str | Unset = UNSET
    #: A report is expected so long after the last one; 1s to 366d, instead of cron.
    every: Duration | Unset = UNSET
    #: The id of a schedule of the namespace that it watches, instead of cron or every: it needs no ping, and is late when
    #: an occurrence has not ended grace after its instant. It expects nothing while the schedule is paused, or after its
    #: end.
    schedule: str | Unset = UNSET
    #: How long after the expected instant a report may come, or an occurrence end. Default 5m; 1s to 31d.
    grace: Duration | Unset = UNSET
    #: While it is late, notify again so often; at least 1m. Default: once.
    repeat: Duration | Unset = UNSET
    #: Who is notified when it is late, and when its job reports a failure, or an occurrence fails.
    on_late: Hook | Mapping[str, Any] | Unset = UNSET
    #: Who is notified when its job succeeds after it was late or had failed.
    on_recovery: Hook | Mapping[str, Any] | Unset = UNSET
    #: Labels to filter lists by.
    tags: Sequence[str] | Unset = UNSET
    #: What it is for, in one line; shown in lists and never sent to the callback.
    description: str | None | Unset = UNSET
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | Unset = UNSET
    #: The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none.
    expected_version: int | Unset = UNSET
    #: Writes nothing: the response shows what would be written. Default false.
    dry_run: bool | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "id": self.id,
        }
        if self.cron is not UNSET:
            sent["cron"] = self.cron
        if self.time_zone is not UNSET:
            sent["timeZone"] = self.time_zone
        if self.every is not UNSET:
            sent["every"] = duration_text("every", self.every)
        if self.schedule is not UNSET:
            sent["schedule"] = self.schedule
        if self.grace is not UNSET:
            sent["grace"] = duration_text("grace", self.grace)
        if self.repeat is not UNSET:
            sent["repeat"] = duration_text("repeat", self.repeat)
        if self.on_late is not UNSET:
            sent["onLate"] = object_json("on_late", self.on_late, Hook)
        if self.on_recovery is not UNSET:
            sent["onRecovery"] = object_json("on_recovery", self.on_recovery, Hook)
        if self.tags is not UNSET:
            sent["tags"] = list_json("tags", self.tags)
        if self.description is not UNSET:
            sent["description"] = self.description
        if self.managed_by is not UNSET:
            sent["managedBy"] = self.managed_by
        if self.expected_version is not UNSET:
            sent["expectedVersion"] = self.expected_version
        if self.dry_run is not UNSET:
            sent["dryRun"] = self.dry_run
        return sent


@dataclass(kw_only=True, slots=True)
class MonitorName:
    """Identifies a monitor."""

    #: The namespace's name.
    namespace: str
    #: The monitor's id, unique among its namespace's monitors.
    id: str

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "id": self.id,
        }
        return sent


@dataclass(kw_only=True, slots=True)
class ListMonitors:
    """Which monitors are listed."""

    #: The namespace's name; `*`: all that the API key has access to.
    namespace: str
    #: Monitors with any of these states match.
    state: MonitorState | Unset = UNSET
    #: Monitors with this tag match.
    tag: str | Unset = UNSET
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | Unset = UNSET
    #: Monitors whose id begins so match.
    id_prefix: str | Unset = UNSET
    #: Maximum number of monitors on the page. Default 100.
    limit: int | Unset = UNSET
    #: `nextCursor` of the previous page.
    cursor: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
        }
        if self.state is not UNSET:
            sent["state"] = self.state
        if self.tag is not UNSET:
            sent["tag"] = self.tag
        if self.managed_by is not UNSET:
            sent["managedBy"] = self.managed_by
        if self.id_prefix is not UNSET:
            sent["idPrefix"] = self.id_prefix
        if self.limit is not UNSET:
            sent["limit"] = self.limit
        if self.cursor is not UNSET:
            sent["cursor"] = self.cursor
        return sent


@dataclass(kw_only=True, slots=True)
class DeleteMonitor:
    """A monitor to delete."""

    #: The namespace's name.
    namespace: str
    #: The monitor's id, unique among its namespace's monitors.
    id: str
    #: The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be none.
    expected_version: int | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "id": self.id,
        }
        if self.expected_version is not UNSET:
            sent["expectedVersion"] = self.expected_version
        return sent


@dataclass(kw_only=True, slots=True)
class PingMonitor:
    """A report of the monitor's job."""

    #: The namespace's name.
    namespace: str
    #: The monitor's id, unique among its namespace's monitors.
    id: str
    #: start, success or fail. Default success.
    event: PingEvent | Unset = UNSET
    #: The job's exit code; any but 0 is a failure.
    exit_code: int | Unset = UNSET
    #: What to keep with the period, such as the end of a log: the last 10240 bytes, without secrets.
    body: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "id": self.id,
        }
        if self.event is not UNSET:
            sent["event"] = self.event
        if self.exit_code is not UNSET:
            sent["exitCode"] = self.exit_code
        if self.body is not UNSET:
            sent["body"] = self.body
        return sent


@dataclass(kw_only=True, slots=True)
class MonitorHistory:
    """The monitor whose periods are wanted."""

    #: The namespace's name.
    namespace: str
    #: The monitor's id, unique among its namespace's monitors.
    id: str
    #: Maximum number of periods on the page. Default 100.
    limit: int | Unset = UNSET
    #: `nextCursor` of the previous page.
    cursor: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "namespace": self.namespace,
            "id": self.id,
        }
        if self.limit is not UNSET:
            sent["limit"] = self.limit
        if self.cursor is not UNSET:
            sent["cursor"] = self.cursor
        return sent


@dataclass(kw_only=True, slots=True)
class ListDestinations:
    """How many destinations are wanted."""

    #: Maximum number of destinations. Default 100.
    limit: int | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {}
        if self.limit is not UNSET:
            sent["limit"] = self.limit
        return sent


@dataclass(kw_only=True, slots=True)
class DestinationName:
    """Names a destination."""

    #: An http or https URL, of which scheme, host and port count.
    destination: str

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "destination": self.destination,
        }
        return sent


@dataclass(kw_only=True, slots=True)
class ListInbox:
    """Which dead rows to list."""

    #: The namespace's name.
    namespace: str | Unset = UNSET
    #: Maximum number of rows on the page. Default 100.
    limit: int | Unset = UNSET
    #: `nextCursor` of the previous page.
    cursor: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {}
        if self.namespace is not UNSET:
            sent["namespace"] = self.namespace
        if self.limit is not UNSET:
            sent["limit"] = self.limit
        if self.cursor is not UNSET:
            sent["cursor"] = self.cursor
        return sent


@dataclass(kw_only=True, slots=True)
class ChangeInbox:
    """Which dead rows are meant: those with these ids, those of a namespace, or all."""

    #: The id of each, up to 1,000.
    ids: Sequence[str] | Unset = UNSET
    #: The namespace's name.
    namespace: str | Unset = UNSET
    #: With `true` and no other field: all dead rows.
    all: bool | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {}
        if self.ids is not UNSET:
            sent["ids"] = list_json("ids", self.ids)
        if self.namespace is not UNSET:
            sent["namespace"] = self.namespace
        if self.all is not UNSET:
            sent["all"] = self.all
        return sent


@dataclass(kw_only=True, slots=True)
class CreateKey:
    """An API key to create. Without `namespaces` and `tenants` it has access to all of them, which only an unlimited
    key can grant."""

    #: What the key allows; each role includes the previous ones.
    role: KeyRole
    #: What the key is for.
    name: str | Unset = UNSET
    #: Limits the key to these namespaces.
    namespaces: Sequence[str] | Unset = UNSET
    #: Limits the key to these tenants.
    tenants: Sequence[str] | Unset = UNSET
    #: When the key expires; without it, never.
    expires_at: Instant | Unset = UNSET
    #: Limits the key to these operations: names such as `timers/create`, which are the paths below the version, for
    #: service calls `calls/submit` and its like; groups such as `timers/*`; `read`, for all that a key of role read may
    #: use.
    operations: Sequence[str] | Unset = UNSET
    #: Limits the key to requests from these addresses and networks. The client's address counts, which behind a proxy the
    #: setting `trusted_proxies` finds.
    sources: Sequence[str] | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "role": self.role,
        }
        if self.name is not UNSET:
            sent["name"] = self.name
        if self.namespaces is not UNSET:
            sent["namespaces"] = list_json("namespaces", self.namespaces)
        if self.tenants is not UNSET:
            sent["tenants"] = list_json("tenants", self.tenants)
        if self.expires_at is not UNSET:
            sent["expiresAt"] = instant_text("expires_at", self.expires_at)
        if self.operations is not UNSET:
            sent["operations"] = list_json("operations", self.operations)
        if self.sources is not UNSET:
            sent["sources"] = list_json("sources", self.sources)
        return sent


@dataclass(kw_only=True, slots=True)
class RevokeKey:
    """The key to revoke."""

    #: The key's id, the part between its first two underscores.
    key_id: str

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "keyId": self.key_id,
        }
        return sent


@dataclass(kw_only=True, slots=True)
class ListAudit:
    """Filters of a list of audit entries; an entry must match all of them."""

    #: An action, or several: entries with any of them match.
    action: Sequence[AuditAction] | Unset = UNSET
    #: The key that acted.
    key_id: str | Unset = UNSET
    #: The object of the action: a namespace's name or a key's id.
    subject: str | Unset = UNSET
    #: Only entries at or after this instant.
    after: Instant | Unset = UNSET
    #: Only entries before this instant.
    before: Instant | Unset = UNSET
    #: Maximum number of entries on the page. Default 100.
    limit: int | Unset = UNSET
    #: `nextCursor` of the previous page.
    cursor: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {}
        if self.action is not UNSET:
            sent["action"] = list_json("action", self.action)
        if self.key_id is not UNSET:
            sent["keyId"] = self.key_id
        if self.subject is not UNSET:
            sent["subject"] = self.subject
        if self.after is not UNSET:
            sent["after"] = instant_text("after", self.after)
        if self.before is not UNSET:
            sent["before"] = instant_text("before", self.before)
        if self.limit is not UNSET:
            sent["limit"] = self.limit
        if self.cursor is not UNSET:
            sent["cursor"] = self.cursor
        return sent


@dataclass(kw_only=True, slots=True)
class GetStatistics:
    """Which slots to return."""

    #: A namespace, or `*` for all that the key has access to. Default `*`.
    namespace: str | Unset = UNSET
    #: The first slot is the one with this instant. Default: one hour before `to`, with tenMinutes one day.
    from_: Instant | Unset = UNSET
    #: Only slots that begin before this instant. Default: now.
    to: Instant | Unset = UNSET
    #: `minute` reaches back 24 hours, `tenMinutes` 30 days. Default `minute`.
    resolution: StatisticsResolution | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {}
        if self.namespace is not UNSET:
            sent["namespace"] = self.namespace
        if self.from_ is not UNSET:
            sent["from"] = instant_text("from_", self.from_)
        if self.to is not UNSET:
            sent["to"] = instant_text("to", self.to)
        if self.resolution is not UNSET:
            sent["resolution"] = self.resolution
        return sent


@dataclass(kw_only=True, slots=True)
class SubmitServiceCall:
    """A service call to submit."""

    #: A display name.
    name: str
    request_spec: RequestSpec | Mapping[str, Any]
    #: When to send the request: an RFC 3339 instant with a time zone. If it is in the past, or neither `dueAt` nor
    #: `delay` is given: now.
    due_at: Instant | Unset = UNSET
    #: Delay from now, instead of `dueAt`.
    delay: Duration | Unset = UNSET
    #: Labels to filter lists by.
    tags: Sequence[str] | Unset = UNSET
    #: The call's id, a UUID of version 7. Without one, the server generates it.
    service_call_id: str | Unset = UNSET
    #: Makes the submission safe to repeat. Equivalent to the header Idempotency-Key.
    idempotency_key: str | Unset = UNSET
    #: The flow that limits how many of its attempts begin and are in flight at once, together with timers, if a rule of
    #: the agent's namespace (`agent.flow_namespace`) matches it.
    flow_key: str | Unset = UNSET
    #: Who is notified when it has failed.
    on_failure: CallHook | Mapping[str, Any] | Unset = UNSET
    #: Who is notified when it has succeeded.
    on_success: CallHook | Mapping[str, Any] | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "name": self.name,
            "requestSpec": object_json("request_spec", self.request_spec, RequestSpec),
        }
        if self.due_at is not UNSET:
            sent["dueAt"] = instant_text("due_at", self.due_at)
        if self.delay is not UNSET:
            sent["delay"] = duration_text("delay", self.delay)
        if self.tags is not UNSET:
            sent["tags"] = list_json("tags", self.tags)
        if self.service_call_id is not UNSET:
            sent["serviceCallId"] = self.service_call_id
        if self.idempotency_key is not UNSET:
            sent["idempotencyKey"] = self.idempotency_key
        if self.flow_key is not UNSET:
            sent["flowKey"] = self.flow_key
        if self.on_failure is not UNSET:
            sent["onFailure"] = object_json("on_failure", self.on_failure, CallHook)
        if self.on_success is not UNSET:
            sent["onSuccess"] = object_json("on_success", self.on_success, CallHook)
        return sent


@dataclass(kw_only=True, slots=True)
class RequestSpec:
    """The HTTP request to make."""

    #: The method of the request.
    method: ServiceCallMethod
    #: The http or https URL.
    url: str
    #: The request's headers.
    headers: Mapping[str, str] | None | Unset = UNSET
    #: Any JSON: a string is sent as plain text, any other value as JSON. At most 102400 bytes. Not with GET and HEAD.
    body: JsonValue | Unset = UNSET
    #: When a failed attempt is retried. Without a policy, or with null, there is a single attempt: a service may not
    #: tolerate repeated requests. Omitted members get their defaults when the call is submitted.
    retry_policy: RetryPolicy | Mapping[str, Any] | None | Unset = UNSET
    #: The credential that the request has: one of the namespace that `agent.credentials_namespace` names, in which the
    #: client's key has to have the role write. It goes to no other origin than the credential's own.
    credential: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "method": self.method,
            "url": self.url,
        }
        if self.headers is not UNSET:
            sent["headers"] = None if self.headers is None else map_json("headers", self.headers)
        if self.body is not UNSET:
            sent["body"] = self.body
        if self.retry_policy is not UNSET:
            sent["retryPolicy"] = (
                None if self.retry_policy is None else object_json("retry_policy", self.retry_policy, RetryPolicy)
            )
        if self.credential is not UNSET:
            sent["credential"] = self.credential
        return sent


@dataclass(kw_only=True, slots=True)
class CallHook:
    """Where a notification of a service call is sent, signed like a callback."""

    #: The http or https URL, or `nats://subject`, to notify.
    url: str
    #: Additional headers of the notification. The value [redacted] keeps the stored value.
    headers: Mapping[str, str] | Unset = UNSET
    #: The credential that the notification has: of the namespace; for service calls, of that which
    #: `agent.credentials_namespace` names.
    credential: str | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "url": self.url,
        }
        if self.headers is not UNSET:
            sent["headers"] = map_json("headers", self.headers)
        if self.credential is not UNSET:
            sent["credential"] = self.credential
        return sent


@dataclass(kw_only=True, slots=True)
class RotateTenantSecret:
    """The rotation of the secret that signs a tenant's service calls."""

    #: The tenant: a UUID of version 7.
    tenant_id: str
    #: The new secret: whsec_ and base64. Without one, the server generates it.
    secret: str | Unset = UNSET
    #: How long the previous secret keeps signing: at most 30d; 0s: not at all. Default 24h.
    grace: Duration | Unset = UNSET
    #: Rotate even during the grace period of an earlier rotation. Default false.
    force: bool | Unset = UNSET

    def to_json(self) -> dict[str, JsonValue]:
        """The object to send: fields that are UNSET stay out."""
        sent: dict[str, JsonValue] = {
            "tenantId": self.tenant_id,
        }
        if self.secret is not UNSET:
            sent["secret"] = self.secret
        if self.grace is not UNSET:
            sent["grace"] = duration_text("grace", self.grace)
        if self.force is not UNSET:
            sent["force"] = self.force
        return sent


@dataclass(kw_only=True, slots=True)
class Timer:
    """A timer, pending or finished."""

    #: The namespace's name.
    namespace: str
    #: The timer's id, unique in its namespace.
    id: str
    #: Derived from namespace and id.
    timer_uuid: str
    #: The shard that holds the timer.
    shard_id: int
    status: TimerStatus | str
    #: An RFC 3339 instant with a time zone.
    execute_at: datetime
    #: The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets.
    callback_url: str
    #: The HTTP method of the callback.
    method: CallbackMethod | str
    #: Additional headers of the callback; secret values are [redacted].
    headers: dict[str, str]
    #: Timeout of one attempt, in seconds.
    callback_timeout_seconds: float
    #: Labels to filter lists by.
    tags: list[str]
    #: Attempts made in the current firing.
    attempts: int
    #: The latest attempts, oldest first.
    attempt_log: list[Attempt]
    #: An RFC 3339 instant with a time zone.
    created_at: datetime
    #: An RFC 3339 instant with a time zone.
    updated_at: datetime
    #: Absent if the timer has a body.
    payload: Any = None
    #: The timer's own policy; absent while the namespace's applies.
    retry_policy: RetryPolicyAnswer | None = None
    #: When the next attempt is due.
    next_attempt_at: datetime | None = None
    #: When the timer finished.
    executed_at: datetime | None = None
    #: Why the last failed attempt failed: a stable code, then details.
    last_error: str | None = None
    #: The whole body of the callback, instead of the envelope with the payload.
    body: RawBodyAnswer | None = None
    #: No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as expired then,
    #: any other as failed.
    expire_after: str | None = None
    #: What the timer is for.
    description: str | None = None
    #: The flow that limits its attempts.
    flow_key: str | None = None
    #: The credential that its requests have.
    credential: str | None = None
    #: Why the pending timer is suspended: `egress` (this server does not call its address), `secret` (one can't be
    #: decrypted), `namespace:…`, `destination:…`, `flow:…` (paused, or too many wait), `credential:…` (it can't be sent
    #: now), `bad_record: …`; else absent.
    suspended: str | None = None
    #: What the due timer does now, or waits for; only in a list that asks for it.
    explanation: Explanation | None = None
    #: Who is notified when it has failed, or expired.
    on_failure: HookAnswer | None = None
    #: Who is notified when it has succeeded.
    on_success: HookAnswer | None = None
    #: Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its replay.
    on_recovery: HookAnswer | None = None
    #: Only of a timer that was created with onConflict debounce.
    debounced: Debounced | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Timer:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            namespace=source["namespace"],
            id=source["id"],
            timer_uuid=source["timerUuid"],
            shard_id=source["shardId"],
            status=source["status"],
            execute_at=parse_instant(source["executeAt"]),
            callback_url=source["callbackUrl"],
            method=source["method"],
            headers=source["headers"],
            callback_timeout_seconds=source["callbackTimeoutSeconds"],
            tags=source["tags"],
            attempts=source["attempts"],
            attempt_log=[Attempt.from_json(each) for each in source["attemptLog"]],
            created_at=parse_instant(source["createdAt"]),
            updated_at=parse_instant(source["updatedAt"]),
            payload=source.get("payload"),
            retry_policy=None
            if source.get("retryPolicy") is None
            else RetryPolicyAnswer.from_json(source["retryPolicy"]),
            next_attempt_at=None if source.get("nextAttemptAt") is None else parse_instant(source["nextAttemptAt"]),
            executed_at=None if source.get("executedAt") is None else parse_instant(source["executedAt"]),
            last_error=source.get("lastError"),
            body=None if source.get("body") is None else RawBodyAnswer.from_json(source["body"]),
            expire_after=source.get("expireAfter"),
            description=source.get("description"),
            flow_key=source.get("flowKey"),
            credential=source.get("credential"),
            suspended=source.get("suspended"),
            explanation=None if source.get("explanation") is None else Explanation.from_json(source["explanation"]),
            on_failure=None if source.get("onFailure") is None else HookAnswer.from_json(source["onFailure"]),
            on_success=None if source.get("onSuccess") is None else HookAnswer.from_json(source["onSuccess"]),
            on_recovery=None if source.get("onRecovery") is None else HookAnswer.from_json(source["onRecovery"]),
            debounced=None if source.get("debounced") is None else Debounced.from_json(source["debounced"]),
        )


@dataclass(kw_only=True, slots=True)
class Attempt:
    """One attempt. `status` is absent if there was no response, `error` if the attempt succeeded."""

    #: When the attempt started.
    started_at: datetime
    #: Duration in milliseconds.
    duration_ms: float
    #: The HTTP status.
    status: int | None = None
    #: Why the attempt failed: a stable code, then details.
    error: str | None = None
    #: The beginning of the response's body on one line, without secrets; its length if it is no text. Absent if the
    #: receiver just accepted the callback.
    answer: str | None = None
    #: The `webhook-id` of its batch; absent if it had a request of its own.
    batch: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Attempt:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            started_at=parse_instant(source["startedAt"]),
            duration_ms=source["durationMs"],
            status=source.get("status"),
            error=source.get("error"),
            answer=source.get("answer"),
            batch=source.get("batch"),
        )


@dataclass(kw_only=True, slots=True)
class RetryPolicyAnswer:
    """A retry policy with its defaults filled in."""

    #: Maximum number of attempts, including the first.
    max_attempts: int
    #: Delay before the second attempt.
    initial_interval: str
    #: Factor by which each delay grows.
    backoff_multiplier: float
    #: Maximum delay.
    max_interval: str
    #: No attempt starts later than this after the first.
    max_attempts_duration: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> RetryPolicyAnswer:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            max_attempts=source["maxAttempts"],
            initial_interval=source["initialInterval"],
            backoff_multiplier=source["backoffMultiplier"],
            max_interval=source["maxInterval"],
            max_attempts_duration=source.get("maxAttemptsDuration"),
        )


@dataclass(kw_only=True, slots=True)
class RawBodyAnswer:
    """A callback's raw body, in one of the three forms."""

    content_type: str
    json: Any = None
    text: str | None = None
    base64: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> RawBodyAnswer:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            content_type=source["contentType"],
            json=source.get("json"),
            text=source.get("text"),
            base64=source.get("base64"),
        )


@dataclass(kw_only=True, slots=True)
class Explanation:
    """Where a timer is, what it waits for, and what happens next."""

    state: TimerState | str
    #: The shard that holds the timer.
    shard: int
    #: The node that owns the shard; null if none does.
    owner: str | None
    #: All of this in English.
    sentence: str
    #: What has to happen before the timer moves on; absent if it has finished, or that is not known.
    waits_for: TimerWaitsFor | str | None = None
    #: When the next attempt is due, or the one in flight times out; absent if that is not known.
    next: str | None = None
    #: The number of the attempt that is in flight; absent if none is.
    attempt: int | None = None
    #: When the attempt in flight began, or else when the timer became due; in the state `unknown`, since when the owner
    #: has not answered. Absent if the timer is not due, or that is not known.
    since: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Explanation:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            state=source["state"],
            shard=source["shard"],
            owner=source["owner"],
            sentence=source["sentence"],
            waits_for=source.get("waitsFor"),
            next=source.get("next"),
            attempt=source.get("attempt"),
            since=source.get("since"),
        )


@dataclass(kw_only=True, slots=True)
class HookAnswer:
    """Where notifications are sent."""

    #: The URL; its secrets are [redacted].
    url: str
    #: Additional headers; secret values are [redacted].
    headers: dict[str, str] | None = None
    #: The credential that the notification has.
    credential: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> HookAnswer:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            url=source["url"],
            headers=source.get("headers"),
            credential=source.get("credential"),
        )


@dataclass(kw_only=True, slots=True)
class Debounced:
    """The debounced creates for which one firing of a timer stands."""

    #: How many they are.
    creates: int
    #: When the first one was made.
    first_at: datetime
    #: The timer fires at the latest then.
    latest_at: str
    #: How many payloads the payload's array has; absent if it has that of the latest create.
    collected: int | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Debounced:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            creates=source["creates"],
            first_at=parse_instant(source["firstAt"]),
            latest_at=source["latestAt"],
            collected=source.get("collected"),
        )


@dataclass(kw_only=True, slots=True)
class RunPageAnswer:
    """A page of runs, newest first. A page without `nextCursor` is the last."""

    runs: list[RunAnswer]
    #: `nextCursor` of the previous page.
    next_cursor: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> RunPageAnswer:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            runs=[RunAnswer.from_json(each) for each in source["runs"]],
            next_cursor=source.get("nextCursor"),
        )


@dataclass(kw_only=True, slots=True)
class RunAnswer:
    """One run: what became of one instant of the timer. `pending` is the current run. After `rescheduled` and
    `superseded` the timer went on, because its receiver asked for another instant, or a client gave it one or created
    it again."""

    #: The run's name, which is part of the webhook-id of its attempts.
    run: str
    #: An RFC 3339 instant with a time zone.
    execute_at: datetime
    status: RunStatus | str
    #: Number of attempts made, of which the latest are kept.
    attempts: int
    #: The latest attempts, oldest first.
    attempt_log: list[Attempt]
    #: `true`: it is a replay of the run before it with the same name. Absent otherwise.
    replay: bool | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> RunAnswer:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            run=source["run"],
            execute_at=parse_instant(source["executeAt"]),
            status=source["status"],
            attempts=source["attempts"],
            attempt_log=[Attempt.from_json(each) for each in source["attemptLog"]],
            replay=source.get("replay"),
        )


@dataclass(kw_only=True, slots=True)
class BatchResults:
    """One result for each timer sent, in the same order."""

    results: list[BatchResult]

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> BatchResults:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            results=[BatchResult.from_json(each) for each in source["results"]],
        )


@dataclass(kw_only=True, slots=True)
class BatchResult:
    """The result for one timer of a batch: `timer` or `error`. With `existing` or `replayed` nothing was written: the
    timer is the existing one that was kept, or the one that an earlier request with the same idempotency key
    created."""

    timer: Timer | None = None
    error: ItemError | None = None
    existing: bool | None = None
    replayed: bool | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> BatchResult:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            timer=None if source.get("timer") is None else Timer.from_json(source["timer"]),
            error=None if source.get("error") is None else ItemError.from_json(source["error"]),
            existing=source.get("existing"),
            replayed=source.get("replayed"),
        )


@dataclass(kw_only=True, slots=True)
class ItemError:
    """Why a timer of a batch was not created, or not replayed."""

    #: A stable code.
    error: str
    message: str
    #: The HTTP status that a request for this timer alone would have returned.
    status: int
    errors: list[BadField]

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> ItemError:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            error=source["error"],
            message=source["message"],
            status=source["status"],
            errors=[BadField.from_json(each) for each in source["errors"]],
        )


@dataclass(kw_only=True, slots=True)
class BadField:
    """An invalid field: its path, and what is wrong with it."""

    #: Dotted path, such as timers[3].executeAt; empty for the body as a whole.
    path: str
    #: What is wrong, and what is accepted.
    reason: str

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> BadField:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            path=source["path"],
            reason=source["reason"],
        )


@dataclass(kw_only=True, slots=True)
class TimerPage:
    """A page of timers, ordered by `executeAt`. A page without `nextCursor` is the last. A page may be empty without
    being the last, and is shorter than its limit if payloads are large."""

    timers: list[Timer]
    #: `nextCursor` of the previous page.
    next_cursor: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> TimerPage:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            timers=[Timer.from_json(each) for each in source["timers"]],
            next_cursor=source.get("nextCursor"),
        )


@dataclass(kw_only=True, slots=True)
class Schedule:
    """A schedule: its definition, and where it stands."""

    #: The namespace's name.
    namespace: str
    #: The schedule's id, unique among its namespace's schedules.
    id: str
    #: Derived from namespace and id.
    schedule_uuid: str
    #: The shard that holds the schedule.
    shard_id: int
    #: active, paused, or ended: it has no more instants, or was deleted.
    status: ScheduleStatus | str
    #: When it runs, in words.
    sentence: str
    #: Its next three instants.
    next_instants: list[datetime]
    #: Its ended occurrences by outcome.
    counts: dict[str, int]
    #: Instants that did not fire, by reason: late (they passed before it could fire), overlap (the previous occurrence
    #: had not finished), window (older than the catch-up window), paused, excluded (by a calendar, or skipped by hand).
    missed: dict[str, int]
    #: Triggers that wait to be fired.
    triggers_waiting: int
    #: Backfills that are not complete.
    backfills_waiting: int
    #: Failed occurrences that wait to be replayed.
    replays_waiting: int
    #: What becomes of instants that pass while it cannot fire.
    catch_up: CatchUp | str
    #: By how much each instant is delayed at most.
    jitter: str
    #: Failed occurrences in a row that pause it; 0: never.
    pause_after_failures: int
    #: Calendars: only instants on a date of one of them fire. Empty: no restriction.
    only: list[str]
    #: Calendars: no instant on a date of any of them fires.
    skip: list[str]
    #: What becomes of instants that its calendars exclude.
    on_skipped: OnSkipped | str
    #: Instants to come that are skipped by hand.
    skipped_instants: list[str]
    #: The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets.
    callback_url: str
    #: The HTTP method of the callback.
    method: CallbackMethod | str
    #: Additional headers of the callback; secret values are [redacted].
    headers: dict[str, str]
    #: Timeout of one attempt, in seconds.
    callback_timeout_seconds: float
    #: Labels to filter lists by.
    tags: list[str]
    #: An RFC 3339 instant with a time zone.
    created_at: datetime
    #: An RFC 3339 instant with a time zone.
    updated_at: datetime
    #: 1, and one more with each change by a client.
    version: int
    #: A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the seconds first,
    #: or @hourly, @daily, @weekly, @monthly, @yearly.
    cron: str | None = None
    #: The time zone of cron.
    time_zone: str | None = None
    #: An interval of 1s to 366d, by elapsed time, instead of cron.
    every: str | None = None
    #: From which instant every counts.
    anchor: datetime | None = None
    #: No instant is earlier than this.
    start_at: datetime | None = None
    #: All instants are earlier than this.
    end_at: datetime | None = None
    #: How many instants it has.
    max_occurrences: int | None = None
    #: Instants that are later than this are missed; absent while the default applies.
    catch_up_window: str | None = None
    #: No attempt begins later than this after executeAt; at least 1s. A timer without any attempt ends as expired then,
    #: any other as failed.
    expire_after: str | None = None
    #: What the schedule is for.
    description: str | None = None
    #: The flow that limits its attempts.
    flow_key: str | None = None
    #: The credential that its requests have.
    credential: str | None = None
    #: Absent if the schedule has a body.
    payload: Any = None
    #: The whole body of the callback, instead of the envelope with the payload.
    body: RawBodyAnswer | None = None
    #: The schedule's own policy; absent while the namespace's applies.
    retry_policy: RetryPolicyAnswer | None = None
    #: Why it is paused; absent unless it is.
    paused_reason: str | None = None
    #: The instant of the current occurrence, waiting or being attempted; absent once ended.
    occurrence_at: datetime | None = None
    #: Attempts of the current occurrence.
    attempts: int | None = None
    #: When the next attempt is due.
    next_attempt_at: datetime | None = None
    #: Why the last failed attempt failed: a stable code, then details.
    last_error: str | None = None
    #: The occurrence that ended last.
    last_occurrence: Occurrence | None = None
    #: Why the current occurrence is suspended although the schedule is active: as in a timer's `suspended`; absent unless
    #: it is.
    suspended: str | None = None
    #: Who is notified when it has failed, or expired.
    on_failure: HookAnswer | None = None
    #: Who is notified when it has succeeded.
    on_success: HookAnswer | None = None
    #: Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its replay.
    on_recovery: HookAnswer | None = None
    #: Who is notified when instants did not fire, though the schedule was not paused.
    on_missed: HookAnswer | None = None
    #: Who is notified when the schedule has paused itself after failures in a row.
    on_paused: HookAnswer | None = None
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Schedule:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            namespace=source["namespace"],
            id=source["id"],
            schedule_uuid=source["scheduleUuid"],
            shard_id=source["shardId"],
            status=source["status"],
            sentence=source["sentence"],
            next_instants=[parse_instant(each) for each in source["nextInstants"]],
            counts=source["counts"],
            missed=source["missed"],
            triggers_waiting=source["triggersWaiting"],
            backfills_waiting=source["backfillsWaiting"],
            replays_waiting=source["replaysWaiting"],
            catch_up=source["catchUp"],
            jitter=source["jitter"],
            pause_after_failures=source["pauseAfterFailures"],
            only=source["only"],
            skip=source["skip"],
            on_skipped=source["onSkipped"],
            skipped_instants=source["skippedInstants"],
            callback_url=source["callbackUrl"],
            method=source["method"],
            headers=source["headers"],
            callback_timeout_seconds=source["callbackTimeoutSeconds"],
            tags=source["tags"],
            created_at=parse_instant(source["createdAt"]),
            updated_at=parse_instant(source["updatedAt"]),
            version=source["version"],
            cron=source.get("cron"),
            time_zone=source.get("timeZone"),
            every=source.get("every"),
            anchor=None if source.get("anchor") is None else parse_instant(source["anchor"]),
            start_at=None if source.get("startAt") is None else parse_instant(source["startAt"]),
            end_at=None if source.get("endAt") is None else parse_instant(source["endAt"]),
            max_occurrences=source.get("maxOccurrences"),
            catch_up_window=source.get("catchUpWindow"),
            expire_after=source.get("expireAfter"),
            description=source.get("description"),
            flow_key=source.get("flowKey"),
            credential=source.get("credential"),
            payload=source.get("payload"),
            body=None if source.get("body") is None else RawBodyAnswer.from_json(source["body"]),
            retry_policy=None
            if source.get("retryPolicy") is None
            else RetryPolicyAnswer.from_json(source["retryPolicy"]),
            paused_reason=source.get("pausedReason"),
            occurrence_at=None if source.get("occurrenceAt") is None else parse_instant(source["occurrenceAt"]),
            attempts=source.get("attempts"),
            next_attempt_at=None if source.get("nextAttemptAt") is None else parse_instant(source["nextAttemptAt"]),
            last_error=source.get("lastError"),
            last_occurrence=None
            if source.get("lastOccurrence") is None
            else Occurrence.from_json(source["lastOccurrence"]),
            suspended=source.get("suspended"),
            on_failure=None if source.get("onFailure") is None else HookAnswer.from_json(source["onFailure"]),
            on_success=None if source.get("onSuccess") is None else HookAnswer.from_json(source["onSuccess"]),
            on_recovery=None if source.get("onRecovery") is None else HookAnswer.from_json(source["onRecovery"]),
            on_missed=None if source.get("onMissed") is None else HookAnswer.from_json(source["onMissed"]),
            on_paused=None if source.get("onPaused") is None else HookAnswer.from_json(source["onPaused"]),
            managed_by=source.get("managedBy"),
        )


@dataclass(kw_only=True, slots=True)
class Occurrence:
    """An occurrence that has ended."""

    #: Its instant.
    instant: datetime
    #: Why it fired: its instant had come (regular), a trigger, a backfill, or a replay.
    source: OccurrenceSource | str
    #: How it ended: completed, failed or expired.
    outcome: str
    #: An RFC 3339 instant with a time zone.
    finished_at: datetime
    #: Its attempts.
    attempts: int

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Occurrence:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            instant=parse_instant(source["instant"]),
            source=source["source"],
            outcome=source["outcome"],
            finished_at=parse_instant(source["finishedAt"]),
            attempts=source["attempts"],
        )


@dataclass(kw_only=True, slots=True)
class SchedulePage:
    """A page of schedules, ordered by id. A page without `nextCursor` is the last."""

    schedules: list[Schedule]
    #: `nextCursor` of the previous page.
    next_cursor: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> SchedulePage:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            schedules=[Schedule.from_json(each) for each in source["schedules"]],
            next_cursor=source.get("nextCursor"),
        )


@dataclass(kw_only=True, slots=True)
class Preview:
    """The next instants, fewer than asked for if there are no more."""

    #: The next instants, in UTC. Those of a schedule include its jitter.
    instants: list[datetime]
    #: When it runs, in words.
    sentence: str
    #: The instants until the last of these that don't fire, and why; with onSkipped next those that move. At most 100.
    excluded: list[ExcludedInstant]

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Preview:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            instants=[parse_instant(each) for each in source["instants"]],
            sentence=source["sentence"],
            excluded=[ExcludedInstant.from_json(each) for each in source["excluded"]],
        )


@dataclass(kw_only=True, slots=True)
class ExcludedInstant:
    """An instant that does not fire."""

    #: The instant; one that a calendar excludes is without jitter.
    instant: datetime
    #: only, skip, once or missing.
    reason: ExclusionReason | str
    #: The calendar, or those of only.
    calendar: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> ExcludedInstant:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            instant=parse_instant(source["instant"]),
            reason=source["reason"],
            calendar=source.get("calendar"),
        )


@dataclass(kw_only=True, slots=True)
class OccurrencePage:
    """A page of occurrences, newest first. A page without `nextCursor` is the last."""

    occurrences: list[OccurrenceRun]
    #: `nextCursor` of the previous page.
    next_cursor: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> OccurrencePage:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            occurrences=[OccurrenceRun.from_json(each) for each in source["occurrences"]],
            next_cursor=source.get("nextCursor"),
        )


@dataclass(kw_only=True, slots=True)
class OccurrenceRun:
    """One occurrence with its attempts. `pending` is the current one. `missed`: instants that did not fire, with no
    occurrence before them."""

    #: Its name, which is part of the webhook-id of its attempts.
    run: str
    #: An RFC 3339 instant with a time zone.
    instant: datetime
    status: RunStatus | str
    #: Number of attempts made, of which the latest are kept.
    attempts: int
    #: The latest attempts, oldest first.
    attempt_log: list[Attempt]
    #: Instants between this occurrence and the next that did not fire; excluded ones are before it.
    missed: list[MissedRange]
    #: Why it fired: regular, trigger, backfill or replay; absent if it did not.
    source: OccurrenceSource | str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> OccurrenceRun:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            run=source["run"],
            instant=parse_instant(source["instant"]),
            status=source["status"],
            attempts=source["attempts"],
            attempt_log=[Attempt.from_json(each) for each in source["attemptLog"]],
            missed=[MissedRange.from_json(each) for each in source["missed"]],
            source=source.get("source"),
        )


@dataclass(kw_only=True, slots=True)
class MissedRange:
    """Instants that did not fire, from the first to the last."""

    #: late, overlap, window, paused or excluded.
    reason: str
    #: How many; 1,000 stands for more, too.
    count: int
    #: An RFC 3339 instant with a time zone.
    first_at: datetime
    #: An RFC 3339 instant with a time zone.
    last_at: datetime

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> MissedRange:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            reason=source["reason"],
            count=source["count"],
            first_at=parse_instant(source["firstAt"]),
            last_at=parse_instant(source["lastAt"]),
        )


@dataclass(kw_only=True, slots=True)
class FailureList:
    """Groups of failures, those with most failures first."""

    #: The groups.
    groups: list[FailureGroup]
    #: How many groups beyond the limit there are.
    further_groups: int
    #: How many failures there are in all groups.
    count: int
    #: Whether there are older failures that were not counted: at most 50,000 are.
    at_least: bool

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> FailureList:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            groups=[FailureGroup.from_json(each) for each in source["groups"]],
            further_groups=source["furtherGroups"],
            count=source["count"],
            at_least=source["atLeast"],
        )


@dataclass(kw_only=True, slots=True)
class FailureGroup:
    """Failures with something in common. Fields in which they differ are absent."""

    #: How many failures were counted.
    count: int
    #: When the first one failed.
    first_at: datetime
    #: When the last one failed.
    last_at: datetime
    #: How many failed in each of 24 equal parts of the time from the first one to now.
    series: list[int]
    #: The newest ones, at most 10.
    newest: list[Failure]
    #: The namespace; absent of service calls.
    namespace: str | None = None
    #: The tenant; of service calls only.
    tenant: str | None = None
    #: The URL that was called, without credentials and query.
    destination: str | None = None
    #: The stable code of the last error, without details.
    error: str | None = None
    #: What failed.
    kind: FailedKind | str | None = None
    #: The newest failure in detail.
    sample: FailureSample | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> FailureGroup:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            count=source["count"],
            first_at=parse_instant(source["firstAt"]),
            last_at=parse_instant(source["lastAt"]),
            series=source["series"],
            newest=[Failure.from_json(each) for each in source["newest"]],
            namespace=source.get("namespace"),
            tenant=source.get("tenant"),
            destination=source.get("destination"),
            error=source.get("error"),
            kind=source.get("kind"),
            sample=None if source.get("sample") is None else FailureSample.from_json(source["sample"]),
        )


@dataclass(kw_only=True, slots=True)
class Failure:
    """A failed end that nobody has dealt with. Its details are in the history of the timer or schedule, or in the
    execution log of the service call."""

    #: Names the failure in requests. Opaque.
    failure_id: str
    #: What failed.
    kind: FailedKind | str
    #: The id of the timer, schedule or service call.
    id: str
    #: The instant of the run that failed.
    execute_at: datetime
    #: When it failed.
    failed_at: str
    #: The URL that was called, without credentials and query.
    destination: str
    #: The stable code of the last error, without details.
    error: str
    #: The namespace; absent of service calls.
    namespace: str | None = None
    #: The tenant; of service calls only.
    tenant: str | None = None
    #: The display name of the service call.
    name: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Failure:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            failure_id=source["failureId"],
            kind=source["kind"],
            id=source["id"],
            execute_at=parse_instant(source["executeAt"]),
            failed_at=source["failedAt"],
            destination=source["destination"],
            error=source["error"],
            namespace=source.get("namespace"),
            tenant=source.get("tenant"),
            name=source.get("name"),
        )


@dataclass(kw_only=True, slots=True)
class FailureSample:
    """The newest failure of a group: its request and its last attempt, as far as they are kept."""

    #: The request's method.
    method: str | None = None
    #: The request's URL, without its secrets.
    url: str | None = None
    #: The last attempt.
    attempt: Attempt | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> FailureSample:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            method=source.get("method"),
            url=source.get("url"),
            attempt=None if source.get("attempt") is None else Attempt.from_json(source["attempt"]),
        )


@dataclass(kw_only=True, slots=True)
class FailurePage:
    """A page of failures, newest first."""

    #: The failures.
    failures: list[Failure]
    #: The cursor of the next page; absent on the last page.
    next_cursor: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> FailurePage:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            failures=[Failure.from_json(each) for each in source["failures"]],
            next_cursor=source.get("nextCursor"),
        )


@dataclass(kw_only=True, slots=True)
class DismissedFailures:
    """What was dismissed."""

    #: How many failures. Ids that were not listed any more count, too.
    dismissed: int
    #: Whether there may be more of the group: at most 50,000 are read, and of service calls 5,000 dismissed. Repeat the
    #: request.
    more: bool

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> DismissedFailures:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            dismissed=source["dismissed"],
            more=source["more"],
        )


@dataclass(kw_only=True, slots=True)
class JobAnswer:
    """A job."""

    job: Job

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> JobAnswer:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            job=Job.from_json(source["job"]),
        )


@dataclass(kw_only=True, slots=True)
class Job:
    """A job of a namespace or of a tenant, and how far it is."""

    #: The job's id.
    id: str
    #: What is done with each row: cancel, shift and setUrl of timers; pause, resume, delete and setUrl of schedules;
    #: replay of failures; delete of service calls.
    action: JobAction | str
    #: What it changes. A namespace is deleted with all that is in it.
    of: JobKind | str
    filter: JobFilterAnswer
    #: running and paused ones go on, or may; completed, canceled and failed ones have ended.
    state: JobState | str
    #: Rows a second that the job changes at most, in the whole cluster. Default 500.
    rate_per_second: int
    #: Only counts the rows that match. Default false.
    dry_run: bool
    #: Rows examined that match.
    matched: int
    #: Rows changed.
    changed: int
    #: Rows that had ended or changed meanwhile, or were as wanted already.
    skipped: int
    #: Rows that could not be changed.
    errors: int
    #: The first ten of them.
    sample_errors: list[JobFailure]
    #: An RFC 3339 instant with a time zone.
    created_at: datetime
    #: An RFC 3339 instant with a time zone.
    updated_at: datetime
    #: The namespace's name; `*`: all that the API key has access to.
    namespace: str | None = None
    #: The tenant whose service calls are meant, instead of a namespace; `*`: all that the API key has access to.
    tenant: str | None = None
    #: By how much shift moves the instants: a duration, with - to an earlier one.
    shift_by: str | None = None
    #: The http or https URL to call, or `nats://subject` to publish to. Responses redact its secrets.
    url: str | None = None
    #: The job fails instead of changing more rows, for example than a dry run has counted.
    match_max: int | None = None
    #: Timers due before this instant have been examined.
    examined_to: str | None = None
    #: Whether the namespace is deleted although timers or schedules are pending in it.
    cancel_pending: bool | None = None
    #: Why it failed.
    reason: str | None = None
    #: The id of the key that created it.
    created_by: str | None = None
    #: An RFC 3339 instant with a time zone.
    ended_at: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Job:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            id=source["id"],
            action=source["action"],
            of=source["of"],
            filter=JobFilterAnswer.from_json(source["filter"]),
            state=source["state"],
            rate_per_second=source["ratePerSecond"],
            dry_run=source["dryRun"],
            matched=source["matched"],
            changed=source["changed"],
            skipped=source["skipped"],
            errors=source["errors"],
            sample_errors=[JobFailure.from_json(each) for each in source["sampleErrors"]],
            created_at=parse_instant(source["createdAt"]),
            updated_at=parse_instant(source["updatedAt"]),
            namespace=source.get("namespace"),
            tenant=source.get("tenant"),
            shift_by=source.get("shiftBy"),
            url=source.get("url"),
            match_max=source.get("matchMax"),
            examined_to=source.get("examinedTo"),
            cancel_pending=source.get("cancelPending"),
            reason=source.get("reason"),
            created_by=source.get("createdBy"),
            ended_at=source.get("endedAt"),
        )


@dataclass(kw_only=True, slots=True)
class JobFilterAnswer:
    """The filter of a job, with all instants resolved."""

    #: An RFC 3339 instant with a time zone.
    created_before: str
    #: A row must have all of these tags. Not of failures, but of service calls.
    tags: list[str] | None = None
    #: Prefix of the ids.
    id_prefix: str | None = None
    #: A part of the URL's host and path; case does not matter. Of failures: the destination of a group.
    destination: str | None = None
    #: A part of the last error; case does not matter. Of failures: the error of a group. Of timers and failures only.
    error: str | None = None
    #: Only timers and service calls due at or after this instant, or failures of such runs.
    execute_after: str | None = None
    #: Only timers and service calls due before this instant, or failures of such runs.
    execute_before: str | None = None
    #: Only failures of this kind. Of failures only.
    kind: FailedKind | str | None = None
    #: Only rows created at or after this instant: failed then, or submitted if it is a service call.
    created_after: str | None = None
    #: A part of the name, with letters A to Z in either case. Of service calls only.
    name: str | None = None
    #: Only calls that wait for this. Of service calls only.
    status: WaitingStatus | str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> JobFilterAnswer:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            created_before=source["createdBefore"],
            tags=source.get("tags"),
            id_prefix=source.get("idPrefix"),
            destination=source.get("destination"),
            error=source.get("error"),
            execute_after=source.get("executeAfter"),
            execute_before=source.get("executeBefore"),
            kind=source.get("kind"),
            created_after=source.get("createdAfter"),
            name=source.get("name"),
            status=source.get("status"),
        )


@dataclass(kw_only=True, slots=True)
class JobFailure:
    """A row that could not be changed, and why. It has a namespace or a tenant."""

    id: str
    error: str
    namespace: str | None = None
    tenant: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> JobFailure:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            id=source["id"],
            error=source["error"],
            namespace=source.get("namespace"),
            tenant=source.get("tenant"),
        )


@dataclass(kw_only=True, slots=True)
class JobList:
    """Jobs, newest first: those that have not ended, and the newest 200 of those that ended in the last 30 days."""

    jobs: list[Job]

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> JobList:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            jobs=[Job.from_json(each) for each in source["jobs"]],
        )


@dataclass(kw_only=True, slots=True)
class Namespace:
    """A namespace and its settings. The secret is never shown."""

    #: The namespace's name.
    name: str
    #: The number of shards that its timers are spread over. Cannot be changed later.
    num_shards: int
    #: Which finished timers stay visible.
    history: HistoryMode | str
    #: How long finished timers stay visible.
    retention: str
    paused: bool
    #: Whether it has a signing secret.
    signed: bool
    #: What a 2xx response to a callback means. standard: success, unless its body is a JSON object with ok: false or
    #: nextExecuteAt. strict: success only with an empty body or ok: true.
    answers: CallbackAnswers | str
    #: The policy of timers without their own: the namespace's, or the default.
    retry_policy: RetryPolicyAnswer
    #: An RFC 3339 instant with a time zone.
    created_at: datetime
    #: An RFC 3339 instant with a time zone.
    updated_at: datetime
    #: 1, and one more with each change.
    version: int
    #: Until when the previous secret keeps signing; absent if none does.
    previous_secret_until: datetime | None = None
    #: Why the stored record can't be read; absent if it can. The fields besides name are then placeholders. Timers of the
    #: namespace wait, and its operations are refused, until the record is restored from a backup.
    damaged: str | None = None
    #: The job's id.
    deleting: str | None = None
    #: The limits of all attempts of the namespace together.
    limits: FlowLimitsAnswer | None = None
    #: Its quotas; absent if it has none.
    quotas: QuotasAnswer | None = None
    #: Due timers with the same URL, method, headers and timeout are sent in one request, which the receiver answers timer
    #: by timer.
    callback_batch: CallbackBatchAnswer | None = None
    #: Where what becomes of its timers, schedules and monitors is published: below this subject of NATS, such as
    #: `shop.events.timer.failed`, with JetStream’s acknowledgement. The setting `nats_targets` has to list the subject
    #: for the namespace. Events without a sink are not kept.
    event_sink: str | None = None
    #: Who is notified when it has failed, or expired.
    on_failure: HookAnswer | None = None
    #: Who is notified when it has succeeded.
    on_success: HookAnswer | None = None
    #: Who is notified when it succeeds after a failure: of the previous occurrence, or of the timer before its replay.
    on_recovery: HookAnswer | None = None
    #: Who is notified when instants did not fire, though the schedule was not paused.
    on_missed: HookAnswer | None = None
    #: Who is notified when the schedule has paused itself after failures in a row.
    on_paused: HookAnswer | None = None
    #: Who is notified when it is late, and when its job reports a failure, or an occurrence fails.
    on_late: HookAnswer | None = None
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Namespace:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            name=source["name"],
            num_shards=source["numShards"],
            history=source["history"],
            retention=source["retention"],
            paused=source["paused"],
            signed=source["signed"],
            answers=source["answers"],
            retry_policy=RetryPolicyAnswer.from_json(source["retryPolicy"]),
            created_at=parse_instant(source["createdAt"]),
            updated_at=parse_instant(source["updatedAt"]),
            version=source["version"],
            previous_secret_until=None
            if source.get("previousSecretUntil") is None
            else parse_instant(source["previousSecretUntil"]),
            damaged=source.get("damaged"),
            deleting=source.get("deleting"),
            limits=None if source.get("limits") is None else FlowLimitsAnswer.from_json(source["limits"]),
            quotas=None if source.get("quotas") is None else QuotasAnswer.from_json(source["quotas"]),
            callback_batch=None
            if source.get("callbackBatch") is None
            else CallbackBatchAnswer.from_json(source["callbackBatch"]),
            event_sink=source.get("eventSink"),
            on_failure=None if source.get("onFailure") is None else HookAnswer.from_json(source["onFailure"]),
            on_success=None if source.get("onSuccess") is None else HookAnswer.from_json(source["onSuccess"]),
            on_recovery=None if source.get("onRecovery") is None else HookAnswer.from_json(source["onRecovery"]),
            on_missed=None if source.get("onMissed") is None else HookAnswer.from_json(source["onMissed"]),
            on_paused=None if source.get("onPaused") is None else HookAnswer.from_json(source["onPaused"]),
            on_late=None if source.get("onLate") is None else HookAnswer.from_json(source["onLate"]),
            managed_by=source.get("managedBy"),
        )


@dataclass(kw_only=True, slots=True)
class FlowLimitsAnswer:
    """Limits of attempts. What is absent is not limited."""

    rate: FlowRateAnswer | None = None
    #: How many attempts may begin at once; absent without a rate.
    burst: int | None = None
    #: How many attempts may be in flight at once.
    parallelism: int | None = None
    #: True where the timers of each key begin one at a time, in the order of their instants; else absent.
    ordered: bool | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> FlowLimitsAnswer:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            rate=None if source.get("rate") is None else FlowRateAnswer.from_json(source["rate"]),
            burst=source.get("burst"),
            parallelism=source.get("parallelism"),
            ordered=source.get("ordered"),
        )


@dataclass(kw_only=True, slots=True)
class FlowRateAnswer:
    """So many attempts within a time, evenly spread."""

    #: How many attempts may begin in that time.
    count: int
    #: The time: 1s to 1d.
    per: str

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> FlowRateAnswer:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            count=source["count"],
            per=source["per"],
        )


@dataclass(kw_only=True, slots=True)
class QuotasAnswer:
    """The quotas of a namespace; absent ones do not exist."""

    #: Its timers that may be pending at once; not schedules.
    pending: int | None = None
    #: Timers and schedules created in it, and monitors put, in a second, at most; with one second's worth at once.
    creates_per_second: int | None = None
    #: Bytes that the payload or the raw body of one timer or schedule may have.
    payload_bytes: int | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> QuotasAnswer:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            pending=source.get("pending"),
            creates_per_second=source.get("createsPerSecond"),
            payload_bytes=source.get("payloadBytes"),
        )


@dataclass(kw_only=True, slots=True)
class CallbackBatchAnswer:
    """How due timers of one receiver are sent together."""

    #: How many timers one request has at most.
    max: int
    #: How long the first due timer of a request waits for others: 0s to 5s. Default 100ms.
    linger: str

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> CallbackBatchAnswer:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            max=source["max"],
            linger=source["linger"],
        )


@dataclass(kw_only=True, slots=True)
class NamespaceList:
    """All namespaces that the key has access to, sorted by name."""

    namespaces: list[Namespace]

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> NamespaceList:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            namespaces=[Namespace.from_json(each) for each in source["namespaces"]],
        )


@dataclass(kw_only=True, slots=True)
class RotatedSecret:
    """The new signing secret. Only this response shows it."""

    #: The namespace's name.
    name: str
    #: The new secret, for the receivers.
    secret: str
    #: Until when the previous secret keeps signing; absent if only the new one signs.
    previous_until: datetime | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> RotatedSecret:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            name=source["name"],
            secret=source["secret"],
            previous_until=None if source.get("previousUntil") is None else parse_instant(source["previousUntil"]),
        )


@dataclass(kw_only=True, slots=True)
class Flow:
    """A rule, and what is under way of its flow keys."""

    #: The namespace's name.
    namespace: str
    #: The flow key that the rule is for, or a prefix of keys, which ends with a colon.
    match: str
    #: Whether an answer 429 or 503 with Retry-After lets nothing more of its flow key begin until then.
    close_on_retry_after: bool
    #: Whether nothing of it begins.
    paused: bool
    #: 1, and one more with each change.
    version: int
    #: An RFC 3339 instant with a time zone.
    created_at: datetime
    #: An RFC 3339 instant with a time zone.
    updated_at: datetime
    #: Attempts that are in flight.
    in_flight: int
    #: Due timers that wait in memory, and service calls; further timers may wait in the store.
    waiting: int
    #: Whether all nodes have answered; otherwise more may be in flight and wait than is shown.
    complete: bool
    #: The limits of each flow key by itself.
    per_key: FlowLimitsAnswer | None = None
    #: The limits of all flow keys of the rule together.
    total: FlowLimitsAnswer | None = None
    #: Due timers with the same URL, method, headers and timeout are sent in one request, which the receiver answers timer
    #: by timer.
    callback_batch: CallbackBatchAnswer | None = None
    #: When it goes on; absent unless it is paused until an instant.
    paused_until: str | None = None
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Flow:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            namespace=source["namespace"],
            match=source["match"],
            close_on_retry_after=source["closeOnRetryAfter"],
            paused=source["paused"],
            version=source["version"],
            created_at=parse_instant(source["createdAt"]),
            updated_at=parse_instant(source["updatedAt"]),
            in_flight=source["inFlight"],
            waiting=source["waiting"],
            complete=source["complete"],
            per_key=None if source.get("perKey") is None else FlowLimitsAnswer.from_json(source["perKey"]),
            total=None if source.get("total") is None else FlowLimitsAnswer.from_json(source["total"]),
            callback_batch=None
            if source.get("callbackBatch") is None
            else CallbackBatchAnswer.from_json(source["callbackBatch"]),
            paused_until=source.get("pausedUntil"),
            managed_by=source.get("managedBy"),
        )


@dataclass(kw_only=True, slots=True)
class FlowPage:
    """A page of rules, by match. A page without `nextCursor` is the last."""

    flows: list[Flow]
    #: `nextCursor` of the previous page.
    next_cursor: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> FlowPage:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            flows=[Flow.from_json(each) for each in source["flows"]],
            next_cursor=source.get("nextCursor"),
        )


@dataclass(kw_only=True, slots=True)
class Calendar:
    """A calendar: its dates are those of `dates`, `ranges` and `weekdays` together."""

    #: The namespace's name.
    namespace: str
    #: The calendar's name, unique in its namespace.
    name: str
    #: The IANA time zone in which its dates begin and end. Default UTC.
    time_zone: str
    #: Single dates, as 2027-12-25.
    dates: list[str]
    #: Ranges of dates, both ends included.
    ranges: list[DateRangeAnswer]
    #: Weekdays, of every week.
    weekdays: list[str]
    #: 1, and one more with each change.
    version: int
    #: An RFC 3339 instant with a time zone.
    created_at: datetime
    #: An RFC 3339 instant with a time zone.
    updated_at: datetime
    #: What it is for, in one line; shown in lists.
    description: str | None = None
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Calendar:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            namespace=source["namespace"],
            name=source["name"],
            time_zone=source["timeZone"],
            dates=source["dates"],
            ranges=[DateRangeAnswer.from_json(each) for each in source["ranges"]],
            weekdays=source["weekdays"],
            version=source["version"],
            created_at=parse_instant(source["createdAt"]),
            updated_at=parse_instant(source["updatedAt"]),
            description=source.get("description"),
            managed_by=source.get("managedBy"),
        )


@dataclass(kw_only=True, slots=True)
class DateRangeAnswer:
    """Dates from the first to the last."""

    #: The first date.
    first: str
    #: The last date.
    last: str

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> DateRangeAnswer:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            first=source["first"],
            last=source["last"],
        )


@dataclass(kw_only=True, slots=True)
class CalendarPage:
    """A page of calendars, by name. A page without `nextCursor` is the last."""

    calendars: list[CalendarSummary]
    #: `nextCursor` of the previous page.
    next_cursor: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> CalendarPage:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            calendars=[CalendarSummary.from_json(each) for each in source["calendars"]],
            next_cursor=source.get("nextCursor"),
        )


@dataclass(kw_only=True, slots=True)
class CalendarSummary:
    """A calendar without its dates."""

    #: The namespace's name.
    namespace: str
    #: The calendar's name, unique in its namespace.
    name: str
    #: The IANA time zone in which its dates begin and end. Default UTC.
    time_zone: str
    #: How many single dates it has.
    date_count: int
    #: How many ranges it has.
    range_count: int
    #: Weekdays, of every week.
    weekdays: list[str]
    #: 1, and one more with each change.
    version: int
    #: An RFC 3339 instant with a time zone.
    created_at: datetime
    #: An RFC 3339 instant with a time zone.
    updated_at: datetime
    #: The first of its dates and ranges; absent if it has none.
    first_date: str | None = None
    #: The last of them: a calendar that ends soon has to be put again.
    last_date: str | None = None
    #: What it is for, in one line; shown in lists.
    description: str | None = None
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> CalendarSummary:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            namespace=source["namespace"],
            name=source["name"],
            time_zone=source["timeZone"],
            date_count=source["dateCount"],
            range_count=source["rangeCount"],
            weekdays=source["weekdays"],
            version=source["version"],
            created_at=parse_instant(source["createdAt"]),
            updated_at=parse_instant(source["updatedAt"]),
            first_date=source.get("firstDate"),
            last_date=source.get("lastDate"),
            description=source.get("description"),
            managed_by=source.get("managedBy"),
        )


@dataclass(kw_only=True, slots=True)
class Credential:
    """A credential without its secret."""

    #: The namespace's name.
    namespace: str
    #: The credential's name, unique in its namespace.
    name: str
    #: How a request identifies itself.
    type: CredentialType | str
    #: Where it may be sent, and nowhere else: `host` or `host:port` for HTTPS, `http://host:port` for plain HTTP. Without
    #: any, only this machine's own addresses.
    hosts: list[str]
    #: 1, and one more with each change.
    version: int
    #: An RFC 3339 instant with a time zone.
    created_at: datetime
    #: An RFC 3339 instant with a time zone.
    updated_at: datetime
    #: Of basic: the user's name.
    username: str | None = None
    #: Of oauth2ClientCredentials: the token endpoint.
    token_url: str | None = None
    #: Of oauth2ClientCredentials: the client's id.
    client_id: str | None = None
    #: Of oauth2ClientCredentials: whether the token endpoint gets the client's secret in the header Authorization
    #: (`basic`, the default) or in the body (`post`).
    client_authentication: ClientAuth | str | None = None
    #: Of oauth2ClientCredentials: the scopes to ask for, with spaces between.
    scope: str | None = None
    #: Of jwt: its `aud`. Of oauth2ClientCredentials: the parameter `audience`.
    audience: str | None = None
    #: Of jwt: how long each is valid, 1m to 1h. Default 10m.
    lifetime: str | None = None
    #: Of mtls: the client's certificate in PEM, followed by those that lead to its authority.
    certificate: str | None = None
    #: Certificates in PEM of the authorities that are trusted for its hosts, instead of those that the system trusts.
    ca: str | None = None
    #: What it is for, in one line; shown in lists.
    description: str | None = None
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Credential:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            namespace=source["namespace"],
            name=source["name"],
            type=source["type"],
            hosts=source["hosts"],
            version=source["version"],
            created_at=parse_instant(source["createdAt"]),
            updated_at=parse_instant(source["updatedAt"]),
            username=source.get("username"),
            token_url=source.get("tokenUrl"),
            client_id=source.get("clientId"),
            client_authentication=source.get("clientAuthentication"),
            scope=source.get("scope"),
            audience=source.get("audience"),
            lifetime=source.get("lifetime"),
            certificate=source.get("certificate"),
            ca=source.get("ca"),
            description=source.get("description"),
            managed_by=source.get("managedBy"),
        )


@dataclass(kw_only=True, slots=True)
class CredentialPage:
    """A page of credentials, by name. A page without `nextCursor` is the last."""

    credentials: list[Credential]
    #: `nextCursor` of the previous page.
    next_cursor: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> CredentialPage:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            credentials=[Credential.from_json(each) for each in source["credentials"]],
            next_cursor=source.get("nextCursor"),
        )


@dataclass(kw_only=True, slots=True)
class TestedCredential:
    """What became of the test of a credential."""

    #: Whether all steps succeeded.
    ok: bool
    #: What was tried, up to the first step without which there is no other.
    steps: list[TestStep]

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> TestedCredential:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            ok=source["ok"],
            steps=[TestStep.from_json(each) for each in source["steps"]],
        )


@dataclass(kw_only=True, slots=True)
class TestStep:
    """A step of a test."""

    #: What was tried: secret, token, connection or request.
    what: str
    #: Where, or of which credential.
    target: str
    #: Whether it succeeded.
    ok: bool
    #: What happened.
    detail: str

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> TestStep:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            what=source["what"],
            target=source["target"],
            ok=source["ok"],
            detail=source["detail"],
        )


@dataclass(kw_only=True, slots=True)
class SigningKeySet:
    """A JWK set (RFC 7517)."""

    keys: list[SigningKey]

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> SigningKeySet:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            keys=[SigningKey.from_json(each) for each in source["keys"]],
        )


@dataclass(kw_only=True, slots=True)
class SigningKey:
    """A public key (RFC 7517)."""

    #: The kind of key.
    kty: str
    #: The curve.
    crv: str
    #: The public point's x.
    x: str
    #: The public point's y.
    y: str
    #: The key's id, which is in the header of each JWT.
    kid: str
    #: What it is for: signatures.
    use: str
    #: The algorithm.
    alg: str

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> SigningKey:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            kty=source["kty"],
            crv=source["crv"],
            x=source["x"],
            y=source["y"],
            kid=source["kid"],
            use=source["use"],
            alg=source["alg"],
        )


@dataclass(kw_only=True, slots=True)
class OpenIdConfiguration:
    """What receivers need to know of the issuer (OpenID Connect Discovery 1.0). Nobody signs in here."""

    #: The `iss` of each JWT: the setting `public_url`.
    issuer: str
    #: Where its keys are.
    jwks_uri: str
    response_types_supported: list[str]
    subject_types_supported: list[str]
    id_token_signing_alg_values_supported: list[str]

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> OpenIdConfiguration:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            issuer=source["issuer"],
            jwks_uri=source["jwks_uri"],
            response_types_supported=source["response_types_supported"],
            subject_types_supported=source["subject_types_supported"],
            id_token_signing_alg_values_supported=source["id_token_signing_alg_values_supported"],
        )


@dataclass(kw_only=True, slots=True)
class MonitorPut:
    """The monitor; with `pingUrl` if it was created and takes pings."""

    monitor: Monitor
    #: Whether there was none of this id.
    created: bool
    #: The URL that its job pings, which nobody is shown again.
    ping_url: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> MonitorPut:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            monitor=Monitor.from_json(source["monitor"]),
            created=source["created"],
            ping_url=source.get("pingUrl"),
        )


@dataclass(kw_only=True, slots=True)
class Monitor:
    """A monitor. `expectedAt` and `deadline` are those of its open period; absent while nothing is expected."""

    #: The namespace's name.
    namespace: str
    #: The monitor's id, unique among its namespace's monitors.
    id: str
    #: How long after the expected instant a report may come, or an occurrence end. Default 5m; 1s to 31d.
    grace: str
    #: Labels to filter lists by.
    tags: list[str]
    #: new (no report yet, or no occurrence that has ended), up, late, failed or paused.
    state: MonitorState | str
    #: Since when it has this state.
    since: str
    #: Whether its job has started and not ended.
    running: bool
    #: 1, and one more with each change.
    version: int
    #: An RFC 3339 instant with a time zone.
    created_at: datetime
    #: An RFC 3339 instant with a time zone.
    updated_at: datetime
    #: A cron expression of five fields (minute, hour, day of month, month, day of week), or six with the seconds first,
    #: or @hourly, @daily, @weekly, @monthly, @yearly.
    cron: str | None = None
    #: The IANA time zone of cron. Default UTC.
    time_zone: str | None = None
    #: A report is expected so long after the last one; 1s to 366d, instead of cron.
    every: str | None = None
    #: The id of a schedule of the namespace that it watches, instead of cron or every: it needs no ping, and is late when
    #: an occurrence has not ended grace after its instant. It expects nothing while the schedule is paused, or after its
    #: end.
    schedule: str | None = None
    #: While it is late, notify again so often; at least 1m. Default: once.
    repeat: str | None = None
    #: Who is notified when it is late, and when its job reports a failure, or an occurrence fails.
    on_late: HookAnswer | None = None
    #: Who is notified when its job succeeds after it was late or had failed.
    on_recovery: HookAnswer | None = None
    #: What it is for, in one line; shown in lists and never sent to the callback.
    description: str | None = None
    #: The declaration that it comes from, such as the name of a repository.
    managed_by: str | None = None
    #: An RFC 3339 instant with a time zone.
    last_ping_at: str | None = None
    #: An RFC 3339 instant with a time zone.
    expected_at: str | None = None
    #: An RFC 3339 instant with a time zone.
    deadline: str | None = None
    #: An RFC 3339 instant with a time zone.
    unwatched_since: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Monitor:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            namespace=source["namespace"],
            id=source["id"],
            grace=source["grace"],
            tags=source["tags"],
            state=source["state"],
            since=source["since"],
            running=source["running"],
            version=source["version"],
            created_at=parse_instant(source["createdAt"]),
            updated_at=parse_instant(source["updatedAt"]),
            cron=source.get("cron"),
            time_zone=source.get("timeZone"),
            every=source.get("every"),
            schedule=source.get("schedule"),
            repeat=source.get("repeat"),
            on_late=None if source.get("onLate") is None else HookAnswer.from_json(source["onLate"]),
            on_recovery=None if source.get("onRecovery") is None else HookAnswer.from_json(source["onRecovery"]),
            description=source.get("description"),
            managed_by=source.get("managedBy"),
            last_ping_at=source.get("lastPingAt"),
            expected_at=source.get("expectedAt"),
            deadline=source.get("deadline"),
            unwatched_since=source.get("unwatchedSince"),
        )


@dataclass(kw_only=True, slots=True)
class MonitorAnswer:
    """The monitor."""

    monitor: Monitor

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> MonitorAnswer:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            monitor=Monitor.from_json(source["monitor"]),
        )


@dataclass(kw_only=True, slots=True)
class MonitorPage:
    """A page of monitors, by namespace and id. A page without `nextCursor` is the last."""

    monitors: list[Monitor]
    #: `nextCursor` of the previous page.
    next_cursor: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> MonitorPage:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            monitors=[Monitor.from_json(each) for each in source["monitors"]],
            next_cursor=source.get("nextCursor"),
        )


@dataclass(kw_only=True, slots=True)
class MonitorRotated:
    """The monitor with its new URL."""

    monitor: Monitor
    #: The URL that its job pings, which nobody is shown again.
    ping_url: str

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> MonitorRotated:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            monitor=Monitor.from_json(source["monitor"]),
            ping_url=source["pingUrl"],
        )


@dataclass(kw_only=True, slots=True)
class MonitorPeriods:
    """A page of periods, newest first. A page without `nextCursor` is the last."""

    periods: list[MonitorPeriod]
    #: `nextCursor` of the previous page.
    next_cursor: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> MonitorPeriods:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            periods=[MonitorPeriod.from_json(each) for each in source["periods"]],
            next_cursor=source.get("nextCursor"),
        )


@dataclass(kw_only=True, slots=True)
class MonitorPeriod:
    """A period, or several in a row that nobody has reported."""

    #: When its report was expected.
    expected_at: str
    #: Until when a report was in time.
    deadline: str
    #: onTime; late (after the deadline); missed (none came); failed; excused (it may have come while Tocsin could not
    #: take it, and nobody was notified).
    state: PeriodState | str
    #: How many periods, from expectedAt on. Absent: one.
    periods: int | None = None
    #: An RFC 3339 instant with a time zone.
    started_at: datetime | None = None
    #: An RFC 3339 instant with a time zone.
    ended_at: str | None = None
    #: How long the job took.
    duration_ms: float | None = None
    #: The exit code that it reported.
    exit_code: int | None = None
    #: What it sent, without secrets.
    body: str | None = None
    #: Why it is excused, was missed, or has failed.
    note: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> MonitorPeriod:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            expected_at=source["expectedAt"],
            deadline=source["deadline"],
            state=source["state"],
            periods=source.get("periods"),
            started_at=None if source.get("startedAt") is None else parse_instant(source["startedAt"]),
            ended_at=source.get("endedAt"),
            duration_ms=source.get("durationMs"),
            exit_code=source.get("exitCode"),
            body=source.get("body"),
            note=source.get("note"),
        )


@dataclass(kw_only=True, slots=True)
class DestinationList:
    """Destinations, those that need attention first."""

    destinations: list[Destination]
    #: How many more there are, at least; raise limit.
    further: int

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> DestinationList:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            destinations=[Destination.from_json(each) for each in source["destinations"]],
            further=source["further"],
        )


@dataclass(kw_only=True, slots=True)
class Destination:
    """A scheme, host and port to which timers are sent; the numbers are those of all nodes together."""

    #: Scheme, host and port.
    destination: str
    #: Whether no attempt begins until it is resumed.
    paused: bool
    #: Attempts that are in flight.
    in_flight: int
    #: How many attempts may be in flight at once; it shrinks while the destination does not answer.
    limit: int
    #: Due timers that wait in memory; further ones may wait in the store.
    waiting: int
    #: Attempts that have ended within the last 30 seconds.
    attempts: int
    #: Those of them without a response, or with a status of 500 and above.
    failures: int
    #: `open`: nearly all attempts failed, and none begins before the next probe; `half_open`: probes begin, one at a
    #: time; `closed`: attempts begin as usual. That of the node where it is the worst.
    breaker: BreakerState | str
    #: What each node knows of it, without those that know nothing.
    nodes: list[DestinationOnNode]
    #: Whether all nodes have answered; otherwise more may be in flight and wait than is shown.
    complete: bool
    #: Since when it is paused.
    paused_at: str | None = None
    #: When the next probe begins; absent unless the breaker is open.
    next_probe_at: str | None = None
    #: The last failure; absent if there was none lately.
    last_error: str | None = None
    #: When that was.
    last_error_at: str | None = None
    #: When an attempt last succeeded; absent if none did lately.
    last_success_at: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Destination:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            destination=source["destination"],
            paused=source["paused"],
            in_flight=source["inFlight"],
            limit=source["limit"],
            waiting=source["waiting"],
            attempts=source["attempts"],
            failures=source["failures"],
            breaker=source["breaker"],
            nodes=[DestinationOnNode.from_json(each) for each in source["nodes"]],
            complete=source["complete"],
            paused_at=source.get("pausedAt"),
            next_probe_at=source.get("nextProbeAt"),
            last_error=source.get("lastError"),
            last_error_at=source.get("lastErrorAt"),
            last_success_at=source.get("lastSuccessAt"),
        )


@dataclass(kw_only=True, slots=True)
class DestinationOnNode:
    """A destination as one node knows it."""

    #: The node's name.
    node: str
    #: Attempts that are in flight.
    in_flight: int
    #: How many attempts may be in flight at once; it shrinks while the destination does not answer.
    limit: int
    #: Due timers that wait in memory; further ones may wait in the store.
    waiting: int
    #: Attempts that have ended within the last 30 seconds.
    attempts: int
    #: Those of them without a response, or with a status of 500 and above.
    failures: int
    breaker: BreakerState | str
    #: When the next probe begins; absent unless the breaker is open.
    next_probe_at: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> DestinationOnNode:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            node=source["node"],
            in_flight=source["inFlight"],
            limit=source["limit"],
            waiting=source["waiting"],
            attempts=source["attempts"],
            failures=source["failures"],
            breaker=source["breaker"],
            next_probe_at=source.get("nextProbeAt"),
        )


@dataclass(kw_only=True, slots=True)
class DeadRowPage:
    """A page of dead rows, the oldest first."""

    rows: list[DeadRow]
    #: The cursor of the next page; absent on the last page.
    next_cursor: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> DeadRowPage:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            rows=[DeadRow.from_json(each) for each in source["rows"]],
            next_cursor=source.get("nextCursor"),
        )


@dataclass(kw_only=True, slots=True)
class DeadRow:
    """A row that is refused for good, and waits for somebody to replay or delete it."""

    #: The row's id.
    id: str
    #: The namespace of the timer that it asks for.
    namespace: str
    #: That timer's id.
    timer_id: str
    #: When the row was written.
    created_at: datetime
    #: The error code, and why it was refused.
    dead_reason: str

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> DeadRow:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            id=source["id"],
            namespace=source["namespace"],
            timer_id=source["timerId"],
            created_at=parse_instant(source["createdAt"]),
            dead_reason=source["deadReason"],
        )


@dataclass(kw_only=True, slots=True)
class ReplayedRows:
    """What is tried again."""

    #: How many rows.
    replayed: int
    #: Whether there may be more: a request changes up to 10,000 rows, as many as it can in seconds. Repeat it.
    more: bool

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> ReplayedRows:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            replayed=source["replayed"],
            more=source["more"],
        )


@dataclass(kw_only=True, slots=True)
class DeletedRows:
    """What was deleted."""

    #: How many rows.
    deleted: int
    #: Whether there may be more: a request changes up to 10,000 rows, as many as it can in seconds. Repeat it.
    more: bool

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> DeletedRows:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            deleted=source["deleted"],
            more=source["more"],
        )


@dataclass(kw_only=True, slots=True)
class CreatedKey:
    """A new API key. Only this response contains the key itself."""

    #: The key's id, the part between its first two underscores.
    key_id: str
    #: What the key allows; each role includes the previous ones.
    role: KeyRole | str
    #: What the key is for; may be empty.
    name: str
    #: Limits the key to these namespaces.
    namespaces: list[str]
    #: Limits the key to these tenants. If both lists are empty, the key is not limited.
    tenants: list[str]
    #: An RFC 3339 instant with a time zone.
    created_at: datetime
    #: The key; send it as `Authorization: Bearer <key>`.
    key: str
    #: When the key expires; absent: never.
    expires_at: datetime | None = None
    #: Limits the key to these operations: names such as `timers/create`, which are the paths below the version, for
    #: service calls `calls/submit` and its like; groups such as `timers/*`; `read`, for all that a key of role read may
    #: use.
    operations: list[str] | None = None
    #: Limits the key to requests from these addresses and networks. The client's address counts, which behind a proxy the
    #: setting `trusted_proxies` finds.
    sources: list[str] | None = None
    #: When the key was used last, accurate to an hour; absent: it was not used yet.
    last_used_at: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> CreatedKey:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            key_id=source["keyId"],
            role=source["role"],
            name=source["name"],
            namespaces=source["namespaces"],
            tenants=source["tenants"],
            created_at=parse_instant(source["createdAt"]),
            key=source["key"],
            expires_at=None if source.get("expiresAt") is None else parse_instant(source["expiresAt"]),
            operations=source.get("operations"),
            sources=source.get("sources"),
            last_used_at=source.get("lastUsedAt"),
        )


@dataclass(kw_only=True, slots=True)
class KeyList:
    """The API keys within the scope of the caller's key, oldest first, including expired ones."""

    keys: list[ShownKey]

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> KeyList:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            keys=[ShownKey.from_json(each) for each in source["keys"]],
        )


@dataclass(kw_only=True, slots=True)
class ShownKey:
    """An API key without its secret, of which only a hash is stored."""

    #: The key's id, the part between its first two underscores.
    key_id: str
    #: What the key allows; each role includes the previous ones.
    role: KeyRole | str
    #: What the key is for; may be empty.
    name: str
    #: Limits the key to these namespaces.
    namespaces: list[str]
    #: Limits the key to these tenants. If both lists are empty, the key is not limited.
    tenants: list[str]
    #: An RFC 3339 instant with a time zone.
    created_at: datetime
    #: When the key expires; absent: never.
    expires_at: datetime | None = None
    #: Limits the key to these operations: names such as `timers/create`, which are the paths below the version, for
    #: service calls `calls/submit` and its like; groups such as `timers/*`; `read`, for all that a key of role read may
    #: use.
    operations: list[str] | None = None
    #: Limits the key to requests from these addresses and networks. The client's address counts, which behind a proxy the
    #: setting `trusted_proxies` finds.
    sources: list[str] | None = None
    #: When the key was used last, accurate to an hour; absent: it was not used yet.
    last_used_at: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> ShownKey:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            key_id=source["keyId"],
            role=source["role"],
            name=source["name"],
            namespaces=source["namespaces"],
            tenants=source["tenants"],
            created_at=parse_instant(source["createdAt"]),
            expires_at=None if source.get("expiresAt") is None else parse_instant(source["expiresAt"]),
            operations=source.get("operations"),
            sources=source.get("sources"),
            last_used_at=source.get("lastUsedAt"),
        )


@dataclass(kw_only=True, slots=True)
class AuditPage:
    """A page of the audit trail, newest first."""

    entries: list[AuditEntry]
    #: Cursor of the next page; absent on the last page.
    next_cursor: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> AuditPage:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            entries=[AuditEntry.from_json(each) for each in source["entries"]],
            next_cursor=source.get("nextCursor"),
        )


@dataclass(kw_only=True, slots=True)
class AuditEntry:
    """An entry of the audit trail: what somebody changed, or a sign-in."""

    #: An RFC 3339 instant with a time zone.
    at: datetime
    #: The action.
    action: AuditAction | str
    #: The key that acted; null if none was required or the key was unknown.
    key_id: str | None
    #: The object of the action; empty for sign-ins.
    subject: str
    #: Where the action came from: api, pages, cli, mcp or inbox.
    source: AuditSource | str
    #: The client's address; empty for the command line and an inbox.
    address: str
    #: The node, or the machine on which the command ran.
    node: str
    #: Additional facts, such as the changed fields. Never a secret.
    details: dict[str, Any]

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> AuditEntry:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            at=parse_instant(source["at"]),
            action=source["action"],
            key_id=source["keyId"],
            subject=source["subject"],
            source=source["source"],
            address=source["address"],
            node=source["node"],
            details=source["details"],
        )


@dataclass(kw_only=True, slots=True)
class Statistics:
    """Slots in which something happened, the earliest first, and over all of them the failing destinations, those with
    the most failures first, and the outages, the latest first."""

    #: The start of the first slot; later than asked for if that is not kept any more.
    from_: datetime
    #: The end of the range.
    to: datetime
    resolution: StatisticsResolution | str
    slots: list[StatisticsSlot]
    failing: list[FailingDestination]
    outages: list[Outage]

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Statistics:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            from_=parse_instant(source["from"]),
            to=parse_instant(source["to"]),
            resolution=source["resolution"],
            slots=[StatisticsSlot.from_json(each) for each in source["slots"]],
            failing=[FailingDestination.from_json(each) for each in source["failing"]],
            outages=[Outage.from_json(each) for each in source["outages"]],
        )


@dataclass(kw_only=True, slots=True)
class StatisticsSlot:
    """What happened in a slot of time. Attempts are counted by their outcome, as `completed`, `rescheduled`,
    `retried`, `failed` or `superseded` (the timer was changed meanwhile)."""

    #: The start of the slot.
    at: datetime
    #: Timers created or replaced.
    created: int
    #: Timers updated.
    updated: int
    #: Timers deleted while they were pending.
    canceled: int
    #: Attempts that ended.
    attempts: int
    #: Attempts after which the timer was completed.
    completed: int
    #: Attempts whose receiver moved the timer.
    rescheduled: int
    #: Attempts that failed and were followed by another.
    retried: int
    #: Attempts after which the timer had failed.
    failed: int
    #: Attempts whose result no longer counted.
    superseded: int
    #: Timers that ended because their `expireAfter` had passed.
    expired: int
    #: Attempts that began more than a second after their instant.
    late: int
    #: Median of the lag, in ms; null without attempts.
    lag_p50_ms: float | None
    #: 99th percentile of the lag, in ms; too high by at most a half. Null without attempts.
    lag_p99_ms: float | None
    #: The greatest lag, in ms; null without attempts.
    lag_max_ms: float | None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> StatisticsSlot:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            at=parse_instant(source["at"]),
            created=source["created"],
            updated=source["updated"],
            canceled=source["canceled"],
            attempts=source["attempts"],
            completed=source["completed"],
            rescheduled=source["rescheduled"],
            retried=source["retried"],
            failed=source["failed"],
            superseded=source["superseded"],
            expired=source["expired"],
            late=source["late"],
            lag_p50_ms=source["lagP50Ms"],
            lag_p99_ms=source["lagP99Ms"],
            lag_max_ms=source["lagMaxMs"],
        )


@dataclass(kw_only=True, slots=True)
class FailingDestination:
    """Failed attempts of one namespace at one path of a host."""

    namespace: str
    #: Scheme, host and port.
    destination: str
    #: The path of the URL, without its query. Empty: several, counted together.
    path: str
    #: Attempts that failed.
    failures: int
    #: Attempts after which the timer had failed, because it is not retried.
    exhausted: int
    #: The latest error.
    last_error: str
    #: The start of the latest slot with a failure, to ten seconds.
    last_at: datetime

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> FailingDestination:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            namespace=source["namespace"],
            destination=source["destination"],
            path=source["path"],
            failures=source["failures"],
            exhausted=source["exhausted"],
            last_error=source["lastError"],
            last_at=parse_instant(source["lastAt"]),
        )


@dataclass(kw_only=True, slots=True)
class Outage:
    """An interval in which a node fired nothing. `late`, `lateMaxMs` and `createsRefused` are null for a key that is
    limited to namespaces or tenants, and while the interval lasts."""

    node: str
    #: When it began.
    from_: datetime
    #: lease (the store did not answer in time), clock_skew, clock_jump, unwritten_results.
    reason: str
    #: Attempts that were due before its end and began more than a second late because of it.
    late: int | None
    #: How late they were at most, in ms.
    late_max_ms: float | None
    #: Creates of timers and schedules that got an error of the server meanwhile: requests, and single timers of a batch.
    creates_refused: int | None
    #: Whether more late attempts may be counted.
    counting: bool
    #: When it ended; absent while it lasts.
    to: datetime | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Outage:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            node=source["node"],
            from_=parse_instant(source["from"]),
            reason=source["reason"],
            late=source["late"],
            late_max_ms=source["lateMaxMs"],
            creates_refused=source["createsRefused"],
            counting=source["counting"],
            to=None if source.get("to") is None else parse_instant(source["to"]),
        )


@dataclass(kw_only=True, slots=True)
class SubmittedServiceCall:
    """An accepted service call: from this request, or from the earlier one that it repeats."""

    #: A UUID of version 7.
    service_call_id: str
    status: ServiceCallStatus | str
    #: Shared by every message and row that results from the submission.
    correlation_id: str

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> SubmittedServiceCall:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            service_call_id=source["serviceCallId"],
            status=source["status"],
            correlation_id=source["correlationId"],
        )


@dataclass(kw_only=True, slots=True)
class ServiceCallPage:
    """A page of service calls, newest first. A page without `nextCursor` is the last."""

    service_calls: list[ServiceCallSummary]
    #: `nextCursor` of the previous page.
    next_cursor: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> ServiceCallPage:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            service_calls=[ServiceCallSummary.from_json(each) for each in source["serviceCalls"]],
            next_cursor=source.get("nextCursor"),
        )


@dataclass(kw_only=True, slots=True)
class ServiceCallSummary:
    """A service call, as in lists."""

    #: A UUID of version 7.
    service_call_id: str
    #: A UUID of version 7.
    tenant_id: str
    #: A display name.
    name: str
    status: ServiceCallStatus | str
    #: An RFC 3339 instant with a time zone.
    submitted_at: datetime
    #: An RFC 3339 instant with a time zone.
    due_at: datetime
    #: Labels to filter lists by.
    tags: list[str]
    #: Shared by every message and row that results from the submission.
    correlation_id: str
    request_spec: RequestLine
    #: Finished attempts; an interrupted execution that was repeated does not count.
    attempts: int
    #: When the next attempt is due, while the status is Retrying.
    next_attempt_at: datetime | None = None
    #: An RFC 3339 instant with a time zone.
    started_at: datetime | None = None
    #: An RFC 3339 instant with a time zone.
    finished_at: datetime | None = None
    outcome: Outcome | None = None
    #: The flow that limits its attempts.
    flow_key: str | None = None
    #: What a Running call that has not started waits for: flow, a slot or a token of its flow; credential, that its
    #: credential can be sent.
    waits_for: TimerWaitsFor | str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> ServiceCallSummary:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            service_call_id=source["serviceCallId"],
            tenant_id=source["tenantId"],
            name=source["name"],
            status=source["status"],
            submitted_at=parse_instant(source["submittedAt"]),
            due_at=parse_instant(source["dueAt"]),
            tags=source["tags"],
            correlation_id=source["correlationId"],
            request_spec=RequestLine.from_json(source["requestSpec"]),
            attempts=source["attempts"],
            next_attempt_at=None if source.get("nextAttemptAt") is None else parse_instant(source["nextAttemptAt"]),
            started_at=None if source.get("startedAt") is None else parse_instant(source["startedAt"]),
            finished_at=None if source.get("finishedAt") is None else parse_instant(source["finishedAt"]),
            outcome=None if source.get("outcome") is None else Outcome.from_json(source["outcome"]),
            flow_key=source.get("flowKey"),
            waits_for=source.get("waitsFor"),
        )


@dataclass(kw_only=True, slots=True)
class RequestLine:
    """The request's method and URL."""

    #: The method of the request.
    method: ServiceCallMethod | str
    #: The http or https URL.
    url: str

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> RequestLine:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            method=source["method"],
            url=source["url"],
        )


@dataclass(kw_only=True, slots=True)
class Outcome:
    """How the call ended or, while it is Retrying, how its last attempt ended: the response, if there was one, and the
    error, if it failed."""

    response_meta: ResponseMeta | None = None
    error_meta: ErrorMeta | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Outcome:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            response_meta=None
            if source.get("responseMeta") is None
            else ResponseMeta.from_json(source["responseMeta"]),
            error_meta=None if source.get("errorMeta") is None else ErrorMeta.from_json(source["errorMeta"]),
        )


@dataclass(kw_only=True, slots=True)
class ResponseMeta:
    """The service's response."""

    status: int
    #: Headers; secret values are redacted.
    headers: dict[str, str]
    #: The first part of the body.
    body_snippet: str
    #: Whether the body was longer than the snippet.
    truncated: bool
    #: From the dispatch of the request to the end of the response, in milliseconds.
    latency_ms: float

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> ResponseMeta:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            status=source["status"],
            headers=source["headers"],
            body_snippet=source["bodySnippet"],
            truncated=source["truncated"],
            latency_ms=source["latencyMs"],
        )


@dataclass(kw_only=True, slots=True)
class ErrorMeta:
    """Why the call failed."""

    #: A stable code.
    kind: FailureKind | str
    message: str
    #: From the dispatch of the request to the end of the response, in milliseconds.
    latency_ms: float

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> ErrorMeta:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            kind=source["kind"],
            message=source["message"],
            latency_ms=source["latencyMs"],
        )


@dataclass(kw_only=True, slots=True)
class ServiceCallTrace:
    """Everything stored under the correlation id of a service call, in order of time, each entry after its cause."""

    #: A UUID of version 7.
    service_call_id: str
    #: Shared by every message and row that results from the submission.
    correlation_id: str
    entries: list[TraceEntry]

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> ServiceCallTrace:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            service_call_id=source["serviceCallId"],
            correlation_id=source["correlationId"],
            entries=[TraceEntry.from_json(each) for each in source["entries"]],
        )


@dataclass(kw_only=True, slots=True)
class TraceEntry:
    """One result of a submission: a message or a row."""

    #: With millisecond precision; for a row, when it entered the state shown.
    at: datetime
    #: message, or a table's name.
    kind: str
    #: The message's type, or the event.
    name: str
    #: The id of the message or row.
    id: str
    detail: dict[str, Any]
    #: The message that caused this one.
    causation_id: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> TraceEntry:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            at=parse_instant(source["at"]),
            kind=source["kind"],
            name=source["name"],
            id=source["id"],
            detail=source["detail"],
            causation_id=source.get("causationId"),
        )


@dataclass(kw_only=True, slots=True)
class ServiceCall:
    """A service call in full."""

    #: A UUID of version 7.
    service_call_id: str
    #: A UUID of version 7.
    tenant_id: str
    #: A display name.
    name: str
    status: ServiceCallStatus | str
    #: An RFC 3339 instant with a time zone.
    submitted_at: datetime
    #: An RFC 3339 instant with a time zone.
    due_at: datetime
    #: Labels to filter lists by.
    tags: list[str]
    #: Shared by every message and row that results from the submission.
    correlation_id: str
    request_spec: ShownRequest
    #: Finished attempts; an interrupted execution that was repeated does not count.
    attempts: int
    executions: list[Execution]
    #: When the next attempt is due, while the status is Retrying.
    next_attempt_at: datetime | None = None
    #: An RFC 3339 instant with a time zone.
    started_at: datetime | None = None
    #: An RFC 3339 instant with a time zone.
    finished_at: datetime | None = None
    outcome: Outcome | None = None
    #: The flow that limits its attempts.
    flow_key: str | None = None
    #: What a Running call that has not started waits for: flow, a slot or a token of its flow; credential, that its
    #: credential can be sent.
    waits_for: TimerWaitsFor | str | None = None
    #: Who is notified when it has failed.
    on_failure: HookAnswer | None = None
    #: Who is notified when it has succeeded.
    on_success: HookAnswer | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> ServiceCall:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            service_call_id=source["serviceCallId"],
            tenant_id=source["tenantId"],
            name=source["name"],
            status=source["status"],
            submitted_at=parse_instant(source["submittedAt"]),
            due_at=parse_instant(source["dueAt"]),
            tags=source["tags"],
            correlation_id=source["correlationId"],
            request_spec=ShownRequest.from_json(source["requestSpec"]),
            attempts=source["attempts"],
            executions=[Execution.from_json(each) for each in source["executions"]],
            next_attempt_at=None if source.get("nextAttemptAt") is None else parse_instant(source["nextAttemptAt"]),
            started_at=None if source.get("startedAt") is None else parse_instant(source["startedAt"]),
            finished_at=None if source.get("finishedAt") is None else parse_instant(source["finishedAt"]),
            outcome=None if source.get("outcome") is None else Outcome.from_json(source["outcome"]),
            flow_key=source.get("flowKey"),
            waits_for=source.get("waitsFor"),
            on_failure=None if source.get("onFailure") is None else HookAnswer.from_json(source["onFailure"]),
            on_success=None if source.get("onSuccess") is None else HookAnswer.from_json(source["onSuccess"]),
        )


@dataclass(kw_only=True, slots=True)
class ShownRequest:
    """The request; secrets are redacted."""

    #: The method of the request.
    method: ServiceCallMethod | str
    #: The http or https URL.
    url: str
    #: Headers; secret values are redacted.
    headers: dict[str, str]
    #: Any JSON: a string is sent as plain text, any other value as JSON.
    body: Any = None
    retry_policy: RetryPolicyAnswer | None = None
    #: The credential that the request has.
    credential: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> ShownRequest:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            method=source["method"],
            url=source["url"],
            headers=source["headers"],
            body=source.get("body"),
            retry_policy=None
            if source.get("retryPolicy") is None
            else RetryPolicyAnswer.from_json(source["retryPolicy"]),
            credential=source.get("credential"),
        )


@dataclass(kw_only=True, slots=True)
class Execution:
    """One execution of the request. Without `finishedAt` it is in flight."""

    #: Its number among the call's executions, from 1.
    number: int
    #: A UUID of version 7.
    execution_id: str
    #: An RFC 3339 instant with a time zone.
    started_at: datetime
    request: ExecutedRequest
    #: An RFC 3339 instant with a time zone.
    finished_at: datetime | None = None
    response: ExecutedResponse | None = None
    error_message: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Execution:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            number=source["number"],
            execution_id=source["executionId"],
            started_at=parse_instant(source["startedAt"]),
            request=ExecutedRequest.from_json(source["request"]),
            finished_at=None if source.get("finishedAt") is None else parse_instant(source["finishedAt"]),
            response=None if source.get("response") is None else ExecutedResponse.from_json(source["response"]),
            error_message=source.get("errorMessage"),
        )


@dataclass(kw_only=True, slots=True)
class ExecutedRequest:
    """The request that was sent."""

    #: The method of the request.
    method: ServiceCallMethod | str
    #: The http or https URL.
    url: str
    #: Headers; secret values are redacted.
    headers: dict[str, str]
    #: The first part of the body.
    body: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> ExecutedRequest:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            method=source["method"],
            url=source["url"],
            headers=source["headers"],
            body=source.get("body"),
        )


@dataclass(kw_only=True, slots=True)
class ExecutedResponse:
    """The response that was received."""

    status: int
    #: Headers; secret values are redacted.
    headers: dict[str, str]
    #: The first part of the body.
    body: str

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> ExecutedResponse:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            status=source["status"],
            headers=source["headers"],
            body=source["body"],
        )


@dataclass(kw_only=True, slots=True)
class RotatedTenantSecret:
    """The new secret. Only this response shows it."""

    #: The tenant.
    tenant_id: str
    #: The new secret, for the called services.
    secret: str
    #: Until when the previous secret keeps signing; absent if only the new one signs.
    previous_until: datetime | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> RotatedTenantSecret:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            tenant_id=source["tenantId"],
            secret=source["secret"],
            previous_until=None if source.get("previousUntil") is None else parse_instant(source["previousUntil"]),
        )


@dataclass(kw_only=True, slots=True)
class Cluster:
    """Nodes, shards, and whether the responding node is dispatching timers."""

    total_shards: int
    dispatching: bool
    nodes: list[Node]
    shards: list[Shard]
    dispatch_paused_reason: str | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Cluster:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            total_shards=source["totalShards"],
            dispatching=source["dispatching"],
            nodes=[Node.from_json(each) for each in source["nodes"]],
            shards=[Shard.from_json(each) for each in source["shards"]],
            dispatch_paused_reason=source.get("dispatchPausedReason"),
        )


@dataclass(kw_only=True, slots=True)
class Node:
    """A node of the cluster. `self` marks the node that responds. Fields that only the node itself knows are null if
    it could not be reached: `version` (of its release), `dispatching`, `agent` (whether it runs the service agent),
    `windowTimers`, `lagMs`, `largestShardBytes`."""

    node: str
    incarnation: str
    address: str
    alive: bool
    self: bool
    shards: int
    #: Whether the node is handing over its shards.
    leaving: bool
    #: Whether its clock differs from the store's, so that other nodes take its shards if there are any.
    skewed: bool
    version: str | None
    dispatching: bool | None
    agent: bool | None
    window_timers: int | None
    #: How long its oldest due timer has waited, in ms, since its instant, or since it was accepted if later.
    lag_ms: float | None
    #: Whether another live node has the same name: then only one of them gets shards.
    shares_name: bool
    #: Whether its `cluster.secret` differs from that of nodes that started earlier, so that it owns no shards.
    secret_differs: bool
    #: Size of the largest shard, as the database reported it to the node. Null with databases that report no sizes.
    largest_shard_bytes: int | None
    #: Since when it fires nothing; null while it fires, and if it could not be reached.
    paused_since: datetime | None
    #: Why it fires nothing: starting, lease (the store did not answer in time), clock_skew, clock_jump, unwritten_results
    #: or stopped; null like pausedSince.
    paused_reason: str | None
    #: Null if the node could not be reached.
    vitals: Vitals | None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Node:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            node=source["node"],
            incarnation=source["incarnation"],
            address=source["address"],
            alive=source["alive"],
            self=source["self"],
            shards=source["shards"],
            leaving=source["leaving"],
            skewed=source["skewed"],
            version=source["version"],
            dispatching=source["dispatching"],
            agent=source["agent"],
            window_timers=source["windowTimers"],
            lag_ms=source["lagMs"],
            shares_name=source["sharesName"],
            secret_differs=source["secretDiffers"],
            largest_shard_bytes=source["largestShardBytes"],
            paused_since=None if source["pausedSince"] is None else parse_instant(source["pausedSince"]),
            paused_reason=source["pausedReason"],
            vitals=None if source["vitals"] is None else Vitals.from_json(source["vitals"]),
        )


@dataclass(kw_only=True, slots=True)
class Vitals:
    """A node's vital data. Latencies and the lag of the event loop are those of the last minute; latencies are null if
    nothing was measured."""

    #: Seconds since the process started.
    uptime_s: int
    #: Processor cores in use, over the last minute.
    cpu_cores: float
    #: Memory of the process in RAM; null if the system does not report it.
    memory_bytes: int | None
    #: By how much the event loop was late at most, in ms.
    loop_lag_ms: float
    #: Median of the time that a small read of the store takes, in ms.
    read_p50_ms: float | None
    #: Its 99th percentile.
    read_p99_ms: float | None
    #: Median of the time that a transaction takes, in ms.
    commit_p50_ms: float | None
    #: Its 99th percentile.
    commit_p99_ms: float | None
    #: Callbacks in flight.
    in_flight: int
    #: Connections to receivers.
    callback_connections: int
    #: Connections of clients.
    client_connections: int
    #: The store's latest error; null if there was none since the start.
    store_error: str | None
    #: When that was.
    store_error_at: datetime | None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Vitals:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            uptime_s=source["uptimeS"],
            cpu_cores=source["cpuCores"],
            memory_bytes=source["memoryBytes"],
            loop_lag_ms=source["loopLagMs"],
            read_p50_ms=source["readP50Ms"],
            read_p99_ms=source["readP99Ms"],
            commit_p50_ms=source["commitP50Ms"],
            commit_p99_ms=source["commitP99Ms"],
            in_flight=source["inFlight"],
            callback_connections=source["callbackConnections"],
            client_connections=source["clientConnections"],
            store_error=source["storeError"],
            store_error_at=None if source["storeErrorAt"] is None else parse_instant(source["storeErrorAt"]),
        )


@dataclass(kw_only=True, slots=True)
class Shard:
    """A shard; the statistics of its window are present only if its owner could be reached. `version` is its epoch."""

    shard_id: int
    version: int
    owner: str | None
    owned_here: bool
    window_timers: int | None = None
    in_flight: int | None = None
    #: An RFC 3339 instant with a time zone.
    complete_to: datetime | None = None
    #: How long its oldest due timer has waited, in ms, since its instant, or since it was accepted if later.
    lag_ms: float | None = None

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> Shard:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            shard_id=source["shardId"],
            version=source["version"],
            owner=source["owner"],
            owned_here=source["ownedHere"],
            window_timers=source.get("windowTimers"),
            in_flight=source.get("inFlight"),
            complete_to=None if source.get("completeTo") is None else parse_instant(source["completeTo"]),
            lag_ms=source.get("lagMs"),
        )


@dataclass(kw_only=True, slots=True)
class ShardOwners:
    """Which node owns each shard, as the responding node last read it. `owners` has for each shard, by its number, the
    index of its owner in `nodes`, or null while none is known."""

    total_shards: int
    nodes: list[OwnerNode]
    owners: list[int | None]

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> ShardOwners:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            total_shards=source["totalShards"],
            nodes=[OwnerNode.from_json(each) for each in source["nodes"]],
            owners=source["owners"],
        )


@dataclass(kw_only=True, slots=True)
class OwnerNode:
    """A node of the cluster, for clients that send writes to the owners of shards."""

    #: The URL of the node's API, from its setting `advertise_api`; null if it has none of its own.
    api_url: str | None
    alive: bool
    #: Whether the node is handing over its shards.
    leaving: bool
    #: Whether its clock differs from the store's, so that other nodes take its shards.
    skewed: bool

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> OwnerNode:
        """Reads an answer. Members that this version does not know are ignored."""
        return cls(
            api_url=source["apiUrl"],
            alive=source["alive"],
            leaving=source["leaving"],
            skewed=source["skewed"],
        )
