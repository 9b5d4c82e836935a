"""What the pages of failures of timers and of service calls share: a group, its members, their export and replay."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import TocsinError
from tocsin.model.failure_groups import ANY_GROUP, CountedFailures, FailedKind, GroupKey, Sample
from tocsin.model.instants import format_instant
from tocsin.model.job import RATE_DEFAULT, RATE_MAX, JobAction, JobKind
from tocsin.model.redaction import path_of
from tocsin.model.timer import NULL_PAYLOAD
from tocsin.web.http import jobs as wire
from tocsin.web.http.errors import problem_kind
from tocsin.web.http.failures import DismissedFailures
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.context import Fields, RequestContext, whole_number
from tocsin.web.pages.overview.band import spark
from tocsin.web.pages.pages import Pages
from tocsin.web.pages.presentation import count, failures_path
from tocsin.web.pages.timers.export import cell

#: Groups on the page, and failures on a page of a group.
GROUPS, MEMBERS = 50, 100
#: Failures in an export: the answer is made in memory.
EXPORTED_MAX = 10_000
#: Characters of a sample's payload that are shown.
_PAYLOAD_CHARS_MAX = 1_000

_job_reader = JsonReader(wire.CreateJob)


class Member(NamedTuple):
    """A failure of a group, and the page of what failed. Instants are microseconds."""

    id: str
    path: str
    kind: FailedKind
    #: The namespace or the tenant.
    scope: str
    execute_at: int
    failed_at: int
    failure_id: str
    name: str = ""


class Found(NamedTuple):
    """A group with a page of its members; `at_least`: older ones were not counted."""

    group: CountedFailures[Any] | None
    at_least: bool
    members: Sequence[Member]
    cursor: str | None


def group_of(fields: Fields) -> GroupKey:
    """The group that the fields name, without namespace and tenant."""
    kind = fields.get("kind")
    return ANY_GROUP._replace(
        destination=fields.exact("destination") or None,
        error=fields.exact("error") or None,
        kind=FailedKind(kind) if kind in set(FailedKind) else None,
    )


def fields_of(key: GroupKey) -> list[str]:
    """What a group has in common."""
    return [name for name, value in key._asdict().items() if value]


def group_page(
    pages: Pages, context: RequestContext, key: GroupKey, found: Found, problem: TocsinError | None = None
) -> Response:
    """A sample of a group, and its failures, newest first."""
    group, may_write = found.group, context.principal.may(Role.WRITE, key.namespace)
    if key.tenant is not None:
        may_write = context.principal.may_call(Role.WRITE, key.tenant)
    heading, where = titles(key)
    here = failures_path(key)
    return pages.page(
        "failures/group.html",
        context,
        200 if problem is None else problem_kind(problem).status,
        title=heading,
        problem=problem,
        heading=heading,
        where=where,
        key=key,
        base=base_of(key),
        group=group,
        at_least=found.at_least,
        chart=[] if group is None else spark(group.series(context.now_us)),
        members=found.members,
        next=None if found.cursor is None else f"{here}&{urlencode({'cursor': found.cursor})}",
        here=here,
        export=here.replace("/group?", "/export.csv?"),
        payload="" if group is None or group.sample is None else _payload(group.sample),
        may_write=may_write,
        rate=RATE_DEFAULT,
        rate_max=RATE_MAX,
        is_first="cursor" not in context.query,
    )


def base_of(key: GroupKey) -> str:
    """The path of the pages about the group."""
    return "/failures" if key.tenant is None else "/failures/calls"


def export(members: Sequence[Member], scope_name: str) -> Response:
    """Failures as a file; `scope_name` is the heading of their namespaces or tenants."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("failedAt", "kind", scope_name, "id", "executeAt", "failureId"))
    for each in members:
        failed_at, execute_at = format_instant(each.failed_at), format_instant(each.execute_at)
        writer.writerow((failed_at, each.kind.value, each.scope, cell(each.id), execute_at, each.failure_id))
    headers = {"content-disposition": 'attachment; filename="failures.csv"'}
    return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def dismissal(pages: Pages, context: RequestContext, key: GroupKey) -> Response:
    """Asks whether a group is to be dismissed."""
    heading, where = titles(key)
    return pages.page(
        "failures/dismiss.html",
        context,
        title="Dismiss failures",
        heading=heading,
        where=where,
        key=key,
        base=base_of(key),
        here=failures_path(key),
    )


def dismissed(done: DismissedFailures) -> Response:
    """Back to the list, which states how many are gone."""
    return RedirectResponse(f"/failures?{urlencode({'dismissed': count(done.dismissed)})}", 303)


def replay_request(key: GroupKey, form: Fields) -> wire.CreateJob:
    """The job that replays a group. Raises InvalidInput."""
    filters = {"destination": key.destination, "error": key.error, "kind": key.kind}
    body: dict[str, Any] = {
        **({"namespace": key.namespace} if key.tenant is None else {"tenant": key.tenant}),
        "of": JobKind.FAILURES,
        "action": JobAction.REPLAY,
        "filter": {name: value for name, value in filters.items() if value},
        "all": True,
    }
    body |= {"url": form.get("url")} if form.get("url") else {}
    body |= {"ratePerSecond": whole_number(form.get("rate"))} if form.get("rate") else {}
    return _job_reader.read(msgspec.json.encode(body))


def titles(key: GroupKey) -> tuple[str, str]:
    """A group's heading, and the host that it calls."""
    destination = key.destination or ""
    path = path_of(destination) if destination else "any destination"
    return f"{key.error or 'Any error'} · {path}", destination.partition("://")[2].partition("/")[0]


def _payload(sample: Sample) -> str:
    """The beginning of what was sent; empty where it is not JSON, or not kept."""
    text, timer = sample.payload, sample.timer
    if timer is not None:
        shown = timer.body is None and timer.payload != NULL_PAYLOAD
        text = bytes(timer.payload).decode(errors="replace") if shown else ""
    return text if len(text) <= _PAYLOAD_CHARS_MAX else f"{text[:_PAYLOAD_CHARS_MAX]}…"
