"""`/timers/{namespace}/{id}`: a timer's history, its next attempt, and what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
from starlette.responses import Response

from tocsin.model.access import Role
from tocsin.model.explanation import Explanation, WaitsFor
from tocsin.model.instants import format_instant
from tocsin.model.namespace import Namespace
from tocsin.model.retry import RetryPolicy
from tocsin.model.run import Run, RunStatus
from tocsin.model.timer import LoggedAttempt, Status
from tocsin.ports.forward import REFUSED, UNOPENED
from tocsin.timers.service import TimerView
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.presentation import TimelineEntry
from tocsin.web.pages.site import Part, route
from tocsin.web.pages.timers.gates import gates

#: Notices after an action, by the `notice` parameter of the redirect.
NOTICES = {
    "created": "Timer created.",
    "replaced": "Timer replaced.",
    "updated": "Timer updated.",
    "canceled": "Timer canceled. An in-flight attempt may still arrive.",
    "rescheduled": "Timer rescheduled.",
    "firing": "The timer fires now.",
    "replayed": "The timer is pending again, under the same id and webhook-id.",
}


#: Runs on the page: the present one, and those before it.
RUNS_SHOWN = 20
_RUN_TONES = {
    RunStatus.COMPLETED: "done",
    RunStatus.RESCHEDULED: "done",
    RunStatus.FAILED: "failed",
    RunStatus.EXPIRED: "failed",
    RunStatus.CANCELED: "canceled",
}


@dataclass(frozen=True, slots=True)
class Chapter:
    """An earlier run: how it ended, and its attempts."""

    run: Run
    title: str
    tone: str
    attempts: list[TimelineEntry]


class TimerDetail(Part):
    """The page of one timer. Its path matches ids with slashes, so it must come after all others."""

    @route("GET", "/timers/{namespace}/{id:path}")
    async def show(self, context: RequestContext) -> Response:
        """The page; for a script the part of it that changes while it is open, or with `peek` the panel beside a list."""
        parameters = context.request.path_params
        return await self.of(context, parameters["namespace"], parameters["id"] or context.query.exact("id"))

    async def of(
        self, context: RequestContext, namespace: str, timer_id: str, *, status: int = 200, problem: str = ""
    ) -> Response:
        """The page of a timer; `problem` is the reason why an action on it was refused."""
        context.permit(Role.READ, namespace)
        view = await self._service.get(namespace, timer_id)
        known = await self.namespace(namespace)
        why = await self._service.explain(namespace, timer_id)
        if view.is_due(context.now_us):
            view = msgspec.structs.replace(view, explanation=why)
        cluster = await self._service.cluster()
        history = await self._service.history(namespace, timer_id, RUNS_SHOWN)
        chapters = [chapter_of(run) for run in history.runs[1:]]
        notice = context.query.get("notice")
        policy = self._service.namespaces.retry_policy(view.timer)
        whole = "timers/peek.html" if "peek" in context.query else "timers/detail_live.html"
        template = whole if context.fragment else "timers/detail.html"
        return self._pages.page(
            template,
            context,
            status,
            title=view.timer.id,
            view=view,
            timer=view.timer,
            timeline=deferred_by_pause(
                timeline(view, policy, context.now_us, chapters),
                known,
                why,
                context.now_us,
            ),
            chapters=chapters,
            older_runs=history.cursor is not None,
            why=why,
            gates=gates(view, why, policy.max_attempts, context.now_us),
            shard=cluster.shards[view.shard_id] if view.shard_id < len(cluster.shards) else None,
            paused=known.paused and known.deleting is None,
            may_write=context.principal.may(Role.WRITE, namespace),
            problem=problem,
            notice_text=_notice_text(notice, view, known),
            notice=notice,
            undo=_undo(context, notice, view),
            live=f"/ui/live?namespace={namespace}",
        )


def _undo(context: RequestContext, notice: str, view: TimerView) -> tuple[str, dict[str, str]] | None:
    """The request that undoes the action which redirected to the page; None if there is none."""
    timer, was = view.timer, context.query.get("was")
    if not context.principal.may(Role.WRITE, timer.namespace):
        return None
    name = {"namespace": timer.namespace, "id": timer.id}
    if notice == "rescheduled" and was and timer.status is Status.PENDING:
        return "/timers/reschedule", {**name, "when": "at", "at": was}
    if notice != "canceled" or timer.status is not Status.CANCELED or timer.reduced:
        return None
    if timer.execute_at <= context.now_us:
        return None
    return "/timers/replay", {**name, "instant": format_instant(timer.execute_at)}


def _notice_text(notice: str, view: TimerView, namespace: Namespace) -> str:
    """The notice of the action that redirected to the page; empty if it no longer applies."""
    if notice == "firing" and view.timer.status is not Status.PENDING:
        return ""
    if notice == "firing" and namespace.paused:
        return f"The timer is due now. The namespace {namespace.name} is paused, so it fires when the namespace is resumed."
    return NOTICES.get(notice, "")


def chapter_of(run: Run) -> Chapter:
    """An earlier run as the page shows it."""
    return Chapter(run, run.status.capitalize(), _RUN_TONES.get(run.status, "pending"), [*map(_entry, run.attempts)])


def _entry(attempt: LoggedAttempt) -> TimelineEntry:
    title = f"Response {attempt.status}" if attempt.status else "No response"
    return TimelineEntry(attempt.at, title, "done" if attempt.error is None else "retrying", attempt=attempt)


def timeline(
    view: TimerView, policy: RetryPolicy, now_us: int, chapters: Sequence[Chapter] = ()
) -> list[TimelineEntry]:
    """A timer's past and future, the earliest entry first; `policy` is the retry policy in force. The chapters' attempts are
    not repeated."""
    timer = view.timer
    shown = {entry.at for chapter in chapters for entry in chapter.attempts}
    entries = [TimelineEntry(timer.created_at, "Created", "pending")]
    entries += [_entry(attempt) for attempt in timer.attempt_log if attempt.at not in shown]
    attempts_ended = {entry.at + (entry.attempt.duration_us if entry.attempt else 0) for entry in entries}
    last = max(entry.at for entry in entries)
    updated = timer.updated_at > timer.created_at and timer.status is Status.PENDING
    if (
        updated
        and not any(abs(timer.updated_at - at) < 1_000_000 for at in attempts_ended)
        and timer.updated_at >= last
    ):
        entries.append(TimelineEntry(timer.updated_at, "Updated", "pending"))
    entries.extend(_end(view, policy, now_us))
    return entries


def deferred_by_pause(
    entries: list[TimelineEntry], namespace: Namespace, why: Explanation, now_us: int
) -> list[TimelineEntry]:
    """The timeline of a timer in a paused namespace: a due timer does not fire now, and a later one perhaps not then. In a
    namespace that is being deleted, none fires any more. One whose flow or destination is paused does not fire at its
    instant either."""
    last = entries[-1]
    if not last.ahead:
        return entries
    if not namespace.held:
        if last.at <= now_us or why.waits_for not in (WaitsFor.FLOW, WaitsFor.DESTINATION):
            return entries
        note = f"Fires when its {why.waits_for} is resumed, at the earliest then."
        return [*entries[:-1], replace(last, title="Due", tone="suspended", note=note)]
    if namespace.deleting is not None:
        return [*entries[:-1], replace(last, title="Due", tone="suspended", note="Its namespace is being deleted.")]
    when = "Fires when the namespace is resumed"
    note = f"{when}." if last.at <= now_us else f"{when}, at the earliest then."
    return [*entries[:-1], replace(last, title="Due", tone="suspended", note=note)]


def _end(view: TimerView, policy: RetryPolicy, now_us: int) -> list[TimelineEntry]:
    timer, at = view.timer, view.next_attempt_at
    if timer.status is Status.COMPLETED:
        return [TimelineEntry(timer.executed_at or timer.updated_at, "Completed", "done")]
    if timer.status is Status.FAILED:
        note = "Attempts exhausted." if timer.attempts >= policy.max_attempts else "The response was final."
        if timer.expires_at is not None and "EXPIRED: " in (timer.last_error or ""):
            note = "The timer expired before another attempt could begin."
        return [TimelineEntry(timer.executed_at or timer.updated_at, "Failed", "failed", note=note)]
    if timer.status is Status.EXPIRED:
        note = "No attempt began before the end of its time."
        return [TimelineEntry(timer.executed_at or timer.updated_at, "Expired", "expired", note=note)]
    if timer.status is Status.CANCELED:
        return [TimelineEntry(timer.executed_at or timer.updated_at, "Canceled", "canceled")]
    if at is None:
        return []
    if at <= now_us and view.suspended == REFUSED:
        note = "Suspended: this server does not call its address (egress.allow)."
        return [TimelineEntry(at, "Due", "suspended", note=note, ahead=True)]
    if at <= now_us and view.suspended == UNOPENED:
        note = "Suspended: one of its secrets can’t be decrypted (secrets.key_file)."
        return [TimelineEntry(at, "Due", "suspended", note=note, ahead=True)]
    if at <= now_us:
        why = view.explanation
        if why is not None and why.attempt is not None and why.since is not None:
            return [TimelineEntry(why.since, f"Attempt {why.attempt} in flight", "firing", ahead=True)]
        return [TimelineEntry(at, "Due", "due", ahead=True)]
    number = timer.attempts + 1
    title = "Fires" if number == 1 else f"Attempt {number} of {policy.max_attempts}"
    return [TimelineEntry(at, title, "firing", ahead=True)]
