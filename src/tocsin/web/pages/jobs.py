"""`/jobs`: the jobs, one of them with its progress, and the form for a new one, which first counts what it would change."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import EVERY, Role
from tocsin.model.errors import InvalidInput, JobEnded, JobRunning, TocsinError
from tocsin.model.instants import format_instant
from tocsin.model.job import RATE_DEFAULT, RATE_MAX, Job, JobAction, JobKind, JobState
from tocsin.ports.seals import SealBroken
from tocsin.web.http import jobs as wire
from tocsin.web.http.access import require_namespace, require_service
from tocsin.web.http.jobs import JobRequests, job_view, may, shift_text
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.context import RequestContext, whole_number
from tocsin.web.pages.filters import instant_text, split_tags
from tocsin.web.pages.forms import by_field, duration
from tocsin.web.pages.pages import toast
from tocsin.web.pages.presentation import State, whole_span
from tocsin.web.pages.site import Part, Site, preferred, route

#: What a job does, by kind and action, as the beginning of a sentence about its rows.
ACTIONS = {
    JobKind.TIMERS: {
        JobAction.CANCEL: "Cancel",
        JobAction.SHIFT: "Shift",
        JobAction.SET_URL: "Change the URL of",
    },
    JobKind.SCHEDULES: {
        JobAction.PAUSE: "Pause",
        JobAction.RESUME: "Resume",
        JobAction.DELETE: "Delete",
        JobAction.SET_URL: "Change the URL of",
    },
    JobKind.FAILURES: {JobAction.REPLAY: "Replay"},
    JobKind.CALLS: {JobAction.DELETE: "Delete"},
}
_ROWS = {
    JobKind.TIMERS: "pending timers",
    JobKind.SCHEDULES: "schedules",
    JobKind.FAILURES: "failures",
    JobKind.CALLS: "waiting calls",
}
#: What the form changes; failures are replayed from their page, and calls deleted from their list.
_OFFERED = (JobKind.TIMERS, JobKind.SCHEDULES)
_STATES = {
    JobState.RUNNING: State("running", "pending"),
    JobState.PAUSED: State("paused", "suspended"),
    JobState.COMPLETED: State("completed", "done"),
    JobState.CANCELED: State("canceled", "canceled"),
    JobState.FAILED: State("failed", "failed"),
}
_LABELS = {
    "filter": "Rows", "action": "Action", "shiftBy": "By", "url": "URL", "tags": "Tags", "idPrefix": "Id",
    "destination": "Destination", "error": "Last error", "executeAfter": "Due from", "executeBefore": "Due before",
    "ratePerSecond": "Rate",
}  # fmt: skip
_FIELDS = ("namespace", "of", "action", "q", "destination", "error", "from", "to", "shift_by", "url", "rate", "all")

_create_reader = JsonReader(wire.CreateJob)


class Jobs(Part):
    """The table, a job, and what changes them."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._requests = JobRequests(site.jobs, site.rules, site.audit)

    @route("GET", "/jobs")
    async def table(self, context: RequestContext) -> Response:
        """The jobs that the principal may see, newest first."""
        self._permit(context)
        jobs = await self._requests.visible(context.scope, "", context.principal.key)
        return self._pages.page(
            "jobs/list.html",
            context,
            title="Jobs",
            jobs=jobs,
            states=_STATES,
            what=what,
            may_write=context.principal.may_somewhere(Role.WRITE),
        )

    @route("GET", "/jobs/new")
    async def new(self, context: RequestContext) -> Response:
        """The form, with the filters of a list of timers if its query has them."""
        query, tags = context.query, ", ".join(context.query.all("tag"))
        form = {name: query.get(name) for name in _FIELDS} | {"tags": tags}
        kind = form["of"] if form["of"] in _OFFERED else JobKind.TIMERS
        return await self._form(context, form | {"rate": str(RATE_DEFAULT), "of": kind})

    @route("POST", "/jobs/new")
    async def count(self, context: RequestContext) -> Response:
        """Begins a dry run, whose page asks before rows are changed."""
        form = {name: context.form.get(name) for name in (*_FIELDS, "tags")}
        try:
            sent = _create_reader.read(msgspec.json.encode(_body(form)))
            sent.dry_run = True
            job = await self._requests.create(sent, context.principal.key, context.actor, context.now_us)
        except InvalidInput as error:
            return await self._form(context, form, error)
        return RedirectResponse(job_path(job), 303)

    @route("GET", "/jobs/{id}")
    async def show(self, context: RequestContext) -> Response:
        """A job; a script reloads the live part while it goes on."""
        job = await self._job(context)
        key = context.principal.key
        return self._pages.page(
            "jobs/job_live.html" if context.fragment else "jobs/job.html",
            context,
            title=what(job),
            polled=job.live,
            job=job,
            view=job_view(job),
            state=_STATES[job.state],
            what=what,
            may_write=may(key, Role.WRITE, job),
            total=job.match_max,
            rate_max=RATE_MAX,
            problem=context.query.get("problem"),
        )

    @route("POST", "/jobs/{id}/begin")
    async def begin(self, context: RequestContext) -> Response:
        """Changes what a dry run has counted, and no other rows."""
        counted = await self._job(context)
        if not counted.dry_run or counted.state is not JobState.COMPLETED:
            return RedirectResponse(
                f"{job_path(counted)}?problem={quote('Only a completed dry run shows what is changed.')}", 303
            )
        try:
            # Sealed again with the new job, to which what is sealed belongs.
            sent = _same_again(counted, self._requests.url_of(counted))
            job = await self._requests.create(sent, context.principal.key, context.actor, context.now_us)
        except (JobRunning, InvalidInput, SealBroken) as error:
            return RedirectResponse(f"{job_path(counted)}?problem={quote(_sentence(error))}", 303)
        return RedirectResponse(job_path(job), 303)

    @route("POST", "/jobs/{id}/{change:str}")
    async def change(self, context: RequestContext) -> Response:
        """Pauses, resumes or cancels a job, or changes its rate."""
        name, key, actor = context.request.path_params["change"], context.principal.key, context.actor
        job_id = context.request.path_params["id"]
        try:
            if name == "rate":
                sent = wire.SetJobRate(job_id, whole_number(context.form.get("rate")))
                job = await self._requests.set_rate(sent, key, actor)
            else:
                changes = {
                    "pause": self._requests.pause,
                    "resume": self._requests.resume,
                    "cancel": self._requests.cancel,
                }
                if name not in changes:
                    raise InvalidInput()
                job = await changes[name](job_id, key, actor)
        except (JobEnded, InvalidInput) as error:
            if context.fragment:
                return Response(status_code=409, headers=toast(_sentence(error), "failed"))
            return RedirectResponse(f"/jobs/{quote(job_id, safe='')}?problem={quote(_sentence(error))}", 303)
        if context.fragment:
            return Response(status_code=204, headers=toast(f"At most {job.rate_per_second} rows a second."))
        return RedirectResponse(job_path(job), 303)

    async def _job(self, context: RequestContext) -> Job:
        self._permit(context)
        return await self._requests.get(context.request.path_params["id"], context.principal.key)

    def _permit(self, context: RequestContext) -> None:
        """Raises Forbidden for a principal without any namespace or tenant."""
        principal = context.principal
        if not (principal.may_somewhere(Role.READ) or principal.may_call_somewhere(Role.READ)):
            context.permit(Role.READ)

    async def _form(self, context: RequestContext, form: dict[str, str], problem: Exception | None = None) -> Response:
        if not context.principal.may_somewhere(Role.WRITE):
            context.permit(Role.WRITE)
        namespaces = await self.visible_namespaces(context, Role.WRITE)
        if problem is None and form["namespace"] and form["namespace"] != EVERY:
            require_namespace(context.principal.key, Role.WRITE, form["namespace"])
        elif form["namespace"] == EVERY:
            require_service(context.principal.key, Role.ADMIN)
        errors = by_field(problem, "filter.")
        may_all = context.principal.may(Role.ADMIN)
        return self._pages.page(
            "jobs/new.html",
            context,
            400 if problem else 200,
            title="Change many",
            form=form | {"namespace": form["namespace"] or (EVERY if may_all else preferred(namespaces))},
            namespaces=namespaces,
            may_all=may_all,
            kinds=ACTIONS,
            errors=errors,
            labels=_LABELS,
            first_invalid=next((name for name in _LABELS if name in errors), ""),
            rate_max=RATE_MAX,
        )


def what(job: Job) -> str:
    """What the job does, in a sentence without its end."""
    if job.kind is JobKind.NAMESPACE:
        return f"Delete namespace {job.namespace}"
    sign = "-" if job.shift_by_us < 0 else ""
    by = f" by {sign}{whole_span(abs(job.shift_by_us))}" if job.shift_by_us else ""
    return f"{ACTIONS[job.kind][job.action]} {_ROWS[job.kind]} of {job.where}{by}"


def job_path(job: Job) -> str:
    """The path of the job's page."""
    return f"/jobs/{job.id}"


def _sentence(error: TocsinError | SealBroken) -> str:
    text = "; ".join(each.reason for each in error.errors) if isinstance(error, InvalidInput) else str(error)
    return f"{text[:1].upper()}{text[1:] or 'This can’t be done'}."


def _body(form: dict[str, str]) -> dict[str, Any]:
    """The API request for a form. Raises InvalidInput."""
    wanted = {
        "tags": split_tags(form["tags"]),
        "idPrefix": form["q"],
        "destination": form["destination"],
        "error": form["error"],
        "executeAfter": instant_text(form["from"]),
        "executeBefore": instant_text(form["to"]),
    }
    body: dict[str, Any] = {"namespace": form["namespace"], "of": form["of"], "action": form["action"]}
    body["filter"] = {name: value for name, value in wanted.items() if value}
    if form["action"] == JobAction.SHIFT and form["shift_by"]:
        text = form["shift_by"]
        sign = text[0] if text[0] in "+-" else ""
        body["shiftBy"] = sign + duration(text.removeprefix(sign))
    if form["action"] == JobAction.SET_URL and form["url"]:
        body["url"] = form["url"]
    body |= {"ratePerSecond": whole_number(form["rate"])} if form["rate"] else {}
    return body | ({"all": True} if form["all"] == "yes" else {})


def _same_again(counted: Job, url: str) -> wire.CreateJob:
    """The request for the job of which this is the dry run, with its URL. Sent twice, it makes one job."""
    row_filter = counted.filter
    wanted = {
        "tags": list(row_filter.tags),
        "idPrefix": row_filter.id_prefix,
        "destination": row_filter.destination,
        "error": row_filter.error,
        "executeAfter": "" if row_filter.execute_after is None else format_instant(row_filter.execute_after),
        "executeBefore": "" if row_filter.execute_before is None else format_instant(row_filter.execute_before),
        # What has been created since was not counted.
        "createdBefore": format_instant(row_filter.created_before),
        "kind": row_filter.kind,
        "createdAfter": "" if row_filter.created_after is None else format_instant(row_filter.created_after),
        "name": row_filter.name,
        "status": row_filter.status,
    }
    body: dict[str, Any] = {
        **({"tenant": counted.tenant} if counted.tenant else {"namespace": counted.namespace}),
        "of": counted.kind,
        "action": counted.action,
        "filter": {name: value for name, value in wanted.items() if value},
        "all": row_filter.is_empty,
        "ratePerSecond": counted.rate_per_second,
        "matchMax": max(counted.counts.matched, 1),
        "idempotencyKey": f"after:{counted.id}",
    }
    body |= {"shiftBy": shift_text(counted.shift_by_us)} if counted.shift_by_us else {}
    body |= {"url": url} if url else {}
    return _create_reader.read(msgspec.json.encode(body))
