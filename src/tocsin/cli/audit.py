"""`tocsin audit`."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.options import LOCAL_SERVER, AsJson, Server

#: Entries per page.
PAGE_ENTRIES = 100


def audit(
    action: Annotated[
        list[str] | None,
        typer.Option(help="Only this action, such as key_created; may be repeated.", show_default="all"),
    ] = None,
    key_id: Annotated[str | None, typer.Option("--by", metavar="KEY", help="Only actions of this key.")] = None,
    subject: Annotated[str | None, typer.Option(metavar="NAME", help="Only actions on this namespace or key.")] = None,
    after: Annotated[str | None, typer.Option(metavar="INSTANT", help="Only entries at or after this instant.")] = None,
    before: Annotated[str | None, typer.Option(metavar="INSTANT", help="Only entries before this instant.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries.")] = 100,
    server: Server = LOCAL_SERVER,
    as_json: AsJson = False,
) -> None:
    """Show the audit trail, newest first: sign-ins, and changes to keys and namespaces. Requires an admin key."""
    filters = {"action": action, "keyId": key_id, "subject": subject, "after": after, "before": before}
    wanted: dict[str, Any] = {name: value for name, value in filters.items() if value}
    with server.client() as client:
        pages = client.pages("/audit/list", {**wanted, "limit": min(PAGE_ENTRIES, limit)})
        entries = list(islice((entry for page in pages for entry in page["entries"]), limit))
    if as_json:
        output.print_json(entries)
        return
    output.print_table(
        ("at", "action", "key", "subject", "from", "address", "node", "details"),
        [
            (
                entry["at"],
                entry["action"],
                entry["keyId"] or "",
                entry["subject"],
                entry["source"],
                entry["address"],
                entry["node"],
                ", ".join(f"{name}={_shown(value)}" for name, value in entry["details"].items()),
            )
            for entry in entries
        ],
    )


def _shown(value: object) -> str:
    return "+".join(map(str, value)) or "all" if isinstance(value, list) else str(value)
