"""`tocsin jobs`: one change of many timers, schedules or service calls, made by the server."""

from __future__ import annotations

import sys
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.command import Refused, command, group
from tocsin.cli.options import AsJson, ScopeOptions, ServerOptions, checked_instant, given

if TYPE_CHECKING:
    from tocsin.cli.client import Client

app = group(
    "Change many timers, schedules or service calls: jobs of the server, at a rate, that go on without you.",
    example="jobs create shift --shift-by 2h --tag orders --watch",
)

#: Seconds between two looks at a job that is watched.
_WATCH_S = 0.5
#: What actions change that are not done with timers.
_OF = {**dict.fromkeys(("pause", "resume", "delete"), "schedules"), "replay": "failures"}
_COUNTS = ("matched", "changed", "skipped", "errors")

JobId = Annotated[str, typer.Argument(metavar="ID", help="Id of the job.")]
Watch = Annotated[bool, typer.Option("--watch", help="Wait until it has ended, with a progress bar.")]


@dataclass(frozen=True)
class RowOptions:
    """Which rows a job changes."""

    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", "-n", metavar="NAME", help="The timers' namespace; '*': all of them.", show_default="default"
        ),
    ] = None
    tenant: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="replay, delete: failed or waiting service calls of this tenant; '*': of all tenants."
        ),
    ] = None
    id_prefix: Annotated[str | None, typer.Option(metavar="TEXT", help="Only ids with this prefix.")] = None
    tag: Annotated[list[str] | None, typer.Option(help="Only with this tag; may be repeated.")] = None
    destination: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Only if the URL's host and path contain this text; replay: a group's."),
    ] = None
    error: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only timers whose last error contains this text.")
    ] = None
    after: Annotated[str | None, typer.Option(metavar="INSTANT", help="Only what is due at or after this instant.")] = (
        None
    )
    before: Annotated[str | None, typer.Option(metavar="INSTANT", help="Only what is due before this instant.")] = None
    created_after: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="Only what was created at or after this instant.")
    ] = None
    created_before: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="Only what was created before this instant.")
    ] = None
    name: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only service calls whose name contains this text.")
    ] = None
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help="Only service calls that are Scheduled, or Retrying.")
    ] = None
    everything: Annotated[
        bool, typer.Option("--all", help="Every row of the namespace or tenant; needed where nothing else selects.")
    ] = False

    def fields(self) -> dict[str, Any]:
        """The fields of the request."""
        chosen = given(
            tags=self.tag or None,
            idPrefix=self.id_prefix,
            destination=self.destination,
            error=self.error,
            executeAfter=checked_instant("--after", self.after),
            executeBefore=checked_instant("--before", self.before),
            createdAfter=checked_instant("--created-after", self.created_after),
            createdBefore=checked_instant("--created-before", self.created_before),
            name=self.name,
            status=self.status,
        )
        scope = ScopeOptions(self.namespace, self.tenant).fields()
        return {**scope, **given(filter=chosen or None, all=self.everything or None)}


@command(app, "create", example="jobs create cancel --destination old.example --rate 200 --watch")
def create(
    *,
    action: Annotated[
        str,
        typer.Argument(
            metavar="ACTION",
            help="cancel, shift or set-url of timers; pause, resume, delete or set-url of schedules; replay of failures; "
            "with --tenant, replay or delete of service calls.",
        ),
    ],
    rows: RowOptions,
    schedules: Annotated[bool, typer.Option("--schedules", help="set-url: of schedules instead of timers.")] = False,
    shift_by: Annotated[str | None, typer.Option(metavar="DURATION", help="shift: by how much, as 2h or -2h.")] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="The URL to call: of set-url, and of replay if it has moved.")
    ] = None,
    rate: Annotated[int | None, typer.Option(metavar="N", help="Rows a second, at most.", show_default="500")] = None,
    match_max: Annotated[
        int | None, typer.Option(metavar="N", help="The job fails instead of changing more rows.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count the rows that match.")] = False,
    idempotency_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="With --yes: makes the command safe to repeat, it creates one job."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't count the rows and ask before they change.")] = False,
    watch: Watch = False,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Create a job. On a terminal a dry run counts the rows first, and you are asked; then the job changes no more than
    these."""
    request = {
        **rows.fields(),
        "action": "setUrl" if action == "set-url" else action,
        "of": _of(action, schedules=schedules, has_tenant=rows.tenant is not None),
        **given(shiftBy=shift_by, url=url, ratePerSecond=rate, matchMax=match_max, dryRun=dry_run or None),
    }
    with server.client() as client:
        if not (yes or dry_run) and sys.stdin.isatty():
            request |= _confirmed(client, request)
        # The client repeats a request whose outcome is unknown.
        request["idempotencyKey"] = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        job = client.post("/jobs/create", request)["job"]
        # What a dry run finds is all there is to it.
        if watch or dry_run:
            job = watched(client, job)
    show(job, as_json)


def _of(action: str, *, schedules: bool, has_tenant: bool) -> str:
    if has_tenant and action == "delete":
        return "calls"
    return "schedules" if schedules else _OF.get(action, "timers")


def _confirmed(client: Client, request: dict[str, Any]) -> dict[str, Any]:
    """Counts the rows and asks. What the request has besides, so that these rows are changed and no others."""
    dry_run = {**request, "dryRun": True, "idempotencyKey": str(uuid.uuid4())}
    counted = watched(client, client.post("/jobs/create", dry_run)["job"])
    if counted["state"] != "completed":
        raise Refused(f"the dry run {counted['id']} has ended as {counted['state']}: {counted.get('reason', '')}")
    if not counted["matched"]:
        raise Refused("no row matches; nothing was changed")
    where = f"tenant {request['tenant']}" if "tenant" in request else f"namespace {request['namespace']}"
    what = f"{request['action']} of {counted['matched']:,} {request['of']} in {where}"
    if not typer.confirm(f"{what}: go on?", err=True):
        raise Refused("nothing was changed")
    chosen = {**request.get("filter", {}), "createdBefore": counted["filter"]["createdBefore"]}
    return {"matchMax": counted["matched"], "filter": chosen}


@command(app, "get", example="jobs get 5f2b8c1d9e3a7f6045c2d1ab --watch")
def get(*, job_id: JobId, watch: Watch = False, server: ServerOptions, as_json: AsJson = False) -> None:
    """Show a job: how far it is, or how it ended."""
    with server.client() as client:
        job = client.post("/jobs/get", {"jobId": job_id})["job"]
        if watch:
            job = watched(client, job)
    show(job, as_json)


@command(app, "list", example="jobs list")
def list_jobs(
    *,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", metavar="NAME", help="Only jobs of this namespace, and of all together."),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(metavar="ID", help="Only jobs of this tenant, and of all together.")
    ] = None,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """List the jobs, newest first."""
    answer = server.post("/jobs/list", given(namespace=namespace, tenant=tenant))
    columns = ("id", "scope", "action", "of", "state", *_COUNTS, "created")
    output.print_page(
        answer,
        as_json,
        "jobs",
        columns,
        (
            (
                *(job["id"], _where(job), job["action"], job["of"], _state(job)),
                *(job[name] for name in _COUNTS),
                job["createdAt"],
            )
            for job in answer["jobs"]
        ),
    )


@command(app, "pause", example="jobs pause 5f2b8c1d9e3a7f6045c2d1ab")
def pause(*, job_id: JobId, server: ServerOptions, as_json: AsJson = False) -> None:
    """Pause a job, until `resume`."""
    show(server.post("/jobs/pause", {"jobId": job_id})["job"], as_json)


@command(app, "resume", example="jobs resume 5f2b8c1d9e3a7f6045c2d1ab --watch")
def resume(*, job_id: JobId, watch: Watch = False, server: ServerOptions, as_json: AsJson = False) -> None:
    """Go on with a paused job."""
    with server.client() as client:
        job = client.post("/jobs/resume", {"jobId": job_id})["job"]
        if watch:
            job = watched(client, job)
    show(job, as_json)


@command(app, "cancel", example="jobs cancel 5f2b8c1d9e3a7f6045c2d1ab")
def cancel(*, job_id: JobId, server: ServerOptions, as_json: AsJson = False) -> None:
    """End a job; what it has changed stays changed."""
    show(server.post("/jobs/cancel", {"jobId": job_id})["job"], as_json)


@command(app, "set-rate", example="jobs set-rate 5f2b8c1d9e3a7f6045c2d1ab 50")
def set_rate(
    *,
    job_id: JobId,
    rate: Annotated[int, typer.Argument(metavar="N", help="Rows a second, at most.")],
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Change how many rows a second a job changes at most."""
    show(server.post("/jobs/setRate", {"jobId": job_id, "ratePerSecond": rate})["job"], as_json)


def watched(client: Client, job: dict[str, Any]) -> dict[str, Any]:
    """The job once it no longer runs. Ctrl-C leaves it running."""
    what = f"{job['action']} of {job['of']}"
    with output.progress(what, total=job.get("matchMax")) as advance:
        advance(seen := job["matched"])
        while job["state"] == "running":
            time.sleep(_WATCH_S)
            job = client.post("/jobs/get", {"jobId": job["id"]})["job"]
            advance(job["matched"] - seen)
            seen = job["matched"]
    return job


def _where(row: dict[str, Any]) -> str:
    """The namespace or tenant of a job, or of a row that it could not change."""
    return str(row.get("namespace") or row.get("tenant"))


def _state(job: dict[str, Any]) -> str:
    return f"{job['state']} (dry run)" if job["dryRun"] else str(job["state"])


def show(job: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.print_json(job)
        return
    output.print_row(job, ("createdAt", "endedAt"), state=_state(job), dryRun=None, sampleErrors=None)
    if job["sampleErrors"]:
        output.print_table(
            ("scope", "id", "error"),
            [(_where(each), each["id"], each["error"]) for each in job["sampleErrors"]],
        )
