"""`tocsin timers`; `import` and `export` are in `transfer`."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli import output, transfer
from tocsin.cli.command import Refused, WrongUsage, command, group
from tocsin.cli.options import (
    AsJson,
    CallbackOptions,
    HookOptions,
    Namespace,
    RetryDefault,
    RetryOptions,
    ServerOptions,
    TimerFilterOptions,
    checked_duration,
    checked_instant,
    duration_us,
    given,
    headers,
)

if TYPE_CHECKING:
    from tocsin.cli.client import Client

PAGE_ROWS = 1_000

app = group(
    "Create, show, change, replay, import and export timers.", example="timers create http://127.0.0.1:9000/ --in 30s"
)


@command(app, "watch", example="timers watch order-17")
def watch(
    *,
    timer_ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of the timers.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Instead of ids: all timers with this tag; may be repeated.")
    ] = None,
    namespace: Namespace = "default",
    interval: Annotated[str, typer.Option(metavar="DURATION", help="Polling interval.")] = "500ms",
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Show each change of state until all timers have finished; exit code 1 if one failed."""
    if bool(timer_ids) == bool(tag):
        raise WrongUsage("give either ids or --tag")
    pause_s = max(0.05, duration_us("--interval", interval) / 1e6)
    shown: dict[str, tuple[Any, ...]] = {}
    failed: set[str] = set()
    with server.client() as client:
        while True:
            pending = False
            timers = _by_id(client, namespace, timer_ids, shown) if timer_ids else _by_tag(client, namespace, tag or [])
            for timer in timers:
                state = (timer["status"], timer.get("attempts"), timer.get("executeAt"), timer.get("lastError"))
                if shown.get(timer["id"]) != state:
                    shown[timer["id"]] = state
                    _print_state(timer, as_json)
                pending |= timer["status"] == "pending"
                (failed.add if timer["status"] in ("failed", "expired") else failed.discard)(timer["id"])
            if not pending:
                break
            time.sleep(pause_s)
    if not shown:
        raise Refused(f"no timer in namespace {namespace} has the tag {' and '.join(tag or [])}")
    if failed:
        raise Refused(f"failed: {', '.join(sorted(failed))}")


def _by_id(
    client: Client, namespace: str, timer_ids: list[str], shown: dict[str, tuple[Any, ...]]
) -> Iterator[dict[str, Any]]:
    from tocsin.cli.client import ServerRefused

    for timer_id in timer_ids:
        try:
            yield client.post("/timers/get", {"namespace": namespace, "timerId": timer_id})
        except ServerRefused as refusal:
            if refusal.code != "TIMER_NOT_FOUND" or timer_id not in shown:
                raise
            # The timer finished, and its namespace keeps no history of such timers.
            yield {"id": timer_id, "status": "gone"}


def _by_tag(client: Client, namespace: str, tags: list[str]) -> Iterator[dict[str, Any]]:
    for page in client.pages("/timers/list", {"namespace": namespace, "tags": tags, "limit": PAGE_ROWS}):
        yield from page["timers"]


def _print_state(timer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.print_json(timer)
        return
    parts = [(time.strftime("%H:%M:%S  ") + timer["id"] + "  ", "")]
    parts.append((timer["status"], output.STATUS_STYLES.get(timer["status"], "")))
    if timer["status"] == "pending":
        parts.append((f"  due {output.relative(timer.get('nextAttemptAt') or timer['executeAt'])}", ""))
    if timer.get("attempts"):
        parts.append((f"  attempts {timer['attempts']}", ""))
    if timer.get("lastError"):
        parts.append((f"  {timer['lastError']}", "red"))
    output.print_line(parts)


command(app, "import", example="timers import timers.csv --namespace billing")(transfer.import_timers)
command(app, "export", example="timers export --status pending --output timers.jsonl")(transfer.export_timers)

TimerId = Annotated[str, typer.Argument(metavar="ID", help="Id of the timer.")]
At = Annotated[str | None, typer.Option("--at", metavar="INSTANT", help="When to fire, such as 2027-01-31T12:00:00Z.")]
In = Annotated[str | None, typer.Option("--in", metavar="DURATION", help="Delay from now: 500ms, 30s, 5m, 24h, 7d.")]
OnConflict = Annotated[
    str | None,
    typer.Option(
        "--on-conflict",
        metavar="WHAT",
        help="What to do if a timer with this id exists: replace, keep or reject.",
        show_default="replace",
    ),
]
Debounce = Annotated[
    str | None,
    typer.Option(
        "--debounce",
        metavar="DURATION",
        help="Fire once for all creates of this id that follow one another, this long after the latest; with --max-delay.",
    ),
]
MaxDelay = Annotated[
    str | None,
    typer.Option(
        "--max-delay",
        metavar="DURATION",
        help="With --debounce: fire at the latest this long after the first create.",
    ),
]
Collect = Annotated[
    int | None,
    typer.Option(
        "--collect",
        metavar="COUNT",
        min=1,
        help="With --debounce: send an array of the payloads of all creates, at most so many (100), not the latest.",
    ),
]
_ATTEMPT_COLUMNS = ("attempt", "duration", "result", "answer")

IdempotencyKey = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key",
        metavar="TEXT",
        help="Makes the command safe to repeat: with the same --id and key, it creates one timer, which fires once.",
    ),
]


@command(app, "create", example="""timers create http://127.0.0.1:9000/ --in 30s --payload '{"order": 17}'""")
def create(
    *,
    url: Annotated[str, typer.Argument(metavar="URL", help="URL to call.")],
    at: At = None,
    in_: In = None,
    timer_id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Id of the timer, unique in the namespace.", show_default="a new UUID"),
    ] = None,
    namespace: Namespace = "default",
    callback: CallbackOptions,
    hooks: HookOptions,
    retries: RetryOptions,
    on_conflict: OnConflict = None,
    debounce: Debounce = None,
    max_delay: MaxDelay = None,
    collect: Collect = None,
    idempotency_key: IdempotencyKey = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the id.")] = False,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Create a timer, or replace the pending one with the same id, or join it (--debounce)."""
    if idempotency_key is not None and timer_id is None:
        raise WrongUsage("--idempotency-key requires --id: the key is stored with the timer of that id")
    if debounce is not None:
        _check_debounce(timer_id, at, in_, on_conflict, max_delay)
    elif max_delay is not None or collect is not None:
        raise WrongUsage("--max-delay and --collect require --debounce, such as --debounce 5s --max-delay 1m")
    elif (at is None) == (in_ is None):
        raise WrongUsage("give exactly one of --in, such as --in 30s, and --at, such as --at 2027-01-31T12:00:00Z")
    request = {
        "namespace": namespace,
        "id": timer_id if timer_id is not None else str(uuid.uuid4()),
        "executeAt": checked_instant("--at", at),
        "delay": checked_duration("--in", in_) if debounce is None else checked_duration("--debounce", debounce),
        "callbackUrl": url,
        **callback.fields(),
        **hooks.fields(),
        **retries.policy(),
        "onConflict": on_conflict if debounce is None else "debounce",
        "maxDelay": checked_duration("--max-delay", max_delay),
        "collect": collect,
        # The client retries after a 503, whose outcome may be unknown: the timer must not fire twice.
        "idempotencyKey": idempotency_key if idempotency_key is not None else str(uuid.uuid4()),
    }
    with server.client() as client:
        timer, found = client.create(given(**request))
    if found == "existing":
        output.note("A timer with this id exists and was kept; nothing was written.")
    elif found == "replayed":
        output.note("An earlier create with this key made the timer; nothing was written.")
    if quiet:
        output.print_plain(timer["id"])
    else:
        _show(timer, as_json)


def _check_debounce(
    timer_id: str | None, at: str | None, in_: str | None, on_conflict: str | None, max_delay: str | None
) -> None:
    """Raises WrongUsage for options that --debounce does not go with, or requires."""
    if timer_id is None:
        raise WrongUsage("--debounce requires --id: creates of the same id are debounced")
    if max_delay is None:
        raise WrongUsage("--debounce requires --max-delay, such as --debounce 5s --max-delay 1m")
    if at is not None or in_ is not None or on_conflict is not None:
        raise WrongUsage("--debounce conflicts with --in, --at and --on-conflict; leave these out")


@command(app, "get", example="timers get order-17")
def get(*, timer_id: TimerId, namespace: Namespace = "default", server: ServerOptions, as_json: AsJson = False) -> None:
    """Show one timer, pending or finished."""
    _show(server.post("/timers/get", {"namespace": namespace, "timerId": timer_id}), as_json)


@command(app, "explain", example="timers explain order-17")
def explain(
    *, timer_id: TimerId, namespace: Namespace = "default", server: ServerOptions, as_json: AsJson = False
) -> None:
    """Explain what a timer waits for, and what happens next."""
    found = server.post("/timers/explain", {"namespace": namespace, "timerId": timer_id})
    if as_json:
        output.print_json(found)
        return
    output.print_plain(found["sentence"])
    fields = {"state": found["state"], "waits for": found.get("waitsFor"), "next": found.get("next")}
    if found.get("next"):
        fields["next"] = f"{found['next']} ({output.relative(found['next'])})"
    owner = found["owner"] or "none"
    output.print_fields(
        {**{name: text for name, text in fields.items() if text}, "shard": found["shard"], "owner": owner}
    )


@command(app, "history", example="timers history order-17")
def history(
    *,
    timer_id: TimerId,
    namespace: Namespace = "default",
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of runs.")] = 20,
    cursor: Annotated[str | None, typer.Option(help="Cursor printed by the previous page.")] = None,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Show the runs of a timer with their attempts, newest first."""
    request = given(namespace=namespace, timerId=timer_id, limit=limit, cursor=cursor)
    answer = server.post("/timers/history", request)
    lines = (line for run in answer["runs"] for line in _run_lines(run))
    output.print_page(answer, as_json, "runs", ("run", "status", "due", *_ATTEMPT_COLUMNS), lines)


def _run_lines(run: dict[str, Any]) -> list[tuple[object, ...]]:
    """A run's line, which has its first attempt, and a line for each further attempt."""
    first, *others = _attempts(run) or [("",) * len(_ATTEMPT_COLUMNS)]
    head = (run["run"], run["status"], run["executeAt"])
    return [(*head, *first), *(("", "", "", *each) for each in others)]


def _attempts(made: dict[str, Any]) -> list[tuple[object, ...]]:
    """A line for each attempt of a timer or a run."""
    return [
        (each["startedAt"], f"{each['durationMs']:g} ms", each.get("error") or each.get("status"), each.get("answer"))
        for each in made.get("attemptLog", ())
    ]


@command(app, "list", example="timers list --status failed --tag billing")
def list_timers(
    *,
    filters: TimerFilterOptions,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of timers.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Cursor printed by the previous list.")] = None,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """List timers in the order in which they are due. `export` writes all of them, however many."""
    from tocsin.cli.rows import last_columns

    answer = server.post("/timers/list", {**filters.query(limit=limit, cursor=cursor), "explain": True})
    last = last_columns(answer["timers"])
    output.print_page(
        answer,
        as_json,
        "timers",
        (
            *output.scope_column(filters.namespace, "namespace"),
            "id",
            "status",
            "due",
            "",
            "attempts",
            "last error",
            *last,
        ),
        (
            (
                *output.scope_column(filters.namespace, timer["namespace"]),
                timer["id"],
                output.status(timer),
                timer["executeAt"],
                output.relative(timer["executeAt"]),
                timer.get("attempts") or "",
                timer.get("lastError"),
                *map(timer.get, last.values()),
            )
            for timer in answer["timers"]
        ),
    )


@command(app, "update", example="timers update order-17 --in 5m")
def update(
    *,
    timer_id: TimerId,
    at: At = None,
    in_: In = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="URL to call.")] = None,
    namespace: Namespace = "default",
    callback: CallbackOptions,
    hooks: HookOptions,
    no_expiry: Annotated[bool, typer.Option("--no-expiry", help="Remove the limit set with --expire-after.")] = False,
    retries: RetryOptions,
    retry_default: RetryDefault = False,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Change a pending timer; options not given keep their value. Retry policy, headers and tags are replaced as a whole."""
    if at is not None and in_ is not None:
        raise WrongUsage("--at and --in conflict; give only one of them")
    if callback.expire_after is not None and no_expiry:
        raise WrongUsage("--expire-after and --no-expiry conflict; give only one of them")
    changes = {
        "executeAt": checked_instant("--at", at),
        "delay": checked_duration("--in", in_),
        "callbackUrl": url,
        **callback.fields(),
        **hooks.fields(),
    }
    changes = given(**changes) | retries.policy(remove=retry_default) | ({"expireAfter": None} if no_expiry else {})
    if not changes:
        raise WrongUsage("no change given; give --in, --at, --url, --payload, …")
    _show(server.post("/timers/update", {"namespace": namespace, "timerId": timer_id, **changes}), as_json)


@command(app, "delete", example="timers delete order-17 order-18")
def delete(
    *,
    timer_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of the timers.")],
    namespace: Namespace = "default",
    server: ServerOptions,
) -> None:
    """Cancel pending timers. An attempt that is in flight may still arrive; it is not retried."""
    with server.client() as client:
        output.each_done(
            timer_ids, lambda one: client.post("/timers/delete", {"namespace": namespace, "timerId": one}), "canceled"
        )


@command(app, "replay", example="timers replay order-17 order-18")
def replay(
    *,
    timer_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of the timers.")],
    at: At = None,
    in_: In = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="URL to call.", show_default="that of each timer")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", "-H", metavar="'NAME: VALUE'", help="Instead of each timer's own headers; may be repeated."
        ),
    ] = None,
    namespace: Namespace = "default",
    server: ServerOptions,
) -> None:
    """Fire finished timers again, at once unless --at or --in is given. Each keeps its id and its webhook-id, so that a
    receiver that has done the work recognises the repetition; its attempts start over."""
    if at is not None and in_ is not None:
        raise WrongUsage("--at and --in conflict; give only one of them")
    request = given(
        namespace=namespace,
        executeAt=checked_instant("--at", at),
        delay=checked_duration("--in", in_),
        setUrl=url,
        setHeaders=headers("--header", header),
    )
    results: dict[str, dict[str, Any]] = {}
    wanted = list(dict.fromkeys(timer_ids))
    with server.client() as client:
        for start in range(0, len(wanted), PAGE_ROWS):
            ids = wanted[start : start + PAGE_ROWS]
            answer = client.post("/timers/replay", {**request, "ids": ids})
            results.update(zip(ids, answer["results"], strict=True))

    def shown(one: str) -> None:
        if (error := results[one].get("error")) is not None:
            raise Refused(f"{error['error']}: {error['message']}")

    output.each_done(wanted, shown, "pending again")


def _show(timer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.print_json(timer)
        return
    output.print_row(timer, ("executeAt", "nextAttemptAt"), attemptLog=None)
    if attempts := _attempts(timer):
        output.print_table(_ATTEMPT_COLUMNS, attempts)
