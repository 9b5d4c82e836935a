"""`tocsin calls`: submits and manages service calls; `calls_shown` formats the output."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from tocsin.cli import output
from tocsin.cli.command import Interrupted, Refused, WrongUsage, command, group
from tocsin.cli.options import (
    AsJson,
    CallHookOptions,
    ListedTenant,
    RetryOptions,
    ServerOptions,
    Tenant,
    checked_duration,
    checked_instant,
    given,
    headers,
    json_content,
)

if TYPE_CHECKING:
    from tocsin.cli.client import Client

#: Calls per page with `--all`.
PAGE_ROWS = 1_000
#: Polling interval of `--wait`: while a change is near, and at most.
POLL_INTERVAL_S = 0.2
POLL_INTERVAL_MAX_S = 5.0
FINISHED = ("Succeeded", "Failed")
WAITING = ("Scheduled", "Retrying")

app = group(
    "Service calls: HTTP requests to make now or later. Submit, show, tag, retry and delete them.",
    example="calls submit invoice http://127.0.0.1:9000/ --in 30s",
)

CallId = Annotated[str, typer.Argument(metavar="ID", help="Id of the call.")]
CallIds = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of the calls.")]
Tag = Annotated[str, typer.Argument(metavar="TAG", help="The tag.")]
Wait = Annotated[
    bool, typer.Option("--wait", help="Wait until the call has finished and show it; exit code 1 if it failed.")
]


@dataclass(frozen=True)
class WhenOptions:
    """When a call is made."""

    at: Annotated[
        str | None,
        typer.Option(metavar="INSTANT", help="When to send it, such as 2027-01-31T12:00:00Z.", show_default="now"),
    ] = None
    in_: Annotated[
        str | None, typer.Option("--in", metavar="DURATION", help="Delay from now: 500ms, 30s, 5m, 24h, 7d.")
    ] = None

    def fields(self) -> dict[str, Any]:
        """The fields of the submission; None for those that are not given."""
        if self.at is not None and self.in_ is not None:
            raise WrongUsage("--at and --in conflict; give only one of them, or neither for now")
        return {"dueAt": checked_instant("--at", self.at), "delay": checked_duration("--in", self.in_)}


@dataclass(frozen=True)
class RequestOptions:
    """The HTTP request that a call makes."""

    method: Annotated[
        str | None, typer.Option("--method", "-X", help="HTTP method.", show_default="POST with a body, else GET")
    ] = None
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="'NAME: VALUE'", help="Header of the request; may be repeated."),
    ] = None
    body: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Body: JSON, @file, or - for stdin; a JSON string is sent as plain text."),
    ] = None

    credential: Annotated[
        str | None, typer.Option(metavar="NAME", help="Credential of the agent's namespace that the request has.")
    ] = None

    def spec(self, url: str) -> dict[str, Any]:
        """The request to this URL."""
        method = self.method or ("GET" if self.body is None else "POST")
        body = None if self.body is None else json_content("--body", self.body)
        return given(
            method=method.upper(),
            url=url,
            headers=headers("--header", self.header),
            body=body,
            credential=self.credential,
        )


@dataclass(frozen=True)
class IdentityOptions:
    """What identifies a call and its repetitions."""

    call_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Id of the call, a UUID v7.", show_default="a new one")
    ] = None
    idempotency_key: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Makes the command safe to repeat: the same key and request return the existing call."
        ),
    ] = None

    def fields(self) -> dict[str, Any]:
        """The fields of the submission; None for those that are not given."""
        call_id = None if self.call_id is None else _checked(self.call_id)
        if not (self.call_id or self.idempotency_key):
            # Something has to identify a repeat: a retry after a 503 must not submit a second call.
            call_id = _new_id()
        return {"serviceCallId": call_id, "idempotencyKey": self.idempotency_key}


@command(app, "submit", example="""calls submit invoice http://127.0.0.1:9000/ --body '{"order": 17}' --in 30s""")
def submit(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Display name of the call.")],
    url: Annotated[str, typer.Argument(metavar="URL", help="URL to request.")],
    when: WhenOptions,
    request: RequestOptions,
    tag: Annotated[list[str] | None, typer.Option(help="Tag to filter lists by; may be repeated.")] = None,
    flow_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Flow whose limits apply to it, such as vendor.")
    ] = None,
    identity: IdentityOptions,
    retry: Annotated[
        bool, typer.Option("--retry", help="Retry failed attempts, by the options below.", show_default="one attempt")
    ] = False,
    retries: RetryOptions,
    hooks: CallHookOptions,
    wait: Wait = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the id.")] = False,
    tenant: Tenant = None,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Submit a call. Once accepted, it is on disk and will be made, also after a crash.

    A failed attempt is final unless `--retry` or a `--retry-…` option is given: a service may not tolerate repeats.
    """
    from tocsin.cli.calls_shown import show_call

    path = _path(tenant)
    policy = retries.policy() or ({"retryPolicy": {}} if retry else {})
    fields = given(**when.fields(), tags=tag or None, flowKey=flow_key, **identity.fields(), **hooks.fields())
    wanted = {"name": name, "requestSpec": request.spec(url) | policy, **fields}
    with server.client() as client:
        answer = client.call("POST", path, wanted)
        if quiet:
            output.print_plain(answer["serviceCallId"])
        if wait:
            _show_finished(_finished(client, path, answer["serviceCallId"]), as_json, quiet=quiet)
        elif as_json and not quiet:
            output.print_json(answer)
        elif not quiet:
            show_call(answer | given(dueAt=wanted.get("dueAt")))


@command(app, "get", example="calls get 01985a3e-7c1b-7d2e-9f64-3b8a5c0d1e2f --trace")
def get(
    *,
    call_id: CallId,
    trace: Annotated[
        bool, typer.Option("--trace", help="Show all rows and messages of its correlation id, in order of time.")
    ] = False,
    wait: Wait = False,
    tenant: Tenant = None,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Show a call with its outcome and executions, or its trace."""
    from tocsin.cli.calls_shown import show_call, show_trace

    if trace and wait:
        raise WrongUsage("--trace and --wait conflict; wait first, then show the trace")
    path, wanted = _path(tenant), _checked(call_id)
    with server.client() as client:
        if wait:
            _show_finished(_finished(client, path, wanted), as_json, quiet=False)
            return
        found = client.call("GET", f"{path}/{wanted}{'/trace' if trace else ''}")
    if as_json:
        output.print_json(found)
    elif trace:
        show_trace(found)
    else:
        show_call(found)


@command(app, "list", example="calls list --status Failed --tag billing")
def list_calls(
    *,
    status: Annotated[
        list[str] | None, typer.Option(help="Only Scheduled, Running, Retrying, Succeeded or Failed; may be repeated.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only calls with this tag; may be repeated.")] = None,
    name: Annotated[str | None, typer.Option(metavar="TEXT", help="Only calls whose name contains this.")] = None,
    correlation_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Only calls with this correlation id.")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="INSTANT", help="Only calls submitted at or after this instant.")
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="INSTANT", help="Only calls submitted before this instant.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of calls.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Cursor printed by the previous list.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All calls, however many; with --json, one line each.")] = False,
    tenant: ListedTenant = None,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """List the calls of a tenant, or of all, newest first."""
    from tocsin.cli.calls_shown import show_list

    query = {
        "status": [word[:1].upper() + word[1:].lower() for word in status or []],
        "tag": tag or [],
        "name": name,
        "correlationId": correlation_id,
        "from": checked_instant("--from", from_),
        "to": checked_instant("--to", to),
        "limit": PAGE_ROWS if every else limit,
        "cursor": cursor,
    }
    path = _path(tenant, listed=True)
    with server.client() as client:
        pages = _pages(client, path, query)
        if not every:
            # A page of a search by name may be empty although matches follow.
            page = next(page for page in pages if page["serviceCalls"] or not page.get("nextCursor"))
            if as_json:
                output.print_json(page)
                return
            show_list(page["serviceCalls"], tenant)
            if page.get("nextCursor"):
                output.note(f"More calls: --cursor {page['nextCursor']}, or --all")
        elif as_json:
            for call in (call for page in pages for call in page["serviceCalls"]):
                output.print_json(call)
        else:
            show_list([call for page in pages for call in page["serviceCalls"]], tenant)


@command(app, "tag", example="calls tag 01985a3e-7c1b-7d2e-9f64-3b8a5c0d1e2f star")
def tag_call(*, call_id: CallId, tag: Tag, tenant: Tenant = None, server: ServerOptions) -> None:
    """Add a tag to a call in any state."""
    _change("PUT", tenant, call_id, tag, server)
    output.note(f"Added the tag {tag} to {call_id}.")


@command(app, "untag", example="calls untag 01985a3e-7c1b-7d2e-9f64-3b8a5c0d1e2f star")
def untag_call(*, call_id: CallId, tag: Tag, tenant: Tenant = None, server: ServerOptions) -> None:
    """Remove a tag from a call."""
    _change("DELETE", tenant, call_id, tag, server)
    output.note(f"Removed the tag {tag} from {call_id}.")


@command(app, "delete", example="calls delete 01985a3e-7c1b-7d2e-9f64-3b8a5c0d1e2f")
def delete(*, call_ids: CallIds, tenant: Tenant = None, server: ServerOptions) -> None:
    """Delete Scheduled or Retrying calls: they are not made, or not again. Running and finished calls can't be deleted."""
    _each(server, tenant, call_ids, "DELETE", "", "deleted")


@command(app, "retry", example="calls retry 01985a3e-7c1b-7d2e-9f64-3b8a5c0d1e2f")
def retry(*, call_ids: CallIds, tenant: Tenant = None, server: ServerOptions) -> None:
    """Attempt Failed calls once more, at once: the same request in the same log, under the same webhook-id."""
    _each(server, tenant, call_ids, "POST", "/retry", "attempted again")


@command(app, "new-tenant", example="calls new-tenant")
def new_tenant() -> None:
    """Print an id for a new tenant, a UUID v7: export TOCSIN_TENANT=$(tocsin calls new-tenant). Tenants need no
    registration."""
    typer.echo(_new_id())


def _each(server: ServerOptions, tenant: str | None, call_ids: list[str], method: str, action: str, done: str) -> None:
    path, wanted = _path(tenant), [_checked(call_id) for call_id in call_ids]
    with server.client() as client:
        output.each_done(wanted, lambda one: client.call(method, f"{path}/{one}{action}"), done)


def _change(method: str, tenant: str | None, call_id: str, tag: str, server: ServerOptions) -> None:
    path = f"{_path(tenant)}/{_checked(call_id)}/tags/{quote(tag, safe='')}"
    with server.client() as client:
        client.call(method, path)


def _path(tenant: str | None, *, listed: bool = False) -> str:
    from tocsin.model.access import EVERY
    from tocsin.model.ids import is_uuid7

    if not tenant:
        raise WrongUsage(
            "--tenant is missing; give --tenant ID, or set TOCSIN_TENANT; `tocsin calls new-tenant` creates an id:\n"
            "  export TOCSIN_TENANT=$(tocsin calls new-tenant)"
        )
    if not is_uuid7(tenant.lower()) and not (listed and tenant == EVERY):
        raise WrongUsage(f"--tenant: {tenant!r} is not a UUID v7; `tocsin calls new-tenant` creates one")
    return f"/api/v1/tenants/{tenant.lower()}/service-calls"


def _checked(call_id: str) -> str:
    from tocsin.model.ids import is_uuid7

    if not is_uuid7(call_id.lower()):
        raise WrongUsage(f"ID: {call_id!r} is not a UUID v7, the form of call ids; `tocsin calls list` shows them")
    return call_id.lower()


def _new_id() -> str:
    from tocsin.model.ids import Uuid7Source

    return Uuid7Source(lambda: time.time_ns() // 1_000)()


def _pages(client: Client, path: str, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
    cursor = query["cursor"]
    while True:
        page = client.call("GET", path, query=query | {"cursor": cursor})
        yield page
        cursor = page.get("nextCursor")
        if not cursor:
            return


def _finished(client: Client, path: str, call_id: str | None) -> dict[str, Any]:
    """The call once it has finished; reports its status changes on stderr until then."""
    reported = ""
    try:
        while True:
            call: dict[str, Any] = client.call("GET", f"{path}/{call_id}")
            if call["status"] in FINISHED:
                return call
            if call["status"] != reported:
                reported = call["status"]
                due = f", due {output.relative(_awaited(call))}" if reported in WAITING else ""
                output.note(f"{time.strftime('%H:%M:%S')}  {reported}{due}")
            time.sleep(_pause_s(call))
    except KeyboardInterrupt:
        raise Interrupted(
            f"stopped waiting; the call continues. To wait again: tocsin calls get {call_id} --wait"
        ) from None


def _pause_s(call: dict[str, Any]) -> float:
    from tocsin.model.instants import parse_instant

    if call["status"] not in WAITING:
        return POLL_INTERVAL_S
    return min(POLL_INTERVAL_MAX_S, max(POLL_INTERVAL_S, parse_instant(_awaited(call)) / 1e6 - time.time()))


def _awaited(call: dict[str, Any]) -> str:
    """The instant that a call waits for."""
    return str(call.get("nextAttemptAt") or call["dueAt"])


def _show_finished(call: dict[str, Any], as_json: bool, *, quiet: bool) -> None:
    from tocsin.cli.calls_shown import outcome_text, show_call

    if as_json and not quiet:
        output.print_json(call)
    elif not quiet:
        show_call(call)
    if call["status"] == "Failed":
        raise Refused(f"the call failed: {outcome_text(call.get('outcome'))}")
