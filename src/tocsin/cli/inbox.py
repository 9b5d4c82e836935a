"""`tocsin inbox`: the table whose rows become timers, in the database that `inbox.url` names."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from tocsin.cli import output
from tocsin.cli.command import WrongUsage, command, group
from tocsin.cli.options import AsJson, ConfigFile

if TYPE_CHECKING:
    from tocsin.ports.inbox import DeadRows, InboxTable, ListedRow

T = TypeVar("T")

app = group(
    "The inbox: a table in a database of yours, whose rows the server turns into timers. These commands read and write that "
    "database themselves.",
    example="inbox migrate --inbox-url postgresql://shop@db/shop",
)

#: Rows that are listed without --limit, and at most.
_ROWS, _ROWS_MAX = 100, 10_000

Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAME", help="Only rows of this namespace.", show_default="all"),
]


@dataclass(frozen=True)
class InboxOptions:
    """Where the table is."""

    config: ConfigFile = None
    inbox_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Database with the table: postgresql://… or mysql://…",
            show_default="the setting inbox.url",
        ),
    ] = None

    def run(self, work: Callable[[InboxTable], Awaitable[T]]) -> T:
        """What `work` makes of the table."""
        import asyncio

        from tocsin.server.inbox import inbox_table
        from tocsin.settings import load_settings

        settings = load_settings({"config": self.config})
        if self.inbox_url is not None:
            settings = dataclasses.replace(
                settings, inbox=dataclasses.replace(settings.inbox, url=_url(self.inbox_url))
            )

        async def with_table() -> T:
            table = inbox_table(settings)
            try:
                return await work(table)
            finally:
                await table.close()

        return asyncio.run(with_table())


def _url(text: str) -> str:
    from tocsin.inbox.options import inbox_address
    from tocsin.model.setting_values import redacted

    try:
        return inbox_address(text)
    except ValueError as error:
        raise WrongUsage(f"--inbox-url: {redacted(text)!r} {error}") from None


@command(app, "migrate", example="inbox migrate --inbox-url postgresql://shop@db/shop")
def migrate(
    *,
    no_notify: Annotated[
        bool,
        typer.Option(
            "--no-notify",
            help="PostgreSQL: no trigger that announces commits, or its removal; the table is only polled then.",
        ),
    ] = False,
    inbox: InboxOptions,
    as_json: AsJson = False,
) -> None:
    """Create the table where it is missing, and in PostgreSQL the trigger that announces commits. The user needs the right to
    create tables; the server's needs SELECT, UPDATE and DELETE, the programs' INSERT."""

    async def work(table: InboxTable) -> dict[str, Any]:
        return {"notify": await table.create(notify=not no_notify), "database": table.place}

    output.print_result(inbox.run(work), as_json)


@command(app, "status", example="inbox status")
def status(*, inbox: InboxOptions, as_json: AsJson = False) -> None:
    """How many of the oldest 100,000 rows wait for their timers, and how many are dead."""
    from tocsin.model.instants import format_instant

    async def work(table: InboxTable) -> dict[str, Any]:
        found = await table.backlog()
        oldest = {} if found.oldest_at is None else {"oldest": format_instant(found.oldest_at)}
        return {"waiting": found.waiting, "dead": found.dead, **oldest}

    output.print_result(inbox.run(work), as_json)


@command(app, "list", example="inbox list --dead --namespace orders")
def list_(
    *,
    dead: Annotated[bool, typer.Option("--dead", help="Only dead rows, which are refused for good.")] = False,
    namespace: Namespace = None,
    limit: Annotated[int, typer.Option(min=1, max=_ROWS_MAX, help="Maximum number of rows.")] = _ROWS,
    inbox: InboxOptions,
    as_json: AsJson = False,
) -> None:
    """Show rows, the oldest first: those that wait for their timers, and dead ones with the reason."""
    from tocsin.model.instants import format_instant

    rows = inbox.run(lambda table: table.rows(namespace, limit, dead=dead))
    if as_json:
        output.print_json([_as_json(row) for row in rows])
    else:
        shown = (
            (row.id, row.namespace, row.timer_id, format_instant(row.created_at), row.dead_reason or "") for row in rows
        )
        output.print_table(("id", "namespace", "timer", "written at", "dead because"), shown)


def _as_json(row: ListedRow) -> dict[str, Any]:
    from tocsin.model.instants import format_instant

    reason = {} if row.dead_reason is None else {"deadReason": row.dead_reason}
    return {
        "id": row.id,
        "namespace": row.namespace,
        "timerId": row.timer_id,
        "createdAt": format_instant(row.created_at),
        **reason,
    }


Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of rows.")]
All = Annotated[bool, typer.Option("--all", help="All dead rows.")]


@command(app, "replay", example="inbox replay --namespace orders")
def replay(
    *, ids: Ids = None, namespace: Namespace = None, every: All = False, inbox: InboxOptions, as_json: AsJson = False
) -> None:
    """Have dead rows tried again, once their cause is mended: rows by id, those of a namespace, or all."""
    wanted = _dead_rows(ids, namespace, every=every)
    output.print_result({"replayed": inbox.run(lambda table: _sum(table.revive(wanted)))}, as_json)


@command(app, "delete", example="inbox delete 0197a3c0-0000-7000-8000-000000000001")
def delete(
    *, ids: Ids = None, namespace: Namespace = None, every: All = False, inbox: InboxOptions, as_json: AsJson = False
) -> None:
    """Delete dead rows, whose timers are never created then: rows by id, those of a namespace, or all."""
    wanted = _dead_rows(ids, namespace, every=every)
    output.print_result({"deleted": inbox.run(lambda table: _sum(table.discard(wanted)))}, as_json)


async def _sum(numbers: AsyncIterator[int]) -> int:
    return sum([number async for number in numbers])


def _dead_rows(ids: list[str] | None, namespace: str | None, *, every: bool) -> DeadRows:
    from tocsin.ports.inbox import DeadRows

    if not (ids or namespace or every):
        raise WrongUsage("name ids of rows, --namespace or --all; `tocsin inbox list --dead` shows the dead rows")
    return DeadRows(namespace, ids or (), sys.maxsize)
