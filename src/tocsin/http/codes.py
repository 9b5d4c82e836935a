"""The error codes of the API: what each means and what its receiver does. The OpenAPI document and
`docs/reference/errors.md` are made from this table; a test sees that it has every code that can be answered."""

from __future__ import annotations

from typing import NamedTuple


class Code(NamedTuple):
    """`status` is the HTTP status, `when` what happened, `remedy` what to do about it, `example` a message with this code."""

    status: int
    when: str
    remedy: str
    example: str


_AGAIN = "Send the same request again after `Retry-After`."

CODES: dict[str, Code] = {
    "INVALID_INPUT": Code(
        400,
        "A field is missing, unknown, of the wrong type or outside a limit, or the query has an unknown parameter. Nothing "
        "was written.",
        "Mend the fields that `errors` names; each reason says what would be right.",
        "delay: is not a duration; write it as 30s",
    ),
    "MALFORMED_BODY": Code(
        400,
        "The body isn't JSON, or not UTF-8. Nothing was written.",
        "Send one JSON value in UTF-8. The message names the byte.",
        "the body is not JSON: it ends too early",
    ),
    "MALFORMED_REQUEST": Code(
        400,
        "What came over the connection isn't HTTP/1.1. The connection is closed.",
        "Look for a proxy or client that speaks another protocol, such as TLS to a plain port.",
        "the request is not HTTP: invalid method",
    ),
    "TOO_MANY_TAGS": Code(
        400,
        "The service call has as many tags as it may have.",
        "Remove a tag first.",
        "a service call has at most 16 tags",
    ),
    "UNAUTHENTICATED": Code(
        401,
        "No API key was sent where one is needed, or one that is unknown, revoked or expired.",
        "Send `Authorization: Bearer <key>`; `tocsin keys create` makes a key.",
        "this needs an API key: authorization: Bearer tk_…",
    ),
    "FORBIDDEN": Code(
        403,
        "The key's role doesn't allow this operation, or the key is for other namespaces or tenants.",
        "Use a key of the role that the operation's description names, for this namespace or tenant.",
        "this key may not write in namespace 'orders'",
    ),
    "TIMER_NOT_FOUND": Code(
        404,
        "No pending timer has this namespace and id, and no finished one that is still kept.",
        "Check namespace and id. Finished timers are kept for the namespace's `retention`, if its `history` keeps them.",
        "no timer 'order-17-reminder' in namespace 'default'",
    ),
    "NAMESPACE_NOT_FOUND": Code(
        404,
        "There is no namespace of this name.",
        "Create it with `namespaces/create`, or check its name.",
        "there is no namespace 'orders'; create it first with namespaces/create",
    ),
    "SERVICE_CALL_NOT_FOUND": Code(
        404,
        "The tenant has no service call of this id, or it is no longer kept.",
        "Check tenant and id. Finished calls are kept for the setting `agent.retention`.",
        "the tenant has no service call 01890a5d-ac96-774b-bcce-b302099a8058",
    ),
    "KEY_NOT_FOUND": Code(
        404,
        "There is no API key of this id, or none that the caller's key covers.",
        "Check the id; `keys/list` shows those that there are.",
        "no key has the id '1f0c9a7be2d4'",
    ),
    "ROUTE_NOT_FOUND": Code(
        404,
        "Nothing answers under this path, or the service agent is switched off on this server.",
        "Check the path; `/docs` shows all operations.",
        "nothing answers under /api/v1/timer/create; see /docs",
    ),
    "METHOD_NOT_ALLOWED": Code(
        405,
        "The path exists, but not with this method.",
        "Use a method that the header `Allow` names.",
        "GET is not allowed here; use POST",
    ),
    "REQUEST_TIMEOUT": Code(
        408,
        "The request didn't arrive completely within its time. The connection is closed.",
        "Send it again; look for a slow client or network.",
        "the body was not complete after 30 s",
    ),
    "CONFLICT": Code(
        409,
        "Others changed the same thing at the same time, again and again.",
        "Look at it, then send the change again.",
        "namespace 'orders' was changed by others 10 times meanwhile; try again",
    ),
    "TIMER_NOT_PENDING": Code(
        409,
        "The timer has finished: it can no longer be changed or canceled.",
        "Create it again if it is to fire again; its id is free.",
        "timer 'order-17-reminder' has finished; create it again to start anew",
    ),
    "TIMER_EXISTS": Code(
        409,
        'A timer of this id exists, and the create said `onConflict: "reject"`. Nothing was written.',
        "Take the existing timer for yours, or choose another id, or another `onConflict`.",
        "timer 'order-17-reminder' exists in namespace 'default'",
    ),
    "ROTATION_PENDING": Code(
        409,
        "A secret that was replaced still signs, within the grace of its rotation. Nothing was changed.",
        "Wait until the grace is over, or send `force: true` if receivers know the present secret.",
        "the secret was rotated a moment ago; wait, or send force: true",
    ),
    "TOO_MANY_KEYS": Code(
        409,
        "There are as many API keys as there may be. Nothing was written.",
        "Revoke keys that nobody uses.",
        "there are 1000 keys; at most 1000 are kept: revoke those that nobody uses",
    ),
    "NAMESPACE_EXISTS": Code(
        409,
        "A namespace of this name exists.",
        "Use it, or change it with `namespaces/update`.",
        "a namespace 'orders' already exists",
    ),
    "SERVICE_CALL_NOT_SCHEDULED": Code(
        409,
        "The service call has begun or ended: it can no longer be deleted.",
        "Nothing: read its outcome.",
        "the service call is Running already",
    ),
    "IDEMPOTENCY_CONFLICT": Code(
        409,
        "The same idempotency key, or service call id, came before with another content. Nothing was written.",
        "Use a new key for a new request, and repeat a request unchanged.",
        "another request was sent with this idempotency key before",
    ),
    "BODY_TOO_LARGE": Code(
        413,
        "The body is longer than the operation accepts.",
        "Send less, or smaller batches. Settings: `api.request_bytes_max`, `api.batch_request_bytes_max`.",
        "the body has 300000 bytes; at most 262144 are accepted",
    ),
    "PAYLOAD_TOO_LARGE": Code(
        413,
        "The timer's payload, or the body of the service call's request, exceeds its limit; nothing else is wrong.",
        "Keep large data elsewhere and send a reference. Settings: `payload_bytes_max`, `agent.request_body_bytes_max`.",
        "payload: is 200000 bytes long; at most 102400 are accepted",
    ),
    "UNSUPPORTED_MEDIA_TYPE": Code(
        415,
        "The body isn't declared as JSON in UTF-8, or is compressed.",
        "Send `content-type: application/json`, without `content-encoding`.",
        "the content-type header is missing; send content-type: application/json",
    ),
    "OVERLOADED": Code(
        429,
        "A limit on waiting work is reached. Nothing was accepted.",
        f"{_AGAIN} Send fewer at once if it stays so.",
        "10000 writes are already waiting (pending_writes_max); try again later",
    ),
    "TOO_MANY_FAILURES": Code(
        429,
        "This address sent wrong API keys again and again.",
        "Stop, mend the key, and go on after `Retry-After`.",
        "too many wrong keys came from this address; try again in 30 s",
    ),
    "HEADERS_TOO_LARGE": Code(
        431,
        "The request has too many headers, or they are too long.",
        "Send fewer or shorter headers.",
        "at most 100 headers with 32768 bytes in all are accepted",
    ),
    "INTERNAL": Code(
        500,
        "The server failed in a way that it doesn't know. Whether something was written is unknown.",
        "Tell the operator the `correlationId`: the log has the reason under it.",
        "something went wrong on the server; it was logged under the correlation id 5f0c1b7e9a3d2c41-2a",
    ),
    "SHARD_UNAVAILABLE": Code(
        503,
        "The timer's shard has no owner for a moment, or the outcome of the write is unknown.",
        f"{_AGAIN} A create with an idempotency key can be repeated safely.",
        "shard 3 changed its owner; try again",
    ),
    "REQUEST_EXPIRED": Code(
        503,
        "The request waited so long that its time was over. Nothing was written.",
        f"{_AGAIN} Where it happens often, the store is slow: see `tocsin_commit_duration_seconds`.",
        "the request's time budget ran out; nothing was written",
    ),
    "CLUSTER_UPGRADING": Code(
        503,
        "The request uses a feature that a node of an earlier release couldn't read. Nothing was written.",
        "Send it again once every node runs this release.",
        "a node of an earlier release is in the cluster; try again when all nodes run this one",
    ),
    "NO_ROOM_FOR_BODY": Code(
        503,
        "Request bodies that are still arriving take all the memory that they may.",
        f"{_AGAIN} Send smaller batches, or one after another. Setting: `api.request_bodies_bytes_max`.",
        "unfinished request bodies take all the memory there is for them (api.request_bodies_bytes_max)",
    ),
    "NOT_READY": Code(
        503,
        "`/readyz` only: the node should get no traffic now. `errors` has the reasons.",
        "Nothing, as a rule: load balancers use other nodes meanwhile.",
        "the store does not answer",
    ),
    "STORE_FAILURE": Code(
        503,
        "The store didn't answer as it should. A write may have taken effect.",
        f"{_AGAIN} If it stays so, the server's log has the store's own words.",
        "the store did not answer as it should; try again (correlation id 5f0c1b7e9a3d2c41-2a)",
    ),
    "BROKER_UNAVAILABLE": Code(
        503,
        "The service agent's message broker can't be reached. The command may have been taken.",
        f"{_AGAIN} A submission with `serviceCallId` or `idempotencyKey` can be repeated safely.",
        "the broker can't be reached; try again",
    ),
    "COMMAND_UNANSWERED": Code(
        503,
        "The service agent didn't answer in time. The command may have taken effect.",
        f"{_AGAIN} A submission with `serviceCallId` or `idempotencyKey` can be repeated safely.",
        "no answer came within 10 s; try again",
    ),
    "COMMAND_FAILED": Code(
        503,
        "The service agent failed at the command. It may have taken effect.",
        f"{_AGAIN} If it stays so, the server's log has the reason.",
        "the command failed; try again",
    ),
}


class Failure(NamedTuple):
    """Why an attempt failed: `repeated` says whether a timer's retry policy repeats it, `when` what happened, `remedy` what
    to do about it."""

    repeated: bool
    when: str
    remedy: str


#: The words with which `lastError` of a timer and `error` of its attempts begin, before a colon; `HTTP_<status>` stands for
#: the status that the receiver answered. Service calls have them as `errorMeta.kind`.
FAILURES: dict[str, Failure] = {
    "HTTP_<status>": Failure(
        True,
        "The receiver answered with a status other than 2xx. 4xx other than 408, 425 and 429 is final.",
        "Look at the receiver's log; `webhook-id` finds the request there.",
    ),
    "CALLBACK_NOT_OK": Failure(
        True, 'The receiver answered 2xx with `"ok": false`.', "Look at the receiver's log for its reason."
    ),
    "INVALID_CALLBACK_RESPONSE": Failure(
        True,
        "The receiver answered 2xx with a `nextExecuteAt` or `payload` that can't be used, or, in a namespace with strict "
        'answers, with another body than `{"ok": true}`.',
        "Answer 2xx with any other body when it is done; send an RFC 3339 instant with a time zone to be called again.",
    ),
    "TIMEOUT": Failure(
        True,
        "There was no complete answer in time, or no connection.",
        "Answer first and work afterwards, or raise `callbackTimeoutSeconds` (service calls: `agent.request_timeout`).",
    ),
    "CONNECTION_FAILED": Failure(
        True, "No connection could be established.", "Check address and port, and that the receiver runs."
    ),
    "CONNECTION_CLOSED": Failure(
        True,
        "The connection ended before the answer was complete. The receiver may have done its work.",
        "Look for crashes, time-outs of proxies, and servers that close idle connections early.",
    ),
    "NAME_NOT_RESOLVED": Failure(True, "The host's name has no address.", "Check the name and the name servers."),
    "TLS_FAILED": Failure(
        True, "No TLS connection came about.", "Check the receiver's certificate: its name, its dates, its issuer."
    ),
    "BAD_RESPONSE": Failure(
        True, "What came back isn't HTTP, or its headers are too long.", "Check that the port speaks HTTP/1.1."
    ),
    "EGRESS_REFUSED": Failure(
        False,
        "The address may not be called: it is private, loopback, link-local or a metadata service.",
        "Let the operator allow it with `egress.allow`, or use a public address.",
    ),
    "INVALID_REQUEST": Failure(
        False,
        "The request can't be put together from what is stored.",
        "Create it again with a valid URL, method, headers and body.",
    ),
    "INVALID_SECRET": Failure(
        True, "The namespace's signing secret can't be used.", "Give the namespace a new secret."
    ),
    "SHUTDOWN": Failure(
        True, "The server stopped during the attempt. The receiver may have got it.", "Nothing: it is repeated."
    ),
    "HTTP_STATUS": Failure(
        False,
        "Service calls only: the service answered with a status other than 2xx, which `responseMeta` has.",
        "Look at the answer that is kept with the call.",
    ),
    "INTERRUPTED": Failure(
        False,
        "Service calls only: the process ended during the request, as often as a call may be begun (`agent.executions_max`).",
        "Find out whether the request took effect before submitting it again.",
    ),
    "START_TIMEOUT": Failure(
        False,
        "Service calls only: the request was not begun within `agent.start_timeout`. It was not sent.",
        "Submit it again; look for a destination that takes all slots.",
    ),
    "WATCHDOG_TIMEOUT": Failure(
        False,
        "Service calls only: the request had begun, and its record is gone.",
        "Find out whether the request took effect before submitting it again.",
    ),
}
