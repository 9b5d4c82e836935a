"""What the document states about each operation, besides its path, role, fields and description, which the server's own
declaration has (`tocsin.web.api`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tocsin.service_calls.api.validation import PAGE_DEFAULT
from tocsin.web.http import cluster, wire

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class About:
    """`errors` are the operation's own codes; the document adds those of every operation. `example` is a request's body, and
    `request_headers`, `answer_headers` and `parameters` have the texts of its own headers and parameters by name. `answer` is
    given where the handler's annotation does not show it; `other_answers` are those that a parameter asks for, and with
    `has_etag` a client that has the answer gets 304."""

    summary: str
    errors: tuple[str, ...] = ()
    example: Json = field(default_factory=dict)
    request_headers: Mapping[str, str] = field(default_factory=dict)
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    answer: type[msgspec.Struct] | None = None
    other_answers: tuple[type[msgspec.Struct], ...] = ()
    has_etag: bool = False
    media_type: str = "application/json"


#: The text and the example of each parameter of a path.
PATH_PARAMETERS = {
    "tenantId": (
        "The tenant: a UUID of version 7. Tenants are not registered: any such id is valid, and has no calls until one is "
        "submitted under it. A key that is not limited to tenants has access to all of them.",
        "01890a5d-ac96-774b-bcce-b302099a8057",
    ),
    "serviceCallId": ("The service call: a UUID of version 7.", "01890a5d-ac96-774b-bcce-b302099a8058"),
    "tag": ("The tag, percent-encoded.", "star"),
    "token": ("The token at the end of the monitor's ping URL.", "Yk3v9x2qmT0aXW5cJr8e1g"),
    "event": ("`start`, `fail`, or an exit code from 0 to 255.", "start"),
}

_WRITE_ERRORS = ("OVERLOADED", "SHARD_UNAVAILABLE", "REQUEST_EXPIRED")
_TIMER_READ_ERRORS = ("TIMER_NOT_FOUND", "NAMESPACE_NOT_FOUND", "SHARD_UNAVAILABLE")
_TIMER_CREATE_ERRORS = (
    "NAMESPACE_NOT_FOUND",
    "NAMESPACE_DELETING",
    "TIMER_EXISTS",
    "COLLECTION_FULL",
    "IDEMPOTENCY_CONFLICT",
    "QUOTA_EXCEEDED",
    *_WRITE_ERRORS,
)
_TIMER_CHANGE_ERRORS = ("TIMER_NOT_FOUND", "NAMESPACE_NOT_FOUND", "TIMER_NOT_PENDING", *_WRITE_ERRORS)
_SCHEDULE_READ_ERRORS = ("SCHEDULE_NOT_FOUND", "NAMESPACE_NOT_FOUND", "SHARD_UNAVAILABLE")
_SCHEDULE_WRITE_ERRORS = ("NAMESPACE_NOT_FOUND", "NAMESPACE_DELETING", *_WRITE_ERRORS)
_SCHEDULE_CHANGE_ERRORS = ("SCHEDULE_NOT_FOUND", "SCHEDULE_ENDED", *_SCHEDULE_WRITE_ERRORS)
_COMMAND_ERRORS = ("OVERLOADED", "BROKER_UNAVAILABLE", "COMMAND_UNANSWERED", "COMMAND_FAILED")
_CALL_CHANGE_ERRORS = ("SERVICE_CALL_NOT_FOUND", *_COMMAND_ERRORS)
_CALL_READ_ERRORS = ("SERVICE_CALL_NOT_FOUND", "STORE_FAILURE")

_FAILURE_ERRORS = ("NAMESPACE_NOT_FOUND", "SHARD_UNAVAILABLE", "STORE_FAILURE")
_FLOW_READ_ERRORS = ("FLOW_NOT_FOUND", "NAMESPACE_NOT_FOUND", "SHARD_UNAVAILABLE")
_FLOW_CHANGE_ERRORS = ("NAMESPACE_NOT_FOUND", "NAMESPACE_DELETING", "CONFLICT", "SHARD_UNAVAILABLE")
_CALENDAR_READ_ERRORS = ("CALENDAR_NOT_FOUND", "NAMESPACE_NOT_FOUND", "SHARD_UNAVAILABLE")
_CALENDAR = {"namespace": "orders", "name": "holidays-de"}
_CREDENTIAL_READ_ERRORS = ("CREDENTIAL_NOT_FOUND", "NAMESPACE_NOT_FOUND", "SHARD_UNAVAILABLE")
_CREDENTIAL = {"namespace": "orders", "name": "billing-api"}
_MONITOR = {"namespace": "orders", "id": "nightly-backup"}
_MONITOR_ERRORS = ("MONITOR_NOT_FOUND", "NAMESPACE_NOT_FOUND", "SHARD_UNAVAILABLE")
_MONITOR_CHANGE_ERRORS = ("MONITOR_NOT_FOUND", *_SCHEDULE_WRITE_ERRORS)
_PING_ERRORS = ("MONITOR_NOT_FOUND", "NAMESPACE_DELETING", "TOO_MANY_FAILURES", *_WRITE_ERRORS)
_FLOW = {"namespace": "orders", "match": "customer:"}
_INBOX_ERRORS = ("ROUTE_NOT_FOUND", "INBOX_UNAVAILABLE")
_DESTINATION = {"destination": "https://shop.example"}
_JOB_ERRORS = ("OVERLOADED", "SHARD_UNAVAILABLE")
_JOB_CHANGE_ERRORS = ("JOB_NOT_FOUND", "JOB_ENDED", "CONFLICT", *_JOB_ERRORS)
_JOB_NAME = {"jobId": "5f2b8c1d9e3a7f6045c2d1ab"}

_TIMER_KEY_HEADERS = {
    "idempotency-key": "Makes the create safe to repeat, like the field `idempotencyKey`: 1 to 255 visible ASCII "
    "characters, quoted or not.",
    "tocsin-first-try": "`1`: no idempotency key in this request was sent before. Spares the server the search for them, "
    "so that such a create costs little more than one without a key. Leave it out of a repeated request.",
}
_FORWARDED = {
    "tocsin-forwarded": "`1`: another node owned the timer's shard, and the write was forwarded to it. A client that sends "
    "writes to the owners should read the map of owners again."
}
_TIMER_ANSWER_HEADERS = {
    "tocsin-existing": "`true`: nothing was written; the timer is the existing one (`onConflict: keep`).",
    "idempotency-replayed": "`true`: nothing was written; an earlier request with this key created the timer.",
    **_FORWARDED,
}
_SCHEDULE_ANSWER_HEADERS = {"tocsin-existing": "`true`: nothing was written; the schedule already had this definition."}
_NAMESPACE_ANSWER_HEADERS = {"tocsin-existing": "`true`: the change changes nothing, so nothing was written."}
_TIMER_NAME = {"namespace": "default", "timerId": "order-17-reminder"}
_FAILURE_GROUP = {"destination": "https://shop.example/hooks/reminder", "error": "HTTP 500"}
_SCHEDULE_NAME = {"namespace": "default", "scheduleId": "nightly-report"}
_TIMER = {
    "namespace": "default",
    "id": "order-17-reminder",
    "delay": "24h",
    "callbackUrl": "https://shop.example/hooks/reminder",
    "payload": {"order": 17},
    "retryPolicy": {"maxAttempts": 5, "initialInterval": "1s"},
}

#: By the tag that groups them in the document, and by name. The document lists no other operation.
OPERATIONS: dict[str, dict[str, About]] = {
    "Timers": {
        "createTimer": About(
            "Create a timer",
            errors=_TIMER_CREATE_ERRORS,
            example=_TIMER,
            request_headers=_TIMER_KEY_HEADERS,
            answer_headers=_TIMER_ANSWER_HEADERS,
        ),
        "getTimer": About("Get a timer", errors=_TIMER_READ_ERRORS, example=_TIMER_NAME),
        "explainTimer": About("Explain what a timer waits for", errors=_TIMER_READ_ERRORS, example=_TIMER_NAME),
        "timerHistory": About(
            "Get the runs of a timer, newest first", errors=_TIMER_READ_ERRORS, example={**_TIMER_NAME, "limit": 20}
        ),
        "updateTimer": About(
            "Change a pending timer",
            errors=("NAMESPACE_DELETING", "QUOTA_EXCEEDED", *_TIMER_CHANGE_ERRORS),
            answer_headers=_FORWARDED,
            example={**_TIMER_NAME, "executeAt": "2027-01-31T12:00:00Z"},
        ),
        "deleteTimer": About(
            "Cancel a pending timer", errors=_TIMER_CHANGE_ERRORS, example=_TIMER_NAME, answer_headers=_FORWARDED
        ),
        "replayTimers": About(
            "Fire finished timers again",
            errors=("NAMESPACE_NOT_FOUND", "NAMESPACE_DELETING", *_WRITE_ERRORS),
            answer_headers={"tocsin-forwarded": "`1`: at least one of the writes was forwarded to another node."},
            example={
                "namespace": "default",
                "ids": ["order-17-reminder"],
                "setUrl": "https://shop.example/hooks/v2/reminder",
            },
        ),
        "listTimers": About(
            "List timers, ordered by executeAt",
            errors=("NAMESPACE_NOT_FOUND", "SHARD_UNAVAILABLE"),
            example={"namespace": "default", "status": ["pending"], "limit": 100},
        ),
        "batchCreateTimers": About(
            "Create many timers",
            answer=wire.BatchResults,
            errors=_WRITE_ERRORS,
            example={"timers": [_TIMER]},
            request_headers=_TIMER_KEY_HEADERS,
            answer_headers={"tocsin-forwarded": "`1`: at least one of the writes was forwarded to another node."},
        ),
    },
    "Schedules": {
        "createSchedule": About(
            "Create a schedule",
            errors=("SCHEDULE_ENDED", "QUOTA_EXCEEDED", "VERSION_CONFLICT", *_SCHEDULE_WRITE_ERRORS),
            example={
                "namespace": "default",
                "id": "nightly-report",
                "cron": "0 2 * * *",
                "timeZone": "Europe/Berlin",
                "callbackUrl": "https://shop.example/hooks/report",
                "payload": {"report": "sales"},
            },
            answer_headers=_SCHEDULE_ANSWER_HEADERS,
        ),
        "getSchedule": About("Get a schedule", errors=_SCHEDULE_READ_ERRORS, example=_SCHEDULE_NAME),
        "updateSchedule": About(
            "Change a schedule",
            errors=("QUOTA_EXCEEDED", "VERSION_CONFLICT", *_SCHEDULE_CHANGE_ERRORS),
            example={**_SCHEDULE_NAME, "cron": "30 2 * * *"},
            answer_headers=_SCHEDULE_ANSWER_HEADERS,
        ),
        "listSchedules": About(
            "List schedules, ordered by id",
            errors=("NAMESPACE_NOT_FOUND", "SHARD_UNAVAILABLE"),
            example={"namespace": "default", "status": "paused", "limit": 100},
        ),
        "pauseSchedule": About(
            "Pause a schedule",
            errors=_SCHEDULE_CHANGE_ERRORS,
            example=_SCHEDULE_NAME,
            answer_headers=_SCHEDULE_ANSWER_HEADERS,
        ),
        "resumeSchedule": About(
            "Resume a schedule",
            errors=_SCHEDULE_CHANGE_ERRORS,
            example=_SCHEDULE_NAME,
            answer_headers=_SCHEDULE_ANSWER_HEADERS,
        ),
        "triggerSchedule": About(
            "Fire a schedule once now", errors=(*_SCHEDULE_CHANGE_ERRORS, "BACKLOG_FULL"), example=_SCHEDULE_NAME
        ),
        "backfillSchedule": About(
            "Fire past instants of a schedule",
            errors=(*_SCHEDULE_CHANGE_ERRORS, "BACKLOG_FULL"),
            example={**_SCHEDULE_NAME, "after": "2027-01-30T00:00:00Z", "before": "2027-01-31T00:00:00Z"},
        ),
        "skipSchedule": About(
            "Skip one instant of a schedule",
            errors=(*_SCHEDULE_CHANGE_ERRORS, "BACKLOG_FULL"),
            example={**_SCHEDULE_NAME, "instant": "2027-02-01T08:00:00Z"},
            answer_headers=_SCHEDULE_ANSWER_HEADERS,
        ),
        "unskipSchedule": About(
            "Don't skip an instant after all",
            errors=_SCHEDULE_CHANGE_ERRORS,
            example={**_SCHEDULE_NAME, "instant": "2027-02-01T08:00:00Z"},
            answer_headers=_SCHEDULE_ANSWER_HEADERS,
        ),
        "replaySchedule": About(
            "Fire failed occurrences of a schedule again",
            errors=(*_SCHEDULE_CHANGE_ERRORS, "BACKLOG_FULL"),
            example={**_SCHEDULE_NAME, "instants": ["2027-01-30T12:00:00Z"]},
            answer_headers=_SCHEDULE_ANSWER_HEADERS,
        ),
        "previewSchedule": About(
            "Preview the next instants of a schedule",
            errors=_SCHEDULE_READ_ERRORS,
            example={"cron": "0 9 * * MON-FRI", "timeZone": "Europe/Berlin", "count": 3},
        ),
        "scheduleHistory": About(
            "List the occurrences of a schedule, newest first",
            errors=_SCHEDULE_READ_ERRORS,
            example={**_SCHEDULE_NAME, "limit": 20},
        ),
        "deleteSchedule": About(
            "Delete a schedule",
            errors=("SCHEDULE_NOT_FOUND", "SCHEDULE_ENDED", "VERSION_CONFLICT", "NAMESPACE_NOT_FOUND", *_WRITE_ERRORS),
            example=_SCHEDULE_NAME,
        ),
    },
    "Failures": {
        "listFailures": About(
            "List what failed, grouped by cause",
            errors=_FAILURE_ERRORS,
            example={"namespace": "*", "since": "2027-01-31T00:00:00Z", "groupBy": ["destination", "error"]},
        ),
        "listFailureMembers": About(
            "List the failures of a group",
            errors=_FAILURE_ERRORS,
            example={"namespace": "default", **_FAILURE_GROUP, "limit": 100},
        ),
        "dismissFailures": About(
            "Dismiss failures",
            errors=(*_FAILURE_ERRORS, *_COMMAND_ERRORS),
            example={"namespace": "default", **_FAILURE_GROUP},
        ),
    },
    "Namespaces": {
        "createNamespace": About(
            "Create a namespace",
            errors=("NAMESPACE_EXISTS", "NAMESPACE_DELETING", "SHARD_UNAVAILABLE"),
            example={"name": "orders", "history": "all", "retention": "3d"},
        ),
        "getNamespace": About(
            "Get a namespace", errors=("NAMESPACE_NOT_FOUND", "SHARD_UNAVAILABLE"), example={"name": "orders"}
        ),
        "listNamespaces": About("List namespaces", errors=("SHARD_UNAVAILABLE",)),
        "updateNamespace": About(
            "Change a namespace",
            errors=("NAMESPACE_NOT_FOUND", "NAMESPACE_DELETING", "VERSION_CONFLICT", "CONFLICT", "SHARD_UNAVAILABLE"),
            example={"name": "orders", "paused": True},
            answer_headers=_NAMESPACE_ANSWER_HEADERS,
        ),
        "deleteNamespace": About(
            "Delete a namespace with all that is in it",
            errors=(
                "NAMESPACE_NOT_FOUND",
                "NAMESPACE_NOT_EMPTY",
                "NAMESPACE_DELETING",
                "JOB_RUNNING",
                "IDEMPOTENCY_CONFLICT",
                "VERSION_CONFLICT",
                "CONFLICT",
                *_JOB_ERRORS,
            ),
            example={"name": "orders", "cancelPending": True, "idempotencyKey": "orders-moved"},
        ),
        "rotateNamespaceSecret": About(
            "Rotate a namespace's signing secret",
            errors=("NAMESPACE_NOT_FOUND", "NAMESPACE_DELETING", "ROTATION_PENDING", "CONFLICT", "SHARD_UNAVAILABLE"),
            example={"name": "orders", "grace": "24h"},
        ),
    },
    "Flows": {
        "putFlow": About(
            "Create or replace the rule of a flow",
            errors=("TOO_MANY_FLOWS", "VERSION_CONFLICT", *_FLOW_CHANGE_ERRORS),
            example={**_FLOW, "perKey": {"rate": {"count": 100, "per": "1m"}, "burst": 10, "parallelism": 2}},
        ),
        "getFlow": About("Get the rule of a flow", errors=_FLOW_READ_ERRORS, example=_FLOW),
        "listFlows": About(
            "List the rules of flows",
            errors=("NAMESPACE_NOT_FOUND", "SHARD_UNAVAILABLE"),
            example={"namespace": "orders", "limit": 100},
        ),
        "pauseFlow": About(
            "Pause a flow",
            errors=("FLOW_NOT_FOUND", *_FLOW_CHANGE_ERRORS),
            example={**_FLOW, "until": "2027-01-31T12:00:00Z"},
        ),
        "resumeFlow": About("Resume a flow", errors=("FLOW_NOT_FOUND", *_FLOW_CHANGE_ERRORS), example=_FLOW),
        "deleteFlow": About(
            "Delete the rule of a flow",
            errors=("FLOW_NOT_FOUND", "VERSION_CONFLICT", *_FLOW_CHANGE_ERRORS),
            example=_FLOW,
        ),
    },
    "Calendars": {
        "putCalendar": About(
            "Create or replace a calendar",
            errors=("TOO_MANY_CALENDARS", "VERSION_CONFLICT", *_FLOW_CHANGE_ERRORS),
            example={
                **_CALENDAR,
                "timeZone": "Europe/Berlin",
                "dates": ["2027-01-01", "2027-12-25"],
                "ranges": [{"first": "2027-12-27", "last": "2027-12-31"}],
                "weekdays": ["SAT", "SUN"],
            },
        ),
        "getCalendar": About("Get a calendar", errors=_CALENDAR_READ_ERRORS, example=_CALENDAR),
        "listCalendars": About(
            "List calendars",
            errors=("NAMESPACE_NOT_FOUND", "SHARD_UNAVAILABLE"),
            example={"namespace": "orders", "limit": 100},
        ),
        "deleteCalendar": About(
            "Delete a calendar",
            errors=("CALENDAR_NOT_FOUND", "CALENDAR_IN_USE", "VERSION_CONFLICT", *_FLOW_CHANGE_ERRORS),
            example=_CALENDAR,
        ),
    },
    "Credentials": {
        "putCredential": About(
            "Create or replace a credential",
            errors=("TOO_MANY_CREDENTIALS", "VERSION_CONFLICT", *_FLOW_CHANGE_ERRORS),
            example={
                **_CREDENTIAL,
                "type": "oauth2ClientCredentials",
                "hosts": ["api.example.com"],
                "tokenUrl": "https://login.example.com/oauth2/token",
                "clientId": "tocsin",
                "clientSecret": "7c1f3e6b9a2d4c58",
                "scope": "bills",
            },
        ),
        "getCredential": About("Get a credential", errors=_CREDENTIAL_READ_ERRORS, example=_CREDENTIAL),
        "listCredentials": About(
            "List credentials",
            errors=("NAMESPACE_NOT_FOUND", "SHARD_UNAVAILABLE"),
            example={"namespace": "orders", "limit": 100},
        ),
        "testCredential": About("Test a credential", errors=_CREDENTIAL_READ_ERRORS, example=_CREDENTIAL),
        "deleteCredential": About(
            "Delete a credential",
            errors=("CREDENTIAL_NOT_FOUND", "VERSION_CONFLICT", *_FLOW_CHANGE_ERRORS),
            example=_CREDENTIAL,
        ),
        "signingKeys": About("Get the keys that verify JWTs", errors=("SHARD_UNAVAILABLE",)),
        "openidConfiguration": About("Get the issuer of JWTs", errors=("NOT_AN_ISSUER",)),
    },
    "Monitors": {
        "putMonitor": About(
            "Create or replace a monitor",
            errors=("QUOTA_EXCEEDED", "VERSION_CONFLICT", *_SCHEDULE_WRITE_ERRORS),
            example={
                **_MONITOR,
                "cron": "0 3 * * *",
                "timeZone": "Europe/Berlin",
                "grace": "30m",
                "onLate": {"url": "https://shop.example/hooks/alerts"},
            },
        ),
        "getMonitor": About("Get a monitor", errors=_MONITOR_ERRORS, example=_MONITOR),
        "listMonitors": About(
            "List monitors",
            errors=("NAMESPACE_NOT_FOUND", "SHARD_UNAVAILABLE"),
            example={"namespace": "orders", "state": ["late", "failed"], "limit": 100},
        ),
        "pauseMonitor": About("Pause a monitor", errors=_MONITOR_CHANGE_ERRORS, example=_MONITOR),
        "resumeMonitor": About("Resume a monitor", errors=_MONITOR_CHANGE_ERRORS, example=_MONITOR),
        "rotateMonitor": About("Replace the ping URL of a monitor", errors=_MONITOR_CHANGE_ERRORS, example=_MONITOR),
        "deleteMonitor": About(
            "Delete a monitor", errors=("VERSION_CONFLICT", *_MONITOR_CHANGE_ERRORS), example=_MONITOR
        ),
        "pingMonitor": About(
            "Report for a monitor's job",
            errors=_MONITOR_CHANGE_ERRORS,
            example={**_MONITOR, "event": "success", "exitCode": 0},
        ),
        "monitorHistory": About(
            "List the periods of a monitor", errors=_MONITOR_ERRORS, example={**_MONITOR, "limit": 30}
        ),
        "ping": About("Report a success by URL", errors=_PING_ERRORS, media_type="text/plain"),
        "pingWithBody": About("Report a success by URL, with a body", errors=_PING_ERRORS, media_type="text/plain"),
        "pingEvent": About(
            "Report a start, a failure or an exit code by URL", errors=_PING_ERRORS, media_type="text/plain"
        ),
        "pingEventWithBody": About(
            "Report a start, a failure or an exit code by URL, with a body", errors=_PING_ERRORS
        ),
    },
    "Destinations": {
        "listDestinations": About("List destinations", errors=("SHARD_UNAVAILABLE",), example={"limit": 20}),
        "pauseDestination": About("Pause a destination", errors=("SHARD_UNAVAILABLE",), example=_DESTINATION),
        "resumeDestination": About("Resume a destination", errors=("SHARD_UNAVAILABLE",), example=_DESTINATION),
        "probeDestination": About("Try a destination now", errors=("SHARD_UNAVAILABLE",), example=_DESTINATION),
    },
    "Inbox": {
        "listInboxRows": About("List dead rows of the inbox", errors=_INBOX_ERRORS, example={"namespace": "orders"}),
        "replayInboxRows": About(
            "Try dead rows of the inbox again", errors=_INBOX_ERRORS, example={"namespace": "orders"}
        ),
        "deleteInboxRows": About(
            "Delete dead rows of the inbox",
            errors=_INBOX_ERRORS,
            example={"ids": ["0197a3c0-0000-7000-8000-000000000001"]},
        ),
    },
    "Jobs": {
        "createJob": About(
            "Change many timers or schedules",
            errors=(
                "NAMESPACE_NOT_FOUND",
                "NAMESPACE_DELETING",
                "JOB_RUNNING",
                "IDEMPOTENCY_CONFLICT",
                "CONFLICT",
                *_JOB_ERRORS,
            ),
            example={
                "namespace": "default",
                "action": "shift",
                "of": "timers",
                "filter": {"tags": ["orders"], "executeBefore": "2027-02-01T00:00:00Z"},
                "shiftBy": "2h",
                "idempotencyKey": "orders-after-the-freeze",
            },
        ),
        "getJob": About("Get a job", errors=("JOB_NOT_FOUND", *_JOB_ERRORS), example=_JOB_NAME),
        "listJobs": About("List jobs, newest first", errors=_JOB_ERRORS, example={"namespace": "default"}),
        "pauseJob": About("Pause a job", errors=_JOB_CHANGE_ERRORS, example=_JOB_NAME),
        "resumeJob": About("Resume a paused job", errors=_JOB_CHANGE_ERRORS, example=_JOB_NAME),
        "cancelJob": About("Cancel a job", errors=_JOB_CHANGE_ERRORS, example=_JOB_NAME),
        "setJobRate": About(
            "Change a job's rate", errors=_JOB_CHANGE_ERRORS, example={**_JOB_NAME, "ratePerSecond": 50}
        ),
    },
    "Keys": {
        "createKey": About(
            "Create an API key",
            errors=("TOO_MANY_KEYS", "STORE_FAILURE"),
            example={"role": "write", "name": "billing service", "namespaces": ["billing"]},
        ),
        "listKeys": About("List API keys", errors=("STORE_FAILURE",)),
        "revokeKey": About(
            "Revoke an API key", errors=("KEY_NOT_FOUND", "STORE_FAILURE"), example={"keyId": "1f0c9a7be2d4"}
        ),
    },
    "Audit": {
        "listAudit": About(
            "List the audit trail",
            errors=("SHARD_UNAVAILABLE",),
            example={"action": ["key_created", "key_deleted"], "limit": 100},
        ),
    },
    "Statistics": {
        "getStatistics": About(
            "Get what happened, by minute",
            errors=("NAMESPACE_NOT_FOUND", "SHARD_UNAVAILABLE"),
            example={"namespace": "*", "resolution": "tenMinutes"},
        ),
    },
    "Service calls": {
        "submitServiceCall": About(
            "Submit a service call",
            errors=("IDEMPOTENCY_CONFLICT", *_COMMAND_ERRORS),
            example={
                "name": "Charge order 17",
                "serviceCallId": PATH_PARAMETERS["serviceCallId"][1],
                "requestSpec": {
                    "method": "POST",
                    "url": "https://pay.example/charges",
                    "headers": {"x-shop": "eu"},
                    "body": {"order": 17, "amount": "9.90"},
                },
                "tags": ["orders", "eu"],
            },
            request_headers={
                "idempotency-key": "Makes the submission safe to repeat, like the field `idempotencyKey`: 1 to 255 visible "
                "ASCII characters, quoted or not."
            },
            answer_headers={
                "location": "The path of the service call.",
                "idempotency-replayed": "`true`: nothing was submitted; an earlier request with this key or id submitted the "
                "call.",
            },
        ),
        "listServiceCalls": About(
            "List service calls, newest first",
            errors=("STORE_FAILURE",),
            parameters={
                "tenantId": "The tenant: a UUID of version 7; `*`: all that the API key has access to.",
                "status": "A status, or several, separated by commas or as repeated parameters.",
                "tag": "A tag that calls must have; if repeated, all of the tags.",
                "name": "Part of the call's name; ASCII letters match in either case.",
                "correlationId": "The calls' correlation id: the calls that one request submitted.",
                "from": "Submitted at or after this instant.",
                "to": "Submitted before this instant.",
                "limit": f"Maximum number of service calls on the page. Default {PAGE_DEFAULT}.",
                "cursor": "`nextCursor` of the previous page.",
            },
        ),
        "tagServiceCall": About("Tag a service call", errors=("TOO_MANY_TAGS", *_CALL_CHANGE_ERRORS)),
        "untagServiceCall": About("Remove a tag from a service call", errors=_CALL_CHANGE_ERRORS),
        "traceServiceCall": About("Trace a service call", errors=_CALL_READ_ERRORS),
        "getServiceCall": About("Get a service call", errors=_CALL_READ_ERRORS),
        "deleteServiceCall": About(
            "Delete a waiting service call", errors=("SERVICE_CALL_NOT_SCHEDULED", *_CALL_CHANGE_ERRORS)
        ),
        "retryServiceCall": About(
            "Retry a failed service call", errors=("SERVICE_CALL_NOT_FAILED", *_CALL_CHANGE_ERRORS)
        ),
        "rotateTenantSecret": About(
            "Rotate a tenant's signing secret",
            errors=("ROTATION_PENDING", "STORE_FAILURE"),
            example={"tenantId": PATH_PARAMETERS["tenantId"][1], "grace": "24h"},
        ),
    },
    "Cluster": {
        "getCluster": About(
            "Get the cluster's state",
            errors=("SHARD_UNAVAILABLE",),
            answer=cluster.Cluster,
            other_answers=(cluster.ShardOwners,),
            has_etag=True,
            request_headers={"if-none-match": "The ETag of the map of owners that the client has."},
            parameters={
                "view": "`owners`: only the owners of the shards, for clients that send each write to the node that owns "
                "its timer."
            },
        ),
    },
    "Health": {
        "health": About("Is the process alive?"),
        "readiness": About("Should the node receive traffic?", errors=("NOT_READY",)),
        "metrics": About("Metrics", media_type="text/plain"),
    },
}
