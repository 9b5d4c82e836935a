"""`tocsin monitors`: jobs that should report, and who is notified when they don't."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.command import WrongUsage, command, group
from tocsin.cli.options import AsJson, ListedNamespace, MonitorHookOptions, ServerOptions, checked_duration, given

app = group(
    "Monitors: notify when a job of yours does not report in time.",
    example='monitors put nightly-backup --cron "0 3 * * *" --grace 30m',
)

Namespace = Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", help="The monitors' namespace.")]
MonitorId = Annotated[str, typer.Argument(metavar="ID", help="Id of the monitor.")]


@dataclass(frozen=True)
class RhythmOptions:
    """When a job should report."""

    cron: Annotated[str | None, typer.Option(metavar="EXPRESSION", help="A report is expected at these instants.")] = (
        None
    )
    time_zone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="IANA time zone of --cron.", show_default="UTC")
    ] = None
    every: Annotated[
        str | None, typer.Option(metavar="DURATION", help="A report is expected so long after the last one.")
    ] = None
    schedule: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Watch this schedule of the namespace, without pings."),
    ] = None
    grace: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="How long afterwards it is not late yet.", show_default="5m"),
    ] = None
    repeat: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="While it is late, notify again so often.", show_default="once"),
    ] = None

    def fields(self) -> dict[str, Any]:
        """The fields of the request; None for those that are not given."""
        if [self.cron, self.every, self.schedule].count(None) != 2:
            raise WrongUsage(
                'give exactly one of --cron, such as --cron "0 3 * * *", --every, such as --every 15m, and --schedule'
            )
        return {
            "cron": self.cron,
            "timeZone": self.time_zone,
            "every": checked_duration("--every", self.every),
            "schedule": self.schedule,
            "grace": checked_duration("--grace", self.grace),
            "repeat": checked_duration("--repeat", self.repeat),
        }


@command(app, "put", example='monitors put nightly-backup --cron "0 3 * * *" --grace 30m')
def put(
    *,
    monitor_id: MonitorId,
    rhythm: RhythmOptions,
    hooks: MonitorHookOptions,
    namespace: Namespace = "default",
    tags: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="A label. May be repeated.")] = None,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="What it is for, in one line.")] = None,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Create a monitor, or give the one with the same id this definition. The URL that its job pings is shown once, when the
    monitor is created; a schedule needs none."""
    fields = {**rhythm.fields(), **hooks.fields(), "tags": tags or None, "description": description}
    answer = server.post("/monitors/put", given(namespace=namespace, id=monitor_id, **fields))
    _show(answer, as_json)


@command(app, "list", example="monitors list --state late")
def list_monitors(
    *,
    namespace: ListedNamespace = "default",
    state: Annotated[
        list[str] | None, typer.Option(help="Only those that are new, up, late, failed or paused; may be repeated.")
    ] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="Only those with this tag.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of monitors.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Cursor printed by the previous list.")] = None,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """List monitors by namespace and id."""
    request = given(namespace=namespace, state=state or None, tag=tag, limit=limit, cursor=cursor)
    answer = server.post("/monitors/list", request)
    output.print_page(
        answer,
        as_json,
        "monitors",
        (*output.scope_column(namespace, "namespace"), "id", "state", "expected", "", "last ping"),
        (
            (
                *output.scope_column(namespace, each["namespace"]),
                each["id"],
                f"{each['state']} (unwatched)" if "unwatchedSince" in each else each["state"],
                each.get("expectedAt"),
                output.relative(each.get("expectedAt")),
                each.get("lastPingAt"),
            )
            for each in answer["monitors"]
        ),
    )


@command(app, "show", example="monitors show nightly-backup")
def show(
    *, monitor_id: MonitorId, namespace: Namespace = "default", server: ServerOptions, as_json: AsJson = False
) -> None:
    """Show a monitor."""
    _show(server.post("/monitors/get", {"namespace": namespace, "id": monitor_id}), as_json)


@command(app, "history", example="monitors history nightly-backup --limit 10")
def history(
    *,
    monitor_id: MonitorId,
    namespace: Namespace = "default",
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of periods.")] = 20,
    cursor: Annotated[str | None, typer.Option(help="Cursor printed by the previous page.")] = None,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Show what became of a monitor's periods, newest first."""
    request = given(namespace=namespace, id=monitor_id, limit=limit, cursor=cursor)
    answer = server.post("/monitors/history", request)
    output.print_page(
        answer,
        as_json,
        "periods",
        ("expected", "state", "periods", "ended", "duration", "exit code", "note"),
        (
            (
                each["expectedAt"],
                each["state"],
                each.get("periods", 1),
                each.get("endedAt"),
                f"{each['durationMs'] / 1_000:.1f} s" if "durationMs" in each else None,
                each.get("exitCode"),
                each.get("note"),
            )
            for each in answer["periods"]
        ),
    )


@command(app, "pause", example="monitors pause nightly-backup")
def pause(*, monitor_id: MonitorId, namespace: Namespace = "default", server: ServerOptions) -> None:
    """Expect nothing of a job until the monitor is resumed."""
    server.post("/monitors/pause", {"namespace": namespace, "id": monitor_id})
    output.note(f"{monitor_id} is paused.")


@command(app, "resume", example="monitors resume nightly-backup")
def resume(*, monitor_id: MonitorId, namespace: Namespace = "default", server: ServerOptions) -> None:
    """Expect reports again, from the next instant on."""
    server.post("/monitors/resume", {"namespace": namespace, "id": monitor_id})
    output.note(f"{monitor_id} is resumed.")


@command(app, "rotate", example="monitors rotate nightly-backup")
def rotate(
    *, monitor_id: MonitorId, namespace: Namespace = "default", server: ServerOptions, as_json: AsJson = False
) -> None:
    """Give a monitor another ping URL, which is shown once. The former one is refused from then on."""
    _show(server.post("/monitors/rotate", {"namespace": namespace, "id": monitor_id}), as_json)


@command(app, "delete", example="monitors delete nightly-backup")
def delete(*, monitor_id: MonitorId, namespace: Namespace = "default", server: ServerOptions) -> None:
    """Delete a monitor and its history."""
    server.post("/monitors/delete", {"namespace": namespace, "id": monitor_id})
    output.note(f"{monitor_id} is deleted.")


def _show(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.print_json(answer)
        return
    monitor = answer["monitor"]
    hooks = {name: monitor[name]["url"] for name in ("onLate", "onRecovery") if name in monitor}
    fields = monitor | {"tags": " ".join(monitor["tags"])} | hooks
    output.print_fields({name: output.cell(value) for name, value in fields.items() if value != ""})
    if "pingUrl" in answer:
        output.print_plain(answer["pingUrl"])
