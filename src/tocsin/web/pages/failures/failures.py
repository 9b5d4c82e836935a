"""`/failures`: what failed and nobody has dealt with, grouped by cause; and the page of a group."""

from __future__ import annotations

import csv
import io
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import EVERY, Role
from tocsin.model.errors import Conflict, InvalidInput, NotFound, TocsinError
from tocsin.model.failure_groups import ANY_GROUP, GROUPED_BY, FailedKind, GroupKey
from tocsin.model.job import RATE_DEFAULT, RATE_MAX, JobAction, JobKind
from tocsin.model.redaction import path_of
from tocsin.model.timer import NULL_PAYLOAD, Timer
from tocsin.ports.store import FailureRow
from tocsin.timers.failures import FailureFilter, failure_id, is_of_schedule, kind_of, namespace_of
from tocsin.timers.job_rows import replay_of
from tocsin.web.http import jobs as wire
from tocsin.web.http.access import listed_in
from tocsin.web.http.errors import Forbidden, problem_kind
from tocsin.web.http.failures import FailureRequests
from tocsin.web.http.instants import format_instant
from tocsin.web.http.jobs import JobRequests
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.context import Fields, RequestContext, whole_number
from tocsin.web.pages.counts import COUNTED_MAX, BoundedCount, Numbers
from tocsin.web.pages.jobs import job_path
from tocsin.web.pages.overview.band import spark
from tocsin.web.pages.presentation import count, failures_path, timer_path, with_query
from tocsin.web.pages.schedules.presentation import schedule_path
from tocsin.web.pages.site import Part, Site, route
from tocsin.web.pages.timers.export import cell

#: Groups on the page, and failures on a page of a group.
_GROUPS, _MEMBERS = 50, 100
#: Characters of a sample's payload that are shown.
_PAYLOAD_CHARS_MAX = 1_000
#: Failures in an export: the answer is made in memory.
_EXPORTED_MAX = 10_000

_job_reader = JsonReader(wire.CreateJob)


class FailurePages(Part):
    """The list of groups, the page of a group, its export, replay and dismissal; the count in the rail."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._failures = site.service.failures
        self._requests = FailureRequests(site.service.failures, site.audit)
        self._jobs = JobRequests(site.jobs, site.rules, site.audit)

    @route("GET", "/failures")
    async def show(self, context: RequestContext) -> Response:
        """The groups, those with most failures first."""
        found = await self._failures.groups(self._filter(context), GROUPED_BY, _GROUPS)
        return self._pages.page(
            "failures/list.html",
            context,
            title="Failures",
            found=found,
            rows=[
                (group, failures_path(group.key), *_titles(group.key), spark(group.series(context.now_us)))
                for group in found.groups
            ],
            dismissed=context.query.get("dismissed"),
        )

    @route("GET", "/ui/failures")
    async def count(self, context: RequestContext) -> Response:
        """The number in the rail, as of a few seconds ago."""
        wanted = self._filter(context)

        async def read() -> Numbers:
            return {"failures": BoundedCount(*await self._failures.count(wanted, COUNTED_MAX))}

        numbers = await self._site.counts.of(("failures", wanted), read)
        known = numbers.get("failures")
        return Response(known.short if known is not None and known.number else "", media_type="text/html")

    @route("GET", "/failures/group")
    async def group(self, context: RequestContext) -> Response:
        """A sample of a group, and its failures, newest first."""
        return await self._group_page(context, self._group(context, context.query, Role.READ))

    async def _group_page(self, context: RequestContext, key: GroupKey, problem: TocsinError | None = None) -> Response:
        wanted = FailureFilter(key.namespace, None, key)
        # One group of all that the key names.
        found = await self._failures.groups(wanted, [name for name, value in key._asdict().items() if value], 1)
        rows, cursor = await self._failures.members(wanted, _MEMBERS, context.query.get("cursor") or None)
        group = found.groups[0] if found.groups else None
        heading, where = _titles(key)
        return self._pages.page(
            "failures/group.html",
            context,
            200 if problem is None else problem_kind(problem).status,
            title=heading,
            problem=problem,
            heading=heading,
            where=where,
            key=key,
            group=group,
            at_least=found.at_least,
            chart=[] if group is None else spark(group.series(context.now_us)),
            members=[(row, _path_of(row), kind_of(row)) for row in rows],
            next=None if cursor is None else f"{failures_path(key)}&{urlencode({'cursor': cursor})}",
            here=failures_path(key),
            export=failures_path(key).replace("/failures/group", "/failures/export.csv"),
            payload="" if group is None or group.sample is None else _payload(group.sample.timer),
            may_write=context.principal.may(Role.WRITE, key.namespace),
            rate=RATE_DEFAULT,
            rate_max=RATE_MAX,
            is_first="cursor" not in context.query,
        )

    @route("GET", "/failures/export.csv")
    async def export(self, context: RequestContext) -> Response:
        """The newest failures of a group as a file."""
        key = self._group(context, context.query, Role.READ)
        rows, _ = await self._failures.members(FailureFilter(key.namespace, None, key), _EXPORTED_MAX, None)
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(("failedAt", "kind", "namespace", "id", "executeAt", "failureId"))
        for row in rows:
            instants = format_instant(row.failed_at), format_instant(row.execute_at)
            names = (kind_of(row).value, namespace_of(row), cell(row.timer_id))
            writer.writerow((instants[0], *names, instants[1], failure_id(row)))
        headers = {"content-disposition": f'attachment; filename="failures-{key.namespace}.csv"'}
        return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)

    @route("POST", "/failures/dismiss")
    async def dismiss(self, context: RequestContext) -> Response:
        """Dismisses a group, after a confirmation."""
        key = self._group(context, context.form, Role.WRITE)
        assert key.namespace is not None
        if context.form.get("confirmed") != "yes":
            heading, where = _titles(key)
            return self._pages.page(
                "failures/dismiss.html",
                context,
                title="Dismiss failures",
                heading=heading,
                where=where,
                key=key,
                here=failures_path(key),
            )
        done = await self._requests.dismiss(key.namespace, FailureFilter(key.namespace, None, key), context.actor)
        return RedirectResponse(f"/failures?{urlencode({'dismissed': count(done.dismissed)})}", 303)

    @route("POST", "/failures/replay")
    async def replay(self, context: RequestContext) -> Response:
        """Replays the newest failure of a group, whose page then shows what becomes of it; or all of them by a job."""
        key = self._group(context, context.form, Role.WRITE)
        assert key.namespace is not None
        if context.form.get("one") == "yes":
            rows, _ = await self._failures.members(FailureFilter(key.namespace, None, key), 1, None)
            return await self._replay_one(context, key, rows[0]) if rows else RedirectResponse(failures_path(key), 303)
        filters = {"destination": key.destination, "error": key.error, "kind": key.kind}
        body: dict[str, Any] = {
            "namespace": key.namespace,
            "of": JobKind.FAILURES,
            "action": JobAction.REPLAY,
            "filter": {name: value for name, value in filters.items() if value},
            "all": True,
        }
        body |= {"url": context.form.get("url")} if context.form.get("url") else {}
        body |= {"ratePerSecond": whole_number(context.form.get("rate"))} if context.form.get("rate") else {}
        try:
            sent = _job_reader.read(msgspec.json.encode(body))
            job = await self._jobs.create(sent, context.principal.key, context.actor, context.now_us)
        except (InvalidInput, Conflict) as error:
            return await self._group_page(context, key, error)
        return RedirectResponse(job_path(job), 303)

    async def _replay_one(self, context: RequestContext, key: GroupKey, row: FailureRow) -> Response:
        try:
            op = await replay_of(self._service, row)
            await self._service.write(self._service.namespaces.shard_of(op.namespace, row.uuid), op)
        except (Conflict, NotFound) as error:
            return await self._group_page(context, key, error)
        if kind_of(row) is FailedKind.NOTIFICATION:
            return RedirectResponse(failures_path(key), 303)
        return RedirectResponse(with_query(_path_of(row), {"notice": "replayed"}), 303)

    def _filter(self, context: RequestContext) -> FailureFilter:
        """The failures that the page shows. Raises Forbidden unless the principal may read some."""
        if context.scope:
            context.permit(Role.READ, context.scope)
        elif not context.principal.may_somewhere(Role.READ):
            raise Forbidden("Your API key has no access to any namespace.")
        return FailureFilter(listed_in(context.principal.key, context.scope or EVERY))

    def _group(self, context: RequestContext, fields: Fields, role: Role) -> GroupKey:
        """The group that the fields name. Raises Forbidden unless the principal has the role on its namespace."""
        namespace = fields.exact("namespace")
        context.permit(role, namespace)
        kind = fields.get("kind")
        return ANY_GROUP._replace(
            namespace=namespace,
            destination=fields.exact("destination") or None,
            error=fields.exact("error") or None,
            kind=FailedKind(kind) if kind in set(FailedKind) else None,
        )


def _titles(key: GroupKey) -> tuple[str, str]:
    """A group's heading, and the host that it calls."""
    destination = key.destination or ""
    path = path_of(destination) if destination else "any destination"
    return f"{key.error or 'Any error'} · {path}", destination.partition("://")[2].partition("/")[0]


def _payload(timer: Timer | None) -> str:
    """The beginning of the payload that was sent; empty where it is not JSON, or not kept."""
    if timer is None or timer.body is not None or timer.payload == NULL_PAYLOAD:
        return ""
    text = bytes(timer.payload).decode(errors="replace")
    return text if len(text) <= _PAYLOAD_CHARS_MAX else f"{text[:_PAYLOAD_CHARS_MAX]}…"


def _path_of(row: FailureRow) -> str:
    """The page of what failed; of a notification, the page of what it is about."""
    path = schedule_path if is_of_schedule(row) else timer_path
    return path(namespace_of(row), row.timer_id)
