"""`/calls/{tenantId}/{serviceCallId}`: the page of one service call."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from msgspec import UNSET
from starlette.responses import Response

from tocsin.model.access import Role
from tocsin.model.redaction import redact_url
from tocsin.service_calls.messages import CallStatus
from tocsin.service_calls.ports import CallRecord, ExecutionRecord
from tocsin.web.pages.calls.presentation import STAR, finished, path, redacted, result_of, version
from tocsin.web.pages.calls.trace import trace_lines
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.presentation import TimelineEntry, milliseconds, pretty_json
from tocsin.web.pages.site import CallPart, route

#: Notices after an action, by the `notice` parameter of the redirect.
NOTICES = {
    "submitted": "Call submitted. It is stored and survives crashes.",
    "tagged": "Tag added.",
    "untagged": "Tag removed.",
}


class CallDetail(CallPart):
    """The page of one call. Its paths must come after the fixed paths under /calls."""

    @route("GET", "/calls/{tenant}/{id}")
    async def show(self, context: RequestContext) -> Response:
        """The page, or for a script the part of it that changes while it is open."""
        parameters = context.request.path_params
        return await self.of(context, parameters["tenant"], parameters["id"])

    async def of(
        self,
        context: RequestContext,
        tenant: str,
        service_call_id: str,
        *,
        status: int = 200,
        problem: str = "",
        tag: str = "",
    ) -> Response:
        """The page of a call; `problem` is the reason why an action on it was refused, `tag` the tag that was entered."""
        context.permit_tenant(Role.READ, tenant)
        change_counter = self._site.call_statistics.change_counter(tenant)
        call, executions = await context.calls.get(tenant, service_call_id)
        spec = call.request_spec
        is_finished = finished(call)
        return self._pages.page(
            "calls/detail_live.html" if context.fragment else "calls/detail.html",
            context,
            status,
            title=call.name,
            call=call,
            finished=is_finished,
            shown_version=version(call, executions),
            url=redact_url(spec.url),
            headers=redacted(spec.headers),
            body="" if spec.body is UNSET else pretty_json(bytes(spec.body)),
            result=result_of(call),
            executions=executions,
            timeline=timeline(call, executions, context.now_us),
            tags=[each for each in call.tags if each != STAR],
            tag=tag,
            may_write=context.principal.may_call(Role.WRITE, tenant),
            problem=problem,
            notice_text=NOTICES.get(context.query.get("notice"), ""),
            change_counter=change_counter,
            live=None if is_finished else f"/ui/live/calls?{urlencode({'tenant': call.tenant_id})}",
        )

    @route("GET", "/calls/{tenant}/{id}/trace")
    async def trace(self, context: RequestContext) -> Response:
        """The trace of the call: a part of the page for a script, or a separate page."""
        parameters = context.request.path_params
        tenant = parameters["tenant"]
        context.permit_tenant(Role.READ, tenant)
        call, entries = await context.calls.trace(tenant, parameters["id"])
        most = self._limits.trace_entries_max
        return self._pages.page(
            "calls/trace_part.html" if context.fragment else "calls/trace.html",
            context,
            title=f"Trace of {call.name}",
            call=call,
            lines=trace_lines(entries[:most]),
            left_out=max(len(entries) - most, 0),
            to=path(call.tenant_id, call.service_call_id),
        )


def timeline(call: CallRecord, executions: Sequence[ExecutionRecord], now_us: int) -> list[TimelineEntry]:
    """A call's past and future, the earliest entry first."""
    entries = [TimelineEntry(call.submitted_at, "Submitted", "pending")]
    most = 1 if call.retry_policy is None else call.retry_policy.max_attempts
    scheduled = call.status == CallStatus.SCHEDULED
    if call.due_at > call.submitted_at:
        ahead = scheduled and call.due_at > now_us
        entries.append(
            TimelineEntry(call.due_at, "Due", "firing" if ahead or not scheduled else "retrying", ahead=ahead)
        )
    earliest_start = max(call.due_at, call.submitted_at)
    for number, execution in enumerate(executions):
        lag = f"{milliseconds(max(execution.started_at - earliest_start, 0))} after its due time" if number == 0 else ""
        entries.append(TimelineEntry(execution.started_at, "Started" if number == 0 else "Retried", "firing", lag))
        last = number == len(executions) - 1
        if execution.finished_at is not None and not (last and finished(call)):
            entries.append(TimelineEntry(execution.finished_at, "Ended", "retrying", execution.error_message or ""))
    if call.next_attempt_at is not None:
        note = f"{call.attempts} of {most} attempts failed"
        entries.append(TimelineEntry(call.next_attempt_at, "Next attempt", "firing", note, ahead=True))
    if not executions and call.status == CallStatus.RUNNING:
        entries.append(TimelineEntry(now_us, "Waiting for a free slot", "firing", ahead=True))
    if call.finished_at is not None:
        entries.append(_end(call, call.finished_at))
    return entries


def _end(call: CallRecord, at_us: int) -> TimelineEntry:
    result = result_of(call)
    status = f"response {result.status}" if result is not None and result.status is not None else ""
    if call.status == CallStatus.SUCCEEDED:
        return TimelineEntry(at_us, "Succeeded", "done", status)
    reason = "" if result is None else result.error_kind
    return TimelineEntry(at_us, "Failed", "failed", ", ".join(filter(None, (reason, status))))
