"""`tocsin timers`: create, get, list, update, delete; `watch`, `import` and `export` are in modules of their own."""

from __future__ import annotations

import time
import uuid
from typing import Annotated, Any

import typer

from tocsin.cli import exporting, importing, output, watch
from tocsin.cli.failure import WrongUsage
from tocsin.cli.options import (
    SERVER_DEFAULT,
    ApiKeyOption,
    AsJson,
    IdPrefix,
    Namespace,
    RetryAttempts,
    RetryDefault,
    RetryFactor,
    RetryFor,
    RetryInitial,
    RetryMax,
    Server,
    Status,
    checked_duration,
    checked_instant,
    content,
    duration_us,
    headers,
    json_content,
    retry_policy,
)

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Create, show, change, import and export timers.",
    epilog="Example: tocsin timers create http://127.0.0.1:9000/ --in 30s",
)
watch.register(app)
importing.register(app)
exporting.register(app)

TimerId = Annotated[str, typer.Argument(metavar="ID", help="Id of the timer.")]
At = Annotated[str | None, typer.Option("--at", metavar="INSTANT", help="When to fire, such as 2027-01-31T12:00:00Z.")]
In = Annotated[str | None, typer.Option("--in", metavar="DURATION", help="Delay from now: 500ms, 30s, 5m, 24h, 7d.")]
Payload = Annotated[
    str | None, typer.Option("--payload", metavar="JSON", help="Payload of the callback: JSON, @file, or - for stdin.")
]
Body = Annotated[
    str | None,
    typer.Option(
        "--body",
        metavar="CONTENT",
        help="Body of the callback, sent as is instead of a payload: text, @file (any bytes), or - for stdin.",
    ),
]
ContentType = Annotated[
    str | None,
    typer.Option(
        "--content-type",
        metavar="TYPE",
        help="Media type of --body.",
        show_default="text/plain; charset=utf-8, or application/octet-stream for other bytes",
    ),
]
Method = Annotated[str | None, typer.Option("--method", help="The callback's HTTP method.", show_default="POST")]
Header = Annotated[
    list[str] | None,
    typer.Option("--header", "-H", metavar="'NAME: VALUE'", help="Additional header of the callback; may be repeated."),
]
Tag = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="Tag to filter lists by; may be repeated.")]
Timeout = Annotated[
    float | None, typer.Option("--timeout", metavar="SECONDS", help="Timeout of each attempt.", show_default="10")
]
OnConflict = Annotated[
    str | None,
    typer.Option(
        "--on-conflict",
        metavar="WHAT",
        help="What to do if a timer with this id exists: replace, keep or reject.",
        show_default="replace",
    ),
]
IdempotencyKey = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key",
        metavar="TEXT",
        help="Makes the command safe to repeat: with the same --id and key, it creates one timer, which fires once.",
    ),
]


@app.command(
    "create", epilog="""Example: tocsin timers create http://127.0.0.1:9000/ --in 30s --payload '{"order": 17}'"""
)
def create(
    url: Annotated[str, typer.Argument(metavar="URL", help="URL to call.")],
    at: At = None,
    in_: In = None,
    timer_id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Id of the timer, unique in the namespace.", show_default="a new UUID"),
    ] = None,
    namespace: Namespace = "default",
    payload: Payload = None,
    body: Body = None,
    content_type: ContentType = None,
    method: Method = None,
    header: Header = None,
    tag: Tag = None,
    timeout: Timeout = None,
    retry_attempts: RetryAttempts = None,
    retry_for: RetryFor = None,
    retry_initial: RetryInitial = None,
    retry_factor: RetryFactor = None,
    retry_max_interval: RetryMax = None,
    on_conflict: OnConflict = None,
    idempotency_key: IdempotencyKey = None,
    server: Server = SERVER_DEFAULT,
    key: ApiKeyOption = None,
    as_json: AsJson = False,
) -> None:
    """Create a timer, or replace the pending one with the same id."""
    if idempotency_key is not None and timer_id is None:
        raise WrongUsage("--idempotency-key requires --id: the key is stored with the timer of that id")
    if (at is None) == (in_ is None):
        raise WrongUsage("give exactly one of --in, such as --in 30s, and --at, such as --at 2027-01-31T12:00:00Z")
    request = {
        "namespace": namespace,
        "id": timer_id if timer_id is not None else str(uuid.uuid4()),
        "executeAt": checked_instant("--at", at),
        "delay": checked_duration("--in", in_),
        "callbackUrl": url,
        **_optional(payload, method, header, tag, timeout),
        "body": _raw_body(body, content_type, payload),
        **retry_policy(retry_attempts, retry_for, retry_initial, retry_factor, retry_max_interval),
        "onConflict": on_conflict,
        # The client retries after a 503, whose outcome may be unknown: the timer must not fire twice.
        "idempotencyKey": idempotency_key if idempotency_key is not None else str(uuid.uuid4()),
    }
    _show(_create(server, key, _given(request)), as_json)


@app.command("get", epilog="Example: tocsin timers get order-17")
def get(
    timer_id: TimerId,
    namespace: Namespace = "default",
    server: Server = SERVER_DEFAULT,
    key: ApiKeyOption = None,
    as_json: AsJson = False,
) -> None:
    """Show one timer, pending or finished."""
    _show(_post(server, key, "/timers/get", {"namespace": namespace, "timerId": timer_id}), as_json)


@app.command("list", epilog="Example: tocsin timers list --status failed --tag billing")
def list_timers(
    namespace: Namespace = "default",
    status: Status = None,
    id_prefix: IdPrefix = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Only timers with this tag; may be repeated.")] = None,
    after: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="Only timers due at or after this instant.")
    ] = None,
    before: Annotated[str | None, typer.Option(metavar="INSTANT", help="Only timers due before this instant.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of timers.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Cursor printed by the previous list.")] = None,
    server: Server = SERVER_DEFAULT,
    key: ApiKeyOption = None,
    as_json: AsJson = False,
) -> None:
    """List timers in the order in which they are due. `export` writes all of them, however many."""
    body = {
        "namespace": namespace,
        "status": status or None,
        "idPrefix": id_prefix,
        "tags": tag or None,
        "executeAfter": checked_instant("--after", after),
        "executeBefore": checked_instant("--before", before),
        "limit": limit,
        "cursor": cursor,
    }
    answer = _post(server, key, "/timers/list", _given(body))
    if as_json:
        output.print_json(answer)
        return
    output.print_table(
        ("id", "status", "due", "", "attempts", "last error", "callback"),
        [
            (
                timer["id"],
                timer["status"],
                timer["executeAt"],
                output.relative(timer["executeAt"]),
                timer.get("attempts") or "",
                timer.get("lastError"),
                timer["callbackUrl"],
            )
            for timer in answer["timers"]
        ],
    )
    if answer.get("nextCursor"):
        output.note(f"More timers: --cursor {answer['nextCursor']}")


@app.command("update", epilog="Example: tocsin timers update order-17 --in 5m")
def update(
    timer_id: TimerId,
    at: At = None,
    in_: In = None,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="URL to call.")] = None,
    namespace: Namespace = "default",
    payload: Payload = None,
    body: Body = None,
    content_type: ContentType = None,
    method: Method = None,
    header: Header = None,
    tag: Tag = None,
    timeout: Timeout = None,
    retry_attempts: RetryAttempts = None,
    retry_for: RetryFor = None,
    retry_initial: RetryInitial = None,
    retry_factor: RetryFactor = None,
    retry_max_interval: RetryMax = None,
    retry_default: RetryDefault = False,
    server: Server = SERVER_DEFAULT,
    key: ApiKeyOption = None,
    as_json: AsJson = False,
) -> None:
    """Change a pending timer; options not given keep their value. Retry policy, headers and tags are replaced as a whole."""
    if at is not None and in_ is not None:
        raise WrongUsage("--at and --in conflict; give only one of them")
    changes = {
        "executeAt": _from_now(in_) if in_ is not None else checked_instant("--at", at),
        "callbackUrl": url,
        **_optional(payload, method, header, tag, timeout),
        "body": _raw_body(body, content_type, payload),
        **retry_policy(retry_attempts, retry_for, retry_initial, retry_factor, retry_max_interval),
    }
    changes = _given(changes)
    if retry_default:
        if "retryPolicy" in changes:
            raise WrongUsage("--retry-default conflicts with the other --retry-… options; give only one kind")
        changes["retryPolicy"] = None
    if not changes:
        raise WrongUsage("no change given; give --in, --at, --url, --payload, …")
    _show(_post(server, key, "/timers/update", {"namespace": namespace, "timerId": timer_id, **changes}), as_json)


@app.command("delete", epilog="Example: tocsin timers delete order-17 order-18")
def delete(
    timer_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of the timers.")],
    namespace: Namespace = "default",
    server: Server = SERVER_DEFAULT,
    key: ApiKeyOption = None,
) -> None:
    """Cancel pending timers. An attempt that is in flight may still arrive; it is not retried."""
    from tocsin.cli.client import Client
    from tocsin.cli.failure import Refused

    refused = []
    with Client(server, key) as client:
        for timer_id in timer_ids:
            try:
                client.post("/timers/delete", {"namespace": namespace, "timerId": timer_id})
                output.note(f"{timer_id} is canceled.")
            except Refused as refusal:
                refused.append(f"{timer_id}: {refusal}")
    if refused:
        raise Refused("\n".join(refused))


def _optional(
    payload: str | None, method: str | None, header: list[str] | None, tag: list[str] | None, timeout: float | None
) -> dict[str, Any]:
    return {
        "payload": None if payload is None else json_content("--payload", payload),
        "method": method,
        "headers": headers("--header", header),
        "tags": tag or None,
        "callbackTimeoutSeconds": int(timeout) if timeout is not None and timeout.is_integer() else timeout,
    }


def _raw_body(text: str | None, media_type: str | None, payload: str | None) -> dict[str, str] | None:
    if text is None:
        if media_type is not None:
            raise WrongUsage("--content-type requires --body; a payload is always JSON")
        return None
    if payload is not None:
        raise WrongUsage("--payload and --body conflict; give only one of them")
    raw = content("--body", text)
    given = {} if media_type is None else {"contentType": media_type}
    try:
        return {"text": raw.decode(), **given}
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(raw).decode(), **given}


def _given(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


def _from_now(text: str) -> str:
    """The instant that `--in` means, by this machine's clock."""
    from tocsin.model.instants import format_instant

    return format_instant(time.time_ns() // 1_000 + duration_us("--in", text))


def _post(server: str, key: str | None, path: str, body: dict[str, Any]) -> Any:
    from tocsin.cli.client import Client

    with Client(server, key) as client:
        return client.post(path, body)


def _create(server: str, key: str | None, body: dict[str, Any]) -> dict[str, Any]:
    from tocsin.cli.client import Client

    with Client(server, key) as client:
        timer, found = client.create(body)
    if found == "existing":
        output.note("A timer with this id exists and was kept; nothing was written.")
    elif found == "replayed":
        output.note("An earlier create with this key made the timer; nothing was written.")
    return timer  # type: ignore[no-any-return]


def _show(timer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.print_json(timer)
        return
    fields: dict[str, object] = {}
    for name, value in timer.items():
        fields[name] = value if isinstance(value, str | int | float) else output.compact(value)
    for name in ("executeAt", "nextAttemptAt"):
        if fields.get(name):
            fields[name] = f"{fields[name]} ({output.relative(timer[name])})"
    output.print_fields(fields)
