"""`/calls/{tenantId}/{serviceCallId}`: everything about one service call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from msgspec import UNSET
from starlette.responses import Response

from tocsin.agent.api.ports import CallRecord, ExecutionRecord
from tocsin.agent.api.service_calls import ServiceCalls
from tocsin.agent.api.validation import CallStatus
from tocsin.model.access import Role
from tocsin.model.redaction import redact_url
from tocsin.ui.calls.agent import Gate
from tocsin.ui.calls.show import STAR, answer_of, finished, path, redacted, version
from tocsin.ui.calls.statistics import CallStatistics
from tocsin.ui.calls.trace import trace_lines
from tocsin.ui.limits import UiLimits
from tocsin.ui.pages import Pages
from tocsin.ui.show import milliseconds, pretty_json
from tocsin.ui.visit import Handler, Visit

#: What a page says after an action, by the word that the action leaves in the URL.
SAID = {
    "submitted": "Submitted. It is on disk, and will be made whatever crashes.",
    "tagged": "Tagged.",
    "untagged": "The tag is gone.",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """An entry of the time line; `ahead` for what has not happened yet."""

    at: int
    title: str
    tone: str
    note: str = ""
    ahead: bool = False


class CallDetailHandlers:
    """The page of one call."""

    def __init__(self, gate: Gate, pages: Pages, statistics: CallStatistics, limits: UiLimits) -> None:
        self._gate = gate
        self._pages = pages
        self._statistics = statistics
        self._limits = limits

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths, handlers. These patterns have to stand behind those of words under /calls."""
        return [
            ("GET", "/calls/{tenant}/{id}", self._gate(self.show)),
            ("GET", "/calls/{tenant}/{id}/trace", self._gate(self.trace)),
        ]

    async def show(self, visit: Visit, calls: ServiceCalls) -> Response:
        """The page, or for a script what changes of it while it is open."""
        parameters = visit.request.path_params
        return await self.of(visit, calls, parameters["tenant"], parameters["id"])

    async def of(
        self,
        visit: Visit,
        calls: ServiceCalls,
        tenant: str,
        service_call_id: str,
        *,
        status: int = 200,
        problem: str = "",
        tag: str = "",
    ) -> Response:
        """The page of a call; `problem` says why an action on it was refused, `tag` is what was typed for it."""
        visit.permit_tenant(Role.READ, tenant)
        pulse = self._statistics.pulse(tenant)
        call, executions = await calls.get(tenant, service_call_id)
        spec = call.request_spec
        over = finished(call)
        return self._pages.page(
            "calls/detail_live.html" if visit.fragment else "calls/detail.html",
            visit,
            status,
            title=call.name,
            call=call,
            over=over,
            shown_version=version(call, executions),
            url=redact_url(spec.url),
            headers=redacted(spec.headers),
            body="" if spec.body is UNSET else pretty_json(bytes(spec.body)),
            answer=answer_of(call),
            executions=executions,
            moments=time_line(call, executions, visit.now_us),
            tags=[each for each in call.tags if each != STAR],
            tag=tag,
            may_write=visit.visitor.may_call(Role.WRITE, tenant),
            problem=problem,
            said=SAID.get(visit.query.get("did"), ""),
            pulse=pulse,
            live=None if over else f"/ui/live/calls?{urlencode({'tenant': call.tenant_id})}",
        )

    async def trace(self, visit: Visit, calls: ServiceCalls) -> Response:
        """What the request behind the call led to: a part of the page, or a page of its own."""
        parameters = visit.request.path_params
        tenant = parameters["tenant"]
        visit.permit_tenant(Role.READ, tenant)
        call, entries = await calls.trace(tenant, parameters["id"])
        most = self._limits.trace_entries_max
        return self._pages.page(
            "calls/trace_part.html" if visit.fragment else "calls/trace.html",
            visit,
            title=f"Trace of {call.name}",
            call=call,
            lines=trace_lines(entries[:most]),
            left_out=max(len(entries) - most, 0),
            to=path(call.tenant_id, call.service_call_id),
        )


def time_line(call: CallRecord, executions: Sequence[ExecutionRecord], now_us: int) -> list[Moment]:
    """What happened to a call and what will, the earliest first."""
    moments = [Moment(call.submitted_at, "Submitted", "pending")]
    most = 1 if call.retry_policy is None else call.retry_policy.max_attempts
    scheduled = call.status == CallStatus.SCHEDULED
    if call.due_at > call.submitted_at:
        ahead = scheduled and call.due_at > now_us
        moments.append(Moment(call.due_at, "Due", "ringing" if ahead or not scheduled else "retrying", ahead=ahead))
    possible = max(call.due_at, call.submitted_at)
    for number, execution in enumerate(executions):
        late = f"{milliseconds(max(execution.started_at - possible, 0))} after it could" if number == 0 else ""
        moments.append(Moment(execution.started_at, "Started" if number == 0 else "Started again", "ringing", late))
        last = number == len(executions) - 1
        if execution.finished_at is not None and not (last and finished(call)):
            moments.append(Moment(execution.finished_at, "Ended", "retrying", execution.error_message or ""))
    if call.next_attempt_at is not None:
        note = f"{call.attempts} of {most} have failed"
        moments.append(Moment(call.next_attempt_at, "Next attempt", "ringing", note, ahead=True))
    if not executions and call.status == CallStatus.RUNNING:
        moments.append(Moment(now_us, "Waits for its turn", "ringing", ahead=True))
    if call.finished_at is not None:
        moments.append(_end(call, call.finished_at))
    return moments


def _end(call: CallRecord, at_us: int) -> Moment:
    answer = answer_of(call)
    status = f"answered {answer.status}" if answer is not None and answer.status is not None else ""
    if call.status == CallStatus.SUCCEEDED:
        return Moment(at_us, "Succeeded", "done", status)
    reason = "" if answer is None else answer.error_kind
    return Moment(at_us, "Failed", "failed", ", ".join(filter(None, (reason, status))))
