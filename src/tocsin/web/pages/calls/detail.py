"""`/calls/{tenantId}/{serviceCallId}`: the page of one service call, with its trace; and the actions on calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from msgspec import UNSET
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import Conflict, InvalidInput, ServiceCallNotFailed, ServiceCallNotScheduled
from tocsin.model.explanation import WaitsFor
from tocsin.model.instants import parse_instant
from tocsin.model.redaction import redact_url
from tocsin.service_calls.messages import CallStatus
from tocsin.service_calls.ports import CallRecord, ExecutionRecord, TraceEntry
from tocsin.web.http.errors import problem_kind
from tocsin.web.pages.calls.presentation import STAR, finished, list_path, path, redacted, result_of, version
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.pages import toast
from tocsin.web.pages.presentation import TimelineEntry, milliseconds, pretty_json, sentence
from tocsin.web.pages.site import CallPart, Site, route

#: Notices after an action, by the `notice` parameter of the redirect.
NOTICES = {
    "submitted": "Call submitted. It is stored and survives crashes.",
    "tagged": "Tag added.",
    "untagged": "Tag removed.",
    "retried": "The call is attempted again.",
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
        call, executions = await context.calls.get(tenant, service_call_id)
        spec = call.request_spec
        is_finished, waits_for = finished(call), context.calls.waits_for(call)
        obstacle = context.calls.obstacle(call) if waits_for is WaitsFor.CREDENTIAL else None
        return self._pages.page(
            "calls/detail_live.html" if context.fragment else "calls/detail.html",
            context,
            status,
            title=call.name,
            call=call,
            label=(await self._site.labels.all()).get(call.tenant_id, ""),
            finished=is_finished,
            shown_version=version(call, executions) + (waits_for or "")[:1],
            waits_for=waits_for,
            url=redact_url(spec.url),
            headers=redacted(spec.headers),
            body="" if spec.body is UNSET else pretty_json(bytes(spec.body)),
            result=result_of(call),
            executions=executions,
            timeline=timeline(call, executions, context.now_us, waits_for, obstacle or ""),
            tags=[each for each in call.tags if each != STAR],
            tag=tag,
            may_write=context.principal.may_call(Role.WRITE, tenant),
            problem=problem,
            notice_text=NOTICES.get(context.query.get("notice"), ""),
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


def timeline(
    call: CallRecord,
    executions: Sequence[ExecutionRecord],
    now_us: int,
    waits_for: WaitsFor | None = None,
    obstacle: str = "",
) -> list[TimelineEntry]:
    """A call's past and future, the earliest entry first. `obstacle` is why it waits for its credential."""
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
    if waits_for is WaitsFor.CREDENTIAL:
        note = f"{call.request_spec.credential}: {obstacle}"
        entries.append(TimelineEntry(now_us, "Waiting for its credential", "firing", note, ahead=True))
    elif waits_for is WaitsFor.FLOW:
        entries.append(TimelineEntry(now_us, "Waiting for its flow", "firing", call.flow_key or "", ahead=True))
    elif not executions and call.status == CallStatus.RUNNING:
        entries.append(TimelineEntry(now_us, "Waiting for a free slot", "firing", ahead=True))
    if call.finished_at is not None:
        entries.append(_end(call, call.finished_at))
    # Colour is for what goes on, and for what went wrong.
    return [replace(each, tone="done") if finished(call) and each.tone == "firing" else each for each in entries]


def _end(call: CallRecord, at_us: int) -> TimelineEntry:
    result = result_of(call)
    status = f"response {result.status}" if result is not None and result.status is not None else ""
    if call.status == CallStatus.SUCCEEDED:
        return TimelineEntry(at_us, "Succeeded", "done", status)
    reason = "" if result is None or result.status is not None else result.error_kind
    return TimelineEntry(at_us, "Failed", "failed", ", ".join(filter(None, (reason, status))))


#: Levels of indentation; deeper entries are shown at the last level.
DEPTH_MAX = 6
MESSAGE = "message"
#: Descriptions of rows, by their kind.
_DESCRIPTIONS = {
    "service_calls": "current call row",
    "timer_schedules": "current schedule row",
    "http_execution_log": "execution",
}
#: The detail with a row's number in the outbox, which is not shown: the order of the lines implies it.
_ORDINAL = "number"
#: Instants closer to the start of the trace are shown relative to it.
_NEAR_US = 3_600_000_000
#: Instants up to this much before the start of the trace count as the start.
_BEFORE_US = 1_000_000


@dataclass(frozen=True, slots=True)
class TraceLine:
    """An entry, its level of indentation, its time since the start of the trace, and its cause if that is stored."""

    entry: TraceEntry
    depth: int
    after_us: int
    cause: str
    detail: tuple[tuple[str, str], ...]

    @property
    def is_message(self) -> bool:
        """Whether the entry is a message; otherwise it is a row of a table."""
        return self.entry.kind == MESSAGE

    @property
    def description(self) -> str:
        """A description of the entry's kind."""
        return _DESCRIPTIONS.get(self.entry.kind, self.entry.kind)


def trace_lines(entries: Sequence[TraceEntry]) -> list[TraceLine]:
    """The lines of a trace."""
    messages = {entry.id: entry for entry in entries if entry.kind == MESSAGE}
    depths: dict[str, int] = {}
    begins = entries[0].at if entries else 0
    return [
        TraceLine(
            entry=entry,
            depth=_depth(entry, messages, depths),
            after_us=entry.at - begins,
            cause=_cause(entry, messages),
            detail=tuple(
                (name, _value(name, value, begins)) for name, value in entry.detail.items() if name != _ORDINAL
            ),
        )
        for entry in entries
    ]


def _value(name: str, value: Any, begins: int) -> str:
    """A detail's value; an instant near the start of the trace is shown relative to it."""
    text = str(value)
    if not name.endswith("At"):
        return text
    try:
        after_us = parse_instant(text) - begins
    except ValueError:
        return text
    # The start is known to the millisecond, and its cause may be slightly older.
    return f"+{milliseconds(max(after_us, 0))}" if -_BEFORE_US < after_us < _NEAR_US else text


def _depth(entry: TraceEntry, messages: dict[str, TraceEntry], depths: dict[str, int]) -> int:
    """The number of steps to a message without a stored cause. A circular chain of causes is cut."""
    depth, seen, at = 0, {entry.id}, entry
    while at.causation_id in messages and at.causation_id not in seen:
        if at.causation_id in depths:
            depth += depths[at.causation_id] + 1
            break
        depth += 1
        seen.add(at.causation_id)
        at = messages[at.causation_id]
    if entry.kind == MESSAGE:
        depths[entry.id] = depth
    return min(depth, DEPTH_MAX)


def _cause(entry: TraceEntry, messages: dict[str, TraceEntry]) -> str:
    if entry.causation_id is None:
        return ""
    known = messages.get(entry.causation_id)
    return known.name if known is not None else "a command or a due time"


class CallActions(CallPart):
    """Each action redirects to a page that confirms it, or responds with the call's page and the reason of the refusal."""

    def __init__(self, site: Site, detail: CallDetail) -> None:
        super().__init__(site)
        self._detail = detail

    @route("POST", "/calls/star")
    async def star(self, context: RequestContext) -> Response:
        """Adds the star to the call that the field `star` names by tenant and id, or removes it from the one that `unstar`
        names. One form serves a whole list."""
        starred = "star" in context.form
        tenant, _, service_call_id = context.form.get("star" if starred else "unstar").lower().partition("/")
        context.permit_tenant(Role.WRITE, tenant)
        back = context.form.exact("back")
        back = back if back.startswith("/calls") else list_path(tenant)
        try:
            change = context.calls.tag if starred else context.calls.untag
            await change(tenant, service_call_id, STAR, context.correlation_id)
            context.changed("calls/tag" if starred else "calls/untag", tenant, service_call_id)
        except InvalidInput as error:
            if context.fragment:
                return HTMLResponse("", problem_kind(error).status, headers=toast(sentence(error), "failed"))
            return await self._refused(context, tenant, service_call_id, error)
        return HTMLResponse("") if context.fragment else RedirectResponse(back, 303)

    @route("POST", "/calls/tag")
    async def tag(self, context: RequestContext) -> Response:
        """Adds a tag."""
        tag = context.form.get("tag")
        return await self._act(
            context, lambda tenant, id: context.calls.tag(tenant, id, tag, context.correlation_id), "tagged"
        )

    @route("POST", "/calls/untag")
    async def untag(self, context: RequestContext) -> Response:
        """Removes a tag."""
        tag = context.form.exact("tag")
        return await self._act(
            context, lambda tenant, id: context.calls.untag(tenant, id, tag, context.correlation_id), "untagged"
        )

    @route("POST", "/calls/delete")
    async def delete(self, context: RequestContext) -> Response:
        """Deletes a call that has not started."""
        return await self._act(context, lambda tenant, id: context.calls.delete(tenant, id, context.correlation_id))

    @route("POST", "/calls/retry")
    async def retry(self, context: RequestContext) -> Response:
        """Makes another attempt of a failed call."""
        return await self._act(
            context, lambda tenant, id: context.calls.retry(tenant, id, context.correlation_id), "retried"
        )

    async def _act(
        self, context: RequestContext, action: Callable[[str, str], Awaitable[object]], notice: str = ""
    ) -> Response:
        """Does something to the call that the form names, and leads to its page with a notice; without one it is gone."""
        tenant, service_call_id = context.form.get("tenant").lower(), context.form.get("id").lower()
        context.permit_tenant(Role.WRITE, tenant)
        try:
            await action(tenant, service_call_id)
        except (InvalidInput, ServiceCallNotScheduled, ServiceCallNotFailed) as error:
            return await self._refused(context, tenant, service_call_id, error)
        # The page's path is that of the API's operation.
        context.changed(context.path.removeprefix("/"), tenant, service_call_id)
        there = f"{path(tenant, service_call_id)}?notice={notice}" if notice else list_path(tenant, notice="deleted")
        return RedirectResponse(there, 303)

    async def _refused(
        self,
        context: RequestContext,
        tenant: str,
        service_call_id: str,
        error: InvalidInput | Conflict,
    ) -> Response:
        return await self._detail.of(
            context,
            tenant,
            service_call_id,
            status=problem_kind(error).status,
            problem=sentence(error),
            tag=context.form.get("tag"),
        )
