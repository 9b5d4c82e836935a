"""`tocsin schedules`: many at once are declared in a file (`tocsin.cli.declared`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.command import WrongUsage, command, group
from tocsin.cli.options import (
    AsJson,
    CallbackOptions,
    ListedNamespace,
    Namespace,
    RetryDefault,
    RetryOptions,
    ScheduleHookOptions,
    ServerOptions,
    checked_duration,
    checked_instant,
    given,
)

app = group(
    "Create, show and change schedules: callbacks that repeat. `tocsin apply` creates all that a file declares.",
    example='schedules create nightly-report http://127.0.0.1:9000/ --cron "0 2 * * *"',
)

#: The options that `--clear` names, and the fields that it sets to null.
_CLEARED = {
    "anchor": "anchor",
    "start": "startAt",
    "end": "endAt",
    "max-occurrences": "maxOccurrences",
    "catch-up-window": "catchUpWindow",
    "expire-after": "expireAfter",
    "only": "only",
    "skip": "skip",
}
#: Those of them that are empty without values.
_LISTS = frozenset({"only", "skip"})

ScheduleId = Annotated[str, typer.Argument(metavar="ID", help="Id of the schedule.")]
ScheduleIds = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of the schedules.")]


@dataclass(frozen=True)
class RuleOptions:
    """When a schedule is due."""

    cron: Annotated[
        str | None,
        typer.Option(metavar="EXPRESSION", help="Five cron fields, six with the seconds first, or @daily, @hourly, …"),
    ] = None
    time_zone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="IANA time zone of --cron.", show_default="UTC")
    ] = None
    every: Annotated[
        str | None, typer.Option(metavar="DURATION", help="An interval instead of --cron: 30s, 15m, 24h, 7d.")
    ] = None
    anchor: Annotated[
        str | None,
        typer.Option(
            metavar="INSTANT", help="Instant from which --every counts.", show_default="the schedule's creation"
        ),
    ] = None
    start: Annotated[str | None, typer.Option(metavar="INSTANT", help="Nothing is due before this instant.")] = None
    end: Annotated[str | None, typer.Option(metavar="INSTANT", help="Nothing is due at this instant or after it.")] = (
        None
    )

    def fields(self) -> dict[str, Any]:
        """The fields of the request; None for those that are not given."""
        if self.cron is not None and self.every is not None:
            raise WrongUsage("--cron and --every conflict; give only one of them")
        return {
            "cron": self.cron,
            "timeZone": self.time_zone,
            "every": checked_duration("--every", self.every),
            "anchor": checked_instant("--anchor", self.anchor),
            "startAt": checked_instant("--start", self.start),
            "endAt": checked_instant("--end", self.end),
        }


@dataclass(frozen=True)
class LatenessOptions:
    """How many occurrences a schedule has, and what becomes of late ones."""

    max_occurrences: Annotated[int | None, typer.Option(metavar="N", help="The schedule ends after N instants.")] = None
    jitter: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Delay each instant by up to this.", show_default="0s")
    ] = None
    catch_up: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="Which instants fire late, if they could not fire in time: latest, all or none.",
            show_default="latest",
        ),
    ] = None
    catch_up_window: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Greatest lateness of an instant that still fires.",
            show_default="24h, or 60s with --catch-up none",
        ),
    ] = None
    pause_after_failures: Annotated[
        int | None,
        typer.Option(metavar="N", help="Pause when N occurrences in a row have failed; 0: never.", show_default="0"),
    ] = None

    def fields(self) -> dict[str, Any]:
        """The fields of the request; None for those that are not given."""
        return {
            "maxOccurrences": self.max_occurrences,
            "jitter": checked_duration("--jitter", self.jitter),
            "catchUp": self.catch_up,
            "catchUpWindow": checked_duration("--catch-up-window", self.catch_up_window),
            "pauseAfterFailures": self.pause_after_failures,
        }


@dataclass(frozen=True)
class CalendarOptions:
    """Which dates a schedule fires on."""

    only: Annotated[
        list[str] | None,
        typer.Option(metavar="CALENDAR", help="Fire only on dates of this calendar, or of another --only."),
    ] = None
    skip: Annotated[
        list[str] | None,
        typer.Option(metavar="CALENDAR", help="Don't fire on dates of this calendar. May be repeated."),
    ] = None
    on_skipped: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="What becomes of excluded instants: none, or next: they move to the next date that is allowed.",
            show_default="none",
        ),
    ] = None

    def fields(self) -> dict[str, Any]:
        """The fields of the request; None for those that are not given."""
        return {"only": self.only or None, "skip": self.skip or None, "onSkipped": self.on_skipped}


@command(
    app,
    "create",
    example='schedules create standup http://127.0.0.1:9000/ --cron "0 9 * * MON-FRI" --time-zone Europe/Berlin',
)
def create(
    *,
    schedule_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the schedule, unique in the namespace.")],
    url: Annotated[str, typer.Argument(metavar="URL", help="URL to call.")],
    rule: RuleOptions,
    calendars: CalendarOptions,
    lateness: LatenessOptions,
    namespace: Namespace = "default",
    callback: CallbackOptions,
    hooks: ScheduleHookOptions,
    retries: RetryOptions,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Create a schedule, or give the one with the same id this definition: it keeps its counts and history."""
    fields = {**rule.fields(), **calendars.fields(), **lateness.fields(), **callback.fields(), **hooks.fields()}
    fields |= retries.policy()
    if fields["cron"] is None and fields["every"] is None:
        raise WrongUsage('give exactly one of --cron, such as --cron "0 9 * * *", and --every, such as --every 15m')
    request = given(namespace=namespace, id=schedule_id, callbackUrl=url, **fields)
    with server.client() as client:
        schedule, found = client.create(request, "schedules")
    if found:
        output.note("The schedule already has this definition; nothing was written.")
    _show(schedule, as_json)


@command(app, "get", example="schedules get nightly-report")
def get(
    *, schedule_id: ScheduleId, namespace: Namespace = "default", server: ServerOptions, as_json: AsJson = False
) -> None:
    """Show one schedule, its next instants and its last occurrence."""
    _show(server.post("/schedules/get", {"namespace": namespace, "scheduleId": schedule_id}), as_json)


@command(app, "list", example="schedules list --namespace billing --status paused")
def list_schedules(
    *,
    namespace: ListedNamespace = "default",
    status: Annotated[
        list[str] | None, typer.Option(help="Only schedules that are active or paused; may be repeated.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of schedules.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Cursor printed by the previous list.")] = None,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """List active and paused schedules, ordered by id; of all namespaces, one namespace after the other."""
    from tocsin.cli.rows import last_columns

    answer = server.post(
        "/schedules/list", given(namespace=namespace, status=status or None, limit=limit, cursor=cursor)
    )
    last = last_columns(answer["schedules"])
    output.print_page(
        answer,
        as_json,
        "schedules",
        (*output.scope_column(namespace, "namespace"), "id", "status", "runs", "next", "", "last outcome", *last),
        (
            (
                *output.scope_column(namespace, schedule["namespace"]),
                schedule["id"],
                output.status(schedule),
                schedule["sentence"],
                following := next(iter(schedule["nextInstants"]), None) if schedule["status"] == "active" else None,
                output.relative(following),
                schedule.get("lastOccurrence", {}).get("outcome"),
                *map(schedule.get, last.values()),
            )
            for schedule in answer["schedules"]
        ),
    )


@command(app, "update", example='schedules update nightly-report --cron "30 2 * * *"')
def update(
    *,
    schedule_id: ScheduleId,
    url: Annotated[str | None, typer.Option(metavar="URL", help="URL to call.")] = None,
    rule: RuleOptions,
    calendars: CalendarOptions,
    lateness: LatenessOptions,
    clear: Annotated[
        list[str] | None,
        typer.Option(metavar="OPTION", help=f"Remove a value: {', '.join(_CLEARED)}. May be repeated."),
    ] = None,
    namespace: Namespace = "default",
    callback: CallbackOptions,
    hooks: ScheduleHookOptions,
    retries: RetryOptions,
    retry_default: RetryDefault = False,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Change a schedule; options not given keep their value. Retry policy, headers and tags are replaced as a whole."""
    changes = given(callbackUrl=url, **rule.fields(), **calendars.fields(), **lateness.fields(), **callback.fields())
    changes |= given(**hooks.fields())
    changes |= retries.policy(remove=retry_default)
    for name in clear or []:
        if name not in _CLEARED:
            raise WrongUsage(f"--clear: {name!r} is not one of {', '.join(_CLEARED)}")
        if _CLEARED[name] in changes:
            raise WrongUsage(f"--clear {name} conflicts with --{name}; give only one of them")
        changes[_CLEARED[name]] = [] if name in _LISTS else None
    if not changes:
        raise WrongUsage("no change given; give --cron, --every, --url, --payload, …")
    request = {"namespace": namespace, "scheduleId": schedule_id, **changes}
    _show(server.post("/schedules/update", request), as_json)


@command(app, "delete", example="schedules delete nightly-report")
def delete(*, schedule_ids: ScheduleIds, namespace: Namespace = "default", server: ServerOptions) -> None:
    """Delete schedules. An attempt that is in flight may still arrive; it is not retried."""
    _each(server, "delete", namespace, schedule_ids, "deleted")


@command(app, "pause", example="schedules pause nightly-report")
def pause(*, schedule_ids: ScheduleIds, namespace: Namespace = "default", server: ServerOptions) -> None:
    """Pause schedules: until they are resumed, only triggers fire."""
    _each(server, "pause", namespace, schedule_ids, "paused")


@command(app, "resume", example="schedules resume nightly-report")
def resume(*, schedule_ids: ScheduleIds, namespace: Namespace = "default", server: ServerOptions) -> None:
    """Resume schedules, from their next instant on. `backfill` fires what they have skipped."""
    _each(server, "resume", namespace, schedule_ids, "resumed")


@command(app, "trigger", example="schedules trigger nightly-report")
def trigger(*, schedule_ids: ScheduleIds, namespace: Namespace = "default", server: ServerOptions) -> None:
    """Fire schedules once now, in addition to their instants."""
    _each(server, "trigger", namespace, schedule_ids, "triggered", once=True)


@command(
    app,
    "backfill",
    example="schedules backfill nightly-report --after 2027-01-30T00:00:00Z --before 2027-01-31T00:00:00Z",
)
def backfill(
    *,
    schedule_id: ScheduleId,
    after: Annotated[str, typer.Option(metavar="INSTANT", help="Only instants at or after this one.")],
    before: Annotated[str, typer.Option(metavar="INSTANT", help="Only instants before this one.")],
    namespace: Namespace = "default",
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Fire past instants of a schedule once more, one after the other."""
    request = {
        "namespace": namespace,
        "scheduleId": schedule_id,
        "after": checked_instant("--after", after),
        "before": checked_instant("--before", before),
    }
    with server.client() as client:
        _show(client.post_once("/schedules/backfill", request), as_json)


@command(app, "skip", example="schedules skip nightly-report 2027-01-31T02:00:00Z")
def skip(
    *,
    schedule_id: ScheduleId,
    instant: Annotated[str, typer.Argument(metavar="INSTANT", help="An instant to come; `preview` shows them.")],
    namespace: Namespace = "default",
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Skip one instant of a schedule."""
    _once(server, "skip", namespace, schedule_id, instant, as_json=as_json)


@command(app, "unskip", example="schedules unskip nightly-report 2027-01-31T02:00:00Z")
def unskip(
    *,
    schedule_id: ScheduleId,
    instant: Annotated[str, typer.Argument(metavar="INSTANT", help="An instant to come that is skipped.")],
    namespace: Namespace = "default",
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Fire at an instant all the same that was to be skipped."""
    _once(server, "unskip", namespace, schedule_id, instant, as_json=as_json)


@command(app, "replay", example="schedules replay nightly-report 2027-01-30T02:00:00Z")
def replay(
    *,
    schedule_id: ScheduleId,
    instants: Annotated[
        list[str], typer.Argument(metavar="INSTANT...", help="Instants of failed occurrences; `history` shows them.")
    ],
    namespace: Namespace = "default",
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Fire failed occurrences of a schedule again, one after the other, as it is defined now. Each keeps its webhook-id, so
    that a receiver that has done the work recognises the repetition."""
    wanted = [checked_instant("INSTANT", each) for each in instants]
    request = {"namespace": namespace, "scheduleId": schedule_id, "instants": wanted}
    _show(server.post("/schedules/replay", request), as_json)


@command(app, "history", example="schedules history nightly-report --limit 10")
def history(
    *,
    schedule_id: ScheduleId,
    namespace: Namespace = "default",
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of occurrences.")] = 20,
    cursor: Annotated[str | None, typer.Option(help="Cursor printed by the previous page.")] = None,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Show the occurrences of a schedule, newest first, and the instants that did not fire."""
    request = given(namespace=namespace, scheduleId=schedule_id, limit=limit, cursor=cursor)
    answer = server.post("/schedules/history", request)
    lines = (line for occurrence in answer["occurrences"] for line in _occurrence_lines(occurrence))
    columns = ("instant", "source", "status", "attempts", "last response")
    output.print_page(answer, as_json, "occurrences", columns, lines)


@command(app, "preview", example='schedules preview --cron "30 2 * * *" --time-zone Europe/Berlin --count 5')
def preview(
    *,
    schedule_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Id of a schedule; without it, the options define one.")
    ] = None,
    rule: RuleOptions,
    calendars: CalendarOptions,
    count: Annotated[int, typer.Option(min=1, max=100, help="Maximum number of instants.")] = 10,
    namespace: Namespace = "default",
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Show the next instants of a definition, or of a schedule. Nothing is written."""
    definition = given(**rule.fields(), **calendars.fields())
    if schedule_id is not None and definition:
        raise WrongUsage("ID and the options of a definition conflict; give only one of them")
    if schedule_id is None and not definition.keys() & {"cron", "every"}:
        raise WrongUsage("give an ID, --cron or --every")
    named = {"namespace": namespace, "scheduleId": schedule_id} if schedule_id is not None else {}
    if definition.keys() & {"only", "skip"}:
        named = {"namespace": namespace}
    answer = server.post("/schedules/preview", {**named, **definition, "count": count})
    if as_json:
        output.print_json(answer)
        return
    output.print_plain(answer["sentence"])
    zone = definition.get("timeZone", "UTC")
    if zone == "UTC":
        output.print_table(("instant", ""), [(at, output.relative(at)) for at in answer["instants"]])
    else:
        rows = [(at, _local(at, zone), output.relative(at)) for at in answer["instants"]]
        output.print_table(("instant", zone, ""), rows)
    if answer["excluded"]:
        excluded = [(each["instant"], each["reason"], each.get("calendar")) for each in answer["excluded"]]
        output.print_table(("excluded", "by", "calendar"), excluded)


def _occurrence_lines(occurrence: dict[str, Any]) -> list[tuple[object, ...]]:
    """A line for the occurrence, below the lines of the instants missed after it: the newest come first."""
    lines: list[tuple[object, ...]] = [
        (f"{missed['firstAt']} and {missed['count'] - 1} more" if missed["count"] > 1 else missed["firstAt"],
         "", "missed", "", missed["reason"])
        for missed in reversed(occurrence["missed"])
    ]  # fmt: skip
    if occurrence["status"] != "missed":
        latest = occurrence["attemptLog"][-1] if occurrence["attemptLog"] else {}
        came = latest.get("error") or latest.get("status")
        made = occurrence["attempts"] or ""
        lines.append((occurrence["instant"], occurrence.get("source"), occurrence["status"], made, came))
    return lines


def _each(
    server: ServerOptions, operation: str, namespace: str, schedule_ids: list[str], done: str, *, once: bool = False
) -> None:
    """`once`: the operation does its work again each time, so that it is not repeated if its outcome is unknown."""
    with server.client() as client:
        post = client.post_once if once else client.post
        output.each_done(
            schedule_ids,
            lambda one: post(f"/schedules/{operation}", {"namespace": namespace, "scheduleId": one}),
            done,
        )


def _once(
    server: ServerOptions, operation: str, namespace: str, schedule_id: str, instant: str, *, as_json: bool
) -> None:
    wanted = checked_instant("INSTANT", instant)
    request = {"namespace": namespace, "scheduleId": schedule_id, "instant": wanted}
    _show(server.post(f"/schedules/{operation}", request), as_json)


def _local(instant: str, zone: str) -> str:
    """What the clocks of a zone show, such as `Sun 2027-03-28 03:00:00 CEST`."""
    from tocsin.model.recurrence import time_zone

    return datetime.fromisoformat(instant).astimezone(time_zone(zone)).strftime("%a %Y-%m-%d %H:%M:%S %Z")


def _show(schedule: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.print_json(schedule)
        return
    following = "\n".join(f"{at} ({output.relative(at)})" for at in schedule["nextInstants"]) or None
    output.print_row(schedule, ("occurrenceAt", "nextAttemptAt"), nextInstants=following)
