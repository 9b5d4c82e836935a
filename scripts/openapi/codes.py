"""The error codes of the API: what each means and how a client handles it. The OpenAPI document and
`docs/reference/errors.md` are generated from this table; a test checks that it lists every code the API can return."""

from __future__ import annotations

import signal
from functools import cache
from typing import NamedTuple

from tocsin.cli.command import EXIT_CHANGES, EXIT_INTERRUPTED, EXIT_REFUSED, EXIT_UNREACHABLE, EXIT_USAGE
from tocsin.model.errors import NotFound, TocsinError
from tocsin.server.running import EXIT_FATAL
from tocsin.server.workers import EXIT_FORCED, EXIT_MOVED
from tocsin.web.http.errors import ProblemKind, problem_kind_of_class


class ErrorCode(NamedTuple):
    """`when` is the cause, `remedy` what to do about it, `example` a message with this code. Its status is that of its errors
    (`kind_of_code`)."""

    when: str
    remedy: str
    example: str


_RETRY = "Retry the same request after `Retry-After`."

CODES: dict[str, ErrorCode] = {
    "INVALID_INPUT": ErrorCode(
        "A field is missing, unknown, of the wrong type, or outside a limit, or the query has an unknown parameter. "
        "Nothing was written.",
        "Correct the fields listed in `errors`; each reason states what is accepted.",
        "delay: is not a duration; write it as 30s",
    ),
    "MALFORMED_BODY": ErrorCode(
        "The body is not JSON, or not UTF-8. Nothing was written.",
        "Send one JSON value in UTF-8. The message names the byte where parsing failed.",
        "the body is not JSON: it ends too early",
    ),
    "MALFORMED_REQUEST": ErrorCode(
        "The data received on the connection is not HTTP/1.1. The server closes the connection.",
        "Check for a proxy or client that speaks another protocol, such as TLS on a plain-text port.",
        "the request is not valid HTTP/1.1",
    ),
    "TOO_MANY_TAGS": ErrorCode(
        "The service call already has the maximum number of tags.",
        "Remove a tag first.",
        "a service call has at most 16 tags",
    ),
    "UNAUTHENTICATED": ErrorCode(
        "The request needs an API key and has none, or its key is unknown, revoked, or expired.",
        "Send `Authorization: Bearer <key>`; `tocsin keys create` creates a key.",
        "this request requires an API key; send it as Authorization: Bearer <key>",
    ),
    "FORBIDDEN": ErrorCode(
        "The key's role does not allow this operation, or the key is limited to other namespaces or tenants.",
        "Use a key with the role that the operation's description names, for this namespace or tenant.",
        "this key has no access to the namespace 'orders'",
    ),
    "TIMER_NOT_FOUND": ErrorCode(
        "The namespace has no pending timer with this id, and no finished one that is still retained.",
        "Check namespace and id. A finished timer is kept for the namespace's `retention` if its `history` includes "
        "it.",
        "no timer 'order-17-reminder' in namespace 'default'",
    ),
    "NAMESPACE_NOT_FOUND": ErrorCode(
        "No namespace has this name.",
        "Create it with `namespaces/create`, or correct the name.",
        "there is no namespace 'orders'; create it first with namespaces/create",
    ),
    "FLOW_NOT_FOUND": ErrorCode(
        "The namespace has no rule of flows with exactly this match.",
        "Create it with `flows/put`, or correct the match; `flows/list` has those that there are.",
        "namespace 'orders' has no flow 'customer:'; create it with flows/put",
    ),
    "CREDENTIAL_NOT_FOUND": ErrorCode(
        "The namespace has no credential of this name.",
        "Create it with `credentials/put`, or correct the name; `credentials/list` has those that there are.",
        "namespace 'orders' has no credential 'billing-api'; create it with credentials/put",
    ),
    "NOT_AN_ISSUER": ErrorCode(
        "This server signs no JWTs for receivers.",
        "Set `public_url`, and install `tocsin[oidc]`; or give receivers the URL of a server where both is so.",
        "this server signs no JWTs: public_url is not set, or what signs them is not installed",
    ),
    "CALENDAR_NOT_FOUND": ErrorCode(
        "The namespace has no calendar of this name.",
        "Create it with `calendars/put`, or correct the name; `calendars/list` has those that there are.",
        "namespace 'orders' has no calendar 'holidays-de'; create it with calendars/put",
    ),
    "MONITOR_NOT_FOUND": ErrorCode(
        "The namespace has no monitor of this id; or none has this ping URL.",
        "Create it with `monitors/put`, or correct the id; `monitors/list` has those that there are. `monitors/rotate` makes "
        "a new ping URL.",
        "no monitor 'nightly-backup' in namespace 'orders'",
    ),
    "SERVICE_CALL_NOT_FOUND": ErrorCode(
        "The tenant has no service call with this id, or the call is no longer retained.",
        "Check tenant and id. Finished calls are kept for the setting `agent.retention`.",
        "the tenant has no service call 01890a5d-ac96-774b-bcce-b302099a8058",
    ),
    "KEY_NOT_FOUND": ErrorCode(
        "No API key has this id, or the key is outside the scope of the caller's key.",
        "Check the id; `keys/list` lists the keys you can manage.",
        "no key has the id '1f0c9a7be2d4'",
    ),
    "SCHEDULE_NOT_FOUND": ErrorCode(
        "The namespace has no schedule with this id, live or ended and still retained.",
        "Check namespace and id. An ended schedule is kept for the namespace's `retention` if its `history` includes it.",
        "no schedule 'nightly-report' in namespace 'default'",
    ),
    "ROUTE_NOT_FOUND": ErrorCode(
        "No operation has this path, or this server has no service agent or no inbox, of which the operation is.",
        "Check the path; `/docs` lists all operations.",
        "no operation at /api/v1/timer/create; see /docs",
    ),
    "METHOD_NOT_ALLOWED": ErrorCode(
        "The path exists, but does not accept this method.",
        "Use a method that the `Allow` header lists.",
        "GET is not allowed here; use POST",
    ),
    "REQUEST_TIMEOUT": ErrorCode(
        "The request did not arrive completely within the time limit. The server closes the connection.",
        "Send it again; check for a slow client or network.",
        "the body was not complete after 30 s",
    ),
    "CONFLICT": ErrorCode(
        "Other requests changed the same object at the same time, repeatedly.",
        "Read the object, then send the change again.",
        "namespace 'orders' was changed by others 10 times meanwhile; try again",
    ),
    "VERSION_CONFLICT": ErrorCode(
        "The object has not the version in the request's `expectedVersion`: somebody else has changed, created or deleted it "
        "since it was read. Nothing was written.",
        "Read the object, decide again, and send its present version; `tocsin apply` does so when it is run again.",
        "schedule 'nightly-report' has version 4, but version 3 is expected",
    ),
    "TIMER_NOT_PENDING": ErrorCode(
        "The timer has finished: it can no longer be changed or canceled.",
        "To fire it again, replay it (`timers/replay`), or create a timer with the same id; the id is free.",
        "timer 'order-17-reminder' has finished; create it again to schedule another firing",
    ),
    "TIMER_PENDING": ErrorCode(
        "The timer has not finished, so there is nothing to replay. Nothing was written.",
        "Wait for its end, or change it with `timers/update`.",
        "the timer is pending: 'order-17-reminder'",
    ),
    "TIMER_NOT_REPLAYABLE": ErrorCode(
        "What is kept of the finished timer is not enough to fire it again: its namespace keeps no history, so that only its "
        "idempotency keys are left, or its record can't be read. Nothing was written.",
        "Create the timer again.",
        "its namespace keeps no history of it, hence no payload; create the timer again: 'order-17-reminder'",
    ),
    "TIMER_EXISTS": ErrorCode(
        'A timer with this id exists, and the request has `onConflict: "reject"`. Nothing was written.',
        "Use the existing timer, or choose another id or another `onConflict`.",
        "timer 'order-17-reminder' exists in namespace 'default'",
    ),
    "COLLECTION_FULL": ErrorCode(
        'The pending timer of this id, which was created with `onConflict: "debounce"` and `collect`, has no room for '
        "another payload: it has as many as `collect` allows, or they would have more than 100 KiB together. Nothing was "
        "written.",
        "Create it again when it has fired. If that happens often, raise `collect` (at most 100), shorten `maxDelay`, or "
        "send smaller payloads.",
        "timer 'index-product-17' has collected 100 payloads of 4391 bytes and has no room for this one; it is due at "
        "2027-01-31T12:01:00Z: create it again when it has fired, or let it collect less by a shorter maxDelay",
    ),
    "SCHEDULE_ENDED": ErrorCode(
        "The schedule was deleted, or has no more instants: it can no longer be changed or fired.",
        "To run it again, create it with the same id and another definition; it keeps its counts.",
        "schedule 'nightly-report' has ended",
    ),
    "BACKLOG_FULL": ErrorCode(
        "Too many triggers (at most 100) or backfills (at most 10) of the schedule are waiting. Nothing was written.",
        "Wait until some of them have fired; `triggersWaiting` and `backfillsWaiting` of the schedule count them.",
        "100 triggers wait already; try again when some of them have fired",
    ),
    "CLOCK_HALTED": ErrorCode(
        "Only from `tocsin dev`: the clock did not reach the instant asked for, because more than 10,000 instants were due "
        "on the way, or what was due at one of them did not finish. The clock shows an earlier instant.",
        "Advance again: the message states what the clock shows and what it waited for. A timer that is rescheduled into the "
        "past fires again and again; `mode: jump` passes it.",
        "the clock halted after 10000 steps and shows 2027-02-01T12:00:00Z: more is due before 2027-02-28T12:00:00Z; advance "
        "again to go on",
    ),
    "ROTATION_PENDING": ErrorCode(
        "The secret was rotated recently, and the previous secret still signs during the grace period. Nothing was "
        "changed.",
        "Wait for the grace period to end, or send `force: true` if all receivers know the current secret.",
        "the secret was rotated a moment ago; wait, or send force: true",
    ),
    "TOO_MANY_KEYS": ErrorCode(
        "The maximum number of API keys exists. Nothing was written.",
        "Revoke keys that are no longer used.",
        "there are 10000 keys, the maximum is 10000; revoke keys that are no longer used",
    ),
    "TOO_MANY_FLOWS": ErrorCode(
        "The maximum number of rules of flows exists in the namespace. Nothing was written.",
        "Delete rules that are no longer used, or match keys by a prefix.",
        "namespace 'orders' has 1000 rules of flows, the maximum; delete one, or match keys by a prefix",
    ),
    "TOO_MANY_CALENDARS": ErrorCode(
        "The maximum number of calendars exists in the namespace. Nothing was written.",
        "Delete calendars that are no longer used, or put their dates into another.",
        "namespace 'orders' has 100 calendars, the maximum; delete one, or put the dates into another",
    ),
    "TOO_MANY_CREDENTIALS": ErrorCode(
        "The maximum number of credentials exists in the namespace. Nothing was written.",
        "Delete credentials that are no longer used.",
        "namespace 'orders' has 100 credentials, the maximum",
    ),
    "CALENDAR_IN_USE": ErrorCode(
        "Schedules that have not ended name the calendar. Nothing was written.",
        "Take it from their `only` and `skip`, or delete them; then delete the calendar.",
        "calendar 'holidays-de' is named by the schedules nightly-report, standup; change these first",
    ),
    "JOB_NOT_FOUND": ErrorCode(
        "No job has this id, or the key has no access to its namespace. A job is kept for 30 days after its end.",
        "Check the id; `jobs/list` lists jobs.",
        "there is no job '5f2b8c1d9e3a7f6045c2d1ab'; jobs are listed for 30 days after their end",
    ),
    "JOB_RUNNING": ErrorCode(
        "A job that has not ended, running or paused, may change the same timers or schedules. Nothing was written.",
        "Wait for its end, or cancel it with `jobs/cancel`; then create the job.",
        "job 5f2b8c1d9e3a7f6045c2d1ab changes timers of namespace default already; wait for its end, or cancel it",
    ),
    "JOB_ENDED": ErrorCode(
        "The job has ended, so it can't be paused, resumed or canceled, or get another rate.",
        "Create another job. `jobs/get` shows how it ended.",
        "job 5f2b8c1d9e3a7f6045c2d1ab has ended: completed",
    ),
    "NAMESPACE_EXISTS": ErrorCode(
        "A namespace with this name exists.",
        "Use it, or change it with `namespaces/update`.",
        "a namespace 'orders' already exists",
    ),
    "NAMESPACE_DELETING": ErrorCode(
        "A job deletes the namespace. Until it has ended, nothing in it can be created or changed. Nothing was written.",
        "Wait for the job's end, which `jobs/get` shows, and create the namespace again; or cancel the job with "
        "`jobs/cancel`.",
        "job 5f2b8c1d9e3a7f6045c2d1ab deletes the namespace 'orders'; wait for its end and create the namespace again, or "
        "cancel the job",
    ),
    "NAMESPACE_NOT_EMPTY": ErrorCode(
        "Timers or schedules are pending in the namespace, which its deletion would cancel. Nothing was written.",
        "Cancel them first, or send `cancelPending: true` to delete them with it.",
        "timers or schedules are pending in namespace 'orders'; cancel them first, or set cancelPending to delete them with "
        "it",
    ),
    "SERVICE_CALL_NOT_SCHEDULED": ErrorCode(
        "The service call has started or finished: it can no longer be deleted.",
        "No action is needed; read its outcome.",
        "the service call is Running already",
    ),
    "SERVICE_CALL_NOT_FAILED": ErrorCode(
        "The service call has not failed, so it can't be retried; the message states its state. Nothing was written.",
        "No action is needed while it is under way or waits; submit a call that has succeeded as a new one.",
        "the service call is Running; only a Failed one can be retried",
    ),
    "IDEMPOTENCY_CONFLICT": ErrorCode(
        "An earlier request used the same idempotency key, or service call id, with different content. Nothing was "
        "written.",
        "Use a new key for a new request, and repeat a request unchanged.",
        "another request was sent with this idempotency key before",
    ),
    "BODY_TOO_LARGE": ErrorCode(
        "The body is larger than the operation accepts.",
        "Send less, or smaller batches. Settings: `api.request_bytes_max`, `api.batch_request_bytes_max`.",
        "the body has 300000 bytes; at most 262144 are accepted",
    ),
    "PAYLOAD_TOO_LARGE": ErrorCode(
        "The timer's payload, or the body of the service call's request, exceeds its limit, or the timer is larger than "
        "the server's database can store. The request has no other error.",
        "Store large data elsewhere and send a reference. Settings: `payload_bytes_max`, "
        "`agent.request_body_bytes_max`.",
        "payload: is 200000 bytes long; at most 102400 are accepted",
    ),
    "UNSUPPORTED_MEDIA_TYPE": ErrorCode(
        "The body is not declared as JSON in UTF-8, or is compressed.",
        "Send `content-type: application/json`, without `content-encoding`.",
        "the content-type header is missing; send content-type: application/json",
    ),
    "OVERLOADED": ErrorCode(
        "A queue has reached its limit. Nothing was accepted.",
        f"{_RETRY} If the error persists, lower the request rate.",
        "10000 writes are already waiting (pending_writes_max); try again later",
    ),
    "QUOTA_EXCEEDED": ErrorCode(
        "A quota of the namespace has no room for the request: too many timers are pending (`pending`), too many were "
        "created in the last second (`createsPerSecond`), or the payload is too large (`payloadBytes`). Nothing was written.",
        "The message names the quota and its value. Retry after `Retry-After`; send a smaller payload; or have the quota "
        "raised with `namespaces/update`.",
        "namespace 'orders' has used up its quota createsPerSecond of 50; nothing was written; create more slowly, or have "
        "the quota raised (namespaces/update)",
    ),
    "TOO_MANY_FAILURES": ErrorCode(
        "This address has sent too many invalid API keys.",
        "Stop, correct the key, and continue after `Retry-After`.",
        "too many requests with an invalid key from this address; correct the key, then retry",
    ),
    "HEADERS_TOO_LARGE": ErrorCode(
        "The request has too many headers, or its headers are too large.",
        "Send fewer or shorter headers.",
        "at most 100 headers with 32768 bytes in total are accepted",
    ),
    "INTERNAL": ErrorCode(
        "The server failed unexpectedly. Whether anything was written is unknown.",
        "Report the `correlationId` to the operator: the server's log has the cause under it.",
        "internal error; the server's log has the cause under the correlation id 5f0c1b7e9a3d2c41-2a",
    ),
    "SHARD_UNAVAILABLE": ErrorCode(
        "The timer's shard temporarily has no owner, or the outcome of the write is unknown.",
        f"{_RETRY} A create with an idempotency key is safe to repeat.",
        "shard 3 changed its owner; try again",
    ),
    "REQUEST_EXPIRED": ErrorCode(
        "The request exceeded its time budget while it waited. Nothing was written.",
        f"{_RETRY} If this happens often, the store is slow: see `tocsin_commit_duration_seconds`.",
        "the request's time budget ran out; nothing was written",
    ),
    "NO_ROOM_FOR_BODY": ErrorCode(
        "Request bodies that are still arriving use all the memory reserved for them.",
        f"{_RETRY} Send smaller batches, or one batch at a time. Setting: `api.request_bodies_bytes_max`.",
        "incomplete request bodies use all the memory reserved for them (api.request_bodies_bytes_max)",
    ),
    "INBOX_UNAVAILABLE": ErrorCode(
        "The inbox's database can't be asked, lacks the table, or did not answer in time. A replay or deletion may have been "
        "done in part.",
        "Mend what the message names; repeating the request is safe.",
        "postgresql://db.internal/shop: there is no table tocsin_outbox; create it with `tocsin inbox migrate`",
    ),
    "NOT_READY": ErrorCode(
        "`/readyz` only: the node should receive no traffic now. `errors` lists the reasons.",
        "Usually no action is needed: load balancers use other nodes meanwhile.",
        "the store does not answer",
    ),
    "STORE_FAILURE": ErrorCode(
        "The store failed. A write may have taken effect.",
        f"{_RETRY} If the error persists, the server's log has the store's own message.",
        "the store failed; try again (correlation id 5f0c1b7e9a3d2c41-2a)",
    ),
    "BROKER_UNAVAILABLE": ErrorCode(
        "The service agent cannot reach its message broker. The broker may have accepted the command.",
        f"{_RETRY} A submission with `serviceCallId` or `idempotencyKey` is safe to repeat.",
        "the broker can't be reached; try again",
    ),
    "COMMAND_UNANSWERED": ErrorCode(
        "The service agent did not respond in time. The command may have taken effect.",
        f"{_RETRY} A submission with `serviceCallId` or `idempotencyKey` is safe to repeat.",
        "no answer came within 10 s; try again",
    ),
    "COMMAND_FAILED": ErrorCode(
        "The service agent failed to handle the command. It may have taken effect.",
        f"{_RETRY} If the error persists, the server's log has the cause.",
        "the command failed; try again",
    ),
}


class AttemptFailure(NamedTuple):
    """Why an attempt failed: `repeated`: whether a timer's retry policy repeats it, `when` is the cause, `remedy` what
    to do about it."""

    repeated: bool
    when: str
    remedy: str


#: The codes with which `lastError` of a timer and `error` of its attempts begin, before a colon; `HTTP_<status>` stands for
#: the status in the receiver's response. Service calls have them as `errorMeta.kind`.
FAILURES: dict[str, AttemptFailure] = {
    "HTTP_<status>": AttemptFailure(
        True,
        "The receiver responded with a status other than 2xx. A 4xx status other than 408, 425, and 429 is final, except a "
        "401 to [a token that may have been revoked](../how-to/credentials.md#types).",
        "Check the receiver's log; `webhook-id` identifies the request there.",
    ),
    "NO_STREAM": AttemptFailure(
        True,
        "No stream of the NATS server takes the timer's subject, or JetStream is not ready.",
        "Create a stream for the subject, and check that the NATS server runs with JetStream.",
    ),
    "NATS_REFUSED": AttemptFailure(
        True,
        "The stream refused the message: it is full, for example. The text is that of JetStream.",
        "Check the limits of the stream.",
    ),
    "CALLBACK_NOT_OK": AttemptFailure(
        True,
        'The receiver responded 2xx with `"ok": false`.',
        "Check the receiver's log for the reason.",
    ),
    "INVALID_CALLBACK_RESPONSE": AttemptFailure(
        True,
        "The receiver responded 2xx with an invalid `nextExecuteAt` or `payload`, or, in a namespace with strict "
        'answers, with a body other than `{"ok": true}`.',
        "To complete the timer, respond 2xx with any other body; to reschedule it, send an RFC 3339 instant with a "
        "time zone.",
    ),
    "NO_RESULT": AttemptFailure(
        True,
        "The timer was sent in a batch, and the response, 2xx, has no readable result for it, or is too long.",
        "Answer with one result for each item, under its `webhookId`, as the receivers of the client libraries do.",
    ),
    "TIMEOUT": AttemptFailure(
        True,
        "No connection or no complete response within the timeout.",
        "Respond first and work afterwards, or raise `callbackTimeoutSeconds` (service calls: "
        "`agent.request_timeout`).",
    ),
    "CONNECTION_FAILED": AttemptFailure(
        True,
        "The connection could not be established.",
        "Check the address and port, and that the receiver is running.",
    ),
    "CONNECTION_CLOSED": AttemptFailure(
        True,
        "The connection closed before the response was complete. The receiver may have done its work.",
        "Check for crashes, proxy timeouts, and servers that close idle connections early.",
    ),
    "NAME_NOT_RESOLVED": AttemptFailure(
        True,
        "The host name has no address.",
        "Check the host name and the name servers.",
    ),
    "TLS_FAILED": AttemptFailure(
        True,
        "The TLS handshake failed.",
        "Check the receiver's certificate: host name, validity dates, issuer.",
    ),
    "BAD_RESPONSE": AttemptFailure(
        True,
        "The response is not HTTP, or its headers are too large.",
        "Check that the port speaks HTTP/1.1.",
    ),
    "EGRESS_REFUSED": AttemptFailure(
        False,
        "Calls to this address are not allowed: it is private, loopback, link-local, or a metadata service. A service "
        "call fails; a timer is suspended instead, without an attempt.",
        "Ask the operator to allow it with `egress.allow`, or use a public address.",
    ),
    "SECRET_UNREADABLE": AttemptFailure(
        False,
        "A secret of the request, or one that signs it, can't be decrypted: the node lacks its key, or it was changed in the "
        "store. A service call fails; a timer is suspended instead, without an attempt.",
        "Add the key to `secrets.key_file` and restart the node, or send the secret again.",
    ),
    "INVALID_REQUEST": AttemptFailure(
        False,
        "The stored URL, method, headers, or body do not form a valid request.",
        "Create the timer again with a valid URL, method, headers, and body.",
    ),
    "INVALID_SECRET": AttemptFailure(
        True,
        "The namespace's signing secret is invalid.",
        "Set a new secret for the namespace.",
    ),
    "SHUTDOWN": AttemptFailure(
        True,
        "The server stopped during the attempt. The receiver may have received the request.",
        "No action is needed: the attempt is repeated.",
    ),
    "EXPIRED": AttemptFailure(
        False,
        "No attempt may begin any more: the timer's `expireAfter` is over. The error of its last attempt, if there was one, "
        "comes first.",
        "To call the receiver nevertheless, create the timer again. If timers expire often, check for long outages, a paused "
        "namespace, and a destination that occupies all slots, or allow more time.",
    ),
    "HTTP_STATUS": AttemptFailure(
        True,
        "Service calls only: the service responded with a status other than 2xx; see `responseMeta`. A 4xx status "
        "other than 408, 425, and 429 is final, except a 401 to [a token that may have been "
        "revoked](../how-to/credentials.md#types).",
        "Check the response stored with the call.",
    ),
    "INTERRUPTED": AttemptFailure(
        True,
        "Service calls only: the process stopped during the request, and the call has used all its executions "
        "(`agent.executions_max`).",
        "Find out whether the request took effect before submitting it again.",
    ),
    "START_TIMEOUT": AttemptFailure(
        True,
        "Service calls only: the request did not start within `agent.start_timeout`. It was not sent.",
        "Submit it again; check for a destination that occupies all slots.",
    ),
    "WATCHDOG_TIMEOUT": AttemptFailure(
        True,
        "Service calls only: the request started, and its record is missing.",
        "Find out whether the request took effect before submitting it again.",
    ),
}

#: Why a timer is suspended, as its `suspended` begins: cause and remedy.
SUSPENSIONS: dict[str, tuple[str, str]] = {
    "egress": (
        "This server does not call its address.",
        "Allow the address with `egress.allow` and restart the node, or give the timer another URL.",
    ),
    "secret": (
        "One of its secrets, or one that signs it, can't be decrypted.",
        "Add the key to `secrets.key_file` and restart the node, or send the secret again.",
    ),
    "credential:": (
        "Its credential has no token yet, does not exist, or may not go to its URL.",
        "Test it with `tocsin credentials test`, and put it again.",
    ),
    "namespace:": (
        "Its namespace is paused, or has more due timers than fit into memory.",
        "Resume the namespace; otherwise no action is needed.",
    ),
    "destination:": (
        "Its destination is paused or down, or has more due timers than fit into memory.",
        "`tocsin destinations list` shows which; resume it, or mend the receiver.",
    ),
    "flow:": (
        "Its flow is paused, or has more due timers than fit into memory.",
        "`tocsin flows get` shows which; resume it, or raise its limits.",
    ),
    "bad_record:": (
        "What is stored of it can't be decoded, or its result could not be written.",
        "Read it, delete it, and create it again; the log has the cause.",
    ),
}

#: The codes with which a command ends, with cause and remedy.
EXIT_CODES: list[tuple[int, str, str]] = [
    (0, "Success. Of `serve`: it was asked to stop.", "No action is needed."),
    (
        EXIT_REFUSED,
        "The server or the store refused the command, or what it watched failed. Of `doctor`: a check failed. Of `serve`: it "
        "could not start. A command of several steps may have done a part of them.",
        "Read the message on standard error; it begins with a code above if the server refused.",
    ),
    (
        EXIT_USAGE,
        "The arguments or the settings are invalid. Nothing was done.",
        "Correct the option or setting that the message names; `--help` lists them.",
    ),
    (
        EXIT_UNREACHABLE,
        "The server did not answer. The command may have taken effect.",
        "Check `--server`, or `TOCSIN_URL`. Repeat the command; with an idempotency key a create is safe to repeat.",
    ),
    (
        EXIT_CHANGES,
        "Of `apply --detailed-exitcode`: something had to change, and nothing went wrong.",
        "No action is needed.",
    ),
    (
        EXIT_FATAL,
        "Of `serve`: an error after which it can't go on, such as a damaged store. Nothing acknowledged is lost.",
        "Read `fatal engine error` in the log; let a supervisor start it again.",
    ),
    (
        EXIT_MOVED,
        "Of `serve`: `tocsin transfer --online` has moved the store.",
        "Start it with the new `--store`.",
    ),
    (
        EXIT_INTERRUPTED,
        "Ctrl-C. Of `serve`: the second one, which did not wait for callbacks in flight.",
        "No action is needed: such callbacks are repeated after the next start.",
    ),
    (
        EXIT_FORCED + signal.SIGTERM,
        "SIGTERM. Of `serve`: the second one.",
        "As with 130. If a supervisor sends the second one, have it wait longer.",
    ),
]


def error_classes_by_code() -> dict[str, list[type[TocsinError]]]:
    """The loaded error classes that clients see with a separate code, by code."""
    found: dict[str, list[type[TocsinError]]] = {}
    waiting, internal = [TocsinError], problem_kind_of_class(TocsinError)
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        # Each kind of missing object has a more precise code than NotFound.
        if kind is not NotFound and (kind is TocsinError or problem_kind_of_class(kind) is not internal):
            found.setdefault(kind.code, []).append(kind)
    return found


@cache
def kind_of_code(code: str) -> ProblemKind:
    """The HTTP response to the errors with this code."""
    return problem_kind_of_class(error_classes_by_code()[code][0])
