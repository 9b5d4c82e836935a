"""What this SDK makes of the cases in `sdks/vectors`, by the file's name: the driver and the unit tests use it."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tocsin_client import CreateTimer, Try, errors
from tocsin_client._core.addresses import base_of, key_of
from tocsin_client._core.answers import error_of
from tocsin_client._core.ids import shard_of, timer_uuid
from tocsin_client._core.outbox import ROWS_MAX, OutboxTable, Row, is_final
from tocsin_client._core.retries import RETRY_COST, RetryBudget, retry_delay
from tocsin_client._core.steps import Reply
from tocsin_client._values import format_duration, format_instant, parse_duration, parse_instant
from tocsin_client.receiver import Answer, Batch, Firing, Receiver, done, fail, reschedule_at, retry, sign_body


def failure(error: BaseException) -> dict[str, Any]:
    """An error as the harness compares it."""
    if isinstance(error, asyncio.CancelledError):
        return {"classes": ["Canceled"]}
    if not isinstance(error, errors.TocsinError):
        return {"classes": ["Crash"], "message": "".join(traceback.format_exception(error))}
    known: dict[str, Any] = {
        "classes": [each.__name__ for each in type(error).__mro__ if issubclass(each, errors.TocsinError)]
    }
    if isinstance(error, errors.InvalidArgument):
        known["message"] = str(error)
    if isinstance(error, errors.TransportError):
        known["maybeDone"] = error.maybe_done
    if isinstance(error, errors.ApiError):
        known |= {"status": error.status, "code": error.code, "message": error.message}
        known |= {"fields": [vars(each) for each in error.fields], "correlationId": error.correlation_id}
        known["retryAfter"] = error.retry_after
    return {name: value for name, value in known.items() if value not in (None, "")}


def answer_of(wanted: dict[str, Any]) -> Answer:
    """The answer that a scenario's handler gives."""
    ((kind, given),) = wanted.items()
    if kind == "raise":
        raise RuntimeError(given)
    if kind == "rescheduleAt":
        return reschedule_at(
            parse_instant(given["at"]), **({"payload": given["payload"]} if "payload" in given else {})
        )
    return {"done": lambda: done(), "retry": lambda: retry(given.get("after")), "fail": lambda: fail(given["reason"])}[
        kind
    ]()


def signed(given: dict[str, Any]) -> dict[str, Any]:
    """Whether a receiver accepts a request."""
    now = parse_instant(given["now"]).timestamp
    receiver = Receiver(given["secrets"], tolerance=given["toleranceSeconds"], now=now)
    refused = receiver._refusal(given["headers"], given["body"].encode())
    return {"valid": True} if refused is None else {"error": refused.body.decode()}


def answered(given: dict[str, Any]) -> dict[str, Any]:
    """What a receiver responds to a handler's answer."""
    headers = {"webhook-id": "x", "webhook-timestamp": "1"}
    response = Receiver(unsigned=True).handle(headers, b"", lambda _: answer_of(given["answer"]))
    body = {"body": json.loads(response.body)} if "json" in response.headers.get("content-type", "") else {}
    return {"status": response.status, "headers": dict(response.headers), **body}


def fired(given: dict[str, Any]) -> dict[str, Any]:
    """What a receiver that checks no signature reads of a request."""
    read = Receiver(unsigned=True).verify(given["headers"], given["body"].encode())
    assert not isinstance(read, Batch)
    return shown_firing(read) if isinstance(read, Firing) else {"error": read.body.decode()}


def batched(given: dict[str, Any]) -> dict[str, Any]:
    """What a receiver that checks no signature reads of a batch, and responds."""
    firings: list[Firing] = []

    def handler(firing: Firing) -> Answer:
        firings.append(firing)
        return answer_of(given["answers"][firing.timer_id])

    response = Receiver(unsigned=True).handle(given["headers"], given["body"].encode(), handler)
    if not firings:
        return {"error": response.body.decode()}
    shown = [shown_firing(each) for each in firings]
    return {"status": response.status, "body": json.loads(response.body), "firings": shown}


def shown_firing(read: Firing) -> dict[str, Any]:
    """A firing as the harness compares it."""
    names = {"webhookId": read.webhook_id, "timerId": read.timer_id, "namespace": read.namespace}
    instants = {"executeAt": format_instant(read.execute_at), "firedAt": format_instant(read.fired_at)}
    return {**names, **instants, "attempt": read.attempt, "payload": read.payload}


def budgeted(given: dict[str, Any]) -> dict[str, Any]:
    budget, results = RetryBudget(), []
    for event in given["events"]:
        result = {}
        if "retries" in event:
            result["allowed"] = sum(budget.spend() for _ in range(event["retries"]))
        for _ in range(event.get("successes", 0)):
            budget.earn(event["paid"], event["paid"])
        results.append({**result, "left": round(budget.left / RETRY_COST, 1)})
    return {"results": results}


def line_of(given: dict[str, Any]) -> dict[str, Any]:
    known = {"status": None, "code": None, "error": None, "pauseSeconds": None, **given}
    return {"line": str(Try(pause_seconds=known.pop("pauseSeconds"), **known))}


def delayed(given: dict[str, Any]) -> dict[str, Any]:
    delay = retry_delay(given["attempt"], given.get("retryAfter"), given["leftSeconds"], lambda: given["random"])
    return {"error": "give up"} if delay is None else {"delaySeconds": delay}


def reply_of(given: dict[str, Any]) -> Reply:
    body = given["body"]
    return Reply(given["status"], given["headers"], (body if isinstance(body, str) else json.dumps(body)).encode())


def placed(given: dict[str, Any]) -> dict[str, Any]:
    name = given["namespace"], given["id"]
    return {"timerUuid": str(timer_uuid(*name)), "shardId": shard_of(*name, given["numShards"], given["totalShards"])}


def outboxed(given: dict[str, Any]) -> dict[str, Any]:
    """What the outbox makes of a statement, a timer, a row or a refusal."""
    table = OutboxTable()
    if "statement" in given:
        dialect = given["dialect"]
        if given["statement"] == "table":
            return {"text": table.create(dialect)}
        if given["statement"] == "insert":
            return {"text": table.insert(CreateTimer(namespace="n", id="i", callback_url="https://x.example"), 0)[0]}
        if given["statement"] == "delete":
            return {"text": table.delete(dialect, 2)}
        return {"text": next(table.take(dialect, ROWS_MAX, 0))[0]}
    if "timer" in given:
        _, (_, namespace, timer_id, request, *_) = table.insert(given["timer"], 0)
        return {"namespace": namespace, "timerId": timer_id, "request": json.loads(request)}
    if "send" in given:
        row = given["send"]
        return {"timer": Row(row["id"], json.dumps(row["request"]), row["createdAt"]).timer(given["now"])}
    refused = given["refused"]
    return {"dead": is_final(errors.ApiError("", status=refused["status"], code=refused["code"]))}


VECTORS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "placement": placed,
    "signatures": signed,
    "signing": lambda given: {
        "signature": sign_body(given["secrets"], given["webhookId"], given["timestamp"], given["body"].encode())
    },
    "instants": lambda given: {"text": format_instant(parse_instant(given["text"]))},
    "durations": lambda given: (
        {"microseconds": parse_duration(given["text"]) // timedelta(microseconds=1)}
        if "text" in given
        else {"text": format_duration(timedelta(microseconds=given["microseconds"]))}
    ),
    "answers": answered,
    "errors": lambda given: failure(error_of(reply_of(given))),
    "retries": delayed,
    "firings": fired,
    "batches": batched,
    "budget": budgeted,
    "tries": line_of,
    "keys": lambda given: {"key": key_of(given["key"])},
    "outbox": outboxed,
    "urls": lambda given: {"base": base_of(given["url"])},
}
