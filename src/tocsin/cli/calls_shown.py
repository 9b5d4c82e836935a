"""Output of service calls for people: one call with its executions, a list, a trace."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tocsin.cli import output
from tocsin.model.instants import format_instant, parse_instant

if TYPE_CHECKING:
    from rich.table import Table

#: Characters of a body in a table; --json has all that was stored.
BODY_CHARS_MAX = 200
_INSTANT = re.compile(r"\A\d{4}-\d\d-\d\dT([0-9:.]+Z)\Z")


def show_call(call: Mapping[str, Any]) -> None:
    """Prints one call: the fields that the response has."""
    request = call.get("requestSpec") or {}
    fields = {
        "serviceCallId": call["serviceCallId"],
        "name": call.get("name"),
        "status": call["status"],
        "attempts": _attempts(call),
        "nextAttemptAt": _with(call.get("nextAttemptAt"), output.relative(call.get("nextAttemptAt"))),
        "outcome": outcome_text(call.get("outcome")) or None,
        "answer": _answer(call.get("outcome")),
        "request": f"{request['method']} {request['url']}" if request else None,
        "headers": output.compact(request.get("headers")),
        "credential": request.get("credential"),
        "body": _shortened(output.compact(request.get("body"))),
        "retryPolicy": output.compact(request.get("retryPolicy")),
        "onFailure": output.compact(call.get("onFailure")),
        "onSuccess": output.compact(call.get("onSuccess")),
        "tags": ", ".join(call.get("tags") or ()) or None,
        "flowKey": call.get("flowKey"),
        "waitsFor": call.get("waitsFor"),
        "submittedAt": call.get("submittedAt"),
        "dueAt": _with(call.get("dueAt"), output.relative(call.get("dueAt"))),
        "startedAt": _with(call.get("startedAt"), lag_text(call)),
        "finishedAt": _with(call.get("finishedAt"), took_text(call)),
        "correlationId": call.get("correlationId"),
    }
    output.print_fields(fields)
    if call.get("executions"):
        output.console().print(execution_table(call["executions"]))


def show_list(calls: Sequence[Mapping[str, Any]], tenant: str | None) -> None:
    """Prints a line for each call, with its tenant where `tenant` is all of them. A narrow terminal truncates texts, never
    ids; files and pipes get everything."""
    from rich.table import Column

    console = output.console()
    fixed = (Column(name, no_wrap=True) for name in (*output.scope_column(tenant, "tenant"), "id", "status", "due"))
    table = output.plain_table(*fixed, "name", "outcome", "tags", "request")
    for call in calls:
        texts = [
            output.shown(call["name"], name=True),
            output.shown(outcome_text(call.get("outcome"), short=True)),
            output.shown(", ".join(call.get("tags") or ())),
            output.shown(f"{call['requestSpec']['method']} {call['requestSpec']['url']}"),
        ]
        for text in texts:
            # Columns may shrink; their texts then end in an ellipsis instead of wrapping.
            text.no_wrap, text.overflow = console.is_terminal, "ellipsis"
        table.add_row(
            *map(output.shown, output.scope_column(tenant, call["tenantId"])),
            output.shown(call["serviceCallId"]),
            output.shown(call["status"], output.STATUS_STYLES.get(call["status"], "")),
            output.relative(call.get("nextAttemptAt") or call["dueAt"]),
            *texts,
        )
    console.print(table)


def show_trace(trace: Mapping[str, Any]) -> None:
    """Prints a line for each row and message, in order of time; results of a message are indented under it."""
    output.console().print(trace_table(trace))


def outcome_text(outcome: Mapping[str, Any] | None, *, short: bool = False) -> str:
    """`200 in 12.3 ms`, or the error's kind and message; empty without an outcome."""
    response, error = (outcome or {}).get("responseMeta"), (outcome or {}).get("errorMeta")
    if error:
        return str(error["kind"]) if short else f"{error['kind']}: {error['message']}"
    if response:
        return f"{response['status']}" if short else f"{response['status']} in {response['latencyMs']:,.1f} ms"
    return ""


def _attempts(call: Mapping[str, Any]) -> str | None:
    """`1 of 10`; None for a call without a policy, whose count is evident."""
    policy = (call.get("requestSpec") or {}).get("retryPolicy")
    return f"{call['attempts']} of {policy['maxAttempts']}" if policy else None


def lag_text(call: Mapping[str, Any]) -> str:
    """The delay from the due time (or the submission, if later) to the start; empty if there was more than one execution."""
    if not call.get("startedAt") or len(call.get("executions") or ()) > 1:
        return ""
    due = max(parse_instant(call["dueAt"]), parse_instant(call["submittedAt"]))
    return f"{(parse_instant(call['startedAt']) - due) / 1e3:+,.1f} ms"


def took_text(call: Mapping[str, Any]) -> str:
    """The duration from start to end."""
    if not (call.get("startedAt") and call.get("finishedAt")):
        return ""
    return f"{(parse_instant(call['finishedAt']) - parse_instant(call['startedAt'])) / 1e3:,.1f} ms"


def execution_table(executions: Sequence[Mapping[str, Any]]) -> Table:
    """A table with one row for each execution."""
    from rich.table import Column

    table = output.plain_table("#", Column("execution", no_wrap=True), "started", "took", "answer", "error")
    for execution in executions:
        response = execution.get("response") or {}
        cells = (
            execution.get("number", ""),
            execution["executionId"],
            # The call's own fields show the date.
            execution["startedAt"].partition("T")[2],
            took_text(execution),
            response.get("status", ""),
            execution.get("errorMessage") or "",
        )
        table.add_row(*map(output.shown, cells))
    return table


def trace_table(trace: Mapping[str, Any]) -> Table:
    """A table of the trace: the first entry's time in full, the others' as the distance from it."""
    from rich.table import Column

    entries = trace["entries"]
    depths = _depths(entries)
    detail = Column("detail", no_wrap=True, overflow="ellipsis", ratio=1)
    time, what = Column("time", justify="right", no_wrap=True), Column("what", no_wrap=True)
    table = output.plain_table(time, what, "from", detail, expand=True)
    began = parse_instant(entries[0]["at"]) if entries else 0
    for number, entry in enumerate(entries):
        distance_us = parse_instant(entry["at"]) - began
        at = f"+{distance_us / 1e3:,.1f} ms" if number else format_instant(began)[11:]
        message = entry["kind"] == "message"
        table.add_row(
            at,
            output.shown("  " * depths[number] + entry["name"], "bold" if message else ""),
            output.shown(entry["kind"], "dim"),
            output.shown(_detail(entry["detail"]), "dim"),
        )
    return table


def _depths(entries: Sequence[Mapping[str, Any]]) -> list[int]:
    """The number of the trace's messages in each entry's chain of causes. Causes are looked up by id: within one
    millisecond, the order of entries proves nothing."""
    causes = {entry["id"]: entry.get("causationId") for entry in entries if entry["kind"] == "message"}

    def depth(cause: str | None) -> int:
        steps: list[str] = []
        while cause is not None and cause in causes and cause not in steps:
            steps.append(cause)
            cause = causes[cause]
        return len(steps)

    return [depth(entry.get("causationId")) for entry in entries]


def _detail(detail: Mapping[str, Any]) -> str:
    parts = []
    for name, value in detail.items():
        if name not in ("serviceCallId", "tenantId") and value is not None and value != "":
            # Every entry is about the same call, whose ids are known.
            text = value if isinstance(value, str) else output.compact(value)
            # The date is evident from the entry's own time.
            text = _INSTANT.sub(r"\1", text or "")
            parts.append(f"{name}={_shortened(text)}")
    return "  ".join(parts)


def _answer(outcome: Mapping[str, Any] | None) -> str | None:
    snippet = ((outcome or {}).get("responseMeta") or {}).get("bodySnippet")
    return _shortened(snippet) or None


def _shortened(text: str | None) -> str | None:
    if text is None or len(text) <= BODY_CHARS_MAX:
        return text
    return text[: BODY_CHARS_MAX - 1] + "…"


def _with(instant: str | None, remark: str) -> str | None:
    return f"{instant} ({remark})" if instant and remark else instant
